//! The adapters' conformance suite over every adapter, and over adapters that misbehave within the contract.

use std::thread;

use mpj_doubles::adapter_conformance;
use mpj_doubles::channels::{self, Cards, ChannelAdapter};
use mpj_doubles::contract::MANY;
use mpj_doubles::fault::{FaultAdapter, FaultPlan};
use mpj_doubles::hosts;
use transport_lapi::Source;
use transport_lapi::adapter::{Adapter, Frame, Post, TaskId, Ticket};
use transport_lapi::adapters::hosts::HostsAdapter;
use transport_lapi::adapters::ofi::OfiAdapter;
use transport_lapi::adapters::shm::{ShmAdapter, create_segment};
use transport_lapi::adapters::threads::{self, ThreadsAdapter};
use transport_lapi::config::GetMode;

/// Ranks over a segment of this process.
fn threads(num_tasks: usize) -> Vec<ThreadsAdapter> {
    threads::job(num_tasks).expect("memory suffices")
}

/// Ranks over a segment that each rank maps for itself, as processes do.
fn shm(num_tasks: usize) -> Vec<ShmAdapter> {
    attached(num_tasks, 1).into_iter().flatten().collect()
}

/// The same with so many contexts for each rank.
fn attached(num_tasks: usize, contexts: usize) -> Vec<Vec<ShmAdapter>> {
    let segment = create_segment("test", num_tasks, contexts).expect("memory suffices");
    let attach = |task| {
        let segment = segment.try_clone().expect("descriptors suffice");
        thread::spawn(move || {
            ShmAdapter::attach_contexts(segment, task, num_tasks, contexts, GetMode::Auto)
        })
    };
    let attaching: Vec<_> = (0..num_tasks as TaskId).map(attach).collect();
    let attached = attaching.into_iter().map(|task| task.join().expect("attaching ends"));
    attached.collect::<Result<_, _>>().expect("all tasks attach")
}

/// The first ranks of so many that receivers look for the marks of senders.
fn threads_of_many(num_tasks: usize) -> Vec<ThreadsAdapter> {
    first_of(num_tasks, threads(num_tasks + MANY))
}

/// The same over a segment that each rank maps for itself.
fn shm_of_many(num_tasks: usize) -> Vec<ShmAdapter> {
    first_of(num_tasks, shm(num_tasks + MANY))
}

fn first_of<A>(num_tasks: usize, mut tasks: Vec<A>) -> Vec<A> {
    tasks.truncate(num_tasks);
    tasks
}

/// Ranks over channels, whose bodies are read later.
fn channels(num_tasks: usize) -> Vec<ChannelAdapter> {
    channels::job(num_tasks, Cards::Frames).expect("memory suffices")
}

/// Ranks over channels whose network cards access memory.
fn one_sided_channels(num_tasks: usize) -> Vec<ChannelAdapter> {
    channels::job(num_tasks, Cards::OneSided).expect("memory suffices")
}

/// Hosts of two ranks each, and one more if a rank is left, with channels between them.
fn hosts_of_two(num_tasks: usize) -> Vec<HostsAdapter> {
    over_channels(num_tasks, |task| task / 2)
}

/// Each rank on a host of its own.
fn hosts_of_one(num_tasks: usize) -> Vec<HostsAdapter> {
    over_channels(num_tasks, |task| task)
}

/// Two hosts, whose ranks take turns.
fn hosts_in_turn(num_tasks: usize) -> Vec<HostsAdapter> {
    over_channels(num_tasks, |task| task % 2)
}

/// Each rank on a host of its own, with channels whose network cards access memory.
fn one_sided_hosts(num_tasks: usize) -> Vec<HostsAdapter> {
    over_cards(Cards::OneSided, num_tasks, |task| task)
}

fn over_channels(num_tasks: usize, host_of: fn(TaskId) -> u32) -> Vec<HostsAdapter> {
    over_cards(Cards::Frames, num_tasks, host_of)
}

fn over_cards(cards: Cards, num_tasks: usize, host_of: fn(TaskId) -> u32) -> Vec<HostsAdapter> {
    let network = |context, bells| channels::in_context(context, bells, cards);
    let tasks = hosts::job(&hosts::plan(num_tasks, host_of), 1, network).expect("memory suffices");
    tasks.into_iter().flatten().collect()
}

/// Each rank on a host of its own, with libfabric over the loopback interface between them.
fn fabric(num_tasks: usize) -> Vec<HostsAdapter> {
    over_fabric(num_tasks, |task| task)
}

/// Hosts of two ranks each, likewise.
fn fabric_of_two(num_tasks: usize) -> Vec<HostsAdapter> {
    over_fabric(num_tasks, |task| task / 2)
}

fn over_fabric(num_tasks: usize, host_of: fn(TaskId) -> u32) -> Vec<HostsAdapter> {
    let plan = hosts::plan(num_tasks, host_of);
    let tasks = match mpj_doubles::fabric::fabric() {
        Ok(_) => hosts::job(&plan, 1, mpj_doubles::fabric::in_context),
        Err(_) => hosts::job(&plan, 1, |context, bells| {
            channels::in_context(context, bells, Cards::Frames)
        }),
    };
    tasks.expect("resources suffice").into_iter().flatten().collect()
}

#[test]
fn tasks_of_one_host_are_near_if_their_numbers_follow_one_another() {
    let near = |tasks: Vec<HostsAdapter>, task: usize| tasks[task].parts().near;
    assert_eq!(near(hosts_of_two(4), 2), 2..4);
    assert_eq!(near(hosts_of_one(3), 1), 1..2);
    assert_eq!(near(hosts_in_turn(4), 1), 0..0);
    assert_eq!(threads(3)[1].parts().near, 0..3);
}

