//! Tests of the adapter contract, A1 to A6, which each adapter runs on its own jobs.
//!
//! A job is a list of adapters, one per task. An event that does not happen within [`PATIENCE`] counts as lost.

use std::thread;
use std::time::{Duration, Instant};

use crate::adapter::{Adapter, Frame, Post, TaskId, Ticket};
use crate::body::Piece;

/// How long a test waits for an event that is due at once.
const PATIENCE: Duration = Duration::from_secs(20);

/// Repeats `step` until it returns `true`.
pub(crate) fn until(what: &str, mut step: impl FnMut() -> bool) {
    let start = Instant::now();
    while !step() {
        assert!(start.elapsed() < PATIENCE, "never happened: {what}");
        thread::yield_now();
    }
}

/// Polls one frame, if there is one.
pub(crate) fn next<A: Adapter>(adapter: &mut A) -> Option<(TaskId, Vec<u8>, Vec<u8>)> {
    next_of(adapter, None)
}

/// Polls one frame, from `origin` only if it is given.
fn next_of<A: Adapter>(
    adapter: &mut A,
    origin: Option<TaskId>,
) -> Option<(TaskId, Vec<u8>, Vec<u8>)> {
    let mut seen = None;
    let mut sink = |frame: Frame<'_>| {
        assert!(seen.is_none(), "the budget was one frame");
        seen = Some((frame.origin, frame.head.to_vec(), frame.body.to_vec()));
    };
    let delivered = adapter.poll(origin, 1, &mut sink).expect("nobody damages the rings");
    assert_eq!(delivered, usize::from(seen.is_some()));
    seen
}

fn offer<A: Adapter>(adapter: &mut A, target: TaskId, head: &[u8], body: &[u8]) -> Post {
    adapter.try_send(target, head, Piece::of(body), Ticket(0)).expect("nobody damages the rings")
}

/// Length of the body of frame `i`: covers every path of a frame, and the largest body.
fn body_len(i: u32, max_body: usize) -> usize {
    [0, 8, 60, 280, 300, 1500, max_body][i as usize % 7]
}

fn fill(origin: TaskId, i: u32) -> u8 {
    (origin * 64 + i) as u8
}

