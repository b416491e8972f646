//! Waiting for requests and testing them (MPI-4 section 3.7.3 and 3.7.5).
//!
//! Calls for several requests take a list of `Option<Request>`. They empty the place of a completed request, and skip
//! empty places, which stand for MPI_REQUEST_NULL.

use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};

use transport_lapi::bootstrap::waits::{Phase, Wait, Within};
use transport_lapi::{Awaited, LapiError, Session, SessionGuard};

use crate::call_names::Call;
use crate::device::recorded::RecordedWait;
use crate::device::{Device, diagnostics};
use crate::error::Error;
use crate::request::{Handle, Request, Requests, SourceTag, Status};
use crate::state::State;

/// A completed request of a list: its place and its outcome.
pub type Completion = (usize, Result<Status, Error>);

impl Device {
    /// Waits until the operation is complete (MPI_Wait).
    ///
    /// # Errors
    /// [`Error::Truncate`] for a receive whose message was too long; [`Error::Request`] for a
    /// request of another device; what made the device unusable.
    #[inline]
    pub fn iwait(&self, request: Request) -> Result<Status, Error> {
        self.iwait_at(request, None)
    }

    /// [`Device::iwait`] by a call of the program at this place, where calls are recorded.
    ///
    /// # Errors
    /// As [`Device::iwait`].
    #[inline]
    pub fn iwait_at(
        &self,
        request: Request,
        place: Option<&'static Location<'static>>,
    ) -> Result<Status, Error> {
        match request.handle() {
            Handle::Complete { dest, tag, bytes } => Ok(Status::new(dest, tag, bytes)),
            Handle::Pending { key, device } if Some(device) == self.number_of_waits() => {
                self.wait_ended(self.session()?, key, Call::Wait, None)
            }
            Handle::Pending { .. } => self.iwait_recorded(&request, place),
        }
    }

    /// Tests whether the operation is complete (MPI_Test). If it is, takes the request and returns its outcome. Returns
    /// `None` if it is not complete, or if the place is empty.
    ///
    /// # Errors
    /// As [`Device::iwait`].
    pub fn itest(&self, request: &mut Option<Request>) -> Result<Option<Status>, Error> {
        self.itest_at(request, None)
    }

    /// [`Device::itest`] by a call of the program at this place, where calls are recorded.
    ///
    /// # Errors
    /// As [`Device::iwait`].
    pub fn itest_at(
        &self,
        request: &mut Option<Request>,
        place: Option<&'static Location<'static>>,
    ) -> Result<Option<Status>, Error> {
        if self.records() { self.itest_recorded(request, place) } else { self.test(request) }
    }

    /// [`Device::itest`] without a record.
    pub(super) fn test(&self, request: &mut Option<Request>) -> Result<Option<Status>, Error> {
        match self.poll_for(|session| self.take_ended(&mut session.state, request))? {
            Some(outcome) => outcome.map(Some),
            None => Ok(None),
        }
    }

    /// Returns the outcome if the operation is complete, and leaves the request unchanged (MPI_Request_get_status,
    /// MPI-4 section 3.7.6). It may be repeated, and the request must still be waited for.
    ///
    /// # Errors
    /// [`Error::Request`] for a request of another device; what made the device unusable. An error of the operation
    /// is its outcome.
    pub fn istatus(&self, request: &Request) -> Result<Option<Result<Status, Error>>, Error> {
        let key = self.key(request)?;
        self.poll_for(|session| match key {
            Some(key) => session.state.requests.outcome(key),
            None => request.completed().map(Ok),
        })
    }

    /// Tests whether one of the requests is complete (MPI_Testany). If one is, empties its place and returns the place
    /// and the outcome. Returns `None` if none is complete, or if all places are empty.
    ///
    /// # Errors
    /// What made the device unusable.
    pub fn itestany(&self, requests: &mut [Option<Request>]) -> Result<Option<Completion>, Error> {
        let mut one = self.itest_first(requests, 1)?;
        Ok(one.pop())
    }

