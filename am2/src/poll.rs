//! Progress: polling, running handlers, and waiting for events.
//!
//! A message is handled in three steps. With the session's lock held, it is taken from the queue of its endpoint.
//! Without the lock its handler runs. With the lock again, its credits and buffers are given back, and its answer is
//! sent. So handlers of the program never run while the lock is held, and never inside a header handler: that would
//! save a queue entry for replies, but other threads of the task would wait for them.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use transport_lapi::adapter::Adapter;

use crate::POLL_LIMIT;
use crate::arrival::arrive_locally;
use crate::bundle::{Bundle, Endpoint, Local};
use crate::error::Error;
use crate::memory::Place;
use crate::message::{Message, Payload, Reply, Returned, Token};
use crate::packet::Kind;
use crate::queue::Entry;
use crate::state::State;
use crate::task::{Inside, is_loss, send};

/// The events that end a wait. AM-2's event that a message can be sent is not offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EventMask {
    /// AM_NOEVENTS: none.
    #[default]
    NoEvents,
    /// AM_NOTEMPTY: a message waits at an endpoint of the bundle.
    NotEmpty,
}

impl<A: Adapter> Bundle<A> {
    /// Handles messages that have arrived at the bundle's endpoints, at most [`POLL_LIMIT`] of them, and returns how
    /// many (AM_Poll). Never blocks.
    ///
    /// # Errors
    /// [`Error::Peer`] and [`Error::Transport`] for what went wrong since the last call: the packet concerned was
    /// dropped, and the next call continues behind it. [`Error::InHandler`] inside a handler of another bundle;
    /// [`Error::Terminated`].
    pub fn poll(&mut self) -> Result<usize, Error> {
        self.core.progress()?;
        let mut handled = 0;
        while handled < POLL_LIMIT {
            let Some((place, entry)) = self.next_ready()? else { break };
            self.handle(place, entry)?;
            handled += 1;
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
            let is_over = state.has_ready(&numbers) || state.trouble.is_some() || condition(state);
            (is_over || self.core.is_terminated()).then_some(())
        });
        waited.map_err(|cause| self.core.failed(cause))?;
        self.core.session().map(drop)
    }

    /// The numbers of the bundle's endpoints.
    pub(crate) fn numbers(&self) -> Vec<u16> {
        self.locals.iter().map(|local| local.name.number).collect()
    }

    /// Takes the first ready message of the next endpoint that has one.
    fn next_ready(&mut self) -> Result<Option<(usize, Entry)>, Error> {
        let mut session = self.core.session()?;
        for step in 0..self.locals.len() {
            let place = (self.turn + step) % self.locals.len();
            let port = session.state.port(self.locals[place].name.number);
            if let Some(entry) = port.and_then(|port| port.queue.take_ready()) {
                self.turn = place + 1;
                return Ok(Some((place, entry)));
            }
        }
        Ok(None)
    }

    /// Runs the handler of a message at the endpoint at `place`, and answers it. A panic of the handler goes on after
    /// that.
    pub(crate) fn handle(&mut self, place: usize, entry: Entry) -> Result<(), Error> {
        let endpoint = Endpoint { core: self.core.id, number: entry.header.dest };
        let mut reply = None;
        let run = || self.locals[place].run(endpoint, &entry, &mut reply);
        let outcome = catch_unwind(AssertUnwindSafe(run));
        let answered = self.answer(place, entry, reply);
        if let Err(panic) = outcome {
            resume_unwind(panic);
        }
        answered
    }

    /// Ends a message whose handler has run: answers a request.
    fn answer(&mut self, place: usize, entry: Entry, reply: Option<Reply>) -> Result<(), Error> {
        let (from, own) = (entry.from, self.locals[place].name);
        let mut session = self.core.session_even_then()?;
        let Some(answer) = session.state.settle(entry, reply) else { return Ok(()) };
        if from == own {
            let arrived =
                arrive_locally(&mut session.state, &answer.header, &answer.args, &answer.payload);
            drop(session);
            return arrived.map_or(Ok(()), |entry| self.handle(place, entry));
        }
        match send(&mut session, from.task, &answer.header, &answer.args, &answer.payload) {
            Err(cause) if !is_loss(&cause) => Err(Error::NotSent { name: from, cause }),
            _ => Ok(()),
        }
    }
}

impl Local {
    /// Runs the handler of a message.
    fn run(&mut self, endpoint: Endpoint, entry: &Entry, reply: &mut Option<Reply>) {
        let Entry { header, args, place, from, .. } = entry;
        let reply = header.is_request().then_some(reply);
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
