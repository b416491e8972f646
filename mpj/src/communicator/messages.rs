//! Translation of ranks, statuses and errors between a communicator and the world, for all point-to-point calls. The
//! calls are in `point_to_point.rs` and the files beside it.

use std::panic::Location;

use mpicore::{Entered, Site};
use mpjdev::{CallKind, Described, Recorded, recorded};

use crate::datatype::{Datatype, TypeMap};
use crate::envelope::{Source, Status};
use crate::error::Error;
use crate::group::no_rank;
use crate::rank_device::{RankDevice, none_kept};

/// The point-to-point calls (MPI-4 chapter 3) of a [`Communicator`](crate::Communicator), with the ranks of its group,
/// or of an [`InterCommunicator`](crate::InterCommunicator), with the ranks of the other group. Both dereference to
/// this. Clones send and receive the same messages.
///
/// ```
/// use mpj::PointToPoint;
/// /// Does not ask whether there are two groups.
/// fn exchange(over: &PointToPoint, mine: i32) -> Result<i32, mpj::Error> {
///     let mut theirs = 0;
///     over.sendrecv(&mine, 0, 5, &mut theirs, 0, 5)?;
///     Ok(theirs)
/// }
///
/// mpj::local::run(2, |world| {
///     let own = world.self_comm().unwrap();
///     let other = mpj::RemoteLeader { peers: &world, leader: 1 - world.rank(), tag: 0 };
///     let between = own.create_inter(0, Some(other)).unwrap();
///     let mine = world.rank() as i32;
///     assert_eq!(exchange(&own, mine).unwrap(), mine);
///     assert_eq!(exchange(&between, mine).unwrap(), 1 - mine);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[derive(Clone)]
pub struct PointToPoint {
    pub(crate) device: RankDevice,
    /// Context id of point-to-point messages.
    pub(crate) context: u32,
    /// Ranks below this number are those of the device. If these are all that the device has, there is no limit, since the
    /// device checks ranks, too.
    pub(crate) like_device: usize,
    pub(crate) core: mpicore::Communicator,
}

/// A call that is described while this lives.
pub(crate) struct Said {
    _described: Described,
    _recorded: Option<Recorded>,
}

/// A call whose place is noted while this lives.
pub(crate) struct Sited {
    _entered: Option<Entered>,
    _recorded: Option<Recorded>,
}

impl PointToPoint {
    pub(super) fn new(core: mpicore::Communicator) -> Self {
        let device = RankDevice::of(core.process().clone());
        let peers = core.peers();
        let size = peers.size() as usize;
        let like_device = match peers.iter().eq(0..peers.size()) {
            true if size == device.size() => usize::MAX,
            true => size,
            false => 0,
        };
        Self { device, context: core.context(), like_device, core }
    }

    /// Says of the next send or receive on this communicator which elements it has and where the program makes it, while
    /// the result lives, in a job that finds mistakes between ranks or records their calls. The call has this name.
    #[inline(always)]
    pub(crate) fn describe<T: Datatype>(
        &self,
        name: &'static str,
        place: &'static Location<'static>,
    ) -> Option<Said> {
        self.device.is_described().then(|| self.describe_as(name, || T::datatype().ok(), place))
    }

    /// Notes the caller's place in the program, and the type of its elements where collective calls are checked. The call
    /// has this name if it is recorded, unless it has that of a collective call.
    #[inline]
    #[track_caller]
    pub(crate) fn site(
        &self,
        name: &'static str,
        element: impl FnOnce() -> Option<TypeMap>,
    ) -> Option<Sited> {
        let place = Location::caller();
        self.device.is_described().then(|| self.enter(name, element, place))
    }

    /// Begins the record of a call, where calls are recorded.
    #[inline]
    #[track_caller]
    pub(crate) fn recorded(&self, name: &'static str, kind: CallKind) -> Option<Recorded> {
        let place = Location::caller();
        if self.device.is_described() { self.record(name, kind, place) } else { None }
    }

    /// Records a probe that has not waited, and has found a message.
    #[inline]
    #[track_caller]
    pub(crate) fn recorded_find(
        &self,
        name: &'static str,
        status: &mpjdev::Status,
    ) -> Option<Recorded> {
        let recorded = self.recorded(name, CallKind::Probe)?;
        recorded::found(status);
        Some(recorded)
    }

    #[cold]
    #[inline(never)]
    fn describe_as(
        &self,
        name: &'static str,
        of: impl FnOnce() -> Option<TypeMap>,
        place: &'static Location<'static>,
    ) -> Said {
        let recorded = self.record(name, CallKind::Other, place);
        let of = if self.device.is_checked() { of() } else { None };
        Said { _described: self.core.describe(of.as_ref(), Some(place)), _recorded: recorded }
    }