    /// Tests which of the requests are complete (MPI_Testsome). Empties their places and returns the places and
    /// outcomes. Returns none if no request is complete, or if all places are empty.
    ///
    /// # Errors
    /// What made the device unusable.
    pub fn itestsome(&self, requests: &mut [Option<Request>]) -> Result<Vec<Completion>, Error> {
        self.itest_first(requests, usize::MAX)
    }

    /// Empties the places of those requests whose operations have ended as far as the device knows, and drops the
    /// outcomes. It makes no progress, so it runs no function of [`Device::then`], and a caller may hold a lock.
    ///
    /// # Errors
    /// [`Error::Finished`]; what made the device unusable.
    pub fn drop_ended(&self, requests: &mut [Option<Request>]) -> Result<(), Error> {
        let mut session = self.session()?;
        for place in requests {
            // Nobody asks for the outcome.
            drop(self.take_ended(&mut session.state, place));
        }
        Ok(())
    }

    /// Tests whether all requests are complete (MPI_Testall). If they are, empties all places and returns the outcomes
    /// in order, without those of places that were empty. Otherwise returns `None`, and takes no request.
    ///
    /// # Errors
    /// What made the device unusable.
    pub fn itestall(
        &self,
        requests: &mut [Option<Request>],
    ) -> Result<Option<Vec<Result<Status, Error>>>, Error> {
        let recorded = self.records().then(|| RecordedWait::of_test(self, requests));
        let outcomes = self.poll_for(|session| {
            let State { requests: operations, .. } = &session.state;
            let is_open = |request: &Request| {
                let key = request.pending_on(self.number());
                key.is_some_and(|key| operations.is_open(key))
            };
            if requests.iter().flatten().any(is_open) {
                return None;
            }
            let state = &mut session.state;
            Some(requests.iter_mut().filter_map(|place| self.take_ended(state, place)).collect())
        })?;
        if let (Some(mut recorded), Some(outcomes)) = (recorded, &outcomes) {
            let outcomes: &Vec<_> = outcomes;
            outcomes.iter().for_each(|outcome| recorded.note_next(outcome));
        }
        Ok(outcomes)
    }

    /// Waits until one of the requests is complete (MPI_Waitany), empties its place and returns the place and the
    /// outcome. Returns `None` if all places are empty.
    ///
    /// # Errors
    /// What made the device unusable.
    pub fn iwaitany(&self, requests: &mut [Option<Request>]) -> Result<Option<Completion>, Error> {
        let mut one = self.iwait_first(requests, 1)?;
        Ok(one.pop())
    }

    /// Waits until at least one of the requests is complete (MPI_Waitsome). Empties the places of all that are and
    /// returns the places and outcomes. Returns none if all places are empty.
    ///
    /// # Errors
    /// What made the device unusable.
    pub fn iwaitsome(&self, requests: &mut [Option<Request>]) -> Result<Vec<Completion>, Error> {
        self.iwait_first(requests, usize::MAX)
    }

    /// Waits until all requests are complete (MPI_Waitall). Returns the outcomes in order, without empty places. Every
    /// request is waited for, even if an earlier one has failed.
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

    /// Like [`Device::iwaitall`], but passes each outcome to `take` instead of making a list. `take` runs under the
    /// device's lock and must not call the device.
    ///
    /// # Errors
    /// As [`Device::iwaitall`].
    pub fn iwaiteach(
        &self,
        requests: &mut [Option<Request>],
        mut take: impl FnMut(Result<Status, Error>),
    ) -> Result<(), Error> {
        let mut next = 0;
        // Requests that were complete when they were started need no look at the device.
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
        let looked_at = Requests::NEVER;
        if self.records() {
            let mut recorded = RecordedWait::begin(self, &requests[next..]);
            let take = |outcome| take(recorded.noted(outcome));
            return self.wait_until(
                self.session()?,
                All { device: self, requests, next, take, looked_at },
            );
        }
        self.wait_until(self.session()?, All { device: self, requests, next, take, looked_at })
    }

