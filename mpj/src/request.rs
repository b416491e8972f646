//! Non-blocking calls that own their buffers, and waits for them (MPI-4.1 sections 3.7 and 6.12); persistent requests.
//!
//! - Q1: a request keeps its buffer untouched until its operation has ended or the device has failed. Moving a `Vec`
//!   does not move its elements, and the request makes no reference to them meanwhile, since a `Vec` holds a pointer. A
//!   request that is dropped before the end leaves its buffer with the device; a request that is leaked leaks its
//!   buffer.
//! - CQ1: of a collective call, Q1 holds for both buffers, and the device's failure is not enough: they stay untouched
//!   until no thread is in a local step of the call (PL3 of the core) either. A request that is dropped before the end
//!   leaves them with the call.

use std::any::Any;
use std::panic::Location;

use mpicore::Steps;
use mpjdev::Mode;

use crate::communicator::operation::{CallPlace, Operation, listed};
use crate::communicator::{Await, Completion, PointToPoint};
use crate::datatype::Datatype;
use crate::envelope::{Source, Status, Tag};
use crate::error::Error;
use crate::memory::{sink, source};

mod lists;
mod persistent;

pub use lists::{AnyRequest, test_all, test_any, test_some, wait_all, wait_any, wait_some};
pub use persistent::{PersistentRequest, start_all};

/// A send, a receive or a collective call under way, with its buffers. It makes progress whenever a thread of the rank
/// waits or tests on any communicator.
///
/// Dropping it does not block. A receive that has not matched a message is cancelled; any other operation continues,
/// since other ranks need it, and its buffers are freed when it is complete. The message of a receive that is dropped is
/// lost, which is an error at the end of a job that finds mistakes between ranks, unless the program has seen that the
/// receive is complete.
///
/// ```
/// mpj::local::run(1, |world| {
///     let receive = world.irecv(vec![0; 2], 0, 1).unwrap();
///     world.send(&[7, 8], 0, 1).unwrap();
///     let (numbers, _status) = receive.wait().unwrap();
///     assert_eq!(numbers, [7, 8]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Request_free", "MPI_Request"))]
#[must_use = "the buffer comes back from `wait`"]
pub struct Request<T: Datatype> {
    communicator: PointToPoint,
    operation: Operation,
    /// What a collective call with two buffers sends.
    data: Vec<T>,
    buffer: Vec<T>,
    /// The local steps of a collective call that has not ended well.
    steps: Option<Steps>,
    is_receive: bool,
}

impl<T: Datatype> Request<T> {
    /// Waits until the operation is complete and returns the buffer (MPI_Wait), of a collective call that of the
    /// results. For a receive, the status says how much of the buffer was filled; that of a collective call says
    /// nothing.
    ///
    /// # Errors
    /// A message longer than the buffer; the errors of the collective call; the device has failed.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let receive = world.irecv(vec![9; 3], 0, 1).unwrap();
    ///     world.send(&[7, 8], 0, 1).unwrap();
    ///     let (numbers, status) = receive.wait().unwrap();
    ///     assert_eq!((numbers, status.count::<i32>().unwrap()), (vec![7, 8, 9], 2));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Wait")]
    #[track_caller]
    pub fn wait(mut self) -> Result<(Vec<T>, Status), Error> {
        self.complete()
    }

    /// Like [`Request::wait`], but returns both buffers of a collective call: the one that was sent, and that of the
    /// results. The first is empty for messages and for calls with one buffer. [`Request::test`] drops it;
    /// [`Request::is_done`] tests whether the call is complete, too.
    ///
    /// # Errors
    /// As [`Request::wait`].
    ///
    /// ```
    /// use mpj::collective;
    /// mpj::local::run(2, |world| {
    ///     let call = collective::all_gather(vec![world.rank()], vec![9; 2]);
    ///     let (mine, all) = world.start(call).unwrap().wait_both().unwrap();
    ///     assert_eq!((mine, all), (vec![world.rank()], vec![0, 1]));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[track_caller]
    pub fn wait_both(mut self) -> Result<(Vec<T>, Vec<T>), Error> {
        let (buffer, _) = self.complete()?;
        Ok((std::mem::take(&mut self.data), buffer))
    }

    #[track_caller]
    fn complete(&mut self) -> Result<(Vec<T>, Status), Error> {
        let ended = self.operation.wait(&self.communicator.device);
        let status = self.communicator.answer(ended)?;
        Ok(self.ended(status))
    }

    /// Tests whether the operation is complete (MPI_Test), and returns what [`Request::wait`] would return if it is. After
    /// that the request is empty, and a further wait or test fails.
    ///
    /// # Errors
    /// As [`Request::wait`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut receive = world.irecv(vec![0], 1 - world.rank(), 1).unwrap();
    ///     world.send(&[world.rank()], 1 - world.rank(), 1).unwrap();
    ///     let (numbers, _) = loop {
    ///         if let Some(complete) = receive.test().unwrap() {
    ///             break complete;
    ///         }
    ///     };
    ///     assert_eq!(numbers, [1 - world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Test")]
    #[track_caller]
    pub fn test(&mut self) -> Result<Option<(Vec<T>, Status)>, Error> {
        self.test_at(Some(Location::caller()))
    }

