//! Copies of long bodies, by vectors with prefetches and past the caches, and of blocks. `region.rs` has the copy of
//! short bodies.
//!
//! A body in a ring or on its way into one lies in the caches of another processor. How long a copy takes then depends
//! on how many of its lines are requested at once. The string instruction that C libraries use from 2 KiB on requests
//! few on some processors, and a loop of vector moves alone only as many as its next moves need. [`copy_long`] requests
//! lines well ahead of its moves, those that it reads and those that it writes. On other processors the string
//! instruction takes less time for pieces of long messages, so [`copy_piece`] times both now and then.
//!
//! Memory in which other threads write at the same time has copies of its own (`shared.rs`). [`copy_long_atomically`] is
//! for long bodies there, so the moves of the loop are in assembly (CA1).
//!
//! - CP1: while a loop copies the step at `at`, `at + STEP <= len`.
//! - CP2: the moves behind the loop cover the last `STEP` bytes, `STEP <= len`, and rewrite with the same values what
//!   the loop has copied of these.

pub(crate) mod checks;
mod shared;
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod trial;

use std::sync::LazyLock;

use crate::memory::region::copy_short;
use crate::platform::sys;

pub(crate) use processor::{copy_long, copy_past_caches, copy_piece};
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
pub(crate) use shared::change_vectors;
pub(crate) use shared::{load_atomically, store_atomically};

/// Where a piece of a long message is copied to. The times of copies to different places are compared apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Toward {
    /// Memory that another processor reads next: the data ring or a block.
    Peer,
    /// Memory of the program, which is probably in this processor's caches.
    Program,
    /// Memory that other threads may write at the same time, or out of it.
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    Shared,
}

/// The shortest body worth a call of [`copy_long`]: shorter ones are copied before a prefetch would help.
pub(crate) const LONG: usize = 1024;

/// The longest copy whose both sides fit into the first-level cache of any processor.
const CACHED: usize = 16 << 10;

/// Whether short copies from and to other caches are as fast without prefetches: where the processor can push lines out.
static NEEDS_NO_PREFETCH: LazyLock<bool> = LazyLock::new(sys::can_push_out);

/// Copies like [`copy_short`], for memory that may lie in this processor's caches already: there the prefetches only
/// cost time.
///
/// # Safety
/// As [`std::ptr::copy_nonoverlapping`], for `len` bytes.
#[expect(unsafe_code, reason = "chooses between two copies")]
#[inline(always)]
pub(crate) unsafe fn copy_direct(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match len {
            LONG..=CACHED if *NEEDS_NO_PREFETCH => std::ptr::copy_nonoverlapping(from, to, len),
            _ => copy_short(from, to, len),
        }
    }
}

/// Copies `count` blocks of `block` bytes: one begins every `from_step` bytes in `from`, and every `to_step` bytes in
/// `to`.
///
/// # Safety
/// As [`std::ptr::copy_nonoverlapping`] for each block.
#[expect(unsafe_code, reason = "copies what the caller names")]
pub(crate) unsafe fn copy_blocks(
    from: *const u8,
    from_step: usize,
    to: *mut u8,
    to_step: usize,
    block: usize,
    count: usize,
) {
    // With a length known at compile time, the compiler makes one move of each block. With known steps too, one store
    // moves several numbers: these arms gather every second number of `from`.
    // SAFETY: the caller's promise.
    unsafe {
        match block {
            1 => each(from, from_step, to, to_step, 1, count),
            2 => each(from, from_step, to, to_step, 2, count),
            4 if (from_step, to_step) == (8, 4) => each(from, 8, to, 4, 4, count),
            8 if (from_step, to_step) == (16, 8) => each(from, 16, to, 8, 8, count),
            4 => each(from, from_step, to, to_step, 4, count),
            8 => each(from, from_step, to, to_step, 8, count),
            16 => each(from, from_step, to, to_step, 16, count),
            24 => each(from, from_step, to, to_step, 24, count),
            32 => each(from, from_step, to, to_step, 32, count),
            64 => each(from, from_step, to, to_step, 64, count),
            _ => each(from, from_step, to, to_step, block, count),
        }
    }
}

