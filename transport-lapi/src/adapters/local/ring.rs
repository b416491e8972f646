//! The ring of an ordered pair of tasks: fixed slots, one producer, one consumer.
//!
//! A slot is five cache lines. Its first word contains a sequence number that is written last, so the consumer needs to
//! poll nothing else, and a short frame moves in one line: no head or tail index is exchanged per message. The memory
//! is borrowed, so loom can run the same code. Used by [`crate::adapters::local::port`]; a body that does not fit goes
//! to [`crate::adapters::local::data_ring`] or [`crate::adapters::local::recycled`].
//!
//! - R1: the slot at position `p` is ready when its sequence number is `p + 1`. Positions count up and wrap at 2^32. An
//!   old number is lower by a whole number of rings, and zero, the initial one, is not expected before the slot has
//!   been written. So a stale number never matches.
//! - R2: the slots from the consumer's published position up to the producer's belong to the consumer, the others to
//!   the producer. The number passes a slot to the consumer, the published position passes it back.
//! - R3: no deadlock. The consumer publishes at every quarter of the ring, so once it has seen all frames at least
//!   three quarters are free for the producer.
//! - R4: everything read from the slot is untrusted: it is loaded once, checked, and the checked copy is used. The
//!   number is only compared for equality, so no value there does harm. A damaged slot is skipped.
//! - R5: the position is advanced before the sink runs and published after, so a sink that panics neither repeats a
//!   frame nor frees its memory early.

#![expect(unsafe_code, reason = "the slots are memory shared with a peer")]

use std::mem::MaybeUninit;
use std::time::Instant;

use crate::adapter::{Events, Frame, Post, SHORT_HEAD, TaskId};
use crate::adapters::local::data_ring::{DataLine, DataRingConsumer, DataRingProducer};
use crate::adapters::local::distance::Distance;
use crate::adapters::local::layout::{INDICES_BYTES, SLOT_BYTES};
use crate::adapters::local::recycled::RecycledBuffers;
use crate::memory::body::Piece;
use crate::memory::region::{ForeignBytes, RecvPart, SendRegion, copy_short};
use crate::platform::sync::{AtomicU32, AtomicU64, Ordering, UnsafeCell};
use crate::platform::sys::{self, LINE};

mod damage;
mod placement;
pub(crate) use crate::adapters::local::ring::damage::RingDamage;
pub(crate) use crate::adapters::local::ring::placement::CachePolicy;
use crate::adapters::local::ring::placement::{Facts, Placement};

/// Bytes of a slot after its two words.
pub(crate) const SLOT_DATA: usize = SLOT_BYTES - WORDS;

/// Lines of a slot after the first one.
const LINES_BEHIND: usize = SLOT_BYTES / LINE - 1;

/// Bytes of a slot's two words.
const WORDS: usize = 16;

/// Largest head of a frame.
pub(crate) const MAX_HEAD: usize = 256;

/// Kind of a frame whose body is in the slot, after the head.
const INLINE: u16 = 0;
/// Kind of a frame whose body is in the data ring.
const DATA_RING: u16 = 1;
/// Kind of a frame whose body is in a recycled buffer.
const RECYCLED: u16 = 2;

/// How many slots behind the awaited one [`Consumer::fetch_ahead`] prefetches.
const SLOTS_AHEAD: u32 = 4;

/// Before a body of at least this length is handled, the next slot is prefetched: copying the body takes longer than
/// the transfer of a line, and the next piece of a long message has mostly come by then.
const FETCHES_NEXT: usize = 8 << 10;

/// The upper half of the header word of a frame that has a short head and its body in the slot.
const SHORT_INLINE: u32 = SHORT_HEAD as u32 | (INLINE as u32) << 16;

