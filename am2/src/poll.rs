//! Progress: polling, running handlers, and waiting for events.
//!
//! A message is handled in three steps. With the session's lock held, it is taken from the queue of its endpoint.
//! Without the lock its handler runs. With the lock again, its credits and buffers are given back, and it is answered
//! if its handler has not replied. So handlers of the program never run while the lock is held, and never inside a
//! header handler: that would save a queue entry for replies, but other threads of the task would wait for them.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::POLL_LIMIT;
use crate::arrival::arrive_locally;
use crate::bundle::{Bundle, EventMask, Local};
use crate::error::Error;
use crate::memory::Place;
use crate::message::{Message, Payload, Replier, Reply, ReplyHead, Returned, Token};
use crate::name::{Endpoint, EndpointName};
use crate::packet::{Args, Header, Kind};
use crate::queue::Entry;
use crate::state::{Port, Replied, State};
use crate::task::{Core, Inside, is_loss, send};
use transport_lapi::SessionGuard;

impl Bundle {
    /// Handles messages that have arrived at the bundle's endpoints, at most [`POLL_LIMIT`] of them, and returns how
    /// many (AM_Poll). Never blocks.
    ///
    /// # Errors
    /// [`Error::Peer`] and [`Error::Transport`] for what went wrong since the last call: the packet concerned was
    /// dropped, and the next call continues behind it. [`Error::InHandler`] inside a handler of another bundle;
    /// [`Error::Terminated`].
    pub fn poll(&mut self) -> Result<usize, Error> {
        let mut session = self.core.session()?;
        self.core.advance(&mut session)?;
        let mut handled = 0;
        while handled < POLL_LIMIT {
            let Some((place, entry)) = next_ready(&self.locals, &mut self.turn, &mut session.state)
            else {
                break;
            };
            drop(session);
            let ran = self.run(place, entry);
            handled += 1;
            session = self.core.session_even_then()?;
            if let Some(entry) = end(&self.locals[place], &mut session, ran)? {
                drop(session);
                self.handle(place, entry)?;
                session = self.core.session_even_then()?;
            }
            self.core.check_open()?;
        }
        Ok(handled)
    }

    /// Sets the events that end a wait (AM_SetEventMask).
    pub fn set_event_mask(&mut self, mask: EventMask) {
        self.mask = mask;
    }

    /// Returns the events that end a wait (AM_GetEventMask).
    pub fn event_mask(&self) -> EventMask {
        self.mask
    }

    /// Waits until an event of the mask has happened (AM_WaitSema); then [`Bundle::poll`] handles the message. It
    /// receives messages of all endpoints of the task while it waits, but runs no handlers.
    ///
    /// # Errors
    /// [`Error::NoEvent`] instead of a wait that nothing would end; [`Error::Transport`], for example if a task of the
    /// job was lost; those of [`Bundle::poll`].
    pub fn wait_sema(&mut self) -> Result<(), Error> {
        match self.mask {
            EventMask::NoEvents => Err(Error::NoEvent { task: self.core.task() }),
            EventMask::NotEmpty => self.wait_until(|_| false),
        }
    }

    /// Waits until a message is ready, a peer has broken the protocol, or `condition` holds.
    pub(crate) fn wait_until(
        &self,
        mut condition: impl FnMut(&mut State) -> bool,
    ) -> Result<(), Error> {
        drop(self.core.session()?);
        let numbers = self.numbers();
        let waited = self.core.context.wait(|session| {
            let state = &mut session.state;
            let is_over =
                state.has_ready(&numbers) || state.first_error.is_some() || condition(state);
            (is_over || self.core.is_terminated()).then_some(())
        });
        waited.map_err(|cause| self.core.failed(cause))?;
        self.core.session().map(drop)
    }

    /// The numbers of the bundle's endpoints.
    pub(crate) fn numbers(&self) -> Vec<u16> {
        self.locals.iter().map(|local| local.name.number).collect()
    }

    /// Whether a message is ready at an endpoint of the bundle.
    #[inline]
    pub(crate) fn has_ready(&self, state: &mut State) -> bool {
        let is_ready = |port: &mut Port| port.queue.has_ready();
        self.locals.iter().any(|local| state.port(local.name.number).is_some_and(is_ready))
    }

    /// Runs the handler of a message at the endpoint at `place`, and answers it. A panic of the handler goes on after
    /// that.
    pub(crate) fn handle(&mut self, place: usize, entry: Box<Entry>) -> Result<(), Error> {
        let ran = self.run(place, entry);
        let mut session = self.core.session_even_then()?;
        let next = end(&self.locals[place], &mut session, ran)?;
        drop(session);
        next.map_or(Ok(()), |entry| self.handle(place, entry))
    }

    /// Runs the handler of a message at the endpoint at `place`.
    #[inline]
    fn run(&mut self, place: usize, entry: Box<Entry>) -> Ran {
        let endpoint = Endpoint { core: self.core.id, number: entry.header.dest };
        let (from, own) = (entry.from, self.locals[place].name);
        // The handler of a long message holds the lock of the segment, which the holder of the session may wait for.
        let at_once = from != own && !matches!(entry.place, Place::Segment(..));
        let (core, header) = (&*self.core, &entry.header);
        let (replied, failure) = (Replied::No, None);
        let mut replies = Replies { core, from, header, at_once, replied, failure };
        let run = || self.locals[place].run(endpoint, &entry, &mut replies);
        let panic = catch_unwind(AssertUnwindSafe(run)).err();
        let Replies { replied, failure, .. } = replies;
        Ran { entry, replied, failure, panic }
    }
}

