//! Jobs whose tasks are threads of this process, over every adapter.

use std::sync::{Arc, Mutex};
use std::thread;

use mpj_doubles::channels::{self, Cards};
use mpj_doubles::fault::{FaultAdapter, FaultPlan};
use mpj_harness::watch;
use transport_lapi::AnyAdapter;
use transport_lapi::adapter::Losses;
use transport_lapi::adapters::shm::{ShmAdapter, create_segment};
use transport_lapi::config::{GetMode, WaitMode};
use transport_lapi::wireup;
use transport_lapi::{Context, LapiError, Options, TaskId};

/// The adapter of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Rings in memory of the process, gets by copying.
    Threads,
    /// Rings in a memfd, gets by the kernel if it allows them.
    Shm,
    /// Rings in a memfd, gets built from active messages.
    ShmAm,
    /// Channels, whose network cards access memory. They often refuse, and operations end out of order.
    OneSided,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Threads, Self::Shm, Self::ShmAm, Self::OneSided];

    /// Those over a segment, which copy every body inside the call, and whose tasks do nothing between calls.
    pub const SEGMENTS: [Self; 3] = [Self::Threads, Self::Shm, Self::ShmAm];

    /// Makes the adapters of a job.
    pub fn adapters(self, num_tasks: usize) -> Vec<AnyAdapter> {
        match self {
            Self::Threads => {
                let tasks = wireup::in_process(num_tasks, 1).expect("memory suffices");
                tasks.into_iter().flatten().collect()
            }
            Self::Shm => attach(num_tasks, GetMode::Auto),
            Self::ShmAm => attach(num_tasks, GetMode::Am),
            Self::OneSided => {
                let tasks = channels::job(num_tasks, Cards::OneSided).expect("memory suffices");
                let plan = FaultPlan { full: 300, ..FaultPlan::ONE_SIDED };
                let tasks = FaultAdapter::job(tasks, 5, plan);
                tasks.into_iter().map(AnyAdapter::from).collect()
            }
        }
    }
}

/// Attaches `num_tasks` threads to one segment.
fn attach(num_tasks: usize, get: GetMode) -> Vec<AnyAdapter> {
    let segment = create_segment("test", num_tasks, 1).expect("memory suffices");
    thread::scope(|scope| {
        let task = |task: usize| {
            let segment = segment.try_clone().expect("descriptors suffice");
            scope.spawn(move || ShmAdapter::attach(segment, task as TaskId, num_tasks, get))
        };
        let tasks: Vec<_> = (0..num_tasks).map(task).collect();
        let adapter = |task: thread::ScopedJoinHandle<'_, Result<ShmAdapter, _>>| {
            let attached = task.join().expect("attaching does not panic");
            AnyAdapter::from(attached.expect("all tasks attach"))
        };
        tasks.into_iter().map(adapter).collect()
    })
}

/// Options with this wait mode.
pub fn waiting(wait: WaitMode) -> Options {
    Options { wait, ..Options::default() }
}

/// Runs `body` on every task of a job, under a watchdog, and returns the results in the order of the tasks. `state`
/// makes each task's state. Contexts live until all bodies have returned.
///
/// # Panics
/// If a body panics, or the time is over.
pub fn run_with<S, R>(
    adapters: Vec<impl Into<AnyAdapter>>,
    options: Options,
    state: impl Fn(TaskId) -> S + Send + 'static,
    body: impl Fn(&Arc<Context<S>>) -> R + Send + Sync + 'static,
) -> Vec<R>
where
    S: Send + 'static,
    R: Send + 'static,
{
    let answers = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&answers);
    let part = move |context: &Arc<Context<S>>| {
        let answer = body(context);
        kept.lock().expect("no panic with this lock").push((context.task(), answer));
    };
    let adapters = adapters.into_iter().map(Into::into).collect();
    run_each(adapters, options, Box::new(state), Box::new(part));
    let mut answers = std::mem::take(&mut *answers.lock().expect("no panic with this lock"));
    answers.sort_unstable_by_key(|(task, _)| *task);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// A function that makes a task's state.
type State<S> = Box<dyn Fn(TaskId) -> S + Send>;

/// The program of a task.
type Part<S> = Box<dyn Fn(&Arc<Context<S>>) + Send + Sync>;

/// The part of [`run_with`] that is compiled once for all bodies.
fn run_each<S: Send + 'static>(
    adapters: Vec<AnyAdapter>,
    options: Options,
    state: State<S>,
    part: Part<S>,
) {
    watch(move || {
        let member = |adapter: AnyAdapter| {
            let alarm = Alarm(adapter.parts().losses);
            let state = state(adapter.endpoint().task);
            (alarm, Arc::new(Context::init(adapter, state, options.clone())))
        };
        let members: Vec<_> = adapters.into_iter().map(member).collect();
        thread::scope(|scope| {
            let task = |(alarm, context): &(Alarm, Arc<Context<S>>)| {
                let (alarm, context, part) = (alarm.clone(), Arc::clone(context), &part);
                scope.spawn(move || {
                    part(&context);
                    drop(alarm);
                })
            };
            let tasks: Vec<_> = members.iter().map(task).collect();
            for task in tasks {
                task.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            }
        });
    });
}

/// [`run_with`] on a kind of adapter, with the default options.
pub fn run<S: Send + 'static, R: Send + 'static>(
    kind: Kind,
    num_tasks: usize,
    state: impl Fn(TaskId) -> S + Send + 'static,
    body: impl Fn(&Arc<Context<S>>) -> R + Send + Sync + 'static,
) -> Vec<R> {
    run_with(kind.adapters(num_tasks), Options::default(), state, body)
}

/// Declares its task lost if the task panics, so that the others fail too instead of waiting.
#[derive(Clone)]
struct Alarm(Arc<dyn Losses>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.declare();
        }
    }
}

/// Makes progress on both contexts of one thread until each has had an error.
pub fn both_errors(contexts: [&Context<()>; 2]) -> [LapiError; 2] {
    let mut errors = [None, None];
    while errors.iter().any(Option::is_none) {
        for (context, error) in contexts.into_iter().zip(&mut errors) {
            if let Err(news) = context.session().expect("the context lives").progress() {
                assert!(error.is_none(), "one error for each: {news}");
                *error = Some(news);
            }
        }
    }
    errors.map(|error| error.expect("each has one"))
}
