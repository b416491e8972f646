//! LAPI_Amsend: checks, frames, and the pieces of long messages.
//!
//! A message is offered to the adapter frame by frame ([`Session::start`]). If a frame is not taken, the message becomes
//! an [`Outgoing`] in the send queue of its target. A send queue is a FIFO, frames are offered only from its front, and
//! no message is offered while others wait there, so header handlers run in the order of sending.
//!
//! Data in the origin's shared area can stay in place: one frame says where it is, and the target copies it from there
//! and answers that it has.

use crate::adapter::{AdapterError, Pieces, Post, SHORT_HEAD, TaskId, Ticket};
use crate::adapters::AnyAdapter;
use crate::error::{LapiError, Violation};
use crate::memory::body::{Piece, Source};
use crate::progress::counter::CounterId;
use crate::progress::handler::Next;
use crate::progress::outbox::{Outbox, SendQueue};
use crate::progress::round::keep_first;
use crate::progress::session::Session;
use crate::progress::slots::Slots;
use crate::wire::{BASE, MAX_UHDR, Packet, RemoteCounters};

/// The parameters of LAPI_Amsend.
pub struct Amsend<'a, S> {
    /// The task that receives the message; may be the caller.
    pub target: TaskId,
    /// Index of the header handler in the target's table.
    pub handler: u8,
    /// User header, which is copied: a multiple of 8 bytes, at most [`crate::Query::MaxUhdrSz`].
    pub uhdr: &'a [u8],
    /// The data; not copied, see [`Sent`].
    pub udata: Source,
    /// The action when the origin's buffer is reusable: LAPI's `org_cntr` or send completion handler.
    pub on_origin: Next<S>,
    /// Counter *of the target* that is incremented when the message is complete there.
    pub tgt_cntr: Option<CounterId>,
    /// Counter of the origin that is incremented when the message is complete at the target.
    pub cmpl_cntr: Option<CounterId>,
    /// Whether data stays where it is until the target has copied it. This holds for one span of at least
    /// [`IN_PLACE_FROM`] bytes in this task's shared area ([`crate::SharedMemory`]) and for another task; it is ignored
    /// otherwise. The target's handler gets all of the data at once, however long it is.
    ///
    /// That saves a copy, but the buffer is reusable only when the target has made progress, and the lines of the
    /// buffer change processors: data that is rewritten after each message moves faster through the ring. So it is for
    /// data that several messages send unchanged, and for messages of megabytes. If the target is purged, the buffer is
    /// reusable at once; a target that still takes the message then gets what lies there. TIMEOUT does not watch such
    /// messages.
    pub in_place: bool,
}

/// Length from which on data in a shared area can stay in place.
pub const IN_PLACE_FROM: usize = 4 << 10;

impl<'a, S> Amsend<'a, S> {
    /// Makes the parameters of a message without counters.
    #[inline]
    pub fn new(target: TaskId, handler: u8, uhdr: &'a [u8], udata: impl Into<Source>) -> Self {
        let (udata, on_origin, in_place) = (udata.into(), Next::Nothing, false);
        Self { target, handler, uhdr, udata, on_origin, tgt_cntr: None, cmpl_cntr: None, in_place }
    }

    pub(crate) fn counters(&self) -> RemoteCounters {
        RemoteCounters {
            target: CounterId::on_wire(self.tgt_cntr),
            completion: CounterId::on_wire(self.cmpl_cntr),
        }
    }

    /// LAPI's parameter checks, except that of the handler, which callers of the transport's own messages do not need.
    #[inline]
    pub(crate) fn check(&self, num_tasks: usize) -> Result<(), LapiError> {
        if self.udata.len() > isize::MAX as usize {
            let (len, limit) = (self.udata.len() as u64, isize::MAX as u64);
            return Err(LapiError::DataLen { offset: 0, len, limit });
        }
        if self.udata.is_null() {
            return Err(LapiError::OrgAddrNull { len: self.udata.len() });
        }
        check_target(self.target, num_tasks)?;
        check_uhdr(self.uhdr)
    }
}

/// LAPI's HDR_HNDLR_NULL at the origin: index 0 is no handler.
#[inline]
pub(crate) fn check_handler(index: u8) -> Result<(), LapiError> {
    if index == 0 { Err(LapiError::AddrHndlRange { index: 0 }) } else { Ok(()) }
}

