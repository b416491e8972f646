//! Persistent sends and receives (MPI-4.1 section 3.9): made once, started any number of times.

use mpicore::{PersistentTransfer, SendMode};

use crate::communicator::PointToPoint;
use crate::datatype::Datatype;
use crate::envelope::{Source, Status, Tag};
use crate::error::Error;
use crate::memory::borrowed::PersistentBuffer;

/// A send or receive that can be started many times, with its buffer. [`start`](Self::start) starts it and
/// [`wait`](Self::wait) completes it. Between two starts the program may read and write the buffer.
///
/// Dropping it while it is under way does not wait: a receive that has not matched a message is cancelled, any other
/// operation continues, and the buffer is freed when it is complete.
///
/// ```
/// mpj::local::run(2, |world| {
///     let other = 1 - world.rank();
///     let mut send = world.send_init(vec![0; 3], other, 0).unwrap();
///     let mut receive = world.recv_init(vec![0; 3], other, 0).unwrap();
///     for step in 0..5 {
///         send.buffer_mut().unwrap().fill(step + world.rank());
///         mpj::start_all([&mut receive, &mut send]).unwrap();
///         receive.wait().unwrap();
///         send.wait().unwrap();
///         assert_eq!(receive.buffer().unwrap(), [step + other; 3]);
///     }
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
pub struct PersistentRequest<T: Datatype> {
    communicator: PointToPoint,
    transfer: PersistentTransfer,
    /// The request, while the operation is under way.
    open: Option<mpjdev::Request>,
    last: Option<Status>,
    buffer: PersistentBuffer<T>,
}

impl<T: Datatype> PersistentRequest<T> {
    /// Starts the operation (MPI_Start).
    ///
    /// # Errors
    /// [`Error::UnderWay`] if the operation was started and not waited for; as [`PointToPoint::isend`],
    /// [`PointToPoint::ibsend`] and [`PointToPoint::irecv`].
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let mut receive = world.recv_init(vec![0], 0, 3).unwrap();
    ///     receive.start().unwrap();
    ///     assert!(receive.start().is_err(), "it is under way");
    ///     world.send(&[7], 0, 3).unwrap();
    ///     receive.wait().unwrap();
    ///     assert_eq!(receive.buffer().unwrap(), [7]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn start(&mut self) -> Result<(), Error> {
        self.check_idle()?;
        self.open = Some(self.communicator.answer(self.transfer.start())?);
        Ok(())
    }

    /// Waits until the operation is complete and returns its status (MPI_Wait), or `None` if it is not under way.
    ///
    /// # Errors
    /// As [`crate::Request::wait`].
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let mut receive = world.recv_init(vec![0], 0, 3).unwrap();
    ///     assert_eq!(receive.wait().unwrap(), None, "it was not started");
    ///     receive.start().unwrap();
    ///     world.send(&[7], 0, 3).unwrap();
    ///     assert_eq!(receive.wait().unwrap().map(|status| status.tag), Some(3));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn wait(&mut self) -> Result<Option<Status>, Error> {
        let Some(request) = self.open.take() else { return Ok(None) };
        self.last = Some(self.communicator.completed(self.communicator.device.iwait(request))?);
        Ok(self.last)
    }

    /// Tests whether the operation is complete (MPI_Test). An operation that is not under way is complete.
    ///
    /// # Errors
    /// As [`crate::Request::wait`].
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let mut receive = world.recv_init(vec![0], 0, 3).unwrap();
    ///     receive.start().unwrap();
    ///     assert!(!receive.test().unwrap());
    ///     world.send(&[7], 0, 3).unwrap();
    ///     while !receive.test().unwrap() {}
    ///     assert_eq!(receive.buffer().unwrap(), [7]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn test(&mut self) -> Result<bool, Error> {
        if self.open.is_none() {
            return Ok(true);
        }
        let tested = self.communicator.device.itest(&mut self.open);
        let Some(status) = self.communicator.answer_look(tested)? else { return Ok(false) };
        self.last = Some(self.communicator.status(status));
        Ok(true)
    }

    /// Returns the status of the last completion, if there was one.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let mut receive = world.recv_init(vec![0], 0, 3).unwrap();
    ///     assert_eq!(receive.status(), None);
    ///     receive.start().unwrap();
    ///     world.send(&[7], 0, 3).unwrap();
    ///     assert_eq!(receive.wait().unwrap(), receive.status());
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn status(&self) -> Option<Status> {
        self.last
    }

    /// Cancels a receive that has not matched a message (MPI_Cancel), and returns whether it did. Wait for the request
    /// in either case. A send is never cancelled.
    ///
    /// # Errors
    /// The device has failed.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let mut receive = world.recv_init(vec![0], 0, 3).unwrap();
    ///     receive.start().unwrap();
    ///     assert!(receive.cancel().unwrap());
    ///     assert!(receive.wait().unwrap().is_some_and(|status| status.cancelled));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn cancel(&self) -> Result<bool, Error> {
        match &self.open {
            Some(request) => self.communicator.answer(self.communicator.device.cancel(request)),
            None => Ok(false),
        }
    }

    /// Returns the elements of the buffer.
    ///
    /// # Errors
    /// [`Error::UnderWay`].
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let mut receive = world.recv_init(vec![0], 0, 3).unwrap();
    ///     assert_eq!(receive.buffer().unwrap(), [0]);
    ///     receive.start().unwrap();
    ///     assert!(receive.buffer().is_err(), "it is under way");
    ///     # receive.cancel().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn buffer(&self) -> Result<&[T], Error> {
        self.check_idle()?;
        Ok(self.buffer.elements())
    }

    /// Returns the elements of the buffer for writing.
    ///
    /// # Errors
    /// [`Error::UnderWay`].
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let mut send = world.send_init(vec![0; 2], 0, 3).unwrap();
    ///     send.buffer_mut().unwrap().fill(7);
    ///     send.start().unwrap();
    ///     assert_eq!(world.recv_vec::<i32>(0, 3).unwrap().0, [7, 7]);
    ///     send.wait().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn buffer_mut(&mut self) -> Result<&mut [T], Error> {
        self.check_idle()?;
        Ok(self.buffer.elements_mut())
    }

    fn check_idle(&self) -> Result<(), Error> {
        match &self.open {
            Some(_) => self.communicator.answer(Err(Error::UnderWay)),
            None => Ok(()),
        }
    }
}

