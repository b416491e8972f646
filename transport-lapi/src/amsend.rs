//! LAPI_Amsend: checks, the one-frame fast path, and the pieces that a long message is cut into.
//!
//! A message whose frame the adapter takes at once costs one encode and one `try_send`. Everything
//! else becomes an [`Outgoing`] in the lane of its target. A lane is a FIFO, and a frame is offered
//! only from its front: this is what keeps header handlers in the order of sending.

use std::cmp::Ordering;

use crate::adapter::{Adapter, Caps, Post, TaskId};
use crate::config::Pieces;
use crate::counter::{CounterId, Counters};
use crate::error::LapiError;
use crate::get::Regions;
use crate::handler::InlineHandler;
use crate::outbox::Outbox;
use crate::query::Step;
use crate::region::SendRegion;
use crate::wire::{BASE, MAX_UHDR, Packet, RemoteCounters};

/// The parameters of LAPI_Amsend.
pub struct Amsend<'a, S> {
    /// The task that gets the message; may be the caller.
    pub target: TaskId,
    /// Index of the header handler in the target's table.
    pub handler: u8,
    /// User header: a multiple of 8 bytes, at most [`crate::Query::MaxUhdrSz`]; copied.
    pub uhdr: &'a [u8],
    /// The bulk; not copied, see [`Sent`].
    pub udata: SendRegion,
    /// What happens when the origin's buffer is reusable, unless the call says [`Sent::Now`].
    pub on_origin: OnOrigin<S>,
    /// Counter *of the target* that goes up when the message is complete there.
    pub tgt_cntr: Option<CounterId>,
    /// Counter of the origin that goes up when the message is complete at the target.
    pub cmpl_cntr: Option<CounterId>,
}

impl<'a, S> Amsend<'a, S> {
    /// A message without counters.
    #[inline]
    pub fn new(target: TaskId, handler: u8, uhdr: &'a [u8], udata: SendRegion) -> Self {
        let on_origin = OnOrigin::None;
        Self { target, handler, uhdr, udata, on_origin, tgt_cntr: None, cmpl_cntr: None }
    }

    pub(crate) fn counters(&self) -> RemoteCounters {
        RemoteCounters {
            target: CounterId::on_wire(self.tgt_cntr),
            completion: CounterId::on_wire(self.cmpl_cntr),
        }
    }

    /// LAPI's parameter checks, in its order.
    #[inline]
    pub(crate) fn check(&self, num_tasks: usize) -> Result<(), LapiError> {
        if self.udata.len() > isize::MAX as usize {
            let (len, limit) = (self.udata.len() as u64, isize::MAX as u64);
            return Err(LapiError::DataLen { offset: 0, len, limit });
        }
        check_handler(self.handler)?;
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
    /// It is. A counter has been counted; a handler is *not* run.
    Now,
    /// Not yet, or the news came during the call: the counter or handler tells.
    Later,
}

/// What tells the origin that its buffer is reusable: LAPI's `org_cntr` or send completion handler.
pub enum OnOrigin<S> {
    /// Nothing.
    None,
    /// This counter goes up.
    Counter(CounterId),
    /// This handler runs in the dispatcher, with this argument.
    Handler(InlineHandler<S>, u64),
}

impl<S> OnOrigin<S> {
    /// LAPI's CNTR_NULL condition.
    pub(crate) fn check(&self, counters: &mut Counters) -> Result<(), LapiError> {
        match self {
            Self::Counter(id) => counters.value(*id).map(drop),
            Self::None | Self::Handler(..) => Ok(()),
        }
    }

    /// Tells.
    pub(crate) fn fire(self, state: &mut S, outbox: &mut Outbox<S>) {
        match self {
            Self::None => {}
            Self::Counter(id) => {
                outbox.counters.count_on_wire(CounterId::on_wire(Some(id)));
            }
            Self::Handler(handler, info) => handler(state, outbox, info),
        }
    }
}

/// One operation that waits in a lane.
pub(crate) enum Outgoing<S> {
    /// A message, perhaps partly sent.
    Message(Message<S>),
    /// A packet without user header and body.
    Control(Packet<'static>),
    /// The answer to a reference get.
    GetReply { ticket: u32, key: u64, offset: u64, len: u64, sent: u64 },
}

/// A message in a lane.
pub(crate) struct Message<S> {
    pub handler: u8,
    pub counters: RemoteCounters,
    pub uhdr: [u8; MAX_UHDR],
    pub uhdr_len: usize,
    pub data: Payload,
    pub sent: usize,
    /// Number within its lane; given when its first packet is sent.
    pub msg: u32,
    pub on_origin: OnOrigin<S>,
}

impl<S> Message<S> {
    /// A message none of which has been sent. The user header was checked.
    pub fn new(handler: u8, uhdr: &[u8], data: Payload) -> Self {
        let mut copy = [0; MAX_UHDR];
        copy[..uhdr.len()].copy_from_slice(uhdr);
        Self {
            handler,
            counters: RemoteCounters::default(),
            uhdr: copy,
            uhdr_len: uhdr.len(),
            data,
            sent: 0,
            msg: 0,
            on_origin: OnOrigin::None,
        }
    }
}

/// Where the bytes of a queued message are.
pub(crate) enum Payload {
    /// In the user's buffer.
    Region(SendRegion),
    /// In the queue.
    Owned(Vec<u8>),
}

impl Payload {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Region(region) => region.bytes(),
            Self::Owned(bytes) => bytes,
        }
    }
}

