//! Buffered sends (MPI-4.1 section 3.6): they copy their data and are complete at once. mpicore keeps the copies.
//!
//! The program attaches one buffer for each context of the rank. It limits how many bytes of copies may wait to be
//! sent. It is only a limit, not memory.

use std::panic::Location;

use mpicore::AttachedBuffer;

use crate::communicator::{PROC_NULL, PointToPoint};
use crate::datatype::Datatype;
use crate::error::Error;
use crate::memory::{SendBuffer, source};
use crate::request::Request;

/// # Buffered sends
impl PointToPoint {
    /// Sends like [`PointToPoint::send`], but copies the data first and never waits for the receiver (MPI_Bsend). The
    /// copy uses as many bytes of the attached buffer as the message has: see [`PointToPoint::attach_buffer`]. It is
    /// sent whenever the rank is in a call that makes progress.
    ///
    /// # Errors
    /// [`ErrorClass::Buffer`](crate::ErrorClass::Buffer) if there is not enough room, or no buffer; as
    /// [`PointToPoint::send`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let (other, mut got) = (1 - world.rank(), vec![0; 100_000]);
    ///     world.attach_buffer(1 << 20).unwrap();
    ///     world.bsend(&vec![world.rank(); 100_000], other, 0).unwrap();
    ///     world.recv(&mut got, other, 0).unwrap();
    ///     assert_eq!(got[99_999], other);
    ///     assert_eq!(world.detach_buffer().unwrap(), 1 << 20);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Bsend")]
    #[track_caller]
    pub fn bsend<B: SendBuffer + ?Sized>(
        &self,
        data: &B,
        dest: usize,
        tag: i32,
    ) -> Result<(), Error> {
        let peer = self.peer(dest)?;
        self.sent(self.device.check_send(peer, tag), tag)?;
        if peer == PROC_NULL {
            return Ok(());
        }
        let data = self.step(source(data))?;
        let _said = self.describe::<B::Element>("bsend", Location::caller());
        self.answer(self.core.bsend(&data, peer, tag)).map(drop)
    }

    /// Starts a [`PointToPoint::bsend`] (MPI_Ibsend). The request is complete at once; [`Request::wait`],
    /// [`Request::test`] and the calls for lists return its buffer.
    ///
    /// # Errors
    /// As [`PointToPoint::bsend`]; `data` is then dropped.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let other = 1 - world.rank();
    ///     world.attach_buffer(1 << 10).unwrap();
    ///     let send = world.ibsend(vec![world.rank(); 3], other, 7).unwrap();
    ///     let status = send.status().unwrap().expect("it is complete");
    ///     assert_eq!((status.source, status.tag, status.bytes), (other, 7, 24));
    ///     assert_eq!(world.recv_vec::<usize>(other, 7).unwrap().0, [other; 3]);
    ///     assert_eq!(send.wait().unwrap().0, [world.rank(); 3]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Ibsend")]
    #[track_caller]
    pub fn ibsend<T: Datatype>(
        &self,
        data: Vec<T>,
        dest: usize,
        tag: i32,
    ) -> Result<Request<T>, Error> {
        self.bsend(&data, dest, tag)?;
        let request = match self.peer(dest)? {
            PROC_NULL => self.started_for_nobody()?,
            peer => self.complete(mpjdev::Status::new(peer as u32, tag, data.len() * T::SIZE))?,
        };
        Ok(Request::of_send(self.clone(), request, data))
    }

    /// Allows buffered sends of this rank, with at most `bytes` bytes of copies under way at a time
    /// (MPI_Buffer_attach). All communicators of the same context share the limit. A message counts with its length and
    /// nothing more.
    ///
    /// # Errors
    /// [`ErrorClass::Buffer`](crate::ErrorClass::Buffer) if there is a buffer already.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let class = world.bsend(&[0u8; 9], 0, 0).unwrap_err().class();
    ///     assert_eq!(class, mpj::ErrorClass::Buffer);
    ///     world.attach_buffer(8).unwrap();
    ///     let error = world.bsend(&[0u8; 9], 0, 0).unwrap_err();
    ///     assert!(error.to_string().contains("a buffered send of 9 bytes finds 8 bytes free"));
    ///     assert!(world.attach_buffer(9).is_err());
    ///     assert_eq!(world.detach_buffer().unwrap(), 8);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Buffer_attach")]
    pub fn attach_buffer(&self, bytes: usize) -> Result<(), Error> {
        let buffer = AttachedBuffer { len: Some(bytes), address: 0 };
        self.answer(self.core.rank_buffer().attach(buffer))
    }

    /// Waits until all buffered sends have left, and allows no further ones (MPI_Buffer_detach). Returns the length of
    /// the buffer that was attached, or 0 if there was none.
    ///
    /// # Errors
    /// The device has failed. It is no error if a message could not be sent because its receiver is gone.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     if world.rank() == 1 {
    ///         return assert_eq!(world.recv_vec::<u8>(0, 0).unwrap().0, [7; 100]);
    ///     }
    ///     world.attach_buffer(100).unwrap();
    ///     world.bsend(&[7u8; 100], 1, 0).unwrap();
    ///     assert_eq!(world.detach_buffer().unwrap(), 100, "the message has left");
    ///     assert_eq!(world.detach_buffer().unwrap(), 0);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Buffer_detach")]
    pub fn detach_buffer(&self) -> Result<usize, Error> {
        let detached = self.answer(self.core.rank_buffer().detach())?;
        Ok(detached.and_then(|buffer| buffer.len).unwrap_or(0))
    }
}