/// LAPI's UHDR_LEN condition.
#[inline]
pub(crate) fn check_uhdr(uhdr: &[u8]) -> Result<(), LapiError> {
    if uhdr.len() > MAX_UHDR || uhdr.len() % 8 != 0 {
        return Err(LapiError::UhdrLen { len: uhdr.len(), max: MAX_UHDR });
    }
    Ok(())
}

/// LAPI's TGT condition.
#[inline]
pub(crate) fn check_target(target: TaskId, num_tasks: usize) -> Result<(), LapiError> {
    if target as usize >= num_tasks {
        return Err(LapiError::Tgt { target, num_tasks });
    }
    Ok(())
}

/// Whether the origin's buffer is reusable when the call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Sent {
    /// It is reusable; the action `on_origin` has been performed or is performed now.
    Now,
    /// It is not, or became so during the call: the action `on_origin` reports it.
    Later,
}

/// One operation queued in a send queue. It is small, since it is moved into and out of the send queue, and the answers
/// of the rendezvous protocol go this way.
pub(crate) enum Outgoing {
    /// A message, perhaps partly sent: its number in [`Outbox::messages`].
    Message(u32),
    /// A message without data and without an action at its end, as its head.
    Short([u8; SHORT_HEAD]),
    /// A packet without user header and body.
    Control(Packet<'static>),
    /// An operation for the adapter: its number in [`Outbox::accesses`].
    Access(u32),
    /// The answer to a get over messages: bytes of the registered source with this key, or `blocks` of its memory.
    GetReply {
        ticket: u32,
        key: u64,
        offset: u64,
        len: u64,
        sent: u64,
        blocks: Option<Box<Source>>,
    },
}

/// A message that is being sent: one that has to wait is in [`Outbox::messages`].
pub(crate) struct Message<S> {
    pub handler: u8,
    pub counters: RemoteCounters,
    pub uhdr: [u8; MAX_UHDR],
    pub uhdr_len: usize,
    pub data: Source,
    /// Length of the data, so that a layout's size is computed once.
    pub len: usize,
    pub sent: usize,
    /// Number of the message within its send queue; assigned when the first packet is sent.
    pub msg: u32,
    /// Where the data lies in this task's shared area, if the target copies it from there.
    pub place: Option<u64>,
    /// The counter of frames whose bodies are still read, once there has been such a frame.
    pub in_flight: Option<u32>,
    pub next: Next<S>,
}

impl<S> Message<S> {
    /// Makes a message of which nothing has been sent. The caller has checked the user header.
    pub fn new(handler: u8, uhdr: &[u8], data: Source) -> Self {
        let mut copy = [0; MAX_UHDR];
        copy[..uhdr.len()].copy_from_slice(uhdr);
        Self {
            handler,
            counters: RemoteCounters::default(),
            uhdr: copy,
            uhdr_len: uhdr.len(),
            len: data.len(),
            data,
            sent: 0,
            msg: 0,
            place: None,
            in_flight: None,
            next: Next::Nothing,
        }
    }

    /// Whether a frame of it was sent.
    fn has_begun(&self) -> bool {
        self.sent > 0 || self.in_flight.is_some()
    }
}

/// Counts the frames, of one message or one answer, whose bodies the adapter or the target still reads.
pub(crate) struct InFlight<S> {
    pub frames: u32,
    /// The message or answer that they belong to.
    of: InFlightOf<S>,
    /// The task that copies the body by itself, and says when it has.
    copied_by: Option<TaskId>,
}

/// What an [`InFlight`] belongs to.
enum InFlightOf<S> {
    /// A message with more frames to come.
    Open,
    /// A message whose frames are all on their way. This is performed when they have left.
    Closed(Next<S>),
    /// The registered source with this key.
    Region(u64),
}

/// A length up to which (inclusive) messages are sent in one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The length, in bytes.
    pub bytes: usize,
    /// How longer messages are sent.
    pub above: &'static str,
}

