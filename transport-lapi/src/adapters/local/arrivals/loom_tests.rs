//! Models of the marks: in every interleaving, a published frame is found.
//!
//! A frame that is not found leaves the target waiting for ever, which loom reports.

use std::sync::Arc;

use loom::sync::atomic::AtomicU32;
use loom::thread;

use super::Visits;
use crate::adapters::local::doorbell::{Bell, Fences};
use crate::platform::sync::Ordering;

/// Tasks that a model has marks for.
const TASKS: usize = 20;

/// A target and the rings that lead to it.
struct Target {
    bell: Bell,
    fences: Fences,
    /// Stands for the rings: the number of frames that each origin has published.
    rings: [AtomicU32; 2],
}

impl Target {
    /// A target whose bell is not set up.
    fn new(fences: Fences) -> Arc<Self> {
        let bell = Bell::new();
        Arc::new(Self { bell, fences, rings: std::array::from_fn(|_| AtomicU32::new(0)) })
    }

    fn send(&self, origin: usize) {
        // Relaxed, so that only the mark can make the frame visible (AV1).
        self.rings[origin].fetch_add(1, Ordering::Relaxed);
        self.bell.ring_for(origin as u32, || true, self.fences);
    }

    /// One poll: visits all due origins, and returns the number of frames found.
    fn poll(&self, visits: &mut Visits<'_>, taken: &mut [u32; 2]) -> u32 {
        let mut found = 0;
        if !self.bell.wants_marks() {
            return found;
        }
        visits.collect();
        while let Some(origin) = visits.next() {
            let published = self.rings[origin].load(Ordering::Relaxed);
            found += published - taken[origin];
            taken[origin] = published;
            visits.done(origin);
        }
        found
    }
}

/// What a target does after a poll that found nothing; returns the number of frames that it found meanwhile.
type Idle = fn(&Target, &mut Visits<'_>, &mut [u32; 2]) -> u32;

/// Sends `frames` frames from each origin and takes them all.
fn model(origins: usize, frames: u32, fences: Fences, idle: Idle) {
    loom::model(move || {
        let target = Target::new(fences);
        target.bell.want_marks();
        let senders: Vec<_> = (0..origins)
            .map(|origin| {
                let target = Arc::clone(&target);
                thread::spawn(move || (0..frames).for_each(|_| target.send(origin)))
            })
            .collect();
        let mut visits = Visits::new(&target.bell.arrivals, TASKS);
        let (mut taken, mut found) = ([0; 2], 0);
        while found < frames * origins as u32 {
            found += match target.poll(&mut visits, &mut taken) {
                0 => idle(&target, &mut visits, &mut taken),
                some => some,
            };
        }
        for sender in senders {
            sender.join().expect("no sender panics");
        }
    });
}

fn yields(_: &Target, _: &mut Visits<'_>, _: &mut [u32; 2]) -> u32 {
    thread::yield_now();
    0
}

/// Like a waiting thread: announces, polls again, sleeps.
fn sleeps(target: &Target, visits: &mut Visits<'_>, taken: &mut [u32; 2]) -> u32 {
    let ticket = target.bell.announce(target.fences);
    let found = target.poll(visits, taken);
    if found == 0 {
        target.bell.sleep(ticket, None);
    } else {
        target.bell.retract();
    }
    found
}

/// AV1 without any help from the fences of the bell.
#[test]
fn loom_one_origin_is_found_three_times() {
    model(1, 3, Fences::Asymmetric, yields);
}

/// As above.
#[test]
fn loom_two_origins_of_one_word_are_found() {
    model(2, 2, Fences::Asymmetric, yields);
}

/// D6 of the bell.
#[test]
fn loom_a_mark_wakes_its_sleeper_twice() {
    model(1, 2, Fences::Symmetric, sleeps);
}

/// As above.
#[test]
fn loom_two_origins_wake_one_sleeper() {
    model(2, 1, Fences::Symmetric, sleeps);
}

/// D6 of the bell: the senders are of later worlds, so each sets the bell up before it sends.
fn model_of_later_worlds(frames: u32, fences: Fences, idle: Idle) {
    loom::model(move || {
        let target = Target::new(fences);
        let senders = [0, 1].map(|origin| {
            let target = Arc::clone(&target);
            thread::spawn(move || {
                target.bell.want_marks();
                (0..frames).for_each(|_| target.send(origin));
            })
        });
        let mut visits = Visits::new(&target.bell.arrivals, TASKS);
        let (mut taken, mut found) = ([0; 2], 0);
        while found < 2 * frames {
            found += match target.poll(&mut visits, &mut taken) {
                0 => idle(&target, &mut visits, &mut taken),
                some => some,
            };
        }
        for sender in senders {
            sender.join().expect("no sender panics");
        }
    });
}

#[test]
fn loom_later_worlds_are_found() {
    model_of_later_worlds(1, Fences::Asymmetric, yields);
}

#[test]
fn loom_later_worlds_wake_their_sleeper() {
    model_of_later_worlds(1, Fences::Symmetric, sleeps);
}
