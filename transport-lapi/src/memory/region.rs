//! User memory that is borrowed for longer than a call, and memory that a peer can write.
//!
//! A non-blocking transfer uses a buffer after the call that started it has returned. These types carry such a buffer.
//! Making one is a promise that the compiler cannot check:
//!
//! - G1: the memory of a [`SendRegion`] stays allocated and is not written until the operation that took it reports
//!   that the origin buffer is reusable (origin counter, or release of the region).
//! - G2: the memory of a [`RecvRegion`] stays allocated and is accessed by nobody else until the operation that took it
//!   reports completion. A target that helps with a get acts for that operation (A7 of [`crate::adapter`]). Registered
//!   memory belongs to its registration until what follows its end is performed; other tasks' gets, puts and
//!   read-modify-writes act for it, and no two of them use one byte at the same time of which one stores to it, unless
//!   both are atomic. A region can be neither copied nor cloned: its holder may write there, and passes
//!   this right on by moving the region.
//! - G3: the memory of a [`ForeignBytes`] stays mapped for its lifetime, but a peer may write it at any moment. So it
//!   is never borrowed as a slice: it is copied, and the copy is checked.
//!
//! Heads, short bodies and the blocks of many layouts have 1 to 64 bytes. For these a call of the C library costs more
//! than the copy; [`copy_short`] avoids it.
//!
//! - CO1: two moves of one width, one at the start and one at the end, cover every length from that width to twice that
//!   width, and touch nothing else.

#![expect(unsafe_code, reason = "carries borrowed buffers through requests")]

mod remote;

use std::marker::PhantomData;
use std::ptr::copy_nonoverlapping;
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::memory::copy::{
    LONG, Toward, copy_blocks, copy_direct, copy_long, copy_past_caches, copy_piece,
};
use crate::platform::sys::LINE;

pub use remote::{PeerBytes, RemoteKey, RemoteRegion};

/// Memory that a transfer reads: `udata` of LAPI_Amsend, or the target side of LAPI_Get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendRegion {
    ptr: *const u8,
    len: usize,
}

// SAFETY: G1 makes the memory readable from any thread until the operation has ended.
unsafe impl Send for SendRegion {}
// SAFETY: as above; the region is only ever read.
unsafe impl Sync for SendRegion {}

impl SendRegion {
    /// No bytes.
    pub const EMPTY: Self = Self { ptr: std::ptr::dangling(), len: 0 };

    /// Describes `len` bytes at `ptr`. A null `ptr` with `len > 0` is accepted here; the call that takes the region
    /// refuses it, with LAPI's ORG_ADDR_NULL.
    ///
    /// # Safety
    /// The caller keeps G1.
    #[inline]
    pub const unsafe fn new(ptr: *const u8, len: usize) -> Self {
        Self { ptr, len }
    }

    /// Describes bytes that the test keeps for as long as they are used.
    #[cfg(test)]
    pub(crate) const fn of_test(bytes: &[u8]) -> Self {
        Self { ptr: bytes.as_ptr(), len: bytes.len() }
    }

    /// Length in bytes.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether the length is 0.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Pointer to the first byte.
    pub fn as_ptr(&self) -> *const u8 {
        self.ptr
    }

    /// Address of the first byte in this task.
    pub fn addr(&self) -> u64 {
        self.ptr as u64
    }

    /// Whether the address is null and the length is not 0: LAPI's ORG_ADDR_NULL.
    #[inline]
    pub const fn is_null(&self) -> bool {
        self.ptr.is_null() && self.len > 0
    }

    /// The part `offset..offset + len`, clipped to the region.
    #[inline]
    pub fn part(&self, offset: usize, len: usize) -> Self {
        let (offset, len) = clipped(self.len, offset, len);
        Self { ptr: self.ptr.wrapping_add(offset), len }
    }

    /// Returns the bytes in a form that can only be copied: other code may write them meanwhile.
    #[inline(always)]
    pub fn foreign(&self) -> ForeignBytes<'_> {
        ForeignBytes { ptr: self.ptr, len: self.len, life: PhantomData }
    }
}

/// Memory that a transfer writes: the destination that a header handler names, or the origin side of LAPI_Get.
///
/// The holder may write there (G2), so there is one holder at a time:
///
/// ```compile_fail,E0382
/// fn deliver(into: transport_lapi::RecvRegion) -> [transport_lapi::RecvRegion; 2] {
///     [into, into]
/// }
/// ```
pub type RecvRegion = RecvPart<'static>;