/// One slot.
#[repr(C, align(64))]
pub(crate) struct Slot {
    /// Sequence number, length of the head, kind: from the low bits up, 32, 16 and 16.
    header_word: AtomicU64,
    /// Length of the body, and its position in the data ring or the number of its first recycled buffer: 32 bits each.
    length_word: AtomicU64,
    data: UnsafeCell<[MaybeUninit<u8>; SLOT_DATA]>,
}

// SAFETY: R2 determines which end may access `data`.
unsafe impl Sync for Slot {}

/// What the consumer publishes to the producer. Only the consumer writes it.
#[repr(C, align(128))]
pub(crate) struct Indices {
    slots: AtomicU32,
    data_ring: AtomicU32,
}

impl Indices {
    /// The current value of both.
    fn both(&self) -> (u32, u32) {
        (self.slots.load(Ordering::Relaxed), self.data_ring.load(Ordering::Relaxed))
    }
}

const _: () = assert!(
    cfg!(loom) || (size_of::<Slot>() == SLOT_BYTES && size_of::<Indices>() == INDICES_BYTES)
);

/// The memory of one ring. The lengths of both slices are powers of two.
#[derive(Clone, Copy)]
pub(crate) struct Ring<'m> {
    pub(crate) slots: &'m [Slot],
    pub(crate) indices: &'m Indices,
    pub(crate) data_ring: &'m [DataLine],
}

impl<'m> Ring<'m> {
    #[inline(always)]
    fn slot(&self, position: u32) -> &'m Slot {
        &self.slots[position as usize & (self.slots.len() - 1)]
    }
}

/// The end that offers frames.
pub(crate) struct Producer<'m> {
    ring: Ring<'m>,
    position: u32,
    /// The consumer's published position when last loaded.
    freed: u32,
    data_ring: DataRingProducer<'m>,
    /// The recycled buffers of the pair that belong to this end. Its consumer of the opposite ring adds to them.
    pub(crate) recycled: RecycledBuffers<'m>,
    policy: CachePolicy,
    /// Of [`CachePolicy::stream`].
    stream: u32,
    /// Frames that are missing to a stream: as many after a frame from the consumer.
    until_stream: u32,
    distance: Distance,
    /// The consumer's published values when last loaded.
    seen: (u32, u32),
}

impl<'m> Producer<'m> {
    pub(crate) fn new(ring: Ring<'m>, recycled: RecycledBuffers<'m>, policy: CachePolicy) -> Self {
        let data_ring = DataRingProducer::new(ring.data_ring);
        Self {
            ring,
            position: 0,
            freed: 0,
            data_ring,
            recycled,
            policy,
            stream: policy.stream(),
            until_stream: policy.stream(),
            distance: Distance::default(),
            seen: (0, 0),
        }
    }

    /// Offers one frame. [`Post::Full`] means that nothing was taken.
    ///
    /// # Panics
    /// If the head or the body is longer than the adapter's `Caps` allow.
    #[inline(always)]
    pub(crate) fn offer(&mut self, head: &[u8], body: Piece<'_>) -> Result<Post, RingDamage> {
        let Piece::Span(span) = body else { return self.offer_otherwise(head, body) };
        if self.full() || head.len() > MAX_HEAD || span.len() > SLOT_DATA - head.len() {
            // A short head is copied here, so that it stays in registers otherwise.
            return match <[u8; SHORT_HEAD]>::try_from(head) {
                Ok(short) => self.offer_long(&short, span),
                Err(_) => self.offer_long(head, span),
            };
        }
        self.publish(head, span.foreign(), INLINE, span.len() as u64);
        Ok(Post::Taken)
    }

    /// [`Producer::offer_otherwise`] of a span, which is passed in registers.
    #[inline(never)]
    fn offer_long(&mut self, head: &[u8], span: SendRegion) -> Result<Post, RingDamage> {
        self.offer_otherwise(head, Piece::Span(span))
    }

