//! The primitives of shared memory: the standard library's, or loom's while a model runs.
//!
//! Used by the rings and the doorbell in [`crate::adapters`], and by [`crate::progress::lock`]. The standard library's
//! variants are valid if all their bytes are zero, as they are in a new job segment. Loom's are not, so models build
//! their rings from parts.
//!
//! - Y1: an [`UnsafeCell`] lends its address only to a closure, so that loom can see each read and write.
//! - Y2: a [`FutexWord`] compares and falls asleep in one step, as the kernel's futex does: a wake after the value has
//!   changed is never lost.
//! - Y3: between the start and the end of the heavy fence of [`Fences::Asymmetric`], every running thread of a
//!   registered process executes a full barrier (membarrier(2), MEMBARRIER_CMD_GLOBAL_EXPEDITED); a thread that is not
//!   running executed one when it was switched out. So if a light fence precedes that moment in program order, the
//!   accesses before it are visible after the heavy fence; if it follows that moment, the accesses after it see what
//!   preceded the heavy fence.
//! - Y4: the same for the threads of one process and [`Fences::InProcess`] (MEMBARRIER_CMD_PRIVATE_EXPEDITED). For this
//!   the kernel asks each processor which process it runs. For Y3 it reads a note per processor instead, which was seen
//!   to be out of date for a processor that was idle while the process registered (Linux 6.18). So if all threads
//!   belong to one process, rely on Y4.

use rustix::thread::MembarrierCommand;

pub(crate) use self::imp::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize, FutexWord, Mutex, MutexGuard, Ordering,
    UnsafeCell, fence, thread_mark, yield_now,
};
use self::imp::{light_fence, membarrier};

/// A pair of full fences, of which one is executed often and the other rarely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fences {
    /// The light one costs nothing, the heavy one a system call (Y3).
    Asymmetric,
    /// The same between threads of one process (Y4).
    InProcess,
    /// Both are full fences.
    Symmetric,
}

impl Fences {
    /// The fence that is executed often.
    #[inline(always)]
    pub(crate) fn light(self) {
        if self == Self::Symmetric { fence(Ordering::SeqCst) } else { light_fence() }
    }

    /// The fence that is executed rarely. An error means that nothing was ordered.
    pub(crate) fn heavy(self) -> std::io::Result<()> {
        match self {
            Self::Asymmetric => membarrier(MembarrierCommand::GlobalExpedited),
            Self::InProcess => membarrier(MembarrierCommand::PrivateExpedited),
            Self::Symmetric => {
                fence(Ordering::SeqCst);
                Ok(())
            }
        }
    }

    /// Registers this process; before that, the light fences order nothing. Kernels before 4.16, or before 4.14 for
    /// [`Fences::InProcess`], refuse. A process may register repeatedly; only the first time may take milliseconds, if
    /// there are several threads.
    pub(crate) fn register(self) -> std::io::Result<()> {
        match self {
            Self::Asymmetric => membarrier(MembarrierCommand::RegisterGlobalExpedited),
            Self::InProcess => membarrier(MembarrierCommand::RegisterPrivateExpedited),
            Self::Symmetric => Ok(()),
        }
    }
}

#[cfg(loom)]
pub(crate) use self::imp::BiasWord;

#[cfg(not(loom))]
mod imp {
    use std::time::Duration;

    use rustix::thread::{MembarrierCommand, futex};

    pub(crate) use parking_lot::{Mutex, MutexGuard};
    pub(crate) use std::sync::atomic::{
        AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use std::thread::yield_now;

    /// A number that no two living threads share; even, and not 0.
    pub(crate) use crate::platform::sys::thread_pointer as thread_mark;

    /// The cheap half of an asymmetric fence: it only restrains the compiler. The other half makes this processor
    /// execute a full barrier at some moment of that call (Y3).
    #[inline(always)]
    pub(crate) fn light_fence() {
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
    }

    /// The expensive half (Y3, Y4), or the registration for it. An error means that nothing was ordered.
    pub(crate) fn membarrier(command: MembarrierCommand) -> std::io::Result<()> {
        if cfg!(miri) {
            return Err(std::io::ErrorKind::Unsupported.into());
        }
        Ok(rustix::thread::membarrier(command)?)
    }

    /// A cell with loom's interface.
    #[repr(transparent)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        /// For rings outside a segment, in tests.
        #[cfg(test)]
        pub(crate) const fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        /// Lends the address for reading (Y1).
        #[inline(always)]
        pub(crate) fn with<R>(&self, body: impl FnOnce(*const T) -> R) -> R {
            body(self.0.get())
        }

        /// Lends the address for writing (Y1).
        #[inline(always)]
        pub(crate) fn with_mut<R>(&self, body: impl FnOnce(*mut T) -> R) -> R {
            body(self.0.get())
        }
    }

