//! Models of a shared get: every interleaving of its origin and its target.
//!
//! The bytes of a slice are a cell of loom's, which reports it when the origin looks at a slice, or
//! gives it back, while the target may write it.

use std::sync::Arc;

use loom::thread;

use super::*;
use crate::sync::UnsafeCell;

const SLICES: u32 = 2;

struct Job {
    words: Words,
    /// What each slice holds in the origin's memory: the number of the get that wrote it.
    slices: [UnsafeCell<u32>; SLICES as usize],
}

impl Job {
    fn new() -> Arc<Self> {
        let zero = || AtomicU64::new(0);
        let words = Words { claims: zero(), done: zero(), addr: zero(), len: zero() };
        Arc::new(Self { words, slices: [UnsafeCell::new(0), UnsafeCell::new(0)] })
    }

    fn write(&self, slice: u32, number: u32) {
        // SAFETY: the model: loom reports it unless U1 and U2 make the slice this thread's.
        self.slices[slice as usize].with_mut(|at| unsafe { *at = number });
    }

    /// What the origin sees when the get has ended: the slice is its own again.
    fn look(&self, slice: u32) -> u32 {
        // SAFETY: as in `write`; as a write, so that any later one of the target is reported.
        self.slices[slice as usize].with_mut(|at| unsafe { *at })
    }

    fn open(&self, number: u32) -> Opened {
        Opened::new(&self.words, number, number.into(), 9, SLICES)
    }

    /// The origin carries a get out to its end.
    fn carry_out(&self, number: u32, mut opened: Opened) {
        loop {
            match opened.next(&self.words).expect("nobody damages the words") {
                Next::Copy(slice) => self.write(slice, number),
                Next::Wait => thread::yield_now(),
                Next::Over => break,
            }
        }
    }

    /// The target helps with a get once, if it still can.
    fn help(&self, number: u32, hand_back: bool) {
        if let Some((slice, addr)) = claim(&self.words, number, 9, SLICES) {
            assert_eq!(addr, number.into(), "the place is of this get (U3)");
            if !hand_back {
                self.write(slice, number);
            }
            finish(&self.words, hand_back.then_some(slice));
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
        for slice in 0..SLICES {
            assert_eq!(job.look(slice), 1);
        }
        job.carry_out(2, job.open(2));
        for slice in 0..SLICES {
            assert_eq!(job.look(slice), 2);
        }
        target.join().expect("the target does not panic");
    });
}

/// A slice that comes back is copied by the origin.
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
        for slice in 0..SLICES {
            assert_eq!(job.look(slice), 1);
        }
        target.join().expect("the target does not panic");
    });
}

/// The origin gives up in the middle: what it waited for is all that is ever written.
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
        if let Next::Copy(slice) = opened.next(&job.words).expect("nobody damages the words") {
            job.write(slice, 1);
        }
        opened.close(&job.words).expect("nobody damages the words");
        while !opened.is_settled(&job.words) {
            thread::yield_now();
        }
        for slice in 0..SLICES {
            job.look(slice);
        }
        target.join().expect("the target does not panic");
    });
}