    #[cold]
    #[inline(never)]
    fn enter(
        &self,
        name: &'static str,
        element: impl FnOnce() -> Option<TypeMap>,
        place: &'static Location<'static>,
    ) -> Sited {
        let _recorded = self.record(name, CallKind::Other, place);
        let _entered = self.device.is_checked().then(|| Site::enter(place, element()));
        Sited { _entered, _recorded }
    }

    #[cold]
    #[inline(never)]
    fn record(
        &self,
        name: &'static str,
        kind: CallKind,
        place: &'static Location<'static>,
    ) -> Option<Recorded> {
        Recorded::begin(name, kind, Some(place), self.core.number_in_records())
    }

    /// Passes on the result of a user's call on this communicator. The error handler sees an error first.
    #[inline(always)]
    pub(crate) fn answer<T>(&self, result: Result<T, impl Into<Error>>) -> Result<T, Error> {
        if result.is_ok() && none_kept() { result.map_err(Into::into) } else { self.note(result) }
    }

    /// [`PointToPoint::answer`] for a step of a call that goes on: success is no result yet.
    #[inline(always)]
    pub(crate) fn step<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        result.or_else(|error| self.answer(Err(error)))
    }

    /// [`PointToPoint::answer`] if there is an error, or if an earlier error is kept.
    #[cold]
    #[inline(never)]
    fn note<T>(&self, result: Result<T, impl Into<Error>>) -> Result<T, Error> {
        match result {
            Ok(value) => self.device.answer(Ok::<_, Error>(value)),
            Err(error) => self.fail(self.in_own_ranks(error.into())),
        }
    }

    /// [`PointToPoint::answer`] for an error that is returned unchanged, since its ranks may be those of another
    /// communicator.
    #[cold]
    #[inline(never)]
    pub(crate) fn fail<T>(&self, error: Error) -> Result<T, Error> {
        let answer = self.device.answer(Err(error));
        if let Err(error) = &answer {
            // mpj returns every error, since no handler that it sets asks for anything else.
            self.core.handle(&Error::clone(error).into_core());
        }
        answer
    }

    /// Translates the rank in an error of a message to a rank of this communicator. Errors for lost ranks keep the rank
    /// of the world, since several communicators may report the same loss.
    #[cold]
    #[inline(never)]
    fn in_own_ranks(&self, mut error: Error) -> Error {
        match &mut error {
            Error::Device(mpjdev::Error::Truncate { source_rank, .. }) => {
                *source_rank = self.own_rank(*source_rank);
            }
            Error::Device(mpjdev::Error::Misfit(misfit)) => {
                misfit.source_rank = self.own_rank(misfit.source_rank);
                misfit.rank = self.core.rank();
            }
            _ => {}
        }
        error
    }

    /// Returns the world rank of a rank to send to. An error has already passed through [`PointToPoint::answer`]. If
    /// the ranks are those of the device, the device checks them.
    #[inline]
    pub(crate) fn job_rank(&self, rank: usize) -> Result<usize, Error> {
        if rank < self.like_device {
            return Ok(rank);
        }
        let peers = self.core.peers();
        match u32::try_from(rank).ok().and_then(|rank| peers.job_rank(rank).ok()) {
            Some(job_rank) => Ok(job_rank as usize),
            None => self.answer(Err(self.missing(rank))),
        }
    }

    /// The error about a rank that this communicator does not have: of the job, if it has all ranks that started together.
    #[cold]
    fn missing(&self, rank: usize) -> Error {
        let (world, size) = (self.device.world(), self.like_device);
        if (world.start, world.len()) == (0, size) {
            return Error::Device(mpjdev::Error::Rank { rank, size, is_alone: false });
        }
        no_rank(self.core.peers(), rank)
    }

    /// Returns the world rank of the source of a receive or probe, like [`PointToPoint::job_rank`].
    #[inline]
    pub(crate) fn source(&self, source: Source) -> Result<Option<usize>, Error> {
        source.rank().map(|rank| self.job_rank(rank)).transpose()
    }

    /// Translates the source in a status of the device to a rank of this communicator.
    #[inline]
    pub(crate) fn status(&self, status: mpjdev::Status) -> Status {
        Status::new(self.sender_of(status.source), status)
    }

    #[inline]
    fn sender_of(&self, job_rank: u32) -> u32 {
        if (job_rank as usize) < self.like_device { job_rank } else { self.own_rank(job_rank) }
    }

    /// Returns the rank in this communicator of a rank of the job, or the latter if it has none.
    #[inline(never)]
    fn own_rank(&self, job_rank: u32) -> u32 {
        self.core.peers().rank_of(job_rank).unwrap_or(job_rank)
    }
}