    /// Waits at the end of this rank's part in the job, before [`Device::finish_unless_dismissed`], until the operation is
    /// complete. Returns `false` if the launcher found that it never will be, and released this rank.
    ///
    /// # Errors
    /// As [`Device::iwait`].
    pub fn iwait_unless_dismissed(&self, request: Request, alone: bool) -> Result<bool, Error> {
        let _within = Within::end(Call::Finish, alone);
        let mut request = [Some(request)];
        let first =
            First { device: self, requests: &mut request, most: 1, looked_at: Requests::NEVER };
        let ended = self.wait_until(self.session()?, UnlessDismissed(first))?;
        ended.into_iter().flatten().try_for_each(|(_, outcome)| outcome.map(drop))?;
        Ok(request[0].is_none())
    }

    /// Makes progress until [`Device::stop_serving`] is called with this flag, for operations that other threads have
    /// started. The thread sleeps while nothing arrives.
    ///
    /// # Errors
    /// What made the device unusable.
    pub fn serve(&self, stop: &AtomicBool) -> Result<(), Error> {
        self.wait_until(self.session()?, Serving(stop))
    }

    /// Ends [`Device::serve`] with this flag.
    pub fn stop_serving(&self, stop: &AtomicBool) {
        // Relaxed: the other thread looks under the lock that is taken next.
        stop.store(true, Ordering::Relaxed);
        // If the device has ended, so has the wait.
        self.session().iter_mut().for_each(|session| session.wake());
    }

    /// Makes progress until `awaited` has an answer. A violation that a handler found ends the device.
    #[inline(always)]
    pub(crate) fn wait_until<W: Awaited<State>>(
        &self,
        session: SessionGuard<'_, State>,
        awaited: W,
    ) -> Result<W::Answer, Error> {
        let guard = GiveUpOnPanic(self);
        let outcome = self.context.wait_from(session, &mut UnlessFailed(awaited));
        std::mem::forget(guard);
        match outcome {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(self.fail_of_first_error()),
            Err(error) => Err(self.fail(error.into())),
        }
    }

    /// Ends the device because a handler found a violation.
    #[cold]
    #[inline(never)]
    fn fail_of_first_error(&self) -> Error {
        match self.session().map(|session| session.state.first_error.clone()) {
            Ok(first_error) => self.fail(first_error.unwrap_or(Error::Finished)),
            // Another thread has ended it.
            Err(error) => error,
        }
    }

    /// Waits for one operation, in a `call` that holds the session. For a receive from one rank, `origin` is that rank.
    #[inline(always)]
    pub(crate) fn wait_ended(
        &self,
        session: SessionGuard<'_, State>,
        key: u64,
        call: Call,
        origin: Option<u32>,
    ) -> Result<Status, Error> {
        let looked_at = Requests::NEVER;
        let from = SourceTag::new(0, 0);
        let mut operated = Operated { key, call, origin, looked_at, from, bytes: 0 };
        match self.wait_until(session, &mut operated)? {
            true => Ok(operated.from.status(operated.bytes)),
            false => self.take_otherwise(key),
        }
    }

    /// Returns the outcome of an operation that has ended without success.
    #[cold]
    #[inline(never)]
    fn take_otherwise(&self, key: u64) -> Result<Status, Error> {
        let ended = self.session()?.state.requests.take_ended(key);
        ended.unwrap_or(Err(Error::Request))
    }

    fn iwait_first(
        &self,
        requests: &mut [Option<Request>],
        most: usize,
    ) -> Result<Vec<Completion>, Error> {
        if requests.iter().all(Option::is_none) {
            return Ok(Vec::new());
        }
        let recorded = self.records().then(|| RecordedWait::begin(self, requests));
        let first = First { device: self, requests, most, looked_at: Requests::NEVER };
        let ended = self.wait_until(self.session()?, first)?;
        recorded.into_iter().for_each(|recorded| recorded.note_places(&ended));
        Ok(ended)
    }

