//! A send and a receive in one call (MPI-4.1 sections 3.10 and 3.11). None of them waits for the other, so ranks that
//! exchange messages in a ring do not block each other.
//!
//! Where the received message replaces the one that is sent, a copy is sent.
//!
//! - XC1: the copy of a blocking exchange lives until the send has ended, or until the device has failed and uses no
//!   buffer any more (V1 of the device).

#![expect(unsafe_code, reason = "lends copies to the device")]

use std::sync::{Arc, Mutex, PoisonError};

use mpjdev::{Call, Described, Ending, Mode, Request, SendRegion, Sink, Source, Status};

use crate::communicator::Communicator;
use crate::datatype::Datatype;
use crate::error::Error;
use crate::memory::packed;
use crate::request::PROC_NULL;

/// The types of the elements that are sent and of those that are received, for jobs that find mistakes between ranks.
/// Without a type, elements fit all others.
pub type ExchangeTypes<'a> = [Option<&'a Datatype>; 2];

/// The status of a receive from [`PROC_NULL`].
fn nobody() -> Status {
    Status::new(PROC_NULL as u32, -1, 0)
}

impl Communicator {
    /// Says what the elements of the next message are, if that is known.
    fn told(&self, element: Option<&Datatype>) -> Option<Described> {
        Some(self.describe(Some(element?), None))
    }

    /// Sends `data` to the job rank `to.0` with the tag `to.1` and receives a message into `into`, from the job rank
    /// and with the tag of `from`, where `None` is any: MPI_Sendrecv. Either rank may be [`PROC_NULL`]. Returns the
    /// status of the receive; that of one from [`PROC_NULL`] has this rank as its source, the tag -1 and no bytes.
    ///
    /// # Errors
    /// Those of `send` and `recv` of the device. If the send has failed, the receive is cancelled.
    pub fn sendrecv(
        &self,
        data: impl Into<Source>,
        to: (usize, i32),
        into: impl Into<Sink>,
        from: (Option<usize>, Option<i32>),
        types: ExchangeTypes<'_>,
    ) -> Result<Status, Error> {
        let (device, context) = (self.device(), self.context());
        self.check_peer(Some(to.0), Some(to.1))?;
        let [of_sent, of_received] = types.map(|element| move || self.told(element));
        let receiving = match from.0 {
            Some(PROC_NULL) => None,
            source => Some(device.irecv_described(into, source, from.1, context, of_received)?),
        };
        let sent = match to.0 {
            PROC_NULL => Ok(()),
            dest => device.send_described(data, (dest, to.1, context), Mode::Standard, of_sent),
        };
        let Some(receiving) = receiving else {
            sent?;
            return Ok(nobody());
        };
        if sent.is_err() {
            device.cancel(&receiving)?;
        }
        let received = device.iwait(receiving);
        sent?;
        Ok(received?)
    }

    /// Like [`sendrecv`](Self::sendrecv), where the received message may replace the data that are sent:
    /// MPI_Sendrecv_replace.
    ///
    /// # Errors
    /// As there; [`Error::Memory`] if there is no memory for a copy of the data.
    pub fn sendrecv_replace(
        &self,
        data: &Source,
        to: (usize, i32),
        into: impl Into<Sink>,
        from: (Option<usize>, Option<i32>),
        types: ExchangeTypes<'_>,
    ) -> Result<Status, Error> {
        let copy = packed(data)?;
        // SAFETY: XC1: `copy` lives until the end of this call, which waits for the send.
        let region = unsafe { SendRegion::new(copy.as_ptr(), copy.len()) };
        self.sendrecv(region, to, into, from, types)
    }

    /// Starts an exchange: MPI_Isendrecv. The request is complete when both messages are, with the status that
    /// [`sendrecv`](Self::sendrecv) returns or the first error.
    ///
    /// # Errors
    /// Those of `isend` and `irecv` of the device. Nothing was sent or received then.
    pub fn isendrecv(
        &self,
        data: impl Into<Source>,
        to: (usize, i32),
        into: impl Into<Sink>,
        from: (Option<usize>, Option<i32>),
        types: ExchangeTypes<'_>,
    ) -> Result<Request, Error> {
        let (device, context) = (self.device(), self.context());
        self.check_peer(Some(to.0), Some(to.1))?;
        let [of_sent, of_received] = types.map(|element| move || self.told(element));
        let receiving = match from.0 {
            Some(PROC_NULL) => None,
            source => Some(device.irecv_described(into, source, from.1, context, of_received)?),
        };
        let sending = match to.0 {
            PROC_NULL => Ok(None),
            dest => {
                let to = (dest, to.1, context);
                device.isend_described(data, to, Mode::Standard, of_sent).map(Some)
            }
        };
        let sending = match sending {
            Ok(sending) => sending,
            Err(error) => {
                if let Some(receiving) = receiving {
                    device.detach(receiving, Box::new(()));
                }
                return Err(error.into());
            }
        };
        let (request, ending) = device.begin(Call::Other, context, to.1)?;
        let exchange = Arc::new(Exchange::new(self.clone(), ending));
        if let Some(receiving) = receiving {
            let exchange = exchange.clone();
            device.then(receiving, move |outcome| exchange.ended(outcome.map(Some)))?;
        } else {
            exchange.ended(Ok(None));
        }
        match sending {
            Some(sending) if sending.completed().is_none() => {
                device.then(sending, move |outcome| exchange.ended(outcome.map(|_sent| None)))?;
            }
            _ => exchange.ended(Ok(None)),
        }
        Ok(request)
    }

    /// Starts an exchange of a copy of `data`, which the received message may replace: MPI_Isendrecv_replace.
    ///
    /// # Errors
    /// As [`isendrecv`](Self::isendrecv); [`Error::Memory`].
    pub fn isendrecv_replace(
        &self,
        data: &Source,
        to: (usize, i32),
        into: impl Into<Sink>,
        from: (Option<usize>, Option<i32>),
        types: ExchangeTypes<'_>,
    ) -> Result<Request, Error> {
        self.isendrecv(packed(data)?, to, into, from, types)
    }
}

/// An exchange that was started.
struct Exchange {
    communicator: Communicator,
    state: Mutex<State>,
}

struct State {
    /// The right to end the request, until both messages have ended.
    ending: Option<Ending>,
    /// How many of the two messages are under way.
    open: u8,
    outcome: Result<Status, mpjdev::Error>,
}

impl Exchange {
    fn new(communicator: Communicator, ending: Ending) -> Self {
        let state = State { ending: Some(ending), open: 2, outcome: Ok(nobody()) };
        Self { communicator, state: Mutex::new(state) }
    }

    /// Notes the end of a message, with its status if it was received, and ends the request after both.
    fn ended(&self, outcome: Result<Option<Status>, mpjdev::Error>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match (&state.outcome, outcome) {
            (Ok(_), Ok(Some(received))) => state.outcome = Ok(received),
            (Ok(_), Err(error)) => state.outcome = Err(error),
            (Ok(_), Ok(None)) | (Err(_), _) => {}
        }
        state.open -= 1;
        let completed = if state.open == 0 { state.ending.take() } else { None };
        let outcome = state.outcome.clone();
        drop(state);
        if let Some(ending) = completed {
            self.communicator.device().end(ending, outcome);
        }
    }
}