/// A part of a [`RecvRegion`], borrowed for one call; or a whole region, which lasts as long as its operation.
#[derive(Debug, PartialEq, Eq)]
pub struct RecvPart<'a> {
    ptr: *mut u8,
    len: usize,
    life: PhantomData<&'a mut u8>,
}

// SAFETY: G2 gives the holder exclusive use of the memory, from whatever thread.
unsafe impl Send for RecvPart<'_> {}
// SAFETY: as above; a shared reference gives no access, and writing needs exclusive access to the part.
unsafe impl Sync for RecvPart<'_> {}

impl<'a> RecvPart<'a> {
    /// No bytes.
    pub const EMPTY: Self = Self { ptr: std::ptr::null_mut(), len: 0, life: PhantomData };

    /// Describes `len` writable bytes at `ptr`.
    ///
    /// # Safety
    /// The caller keeps G2; for a part that is no region, during `'a`.
    #[inline(always)]
    pub const unsafe fn new(ptr: *mut u8, len: usize) -> Self {
        Self { ptr, len, life: PhantomData }
    }

    /// Describes the bytes of a slice.
    #[inline(always)]
    pub fn of_slice(bytes: &'a mut [u8]) -> Self {
        Self { ptr: bytes.as_mut_ptr(), len: bytes.len(), life: PhantomData }
    }

    /// Makes a region of the part that outlives the call which was given the part.
    ///
    /// # Safety
    /// The holder writes there only until it has reported the end of its operation (A9 of [`crate::adapter`]).
    pub unsafe fn hold(self) -> RecvRegion {
        RecvPart { ptr: self.ptr, len: self.len, life: PhantomData }
    }

    /// Length in bytes.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether the length is 0.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the address is null and the length is not 0.
    #[inline]
    pub const fn is_null(&self) -> bool {
        self.ptr.is_null() && self.len > 0
    }

    /// Pointer to the first byte. Only the holder may write through it (G2).
    pub fn as_mut_ptr(&self) -> *mut u8 {
        self.ptr
    }

    /// Address of the first byte in this task.
    pub(crate) fn addr(&self) -> u64 {
        self.ptr as u64
    }

    /// Returns the variable of 64 bits at `offset`; `None` unless it lies inside and is aligned.
    pub(crate) fn word(&self, offset: u64) -> Option<&AtomicU64> {
        let at = self.aligned(offset, size_of::<u64>())?;
        // SAFETY: the variable lies inside the memory, which lasts as long as the region, and is aligned. Whoever else
        // stores there meanwhile does so atomically (G2).
        Some(unsafe { AtomicU64::from_ptr(at.cast()) })
    }

    /// Returns the variable of 32 bits at `offset`; `None` unless it lies inside and is aligned.
    pub(crate) fn half_word(&self, offset: u64) -> Option<&AtomicU32> {
        let at = self.aligned(offset, size_of::<u32>())?;
        // SAFETY: as in `word`.
        Some(unsafe { AtomicU32::from_ptr(at.cast()) })
    }

    /// Pointer to `size` bytes at `offset`, if they lie inside and are aligned to their size.
    fn aligned(&self, offset: u64, size: usize) -> Option<*mut u8> {
        let offset = usize::try_from(offset).ok()?;
        let at = self.ptr.wrapping_add(offset);
        (offset.checked_add(size)? <= self.len && at.addr() % size == 0).then_some(at)
    }

    /// Replaces the region by an empty one and returns it.
    #[inline]
    pub fn take(&mut self) -> Self {
        std::mem::replace(self, Self::EMPTY)
    }

    /// Returns the first `len` bytes, or all if there are fewer.
    #[inline]
    pub fn truncated(self, len: usize) -> Self {
        Self { len: len.min(self.len), ..self }
    }

    /// Returns all but the first `len` bytes; nothing if there are fewer.
    #[inline]
    pub(crate) fn behind(self, len: usize) -> Self {
        let len = len.min(self.len);
        Self { ptr: self.ptr.wrapping_add(len), len: self.len - len, life: PhantomData }
    }

