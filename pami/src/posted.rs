//! What is posted to a context. Any thread appends; whoever advances the context takes.
//!
//! - PO1: whoever appends or takes stores the length while it holds the queue's lock, so a look at the length that happens
//!   after an append reads what that has stored, or what was stored later: 0 only if the work was taken. So an advance that
//!   looks at nothing else passes over no work that was posted before it.
//! - PO2: work is taken in the order of appending, by one thread at a time, since only one holds the context; work that is
//!   to run again is appended by that thread, behind what came meanwhile.

use std::collections::VecDeque;

use sync::{AtomicBool, AtomicUsize, Mutex, MutexGuard, Ordering, PoisonError};

/// The primitives of the queue: the standard library's, or loom's while a model runs.
mod sync {
    pub use std::sync::PoisonError;
    pub use std::sync::atomic::Ordering;
    #[cfg(not(loom))]
    pub use std::sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicUsize},
    };

    #[cfg(loom)]
    pub use loom::sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicUsize},
    };
}

/// The posted work of a context.
pub(crate) struct Posted<W> {
    queue: Mutex<VecDeque<W>>,
    /// See PO1.
    len: AtomicUsize,
    /// Whether this task has created the context, and so will take.
    is_open: AtomicBool,
}

impl<W> Default for Posted<W> {
    fn default() -> Self {
        let (len, is_open) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self { queue: Mutex::new(VecDeque::new()), len, is_open }
    }
}

impl<W> Posted<W> {
    /// Appends work.
    pub fn push(&self, work: W) {
        let mut queue = self.lock();
        queue.push_back(work);
        self.len.store(queue.len(), Ordering::Relaxed);
    }

    /// Takes the first work.
    pub fn pop(&self) -> Option<W> {
        let mut queue = self.lock();
        let first = queue.pop_front();
        self.len.store(queue.len(), Ordering::Relaxed);
        first
    }

    /// Returns how much work there is (PO1).
    #[inline]
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Notes whether this task has the context.
    pub fn set_open(&self, is_open: bool) {
        self.is_open.store(is_open, Ordering::Relaxed);
    }

    /// Returns whether this task has the context.
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<W>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Models of the queue: threads that post, and one that advances.
#[cfg(all(test, loom))]
mod loom_tests {
    use std::sync::Arc;

    use loom::thread::{self, JoinHandle};

    use super::sync::AtomicBool;
    use super::*;

    fn post(queue: &Arc<Posted<u32>>, work: [u32; 2]) -> JoinHandle<()> {
        let queue = Arc::clone(queue);
        thread::spawn(move || work.into_iter().for_each(|one| queue.push(one)))
    }

    /// An advance: as much work as there is when it begins.
    fn advance(queue: &Posted<u32>, taken: &mut Vec<u32>) {
        for _ in 0..queue.len() {
            taken.push(queue.pop().expect("only this thread takes"));
        }
    }

    #[test]
    fn loom_all_posted_work_is_taken_once_and_in_order() {
        loom::model(|| {
            let queue = Arc::default();
            let threads = [[1, 2], [11, 12]].map(|work| post(&queue, work));
            let mut taken = Vec::new();
            advance(&queue, &mut taken);
            threads.into_iter().for_each(|one| one.join().expect("no thread panics"));
            advance(&queue, &mut taken);
            assert_eq!(queue.len(), 0);
            let of = |tens: u32| taken.iter().copied().filter(move |one| one / 10 == tens);
            assert_eq!((of(0).collect(), of(1).collect()), (vec![1, 2], vec![11, 12]));
        });
    }

    #[test]
    fn loom_an_advance_finds_what_was_posted_before_it() {
        loom::model(|| {
            let (queue, is_told) = (Arc::new(Posted::default()), Arc::new(AtomicBool::new(false)));
            let poster = {
                let (queue, is_told) = (Arc::clone(&queue), Arc::clone(&is_told));
                thread::spawn(move || {
                    queue.push(1);
                    // However the program says so.
                    is_told.store(true, Ordering::Release);
                    queue.push(2);
                })
            };
            let mut taken = Vec::new();
            advance(&queue, &mut taken);
            let was_posted = is_told.load(Ordering::Acquire);
            advance(&queue, &mut taken);
            assert!(!was_posted || taken.first() == Some(&1), "it was passed over");
            poster.join().expect("no thread panics");
        });
    }

    #[test]
    fn loom_work_that_runs_again_stays() {
        loom::model(|| {
            let queue = Arc::new(Posted::default());
            queue.push(0);
            let poster = post(&queue, [1, 2]);
            let again = queue.pop().expect("only this thread takes");
            queue.push(again);
            let mut taken = Vec::new();
            advance(&queue, &mut taken);
            poster.join().expect("no thread panics");
            advance(&queue, &mut taken);
            taken.sort_unstable();
            assert_eq!(taken, [0, 1, 2]);
        });
    }
}
