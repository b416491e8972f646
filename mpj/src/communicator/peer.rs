//! The peers of point-to-point calls: ranks of communicators, and MPI_PROC_NULL, which is no rank (MPI-4.1 section
//! 3.10). All point-to-point calls pass through here on their way to the device and back.
//!
//! If the ranks of a communicator are those of the world, nothing is translated. [`PROC_NULL`] costs nothing on the
//! path of messages: the device refuses it like any number that is no rank, and only then does a call check whether it
//! was [`PROC_NULL`].

use mpjdev::Call;

use super::PointToPoint;
use crate::envelope::{Source, Status};
use crate::error::Error;

/// The rank that stands for no process: MPI_PROC_NULL. A send to it, or a receive from it, is complete at once and
/// moves no data. The status of such a receive has this source, the tag -1, and no bytes.
///
/// A program can use it as the neighbour of a rank at the edge of a grid, which then needs no special case:
///
/// ```
/// use mpj::PROC_NULL;
/// let got = mpj::local::run(3, |world| {
///     let row = world.create_cartesian(&[3], &[false], false).unwrap().unwrap();
///     let along = row.shift(0, 1).unwrap();
///     let (left, right) = (along.source, along.destination);
///     let (left, right) = (left.unwrap_or(PROC_NULL), right.unwrap_or(PROC_NULL));
///     let mut from_left = 9_usize;
///     let status = row.sendrecv(&row.rank(), right, 0, &mut from_left, left, 0).unwrap();
///     assert_eq!(status.source == PROC_NULL, row.rank() == 0);
///     from_left
/// })?;
/// assert_eq!(got, [9, 0, 1]);
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias = "MPI_PROC_NULL")]
// No job has this rank, since it is the highest `u32`, and a status of the device can hold it.
pub const PROC_NULL: usize = mpicore::PROC_NULL;

/// Returns the status that the device would return for a message from MPI_PROC_NULL.
fn of_nobody() -> mpjdev::Status {
    mpjdev::Status::new(u32::MAX, -1, 0)
}

impl PointToPoint {
    /// Translates a destination to its world rank; [`PROC_NULL`] stays as it is. Passes an error to
    /// [`PointToPoint::answer`].
    #[inline(always)]
    pub(crate) fn peer(&self, dest: usize) -> Result<usize, Error> {
        if dest < self.like_device { Ok(dest) } else { self.peer_among_some(dest) }
    }

    #[inline(never)]
    fn peer_among_some(&self, dest: usize) -> Result<usize, Error> {
        if dest == PROC_NULL { Ok(dest) } else { self.job_rank(dest) }
    }

    /// Translates the source of a receive or probe to its world rank, like [`PointToPoint::peer`].
    #[inline(always)]
    pub(crate) fn sender(&self, source: Source) -> Result<Option<usize>, Error> {
        match source.rank() {
            Some(rank) if rank >= self.like_device => self.sender_among_some(source),
            source => Ok(source),
        }
    }

    #[inline(never)]
    fn sender_among_some(&self, source: Source) -> Result<Option<usize>, Error> {
        if source == Source::Rank(PROC_NULL) { Ok(source.rank()) } else { self.source(source) }
    }

    /// Passes on the result of a blocking send with this tag.
    #[inline(always)]
    pub(crate) fn sent(&self, sent: Result<(), mpjdev::Error>, tag: i32) -> Result<(), Error> {
        self.answer(sent.or_else(|error| self.unless_for_nobody(error, Some(tag))))
    }

    /// Passes on the result of a blocking receive or probe that asked for this tag.
    #[inline(always)]
    pub(crate) fn received(
        &self,
        received: Result<mpjdev::Status, mpjdev::Error>,
        tag: Option<i32>,
    ) -> Result<Status, Error> {
        match received {
            Ok(status) => self.completed(Ok(status)),
            Err(error) => self.completed(self.unless_for_nobody(error, tag).map(|()| of_nobody())),
        }
    }

