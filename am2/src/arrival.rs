//! The header handlers: judge each packet that arrives, and decide where its payload goes.
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

use transport_lapi::{
    Arrival, ForeignBytes, HeaderAction, InlineHandler, LapiError, Next, Outbox, TaskId,
};

use crate::error::Violation;
use crate::memory::{Place, Segment};
use crate::name::EndpointName;
use crate::packet::{Header, Kind, PacketError, Unpacked};
use crate::queue::Entry;
use crate::state::{Port, State, send_outgoing};
use crate::status::{Opcode, Shape, Status};
use crate::{MAX_LONG, MAX_MEDIUM, MAX_OUTSTANDING};

/// The payload of a packet that has arrived.
#[derive(Clone, Copy)]
struct Incoming<'a> {
    len: u64,
    /// All of it, if it is there.
    data: Option<ForeignBytes<'a>>,
}

/// The header handler of packets whose payload is apart.
pub(crate) fn arrive(state: &mut State, message: Arrival<'_>) -> HeaderAction<State> {
    let Arrival { origin, uhdr, len, data, .. } = message;
    let mut entry = state.spares.take_entry();
    let decoded = Unpacked::of(uhdr).decode(&mut entry.header, &mut entry.args);
    let has_args = decoded.map(|packet| packet == Some(uhdr.len()));
    if !matches!(has_args, Ok(true)) {
        entry.args.clear();
    }
    match state.sort_or_blame(origin, entry, has_args, Incoming { len, data }) {
        Sorted::Done => HeaderAction::Consumed,
        Sorted::Send => HeaderAction::Then(Next::Inline(send_outgoing, 0)),
        Sorted::Store { dest, id } => {
            let into = state.port(dest).and_then(|port| port.queue.place_of(id)).cloned();
            let into = into.expect("it was queued a moment ago").sink(len as usize);
            let next = Next::Outcome(finished, u64::from(dest) << 48 | id);
            HeaderAction::Deliver { into, next }
        }
    }
}

/// What is to be done with a packet that was judged.
enum Sorted {
    /// Nothing. What it has brought, or will bring, is discarded if it is not stored yet.
    Done,
    /// What was queued in [`State::outgoing`] is to be sent.
    Send,
    /// Its payload is to be stored in the place of this entry in the queue of this endpoint.
    Store { dest: u16, id: u64 },
}

/// The handler of packets with which the payload comes.
pub(crate) fn arrive_packed(
    state: &mut State,
    origin: TaskId,
    word: u64,
    data: ForeignBytes<'_>,
) -> Option<(InlineHandler<State>, u64)> {
    let mut entry = state.spares.take_entry();
    let unpacked = Unpacked::new(word, data);
    let decoded = unpacked.decode(&mut entry.header, &mut entry.args);
    let (has_args, packet) = match decoded {
        Ok(Some(packet)) => (Ok(true), packet),
        Ok(None) => (Ok(false), unpacked.len()),
        Err(error) => (Err(error), unpacked.len()),
    };
    let payload = Unpacked::payload(packet, data);
    let message = Incoming { len: payload.len() as u64, data: Some(payload) };
    match state.sort_or_blame(origin, entry, has_args, message) {
        Sorted::Send => Some((send_outgoing, 0)),
        Sorted::Done | Sorted::Store { .. } => None,
    }
}

/// Lets a packet of an endpoint to itself arrive. Returns what its endpoint has to handle then, if anything.
pub(crate) fn arrive_locally(
    state: &mut State,
    header: &Header,
    args: &[u32],
    payload: &[u8],
) -> Option<Box<Entry>> {
    let (queued, outgoing) = (state.port(header.dest)?.queue.len(), state.outgoing.len());
    let packet = header.encode(args);
    let message = Arrival {
        origin: state.task,
        uhdr: packet.bytes(),
        len: payload.len() as u64,
        data: Some(ForeignBytes::from_slice(payload)),
    };
    // What follows would send the packets that were queued; they are taken here instead.
    drop(arrive(state, message));
    if state.outgoing.len() > outgoing {
        let (_, header, args) = state.outgoing.pop_back()?;
        return arrive_locally(state, &header, args.words(), &[]);
    }
    let queue = &mut state.port(header.dest)?.queue;
    if queue.len() > queued { queue.take_last() } else { None }
}

