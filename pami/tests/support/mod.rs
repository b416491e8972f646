//! Shared by the integration tests of PAMI: jobs whose tasks are threads, over every adapter, under a watchdog.

#![allow(dead_code, reason = "every test file uses its own part")]

pub mod collectives;

use std::cell::Cell;
use std::sync::{Arc, Mutex};
use std::thread;

use mpj_doubles::channels::{self, Cards};
use mpj_doubles::hosts;
use mpj_harness::watch;
use pami::{Client, Context, Endpoint, Guard, Hints, Outcome};
use transport_lapi::adapter::Losses;
use transport_lapi::adapters::shm::{ShmAdapter, create_segment};
use transport_lapi::config::GetMode;
use transport_lapi::wireup;
use transport_lapi::{AnyAdapter, Options, TaskId};

/// The adapter of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Rings and areas in memory of the process.
    Threads,
    /// Rings and areas in a memfd.
    Shm,
    /// Channels without one-sided operations: everything is built of messages.
    Channels,
    /// Channels whose network cards access memory.
    Cards,
    /// Tasks with even numbers on one host, those with odd ones on another, and channels between them.
    Hosts,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Threads, Self::Shm, Self::Channels, Self::Cards, Self::Hosts];

    /// Makes the adapters of a job: those of each task, one for each context.
    pub fn adapters(self, num_tasks: usize, contexts: usize) -> Vec<Vec<AnyAdapter>> {
        match self {
            Self::Threads => wireup::in_process(num_tasks, contexts).unwrap(),
            Self::Shm => attach(num_tasks, contexts),
            Self::Channels => {
                any(channels::job_with_contexts(num_tasks, contexts, Cards::Frames).unwrap())
            }
            Self::Cards => {
                any(channels::job_with_contexts(num_tasks, contexts, Cards::OneSided).unwrap())
            }
            Self::Hosts => {
                let network = |context, bells| channels::in_context(context, bells, Cards::Frames);
                let plan = hosts::plan(num_tasks, |task| task % 2);
                any(hosts::job(&plan, contexts, network).unwrap())
            }
        }
    }
}

fn any<A: Into<AnyAdapter>>(tasks: Vec<Vec<A>>) -> Vec<Vec<AnyAdapter>> {
    tasks.into_iter().map(|task| task.into_iter().map(Into::into).collect()).collect()
}

/// Attaches `num_tasks` threads to one segment.
fn attach(num_tasks: usize, contexts: usize) -> Vec<Vec<AnyAdapter>> {
    let segment = create_segment("test", num_tasks, contexts).unwrap();
    thread::scope(|scope| {
        let task = |task: usize| {
            let (segment, get) = (segment.try_clone().unwrap(), GetMode::Auto);
            scope.spawn(move || {
                ShmAdapter::attach_contexts(segment, task as TaskId, num_tasks, contexts, get)
            })
        };
        let tasks: Vec<_> = (0..num_tasks).map(task).collect();
        any(tasks.into_iter().map(|task| task.join().unwrap().unwrap()).collect())
    })
}

/// One task of a job.
pub struct Task {
    pub client: Client,
    pub contexts: Vec<Context>,
    pub losses: Arc<dyn Losses>,
}

impl Task {
    /// Takes the first context.
    pub fn lock(&self) -> Guard<'_> {
        self.contexts[0].lock().unwrap()
    }

    pub fn endpoint(&self, task: TaskId) -> Endpoint {
        self.client.endpoint(task, 0).unwrap()
    }

    pub fn id(&self) -> TaskId {
        self.client.task()
    }
}

/// Declares its task lost if the task panics, so that the others fail too instead of waiting.
struct Alarm(Arc<dyn Losses>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.declare();
        }
    }
}

/// Runs `body` on every task of a job with one context each, and ends the clients.
pub fn run(kind: Kind, num_tasks: usize, body: impl Fn(&Task) + Send + Sync + 'static) {
    run_with(kind, num_tasks, 1, move |task| {
        body(task);
        true
    });
}

/// [`run`] with several contexts. A body that answers `false` leaves without the others.
pub fn run_with(
    kind: Kind,
    num_tasks: usize,
    contexts: usize,
    body: impl Fn(&Task) -> bool + Send + Sync + 'static,
) {
    let adapters = kind.adapters(num_tasks, contexts);
    watch(move || {
        let tasks: Vec<_> = adapters
            .into_iter()
            .map(|adapters| {
                let losses = adapters[0].parts().losses;
                let mut client = Client::init("test", adapters, &Options::default()).unwrap();
                let contexts = client.create_contexts(contexts).unwrap();
                Task { client, contexts, losses }
            })
            .collect();
        thread::scope(|scope| {
            let body = &body;
            for mut task in tasks {
                scope.spawn(move || {
                    let alarm = Alarm(Arc::clone(&task.losses));
                    if body(&task) {
                        task.contexts.clear();
                        task.client.destroy().unwrap();
                    }
                    drop(alarm);
                });
            }
        });
    });
}

/// Lets both tasks of a job wait for each other, as often as they like.
pub struct Meeting {
    come: Log<()>,
    peer: Endpoint,
    times: Cell<usize>,
}

impl Meeting {
    /// The dispatch of its messages.
    const DISPATCH: usize = 254;

    pub fn of(task: &Task, guard: &mut Guard<'_>) -> Self {
        let come = Log::new();
        let to = come.clone();
        guard.dispatch_set(Self::DISPATCH, move |_, _| to.push(()), Hints::default()).unwrap();
        Self { come, peer: task.endpoint(1 - task.id()), times: Cell::new(0) }
    }

    /// Says that this task has come.
    pub fn come(&self, guard: &mut Guard<'_>) {
        self.times.set(self.times.get() + 1);
        let _ = guard.send_immediate(self.peer, Self::DISPATCH, &[], &[]).unwrap();
    }

    /// Whether the other one has come as often.
    pub fn is_met(&self) -> bool {
        self.come.len() >= self.times.get()
    }

    /// Waits for the other task.
    pub fn meet(&self, guard: &mut Guard<'_>) {
        self.come(guard);
        until(guard, || self.is_met());
    }
}

/// Something that callbacks append to and the test reads.
pub struct Log<T>(Arc<Mutex<Vec<T>>>);

impl<T> Clone for Log<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Clone> Log<T> {
    pub fn new() -> Self {
        Self(Arc::default())
    }

    pub fn push(&self, item: T) {
        self.0.lock().unwrap().push(item);
    }

    pub fn take(&self) -> Vec<T> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    pub fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub fn get(&self) -> Vec<T> {
        self.0.lock().unwrap().clone()
    }

    /// Advances until there are `count` items.
    pub fn wait_in(&self, guard: &mut Guard<'_>, count: usize) -> Vec<T> {
        until(guard, || self.len() >= count);
        self.get()
    }
}

/// Advances until `condition` holds.
pub fn until(guard: &mut Guard<'_>, mut condition: impl FnMut() -> bool) {
    while !condition() {
        if guard.advance(1).unwrap() == Outcome::Again {
            thread::yield_now();
        }
    }
}

/// Bytes that depend on `seed`.
pub fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at.wrapping_mul(31) ^ (at >> 8) ^ seed.wrapping_mul(17)) as u8).collect()
}
