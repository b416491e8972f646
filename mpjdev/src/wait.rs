//! Waiting for requests and testing them (MPI-4 section 3.7.3 and 3.7.5).
//!
//! The lists of the calls on several requests hold `Option<Request>`: a request that is complete is
//! taken out of its place, and empty places are skipped, like MPI_REQUEST_NULL.

use transport_lapi::adapter::Adapter;
use transport_lapi::{LapiError, Session, SessionGuard};

use crate::device::Device;
use crate::error::Error;
use crate::request::{Handle, Request};
use crate::state::State;
use crate::status::Status;

/// One completed request of a list.
pub type Completion = (usize, Result<Status, Error>);

impl<A: Adapter> Device<A> {
    /// Waits until the operation is complete (MPI_Wait).
    ///
    /// # Errors
    /// [`Error::Truncate`] for a receive whose message was too long; [`Error::Request`] for a
    /// request of another device; what made the device unusable.
    #[inline]
    pub fn iwait(&self, request: Request) -> Result<Status, Error> {
        match self.handle(&request)? {
            Handle::Done(status) => Ok(status),
            Handle::Pending(key) => {
                self.wait_until(|session| session.state.requests.take_ended(key))?
            }
        }
    }

    /// Tests whether the operation is complete (MPI_Test). If it is, the request is taken and its
    /// outcome returned; an empty place gives `None`, like a request that is not complete.
    ///
    /// # Errors
    /// As [`Device::iwait`].
    pub fn itest(&self, request: &mut Option<Request>) -> Result<Option<Status>, Error> {
        match self.poll_for(|session| self.take_ended(&mut session.state, request))? {
            Some(outcome) => outcome.map(Some),
            None => Ok(None),
        }
    }

    /// Waits until one of the requests is complete (MPI_Waitany). Returns its place and outcome; the
    /// place is empty afterwards. `None` if all places are empty.
    ///
    /// # Errors
    /// What made the device unusable.
    pub fn iwaitany(&self, requests: &mut [Option<Request>]) -> Result<Option<Completion>, Error> {
        let mut one = self.iwait_first(requests, 1)?;
        Ok(one.pop())
    }

    /// Waits until at least one of the requests is complete (MPI_Waitsome). Returns places and
    /// outcomes of all that are; none if all places are empty.
    ///
    /// # Errors
    /// What made the device unusable.
    pub fn iwaitsome(&self, requests: &mut [Option<Request>]) -> Result<Vec<Completion>, Error> {
        self.iwait_first(requests, usize::MAX)
    }

    /// Waits until all requests are complete (MPI_Waitall). Returns the outcomes in order; empty
    /// places are left out. Every request is waited for, also behind one that failed.
    ///
    /// # Errors
    /// What made the device unusable.
    pub fn iwaitall(
        &self,
        requests: &mut [Option<Request>],
    ) -> Result<Vec<Result<Status, Error>>, Error> {
        let mut outcomes = Vec::with_capacity(requests.len());
        self.iwaiteach(requests, |outcome| outcomes.push(outcome))?;
        Ok(outcomes)
    }

    /// [`Device::iwaitall`], which gives each outcome to `take` instead of making a list of them.
    /// `take` runs under the device's lock: it must not call the device.
    ///
    /// # Errors
    /// As [`Device::iwaitall`].
    pub fn iwaiteach(
        &self,
        requests: &mut [Option<Request>],
        mut take: impl FnMut(Result<Status, Error>),
    ) -> Result<(), Error> {
        let mut next = 0;
        // What was complete when it was started needs no look at the device.
        while let Some(place) = requests.get_mut(next) {
            match place.as_ref().map(Request::completed) {
                Some(None) => break,
                Some(Some(status)) => take(Ok(status)),
                None => {}
            }
            *place = None;
            next += 1;
        }
        if next == requests.len() {
            return Ok(());
        }
        self.wait_until(|session| {
            while let Some(place) = requests.get_mut(next) {
                match self.take_done(&mut session.state, place) {
                    Some(status) => take(Ok(status)),
                    None if place.is_none() => {}
                    None => take(self.take_ended(&mut session.state, place)?),
                }
                next += 1;
            }
            Some(())
        })
    }

