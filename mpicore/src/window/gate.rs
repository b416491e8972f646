//! What ranks that share the memory of a window agree on there, for each target: who has the lock of its window, who waits
//! for it, and who updates its elements now.
//!
//! - WG1: two words exclude: the *gate*, which a thread has while it reads or changes the state of the lock, and the
//!   *serialiser*, which it has while it updates elements. A thread takes one by a compare-exchange from 0 to its rank + 1
//!   (Acquire) and gives it back by a store of 0 (Release). So all that the last owner stored is visible to the next one,
//!   whose stores come after. Nobody waits for anything else while he has one: they are taken for some hundred
//!   nanoseconds, and again for the next piece of a long update. Updates of memory of other processes take the serialiser
//!   for two copies by the system, of up to 64 KiB, or of the whole if the elements are no block.
//! - WG2: the state of the lock is read and written only with the gate, so its words are plain values in atomics.
//! - WG3: a lock is granted in the order in which ranks asked for it, as in [`super::locks`]. Whoever gives it back grants
//!   it to those whose turn has come, and tells them by a message. A rank asks at most once at a time, so the queue has
//!   a place for each.
//! - WG4: signals are counters: a rank adds 1 to one that is its own in the gate of another rank, which takes 1 away when it
//!   waits for it. A rank that has looked for some time says that it sleeps, looks once more, and waits for a message; one
//!   that signals looks afterwards whether the other one sleeps, and then sends it a message. All four are in one order
//!   (SeqCst), so one of the two sees what the other one has done.
//! - WG5: what other ranks have written are claims. Ranks beyond those of the window are taken for nobody, and a queue is
//!   read modulo its length.
//! - WG6: ranks that write into memory of other processes, which programs have brought, each have a count of their writes
//!   under way, and a word that closes their own memory. A rank adds 1 to its count before it looks whether the target is
//!   closed, and takes it away after the write. One that closes its memory looks afterwards at the counts, until it has
//!   seen each at 0. The count, the word and the looks at both are in one order (SeqCst), so a write that a count does not show finds the memory closed.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use super::LockKind;

/// What the ranks agree on for one target, followed by what each rank has (a byte each), and by the queue (a word each).
#[repr(C, align(128))]
pub(super) struct Gate {
    gate: AtomicU32,
    /// The rank + 1 that has the lock exclusively, or 0.
    exclusive: AtomicU32,
    /// The number of ranks that have it shared.
    shared: AtomicU32,
    /// The first place of the queue that is in use, and how many are.
    first: AtomicU32,
    waiting: AtomicU32,
    /// How many threads of the rank wait for a message that a signal has come.
    asleep: AtomicU32,
    serialiser: Apart,
    /// Writes of this rank's threads into memory of other processes, and whether its own memory is closed (WG6).
    writes: Apart,
    is_closed: Apart,
}

/// A write under way.
pub(super) struct Writing<'g>(&'g AtomicU32);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Gate {
    /// Calls `update` while no other rank updates elements of this one.
    #[inline]
    pub fn serialise<R, E>(
        &self,
        rank: u32,
        check: impl FnMut(u32) -> Result<(), E>,
        update: impl FnOnce() -> R,
    ) -> Result<R, E> {
        let _owned = own(&self.serialiser.0, rank, check)?;
        Ok(update())
    }

    /// Begins a write of this rank into the memory of another one; `None` if that is closed (WG6).
    pub fn begin_write(&self, target: &Self) -> Option<Writing<'_>> {
        let Apart(writes) = &self.writes;
        writes.fetch_add(1, Ordering::SeqCst);
        let writing = Writing(writes);
        (target.is_closed.0.load(Ordering::SeqCst) == 0).then_some(writing)
    }

    /// Closes the memory of this rank: other ranks write there only until their [`Gate::is_writing`] was false once.
    pub fn close(&self) {
        self.is_closed.0.store(1, Ordering::SeqCst);
    }

    /// Returns whether this rank's threads write into memory of other processes.
    pub fn is_writing(&self) -> bool {
        self.writes.0.load(Ordering::SeqCst) > 0
    }
}

/// What a rank tells another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// It has exposed its window.
    Post,
    /// It has completed its accesses.
    Complete,
}

