//! Persistent collective calls (MPI-4.1 section 6.13): made once, started any number of times.

use mpicore::{Persistent, Plan};

use super::{Partition, RecvArg, SendArg};
use crate::communicator::Communicator;
use crate::datatype::Datatype;
use crate::error::Error;
use crate::memory::borrowed::PersistentBuffer;
use crate::op::Operation;

/// A collective call that can be started many times, with its buffers. [`start`](Self::start) starts it and
/// [`wait`](Self::wait) completes it. Between two starts the program may read and write the buffers.
///
/// Dropping one that is under way does not wait: its buffers are freed when it is complete.
///
/// ```
/// use mpj::Op;
/// let sums = mpj::local::run(3, |world| {
///     let mut sum = world.all_reduce_init(vec![0.0; 2], Op::Sum).unwrap();
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
pub struct PersistentCollective<T: Datatype> {
    communicator: Communicator,
    plan: Persistent,
    /// The request, while the call is under way.
    open: Option<mpjdev::Request>,
    data: PersistentBuffer<T>,
    into: PersistentBuffer<T>,
}

impl<T: Datatype> PersistentCollective<T> {
    /// Starts the call (MPI_Start).
    ///
    /// # Errors
    /// [`Error::UnderWay`]; the device has failed.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut kept = world.broadcast_init(vec![world.rank()], 1).unwrap();
    ///     kept.start().unwrap();
    ///     assert!(kept.start().is_err(), "it is under way");
    ///     kept.wait().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn start(&mut self) -> Result<(), Error> {
        self.check_idle()?;
        let started = self.plan.start();
        self.open = Some(self.communicator.answer(started)?);
        Ok(())
    }

    /// Waits until the call is complete (MPI_Wait). A call that was not started is complete.
    ///
    /// # Errors
    /// As the blocking form of the call.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut kept = world.broadcast_init(vec![world.rank()], 1).unwrap();
    ///     kept.wait().unwrap(); // It was not started.
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    ///     assert_eq!(kept.buffer().unwrap(), [1]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn wait(&mut self) -> Result<(), Error> {
        match self.open.take() {
            Some(request) => self.communicator.ended(request, &self.plan.steps()),
            None => Ok(()),
        }
    }

    /// Tests whether the call is complete (MPI_Test). A call that was not started is complete.
    ///
    /// # Errors
    /// As [`PersistentCollective::wait`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut kept = world.barrier_init().unwrap();
    ///     kept.start().unwrap();
    ///     while !kept.test().unwrap() {
    ///         // Work that the others do not have to wait for.
    ///     }
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn test(&mut self) -> Result<bool, Error> {
        if self.open.is_none() {
            return Ok(true);
        }
        let ended = self.communicator.tested(&mut self.open, &self.plan.steps())?;
        Ok(ended.is_some())
    }

    /// Returns the buffer that is sent; it is empty for calls with one buffer.
    ///
    /// # Errors
    /// [`Error::UnderWay`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut all = world.all_gather_init(vec![0], vec![0; 2]).unwrap();
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

    /// Returns the buffer of the results.
    ///
    /// # Errors
    /// [`Error::UnderWay`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut word = world.broadcast_init(vec![world.rank()], 1).unwrap();
    ///     assert_eq!(word.buffer().unwrap(), [world.rank()]);
    ///     word.start().unwrap();
    ///     word.wait().unwrap();
    ///     assert_eq!(word.buffer().unwrap(), [1]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn buffer(&self) -> Result<&[T], Error> {
        self.check_idle()?;
        Ok(self.into.elements())
    }

    /// Returns the buffer of the results for writing. Calls with one buffer also send it.
    ///
    /// # Errors
    /// [`Error::UnderWay`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut sum = world.all_reduce_init(vec![0], mpj::Op::Sum).unwrap();
    ///     sum.buffer_mut().unwrap()[0] = world.rank() + 1;
    ///     sum.start().unwrap();
    ///     sum.wait().unwrap();
    ///     assert_eq!(sum.buffer().unwrap(), [3]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn buffer_mut(&mut self) -> Result<&mut [T], Error> {
        self.check_idle()?;
        Ok(self.into.elements_mut())
    }

    fn check_idle(&self) -> Result<(), Error> {
        match &self.open {
            Some(_) => self.communicator.answer(Err(Error::UnderWay)),
            None => Ok(()),
        }
    }
}

