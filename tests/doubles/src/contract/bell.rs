//! A5 and A6: whoever has announced a sleep and found nothing, or no room, is woken.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use mpj_harness::Sleepers;
use transport_lapi::adapter::{Adapter, Doorbell, Frame, Post, TaskId};

use super::{Maker, Sent, comes_soon, least, poll};

/// Length of a sleep that nobody ends.
const FOR_EVER: Duration = Duration::from_secs(120);
/// A sleep that took less than this was ended by somebody.
const WOKEN: Duration = Duration::from_secs(60);
/// Sleeps, and fails when nobody ended the sleep.
fn sleep(bell: &dyn Doorbell, ticket: u32) {
    let start = Instant::now();
    bell.sleep(ticket, Some(FOR_EVER));
    assert!(start.elapsed() < WOKEN, "nobody woke the sleeper");
}

/// Sleeps as one of these.
fn sleep_as(sleepers: &Sleepers, bell: &dyn Doorbell, ticket: u32) {
    sleepers.join();
    sleep(bell, ticket);
}

/// How many frames are there.
fn look<A: Adapter>(task: &mut A) -> usize {
    poll(task, usize::MAX, |_: Frame<'_>| {})
}

/// How many frames are there, as soon as one is.
fn look_until<A: Adapter>(task: &mut A) -> usize {
    let mut found = 0;
    comes_soon(|| {
        found = look(task);
        found > 0
    });
    found
}

fn send<A: Adapter>(task: &mut A, target: TaskId, body: &[u8]) {
    let frame = Sent { head: vec![1; 8], body: body.to_vec() };
    let post = frame.offer(task, target).expect("the ring is sound");
    assert_ne!(post, Post::Full, "the ring is empty");
}

/// Waits for a frame as the transport does: announce, look, sleep. Returns how many came.
fn wait_for_frames<A: Adapter>(task: &mut A) -> usize {
    let bell = task.parts().bell;
    loop {
        let found = look(task);
        if found > 0 {
            return found;
        }
        let ticket = bell.announce();
        let found = look(task);
        if found > 0 {
            bell.retract();
            return found;
        }
        sleep(&*bell, ticket);
    }
}

/// The frame comes between the announcement and the sleep: the look finds it, or the sleep ends.
pub fn a_frame_wakes_whoever_was_about_to_sleep<A: Adapter>(make: Maker<A>) {
    let mut tasks = make(2);
    let [sender, receiver] = &mut tasks[..] else { panic!("two tasks were asked for") };
    let bell = receiver.parts().bell;
    for body in [vec![], vec![3; 5_000]] {
        bell.announce();
        send(sender, 1, &body);
        assert_eq!(look_until(receiver), 1);
        bell.retract();

        let ticket = bell.announce();
        assert_eq!(look(receiver), 0);
        send(sender, 1, &body);
        sleep(&*bell, ticket);
        assert_eq!(look(receiver), 1);
    }
}

/// The frame comes while the receiver sleeps, and is there when it wakes.
pub fn a_frame_wakes_a_sleeper<A: Adapter>(make: Maker<A>) {
    let mut tasks = make(3);
    let (mut receiver, sleepers) = (tasks.remove(1), Sleepers::default());
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            sleepers.join();
            (0..10).for_each(|_| tell.send(wait_for_frames(&mut receiver)).expect("it is awaited"));
        });
        for round in 0..10 {
            sleepers.wait_until_asleep(1);
            send(&mut tasks[round % 2], 1, &[round as u8; 400]);
            assert_eq!(told.recv(), Ok(1));
        }
    });
}

/// One frame wakes all threads that sleep on the bell of its target.
pub fn a_frame_wakes_every_sleeping_thread<A: Adapter>(make: Maker<A>) {
    let mut tasks = make(2);
    let (bell, sleepers) = (tasks[1].parts().bell, Sleepers::default());
    thread::scope(|scope| {
        for _ in 0..4 {
            let (bell, ticket, sleepers) = (&*bell, bell.announce(), &sleepers);
            scope.spawn(move || sleep_as(sleepers, bell, ticket));
        }
        sleepers.wait_until_asleep(4);
        send(&mut tasks[0], 1, &[]);
    });
}

/// A task that sends to itself rings its own bell.
pub fn a_frame_to_oneself_wakes_a_sleeping_thread<A: Adapter>(make: Maker<A>) {
    let mut tasks = make(1);
    let (bell, sleepers) = (tasks[0].parts().bell, Sleepers::default());
    let ticket = bell.announce();
    thread::scope(|scope| {
        scope.spawn(|| sleep_as(&sleepers, &*bell, ticket));
        sleepers.wait_until_asleep(1);
        send(&mut tasks[0], 0, &[]);
    });
}

