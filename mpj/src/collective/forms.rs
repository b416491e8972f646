//! The forms of collective calls: blocking, started, persistent, and started in a scope.

use std::ops::Deref;

use mpicore::Steps;

use super::buffers::{RecvLent, RecvOwned, SendLent, SendOwned};
use super::{CallOn, Collective, Planned};
use crate::communicator::{Communicator, InterCommunicator, PointToPoint};
use crate::datatype::Datatype;
use crate::error::Error;
use crate::memory::borrowed::PersistentBuffer;
use crate::memory::core::{input, output};
use crate::request::{PersistentRequest, Request};
use crate::scope::{Scope, ScopedRequest};

/// Runs a call to its end. The borrows of its buffers outlast this.
#[inline]
#[track_caller]
fn run<C: Deref<Target = PointToPoint>, K: CallOn<C>, D: SendLent, I: RecvLent>(
    on: &C,
    call: Collective<K, D, I>,
) -> Result<(), Error> {
    let _site = on.site("collective", || I::element().or_else(D::element));
    let Collective { kind, data, into } = call;
    let mut results = into.lend();
    let plan = data.input().and_then(|data| kind.plan(on, data, I::output(&mut results)?));
    on.answer(plan.and_then(|plan| Ok(plan.run()?)))
}

/// Starts a call. Its request has the buffers (CQ1).
#[track_caller]
fn start<C: Deref<Target = PointToPoint>, K: CallOn<C>, D, I: RecvOwned>(
    on: &C,
    call: Collective<K, D, I>,
) -> Result<Request<I::Element>, Error>
where
    D: SendOwned<I::Element>,
{
    let _site = on.site("collective", || I::Element::datatype().ok());
    let Collective { kind, data, into } = call;
    let (data, mut into) = (data.into_vec(), into.into_vec());
    let plan = input(&data).and_then(|data| kind.plan(on, data, output(&mut into)?));
    let begun = on.answer(begin(plan))?;
    Ok(Request::of_collective(PointToPoint::clone(on), begun, (data, into)))
}

/// Keeps the plan of a call with its buffers.
#[track_caller]
fn persistent<C: Deref<Target = PointToPoint>, K: CallOn<C>, D, I: RecvOwned>(
    on: &C,
    call: Collective<K, D, I>,
) -> Result<PersistentRequest<I::Element>, Error>
where
    D: SendOwned<I::Element>,
{
    let _site = on.site("collective", || I::Element::datatype().ok());
    let Collective { kind, data, into } = call;
    let buffers = [data.into_vec(), into.into_vec()].map(PersistentBuffer::new);
    let [data, into] = buffers;
    let plan = data.input().and_then(|data| kind.plan(on, data, into.output()?));
    let plan = on.answer(plan.and_then(|plan| Ok(plan.persistent()?)))?;
    Ok(PersistentRequest::of_collective(PointToPoint::clone(on), plan, (data, into)))
}

/// Starts a plan that was made.
fn begin(plan: Planned<'_>) -> Result<(mpjdev::Request, Steps), Error> {
    let mut once = plan?.once()?;
    Ok((once.start()?, once.steps()))
}

/// # Collective calls in other forms
impl Communicator {
    /// Makes a collective call on borrowed buffers, and waits until it has ended on this rank. The methods with names of
    /// calls are short for this.
    ///
    /// # Errors
    /// As the method with the name of the call.
    ///
    /// ```
    /// use mpj::collective;
    /// mpj::local::run(3, |world| {
    ///     let mut word = world.rank();
    ///     world.run(collective::broadcast(&mut word, 2)).unwrap();
    ///     assert_eq!(word, 2);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn run<K, D, I>(&self, call: Collective<K, D, I>) -> Result<(), Error>
    where
        K: CallOn<Self>,
        D: SendLent,
        I: RecvLent,
    {
        run(self, call)
    }

    /// Starts a collective call that owns its buffers, which are vectors: MPI_Ibarrier, MPI_Ibcast, MPI_Iallreduce and so
    /// on.
    ///
    /// # Errors
    /// As the method with the name of the call; the buffers are then dropped. Other errors are the outcome of the
    /// request, also a panic of a program's operation.
    ///
    /// ```
    /// use mpj::{Op, collective};
    /// mpj::local::run(3, |world| {
    ///     let sum = world.start(collective::all_reduce(vec![world.rank()], Op::Sum)).unwrap();
    ///     // Work that needs no sum.
    ///     assert_eq!(sum.wait().unwrap().0, [3]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias("MPI_Ibarrier", "MPI_Ibcast", "MPI_Iallreduce"))]
    #[track_caller]
    pub fn start<K, D, I>(&self, call: Collective<K, D, I>) -> Result<Request<I::Element>, Error>
    where
        K: CallOn<Self>,
        D: SendOwned<I::Element>,
        I: RecvOwned,
    {
        start(self, call)
    }