impl<T: Datatype> Drop for PersistentCollective<T> {
    fn drop(&mut self) {
        if let Some(request) = self.open.take() {
            let empty = || PersistentBuffer::new(Vec::new());
            let data = std::mem::replace(&mut self.data, empty());
            let into = std::mem::replace(&mut self.into, empty());
            self.communicator.leave(request, &self.plan.steps(), (data, into));
        }
    }
}

impl Communicator {
    /// Keeps the buffers with the plan that is made for them.
    pub(crate) fn keep<'c, T: Datatype>(
        &'c self,
        data: Vec<T>,
        into: Vec<T>,
        plan: impl FnOnce(SendArg, RecvArg) -> Result<Plan<'c>, Error>,
    ) -> Result<PersistentCollective<T>, Error> {
        let (data, into) = (PersistentBuffer::new(data), PersistentBuffer::new(into));
        let plan = data.input().and_then(|data| plan(data, into.output()?));
        let plan = self.answer(plan.and_then(|plan| Ok(plan.persistent()?)))?;
        Ok(PersistentCollective { communicator: self.clone(), plan, open: None, data, into })
    }

    /// Makes a persistent request for [`Communicator::barrier`] (MPI_Barrier_init).
    ///
    /// # Errors
    /// As [`Communicator::barrier`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let mut barrier = world.barrier_init().unwrap();
    ///     for _ in 0..3 {
    ///         barrier.start().unwrap();
    ///         barrier.wait().unwrap();
    ///     }
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn barrier_init(&self) -> Result<PersistentCollective<u8>, Error> {
        self.keep(Vec::new(), Vec::new(), |_, _| Ok(self.core.barrier()?))
    }

    /// Makes a persistent request for [`Communicator::broadcast`] (MPI_Bcast_init).
    ///
    /// # Errors
    /// As [`Communicator::broadcast`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let mut numbers = world.broadcast_init(vec![world.rank()], 2).unwrap();
    ///     numbers.start().unwrap();
    ///     numbers.wait().unwrap();
    ///     assert_eq!(numbers.buffer().unwrap(), [2]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn broadcast_init<T: Datatype>(
        &self,
        buffer: Vec<T>,
        root: usize,
    ) -> Result<PersistentCollective<T>, Error> {
        self.keep(Vec::new(), buffer, |_, buffer| self.plan_broadcast(buffer, root))
    }

    /// Makes a persistent request for [`Communicator::gather`] (MPI_Gather_init). Only the root's `into` is used.
    ///
    /// # Errors
    /// As [`Communicator::gather`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut kept = world.gather_init(vec![world.rank()], vec![9; 2], 0).unwrap();
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    ///     assert_eq!(kept.buffer().unwrap(), [[0, 1], [9, 9]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn gather_init<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        root: usize,
    ) -> Result<PersistentCollective<T>, Error> {
        self.keep(data, into, |data, into| self.plan_gather(data, into, root))
    }

    /// Makes a persistent request for [`Communicator::gatherv`] (MPI_Gatherv_init). Only the root's `into` and `blocks`
    /// are used.
    ///
    /// # Errors
    /// As [`Communicator::gatherv`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let blocks = mpj::Partition::packed([1, 2]);
    ///     let mine = vec![world.rank(); world.rank() + 1];
    ///     let mut kept = world.gatherv_init(mine, vec![9; 3], &blocks, 0).unwrap();
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    ///     assert_eq!(kept.buffer().unwrap(), [[0, 1, 1], [9; 3]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn gatherv_init<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        blocks: &Partition,
        root: usize,
    ) -> Result<PersistentCollective<T>, Error> {
        self.keep(data, into, |data, into| self.plan_gatherv(data, into, blocks, root))
    }

    /// Makes a persistent request for [`Communicator::scatter`] (MPI_Scatter_init). Only the root's `data` is used.
    ///
    /// # Errors
    /// As [`Communicator::scatter`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut kept = world.scatter_init(vec![7, 8], vec![0], 0).unwrap();
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    ///     assert_eq!(kept.buffer().unwrap(), [7 + world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn scatter_init<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        root: usize,
    ) -> Result<PersistentCollective<T>, Error> {
        self.keep(data, into, |data, into| self.plan_scatter(data, into, root))
    }

    /// Makes a persistent request for [`Communicator::scatterv`] (MPI_Scatterv_init). Only the root's `data` and
    /// `blocks` are used.
    ///
    /// # Errors
    /// As [`Communicator::scatterv`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let blocks = mpj::Partition::packed([1, 2]);
    ///     let mine = vec![0; world.rank() + 1];
    ///     let mut kept = world.scatterv_init(vec![7, 8, 9], &blocks, mine, 0).unwrap();
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    ///     assert_eq!(kept.buffer().unwrap(), [&[7][..], &[8, 9]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn scatterv_init<T: Datatype>(
        &self,
        data: Vec<T>,
        blocks: &Partition,
        into: Vec<T>,
        root: usize,
    ) -> Result<PersistentCollective<T>, Error> {
        self.keep(data, into, |data, into| self.plan_scatterv(data, blocks, into, root))
    }

    /// Makes a persistent request for [`Communicator::all_gather`] (MPI_Allgather_init).
    ///
    /// # Errors
    /// As [`Communicator::all_gather`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut all = world.all_gather_init(vec![world.rank()], vec![9; 2]).unwrap();
    ///     all.start().unwrap();
    ///     all.wait().unwrap();
    ///     assert_eq!(all.buffer().unwrap(), [0, 1]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn all_gather_init<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
    ) -> Result<PersistentCollective<T>, Error> {
        self.keep(data, into, |data, into| self.plan_all_gather(data, into))
    }

    /// Makes a persistent request for [`Communicator::all_gatherv`] (MPI_Allgatherv_init).
    ///
    /// # Errors
    /// As [`Communicator::all_gatherv`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let blocks = mpj::Partition::packed([1, 2]);
    ///     let mine = vec![world.rank(); world.rank() + 1];
    ///     let mut kept = world.all_gatherv_init(mine, vec![9; 3], &blocks).unwrap();
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    ///     assert_eq!(kept.buffer().unwrap(), [0, 1, 1]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn all_gatherv_init<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        blocks: &Partition,
    ) -> Result<PersistentCollective<T>, Error> {
        self.keep(data, into, |data, into| self.plan_all_gatherv(data, into, blocks))
    }

    /// Makes a persistent request for [`Communicator::all_to_all`] (MPI_Alltoall_init).
    ///
    /// # Errors
    /// As [`Communicator::all_to_all`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut all = world.all_to_all_init(vec![world.rank(), 5], vec![9; 2]).unwrap();
    ///     all.start().unwrap();
    ///     all.wait().unwrap();
    ///     assert_eq!(all.buffer().unwrap(), [[0, 1], [5, 5]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn all_to_all_init<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
    ) -> Result<PersistentCollective<T>, Error> {
        self.keep(data, into, |data, into| self.plan_all_to_all(data, into))
    }

    /// Makes a persistent request for [`Communicator::all_to_allv`] (MPI_Alltoallv_init).
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
    ///     let mut kept = world.all_to_allv_init(data, &sent, into, &received).unwrap();
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    ///     assert_eq!(kept.buffer().unwrap(), [&[0, 1][..], &[0, 0, 1, 1]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn all_to_allv_init<T: Datatype>(
        &self,
        data: Vec<T>,
        sent: &Partition,
        into: Vec<T>,
        received: &Partition,
    ) -> Result<PersistentCollective<T>, Error> {
        self.keep(data, into, |data, into| self.plan_all_to_allv(data, sent, into, received))
    }

    /// Makes a persistent request for [`Communicator::reduce`] (MPI_Reduce_init). Only the root's `into` is used.
    ///
    /// # Errors
    /// As [`Communicator::reduce`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let mut kept = world.reduce_init(vec![world.rank()], vec![9], mpj::Op::Sum, 0).unwrap();
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    ///     assert_eq!(kept.buffer().unwrap(), [[3], [9], [9]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn reduce_init<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        op: impl Operation<T>,
        root: usize,
    ) -> Result<PersistentCollective<T>, Error> {
        self.keep(data, into, |data, into| self.plan_reduce(data, into, op.reduction(), root))
    }

    /// Makes a persistent request for [`Communicator::all_reduce`] (MPI_Allreduce_init). See [`PersistentCollective`].
    ///
    /// # Errors
    /// As [`Communicator::all_reduce`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let mut most = world.all_reduce_init(vec![world.rank()], mpj::Op::Max).unwrap();
    ///     most.start().unwrap();
    ///     most.wait().unwrap();
    ///     assert_eq!(most.buffer().unwrap(), [2]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn all_reduce_init<T: Datatype>(
        &self,
        buffer: Vec<T>,
        op: impl Operation<T>,
    ) -> Result<PersistentCollective<T>, Error> {
        self.keep(Vec::new(), buffer, |_, buffer| self.plan_all_reduce(buffer, op.reduction()))
    }

    /// Makes a persistent request for [`Communicator::reduce_scatter_block`] (MPI_Reduce_scatter_block_init).
    ///
    /// # Errors
    /// As [`Communicator::reduce_scatter_block`].
    ///
    /// ```
    /// use mpj::Op;
    /// mpj::local::run(2, |world| {
    ///     let mut kept = world.reduce_scatter_block_init(vec![1, 10], vec![0], Op::Sum).unwrap();
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    ///     assert_eq!(kept.buffer().unwrap(), [[2], [20]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn reduce_scatter_block_init<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        op: impl Operation<T>,
    ) -> Result<PersistentCollective<T>, Error> {
        self.keep(data, into, |data, into| {
            self.plan_reduce_scatter_block(data, into, op.reduction())
        })
    }

    /// Makes a persistent request for [`Communicator::reduce_scatter`] (MPI_Reduce_scatter_init).
    ///
    /// # Errors
    /// As [`Communicator::reduce_scatter`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let (data, mine) = (vec![1, 10, 100], vec![0; world.rank() + 1]);
    ///     let mut kept = world.reduce_scatter_init(data, mine, &[1, 2], mpj::Op::Sum).unwrap();
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    ///     assert_eq!(kept.buffer().unwrap(), [&[2][..], &[20, 200]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn reduce_scatter_init<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        counts: &[usize],
        op: impl Operation<T>,
    ) -> Result<PersistentCollective<T>, Error> {
        self.keep(data, into, |data, into| {
            self.plan_reduce_scatter(data, into, counts, op.reduction())
        })
    }

    /// Makes a persistent request for [`Communicator::scan`] (MPI_Scan_init).
    ///
    /// # Errors
    /// As [`Communicator::scan`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let mut kept = world.scan_init(vec![world.rank() + 1], mpj::Op::Sum).unwrap();
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    ///     assert_eq!(kept.buffer().unwrap(), [[1], [3], [6]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn scan_init<T: Datatype>(
        &self,
        buffer: Vec<T>,
        op: impl Operation<T>,
    ) -> Result<PersistentCollective<T>, Error> {
        self.keep(Vec::new(), buffer, |_, buffer| self.plan_scan(buffer, op.reduction()))
    }

    /// Makes a persistent request for [`Communicator::exscan`] (MPI_Exscan_init).
    ///
    /// # Errors
    /// As [`Communicator::exscan`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let mut kept = world.exscan_init(vec![world.rank() + 1], mpj::Op::Sum).unwrap();
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    ///     assert_eq!(kept.buffer().unwrap(), [[1], [1], [3]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn exscan_init<T: Datatype>(
        &self,
        buffer: Vec<T>,
        op: impl Operation<T>,
    ) -> Result<PersistentCollective<T>, Error> {
        self.keep(Vec::new(), buffer, |_, buffer| self.plan_exscan(buffer, op.reduction()))
    }
}
