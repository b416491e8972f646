//! Buffers for transfers.
//!
//! - T1: a buffer is never freed, so a region of it keeps G1 and G2 of `region.rs` for as long as any operation lasts,
//!   even if a test fails half-way.
//! - T2: a test reads or refills a [`Landing`] only while no operation writes it: before the operation starts, or after
//!   the transport has reported that it is complete.

#![expect(unsafe_code, reason = "makes the regions that transfers read and write")]

use std::sync::OnceLock;

use transport_lapi::{RecvRegion, SendRegion, SharedMemory};

use mpj_doubles::numbers::Numbers;

/// Longest pattern.
pub const MAX_PATTERN: usize = 6 << 20;

/// The value of every byte before anything arrives.
const BLANK: u8 = 0xA5;

/// Bytes behind every landing that must not be written.
const GUARD: usize = 64;

/// `len` bytes that depend on the seed and on the position.
pub fn pattern(seed: u64, len: usize) -> &'static [u8] {
    static BLOCK: OnceLock<Vec<u8>> = OnceLock::new();
    const OFFSETS: usize = 1 << 16;
    let block = BLOCK.get_or_init(|| {
        let mut numbers = Numbers(1);
        let mut block = Vec::with_capacity(MAX_PATTERN + OFFSETS);
        while block.len() < MAX_PATTERN + OFFSETS {
            block.extend_from_slice(&numbers.next_number().to_le_bytes());
        }
        block
    });
    let offset = Numbers(seed).below(OFFSETS);
    &block[offset..offset + len]
}

/// A region to be read, of bytes that live for ever.
pub fn source(bytes: &'static [u8]) -> SendRegion {
    // SAFETY: T1; a shared slice is not written while it lives.
    unsafe { SendRegion::new(bytes.as_ptr(), bytes.len()) }
}

/// The bytes `offset..offset + len` of memory in the shared area, which the test keeps until they are not read any more.
pub fn area_source(memory: &SharedMemory, offset: usize, len: usize) -> SendRegion {
    assert!(offset + len <= memory.len());
    // SAFETY: the caller keeps the memory, and does not write there meanwhile.
    unsafe { SendRegion::new(memory.as_mut_ptr().wrapping_add(offset), len) }
}

/// A region of `len` bytes at the null address.
pub fn null_source(len: usize) -> SendRegion {
    // SAFETY: every call refuses null before it reads anything.
    unsafe { SendRegion::new(std::ptr::null(), len) }
}

/// A region longer than any memory, at an address that is not null.
pub fn endless_source() -> SendRegion {
    // SAFETY: every call refuses the length before it reads anything.
    unsafe { SendRegion::new(std::ptr::without_provenance(64), usize::MAX) }
}

/// A region of `len` bytes at the null address, to be written.
pub fn null_landing(len: usize) -> RecvRegion {
    // SAFETY: every call refuses null before it writes anything.
    unsafe { RecvRegion::new(std::ptr::null_mut(), len) }
}

/// A destination of messages (T2).
#[derive(Debug, Clone, Copy)]
pub struct Landing {
    start: *mut u8,
    len: usize,
}

// SAFETY: T2 determines who may access the bytes, and T1 keeps them.
unsafe impl Send for Landing {}
// SAFETY: as above.
unsafe impl Sync for Landing {}

impl Landing {
    /// A blank landing.
    pub fn new(len: usize) -> Self {
        let start = Box::leak(vec![BLANK; len + GUARD].into_boxed_slice()).as_mut_ptr();
        Self { start, len }
    }

    /// The first `len` bytes, to be written by a transfer.
    pub fn region(&self, len: usize) -> RecvRegion {
        assert!(len <= self.len, "the landing has room for every message of its test");
        // SAFETY: T1, T2.
        unsafe { RecvRegion::new(self.start, len) }
    }

    /// The first `len` bytes, to be read by a transfer.
    pub fn source(&self, len: usize) -> SendRegion {
        assert!(len <= self.len, "the landing has room for every message of its test");
        // SAFETY: T1, T2.
        unsafe { SendRegion::new(self.start, len) }
    }

    /// Makes all bytes blank again (T2).
    pub fn wipe(&self) {
        self.wipe_first(self.len);
    }

    /// Makes the first `len` bytes blank again (T2).
    pub fn wipe_first(&self, len: usize) {
        assert!(len <= self.len, "the landing has room for every message of its test");
        // SAFETY: T1, T2.
        unsafe { self.start.write_bytes(BLANK, len) };
    }

    /// Sets every byte to this value (T2).
    pub fn fill(&self, byte: u8) {
        // SAFETY: T1, T2.
        unsafe { self.start.write_bytes(byte, self.len) };
    }

    /// Returns the first `len` bytes (T2), and whether everything behind them is blank.
    pub fn contents(&self, len: usize) -> (Vec<u8>, bool) {
        let (bytes, is_blank) = self.parts(len);
        (bytes.to_vec(), is_blank)
    }

    /// Returns whether it contains exactly `bytes`, and is blank behind them (T2).
    pub fn holds(&self, bytes: &[u8]) -> bool {
        self.parts(bytes.len()) == (bytes, true)
    }

    fn parts(&self, len: usize) -> (&[u8], bool) {
        // SAFETY: T1, T2; the guard was allocated too.
        let bytes = unsafe { std::slice::from_raw_parts(self.start, self.len + GUARD) };
        let (bytes, rest) = bytes.split_at(len);
        // Compares each byte with the next one by comparing slices, which is fast in builds without optimization.
        (bytes, rest[0] == BLANK && rest[1..] == rest[..rest.len() - 1])
    }
}
