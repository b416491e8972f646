//! Unexpected buffers: memory of exactly a message's length, for data that arrive before their receive is posted.
//!
//! - BU1: the allocation of a buffer never moves or shrinks while the buffer lives, even if the buffer itself is moved.
//!   So a region of it stays valid until the buffer is dropped.
//! - BU2: the bytes are borrowed only after the message that the region was made for is complete, or after its context
//!   has been abandoned.

#![expect(unsafe_code, reason = "names heap memory as the destination of a message")]

use transport_lapi::{ForeignBytes, RecvRegion};

/// Memory for one unexpected message.
#[derive(Debug)]
pub(crate) struct UnexpectedBuffer {
    bytes: Vec<u8>,
}

impl UnexpectedBuffer {
    /// Allocates `len` bytes; `None` if there is no memory. The memory is not touched: the length is a peer's claim, so
    /// only bytes that arrive should take pages.
    pub fn new(len: usize) -> Option<Self> {
        Some(Self { bytes: bytemuck::try_zeroed_vec(len).ok()? })
    }

    /// Makes a buffer that contains `data`; `None` if there is no memory.
    pub fn filled(data: ForeignBytes<'_>) -> Option<Self> {
        let mut buffer = Self::new(data.len())?;
        data.copy_to(&mut buffer.bytes);
        Some(buffer)
    }

    /// Returns the memory as the destination of a message. The caller keeps the buffer alive and does not touch its
    /// bytes until the message is complete or the context was abandoned (BU2).
    pub fn region(&mut self) -> RecvRegion {
        // SAFETY: G2 of the region: BU1 keeps the allocation in place, and the only operation that gets the region is
        // the one message that this buffer was made for (BU2).
        unsafe { RecvRegion::new(self.bytes.as_mut_ptr(), self.bytes.len()) }
    }

    /// Returns the memory (BU2).
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