    fn test_at(&mut self, place: CallPlace) -> Result<Option<(Vec<T>, Status)>, Error> {
        let tested = self.operation.test(&self.communicator.device, place);
        let status = self.communicator.answer_look(tested)?;
        Ok(status.map(|status| self.ended(status)))
    }

    /// Returns whether [`Request::wait`] would return at once, with a result or an error.
    ///
    /// # Errors
    /// The device has failed.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let receive = world.irecv(vec![0], 0, 1).unwrap();
    ///     assert!(!receive.is_done().unwrap());
    ///     world.send(&[7], 0, 1).unwrap();
    ///     assert!(receive.is_done().unwrap());
    ///     assert_eq!(receive.wait().unwrap().0, [7]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn is_done(&self) -> Result<bool, Error> {
        self.communicator.is_done(self.operation.is_done(&self.communicator.device))
    }

    /// Returns the status of the operation if it is complete, and leaves the request unchanged
    /// (MPI_Request_get_status). [`Request::wait`] returns the buffer.
    ///
    /// # Errors
    /// As [`Request::wait`], which then returns the same error.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let receive = world.irecv(vec![0u8; 4], 0, 0).unwrap();
    ///     assert_eq!(receive.status().unwrap(), None);
    ///     world.send(&[1u8, 2], 0, 0).unwrap();
    ///     let status = receive.status().unwrap().expect("it has come");
    ///     assert_eq!(status.bytes, 2);
    ///     assert_eq!(receive.wait().unwrap(), (vec![1, 2, 0, 0], status));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Request_get_status")]
    pub fn status(&self) -> Result<Option<Status>, Error> {
        let status = self.operation.status(&self.communicator.device);
        let status = self.communicator.answer_look(status)?;
        Ok(status.map(|status| self.communicator.status(status)))
    }

    /// Cancels a receive that has not matched a message (MPI_Cancel), and returns whether it did. Wait for the request
    /// in either case. Sends and collective calls are never cancelled.
    ///
    /// # Errors
    /// The device has failed.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let receive = world.irecv(vec![0], 0, 1).unwrap();
    ///     assert!(receive.cancel().unwrap());
    ///     let (_, status) = receive.wait().unwrap();
    ///     assert!(status.cancelled);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Cancel")]
    pub fn cancel(&self) -> Result<bool, Error> {
        match self.operation.open() {
            Some(request) => self.communicator.answer(self.communicator.device.cancel(request)),
            None => Ok(false),
        }
    }

    pub(crate) fn of_send(
        communicator: PointToPoint,
        request: mpjdev::Request,
        buffer: Vec<T>,
    ) -> Self {
        let operation = Operation::new(request);
        let (data, steps, is_receive) = (Vec::new(), None, false);
        Self { communicator, operation, data, buffer, steps, is_receive }
    }

    pub(crate) fn of_receive(
        communicator: PointToPoint,
        request: mpjdev::Request,
        buffer: Vec<T>,
    ) -> Self {
        let mut made = Self::of_send(communicator, request, buffer);
        made.is_receive = true;
        made
    }

    pub(crate) fn of_collective(
        communicator: PointToPoint,
        (request, steps): (mpjdev::Request, Steps),
        (data, buffer): (Vec<T>, Vec<T>),
    ) -> Self {
        let operation = Operation::new(request);
        Self { communicator, operation, data, buffer, steps: Some(steps), is_receive: false }
    }

    /// Returns the buffer and status of an operation that has ended well.
    fn ended(&mut self, status: mpjdev::Status) -> (Vec<T>, Status) {
        self.steps = None;
        (std::mem::take(&mut self.buffer), self.communicator.status(status))
    }
}

listed!(impl[T: Datatype] Request<T>, communicator);

impl<T: Datatype> Await for Request<T> {
    type Output = (Vec<T>, Status);

    fn look(&mut self) -> Result<Option<Self::Output>, Error> {
        self.test_at(None)
    }
}

impl<T: Datatype> IntoFuture for Request<T> {
    type Output = Result<(Vec<T>, Status), Error>;
    type IntoFuture = Completion<Self>;

    fn into_future(self) -> Self::IntoFuture {
        Completion::new(self)
    }
}

impl<T: Datatype> Drop for Request<T> {
    fn drop(&mut self) {
        match (self.operation.take_open(), self.steps.take()) {
            (Some(request), steps) => {
                let Self { communicator, operation, is_receive, .. } = self;
                if *is_receive && !operation.is_seen() {
                    communicator.device.drop_receive(&request, communicator.context);
                }
                let buffers = (std::mem::take(&mut self.data), std::mem::take(&mut self.buffer));
                leave(&self.communicator, request, steps.as_ref(), buffers);
            }
            // The call has failed.
            (None, Some(steps)) => steps.settle(),
            (None, None) => {}
        }
    }
}

