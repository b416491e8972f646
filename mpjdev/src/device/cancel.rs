//! Calls that end or leave a request without waiting for it: cancel it, withdraw it, continue with a function, or
//! detach it together with its buffer.

use std::any::Any;

use crate::backend::withdrawal;
use crate::device::Device;
use crate::error::Error;
use crate::request::{self, Operation, Request, Status};
use crate::state::State;

impl Device {
    /// Cancels a receive that has not matched a message (MPI_Cancel). Returns whether it was cancelled. Wait for the
    /// request in either case; its status says so too. Sends, and receives that have matched a message, are not
    /// cancelled.
    ///
    /// # Errors
    /// [`Error::Request`] for a request of another device; [`Error::Finished`], what made the device
    /// unusable.
    pub fn cancel(&self, request: &Request) -> Result<bool, Error> {
        let Some(key) = self.key(request)? else { return Ok(false) };
        let mut session = self.session()?;
        let state = &mut session.state;
        let cancelled =
            state.requests.is_posted(key) && state.matcher.cancel_posted(request::number(key));
        if cancelled {
            state.requests.end(key, Operation::Cancelled);
            let (state, outbox) = session.parts();
            state.follow_up(outbox);
            session.wake();
        }
        Ok(cancelled)
    }

    /// Withdraws an operation, for a call that fails because a rank that the call needs is lost; this operation itself
    /// need not need that rank. Wait for the request afterwards:
    ///
    /// - A receive that has not matched a message yet is cancelled.
    /// - A send whose receiver has to answer (rendezvous or synchronous mode) fails with `because` if its message has
    ///   matched no receive and no matched probe when the receiver learns of the withdrawal; then no receive ever gets
    ///   it. If one has matched, both ends succeed. The send ends when the receiver has made progress, or has received
    ///   the message that its matched probe took, or is lost; then the buffer is free.
    /// - Any other operation is left alone. The data of a message that has matched its receive arrive, those of an
    ///   eager send leave as soon as there is room, and an operation that [`Device::begin`] began is for its client to
    ///   end.
    ///
    /// # Errors
    /// As [`Device::cancel`].
    pub fn withdraw(&self, request: &Request, because: Error) -> Result<(), Error> {
        let Some(key) = self.key(request)? else { return Ok(()) };
        if !self.cancel(request)? {
            let mut session = self.session()?;
            let (state, outbox) = session.parts();
            withdrawal::ask(state, outbox, key, because);
            // A sleeping thread may be the only one that could send the request to withdraw.
            session.wake();
        }
        Ok(())
    }

    /// Consumes a request and calls `next` with its outcome when the operation has ended. `next` runs in a thread that
    /// is in a call of this device which makes progress, when the device's lock is free, and may call the device. If
    /// the operation has already ended, it runs in the next such call. A device that ends or fails drops functions that
    /// have not run. A panic of `next` unwinds out of the call that runs it; if that call is a wait, the device fails,
    /// as by every panic in a wait.
    ///
    /// # Errors
    /// [`Error::Request`] for a request of another device; [`Error::Finished`], what made the device unusable.
    pub fn then(
        &self,
        request: Request,
        next: impl FnOnce(Result<Status, Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let key = self.key(&request)?;
        let mut session = self.session()?;
        let (state, outbox) = session.parts();
        match key {
            None => {
                let outcome = request.completed().ok_or(Error::Request);
                outbox.when_unlocked(Box::new(move || next(outcome)));
            }
            Some(key) => {
                state.requests.follow(key, Box::new(next));
                state.follow_up(outbox);
                session.after_rounds(State::follow_up);
            }
        }
        // A sleeping thread may be the only one in a call.
        session.wake();
        Ok(())
    }

    /// Notes, in a job that finds mistakes between ranks, that the program drops a receive in `context`: if the receive
    /// has matched a message, that counts as never received ([`Error::Unreceived`]). Otherwise it is cancelled.
    pub fn drop_receive(&self, request: &Request, context: u32) {
        if self.is_checked() && matches!(self.cancel(request), Ok(false)) {
            if let (Ok(Some(key)), Ok(mut session)) = (self.key(request), self.session()) {
                session.state.lose(key, context);
            }
        }
    }

    /// Consumes a request together with its buffer, which stays alive until the operation has ended. A receive that
    /// has not matched a message is cancelled.
    pub fn detach(&self, request: Request, buffer: Box<dyn Any + Send>) {
        let key = match self.key(&request) {
            Ok(Some(key)) => key,
            Ok(None) => return,
            // The buffer is in use by another device, and there is no telling for how long.
            Err(_) => return std::mem::forget(buffer),
        };
        // A device that has failed uses no buffer any more (V1), so there is nothing to cancel or to follow.
        let _ = self.cancel(&request);
        let Ok(mut session) = self.session() else { return };
        let has_ended = session.state.requests.take_ended(key).is_some();
        drop(session);
        if !has_ended {
            let _ = self.then(request, move |_| drop(buffer));
        }
    }
}