    /// [`Producer::offer`] for the other cases: the ring may be full, or the body is long or not a span.
    fn offer_otherwise(&mut self, head: &[u8], body: Piece<'_>) -> Result<Post, RingDamage> {
        assert!(head.len() <= MAX_HEAD, "callers respect Caps::max_head");
        if self.full() && self.still_full()? {
            return Ok(Post::Full);
        }
        let len = body.len();
        let facts = Facts {
            room: SLOT_DATA - head.len(),
            is_span: matches!(body, Piece::Span(_)),
            is_prefetched: self.data_ring.has_prefetched(len),
            is_distant: self.distance.is_far(),
        };
        match self.policy.placement(len, facts) {
            Placement::Slot => {
                let mut packed = [0; SLOT_DATA];
                body.copy_to(RecvPart::of_slice(&mut packed[..len]));
                let packed = ForeignBytes::from_slice(&packed[..len]);
                self.publish(head, packed, INLINE, len as u64);
                Ok(Post::Taken)
            }
            Placement::Outside { recycled_first, past_caches } => {
                let is_sent = recycled_first && self.offer_recycled(head, body)
                    || self.offer_in_data_ring(head, body, past_caches)?
                    || !recycled_first && self.offer_recycled(head, body);
                Ok(if is_sent { Post::Taken } else { Post::Full })
            }
        }
    }

    /// Sends a frame with its body in the data ring. Returns whether there was room.
    fn offer_in_data_ring(
        &mut self,
        head: &[u8],
        body: Piece<'_>,
        past_caches: bool,
    ) -> Result<bool, RingDamage> {
        let len = body.len();
        if self.policy.passes_caches() {
            self.time_a_load();
        }
        let freed = self.data_ring.freed;
        let stored = self.data_ring.store(body, past_caches, &self.ring.indices.data_ring)?;
        if self.data_ring.freed != freed {
            // `store` has loaded the consumer's line.
            self.seen = self.ring.indices.both();
        }
        let Some(start) = stored else { return Ok(false) };
        let is_lone = self.next_is_lone();
        self.publish(head, ForeignBytes::EMPTY, DATA_RING, len as u64 | u64::from(start) << 32);
        if is_lone {
            if self.policy.is_pushed_out(len) {
                self.data_ring.push_out(start, len);
            }
            // To a distant consumer, short bodies that lie apart take longer.
            if !self.distance.is_far() {
                self.data_ring.page_pad();
            }
        }
        if self.policy == CachePolicy::Demote {
            self.data_ring.count(len, is_lone, &self.ring.indices.data_ring);
        }
        let next = self.policy.prefetched_next(len, is_lone, past_caches);
        if next > 0 {
            self.data_ring.prefetch_next_write(next);
        }
        Ok(true)
    }

    /// Sends a frame with its body in recycled buffers. Returns whether this end has enough of them.
    fn offer_recycled(&mut self, head: &[u8], body: Piece<'_>) -> bool {
        let Some(number) = self.recycled.store(body) else { return false };
        let (len, is_lone) = (body.len(), self.next_is_lone());
        self.publish(head, ForeignBytes::EMPTY, RECYCLED, len as u64 | u64::from(number) << 32);
        match self.policy {
            CachePolicy::Demote if !self.policy.is_pushed_out(len) => {
                self.data_ring.count(len, is_lone, &self.ring.indices.data_ring);
            }
            CachePolicy::Demote if is_lone => self.recycled.push_out(number, len),
            CachePolicy::Demote | CachePolicy::Pull => {}
        }
        true
    }

