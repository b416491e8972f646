//! The device's conformance suite over every adapter, and each with protocols that show something of it: those that depend on no adapter, over one.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Barrier};
use std::thread;

use mpj_doubles::channels::{self, Cards, ChannelAdapter};
use mpj_doubles::fault::{FaultAdapter, FaultPlan};
use mpj_doubles::hosts;
use mpj_tests::conformance::device::job::Setup;
use mpj_tests::device_conformance;
use mpjdev::{
    BackendChoice, GetMode, Options, Processor, Protocol, Row, Settings, Table, WaitMode, When,
};
use transport_lapi::adapters::hosts::HostsAdapter;
use transport_lapi::adapters::shm::{self, ShmAdapter};
use transport_lapi::adapters::threads::{self, ThreadsAdapter};

/// Long enough for `auto` to fetch it, by the row for a kind of processor.
const LONG: usize = 4 << 20;

/// Ranks over a segment of this process.
fn threads(ranks: usize) -> Vec<ThreadsAdapter> {
    threads::job(ranks).expect("a job of threads")
}

/// Ranks over a segment that each maps for itself, as processes do; Get as the kernel allows.
fn shm(ranks: usize) -> Vec<ShmAdapter> {
    attach(ranks, GetMode::Auto)
}

/// Ranks in the second of two contexts, over a segment of this process.
fn threads_further(ranks: usize) -> Vec<ThreadsAdapter> {
    second(threads::job_with_contexts(ranks, 2).expect("a job of threads"))
}

/// The same over a segment that each maps for itself.
fn shm_further(ranks: usize) -> Vec<ShmAdapter> {
    second(attach_contexts(ranks, 2, GetMode::Auto))
}

/// The second context of each rank.
fn second<A>(ranks: Vec<Vec<A>>) -> Vec<A> {
    ranks.into_iter().map(|mut contexts| contexts.remove(1)).collect()
}

/// Ranks over a segment that each maps for itself, with Get built from active messages.
fn shm_reference_get(ranks: usize) -> Vec<ShmAdapter> {
    attach(ranks, GetMode::Am)
}

/// Ranks over channels: no shared memory, bodies are read later, and there is seldom room.
fn channels(ranks: usize) -> Vec<ChannelAdapter> {
    channels::job(ranks, Cards::Frames).expect("a job of threads")
}

/// The same, whose network cards read memory without its rank; operations are often refused, and end out of order.
fn one_sided(ranks: usize) -> Vec<FaultAdapter<ChannelAdapter>> {
    let ranks = channels::job(ranks, Cards::OneSided).expect("a job of threads");
    FaultAdapter::job(ranks, 9, FaultPlan::ONE_SIDED)
}

/// Two ranks each share memory, with channels between the pairs.
fn hosts_of_two(ranks: usize) -> Vec<HostsAdapter> {
    hosts_over(Cards::Frames, ranks)
}

fn hosts_over(cards: Cards, ranks: usize) -> Vec<HostsAdapter> {
    let network = |context, bells| channels::in_context(context, bells, cards);
    let ranks = hosts::job(&hosts::plan(ranks, |rank| rank / 2), 1, network);
    ranks.expect("a job of threads").into_iter().flatten().collect()
}

fn attach(ranks: usize, get: GetMode) -> Vec<ShmAdapter> {
    attach_contexts(ranks, 1, get).into_iter().flatten().collect()
}

/// Attaches all ranks at once, since each waits for the others.
fn attach_contexts(ranks: usize, contexts: usize, get: GetMode) -> Vec<Vec<ShmAdapter>> {
    let segment = shm::create_segment("test", ranks, contexts).expect("a segment");
    let attach = |(task, fd): (usize, OwnedFd)| {
        thread::spawn(move || ShmAdapter::attach_contexts(fd, task as u32, ranks, contexts, get))
    };
    let descriptor = |task| (task, segment.try_clone().expect("a descriptor"));
    let attaching: Vec<_> = (0..ranks).map(descriptor).map(attach).collect();
    let attached = attaching.into_iter().map(|thread| thread.join().expect("no panic"));
    attached.map(|adapter| adapter.expect("the ranks attach")).collect()
}

/// Both protocols, by size, so that they alternate on every connection.
fn mixed() -> Options {
    use Protocol::{Eager, Rendezvous};
    let steps =
        [(0, Eager), (201, Rendezvous), (1_001, Eager), (25_001, Rendezvous), (500_001, Eager)];
    Options { table: Table::by_length(&steps), ..Options::default() }
}

/// Waiting threads soon give up the processor, as they do if there are more ranks than processors. Channels need this,
/// since their couriers work then.
fn crowded(options: Options) -> Options {
    Options { processors: Some(1), ..options }
}

/// Waiting threads sleep at once, so that every missing wake-up is a hang.
fn asleep(options: Options) -> Options {
    Options { wait: WaitMode::Block, ..options }
}

