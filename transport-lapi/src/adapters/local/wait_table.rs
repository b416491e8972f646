//! What the threads of a task wait for, published in the segment for the launcher.
//!
//! There is one wait table per task. The task writes it, under the lock of its context, when a thread goes to sleep and
//! when it wakes; the launcher, or any process of the same user, reads it. The words are atomics, so a racing reader
//! sees an old or a new value of each; the epoch tells whether they belong together.
//!
//! - SL1: one thread at a time writes the wait table of a task (C1 of [`crate::progress::context`]). It makes the epoch
//!   odd, fences, writes, and makes the epoch even again with a release store.
//! - SL2: a reader loads the epoch, reads, fences, and loads the epoch again. If both loads return the same even
//!   number, everything it read was there together at one moment between them: had it seen a word of a later change,
//!   the fences would show it that change's odd epoch.
//! - SL3: the epoch only grows, by two per change. So a reader that finds the same epoch at two times knows that
//!   nothing has changed between them.
//! - SL4: the looks of a line are counted separately from the epoch, while its thread sleeps: they show that the thread
//!   still finds nothing, and change nothing else.
//! - SL5: an illegal phase, which only a damaged task writes, is read as an unknown one. All other words are legal.

use crate::adapter::ThreadState;
use crate::adapter::waits::{CallCode, Phase, Space, Wait};
use crate::platform::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// How many waiting threads of a task are listed; one in models, which explore every interleaving.
pub(crate) const LISTED: usize = if cfg!(loom) { 1 } else { 7 };

/// How often a reader tries to read a wait table that keeps changing.
const LOOKS: usize = 64;

/// The wait table of one task.
#[repr(C, align(128))]
pub(crate) struct WaitTable {
    epoch: AtomicU64,
    /// Counts deliveries, wrapping. Only the task writes it, on the path of messages.
    moves: AtomicU64,
    /// How many times somebody has asked for the task's queues.
    asked: AtomicU32,
    /// Not 0 if the task need not wait for the others before it ends.
    dismissed: AtomicU32,
    /// Number of sleeping threads that are not listed.
    unlisted: AtomicU32,
    /// The task's [`Traffic`], which only the task writes.
    offered: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    /// Where the client's counters are in the memory of the task; 0 for nowhere.
    counters: AtomicU64,
    lines: [WaitRecord; LISTED],
}

/// One thread's wait.
#[repr(C, align(64))]
#[derive(Default)]
struct WaitRecord {
    state: AtomicU32,
    ticket: AtomicU32,
    /// The call, and the operation in the upper half.
    calls: AtomicU32,
    open: AtomicU32,
    flags: AtomicU32,
    peer: AtomicU32,
    tag: AtomicU32,
    space: AtomicU32,
    label: AtomicU32,
    phase: AtomicU32,
    bytes: AtomicU64,
    since: AtomicU64,
    /// How many times threads of this line have polled in vain while asleep.
    looks: AtomicU32,
    thread: AtomicU32,
}

const FREE: u32 = 0;
const ASLEEP: u32 = 1;
const AWAKE: u32 = 2;
const FAILED: u32 = 3;

const SENDS: u32 = 1;
const ANY_PEER: u32 = 2;
const ANY_TAG: u32 = 4;
const ALONE: u32 = 8;
const UNWINDING: u32 = 16;
const AT_END: u32 = 32;
const COLLECTIVE: u32 = 64;
const NO_LABEL: u32 = 128;

/// The content of one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) wait: Wait,
    pub(crate) state: ThreadState,
    /// See [`WaitTable::looked_again`]. [`WaitTable::put`] does not write it.
    pub(crate) looks: u32,
}

/// The content of a wait table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) epoch: u64,
    pub(crate) moves: u64,
    pub(crate) entries: Vec<Entry>,
    pub(crate) unlisted: u32,
    pub(crate) traffic: Traffic,
}

/// Counts of what goes between a task and other hosts, wrapping (HA4 of [`crate::adapters::hosts`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// How often something was offered to the network.
    pub(crate) offered: u64,
    /// Events that will come of what the network has taken, here or at another task.
    pub(crate) sent: u64,
    /// Events that have come here.
    pub(crate) received: u64,
}

