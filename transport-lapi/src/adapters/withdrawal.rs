//! A task's word that its memory is not to be read any more.
//!
//! A task that gives up sets it before it lets go of the buffers that it has exposed; whoever has read such
//! a buffer looks at it before the bytes count. It is the task's own, apart from the word that says which
//! task was lost first, and stays set for ever.
//!
//! - WI1: what a reader has read before it found the word unset is what the buffer held while it was exposed.
//!   The task sets the word, fences, and only then may the buffer change; the reader reads, fences, and then
//!   looks. If it has read anything that was written later, the two fences have an order, and it sees the
//!   word set. The reads may be the kernel's: it has done them when its call returns.

use crate::sync::{AtomicU32, Ordering, fence};

/// See the module. All zero at first.
#[repr(transparent)]
pub(crate) struct Withdrawal(AtomicU32);

impl Withdrawal {
    #[cfg(loom)]
    fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// From now on, what the task has exposed may change.
    pub(crate) fn set(&self) {
        self.0.store(1, Ordering::Release); // SYNC: withdrawn
        // What is stored later, also past the caches, is seen later.
        fence(Ordering::SeqCst);
    }

    /// Whether what was read before this call may have changed meanwhile.
    pub(crate) fn is_set(&self) -> bool {
        fence(Ordering::Acquire); // SYNC: withdrawn
        self.0.load(Ordering::Relaxed) != 0
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// WI1, with a buffer of two words, which the kernel may read in any order.
    #[test]
    fn loom_no_reading_counts_that_saw_a_later_write() {
        loom::model(|| {
            let word = Arc::new(Withdrawal::new());
            let buffer = Arc::new([AtomicU32::new(7), AtomicU32::new(7)]);
            let task = thread::spawn({
                let (word, buffer) = (Arc::clone(&word), Arc::clone(&buffer));
                move || {
                    word.set();
                    buffer.iter().for_each(|byte| byte.store(8, Ordering::Relaxed));
                }
            });
            let read: Vec<u32> = buffer.iter().map(|byte| byte.load(Ordering::Relaxed)).collect();
            if !word.is_set() {
                assert_eq!(read, [7, 7]);
            }
            task.join().expect("the task does not panic");
        });
    }
}
