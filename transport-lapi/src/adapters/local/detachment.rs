//! A word by which a task declares that its memory must not be read any more.
//!
//! A task that gives up sets it before it releases the buffers that it has registered. A task that has read such a
//! buffer checks it before it uses the bytes. Each task has its own, separate from the mark of its loss, and it stays
//! set for ever.
//!
//! - WI1: if a reader finds the word unset after reading, it has read what the buffer contained while it was
//!   registered. The task sets the word, fences, and only then may the buffer change; the reader reads, fences, and
//!   then loads the word. If it has read anything that was written later, the two fences have an order, and it sees the
//!   word set. The kernel may do the reading: it has finished when its call returns.

use crate::platform::sync::{AtomicU32, Ordering, fence};

/// The word of the module's documentation; initially zero.
#[repr(transparent)]
pub(crate) struct Detachment(AtomicU32);

impl Detachment {
    #[cfg(all(test, loom))]
    fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Declares that the memory that the task has registered may change from now on.
    pub(crate) fn set(&self) {
        self.0.store(1, Ordering::Release); // SYNC: detached
        // Later stores, also those past the caches, become visible after the word.
        fence(Ordering::SeqCst);
    }

    /// Whether the memory read before this call may have changed meanwhile.
    pub(crate) fn is_set(&self) -> bool {
        fence(Ordering::Acquire); // SYNC: detached
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
            let word = Arc::new(Detachment::new());
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
