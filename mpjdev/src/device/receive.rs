//! Receiving (MPI-4 sections 3.2.4 and 3.7.2).
//!
//! [`Device::post_span`] handles only the most frequent receives: those that are posted while there is no unexpected
//! message and no rank is lost. If a condition does not hold, it has changed nothing, and [`Device::start_receive`]
//! handles the receive.

use transport_lapi::{RecvRegion, Session, Sink};

use crate::backend;
use crate::calls::Call;
use crate::device::Device;
use crate::error::Error;
use crate::matching::Pattern;
use crate::request::{self, Operation, Posted, Request, Status};
use crate::state::State;

impl Device {
    /// Starts a receive into `into` (MPI_Irecv) of a message of `context` from `source` with `tag`, where `None` means
    /// any. The region is in use until the request was waited for (V1).
    ///
    /// # Errors
    /// As [`Device::isend`].
    #[inline(always)]
    pub fn irecv(
        &self,
        into: impl Into<Sink>,
        source: Option<usize>,
        tag: Option<i32>,
        context: u32,
    ) -> Result<Request, Error> {
        let posted = match (into.into(), source, tag) {
            (Sink::Span(into), Some(source), Some(tag)) => {
                self.post_span(into, source, tag, context)
            }
            (into, source, tag) => self.start_receive(into, source, tag, context),
        };
        posted.map(|key| Request::pending(key, self.number())).map_err(|error| *error)
    }

    /// [`Device::start_receive`] for most receives: into one span, without wildcards, while there is no unexpected
    /// message.
    #[inline(never)]
    fn post_span(
        &self,
        into: RecvRegion,
        source: usize,
        tag: i32,
        context: u32,
    ) -> Result<u64, Box<Error>> {
        'otherwise: {
            if source >= self.size() || tag < 0 {
                break 'otherwise;
            }
            let Ok(mut session) = self.context.session() else { break 'otherwise };
            // Two calls make the pattern twice, so that it stays in registers on the fast path.
            let pattern = || Pattern { context, source: Some(source as u32), tag: Some(tag) };
            if session.state.is_clear() {
                return Ok(push(&mut session.state, into.into(), pattern()));
            }
            return match_unexpected(&mut session, into.into(), pattern());
        }
        self.start_receive(into.into(), Some(source), Some(tag), context)
    }

    /// Starts any receive and returns its key.
    #[cold]
    #[inline(never)]
    fn start_receive(
        &self,
        into: Sink,
        source: Option<usize>,
        tag: Option<i32>,
        context: u32,
    ) -> Result<u64, Box<Error>> {
        let pattern = self.pattern(source, tag, context)?;
        post(&mut *self.session()?, into, pattern)
    }

    /// Receives into `into` and waits until the message has arrived (MPI_Recv).
    ///
    /// # Errors
    /// As [`Device::irecv`] and [`Device::iwait`].
    pub fn recv(
        &self,
        into: impl Into<Sink>,
        source: Option<usize>,
        tag: Option<i32>,
        context: u32,
    ) -> Result<Status, Error> {
        let pattern = self.pattern(source, tag, context)?;
        let mut session = self.session()?;
        let key = post(&mut session, into.into(), pattern).map_err(|error| *error)?;
        self.wait_ended(session, key, Call::Recv, pattern.source)
    }
}

/// Posts a receive, or matches it with the first unexpected message that fits, and returns its key.
///
/// # Errors
/// The loss of a rank that the receive needs, unless an unexpected message fits.
#[inline(always)]
fn post(session: &mut Session<State>, into: Sink, pattern: Pattern) -> Result<u64, Box<Error>> {
    if session.state.is_clear() {
        return Ok(push(&mut session.state, into, pattern));
    }
    match_unexpected(session, into, pattern)
}

/// [`post`] when there are unexpected messages or losses.
#[inline(never)]
fn match_unexpected(
    session: &mut Session<State>,
    into: Sink,
    pattern: Pattern,
) -> Result<u64, Box<Error>> {
    let (state, outbox) = session.parts();
    // An unexpected message of a collective operation may belong to one that has failed.
    state.losses.check_members(&pattern)?;
    if let Some((_, unexpected)) = state.matcher.take_unexpected(&pattern) {
        let key = backend::receive(state, outbox, unexpected, into);
        // If the caller does not make progress, a sleeping thread must carry out what this has started.
        session.wake();
        return Ok(key);
    }
    state.losses.check(&pattern)?;
    Ok(push(state, into, pattern))
}

/// Posts a receive that no unexpected message fits, and returns its key.
#[inline(always)]
fn push(state: &mut State, into: Sink, pattern: Pattern) -> u64 {
    let key = state.requests.insert(|| Operation::Posted(Posted { into }));
    state.matcher.push_posted(pattern, request::number(key));
    key
}
