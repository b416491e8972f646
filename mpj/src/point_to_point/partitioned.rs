//! Partitioned sends and receives (MPI-4.1 chapter 4): the parts of one message travel as they become ready.
//!
//! - PS4: a send under way reads a partition only after it was marked ready. Marking takes it, so the program cannot reach
//!   it any more. A receive does not write a partition that has arrived before its next start, which needs the whole
//!   receive.

use std::ops::{Deref, DerefMut};
use std::panic::Location;

use crate::communicator::PointToPoint;
use crate::datatype::Datatype;
use crate::error::Error;
use crate::memory::borrowed::{Borrowed, PersistentBuffer};

/// A send in partitions, which can be made many times (MPI_Psend_init): see [`PointToPoint::psend_init`].
#[doc(alias = "MPI_Psend_init")]
pub struct PartitionedSend<T: Datatype>(Partitioned<T, mpicore::PartitionedSend>);

/// A receive in partitions, which can be made many times (MPI_Precv_init): see [`PointToPoint::psend_init`].
#[doc(alias = "MPI_Precv_init")]
pub struct PartitionedReceive<T: Datatype>(Partitioned<T, mpicore::PartitionedReceive>);

/// A partition of a send that is not ready. It is a slice, for the thread that has it.
pub struct UnreadyPartition<'s, T> {
    index: usize,
    elements: Borrowed<'s, [T]>,
    send: &'s mpicore::PartitionedSend,
    communicator: &'s PointToPoint,
}

/// What has arrived of a receive in partitions.
pub struct Arrivals<'s, T: Datatype>(&'s Partitioned<T, mpicore::PartitionedReceive>);

struct Partitioned<T: Datatype, P> {
    communicator: PointToPoint,
    core: P,
    partitions: usize,
    buffer: PersistentBuffer<T>,
    /// Under way after a scope has panicked.
    operation: Option<mpjdev::Request>,
}

/// # Partitioned calls
impl PointToPoint {
    /// Makes a send of `data` in `partitions` equal partitions (MPI_Psend_init). Each travels as soon as it is marked
    /// ready, while others are still computed, for example by other threads. The receiver calls
    /// [`precv_init`](Self::precv_init) once, possibly with another number of partitions. Sends and receives of the same
    /// ranks and tag meet in the order in which they are made, and do not meet other messages.
    ///
    /// # Errors
    /// No such rank, a negative tag; [`Error::Partitions`] if `data` cannot be divided so.
    ///
    /// ```
    /// use std::thread;
    /// mpj::local::run(2, |world| {
    ///     if world.rank() == 0 {
    ///         let mut send = world.psend_init(vec![0.0; 400], 4, 1, 7).unwrap();
    ///         for step in 0..3 {
    ///             send.scope(|partitions| {
    ///                 thread::scope(|scope| {
    ///                     for mut partition in partitions {
    ///                         scope.spawn(move || {
    ///                             partition.fill(f64::from(step));
    ///                             partition.ready().unwrap();
    ///                         });
    ///                     }
    ///                 });
    ///             })
    ///             .unwrap();
    ///         }
    ///     } else {
    ///         let mut receive = world.precv_init(vec![0.0; 400], 2, 0, 7).unwrap();
    ///         for step in 0..3 {
    ///             receive.scope(|arrivals| {
    ///                 while arrivals.arrived(1).unwrap().is_none() {
    ///                     // Work on what is there.
    ///                 }
    ///                 assert_eq!(arrivals.arrived(1).unwrap().unwrap(), [f64::from(step); 200]);
    ///             })
    ///             .unwrap();
    ///             assert_eq!(receive.buffer().unwrap(), [f64::from(step); 400]);
    ///         }
    ///     }
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Psend_init")]
    pub fn psend_init<T: Datatype>(
        &self,
        data: Vec<T>,
        partitions: usize,
        dest: usize,
        tag: i32,
    ) -> Result<PartitionedSend<T>, Error> {
        let dest = self.peer(dest)?;
        let send = self.partitioned(data, partitions, |buffer, (number, each)| {
            Ok(self.core.psend_init(buffer.input()?.0, number, each, dest, tag)?)
        });
        self.answer(send).map(PartitionedSend)
    }