impl<S> Session<S> {
    /// Returns the length of the longest `udata` that travels to `target` in one packet, in bytes; 0 if there is no such
    /// task.
    #[inline]
    pub fn longest_packet(&self, target: TaskId) -> usize {
        self.engine.outbox.send_queues.get(target as usize).map_or(0, |queue| queue.pieces.whole())
    }

    /// Returns the lengths of `udata`, ascending, above which an amsend to `target` with a user header of `uhdr` bytes
    /// is sent in another way. There is none for a task that does not exist.
    pub fn steps(&self, target: TaskId, uhdr: usize) -> Vec<Step> {
        let Some(&SendQueue { pieces, .. }) = self.engine.outbox.send_queues.get(target as usize)
        else {
            return Vec::new();
        };
        let slot = self.adapter.caps(target).max_inline.saturating_sub(BASE + uhdr);
        let mut steps = vec![
            Step { bytes: slot, above: "beside the slot of the ring" },
            Step { bytes: pieces.whole(), above: "in pieces" },
        ];
        let bounds = Pieces::BOUNDS.into_iter();
        let larger = bounds.filter(|&len| pieces.size(len + 1) > pieces.size(len));
        steps.extend(larger.map(|bytes| Step { bytes, above: "in larger pieces" }));
        steps
    }
}

impl<S> Session<S> {
    /// [`Session::amsend`] for any handler, also the transport's own.
    pub(crate) fn send(&mut self, call: Amsend<'_, S>) -> Result<Sent, LapiError> {
        call.on_origin.check(&mut self.engine.outbox.counters)?;
        call.check(self.engine.outbox.send_queues.num_tasks())?;
        let (target, counters, place) = (call.target, call.counters(), self.place_in_area(&call));
        let mut message = Message::new(call.handler, call.uhdr, call.udata);
        (message.counters, message.next, message.place) = (counters, call.on_origin, place);
        self.start(target, message, |_| {})
    }

    /// Where the data lies in this task's shared area, if another task is to copy it from there.
    #[inline]
    fn place_in_area(&self, call: &Amsend<'_, S>) -> Option<u64> {
        if !call.in_place || call.target == self.engine.task {
            return None;
        }
        let span = call.udata.span().filter(|span| span.len() >= IN_PLACE_FROM)?;
        self.engine.outbox.shared.as_ref()?.direct.place_of(span)
    }

    /// Sends as many frames of a message as the adapter takes now. If more are left, the message waits in the send queue
    /// of its target, after `keep` has changed it. An error means that nothing of it was sent. Errors of messages that
    /// wait before it are kept for the next call that makes progress.
    pub(crate) fn start(
        &mut self,
        target: TaskId,
        mut message: Message<S>,
        keep: impl FnOnce(&mut Message<S>),
    ) -> Result<Sent, LapiError> {
        let Self { engine, adapter, first_error, losses, .. } = self;
        let outbox = &mut engine.outbox;
        outbox.check_lost(target)?;
        if losses.is_lost(target) {
            return Err(AdapterError::PeerLost { task: target }.into());
        }
        // What waits there goes first.
        let flushed = outbox.flush_send_queue(adapter, target).unwrap_or_else(|error| {
            keep_first(first_error, error);
            1
        });
        let (outcome, next) = match outbox.offer(adapter, target, &mut message) {
            Ok(FrameSent::Last) => match outbox.close(message) {
                Some(next) => (Ok(Sent::Now), next),
                None => (Ok(Sent::Later), Next::Nothing),
            },
            Err(error) if !message.has_begun() => (Err(error), Next::Nothing),
            left => {
                // If frames of it were sent, the buffer does not belong to the caller yet.
                left.err().into_iter().for_each(|error| keep_first(first_error, error));
                keep(&mut message);
                let message = Outgoing::Message(outbox.messages.insert(message));
                outbox.push(target, message);
                (Ok(Sent::Later), Next::Nothing)
            }
        };
        if flushed > 0 || first_error.is_some() || !matches!(next, Next::Nothing) {
            self.end_call(next);
        }
        outcome
    }
}

/// The outcome of offering a frame.
pub(crate) enum FrameSent {
    /// The adapter is full.
    Full,
    /// One frame was sent; more are to come.
    Part,
    /// The last frame was sent.
    Last,
}

