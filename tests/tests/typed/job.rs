//! The jobs of `mpj/tests/job`, whose ranks are threads. In a process that `mpjrun` has started, they are the ranks of its
//! job instead: see `mpj_tests::conformance::over_hosts`.

#[path = "../../../mpj/tests/job/mod.rs"]
mod threads;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use mpj::World;
use mpj::local::LocalError;
use mpj::tuning::Options;
use transport_lapi::config;

/// In how many jobs of tests this rank has taken part.
static PLAYED: AtomicUsize = AtomicUsize::new(0);

/// The world of this process, if it is a rank, until it is finished.
fn world() -> Option<&'static Mutex<Option<World>>> {
    static WORLD: OnceLock<Mutex<Option<World>>> = OnceLock::new();
    let join = || Mutex::new(Some(mpj::init().expect("the launcher has started this rank")));
    config::is_rank().then(|| WORLD.get_or_init(join))
}

/// Runs a job that has to end well.
#[track_caller]
pub fn job(ranks: usize, body: impl Fn(&World) + Send + Sync + 'static) {
    job_with(&Options::default(), ranks, body);
}

/// Like [`job`], with options.
#[track_caller]
pub fn job_with(options: &Options, ranks: usize, body: impl Fn(&World) + Send + Sync + 'static) {
    let Some(world) = world() else {
        threads::job_with(options, ranks, body);
        return;
    };
    let world = world.lock().expect("no test of this rank has failed");
    let world = world.as_ref().expect("it is not finished");
    let is_alike = *world.table() == options.table
        && world.contexts() == options.contexts
        && options.checks.is_none();
    // Ranks of another job take no part.
    if world.size() == ranks && is_alike {
        body(world);
        PLAYED.fetch_add(1, Ordering::Relaxed);
        // Messages of the next test do not come while another rank is in this one.
        world.barrier().expect("all ranks have come to the end of the test");
    }
}

/// Runs a job whose ranks own their worlds, and returns its outcome.
///
/// # Panics
/// In a rank, whose world is that of all tests.
#[track_caller]
pub fn try_job<R: Send + 'static>(
    options: &Options,
    ranks: usize,
    body: impl Fn(World) -> R + Send + Sync + 'static,
) -> Result<Vec<R>, LocalError> {
    assert!(!config::is_rank(), "such a test has to be left out over hosts");
    threads::try_job(options, ranks, body)
}

/// Leaves the job of this process, which is a rank. Returns in how many jobs of tests it has taken part.
pub fn leave() -> usize {
    let world = world().and_then(|world| world.lock().expect("no test has failed").take());
    world.expect("this is a rank").finish().expect("all ranks finish");
    PLAYED.load(Ordering::Relaxed)
}