    /// Waits with progress; a violation that a handler met ends the device.
    #[inline]
    pub(crate) fn wait_until<R>(
        &self,
        ready: impl FnMut(&mut Session<A, State>) -> Option<R>,
    ) -> Result<R, Error> {
        self.wait_from(self.session()?, ready)
    }

    #[inline]
    fn wait_from<R>(
        &self,
        session: SessionGuard<'_, A, State>,
        ready: impl FnMut(&mut Session<A, State>) -> Option<R>,
    ) -> Result<R, Error> {
        let guard = GiveUpOnPanic(self);
        let outcome = self.context.wait_from(session, unless_trouble(ready));
        std::mem::forget(guard);
        self.outcome_of(outcome)
    }

    /// Waits for one operation on behalf of a caller that holds the session.
    #[inline(never)]
    pub(crate) fn wait_ended(
        &self,
        session: SessionGuard<'_, A, State>,
        key: u64,
    ) -> Result<Status, Error> {
        self.wait_from(session, |session| session.state.requests.take_ended(key))?
    }

    /// The same for a caller that has polled for as long as a wait does at first.
    #[inline(never)]
    pub(crate) fn wait_on(&self, key: u64) -> Result<Status, Error> {
        let guard = GiveUpOnPanic(self);
        let ended = |session: &mut Session<A, State>| session.state.requests.take_ended(key);
        let outcome = self.context.wait_on(unless_trouble(ended));
        std::mem::forget(guard);
        self.outcome_of(outcome)?
    }

    fn outcome_of<R>(&self, outcome: Result<Result<R, Error>, LapiError>) -> Result<R, Error> {
        match outcome {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(trouble)) => Err(self.fail(trouble)),
            Err(error) => Err(self.fail(error.into())),
        }
    }

    fn iwait_first(
        &self,
        requests: &mut [Option<Request>],
        most: usize,
    ) -> Result<Vec<Completion>, Error> {
        if requests.iter().all(Option::is_none) {
            return Ok(Vec::new());
        }
        let mut looked_at = None;
        self.wait_until(|session| {
            let state = &mut session.state;
            if looked_at == Some(state.requests.ended) {
                return None;
            }
            looked_at = Some(state.requests.ended);
            let ended = requests.iter_mut().enumerate().filter_map(|(place, request)| {
                self.take_ended(state, request).map(|outcome| (place, outcome))
            });
            let ended: Vec<_> = ended.take(most).collect();
            (!ended.is_empty()).then_some(ended)
        })
    }

    /// Takes a request under way that has ended well out of its place: most of them.
    #[inline(always)]
    fn take_done(&self, state: &mut State, request: &mut Option<Request>) -> Option<Status> {
        let key = request.as_ref()?.pending_on(self.number())?;
        let status = state.requests.take_done(key)?;
        *request = None;
        Some(status)
    }

    /// Takes a complete request out of its place.
    #[inline(never)]
    fn take_ended(
        &self,
        state: &mut State,
        request: &mut Option<Request>,
    ) -> Option<Result<Status, Error>> {
        let outcome = match self.handle(request.as_ref()?) {
            Ok(Handle::Done(status)) => Ok(status),
            Ok(Handle::Pending(key)) => state.requests.take_ended(key)?,
            Err(error) => Err(error),
        };
        *request = None;
        Some(outcome)
    }
}

/// Looks for a violation that a handler has met before it asks `ready`.
fn unless_trouble<A: Adapter, R>(
    mut ready: impl FnMut(&mut Session<A, State>) -> Option<R>,
) -> impl FnMut(&mut Session<A, State>) -> Option<Result<R, Error>> {
    move |session| match &session.state.trouble {
        Some(_) => session.state.trouble.take().map(Err),
        None => ready(session).map(Ok),
    }
}

/// Dropped when a wait unwinds: its buffer may be freed then, so the device must not use it (V1).
pub(crate) struct GiveUpOnPanic<'a, A: Adapter>(pub &'a Device<A>);

impl<A: Adapter> Drop for GiveUpOnPanic<'_, A> {
    #[cold]
    fn drop(&mut self) {
        self.0.give_up();
    }
}
