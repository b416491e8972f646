//! The header handler: judges each packet that arrives, and decides where its payload goes.
//!
//! Everything in a packet is a claim; only the task that it comes from is certain. A message is accepted when its first
//! packet arrives: what handlers, tags and segments are then, counts. The checks have a fixed order, and the first that
//! fails decides about the status. Nothing is stored of a message that is refused.
//!
//! - AM1: a request that is not accepted goes back to its sender, and so does one that was accepted at an endpoint that
//!   is freed. Every accepted request is answered after its handler has run. So every request ends at its sender.
//! - AM2: a header handler neither waits nor sends. What has to be sent goes through the outbox, which never blocks;
//!   answers need no credit. So a task accepts whatever arrives whenever it makes progress, in whatever state it is.
//! - AM3: the memory of accepted messages is bounded: a peer has at most [`MAX_OUTSTANDING`] requests here, each reply
//!   belongs to a request, and each returned reply to a reply.

use transport_lapi::{Arrival, HeaderAction, LapiError, Next, Outbox};

use crate::error::Violation;
use crate::memory::Place;
use crate::message::Args;
use crate::name::EndpointName;
use crate::packet::{self, Header, Kind};
use crate::queue::Entry;
use crate::state::{Port, State, send_outgoing};
use crate::status::{Opcode, Shape, Status};
use crate::{MAX_LONG, MAX_MEDIUM, MAX_OUTSTANDING};

/// The header handler of all packets.
pub(crate) fn arrive(state: &mut State, message: Arrival<'_>) -> HeaderAction<State> {
    let origin = message.origin;
    state.sort(&message).unwrap_or_else(|violation| {
        state.blame(origin, violation);
        HeaderAction::Drop
    })
}

/// Lets a packet of an endpoint to itself arrive. Returns what its endpoint has to handle then, if anything.
pub(crate) fn arrive_locally(
    state: &mut State,
    header: &Header,
    args: &Args,
    payload: &[u8],
) -> Option<Entry> {
    let (queued, outgoing) = (state.port(header.dest)?.queue.len(), state.outgoing.len());
    let packet = header.encode(args);
    let message = Arrival {
        origin: state.task,
        uhdr: packet.bytes(),
        len: payload.len() as u64,
        data: Some(transport_lapi::ForeignBytes::from_slice(payload)),
        was_awaited: false,
    };
    // What follows would send the packets that were queued; they are taken here instead.
    drop(arrive(state, message));
    if state.outgoing.len() > outgoing {
        let (_, header, args) = state.outgoing.pop_back()?;
        return arrive_locally(state, &header, &args, &[]);
    }
    let queue = &mut state.port(header.dest)?.queue;
    if queue.len() > queued { queue.take_last() } else { None }
}

impl State {
    /// Treats a packet according to its kind.
    fn sort(&mut self, message: &Arrival<'_>) -> Result<HeaderAction<Self>, Violation> {
        let (header, args) = packet::decode(message.uhdr)?;
        let from = EndpointName { task: message.origin, number: header.source };
        match header.kind {
            Kind::Message(opcode) if opcode.is_request() => {
                return Ok(self.request(from, header, args, opcode, message));
            }
            Kind::Message(opcode) => return self.reply(from, header, args, opcode, message),
            _ if message.len != 0 => return Err(Violation::Payload { len: message.len }),
            Kind::Acknowledge => {
                if let Some(port) = self.answered_port(header.dest)? {
                    if !port.table.answer(from, header.ticket, None) {
                        return Err(Violation::StrayAnswer { number: from.number });
                    }
                    port.table.end(header.ticket);
                }
            }
            Kind::Returned { opcode, .. } => {
                self.returned(from, header, args.unwrap_or_default(), opcode)?;
            }
            Kind::Exchange => {
                if !self.exchange.arrived(message.origin, header.tag.0) {
                    return Err(Violation::EarlyExchange);
                }
            }
        }
        Ok(HeaderAction::Consumed)
    }

    /// The port that an answer is for. `None` if it was freed.
    fn answered_port(&mut self, number: u16) -> Result<Option<&mut Port>, Violation> {
        let port = self.ports.get_mut(usize::from(number));
        port.map(Option::as_mut).ok_or(Violation::NeverMade { number })
    }

    fn request(
        &mut self,
        from: EndpointName,
        header: Header,
        args: Option<Args>,
        opcode: Opcode,
        message: &Arrival<'_>,
    ) -> HeaderAction<Self> {
        let Some(args) = args else {
            return self.refuse(from, header, Args::default(), opcode, Status::BadArgs);
        };
        let judged = match self.port(header.dest) {
            None => Err(Status::Unreachable),
            Some(port) => port.judge(from, &header, opcode, message.len),
        };
        match judged {
            Err(status) => self.refuse(from, header, args, opcode, status),
            Ok(()) => {
                if let Some(peer) = self.port(header.dest).and_then(|port| port.table.peer(from)) {
                    peer.waiting += 1;
                }
                self.accept(from, header, args, opcode, message)
            }
        }
    }

