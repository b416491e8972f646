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
//! - D5: the same holds for a producer that sleeps because there is no room, and a consumer that frees room: what the
//!   consumer publishes takes the frame's place in D1.
//! - D6: in a job whose tasks are marked ([`crate::adapters::arrivals`]) the count of sleepers is
//!   never 0, so that the one look that a sender takes after every frame leads it to the mark too,
//!   and jobs without marks pay nothing for them. There the mark takes the frame's place in D1: a
//!   fence follows it, and a second look at the count. Every task's bell is set up before any task
//!   sends: on the heap when the block is made, in a mapping before its tasks meet.
//! - D7: the kernel can miss a processor when it asks those of several processes (Y3), and D1 fails
//!   with it. So a waiting thread, [`crate::context`], looks again ten times a second: such a wake-up
//!   comes late, but it comes.

use std::cell::Cell;
use std::time::Duration;

use crate::adapters::arrivals::Arrivals;
use crate::sync::{AtomicU32, FutexWord, Ordering};

/// Which fences the tasks of a job agreed on (D4). Senders pass the light one, between publishing and
/// looking for sleepers; sleepers the heavy one, between announcing and looking for frames.
pub(crate) use crate::sync::Fences;

thread_local! {
    /// Whether this thread has woken sleepers since it was last asked.
    static WOKE: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread has woken sleepers since the last call.
pub(crate) fn has_woken() -> bool {
    WOKE.replace(false)
}

/// Stands in the count of sleepers beside their number where senders leave marks (D6).
const MARKED: u32 = 1 << 31;

/// The bell of one task.
#[repr(C)]
pub(crate) struct Bell {
    rung: FutexWord,
    sleepers: AtomicU32,
    pub(crate) arrivals: Arrivals,
}

impl Bell {
    /// For models, which have no segment.
    #[cfg(all(test, loom))]
    pub(crate) fn new() -> Self {
        let (rung, sleepers) = (FutexWord::new(), AtomicU32::new(0));
        Self { rung, sleepers, arrivals: Arrivals::new() }
    }

    /// From now on senders leave marks. Called before any task sends (D6).
    pub(crate) fn want_marks(&self) {
        self.sleepers.fetch_or(MARKED, Ordering::Relaxed);
    }

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

    /// Sleeps until the bell was rung after `ticket`, or `timeout` is over, or a signal came; returns
    /// whether it was rung.
    pub(crate) fn sleep(&self, ticket: u32, timeout: Option<Duration>) -> bool {
        self.rung.wait(ticket, timeout);
        self.retract();
        self.rung() != ticket
    }

    /// What a ticket given now would be.
    pub(crate) fn rung(&self) -> u32 {
        self.rung.value().load(Ordering::Relaxed)
    }

    /// Ends an announcement.
    pub(crate) fn retract(&self) {
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
    }

    /// A frame of `origin` for the bell's task was published.
    #[inline(always)]
    pub(crate) fn ring_for(&self, origin: u32, fences: Fences) {
        fences.light();
        if self.sleepers.load(Ordering::Relaxed) != 0 {
            self.mark_and_wake(origin, fences);
        }
    }

    #[cold]
    fn mark_and_wake(&self, origin: u32, fences: Fences) {
        if self.sleepers.load(Ordering::Relaxed) & MARKED != 0 {
            self.arrivals.mark(origin as usize);
            fences.light();
        }
        self.wake_sleepers();
    }

    /// Room in a ring of the bell's task was freed, or a thread of the task has news.
    #[inline(always)]
    pub(crate) fn ring(&self, fences: Fences) {
        fences.light();
        if self.sleepers.load(Ordering::Relaxed) != 0 {
            self.wake_sleepers();
        }
    }

    #[cold]
    fn wake_sleepers(&self) {
        if self.sleepers.load(Ordering::Relaxed) & !MARKED != 0 {
            self.wake();
        }
    }

    fn wake(&self) {
        self.rung.value().fetch_add(1, Ordering::Release); // SYNC: bell
        self.rung.wake_all();
        WOKE.set(true);
    }
}

#[cfg(all(test, loom))]
mod loom_tests;
