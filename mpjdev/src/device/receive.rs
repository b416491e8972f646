//! Receiving (MPI-4 sections 3.2.4 and 3.7.2).

use std::num::NonZeroU32;

use transport_lapi::{Session, Sink};

use crate::backend;
use crate::call_names::Call;
use crate::description::Description;
use crate::device::{Device, recorded};
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
        self.irecv_described(into, source, tag, context, || ())
    }

    /// [`Device::irecv`]. `describe` may say what is received
    /// ([`of_next_call`](crate::Description::of_next_call)); it is called only if that could be compared.
    ///
    /// # Errors
    /// As [`Device::irecv`].
    #[inline(always)]
    pub fn irecv_described<D>(
        &self,
        into: impl Into<Sink>,
        source: Option<usize>,
        tag: Option<i32>,
        context: u32,
        describe: impl FnOnce() -> D,
    ) -> Result<Request, Error> {
        let pattern = self.pattern(source, tag, context)?;
        let posted = post(&mut *self.session()?, into.into(), pattern, describe);
        posted.map(|key| Request::pending(key, self.number())).map_err(|error| *error)
    }

    /// Receives into `into` and waits until the message has arrived (MPI_Recv).
    ///
    /// # Errors
    /// As [`Device::irecv`] and [`Device::iwait`].
    #[inline(always)]
    pub fn recv(
        &self,
        into: impl Into<Sink>,
        source: Option<usize>,
        tag: Option<i32>,
        context: u32,
    ) -> Result<Status, Error> {
        self.recv_described(into, source, tag, context, || ())
    }

    /// [`Device::recv`], as [`Device::irecv_described`] starts it.
    ///
    /// # Errors
    /// As [`Device::recv`].
    pub fn recv_described<D>(
        &self,
        into: impl Into<Sink>,
        source: Option<usize>,
        tag: Option<i32>,
        context: u32,
        describe: impl FnOnce() -> D,
    ) -> Result<Status, Error> {
        let pattern = self.pattern(source, tag, context)?;
        let mut session = self.session()?;
        let key = post(&mut session, into.into(), pattern, describe).map_err(|error| *error)?;
        self.wait_ended(session, key, Call::Recv, pattern.source)
    }
}

/// Posts a receive, or matches it with the first unexpected message that fits, and returns its key.
///
/// # Errors
/// The loss of a rank that the receive needs, unless an unexpected message fits.
#[inline(always)]
fn post<D>(
    session: &mut Session<State>,
    into: Sink,
    pattern: Pattern,
    describe: impl FnOnce() -> D,
) -> Result<u64, Box<Error>> {
    if session.state.is_clear() {
        return Ok(push(&mut session.state, into, pattern));
    }
    let _described = describe();
    match_unexpected(session, into, pattern)
}

/// [`post`] when there are unexpected messages or losses, or mistakes are found.
#[inline(never)]
fn match_unexpected(
    session: &mut Session<State>,
    into: Sink,
    pattern: Pattern,
) -> Result<u64, Box<Error>> {
    let (state, outbox) = session.parts();
    // An unexpected message of a collective operation may belong to one that has failed.
    state.losses.check_members(&pattern)?;
    state.check_place(&into, pattern.context)?;
    let recorded = state.records.map(|device| (device, Description::is_given(pattern.context)));
    if let Some((_, unexpected)) = state.matcher.take_unexpected(&pattern) {
        let key = backend::receive(state, outbox, unexpected, into);
        recorded.into_iter().for_each(|recorded| record(state, recorded, &pattern, key));
        // If the caller does not make progress, a sleeping thread must carry out what this has started.
        session.wake();
        return Ok(key);
    }
    state.losses.check(&pattern)?;
    let key = push(state, into, pattern);
    state.say(request::number(key), pattern.context);
    recorded.into_iter().for_each(|recorded| record(state, recorded, &pattern, key));
    Ok(key)
}

/// Records that a receive was started on the device with a number, and whether the layer above has described it.
#[cold]
#[inline(never)]
fn record(
    state: &mut State,
    (device, is_described): (NonZeroU32, bool),
    pattern: &Pattern,
    key: u64,
) {
    if is_described {
        recorded::receives(pattern, device, key);
    }
    state.note_levels();
}

/// Posts a receive that no unexpected message fits, and returns its key.
#[inline(always)]
fn push(state: &mut State, into: Sink, pattern: Pattern) -> u64 {
    let key = state.requests.insert(|| Operation::Posted(Posted { into }));
    state.matcher.push_posted(pattern, request::number(key));
    key
}
