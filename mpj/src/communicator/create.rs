//! Calls that make communicators (MPI-4.1 section 7.4).

use std::panic::Location;

use mpicore::{Created, SplitKey};

use super::operation::{CallPlace, Operation, listed};
use super::{Await, Communicator, Completion};
use crate::error::Error;
use crate::group::Group;

/// A communicator that is being made: see [`Communicator::idup`]. A rank that drops it does not get the communicator;
/// the other ranks get theirs.
///
/// ```
/// mpj::local::run(2, |world| {
///     let pending = world.idup().unwrap();
///     // Work that does not need it.
///     pending.wait().unwrap().barrier().unwrap();
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[must_use = "the communicator comes from `wait`"]
pub struct PendingCommunicator {
    parent: Communicator,
    operation: Operation,
    created: Created,
}

impl PendingCommunicator {
    /// Waits until the communicator is made and returns it (MPI_Wait).
    ///
    /// # Errors
    /// As [`Communicator::dup`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let twin = world.idup().unwrap().wait().unwrap();
    ///     assert_eq!(twin.compare(&world), mpj::Relation::Congruent);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Wait")]
    #[track_caller]
    pub fn wait(mut self) -> Result<Communicator, Error> {
        let ended = self.operation.wait(&self.parent.device).map_err(mpicore::Error::from);
        self.parent.made(ended.and_then(|_| self.created.take()))
    }

    /// Tests whether the communicator is made (MPI_Test), and returns it if it is. After that a further wait or test
    /// fails.
    ///
    /// # Errors
    /// As [`Communicator::dup`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut pending = world.idup().unwrap();
    ///     let made = loop {
    ///         if let Some(made) = pending.test().unwrap() {
    ///             break made;
    ///         }
    ///     };
    ///     made.barrier().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Test")]
    #[track_caller]
    pub fn test(&mut self) -> Result<Option<Communicator>, Error> {
        self.test_at(Some(Location::caller()))
    }

    fn test_at(&mut self, place: CallPlace) -> Result<Option<Communicator>, Error> {
        match self.operation.test(&self.parent.device, place) {
            Ok(Some(_)) => self.parent.made(self.created.take()).map(Some),
            // The communicator is not made yet; this neither keeps nor settles an error of the thread.
            Ok(None) => Ok(None),
            Err(error) => self.parent.answer(Err(error)),
        }
    }

    /// Returns whether [`PendingCommunicator::wait`] would return at once.
    ///
    /// # Errors
    /// The device has failed.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let pending = world.idup().unwrap();
    ///     while !pending.is_done().unwrap() {}
    ///     pending.wait().unwrap().barrier().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn is_done(&self) -> Result<bool, Error> {
        self.parent.is_done(self.operation.is_done(&self.parent.device))
    }
}

listed!(impl[] PendingCommunicator, parent);

impl Await for PendingCommunicator {
    type Output = Communicator;

    fn look(&mut self) -> Result<Option<Self::Output>, Error> {
        self.test_at(None)
    }
}

impl IntoFuture for PendingCommunicator {
    type Output = Result<Communicator, Error>;
    type IntoFuture = Completion<Self>;

    fn into_future(self) -> Self::IntoFuture {
        Completion::new(self)
    }
}

impl Drop for PendingCommunicator {
    /// Lets the device forget the request when it has ended.
    fn drop(&mut self) {
        if let Some(request) = self.operation.take_open() {
            self.parent.device.detach(request, Box::new(()));
        }
    }
}

/// # Making communicators
impl Communicator {
    /// Makes a communicator of the same ranks whose messages never match those of this one (MPI_Comm_dup). Collective:
    /// every rank calls it, in the same order.
    ///
    /// The new communicator belongs to the same context of the ranks (see [`crate::World::on_endpoint`]). It has the
    /// error handler of this one, and the attributes that their keys copy.
    ///
    /// # Errors
    /// As [`PointToPoint::send`](crate::PointToPoint::send); on every rank, no context id is left, because some rank
    /// has 2^29 communicators; on this rank alone, a copy callback of an attribute has failed, see
    /// [`crate::AttributeKey::with`]. Existing communicators stay usable.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let other = world.dup().unwrap();
    ///     if world.rank() == 0 {
    ///         world.send(&[1], 1, 0).unwrap();
    ///         other.send(&[2], 1, 0).unwrap();
    ///     } else {
    ///         let mut value = [0];
    ///         other.recv(&mut value, 0, 0).unwrap();
    ///         assert_eq!(value, [2]);
    ///         world.recv(&mut value, 0, 0).unwrap();
    ///         assert_eq!(value, [1]);
    ///     }
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Comm_dup")]
    #[track_caller]
    pub fn dup(&self) -> Result<Self, Error> {
        let _site = self.site("dup", || None);
        self.made(self.core.dup())
    }

    /// Starts [`Communicator::dup`] without waiting (MPI_Comm_idup). Any call of this rank that makes progress advances
    /// it. Attributes are copied now.
    ///
    /// # Errors
    /// What made the device unusable. [`PendingCommunicator::wait`] returns all other errors.
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let pending = world.idup().unwrap();
    ///     world.barrier().unwrap();
    ///     assert_eq!(pending.wait().unwrap().group(), world.group());
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Comm_idup")]
    pub fn idup(&self) -> Result<PendingCommunicator, Error> {
        let (request, created) = self.answer(self.core.idup())?.into_request();
        let operation = Operation::new(request);
        Ok(PendingCommunicator { parent: self.clone(), operation, created })
    }

