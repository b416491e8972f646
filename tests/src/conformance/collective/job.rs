//! Runs the ranks of a job as threads, each with a communicator of all, under a watchdog. In a process that `mpjrun` has
//! started, they are the ranks of its job instead: see [`crate::conformance::over_hosts`].

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use mpicore::{Communicator, Process};
use mpjdev::wireup::Control;
use mpjdev::{BackendChoice, Options, wireup};
use transport_lapi::config;

use crate::conformance::network::Network;
use crate::conformance::ranks::{self, Watched};

/// A rank's answer, or what is wrong.
pub type Answer<R> = Result<R, String>;

/// Runs `body` on every rank, ends the devices together, and returns the answers.
///
/// # Panics
/// When a rank panics or fails, or the job does not end in time.
pub fn run<R: Send + 'static>(
    ranks: usize,
    backend: BackendChoice,
    body: impl Fn(&Communicator) -> Answer<R> + Send + Sync + 'static,
) -> Vec<R> {
    run_over(Network::Segment, ranks, backend, body)
}

/// [`run_over`] in a job that looks for mistakes between its ranks. In a rank of `mpjrun`, whose job may not, it does nothing.
///
/// # Panics
/// As [`run`].
pub fn run_checked_over<R: Send + 'static>(
    network: Network,
    ranks: usize,
    backend: BackendChoice,
    body: impl Fn(&Communicator) -> Answer<R> + Send + Sync + 'static,
) -> Vec<R> {
    if config::is_rank() {
        return Vec::new();
    }
    let options = Options { checks: Some(true), ..Options::with_backend(backend) };
    start(network, ranks, &options, to_the_end(body))
}

/// [`run`] with ranks that are connected by `network`. In a rank of `mpjrun` it runs `body` once, if the job has as many
/// ranks and this backend, whatever the network.
///
/// # Panics
/// As [`run`].
pub fn run_over<R: Send + 'static>(
    network: Network,
    ranks: usize,
    backend: BackendChoice,
    body: impl Fn(&Communicator) -> Answer<R> + Send + Sync + 'static,
) -> Vec<R> {
    if let Some((world, _)) = own_world() {
        let is_meant = world.size() as usize == ranks
            && *world.device().table() == Options::with_backend(backend).table;
        return is_meant.then(|| play_in(world, body)).into_iter().collect();
    }
    start(network, ranks, &Options::with_backend(backend), to_the_end(body))
}

/// Calls `body`, then leaves the job together with all ranks.
fn to_the_end<R>(
    body: impl Fn(&Communicator) -> Answer<R> + Send + Sync + 'static,
) -> impl Fn(&Communicator) -> Answer<R> + Send + Sync + 'static {
    move |world| {
        let answer = body(world)?;
        world.device().finish().map_err(|error| format!("the end: {error}"))?;
        Ok(answer)
    }
}

/// Runs `body` on every rank, and leaves the devices as they are at its end.
///
/// # Panics
/// As [`run`]; in a rank of `mpjrun`, whose device is that of all tests.
pub fn run_open<R: Send + 'static>(
    ranks: usize,
    backend: BackendChoice,
    body: impl Fn(&Communicator) -> Answer<R> + Send + Sync + 'static,
) -> Vec<R> {
    assert!(!config::is_rank(), "such a test has to be left out over hosts");
    start(Network::Segment, ranks, &Options::with_backend(backend), body)
}

/// In how many jobs of tests this rank has taken part.
static PLAYED: AtomicUsize = AtomicUsize::new(0);

/// The communicator of all ranks and the line to the launcher, if this process is a rank of `mpjrun`.
fn own_world() -> Option<&'static (Communicator, Option<Control>)> {
    static WORLD: OnceLock<(Communicator, Option<Control>)> = OnceLock::new();
    let join = || {
        let mut job = wireup::join(false).expect("the launcher has started this rank");
        let process = Arc::new(Process::new(job.devices.remove(0), ()));
        (Communicator::world(process).expect("the device works"), job.control)
    };
    config::is_rank().then(|| WORLD.get_or_init(join))
}

fn play_in<R>(world: &Communicator, body: impl Fn(&Communicator) -> Answer<R>) -> R {
    let answer = body(world).unwrap_or_else(|what| panic!("rank {}: {what}", world.rank()));
    PLAYED.fetch_add(1, Ordering::Relaxed);
    // Messages of the next test do not come while another rank is in this one.
    world.run_barrier().expect("all ranks have come to the end of the test");
    answer
}

/// Leaves the job of this process, which is a rank of `mpjrun`. Returns in how many jobs of tests it has taken part.
///
/// # Panics
/// When it is none, or the others do not leave.
pub fn leave() -> usize {
    let (world, control) = own_world().expect("this is a rank");
    world.device().finish().expect("all ranks finish");
    control.iter().for_each(|control| control.finished());
    PLAYED.load(Ordering::Relaxed)
}

/// The same over any network.
fn start<R: Send + 'static>(
    network: Network,
    ranks: usize,
    options: &Options,
    body: impl Fn(&Communicator) -> Answer<R> + Send + Sync + 'static,
) -> Vec<R> {
    let adapters = network.adapters(ranks, options.contexts);
    let devices = wireup::over(adapters, options).expect("a job of threads");
    let process = |mut devices: Vec<_>| Arc::new(Process::new(devices.remove(0), ()));
    let ranks: Vec<Arc<Process>> = devices.into_iter().map(process).collect();
    let watched: Vec<_> = ranks.iter().map(|rank| rank.clone() as Arc<dyn Watched>).collect();
    ranks::run(&watched, move |number| {
        let world = Communicator::world(ranks[number].clone());
        body(&world.map_err(|error| error.to_string())?)
    })
}
