//! Blocking point-to-point calls: they borrow their buffer and return when the caller may use it again.
//!
//! - PP1: a region made here is used by one operation of the device. The function that made it returns only when that
//!   operation has ended, or when the device has failed and uses no buffer any more (V1 of the device). The borrow that
//!   the region was made from lasts until then.

use std::panic::Location;

use mpjdev::{Call, CallKind, Mode, RecvRegion, Sink, Within, recorded};

use crate::communicator::PointToPoint;
use crate::datatype::Datatype;
use crate::envelope::{Source, Status, Tag};
use crate::error::Error;
use crate::memory::{self, RecvBuffer, SendBuffer, recv_region, sink};

/// # Blocking calls and probes
impl PointToPoint {
    /// Sends `data` to rank `dest` (MPI_Send). Returns when the slice may be changed again, possibly before the
    /// message is received. Whether it waits for the receiver depends on the protocol and on the receiver's
    /// memory for unexpected messages; a correct program does not rely on either.
    ///
    /// # Errors
    /// No such rank, a negative tag; the device has failed, for example because a rank died.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     if world.rank() == 0 {
    ///         world.send(&[1, 2], 1, 5).unwrap();
    ///     } else {
    ///         assert_eq!(world.recv_vec::<i32>(0, 5).unwrap().0, [1, 2]);
    ///     }
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Send")]
    #[inline]
    #[track_caller]
    pub fn send<T: Datatype>(
        &self,
        data: &(impl SendBuffer<Element = T> + ?Sized),
        dest: usize,
        tag: i32,
    ) -> Result<(), Error> {
        self.send_in_mode(data, dest, tag, Mode::Standard)
    }

    #[inline(always)]
    #[track_caller]
    fn send_in_mode<T: Datatype>(
        &self,
        data: &(impl SendBuffer<Element = T> + ?Sized),
        dest: usize,
        tag: i32,
        mode: Mode,
    ) -> Result<(), Error> {
        let peer = self.peer(dest)?;
        let data = self.step(memory::source(data))?;
        let place = Location::caller();
        let name = if mode == Mode::Standard { "send" } else { "ssend" };
        let (to, describe) = ((peer, tag, self.context), || self.describe::<T>(name, place));
        self.sent(self.device.send_described(data, to, mode, describe), tag)
    }

    /// Sends like [`PointToPoint::send`], but returns only when the receive has begun (MPI_Ssend).
    ///
    /// # Errors
    /// As [`PointToPoint::send`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     if world.rank() == 0 {
    ///         world.ssend(&[1, 2], 1, 5).unwrap(); // Rank 1 has begun to receive.
    ///     } else {
    ///         assert_eq!(world.recv_vec::<i32>(0, 5).unwrap().0, [1, 2]);
    ///     }
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Ssend")]
    #[track_caller]
    pub fn ssend<T: Datatype>(
        &self,
        data: &(impl SendBuffer<Element = T> + ?Sized),
        dest: usize,
        tag: i32,
    ) -> Result<(), Error> {
        self.send_in_mode(data, dest, tag, Mode::Synchronous)
    }

    /// Sends like [`PointToPoint::send`], to a rank that has already posted its receive (MPI_Rsend). It is no faster
    /// than `send`, and behaves the same if no receive is posted.
    ///
    /// # Errors
    /// As [`PointToPoint::send`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     if world.rank() == 0 {
    ///         world.barrier().unwrap();
    ///         world.rsend(&[5u8], 1, 0).unwrap();
    ///     } else {
    ///         let receive = world.irecv(vec![0u8], 0, 0).unwrap();
    ///         world.barrier().unwrap();
    ///         assert_eq!(receive.wait().unwrap().0, [5]);
    ///     }
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Rsend")]
    #[track_caller]
    pub fn rsend<T: Datatype>(
        &self,
        data: &(impl SendBuffer<Element = T> + ?Sized),
        dest: usize,
        tag: i32,
    ) -> Result<(), Error> {
        self.send(data, dest, tag)
    }