    /// Fills the next slot with `head` and `inline`, and passes it to the consumer.
    #[inline(always)]
    fn publish(&mut self, head: &[u8], inline: ForeignBytes<'_>, kind: u16, length_word: u64) {
        let slot = self.ring.slot(self.position);
        let position = self.position.wrapping_add(1);
        self.position = position;
        slot.data.with_mut(|data| {
            let data = data.cast::<u8>();
            // SAFETY: the ring is not full, so R2 makes the slot the producer's; both lengths were
            // checked to fit together; the head is local memory.
            unsafe {
                copy_short(head.as_ptr(), data, head.len());
                copy_short(inline.as_ptr(), data.add(head.len()), inline.len());
            }
        });
        slot.length_word.store(length_word, Ordering::Relaxed);
        let header_word = u64::from(position) | (head.len() as u64) << 32 | u64::from(kind) << 48;
        slot.header_word.store(header_word, Ordering::Release); // SYNC: frame
        let len = WORDS + head.len() + inline.len();
        if self.until_stream > 0 {
            self.until_stream -= 1;
            match self.policy {
                CachePolicy::Demote => slot.push_out(len),
                CachePolicy::Pull if len > LINE => return,
                CachePolicy::Pull => {}
            }
        }
        // The lines of the next slot are in the consumer's cache since the previous lap; requested now, they are here
        // when the next frame is written. After the last slot, once in a lap, this prefetches something else, and in a
        // full ring the consumer still needs the lines: both cost a little, and do no harm.
        let next = std::ptr::from_ref(slot).wrapping_add(1);
        sys::prefetch_to_write(next);
        if len > LINE {
            prefetch_lines_behind(next, len);
        }
    }

    /// Prefetches some more of the lines where the next bodies are expected. If the lines are pushed, a waiting
    /// producer calls this now and then.
    #[inline(always)]
    pub(crate) fn prefetch_more(&mut self) {
        self.data_ring.prefetch_more();
    }

    /// Notes that a frame has come from the consumer, so the frames to it are not a stream.
    #[inline(always)]
    pub(crate) fn on_receive(&mut self) {
        self.until_stream = self.stream;
    }

    /// Whether no frame has been sent since one has come from the consumer.
    #[inline(always)]
    pub(crate) fn next_is_lone(&self) -> bool {
        self.until_stream == self.stream
    }

    /// Times a load of the consumer's line now and then, if the consumer has written it since this end last loaded it,
    /// to know whether its processor is distant. The loaded values are not used, so a wrong claim does no harm.
    #[inline(always)]
    fn time_a_load(&mut self) {
        let Self { ring, distance, seen, .. } = self;
        distance.ask(|| {
            let start = Instant::now();
            let now = ring.indices.both();
            let took = start.elapsed();
            (std::mem::replace(seen, now) != now).then_some(took)
        });
    }

    /// The position that is filled next.
    #[inline(always)]
    pub(crate) fn position(&self) -> u32 {
        self.position
    }

    #[inline(always)]
    fn full(&self) -> bool {
        self.position.wrapping_sub(self.freed) as usize >= self.ring.slots.len()
    }

    /// Loads how much the consumer has freed meanwhile.
    #[cold]
    fn still_full(&mut self) -> Result<bool, RingDamage> {
        let claim = self.ring.indices.slots.load(Ordering::Acquire); // SYNC: slot credit
        let owned = self.position.wrapping_sub(self.freed);
        if claim.wrapping_sub(self.freed) > owned {
            return Err(RingDamage::SlotCredit);
        }
        self.freed = claim;
        self.seen = self.ring.indices.both();
        Ok(self.full())
    }
}

/// The end that takes frames.
pub(crate) struct Consumer<'m> {
    ring: Ring<'m>,
    position: u32,
    published: u32,
    data_ring: DataRingConsumer<'m>,
    /// How many lines of its slot the last frame occupied after the first one, if it was there whole, with a short
    /// head; else 0.
    behind: usize,
    /// Whether room was freed since the last call of [`Consumer::gave_back`].
    gave_back: bool,
}

impl<'m> Consumer<'m> {
    pub(crate) fn new(ring: Ring<'m>) -> Self {
        Self {
            ring,
            position: 0,
            published: 0,
            data_ring: DataRingConsumer::new(ring.data_ring),
            behind: 0,
            gave_back: false,
        }
    }