    fn reply(
        &mut self,
        from: EndpointName,
        header: Header,
        args: Option<Args>,
        opcode: Opcode,
        message: &Arrival<'_>,
    ) -> Result<HeaderAction<Self>, Violation> {
        let Some(port) = self.answered_port(header.dest)? else { return Ok(HeaderAction::Drop) };
        if !port.table.answer(from, header.ticket, None) {
            return Err(Violation::StrayAnswer { number: from.number });
        }
        let Some(args) = args else {
            port.table.end(header.ticket);
            return Err(Violation::ReplyArgs);
        };
        if port.judge(from, &header, opcode, message.len).is_err() {
            port.table.end(header.ticket);
            return Ok(self.refuse(from, header, args, opcode, Status::ReplyRejected));
        }
        Ok(self.accept(from, header, args, opcode, message))
    }

    fn returned(
        &mut self,
        from: EndpointName,
        header: Header,
        args: Args,
        opcode: Opcode,
    ) -> Result<(), Violation> {
        let Some(port) = self.answered_port(header.dest)? else { return Ok(()) };
        if opcode.is_request() {
            if !port.table.answer(from, header.ticket, Some(opcode)) {
                return Err(Violation::StrayAnswer { number: from.number });
            }
        } else {
            let peer = port.table.peer(from).filter(|peer| peer.owed > 0);
            peer.ok_or(Violation::StrayReturn { number: from.number })?.owed -= 1;
        }
        port.stats.returned += 1;
        port.queue.push(from, (header, args), Place::Nothing, true);
        Ok(())
    }

    /// Sends a message back to its sender.
    fn refuse(
        &mut self,
        from: EndpointName,
        header: Header,
        args: Args,
        opcode: Opcode,
        status: Status,
    ) -> HeaderAction<Self> {
        if let Some(port) = self.port(header.dest) {
            port.stats.refused += 1;
        }
        self.give_back(from, header, args, opcode, status);
        HeaderAction::Then(Next::Inline(send_outgoing, 0))
    }

    /// Queues a message that was judged, and determines where its payload goes.
    fn accept(
        &mut self,
        from: EndpointName,
        header: Header,
        args: Args,
        opcode: Opcode,
        message: &Arrival<'_>,
    ) -> HeaderAction<Self> {
        let len = header.len as usize;
        let Self { ports, spares, .. } = self;
        let port = ports[usize::from(header.dest)].as_mut().expect("the message was judged there");
        port.stats.received(opcode, len);
        let place = match (opcode.shape(), &port.segment) {
            (Shape::Medium, _) => Place::Buffer(spares.take(len)),
            (Shape::Long, Some(segment)) => Place::Segment(segment.clone(), header.offset as usize),
            (Shape::Short | Shape::Long, _) => Place::Nothing,
        };
        if let Some(bytes) = message.data {
            place.store(0, bytes);
            port.queue.push(from, (header, args), place, true);
            return HeaderAction::Consumed;
        }
        let into = place.sink(len);
        let id = port.queue.push(from, (header, args), place, false);
        let next = Next::Outcome(finished, u64::from(header.dest) << 48 | id);
        HeaderAction::Deliver { into, next }
    }
}

impl Port {
    /// Checks a message in the order of AM-2.
    fn judge(
        &mut self,
        from: EndpointName,
        header: &Header,
        opcode: Opcode,
        len: u64,
    ) -> Result<(), Status> {
        let waiting = self.table.peer(from).ok_or(Status::BadEndpoint)?.waiting;
        if !self.tag.accepts(header.tag) {
            return Err(Status::BadTag);
        }
        if opcode.is_request() {
            if usize::from(header.ticket.instance) >= MAX_OUTSTANDING {
                return Err(Status::Unreachable);
            }
            if waiting >= MAX_OUTSTANDING {
                return Err(Status::Congestion);
            }
        }
        if !self.registered[usize::from(header.handler)] {
            return Err(Status::BadHandler);
        }
        self.judge_payload(header, opcode.shape(), len)
    }

    fn judge_payload(&self, header: &Header, shape: Shape, len: u64) -> Result<(), Status> {
        let is_as_announced = u64::from(header.len) == len;
        let fits = match shape {
            Shape::Short => len == 0 && header.offset == 0,
            Shape::Medium => len <= MAX_MEDIUM as u64 && header.offset == 0,
            Shape::Long => {
                let segment = self.segment.as_ref().filter(|segment| segment.len() > 0);
                let room = segment.ok_or(Status::BadSegmentOffset)?.len() as u64;
                let end = header.offset.checked_add(len);
                len <= MAX_LONG as u64 && end.is_some_and(|end| end <= room)
            }
        };
        if is_as_announced && fits { Ok(()) } else { Err(Status::BadLength) }
    }
}

/// The completion of a message of several packets. `info` consists of the endpoint's number and the entry's.
fn finished(state: &mut State, _: &mut Outbox<State>, info: u64, outcome: Result<(), LapiError>) {
    state.finish((info >> 48) as u16, info & ((1 << 48) - 1), outcome.is_ok());
}

#[cfg(test)]
mod tests;
