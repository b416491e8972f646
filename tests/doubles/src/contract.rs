//! The suite of the contract of [`transport_lapi::adapter`] for any adapter.
//!
//! Every check takes a maker of jobs: given a number of tasks, it returns their adapters in order.
//! [`crate::adapter_conformance`] makes tests of the checks; `transport-lapi/tests/adapters.rs` lists the adapters. For
//! an adapter that holds frames back until their sender polls, and so does not keep A4 to A6, the macro takes `while
//! sender polls`.
//!
//! That no method calls back into the transport (A2) needs no check: an adapter is given nothing to
//! call but the sink of [`Adapter::poll`].

use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};

use transport_lapi::Source;
use transport_lapi::adapter::{Adapter, AdapterError, Caps, Events, Frame, Post, TaskId, Ticket};

use crate::numbers::Numbers;

mod access;
mod bell;
mod delivery;
mod share;

pub use access::*;
pub use bell::*;
pub use delivery::*;
pub use share::*;

/// Makes a job of this number of tasks.
pub type Maker<A> = fn(usize) -> Vec<A>;

/// Makes tests of the checks: `adapter_conformance!(module, maker)`, followed by `while sender polls` for an adapter
/// that does not keep A4 to A6.
#[macro_export]
macro_rules! adapter_conformance {
    ($name:ident, $make:expr) => {
        mod $name {
            $crate::adapter_conformance!(@polled $make);
            $crate::adapter_conformance!(@alone $make);
        }
    };
    ($name:ident, $make:expr, while sender polls) => {
        mod $name {
            $crate::adapter_conformance!(@polled $make);
        }
    };
    (@polled $make:expr) => {
        $crate::adapter_conformance! { @tests $make =>
            tasks_are_numbered_and_alike
            frames_of_every_length_arrive_whole
            frames_arrive_once_and_in_order
            every_pair_keeps_its_own_order
            threads_exchange_frames
            many_threads_exchange_frames
            no_call_blocks
            a_poll_keeps_to_its_budget
            a_full_ring_took_nothing
            a_ring_filled_to_the_last_line_keeps_its_frames
            a_full_ring_takes_the_frame_when_it_was_polled
            a_full_ring_holds_up_nobody_else
            a_target_that_does_nothing_costs_nothing
            both_ends_of_a_shared_get_copy
            a_task_that_waits_for_help_is_woken
            a_shared_get_that_was_ended_is_written_by_nobody
            help_that_fits_no_get_is_none
            a_get_is_refused_if_its_target_detaches_meanwhile
            ringing_wakes_a_sleeper
            a_sleep_ends_with_its_time
            a_lost_task_is_known_to_all
            gets_deliver_what_is_registered
            puts_are_in_place_after_a_flush
            atomic_operations_take_place_one_after_another
            memory_is_accessed_only_as_it_is_registered
            memory_of_a_task_that_has_detached_is_not_accessed
            a_body_that_has_left_may_change
            a_task_that_has_detached_gets_its_memory_back
            a_loss_holds_up_no_operation
            a_loss_leaves_no_get_unfinished
            the_end_of_an_operation_wakes_a_sleeper
        }
    };
    (@alone $make:expr) => {
        $crate::adapter_conformance! { @tests $make =>
            taken_frames_arrive_when_their_sender_does_nothing_more
            taken_frames_arrive_when_their_sender_is_gone
            a_frame_wakes_whoever_was_about_to_sleep
            a_frame_wakes_a_sleeper
            a_frame_wakes_every_sleeping_thread
            a_frame_to_oneself_wakes_a_sleeping_thread
            room_wakes_a_sleeping_sender
            sleepers_that_take_turns_lose_no_wake_up
            retracting_leaves_the_bell_in_order
        }
    };
    (@tests $make:expr => $($check:ident)+) => {
        $(#[test]
        fn $check() {
            $crate::watch(|| $crate::contract::$check($make));
        })+
    };
}

/// How often an offer is repeated: enough for adapters that refuse frames at random.
const PATIENCE: usize = 1_000;

/// Time limit for what has to come, also with adapters that hold back frames at random or carry them in a thread of
/// their own; half of what the watchdog gives a test.
const SOON: Duration = Duration::from_secs(30);

/// Whether `look` returns true within the time limit.
fn comes_soon(mut look: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !look() {
        if start.elapsed() > SOON {
            return false;
        }
        thread::yield_now();
    }
    true
}

/// A frame that was taken or has arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sent {
    head: Vec<u8>,
    body: Vec<u8>,
}

impl Sent {
    /// Offers the frame once.
    fn offer<A: Adapter>(&self, task: &mut A, target: TaskId) -> Result<Post, AdapterError> {
        let body = Source::from(self.body.clone());
        task.try_send(target, &self.head, body.piece(0, self.body.len()), Ticket(1))
    }
}