impl WaitTable {
    /// For models, which have no segment.
    #[cfg(all(test, loom))]
    pub(crate) fn new() -> Self {
        Self {
            epoch: AtomicU64::new(0),
            moves: AtomicU64::new(0),
            asked: AtomicU32::new(0),
            dismissed: AtomicU32::new(0),
            unlisted: AtomicU32::new(0),
            offered: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            counters: AtomicU64::new(0),
            lines: Default::default(),
        }
    }

    /// Writes `entry` into line `place`, which is clear. A place beyond the last line is only counted.
    pub(crate) fn put(&self, place: usize, entry: &Entry) {
        self.change(|| match self.lines.get(place) {
            Some(line) => line.put(entry),
            None => add(&self.unlisted, 1),
        });
    }

    /// Counts that the thread at `place` has polled again and found nothing.
    pub(crate) fn looked_again(&self, place: usize) {
        if let Some(line) = self.lines.get(place) {
            let looks = line.looks.load(Ordering::Relaxed).wrapping_add(1);
            line.looks.store(looks, Ordering::Release); // SYNC: looks
        }
    }

    /// Removes what [`WaitTable::put`] wrote at `place`.
    pub(crate) fn clear(&self, place: usize) {
        self.change(|| match self.lines.get(place) {
            Some(line) => line.state.store(FREE, Ordering::Relaxed),
            None => add(&self.unlisted, u32::MAX),
        });
    }

