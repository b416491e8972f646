//! Blocking calls: they borrow their buffer and return when it is theirs again.
//!
//! - PP1: a region made here is given to one operation of the device, and the function that made it
//!   returns only when that operation has ended, or the device has failed and uses no buffer any
//!   more (V1 of the device). The borrow that it was made of lasts that long.

#![allow(unsafe_code, reason = "hands borrowed buffers to the device")]

use mpjdev::{Call, Mode, RecvRegion, SendRegion, Sink, Within};

use crate::communicator::Communicator;
use crate::datatype::Datatype;
use crate::error::Error;
use crate::memory::{self, RecvBuffer, SendBuffer, bytes, bytes_mut, sink};
use crate::selector::{Source, Tag};
use crate::status::Status;

/// The bytes of a slice, to be read by an operation. The caller keeps the borrow until the
/// operation has ended.
pub(crate) fn send_region<T: bytemuck::Pod>(data: &[T]) -> SendRegion {
    // SAFETY: PP1, and the same promise by the other modules that call this: the borrow, or the
    // ownership behind it, outlives the operation.
    unsafe { SendRegion::new(data.as_ptr().cast(), size_of_val(data)) }
}

/// The bytes of a slice, to be written by an operation. The caller keeps the borrow until the
/// operation has ended. Any bytes are a valid `T`.
pub(crate) fn recv_region<T: bytemuck::Pod>(buffer: &mut [T]) -> RecvRegion {
    // SAFETY: as in `send_region`; the borrow is exclusive.
    unsafe { RecvRegion::new(buffer.as_mut_ptr().cast(), size_of_val(buffer)) }
}

impl Communicator {
    /// Sends `data` to rank `dest` (MPI_Send). Returns when the slice may be changed again, which
    /// may be before the message is received. Whether it waits for the receiver depends on the
    /// protocol and on the receiver's early memory: a correct program does not rely on either.
    ///
    /// # Errors
    /// No such rank, a negative tag; the device has failed, for example since a rank died.
    #[inline]
    pub fn send<T: Datatype>(
        &self,
        data: &(impl SendBuffer<Element = T> + ?Sized),
        dest: usize,
        tag: i32,
    ) -> Result<(), Error> {
        match bytes(data) {
            Some(data) => {
                let sent =
                    self.device.send(send_region(data), dest, tag, self.context, Mode::Standard);
                self.device.answer(sent)
            }
            None => self.send_source(memory::source(data), dest, tag, Mode::Standard),
        }
    }

    /// Sends what does not lie in one span. The borrow of `data` lasts until this returns.
    #[inline(never)]
    fn send_source(
        &self,
        data: Result<mpjdev::Source, Error>,
        dest: usize,
        tag: i32,
        mode: Mode,
    ) -> Result<(), Error> {
        let data = self.device.answer(data)?;
        self.device.answer(self.device.send(data, dest, tag, self.context, mode))
    }

    /// Sends like [`Communicator::send`], and returns only when the receive has begun (MPI_Ssend).
    ///
    /// # Errors
    /// As [`Communicator::send`].
    pub fn ssend<T: Datatype>(
        &self,
        data: &(impl SendBuffer<Element = T> + ?Sized),
        dest: usize,
        tag: i32,
    ) -> Result<(), Error> {
        match bytes(data) {
            Some(data) => {
                let sent =
                    self.device.send(send_region(data), dest, tag, self.context, Mode::Synchronous);
                self.device.answer(sent)
            }
            None => self.send_source(memory::source(data), dest, tag, Mode::Synchronous),
        }
    }

