//! Persistent sends and receives (MPI-4.1 section 3.9): made once, started any number of times.

use mpicore::SendMode;

use crate::communicator::PointToPoint;
use crate::datatype::Datatype;
use crate::envelope::{Source, Tag};
use crate::error::Error;
use crate::memory::borrowed::PersistentBuffer;
use crate::request::PersistentRequest;

/// # Persistent calls
impl PointToPoint {
    /// Makes a persistent send (MPI_Send_init). See [`PersistentRequest`].
    ///
    /// # Errors
    /// No such rank, a negative tag.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     if world.rank() == 1 {
    ///         return assert_eq!(world.recv_vec::<u8>(0, 3).unwrap().0, [7]);
    ///     }
    ///     let mut send = world.send_init(vec![7u8], 1, 3).unwrap();
    ///     send.start().unwrap();
    ///     send.wait().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias("MPI_Send_init", "MPI_Rsend_init"))]
    pub fn send_init<T: Datatype>(
        &self,
        data: Vec<T>,
        dest: usize,
        tag: i32,
    ) -> Result<PersistentRequest<T>, Error> {
        self.persistent_send(data, dest, tag, SendMode::Standard)
    }

    /// Makes a persistent send in synchronous mode (MPI_Ssend_init).
    ///
    /// # Errors
    /// As [`PointToPoint::send_init`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     if world.rank() == 1 {
    ///         return world.recv(&mut [0u8], 0, 3).map(drop).unwrap();
    ///     }
    ///     let mut send = world.ssend_init(vec![7u8], 1, 3).unwrap();
    ///     send.start().unwrap();
    ///     send.wait().unwrap().expect("it was started");
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Ssend_init")]
    pub fn ssend_init<T: Datatype>(
        &self,
        data: Vec<T>,
        dest: usize,
        tag: i32,
    ) -> Result<PersistentRequest<T>, Error> {
        self.persistent_send(data, dest, tag, SendMode::Synchronous)
    }

    /// Makes a persistent buffered send (MPI_Bsend_init). Each start copies the buffer as [`PointToPoint::bsend`]
    /// does, so it is complete at once.
    ///
    /// # Errors
    /// As [`PointToPoint::send_init`]. If the attached buffer has no room, [`start`](PersistentRequest::start) returns
    /// that error; it can be called again when there is room.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     if world.rank() == 1 {
    ///         return assert_eq!([0; 2].map(|_| world.recv_vec::<u8>(0, 3).unwrap().0), [[7], [8]]);
    ///     }
    ///     world.attach_buffer(2).unwrap();
    ///     let mut send = world.bsend_init(vec![7u8], 1, 3).unwrap();
    ///     for number in [7, 8] {
    ///         send.buffer_mut().unwrap()[0] = number;
    ///         send.start().unwrap();
    ///         send.wait().unwrap();
    ///     }
    ///     world.detach_buffer().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Bsend_init")]
    pub fn bsend_init<T: Datatype>(
        &self,
        data: Vec<T>,
        dest: usize,
        tag: i32,
    ) -> Result<PersistentRequest<T>, Error> {
        self.persistent_send(data, dest, tag, SendMode::Buffered)
    }

    /// Makes a persistent send in this mode.
    fn persistent_send<T: Datatype>(
        &self,
        data: Vec<T>,
        dest: usize,
        tag: i32,
        mode: SendMode,
    ) -> Result<PersistentRequest<T>, Error> {
        let (dest, buffer) = (self.peer(dest)?, PersistentBuffer::new(data));
        let (input, count) = self.answer(buffer.input())?;
        let transfer = self.answer(self.core.send_init(input, count, dest, tag, mode))?;
        Ok(PersistentRequest::of_transfer(self.clone(), transfer, buffer))
    }

    /// Makes a persistent receive (MPI_Recv_init). See [`PersistentRequest`].
    ///
    /// # Errors
    /// As [`PointToPoint::send_init`].
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let mut receive = world.recv_init(vec![0], mpj::ANY_SOURCE, 3).unwrap();
    ///     for number in [7, 8] {
    ///         receive.start().unwrap();
    ///         world.send(&[number], 0, 3).unwrap();
    ///         receive.wait().unwrap();
    ///         assert_eq!(receive.buffer().unwrap(), [number]);
    ///     }
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Recv_init")]
    pub fn recv_init<T: Datatype>(
        &self,
        buffer: Vec<T>,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<PersistentRequest<T>, Error> {
        let (source, tag) = (self.sender(source.into())?, tag.into().value());
        let buffer = PersistentBuffer::new(buffer);
        let (output, count) = self.answer(buffer.output())?;
        let transfer = self.answer(self.core.recv_init(output, count, source, tag))?;
        Ok(PersistentRequest::of_transfer(self.clone(), transfer, buffer))
    }
}
