//! The lock around a session. A task with one thread takes it without an atomic read-modify-write; it is a mutex for
//! all others. Used by [`crate::Context`].
//!
//! A thread that has taken the lock many times in a row becomes its *owner*: the lock is *biased* to it. The owner
//! takes it by storing that it is inside (`held`) and then looking whether it still is the owner. Another thread that
//! wants the lock takes the bias back, once and for ever: it stores that the bias is *revoked*, and then waits until
//! the owner is not inside. So each of the two stores first and looks afterwards, and at least one of them sees the
//! other (X3). From then on everybody takes the mutex, which is called the *gate*.
//!
//! - X1: `bias` goes from nobody to the mark of one thread, and from there to the same mark, revoked,
//!   for ever. Only who holds the gate stores it.
//! - X2: `held` is stored by the owner only, so the owner's own reads of it are exact. The owner holds
//!   the lock by bias while `held` is set and it has seen its bias unrevoked after setting it. What
//!   runs in [`Guard::unlocked`] may take the lock, since the guard has left it, and has left it again when
//!   that is over.
//! - X3: a revoker and the owner are never inside together. The owner sets `held`, fences, then looks
//!   at the bias; the revoker revokes the bias, fences, then looks at `held`. Two full fences have an
//!   order. If the owner's is first, the revoker sees `held`, and waits until the owner has let go
//!   or has backed off; if the revoker's is first, the owner sees the revocation and backs off. The
//!   owner's fence may be a light one, as Y4 of [`crate::sync`] says for each of its executions. Where
//!   light fences cannot be had, there is no bias from the start.
//! - X4: a heavy fence that fails has ordered nothing, so the revoker waits instead, far longer than a
//!   processor keeps a store to itself: what the owner stored before it looked at the bias is visible
//!   then. So taking the lock never fails for this, and no caller has to give up with an operation
//!   under way. Light fences were registered, so this is for kernels that change their mind.
//! - X5: nobody waits for itself. `holder` is the mark of the thread that holds by the gate; only that
//!   thread stores its mark there. With X2, a thread knows whether it holds the lock already, also
//!   while a revoker waits for it.
//! - X6: who has given way inside the gate (`away`) comes back through the gate, whoever was there
//!   meanwhile: no bias is given while somebody is away.
//! - X7: the mark of a thread that has ended may belong to a new one, which then owns its bias. It
//!   acquires `held` as the ended one released it.
//! - X8: in a fork of the process no thread has the bias, since its word is wiped. So every thread goes to the gate,
//!   which refuses it before anything is locked: a thread that held a lock in the parent does not exist here. Where
//!   words cannot be wiped, there is no bias from the start.
//! - X9: whoever waits at the gate sleeps with a time limit, again and again. The launcher takes a thread that sleeps
//!   without one for one that only an awake thread can wake (`launcher/src/hang/idle.rs`), but a thread that is asleep
//!   in a call has the gate now and then, to look for messages.

#![expect(unsafe_code, reason = "a lock lends its value to whoever holds it")]

use std::cell::UnsafeCell;
use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use crate::fork::ProcessMark;
#[cfg(not(loom))]
use crate::fork::WipedWord as BiasWord;
#[cfg(loom)]
use crate::sync::BiasWord;
use crate::sync::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Fences, Mutex, MutexGuard, Ordering,
    register_light_fences_in_process, thread_mark, yield_now,
};

/// The mark of no thread.
const NOBODY: usize = 0;
/// Marks a bias that was taken back. Marks of threads are even.
const REVOKED: usize = 1;
/// As often in a row a thread takes the lock until it gets the bias: whoever sets a context up for
/// another thread shall not get it.
const TURNS: u32 = if cfg!(loom) { 1 } else { 16 };
/// A store is visible after some nanoseconds, and this is ten million of them (X4).
const SETTLED: Duration = Duration::from_millis(10);
/// The limit, which is never far from its end nor often reached (X9).
const TURN: Duration = Duration::from_secs(60);
/// Models know no asymmetric fences (X3).
const FENCES: Fences = if cfg!(loom) { Fences::Symmetric } else { Fences::InProcess };

/// Why a lock was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// This thread holds it already.
    Inside,
    /// This process is a fork of the one that has made it.
    Fork,
}

