//! One task's end of a link to one other task: windows, receipts and timers. Pure: the time is an argument.
//!
//! The layer calls [`Link::sent`] for each frame that it sends for the first time, [`Link::arrived`] for each that
//! arrives, and [`Link::take_receipt`] for each receipt; the link answers what to hand over and what to repeat. `F` is
//! a frame.
//!
//! - LK1: at most [`WINDOW`] frames of each direction are numbered and not yet known to be handed over. So a frame
//!   that arrives lies less than `WINDOW` behind the one that is due, and both ends store at most `WINDOW` frames.
//! - LK2: each number is handed over once, and numbers are handed over in order.
//! - LK3: the oldest frame without a receipt is repeated until there is one, whatever was marked; and each copy of a
//!   frame that has arrived before is answered by a receipt. So lost receipts do not stop a link.
//! - LK4: a receipt grants room only up to what was handed over, not up to what was stored.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::ReliableOptions;
use super::head::{FrameError, Number, Receipt};

/// Most frames of one direction that are under way: twice LAPI's largest ACK_THRESHOLD and a little more, so that
/// receipts come before the window is full. Each has a bit in a receipt's marks.
pub(super) const WINDOW: usize = 64;

/// The number of the first frame of each link. Numbers wrap soon, so that every run shows that they may.
const FIRST: Number = Number(u32::MAX - 99);

/// Doublings of the time between two repetitions of a frame.
const DOUBLINGS: u32 = 6;

/// See the head of this file.
pub(super) struct Link<F> {
    /// The number of the next new frame.
    next: Number,
    /// The frames before `next` that are without a receipt, in order.
    under_way: VecDeque<UnderWay<F>>,
    /// How many frames have a receipt.
    confirmed: u64,
    /// The last time at which a receipt brought news, or a frame was sent while none was under way.
    progress: Option<Instant>,
    /// The number of the frame to be handed over next.
    expected: Number,
    /// Frames that have arrived and wait for others, or for a poll: place `i` is for frame `expected + i`.
    stored: VecDeque<Option<F>>,
    /// How many frames were handed over.
    handed_over: u64,
    /// How many frames have arrived since the last receipt was sent.
    since_receipt: u32,
    /// When the next receipt is due at the latest, if one is owed.
    receipt_due: Option<Instant>,
}

/// A frame that was sent and is without a receipt.
struct UnderWay<F> {
    frame: F,
    /// Whether a receipt has marked it.
    is_marked: bool,
    /// When it is repeated.
    due: Instant,
    repetitions: u32,
}

/// What to do with a frame that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is new, and belongs this many places behind the one that is due.
    New(usize),
    /// It has arrived before.
    Duplicate,
}

impl<F> Link<F> {
    pub fn new() -> Self {
        Self::beginning_with(FIRST)
    }

    fn beginning_with(first: Number) -> Self {
        Self {
            next: first,
            under_way: VecDeque::new(),
            confirmed: 0,
            progress: None,
            expected: first,
            stored: VecDeque::new(),
            handed_over: 0,
            since_receipt: 0,
            receipt_due: None,
        }
    }

    /// Whether another frame may be sent (LK1).
    pub fn has_room(&self) -> bool {
        self.under_way.len() < WINDOW
    }