    /// Passes on the outcome of an operation that has ended. The status is taken apart, not moved: its fields were
    /// written just before, and a wider load than the stores would wait until they have left the processor's buffer.
    #[inline(always)]
    pub(crate) fn completed(
        &self,
        outcome: Result<mpjdev::Status, mpjdev::Error>,
    ) -> Result<Status, Error> {
        match outcome {
            Ok(status) => {
                self.answer(Ok::<_, Error>(()))?;
                Ok(self.status(status))
            }
            Err(error) => self.answer(Err(error)),
        }
    }

    /// Passes on the result of a call that starts an operation with this tag.
    #[inline(always)]
    pub(crate) fn started(
        &self,
        started: Result<mpjdev::Request, mpjdev::Error>,
        tag: Option<i32>,
    ) -> Result<mpjdev::Request, Error> {
        match started {
            // The argument of `answer` is empty, so that the request stays in registers.
            Ok(request) => self.answer(Ok::<_, Error>(())).map(|()| request),
            Err(error) => match self.not_started(error, tag) {
                Ok(request) => Ok(*request),
                Err(error) => Err(*error),
            },
        }
    }

    /// Returns a completed request if the refused call was for MPI_PROC_NULL, otherwise the error. The request is boxed
    /// so that the caller keeps its own in registers.
    #[cold]
    #[inline(never)]
    fn not_started(
        &self,
        error: mpjdev::Error,
        tag: Option<i32>,
    ) -> Result<Box<mpjdev::Request>, Box<Error>> {
        self.refused(error, tag)?;
        Ok(Box::new(self.started_for_nobody()?))
    }

    /// Makes a completed request for MPI_PROC_NULL.
    #[cold]
    pub(crate) fn started_for_nobody(&self) -> Result<mpjdev::Request, Error> {
        self.complete(of_nobody())
    }

    /// Makes a completed request with this status.
    pub(crate) fn complete(&self, status: mpjdev::Status) -> Result<mpjdev::Request, Error> {
        let (request, ending) = self.answer(self.device.begin(Call::Other, self.context, 0))?;
        self.device.end(ending, Ok(status));
        Ok(request)
    }

    /// Passes on the result of a call that the device has refused.
    #[cold]
    pub(crate) fn refused(&self, error: mpjdev::Error, tag: Option<i32>) -> Result<(), Error> {
        self.answer(self.unless_for_nobody(error, tag))
    }

    /// Returns the error of a call that the device refused, or success if the call was for MPI_PROC_NULL and its tag is
    /// legal.
    #[cold]
    #[inline(never)]
    fn unless_for_nobody(
        &self,
        error: mpjdev::Error,
        tag: Option<i32>,
    ) -> Result<(), mpjdev::Error> {
        match (error, tag) {
            (mpjdev::Error::Rank { rank: PROC_NULL, .. }, Some(tag)) => {
                self.device.check_send(self.device.rank() as usize, tag)
            }
            (mpjdev::Error::Rank { rank: PROC_NULL, .. }, None) => Ok(()),
            (error, _) => Err(error),
        }
    }

    /// Returns the status of a receive from MPI_PROC_NULL.
    pub(crate) fn nobody(&self) -> Status {
        self.status(of_nobody())
    }

    /// Passes on whether an operation is complete.
    pub(crate) fn is_done(&self, is_done: Result<bool, mpjdev::Error>) -> Result<bool, Error> {
        let done = self.answer_look(is_done.map(|is_done| is_done.then_some(())))?;
        Ok(done.is_some())
    }

    /// [`PointToPoint::answer`] for a call that polls. A poll that finds nothing neither keeps nor settles an error of
    /// the thread, since a program may poll repeatedly, even while it is about to leave because of an error.
    #[inline(always)]
    pub(crate) fn answer_look<T>(
        &self,
        outcome: Result<Option<T>, impl Into<Error>>,
    ) -> Result<Option<T>, Error> {
        match outcome {
            Ok(None) => Ok(None),
            outcome => self.answer(outcome),
        }
    }
}
