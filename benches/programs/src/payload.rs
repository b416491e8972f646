//! Page-aligned buffers, and contents that can be checked.

use std::ops::{Deref, DerefMut};

use bytemuck::Pod;

use crate::runtime::Failure;

/// The alignment of buffers, in bytes.
const PAGE: usize = 4096;

/// A page-aligned buffer for programs that time messages. The offset in a page changes the time of
/// a copy by up to a quarter, and it differs between heaps of two programs.
#[derive(Debug)]
pub struct Buffer<T> {
    elements: Vec<T>,
    start: usize,
    len: usize,
}

impl<T: Pod> Buffer<T> {
    /// Creates a buffer of `len` zeros.
    pub fn zeroed(len: usize) -> Self {
        let elements = vec![T::zeroed(); len + PAGE / size_of::<T>()];
        let start = elements.as_ptr().align_offset(PAGE);
        Self { elements, start, len }
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.elements[self.start..][..self.len]
    }
}

impl<T> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.elements[self.start..][..self.len]
    }
}

/// Fills `buffer` with pattern number `seed`. Patterns of different seeds differ almost everywhere,
/// and so does a pattern from a shifted copy of itself.
pub fn fill(buffer: &mut [u8], seed: u64) {
    for (place, byte) in (0_u64..).zip(buffer) {
        *byte = pattern(seed, place);
    }
}

/// Checks that `buffer` holds pattern number `seed`.
///
/// # Errors
/// The first wrong byte.
pub fn check(buffer: &[u8], seed: u64) -> Result<(), Failure> {
    match (0_u64..).zip(buffer).find(|&(place, &byte)| byte != pattern(seed, place)) {
        None => Ok(()),
        Some((place, byte)) => Err(Failure::new(format_args!(
            "wrong payload: byte {place} of {} is {byte:#04x}, not {:#04x}",
            buffer.len(),
            pattern(seed, place),
        ))),
    }
}

fn pattern(seed: u64, place: u64) -> u8 {
    let mixed = (seed << 40).wrapping_add(place).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}
