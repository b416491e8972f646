//! The requests of a scope.

use std::panic::Location;

use super::State;
use crate::communicator::operation::{CallPlace, Internal, Listed, Outcome};
use crate::communicator::{Await, Completion, PointToPoint};
use crate::envelope::Status;
use crate::error::Error;
use crate::memory::borrowed::Borrow;

/// A send, a receive or a collective call under way in a scope. Waiting for it is optional: the scope waits for all.
///
/// `B` is the borrow that [`ScopedRequest::wait`] returns: a borrow of a slice if the buffer's memory is one
/// ([`SendBuffer::Memory`](crate::SendBuffer::Memory)). Of a collective call it is that of the results.
///
/// ```
/// mpj::local::run(2, |world| {
///     let (mine, other, mut theirs) = ([world.rank()], 1 - world.rank(), [9]);
///     world.scope(|scope| {
///         let receive = scope.irecv(&mut theirs, other, 0)?;
///         scope.isend(&mine, other, 0)?;
///         let (theirs, _status) = receive.wait()?;
///         theirs[0] += 10;
///         Ok(())
///     })
///     .unwrap();
///     assert_eq!(theirs, [other + 10]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
pub struct ScopedRequest<'scope, B: Borrow> {
    pub(super) state: &'scope State<'scope>,
    pub(super) communicator: &'scope PointToPoint,
    pub(super) request: Started,
    /// `None` once it was returned.
    pub(super) buffer: Option<B::Held>,
}

/// How far an operation is.
pub(super) enum Started {
    /// Complete when the call that started it returned.
    Done(mpjdev::Request),
    /// Under way as far as is known: the scope keeps the request at this place.
    UnderWay(usize),
    /// Complete, as a call for a list of requests has seen.
    Ended(Outcome),
    /// Taken by a test, or for a call for a list of requests.
    Taken,
}

impl<B: Borrow> ScopedRequest<'_, B> {
    /// Waits until the operation is complete and returns the borrow (MPI_Wait). The status of a collective call says
    /// nothing.
    ///
    /// # Errors
    /// A message longer than the buffer; the errors of the collective call; the device has failed.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let mut got = [9; 2];
    ///     let outcome: Result<_, mpj::Error> = world.scope(|scope| {
    ///         let receive = scope.irecv(&mut got, 0, 0)?;
    ///         scope.isend(&[7], 0, 0)?;
    ///         receive.wait()
    ///     });
    ///     let (got, status) = outcome.unwrap();
    ///     assert_eq!((&got[..], status.bytes), (&[7, 9][..], 4));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Wait")]
    #[track_caller]
    pub fn wait(self) -> Result<(B, Status), Error> {
        let Self { state, communicator, .. } = self;
        let request = match self.request {
            Started::Done(request) => Some(request),
            Started::UnderWay(place) => state.take(place),
            Started::Ended(outcome) => {
                let status = communicator.completed(outcome.map_err(|error| *error))?;
                return returned::<B>(self.buffer, status);
            }
            Started::Taken => None,
        };
        // The status is taken apart, not moved: see `PointToPoint::completed`.
        let (request, place) = (request.ok_or(mpjdev::Error::Request)?, Location::caller());
        let status = match communicator.device.iwait_at(request, Some(place)) {
            Ok(status) => communicator.answer(Ok::<_, Error>(())).map(|()| status)?,
            Err(error) => communicator.answer(Err(error))?,
        };
        returned::<B>(self.buffer, communicator.status(status))
    }

    /// Tests whether the operation is complete (MPI_Test), and returns what [`ScopedRequest::wait`] would return if it is.
    /// After that the request is empty, and a further wait or test fails.
    ///
    /// # Errors
    /// As [`ScopedRequest::wait`].
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let mut got = [9];
    ///     world.scope(|scope| {
    ///         let mut receive = scope.irecv(&mut got, 0, 0)?;
    ///         assert!(receive.test()?.is_none());
    ///         scope.isend(&[7], 0, 0)?;
    ///         assert_eq!(receive.test()?.expect("it has come").0, &[7]);
    ///         Ok(())
    ///     })
    ///     .unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Test")]
    #[track_caller]
    pub fn test(&mut self) -> Result<Option<(B, Status)>, Error> {
        self.test_at(Some(Location::caller()))
    }

    fn test_at(&mut self, at: CallPlace) -> Result<Option<(B, Status)>, Error> {
        let (communicator, state) = (self.communicator, self.state);
        let tested = match std::mem::replace(&mut self.request, Started::Taken) {
            Started::Done(request) => Ok(request.completed()),
            Started::UnderWay(place) => {
                let tested =
                    communicator.device.itest_at(&mut state.requests.borrow_mut()[place], at);
                if matches!(tested, Ok(None)) {
                    self.request = Started::UnderWay(place);
                }
                tested
            }
            Started::Ended(outcome) => outcome.map(Some).map_err(|error| *error),
            Started::Taken => Err(mpjdev::Error::Request),
        };
        let Some(status) = communicator.answer_look(tested)? else { return Ok(None) };
        returned::<B>(self.buffer.take(), communicator.status(status)).map(Some)
    }

    /// Returns whether [`ScopedRequest::wait`] would return at once, with a result or an error.
    ///
    /// # Errors
    /// The device has failed.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let mut got = [9];
    ///     world.scope(|scope| {
    ///         let receive = scope.irecv(&mut got, 0, 0)?;
    ///         assert!(!receive.is_done()?);
    ///         scope.isend(&[7], 0, 0)?;
    ///         assert!(receive.is_done()?);
    ///         Ok(())
    ///     })
    ///     .unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn is_done(&self) -> Result<bool, Error> {
        let Started::UnderWay(place) = self.request else { return Ok(true) };
        let device = &self.communicator.device;
        self.communicator.is_done(match &self.state.requests.borrow()[place] {
            Some(request) => device.istatus(request).map(|outcome| outcome.is_some()),
            None => Ok(true),
        })
    }
}

/// Returns a borrow that no earlier test has returned (Z3).
#[inline(always)]
fn returned<B: Borrow>(held: Option<B::Held>, status: Status) -> Result<(B, Status), Error> {
    Ok((B::take_back(held.ok_or(mpjdev::Error::Request)?), status))
}

/// The scope keeps each request that is put back (Z1).
impl<B: Borrow> Listed for ScopedRequest<'_, B> {
    fn communicator(&self, _: Internal) -> &PointToPoint {
        self.communicator
    }

    fn take_open(&mut self, _: Internal) -> Option<mpjdev::Request> {
        match std::mem::replace(&mut self.request, Started::Taken) {
            Started::Done(request) => Some(request),
            Started::UnderWay(place) => {
                self.request = Started::UnderWay(place);
                self.state.take(place)
            }
            known => {
                self.request = known;
                None
            }
        }
    }

    fn put_back(&mut self, request: mpjdev::Request, _: Internal) {
        match self.request {
            Started::UnderWay(place) => self.state.requests.borrow_mut()[place] = Some(request),
            _ => self.request = Started::Done(request),
        }
    }

    fn end(&mut self, outcome: Outcome, _: Internal) {
        self.request = Started::Ended(outcome);
    }
}

impl<B: Borrow> Await for ScopedRequest<'_, B> {
    type Output = (B, Status);

    fn look(&mut self) -> Result<Option<Self::Output>, Error> {
        self.test_at(None)
    }
}

impl<B: Borrow> IntoFuture for ScopedRequest<'_, B> {
    type Output = Result<(B, Status), Error>;
    type IntoFuture = Completion<Self>;

    fn into_future(self) -> Self::IntoFuture {
        Completion::new(self)
    }
}