#[repr(C, align(128))]
struct Apart(AtomicU32);

/// The gate of a target, with its lists.
#[derive(Clone, Copy)]
pub(super) struct Gated<'g> {
    pub gate: &'g Gate,
    /// Whether each rank has the lock.
    pub holders: &'g [AtomicU8],
    /// Ranks that wait, each with whether exclusively: twice the rank, or one more.
    pub queue: &'g [AtomicU32],
    /// The signals of each rank: of posts, then of completes.
    pub signals: &'g [AtomicU32],
}

/// The answer to a rank that asks for the lock, or looks whether it has got it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// It has the lock.
    Held,
    /// It waits behind this rank.
    Behind(u32),
}

/// Has one of the words until it is dropped.
struct Owned<'g>(&'g AtomicU32);

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release); // SYNC: gate of a window
    }
}

/// How often a word is looked at before other threads get the processor, and then before the caller is asked.
const LOOKS: u32 = 100;

/// Takes a word. `check` is asked from time to time whether its owner still lives.
fn own<'g, E>(
    word: &'g AtomicU32,
    rank: u32,
    mut check: impl FnMut(u32) -> Result<(), E>,
) -> Result<Owned<'g>, E> {
    for looks in 1_u32.. {
        let taken = word.compare_exchange_weak(0, rank + 1, Ordering::Acquire, Ordering::Relaxed); // SYNC: gate of a window
        match taken {
            Ok(_) => break,
            Err(_) if looks % LOOKS != 0 => std::hint::spin_loop(),
            Err(owner) => {
                std::thread::yield_now();
                owner.checked_sub(1).map_or(Ok(()), &mut check)?;
            }
        }
    }
    Ok(Owned(word))
}