    /// Makes a persistent request for a collective call that owns its buffers, which are vectors: MPI_Barrier_init,
    /// MPI_Bcast_init, MPI_Allreduce_init and so on.
    ///
    /// # Errors
    /// As [`Communicator::start`].
    ///
    /// ```
    /// use mpj::{Op, collective};
    /// let sums = mpj::local::run(3, |world| {
    ///     let mut sum = world.persistent(collective::all_reduce(vec![0.0; 2], Op::Sum)).unwrap();
    ///     for step in 0..10 {
    ///         sum.buffer_mut().unwrap().fill(f64::from(step));
    ///         sum.start().unwrap();
    ///         sum.wait().unwrap();
    ///     }
    ///     sum.buffer().unwrap()[1]
    /// })?;
    /// assert_eq!(sums, [27.0; 3]);
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias("MPI_Barrier_init", "MPI_Bcast_init", "MPI_Allreduce_init"))]
    #[track_caller]
    pub fn persistent<K, D, I>(
        &self,
        call: Collective<K, D, I>,
    ) -> Result<PersistentRequest<I::Element>, Error>
    where
        K: CallOn<Self>,
        D: SendOwned<I::Element>,
        I: RecvOwned,
    {
        persistent(self, call)
    }
}

/// # Collective calls
impl InterCommunicator {
    /// Makes a collective call between the two groups and waits until it has ended on this rank. See
    /// [`collective`](crate::collective#between-two-groups).
    ///
    /// # Errors
    /// As the method of [`Communicator`] with the name of the call.
    ///
    /// ```
    /// use mpj::collective;
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let mut theirs = [9];
    ///     between.run(collective::all_gather(&world.rank(), &mut theirs)).unwrap();
    ///     assert_eq!(theirs, [1 - world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[track_caller]
    pub fn run<K, D, I>(&self, call: Collective<K, D, I>) -> Result<(), Error>
    where
        K: CallOn<Self>,
        D: SendLent,
        I: RecvLent,
    {
        run(self, call)
    }

    /// Starts a collective call between the two groups that owns its buffers, as [`Communicator::start`] does in one.
    ///
    /// # Errors
    /// As [`Communicator::start`].
    ///
    /// ```
    /// use mpj::{Op, Root, collective};
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     // The rank of the second group gets what the first one has.
    ///     let root = [Root::There(0), Root::Here][world.rank()];
    ///     let sum = between.start(collective::reduce(vec![7], vec![9], Op::Sum, root)).unwrap();
    ///     assert_eq!(sum.wait().unwrap().0, [[9], [7]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[track_caller]
    pub fn start<K, D, I>(&self, call: Collective<K, D, I>) -> Result<Request<I::Element>, Error>
    where
        K: CallOn<Self>,
        D: SendOwned<I::Element>,
        I: RecvOwned,
    {
        start(self, call)
    }

    /// Makes a persistent request for a collective call between the two groups, as [`Communicator::persistent`] does
    /// in one.
    ///
    /// # Errors
    /// As [`Communicator::start`].
    ///
    /// ```
    /// use mpj::{Partition, collective};
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let (mine, blocks) = (vec![world.rank(); 2], Partition::packed([2]));
    ///     let call = collective::all_gatherv(mine, vec![9; 2], &blocks);
    ///     let mut kept = between.persistent(call).unwrap();
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    ///     assert_eq!(kept.buffer().unwrap(), [1 - world.rank(); 2]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[track_caller]
    pub fn persistent<K, D, I>(
        &self,
        call: Collective<K, D, I>,
    ) -> Result<PersistentRequest<I::Element>, Error>
    where
        K: CallOn<Self>,
        D: SendOwned<I::Element>,
        I: RecvOwned,
    {
        persistent(self, call)
    }
}

impl<'scope, 'env, C: Deref<Target = PointToPoint>> Scope<'scope, 'env, C> {
    /// Starts a collective call on borrowed buffers: MPI_Ibarrier, MPI_Ibcast, MPI_Iallreduce and so on.
    /// [`ScopedRequest::wait`] returns the borrow of the results, such as `&'env mut [f64]`.
    ///
    /// # Errors
    /// As the method of [`Communicator`] with the name of the call; [`Error::OtherContext`].
    ///
    /// ```
    /// use mpj::{Op, collective};
    /// mpj::local::run(3, |world| {
    ///     let (mine, mut all, mut sum) = (world.rank(), [9; 3], [world.rank(), 1]);
    ///     world.scope(|scope| {
    ///         scope.start(collective::all_gather(&mine, &mut all))?;
    ///         let sums = scope.start(collective::all_reduce(&mut sum, Op::Sum))?;
    ///         // Work that needs no sums.
    ///         sums.wait()?.0[1] += 10;
    ///         Ok(())
    ///     })
    ///     .unwrap();
    ///     assert_eq!((all, sum), ([0, 1, 2], [3, 13]));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias("MPI_Ibarrier", "MPI_Ibcast", "MPI_Iallreduce"))]
    #[track_caller]
    pub fn start<K, D, I>(
        self,
        call: Collective<K, D, I>,
    ) -> Result<ScopedRequest<'scope, I::Borrow>, Error>
    where
        K: CallOn<C>,
        D: SendLent + 'env,
        I: RecvLent + 'env,
    {
        let on = self.check()?;
        let _site = on.site("collective", || I::element().or_else(D::element));
        let Collective { kind, data, into } = call;
        // The sent buffer is borrowed for `'env`, that of the results is lent for as long (LE1).
        let mut results = into.lend();
        let plan = data.input().and_then(|data| kind.plan(on, data, I::output(&mut results)?));
        let begun = on.answer(begin(plan))?;
        Ok(self.keep_collective(begun, results))
    }
}
