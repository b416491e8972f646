//! Non-blocking collective calls that own their buffers (MPI-4.1 section 6.12).
//!
//! - CQ1: a request keeps its buffers untouched until its call has ended, or until the device has failed and no thread
//!   is in a local step of the call (PL3 of the core). A request that is dropped before leaves its buffers with the
//!   call.

use mpicore::{Plan, Steps};

use super::{Partition, RecvArg, SendArg};
use crate::communicator::Communicator;
use crate::datatype::Datatype;
use crate::error::Error;
use crate::memory::core::{input, output};
use crate::op::Operation;

/// A collective call under way, with its buffers. It makes progress whenever a thread of the rank waits or tests on any
/// communicator.
///
/// All ranks must start it: a non-blocking call does not match a blocking one (MPI-4.1 section 6.12).
///
/// Dropping it does not block. The call continues, since other ranks need it, and its buffers are freed when it is
/// complete.
///
/// ```
/// mpj::local::run(3, |world| {
///     let sum = world.iall_reduce(vec![world.rank()], mpj::Op::Sum).unwrap();
///     // Work that needs no sum.
///     assert_eq!(sum.wait().unwrap(), [3]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[must_use = "the buffers come back from `wait`"]
pub struct CollectiveRequest<T: Datatype> {
    communicator: Communicator,
    /// The request of the device; `None` once it was waited for.
    open: Option<mpjdev::Request>,
    steps: Steps,
    data: Vec<T>,
    into: Vec<T>,
}

/// The buffer that was sent, and the buffer of the results.
pub type Buffers<T> = (Vec<T>, Vec<T>);

impl<T: Datatype> CollectiveRequest<T> {
    /// Waits until the call is complete on this rank (MPI_Wait), and returns the buffer of the results.
    ///
    /// # Errors
    /// As the blocking form of the call.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let request = world.iall_gather(vec![world.rank()], vec![9; 2]).unwrap();
    ///     assert_eq!(request.wait().unwrap(), [0, 1]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn wait(self) -> Result<Vec<T>, Error> {
        self.wait_both().map(|(_, into)| into)
    }

    /// Like [`CollectiveRequest::wait`], but returns both buffers: the sent one, which is empty for calls with one
    /// buffer, and that of the results.
    ///
    /// # Errors
    /// As [`CollectiveRequest::wait`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let request = world.iall_gather(vec![world.rank()], vec![9; 2]).unwrap();
    ///     let (mine, all) = request.wait_both().unwrap();
    ///     assert_eq!((mine, all), (vec![world.rank()], vec![0, 1]));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn wait_both(mut self) -> Result<Buffers<T>, Error> {
        let Some(request) = self.open.take() else {
            return Err(mpjdev::Error::Request.into());
        };
        self.communicator.ended(request, &self.steps)?;
        Ok((std::mem::take(&mut self.data), std::mem::take(&mut self.into)))
    }

    /// Tests whether the call is complete (MPI_Test): returns both buffers if it is, otherwise the request.
    ///
    /// # Errors
    /// As [`CollectiveRequest::wait`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut request = world.ibroadcast(vec![world.rank()], 1).unwrap();
    ///     let (_, word) = loop {
    ///         match request.test().unwrap() {
    ///             Ok(buffers) => break buffers,
    ///             Err(open) => request = open,
    ///         }
    ///     };
    ///     assert_eq!(word, [1]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn test(mut self) -> Result<Result<Buffers<T>, Self>, Error> {
        match self.communicator.tested(&mut self.open, &self.steps)? {
            Some(_) => Ok(Ok((std::mem::take(&mut self.data), std::mem::take(&mut self.into)))),
            None => Ok(Err(self)),
        }
    }
}

impl<T: Datatype> Drop for CollectiveRequest<T> {
    fn drop(&mut self) {
        if let Some(request) = self.open.take() {
            let buffers = (std::mem::take(&mut self.data), std::mem::take(&mut self.into));
            self.communicator.leave(request, &self.steps, buffers);
        }
    }
}