    /// Makes a receive into `buffer` in `partitions` equal partitions, of a send that
    /// [`psend_init`](Self::psend_init) makes (MPI_Precv_init).
    ///
    /// # Errors
    /// As [`psend_init`](Self::psend_init).
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let other = 1 - world.rank();
    ///     let mut send = world.psend_init(vec![world.rank(); 6], 3, other, 0).unwrap();
    ///     let mut receive = world.precv_init(vec![9; 6], 2, other, 0).unwrap();
    ///     receive.scope(|_| send.scope(|_| {}).unwrap()).unwrap();
    ///     assert_eq!(receive.buffer().unwrap(), [other; 6]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Precv_init")]
    pub fn precv_init<T: Datatype>(
        &self,
        buffer: Vec<T>,
        partitions: usize,
        source: usize,
        tag: i32,
    ) -> Result<PartitionedReceive<T>, Error> {
        let source = self.peer(source)?;
        let receive = self.partitioned(buffer, partitions, |buffer, (number, each)| {
            Ok(self.core.precv_init(buffer.output()?.0, number, each, source, tag)?)
        });
        self.answer(receive).map(PartitionedReceive)
    }

    /// Divides a buffer, and makes what the core has for it from it and from the number of partitions and their length.
    fn partitioned<T: Datatype, P>(
        &self,
        buffer: Vec<T>,
        partitions: usize,
        make: impl FnOnce(&PersistentBuffer<T>, (u32, u64)) -> Result<P, Error>,
    ) -> Result<Partitioned<T, P>, Error> {
        let elements = buffer.len();
        let divides = elements.checked_rem(partitions) == Some(0);
        let number = u32::try_from(partitions).ok().filter(|_| divides);
        let number = number.ok_or(Error::Partitions { elements, partitions })?;
        let buffer = PersistentBuffer::new(buffer);
        let core = make(&buffer, (number, (elements / partitions) as u64))?;
        Ok(Partitioned { communicator: self.clone(), core, partitions, buffer, operation: None })
    }
}

impl<T: Datatype> PartitionedSend<T> {
    /// Sends all partitions once: starts the send (MPI_Start), calls `body` with the partitions, and waits until all of
    /// them have left (MPI_Wait). `body` fills them and marks them [ready](UnreadyPartition::ready), in any order and in any
    /// threads; what it has not marked is ready when it returns.
    ///
    /// If `body` panics, what it has not marked is not sent before the next scope.
    ///
    /// # Errors
    /// A rank is lost; the device has failed.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let mut send = world.psend_init(vec![0; 4], 2, 0, 0).unwrap();
    ///     let mut receive = world.precv_init(vec![0; 4], 2, 0, 0).unwrap();
    ///     receive.scope(|arrivals| {
    ///         send.scope(|mut partitions| {
    ///             let mut last = partitions.pop().unwrap();
    ///             last.copy_from_slice(&[3, 4]);
    ///             last.ready().unwrap();
    ///             while arrivals.arrived(1).unwrap().is_none() {}
    ///             assert!(arrivals.arrived(0).unwrap().is_none());
    ///             partitions[0].fill(1);
    ///         }).unwrap();
    ///     }).unwrap();
    ///     assert_eq!(receive.buffer().unwrap(), [1, 1, 3, 4]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias("MPI_Start", "MPI_Wait"))]
    #[track_caller]
    pub fn scope<R>(
        &mut self,
        body: impl FnOnce(Vec<UnreadyPartition<'_, T>>) -> R,
    ) -> Result<R, Error> {
        self.complete()?;
        let Self(Partitioned { communicator, core, partitions, buffer, operation }) = self;
        *operation = Some(communicator.answer(core.start())?);
        let elements = buffer.divide(*partitions).enumerate();
        let unready = elements.map(|(index, elements)| UnreadyPartition {
            index,
            elements,
            send: core,
            communicator,
        });
        let answer = body(unready.collect());
        self.complete()?;
        Ok(answer)
    }

    /// Marks what is left, and waits.
    #[track_caller]
    fn complete(&mut self) -> Result<(), Error> {
        if self.0.operation.is_none() {
            return Ok(());
        }
        for partition in 0..self.0.partitions {
            match self.0.core.ready([partition]) {
                Ok(()) | Err(mpicore::Error::Partition { is_ready: true, .. }) => {}
                // All have left.
                Err(mpicore::Error::Device(mpjdev::Error::Request)) => break,
                Err(error) => return self.0.communicator.answer(Err(error)),
            }
        }
        self.0.wait()
    }

    /// Returns the elements.
    ///
    /// # Errors
    /// [`Error::UnderWay`] after a scope has panicked, until the next one.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let send = world.psend_init(vec![7; 4], 2, mpj::PROC_NULL, 0).unwrap();
    ///     assert_eq!(send.buffer().unwrap(), [7; 4]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn buffer(&self) -> Result<&[T], Error> {
        self.0.idle().map(PersistentBuffer::elements)
    }
}

