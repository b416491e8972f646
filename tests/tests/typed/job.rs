//! The jobs of `mpj/tests/job`, whose ranks are threads. In a process that `mpjrun` has started, they are the ranks of its
//! job instead: see `over_hosts`.

#[path = "../../../mpj/tests/job/mod.rs"]
mod threads;

use std::sync::{Mutex, OnceLock};

use mpj::World;
use transport_lapi::config;

pub use threads::try_job;

/// The world of this process, if it is a rank, until it is finished.
fn world() -> Option<&'static Mutex<Option<World>>> {
    static WORLD: OnceLock<Mutex<Option<World>>> = OnceLock::new();
    let join = || Mutex::new(Some(mpj::init().expect("the launcher has started this rank")));
    config::is_rank().then(|| WORLD.get_or_init(join))
}

/// Runs a job that has to end well, and returns the answers of the ranks of this process.
#[track_caller]
pub fn job<R: Send + 'static>(
    ranks: usize,
    body: impl Fn(&World) -> R + Send + Sync + 'static,
) -> Vec<R> {
    let Some(world) = world() else { return threads::job(ranks, body) };
    let world = world.lock().expect("no test of this rank has failed");
    let world = world.as_ref().expect("it is not finished");
    // Ranks of a job of another size take no part.
    if world.size() == ranks { vec![body(world)] } else { Vec::new() }
}

/// Leaves the job of this process, if it is a rank; returns whether it is.
pub fn finish() -> bool {
    let world = world().and_then(|world| world.lock().expect("no test has failed").take());
    world.map(|world| world.finish().expect("all ranks finish")).is_some()
}