/// The lengths, ascending, above which a message with a user header of `uhdr` bytes travels in
/// another way.
pub(crate) fn steps(uhdr: usize, caps: &Caps, pieces: &Pieces) -> Vec<Step> {
    let cell = caps.max_inline.saturating_sub(BASE + uhdr);
    let mut steps = vec![
        Step { bytes: cell, above: "beside the cell of the ring" },
        Step { bytes: pieces.whole(), above: "in pieces" },
    ];
    steps.extend(pieces.sizes().bounds().iter().filter_map(|&bytes| {
        let above = match pieces.size(bytes + 1).cmp(&pieces.size(bytes)) {
            Ordering::Greater => "in larger pieces",
            Ordering::Less => "in smaller pieces",
            Ordering::Equal => return None,
        };
        Some(Step { bytes, above })
    }));
    steps
}

/// What became of an offer.
pub(crate) enum Offer {
    /// The adapter is full.
    Full,
    /// One frame went, more are to come.
    Part,
    /// The last frame went.
    Last,
}

impl<S> Outgoing<S> {
    /// Offers the next frame of this operation.
    pub fn offer<A: Adapter>(
        &mut self,
        adapter: &mut A,
        target: TaskId,
        next_msg: &mut u32,
        regions: &Regions,
        pieces: &Pieces,
    ) -> Result<Offer, LapiError> {
        match self {
            Self::Message(message) => message.offer(adapter, target, next_msg, pieces),
            Self::Control(packet) => {
                let post = adapter.try_send(target, packet.encode().bytes(), &[])?;
                Ok(if post == Post::Full { Offer::Full } else { Offer::Last })
            }
            Self::GetReply { ticket, key, offset, len, sent } => {
                let whole = usize::try_from(*len).unwrap_or(usize::MAX);
                let part = (pieces.size(whole) as u64).min(*len - *sent);
                let Some(region) = regions.part(*key, *offset + *sent, part) else {
                    *self = Self::Control(Packet::GetRefused { ticket: *ticket });
                    return self.offer(adapter, target, next_msg, regions, pieces);
                };
                let head = Packet::GetData { ticket: *ticket, offset: *sent }.encode();
                if adapter.try_send(target, head.bytes(), region.bytes())? == Post::Full {
                    return Ok(Offer::Full);
                }
                *sent += part;
                Ok(if *sent == *len { Offer::Last } else { Offer::Part })
            }
        }
    }
}

impl<S> Message<S> {
    fn offer<A: Adapter>(
        &mut self,
        adapter: &mut A,
        target: TaskId,
        next_msg: &mut u32,
        pieces: &Pieces,
    ) -> Result<Offer, LapiError> {
        let data = self.data.bytes();
        let total = data.len();
        let (handler, counters, uhdr) = (self.handler, self.counters, &self.uhdr[..self.uhdr_len]);
        let whole = total <= pieces.whole();
        let part = if whole { total } else { pieces.size(total).min(total - self.sent) };
        let packet = if whole {
            Packet::Single { handler, counters, uhdr }
        } else if self.sent == 0 {
            Packet::First { handler, counters, msg: *next_msg, total: total as u64, uhdr }
        } else {
            Packet::Body { msg: self.msg, offset: self.sent as u64 }
        };
        let body = &data[self.sent..self.sent + part];
        if adapter.try_send(target, packet.encode().bytes(), body)? == Post::Full {
            return Ok(Offer::Full);
        }
        if !whole && self.sent == 0 {
            self.msg = *next_msg;
            *next_msg = next_msg.wrapping_add(1);
        }
        self.sent += part;
        Ok(if self.sent == total { Offer::Last } else { Offer::Part })
    }
}
