//! Messages found by a matched probe, which only the finder can receive (MPI-4.1 section 3.8.2).

use std::panic::Location;

use mpjdev::{CallKind, Sink, recorded};

use crate::communicator::PointToPoint;
use crate::datatype::Datatype;
use crate::envelope::{Source, Status, Tag};
use crate::error::Error;
use crate::memory::{RecvBuffer, sink};
use crate::request::Request;

/// A message that [`PointToPoint::mprobe`] found; no other receive or probe can get it (MPI_Message).
///
/// Receive it: if it is dropped, the message is lost, and a sender that waits for the receive keeps waiting.
///
/// ```
/// mpj::local::run(1, |world| {
///     let send = world.isend(vec![7u16, 8], 0, 4).unwrap();
///     let message = world.mprobe(mpj::ANY_SOURCE, 4).unwrap();
///     assert!(world.iprobe(0, 4).unwrap().is_none(), "nobody else gets it");
///     assert_eq!(message.recv_vec::<u16>().unwrap().0, [7, 8]);
///     send.wait().unwrap();
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias = "MPI_Message")]
#[must_use = "the message is lost, and its sender may wait for ever, unless it is received"]
pub struct Message {
    pub(crate) communicator: PointToPoint,
    /// The message in the device; `None` for a message from MPI_PROC_NULL.
    found: Option<mpjdev::Message>,
    status: Status,
}

impl Message {
    /// Returns source, tag and length of the message.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let send = world.isend(vec![7u16, 8], 0, 4).unwrap();
    ///     let message = world.mprobe(0, 4).unwrap();
    ///     assert_eq!(message.status().count::<u16>().unwrap(), 2);
    ///     message.recv(&mut [0u16; 2]).unwrap();
    ///     send.wait().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn status(&self) -> Status {
        self.status
    }

    /// Receives the message into `buffer` (MPI_Mrecv).
    ///
    /// # Errors
    /// A message longer than the buffer; [`Error::Overlap`]; the device has failed. The message is consumed.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let send = world.isend(vec![7u16, 8], 0, 4).unwrap();
    ///     let message = world.mprobe(0, 4).unwrap();
    ///     let mut numbers = [0u16; 2];
    ///     message.recv(&mut numbers).unwrap();
    ///     assert_eq!(numbers, [7, 8]);
    ///     send.wait().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Mrecv")]
    #[track_caller]
    pub fn recv<B: RecvBuffer + ?Sized>(self, buffer: &mut B) -> Result<Status, Error> {
        let communicator = self.communicator.clone();
        match self.start::<B::Element>(sink(buffer))? {
            (Some(request), described) => {
                // The borrow of the buffer lasts until this returns (PP1).
                let place = Some(Location::caller());
                let received = communicator.device.iwait_at(request, place);
                communicator.answer(described)?;
                communicator.received(received, None)
            }
            (None, _) => Ok(communicator.nobody()),
        }
    }

    /// Receives the message into a vector of its length.
    ///
    /// # Errors
    /// No memory for the message; a length that is not a whole number of elements; the device has failed. The message
    /// is consumed.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let send = world.isend(vec![7u16, 8], 0, 4).unwrap();
    ///     let message = world.mprobe(0, 4).unwrap();
    ///     assert_eq!(message.recv_vec::<u16>().unwrap().0, [7, 8]);
    ///     send.wait().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[track_caller]
    pub fn recv_vec<T: Datatype>(self) -> Result<(Vec<T>, Status), Error> {
        let (communicator, status) = (self.communicator.clone(), self.status);
        let count = status.count::<T>();
        let wanted = *count.as_ref().unwrap_or(&0);
        let mut buffer = bytemuck::try_zeroed_vec::<T>(wanted).unwrap_or_default();
        let (request, described) = self.start::<T>(sink(&mut buffer))?;
        let (device, place) = (&communicator.device, Some(Location::caller()));
        let received = request.map(|request| device.iwait_at(request, place)).transpose();
        communicator.answer(count)?;
        communicator.answer(described)?;
        if buffer.len() < wanted {
            let Status { source, tag, bytes, .. } = status;
            return communicator.answer(Err(Error::Memory { source_rank: source, tag, bytes }));
        }
        communicator.answer(received)?;
        Ok((buffer, status))
    }

    /// Receives the message as a text; see [`PointToPoint::recv_string`].
    ///
    /// # Errors
    /// As [`Message::recv_vec`]; [`Error::Utf8`].
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let send = world.isend(b"gr\xc3\xbcn".to_vec(), 0, 4).unwrap();
    ///     assert_eq!(world.mprobe(0, 4).unwrap().recv_string().unwrap().0, "grün");
    ///     send.wait().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[track_caller]
    pub fn recv_string(self) -> Result<(String, Status), Error> {
        let communicator = self.communicator.clone();
        let (text, status) = self.recv_vec()?;
        let Status { source: source_rank, tag, bytes, .. } = status;
        let text = String::from_utf8(text).map_err(|error| Error::Utf8 {
            source_rank,
            tag,
            bytes,
            cause: error.utf8_error(),
        });
        Ok((communicator.step(text)?, status))
    }

    /// Starts to receive the message into `buffer` (MPI_Imrecv).
    ///
    /// # Errors
    /// [`Error::Overlap`]; the device has failed. The message is consumed, and `buffer` dropped.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let send = world.isend(vec![7u16, 8], 0, 4).unwrap();
    ///     let message = world.mprobe(0, 4).unwrap();
    ///     let receive = message.irecv(vec![0u16; 2]).unwrap();
    ///     assert_eq!(receive.wait().unwrap().0, [7, 8]);
    ///     send.wait().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Imrecv")]
    #[track_caller]
    pub fn irecv<T: Datatype>(self, mut buffer: Vec<T>) -> Result<Request<T>, Error> {
        let communicator = self.communicator.clone();
        let (request, described) = self.start::<T>(sink(&mut buffer))?;
        communicator.answer(described)?;
        let request = match request {
            Some(request) => request,
            None => communicator.started_for_nobody()?,
        };
        Ok(Request::of_receive(communicator, request, buffer))
    }

    /// Consumes the message without room for it, so that its sender does not wait.
    #[cfg(feature = "serde")]
    pub(crate) fn discard(self) {
        let communicator = self.communicator.clone();
        if let Ok((Some(request), _)) = self.start::<u8>(Ok(Sink::EMPTY)) {
            // It says that the message is longer than the room.
            let _ = communicator.device.iwait(request);
        }
    }

    /// Starts to receive the message. If `into` is an error, the message is consumed all the same, and the error is
    /// returned besides the request.
    #[track_caller]
    fn start<T: Datatype>(
        self,
        into: Result<Sink, Error>,
    ) -> Result<(Option<mpjdev::Request>, Result<(), Error>), Error> {
        let (into, described) = match into {
            Ok(into) => (into, Ok(())),
            Err(error) => (Sink::EMPTY, Err(error)),
        };
        let Self { communicator, found, .. } = self;
        let said = communicator.describe::<T>("mrecv", Location::caller());
        if let (Some(_), Some(found)) = (&said, &found) {
            recorded::received(&found.status());
        }
        let start = |found| communicator.device.imrecv(found, into);
        let request = communicator.answer(found.map(start).transpose())?;
        Ok((request, described))
    }
}

