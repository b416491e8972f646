//! The jobs of `mpj/tests/job`, over channels. In jobs of an odd number of ranks the network accesses memory; in jobs of
//! four or eight, two ranks each share a host.

#[path = "../../../mpj/tests/job/mod.rs"]
mod threads;

use mpj::World;
use mpj::local::{self, LocalError};
use mpj::tuning::Options;
use mpj_tests::conformance::network::Network;

/// Runs a job that has to end well.
#[track_caller]
pub fn job(ranks: usize, body: impl Fn(&World) + Send + Sync + 'static) {
    job_with(&Options::default(), ranks, body);
}

/// Like [`job`], with options.
#[track_caller]
pub fn job_with(options: &Options, ranks: usize, body: impl Fn(&World) + Send + Sync + 'static) {
    let outcome = try_job(options, ranks, move |world| body(&world));
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

/// Runs a job whose ranks own their worlds, and returns its outcome.
#[track_caller]
pub fn try_job<R: Send + 'static>(
    options: &Options,
    ranks: usize,
    body: impl Fn(World) -> R + Send + Sync + 'static,
) -> Result<Vec<R>, LocalError> {
    threads::try_job_by(over_channels, options, ranks, body)
}

fn over_channels<R: Send>(
    options: &Options,
    ranks: usize,
    body: &(dyn Fn(World) -> R + Sync),
) -> Result<Vec<R>, LocalError> {
    let network = match ranks % 4 {
        0 => Network::Hosts,
        2 => Network::Channels,
        _ => Network::OneSided,
    };
    local::run_over(options, network.adapters(ranks, options.contexts), body)
}