    fn itest_first(
        &self,
        requests: &mut [Option<Request>],
        most: usize,
    ) -> Result<Vec<Completion>, Error> {
        let recorded = self.records().then(|| RecordedWait::of_test(self, requests));
        let ended = self.poll_for(|session| {
            let ended = self.take_first(&mut session.state, requests, most);
            (!ended.is_empty()).then_some(ended)
        })?;
        let ended = ended.unwrap_or_default();
        recorded.into_iter().for_each(|recorded| recorded.note_places(&ended));
        Ok(ended)
    }

    /// Takes at most `most` complete requests out of their places.
    fn take_first(
        &self,
        state: &mut State,
        requests: &mut [Option<Request>],
        most: usize,
    ) -> Vec<Completion> {
        let ended = requests.iter_mut().enumerate().filter_map(|(place, request)| {
            self.take_ended(state, request).map(|outcome| (place, outcome))
        });
        ended.take(most).collect()
    }

    /// Takes a request that was under way and has succeeded out of its place; most requests succeed.
    #[inline(always)]
    fn take_done(&self, state: &mut State, request: &mut Option<Request>) -> Option<Status> {
        let status = state.requests.take_done(request.as_ref()?.pending_on(self.number())?)?;
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
        let outcome = match request.as_ref()?.handle() {
            Handle::Complete { dest, tag, bytes } => Ok(Status::new(dest, tag, bytes)),
            Handle::Pending { key, device } if device == self.number() => {
                state.requests.take_ended(key)?
            }
            Handle::Pending { .. } => Err(Error::Request),
        };
        *request = None;
        Some(outcome)
    }
}

/// Waits for something, but ends at once if a handler finds a violation.
struct UnlessFailed<W>(W);

impl<W: Awaited<State>> Awaited<State> for UnlessFailed<W> {
    type Answer = Option<W::Answer>;

    #[inline(always)]
    fn frames(&self) -> usize {
        self.0.frames()
    }

    #[inline(always)]
    fn origin(&self) -> Option<u32> {
        self.0.origin()
    }

    #[inline(always)]
    fn look(&mut self, session: &mut Session<State>) -> Option<Self::Answer> {
        if session.state.has_failed() { Some(None) } else { self.0.look(session).map(Some) }
    }

    /// An operation that needs a lost rank fails by itself, which ends the wait for it.
    fn in_vain(&self, _: &Session<State>) -> Option<LapiError> {
        None
    }

    fn is_failure(&self, session: &Session<State>, answer: &Self::Answer) -> bool {
        answer.as_ref().is_none_or(|answer| self.0.is_failure(session, answer))
    }

    fn describe(&self, session: &Session<State>) -> Wait {
        self.0.describe(session)
    }
}

/// Waits for the end of one operation. The answer is whether it has succeeded. If so, the numbers of its status are
/// here.
///
/// They do not lie side by side, so that they are also read one by one, as they were written just before: a load of
/// both would wait until the two stores have left the processor's buffer.
#[repr(C)]
struct Operated {
    key: u64,
    from: SourceTag,
    /// See [`Requests::news_since`].
    looked_at: u64,
    bytes: usize,
    /// The source of a receive from one rank. `None` for a send, which may depend on any rank that delays its target.
    origin: Option<u32>,
    call: Call,
}

impl Awaited<State> for &mut Operated {
    type Answer = bool;

    /// Receives that are posted one by one take a stream of messages one by one: see [`Awaited::frames`].
    #[inline(always)]
    fn frames(&self) -> usize {
        1
    }

    #[inline(always)]
    fn origin(&self) -> Option<u32> {
        self.origin
    }

    #[inline(always)]
    fn look(&mut self, session: &mut Session<State>) -> Option<Self::Answer> {
        let requests = &mut session.state.requests;
        self.looked_at = requests.news_since(self.looked_at)?;
        match requests.take_numbers(self.key) {
            Some(numbers) => {
                (self.from, self.bytes) = numbers;
                Some(true)
            }
            None if requests.is_open(self.key) => None,
            None => Some(false),
        }
    }