/// Copies the blocks of [`copy_blocks`], which calls this with constants.
///
/// # Safety
/// As [`copy_blocks`].
#[inline(always)]
#[expect(unsafe_code, reason = "copies what the caller names")]
unsafe fn each(
    from: *const u8,
    from_step: usize,
    to: *mut u8,
    to_step: usize,
    block: usize,
    count: usize,
) {
    for index in 0..count {
        // SAFETY: the caller's promise, for this block.
        unsafe {
            let (from, to) = (from.add(index * from_step), to.add(index * to_step));
            copy_short(from, to, block);
        }
    }
}

/// Whether [`copy_past_caches`] really bypasses the caches.
pub(crate) const PASSES_CACHES: bool = cfg!(all(target_arch = "x86_64", not(miri), not(loom)));

#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
#[expect(unsafe_code, reason = "vector moves and stores past the caches")]
mod processor {
    use std::arch::asm;
    use std::arch::x86_64::{
        __m128i, __m256i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128, _mm256_zeroupper,
    };
    use std::cell::RefCell;
    use std::ptr::copy_nonoverlapping;
    use std::time::Instant;

    use crate::memory::copy::trial::{Trial, Way};
    use crate::memory::copy::{CACHED, NEEDS_NO_PREFETCH, Toward};
    use crate::memory::region::copy_short;
    use crate::platform::sys::{LINE, prefetch, prefetch_to_write};

    /// The shortest copy of which both ways are timed: the shortest piece of a long message. The string instruction
    /// takes some time to start.
    const TIMED: usize = 16 << 10;

    thread_local! {
        /// By where the pieces go.
        static TRIALS: RefCell<[Trial; 3]> = const { RefCell::new([const { Trial::new() }; 3]) };
    }

    /// The longest body that is copied by vectors: the longest piece of a message in a ring. How to copy more is left
    /// to the C library.
    const LONGEST: usize = 64 << 10;

    const VECTOR: usize = size_of::<__m256i>();

    /// Bytes that one round of the loop copies: two cache lines.
    const STEP: usize = 4 * VECTOR;

    /// How many bytes ahead of its moves the loop prefetches. As many at the beginning of a body are not prefetched, so
    /// the distance is short for short bodies: one [`AHEAD_PART`]th of the length, within these limits.
    const AHEAD: [usize; 2] = [1 << 10, 4 << 10];
    const AHEAD_PART: usize = 16;

    /// Copies like [`copy_nonoverlapping`], and faster if the memory is in the caches of another processor.
    ///
    /// # Safety
    /// As there, for `len` bytes.
    pub(crate) unsafe fn copy_long(from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: the caller's promise; the processor has AVX where `by_vectors` is called.
        unsafe {
            if (STEP..=LONGEST).contains(&len) && is_x86_feature_detected!("avx") {
                by_vectors::<true>(from, to, len);
            } else {
                copy_nonoverlapping(from, to, len);
            }
        }
    }

    /// Copies like [`copy_long`] or like [`copy_nonoverlapping`], whichever has taken less time for pieces of long
    /// messages that go to such a place.
    ///
    /// # Safety
    /// As there, for `len` bytes.
    pub(crate) unsafe fn copy_piece(from: *const u8, to: *mut u8, len: usize, toward: Toward) {
        if !(TIMED..=LONGEST).contains(&len) {
            // SAFETY: the caller's promise.
            return unsafe { copy_short(from, to, len) };
        }
        // SAFETY: the caller's promise.
        timed(len, toward, |way| unsafe {
            match way {
                Way::Vectors => copy_long(from, to, len),
                Way::Library => copy_nonoverlapping(from, to, len),
            }
        });
    }

