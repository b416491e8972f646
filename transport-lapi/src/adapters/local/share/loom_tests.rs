//! Models of a shared get: every interleaving of its origin and its target.
//!
//! Each unit is a loom cell, so loom reports it if the origin reads one that the target may still write.

use std::sync::Arc;

use loom::thread;

use super::*;
use crate::platform::sync::UnsafeCell;

const UNITS: usize = 2;

struct Job {
    words: Words,
    /// Each unit in the origin's memory contains the number of the get that wrote it.
    units: [UnsafeCell<u32>; UNITS],
}

impl Job {
    fn new() -> Arc<Self> {
        let zero = || AtomicU64::new(0);
        let words = Words { claims: zero(), done: zero(), addr: zero(), len: zero(), seal: zero() };
        Arc::new(Self { words, units: [UnsafeCell::new(0), UnsafeCell::new(0)] })
    }

    fn write(&self, slice: Slice, number: u32) {
        for unit in slice.first..slice.first + slice.units {
            // SAFETY: in the model loom reports it if U1 and U2 do not make the unit this thread's.
            self.units[usize::from(unit)].with_mut(|at| unsafe { *at = number });
        }
    }

    /// What the origin reads when the get has ended and the units are its own again.
    fn look(&self) -> [u32; UNITS] {
        // SAFETY: as in `write`; lent as for a write, so that loom reports any later write of the target.
        [0, 1].map(|unit: usize| self.units[unit].with_mut(|at| unsafe { *at }))
    }

    fn measure() -> Measure {
        Measure::of(UNITS * UNIT)
    }

    fn open(&self, number: u32) -> Opened {
        Opened::new(&self.words, number, number.into(), Self::measure())
    }

    /// The origin continues a get to its end.
    fn carry_out(&self, number: u32, mut opened: Opened) {
        loop {
            match opened.next(&self.words).expect("nobody damages the words") {
                NextSlice::Copy(slice) => self.write(slice, number),
                NextSlice::Wait => thread::yield_now(),
                NextSlice::Over => break,
            }
        }
    }

    /// The target tries to help with a get once.
    fn help(&self, number: u32, hand_back: bool) {
        if let Some((slice, addr)) = claim(&self.words, number, Self::measure()) {
            assert_eq!(addr, number.into(), "the place is of this get (U3)");
            if !hand_back {
                self.write(slice, number);
            }
            finish(&self.words, slice, !hand_back);
        }
    }
}

/// Both ends copy; then a second get, while the target still tries to help with the first one.
#[test]
fn loom_every_slice_is_copied_and_given_back_once() {
    loom::model(|| {
        let job = Job::new();
        let first = job.open(1);
        let target = thread::spawn({
            let job = Arc::clone(&job);
            move || {
                job.help(1, false);
                job.help(1, false);
                job.help(2, false);
            }
        });
        job.carry_out(1, first);
        assert_eq!(job.look(), [1; UNITS]);
        job.carry_out(2, job.open(2));
        assert_eq!(job.look(), [2; UNITS]);
        target.join().expect("the target does not panic");
    });
}

/// The origin copies a slice that the target returned.
#[test]
fn loom_a_slice_handed_back_is_copied_by_the_origin() {
    loom::model(|| {
        let job = Job::new();
        let opened = job.open(1);
        let target = thread::spawn({
            let job = Arc::clone(&job);
            move || job.help(1, true)
        });
        job.carry_out(1, opened);
        assert_eq!(job.look(), [1; UNITS]);
        target.join().expect("the target does not panic");
    });
}

/// The origin gives up in the middle: once it has stopped waiting, nothing more is written.
#[test]
fn loom_a_get_that_was_closed_is_written_by_nobody() {
    loom::model(|| {
        let job = Job::new();
        let mut opened = job.open(1);
        let target = thread::spawn({
            let job = Arc::clone(&job);
            move || {
                job.help(1, false);
                job.help(1, false);
            }
        });
        if let NextSlice::Copy(slice) = opened.next(&job.words).expect("nobody damages the words") {
            job.write(slice, 1);
        }
        opened.close(&job.words).expect("nobody damages the words");
        while !opened.is_settled(&job.words) {
            thread::yield_now();
        }
        job.look();
        target.join().expect("the target does not panic");
    });
}