    /// Divides the ranks into one communicator for each color (MPI_Comm_split). Its ranks are ordered by their keys;
    /// ranks with equal keys keep their order. Collective.
    ///
    /// # Errors
    /// As [`Communicator::dup`], except for those of attributes.
    ///
    /// ```
    /// mpj::local::run(4, |world| {
    ///     // Even and odd ranks, each in the opposite order.
    ///     let rank = world.rank();
    ///     let part = world.split(rank as u32 % 2, -(rank as i32)).unwrap();
    ///     assert!(part.group().iter().eq([2 + rank % 2, rank % 2]));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Comm_split")]
    #[track_caller]
    pub fn split(&self, color: u32, key: i32) -> Result<Self, Error> {
        let part = self.split_some(Some(color), key)?;
        Ok(part.expect("a rank with a color is in a part"))
    }

    /// Like [`Communicator::split`], but a rank may have no color (MPI_UNDEFINED). Such a rank makes the call too, and
    /// gets no communicator.
    ///
    /// # Errors
    /// As [`Communicator::split`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let color = (world.rank() > 0).then_some(7);
    ///     let workers = world.split_some(color, 0).unwrap();
    ///     assert_eq!(workers.map(|workers| workers.size()), color.map(|_| 2));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_UNDEFINED")]
    #[track_caller]
    pub fn split_some(&self, color: Option<u32>, key: i32) -> Result<Option<Self>, Error> {
        let _site = self.site("split", || None);
        self.made_some(self.core.split(SplitKey { color, key }))
    }

    /// Divides the ranks into one communicator for each host, whose ranks can share memory (MPI_Comm_split_type with
    /// MPI_COMM_TYPE_SHARED). Collective.
    ///
    /// # Errors
    /// As [`Communicator::split`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     assert_eq!(world.split_by_host(0).unwrap().size(), 2);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias("MPI_Comm_split_type", "MPI_COMM_TYPE_SHARED"))]
    #[track_caller]
    pub fn split_by_host(&self, key: i32) -> Result<Self, Error> {
        let _site = self.site("split_by_host", || None);
        let part = self.made_some(self.core.split_by_host(key))?;
        Ok(part.expect("every rank is on a host"))
    }

    /// Makes a communicator of the members of `group` (MPI_Comm_create). The other ranks make the call too, and get
    /// `None`. Different ranks may give different groups if these have no rank in common. Collective.
    ///
    /// # Errors
    /// As [`Communicator::split`]. [`ErrorClass::Group`](crate::ErrorClass::Group): the group has a rank that is not in
    /// this communicator, or a rank that gives another group.
    ///
    /// ```
    /// mpj::local::run(4, |world| {
    ///     let group = world.group().incl([3, 1]).unwrap();
    ///     let made = world.create(&group).unwrap();
    ///     assert_eq!(made.map(|made| made.rank()), group.rank_of(world.rank()));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Comm_create")]
    #[track_caller]
    pub fn create(&self, group: &Group) -> Result<Option<Self>, Error> {
        let _site = self.site("create", || None);
        self.made_some(self.core.create(&group.core))
    }

    /// Makes a communicator of the members of `group`; only they call it (MPI_Comm_create_group). Threads that call it
    /// at the same time give different tags.
    ///
    /// # Errors
    /// As [`Communicator::split`]. [`ErrorClass::Group`](crate::ErrorClass::Group): the group has a rank that is not in
    /// this communicator, or does not contain the caller. [`ErrorClass::Tag`](crate::ErrorClass::Tag): the tag
    /// is negative.
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     if world.rank() < 2 {
    ///         let group = world.group().incl([0, 1]).unwrap();
    ///         world.create_group(&group, 7).unwrap().barrier().unwrap();
    ///     }
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Comm_create_group")]
    pub fn create_group(&self, group: &Group, tag: i32) -> Result<Self, Error> {
        self.made(self.core.create_group(&group.core, tag))
    }

    /// Makes a communicator of the members of `group`, which need not be ranks of this one; only they call it
    /// (MPI_Comm_create_from_group). This communicator only determines the context of the rank. Threads that call it at
    /// the same time give different texts. The new communicator has no error handler.
    ///
    /// # Errors
    /// As [`Communicator::create_group`], except that members need not be in this communicator. [`Error::Core`] of
    /// class [`ErrorClass::Arg`](crate::ErrorClass::Arg) if calls with different texts cannot be told apart, which is as good
    /// as impossible.
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let pair = mpj::Group::of_ranks([2, 0]).unwrap();
    ///     if pair.rank_of(world.rank()).is_some() {
    ///         let made = world.create_from_group(&pair, "org.example.pair").unwrap();
    ///         assert!(made.group() == pair);
    ///     }
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Comm_create_from_group")]
    pub fn create_from_group(&self, group: &Group, text: &str) -> Result<Self, Error> {
        let process = self.core.process();
        self.made(mpicore::Communicator::create_from_group(process, &group.core, text.as_bytes()))
    }

    /// Wraps the communicator that a call of the core has made for this rank.
    pub(super) fn made(
        &self,
        made: Result<mpicore::Communicator, mpicore::Error>,
    ) -> Result<Self, Error> {
        self.answer(made).map(Self::new)
    }

    /// Like [`Self::made`], for a call in which some ranks get no communicator.
    pub(super) fn made_some(
        &self,
        made: Result<Option<mpicore::Communicator>, mpicore::Error>,
    ) -> Result<Option<Self>, Error> {
        let made = self.answer(made)?;
        Ok(made.map(Self::new))
    }
}