    /// Copies between memory that other threads may access at the same time and memory that they do not write (CA1), as
    /// fast as [`copy_piece`].
    ///
    /// # Safety
    /// Both are valid for `len` bytes and do not overlap; only one of them is accessed by other threads, atomically.
    pub(super) unsafe fn copy_long_atomically(from: *const u8, to: *mut u8, len: usize) {
        let has_vectors = is_x86_feature_detected!("avx");
        if has_vectors && (STEP..=CACHED).contains(&len) && *NEEDS_NO_PREFETCH {
            // SAFETY: the caller's promise; the processor has AVX.
            return unsafe { by_vectors::<false>(from, to, len) };
        }
        for at in (0..len).step_by(LONGEST) {
            let (from, to, len) =
                (from.wrapping_add(at), to.wrapping_add(at), LONGEST.min(len - at));
            // SAFETY: the caller's promise; the processor has AVX where `by_vectors` is called.
            let copy = |way| unsafe {
                match way {
                    Way::Vectors if has_vectors && len >= STEP => by_vectors::<true>(from, to, len),
                    _ => by_string(from, to, len),
                }
            };
            if len < TIMED { copy(Way::Vectors) } else { timed(len, Toward::Shared, copy) }
        }
    }

    /// Makes a copy of `len` bytes by the way that has taken less time for copies that go to such a place, and times it
    /// now and then.
    fn timed(len: usize, toward: Toward, copy: impl FnOnce(Way)) {
        let (way, is_timed) = TRIALS.with_borrow_mut(|all| all[toward as usize].choose(len));
        let start = is_timed.then(Instant::now);
        copy(way);
        if let Some(start) = start {
            let took = start.elapsed();
            TRIALS.with_borrow_mut(|all| all[toward as usize].record(took));
        }
    }

    /// Copies by the string instruction.
    ///
    /// # Safety
    /// As [`copy_long_atomically`].
    unsafe fn by_string(from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: the caller's promise; the direction flag is clear in all Rust code.
        unsafe {
            asm!(
                "rep movsb",
                inout("rsi") from => _, inout("rdi") to => _, inout("rcx") len => _,
                options(nostack, preserves_flags)
            );
        }
    }

    /// [`copy_long`] of at least [`STEP`] bytes. No line beyond the `len` bytes is prefetched: another processor may
    /// be writing it.
    ///
    /// # Safety
    /// As [`copy_nonoverlapping`] for `len` bytes. The processor must have AVX.
    #[target_feature(enable = "avx")]
    unsafe fn by_vectors<const FETCHES: bool>(from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: the caller's promise covers `len` bytes, and CP1 and CP2 keep all moves inside them. The aligned
        // stores begin at the first multiple of `VECTOR` behind `to`, and a vector covers the bytes before that.
        unsafe {
            copy_vector(from, to);
            let [least, most] = AHEAD;
            let ahead = (len / AHEAD_PART).clamp(least, most);
            let mut at = VECTOR - to.addr() % VECTOR;
            while at + STEP <= len {
                if FETCHES && at + ahead + STEP <= len {
                    for line in [ahead, ahead + LINE] {
                        prefetch(from.wrapping_add(at + line));
                        prefetch_to_write(to.wrapping_add(at + line));
                    }
                }
                asm!(
                    "vmovdqu {one}, [{from}]",
                    "vmovdqu {two}, [{from} + 32]",
                    "vmovdqu {three}, [{from} + 64]",
                    "vmovdqu {four}, [{from} + 96]",
                    "vmovdqa [{to}], {one}",
                    "vmovdqa [{to} + 32], {two}",
                    "vmovdqa [{to} + 64], {three}",
                    "vmovdqa [{to} + 96], {four}",
                    from = in(reg) from.add(at), to = in(reg) to.add(at),
                    one = out(ymm_reg) _, two = out(ymm_reg) _,
                    three = out(ymm_reg) _, four = out(ymm_reg) _,
                    options(nostack, preserves_flags)
                );
                at += STEP;
            }
            for behind in [STEP, STEP - VECTOR, 2 * VECTOR, VECTOR] {
                copy_vector(from.add(len - behind), to.add(len - behind));
            }
            // The compiler does not look into assembly. While upper halves of vectors are in use, instructions on lower ones
            // take longer on some processors.
            _mm256_zeroupper();
        }
    }

