//! The queue of posted work: what other threads, and other contexts, give a context to do.
//!
//! Any thread appends; the thread that advances the context takes everything at once. A flag beside the lock says
//! whether there is anything, so that an advance without work takes no lock.
//!
//! - PQ1: the flag is set while the lock is held, after the item was appended, and cleared while it is held, when the
//!   items are taken. So it is set whenever the lock is free and there are items, and no item is forgotten.

use std::collections::VecDeque;

#[cfg(loom)]
use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering},
};
#[cfg(not(loom))]
use parking_lot::{Mutex, MutexGuard};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, Ordering};

/// Items in the order in which they were appended.
pub(crate) struct PostQueue<T> {
    items: Mutex<VecDeque<T>>,
    /// Whether there are items (PQ1).
    is_filled: AtomicBool,
    /// Whether somebody will take them.
    is_open: AtomicBool,
}

impl<T> PostQueue<T> {
    /// Makes an empty queue, which nobody reads yet.
    pub fn new() -> Self {
        let (is_filled, is_open) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { items: Mutex::new(VecDeque::new()), is_filled, is_open }
    }

    /// Says that somebody will take the items, or no longer does.
    pub fn set_open(&self, is_open: bool) {
        self.is_open.store(is_open, Ordering::Relaxed);
    }

    /// Whether somebody takes the items.
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// Appends an item.
    pub fn push(&self, item: T) {
        let mut items = self.lock();
        items.push_back(item);
        self.is_filled.store(true, Ordering::Relaxed);
    }

    /// Whether there are items.
    #[inline]
    pub fn is_filled(&self) -> bool {
        self.is_filled.load(Ordering::Relaxed)
    }

    /// Takes all items.
    pub fn take(&self) -> VecDeque<T> {
        let mut items = self.lock();
        self.is_filled.store(false, Ordering::Relaxed);
        std::mem::take(&mut *items)
    }

    /// Puts items back before those that were appended meanwhile.
    pub fn put_back(&self, mut earlier: VecDeque<T>) {
        if !earlier.is_empty() {
            let mut items = self.lock();
            earlier.append(&mut items);
            *items = earlier;
            self.is_filled.store(true, Ordering::Relaxed);
        }
    }

    #[cfg(not(loom))]
    fn lock(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.items.lock()
    }

    #[cfg(loom)]
    fn lock(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.items.lock().expect("no thread of the model panics")
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use std::sync::Arc;

    use loom::thread;

    use super::*;

    /// Two threads post while a third takes, and puts an item back once: each item is taken once more than it was put
    /// back, those of one thread in order.
    #[test]
    fn loom_posted_items_are_taken_once_and_in_order() {
        loom::model(|| {
            let queue = Arc::new(PostQueue::new());
            let post = |items: &'static [u32]| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || items.iter().for_each(|item| queue.push(*item)))
            };
            let posters = [post(&[1, 2]), post(&[11])];
            let mut taken = Vec::new();
            let first = queue.take();
            queue.put_back(first);
            taken.extend(queue.take());
            for poster in posters {
                poster.join().expect("no thread of the model panics");
            }
            taken.extend(queue.take());
            assert!(queue.take().is_empty());
            let of_first: Vec<_> = taken.iter().filter(|item| **item < 10).collect();
            assert_eq!(of_first, [&1, &2]);
            assert_eq!(taken.iter().filter(|item| **item > 10).count(), 1);
        });
    }
}
