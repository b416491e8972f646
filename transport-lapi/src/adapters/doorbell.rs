//! The bell of a task: where its threads sleep, and what a sender looks at after each frame.
//!
//! An event count in the segment, used by [`crate::adapters::port`]. A sleeper announces itself,
//! looks once more for work, and sleeps; a sender publishes its frame, looks for sleepers, and rings
//! only if there are any.
//!
//! - D1: no lost wake-up. The sleeper counts itself, fences, then looks for frames; the sender
//!   publishes a frame, fences, then looks at the count. Two full fences have an order. If the
//!   sleeper's is first, the sender sees the count and rings; if the sender's is first, the sleeper
//!   sees the frame.
//! - D2: a ring between announcing and sleeping is not lost: it changes the word that the ticket was
//!   read from, and the futex sleeps only while the word is the ticket.
//! - D3: a sleeper whose ticket already shows a ring sees the frame of that ring: the ring releases
//!   the word, the ticket acquires it.
//! - D4: asymmetric fences keep D1. The sender's half costs nothing: it keeps the compiler from
//!   moving the look at the count before the frame. The sleeper's half makes every running thread
//!   of the job's processes execute a full barrier (Y3 of [`crate::sync`]). Where that barrier falls
//!   into the sender's program decides which of the two cases of D1 it is. It needs every task to
//!   be registered, which they agree on at wireup; else all use full fences.
//! - D5: the same holds for a producer that sleeps for want of room and a consumer that gives room
//!   back: what the consumer publishes takes the frame's place in D1.

use std::time::Duration;

use crate::sync::{AtomicU32, FutexWord, Ordering};

/// Which fences the tasks of a job agreed on (D4). Senders pass the light one, between publishing and
/// looking for sleepers; sleepers the heavy one, between announcing and looking for frames.
pub(crate) use crate::sync::Fences;

/// The bell of one task.
#[repr(C)]
pub(crate) struct Bell {
    rung: FutexWord,
    sleepers: AtomicU32,
}

impl Bell {
    /// A thread of the bell's task is about to sleep. The caller then looks for work, and calls
    /// [`Bell::sleep`] with the returned ticket, or [`Bell::retract`].
    pub(crate) fn announce(&self, fences: Fences) -> u32 {
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        let ticket = self.rung.value().load(Ordering::Acquire); // SYNC: bell
        if fences.heavy().is_ok() {
            return ticket;
        }
        // Nothing was ordered, so sleeping would be wrong: a stale ticket returns at once.
        ticket.wrapping_sub(1)
    }

    /// Sleeps until the bell was rung after `ticket`, or `timeout` is over.
    pub(crate) fn sleep(&self, ticket: u32, timeout: Option<Duration>) {
        self.rung.wait(ticket, timeout);
        self.retract();
    }

    /// Ends an announcement.
    pub(crate) fn retract(&self) {
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
    }

    /// A frame for the bell's task was published.
    #[inline(always)]
    pub(crate) fn ring(&self, fences: Fences) {
        fences.light();
        if self.sleepers.load(Ordering::Relaxed) != 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        self.rung.value().fetch_add(1, Ordering::Release); // SYNC: bell
        self.rung.wake_all();
    }
}

#[cfg(all(test, loom))]
mod loom_tests;