/// Lets an operation for which nobody waits any more continue with its buffers (Q1, CQ1).
fn leave(
    communicator: &PointToPoint,
    request: mpjdev::Request,
    steps: Option<&Steps>,
    buffers: impl Send + 'static,
) {
    let with_request: Box<dyn Any + Send> = match steps {
        Some(steps) => {
            steps.keep(Box::new(buffers));
            Box::new(())
        }
        None => Box::new(buffers),
    };
    communicator.device.detach(request, with_request);
}

/// # Non-blocking calls that own their buffers
impl PointToPoint {
    /// Starts to send `data` (MPI_Isend).
    ///
    /// # Errors
    /// As [`PointToPoint::send`]; `data` is then dropped.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let other = 1 - world.rank();
    ///     let send = world.isend(vec![world.rank() as u64; 1000], other, 3).unwrap();
    ///     let receive = world.irecv(vec![0u64; 1000], other, 3).unwrap();
    ///     let (data, status) = receive.wait().unwrap();
    ///     assert_eq!((data[999], status.source), (other as u64, other));
    ///     let (_sent, _) = send.wait().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Isend")]
    #[track_caller]
    pub fn isend<T: Datatype>(
        &self,
        data: Vec<T>,
        dest: usize,
        tag: i32,
    ) -> Result<Request<T>, Error> {
        self.start_send(data, dest, tag, Mode::Standard)
    }

    /// Starts to send `data`; the send is complete only when the receive has begun (MPI_Issend).
    ///
    /// # Errors
    /// As [`PointToPoint::isend`].
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let send = world.issend(vec![7], 0, 1).unwrap();
    ///     assert!(send.status().unwrap().is_none(), "nobody has received it");
    ///     world.recv(&mut 0, 0, 1).unwrap();
    ///     assert_eq!(send.wait().unwrap().0, [7]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Issend")]
    #[track_caller]
    pub fn issend<T: Datatype>(
        &self,
        data: Vec<T>,
        dest: usize,
        tag: i32,
    ) -> Result<Request<T>, Error> {
        self.start_send(data, dest, tag, Mode::Synchronous)
    }

    #[track_caller]
    fn start_send<T: Datatype>(
        &self,
        buffer: Vec<T>,
        dest: usize,
        tag: i32,
        mode: Mode,
    ) -> Result<Request<T>, Error> {
        let request = self.start_to_send(&buffer, dest, tag, mode)?;
        Ok(Request::of_send(self.clone(), request, buffer))
    }

    /// Starts to send `data` to a rank that has already posted its receive (MPI_Irsend), see [`PointToPoint::rsend`].
    ///
    /// # Errors
    /// As [`PointToPoint::isend`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let receive = world.irecv(vec![0], 1 - world.rank(), 1).unwrap();
    ///     world.barrier().unwrap();
    ///     world.irsend(vec![7], 1 - world.rank(), 1).unwrap().wait().unwrap();
    ///     assert_eq!(receive.wait().unwrap().0, [7]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Irsend")]
    #[track_caller]
    pub fn irsend<T: Datatype>(
        &self,
        data: Vec<T>,
        dest: usize,
        tag: i32,
    ) -> Result<Request<T>, Error> {
        self.isend(data, dest, tag)
    }

    /// Starts to receive into `buffer`, at most as many elements as it has (MPI_Irecv).
    ///
    /// # Errors
    /// No such rank, a negative tag; the device has failed.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let receive = world.irecv(vec![0], 0, mpj::ANY_TAG).unwrap();
    ///     world.send(&[7], 0, 1).unwrap();
    ///     let (numbers, status) = receive.wait().unwrap();
    ///     assert_eq!((numbers, status.tag), (vec![7], 1));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Irecv")]
    #[track_caller]
    pub fn irecv<T: Datatype>(
        &self,
        mut buffer: Vec<T>,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<Request<T>, Error> {
        let request = self.start_to_receive(&mut buffer, source.into(), tag.into())?;
        Ok(Request::of_receive(self.clone(), request, buffer))
    }

    /// Starts to send the elements of a buffer, which the caller keeps untouched until the operation has ended (Q1).
    #[track_caller]
    pub(crate) fn start_to_send<T: Datatype>(
        &self,
        buffer: &[T],
        dest: usize,
        tag: i32,
        mode: Mode,
    ) -> Result<mpjdev::Request, Error> {
        let (device, context, peer) = (&self.device, self.context, self.peer(dest)?);
        let data = self.step(source(buffer))?;
        let (place, to) = (Location::caller(), (peer, tag, context));
        let describe = || self.describe::<T>("isend", place);
        self.started(device.isend_described(data, to, mode, describe), Some(tag))
    }

    /// Starts to receive into a buffer, which the caller keeps untouched until the operation has ended (Q1).
    #[track_caller]
    pub(crate) fn start_to_receive<T: Datatype>(
        &self,
        buffer: &mut [T],
        source: Source,
        tag: Tag,
    ) -> Result<mpjdev::Request, Error> {
        let (source, tag) = (self.sender(source)?, tag.value());
        let (device, context) = (&self.device, self.context);
        let into = self.step(sink(buffer))?;
        let place = Location::caller();
        let describe = || self.describe::<T>("irecv", place);
        self.started(device.irecv_described(into, source, tag, context, describe), tag)
    }
}
