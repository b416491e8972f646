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

#[path = "windows/by_network.rs"]
mod by_network;

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

/// Plays programs over a kind of connection. Returns how many puts and gets the network was to carry out.
fn play_over(network: Network) -> u64 {
    let (mut programs, seed) = (asked("MPJ_TEST_CASES", PROGRAMS), asked("MPJ_TEST_SEED", 1));
    let mut sizes = vec![1, 2, 3, 5, 8];
    let has_hosts = matches!(
        network,
        Network::Hosts | Network::OneSidedHosts | Network::DenyingHosts | Network::Fabric
    );
    if has_hosts {
        // Messages between hosts take ten times as long.
        (programs, sizes) = (programs.div_ceil(2), vec![2, 3, 5]);
    }
    let mut kinds = vec![Kind::Allocated, Kind::Created, Kind::Dynamic];
    if !has_hosts {
        kinds.push(Kind::Shared);
    }
    // Long data come in pieces whatever the number of ranks, and with many ranks that takes long.
    let most_with_long = if programs > PROGRAMS { 8 } else { 3 };
    let mut accesses = 0;
    for ranks in sizes {
        for backend in [BackendChoice::Eager, BackendChoice::Rendezvous] {
            let of_long = if ranks <= most_with_long { kinds.clone() } else { Vec::new() };
            let of_ranks = job::run_over(network, ranks, backend, move |world| {
                of_long.iter().try_for_each(|kind| play_long(world, *kind))?;
                by_network::accesses(world)
            });
            accesses += of_ranks.into_iter().sum::<u64>();
            for programs in jobs(programs) {
                let kinds = kinds.clone();
                let of_ranks = job::run_over(network, ranks, backend, move |world| {
                    play_each(world, (programs.clone(), seed), &kinds, play)?;
                    by_network::accesses(world)
                });
                accesses += of_ranks.into_iter().sum::<u64>();
            }
        }
    }
    accesses
}

/// In jobs that look for mistakes: none in random programs, then one that is planted.
#[test]
fn conflicts_are_found_and_nothing_else() {
    let (programs, seed) = (asked("MPJ_TEST_CASES", 2 * PROGRAMS), asked("MPJ_TEST_SEED", 1));
    for ranks in [2, 3, 5] {
        for network in [Network::Segment, Network::Channels, Network::OneSidedHosts] {
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
    assert_eq!(play_over(Network::Segment), 0);
}

#[test]
fn over_memory_of_other_processes() {
    assert_eq!(play_over(Network::Mapped), 0);
}

#[test]
fn over_channels() {
    assert_eq!(play_over(Network::Channels), 0);
}

#[test]
fn over_one_sided_channels() {
    let accesses = play_over(Network::OneSided);
    assert!(accesses > 100, "only {accesses} puts and gets were the network's");
}

/// Hosts whose network reads and writes memory of ranks on others.
#[test]
fn over_one_sided_hosts() {
    let accesses = play_over(Network::OneSidedHosts);
    assert!(accesses > 100, "only {accesses} puts and gets were the network's");
}

#[test]
fn over_hosts_whose_network_refuses_puts() {
    let accesses = play_over(Network::DenyingHosts);
    assert!(accesses > 100, "only {accesses} puts and gets were the network's");
}

/// Hosts with libfabric between them, which accesses memory.
#[test]
#[expect(clippy::print_stderr, reason = "says what is not shown")]
fn over_libfabric() {
    if let Err(reason) = mpj_doubles::fabric::fabric() {
        return eprintln!("not shown: windows over libfabric: {reason}");
    }
    let accesses = play_over(Network::Fabric);
    assert!(accesses > 100, "only {accesses} puts and gets were the network's");
}

#[test]
fn over_hosts() {
    assert_eq!(play_over(Network::Hosts), 0);
}