impl State {
    /// Treats a packet that was decoded into `entry`; `has_args` tells how.
    fn sort_or_blame(
        &mut self,
        origin: TaskId,
        mut entry: Box<Entry>,
        has_args: Result<bool, PacketError>,
        message: Incoming<'_>,
    ) -> Sorted {
        entry.from = EndpointName { task: origin, number: entry.header.source };
        // A longer one is refused by its true length.
        entry.header.len = message.len as u32;
        let sorted = match has_args {
            Ok(has_args) => self.sort(entry, has_args, message),
            Err(error) => Err(error.into()),
        };
        sorted.unwrap_or_else(|violation| {
            self.blame(origin, violation);
            Sorted::Done
        })
    }

    /// Treats a packet according to its kind.
    fn sort(
        &mut self,
        entry: Box<Entry>,
        has_args: bool,
        message: Incoming<'_>,
    ) -> Result<Sorted, Violation> {
        let (header, from) = (&entry.header, entry.from);
        match header.kind {
            Kind::Message(opcode) if opcode.is_request() => {
                return Ok(self.request(entry, has_args, opcode, message));
            }
            Kind::Message(opcode) => return self.reply(entry, has_args, opcode, message),
            _ if message.len != 0 => return Err(Violation::Payload { len: message.len }),
            Kind::Acknowledge => {
                if let Some(port) = self.answered_port(header.dest)? {
                    if !port.table.answer(from, header.ticket, None) {
                        return Err(Violation::StrayAnswer { number: from.number });
                    }
                    port.table.end(header.ticket);
                }
                self.spares.put_entry(entry);
            }
            Kind::Returned { opcode, .. } => self.returned(entry, opcode)?,
            Kind::Exchange => {
                if !self.exchange.arrived(from.task, header.tag.0) {
                    return Err(Violation::EarlyExchange);
                }
            }
        }
        Ok(Sorted::Done)
    }

    /// The port that an answer is for. `None` if it was freed.
    fn answered_port(&mut self, number: u16) -> Result<Option<&mut Port>, Violation> {
        let port = self.ports.get_mut(usize::from(number));
        port.map(Option::as_mut).ok_or(Violation::NeverMade { number })
    }

    fn request(
        &mut self,
        entry: Box<Entry>,
        has_args: bool,
        opcode: Opcode,
        message: Incoming<'_>,
    ) -> Sorted {
        if !has_args {
            return self.refuse(&entry, opcode, Status::BadArgs);
        }
        let judged = match self.port(entry.header.dest) {
            None => Err(Status::Unreachable),
            Some(port) => port.judge(entry.from, &entry.header, opcode, message.len),
        };
        match judged {
            Err(status) => self.refuse(&entry, opcode, status),
            Ok(()) => self.accept(entry, opcode, message),
        }
    }

    fn reply(
        &mut self,
        entry: Box<Entry>,
        has_args: bool,
        opcode: Opcode,
        message: Incoming<'_>,
    ) -> Result<Sorted, Violation> {
        let (from, header) = (entry.from, &entry.header);
        let Some(port) = self.answered_port(header.dest)? else { return Ok(Sorted::Done) };
        if !port.table.answer(from, header.ticket, None) {
            return Err(Violation::StrayAnswer { number: from.number });
        }
        if !has_args {
            port.table.end(header.ticket);
            return Err(Violation::ReplyArgs);
        }
        if port.judge(from, header, opcode, message.len).is_err() {
            port.table.end(header.ticket);
            return Ok(self.refuse(&entry, opcode, Status::ReplyRejected));
        }
        Ok(self.accept(entry, opcode, message))
    }

