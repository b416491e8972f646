//! The status of a received or probed message (MPI-4 section 3.2.5).

use crate::datatype::Datatype;
use crate::error::Error;

/// Source, tag and length of a message.
///
/// ```
/// mpj::local::run(1, |world| {
///     world.send(&[1.5f32, 2.5], 0, 3).unwrap();
///     let status = world.recv(&mut [0f32; 4], mpj::ANY_SOURCE, mpj::ANY_TAG).unwrap();
///     assert_eq!(status, mpj::Status { source: 0, tag: 3, bytes: 8, cancelled: false });
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias = "MPI_Status")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status {
    /// Rank of the sender; for a send, of the receiver.
    pub source: usize,
    /// Tag of the message.
    pub tag: i32,
    /// Length in bytes.
    pub bytes: usize,
    /// Whether the receive was cancelled, so that nothing was received.
    #[doc(alias = "MPI_Test_cancelled")]
    pub cancelled: bool,
}

impl Status {
    /// Makes the status of a message from this rank of a communicator, whose status on the device is `on`.
    #[inline]
    pub(crate) fn new(source: u32, on: mpjdev::Status) -> Self {
        Self { source: source as usize, tag: on.tag, bytes: on.bytes, cancelled: on.cancelled }
    }

    /// Returns the number of elements of type `T` in the message (MPI_Get_count).
    ///
    /// # Errors
    /// [`Error::Count`] if the length is not a whole number of elements.
    ///
    /// ```
    /// let status = mpj::Status { source: 0, tag: 3, bytes: 8, cancelled: false };
    /// assert_eq!(status.count::<u32>()?, 2);
    /// assert!(status.count::<[u8; 3]>().is_err());
    /// # Ok::<(), mpj::Error>(())
    /// ```
    #[doc(alias("MPI_Get_count", "MPI_Get_elements"))]
    pub fn count<T: Datatype>(&self) -> Result<usize, Error> {
        let size = T::SIZE;
        let Self { source: source_rank, tag, bytes, .. } = *self;
        match bytes.checked_rem(size) {
            Some(0) => Ok(bytes / size),
            None if bytes == 0 => Ok(0),
            _ => Err(Error::Count { source_rank, tag, bytes, size }),
        }
    }
}