/// # Matched probes
impl PointToPoint {
    /// Waits for a message and takes it, so that only the returned [`Message`] can receive it (MPI_Mprobe). This lets
    /// each of several threads learn the length of a message and then receive that same message.
    ///
    /// # Errors
    /// As [`PointToPoint::probe`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     if world.rank() == 0 {
    ///         world.send(&[1.5, 2.5], 1, 4).unwrap();
    ///     } else {
    ///         let message = world.mprobe(mpj::ANY_SOURCE, mpj::ANY_TAG).unwrap();
    ///         let mut numbers = vec![0.0; message.status().count::<f64>().unwrap()];
    ///         message.recv(&mut numbers).unwrap();
    ///         assert_eq!(numbers, [1.5, 2.5]);
    ///     }
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Mprobe")]
    #[track_caller]
    pub fn mprobe(&self, source: impl Into<Source>, tag: impl Into<Tag>) -> Result<Message, Error> {
        let _recorded = self.recorded("mprobe", CallKind::Probe);
        let (source, tag) = (self.sender(source.into())?, tag.into().value());
        let found = match self.device.mprobe(source, tag, self.context) {
            Ok(found) => {
                recorded::found(&found.status());
                Some(self.answer(Ok::<_, Error>(found))?)
            }
            Err(error) => self.refused(error, tag).map(|()| None)?,
        };
        Ok(self.message(found))
    }

    /// Like [`PointToPoint::mprobe`], but does not wait (MPI_Improbe).
    ///
    /// # Errors
    /// As [`PointToPoint::probe`].
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     assert!(world.improbe(0, 4).unwrap().is_none());
    ///     let send = world.isend(vec![7u16], 0, 4).unwrap();
    ///     let message = world.improbe(0, 4).unwrap().expect("it is there");
    ///     let receive = message.irecv(vec![0u16]).unwrap();
    ///     assert_eq!(receive.wait().unwrap().0, [7]);
    ///     send.wait().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Improbe")]
    #[track_caller]
    pub fn improbe(
        &self,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<Option<Message>, Error> {
        let (source, tag) = (self.sender(source.into())?, tag.into().value());
        match self.device.improbe(source, tag, self.context) {
            Ok(None) => Ok(None),
            Ok(Some(found)) => {
                let _recorded = self.recorded_find("improbe", &found.status());
                Ok(Some(self.message(Some(self.answer(Ok::<_, Error>(found))?))))
            }
            Err(error) => self.refused(error, tag).map(|()| Some(self.message(None))),
        }
    }

    fn message(&self, found: Option<mpjdev::Message>) -> Message {
        let status = found.as_ref().map(|found| self.status(found.status()));
        let status = status.unwrap_or_else(|| self.nobody());
        Message { communicator: self.clone(), found, status }
    }
}
