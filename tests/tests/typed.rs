//! The typed layer, as programs use it, with ranks that are threads.
//!
//! Every job runs under a watchdog, whose failure shows the dumps of all ranks.

use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use mpj::local::{self, LocalError};
use mpj::{Communicator, Options, World};

#[path = "typed/arrays.rs"]
mod arrays;
#[path = "typed/buffers.rs"]
mod buffers;
#[path = "typed/collective.rs"]
mod collective;
#[path = "typed/elements.rs"]
mod elements;
#[path = "typed/failures.rs"]
mod failures;
#[path = "typed/interleaved.rs"]
mod interleaved;
#[path = "typed/point_to_point.rs"]
mod point_to_point;
#[path = "typed/requests.rs"]
mod requests;
#[path = "typed/scopes.rs"]
mod scopes;
#[path = "typed/strided.rs"]
mod strided;
#[path = "typed/structures.rs"]
mod structures;

/// Time limit of a job.
const LIMIT: Duration = Duration::from_secs(60);

/// Time limit of dumps.
const GRACE: Duration = Duration::from_secs(3);

/// Runs a job that has to end well, and returns the answers of its ranks.
#[track_caller]
fn job<R: Send + 'static>(
    ranks: usize,
    body: impl Fn(&World) -> R + Send + Sync + 'static,
) -> Vec<R> {
    let outcome = try_job(&Options::default(), ranks, move |world| body(&world));
    outcome.unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a job under the watchdog.
#[track_caller]
fn try_job<R: Send + 'static>(
    options: &Options,
    ranks: usize,
    body: impl Fn(World) -> R + Send + Sync + 'static,
) -> Result<Vec<R>, LocalError> {
    let (options, members) = (options.clone(), Arc::new(Mutex::new(Vec::new())));
    let (done, outcome) = mpsc::channel();
    let joined = members.clone();
    thread::spawn(move || {
        let outcome = local::run_with(&options, ranks, |world| {
            joined.lock().expect("no panic with this lock").push(Communicator::clone(&world));
            body(world)
        });
        // Nobody listens after the limit.
        let _ = done.send(outcome);
    });
    let outcome = outcome.recv_timeout(LIMIT);
    outcome.unwrap_or_else(|_| panic!("no end after {LIMIT:?}\n{}", dumps(&members)))
}

/// What the ranks are doing.
fn dumps(members: &Arc<Mutex<Vec<Communicator>>>) -> String {
    let members = members.lock().expect("no panic with this lock").clone();
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