    /// Counts a delivery of messages to the task.
    #[inline(always)]
    pub(crate) fn moved(&self) {
        // Not an atomic addition: only the task writes it (SL1).
        self.moves.store(self.moves.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Publishes the task's traffic with other hosts. A wait that is put later publishes these stores with it.
    pub(crate) fn count(&self, traffic: Traffic) {
        self.offered.store(traffic.offered, Ordering::Relaxed);
        self.sent.store(traffic.sent, Ordering::Relaxed);
        self.received.store(traffic.received, Ordering::Relaxed);
    }

    /// Publishes where the client's counters are in the memory of the task; 0 for nowhere.
    pub(crate) fn count_at(&self, address: u64) {
        self.counters.store(address, Ordering::Relaxed);
    }

    /// What [`WaitTable::count_at`] has published, which is only an address for the kernel.
    pub(crate) fn counters(&self) -> u64 {
        self.counters.load(Ordering::Relaxed)
    }

    /// Asks for the task's queues. The caller wakes the task.
    pub(crate) fn ask(&self) {
        self.asked.fetch_add(1, Ordering::Release); // SYNC: inquiry
    }

    /// How many times somebody has asked.
    pub(crate) fn asked(&self) -> u32 {
        self.asked.load(Ordering::Acquire) // SYNC: inquiry
    }

    /// Releases the task from waiting for the others before it ends. The caller wakes the task.
    pub(crate) fn dismiss(&self) {
        self.dismissed.store(1, Ordering::Relaxed);
    }

    /// Whether the task was released by [`WaitTable::dismiss`].
    pub(crate) fn is_dismissed(&self) -> bool {
        self.dismissed.load(Ordering::Relaxed) != 0
    }

    /// Reads the wait table; `None` if it changed at every attempt (SL2).
    pub(crate) fn read(&self) -> Option<Reading> {
        (0..LOOKS).find_map(|_| self.look())
    }

    fn look(&self) -> Option<Reading> {
        let (epoch, mut reading) = self.at_one_moment(|| Reading {
            epoch: 0,
            moves: self.moves.load(Ordering::Relaxed),
            entries: self.lines.iter().filter_map(WaitRecord::read).collect(),
            unlisted: self.unlisted.load(Ordering::Relaxed),
            traffic: Traffic {
                offered: self.offered.load(Ordering::Relaxed),
                sent: self.sent.load(Ordering::Relaxed),
                received: self.received.load(Ordering::Relaxed),
            },
        })?;
        reading.epoch = epoch;
        Some(reading)
    }

    /// Returns the epoch and the result of `read`, if it was consistent (SL2).
    fn at_one_moment<R>(&self, read: impl FnOnce() -> R) -> Option<(u64, R)> {
        let epoch = self.epoch.load(Ordering::Acquire); // SYNC: wait table
        let found = read();
        fence(Ordering::Acquire);
        let unchanged = self.epoch.load(Ordering::Relaxed) == epoch;
        (unchanged && epoch % 2 == 0).then_some((epoch, found))
    }

    /// Changes the wait table as SL1 demands.
    fn change(&self, write: impl FnOnce()) {
        let epoch = self.epoch.load(Ordering::Relaxed) | 1;
        self.epoch.store(epoch, Ordering::Relaxed);
        fence(Ordering::Release);
        write();
        self.epoch.store(epoch.wrapping_add(1), Ordering::Release); // SYNC: wait table
    }
}

/// Adds to a word that has one writer, like [`WaitTable::moved`].
fn add(word: &AtomicU32, number: u32) {
    word.store(word.load(Ordering::Relaxed).wrapping_add(number), Ordering::Relaxed);
}

impl WaitRecord {
    fn put(&self, entry: &Entry) {
        let Entry { wait, state, .. } = entry;
        let flag = |set: bool, flag| if set { flag } else { 0 };
        let flags = flag(wait.sends, SENDS)
            | flag(wait.peer.is_none(), ANY_PEER)
            | flag(wait.tag.is_none(), ANY_TAG)
            | flag(wait.alone, ALONE)
            | flag(wait.unwinding, UNWINDING)
            | flag(wait.at_end, AT_END)
            | flag(wait.space.is_collective, COLLECTIVE)
            | flag(wait.space.label.is_none(), NO_LABEL);
        let (number, ticket) = match *state {
            ThreadState::Asleep { ticket } => (ASLEEP, ticket),
            ThreadState::Awake => (AWAKE, 0),
            ThreadState::Failed => (FAILED, 0),
        };
        let words = [
            (&self.ticket, ticket),
            (&self.calls, u32::from(wait.operation.0) << 16 | u32::from(wait.call.0)),
            (&self.open, wait.open),
            (&self.flags, flags),
            (&self.peer, wait.peer.unwrap_or(0)),
            (&self.tag, wait.tag.unwrap_or(0) as u32),
            (&self.space, wait.space.id),
            (&self.label, wait.space.label.unwrap_or(0)),
            (&self.phase, wait.phase as u32),
            (&self.thread, wait.thread),
            (&self.state, number),
        ];
        words.into_iter().for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        self.bytes.store(wait.bytes, Ordering::Relaxed);
        self.since.store(wait.since, Ordering::Relaxed);
    }

    fn read(&self) -> Option<Entry> {
        let word = |word: &AtomicU32| word.load(Ordering::Relaxed);
        let (flags, calls) = (word(&self.flags), word(&self.calls));
        let space = Space {
            context: 0,
            id: word(&self.space),
            label: (flags & NO_LABEL == 0).then_some(word(&self.label)),
            is_collective: flags & COLLECTIVE != 0,
        };
        let wait = Wait {
            call: CallCode(calls as u16),
            operation: CallCode((calls >> 16) as u16),
            open: word(&self.open),
            sends: flags & SENDS != 0,
            peer: (flags & ANY_PEER == 0).then_some(word(&self.peer)),
            tag: (flags & ANY_TAG == 0).then_some(word(&self.tag) as i32),
            space,
            bytes: self.bytes.load(Ordering::Relaxed),
            phase: Phase::ALL.get(word(&self.phase) as usize).copied().unwrap_or_default(),
            at_end: flags & AT_END != 0,
            alone: flags & ALONE != 0,
            unwinding: flags & UNWINDING != 0,
            since: self.since.load(Ordering::Relaxed),
            thread: word(&self.thread),
        };
        let state = match word(&self.state) {
            FREE => return None,
            ASLEEP => ThreadState::Asleep { ticket: word(&self.ticket) },
            FAILED => ThreadState::Failed,
            _ => ThreadState::Awake,
        };
        let looks = self.looks.load(Ordering::Acquire); // SYNC: looks
        Some(Entry { wait, state, looks })
    }
}

#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(all(test, loom))]
mod loom_tests;
