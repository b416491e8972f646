//! Sending (MPI-4 sections 3.2.1, 3.4 and 3.7.2).
//!
//! [`Device::try_send`] sends the most frequent messages: short ones, for which no fact but credit matters, and which
//! leave at once. [`Device::start_send`] starts all others: it asks the table for the protocol (`protocol.rs`), which
//! is in `backend/`. Who sends eagerly has spent the credit.

use std::mem;

use transport_lapi::{LapiError, SendRegion, Session, Source};

use crate::backend::eager::{self, Eager};
use crate::backend::{Backend, Outbound, rendezvous::Rendezvous};
use crate::call_names::Call;
use crate::description::{Description, Told};
use crate::device::{Device, check_tag, recorded};
use crate::envelope::{self, EAGER, TOLD};
use crate::error::Error;
use crate::protocol::{Facts, Protocol, huge};
use crate::request::{COMPLETE, Request};
use crate::state::State;

/// The send modes (MPI-4 section 3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// The send is complete when the buffer can be reused.
    #[default]
    Standard,
    /// The send is complete when the buffer can be reused and a matching receive has begun.
    Synchronous,
}

impl Device {
    /// Starts a send of `data` to `dest` (MPI_Isend, MPI_Issend). The region is in use until the request was waited for
    /// (V1).
    ///
    /// # Errors
    /// [`Error::Rank`]; [`Error::Tag`] for a negative tag; the loss of a rank that the send needs; [`Error::Finished`];
    /// what made the device unusable. Nothing was sent then.
    #[inline(always)]
    pub fn isend(
        &self,
        data: impl Into<Source>,
        dest: usize,
        tag: i32,
        context: u32,
        mode: Mode,
    ) -> Result<Request, Error> {
        self.isend_described(data, (dest, tag, context), mode, || ())
    }

    /// [`Device::isend`] to a rank with a tag in a context. `describe` may say what the message is
    /// ([`Description::of_next_call`]); it is called only if that could be told.
    ///
    /// # Errors
    /// As [`Device::isend`].
    #[inline(always)]
    pub fn isend_described<D>(
        &self,
        data: impl Into<Source>,
        (dest, tag, context): (usize, i32, u32),
        mode: Mode,
        describe: impl FnOnce() -> D,
    ) -> Result<Request, Error> {
        let data = data.into();
        let len = data.len();
        let key = match data {
            Source::Span(span)
                if mode == Mode::Standard && self.try_send(span, dest, tag, context) =>
            {
                // A span owns nothing. Dropped, the source would go through memory, to be asked what it is.
                mem::forget(data);
                COMPLETE
            }
            data => {
                let _described = describe();
                self.start_send(data, dest, tag, context, mode).map_err(|error| *error)?
            }
        };
        Ok(Request::of_send(key, self.number(), dest as u32, tag, len))
    }

    /// Sends `data` to `dest` and waits until the send is complete (MPI_Send, MPI_Ssend).
    ///
    /// # Errors
    /// As [`Device::isend`] and [`Device::iwait`].
    #[inline(always)]
    pub fn send(
        &self,
        data: impl Into<Source>,
        dest: usize,
        tag: i32,
        context: u32,
        mode: Mode,
    ) -> Result<(), Error> {
        self.send_described(data, (dest, tag, context), mode, || ())
    }

    /// [`Device::send`], as [`Device::isend_described`] starts it.
    ///
    /// # Errors
    /// As [`Device::send`].
    #[inline(always)]
    pub fn send_described<D>(
        &self,
        data: impl Into<Source>,
        (dest, tag, context): (usize, i32, u32),
        mode: Mode,
        describe: impl FnOnce() -> D,
    ) -> Result<(), Error> {
        let data = data.into();
        match data {
            Source::Span(span)
                if mode == Mode::Standard && self.try_send(span, dest, tag, context) =>
            {
                mem::forget(data); // As above.
                Ok(())
            }
            data => {
                let _described = describe();
                self.send_otherwise(data, dest, tag, context, mode)
            }
        }
    }

    /// [`Device::send`] of a message that does not leave at once.
    #[cold]
    #[inline(never)]
    fn send_otherwise(
        &self,
        data: Source,
        dest: usize,
        tag: i32,
        context: u32,
        mode: Mode,
    ) -> Result<(), Error> {
        match self.start_send(data, dest, tag, context, mode).map_err(|error| *error)? {
            COMPLETE => Ok(()),
            key => self.wait_ended(self.session()?, key, Call::Send, None).map(drop),
        }
    }