    /// Copies one vector.
    ///
    /// # Safety
    /// As [`copy_nonoverlapping`] for [`VECTOR`] bytes. The processor must have AVX.
    #[inline]
    #[target_feature(enable = "avx")]
    unsafe fn copy_vector(from: *const u8, to: *mut u8) {
        // SAFETY: the caller's promise; neither move needs an aligned address.
        unsafe {
            asm!(
                "vmovdqu {vector}, [{from}]",
                "vmovdqu [{to}], {vector}",
                from = in(reg) from, to = in(reg) to, vector = out(ymm_reg) _,
                options(nostack, preserves_flags)
            );
        }
    }

    /// Copies like [`copy_nonoverlapping`], but bypasses this processor's caches: bytes go to memory, and no line is
    /// fetched before it is overwritten. For that the last line is written as a whole, with zeros behind the bytes.
    ///
    /// # Safety
    /// As there, for `len` bytes. `to` is the start of a line and may be written up to the end of the last line.
    pub(crate) unsafe fn copy_past_caches(from: *const u8, to: *mut u8, len: usize) {
        let whole = len - len % LINE;
        // SAFETY: the caller's promise. The fence orders the stores before later ones, like ordinary stores.
        unsafe {
            for at in (0..whole).step_by(LINE) {
                stream_line(from.add(at), to.add(at));
            }
            if whole < len {
                let mut last = [0; LINE];
                copy_nonoverlapping(from.add(whole), last.as_mut_ptr(), len - whole);
                stream_line(last.as_ptr(), to.add(whole));
            }
            _mm_sfence();
        }
    }

    /// Copies one line past the caches.
    ///
    /// # Safety
    /// As [`copy_nonoverlapping`] for [`LINE`] bytes. `to` is the start of a line.
    #[inline]
    unsafe fn stream_line(from: *const u8, to: *mut u8) {
        for at in (0..LINE).step_by(size_of::<__m128i>()) {
            // SAFETY: the caller's promise; the place is aligned for such a store.
            unsafe { _mm_stream_si128(to.add(at).cast(), _mm_loadu_si128(from.add(at).cast())) };
        }
    }
}

/// On other processors, in models and under Miri: ordinary copies.
#[cfg(not(all(target_arch = "x86_64", not(miri), not(loom))))]
#[expect(unsafe_code, reason = "copies what the caller names")]
mod processor {
    pub(crate) use std::ptr::copy_nonoverlapping as copy_long;
    pub(crate) use std::ptr::copy_nonoverlapping as copy_past_caches;

    /// Copies.
    ///
    /// # Safety
    /// As [`std::ptr::copy_nonoverlapping`], for `len` bytes.
    pub(crate) unsafe fn copy_piece(
        from: *const u8,
        to: *mut u8,
        len: usize,
        _: crate::memory::copy::Toward,
    ) {
        // SAFETY: the caller's promise.
        unsafe { crate::memory::region::copy_short(from, to, len) };
    }
}

#[cfg(all(test, not(loom)))]
#[expect(unsafe_code, reason = "the copies are unsafe functions")]
mod tests {
    use super::*;
    use crate::platform::sys::LINE;

    type Copy = unsafe fn(*const u8, *mut u8, usize);

