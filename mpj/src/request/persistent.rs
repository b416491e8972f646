//! Persistent requests: calls that are made once and started any number of times (MPI-4.1 sections 3.9 and 6.13).

use std::panic::Location;

use mpicore::{Persistent, PersistentTransfer, Steps};

use super::leave;
use crate::communicator::operation::{CallPlace, Internal, Listed, Operation, Outcome};
use crate::communicator::{Await, Completion, PointToPoint};
use crate::datatype::Datatype;
use crate::envelope::Status;
use crate::error::Error;
use crate::memory::borrowed::PersistentBuffer;

/// A send, a receive or a collective call that can be started many times, with its buffers. [`start`](Self::start)
/// starts it and [`wait`](Self::wait) completes it. Between two starts the program may read and write the buffers.
///
/// [`PointToPoint::send_init`] and the methods beside it make those of messages, [`Communicator::persistent`] and
/// [`InterCommunicator::persistent`] those of collective calls.
///
/// Dropping it while it is under way does not wait: a receive that has not matched a message is cancelled, any other
/// operation continues, and the buffers are freed when it is complete.
///
/// [`Communicator::persistent`]: crate::Communicator::persistent
/// [`InterCommunicator::persistent`]: crate::InterCommunicator::persistent
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
    call: PersistentCall,
    /// Empty before the first start, and after a wait.
    operation: Operation,
    last: Option<Status>,
    /// What a collective call with two buffers sends.
    data: PersistentBuffer<T>,
    buffer: PersistentBuffer<T>,
}

enum PersistentCall {
    Transfer(PersistentTransfer),
    Collective(Persistent),
}

impl PersistentCall {
    fn start(&mut self) -> Result<mpjdev::Request, mpicore::Error> {
        match self {
            Self::Transfer(transfer) => transfer.start(),
            Self::Collective(plan) => plan.start(),
        }
    }

    fn steps(&self) -> Option<Steps> {
        match self {
            Self::Transfer(_) => None,
            Self::Collective(plan) => Some(plan.steps()),
        }
    }
}

impl<T: Datatype> PersistentRequest<T> {
    /// Starts the operation (MPI_Start).
    ///
    /// # Errors
    /// [`Error::UnderWay`] if the operation was started and is not known to be complete; an error of the last operation
    /// that no wait has returned; as [`PointToPoint::isend`], [`PointToPoint::ibsend`] and [`PointToPoint::irecv`].
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
    #[doc(alias = "MPI_Start")]
    #[track_caller]
    pub fn start(&mut self) -> Result<(), Error> {
        self.check_idle()?;
        self.wait()?;
        let _said = match &self.call {
            PersistentCall::Transfer(_) => {
                self.communicator.describe::<T>("start", Location::caller())
            }
            PersistentCall::Collective(_) => None,
        };
        self.operation = Operation::new(self.communicator.answer(self.call.start())?);
        Ok(())
    }

    /// Waits until the operation is complete and returns its status (MPI_Wait), or `None` if it is not under way. The
    /// status of a collective call says nothing.
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
    #[doc(alias = "MPI_Wait")]
    #[track_caller]
    pub fn wait(&mut self) -> Result<Option<Status>, Error> {
        if !self.operation.is_wanted() {
            return Ok(None);
        }
        let ended = self.operation.wait(&self.communicator.device);
        let ended = ended.inspect_err(|_| self.settle());
        self.last = Some(self.communicator.completed(ended)?);
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
    #[doc(alias = "MPI_Test")]
    #[track_caller]
    pub fn test(&mut self) -> Result<bool, Error> {
        self.test_at(Some(Location::caller()))
    }

    fn test_at(&mut self, place: CallPlace) -> Result<bool, Error> {
        if !self.operation.is_wanted() {
            return Ok(true);
        }
        let tested = self.operation.test(&self.communicator.device, place);
        let tested = tested.inspect_err(|_| self.settle());
        let Some(status) = self.communicator.answer_look(tested)? else { return Ok(false) };
        self.last = Some(self.communicator.status(status));
        Ok(true)
    }

    /// Returns whether [`PersistentRequest::wait`] would return at once.
    ///
    /// # Errors
    /// The device has failed.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let mut receive = world.recv_init(vec![0], 0, 3).unwrap();
    ///     assert!(receive.is_done().unwrap(), "it was not started");
    ///     receive.start().unwrap();
    ///     assert!(!receive.is_done().unwrap());
    ///     world.send(&[7], 0, 3).unwrap();
    ///     assert!(receive.is_done().unwrap());
    ///     receive.wait().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn is_done(&self) -> Result<bool, Error> {
        self.communicator.is_done(self.operation.is_done(&self.communicator.device))
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
    /// in either case. Sends and collective calls are never cancelled.
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
    #[doc(alias = "MPI_Cancel")]
    pub fn cancel(&self) -> Result<bool, Error> {
        match self.operation.open() {
            Some(request) => self.communicator.answer(self.communicator.device.cancel(request)),
            None => Ok(false),
        }
    }

    /// Returns the buffer that a collective call sends. It is empty for one whose only buffer holds what it sends and
    /// what it receives, and for messages.
    ///
    /// # Errors
    /// [`Error::UnderWay`].
    ///
    /// ```
    /// use mpj::collective;
    /// mpj::local::run(2, |world| {
    ///     let mut all = world.persistent(collective::all_gather(vec![0], vec![0; 2])).unwrap();
    ///     all.data_mut().unwrap()[0] = world.rank() + 5;
    ///     all.start().unwrap();
    ///     assert!(all.data_mut().is_err(), "it is under way");
    ///     all.wait().unwrap();
    ///     assert_eq!(all.buffer().unwrap(), [5, 6]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn data_mut(&mut self) -> Result<&mut [T], Error> {
        self.check_idle()?;
        Ok(self.data.elements_mut())
    }