    /// Whether every frame has a receipt.
    pub fn is_settled(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Whether a frame was sent or has arrived.
    pub fn was_used(&self) -> bool {
        let is_quiet = self.under_way.is_empty() && self.stored.is_empty();
        !is_quiet || self.confirmed + self.handed_over > 0
    }

    /// The number of the next frame that is sent.
    pub fn next(&self) -> Number {
        self.next
    }

    /// Notes that the frame with number [`Link::next`] is under way.
    pub fn sent(&mut self, frame: F, now: Instant, options: &ReliableOptions) {
        if self.under_way.is_empty() {
            self.progress = Some(now);
        }
        let due = now + options.resend;
        self.under_way.push_back(UnderWay { frame, is_marked: false, due, repetitions: 0 });
        self.next = self.next.plus(1);
    }

    /// The first frame under way.
    fn oldest(&self) -> Number {
        self.next.plus(0_usize.wrapping_sub(self.under_way.len()))
    }

    /// Takes a receipt of the other end. One that is older than another is no news.
    ///
    /// # Errors
    /// [`FrameError::UnsentReceipt`].
    pub fn take_receipt(&mut self, receipt: Receipt, now: Instant) -> Result<(), FrameError> {
        let Receipt { expected, marks } = receipt;
        let behind = self.oldest().since(expected);
        if behind != 0 && u64::from(behind) <= self.confirmed.min(u64::from(u32::MAX / 2)) {
            return Ok(());
        }
        let confirmed = expected.since(self.oldest()) as usize;
        let marked = (u64::BITS - marks.leading_zeros()) as usize;
        if confirmed.saturating_add(marked) > self.under_way.len() {
            let (Number(expected), Number(next)) = (expected, self.next);
            return Err(FrameError::UnsentReceipt { expected, marks, next });
        }
        let mut is_news = confirmed > 0;
        self.under_way.drain(..confirmed);
        self.confirmed += confirmed as u64;
        for (place, frame) in self.under_way.iter_mut().take(marked).enumerate() {
            let is_new = marks >> place & 1 == 1 && !frame.is_marked;
            frame.is_marked |= is_new;
            is_news |= is_new;
        }
        if is_news {
            self.progress = Some(now);
        }
        Ok(())
    }

    /// Takes no more receipts: the other end has left, or is lost. Frames from it may still arrive.
    pub fn give_up(&mut self) {
        self.confirmed += self.under_way.len() as u64;
        self.under_way.clear();
        self.receipt_due = None;
    }

    /// Decides about a frame that has arrived. A new one is then passed to [`Link::store`] or, if it is in place 0,
    /// handed over and passed to [`Link::hand_over`].
    ///
    /// # Errors
    /// [`FrameError::OutsideWindow`].
    pub fn arrived(
        &mut self,
        number: Number,
        now: Instant,
        options: &ReliableOptions,
    ) -> Result<Fate, FrameError> {
        let ahead = number.since(self.expected) as usize;
        let behind = self.expected.since(number);
        if ahead < WINDOW {
            self.since_receipt += 1;
            let delay = match self.since_receipt < options.ack_threshold {
                true => options.short_delay(),
                false => Duration::ZERO,
            };
            self.owe_receipt(now + delay);
            let is_stored = self.stored.get(ahead).is_some_and(Option::is_some);
            return Ok(if is_stored { Fate::Duplicate } else { Fate::New(ahead) });
        }
        if u64::from(behind) > self.handed_over.min(u64::from(u32::MAX / 2)) {
            let (Number(number), Number(expected)) = (number, self.expected);
            return Err(FrameError::OutsideWindow { number, expected });
        }
        // The other end has not got the receipt (LK3).
        self.owe_receipt(now);
        Ok(Fate::Duplicate)
    }

    /// Stores a new frame in its place.
    pub fn store(&mut self, place: usize, frame: F) {
        if self.stored.len() <= place {
            self.stored.resize_with(place + 1, || None);
        }
        self.stored[place] = Some(frame);
    }

    /// Notes that the frame in place 0, which is not stored, was handed over.
    pub fn hand_over(&mut self) {
        self.stored.pop_front();
        self.expected = self.expected.plus(1);
        self.handed_over += 1;
    }

    /// Takes the next frame in order, if it is stored, to be handed over now.
    pub fn take_next(&mut self, now: Instant, options: &ReliableOptions) -> Option<F> {
        let frame = self.stored.front_mut()?.take()?;
        self.hand_over();
        // The window has moved on since the frame's receipt was sent (LK4).
        self.owe_receipt(now + options.short_delay());
        Some(frame)
    }

    fn owe_receipt(&mut self, due: Instant) {
        self.receipt_due = Some(self.receipt_due.map_or(due, |before| before.min(due)));
    }

    /// The receipt for what has arrived.
    pub fn receipt(&self) -> Receipt {
        let marks = self.stored.iter().zip(0..).filter(|(frame, _)| frame.is_some());
        Receipt {
            expected: self.expected,
            marks: marks.fold(0, |marks, (_, place)| marks | 1 << place),
        }
    }

    /// When a receipt is due, if one is owed.
    pub fn receipt_due(&self) -> Option<Instant> {
        self.receipt_due
    }

    /// Notes that [`Link::receipt`] was sent, alone or with another frame.
    pub fn receipt_sent(&mut self) {
        (self.since_receipt, self.receipt_due) = (0, None);
    }

    /// Postpones an owed receipt, since there was no room for it.
    pub fn postpone_receipt(&mut self, now: Instant, options: &ReliableOptions) {
        self.receipt_due = Some(now + options.short_delay());
    }

    /// The frames to wait for, with their numbers (LK3).
    fn awaited(&self) -> impl Iterator<Item = (Number, &UnderWay<F>)> {
        let frames = self.under_way.iter().enumerate();
        let awaited = frames.filter(|(place, frame)| *place == 0 || !frame.is_marked);
        awaited.map(|(place, frame)| (self.oldest().plus(place), frame))
    }

    /// The first frame that must be repeated now.
    pub fn overdue(&self, now: Instant) -> Option<(Number, &F)> {
        let mut overdue = self.awaited().filter(|(_, frame)| frame.due <= now);
        overdue.next().map(|(number, frame)| (number, &frame.frame))
    }

    /// Notes that a frame under way was repeated.
    pub fn repeated(&mut self, number: Number, now: Instant, options: &ReliableOptions) {
        if let Some(frame) = self.numbered(number) {
            frame.repetitions = (frame.repetitions + 1).min(DOUBLINGS);
            frame.due = now + options.resend * (1 << frame.repetitions);
        }
    }

    /// Tries again soon to send a frame under way for which there was no room.
    pub fn postpone(&mut self, number: Number, now: Instant, options: &ReliableOptions) {
        if let Some(frame) = self.numbered(number) {
            frame.due = now + options.short_delay();
        }
    }

    fn numbered(&mut self, number: Number) -> Option<&mut UnderWay<F>> {
        let place = number.since(self.oldest()) as usize;
        self.under_way.get_mut(place)
    }

    /// When something must be done, if nothing arrives before.
    pub fn due(&self) -> Option<Instant> {
        self.awaited().map(|(_, frame)| frame.due).chain(self.receipt_due).min()
    }

    /// Whether the frames under way have made no progress for LAPI's TIMEOUT.
    pub fn has_timed_out(&self, now: Instant, options: &ReliableOptions) -> bool {
        let since = self.progress.filter(|_| !self.under_way.is_empty());
        since.is_some_and(|since| now.saturating_duration_since(since) >= options.timeout)
    }
}

#[cfg(test)]
mod tests;
