//! Jobs whose ranks are threads, for tests: under a watchdog, whose failure shows what all ranks do.

#![allow(dead_code, reason = "every test file uses its own part")]

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use mpj::local::{self, LocalError};
use mpj::tuning::Options;
use mpj::{Communicator, World};
use mpj_harness::watch_with;

/// Time limit of what a rank says about itself.
const GRACE: Duration = Duration::from_secs(3);

/// Runs a job that has to end well, and returns the answers of its ranks.
#[track_caller]
pub fn job<R: Send + 'static>(
    ranks: usize,
    body: impl Fn(&World) -> R + Send + Sync + 'static,
) -> Vec<R> {
    job_with(&Options::default(), ranks, body)
}

/// Like [`job`], with options.
#[track_caller]
pub fn job_with<R: Send + 'static>(
    options: &Options,
    ranks: usize,
    body: impl Fn(&World) -> R + Send + Sync + 'static,
) -> Vec<R> {
    let outcome = try_job(options, ranks, move |world| body(&world));
    outcome.unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a job whose ranks own their worlds, and returns its outcome.
#[track_caller]
pub fn try_job<R: Send + 'static>(
    options: &Options,
    ranks: usize,
    body: impl Fn(World) -> R + Send + Sync + 'static,
) -> Result<Vec<R>, LocalError> {
    try_job_by(|options, ranks, body| local::run_with(options, ranks, body), options, ranks, body)
}

/// What makes the ranks of a job, given options and their number, and runs this on each.
pub type Run<R> = fn(&Options, usize, &(dyn Fn(World) -> R + Sync)) -> Result<Vec<R>, LocalError>;

/// [`try_job`] with ranks that `run` makes.
#[track_caller]
pub fn try_job_by<R: Send + 'static>(
    run: Run<R>,
    options: &Options,
    ranks: usize,
    body: impl Fn(World) -> R + Send + Sync + 'static,
) -> Result<Vec<R>, LocalError> {
    let (options, members) = (options.clone(), Arc::new(Mutex::new(Vec::new())));
    let joined = members.clone();
    let run_watched = move || {
        run(&options, ranks, &|world| {
            let member = Communicator::clone(&world);
            joined.lock().unwrap_or_else(PoisonError::into_inner).push(member);
            body(world)
        })
    };
    watch_with(|| dumps(&members), run_watched)
}

/// What the ranks are doing.
fn dumps(members: &Mutex<Vec<Communicator>>) -> String {
    let members = members.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let (say, said) = mpsc::channel();
    thread::spawn(move || {
        for member in members {
            let dump = member.dump().unwrap_or_else(|error| format!("{error}\n"));
            // Nobody listens after the limit.
            let _ = say.send(format!("rank {}:\n{dump}", member.rank()));
        }
    });
    std::iter::from_fn(|| said.recv_timeout(GRACE).ok()).collect()
}
