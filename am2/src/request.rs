//! Requests.
//!
//! A request first handles the messages that are here. Then it takes a credit of its translation; while there is none,
//! it polls and waits. When it was sent, packets that have arrived are taken, for the next call. Meanwhile handlers of
//! any message may run, but these only reply, and replies need no credit. So tasks that send requests to each other as
//! fast as they can cannot block each other: whoever waits for a credit answers the requests of the others, and whoever
//! owes an answer either waits in this way too or polls.

use std::sync::Arc;

use crate::arrival::arrive_locally;
use crate::bundle::Bundle;
use crate::error::Error;
use crate::message::{check_args, check_handler, check_len};
use crate::name::Endpoint;
use crate::packet::{Header, Kind};
use crate::queue::Entry;
use crate::state::State;
use crate::status::{Opcode, Shape};
use crate::task::{send, send_shared};
use crate::{MAX_LONG, MAX_MEDIUM};
use transport_lapi::SessionGuard;

/// A request to be sent.
struct Call<'a> {
    endpoint: Endpoint,
    index: usize,
    handler: u8,
    shape: Shape,
    offset: u64,
    args: &'a [u32],
    payload: Bytes<'a>,
    /// Whether the call may wait.
    waits: bool,
}

impl<'a> Call<'a> {
    /// A short request, which may wait.
    fn new(endpoint: Endpoint, index: usize, handler: u8, args: &'a [u32]) -> Self {
        let (shape, payload) = (Shape::Short, Bytes::Borrowed(&[]));
        Self { endpoint, index, handler, shape, offset: 0, args, payload, waits: true }
    }
}

/// The payload of a request.
enum Bytes<'a> {
    /// Borrowed for the call, so what has to wait is copied.
    Borrowed(&'a [u8]),
    /// Shared with the caller, so it is sent from where it lies.
    Shared(Arc<Vec<u8>>),
}

impl Bytes<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

/// The requests. Each names the index of a translation, and handler and arguments of the message. Each polls: it first
/// handles the messages that are here, and takes what arrives behind it. So it may run handlers, and it has the errors
/// of [`Bundle::poll`], after which nothing was sent. Payloads may be changed when
/// the call returns. A request to the endpoint itself runs its handler, and that of the reply, before it returns.
///
/// All of them fail with [`Error::UnknownEndpoint`], [`Error::HandlerZero`], [`Error::TooManyArgs`],
/// [`Error::NoResources`], [`Error::IndexRange`], [`Error::Unmapped`], and [`Error::NotSent`] if the receiver's task is
/// lost.
impl Bundle {
    /// Requests with a short message (AM_RequestM).
    ///
    /// # Errors
    /// Those of all requests.
    pub fn request_short(
        &mut self,
        endpoint: Endpoint,
        index: usize,
        handler: u8,
        args: &[u32],
    ) -> Result<(), Error> {
        self.request(Call::new(endpoint, index, handler, args))
    }

    /// Requests with a medium message, whose payload the handler gets in a buffer (AM_RequestIM).
    ///
    /// # Errors
    /// [`Error::PayloadLen`] for more than [`MAX_MEDIUM`] bytes; those of all requests.
    pub fn request_medium(
        &mut self,
        endpoint: Endpoint,
        index: usize,
        handler: u8,
        payload: &[u8],
        args: &[u32],
    ) -> Result<(), Error> {
        check_len(self.core.task(), payload.len(), MAX_MEDIUM)?;
        let (shape, payload) = (Shape::Medium, Bytes::Borrowed(payload));
        self.request(Call { shape, payload, ..Call::new(endpoint, index, handler, args) })
    }

    /// Requests with a long message, whose payload is stored in the receiver's segment from byte `offset` on before its
    /// handler runs (AM_RequestXferM).
    ///
    /// # Errors
    /// [`Error::PayloadLen`] for more than [`MAX_LONG`] bytes; those of all requests.
    pub fn request_long(
        &mut self,
        endpoint: Endpoint,
        index: usize,
        handler: u8,
        offset: usize,
        payload: &[u8],
        args: &[u32],
    ) -> Result<(), Error> {
        check_len(self.core.task(), payload.len(), MAX_LONG)?;
        let (shape, payload, offset) = (Shape::Long, Bytes::Borrowed(payload), offset as u64);
        let call = Call::new(endpoint, index, handler, args);
        self.request(Call { shape, offset, payload, ..call })
    }

