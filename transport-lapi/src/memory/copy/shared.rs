//! Copies between memory that other threads may read and write at the same time, and memory of the caller.
//!
//! - CA1: each access to the shared memory is atomic and relaxed, for single bytes or words, so it is in no data race
//!   with others of this kind, in this process or another one. A word of 1, 2, 4 or 8 bytes at a multiple of its size is
//!   one access; of more bytes, a copy may have some old and some new ones. Where the accesses are in assembly, which the
//!   compiler neither looks into nor repeats, they are the moves to which it would translate atomic ones.

#![expect(unsafe_code, reason = "copies what the caller names")]

pub(crate) use imp::{load_atomically, store_atomically};

#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
pub(crate) use imp::change_vectors;

#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod imp {
    use std::arch::asm;
    use std::arch::x86_64::__m256i;
    use std::mem::transmute;

    use crate::memory::copy::LONG;
    use crate::memory::copy::processor::copy_long_atomically;

    pub(crate) use copy_atomically as load_atomically;
    pub(crate) use copy_atomically as store_atomically;

    /// Moves a number through a register.
    macro_rules! number {
        ($register:ident, $modifier:literal, $from:ident, $to:ident) => {
            asm!(
                concat!("mov {number", $modifier, "}, [{from}]"),
                concat!("mov [{to}], {number", $modifier, "}"),
                from = in(reg) $from, to = in(reg) $to, number = out($register) _,
                options(nostack, preserves_flags)
            )
        };
    }

    /// Moves what is at the beginning, and what is `$back` bytes behind it (CO1 of `region.rs`).
    macro_rules! both_ends {
        ($register:ident, $move:literal, $modifier:literal, $back:expr, $from:ident, $to:ident) => {
            asm!(
                concat!($move, " {first", $modifier, "}, [{from}]"),
                concat!($move, " {last", $modifier, "}, [{from} + {back}]"),
                concat!($move, " [{to}], {first", $modifier, "}"),
                concat!($move, " [{to} + {back}], {last", $modifier, "}"),
                from = in(reg) $from, to = in(reg) $to, back = in(reg) $back,
                first = out($register) _, last = out($register) _,
                options(nostack, preserves_flags)
            )
        };
    }

    /// Copies to or from memory that other threads may access meanwhile.
    ///
    /// # Safety
    /// Both are valid for `len` bytes and do not overlap. Others access at most one of them, and that atomically.
    #[inline(always)]
    pub(crate) unsafe fn copy_atomically(from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: the caller's promise; CO1 keeps every move inside.
        unsafe {
            match len {
                8 => number!(reg, "", from, to),
                4 => number!(reg, ":e", from, to),
                1 => number!(reg_byte, "", from, to),
                2 => number!(reg, ":x", from, to),
                0 => {}
                3 => both_ends!(reg, "mov", ":x", len - 2, from, to),
                5..8 => both_ends!(reg, "mov", ":e", len - 4, from, to),
                9..=16 => both_ends!(reg, "mov", "", len - 8, from, to),
                17..=32 => both_ends!(xmm_reg, "movups", "", len - 16, from, to),
                33..LONG => in_quarters(from, to, len),
                _ => copy_long_atomically(from, to, len),
            }
        }
    }

    /// Replaces each whole vector at `place`, which other threads may access meanwhile, by what `change` makes of where it
    /// begins, of the vector there in `by`, and of its own bytes. Returns how many bytes these are.
    ///
    /// # Safety
    /// As many bytes as `by` has are valid, and others access them atomically. The processor has AVX2.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) unsafe fn change_vectors(
        place: *mut u8,
        by: &[u8],
        mut change: impl FnMut(usize, &[u8; 32], [u8; 32]) -> [u8; 32],
    ) -> usize {
        let mut at = 0;
        let mut change_next = |by: &[u8]| {
            let Some(by) = by.first_chunk::<32>() else { return };
            let vector: __m256i;
            // SAFETY: the caller's promise: the vector lies inside. Any bytes are a vector, and the other way round.
            unsafe {
                let place = place.add(at);
                asm!(
                    "vmovdqu {vector}, [{place}]",
                    place = in(reg) place, vector = out(ymm_reg) vector,
                    options(nostack, preserves_flags, readonly)
                );
                let changed: __m256i =
                    transmute(change(at, by, transmute::<__m256i, [u8; 32]>(vector)));
                asm!(
                    "vmovdqu [{place}], {vector}",
                    place = in(reg) place, vector = in(ymm_reg) changed,
                    options(nostack, preserves_flags)
                );
            }
            at += 32;
        };
        // The compiler repeats no assembly in a loop by itself.
        let fours = by.chunks_exact(4 * 32);
        let ones = fours.remainder().chunks_exact(32);
        for four in fours {
            [0, 32, 64, 96].into_iter().for_each(|from| change_next(&four[from..]));
        }
        ones.for_each(change_next);
        by.len() - by.len() % 32
    }

    /// Copies 33 to [`LONG`] bytes like [`copy_atomically`].
    ///
    /// # Safety
    /// As there.
    unsafe fn in_quarters(from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: the caller's promise: the four moves are the first and last 32 of at most 64 bytes.
        let four = |at: usize, len: usize| unsafe {
            asm!(
                "movups {one}, [{from}]",
                "movups {two}, [{from} + 16]",
                "movups {three}, [{from} + {back}]",
                "movups {four}, [{from} + {back} + 16]",
                "movups [{to}], {one}",
                "movups [{to} + 16], {two}",
                "movups [{to} + {back}], {three}",
                "movups [{to} + {back} + 16], {four}",
                from = in(reg) from.add(at), to = in(reg) to.add(at), back = in(reg) len - 32,
                one = out(xmm_reg) _, two = out(xmm_reg) _, three = out(xmm_reg) _, four = out(xmm_reg) _,
                options(nostack, preserves_flags)
            );
        };
        let mut at = 0;
        while at + 64 < len {
            four(at, 64);
            at += 64;
        }
        match len.checked_sub(64) {
            Some(last) => four(last, 64),
            None => four(0, len),
        }
    }
}