    /// Receives a message into `buffer` (MPI_Recv). A shorter message leaves the rest of the buffer unchanged: see
    /// [`Status::count`].
    ///
    /// # Errors
    /// No such rank, a negative tag; a message longer than the buffer (its beginning is in the
    /// buffer, and the message is consumed); [`mpjdev::Error::Misfit`] for elements of other types, in jobs that find
    /// mistakes between ranks; [`Error::Overlap`] for a buffer that names an element twice; the device
    /// has failed.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     if world.rank() == 0 {
    ///         return world.send(&[1, 2], 1, 5).unwrap();
    ///     }
    ///     let mut numbers = [9; 3];
    ///     let status = world.recv(&mut numbers, 0, mpj::ANY_TAG).unwrap();
    ///     assert_eq!((status.tag, status.count::<i32>().unwrap()), (5, 2));
    ///     assert_eq!(numbers, [1, 2, 9]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Recv")]
    #[inline]
    #[track_caller]
    pub fn recv<T: Datatype>(
        &self,
        buffer: &mut (impl RecvBuffer<Element = T> + ?Sized),
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<Status, Error> {
        if self.device.is_described() {
            return self.recv_described(buffer, source.into(), tag.into(), Location::caller());
        }
        match self.step(sink(buffer))? {
            Sink::Span(into) => self.recv_span(into, source.into(), tag.into()),
            into => self.recv_sink(into, source.into(), tag.into()),
        }
    }

    #[cold]
    #[inline(never)]
    fn recv_described<T: Datatype>(
        &self,
        buffer: &mut (impl RecvBuffer<Element = T> + ?Sized),
        source: Source,
        tag: Tag,
        place: &'static Location<'static>,
    ) -> Result<Status, Error> {
        let into = self.step(sink(buffer))?;
        let (source, tag) = (self.sender(source)?, tag.value());
        let _said = self.describe::<T>("recv", place);
        let received = self.device.recv(into, source, tag, self.context);
        if let Ok(status) = &received {
            recorded::received(status);
        }
        self.received(received, tag)
    }

    /// Receives into a span whose borrow lasts until this returns. It is no case of [`PointToPoint::recv_sink`], since a
    /// sink goes through memory, and a wait that is compiled with each program costs a call more: 20 instructions of the
    /// 726 of a message of 8 bytes that a rank sends to itself.
    #[inline(never)]
    fn recv_span(&self, into: RecvRegion, source: Source, tag: Tag) -> Result<Status, Error> {
        let (source, tag) = (self.sender(source)?, tag.value());
        self.received(self.device.recv(into, source, tag, self.context), tag)
    }

    #[inline(never)]
    fn recv_sink(&self, into: Sink, source: Source, tag: Tag) -> Result<Status, Error> {
        let (source, tag) = (self.sender(source)?, tag.value());
        self.received(self.device.recv(into, source, tag, self.context), tag)
    }

    /// Receives a message of unknown length (MPI_Mprobe, MPI_Mrecv).
    ///
    /// # Errors
    /// As [`PointToPoint::recv`], except for a message that is too long; no memory for the message; a length that is
    /// not a whole number of elements (the message is consumed).
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
    #[doc(alias("MPI_Mprobe", "MPI_Mrecv"))]
    #[track_caller]
    pub fn recv_vec<T: Datatype>(
        &self,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<(Vec<T>, Status), Error> {
        let _within = Within::call(Call::Recv);
        let _recorded = self.recorded("recv_vec", CallKind::Receive);
        self.mprobe(source, tag)?.recv_vec()
    }

    /// Receives a text of any length. The bytes are checked, since the sender may have sent anything. To send a text,
    /// pass a `str` or a `String` to any call that sends; `isend` takes `text.into_bytes()`.
    ///
    /// # Errors
    /// As [`PointToPoint::recv_vec`]; [`Error::Utf8`] if the bytes are no text (the message is consumed).
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     if world.rank() == 0 {
    ///         world.send("grün", 1, 0).unwrap();
    ///         world.send(&[0xff_u8], 1, 0).unwrap();
    ///     } else {
    ///         assert_eq!(world.recv_string(0, 0).unwrap().0, "grün");
    ///         assert!(matches!(world.recv_string(0, 0), Err(mpj::Error::Utf8 { .. })));
    ///         # world.iprobe(0, 0).unwrap();
    ///     }
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_CHAR")]
    #[track_caller]
    pub fn recv_string(
        &self,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<(String, Status), Error> {
        let _within = Within::call(Call::Recv);
        let _recorded = self.recorded("recv_string", CallKind::Receive);
        self.mprobe(source, tag)?.recv_string()
    }

    /// Sends and receives at the same time (MPI_Sendrecv): two ranks that call it for each other do not block.
    ///
    /// # Errors
    /// As [`PointToPoint::send`] and [`PointToPoint::recv`].
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
    #[doc(alias = "MPI_Sendrecv")]
    #[track_caller]
    pub fn sendrecv<T: Datatype, U: Datatype>(
        &self,
        data: &(impl SendBuffer<Element = T> + ?Sized),
        dest: usize,
        send_tag: i32,
        buffer: &mut (impl RecvBuffer<Element = U> + ?Sized),
        source: impl Into<Source>,
        recv_tag: impl Into<Tag>,
    ) -> Result<Status, Error> {
        let into = sink(buffer);
        let from = (source.into(), recv_tag.into());
        self.exchange::<T, U>(memory::source(data), (dest, send_tag), into, from)
    }

    /// Sends elements of type `T` and receives some of type `U`.
    #[track_caller]
    fn exchange<T: Datatype, U: Datatype>(
        &self,
        data: Result<mpjdev::Source, Error>,
        (dest, send_tag): (usize, i32),
        into: Result<Sink, Error>,
        (source, recv_tag): (Source, Tag),
    ) -> Result<Status, Error> {
        let (source, recv_tag) = (self.sender(source)?, recv_tag.value());
        let peer = self.peer(dest)?;
        // Check first: a receive posted before a send that fails would take a message that the program never sees.
        self.sent(self.device.check_send(peer, send_tag), send_tag)?;
        let (device, context) = (&self.device, self.context);
        let data = self.step(data)?;
        let into = self.step(into)?;
        let place = Location::caller();
        let receive = device.irecv_described(into, source, recv_tag, context, || {
            self.describe::<U>("sendrecv", place)
        });
        let receive = self.started(receive, recv_tag)?;
        let to = (peer, send_tag, context);
        let sent = device
            .send_described(data, to, Mode::Standard, || self.describe::<T>("sendrecv", place));
        if let Err(error) = self.sent(sent, send_tag) {
            // The borrow of the buffer ends with this call, so the receive must have ended (PP1).
            let _ = self.device.cancel(&receive);
            let _ = self.device.iwait(receive);
            return Err(error);
        }
        self.received(self.device.iwait_at(receive, Some(place)), recv_tag)
    }

    /// Sends the contents of `buffer`, then replaces them with the received message (MPI_Sendrecv_replace). It sends a
    /// copy of the contents.
    ///
    /// # Errors
    /// As [`PointToPoint::sendrecv`]; no memory for the copy.
    ///
    /// ```
    /// let got = mpj::local::run(3, |world| {
    ///     let (right, left) = ((world.rank() + 1) % 3, (world.rank() + 2) % 3);
    ///     let mut token = [world.rank(); 2];
    ///     world.sendrecv_replace(&mut token, right, 0, left, 0).unwrap();
    ///     token[1]
    /// })?;
    /// assert_eq!(got, [2, 0, 1]);
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Sendrecv_replace")]
    #[track_caller]
    pub fn sendrecv_replace<B: RecvBuffer + ?Sized>(
        &self,
        buffer: &mut B,
        dest: usize,
        send_tag: i32,
        source: impl Into<Source>,
        recv_tag: impl Into<Tag>,
    ) -> Result<Status, Error> {
        let copy = self.answer(packed(buffer))?;
        let data = memory::source(&copy);
        let from = (source.into(), recv_tag.into());
        self.exchange::<B::Element, B::Element>(data, (dest, send_tag), sink(buffer), from)
    }

    /// Waits for a message and returns its status without receiving it (MPI_Probe). With several receiving threads,
    /// use [`PointToPoint::mprobe`] or [`PointToPoint::recv_vec`] to learn a length.
    ///
    /// # Errors
    /// No such rank, a negative tag; the device has failed.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     if world.rank() == 0 {
    ///         return world.send(&[1u8, 2], 1, 5).unwrap();
    ///     }
    ///     let status = world.probe(mpj::ANY_SOURCE, 5).unwrap();
    ///     let mut data = vec![0u8; status.bytes];
    ///     world.recv(&mut data, status.source, 5).unwrap();
    ///     assert_eq!(data, [1, 2]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Probe")]
    #[track_caller]
    pub fn probe(&self, source: impl Into<Source>, tag: impl Into<Tag>) -> Result<Status, Error> {
        let _recorded = self.recorded("probe", CallKind::Probe);
        let (source, tag) = (self.sender(source.into())?, tag.into().value());
        let found = self.device.probe(source, tag, self.context);
        self.received(found.inspect(recorded::found), tag)
    }

    /// Like [`PointToPoint::probe`], but does not wait (MPI_Iprobe).
    ///
    /// # Errors
    /// As [`PointToPoint::probe`].
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     assert_eq!(world.iprobe(0, 5).unwrap(), None);
    ///     let send = world.isend(vec![1u8, 2], 0, 5).unwrap();
    ///     assert_eq!(world.iprobe(0, 5).unwrap().map(|status| status.bytes), Some(2));
    ///     world.recv(&mut [0u8; 2], 0, 5).unwrap();
    ///     # send.wait().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Iprobe")]
    #[track_caller]
    pub fn iprobe(
        &self,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<Option<Status>, Error> {
        let (source, tag) = (self.sender(source.into())?, tag.into().value());
        match self.device.iprobe(source, tag, self.context) {
            Ok(None) => Ok(None),
            Ok(Some(status)) => {
                let _recorded = self.recorded_find("iprobe", &status);
                self.received(Ok(status), tag).map(Some)
            }
            Err(error) => self.received(Err(error), tag).map(Some),
        }
    }
}

/// Returns a copy of the buffer's elements, as the bytes of a message.
pub(crate) fn packed<B: SendBuffer + ?Sized>(buffer: &B) -> Result<Vec<u8>, Error> {
    let data = memory::source(buffer)?;
    let mut copy = Vec::new();
    copy.try_reserve_exact(data.len()).map_err(|_| Error::NoCopy { bytes: data.len() })?;
    copy.resize(data.len(), 0);
    data.copy_to(&mut Sink::Span(recv_region(&mut copy)));
    Ok(copy)
}
