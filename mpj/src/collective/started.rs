//! Collective calls that are started and own their buffers meanwhile (MPI-4.1 section 6.12).
//!
//! - CQ1: a request keeps its buffers untouched until its call has ended or the device has failed, as Q1 of
//!   `request.rs` says of those of messages. One that is dropped before leaves them with the device.

use std::sync::Arc;

use mpicore::Plan;

use crate::communicator::Communicator;
use crate::datatype::Datatype;
use crate::error::Error;
use crate::op::Operation;
use crate::rank_device::RankDevice;

/// A collective call under way, together with its buffers. It goes on whenever a thread of the rank is in a call
/// that waits or tests, on whatever communicator.
///
/// Dropping it does not block: the call goes on, since other ranks need it, and the buffers are freed when it is
/// done.
#[must_use = "the buffers come back from `wait`"]
pub struct CollectiveRequest<T: Datatype> {
    device: Arc<RankDevice>,
    /// `None` once it was waited for.
    open: Option<mpjdev::Request>,
    data: Vec<T>,
    into: Vec<T>,
}

/// What was sent, and the results.
pub type Buffers<T> = (Vec<T>, Vec<T>);

impl<T: Datatype> CollectiveRequest<T> {
    /// Waits until the call is complete on this rank (MPI_Wait), and gives the buffer with the results back.
    ///
    /// # Errors
    /// What the blocking form of the call says.
    pub fn wait(self) -> Result<Vec<T>, Error> {
        self.wait_both().map(|(_, into)| into)
    }

    /// Waits as [`CollectiveRequest::wait`], and gives both buffers back: that with what was sent, which is empty for
    /// calls with one buffer, and that with the results.
    ///
    /// # Errors
    /// As [`CollectiveRequest::wait`].
    pub fn wait_both(mut self) -> Result<Buffers<T>, Error> {
        let Some(request) = self.open.take() else {
            return Err(mpjdev::Error::Request.into());
        };
        let ended = self.device.iwait(request).map_err(mpicore::Error::from);
        self.device.answer(ended)?;
        Ok((std::mem::take(&mut self.data), std::mem::take(&mut self.into)))
    }

    /// Tests whether the call is complete (MPI_Test): gives both buffers back, or the request.
    ///
    /// # Errors
    /// As [`CollectiveRequest::wait`].
    pub fn test(mut self) -> Result<Result<Buffers<T>, Self>, Error> {
        let device = self.device.clone();
        let ended = device.itest(&mut self.open).map_err(mpicore::Error::from);
        match device.answer_look(ended)? {
            Some(_) => Ok(Ok((std::mem::take(&mut self.data), std::mem::take(&mut self.into)))),
            None => Ok(Err(self)),
        }
    }
}

impl<T: Datatype> Drop for CollectiveRequest<T> {
    fn drop(&mut self) {
        if let Some(request) = self.open.take() {
            let buffers = (std::mem::take(&mut self.data), std::mem::take(&mut self.into));
            self.device.detach(request, Box::new(buffers));
        }
    }
}

impl Communicator {
    /// Starts what `plan` makes of the buffers.
    fn start<T: Datatype>(
        &self,
        data: Vec<T>,
        mut into: Vec<T>,
        plan: impl FnOnce(&[T], &mut [T]) -> Result<Plan, Error>,
    ) -> Result<CollectiveRequest<T>, Error> {
        let open = plan(&data, &mut into).and_then(|plan| Ok(plan.start()?));
        let open = Some(self.answer(open)?);
        Ok(CollectiveRequest { device: self.device.clone(), open, data, into })
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

    /// Starts [`Communicator::gather`] (MPI_Igather). `into` matters at the root alone.
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

    /// Starts [`Communicator::scatter`] (MPI_Iscatter). `data` matters at the root alone.
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

    /// Starts [`Communicator::reduce`] (MPI_Ireduce). `into` matters at the root alone.
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
        self.start(data, into, |data, into| self.plan_reduce(data, into, op, root))
    }

    /// Starts [`Communicator::all_reduce`] (MPI_Iallreduce).
    ///
    /// # Errors
    /// As [`Communicator::all_reduce`]. A panic of the program's function is an error here.
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
        self.start(Vec::new(), buffer, |_, buffer| self.plan_all_reduce(buffer, op))
    }
}
