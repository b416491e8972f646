//! Ways to end or leave a request without a wait: it is cancelled, withdrawn, continued by a function, or detached
//! with its buffer.

use std::any::Any;

use transport_lapi::adapter::Adapter;

use crate::backend::withdrawal;
use crate::device::Device;
use crate::error::Error;
use crate::request::{self, Handle, Operation, Request};
use crate::state::State;
use crate::status::Status;

impl<A: Adapter> Device<A> {
    /// Cancels a receive that has not matched a message (MPI_Cancel). Returns whether it was cancelled. Wait for the
    /// request in either case; its status says so too. Sends, and receives that have matched a message, are not
    /// cancelled.
    ///
    /// # Errors
    /// [`Error::Request`] for a request of another device; [`Error::Finished`], what made the device
    /// unusable.
    pub fn cancel(&self, request: &Request) -> Result<bool, Error> {
        let Handle::Pending(key) = self.handle(request)? else { return Ok(false) };
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

    /// Withdraws an operation, for a call that fails because a rank that it needs is lost, whichever rank this
    /// operation itself needs. Wait for the request afterwards:
    ///
    /// - A receive that has not met a message yet is cancelled.
    /// - A send whose receiver has to answer, by rendezvous or in synchronous mode, fails with `because` if its message
    ///   has met no receive and no matched probe by the time that the receiver hears of it; then no receive ever meets
    ///   it. Where one has, both ends end well. The send ends when the receiver has made progress, or has received
    ///   what its matched probe took, or is lost; then its buffer is free.
    /// - Any other operation is left alone: data of a message that has met its receive arrive, those of an eager send
    ///   leave as soon as there is room, and what [`Device::begin`] began is its client's to end.
    ///
    /// # Errors
    /// As [`Device::cancel`].
    pub fn withdraw(&self, request: &Request, because: Error) -> Result<(), Error> {
        let Handle::Pending(key) = self.handle(request)? else { return Ok(()) };
        if !self.cancel(request)? {
            let mut session = self.session()?;
            let (state, outbox) = session.parts();
            withdrawal::ask(state, outbox, key, because);
            // A thread that sleeps may be the only one that sends it.
            session.wake();
        }
        Ok(())
    }

    /// Consumes a request: `next` runs with the outcome when the operation has ended. It runs in a thread that is in
    /// a call of this device which makes progress, when the device's lock is free, and may call the device; when the
    /// operation has ended already, in the next such call. A device that ends, or fails, drops what has not run. A
    /// panic of `next` unwinds out of the call that runs it; if that is a wait, the device is given up, as by every
    /// panic in a wait.
    ///
    /// # Errors
    /// [`Error::Request`] for a request of another device; [`Error::Finished`], what made the device unusable.
    pub fn then(
        &self,
        request: Request,
        next: impl FnOnce(Result<Status, Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let handle = self.handle(&request)?;
        let mut session = self.session()?;
        let (state, outbox) = session.parts();
        match handle {
            Handle::Done(status) => outbox.when_unlocked(Box::new(move || next(Ok(status)))),
            Handle::Pending(key) => {
                state.requests.follow(key, Box::new(next));
                state.follow_up(outbox);
                session.after_rounds(State::follow_up);
            }
        }
        // A thread that sleeps may be the only one in a call.
        session.wake();
        Ok(())
    }

    /// Consumes a request together with its buffer, which stays alive until the operation has ended. A receive that
    /// has not matched a message is cancelled.
    pub fn detach(&self, request: Request, buffer: Box<dyn Any + Send>) {
        let key = match self.handle(&request) {
            Ok(Handle::Pending(key)) => key,
            Ok(Handle::Done(_)) => return,
            // Another device uses the buffer, and nobody can say how long.
            Err(_) => return std::mem::forget(buffer),
        };
        // A device that has failed uses no buffer any more (V1): nothing is left to cancel, or to follow.
        let _ = self.cancel(&request);
        let Ok(mut session) = self.session() else { return };
        let has_ended = session.state.requests.take_ended(key).is_some();
        drop(session);
        if !has_ended {
            let _ = self.then(request, move |_| drop(buffer));
        }
    }
}