    /// Passes the next frame of `origin`, whose ring this is, to `events`; returns `false` if none is ready. An error
    /// means that the next frame was damaged and is skipped. `recycled` are this task's for `origin`; a body
    /// that comes in one adds it to them.
    #[inline(always)]
    pub(crate) fn take<E: Events + ?Sized>(
        &mut self,
        origin: TaskId,
        recycled: &mut RecycledBuffers<'_>,
        events: &mut E,
    ) -> Result<bool, RingDamage> {
        let slot = self.ring.slot(self.position);
        let header_word = slot.header_word.load(Ordering::Acquire); // SYNC: frame
        if header_word as u32 != self.position.wrapping_add(1) {
            return Ok(false);
        }
        self.position = self.position.wrapping_add(1);
        let (shape, length_word) =
            ((header_word >> 32) as u32, slot.length_word.load(Ordering::Relaxed));
        let body_len = length_word as u32 as usize;
        if shape == SHORT_INLINE && body_len <= SLOT_DATA - SHORT_HEAD {
            self.behind = (WORDS + SHORT_HEAD + body_len - 1) / LINE;
            if self.behind > 0 {
                // The lines of the body arrive while the head is handled.
                slot.fetch(1, LINES_BEHIND);
            }
            let head = slot.short_head();
            slot.data.with(|data| {
                // SAFETY: the body lies in the slot behind the head, and the slot stays mapped (G3).
                let body =
                    unsafe { ForeignBytes::new(data.cast::<u8>().add(SHORT_HEAD), body_len) };
                events.short(origin, head, body);
            });
        } else {
            self.behind = 0;
            if let Err(damage) = self.deliver(slot, shape, length_word, origin, recycled, events) {
                self.give_back();
                return Err(damage);
            }
        }
        // A quarter of the ring (R3).
        if self.position.wrapping_sub(self.published) as usize * 4 >= self.ring.slots.len() {
            self.give_back();
        }
        Ok(true)
    }

    /// Publishes to the producer that all consumed slots are free again.
    #[inline]
    fn give_back(&mut self) {
        self.ring.indices.slots.store(self.position, Ordering::Release); // SYNC: slot credit
        self.published = self.position;
        self.gave_back = true;
    }

    /// Checks the contents of a ready slot (R4) and passes the frame to `events`. `shape` is the upper half of its
    /// header word. It is cold so that the compiler lays [`Consumer::take`] out for short frames.
    #[cold]
    #[inline(never)]
    fn deliver<E: Events + ?Sized>(
        &mut self,
        slot: &Slot,
        shape: u32,
        length_word: u64,
        origin: TaskId,
        recycled: &mut RecycledBuffers<'_>,
        events: &mut E,
    ) -> Result<(), RingDamage> {
        let head_len = usize::from(shape as u16);
        let (body_len, place) = (length_word as u32 as usize, (length_word >> 32) as u32);
        if head_len > MAX_HEAD {
            return Err(RingDamage::HeadLength);
        }
        if body_len >= FETCHES_NEXT {
            self.ring.slot(self.position).fetch(0, 0);
        }
        let pass_on = |body: *const u8| {
            // SAFETY: the range was checked to lie in the data ring or in a recycled buffer, which stay mapped (G3).
            let body = unsafe { ForeignBytes::new(body, body_len) };
            if head_len == SHORT_HEAD {
                events.short(origin, slot.short_head(), body);
            } else {
                slot.with_head(head_len, |head, _| events.frame(Frame { origin, head, body }));
            }
        };
        match (shape >> 16) as u16 {
            INLINE if body_len > SLOT_DATA - head_len => Err(RingDamage::InlineLength),
            INLINE => {
                slot.fetch(1, LINES_BEHIND);
                slot.with_head(head_len, |head, rest| {
                    // SAFETY: `head_len + body_len` lies in the slot, which stays mapped (G3).
                    let body = unsafe { ForeignBytes::new(rest, body_len) };
                    events.frame(Frame { origin, head, body });
                });
                Ok(())
            }
            DATA_RING => {
                self.data_ring.take(place, body_len, pass_on)?;
                self.gave_back |= self.data_ring.release(&self.ring.indices.data_ring);
                Ok(())
            }
            RECYCLED => recycled.take(place, body_len, pass_on),
            _ => Err(RingDamage::Kind),
        }
    }