/// A message whose handler has run.
struct Ran {
    entry: Box<Entry>,
    replied: Replied,
    /// Why its reply could not be sent.
    failure: Option<Box<Error>>,
    /// The panic of the handler.
    panic: Option<Box<dyn Any + Send>>,
}

/// Ends a message whose handler has run: answers a request that has no reply yet. Returns what a reply of the endpoint
/// to itself has brought.
#[inline]
fn end(
    local: &Local,
    session: &mut SessionGuard<'_, State>,
    ran: Ran,
) -> Result<Option<Box<Entry>>, Error> {
    let Ran { entry, replied, failure, panic } = ran;
    let from = entry.from;
    let ended = match session.state.settle(entry, replied) {
        None => Ok(None),
        Some((header, reply)) => {
            let (args, payload) = match &reply {
                Some(reply) => (reply.args.words(), &*reply.payload),
                None => (&[][..], &[][..]),
            };
            match from == local.name {
                true => Ok(arrive_locally(&mut session.state, &header, args, payload)),
                false => answer(session, from, &header, payload, args).map(|()| None),
            }
        }
    };
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
    failure.map_or(ended, |failure| Err(*failure))
}

/// Takes the first ready message of the next endpoint that has one; `turn` is the endpoint that is looked at first.
#[inline]
fn next_ready(
    locals: &[Local],
    turn: &mut usize,
    state: &mut State,
) -> Option<(usize, Box<Entry>)> {
    let mut place = *turn;
    for _ in 0..locals.len() {
        if place >= locals.len() {
            place = 0;
        }
        let port = state.port(locals[place].name.number);
        if let Some(entry) = port.and_then(|port| port.queue.take_ready()) {
            *turn = place + 1;
            return Some((place, entry));
        }
        place += 1;
    }
    None
}

/// Sends the answer to a request. Whoever is lost needs none.
fn answer(
    session: &mut SessionGuard<'_, State>,
    to: EndpointName,
    header: &Header,
    payload: &[u8],
    args: &[u32],
) -> Result<(), Error> {
    match send(session, to.task, header, args, payload) {
        Err(cause) if !is_loss(&cause) => Err(Error::NotSent { name: to, cause }),
        _ => Ok(()),
    }
}

/// The reply of a handler that runs.
struct Replies<'a> {
    core: &'a Core,
    /// The request: where it comes from, and its header.
    from: EndpointName,
    header: &'a Header,
    /// Whether a reply is sent at once. Otherwise it is kept.
    at_once: bool,
    replied: Replied,
    /// Why the reply could not be sent.
    failure: Option<Box<Error>>,
}

impl Replier for Replies<'_> {
    fn has_replied(&self) -> bool {
        !matches!(self.replied, Replied::No)
    }

    fn reply(&mut self, head: ReplyHead, payload: &[u8], args: &[u32]) {
        if !self.at_once {
            let args = Args::new(args).expect("their number was checked");
            self.replied = Replied::Kept(Box::new(Reply { head, args, payload: payload.to_vec() }));
            return;
        }
        self.replied = Replied::Sent;
        let sent = self.core.session_even_then().and_then(|mut session| {
            let head = Some((head, payload.len()));
            let header = session.state.answer(self.from, self.header, head);
            answer(&mut session, self.from, &header, payload, args)
        });
        self.failure = sent.err().map(Box::new);
    }
}

impl Local {
    /// Runs the handler of a message.
    fn run(&mut self, endpoint: Endpoint, entry: &Entry, replies: &mut dyn Replier) {
        let Entry { header, args, place, from, words, .. } = entry;
        let reply = header.is_request().then_some(replies);
        let mut token =
            Token { task: self.name.task, source: *from, dest: endpoint, tag: header.tag, reply };
        let _inside = Inside::enter();
        if let Kind::Returned { opcode, status } = header.kind {
            let message = Returned { status, opcode, handler: header.handler };
            return match &mut self.on_return {
                Some(handler) => handler(&mut token, message),
                None => fail_for(self.name, &token, message),
            };
        }
        let handler = self.handlers[usize::from(header.handler)].as_mut();
        let handler = handler.expect("only messages for handlers that are set are accepted");
        let (args, len) = (args.words(), header.len as usize);
        match place {
            Place::Entry => {
                let bytes = &bytemuck::cast_slice(words)[..len];
                handler(&mut token, Message { args, payload: Payload::Medium(bytes) });
            }
            Place::Buffer(buffer) => buffer.read(len, |bytes| {
                handler(&mut token, Message { args, payload: Payload::Medium(bytes) });
            }),
            Place::Segment(segment, offset) => segment.with(|bytes| {
                let bytes = &mut bytes[*offset..*offset + len];
                let payload = Payload::Long { offset: *offset, bytes };
                handler(&mut token, Message { args, payload });
            }),
            Place::Nothing => {
                handler(&mut token, Message { args, payload: Payload::Short });
            }
        }
    }
}

/// The default handler 0: panics.
fn fail_for(own: crate::EndpointName, token: &Token<'_>, message: Returned) {
    let Returned { status, opcode, handler } = message;
    panic!(
        "{} returned the {} of {own} for handler {handler} with {}: {}",
        token.source(),
        opcode.name(),
        status.name(),
        status.advice(),
    );
}