impl<T: Datatype> Drop for PersistentRequest<T> {
    fn drop(&mut self) {
        if let Some(request) = self.open.take() {
            let buffer = std::mem::replace(&mut self.buffer, PersistentBuffer::new(Vec::new()));
            self.communicator.device.detach(request, Box::new(buffer));
        }
    }
}

/// Starts all these requests, in order (MPI_Startall).
///
/// # Errors
/// The first error of [`PersistentRequest::start`]; the requests after it are not started.
///
/// ```
/// mpj::local::run(2, |world| {
///     let other = 1 - world.rank();
///     let mut send = world.send_init(vec![world.rank()], other, 0).unwrap();
///     let mut receive = world.recv_init(vec![9], other, 0).unwrap();
///     mpj::start_all([&mut receive, &mut send]).unwrap();
///     send.wait().unwrap();
///     receive.wait().unwrap();
///     assert_eq!(receive.buffer().unwrap(), [other]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
pub fn start_all<'a, T: Datatype>(
    requests: impl IntoIterator<Item = &'a mut PersistentRequest<T>>,
) -> Result<(), Error> {
    requests.into_iter().try_for_each(PersistentRequest::start)
}

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
    pub fn send_init<T: Datatype>(
        &self,
        data: Vec<T>,
        dest: usize,
        tag: i32,
    ) -> Result<PersistentRequest<T>, Error> {
        self.keep_send(data, dest, tag, SendMode::Standard)
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
    pub fn ssend_init<T: Datatype>(
        &self,
        data: Vec<T>,
        dest: usize,
        tag: i32,
    ) -> Result<PersistentRequest<T>, Error> {
        self.keep_send(data, dest, tag, SendMode::Synchronous)
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
    pub fn bsend_init<T: Datatype>(
        &self,
        data: Vec<T>,
        dest: usize,
        tag: i32,
    ) -> Result<PersistentRequest<T>, Error> {
        self.keep_send(data, dest, tag, SendMode::Buffered)
    }

    /// Keeps a send to this rank with this tag, to be started later.
    fn keep_send<T: Datatype>(
        &self,
        data: Vec<T>,
        dest: usize,
        tag: i32,
        mode: SendMode,
    ) -> Result<PersistentRequest<T>, Error> {
        let (dest, buffer) = (self.peer(dest)?, PersistentBuffer::new(data));
        let (input, count) = self.answer(buffer.input())?;
        let transfer = self.answer(self.core.send_init(input, count, dest, tag, mode))?;
        Ok(self.kept(transfer, buffer))
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
        Ok(self.kept(transfer, buffer))
    }

    fn kept<T: Datatype>(
        &self,
        transfer: PersistentTransfer,
        buffer: PersistentBuffer<T>,
    ) -> PersistentRequest<T> {
        PersistentRequest { communicator: self.clone(), transfer, open: None, last: None, buffer }
    }
}
