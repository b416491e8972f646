//! A1 to A4: frames arrive whole, once and in order; nothing blocks; full is a value.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use transport_lapi::MAX_UHDR;
use transport_lapi::adapter::{Adapter, Endpoint, Frame, Post, TaskId};

use super::{Job, Maker, PATIENCE, Sent, comes_soon, frame, least, poll, poll_for};
use crate::numbers::Numbers;

/// So many tasks that receivers over a segment look for the marks of senders instead of at each ring.
pub const MANY: usize = 18;

/// Tasks are numbered in order, know how many they are, and both ends of a pair agree on what they can do.
pub fn tasks_are_numbered_and_alike<A: Adapter>(make: Maker<A>) {
    for num_tasks in [1, 2, 5, 16] {
        let tasks = make(num_tasks);
        assert_eq!(tasks.len(), num_tasks);
        for (number, task) in tasks.iter().enumerate() {
            let Endpoint { task: own, num_tasks: all, .. } = task.endpoint();
            assert_eq!((own, all), (number as TaskId, num_tasks));
            for (other, peer) in (0..).zip(&tasks) {
                assert_eq!(task.caps(other), peer.caps(own), "what {own} and {other} can do");
            }
            assert_eq!(task.parts().losses.count(), 0);
        }
        let caps = least(&tasks[0]);
        assert!(caps.max_head >= 40 + MAX_UHDR, "the longest head of the transport fits");
        assert!(caps.max_inline > 0 && caps.max_body >= caps.max_inline);
    }
}

/// Every length of head, with bodies of every length around the edge between one cell and more.
pub fn frames_of_every_length_arrive_whole<A: Adapter>(make: Maker<A>) {
    for num_tasks in [1, 2] {
        let mut job = Job::new(make(num_tasks));
        let caps = least(&job.tasks[0]);
        let mut numbers = Numbers(1);
        let to = num_tasks - 1;
        for head in 0..=caps.max_head {
            let edge = caps.max_inline.saturating_sub(head);
            for body in [0, 1, edge.saturating_sub(1), edge, edge + 1] {
                job.send(0, to, &frame(&mut numbers, head, body));
            }
        }
        for body in (0..=2 * caps.max_inline).chain(caps.max_body - 65..=caps.max_body) {
            job.send(0, to, &frame(&mut numbers, 8, body));
        }
        job.settle();
        assert!(job.arrived > 5 * caps.max_head);
    }
}

/// Frames of all lengths, offered and polled at random, over many laps of every ring.
pub fn frames_arrive_once_and_in_order<A: Adapter>(make: Maker<A>) {
    for seed in 0..3 {
        let mut job = Job::new(make(2));
        mix(&mut job, seed, 2_000);
        job.settle();
    }
}

/// The same with five tasks, each of which sends to all and to itself.
pub fn every_pair_keeps_its_own_order<A: Adapter>(make: Maker<A>) {
    for seed in 0..2 {
        let mut job = Job::new(make(5));
        mix(&mut job, seed, 3_000);
        job.settle();
    }
}

/// Offers and polls at random.
fn mix<A: Adapter>(job: &mut Job<A>, seed: u64, steps: usize) {
    let mut numbers = Numbers(seed);
    let caps = least(&job.tasks[0]);
    let tasks = job.tasks.len();
    for _ in 0..steps {
        if numbers.below(3) == 0 {
            let (task, budget) = (numbers.below(tasks), numbers.below(20));
            job.poll(task, budget);
            continue;
        }
        let longest = [16, caps.max_inline, 4_000, caps.max_body][numbers.below(4)];
        let (head, body) = (numbers.below(caps.max_head + 1), numbers.below(longest + 1));
        let frame = frame(&mut numbers, head, body);
        let (from, to) = (numbers.below(tasks), numbers.below(tasks));
        job.offer(from, to, &frame);
    }
}

/// Every task on a thread of its own, sending to all and polling at the same time.
pub fn threads_exchange_frames<A: Adapter>(make: Maker<A>) {
    exchange(make(2), 600);
    exchange(make(4), 600);
}

/// The same with more tasks than a receiver looks for one after the other ([`MANY`]).
pub fn many_threads_exchange_frames<A: Adapter>(make: Maker<A>) {
    exchange(make(MANY), 60);
}