    /// Sends one span in standard mode if it goes eagerly, in one frame that leaves at once, as most messages do.
    /// Returns whether it was sent; the send is complete then. Otherwise nothing has changed, and [`Device::isend`]
    /// finds another way, or the error. For callers that must prepare something before they start a send that is not
    /// complete at once.
    #[inline(never)]
    pub fn try_send(&self, data: SendRegion, dest: usize, tag: i32, context: u32) -> bool {
        let Ok(mut session) = self.context.session() else { return false };
        // There is no credit for a rank that does not exist, either.
        if tag < 0 || !session.state.credits.spend_short(dest, data.len()) {
            return false;
        }
        if !session.try_amsend(dest as u32, EAGER, envelope::eager(context, tag), data) {
            session.state.credits.unspend(dest, data.len());
            return false;
        }
        session.state.stats.eager.messages += 1;
        session.state.stats.eager.bytes += data.len() as u64;
        true
    }

    /// Starts any send, and returns its key or [`COMPLETE`].
    #[inline(never)]
    fn start_send(
        &self,
        data: Source,
        dest: usize,
        tag: i32,
        context: u32,
        mode: Mode,
    ) -> Result<u64, Box<Error>> {
        let (dest, tag) = (self.check_rank(dest)?, check_tag(tag)?);
        let synchronous = mode == Mode::Synchronous;
        let said = match self.is_described() {
            true => self.take_said((dest, tag, context), data.len()),
            false => None,
        };
        let mut session = self.session()?;
        session.state.losses.check_send(dest, context, tag)?;
        let protocol = self.choose(&mut session, dest, &data);
        if session.state.records.is_some() {
            recorded::goes_by(protocol, dest, tag);
        }
        let (len, is_told) = (data.len(), said.is_some());
        let message = Outbound { dest, context, tag, data, synchronous, is_told };
        let told = said.map_or(Ok(()), |said| tell(&mut session, dest, &said.told(len)));
        let started = told.and_then(|()| match protocol {
            Protocol::Eager => Eager::send(&mut session, message),
            Protocol::Rendezvous => Rendezvous::send(&mut session, message),
        });
        match started {
            Ok(key) if session.state.requests.take_done(key).is_some() => Ok(COMPLETE),
            Ok(key) => Ok(key),
            Err(error) => {
                drop(session);
                Err(Box::new(self.refused(error)))
            }
        }
    }

    /// Takes what was said of a message that is sent, and records it. Returns what the receiver is told.
    #[cold]
    #[inline(never)]
    fn take_said(
        &self,
        (dest, tag, context): (u32, i32, u32),
        bytes: usize,
    ) -> Option<Description> {
        let said = Description::take(context)?;
        recorded::sends(dest, tag, bytes);
        Some(said).filter(|_| self.is_checked())
    }

    /// Chooses the protocol of a message, and spends the credit for one that goes eagerly.
    fn choose(&self, session: &mut Session<State>, dest: u32, data: &Source) -> Protocol {
        let len = data.len();
        let facts = match len < self.table().facts_from() {
            true => Facts::default(),
            false => self.facts(session, dest, data),
        };
        let protocol = self.table().choose(len, facts, true);
        if protocol == Protocol::Rendezvous || eager::spend(session, dest, len) {
            return protocol;
        }
        session.state.stats.credit_fallbacks += 1;
        self.table().choose(len, facts, false)
    }

    fn facts(&self, session: &mut Session<State>, dest: u32, data: &Source) -> Facts {
        let Some(span) = data.span() else { return Facts::default() };
        // Without a get of its own the adapter builds it from active messages, which copies as often as eager does.
        // A rank that sends to itself has no second end that could share the work.
        let caps = session.caps(dest).filter(|_| dest != self.rank() && session.reads(dest));
        let Some(caps) = caps else { return Facts::default() };
        match Facts::of_target(&caps) {
            facts @ Facts { by_network: true, .. } => facts,
            facts => Facts {
                huge_pages: huge::holds(span.addr(), span.len()),
                own_processor: !self.shares_processors(),
                ..facts
            },
        }
    }

    /// Returns why the transport does not send a message: another rank is lost, or else the device fails.
    #[cold]
    pub(crate) fn refused(&self, error: LapiError) -> Error {
        let error = Error::from(error);
        let is_of_other = error.lost_rank().is_some_and(|rank| rank != self.rank());
        if is_of_other { error } else { self.fail(error) }
    }
}

/// Tells the receiver of the message that is sent next.
fn tell(session: &mut Session<State>, dest: u32, told: &Told) -> Result<(), LapiError> {
    session.amsend_bytes(dest, TOLD, &told.fingerprint.to_le_bytes(), &told.packed())
}