    /// The position that is taken next.
    #[inline(always)]
    pub(crate) fn position(&self) -> u32 {
        self.position
    }

    /// Prefetches the lines of the awaited slot after the first one, as many as the last frame occupied: if the next
    /// frame is similar, their transfers overlap.
    #[inline(always)]
    pub(crate) fn fetch_awaited(&self) {
        self.ring.slot(self.position).fetch(1, self.behind);
    }

    /// Prefetches the lines of a later slot, as many as the last frame occupied, for a consumer of frames that come in
    /// a row: if the producer is as far ahead, their transfers overlap. If not, the lines are mostly still in this
    /// processor's cache since the previous lap, and nothing is lost.
    #[inline(always)]
    pub(crate) fn fetch_ahead(&self) {
        self.ring.slot(self.position.wrapping_add(SLOTS_AHEAD)).fetch(0, self.behind);
    }

    /// Whether room was published since the last call. If so, the producer may be asleep, waiting for it.
    #[inline(always)]
    pub(crate) fn gave_back(&mut self) -> bool {
        std::mem::take(&mut self.gave_back)
    }
}

impl Slot {
    /// Copies `head_len` bytes of head, so that the peer cannot change them any more, and lends them with the address
    /// of what follows. `head_len` is at most [`MAX_HEAD`].
    #[inline(always)]
    fn with_head(&self, head_len: usize, body: impl FnOnce(&[u8], *const u8)) {
        let mut head = [MaybeUninit::<u8>::uninit(); MAX_HEAD];
        self.data.with(|data| {
            let data = data.cast::<u8>();
            // SAFETY: `head_len` was checked against the local array, which is shorter than the
            // slot. The slot is the consumer's (R2); a peer that breaks R2 changes bytes that are
            // unchecked anyway. The copied part of the array is initialised.
            unsafe {
                copy_short(data, head.as_mut_ptr().cast(), head_len);
                let head = std::slice::from_raw_parts(head.as_ptr().cast::<u8>(), head_len);
                body(head, data.add(head_len));
            }
        });
    }

    /// Copies a short head.
    #[inline(always)]
    fn short_head(&self) -> [u8; SHORT_HEAD] {
        // SAFETY: the head lies in the slot, which is the consumer's (R2); any bytes are valid.
        self.data.with(|data| unsafe { data.cast::<[u8; SHORT_HEAD]>().read() })
    }

    /// Pushes the lines of the first `len` bytes out.
    #[inline(never)]
    fn push_out(&self, len: usize) {
        let slot: *const Self = self;
        for start in (0..len).step_by(LINE) {
            sys::push_out(slot.wrapping_byte_add(start));
        }
    }

    /// Prefetches the lines of the slot from the first of these numbers to the last. The loop has a constant length, so
    /// that it is unrolled: a wait executes it in each turn.
    #[inline(always)]
    fn fetch(&self, first: usize, last: usize) {
        let slot: *const Self = self;
        for line in first..=LINES_BEHIND {
            if line > last {
                return;
            }
            sys::prefetch(slot.wrapping_byte_add(line * LINE));
        }
    }
}

/// Prefetches the lines that `len` bytes of this slot occupy for writing, except the first one.
#[inline(never)]
fn prefetch_lines_behind(slot: *const Slot, len: usize) {
    for start in (LINE..len).step_by(LINE) {
        sys::prefetch_to_write(slot.wrapping_byte_add(start));
    }
}

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(test)]
mod memory;
#[cfg(all(test, not(loom)))]
mod tests;