    /// A word that threads of several processes can sleep on.
    #[repr(transparent)]
    pub(crate) struct FutexWord(AtomicU32);

    impl FutexWord {
        /// The word itself.
        #[inline(always)]
        pub(crate) fn value(&self) -> &AtomicU32 {
            &self.0
        }

        /// Sleeps while the value is `expected`, at most for `timeout`. Returns early on a wake, on a signal, or if the
        /// value differs (Y2).
        pub(crate) fn wait(&self, expected: u32, timeout: Option<Duration>) {
            let timeout = timeout.map(|t| futex::Timespec {
                tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: t.subsec_nanos().into(),
            });
            // However the call returns, also with EAGAIN, EINTR or ETIMEDOUT, the caller checks again.
            let _ = futex::wait(&self.0, futex::Flags::empty(), expected, timeout.as_ref());
        }

        /// Wakes every sleeper, in every process.
        pub(crate) fn wake_all(&self) {
            // It could only fail for an unmapped word, and a reference is always mapped.
            let _ = futex::wake(&self.0, futex::Flags::empty(), i32::MAX as u32);
        }
    }
}

#[cfg(loom)]
mod imp {
    use std::time::Duration;

    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
    use std::ops::{Deref, DerefMut};

    use loom::sync::Condvar;

    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic::{
        AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use loom::thread::yield_now;

    /// Threads of a model are not threads of the system, so thread-local addresses cannot identify them.
    pub(crate) fn thread_mark() -> usize {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        (hasher.hash_one(loom::thread::current().id()) as usize | 2) & !1
    }

    /// [`crate::platform::fork::WipedWord`]: no process forks in a model.
    pub(crate) struct BiasWord(AtomicUsize);

    impl BiasWord {
        pub(crate) fn new() -> Self {
            Self(AtomicUsize::new(0))
        }

        pub(crate) fn is_wiped(&self) -> bool {
            true
        }
    }

    impl Deref for BiasWord {
        type Target = AtomicUsize;

        fn deref(&self) -> &AtomicUsize {
            &self.0
        }
    }

    /// The part of `parking_lot`'s mutex that is used here.
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.0.try_lock().ok().map(MutexGuard)
        }

        /// Models have no clocks: the limit is never reached.
        pub(crate) fn try_lock_for(&self, _: Duration) -> Option<MutexGuard<'_, T>> {
            Some(MutexGuard(lock(&self.0)))
        }
    }

    pub(crate) struct MutexGuard<'a, T>(loom::sync::MutexGuard<'a, T>);

    impl<T> MutexGuard<'_, T> {
        pub(crate) fn unlock_fair(this: Self) {
            drop(this);
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            &self.0
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            &mut self.0
        }
    }

    fn lock<T>(mutex: &loom::sync::Mutex<T>) -> loom::sync::MutexGuard<'_, T> {
        mutex.lock().expect("no model panics under the lock")
    }

    /// A model has no membarrier. Neither half orders anything, so a model with these shows what holds without them.
    pub(crate) fn light_fence() {}

    /// See [`light_fence`].
    pub(crate) fn membarrier(_: rustix::thread::MembarrierCommand) -> std::io::Result<()> {
        Ok(())
    }

    /// The kernel's futex, modelled: its bucket lock is a mutex, its queue a condition variable.
    pub(crate) struct FutexWord {
        value: AtomicU32,
        bucket: loom::sync::Mutex<()>,
        queue: Condvar,
    }

    impl FutexWord {
        #[cfg(test)]
        pub(crate) fn new() -> Self {
            Self {
                value: AtomicU32::new(0),
                bucket: loom::sync::Mutex::new(()),
                queue: Condvar::new(),
            }
        }

        pub(crate) fn value(&self) -> &AtomicU32 {
            &self.value
        }

        /// Time does not pass in a model, so a timeout never ends the sleep.
        pub(crate) fn wait(&self, expected: u32, _timeout: Option<Duration>) {
            let bucket = lock(&self.bucket);
            if self.value.load(Ordering::Relaxed) == expected {
                drop(self.queue.wait(bucket).expect("no model panics under the lock"));
            }
        }

        pub(crate) fn wake_all(&self) {
            let _bucket = lock(&self.bucket);
            self.queue.notify_all();
        }
    }
}