    fn returned(&mut self, entry: Box<Entry>, opcode: Opcode) -> Result<(), Violation> {
        let (from, header) = (entry.from, &entry.header);
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
        port.queue.push(entry, true);
        Ok(())
    }

    /// Sends a message back to its sender.
    #[cold]
    fn refuse(&mut self, entry: &Entry, opcode: Opcode, status: Status) -> Sorted {
        let Entry { from, header, args, .. } = entry;
        if let Some(port) = self.port(header.dest) {
            port.stats.refused += 1;
        }
        self.give_back(*from, *header, *args, opcode, status);
        Sorted::Send
    }

    /// Queues a message that was judged, and determines where its payload goes.
    fn accept(&mut self, mut entry: Box<Entry>, opcode: Opcode, message: Incoming<'_>) -> Sorted {
        let Header { dest, offset, len, .. } = entry.header;
        let Self { ports, spares, .. } = self;
        let port = ports[usize::from(dest)].as_mut().expect("the message was judged there");
        port.stats.received(opcode, len as usize);
        match (opcode.shape(), &port.segment, message.data) {
            (Shape::Medium, _, Some(bytes)) => entry.keep(bytes),
            (Shape::Medium, _, None) => entry.place = Place::Buffer(spares.take(len as usize)),
            (Shape::Long, Some(segment), data) => {
                entry.place = Place::Segment(segment.clone(), offset as usize);
                data.iter().for_each(|bytes| entry.place.store(0, *bytes));
            }
            (Shape::Short | Shape::Long, _, _) => {}
        }
        if message.data.is_some() {
            port.queue.push(entry, true);
            return Sorted::Done;
        }
        Sorted::Store { dest, id: port.queue.push(entry, false) }
    }
}

impl Port {
    /// Checks a message in the order of AM-2. A request that passes waits from now on.
    fn judge(
        &mut self,
        from: EndpointName,
        header: &Header,
        opcode: Opcode,
        len: u64,
    ) -> Result<(), Status> {
        let peer = self.table.peer(from).ok_or(Status::BadEndpoint)?;
        if !self.tag.accepts(header.tag) {
            return Err(Status::BadTag);
        }
        if opcode.is_request() {
            if usize::from(header.ticket.instance) >= MAX_OUTSTANDING {
                return Err(Status::Unreachable);
            }
            if peer.waiting >= MAX_OUTSTANDING {
                return Err(Status::Congestion);
            }
        }
        if !self.registered[usize::from(header.handler)] {
            return Err(Status::BadHandler);
        }
        judge_payload(self.segment.as_ref(), header.offset, opcode.shape(), len)?;
        peer.waiting += usize::from(opcode.is_request());
        Ok(())
    }
}

fn judge_payload(
    segment: Option<&Segment>,
    offset: u64,
    shape: Shape,
    len: u64,
) -> Result<(), Status> {
    let fits = match shape {
        Shape::Short => len == 0,
        Shape::Medium => len <= MAX_MEDIUM as u64,
        Shape::Long => {
            let segment = segment.filter(|segment| segment.len() > 0);
            let room = segment.ok_or(Status::BadSegmentOffset)?.len() as u64;
            let end = offset.checked_add(len);
            len <= MAX_LONG as u64 && end.is_some_and(|end| end <= room)
        }
    };
    if fits { Ok(()) } else { Err(Status::BadLength) }
}

/// The completion of a message of several packets. `info` consists of the endpoint's number and the entry's.
fn finished(state: &mut State, _: &mut Outbox<State>, info: u64, outcome: Result<(), LapiError>) {
    state.finish((info >> 48) as u16, info & ((1 << 48) - 1), outcome.is_ok());
}

#[cfg(test)]
mod tests;
