//! The suites of adapters and devices over a network that drops, duplicates and reorders frames, which the reliable
//! layer makes whole again.

use mpj_tests::conformance::lossy::{Lossy, NETWORK, Tended, over_a_network};
use mpj_tests::{adapter_conformance, device_conformance};
use mpjdev::{BackendChoice, Options, WaitMode};
use transport_lapi::adapters::channels::{self, ChannelAdapter};
use transport_lapi::adapters::threads::{self, ThreadsAdapter};
use transport_lapi::layers::fault::FaultPlan;

/// Ranks over rings of this process, whose frames get lost.
fn over_threads(ranks: usize) -> Vec<Lossy<ThreadsAdapter>> {
    over_a_network(threads::job(ranks).expect("memory suffices"), NETWORK)
}

/// Ranks over channels, whose bodies are read later, and whose frames get lost.
fn over_channels(ranks: usize) -> Vec<Lossy<ChannelAdapter>> {
    over_a_network(channels::job(ranks).expect("memory suffices"), NETWORK)
}

/// The worst network: a third of the frames is lost, there is seldom room, and the rest is late.
fn over_the_worst(ranks: usize) -> Vec<Lossy<ThreadsAdapter>> {
    let delays = FaultPlan { delay: 100, reorder: 300, full: 300, ..NETWORK };
    let plan = FaultPlan { drop: 330, duplicate: 300, ..delays };
    over_a_network(threads::job(ranks).expect("memory suffices"), plan)
}

/// The same with a thread for each rank, which repeats frames while the rank is outside of all calls.
fn tended_threads(ranks: usize) -> Vec<Tended<Lossy<ThreadsAdapter>>> {
    over_threads(ranks).into_iter().map(Tended::new).collect()
}

/// The same over channels.
fn tended_channels(ranks: usize) -> Vec<Tended<Lossy<ChannelAdapter>>> {
    over_channels(ranks).into_iter().map(Tended::new).collect()
}

/// Waiting threads soon give up the processor, for the threads that play the network.
fn crowded(backend: BackendChoice) -> Options {
    Options { processors: Some(1), ..Options::with_backend(backend) }
}

/// Waiting threads sleep at once, so that every missing wake-up is a hang.
fn asleep(backend: BackendChoice) -> Options {
    Options { wait: WaitMode::Block, ..Options::with_backend(backend) }
}

adapter_conformance!(adapter_over_threads, super::over_threads, while sender polls);
adapter_conformance!(adapter_over_channels, super::over_channels, while sender polls);
adapter_conformance!(adapter_over_the_worst, super::over_the_worst, while sender polls);

/// With a thread that repeats them, frames need no polls of their sender.
mod adapter_over_tended_threads {
    mpj_tests::adapter_conformance! { @tests super::tended_threads =>
        taken_frames_arrive_when_their_sender_does_nothing_more
        taken_frames_arrive_when_their_sender_is_gone
        a_frame_wakes_a_sleeper
        a_frame_wakes_every_sleeping_thread
        a_frame_to_oneself_wakes_a_sleeping_thread
        sleepers_that_take_turns_lose_no_wake_up
    }
}

device_conformance!(threads_auto, tended_threads, crowded(BackendChoice::Auto), without losses);
device_conformance!(
    threads_asleep,
    tended_threads,
    asleep(BackendChoice::Rendezvous),
    without losses
);
device_conformance!(channels_eager, tended_channels, crowded(BackendChoice::Eager), without losses);
device_conformance!(channels_asleep, tended_channels, asleep(BackendChoice::Auto), without losses);
