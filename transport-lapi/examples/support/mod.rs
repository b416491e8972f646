//! How the examples begin and end: as a task of a job, or as threads if the process was started alone.

#![allow(dead_code, reason = "every example uses its own part")]

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use transport_lapi::AnyAdapter;
use transport_lapi::bootstrap::control::MessageCounts;
use transport_lapi::config::Settings;
use transport_lapi::wireup::{self, Client};
use transport_lapi::{Context, Options, RemoteRegion};

/// What goes wrong in an example.
pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// The contexts of one task, in order.
pub type Contexts<S> = Vec<Arc<Context<S>>>;

/// Runs `part` in the task of a job that this process is, or in `tasks` tasks with `contexts` contexts each that are
/// threads.
pub fn play<S: Default + Send + 'static>(
    name: &str,
    tasks: usize,
    contexts: usize,
    part: fn(&Contexts<S>) -> Outcome<()>,
) -> ExitCode {
    match begin(name, tasks, contexts, part) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn begin<S: Default + Send + 'static>(
    name: &str,
    tasks: usize,
    contexts: usize,
    part: fn(&Contexts<S>) -> Outcome<()>,
) -> Outcome<()> {
    let settings = Settings::from_env()?;
    let joined = wireup::connect(&settings, Client::new(name).with_contexts_of_job())?;
    if let Some(control) = joined.control {
        let contexts = init(joined.contexts, joined.processors);
        part(&contexts)?;
        contexts[0].gfence()?;
        control.leaving(MessageCounts::default());
        contexts[0].gfence()?;
        control.finished();
        return Ok(());
    }
    let tasks: Vec<_> = wireup::in_process(tasks, contexts)?;
    let tasks: Vec<_> = tasks.into_iter().map(|task| init(task, None)).collect();
    thread::scope(|scope| {
        let start = |task| {
            scope.spawn(move || {
                part(task).and_then(|()| Ok(task[0].gfence()?)).map_err(|error| error.to_string())
            })
        };
        let threads: Vec<_> = tasks.iter().map(start).collect();
        let outcomes: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        for outcome in outcomes {
            outcome.map_err(|_| "a task panicked")??;
        }
        Ok(())
    })
}

fn init<S: Default>(adapters: Vec<AnyAdapter>, processors: Option<usize>) -> Contexts<S> {
    let options = Options { processors, ..Options::default() };
    let init = |adapter| Arc::new(Context::init(adapter, S::default(), options.clone()));
    adapters.into_iter().map(init).collect()
}

/// Tells all tasks a region of this one, and returns those of all, by task.
pub fn exchange<S>(context: &Context<S>, region: RemoteRegion) -> Outcome<Vec<RemoteRegion>> {
    let mut all = vec![[0; 8]; context.num_tasks()];
    for (nth, word) in region.to_words().into_iter().enumerate() {
        for (words, word) in all.iter_mut().zip(context.address_init(word)?) {
            words[nth] = word;
        }
    }
    Ok(all.into_iter().map(RemoteRegion::from_words).collect())
}