/// A1, between all pairs at once, with many more bytes than fit in the rings.
pub(crate) fn frames_arrive_whole_once_and_in_order<A: Adapter>(job: Vec<A>) {
    const FRAMES: u32 = 400;
    let exchange = |adapter: &mut A| {
        let (me, tasks) = (adapter.task(), adapter.num_tasks() as TaskId);
        let max_body = adapter.caps().max_body;
        let mut sent = vec![0_u32; tasks as usize];
        let mut seen = vec![0_u32; tasks as usize];
        // Every second poll asks for the frames of one task only.
        let mut ones = (0..tasks).flat_map(|origin| [Some(origin), None]).cycle();
        until("all frames are exchanged", || {
            for target in 0..tasks {
                let i = sent[target as usize];
                if i < FRAMES {
                    let body = vec![fill(me, i); body_len(i, max_body)];
                    let post = offer(adapter, target, &i.to_le_bytes(), &body);
                    sent[target as usize] += u32::from(post == Post::Taken);
                }
            }
            if let Some((origin, head, body)) = next_of(adapter, ones.next().flatten()) {
                let i = seen[origin as usize];
                assert_eq!(head, i.to_le_bytes(), "task {me}, from {origin}");
                assert_eq!(body, vec![fill(origin, i); body_len(i, max_body)]);
                seen[origin as usize] += 1;
            }
            sent.iter().chain(&seen).all(|&count| count == FRAMES)
        });
    };
    let exchange = &exchange;
    thread::scope(|scope| {
        // The adapters live until all tasks have finished, since another test covers A4.
        let tasks: Vec<_> = job
            .into_iter()
            .map(|mut adapter| {
                scope.spawn(move || {
                    exchange(&mut adapter);
                    adapter
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| drop(task.join().expect("no task panics")));
    });
}

/// A3: a refused frame was not taken, and is taken once the target has polled.
pub(crate) fn full_takes_nothing<A: Adapter>(mut job: Vec<A>) {
    for body_len in [0, 300, job[0].caps().max_body] {
        let mut taken = 0_u32;
        while offer(&mut job[0], 1, &taken.to_le_bytes(), &vec![1; body_len]) == Post::Taken {
            taken += 1;
            assert!(taken < 100_000, "a ring that never fills");
        }
        assert!(taken >= 3, "a ring of {taken} frames of {body_len} bytes");
        for i in 0..taken {
            let (origin, head, body) = next(&mut job[1]).expect("a frame that was taken arrives");
            assert_eq!((origin, head, body.len()), (0, i.to_le_bytes().to_vec(), body_len));
        }
        assert_eq!(next(&mut job[1]), None, "a frame that was refused does not arrive");
        assert_eq!(offer(&mut job[0], 1, b"again", &[]), Post::Taken, "there is room again");
        assert_eq!(next(&mut job[1]), Some((0, b"again".to_vec(), vec![])));
    }
}

/// A4: frames arrive although their sender is gone.
pub(crate) fn taken_frames_outlive_their_sender<A: Adapter>(mut job: Vec<A>) {
    let body = vec![3; job[0].caps().max_body];
    assert_eq!(offer(&mut job[0], 1, b"short", b""), Post::Taken);
    assert_eq!(offer(&mut job[0], 1, b"long", &body), Post::Taken);
    drop(job.remove(0));
    assert_eq!(next(&mut job[0]), Some((0, b"short".to_vec(), vec![])));
    assert_eq!(next(&mut job[0]), Some((0, b"long".to_vec(), body)));
}

/// A5: two tasks that sleep whenever they find nothing wake each other a thousand times.
pub(crate) fn sleepers_are_woken_by_frames<A: Adapter>(job: Vec<A>) {
    let play = |adapter: &mut A| {
        let (me, bell) = (adapter.task(), adapter.doorbell());
        for round in 0..1000_u32 {
            if me == 0 {
                assert_eq!(offer(adapter, 1, &round.to_le_bytes(), &[]), Post::Taken);
            }
            let seen = loop {
                let ticket = bell.announce();
                if let Some(seen) = next(adapter) {
                    bell.retract();
                    break seen;
                }
                let start = Instant::now();
                bell.sleep(ticket, Some(PATIENCE));
                assert!(start.elapsed() < PATIENCE, "slept through the frame of round {round}");
            };
            assert_eq!(seen.1, round.to_le_bytes());
            if me == 1 {
                assert_eq!(offer(adapter, 0, &round.to_le_bytes(), &[]), Post::Taken);
            }
        }
    };
    thread::scope(|scope| {
        for mut adapter in job {
            scope.spawn(move || play(&mut adapter));
        }
    });
}

/// A6: a task that sleeps because a ring is full is woken when its target polls.
pub(crate) fn senders_are_woken_by_room<A: Adapter>(mut job: Vec<A>) {
    let mut target = job.remove(1);
    let mut origin = job.remove(0);
    for body_len in [0, origin.caps().max_body] {
        let (bell, body) = (origin.doorbell(), vec![1; body_len]);
        while offer(&mut origin, 1, b"x", &body) == Post::Taken {}
        let ticket = bell.announce();
        assert_eq!(offer(&mut origin, 1, b"x", &body), Post::Full);
        thread::scope(|scope| {
            scope.spawn(|| while next(&mut target).is_some() {});
            let start = Instant::now();
            bell.sleep(ticket, Some(PATIENCE));
            assert!(start.elapsed() < PATIENCE, "slept although there was room");
        });
        assert_eq!(offer(&mut origin, 1, b"x", &body), Post::Taken);
        assert!(next(&mut target).is_some());
    }
}

/// A doorbell wakes threads of its own task, and the timeout ends a sleep.
pub(crate) fn the_own_bell_wakes_and_the_timeout_ends<A: Adapter>(job: Vec<A>) {
    let bell = job[0].doorbell();
    let start = Instant::now();
    bell.sleep(bell.announce(), Some(Duration::from_millis(30)));
    assert!(start.elapsed() >= Duration::from_millis(20), "nobody rang");
    let ticket = bell.announce();
    bell.ring();
    bell.sleep(ticket, Some(PATIENCE));
    assert!(start.elapsed() < PATIENCE, "a ring between announcing and sleeping was lost");
}

/// A lost task wakes every task, and every task knows which one was lost, however often it is declared.
pub(crate) fn a_lost_task_wakes_everybody<A: Adapter>(job: Vec<A>) {
    assert!(job.iter().all(|adapter| adapter.losses() == 0));
    let bells: Vec<_> = job.iter().map(|adapter| adapter.doorbell()).collect();
    thread::scope(|scope| {
        for adapter in &job[..1] {
            let bell = adapter.doorbell();
            let ticket = bell.announce();
            scope.spawn(move || {
                let start = Instant::now();
                bell.sleep(ticket, Some(PATIENCE));
                assert!(start.elapsed() < PATIENCE, "nobody rang");
            });
        }
        bells[1].declare_lost();
    });
    for adapter in &job {
        assert_ne!(adapter.losses(), 0);
        assert_eq!([0, 1, 2].map(|task| adapter.is_lost(task)), [false, true, false]);
    }
}

/// The first two tasks of a job in which senders leave marks.
pub(crate) fn two_of_many<A: Adapter>(mut job: Vec<A>) -> Vec<A> {
    job.truncate(2);
    job
}

/// Instantiates the contract for the jobs that `$job`, a function of the number of tasks, makes.
macro_rules! adapter_contract {
    ($job:path) => {
        mod contract {
            use crate::adapters::arrivals::MOST_POLLED;
            use crate::adapters::contract as cases;

            #[test]
            fn frames_arrive_whole_once_and_in_order() {
                cases::frames_arrive_whole_once_and_in_order($job(3));
            }

            #[test]
            fn a_task_alone_sends_to_itself() {
                cases::frames_arrive_whole_once_and_in_order($job(1));
            }

            #[test]
            fn full_takes_nothing() {
                cases::full_takes_nothing($job(2));
            }

            #[test]
            fn taken_frames_outlive_their_sender() {
                cases::taken_frames_outlive_their_sender($job(2));
            }

            #[test]
            fn sleepers_are_woken_by_frames() {
                cases::sleepers_are_woken_by_frames($job(2));
            }

            #[test]
            fn senders_are_woken_by_room() {
                cases::senders_are_woken_by_room($job(2));
            }

            #[test]
            fn the_own_bell_wakes_and_the_timeout_ends() {
                cases::the_own_bell_wakes_and_the_timeout_ends($job(1));
            }

            #[test]
            fn a_lost_task_wakes_everybody() {
                cases::a_lost_task_wakes_everybody($job(3));
            }

            #[test]
            fn the_same_holds_where_senders_leave_marks() {
                let many = || cases::two_of_many($job(MOST_POLLED + 1));
                cases::full_takes_nothing(many());
                cases::taken_frames_outlive_their_sender(many());
                cases::sleepers_are_woken_by_frames(many());
                cases::senders_are_woken_by_room(many());
            }

            #[test]
            fn frames_of_many_tasks_arrive_whole_once_and_in_order() {
                cases::frames_arrive_whole_once_and_in_order($job(MOST_POLLED + 2));
            }
        }
    };
}
pub(crate) use adapter_contract;