/// Passes frames to `take`, and counts what else a poll reports.
struct Taker<F> {
    take: F,
    ended: usize,
}

impl<F: FnMut(Frame<'_>)> Events for Taker<F> {
    fn frame(&mut self, frame: Frame<'_>) {
        (self.take)(frame);
    }

    fn send_complete(&mut self, ticket: Ticket) {
        assert_eq!(ticket, Ticket(1), "of a body that was offered");
        self.ended += 1;
    }

    fn got(&mut self, _: Ticket, _: Result<(), AdapterError>) {
        panic!("nobody has begun a get");
    }
}

/// The sizes of frames that this task can send to any other one.
fn least<A: Adapter>(task: &A) -> Caps {
    let caps = (0..task.endpoint().num_tasks as TaskId).map(|target| task.caps(target));
    let least = |one: Caps, other: Caps| Caps {
        max_head: one.max_head.min(other.max_head),
        max_inline: one.max_inline.min(other.max_inline),
        max_body: one.max_body.min(other.max_body),
        ..one
    };
    caps.reduce(least).expect("a job has a task")
}

/// Polls, and returns how many frames came.
fn poll<A: Adapter>(task: &mut A, budget: usize, take: impl FnMut(Frame<'_>)) -> usize {
    poll_for(task, None, budget, take)
}

/// [`poll`] for the frames of `origin` only, if it is given.
fn poll_for<A: Adapter>(
    task: &mut A,
    origin: Option<TaskId>,
    budget: usize,
    take: impl FnMut(Frame<'_>),
) -> usize {
    let mut taker = Taker { take, ended: 0 };
    let count = task.poll(origin, budget, &mut taker).expect("the ring is sound");
    count - taker.ended
}

/// A job in one thread: the tasks poll in turn, and every frame that arrives is compared with the one that is due.
struct Job<A> {
    tasks: Vec<A>,
    /// The frames that were taken and have not arrived, by origin and target.
    due: Vec<Vec<VecDeque<Sent>>>,
    arrived: usize,
}

impl<A: Adapter> Job<A> {
    fn new(tasks: Vec<A>) -> Self {
        let row = vec![VecDeque::new(); tasks.len()];
        Self { due: vec![row; tasks.len()], tasks, arrived: 0 }
    }

    /// Offers a frame once. Returns whether it was taken.
    fn offer(&mut self, from: usize, to: usize, frame: &Sent) -> bool {
        let post = frame.offer(&mut self.tasks[from], to as TaskId);
        let taken = post.expect("the ring is sound") != Post::Full;
        if taken {
            self.due[from][to].push_back(frame.clone());
        }
        taken
    }

    /// Offers a frame until it is taken, while all tasks poll.
    fn send(&mut self, from: usize, to: usize, frame: &Sent) {
        let is_taken = comes_soon(|| {
            let taken = self.offer(from, to, frame);
            if !taken {
                self.poll_all(usize::MAX);
            }
            taken
        });
        assert!(is_taken, "a frame of {} bytes is refused for ever", frame.body.len());
    }

    /// Polls once for a task. What arrives must be what is due (A1).
    fn poll(&mut self, task: usize, budget: usize) -> usize {
        let Self { tasks, due, arrived } = self;
        let mut seen = 0;
        let count = poll(&mut tasks[task], budget, |frame: Frame<'_>| {
            let origin = frame.origin as usize;
            let sent = Sent { head: frame.head.to_vec(), body: frame.body.to_vec() };
            let expected = due[origin][task].pop_front();
            assert!(expected.as_ref() == Some(&sent), "from {origin} to {task}: another frame");
            seen += 1;
        });
        assert_eq!(count, seen, "poll counts what it delivers");
        *arrived += seen;
        seen
    }

    fn poll_all(&mut self, budget: usize) -> usize {
        (0..self.tasks.len()).map(|task| self.poll(task, budget)).sum()
    }

    /// Polls until everything has arrived.
    fn settle(&mut self) {
        let have_come = comes_soon(|| {
            self.poll_all(usize::MAX);
            self.outstanding() == 0
        });
        assert!(have_come, "{} frames that were taken did not arrive", self.outstanding());
        assert_eq!(self.poll_all(usize::MAX), 0, "nothing arrives that was not sent");
    }

    fn outstanding(&self) -> usize {
        self.due.iter().flatten().map(VecDeque::len).sum()
    }
}

/// A frame of these lengths.
fn frame(numbers: &mut Numbers, head: usize, body: usize) -> Sent {
    Sent { head: numbers.bytes(head), body: numbers.bytes(body) }
}
