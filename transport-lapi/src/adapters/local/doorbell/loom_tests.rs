//! A model of the bell: in every interleaving, a published frame wakes the sleeper.
//!
//! A lost wake-up leaves the sleeper asleep for ever, which loom reports as a deadlock.

use std::sync::Arc;

use loom::sync::atomic::AtomicU32;
use loom::thread;

use super::{Bell, Fences};
use crate::platform::sync::Ordering;

struct Task {
    bell: Bell,
    /// Stands for the rings: the number of published frames.
    frames: AtomicU32,
}

impl Task {
    fn new() -> Arc<Self> {
        let bell = Bell::new();
        Arc::new(Self { bell, frames: AtomicU32::new(0) })
    }

    fn send(&self) {
        // Relaxed, so that only the fences of the bell can make the frame visible.
        self.frames.fetch_add(1, Ordering::Relaxed);
        self.bell.ring(Fences::Symmetric);
    }

    /// Like a waiting thread: polls, announces, polls again, sleeps.
    fn wait_for(&self, frames: u32) {
        while self.frames.load(Ordering::Relaxed) < frames {
            let ticket = self.bell.announce(Fences::Symmetric);
            if self.frames.load(Ordering::Relaxed) < frames {
                self.bell.sleep(ticket, None);
            } else {
                self.bell.retract();
            }
        }
    }
}

#[test]
fn loom_one_sender_wakes_its_sleeper_twice() {
    loom::model(|| {
        let task = Task::new();
        let sender = thread::spawn({
            let task = Arc::clone(&task);
            move || {
                task.send();
                task.send();
            }
        });
        task.wait_for(1);
        task.wait_for(2);
        sender.join().expect("the sender does not panic");
    });
}

#[test]
fn loom_two_senders_wake_one_sleeper() {
    loom::model(|| {
        let task = Task::new();
        let senders = [0, 1].map(|_| {
            let task = Arc::clone(&task);
            thread::spawn(move || task.send())
        });
        task.wait_for(2);
        for sender in senders {
            sender.join().expect("the sender does not panic");
        }
    });
}

#[test]
fn loom_two_sleepers_wake_on_one_frame() {
    loom::model(|| {
        let task = Task::new();
        let other = thread::spawn({
            let task = Arc::clone(&task);
            move || task.wait_for(1)
        });
        let sender = thread::spawn({
            let task = Arc::clone(&task);
            move || task.send()
        });
        task.wait_for(1);
        other.join().expect("the sleeper does not panic");
        sender.join().expect("the sender does not panic");
    });
}

/// D3, without any help from the fences.
#[test]
fn loom_a_ticket_that_shows_a_ring_shows_its_frame() {
    loom::model(|| {
        let task = Task::new();
        let sender = thread::spawn({
            let task = Arc::clone(&task);
            move || {
                task.frames.fetch_add(1, Ordering::Relaxed);
                task.bell.wake();
            }
        });
        let ticket = task.bell.announce(Fences::Asymmetric);
        let frames = task.frames.load(Ordering::Relaxed);
        assert!(ticket == 0 || frames == 1, "ticket {ticket}, frames {frames}");
        task.bell.retract();
        sender.join().expect("the sender does not panic");
    });
}