/// Sends this many frames between all pairs.
fn exchange<A: Adapter>(tasks: Vec<A>, frames: u64) {
    let num_tasks = tasks.len();
    let served = AtomicUsize::new(0);
    thread::scope(|scope| {
        for mut task in tasks {
            let served = &served;
            scope.spawn(move || {
                let mut next = vec![0; num_tasks];
                let mut come = vec![0; num_tasks];
                // Every second poll asks for the frames of one task only.
                let mut origins =
                    (0..num_tasks as TaskId).flat_map(|origin| [Some(origin), None]).cycle();
                let mut take = |task: &mut A, come: &mut Vec<u64>| {
                    take_from(task, origins.next().flatten(), come)
                };
                let all = |counts: &[u64]| counts.iter().all(|&count| count == frames);
                while !(all(&next) && all(&come)) {
                    let sent = offer_to_all(&mut task, &mut next, frames);
                    if sent + take(&mut task, &mut come) == 0 {
                        thread::yield_now();
                    }
                }
                served.fetch_add(1, Ordering::SeqCst);
                // Frames that are held back go on only while their sender polls.
                while served.load(Ordering::SeqCst) < num_tasks {
                    take(&mut task, &mut come);
                    thread::yield_now();
                }
                assert!(all(&come), "a frame came twice");
            });
        }
    });
}

/// The frame with this number from this task.
fn numbered(task: TaskId, number: u64, max_body: usize) -> Sent {
    let mut numbers = Numbers(number << 8 | u64::from(task));
    let longest = [8, 8, 200, 400, 9_000, max_body][numbers.below(6)];
    let body = numbers.below(longest.min(max_body) + 1);
    Sent { head: number.to_le_bytes().to_vec(), body: numbers.bytes(body) }
}

fn offer_to_all<A: Adapter>(task: &mut A, next: &mut [u64], frames: u64) -> usize {
    let (me, max_body) = (task.endpoint().task, least(task).max_body);
    let mut taken = 0;
    for (target, next) in next.iter_mut().enumerate().filter(|(_, next)| **next < frames) {
        let frame = numbered(me, *next, max_body);
        let post = frame.offer(task, target as TaskId);
        if post.expect("the ring is sound") != Post::Full {
            *next += 1;
            taken += 1;
        }
    }
    taken
}

/// Takes frames, of `origin` only if it is given.
fn take_from<A: Adapter>(task: &mut A, origin: Option<TaskId>, come: &mut [u64]) -> usize {
    let max_body = least(task).max_body;
    poll_for(task, origin, 10, |frame: Frame<'_>| {
        let number = &mut come[frame.origin as usize];
        let expected = numbered(frame.origin, *number, max_body);
        assert_eq!(frame.head, expected.head, "from task {}", frame.origin);
        assert!(frame.body.to_vec() == expected.body, "frame {number} is damaged");
        *number += 1;
    })
}