impl<T: Datatype> UnreadyPartition<'_, T> {
    /// Returns the number of the partition, from 0.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let mut send = world.psend_init(vec![7; 4], 2, mpj::PROC_NULL, 0).unwrap();
    ///     send.scope(|partitions| assert_eq!(partitions[1].index(), 1)).unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn index(&self) -> usize {
        self.index
    }

    /// Marks the partition ready, so that it is sent (MPI_Pready, MPI_Pready_range, MPI_Pready_list).
    ///
    /// # Errors
    /// What made the device unusable. An error of the message itself is that of the scope.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let mut send = world.psend_init(vec![7; 4], 2, mpj::PROC_NULL, 0).unwrap();
    ///     send.scope(|partitions| {
    ///         partitions.into_iter().try_for_each(|partition| partition.ready())
    ///     }).unwrap().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias("MPI_Pready", "MPI_Pready_range", "MPI_Pready_list"))]
    pub fn ready(self) -> Result<(), Error> {
        let Self { index, send, communicator, .. } = self;
        communicator.answer(send.ready([index]))
    }
}

impl<T> Deref for UnreadyPartition<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.elements.get()
    }
}

impl<T> DerefMut for UnreadyPartition<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.elements.get_mut()
    }
}

impl<T: Datatype> PartitionedReceive<T> {
    /// Receives all partitions once: starts the receive (MPI_Start), calls `body`, which may look at what has
    /// [arrived](Arrivals::arrived), and waits for the rest (MPI_Wait).
    ///
    /// # Errors
    /// A rank is lost; the device has failed; the sender has another number of bytes.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let mut send = world.psend_init(vec![7u8; 4], 2, 0, 0).unwrap();
    ///     let mut receive = world.precv_init(vec![0u8; 4], 1, 0, 0).unwrap();
    ///     receive.scope(|_| send.scope(|_| {})).unwrap().unwrap();
    ///     assert_eq!(receive.buffer().unwrap(), [7; 4]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias("MPI_Start", "MPI_Wait"))]
    #[track_caller]
    pub fn scope<R>(&mut self, body: impl FnOnce(&Arrivals<'_, T>) -> R) -> Result<R, Error> {
        self.0.wait()?;
        self.0.operation = Some(self.0.communicator.answer(self.0.core.start())?);
        let answer = body(&Arrivals(&self.0));
        self.0.wait()?;
        Ok(answer)
    }

    /// Returns the elements.
    ///
    /// # Errors
    /// [`Error::UnderWay`] after a scope has panicked, until the next one.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let receive = world.precv_init(vec![7; 4], 2, mpj::PROC_NULL, 0).unwrap();
    ///     assert_eq!(receive.buffer().unwrap(), [7; 4]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn buffer(&self) -> Result<&[T], Error> {
        self.0.idle().map(PersistentBuffer::elements)
    }
}

impl<'s, T: Datatype> Arrivals<'s, T> {
    /// Returns the elements of a partition if all of them have arrived, and makes progress (MPI_Parrived).
    ///
    /// # Errors
    /// No such partition; what made the device unusable.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let mut receive = world.precv_init(vec![7u8; 4], 2, mpj::PROC_NULL, 0).unwrap();
    ///     receive.scope(|arrivals| {
    ///         assert_eq!(arrivals.arrived(1).unwrap(), Some(&[7, 7][..]));
    ///         assert!(arrivals.arrived(2).is_err());
    ///     }).unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Parrived")]
    pub fn arrived(&self, partition: usize) -> Result<Option<&'s [T]>, Error> {
        let Partitioned { communicator, core, partitions, buffer, .. } = self.0;
        let has_arrived = communicator.answer(core.has_arrived(partition))?;
        Ok(has_arrived.then(|| buffer.part(*partitions, partition)))
    }
}

impl<T: Datatype, P> Partitioned<T, P> {
    /// Waits for what is under way.
    #[track_caller]
    fn wait(&mut self) -> Result<(), Error> {
        let Some(request) = self.operation.take() else { return Ok(()) };
        let place = Some(Location::caller());
        let ended = self.communicator.device.iwait_at(request, place);
        self.communicator.completed(ended).map(drop)
    }

    /// Returns the buffer if nothing is under way.
    fn idle(&self) -> Result<&PersistentBuffer<T>, Error> {
        match self.operation {
            Some(_) => self.communicator.answer(Err(Error::UnderWay)),
            None => Ok(&self.buffer),
        }
    }
}

impl<T: Datatype, P> Drop for Partitioned<T, P> {
    /// Leaves the buffer to the operation, if one is under way (Q1).
    fn drop(&mut self) {
        if let Some(request) = self.operation.take() {
            let buffer = std::mem::replace(&mut self.buffer, PersistentBuffer::empty());
            self.communicator.device.detach(request, Box::new(buffer));
        }
    }
}
