//! Memory that other threads, of this process and of others, may read and write at any moment: windows of one-sided
//! communication, in which programs leave accesses unordered.
//!
//! - SB1: this process accesses the bytes by the copies of `copy/shared.rs`, which are atomic (CA1), or by other atomic
//!   operations, and never borrows them, unless the program orders all other accesses before and after. What other
//!   processes do with the memory is no access of this program.

#![expect(unsafe_code, reason = "memory that is shared with other threads")]

use std::marker::PhantomData;
use std::sync::atomic::AtomicU8;

#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
use super::copy::change_vectors;
use super::copy::{load_atomically, store_atomically};
use super::region::{ForeignBytes, RecvPart, blocks, clipped};

/// Bytes that other threads may read and write meanwhile (SB1), so they may be copied but not borrowed.
#[derive(Debug, Clone, Copy)]
pub struct SharedBytes<'a> {
    start: *mut u8,
    len: usize,
    life: PhantomData<&'a [AtomicU8]>,
}

impl SharedBytes<'_> {
    /// No bytes.
    pub const EMPTY: Self = Self { start: std::ptr::dangling_mut(), len: 0, life: PhantomData };

    /// Describes `len` bytes at `start`.
    ///
    /// # Safety
    /// They are there during `'a`, and whoever accesses them meanwhile keeps SB1.
    #[inline(always)]
    pub const unsafe fn new(start: *mut u8, len: usize) -> Self {
        Self { start, len, life: PhantomData }
    }

    /// Returns the length in bytes.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the length is 0.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns a pointer to the first byte. Accesses by it keep SB1.
    pub fn as_mut_ptr(&self) -> *mut u8 {
        self.start
    }

    /// Returns the part `offset..offset + len`, clipped to these bytes.
    #[inline(always)]
    pub fn part(&self, offset: usize, len: usize) -> Self {
        let (offset, len) = clipped(self.len, offset, len);
        Self { start: self.start.wrapping_add(offset), len, ..*self }
    }

    /// Copies as many of the bytes into `into` as fit: 1, 2, 4 or 8 at a multiple of their number by one access, of
    /// more each as it was at some moment.
    #[inline(always)]
    pub fn load(&self, into: RecvPart<'_>) {
        // SAFETY: SB1; G2 keeps others away from `into`; both are so long.
        unsafe { load_atomically(self.start, into.as_mut_ptr(), self.len.min(into.len())) };
    }

    /// Copies as many of the bytes from `from` as fit, by accesses like those of [`SharedBytes::load`].
    #[inline(always)]
    pub fn store(&self, from: ForeignBytes<'_>) {
        // SAFETY: SB1; G3 keeps `from` mapped, and threads of this process do not write it (G1); both are so long.
        unsafe { store_atomically(from.as_ptr(), self.start, self.len.min(from.len())) };
    }

    /// Replaces each whole vector of 32 bytes by what `change` makes of where it begins, of the vector there in `by`, and of
    /// its own bytes, by a load and a store like those of [`SharedBytes::load`]. Returns how many bytes these are: those
    /// behind them, or behind the end of `by`, stay as they are.
    ///
    /// # Safety
    /// The processor has AVX2.
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    #[inline]
    #[target_feature(enable = "avx2")]
    pub unsafe fn change_vectors(
        &self,
        by: &[u8],
        change: impl FnMut(usize, &[u8; 32], [u8; 32]) -> [u8; 32],
    ) -> usize {
        let by = &by[..by.len().min(self.len)];
        // SAFETY: SB1, and the caller's promise; `by` is no longer than these bytes.
        unsafe { change_vectors(self.start, by, change) }
    }

    /// Loads `count` blocks of `block` bytes, of which one begins every `step` bytes here, and every `into_step` bytes
    /// in `into`. Blocks that do not fit on both sides are left out.
    pub(crate) fn load_blocks(
        &self,
        step: usize,
        into: &RecvPart<'_>,
        into_step: usize,
        block: usize,
        count: usize,
    ) {
        let fit = blocks(self.len, step, block).min(blocks(into.len(), into_step, block));
        let (from, to) = ((self.start.cast_const(), step), (into.as_mut_ptr(), into_step));
        // SAFETY: as in `load`, for each block; `blocks` returns how many lie inside.
        each(block, count.min(fit), from, to, |from, to, len| unsafe {
            load_atomically(from, to, len);
        });
    }

    /// Stores blocks like [`SharedBytes::load_blocks`].
    pub(crate) fn store_blocks(
        &self,
        step: usize,
        from: ForeignBytes<'_>,
        from_step: usize,
        block: usize,
        count: usize,
    ) {
        let fit = blocks(self.len, step, block).min(blocks(from.len(), from_step, block));
        // SAFETY: as in `store`, for each block; `blocks` returns how many lie inside.
        each(
            block,
            count.min(fit),
            (from.as_ptr(), from_step),
            (self.start, step),
            |from, to, len| unsafe {
                store_atomically(from, to, len);
            },
        );
    }
}

/// Calls `copy` for so many blocks of `block` bytes, each a step behind the one before on both sides.
fn each(
    block: usize,
    count: usize,
    from: (*const u8, usize),
    to: (*mut u8, usize),
    copy: impl Fn(*const u8, *mut u8, usize),
) {
    // With a length known at compile time, the compiler makes one move of each block.
    match block {
        1 => each_of(1, count, from, to, copy),
        2 => each_of(2, count, from, to, copy),
        4 => each_of(4, count, from, to, copy),
        8 => each_of(8, count, from, to, copy),
        16 => each_of(16, count, from, to, copy),
        len => each_of(len, count, from, to, copy),
    }
}

#[inline(always)]
fn each_of(
    len: usize,
    count: usize,
    (mut from, from_step): (*const u8, usize),
    (mut to, to_step): (*mut u8, usize),
    copy: impl Fn(*const u8, *mut u8, usize),
) {
    for _ in 0..count {
        copy(from, to, len);
        (from, to) = (from.wrapping_add(from_step), to.wrapping_add(to_step));
    }
}