#[test]
#[expect(clippy::print_stderr, reason = "says what is not shown")]
fn the_fabric_is_tested() {
    if let Err(reason) = mpj_doubles::fabric::fabric() {
        eprintln!("not shown: the adapter of libfabric: {reason}");
    }
}

/// Who does not know the secret of the job adds no frame to it, and hinders no one who does.
#[test]
fn packets_of_strangers_are_counted_and_dropped() {
    if mpj_doubles::fabric::fabric().is_err() {
        return;
    }
    mpj_doubles::watch(|| {
        let bells = threads(3).iter().map(|task| task.parts().bell).collect();
        let tasks = mpj_doubles::fabric::with_secrets(0, bells, |task| u8::from(task == 2));
        let mut tasks = tasks.expect("resources suffice");
        let (mut seen, head) = (Vec::new(), [5; 16]);
        for origin in [2, 1] {
            let body = Source::from(vec![origin as u8; 100]);
            let post = tasks[origin].try_send(0, &head, body.piece(0, 100), Ticket(0));
            assert_ne!(post.expect("it has an address"), Post::Full);
        }
        let dropped = |task: &OfiAdapter| task.stats().expect("it counts").dropped;
        while seen.is_empty() || dropped(&tasks[0]) == 0 {
            for task in &mut tasks {
                let mut note = |frame: Frame<'_>| seen.push((frame.origin, frame.body.to_vec()));
                task.poll(None, 10, &mut note).expect("all is sound");
            }
        }
        assert_eq!((seen, dropped(&tasks[0])), (vec![(1, vec![1; 100])], 1));
    });
}

/// Ranks in the second of two contexts, over a segment of this process.
fn threads_in_a_further_context(num_tasks: usize) -> Vec<ThreadsAdapter> {
    second(threads::job_with_contexts(num_tasks, 2).expect("memory suffices"))
}

/// The same over a segment that each rank maps for itself.
fn shm_in_a_further_context(num_tasks: usize) -> Vec<ShmAdapter> {
    second(attached(num_tasks, 2))
}

/// The second context of each task.
fn second<A>(tasks: Vec<Vec<A>>) -> Vec<A> {
    tasks.into_iter().map(|mut contexts| contexts.remove(1)).collect()
}

fn faulty<A: Adapter>(tasks: Vec<A>, plan: FaultPlan) -> Vec<FaultAdapter<A>> {
    FaultAdapter::job(tasks, 77, plan)
}

/// Frames are refused at random. The checks of A4 and A5 need offers that are taken at once.
fn often_full(num_tasks: usize) -> Vec<FaultAdapter<ThreadsAdapter>> {
    faulty(threads(num_tasks), FaultPlan { full: 400, refused: 400, ..FaultPlan::NONE })
}

/// Frames and ends are held back at random, in any number; so some frames are refused too.
fn often_delayed(num_tasks: usize) -> Vec<FaultAdapter<ShmAdapter>> {
    faulty(shm(num_tasks), FaultPlan { delay: 400, late: 400, full: 20, ..FaultPlan::NONE })
}

/// Frames and one-sided operations are refused, and ends come late and out of order.
fn channels_that_are_fuller_still(num_tasks: usize) -> Vec<FaultAdapter<ChannelAdapter>> {
    faulty(one_sided_channels(num_tasks), FaultPlan { full: 300, ..FaultPlan::ONE_SIDED })
}

fn faultless(num_tasks: usize) -> Vec<FaultAdapter<ThreadsAdapter>> {
    faulty(threads(num_tasks), FaultPlan::NONE)
}

adapter_conformance!(of_threads, super::threads);
adapter_conformance!(of_shm, super::shm);
adapter_conformance!(of_threads_in_a_further_context, super::threads_in_a_further_context);
adapter_conformance!(of_shm_in_a_further_context, super::shm_in_a_further_context);
mod of_many {
    mpj_doubles::adapter_conformance! { @tests super::threads_of_many =>
        a_full_ring_took_nothing
        taken_frames_arrive_when_their_sender_is_gone
        room_wakes_a_sleeping_sender
        sleepers_that_take_turns_lose_no_wake_up
    }
}
mod of_many_by_shm {
    mpj_doubles::adapter_conformance! { @tests super::shm_of_many =>
        a_full_ring_took_nothing
        taken_frames_arrive_when_their_sender_is_gone
        room_wakes_a_sleeping_sender
        sleepers_that_take_turns_lose_no_wake_up
    }
}
adapter_conformance!(of_channels, super::channels);
adapter_conformance!(of_one_sided_channels, super::one_sided_channels);
adapter_conformance!(of_hosts_of_two, super::hosts_of_two);
adapter_conformance!(of_hosts_of_one, super::hosts_of_one);
adapter_conformance!(of_hosts_in_turn, super::hosts_in_turn);
adapter_conformance!(of_one_sided_hosts, super::one_sided_hosts);
adapter_conformance!(of_fabric, super::fabric);
adapter_conformance!(of_fabric_of_two, super::fabric_of_two);
mod of_faultless {
    mpj_doubles::adapter_conformance!(@alone super::faultless);
}
adapter_conformance!(of_often_full, super::often_full, while sender polls);
adapter_conformance!(of_often_delayed, super::often_delayed, while sender polls);
adapter_conformance!(
    of_fuller_channels,
    super::channels_that_are_fuller_still,
    while sender polls
);