    /// Requests with a long message as [`Bundle::request_long`] does, but neither waits nor copies
    /// (AM_RequestXferAsyncM). The payload was sent when the caller holds the only reference to it again.
    ///
    /// # Errors
    /// [`Error::WouldWait`] if the call would have to wait; those of [`Bundle::request_long`].
    pub fn request_long_async(
        &mut self,
        endpoint: Endpoint,
        index: usize,
        handler: u8,
        offset: usize,
        payload: &Arc<Vec<u8>>,
        args: &[u32],
    ) -> Result<(), Error> {
        check_len(self.core.task(), payload.len(), MAX_LONG)?;
        let (shape, offset, waits) = (Shape::Long, offset as u64, false);
        let payload = Bytes::Shared(Arc::clone(payload));
        let call = Call::new(endpoint, index, handler, args);
        self.request(Call { shape, offset, payload, waits, ..call })
    }

    fn request(&mut self, call: Call<'_>) -> Result<(), Error> {
        let place = self.place(call.endpoint)?;
        check_args(self.core.task(), call.args)?;
        check_handler(self.core.task(), call.handler)?;
        if let Some(sent) = self.send_first(&call)? {
            return sent.map_or(Ok(()), |entry| self.handle(place, entry));
        }
        loop {
            let handled = self.poll()?;
            let sent = self.attempt(&mut self.core.session()?, &call)?;
            if let Some(sent) = sent {
                return sent.map_or(Ok(()), |entry| self.handle(place, entry));
            }
            if !call.waits {
                return Err(self.would_wait(&call));
            }
            if handled == 0 {
                let (number, index) = (call.endpoint.number, call.index);
                self.wait_until(|state| {
                    state.port(number).is_some_and(|port| port.table.has_credit(index))
                })?;
            }
        }
    }

    /// The first attempt to send a request: before the poll, which the answer then need not wait for, unless a message
    /// or an error waits already. What arrives in this poll, and what goes wrong, is for the next call.
    fn send_first(&self, call: &Call<'_>) -> Result<Option<Option<Box<Entry>>>, Error> {
        let mut session = self.core.session()?;
        self.port(&mut session, call.endpoint)?.table.check_request(call.index)?;
        let comes_first = session.state.first_error.is_some()
            || self.has_ready(&mut session.state)
            || session.notice_losses().map_err(|cause| self.core.failed(cause))?;
        if comes_first {
            return Ok(None);
        }
        let sent = self.attempt(&mut session, call)?;
        if sent.is_some() {
            session.round();
        }
        Ok(sent)
    }

    /// Sends a request if there is a credit for it; otherwise returns `None`. If it came to its own endpoint, returns
    /// what that has to handle then.
    fn attempt(
        &self,
        session: &mut SessionGuard<'_, State>,
        call: &Call<'_>,
    ) -> Result<Option<Option<Box<Entry>>>, Error> {
        let opcode = Opcode::request(call.shape);
        let port = self.port(session, call.endpoint)?;
        let (name, tag) = port.table.check_request(call.index)?;
        let own = port.name;
        let Some(ticket) = port.table.begin(call.index, opcode, call.handler) else {
            return Ok(None);
        };
        let len = call.payload.bytes().len();
        let header = Header {
            kind: Kind::Message(opcode),
            handler: call.handler,
            source: own.number,
            dest: name.number,
            ticket,
            len: len as u32,
            tag,
            offset: call.offset,
        };
        port.stats.sent(opcode, len);
        if name == own {
            let bytes = call.payload.bytes();
            let arrived = arrive_locally(&mut session.state, &header, call.args, bytes);
            return Ok(Some(arrived));
        }
        let (to, args) = (name.task, call.args);
        let sent = match &call.payload {
            Bytes::Borrowed(bytes) => send(session, to, &header, args, bytes),
            Bytes::Shared(bytes) => send_shared(session, to, &header, args, bytes),
        };
        if let Err(cause) = sent {
            let port = self.port(session, call.endpoint)?;
            port.stats.not_sent(opcode, len);
            port.table.end(ticket);
            return Err(Error::NotSent { name, cause });
        }
        Ok(Some(None))
    }

    fn would_wait(&self, call: &Call<'_>) -> Error {
        match self.locals.iter().find(|local| local.name.number == call.endpoint.number) {
            Some(local) => Error::WouldWait { name: local.name, index: call.index },
            None => Error::UnknownEndpoint { task: self.core.task() },
        }
    }
}
