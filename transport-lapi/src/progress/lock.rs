//! The lock around a session, used by [`crate::Context`]. A task with one thread takes it without an atomic
//! read-modify-write; with several threads it is a mutex.
//!
//! A thread that has taken the lock many times in a row becomes its *owner*: the lock is *biased* to it. The owner
//! enters by storing that it is inside (`held`) and then checking that it is still the owner. Another thread that wants
//! the lock takes the bias back, once and for ever: it stores that the bias is *revoked*, and then waits until the
//! owner is not inside. So each of the two stores first and loads afterwards, and at least one of them sees the other's
//! store (X3). From then on every thread takes the mutex, which is called the *gate*.
//!
//! - X1: `bias` changes from nobody to the mark of one thread, and from there to the same mark with the revoked bit,
//!   for ever, unless a revoker that does not wait finds the owner inside: it gives the bias back before it releases the
//!   gate. Only the holder of the gate stores it.
//! - X2: only the owner stores `held`, so the owner's own reads of it are exact. The owner holds the lock by bias while
//!   `held` is set and it has seen its bias unrevoked after setting it. The closure that [`Guard::unlocked`] runs may
//!   take the lock, since the guard has released it; the closure has released it again when it ends.
//! - X3: a revoker and the owner are never inside together. The owner sets `held`, fences, then loads the bias; the
//!   revoker revokes the bias, fences, then loads `held`. Two full fences have an order. If the owner's is first, the
//!   revoker sees `held`, and waits until the owner has left or backed off; if the revoker's is first, the owner sees
//!   the revocation and backs off. The owner's fence may be a light one, by Y4 of [`crate::platform::sync`], for each
//!   of its executions. If light fences are not available, the lock is never biased.
//! - X4: a heavy fence that fails has ordered nothing. The revoker then sleeps far longer than a processor delays a
//!   store, so it sees what the owner stored before it loaded the bias. So taking the lock never fails for this reason,
//!   and no caller must give up in the middle of an operation. The light fences were registered successfully, so this
//!   is for kernels that refuse later.
//! - X5: no thread waits for itself. `holder` is the mark of the thread that holds the lock by the gate; only that
//!   thread stores its mark there. Together with X2, a thread knows whether it already holds the lock, even while a
//!   revoker waits for it.
//! - X6: a thread that has released the gate for a while (`away`) returns through the gate, whoever had the lock
//!   meanwhile: no thread gets the bias while one is away.
//! - X7: a new thread may have the mark of one that has ended, and then owns its bias. It acquires `held` as the ended
//!   thread released it.
//! - X8: in a fork of the process no thread has the bias, since the kernel wipes its word. So every thread goes to the
//!   gate, which refuses it before anything is locked: a thread that held a lock in the parent does not exist in the
//!   fork. If words cannot be wiped, the lock is never biased.
//! - X9: a thread that waits at the gate sleeps with a time limit, repeatedly. The launcher assumes that only an awake
//!   thread can wake one that sleeps without a limit (`launcher/src/hang/idle.rs`). But the gate may be held by a
//!   thread that is asleep in a call, since it takes the lock now and then to look for messages.

#![expect(unsafe_code, reason = "a lock lends its value to whoever holds it")]

use std::cell::UnsafeCell;
use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use crate::platform::fork::ProcessMark;
#[cfg(not(loom))]
use crate::platform::fork::WipedWord as BiasWord;
#[cfg(loom)]
use crate::platform::sync::BiasWord;
use crate::platform::sync::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Fences, Mutex, MutexGuard, Ordering,
    thread_mark, yield_now,
};

/// The mark of no thread.
const NOBODY: usize = 0;
/// Marks a bias that was taken back. Marks of threads are even.
const REVOKED: usize = 1;
/// A thread gets the bias after taking the lock this often in a row, so that a thread which only sets a context up for
/// another one does not get it.
const TURNS: u32 = if cfg!(loom) { 1 } else { 16 };
/// A store becomes visible within nanoseconds; this is ten million of them (X4).
const SETTLED: Duration = Duration::from_millis(10);
/// Time limit of each sleep at the gate (X9).
const TURN: Duration = Duration::from_secs(60);
/// Loom has no model of asymmetric fences (X3).
const FENCES: Fences = if cfg!(loom) { Fences::Symmetric } else { Fences::InProcess };

/// Why a lock was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// This thread holds it already.
    Inside,
    /// This process is a fork of the one that made the lock.
    Fork,
}

/// A value that one thread at a time can reach.
pub(crate) struct Lock<T> {
    /// The thread that may enter without the gate (X1).
    bias: BiasWord,
    /// Whether the owner is inside by bias (X2).
    held: AtomicBool,
    /// The thread that is inside by the gate (X5).
    holder: AtomicUsize,
    gate: Mutex<Turns>,
    /// How often a thread had to wait for another one. Only a thread that waits counts, so the other paths pay nothing.
    contended: AtomicU64,
    /// How many threads wait at the gate.
    waiting: AtomicU32,
    process: ProcessMark,
    value: UnsafeCell<T>,
}