/// A2: offers to a task that never polls return, and so do polls of nothing.
pub fn no_call_blocks<A: Adapter>(make: Maker<A>) {
    let mut tasks = make(2);
    let max_body = least(&tasks[0]).max_body;
    let mut refused = 0;
    for body in [vec![], vec![1; max_body]] {
        let frame = Sent { head: vec![7; 8], body };
        for _ in 0..3_000 {
            let post = frame.offer(&mut tasks[0], 1).expect("the ring is sound");
            refused += usize::from(post == Post::Full);
            poll(&mut tasks[0], 10, |_: Frame<'_>| panic!("nobody sends to task 0"));
        }
    }
    assert!(refused > 0, "no ring has room for everything");
}

/// A poll delivers at most what it was asked for; the rest comes with later ones.
pub fn a_poll_keeps_to_its_budget<A: Adapter>(make: Maker<A>) {
    let mut job = Job::new(make(3));
    let mut numbers = Numbers(3);
    for budget in [0, 1, 2, 7, 64] {
        for round in 0..20 {
            let frame = frame(&mut numbers, 8, 10 * round);
            for from in 0..3 {
                for _ in 0..PATIENCE {
                    if job.offer(from, 1, &frame) {
                        break;
                    }
                }
            }
        }
        for _ in 0..100 {
            assert!(job.poll(1, budget) <= budget);
        }
        assert!(budget > 0 || job.outstanding() > 0);
        job.settle();
    }
}

/// A3: a refused frame does not arrive, whatever filled the ring and however often it was offered; a frame that was
/// taken does.
pub fn a_full_ring_took_nothing<A: Adapter>(make: Maker<A>) {
    let mut job = Job::new(make(2));
    let caps = least(&job.tasks[0]);
    let mut numbers = Numbers(4);
    for lap in 0..2 {
        for body in [0, caps.max_inline - 8, caps.max_inline, 5_000, caps.max_body] {
            let mut refused = 0;
            for _ in 0..2_000 {
                let frame = frame(&mut numbers, 8, body.min(caps.max_body));
                refused += usize::from(!job.offer(0, 1, &frame));
            }
            assert!(refused > 0, "lap {lap}: 2000 frames of {body} bytes all had room");
            job.settle();
        }
    }
}

/// A3 at the limit: frames of all lengths are offered until the remaining room is too small for nearly all of them. No
/// frame that was taken is overwritten by a later one.
pub fn a_ring_filled_to_the_last_line_keeps_its_frames<A: Adapter>(make: Maker<A>) {
    let mut job = Job::new(make(2));
    let caps = least(&job.tasks[0]);
    let mut numbers = Numbers(8);
    for _ in 0..4 {
        for _ in 0..2_000 {
            let body = caps.max_inline + numbers.below(12_000);
            let frame = frame(&mut numbers, 8, body.min(caps.max_body));
            job.offer(0, 1, &frame);
        }
        job.settle();
    }
}

/// A3: once everything has been polled there is room again, for a frame of any length.
pub fn a_full_ring_takes_the_frame_when_it_was_polled<A: Adapter>(make: Maker<A>) {
    let mut job = Job::new(make(2));
    let max_body = least(&job.tasks[0]).max_body;
    let mut numbers = Numbers(5);
    for round in 0..36 {
        let filling = [0, 300, 1_000, max_body][round % 4];
        let fill = frame(&mut numbers, 8, filling);
        for _ in 0..2_000 {
            if !job.offer(0, 1, &fill) {
                break;
            }
        }
        job.settle();
        let body = [max_body, 8, max_body - 63][round % 3];
        let next = frame(&mut numbers, 8, body);
        job.send(0, 1, &next);
        job.settle();
    }
}

/// A task that does not poll holds up neither frames to others nor those in the other direction.
pub fn a_full_ring_holds_up_nobody_else<A: Adapter>(make: Maker<A>) {
    let mut job = Job::new(make(3));
    let mut numbers = Numbers(6);
    let fill = frame(&mut numbers, 8, 1_000);
    for _ in 0..3_000 {
        job.offer(0, 1, &fill);
    }
    for (from, to) in [(0, 2), (0, 0), (1, 0), (2, 1), (2, 2)] {
        let frame = frame(&mut numbers, 8, 500);
        let taken = comes_soon(|| job.offer(from, to, &frame));
        assert!(taken, "from {from} to {to} although only 0 to 1 is full");
    }
    let have_come = comes_soon(|| {
        job.poll(0, usize::MAX);
        job.poll(2, usize::MAX);
        [(0, 2), (0, 0), (2, 2)]
            .iter()
            .all(|&(from, to): &(usize, usize)| job.due[from][to].is_empty())
    });
    assert!(have_come, "task 1 is not needed for them");
    job.settle();
}

/// Offers frames of a few lengths until the ring is full.
fn fill<A: Adapter>(job: &mut Job<A>) {
    let mut numbers = Numbers(7);
    let max_body = least(&job.tasks[0]).max_body;
    for body in [0, 100, 1_000, 8_000].into_iter().cycle().take(2_000) {
        let frame = frame(&mut numbers, 16, body.min(max_body));
        // Some adapters need a moment to make room of their own.
        let mut taken = job.offer(0, 1, &frame);
        if !taken && job.outstanding() <= 10 {
            taken = comes_soon(|| job.offer(0, 1, &frame));
        }
        if !taken {
            break;
        }
    }
    assert!(job.outstanding() > 10);
}

/// A4: only the target polls.
pub fn taken_frames_arrive_when_their_sender_does_nothing_more<A: Adapter>(make: Maker<A>) {
    let mut job = Job::new(make(2));
    fill(&mut job);
    let have_come = comes_soon(|| {
        job.poll(1, 5);
        job.outstanding() == 0
    });
    assert!(have_come, "the sender is needed for {} frames", job.outstanding());
}

/// A4, also when the sender's adapter has been dropped: its task has ended in order.
pub fn taken_frames_arrive_when_their_sender_is_gone<A: Adapter>(make: Maker<A>) {
    let mut job = Job::new(make(2));
    fill(&mut job);
    drop(job.tasks.remove(0));
    // The receiver is the only task left, but keeps its number in what is due.
    let mut receiver = job.tasks.remove(0);
    let due = &mut job.due[0][1];
    let have_come = comes_soon(|| {
        poll(&mut receiver, 5, |frame: Frame<'_>| {
            let sent = Sent { head: frame.head.to_vec(), body: frame.body.to_vec() };
            assert!(due.pop_front() == Some(sent), "another frame is due");
        });
        due.is_empty()
    });
    assert!(have_come, "frames went with their sender");
}
