//! Early buffers: memory of exactly a message's size for data that arrive before the receive is posted.
//!
//! - BU1: a buffer's allocation never moves or shrinks while the buffer lives, whoever moves the
//!   buffer itself; so a region of it stays valid until then.
//! - BU2: the bytes are borrowed only after the message that the region was named for is complete,
//!   or its context has been abandoned.

#![expect(unsafe_code, reason = "names heap memory as the destination of a message")]

use transport_lapi::{ForeignBytes, RecvRegion};

/// Memory for one early message.
#[derive(Debug)]
pub(crate) struct EarlyBuffer {
    bytes: Vec<u8>,
}

impl EarlyBuffer {
    /// Memory for `len` bytes; `None` if there is none. It is not touched: the length is a peer's
    /// claim, and only what arrives costs pages.
    pub fn new(len: usize) -> Option<Self> {
        Some(Self { bytes: bytemuck::try_zeroed_vec(len).ok()? })
    }

    /// A buffer that holds `data`.
    pub fn filled(data: ForeignBytes<'_>) -> Option<Self> {
        let mut buffer = Self::new(data.len())?;
        data.copy_to(&mut buffer.bytes);
        Some(buffer)
    }

    /// The memory, as the destination of a message. The caller keeps the buffer alive, and keeps
    /// its hands off the bytes, until the message is complete or the context was abandoned (BU2).
    pub fn region(&mut self) -> RecvRegion {
        // SAFETY: G2 of the region: BU1 keeps the allocation in place, and the only operation that
        // gets the region is the one message that this buffer was made for (BU2).
        unsafe { RecvRegion::new(self.bytes.as_mut_ptr(), self.bytes.len()) }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
