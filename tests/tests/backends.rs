//! The device's conformance suite over every adapter, with every choice of protocols.

use std::os::fd::OwnedFd;
use std::thread;

use mpj_tests::conformance::device::job::Platform;
use mpj_tests::device_conformance;
use mpjdev::{BackendChoice, GetMode, Options, Protocol, Table, WaitMode};
use transport_lapi::adapters::channels::{self, ChannelAdapter};
use transport_lapi::adapters::shm::{self, ShmAdapter};
use transport_lapi::adapters::threads::{self, ThreadsAdapter};

/// Ranks over a segment on the heap.
struct Threads;

impl Platform for Threads {
    type Adapter = ThreadsAdapter;

    fn adapters(ranks: usize) -> Vec<ThreadsAdapter> {
        threads::job(ranks).expect("a job of threads")
    }
}

/// Ranks over a segment that each maps for itself, as processes do; Get as the kernel allows.
struct Shm;

impl Platform for Shm {
    type Adapter = ShmAdapter;

    fn adapters(ranks: usize) -> Vec<ShmAdapter> {
        attach(ranks, GetMode::Auto)
    }
}

/// Ranks in the second of two contexts, over a segment on the heap.
struct ThreadsFurther;

impl Platform for ThreadsFurther {
    type Adapter = ThreadsAdapter;

    fn adapters(ranks: usize) -> Vec<ThreadsAdapter> {
        second(threads::job_with_contexts(ranks, 2).expect("a job of threads"))
    }
}

/// The same over a segment that each maps for itself.
struct ShmFurther;

impl Platform for ShmFurther {
    type Adapter = ShmAdapter;

    fn adapters(ranks: usize) -> Vec<ShmAdapter> {
        second(attach_contexts(ranks, 2, GetMode::Auto))
    }
}

/// The second context of each rank.
fn second<A>(ranks: Vec<Vec<A>>) -> Vec<A> {
    ranks.into_iter().map(|mut contexts| contexts.remove(1)).collect()
}

/// Ranks over a segment that each maps for itself, with Get built from active messages.
struct ShmReferenceGet;

impl Platform for ShmReferenceGet {
    type Adapter = ShmAdapter;

    fn adapters(ranks: usize) -> Vec<ShmAdapter> {
        attach(ranks, GetMode::Am)
    }
}

/// Ranks over channels: no memory in common, bodies are read later, and there is seldom room.
struct Channels;

impl Platform for Channels {
    type Adapter = ChannelAdapter;

    fn adapters(ranks: usize) -> Vec<ChannelAdapter> {
        channels::job(ranks).expect("a job of threads")
    }
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
    let bounds = vec![200, 1_000, 25_000, 500_000];
    let protocols = vec![Eager, Rendezvous, Eager, Rendezvous, Eager];
    Options { table: Table::new(bounds, protocols).expect("a table"), ..Options::default() }
}

/// Waiting threads sleep at once: every wake-up that is missing is a hang.
fn asleep(options: Options) -> Options {
    Options { wait: WaitMode::Block, ..options }
}

device_conformance!(threads_eager, Threads, Options::with_backend(BackendChoice::Eager));
device_conformance!(threads_rendezvous, Threads, Options::with_backend(BackendChoice::Rendezvous));
device_conformance!(threads_auto, Threads, Options::with_backend(BackendChoice::Auto));
device_conformance!(threads_mixed_asleep, Threads, asleep(mixed()));
device_conformance!(shm_eager, Shm, Options::with_backend(BackendChoice::Eager));
device_conformance!(shm_rendezvous, Shm, Options::with_backend(BackendChoice::Rendezvous));
device_conformance!(shm_auto, Shm, Options::with_backend(BackendChoice::Auto));
device_conformance!(shm_mixed_asleep, Shm, asleep(mixed()));
device_conformance!(threads_further, ThreadsFurther, mixed());
device_conformance!(shm_further, ShmFurther, asleep(mixed()));
device_conformance!(
    shm_reference_get,
    ShmReferenceGet,
    Options::with_backend(BackendChoice::Rendezvous)
);
device_conformance!(shm_reference_get_mixed, ShmReferenceGet, mixed());
device_conformance!(channels_eager, Channels, Options::with_backend(BackendChoice::Eager));
device_conformance!(
    channels_rendezvous,
    Channels,
    Options::with_backend(BackendChoice::Rendezvous)
);
device_conformance!(channels_auto, Channels, Options::with_backend(BackendChoice::Auto));
device_conformance!(channels_mixed_asleep, Channels, asleep(mixed()));