/// On other processors, in models and under Miri.
#[cfg(not(all(target_arch = "x86_64", not(miri), not(loom))))]
mod imp {
    use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

    const WORD: usize = size_of::<u64>();

    /// Miri cannot model atomic accesses of several sizes to the same bytes, so all are single bytes there.
    const HAS_WORDS: bool = !cfg!(miri);

    /// Where the aligned words of `len` bytes at `place` begin and end.
    fn words(place: *const u8, len: usize) -> (usize, usize) {
        if !HAS_WORDS {
            return (len, len);
        }
        let head = place.align_offset(WORD).min(len);
        (head, len - (len - head) % WORD)
    }

    fn is_number(place: *const u8, len: usize) -> bool {
        HAS_WORDS && len.is_power_of_two() && place.addr() % len == 0
    }

    /// Copies to memory that other threads may access meanwhile.
    ///
    /// # Safety
    /// Both are valid for `len` bytes and do not overlap. Others access `to` only, and that atomically.
    pub(crate) unsafe fn store_atomically(from: *const u8, to: *mut u8, len: usize) {
        let (head, tail) = words(to, len);
        // SAFETY: the caller's promise; numbers and words are aligned.
        unsafe {
            match len {
                2 if is_number(to, len) => {
                    return AtomicU16::from_ptr(to.cast())
                        .store(from.cast::<u16>().read_unaligned(), Relaxed);
                }
                4 if is_number(to, len) => {
                    return AtomicU32::from_ptr(to.cast())
                        .store(from.cast::<u32>().read_unaligned(), Relaxed);
                }
                _ => {}
            }
            for at in (0..head).chain(tail..len) {
                AtomicU8::from_ptr(to.add(at)).store(from.add(at).read(), Relaxed);
            }
            for at in (head..tail).step_by(WORD) {
                let word = from.add(at).cast::<u64>().read_unaligned();
                AtomicU64::from_ptr(to.add(at).cast()).store(word, Relaxed);
            }
        }
    }

    /// Copies out of memory that other threads may access meanwhile.
    ///
    /// # Safety
    /// Both are valid for `len` bytes and do not overlap. Others access `from` only, and that atomically.
    pub(crate) unsafe fn load_atomically(from: *const u8, to: *mut u8, len: usize) {
        let (head, tail) = words(from, len);
        let place = from.cast_mut();
        // SAFETY: as in `store_atomically`.
        unsafe {
            match len {
                2 if is_number(from, len) => {
                    let number = AtomicU16::from_ptr(place.cast()).load(Relaxed);
                    return to.cast::<u16>().write_unaligned(number);
                }
                4 if is_number(from, len) => {
                    let number = AtomicU32::from_ptr(place.cast()).load(Relaxed);
                    return to.cast::<u32>().write_unaligned(number);
                }
                _ => {}
            }
            for at in (0..head).chain(tail..len) {
                to.add(at).write(AtomicU8::from_ptr(place.add(at)).load(Relaxed));
            }
            for at in (head..tail).step_by(WORD) {
                let word = AtomicU64::from_ptr(place.add(at).cast()).load(Relaxed);
                to.add(at).cast::<u64>().write_unaligned(word);
            }
        }
    }
}
