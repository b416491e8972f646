//! Which origins have sent frames to a task, by marks, where there are too many rings to poll each: in worlds of more
//! than [`MOST_POLLED`] tasks, and between worlds.
//!
//! A sender publishes a frame and sets its mark at the target. The target reads the marks, which are in one cache line,
//! and polls only the rings of marked origins. So a poll costs the same for any number of tasks, and unused rings are
//! hardly touched: an origin has its mark alone, or in jobs with more places than a line has marks, with a few others. The
//! marks are part of the [`crate::adapters::local::doorbell::Bell`];
//! [`crate::adapters::local::port`] visits the rings.
//!
//! - AV1: no frame is lost. The sender publishes the frame and then releases its mark; the target acquires the marks,
//!   which clears them, and then polls the rings. If it acquired this mark, or a later one in the same word, it sees
//!   the frame. If not, the mark is still set.
//! - AV2: an origin is due from the moment its mark was acquired until its ring was seen empty after that. A visit that
//!   ends early, because of its budget, an error or a panic of the sink, leaves the origin due.
//! - AV3: all due origins are visited once before any is visited again, and marks are acquired in between; so no origin
//!   starves.
//! - AV4: marks are untrusted hints: a wrong one costs a poll of an empty ring, and one for a task that does not exist
//!   is ignored.

use crate::adapters::local::layout::{MAX_PLACES_PER_HOST, MAX_TASKS_PER_HOST};
use crate::platform::sync::{AtomicU64, Ordering};

/// Largest number of tasks of a world whose rings are all polled in turn; up to it, that is cheaper than marks.
pub(crate) const MOST_POLLED: usize = 16;

/// Bits per word.
const BITS: usize = 64;

/// Words of marks. Origins share a mark if their numbers differ by a multiple of [`MAX_TASKS_PER_HOST`].
const WORDS: usize = MAX_TASKS_PER_HOST / BITS;

/// Words that contain a bit for every task.
const ALL_WORDS: usize = MAX_PLACES_PER_HOST / BITS;

/// The marks of one task. Every bit pattern is valid, and zeros mean no marks.
#[repr(C)]
pub(crate) struct Arrivals([AtomicU64; WORDS]);

impl Arrivals {
    /// For bells outside a segment, in models.
    #[cfg(all(test, loom))]
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    /// Marks that `origin` has published frames (AV1).
    pub(crate) fn mark(&self, origin: usize) {
        self.0[origin / BITS % WORDS].fetch_or(1 << (origin % BITS), Ordering::Release); // SYNC: mark
    }

    /// Acquires the marks of one word. Loads first, so that a target that finds nothing does not take the cache line
    /// from the senders.
    fn take(&self, word: usize) -> u64 {
        match self.0[word].load(Ordering::Relaxed) {
            0 => 0,
            _ => self.0[word].swap(0, Ordering::Acquire), // SYNC: mark
        }
    }
}

/// The target's list of due origins.
pub(crate) struct Visits<'m> {
    arrivals: &'m Arrivals,
    tasks: usize,
    due: [u64; ALL_WORDS],
    /// Origins below this one have been visited (AV3).
    next: usize,
}

impl<'m> Visits<'m> {
    /// Makes the list for a task in a job of `tasks` tasks.
    pub(crate) fn new(arrivals: &'m Arrivals, tasks: usize) -> Self {
        Self { arrivals, tasks, due: [0; ALL_WORDS], next: 0 }
    }

    /// The next origin to visit; `None` if all due origins have been visited. The origin stays due until
    /// [`Visits::done`].
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

    /// Adds `origin`, whose frames may have no mark.
    pub(crate) fn expect(&mut self, origin: usize) {
        self.due[origin / BITS] |= 1 << (origin % BITS);
    }

    /// Removes `origin`, whose ring was seen empty (AV2).
    pub(crate) fn done(&mut self, origin: usize) {
        self.due[origin / BITS] &= !(1 << (origin % BITS));
    }

    /// Acquires new marks, and starts again with the first origin (AV3).
    pub(crate) fn collect(&mut self) {
        self.next = 0;
        let words = self.tasks.div_ceil(BITS);
        for word in 0..words.min(WORDS) {
            let marks = self.arrivals.take(word);
            if marks != 0 {
                self.due[word..words].iter_mut().step_by(WORDS).for_each(|due| *due |= marks);
            }
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;
