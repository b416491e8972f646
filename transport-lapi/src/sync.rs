//! The primitives of shared memory: the standard library's, or loom's while a model runs.
//!
//! Used by the rings and the doorbell in [`crate::adapters`], and by [`crate::lock`]. The standard library's variants are
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
//! - Y4: the same for the threads of one process and a [`heavy_fence_in_process`]
//!   (MEMBARRIER_CMD_PRIVATE_EXPEDITED). The kernel then asks each processor what it runs. For Y3 it keeps
//!   a note per processor, which was seen to be out of date for a processor that was idle while the
//!   process registered (Linux 6.18); so where all threads are of one process, Y4 is what to build on.

pub(crate) use self::imp::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize, FutexWord, Mutex, MutexGuard, Ordering,
    UnsafeCell, fence, heavy_fence, heavy_fence_in_process, light_fence, register_light_fences,
    register_light_fences_in_process, thread_mark, yield_now,
};

/// A pair of full fences, one of which is passed often and the other one seldom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fences {
    /// The light one costs nothing, the heavy one a system call (Y3).
    Asymmetric,
    /// The same, between threads of one process (Y4).
    InProcess,
    /// Both are full fences.
    Symmetric,
}

impl Fences {
    /// The fence that is passed often.
    #[inline(always)]
    pub(crate) fn light(self) {
        if self == Self::Symmetric { fence(Ordering::SeqCst) } else { light_fence() }
    }

    /// The fence that is passed seldom. An error means that nothing was ordered.
    pub(crate) fn heavy(self) -> std::io::Result<()> {
        match self {
            Self::Asymmetric => heavy_fence(),
            Self::InProcess => heavy_fence_in_process(),
            Self::Symmetric => {
                fence(Ordering::SeqCst);
                Ok(())
            }
        }
    }
}

#[cfg(loom)]
pub(crate) use self::imp::BiasWord;

#[cfg(not(loom))]
mod imp {
    use std::time::Duration;

    use rustix::thread::{MembarrierCommand, futex, membarrier};

    pub(crate) use parking_lot::{Mutex, MutexGuard};
    pub(crate) use std::sync::atomic::{
        AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use std::thread::yield_now;

    // Of two bytes or more, so that its place is an even number.
    thread_local!(static MARK: u64 = const { 0 });

    /// A number that no two living threads share; even, and not 0.
    #[inline(always)]
    pub(crate) fn thread_mark() -> usize {
        MARK.with(|mark| std::ptr::from_ref(mark) as usize)
    }

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

    /// The dear half between threads of this process (Y4). An error means that nothing was ordered.
    pub(crate) fn heavy_fence_in_process() -> std::io::Result<()> {
        Ok(membarrier(MembarrierCommand::PrivateExpedited)?)
    }

    /// Lets this process take part in asymmetric fences; until it has, [`light_fence`] orders
    /// nothing. Kernels before 4.16 refuse. A process that has registered may ask again: the kernel
    /// remembers, and only the first time may take milliseconds, if there are several threads.
    pub(crate) fn register_light_fences() -> std::io::Result<()> {
        if cfg!(miri) {
            return Err(std::io::ErrorKind::Unsupported.into());
        }
        Ok(membarrier(MembarrierCommand::RegisterGlobalExpedited)?)
    }

    /// As [`register_light_fences`], for [`heavy_fence_in_process`]. Kernels before 4.14 refuse.
    pub(crate) fn register_light_fences_in_process() -> std::io::Result<()> {
        if cfg!(miri) {
            return Err(std::io::ErrorKind::Unsupported.into());
        }
        Ok(membarrier(MembarrierCommand::RegisterPrivateExpedited)?)
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

    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
    use std::ops::{Deref, DerefMut};

    use loom::sync::Condvar;

    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic::{
        AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use loom::thread::yield_now;

    /// Threads of a model are not threads of the system, so they have no memory of their own.
    pub(crate) fn thread_mark() -> usize {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        (hasher.hash_one(loom::thread::current().id()) as usize | 2) & !1
    }

    /// [`crate::fork::WipedWord`]: no process forks in a model.
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

    /// `parking_lot`'s mutex, as far as it is used here.
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

    /// A model has no membarrier: neither half orders anything, so that a model with these shows what
    /// holds without them.
    pub(crate) fn light_fence() {}

    /// See [`light_fence`].
    pub(crate) fn heavy_fence() -> std::io::Result<()> {
        Ok(())
    }

    /// See [`light_fence`].
    pub(crate) fn heavy_fence_in_process() -> std::io::Result<()> {
        Ok(())
    }

    /// See [`light_fence`].
    pub(crate) fn register_light_fences() -> std::io::Result<()> {
        Ok(())
    }

    /// See [`light_fence`].
    pub(crate) fn register_light_fences_in_process() -> std::io::Result<()> {
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
