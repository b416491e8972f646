//! What the header handler needs of a task: the endpoints' sides that face the network. It is the client state of the
//! transport's context, so everything here is reached with the session's lock held.

use std::collections::VecDeque;

use transport_lapi::{Outbox, TaskId, Tasks};

use crate::PACKETS;
use crate::error::{Error, Violation};
use crate::memory::{Segment, Spares};
use crate::message::{Reply, ReplyHead};
use crate::name::{EndpointName, Tag};
use crate::packet::{Args, Header, Kind, Ticket};
use crate::queue::{Entry, Queue};
use crate::stats::Stats;
use crate::status::{Opcode, Status};
use crate::table::Table;
use crate::{MAX_ENDPOINTS, NUM_HANDLERS};

mod exchange;

use exchange::Exchange;

/// The side of an endpoint that faces the network.
#[derive(Debug)]
pub(crate) struct Port {
    pub name: EndpointName,
    pub tag: Tag,
    /// Which handlers are set. Index 0 never is, since it gets returned messages only.
    pub registered: [bool; NUM_HANDLERS],
    pub segment: Option<Segment>,
    pub table: Table,
    pub queue: Queue,
    pub stats: Stats,
}

/// The state of a task.
#[derive(Debug)]
pub(crate) struct State {
    pub task: TaskId,
    /// The endpoints by number; `None` for those that were freed.
    pub ports: Vec<Option<Port>>,
    /// Packets that the header handler could not send itself.
    pub outgoing: VecDeque<(TaskId, Header, Args)>,
    /// The first violation that no call has reported yet.
    pub first_error: Option<(TaskId, Violation)>,
    pub spares: Spares,
    pub bundles: usize,
    pub exchange: Exchange,
}

/// Whether the handler of a request has replied.
#[derive(Debug)]
pub(crate) enum Replied {
    No,
    /// The reply was sent.
    Sent,
    /// The reply is to be sent.
    Kept(Box<Reply>),
}

impl State {
    pub fn new(task: TaskId, tasks: &Tasks) -> Self {
        Self {
            task,
            ports: Vec::new(),
            outgoing: VecDeque::new(),
            first_error: None,
            spares: Spares::default(),
            bundles: 0,
            exchange: Exchange::new(tasks),
        }
    }

    /// Makes the port of a new endpoint.
    pub fn add_port(&mut self) -> Result<EndpointName, Error> {
        let task = self.task;
        if self.ports.len() == MAX_ENDPOINTS {
            return Err(Error::TooManyEndpoints { task });
        }
        let name = EndpointName { task, number: self.ports.len() as u16 };
        self.ports.push(Some(Port {
            name,
            tag: Tag::NONE,
            registered: [false; NUM_HANDLERS],
            segment: None,
            table: Table::new(name),
            queue: Queue::default(),
            stats: Stats::default(),
        }));
        Ok(name)
    }

    pub fn port(&mut self, number: u16) -> Option<&mut Port> {
        self.ports.get_mut(usize::from(number))?.as_mut()
    }

    /// Frees an endpoint. The requests that wait there go back to their senders, which would wait for ever otherwise.
    pub fn free_port(&mut self, number: u16) {
        let Some(port) = self.ports.get_mut(usize::from(number)).and_then(Option::take) else {
            return;
        };
        let Port { mut queue, .. } = port;
        for entry in queue.drain() {
            let Entry { from, header, args, .. } = *entry;
            if let Kind::Message(opcode) = header.kind {
                if opcode.is_request() {
                    self.give_back(from, header, args, opcode, Status::Unreachable);
                }
            }
        }
    }

    /// Queues a message on its way back to its sender.
    pub fn give_back(
        &mut self,
        to: EndpointName,
        header: Header,
        args: Args,
        opcode: Opcode,
        status: Status,
    ) {
        let (kind, source, dest) = (Kind::Returned { opcode, status }, header.dest, header.source);
        self.outgoing.push_back((to.task, Header { kind, source, dest, ..header }, args));
    }

    /// Keeps a violation of a peer, if it is the first one.
    pub fn blame(&mut self, origin: TaskId, violation: Violation) {
        self.first_error.get_or_insert((origin, violation));
    }

    /// Ends a message whose handler has run: gives credits and buffers back. Returns the answer to a request that has
    /// none yet, with the reply whose contents go with it.
    pub fn settle(
        &mut self,
        entry: Box<Entry>,
        replied: Replied,
    ) -> Option<(Header, Option<Box<Reply>>)> {
        let (from, header) = (entry.from, entry.header);
        self.spares.put_entry(entry);
        match (header.kind, replied) {
            (Kind::Message(opcode), Replied::No) if opcode.is_request() => {
                Some((self.answer(from, &header, None), None))
            }
            (Kind::Message(opcode), Replied::Kept(reply)) if opcode.is_request() => {
                let head = Some((reply.head, reply.payload.len()));
                Some((self.answer(from, &header, head), Some(reply)))
            }
            (Kind::Message(opcode), Replied::Sent) if opcode.is_request() => None,
            (Kind::Returned { opcode, .. }, _) if !opcode.is_request() => None,
            _ => {
                self.port(header.dest)?.table.end(header.ticket);
                None
            }
        }
    }