    /// Returns the part `offset..offset + len`, clipped to these bytes.
    #[inline(always)]
    pub fn part(&mut self, offset: usize, len: usize) -> RecvPart<'_> {
        let (offset, len) = clipped(self.len, offset, len);
        RecvPart { ptr: self.ptr.wrapping_add(offset), len, life: PhantomData }
    }

    /// Copies as much of `from` to `offset` as fits, and returns how many bytes that was.
    #[inline(always)]
    pub fn store(&mut self, offset: usize, from: ForeignBytes<'_>) -> usize {
        let (offset, len) = clipped(self.len, offset, from.len);
        // SAFETY: G2 makes the memory writable by us alone; G3 keeps `from` mapped; the ranges lie within both, and a
        // peer's memory never overlaps a user's buffer.
        unsafe { copy_short(from.ptr, self.ptr.add(offset), len) };
        len
    }

    /// Like [`RecvPart::store`], for bytes that often lie in this processor's caches already: memory of programs.
    #[inline(always)]
    pub(crate) fn store_directly(&mut self, from: ForeignBytes<'_>) {
        // SAFETY: as in `store`.
        unsafe { copy_direct(from.ptr, self.ptr, from.len.min(self.len)) };
    }

    /// Like [`RecvPart::store`], for a piece of a long message, by the copy that is faster for such places.
    pub(crate) fn store_piece(&mut self, from: ForeignBytes<'_>, toward: Toward) {
        let len = from.len.min(self.len);
        // SAFETY: as in `store`.
        unsafe { copy_piece(from.ptr, self.ptr, len, toward) };
    }

    /// Like [`RecvPart::store`] into a part that consists of whole cache lines, with stores that bypass the caches: for
    /// bytes that another processor reads next, and this one does not. The rest of the last line may be overwritten.
    pub(crate) fn store_past_caches(&mut self, from: ForeignBytes<'_>) {
        let is_aligned = self.ptr.addr() % LINE == 0 && self.len % LINE == 0;
        assert!(is_aligned, "callers pass whole lines");
        let len = from.len.min(self.len);
        // SAFETY: as in `store`; the last line ends inside the part.
        unsafe { copy_past_caches(from.ptr, self.ptr, len) };
    }

    /// Copies the `len` bytes at each of `places` in `from` to the start, one block behind the other. Blocks that do
    /// not fit on both sides are left out.
    #[inline(always)]
    pub(crate) fn gather(
        &mut self,
        from: ForeignBytes<'_>,
        places: impl Iterator<Item = usize>,
        len: usize,
    ) {
        let Some(last) = from.len.checked_sub(len) else { return };
        for (block, at) in (0..blocks(self.len, len, len)).zip(places) {
            if at <= last {
                // SAFETY: as in `store`: the block ends inside `from`, and there are no more blocks than fit here.
                unsafe { copy_short(from.ptr.add(at), self.ptr.add(block * len), len) };
            }
        }
    }

    /// Copies blocks of `len` bytes, which lie one behind the other in `from`, to `places`. Blocks that do not fit on
    /// both sides are left out.
    #[inline(always)]
    pub(crate) fn scatter(
        &mut self,
        places: impl Iterator<Item = usize>,
        from: ForeignBytes<'_>,
        len: usize,
    ) {
        let Some(last) = self.len.checked_sub(len) else { return };
        for (block, at) in (0..blocks(from.len, len, len)).zip(places) {
            if at <= last {
                // SAFETY: as in `store`: the block ends inside this part, and there are no more blocks than `from` has.
                unsafe { copy_short(from.ptr.add(block * len), self.ptr.add(at), len) };
            }
        }
    }

    /// Copies `count` blocks of `block` bytes: in `from` one begins every `from_step` bytes, here one begins every
    /// `step` bytes. Blocks that do not fit on both sides are left out. Returns how many bytes were copied.
    pub fn store_blocks(
        &mut self,
        step: usize,
        from: ForeignBytes<'_>,
        from_step: usize,
        block: usize,
        count: usize,
    ) -> usize {
        let count =
            count.min(blocks(self.len, step, block)).min(blocks(from.len, from_step, block));
        // SAFETY: as in `store`: `blocks` returns how many lie inside both, and blocks of one message do not overlap.
        unsafe { copy_blocks(from.ptr, from_step, self.ptr, step, block, count) };
        block * count
    }
}

