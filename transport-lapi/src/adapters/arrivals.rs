//! Who has something for a task: a mark per origin, for jobs with too many rings to look into each.
//!
//! A sender publishes a frame and marks itself at its target; the target looks at the marks, which
//! lie in one line, and visits only the rings of those who are marked. So a poll costs the same for
//! any number of tasks, and a ring that nobody ever wrote to, or waited for, is never touched. The marks lie in the
//! [`crate::adapters::doorbell::Bell`]; [`crate::adapters::port`] makes the visits.
//!
//! - AV1: no frame is lost. The sender publishes the frame and then releases its mark; the target
//!   acquires the marks, which clears them, and then looks into the rings. If it acquired the mark,
//!   or a later one of any origin in the same word, it sees the frame. If not, the mark still stands.
//! - AV2: an origin is due from the moment its mark was acquired until its ring was seen empty after
//!   that. A visit that ends early, by its budget, an error or a panic of the sink, leaves it due.
//! - AV3: all that are due are visited once before any is visited again, and marks are acquired in
//!   between; so nobody starves.
//! - AV4: a mark is a peer's claim, and only a hint: one that stands for nothing costs a look into an
//!   empty ring, and one for a task that the job has not is passed over.

use crate::adapters::layout::MAX_TASKS;
use crate::sync::{AtomicU64, Ordering};

/// Most tasks of a job whose rings are all polled in turn: up to here that is cheaper than marks.
pub(crate) const MOST_POLLED: usize = 16;

/// Bits of a word.
const BITS: usize = 64;

/// Words that hold a bit for every task.
const WORDS: usize = MAX_TASKS / BITS;

/// The marks of one task. Every bit pattern is valid, and zeros are no marks.
#[repr(C)]
pub(crate) struct Arrivals([AtomicU64; WORDS]);

impl Arrivals {
    /// For bells that live outside of a segment, in models.
    #[cfg(all(test, loom))]
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    /// Says that `origin` has published frames (AV1).
    pub(crate) fn mark(&self, origin: usize) {
        self.0[origin / BITS].fetch_or(1 << (origin % BITS), Ordering::Release); // SYNC: mark
    }

    /// Acquires the marks of one word. Looks first, so that a target that finds nothing does not
    /// take the line from those who send.
    fn take(&self, word: usize) -> u64 {
        match self.0[word].load(Ordering::Relaxed) {
            0 => 0,
            _ => self.0[word].swap(0, Ordering::Acquire), // SYNC: mark
        }
    }
}

/// The target's list of the origins that are due.
pub(crate) struct Visits<'m> {
    arrivals: &'m Arrivals,
    tasks: usize,
    due: [u64; WORDS],
    /// Origins below this one have had their visit (AV3).
    next: usize,
}

impl<'m> Visits<'m> {
    /// The visits of a task of a job of `tasks`.
    pub(crate) fn new(arrivals: &'m Arrivals, tasks: usize) -> Self {
        Self { arrivals, tasks, due: [0; WORDS], next: 0 }
    }

    /// The next origin to visit; `None` when all that are due have been visited. The origin stays due
    /// until [`Visits::done`].
    pub(crate) fn next(&mut self) -> Option<usize> {
        while self.next < self.tasks {
            let ahead = self.due[self.next / BITS] >> (self.next % BITS);
            if ahead != 0 {
                let origin = self.next + ahead.trailing_zeros() as usize;
                self.next = origin + 1;
                return Some(origin).filter(|&origin| origin < self.tasks); // AV4
            }
            self.next = (self.next / BITS + 1) * BITS;
        }
        None
    }

    /// The ring of `origin` was seen empty (AV2).
    pub(crate) fn done(&mut self, origin: usize) {
        self.due[origin / BITS] &= !(1 << (origin % BITS));
    }

    /// Acquires the marks that came meanwhile, and starts again with the first origin (AV3).
    pub(crate) fn collect(&mut self) {
        self.next = 0;
        for word in 0..self.tasks.div_ceil(BITS) {
            self.due[word] |= self.arrivals.take(word);
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;