/// By the built-in table, without the rows for kinds of processors, so that it is the same on every machine.
fn auto() -> Options {
    Options { table: Table::of(&Settings::default(), Processor::Other), ..Options::default() }
}

#[test]
fn long_messages_are_fetched_where_each_rank_has_a_processor() {
    let table = Table::of(&Settings::default(), Processor::IntelWithDemote);
    for (processors, expected) in [(1, (3, 0)), (2, (0, 3))] {
        let options = Options { table: table.clone(), processors: Some(processors), ..auto() };
        let stats = Setup::new(shm, options).run(2, |rank| {
            for turn in 0..6 {
                if rank.me() == turn % 2 {
                    rank.send(&[1; LONG], 1 - rank.me(), 0).expect("sent");
                } else {
                    let receive = rank.irecv(LONG, 1 - rank.me(), 0).expect("posted");
                    rank.wait(receive).0.expect("received");
                }
            }
            rank.stats().expect("the device works")
        });
        for stats in stats {
            let counts = (stats.eager.messages, stats.rendezvous.messages);
            assert_eq!(counts, expected, "{processors} processors");
        }
    }
}

/// Rank 0 reaches rank 1 through memory, and ranks 2 and 3 over a network that reads.
#[test]
fn long_messages_are_fetched_where_a_network_reads_them() {
    let network = |ranks| hosts_over(Cards::OneSided, ranks);
    let options = crowded(auto());
    let by_network = |row: &&Row| row.when == When::ByNetwork;
    let from = options.table.rows().iter().find(by_network).expect("there is a row").from;
    let stats = Setup::new(network, options).run(4, move |rank| {
        for (to, len) in [(1, from), (2, from - 1), (3, from)] {
            if rank.me() == 0 {
                rank.send(&vec![1; len], to, 0).expect("sent");
            } else if rank.me() == to {
                rank.wait(rank.irecv(len, 0, 0).expect("posted")).0.expect("received");
            }
        }
        rank.stats().expect("the device works")
    });
    assert_eq!((stats[0].eager.messages, stats[0].rendezvous.messages), (2, 1));
}

/// As programs do that rely on the memory for unexpected messages.
#[test]
fn ranks_that_first_send_to_each_other_never_wait() {
    const BOTH: usize = 256 << 10;
    let stats = Setup::new(shm, auto()).run(2, |rank| {
        let other = 1 - rank.me();
        for _ in 0..200 {
            rank.send(&[1; BOTH], other, 0).expect("sent");
            rank.wait(rank.irecv(BOTH, other, 0).expect("posted")).0.expect("received");
        }
        rank.stats().expect("the device works")
    });
    for stats in stats {
        assert_eq!((stats.eager.messages, stats.credit_fallbacks), (200, 0));
    }
}

/// A single look finds what lies in memory, whichever ranks have sent it, also where marks tell which rings to poll.
#[test]
fn one_look_sees_what_all_ranks_have_sent() {
    for (ranks, looked_for) in [(4, 1), (4, 2), (4, 3), (20, 19)] {
        let sent = Arc::new(Barrier::new(ranks));
        Setup::new(shm, mixed()).run(ranks, move |rank| {
            let me = rank.me();
            let isend = || rank.isend(vec![0; 8], 0, 0).expect("it begins");
            let mut sends: Vec<_> = (me > 0).then(isend).into_iter().collect();
            sent.wait();
            if me == 0 {
                let found = rank.iprobe(looked_for, 0).expect("the device works");
                assert_eq!(found.map(|status| status.bytes), Some(8), "from {looked_for}");
                for from in 1..ranks {
                    rank.recv(&mut [0; 8], from, 0).expect("received");
                }
            }
            rank.complete(&mut sends);
        });
    }
}

device_conformance!(threads_rendezvous, threads, Options::with_backend(BackendChoice::Rendezvous));
device_conformance!(threads_mixed_asleep, threads, asleep(mixed()));
device_conformance!(shm_eager, shm, Options::with_backend(BackendChoice::Eager));
device_conformance!(shm_rendezvous, shm, Options::with_backend(BackendChoice::Rendezvous));
device_conformance!(shm_auto, shm, auto());
device_conformance!(shm_mixed_asleep, shm, asleep(mixed()));
device_conformance!(threads_further, threads_further, crowded(mixed()));
device_conformance!(shm_further, shm_further, asleep(mixed()));
device_conformance!(
    shm_reference_get,
    shm_reference_get,
    crowded(Options::with_backend(BackendChoice::Rendezvous))
);
device_conformance!(
    channels_rendezvous,
    channels,
    crowded(Options::with_backend(BackendChoice::Rendezvous))
);
device_conformance!(channels_auto, channels, crowded(auto()));
device_conformance!(channels_mixed_asleep, channels, asleep(mixed()));
device_conformance!(hosts_mixed, hosts_of_two, mixed());
device_conformance!(
    one_sided_rendezvous,
    one_sided,
    crowded(Options::with_backend(BackendChoice::Rendezvous))
);
device_conformance!(one_sided_mixed_asleep, one_sided, asleep(mixed()));
