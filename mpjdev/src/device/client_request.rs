//! Operations that a client of the device begins and ends itself: generalized requests (MPI-4.1 section 13.2), and
//! collectives, which consist of several messages.
//!
//! Waits, tests and [`Device::then`] treat such an operation like any other, also in a list with others. The device
//! itself ends those that [`Device::join`] began.

use std::num::NonZeroU32;

use crate::call_names::Call;
use crate::device::Device;
use crate::error::Error;
use crate::request::{Operation, Request, SourceTag, Status};

/// The right to end an operation that [`Device::begin`] began, by [`Device::end`]. It may be sent to another thread.
///
/// Dropping it ends nothing: the operation stays under way, and a wait for it does not return until the device fails.
#[derive(Debug)]
#[must_use = "the operation is under way until this is given to Device::end"]
pub struct Ending {
    key: u64,
    /// Number of the device of the operation.
    device: NonZeroU32,
}

impl Device {
    /// Begins an operation that its client ends with [`Device::end`] (MPI_Grequest_start). `call`, `context` and `tag`
    /// describe it in reports: `call` is the collective call that it carries out, or else [`Call::Other`]. The
    /// operation uses no buffer, [`Device::cancel`] does not cancel it, and the loss of a rank does not end it: the
    /// client knows which ranks it needs.
    ///
    /// # Errors
    /// [`Error::Finished`], or what made the device unusable.
    pub fn begin(&self, call: Call, context: u32, tag: i32) -> Result<(Request, Ending), Error> {
        self.begin_operation(Operation::Client { call, context, tag, peer: None })
    }

    /// Begins an operation like [`Device::begin`], which needs what rank `peer` does: reports name that rank, and its
    /// loss ends the operation. So does the loss of a member of the context.
    ///
    /// # Errors
    /// [`Error::Rank`]; the loss of the rank; [`Error::Finished`], or what made the device unusable.
    pub fn begin_with(
        &self,
        call: Call,
        context: u32,
        tag: i32,
        peer: usize,
    ) -> Result<(Request, Ending), Error> {
        let peer = Some(self.check_rank(peer)?);
        self.begin_operation(Operation::Client { call, context, tag, peer })
    }

    fn begin_operation(&self, operation: Operation) -> Result<(Request, Ending), Error> {
        let mut session = self.session()?;
        if let Operation::Client { context, tag, peer: Some(peer), .. } = operation {
            session.state.losses.check_send(peer, context, tag).map_err(|error| *error)?;
        }
        let key = session.state.requests.insert(|| operation);
        let device = self.number();
        Ok((Request::pending(key, device), Ending { key, device }))
    }

    /// Checks whether a message to rank `peer` in `context` could still be sent.
    ///
    /// # Errors
    /// As [`Device::begin_with`].
    pub fn check_peer(&self, peer: usize, context: u32, tag: i32) -> Result<(), Error> {
        let peer = self.check_rank(peer)?;
        let session = self.session()?;
        session.state.losses.check_send(peer, context, tag).map_err(|error| *error)
    }

    /// Begins an operation that ends when those of all these requests have ended, whatever their outcomes, which stay
    /// with the requests. Waits for it count as waits for them in reports.
    ///
    /// # Errors
    /// [`Error::Finished`], or what made the device unusable.
    pub fn join<'r>(
        &self,
        requests: impl IntoIterator<Item = &'r Request>,
    ) -> Result<Request, Error> {
        let device = self.number();
        let mut session = self.session()?;
        let operations = &mut session.state.requests;
        let operation = || Operation::Client { call: Call::Other, context: 0, tag: 0, peer: None };
        let joint = operations.insert(operation);
        operations
            .join(joint, requests.into_iter().filter_map(|request| request.pending_on(device)));
        Ok(Request::pending(joint, device))
    }

    /// Ends an operation that [`Device::begin`] began (MPI_Grequest_complete). Its waits and tests return `outcome`,
    /// and threads that sleep in a wait for it wake up. Any thread may call this, even inside a function given to
    /// [`Device::then`]; it does not wait. Does nothing if the device has failed or was finished, or if the operation
    /// belongs to another device.
    pub fn end(&self, ending: Ending, outcome: Result<Status, Error>) {
        let Ending { key, device } = ending;
        let Ok(mut session) = self.context.session() else { return };
        if device != self.number() || !session.state.requests.is_client(key) {
            return;
        }
        let ended = match outcome {
            Ok(Status { cancelled: true, .. }) => Operation::Cancelled,
            Ok(Status { source, tag, bytes, .. }) => {
                Operation::Done { from: SourceTag::new(source, tag), bytes }
            }
            Err(error) => Operation::Failed(Box::new(error)),
        };
        session.state.requests.end(key, ended);
        let (state, outbox) = session.parts();
        state.follow_up(outbox);
        session.wake();
    }
}
