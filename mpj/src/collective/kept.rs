//! Collective calls that are kept, to be started as often as is wanted (MPI-4.1 section 6.13).

use std::sync::Arc;

use mpicore::{Persistent, Plan};

use crate::communicator::Communicator;
use crate::datatype::Datatype;
use crate::error::Error;
use crate::lent::Kept;
use crate::op::Operation;
use crate::rank_device::RankDevice;

/// A collective call with its buffers, which is started by [`start`](Self::start) and complete after
/// [`wait`](Self::wait), again and again. In between the program reads and writes the buffers.
///
/// Dropping one that is under way waits for nobody: the buffers are freed when it is done.
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
    device: Arc<RankDevice>,
    plan: Persistent,
    /// While it is under way.
    open: Option<mpjdev::Request>,
    data: Kept<T>,
    into: Kept<T>,
}

impl<T: Datatype> PersistentCollective<T> {
    /// Starts it (MPI_Start).
    ///
    /// # Errors
    /// A call that was started and not waited for; the device has failed.
    pub fn start(&mut self) -> Result<(), Error> {
        self.check_idle()?;
        let started = self.plan.start();
        self.open = Some(self.device.answer(started)?);
        Ok(())
    }

    /// Waits until it is complete (MPI_Wait). One that was not started is.
    ///
    /// # Errors
    /// What the blocking form of the call says.
    pub fn wait(&mut self) -> Result<(), Error> {
        match self.open.take() {
            Some(request) => {
                let ended = self.device.iwait(request).map_err(mpicore::Error::from);
                self.device.answer(ended).map(drop)
            }
            None => Ok(()),
        }
    }

    /// Whether it is complete (MPI_Test). One that was not started is.
    ///
    /// # Errors
    /// As [`PersistentCollective::wait`].
    pub fn test(&mut self) -> Result<bool, Error> {
        if self.open.is_none() {
            return Ok(true);
        }
        let ended = self.device.itest(&mut self.open).map_err(mpicore::Error::from);
        Ok(self.device.answer_look(ended)?.is_some())
    }

    /// What is sent; empty for calls with one buffer.
    ///
    /// # Errors
    /// While it is under way.
    pub fn data_mut(&mut self) -> Result<&mut [T], Error> {
        self.check_idle()?;
        Ok(self.data.elements_mut())
    }

    /// The buffer of the results.
    ///
    /// # Errors
    /// While it is under way.
    pub fn buffer(&self) -> Result<&[T], Error> {
        self.check_idle()?;
        Ok(self.into.elements())
    }

    /// The same, to be changed: for calls with one buffer this is what is sent, too.
    ///
    /// # Errors
    /// While it is under way.
    pub fn buffer_mut(&mut self) -> Result<&mut [T], Error> {
        self.check_idle()?;
        Ok(self.into.elements_mut())
    }

    fn check_idle(&self) -> Result<(), Error> {
        match &self.open {
            Some(_) => Err(Error::UnderWay),
            None => Ok(()),
        }
    }
}

impl<T: Datatype> Drop for PersistentCollective<T> {
    fn drop(&mut self) {
        if let Some(request) = self.open.take() {
            let empty = || Kept::new(Vec::new());
            let data = std::mem::replace(&mut self.data, empty());
            let into = std::mem::replace(&mut self.into, empty());
            self.device.detach(request, Box::new((data, into)));
        }
    }
}

impl Communicator {
    fn keep<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        plan: impl FnOnce(&Kept<T>, &Kept<T>) -> Result<Plan, Error>,
    ) -> Result<PersistentCollective<T>, Error> {
        let (data, into) = (Kept::new(data), Kept::new(into));
        let plan = self.answer(plan(&data, &into))?.persistent();
        Ok(PersistentCollective { device: self.device.clone(), plan, open: None, data, into })
    }

    /// A barrier to be started often (MPI_Barrier_init).
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

    /// A broadcast to be started often (MPI_Bcast_init).
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
        self.keep(Vec::new(), buffer, |_, buffer| {
            let (buffer, count) = buffer.output()?;
            Ok(self.core.bcast(buffer, count, Self::root(root))?)
        })
    }

    /// [`Communicator::all_gather`] to be started often (MPI_Allgather_init).
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
        self.keep(data, into, |data, into| {
            let (data, (into, units)) = (data.input()?, into.output()?);
            Ok(self.core.allgather(Some(data), into, self.share(units)?)?)
        })
    }

    /// [`Communicator::all_to_all`] to be started often (MPI_Alltoall_init).
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
        self.keep(data, into, |data, into| {
            let ((data, sent), (into, received)) = (data.input()?, into.output()?);
            let (sent, received) = (self.equal_blocks(sent)?, self.equal_blocks(received)?);
            Ok(self.core.alltoall(Some((data, sent)), into, received)?)
        })
    }

    /// [`Communicator::all_reduce`] to be started often (MPI_Allreduce_init). See [`PersistentCollective`].
    ///
    /// # Errors
    /// As [`Communicator::all_reduce`].
    pub fn all_reduce_init<T: Datatype>(
        &self,
        buffer: Vec<T>,
        op: impl Operation<T>,
    ) -> Result<PersistentCollective<T>, Error> {
        self.keep(Vec::new(), buffer, |_, buffer| {
            let (buffer, count) = buffer.output()?;
            Ok(self.core.allreduce(None, buffer, count, op.reduction())?)
        })
    }
}