/// [`crate::adapter::Adapter::try_send`], not inlined: only the path of most messages has an inlined copy.
#[inline(never)]
pub(crate) fn post(
    adapter: &mut AnyAdapter,
    target: TaskId,
    head: &[u8],
    body: Piece<'_>,
    ticket: Ticket,
) -> Result<Post, AdapterError> {
    adapter.try_send(target, head, body, ticket)
}

/// Offers a frame without a body.
fn send_head(
    adapter: &mut AnyAdapter,
    target: TaskId,
    head: &[u8],
) -> Result<FrameSent, LapiError> {
    let post = post(adapter, target, head, Piece::EMPTY, Ticket(0))?;
    debug_assert_ne!(post, Post::InFlight, "A9: no body is left to be read");
    Ok(if post == Post::Full { FrameSent::Full } else { FrameSent::Last })
}

impl<S> Outbox<S> {
    /// Offers the next frame of the operation at the front of a send queue. The send queue must not be empty.
    pub(crate) fn send_frame(
        &mut self,
        adapter: &mut AnyAdapter,
        target: TaskId,
    ) -> Result<FrameSent, LapiError> {
        let Self { send_queues, messages, regions, in_flight, .. } = self;
        let send_queue = &mut send_queues[target];
        let copies_bodies = send_queue.copies_bodies();
        let SendQueue { waiting: queue, next_msg, pieces, .. } = send_queue;
        let front = queue.front_mut().expect("the caller has seen it");
        match front {
            Outgoing::Message(number) => {
                let message = messages.get_mut(*number).expect("it lasts until it has gone");
                message.send_frame(adapter, target, next_msg, *pieces, in_flight)
            }
            Outgoing::Short(head) => send_head(adapter, target, head),
            Outgoing::Access(number) => {
                let number = *number;
                Ok(self.start_access(adapter, target, number))
            }
            Outgoing::Control(packet) => send_head(adapter, target, packet.encode().bytes()),
            Outgoing::GetReply { ticket, key, offset, len, sent, blocks } => {
                let whole = usize::try_from(*len).unwrap_or(usize::MAX);
                let part = (pieces.size(whole) as u64).min(*len - *sent);
                let piece = match blocks {
                    None => regions.part(*key, *offset + *sent, part),
                    Some(blocks) => {
                        regions.contains(*key).then(|| blocks.piece(*sent as usize, part as usize))
                    }
                };
                let Some(piece) = piece else {
                    *front = Outgoing::Control(Packet::GetRefused { ticket: *ticket });
                    return self.send_frame(adapter, target);
                };
                // RG3 of `crate::progress::registry`.
                let copy = !copies_bodies && regions.may_change(*key);
                let copy = copy.then(|| Source::from(piece.to_vec()));
                let piece = copy.as_ref().map_or(piece, |copy| copy.piece(0, piece.len()));
                let head = Packet::GetData { ticket: *ticket, offset: *sent }.encode();
                let ticket = Ticket(in_flight.next_number());
                match post(adapter, target, head.bytes(), piece, ticket)? {
                    Post::Full => return Ok(FrameSent::Full),
                    Post::Taken => {}
                    Post::InFlight => {
                        let of = InFlightOf::Region(*key);
                        in_flight.insert(InFlight { frames: 1, of, copied_by: None });
                        regions.begin_use(*key);
                    }
                }
                *sent += part;
                Ok(if *sent == *len { FrameSent::Last } else { FrameSent::Part })
            }
        }
    }

    /// Offers the frames of a message that is in no send queue, unless operations are queued before it.
    fn offer(
        &mut self,
        adapter: &mut AnyAdapter,
        target: TaskId,
        message: &mut Message<S>,
    ) -> Result<FrameSent, LapiError> {
        let SendQueue { is_free, dirty, next_msg, pieces, .. } = &mut self.send_queues[target];
        if !*is_free {
            return Ok(FrameSent::Full);
        }
        *dirty = true;
        loop {
            match message.send_frame(adapter, target, next_msg, *pieces, &mut self.in_flight)? {
                FrameSent::Part => {}
                end => return Ok(end),
            }
        }
    }

