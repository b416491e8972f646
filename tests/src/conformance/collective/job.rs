//! Runs the ranks of a job as threads, each with a communicator of all, under a watchdog.

use std::sync::Arc;

use mpicore::{Communicator, Process};
use mpjdev::{BackendChoice, Options, wireup};

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

/// [`run`] with ranks that are connected by `network`.
///
/// # Panics
/// As [`run`].
pub fn run_over<R: Send + 'static>(
    network: Network,
    ranks: usize,
    backend: BackendChoice,
    body: impl Fn(&Communicator) -> Answer<R> + Send + Sync + 'static,
) -> Vec<R> {
    start(network, ranks, backend, move |world| {
        let answer = body(world)?;
        world.device().finish().map_err(|error| format!("the end: {error}"))?;
        Ok(answer)
    })
}

/// Runs `body` on every rank, and leaves the devices as they are at its end.
///
/// # Panics
/// As [`run`].
pub fn run_open<R: Send + 'static>(
    ranks: usize,
    backend: BackendChoice,
    body: impl Fn(&Communicator) -> Answer<R> + Send + Sync + 'static,
) -> Vec<R> {
    start(Network::Segment, ranks, backend, body)
}

/// The same over any network.
fn start<R: Send + 'static>(
    network: Network,
    ranks: usize,
    backend: BackendChoice,
    body: impl Fn(&Communicator) -> Answer<R> + Send + Sync + 'static,
) -> Vec<R> {
    let options = Options::with_backend(backend);
    let adapters = network.adapters(ranks, options.contexts);
    let devices = wireup::over(adapters, &options).expect("a job of threads");
    let process = |mut devices: Vec<_>| Arc::new(Process::new(devices.remove(0), ()));
    let ranks: Vec<Arc<Process>> = devices.into_iter().map(process).collect();
    let watched: Vec<_> = ranks.iter().map(|rank| rank.clone() as Arc<dyn Watched>).collect();
    ranks::run(&watched, move |number| {
        let world = Communicator::world(ranks[number].clone());
        body(&world.map_err(|error| error.to_string())?)
    })
}