    /// Returns the elements of the buffer: what is sent or received, or the results of a collective call.
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

    pub(crate) fn of_transfer(
        communicator: PointToPoint,
        transfer: PersistentTransfer,
        buffer: PersistentBuffer<T>,
    ) -> Self {
        let (call, data) = (PersistentCall::Transfer(transfer), PersistentBuffer::empty());
        Self { communicator, call, operation: Operation::default(), last: None, data, buffer }
    }

    pub(crate) fn of_collective(
        communicator: PointToPoint,
        plan: Persistent,
        (data, buffer): (PersistentBuffer<T>, PersistentBuffer<T>),
    ) -> Self {
        let call = PersistentCall::Collective(plan);
        Self { communicator, call, operation: Operation::default(), last: None, data, buffer }
    }

    /// Waits until nothing uses the buffers, after an error (CQ1).
    fn settle(&self) {
        self.call.steps().iter().for_each(Steps::settle);
    }

    fn check_idle(&self) -> Result<(), Error> {
        match self.operation.is_open() {
            true => self.communicator.answer(Err(Error::UnderWay)),
            false => Ok(()),
        }
    }
}

impl<T: Datatype> Listed for PersistentRequest<T> {
    fn communicator(&self, _: Internal) -> &PointToPoint {
        &self.communicator
    }

    fn take_open(&mut self, _: Internal) -> Option<mpjdev::Request> {
        self.operation.take_open()
    }

    fn put_back(&mut self, request: mpjdev::Request, _: Internal) {
        self.operation.put_back(request);
    }

    fn end(&mut self, outcome: Outcome, _: Internal) {
        match &outcome {
            Ok(status) => self.last = Some(self.communicator.status(*status)),
            // The program may use the buffers now.
            Err(_) => self.settle(),
        }
        self.operation.end(outcome);
    }
}

impl<T: Datatype> Await for &mut PersistentRequest<T> {
    type Output = Option<Status>;

    fn look(&mut self) -> Result<Option<Self::Output>, Error> {
        let is_wanted = self.operation.is_wanted();
        Ok(self.test_at(None)?.then(|| self.status().filter(|_| is_wanted)))
    }
}

impl<T: Datatype> IntoFuture for &mut PersistentRequest<T> {
    type Output = Result<Option<Status>, Error>;
    type IntoFuture = Completion<Self>;

    fn into_future(self) -> Self::IntoFuture {
        Completion::new(self)
    }
}

impl<T: Datatype> Drop for PersistentRequest<T> {
    fn drop(&mut self) {
        if let Some(request) = self.operation.take_open() {
            let data = std::mem::replace(&mut self.data, PersistentBuffer::empty());
            let buffer = std::mem::replace(&mut self.buffer, PersistentBuffer::empty());
            leave(&self.communicator, request, self.call.steps().as_ref(), (data, buffer));
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
#[doc(alias = "MPI_Startall")]
#[track_caller]
pub fn start_all<'a, T: Datatype>(
    requests: impl IntoIterator<Item = &'a mut PersistentRequest<T>>,
) -> Result<(), Error> {
    for request in requests {
        request.start()?;
    }
    Ok(())
}
