//! A bell that notes when threads are about to sleep on it, and when they have slept, for adapters whose next poll then
//! has more to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::adapter::Doorbell;

/// What has happened on a bell since its adapter asked last. Relaxed throughout: the thread that polls for its own sleep
/// has noted it itself.
#[derive(Default)]
pub(super) struct Notes {
    announced: AtomicBool,
    slept: AtomicBool,
}

impl Notes {
    /// Whether a thread has announced a sleep since the last call.
    #[inline]
    pub(super) fn takes_announcement(&self) -> bool {
        takes(&self.announced)
    }

    /// Whether a sleep has ended since the last call.
    #[inline]
    pub(super) fn takes_sleep(&self) -> bool {
        takes(&self.slept)
    }
}

#[inline]
fn takes(flag: &AtomicBool) -> bool {
    flag.load(Ordering::Relaxed) && flag.swap(false, Ordering::Relaxed)
}

/// See the head of this file.
pub(super) struct NotedBell {
    bell: Arc<dyn Doorbell>,
    notes: Arc<Notes>,
}

impl NotedBell {
    /// Makes a bell that notes what happens on `bell`, with its notes.
    pub(super) fn over(bell: Arc<dyn Doorbell>) -> (Arc<Self>, Arc<Notes>) {
        let notes = Arc::<Notes>::default();
        (Arc::new(Self { bell, notes: Arc::clone(&notes) }), notes)
    }
}

impl Doorbell for NotedBell {
    fn announce(&self) -> u32 {
        let ticket = self.bell.announce();
        self.notes.announced.store(true, Ordering::Relaxed);
        ticket
    }

    fn sleep(&self, ticket: u32, timeout: Option<Duration>) -> bool {
        let has_rung = self.bell.sleep(ticket, timeout);
        self.notes.slept.store(true, Ordering::Relaxed);
        has_rung
    }

    fn retract(&self) {
        self.bell.retract();
    }

    fn ring(&self) {
        self.bell.ring();
    }

    fn has_woken(&self) -> bool {
        self.bell.has_woken()
    }
}
