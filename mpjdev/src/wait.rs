//! Waiting for requests and testing them (MPI-4 section 3.7.3 and 3.7.5).
//!
//! The lists of the calls on several requests hold `Option<Request>`: a request that is complete is
//! taken out of its place, and empty places are skipped, like MPI_REQUEST_NULL.

use transport_lapi::adapter::Adapter;

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
