//! The bell of a task: where its threads sleep, and what a sender checks after each frame.
//!
//! It is an event count in the segment, used by [`crate::adapters::local::port`]. A sleeper announces itself, polls
//! once more, and sleeps; a sender publishes its frame, checks for sleepers, and rings only if there are any.
//!
//! - D1: no lost wake-up. The sleeper counts itself, fences, then polls for frames; the sender publishes a frame,
//!   fences, then loads the count. Two full fences have an order. If the sleeper's is first, the sender sees the count
//!   and rings; if the sender's is first, the sleeper sees the frame.
//! - D2: a ring between announcing and sleeping is not lost: it changes the word that the ticket was read from, and the
//!   futex sleeps only while the word equals the ticket.
//! - D3: a sleeper whose ticket already shows a ring sees the frame of that ring: the ring releases the word, the
//!   ticket's load acquires it.
//! - D4: asymmetric fences keep D1. The sender's half costs nothing: it keeps the compiler from moving the load of the
//!   count before the frame. The sleeper's half makes every running thread of the job's processes execute a full
//!   barrier (Y3 of [`crate::platform::sync`]). The point of the sender's program where that barrier falls decides
//!   between the two cases of D1. This needs every task to be registered, which they agree on at wireup; otherwise all
//!   use full fences.
//! - D5: the same holds for a producer that sleeps because there is no room, and a consumer that frees room: the
//!   published position takes the frame's place in D1.
//! - D6: where a task is sent marks ([`crate::adapters::local::arrivals`]) the count of sleepers of its bell is never 0.
//!   So the load that a sender makes after every frame leads it to the mark too, and tasks without marks pay nothing for
//!   them. There the mark takes the frame's place in D1: a fence follows it, and a second load of the count. Every bell is
//!   set up before any task sends there that needs a mark: for threads when the segment is made, for processes before
//!   these meet. Only the task that has spawned a world sends there before; each task of the world looks for frames of
//!   it once, after a heavy fence ([`crate::adapters::local::port`]'s `expect`). A later world sets up those of the first
//!   one, too. A task of this one looks for marks if its bell says so: that was stored, by the same sender or one before
//!   it, before the mark, so D1 covers it with the mark.
//! - D7: when the kernel interrupts the processors of several processes (Y3) it can miss one, and then D1 fails. So a
//!   waiting thread ([`crate::progress::context`]) polls again ten times a second: such a wake-up comes late, but it
//!   comes.

use std::cell::Cell;
use std::time::Duration;

use crate::adapters::local::arrivals::Arrivals;
use crate::platform::sync::{AtomicU32, FutexWord, Ordering};

/// The fences that the tasks of a job agreed on (D4). Senders execute the light one, between publishing and checking
/// for sleepers; sleepers the heavy one, between announcing and polling for frames.
pub(crate) use crate::platform::sync::Fences;

thread_local! {
    /// Whether this thread has woken sleepers since the last call of [`has_woken`].
    static WOKE: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread has woken sleepers since the last call. Not inlined: in a shared library, waits that end at once
/// would compute the place of the thread's value.
#[inline(never)]
pub(crate) fn has_woken() -> bool {
    WOKE.replace(false)
}

/// A bit in the count of sleepers, set if senders leave marks (D6).
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

    /// Makes senders leave marks. Called before any task sends that needs them (D6).
    pub(crate) fn want_marks(&self) {
        self.sleepers.fetch_or(MARKED, Ordering::Relaxed);
    }

    /// Whether there may be marks.
    #[inline(always)]
    pub(crate) fn wants_marks(&self) -> bool {
        self.sleepers.load(Ordering::Relaxed) & MARKED != 0
    }

    /// Announces that a thread of the bell's task is about to sleep. The caller then polls for work, and calls
    /// [`Bell::sleep`] with the returned ticket, or [`Bell::retract`].
    pub(crate) fn announce(&self, fences: Fences) -> u32 {
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        let ticket = self.rung.value().load(Ordering::Acquire); // SYNC: bell
        if fences.heavy().is_ok() {
            return ticket;
        }
        // Nothing was ordered, so the thread must not sleep: a stale ticket returns at once.
        ticket.wrapping_sub(1)
    }

    /// Sleeps until the bell was rung after `ticket`, or `timeout` is over, or a signal came. Returns whether it was
    /// rung.
    pub(crate) fn sleep(&self, ticket: u32, timeout: Option<Duration>) -> bool {
        self.rung.wait(ticket, timeout);
        self.retract();
        self.rung() != ticket
    }

    /// The ticket that [`Bell::announce`] would return now.
    pub(crate) fn rung(&self) -> u32 {
        self.rung.value().load(Ordering::Relaxed)
    }

    /// Ends an announcement.
    pub(crate) fn retract(&self) {
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Rings for a frame of `origin` that was published to the bell's task, which may need a mark of it: if it does not
    /// poll the ring of this frame in turn.
    #[inline(always)]
    pub(crate) fn ring_for(&self, origin: u32, needs_mark: impl FnOnce() -> bool, fences: Fences) {
        fences.light();
        if self.sleepers.load(Ordering::Relaxed) != 0 {
            self.mark_and_wake(origin, needs_mark(), fences);
        }
    }

    #[cold]
    fn mark_and_wake(&self, origin: u32, needs_mark: bool, fences: Fences) {
        if needs_mark {
            self.arrivals.mark(origin as usize);
            fences.light();
        }
        self.wake_sleepers();
    }

    /// Rings because a ring of the bell's task has room again, or because something else happened that its threads wait
    /// for.
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
