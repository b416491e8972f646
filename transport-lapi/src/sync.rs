//! The primitives of shared memory: the standard library's, or loom's while a model runs.
//!
//! Used by the rings and the doorbell in [`crate::adapters`]. The standard library's variants are
//! valid when all their bytes are zero, which is how a job segment begins its life; loom's are not,
//! so models build their rings from parts.
//!
//! - Y1: an [`UnsafeCell`] hands out its address only for the length of a closure, so that loom can
//!   see who reads and who writes.
//! - Y2: a [`FutexWord`] compares and falls asleep in one step, as the kernel's futex does: a wake
//!   after the value has changed is never lost.
//! - Y3: between the start and the end of a [`heavy_fence`], every thread that runs in a registered
//!   process executes a full barrier (membarrier(2), MEMBARRIER_CMD_GLOBAL_EXPEDITED); a thread that
//!   does not run has executed one when it was switched out. So if a [`light_fence`] stands before
//!   that moment in program order, what precedes it is visible to what follows the heavy fence; and
//!   if it stands after, what follows it sees what preceded the heavy fence.

#![allow(unsafe_code, reason = "loom's cell hands out raw pointers, and so does its stand-in")]

pub(crate) use self::imp::{
    AtomicU32, AtomicU64, FutexWord, Ordering, UnsafeCell, fence, heavy_fence, light_fence,
    register_light_fences,
};

#[cfg(not(loom))]
mod imp {
    use std::time::Duration;

    use rustix::thread::{MembarrierCommand, futex, membarrier};

    pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

    /// The cheap half of an asymmetric fence: it binds the compiler only. The other half makes this
    /// processor execute a full barrier at some moment of the call (Y3).
    #[inline(always)]
    pub(crate) fn light_fence() {
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
    }

    /// The dear half of an asymmetric fence (Y3). An error means that nothing was ordered.
    pub(crate) fn heavy_fence() -> std::io::Result<()> {
        Ok(membarrier(MembarrierCommand::GlobalExpedited)?)
    }

    /// Lets this process take part in asymmetric fences; until it has, [`light_fence`] orders
    /// nothing. Kernels before 4.16 refuse.
    pub(crate) fn register_light_fences() -> std::io::Result<()> {
        if cfg!(miri) {
            return Err(std::io::ErrorKind::Unsupported.into());
        }
        Ok(membarrier(MembarrierCommand::RegisterGlobalExpedited)?)
    }

    /// A cell with loom's interface.
    #[repr(transparent)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        /// For rings that live outside of a segment, in tests.
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

        /// Sleeps while the value is `expected`, at most for `timeout`. Returns early on a wake, on
        /// a signal, or when the value is another one (Y2).
        pub(crate) fn wait(&self, expected: u32, timeout: Option<Duration>) {
            let timeout = timeout.map(|t| futex::Timespec {
                tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: t.subsec_nanos().into(),
            });
            // Every way to return, EAGAIN, EINTR and ETIMEDOUT too, means: look again.
            let _ = futex::wait(&self.0, futex::Flags::empty(), expected, timeout.as_ref());
        }

        /// Wakes every sleeper, in every process.
        pub(crate) fn wake_all(&self) {
            // The only failure is an unmapped word, which a reference rules out.
            let _ = futex::wake(&self.0, futex::Flags::empty(), i32::MAX as u32);
        }
    }
}

#[cfg(loom)]
mod imp {
    use std::time::Duration;

    use loom::sync::{Condvar, Mutex};

    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

    /// A model has no membarrier: neither half orders anything, so that a model with these shows what
    /// holds without them.
    pub(crate) fn light_fence() {}

    /// See [`light_fence`].
    pub(crate) fn heavy_fence() -> std::io::Result<()> {
        Ok(())
    }

    /// See [`light_fence`].
    pub(crate) fn register_light_fences() -> std::io::Result<()> {
        Ok(())
    }

    /// The kernel's futex, modelled: its bucket lock is a mutex, its queue a condition variable.
    pub(crate) struct FutexWord {
        value: AtomicU32,
        bucket: Mutex<()>,
        queue: Condvar,
    }

    impl FutexWord {
        #[cfg(test)]
        pub(crate) fn new() -> Self {
            Self { value: AtomicU32::new(0), bucket: Mutex::new(()), queue: Condvar::new() }
        }

        pub(crate) fn value(&self) -> &AtomicU32 {
            &self.value
        }

        /// Time does not pass in a model, so a timeout never ends the sleep.
        pub(crate) fn wait(&self, expected: u32, _timeout: Option<Duration>) {
            let bucket = self.bucket.lock().expect("no model panics under the lock");
            if self.value.load(Ordering::Relaxed) == expected {
                drop(self.queue.wait(bucket).expect("no model panics under the lock"));
            }
        }

        pub(crate) fn wake_all(&self) {
            let _bucket = self.bucket.lock().expect("no model panics under the lock");
            self.queue.notify_all();
        }
    }
}