/// A value that one thread at a time can reach.
pub(crate) struct Lock<T> {
    /// Whose lock it is without the gate (X1).
    bias: BiasWord,
    /// Whether the owner is inside, by bias (X2).
    held: AtomicBool,
    /// Who is inside, by the gate (X5).
    holder: AtomicUsize,
    gate: Mutex<Turns>,
    /// How often a thread that came had to wait for another one: counted where it waits, so nowhere else does it cost.
    contended: AtomicU64,
    /// How many threads wait at the gate.
    waiting: AtomicU32,
    process: ProcessMark,
    value: UnsafeCell<T>,
}

// SAFETY: X3: a guard is the only way to the value, and one thread has one.
unsafe impl<T: Send> Sync for Lock<T> {}

/// Who came through the gate, to see whether one thread uses the lock alone.
struct Turns {
    last: usize,
    in_a_row: u32,
    /// Threads that have given way and will come back (X6).
    away: u32,
}

impl Turns {
    /// Counts a turn, and says whether the thread may have the bias.
    fn count(&mut self, mine: usize) -> bool {
        self.in_a_row = if self.last == mine { self.in_a_row.saturating_add(1) } else { 1 };
        self.last = mine;
        self.in_a_row >= TURNS && self.away == 0
    }
}

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        let lock = Self::with_bias(value, REVOKED);
        if lock.bias.is_wiped() && register_light_fences_in_process().is_ok() {
            lock.bias.store(NOBODY, Ordering::Relaxed);
        }
        lock
    }

    fn with_bias(value: T, bias: usize) -> Self {
        let word = BiasWord::new();
        word.store(bias, Ordering::Relaxed);
        Self {
            bias: word,
            held: AtomicBool::new(false),
            holder: AtomicUsize::new(NOBODY),
            gate: Mutex::new(Turns { last: NOBODY, in_a_row: 0, away: 0 }),
            contended: AtomicU64::new(0),
            waiting: AtomicU32::new(0),
            process: ProcessMark::new(),
            value: UnsafeCell::new(value),
        }
    }

    /// Takes the lock.
    ///
    /// # Errors
    /// [`Refusal`].
    #[inline(always)]
    pub(crate) fn lock(&self) -> Result<Guard<'_, T>, Refusal> {
        let mine = thread_mark();
        let bias: &AtomicUsize = &self.bias;
        if bias.load(Ordering::Relaxed) == mine && !self.is_held() {
            // The owner's entry, or its retreat (X3).
            self.held.store(true, Ordering::Relaxed);
            FENCES.light();
            if bias.load(Ordering::Relaxed) == mine {
                return Ok(Guard::new(self, None));
            }
            self.leave_by_bias();
        }
        self.enter_by_gate(mine)
    }

    /// Whether this process is a fork of the one that has made the lock (X8).
    pub(crate) fn is_fork(&self) -> bool {
        self.process.is_fork()
    }

    /// How often a thread that wanted the lock has waited for another one that had it.
    pub(crate) fn contended(&self) -> u64 {
        self.contended.load(Ordering::Relaxed)
    }

    #[cold]
    fn count_contention(&self) {
        self.contended.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits for the gate, if it has to (X9).
    fn come_to_gate(&self) -> MutexGuard<'_, Turns> {
        self.gate.try_lock().unwrap_or_else(|| {
            self.count_contention();
            self.waiting.fetch_add(1, Ordering::Relaxed);
            let gate = loop {
                if let Some(gate) = self.gate.try_lock_for(TURN) {
                    break gate;
                }
            };
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            gate
        })
    }

    #[inline(always)]
    fn leave_by_bias(&self) {
        self.held.store(false, Ordering::Release); // SYNC: held
    }

    /// Acquires what the owner did inside: for a revoker, and for the next owner of the mark (X7).
    #[inline(always)]
    fn is_held(&self) -> bool {
        self.held.load(Ordering::Acquire) // SYNC: held
    }

    #[inline(never)]
    fn enter_by_gate(&self, mine: usize) -> Result<Guard<'_, T>, Refusal> {
        if self.is_fork() {
            return Err(Refusal::Fork);
        }
        if self.is_inside(mine) {
            return Err(Refusal::Inside);
        }
        let mut gate = self.come_to_gate();
        match self.bias.load(Ordering::Relaxed) {
            NOBODY if gate.count(mine) => self.bias.store(mine, Ordering::Relaxed),
            bias if bias == NOBODY || bias == mine || is_revoked(bias) => {}
            owner => self.revoke(owner, || FENCES.heavy()),
        }
        Ok(Guard::new(self, self.settle(gate, mine)))
    }

    /// Whether this thread holds the lock already (X5).
    fn is_inside(&self, mine: usize) -> bool {
        let is_owner = self.bias.load(Ordering::Relaxed) & !REVOKED == mine;
        (is_owner && self.is_held()) || self.holder.load(Ordering::Relaxed) == mine
    }

    /// What holds the lock for a thread that has come through the gate: its bias if it has one, else the
    /// gate.
    fn settle<'a>(
        &self,
        gate: MutexGuard<'a, Turns>,
        mine: usize,
    ) -> Option<MutexGuard<'a, Turns>> {
        if self.bias.load(Ordering::Relaxed) == mine {
            self.held.store(true, Ordering::Relaxed);
            return None;
        }
        self.holder.store(mine, Ordering::Relaxed);
        Some(gate)
    }

    /// Takes the bias back, and waits until the owner is outside. The caller has the gate.
    fn revoke(&self, owner: usize, heavy_fence: impl FnOnce() -> io::Result<()>) {
        self.bias.store(owner | REVOKED, Ordering::Relaxed);
        if heavy_fence().is_err() {
            std::thread::sleep(SETTLED);
        }
        if self.is_held() {
            self.count_contention();
        }
        while self.is_held() {
            yield_now();
        }
    }
}