    /// Copies `len` bytes at `from_at` to `to_at`, and checks that these bytes changed and no others.
    fn check(copy: Copy, from_at: usize, to_at: usize, len: usize) {
        let mut from: Vec<u8> = (0..from_at + len).map(|i| (i % 251) as u8 + 1).collect();
        let mut to = vec![0; to_at + len + 64];
        // Memory that is read by atomic loads is borrowed like that which others write.
        let (source, place) = (from[from_at..].as_mut_ptr(), to[to_at..].as_mut_ptr());
        // SAFETY: both have `len` bytes there, and are distinct.
        unsafe { copy(source, place, len) };
        assert!(to[to_at..to_at + len] == from[from_at..], "{len} bytes from {from_at} to {to_at}");
        let mut around = to[..to_at].iter().chain(&to[to_at + len..]);
        assert!(around.all(|&byte| byte == 0), "around {len} bytes at {to_at}");
    }

    #[test]
    fn long_bodies_are_copied_and_nothing_else() {
        let lens =
            (500..=700).chain([1023, 2048, 4095, 16 << 10, (64 << 10) - 1, 64 << 10, 65 << 10]);
        // Few under Miri, which takes long for each byte.
        let lens = lens.filter(|&len| !cfg!(miri) || len <= 700 && len % 50 == 0);
        for (round, len) in lens.enumerate() {
            for to_at in [0, 1, 31, 32, round % 64] {
                check(copy_long, round % 7, to_at, len);
                check(copy_direct, round % 7, to_at, len);
            }
        }
    }

    /// Of every length up to some lines, and of lengths that take each way of long copies.
    #[test]
    fn shared_bytes_are_copied_and_nothing_else() {
        let lens = (0..=300).chain([1023, 1024, 4095, 16 << 10, (64 << 10) + 3, 200_000]);
        // As there.
        let lens = lens.filter(|&len| !cfg!(miri) || len <= 40 || len <= 300 && len % 50 == 0);
        for (round, len) in lens.enumerate() {
            for to_at in [0, 1, 4, round % 64] {
                check(load_atomically, round % 7, to_at, len);
                check(store_atomically, round % 7, to_at, len);
            }
        }
    }

    /// As many copies of one length as try both ways.
    #[test]
    fn pieces_are_copied_and_nothing_else() {
        unsafe fn to_peer(from: *const u8, to: *mut u8, len: usize) {
            // SAFETY: the promise of `check`.
            unsafe { copy_piece(from, to, len, Toward::Peer) };
        }
        unsafe fn to_program(from: *const u8, to: *mut u8, len: usize) {
            // SAFETY: the promise of `check`.
            unsafe { copy_piece(from, to, len, Toward::Program) };
        }
        for round in 0..if cfg!(miri) { 3 } else { 200 } {
            check(to_peer, round % 7, round % 64, 16 << 10);
            check(to_program, round % 64, round % 7, 16 << 10);
        }
        for len in [100, 1024, (64 << 10) + 1] {
            check(to_peer, 3, 5, len);
        }
    }

    /// Some lines of memory.
    #[repr(align(64))]
    struct Lines([u8; 5 * LINE]);

    #[test]
    fn bodies_past_the_caches_fill_whole_lines_and_nothing_else() {
        for len in 0..=4 * LINE {
            let from: Vec<u8> = (0..len + 7).map(|i| (i % 251) as u8 + 1).collect();
            let from = &from[len % 7..][..len];
            let mut to = Lines([255; 5 * LINE]);
            // SAFETY: both have `len` bytes there, and are distinct; `to` consists of lines.
            unsafe { copy_past_caches(from.as_ptr(), to.0.as_mut_ptr(), len) };
            let end = if PASSES_CACHES { len.next_multiple_of(LINE) } else { len };
            let (filled, behind) = to.0.split_at(end);
            assert_eq!(&filled[..len], from, "{len} bytes");
            assert!(filled[len..].iter().all(|&byte| byte == 0), "the last line of {len} bytes");
            assert!(behind.iter().all(|&byte| byte == 255), "behind {len} bytes");
        }
    }
}