    fn is_failure(&self, session: &Session<State>, _: &Self::Answer) -> bool {
        session.state.requests.has_lost_peer(self.key)
    }

    fn describe(&self, session: &Session<State>) -> Wait {
        diagnostics::of_operation(session, self.call, self.key)
    }
}

/// Waits for the end of all operations of a list; those before `next` have ended.
struct All<'a, F> {
    device: &'a Device,
    requests: &'a mut [Option<Request>],
    next: usize,
    take: F,
    /// See [`Requests::news_since`].
    looked_at: u64,
}

impl<F: FnMut(Result<Status, Error>)> Awaited<State> for All<'_, F> {
    type Answer = ();

    /// One for each operation from the first one on that has not ended, as for [`Operated`].
    #[inline]
    fn frames(&self) -> usize {
        self.requests.len() - self.next
    }

    #[inline]
    fn look(&mut self, session: &mut Session<State>) -> Option<()> {
        self.looked_at = session.state.requests.news_since(self.looked_at)?;
        while let Some(place) = self.requests.get_mut(self.next) {
            match self.device.take_done(&mut session.state, place) {
                Some(status) => (self.take)(Ok(status)),
                None if place.is_none() => {}
                None => (self.take)(self.device.take_ended(&mut session.state, place)?),
            }
            self.next += 1;
        }
        Some(())
    }

    fn describe(&self, session: &Session<State>) -> Wait {
        self.device.describe_list(session, Call::WaitAll, &self.requests[self.next..])
    }
}

/// Waits for the end of any operations of a list, and takes at most `most` of them.
struct First<'a> {
    device: &'a Device,
    requests: &'a mut [Option<Request>],
    most: usize,
    /// See [`Requests::news_since`].
    looked_at: u64,
}

impl Awaited<State> for First<'_> {
    type Answer = Vec<Completion>;

    fn look(&mut self, session: &mut Session<State>) -> Option<Vec<Completion>> {
        let state = &mut session.state;
        self.looked_at = state.requests.news_since(self.looked_at)?;
        let ended = self.device.take_first(state, self.requests, self.most);
        (!ended.is_empty()).then_some(ended)
    }

    fn is_failure(&self, _: &Session<State>, answer: &Self::Answer) -> bool {
        let is_loss = |error: &Error| error.lost_rank().is_some();
        answer.iter().any(|(_, outcome)| outcome.as_ref().is_err_and(is_loss))
    }

    fn describe(&self, session: &Session<State>) -> Wait {
        self.device.describe_list(session, Call::WaitAny, self.requests)
    }
}

/// Waits for something, but ends without an answer if this rank is dismissed.
struct UnlessDismissed<W>(W);

impl<W: Awaited<State>> Awaited<State> for UnlessDismissed<W> {
    type Answer = Option<W::Answer>;

    fn look(&mut self, session: &mut Session<State>) -> Option<Self::Answer> {
        match self.0.look(session) {
            None => session.is_dismissed().then_some(None),
            answer => answer.map(Some),
        }
    }

    fn is_failure(&self, session: &Session<State>, answer: &Self::Answer) -> bool {
        answer.as_ref().is_some_and(|answer| self.0.is_failure(session, answer))
    }

    fn describe(&self, session: &Session<State>) -> Wait {
        Wait { phase: Phase::Others, ..self.0.describe(session) }
    }
}

/// Waits for the flag.
struct Serving<'a>(&'a AtomicBool);

impl Awaited<State> for Serving<'_> {
    type Answer = ();

    fn look(&mut self, _: &mut Session<State>) -> Option<()> {
        self.0.load(Ordering::Relaxed).then_some(())
    }

    fn describe(&self, _: &Session<State>) -> Wait {
        Wait { call: Call::Progress.into(), ..Wait::default() }
    }
}

/// Dropped when a wait unwinds: the caller may then free its buffer, so the device must not use it any more (V1).
struct GiveUpOnPanic<'a>(&'a Device);

impl Drop for GiveUpOnPanic<'_> {
    #[cold]
    fn drop(&mut self) {
        self.0.give_up();
    }
}
