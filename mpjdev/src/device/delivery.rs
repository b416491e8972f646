//! Messages as values of their own, for clients that do not post receives: a context whose messages go to a function,
//! and messages that are sent from, and received into, memory that the device owns.
//!
//! - DE1: the bytes of a send stay with the device until the operation has ended, or the device has failed (V1).

#![expect(unsafe_code, reason = "lends bytes to a send that owns them")]

use std::num::NonZeroU32;
use std::sync::Arc;

use transport_lapi::SendRegion;

use crate::backend;
use crate::device::Device;
use crate::device::send::Mode;
use crate::envelope::PeerError;
use crate::error::Error;
use crate::request::{Request, Status};
use crate::state::State;
use crate::state::deliveries::Content;
use crate::state::unexpected_buffer::UnexpectedBuffer;

/// A message that [`Device::deliver`] has passed to its function, which must receive it.
#[derive(Debug)]
#[must_use = "nobody but the holder can receive the message"]
pub struct Delivery {
    content: Content,
    status: Status,
    /// Number of the device that it was sent to.
    device: NonZeroU32,
}

impl Delivery {
    /// Returns source, tag and length of the message.
    pub fn status(&self) -> Status {
        self.status
    }
}

impl Device {
    /// Calls `take` for each message that arrives in `context` from now on. Like functions of [`Device::then`], `take` runs
    /// in a thread that is in a call which makes progress, when the device's lock is free, and may call the device; several
    /// threads may run it at once. It must receive the message. Nobody else receives or probes in such a context, and none of
    /// its messages has come yet. The sender has its credit back before `take` runs, so the layer above bounds how many
    /// short messages are under way.
    ///
    /// # Errors
    /// [`Error::Finished`]; what made the device unusable.
    pub fn deliver(
        &self,
        context: u32,
        take: impl Fn(Delivery) + Send + Sync + 'static,
    ) -> Result<(), Error> {
        let device = self.number();
        let taker = move |content, status| take(Delivery { content, status, device });
        let mut session = self.session()?;
        session.state.deliveries.begin(context, Arc::new(taker));
        session.after_rounds(State::follow_up);
        Ok(())
    }

    /// Ends [`Device::deliver`] for `context`, of which no further message comes. Does nothing if the device has failed.
    pub fn end_delivery(&self, context: u32) {
        let Ok(mut session) = self.session() else { return };
        let taker = session.state.deliveries.end(context);
        drop(session);
        // What it owns may call the device when it is dropped.
        drop(taker);
    }

    /// Receives a message and passes its bytes to `next`: at once if they are here, otherwise as [`Device::then`] does.
    ///
    /// # Errors
    /// [`Error::Request`] for a message of another device; [`Error::Peer`] if there is no memory for the message; what
    /// made the device unusable. The loss of the sender is passed to `next`.
    pub fn receive_bytes(
        &self,
        message: Delivery,
        next: impl FnOnce(Result<Vec<u8>, Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let Delivery { content, status, device } = message;
        if device != self.number() {
            return Err(Error::Request);
        }
        let unexpected = match content {
            Content::Bytes(bytes) => {
                next(Ok(bytes));
                return Ok(());
            }
            Content::Unexpected(key) => key,
        };
        let mut session = self.session()?;
        let (state, outbox) = session.parts();
        if let Some(bytes) = backend::eager::take_whole(state, outbox, unexpected) {
            drop(session);
            next(Ok(bytes));
            return Ok(());
        }
        let Status { source: rank, bytes: len, .. } = status;
        let Some(mut buffer) = UnexpectedBuffer::new(len) else {
            drop(session);
            return Err(self.refuse(rank, PeerError::Length { len: len as u64 }));
        };
        let key = backend::receive(state, outbox, unexpected, buffer.region().into());
        session.wake();
        drop(session);
        // BU2: the bytes are used when the receive has ended.
        let next = move |ended: Result<Status, Error>| next(ended.map(|_| buffer.into_bytes()));
        self.then(Request::pending(key, self.number()), next)
    }

    /// Sends bytes that nobody else needs, and does not wait until they have left.
    ///
    /// # Errors
    /// As [`Device::isend`].
    pub fn send_bytes(
        &self,
        bytes: Vec<u8>,
        dest: usize,
        tag: i32,
        context: u32,
    ) -> Result<(), Error> {
        // SAFETY: G1: DE1: `detach` keeps the vector, whose memory does not move with it.
        let region = unsafe { SendRegion::new(bytes.as_ptr(), bytes.len()) };
        let request = self.isend(region, dest, tag, context, Mode::Standard)?;
        if request.completed().is_none() {
            self.detach(request, Box::new(bytes));
        }
        Ok(())
    }

    /// Ends the device because a message of rank `rank` breaks the rules of a layer above, and returns the error.
    pub fn refuse(&self, rank: u32, violation: PeerError) -> Error {
        self.fail(Error::Peer { rank, violation })
    }
}
