//! The status of a message that was received, probed or cancelled (MPI-4 section 3.2.5).

/// Source, tag and length of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status {
    /// Rank of the sender; for a send, of the receiver.
    pub source: u32,
    /// Tag of the message.
    pub tag: i32,
    /// Length in bytes.
    pub bytes: usize,
    /// Whether the receive was cancelled; then the other fields have no meaning.
    pub cancelled: bool,
}

impl Status {
    /// Makes the status of an operation that was not cancelled. A client of the device needs it for an operation that
    /// it ends itself ([`crate::Device::end`]).
    ///
    /// ```
    /// use mpjdev::Status;
    /// let status = Status::new(3, 7, 16);
    /// assert_eq!((status.source, status.tag, status.bytes, status.cancelled), (3, 7, 16, false));
    /// ```
    #[inline(always)]
    pub fn new(source: u32, tag: i32, bytes: usize) -> Self {
        Self { source, tag, bytes, cancelled: false }
    }

    pub(crate) const CANCELLED: Self = Self { source: 0, tag: 0, bytes: 0, cancelled: true };
}