/// A6: a task that was told that there is no room, and sleeps, is woken when its target polls.
pub fn room_wakes_a_sleeping_sender<A: Adapter>(make: Maker<A>) {
    let mut tasks = make(2);
    let (mut target, mut origin) = (tasks.remove(1), tasks.remove(0));
    let bell = origin.parts().bell;
    for len in [0, least(&origin).max_body] {
        let frame = Sent { head: vec![1; 8], body: vec![1; len] };
        let mut ticket_if_full = || {
            let ticket = bell.announce();
            let is_full = frame.offer(&mut origin, 1).expect("the ring is sound") == Post::Full;
            if !is_full {
                bell.retract();
            }
            is_full.then_some(ticket)
        };
        let mut full = (0..100_000).find_map(|_| ticket_if_full());
        assert!(full.is_some(), "a ring that never fills");
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    look(&mut target);
                    thread::yield_now();
                }
            });
            while let Some(ticket) = full {
                sleep(&*bell, ticket);
                full = ticket_if_full();
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }
}

/// Two tasks wake each other thousands of times: one lost wake-up stops them.
pub fn sleepers_that_take_turns_lose_no_wake_up<A: Adapter>(make: Maker<A>) {
    const ROUNDS: usize = 3_000;
    let tasks = make(2);
    thread::scope(|scope| {
        for mut task in tasks {
            scope.spawn(move || {
                let me = task.endpoint().task;
                let (me, peer) = (me as usize, 1 - me);
                for round in 0..ROUNDS {
                    if round % 2 == me {
                        send(&mut task, peer, &[0; 20]);
                    } else {
                        assert_eq!(wait_for_frames(&mut task), 1);
                    }
                }
            });
        }
    });
}

/// Withdrawn announcements do not disturb later sleeps.
pub fn retracting_leaves_the_bell_in_order<A: Adapter>(make: Maker<A>) {
    let mut tasks = make(2);
    let [sender, receiver] = &mut tasks[..] else { panic!("two tasks were asked for") };
    let bell = receiver.parts().bell;
    for _ in 0..50 {
        bell.announce();
        bell.retract();
        send(sender, 1, &[]);
        bell.announce();
        bell.retract();
        assert_eq!(look_until(receiver), 1);
    }
    let ticket = bell.announce();
    assert_eq!(look(receiver), 0);
    send(sender, 1, &[]);
    sleep(&*bell, ticket);
}

/// A thread of the same task rings, without any frame; before the sleep, and during it.
pub fn ringing_wakes_a_sleeper<A: Adapter>(make: Maker<A>) {
    let tasks = make(1);
    let bell = tasks[0].parts().bell;
    let ticket = bell.announce();
    bell.ring();
    sleep(&*bell, ticket);
    let sleepers = Sleepers::default();
    thread::scope(|scope| {
        scope.spawn(|| sleep_as(&sleepers, &*bell, bell.announce()));
        sleepers.wait_until_asleep(1);
        tasks[0].parts().bell.ring();
    });
}

/// A sleep with a time ends without being woken.
pub fn a_sleep_ends_with_its_time<A: Adapter>(make: Maker<A>) {
    let tasks = make(1);
    let bell = tasks[0].parts().bell;
    let start = Instant::now();
    let ticket = bell.announce();
    bell.sleep(ticket, Some(Duration::from_millis(30)));
    assert!(start.elapsed() < WOKEN);
}

/// All tasks learn of tasks that are declared lost, and are woken for it.
pub fn a_lost_task_is_known_to_all<A: Adapter>(make: Maker<A>) {
    let (tasks, sleepers) = (make(3), Sleepers::default());
    thread::scope(|scope| {
        for task in &tasks {
            let (bell, sleepers) = (task.parts().bell, &sleepers);
            let ticket = bell.announce();
            scope.spawn(move || sleep_as(sleepers, &*bell, ticket));
        }
        sleepers.wait_until_asleep(3);
        tasks[1].parts().losses.declare();
    });
    let lost = |task: &A| [0, 1, 2].map(|number| task.parts().losses.is_lost(number));
    let seen: Vec<usize> = tasks.iter().map(|task| task.parts().losses.count()).collect();
    assert!(seen.iter().all(|&losses| losses != 0));
    assert!(tasks.iter().all(|task| lost(task) == [false, true, false]));
    tasks[2].parts().losses.declare();
    assert!(tasks.iter().zip(seen).all(|(task, before)| task.parts().losses.count() != before));
    assert!(tasks.iter().all(|task| lost(task) == [false, true, true]));
}