    /// Notes that a request is answered, and returns the header of the answer: of an acknowledgement, or of the reply
    /// with a payload of this length.
    pub fn answer(
        &mut self,
        from: EndpointName,
        request: &Header,
        reply: Option<(ReplyHead, usize)>,
    ) -> Header {
        let mut answer = Header {
            kind: Kind::Acknowledge,
            handler: 0,
            source: request.dest,
            dest: request.source,
            ticket: request.ticket,
            len: 0,
            tag: Tag::NONE,
            offset: 0,
        };
        if let Some((ReplyHead { shape, handler, offset }, len)) = reply {
            let kind = Kind::Message(Opcode::reply(shape));
            answer = Header { kind, handler, len: len as u32, offset, ..answer };
        }
        // The port is gone if AM-2 was terminated meanwhile; the sender gets its answer all the same.
        if let Some(port) = self.port(request.dest) {
            if let Some((head, len)) = reply {
                port.stats.sent(Opcode::reply(head.shape), len);
            }
            if let Some((peer, tag)) = port.table.answered(from) {
                peer.waiting = peer.waiting.saturating_sub(1);
                peer.owed += u64::from(reply.is_some());
                answer.tag = tag;
            }
        }
        answer
    }

    /// Ends a message of several packets: it is complete, or never will be.
    pub fn finish(&mut self, number: u16, id: u64, is_complete: bool) {
        let Some(port) = self.port(number) else { return };
        if is_complete {
            port.queue.finish(id);
        } else if let Some(entry) = port.queue.remove(id) {
            port.give_up(&entry);
        }
    }

    /// Ends what was in progress with a lost task.
    pub fn lose(&mut self, lost: TaskId) {
        for port in self.ports.iter_mut().flatten() {
            for entry in port.queue.forget_unfinished(lost) {
                port.give_up(&entry);
            }
            for (peer, ticket, opcode, handler) in port.table.lose(lost) {
                port.find_unreachable(peer, ticket, opcode, handler);
            }
        }
    }

    /// Whether no message waits at one of these endpoints, ready or not.
    pub fn is_drained(&mut self, numbers: &[u16]) -> bool {
        numbers.iter().all(|&number| self.port(number).is_none_or(|port| port.queue.len() == 0))
    }

    /// Whether a message is ready at one of these endpoints.
    pub fn has_ready(&mut self, numbers: &[u16]) -> bool {
        numbers.iter().any(|&number| self.port(number).is_some_and(|port| port.queue.has_ready()))
    }
}

impl Port {
    /// Gives up an accepted message that will never be complete: its sender is lost.
    pub fn give_up(&mut self, entry: &Entry) {
        if entry.header.is_request() {
            if let Some(peer) = self.table.peer(entry.from) {
                peer.waiting = peer.waiting.saturating_sub(1);
            }
        } else if let Some((opcode, handler)) = self.table.named(entry.header.ticket) {
            self.find_unreachable(entry.from, entry.header.ticket, opcode, handler);
        }
    }

    /// Returns a request of this endpoint to it, since its receiver is lost.
    pub fn find_unreachable(
        &mut self,
        peer: EndpointName,
        ticket: Ticket,
        opcode: Opcode,
        handler: u8,
    ) {
        let kind = Kind::Returned { opcode, status: Status::Unreachable };
        let (source, dest) = (peer.number, self.name.number);
        let mut entry = Entry::new();
        entry.from = peer;
        entry.header = Header { kind, handler, source, dest, ticket, ..Header::EMPTY };
        self.stats.returned += 1;
        self.queue.push(entry, true);
    }
}

/// Sends what the header handler has queued. The transport runs it in the dispatcher.
pub(crate) fn send_outgoing(state: &mut State, outbox: &mut Outbox<State>, _: u64) {
    while let Some((to, header, args)) = state.outgoing.pop_front() {
        // A packet to a lost task needs not arrive, and nothing else can be wrong with it.
        let _ = outbox.amsend(to, PACKETS, header.encode(args.words()).bytes(), Vec::new());
    }
}

/// The transport runs it in the dispatcher for each lost task.
pub(crate) fn on_loss(state: &mut State, _: &mut Outbox<State>, lost: TaskId) {
    state.lose(lost);
}