impl Gated<'_> {
    /// Gives this signal of a rank. Returns whether it is to be told by a message, too (WG4).
    pub fn signal(self, signal: Signal, rank: u32) -> bool {
        self.counter(signal, rank).fetch_add(1, Ordering::SeqCst);
        self.gate.asleep.load(Ordering::SeqCst) > 0
    }

    /// Takes this signal of a rank, if it has come.
    pub fn take(self, signal: Signal, rank: u32) -> bool {
        let counter = self.counter(signal, rank);
        let taken =
            counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |now| now.checked_sub(1));
        taken.is_ok()
    }

    /// Returns whether this signal of a rank has come.
    pub fn has_come(self, signal: Signal, rank: u32) -> bool {
        self.counter(signal, rank).load(Ordering::SeqCst) > 0
    }

    /// Says that a thread sleeps, or does not any more.
    pub fn sleep(self, sleeps: bool) {
        let change = if sleeps { 1 } else { u32::MAX };
        self.gate.asleep.fetch_add(change, Ordering::SeqCst);
    }

    fn counter(&self, signal: Signal, rank: u32) -> &AtomicU32 {
        let (posts, completes) = self.signals.split_at(self.queue.len());
        let of_ranks = if signal == Signal::Post { posts } else { completes };
        &of_ranks[rank as usize]
    }

    /// Asks for the lock.
    #[inline]
    pub fn ask<E>(
        self,
        kind: LockKind,
        rank: u32,
        check: impl FnMut(u32) -> Result<(), E>,
    ) -> Result<Turn, E> {
        let _owned = own(&self.gate.gate, rank, check)?;
        let is_exclusive = kind == LockKind::Exclusive;
        let waiting = self.gate.waiting.load(Ordering::Relaxed);
        if waiting == 0 && !self.excludes(is_exclusive) {
            self.grant(rank, is_exclusive);
            return Ok(Turn::Held);
        }
        let turn = self.turn_at(waiting);
        self.place(waiting).store(2 * rank + u32::from(is_exclusive), Ordering::Relaxed);
        self.gate.waiting.store(waiting.saturating_add(1), Ordering::Relaxed);
        Ok(turn)
    }

    /// Returns whether a rank that has asked has got the lock.
    pub fn turn_of<E>(self, rank: u32, check: impl FnMut(u32) -> Result<(), E>) -> Result<Turn, E> {
        let _owned = own(&self.gate.gate, rank, check)?;
        let waiting = self.gate.waiting.load(Ordering::Relaxed).min(self.queue.len() as u32);
        let place = (0..waiting).find(|at| self.place(*at).load(Ordering::Relaxed) / 2 == rank);
        Ok(place.map_or(Turn::Held, |at| self.turn_at(at)))
    }

    /// Gives the lock of a rank back; one that waits does not any more. Returns the ranks that are to look whether they have got it: those that have, or
    /// the first one that waits, behind another holder now.
    #[inline]
    pub fn give_back<E>(
        self,
        rank: u32,
        check: impl FnMut(u32) -> Result<(), E>,
    ) -> Result<Vec<u32>, E> {
        let Gate { exclusive, shared, first, waiting, .. } = self.gate;
        let _owned = own(&self.gate.gate, rank, check)?;
        let has =
            self.holders.get(rank as usize).is_some_and(|has| has.load(Ordering::Relaxed) > 0);
        if !has {
            self.remove(rank);
        } else if exclusive.load(Ordering::Relaxed) == rank + 1 {
            exclusive.store(0, Ordering::Relaxed);
        } else {
            shared.store(shared.load(Ordering::Relaxed).saturating_sub(1), Ordering::Relaxed);
        }
        self.set_holder(rank, false);
        let mut told = Vec::new();
        for _ in 0..waiting.load(Ordering::Relaxed).min(self.queue.len() as u32) {
            let next = self.place(0).load(Ordering::Relaxed);
            let (next, is_exclusive) = (next / 2, next % 2 == 1);
            if self.excludes(is_exclusive) {
                told.extend(told.is_empty().then_some(next));
                break;
            }
            self.grant(next, is_exclusive);
            told.push(next);
            let ranks = self.queue.len() as u32;
            first.store((first.load(Ordering::Relaxed) % ranks + 1) % ranks, Ordering::Relaxed);
            waiting.store(waiting.load(Ordering::Relaxed).saturating_sub(1), Ordering::Relaxed);
        }
        told.retain(|next| (*next as usize) < self.queue.len());
        Ok(told)
    }

    /// Removes a rank from the queue.
    fn remove(self, rank: u32) {
        let waiting = self.gate.waiting.load(Ordering::Relaxed).min(self.queue.len() as u32);
        let entry = |at| self.place(at).load(Ordering::Relaxed);
        let Some(place) = (0..waiting).find(|at| entry(*at) / 2 == rank) else { return };
        (place + 1..waiting).for_each(|at| self.place(at - 1).store(entry(at), Ordering::Relaxed));
        self.gate.waiting.store(waiting - 1, Ordering::Relaxed);
    }

    fn excludes(self, is_exclusive: bool) -> bool {
        let Gate { exclusive, shared, .. } = self.gate;
        exclusive.load(Ordering::Relaxed) > 0 || is_exclusive && shared.load(Ordering::Relaxed) > 0
    }

    fn grant(self, rank: u32, is_exclusive: bool) {
        let Gate { exclusive, shared, .. } = self.gate;
        match is_exclusive {
            true => exclusive.store(rank + 1, Ordering::Relaxed),
            false => {
                shared.store(shared.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed)
            }
        }
        self.set_holder(rank, true);
    }

    fn set_holder(self, rank: u32, has: bool) {
        if let Some(holder) = self.holders.get(rank as usize) {
            holder.store(has.into(), Ordering::Relaxed);
        }
    }

    /// The place of the one at `at` of the queue.
    fn place(&self, at: u32) -> &AtomicU32 {
        let first = self.gate.first.load(Ordering::Relaxed);
        &self.queue[first.wrapping_add(at) as usize % self.queue.len()]
    }

    /// Whom the one at this place of the queue waits for: the one in front of it, or else a holder.
    fn turn_at(self, at: u32) -> Turn {
        let in_front = at.checked_sub(1).map(|at| self.place(at).load(Ordering::Relaxed) / 2);
        let holder = || self.holders.iter().position(|has| has.load(Ordering::Relaxed) > 0);
        let behind = in_front.or_else(|| holder().map(|rank| rank as u32)).unwrap_or(0);
        Turn::Behind(behind.min(self.queue.len() as u32 - 1))
    }
}

#[cfg(test)]
mod tests;