    /// Receives a message into `buffer` (MPI_Recv). It may be shorter than the buffer, whose rest is
    /// then left alone: see [`Status::count`].
    ///
    /// # Errors
    /// No such rank, a negative tag; a message longer than the buffer (its beginning is in the
    /// buffer, and the message is consumed); [`Error::Overlap`] for a buffer that names an element twice; the device
    /// has failed.
    pub fn recv<T: Datatype>(
        &self,
        buffer: &mut (impl RecvBuffer<Element = T> + ?Sized),
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<Status, Error> {
        match bytes_mut(buffer) {
            Some(buffer) => self.recv_bytes(recv_region(buffer), source.into(), tag.into()),
            None => self.recv_sink(sink(buffer), source.into(), tag.into()),
        }
    }

    /// Receives into what does not lie in one span. The borrow of the buffer lasts until this returns.
    #[inline(never)]
    fn recv_sink(
        &self,
        into: Result<Sink, Error>,
        source: Source,
        tag: Tag,
    ) -> Result<Status, Error> {
        let into = self.device.answer(into)?;
        let received = self.device.recv(into, source.rank(), tag.value(), self.context);
        self.device.answer(received).map(Status::from)
    }

    #[inline(never)]
    fn recv_bytes(&self, into: RecvRegion, source: Source, tag: Tag) -> Result<Status, Error> {
        let received = self.device.recv(into, source.rank(), tag.value(), self.context);
        self.device.answer(received).map(Status::from)
    }

    /// Receives a message of unknown length (MPI_Mprobe, MPI_Mrecv).
    ///
    /// # Errors
    /// As [`Communicator::recv`] but for the length; no memory for the message; a length that is not
    /// a whole number of elements (the message is consumed).
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     if world.rank() == 0 {
    ///         world.send(&[1.5f32, 2.5], 1, 4).unwrap();
    ///     } else {
    ///         let (data, status) = world.recv_vec::<f32>(mpj::ANY_SOURCE, mpj::ANY_TAG).unwrap();
    ///         assert_eq!((data, status.source, status.tag), (vec![1.5, 2.5], 0, 4));
    ///     }
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn recv_vec<T: Datatype>(
        &self,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<(Vec<T>, Status), Error> {
        let (source, tag) = (source.into().rank(), tag.into().value());
        let _within = Within::call(Call::Recv);
        let message = self.device.answer(self.device.mprobe(source, tag, self.context))?;
        let status = Status::from(message.status());
        let count = status.count::<T>();
        let wanted = *count.as_ref().unwrap_or(&0);
        let mut buffer = bytemuck::try_zeroed_vec::<T>(wanted).unwrap_or_default();
        let into = match bytes_mut(&mut buffer) {
            Some(buffer) => Ok(Sink::Span(recv_region(buffer))),
            None => sink(&mut buffer),
        };
        // A message that was taken is consumed, whatever comes.
        let (into, described) = match into {
            Ok(into) => (into, Ok(())),
            Err(error) => (Sink::EMPTY, Err(error)),
        };
        let request = self.device.imrecv(message, into);
        let outcome = self.device.answer(request).and_then(|request| {
            let received = self.device.iwait(request);
            self.device.answer(count)?;
            self.device.answer(described)?;
            if buffer.len() < wanted {
                let Status { source, tag, bytes, .. } = status;
                return self.device.answer(Err(Error::Memory { source_rank: source, tag, bytes }));
            }
            self.device.answer(received)
        });
        outcome.map(|_| (buffer, status))
    }

    /// Sends and receives at once (MPI_Sendrecv): two ranks that call it towards each other do not
    /// block each other.
    ///
    /// # Errors
    /// As [`Communicator::send`] and [`Communicator::recv`].
    ///
    /// ```
    /// let got = mpj::local::run(3, |world| {
    ///     let (right, left) = ((world.rank() + 1) % 3, (world.rank() + 2) % 3);
    ///     let mut from_left = [0usize];
    ///     world.sendrecv(&[world.rank()], right, 0, &mut from_left, left, 0).unwrap();
    ///     from_left[0]
    /// })?;
    /// assert_eq!(got, [2, 0, 1]);
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn sendrecv<T: Datatype, U: Datatype>(
        &self,
        data: &(impl SendBuffer<Element = T> + ?Sized),
        dest: usize,
        send_tag: i32,
        buffer: &mut (impl RecvBuffer<Element = U> + ?Sized),
        source: impl Into<Source>,
        recv_tag: impl Into<Tag>,
    ) -> Result<Status, Error> {
        let (source, recv_tag) = (source.into().rank(), recv_tag.into().value());
        // Before the receive is posted, which would take a message for nothing.
        self.device.answer(self.device.check_send(dest, send_tag))?;
        let (device, context) = (&self.device, self.context);
        let described = match bytes(data) {
            Some(_) => mpjdev::Source::EMPTY,
            None => device.answer(memory::source(data))?,
        };
        let receive = match bytes_mut(buffer) {
            Some(buffer) => device.irecv(recv_region(buffer), source, recv_tag, context),
            None => device.irecv(device.answer(sink(buffer))?, source, recv_tag, context),
        };
        let receive = device.answer(receive)?;
        let sent = match bytes(data) {
            Some(data) => device.send(send_region(data), dest, send_tag, context, Mode::Standard),
            None => device.send(described, dest, send_tag, context, Mode::Standard),
        };
        if let Err(error) = sent {
            // The borrow of the buffer ends with this call, so the receive has to (PP1).
            let _ = self.device.cancel(&receive);
            let _ = self.device.iwait(receive);
            return self.device.answer(Err(error));
        }
        self.device.answer(self.device.iwait(receive)).map(Status::from)
    }

    /// Waits for a message and says what is known of it, without receiving it (MPI_Probe). With
    /// several receiving threads, [`Communicator::recv_vec`] is the safe way to learn a length.
    ///
    /// # Errors
    /// No such rank, a negative tag; the device has failed.
    pub fn probe(&self, source: impl Into<Source>, tag: impl Into<Tag>) -> Result<Status, Error> {
        let (source, tag) = (source.into().rank(), tag.into().value());
        self.device.answer(self.device.probe(source, tag, self.context)).map(Status::from)
    }

    /// Like [`Communicator::probe`], but does not wait (MPI_Iprobe).
    ///
    /// # Errors
    /// As [`Communicator::probe`].
    pub fn iprobe(
        &self,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<Option<Status>, Error> {
        let (source, tag) = (source.into().rank(), tag.into().value());
        let found = self.device.answer_look(self.device.iprobe(source, tag, self.context))?;
        Ok(found.map(Status::from))
    }
}