// SAFETY: X3: the value is reached only through a guard, and only one thread has a guard.
unsafe impl<T: Send> Sync for Lock<T> {}

/// Which threads came through the gate, to detect a thread that uses the lock alone.
struct Turns {
    last: usize,
    in_a_row: u32,
    /// Threads that have released the gate and will return (X6).
    away: u32,
}

impl Turns {
    /// Counts a turn, and returns whether the thread may get the bias.
    fn count(&mut self, mine: usize) -> bool {
        self.in_a_row = if self.last == mine { self.in_a_row.saturating_add(1) } else { 1 };
        self.last = mine;
        self.in_a_row >= TURNS && self.away == 0
    }
}

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        let lock = Self::with_bias(value, REVOKED);
        if lock.bias.is_wiped() && FENCES.register().is_ok() {
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
            // The owner enters, or backs off (X3).
            self.held.store(true, Ordering::Relaxed);
            FENCES.light();
            if bias.load(Ordering::Relaxed) == mine {
                return Ok(Guard::new(self, None));
            }
            self.leave_by_bias();
        }
        self.enter_by_gate(mine)
    }

    /// Takes the lock, unless another thread holds it.
    ///
    /// # Errors
    /// [`Refusal`].
    pub(crate) fn try_lock(&self) -> Result<Option<Guard<'_, T>>, Refusal> {
        let mine = thread_mark();
        // As in `lock`, of which every message passes no more functions than it must.
        if self.bias.load(Ordering::Relaxed) == mine && !self.is_held() {
            self.held.store(true, Ordering::Relaxed);
            FENCES.light();
            if self.bias.load(Ordering::Relaxed) == mine {
                return Ok(Some(Guard::new(self, None)));
            }
            self.leave_by_bias();
        }
        if self.is_fork() {
            return Err(Refusal::Fork);
        }
        if self.is_inside(mine) {
            return Err(Refusal::Inside);
        }
        let Some(gate) = self.gate.try_lock() else { return Ok(None) };
        let bias = self.bias.load(Ordering::Relaxed);
        let is_biased = bias != NOBODY && bias != mine && !is_revoked(bias);
        if is_biased && !self.try_revoke(bias) {
            return Ok(None);
        }
        Ok(Some(Guard::new(self, self.settle(gate, mine))))
    }

    /// Takes the bias back if the owner is outside, and returns whether it was. The caller holds the gate.
    fn try_revoke(&self, owner: usize) -> bool {
        if self.is_held() {
            return false;
        }
        self.bias.store(owner | REVOKED, Ordering::Relaxed);
        if FENCES.heavy().is_err() {
            std::thread::sleep(SETTLED);
        }
        let is_outside = !self.is_held();
        if !is_outside {
            self.bias.store(owner, Ordering::Relaxed);
        }
        is_outside
    }

    /// Whether this process is a fork of the one that made the lock (X8).
    pub(crate) fn is_fork(&self) -> bool {
        self.process.is_fork()
    }

    /// How often a thread has had to wait for the lock because another one held it.
    pub(crate) fn contended(&self) -> u64 {
        self.contended.load(Ordering::Relaxed)
    }

    #[cold]
    fn count_contention(&self) {
        self.contended.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes the gate; sleeps for it if it must (X9).
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

    /// Acquires the owner's writes: for a revoker, and for the next owner of the mark (X7).
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

    /// Makes a thread that has taken the gate the holder of the lock: by its bias if it has one, otherwise by the gate.
    /// Returns the gate in the second case.
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

    /// Takes the bias back, and waits until the owner is outside. The caller holds the gate.
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
    /// Keeps the guard in its thread, since the lock is held by that thread's mark.
    stays: PhantomData<*mut T>,
}

impl<'a, T> Guard<'a, T> {
    #[inline(always)]
    fn new(lock: &'a Lock<T>, gate: Option<MutexGuard<'a, Turns>>) -> Self {
        Self { lock, gate, stays: PhantomData }
    }

    /// Passes the lock to another thread for a turn, if one waits for it.
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

    /// Runs `body` with the lock free (X2), and takes the lock again even if `body` panics.
    #[inline]
    pub(crate) fn unlocked(&mut self, body: impl FnOnce()) {
        let away = self.leave(drop);
        body();
        drop(away);
    }

    /// Releases the lock until the result is dropped; releases the gate with `unlock`, if it is held.
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

/// The absence of a thread from the lock; dropping it takes the lock again.
struct Away<'g, 'a, T> {
    guard: &'g mut Guard<'a, T>,
    /// Whether the thread held the gate (X6).
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
        // SAFETY: X3: no other thread is inside while this guard lives, and the reference borrows the guard.
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