    /// Closes a message whose last frame is on its way, or of which no more will be sent. Returns what follows, if that
    /// is due now, and not when all bodies have left.
    pub(crate) fn close(&mut self, message: Message<S>) -> Option<Next<S>> {
        self.closed += 1;
        if let Some(number) = message.in_flight {
            match self.in_flight.get_mut(number) {
                Some(in_flight) if in_flight.frames > 0 => {
                    in_flight.of = InFlightOf::Closed(message.next);
                    return None;
                }
                _ => drop(self.in_flight.remove(number)),
            }
        }
        Some(message.next)
    }

    /// Handles the news that a task has copied a body by itself.
    pub(crate) fn copied(&mut self, ticket: u32, by: TaskId) -> Result<(), Violation> {
        let in_flight = self.in_flight.get_mut(ticket);
        if in_flight.is_none_or(|in_flight| in_flight.copied_by != Some(by)) {
            return Err(Violation::StrayCopied { ticket });
        }
        self.send_complete(Ticket(ticket));
        Ok(())
    }

    /// Ends the sends in flight whose bodies a lost task was to copy by itself.
    pub(crate) fn lose_in_flight(&mut self, lost: TaskId) {
        for number in self.in_flight.numbers(|in_flight| in_flight.copied_by == Some(lost)) {
            self.send_complete(Ticket(number));
        }
    }

    /// Handles the event that a body has left its memory.
    pub(crate) fn send_complete(&mut self, ticket: Ticket) {
        let Ticket(number) = ticket;
        let Some(in_flight) = self.in_flight.get_mut(number) else { return };
        in_flight.frames = in_flight.frames.saturating_sub(1);
        if in_flight.frames > 0 || matches!(in_flight.of, InFlightOf::Open) {
            return;
        }
        match self.in_flight.remove(number).map(|in_flight| in_flight.of) {
            Some(InFlightOf::Closed(next)) => self.follow(next),
            Some(InFlightOf::Region(key)) => self.end_use(key),
            Some(InFlightOf::Open) | None => {}
        }
    }
}

impl<S> Message<S> {
    /// Offers the next frame.
    pub(crate) fn send_frame(
        &mut self,
        adapter: &mut AnyAdapter,
        target: TaskId,
        next_msg: &mut u32,
        pieces: Pieces,
        in_flight: &mut Slots<InFlight<S>>,
    ) -> Result<FrameSent, LapiError> {
        let total = self.len;
        let (handler, counters, uhdr) = (self.handler, self.counters, &self.uhdr[..self.uhdr_len]);
        if let Some(place) = self.place {
            let (ticket, total) = (in_flight.next_number(), total as u64);
            let packet = Packet::Placed { handler, counters, ticket, place, total, uhdr };
            let sent = send_head(adapter, target, packet.encode().bytes())?;
            if let FrameSent::Last = sent {
                let (of, copied_by) = (InFlightOf::Open, Some(target));
                self.in_flight = Some(in_flight.insert(InFlight { frames: 1, of, copied_by }));
                self.sent = self.len;
            }
            return Ok(sent);
        }
        let whole = total <= pieces.whole();
        let part = if whole { total } else { pieces.size(total).min(total - self.sent) };
        let packet = if whole {
            Packet::Single { handler, counters, uhdr }
        } else if self.sent == 0 {
            Packet::First { handler, counters, msg: *next_msg, total: total as u64, uhdr }
        } else {
            Packet::Body { msg: self.msg, offset: self.sent as u64 }
        };
        let body = self.data.piece(self.sent, part);
        let ticket = self.in_flight.unwrap_or_else(|| in_flight.next_number());
        match post(adapter, target, packet.encode().bytes(), body, Ticket(ticket))? {
            Post::Full => return Ok(FrameSent::Full),
            Post::Taken => {}
            Post::InFlight => {
                let fresh = InFlight { frames: 0, of: InFlightOf::Open, copied_by: None };
                let number = *self.in_flight.get_or_insert_with(|| in_flight.insert(fresh));
                in_flight.get_mut(number).expect("it lasts as long as the message").frames += 1;
            }
        }
        if !whole && self.sent == 0 {
            self.msg = *next_msg;
            *next_msg = next_msg.wrapping_add(1);
        }
        self.sent += part;
        Ok(if self.sent == total { FrameSent::Last } else { FrameSent::Part })
    }
}
