//! Windows: random programs whose results an oracle knows, over every kind of connection.
//!
//! `MPJ_TEST_CASES=2000 MPJ_TEST_SEED=2 cargo test --release -p mpj-tests --test windows` plays more programs, and others.

use std::ops::Range;

use mpicore::Communicator;
use mpj_tests::conformance::collective::job;
use mpj_tests::conformance::network::Network;
use mpj_tests::conformance::window::{Kind, play, play_long, play_planted};
use mpj_tests::faults::asked;
use mpjdev::BackendChoice;

/// Programs of a kind of connection and a number of ranks, unless the environment says otherwise.
const PROGRAMS: u64 = 4;

/// The most programs of a job, which ends before its watchdog comes also on a busy machine.
const MOST_OF_JOB: usize = 20;

/// Divides the numbers of programs among jobs.
fn jobs(programs: u64) -> impl Iterator<Item = Range<u64>> {
    let firsts = (0..programs).step_by(MOST_OF_JOB);
    firsts.map(move |first| first..programs.min(first + MOST_OF_JOB as u64))
}

/// Plays the programs of a job, with windows of these kinds in turn, by `play`.
fn play_each(
    world: &Communicator,
    (programs, seed): (Range<u64>, u64),
    kinds: &[Kind],
    play: fn(&Communicator, Kind, u64) -> Result<(), String>,
) -> Result<(), String> {
    programs.zip(kinds.iter().cycle()).try_for_each(|(program, kind)| {
        let seed = seed << 32 | program;
        play(world, *kind, seed).map_err(|what| format!("{kind:?}, seed {seed}: {what}"))
    })
}

/// Plays programs over a kind of connection.
fn play_over(network: Network) {
    let (mut programs, seed) = (asked("MPJ_TEST_CASES", PROGRAMS), asked("MPJ_TEST_SEED", 1));
    let mut sizes = vec![1, 2, 3, 5, 8];
    if network == Network::Hosts {
        // Messages between hosts take ten times as long.
        (programs, sizes) = (programs.div_ceil(2), vec![2, 3, 5]);
    }
    let mut kinds = vec![Kind::Allocated, Kind::Created, Kind::Dynamic];
    if network != Network::Hosts {
        kinds.push(Kind::Shared);
    }
    for ranks in sizes {
        for backend in [BackendChoice::Eager, BackendChoice::Rendezvous] {
            let of_long = kinds.clone();
            job::run_over(network, ranks, backend, move |world| {
                of_long.iter().try_for_each(|kind| play_long(world, *kind))
            });
            for programs in jobs(programs) {
                let kinds = kinds.clone();
                job::run_over(network, ranks, backend, move |world| {
                    play_each(world, (programs.clone(), seed), &kinds, play)
                });
            }
        }
    }
}

/// In jobs that look for mistakes: none in random programs, then one that is planted.
#[test]
fn conflicts_are_found_and_nothing_else() {
    let (programs, seed) = (asked("MPJ_TEST_CASES", 2 * PROGRAMS), asked("MPJ_TEST_SEED", 1));
    for ranks in [2, 3, 5] {
        for network in [Network::Segment, Network::Channels] {
            for programs in jobs(programs) {
                job::run_checked_over(network, ranks, BackendChoice::Eager, move |world| {
                    let kinds = [Kind::Allocated, Kind::Created, Kind::Dynamic];
                    play_each(world, (programs.clone(), seed), &kinds, play_planted)
                });
            }
        }
    }
}

#[test]
fn over_a_segment() {
    play_over(Network::Segment);
}

#[test]
fn over_memory_of_other_processes() {
    play_over(Network::Mapped);
}

#[test]
fn over_channels() {
    play_over(Network::Channels);
}

#[test]
fn over_one_sided_channels() {
    play_over(Network::OneSided);
}

#[test]
fn over_hosts() {
    play_over(Network::Hosts);
}
