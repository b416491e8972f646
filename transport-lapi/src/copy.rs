//! Copies of a few bytes without a call to the C library, alone and many in a row.
//!
//! Heads and short bodies are 8 to 64 bytes, where the call costs more than the copy. Used by the
//! rings on both sides, and by the regions of [`crate::region`], whose layouts are of short blocks often.
//!
//! - CO1: two moves of one width that overlap in the middle cover every length from that width to
//!   twice of it, and touch nothing else.

#![allow(unsafe_code, reason = "copies between raw shared memory and local memory")]

use std::ptr;

/// Copies `len` bytes from `from` to `to`.
///
/// # Safety
/// As [`ptr::copy_nonoverlapping`] over `len` bytes.
#[inline(always)]
pub(crate) unsafe fn copy_short(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's promise covers `len` bytes; CO1 keeps every move inside them.
    unsafe {
        match len {
            0 => {}
            1..4 => ends::<u8, u16>(from, to, len),
            4..8 => both_ends::<u32>(from, to, len),
            8..=16 => both_ends::<u64>(from, to, len),
            17..=32 => both_ends::<u128>(from, to, len),
            33..=64 => {
                // Not by one type of 32 bytes, which would go through the stack.
                let back = len - 32;
                both_ends::<u128>(from, to, 32);
                both_ends::<u128>(from.add(back), to.add(back), 32);
            }
            _ => ptr::copy_nonoverlapping(from, to, len),
        }
    }
}

/// Moves the first and the last `T` of `len` bytes (CO1): `len` is between one and two `T`.
///
/// # Safety
/// As [`copy_short`], and `size_of::<T>() <= len`.
#[inline(always)]
unsafe fn both_ends<T: Copy>(from: *const u8, to: *mut u8, len: usize) {
    let back = len - size_of::<T>();
    // SAFETY: both ranges of `size_of::<T>()` bytes lie inside `len`; any bytes are a valid integer.
    unsafe {
        let first = from.cast::<T>().read_unaligned();
        let last = from.add(back).cast::<T>().read_unaligned();
        to.cast::<T>().write_unaligned(first);
        to.add(back).cast::<T>().write_unaligned(last);
    }
}

/// Moves 1 to 3 bytes: the first one and, from two on, the last two.
///
/// # Safety
/// As [`copy_short`], and `1 <= len < 4`.
#[inline(always)]
unsafe fn ends<One: Copy, Two: Copy>(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: both moves lie inside `len` bytes.
    unsafe {
        to.cast::<One>().write_unaligned(from.cast::<One>().read_unaligned());
        if len >= size_of::<Two>() {
            let back = len - size_of::<Two>();
            let last = from.add(back).cast::<Two>().read_unaligned();
            to.add(back).cast::<Two>().write_unaligned(last);
        }
    }
}

/// Copies `count` blocks of `block` bytes from every `from_step` bytes of `from` to every `to_step` bytes of `to`.
///
/// # Safety
/// As [`ptr::copy_nonoverlapping`] for each block.
pub(crate) unsafe fn copy_blocks(
    from: *const u8,
    from_step: usize,
    to: *mut u8,
    to_step: usize,
    block: usize,
    count: usize,
) {
    // A length that is known when this is compiled makes one move of a block.
    // SAFETY: the caller's promise.
    unsafe {
        match block {
            1 => each(from, from_step, to, to_step, 1, count),
            2 => each(from, from_step, to, to_step, 2, count),
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

/// # Safety
/// As [`copy_blocks`].
#[inline(always)]
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn copies_exactly_the_length() {
        let from: Vec<u8> = (1..=100).collect();
        for len in 0..=from.len() {
            let mut to = [0; 120];
            // SAFETY: both are longer than `len` and distinct.
            unsafe { copy_short(from.as_ptr(), to[8..].as_mut_ptr(), len) };
            assert_eq!(&to[8..8 + len], &from[..len]);
            assert!(to[..8].iter().chain(&to[8 + len..]).all(|&byte| byte == 0), "length {len}");
        }
    }
}