impl RecvRegion {
    /// Describes the same memory for a read by its holder.
    pub(crate) fn to_read(&self) -> SendRegion {
        SendRegion { ptr: self.ptr, len: self.len }
    }

    /// Makes a second region of the same memory, for the other end of a get that both ends carry out, or for an
    /// operation on registered memory.
    ///
    /// # Safety
    /// The holders never write the same byte at the same time, unless atomically, and the second one stops writing when
    /// its operation ends (A7 of [`crate::adapter`], RG2 of [`crate::progress::registry`]).
    pub(crate) unsafe fn second_hold(&self) -> Self {
        Self { ..*self }
    }
}

/// Clips the part `offset..offset + len` to `all` bytes. Returns its offset and its length.
#[inline(always)]
pub(super) fn clipped(all: usize, offset: usize, len: usize) -> (usize, usize) {
    (offset.min(all), len.min(all.saturating_sub(offset)))
}

/// How many blocks of `block` bytes, of which one begins every `step` bytes, end within `len` bytes.
pub(super) fn blocks(len: usize, step: usize, block: usize) -> usize {
    match len.checked_sub(block) {
        None => 0,
        Some(room) => room.checked_div(step).map_or(1, |steps| steps + 1),
    }
}

/// Bytes in memory that a peer can write, so they may be copied but not borrowed (G3).
#[derive(Debug, Clone, Copy)]
pub struct ForeignBytes<'a> {
    ptr: *const u8,
    len: usize,
    life: PhantomData<&'a u8>,
}

impl<'a> ForeignBytes<'a> {
    /// Describes `len` bytes at `ptr`, mapped for `'a`.
    ///
    /// # Safety
    /// The caller keeps G3.
    #[inline]
    pub(crate) const unsafe fn new(ptr: *const u8, len: usize) -> Self {
        Self { ptr, len, life: PhantomData }
    }

    /// No bytes.
    pub(crate) const EMPTY: Self =
        Self { ptr: std::ptr::NonNull::dangling().as_ptr(), len: 0, life: PhantomData };

    /// Describes bytes of this task in the form of a peer's.
    #[inline]
    pub fn from_slice(bytes: &'a [u8]) -> Self {
        Self { ptr: bytes.as_ptr(), len: bytes.len(), life: PhantomData }
    }

    /// Length in bytes.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether the length is 0.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Pointer to the first byte.
    #[inline(always)]
    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.ptr
    }

    /// Returns the part `offset..offset + len`, clipped to these bytes.
    #[inline]
    pub fn part(&self, offset: usize, len: usize) -> Self {
        let (offset, len) = clipped(self.len, offset, len);
        Self { ptr: self.ptr.wrapping_add(offset), len, ..*self }
    }

    /// Copies as many of the bytes into `into` as fit, and returns how many those were.
    #[inline]
    pub fn copy_to(&self, into: &mut [u8]) -> usize {
        RecvPart::of_slice(into).store(0, *self)
    }

    /// Returns a copy of the bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut copy = vec![0; self.len];
        self.copy_to(&mut copy);
        copy
    }
}

/// Copies `len` bytes from `from` to `to`.
///
/// # Safety
/// As [`copy_nonoverlapping`] over `len` bytes.
#[inline(always)]
pub(crate) unsafe fn copy_short(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's promise covers `len` bytes; CO1 keeps every move inside them.
    unsafe {
        match len {
            // Single numbers and the heads of messages have this length, so it is tested first.
            8..=16 => both_ends::<u64>(from, to, len),
            0 => {}
            1 => both_ends::<u8>(from, to, len),
            2..4 => both_ends::<u16>(from, to, len),
            4..8 => both_ends::<u32>(from, to, len),
            17..=32 => both_ends::<u128>(from, to, len),
            33..=64 => {
                // Not as one type of 32 bytes, which the compiler would copy through the stack.
                let back = len - 32;
                both_ends::<u128>(from, to, 32);
                both_ends::<u128>(from.add(back), to.add(back), 32);
            }
            65..LONG => copy_nonoverlapping(from, to, len),
            _ => copy_long(from, to, len),
        }
    }
}

/// Copies the first and the last `T` of `len` bytes (CO1); `len` is between one and two times the size of `T`. Both are
/// read before any is written, so that blocks of a known length take as few moves as they can.
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
