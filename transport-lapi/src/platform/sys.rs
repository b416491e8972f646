//! What differs from processor to processor ([`Processor`], sizes of caches, hints on cache lines), the number and the
//! ids of threads, and the clock.
//!
//! Used by [`crate::adapters`], by [`crate::memory::region`] and [`crate::memory::copy`] on their behalf, by
//! [`crate::lapi::nopoll`], and by [`crate::platform::sync`].

/// Size of a cache line.
pub(crate) const LINE: usize = 64;

/// Whether the calling thread is known to be the only one of its process.
pub(crate) fn is_only_thread() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
}

/// Returns bytes that nobody can guess.
///
/// # Errors
/// What the system answers.
pub(crate) fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let len = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    if len == N { Ok(bytes) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
}

/// Returns the nanoseconds of a clock that launcher and ranks share, so that failures in different processes can be
/// ordered.
pub fn monotonic_nanos() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

/// Returns the size in bytes of the second-level cache of processor 0, if the kernel says it.
pub(crate) fn second_level_cache() -> Option<usize> {
    if cfg!(miri) {
        return None;
    }
    let text = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index2/size").ok()?;
    text.trim_end().strip_suffix('K')?.parse::<usize>().ok()?.checked_mul(1 << 10)
}

/// Kinds of processors between which the copies of messages take different times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Processor {
    /// By Intel, without the instruction `cldemote`.
    Intel,
    /// By Intel, with it.
    IntelWithDemote,
    /// Any other, or not known.
    Other,
}

impl Processor {
    /// Returns the kind of this machine's processors.
    pub fn here() -> Self {
        match (processor::is_intel(), can_push_out()) {
            (true, false) => Self::Intel,
            (true, true) => Self::IntelWithDemote,
            (false, _) => Self::Other,
        }
    }
}

/// What an instruction writes to its only operand, a register.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri), not(loom)))]
macro_rules! register {
    ($instruction:literal) => {{
        let value: usize;
        std::arch::asm!($instruction, out(reg) value, options(nostack, preserves_flags, pure, readonly));
        value
    }};
}

#[cfg(not(loom))]
pub(crate) use processor::thread_pointer;
pub(crate) use processor::{can_push_out, prefetch, prefetch_to_write, push_out};

#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod processor {
    #![expect(unsafe_code, reason = "instructions of the processor")]

    use std::arch::asm;
    use std::arch::x86_64::{__cpuid, __cpuid_count, _MM_HINT_T0, _mm_prefetch};

    /// Hints the processor to fetch the cache line at `at`, which need not even be mapped.
    #[inline(always)]
    pub(crate) fn prefetch<T>(at: *const T) {
        // SAFETY: a prefetch is a hint; it never faults and changes no memory.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
    }

    /// The same for a line that is about to be written: fetched for exclusive use.
    #[inline(always)]
    pub(crate) fn prefetch_to_write<T>(at: *const T) {
        // SAFETY: as above; processors that do not know the instruction do nothing.
        unsafe { asm!("prefetchw [{0}]", in(reg) at, options(nostack, preserves_flags, readonly)) };
    }

    /// Hints the processor to move the cache line at `at`, which it has written, to a cache that all processors share:
    /// another one reads it from there sooner than from this one's own caches.
    #[inline(always)]
    pub(crate) fn push_out<T>(at: *const T) {
        // SAFETY: as above.
        unsafe { asm!("cldemote [{0}]", in(reg) at, options(nostack, preserves_flags, readonly)) };
    }

    /// Returns the address of this thread's control block, which no other living thread has. It costs one instruction;
    /// the address of a thread-local value costs a call where this is part of a shared library.
    #[inline(always)]
    pub(crate) fn thread_pointer() -> usize {
        // SAFETY: the platform's convention: the block of a thread begins with its own address.
        unsafe { register!("mov {0}, fs:[0]") }
    }

    /// Whether the processor follows that hint.
    #[allow(unused_unsafe, reason = "newer versions of the library declare these functions safe")]
    pub(crate) fn can_push_out() -> bool {
        const FEATURES: u32 = 7;
        const CLDEMOTE: u32 = 1 << 25;
        // SAFETY: every processor of this architecture has the instruction, and leaf 0 says which others it has.
        unsafe { __cpuid(0).eax >= FEATURES && __cpuid_count(FEATURES, 0).ecx & CLDEMOTE != 0 }
    }

    /// Whether the processor says that it is made by Intel.
    #[allow(unused_unsafe, reason = "as above")]
    pub(super) fn is_intel() -> bool {
        // SAFETY: as above.
        let leaf = unsafe { __cpuid(0) };
        [leaf.ebx, leaf.edx, leaf.ecx].map(u32::to_le_bytes).concat() == b"GenuineIntel"
    }
}

#[cfg(all(target_arch = "aarch64", not(miri), not(loom)))]
mod processor {
    #![expect(unsafe_code, reason = "instructions of the processor")]

    use std::arch::asm;

    /// Hints the processor to fetch the cache line at `at`, which need not even be mapped.
    #[inline(always)]
    pub(crate) fn prefetch<T>(at: *const T) {
        // SAFETY: a prefetch is a hint; it never faults and changes no memory.
        unsafe { asm!("prfm pldl1keep, [{at}]", at = in(reg) at, options(nostack, readonly)) };
    }

    /// The same for a line that is about to be written: fetched for exclusive use.
    #[inline(always)]
    pub(crate) fn prefetch_to_write<T>(at: *const T) {
        // SAFETY: as above.
        unsafe { asm!("prfm pstl1keep, [{at}]", at = in(reg) at, options(nostack, readonly)) };
    }

    /// There is no such hint here.
    pub(crate) fn push_out<T>(_: *const T) {}

    /// Returns the address of this thread's control block, which no other living thread has.
    #[inline(always)]
    pub(crate) fn thread_pointer() -> usize {
        // SAFETY: the platform's convention; only a register is read.
        unsafe { register!("mrs {0}, tpidr_el0") }
    }

    pub(crate) fn can_push_out() -> bool {
        false
    }

    pub(super) fn is_intel() -> bool {
        false
    }
}

/// On other processors, in models and under Miri: no hints, and an address that all have.
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri), not(loom))))]
mod processor {
    #[cfg(not(loom))]
    pub(crate) fn thread_pointer() -> usize {
        // At least two bytes long, so that its address is even.
        thread_local!(static MARK: u64 = const { 0 });
        MARK.with(|mark| std::ptr::from_ref(mark) as usize)
    }

    pub(crate) fn prefetch<T>(_: *const T) {}

    pub(crate) fn prefetch_to_write<T>(_: *const T) {}

    pub(crate) fn push_out<T>(_: *const T) {}

    pub(crate) fn can_push_out() -> bool {
        false
    }

    pub(super) fn is_intel() -> bool {
        false
    }
}