fn is_revoked(bias: usize) -> bool {
    bias & REVOKED != 0
}

/// A lock that this thread holds.
pub(crate) struct Guard<'a, T> {
    lock: &'a Lock<T>,
    /// The gate, unless the lock is held by bias.
    gate: Option<MutexGuard<'a, Turns>>,
    /// A guard stays with its thread, whose mark holds the lock.
    stays: PhantomData<*mut T>,
}

impl<'a, T> Guard<'a, T> {
    #[inline(always)]
    fn new(lock: &'a Lock<T>, gate: Option<MutexGuard<'a, Turns>>) -> Self {
        Self { lock, gate, stays: PhantomData }
    }

    /// Lets another thread have the lock, if one waits for it.
    #[inline(always)]
    pub(crate) fn bump(&mut self) {
        if self.gate.is_some() || is_revoked(self.lock.bias.load(Ordering::Relaxed)) {
            self.give_way();
        }
    }

    #[inline(never)]
    fn give_way(&mut self) {
        if self.gate.is_none() || self.lock.waiting.load(Ordering::Relaxed) > 0 {
            self.leave(MutexGuard::unlock_fair);
        }
    }

    /// Runs `body`, a pause, without the lock (X2), which is back even if that panics.
    pub(crate) fn unlocked(&mut self, body: impl FnOnce()) {
        let away = self.leave(drop);
        body();
        drop(away);
    }

    /// Leaves the lock, through the gate by `unlock`, until what it answers is dropped.
    fn leave(&mut self, unlock: impl FnOnce(MutexGuard<'a, Turns>)) -> Away<'_, 'a, T> {
        let gate = self.gate.take();
        let from_gate = gate.is_some();
        match gate {
            Some(mut gate) => {
                gate.away += 1;
                self.lock.holder.store(NOBODY, Ordering::Relaxed);
                unlock(gate);
            }
            None => self.lock.leave_by_bias(),
        }
        Away { guard: self, from_gate }
    }
}

/// A thread that has given way, and comes back when this is dropped.
struct Away<'g, 'a, T> {
    guard: &'g mut Guard<'a, T>,
    /// X6.
    from_gate: bool,
}

impl<T> Drop for Away<'_, '_, T> {
    fn drop(&mut self) {
        let mut gate = self.guard.lock.come_to_gate();
        gate.away -= u32::from(self.from_gate);
        self.guard.gate = self.guard.lock.settle(gate, thread_mark());
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: X3: nobody else is inside while this guard lives, and it lends by its own borrow.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: X3, as above; the guard is borrowed exclusively.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        match self.gate {
            None => self.lock.leave_by_bias(),
            Some(_) => self.lock.holder.store(NOBODY, Ordering::Relaxed),
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;