impl Communicator {
    /// Starts the plan that is made for the buffers.
    pub(crate) fn start<'c, T: Datatype>(
        &'c self,
        data: Vec<T>,
        mut into: Vec<T>,
        plan: impl FnOnce(SendArg, RecvArg) -> Result<Plan<'c>, Error>,
    ) -> Result<CollectiveRequest<T>, Error> {
        let plan = input(&data).and_then(|data| plan(data, output(&mut into)?));
        let (open, steps) = self.begin(plan)?;
        Ok(CollectiveRequest { communicator: self.clone(), open: Some(open), steps, data, into })
    }

    /// Starts a plan, or returns the error of making it.
    pub(crate) fn begin(
        &self,
        plan: Result<Plan<'_>, Error>,
    ) -> Result<(mpjdev::Request, Steps), Error> {
        let begun = plan.and_then(|plan| {
            let mut once = plan.once()?;
            Ok((once.start()?, once.steps()))
        });
        self.answer(begun)
    }

    /// Waits for a collective call. Whatever the outcome, nothing uses the buffers of the call afterwards (CQ1).
    pub(crate) fn ended(&self, request: mpjdev::Request, steps: &Steps) -> Result<(), Error> {
        let ended = self.device.iwait(request).map_err(mpicore::Error::from);
        if ended.is_err() {
            steps.settle();
        }
        self.answer(ended).map(drop)
    }

    /// Tests whether a collective call has ended; if it has, like [`Communicator::ended`].
    pub(super) fn tested(
        &self,
        open: &mut Option<mpjdev::Request>,
        steps: &Steps,
    ) -> Result<Option<mpjdev::Status>, Error> {
        let ended = self.device.itest(open).map_err(mpicore::Error::from);
        if ended.is_err() {
            steps.settle();
        }
        self.answer_look(ended)
    }

    /// Lets a dropped collective call continue with its buffers (CQ1).
    pub(super) fn leave(
        &self,
        request: mpjdev::Request,
        steps: &Steps,
        buffers: impl Send + 'static,
    ) {
        steps.keep(Box::new(buffers));
        self.device.detach(request, Box::new(()));
    }

    /// Starts a barrier (MPI_Ibarrier).
    ///
    /// # Errors
    /// As [`Communicator::barrier`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let barrier = world.ibarrier().unwrap();
    ///     // Work that the others do not have to wait for.
    ///     barrier.wait().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn ibarrier(&self) -> Result<CollectiveRequest<u8>, Error> {
        self.start(Vec::new(), Vec::new(), |_, _| Ok(self.core.barrier()?))
    }

    /// Starts [`Communicator::broadcast`] (MPI_Ibcast).
    ///
    /// # Errors
    /// As [`Communicator::broadcast`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let request = world.ibroadcast(vec![world.rank(); 2], 1).unwrap();
    ///     assert_eq!(request.wait().unwrap(), [1, 1]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn ibroadcast<T: Datatype>(
        &self,
        buffer: Vec<T>,
        root: usize,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.start(Vec::new(), buffer, |_, buffer| self.plan_broadcast(buffer, root))
    }

    /// Starts [`Communicator::gather`] (MPI_Igather). Only the root's `into` is used.
    ///
    /// # Errors
    /// As [`Communicator::gather`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let into = if world.rank() == 2 { vec![0; 3] } else { vec![] };
    ///     let all = world.igather(vec![world.rank()], into, 2).unwrap().wait().unwrap();
    ///     assert!(world.rank() != 2 || all == [0, 1, 2]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn igather<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        root: usize,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.start(data, into, |data, into| self.plan_gather(data, into, root))
    }

    /// Starts [`Communicator::gatherv`] (MPI_Igatherv). Only the root's `into` and `blocks` are used.
    ///
    /// # Errors
    /// As [`Communicator::gatherv`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let blocks = mpj::Partition::packed([1, 2]);
    ///     let mine = vec![world.rank(); world.rank() + 1];
    ///     let all = world.igatherv(mine, vec![9; 3], &blocks, 0).unwrap().wait().unwrap();
    ///     assert_eq!(all, [[0, 1, 1], [9; 3]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn igatherv<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        blocks: &Partition,
        root: usize,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.start(data, into, |data, into| self.plan_gatherv(data, into, blocks, root))
    }

    /// Starts [`Communicator::scatter`] (MPI_Iscatter). Only the root's `data` is used.
    ///
    /// # Errors
    /// As [`Communicator::scatter`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let data = if world.rank() == 0 { vec![7, 8, 9] } else { vec![] };
    ///     let mine = world.iscatter(data, vec![0], 0).unwrap().wait().unwrap();
    ///     assert_eq!(mine, [7 + world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iscatter<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        root: usize,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.start(data, into, |data, into| self.plan_scatter(data, into, root))
    }

    /// Starts [`Communicator::scatterv`] (MPI_Iscatterv). Only the root's `data` and `blocks` are used.
    ///
    /// # Errors
    /// As [`Communicator::scatterv`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let blocks = mpj::Partition::packed([1, 2]);
    ///     let mine = vec![0; world.rank() + 1];
    ///     let request = world.iscatterv(vec![7, 8, 9], &blocks, mine, 0).unwrap();
    ///     assert_eq!(request.wait().unwrap(), [&[7][..], &[8, 9]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iscatterv<T: Datatype>(
        &self,
        data: Vec<T>,
        blocks: &Partition,
        into: Vec<T>,
        root: usize,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.start(data, into, |data, into| self.plan_scatterv(data, blocks, into, root))
    }

    /// Starts [`Communicator::all_gather`] (MPI_Iallgather).
    ///
    /// # Errors
    /// As [`Communicator::all_gather`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let all = world.iall_gather(vec![world.rank()], vec![0; 3]).unwrap().wait().unwrap();
    ///     assert_eq!(all, [0, 1, 2]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iall_gather<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.start(data, into, |data, into| self.plan_all_gather(data, into))
    }

    /// Starts [`Communicator::all_gatherv`] (MPI_Iallgatherv).
    ///
    /// # Errors
    /// As [`Communicator::all_gatherv`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let blocks = mpj::Partition::packed([1, 2]);
    ///     let mine = vec![world.rank(); world.rank() + 1];
    ///     let request = world.iall_gatherv(mine, vec![9; 3], &blocks).unwrap();
    ///     assert_eq!(request.wait().unwrap(), [0, 1, 1]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iall_gatherv<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        blocks: &Partition,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.start(data, into, |data, into| self.plan_all_gatherv(data, into, blocks))
    }

    /// Starts [`Communicator::all_to_all`] (MPI_Ialltoall).
    ///
    /// # Errors
    /// As [`Communicator::all_to_all`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let data = vec![10 * world.rank(), 10 * world.rank() + 1];
    ///     let into = world.iall_to_all(data, vec![0; 2]).unwrap().wait().unwrap();
    ///     assert_eq!(into, [world.rank(), 10 + world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iall_to_all<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.start(data, into, |data, into| self.plan_all_to_all(data, into))
    }

    /// Starts [`Communicator::all_to_allv`] (MPI_Ialltoallv).
    ///
    /// # Errors
    /// As [`Communicator::all_to_allv`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     // Every rank sends one number to rank 0, and two to rank 1.
    ///     let (sent, count) = (mpj::Partition::packed([1, 2]), world.rank() + 1);
    ///     let received = mpj::Partition::packed([count; 2]);
    ///     let (data, into) = (vec![world.rank(); 3], vec![9; 2 * count]);
    ///     let request = world.iall_to_allv(data, &sent, into, &received).unwrap();
    ///     assert_eq!(request.wait().unwrap(), [&[0, 1][..], &[0, 0, 1, 1]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iall_to_allv<T: Datatype>(
        &self,
        data: Vec<T>,
        sent: &Partition,
        into: Vec<T>,
        received: &Partition,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.start(data, into, |data, into| self.plan_all_to_allv(data, sent, into, received))
    }

    /// Starts [`Communicator::reduce`] (MPI_Ireduce). Only the root's `into` is used.
    ///
    /// # Errors
    /// As [`Communicator::reduce`].
    ///
    /// ```
    /// use mpj::Op;
    /// mpj::local::run(3, |world| {
    ///     let into = if world.rank() == 0 { vec![0] } else { vec![] };
    ///     let sum = world.ireduce(vec![world.rank()], into, Op::Sum, 0).unwrap().wait().unwrap();
    ///     assert!(world.rank() > 0 || sum == [3]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn ireduce<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        op: impl Operation<T>,
        root: usize,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.start(data, into, |data, into| self.plan_reduce(data, into, op.reduction(), root))
    }

    /// Starts [`Communicator::all_reduce`] (MPI_Iallreduce).
    ///
    /// # Errors
    /// As [`Communicator::all_reduce`]; a panic of the program's function is returned as an error.
    ///
    /// ```
    /// use mpj::Op;
    /// mpj::local::run(3, |world| {
    ///     let request = world.iall_reduce(vec![world.rank() as f32, 1.0], Op::Sum).unwrap();
    ///     assert_eq!(request.wait().unwrap(), [3.0, 3.0]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iall_reduce<T: Datatype>(
        &self,
        buffer: Vec<T>,
        op: impl Operation<T>,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.start(Vec::new(), buffer, |_, buffer| self.plan_all_reduce(buffer, op.reduction()))
    }

    /// Starts [`Communicator::reduce_scatter_block`] (MPI_Ireduce_scatter_block).
    ///
    /// # Errors
    /// As [`Communicator::reduce_scatter_block`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let request = world.ireduce_scatter_block(vec![1, 10], vec![0], mpj::Op::Sum).unwrap();
    ///     assert_eq!(request.wait().unwrap(), [[2], [20]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn ireduce_scatter_block<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        op: impl Operation<T>,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.start(data, into, |data, into| {
            self.plan_reduce_scatter_block(data, into, op.reduction())
        })
    }

    /// Starts [`Communicator::reduce_scatter`] (MPI_Ireduce_scatter).
    ///
    /// # Errors
    /// As [`Communicator::reduce_scatter`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let (data, mine) = (vec![1, 10, 100], vec![0; world.rank() + 1]);
    ///     let request = world.ireduce_scatter(data, mine, &[1, 2], mpj::Op::Sum).unwrap();
    ///     assert_eq!(request.wait().unwrap(), [&[2][..], &[20, 200]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn ireduce_scatter<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        counts: &[usize],
        op: impl Operation<T>,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.start(data, into, |data, into| {
            self.plan_reduce_scatter(data, into, counts, op.reduction())
        })
    }

    /// Starts [`Communicator::scan`] (MPI_Iscan).
    ///
    /// # Errors
    /// As [`Communicator::scan`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let request = world.iscan(vec![world.rank() + 1], mpj::Op::Sum).unwrap();
    ///     assert_eq!(request.wait().unwrap(), [[1], [3], [6]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iscan<T: Datatype>(
        &self,
        buffer: Vec<T>,
        op: impl Operation<T>,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.start(Vec::new(), buffer, |_, buffer| self.plan_scan(buffer, op.reduction()))
    }

    /// Starts [`Communicator::exscan`] (MPI_Iexscan).
    ///
    /// # Errors
    /// As [`Communicator::exscan`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let request = world.iexscan(vec![world.rank() + 1], mpj::Op::Sum).unwrap();
    ///     assert_eq!(request.wait().unwrap(), [[1], [1], [3]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iexscan<T: Datatype>(
        &self,
        buffer: Vec<T>,
        op: impl Operation<T>,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.start(Vec::new(), buffer, |_, buffer| self.plan_exscan(buffer, op.reduction()))
    }
}
