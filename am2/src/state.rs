//! What the header handler needs of a task: the endpoints' sides that face the network. It is the client state of the
//! transport's context, so everything here is reached with the session's lock held.

use std::collections::VecDeque;

use transport_lapi::{Outbox, TaskId};

use crate::PACKETS;
use crate::error::{Error, Violation};
use crate::exchange::Exchange;
use crate::memory::{Place, Segment, Spares};
use crate::message::{Args, Reply};
use crate::name::{EndpointName, Tag};
use crate::packet::{Header, Kind, Ticket};
use crate::queue::{Entry, Queue};
use crate::stats::Stats;
use crate::status::{Opcode, Status};
use crate::table::Table;
use crate::{MAX_ENDPOINTS, NUM_HANDLERS};

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
    pub trouble: Option<(TaskId, Violation)>,
    pub spares: Spares,
    pub bundles: usize,
    pub exchange: Exchange,
}

/// The answer to a request whose handler has run.
pub(crate) struct Answer {
    pub header: Header,
    pub args: Args,
    pub payload: Vec<u8>,
}

impl State {
    pub fn new(task: TaskId, num_tasks: usize) -> Self {
        Self {
            task,
            ports: Vec::new(),
            outgoing: VecDeque::new(),
            trouble: None,
            spares: Spares::default(),
            bundles: 0,
            exchange: Exchange::new(num_tasks),
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
        for Entry { from, header, args, .. } in queue.drain() {
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
        self.trouble.get_or_insert((origin, violation));
    }

    /// Ends a message whose handler has run: gives credits and buffers back, and returns the answer to a request.
    pub fn settle(&mut self, entry: Entry, reply: Option<Reply>) -> Option<Answer> {
        let Entry { from, header, place, .. } = entry;
        if let Place::Buffer(buffer) = place {
            self.spares.put(buffer);
        }
        let is_request = header.is_request();
        let port = self.port(header.dest);
        if !is_request {
            if !matches!(header.kind, Kind::Returned { opcode, .. } if !opcode.is_request()) {
                port?.table.end(header.ticket);
            }
            return None;
        }
        let mut tag = Tag::NONE;
        // The port is gone if AM-2 was terminated meanwhile; the sender gets its answer all the same.
        if let Some(port) = port {
            if let Some(reply) = &reply {
                port.stats.sent(Opcode::reply(reply.shape), reply.payload.len());
            }
            tag = port.table.tag_for(from).unwrap_or(tag);
            if let Some(peer) = port.table.peer(from) {
                peer.waiting = peer.waiting.saturating_sub(1);
                peer.owed += u64::from(reply.is_some());
            }
        }
        let answer = Header {
            kind: Kind::Acknowledge,
            handler: 0,
            source: header.dest,
            dest: header.source,
            ticket: header.ticket,
            len: 0,
            tag,
            offset: 0,
        };
        Some(match reply {
            None => Answer { header: answer, args: Args::default(), payload: Vec::new() },
            Some(Reply { shape, handler, args, offset, payload }) => {
                let (kind, len) = (Kind::Message(Opcode::reply(shape)), payload.len() as u32);
                Answer { header: Header { kind, handler, len, offset, ..answer }, args, payload }
            }
        })
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
        let header = Header {
            kind: Kind::Returned { opcode, status: Status::Unreachable },
            handler,
            source: peer.number,
            dest: self.name.number,
            ticket,
            len: 0,
            tag: Tag::NONE,
            offset: 0,
        };
        self.stats.returned += 1;
        self.queue.push(peer, (header, Args::default()), Place::Nothing, true);
    }
}

/// Sends what the header handler has queued. The transport runs it in the dispatcher.
pub(crate) fn send_outgoing(state: &mut State, outbox: &mut Outbox<State>, _: u64) {
    while let Some((to, header, args)) = state.outgoing.pop_front() {
        // A packet to a lost task needs not arrive, and nothing else can be wrong with it.
        let _ = outbox.amsend(to, PACKETS, header.encode(&args).bytes(), Vec::new());
    }
}

/// The transport runs it in the dispatcher for each lost task.
pub(crate) fn on_loss(state: &mut State, _: &mut Outbox<State>, lost: TaskId) {
    state.lose(lost);
}
