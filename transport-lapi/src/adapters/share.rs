//! A get that both of its ends carry out: how they divide it.
//!
//! The bytes are cut into slices. Either end claims a slice and copies it: the origin reads it out of
//! the target's memory, the target writes it into the origin's. So a target that computes costs
//! nothing, since the origin claims everything, and one that makes progress takes half of the work.
//! Each ordered pair of tasks has [`Words`] for one such get. Both adapters use [`Shares`], and
//! differ in how they copy.
//!
//! - U1: a slice is claimed by one end. [`Words::claims`] holds the number of the get and the next
//!   slice; a claim is a compare-exchange of both. The origin alone sets another number, and it closes
//!   by claiming all that is left.
//! - U2: the target writes only into slices that it has claimed, and counts each when it is written.
//!   The origin knows how many the target has claimed: all but its own. When the count has come to
//!   that and nothing is left to claim, nobody writes any more. Only then does the get end, and only
//!   after that are the words used for another one.
//! - U3: where the bytes go is written before the number is, and stays until the get has ended. So
//!   what a target has read between seeing the number and claiming a slice of it is of that get.
//! - U4: a target that could not write hands its slice back with the count, and helps with that get no
//!   more. The origin copies it.
//! - U5: what stands in the words is the peer's claim. It is checked before it is used; a count that
//!   cannot be ends the get with an error.
//! - U6: a get that ends early waits for what the target has claimed. A process that is gone writes
//!   nothing; one that is stopped in the middle of a slice is waited for until it goes on or is gone.

use std::io;
use std::sync::Arc;

use crate::adapter::{AdapterError, Advance, TaskId};
use crate::adapters::doorbell::Fences;
use crate::adapters::layout::SHARE_BYTES;
use crate::adapters::segment::Segment;
use crate::region::{RecvRegion, RemoteRegion, SendRegion};
use crate::sync::{AtomicU64, Ordering};

/// The bytes of a get are cut into about so many slices.
const SLICES: usize = 8;
/// Smallest slice: a copy by the kernel costs as much as some thousand bytes to begin.
const SMALLEST: usize = 16 << 10;
/// Largest slice: a task looks for other messages after each.
const LARGEST: usize = 128 << 10;
/// Slices begin on pages, if the buffer does.
const PAGE: usize = 4 << 10;

/// How often the origin looks before it asks whether the target is gone.
const LOOKS: u32 = 1_000;

/// What both ends write: the only memory that they share for a get.
#[repr(C, align(128))]
pub(crate) struct Words {
    /// Number of the get in the high half, next slice in the low one (U1).
    claims: AtomicU64,
    /// Slices that the target has done with in the low half; in the high half, 1 + the slice that it
    /// handed back. Set to 0 by the origin before it opens, then written by the target only.
    done: AtomicU64,
    /// Where the bytes go in the origin's memory (U3).
    addr: AtomicU64,
    /// How many they are.
    len: AtomicU64,
}

const _: () = assert!(cfg!(loom) || size_of::<Words>() == SHARE_BYTES);

/// Length of the slices of a get of `len` bytes.
fn slice_len(len: usize) -> usize {
    (len / SLICES).next_multiple_of(PAGE).clamp(SMALLEST, LARGEST)
}

/// How many slices a get of `len` bytes has, if they can be counted.
fn slices(len: usize) -> Option<u32> {
    u32::try_from(len.div_ceil(slice_len(len))).ok()
}

const fn claims(number: u32, next: u32) -> u64 {
    (number as u64) << 32 | next as u64
}

const fn halves(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

/// The words hold what the protocol never writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Damage;

/// What the origin is to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Copy this slice.
    Copy(u32),
    /// Nothing is left but what the target has claimed.
    Wait,
    /// All slices are there.
    Over,
}

/// The origin's end of one get.
#[derive(Debug)]
pub(crate) struct Opened {
    number: u32,
    slices: u32,
    /// Slices that the origin has claimed.
    mine: u32,
    /// Whether the slice that was handed back is being copied, or has been.
    taken_back: bool,
}

impl Opened {
    /// Opens the words to claims. The get before, if any, has ended (U2).
    pub(crate) fn new(words: &Words, number: u32, addr: u64, len: u64, slices: u32) -> Self {
        words.done.store(0, Ordering::Relaxed);
        words.addr.store(addr, Ordering::Relaxed);
        words.len.store(len, Ordering::Relaxed);
        words.claims.store(claims(number, 0), Ordering::Release); // SYNC: share opens
        Self { number, slices, mine: 0, taken_back: false }
    }

    /// Claims a slice for the origin, or says what it waits for.
    pub(crate) fn next(&mut self, words: &Words) -> Result<Next, Damage> {
        loop {
            let seen = words.claims.load(Ordering::Relaxed);
            let (number, next) = halves(seen);
            if number != self.number || next > self.slices {
                return Err(Damage);
            }
            if next == self.slices {
                return self.last(words);
            }
            let claimed = claims(number, next + 1);
            // Relaxed: the origin reads nothing that a claim of the target publishes.
            let (taken, refused) = (Ordering::Relaxed, Ordering::Relaxed);
            if words.claims.compare_exchange_weak(seen, claimed, taken, refused).is_ok() {
                self.mine = self.mine.saturating_add(1);
                return Ok(Next::Copy(next));
            }
        }
    }

    /// All slices are claimed.
    fn last(&mut self, words: &Words) -> Result<Next, Damage> {
        let (handed_back, done) = halves(words.done.load(Ordering::Acquire)); // SYNC: share done
        let theirs = self.slices.checked_sub(self.mine).ok_or(Damage)?;
        if done > theirs || handed_back > self.slices {
            return Err(Damage);
        }
        if done < theirs {
            return Ok(Next::Wait);
        }
        match handed_back.checked_sub(1) {
            Some(slice) if !self.taken_back => {
                self.taken_back = true;
                Ok(Next::Copy(slice))
            }
            _ => Ok(Next::Over),
        }
    }

    /// Claims everything that is left, so that the target begins no further slice.
    pub(crate) fn close(&mut self, words: &Words) -> Result<(), Damage> {
        let closed = claims(self.number, self.slices);
        let (number, next) = halves(words.claims.swap(closed, Ordering::Relaxed));
        let left = self.slices.checked_sub(next).filter(|_| number == self.number);
        self.mine = self.mine.saturating_add(left.ok_or(Damage)?);
        Ok(())
    }

    /// Whether nobody writes any more, after [`Opened::close`] (U2). Damaged words say nothing about
    /// that, so they are not waited for.
    pub(crate) fn is_settled(&mut self, words: &Words) -> bool {
        !matches!(self.next(words), Ok(Next::Wait))
    }
}

/// The target claims a slice of get `number`, which must be of `len` bytes: the slice, and the
/// address where the bytes go.
pub(crate) fn claim(words: &Words, number: u32, len: u64, slices: u32) -> Option<(u32, u64)> {
    loop {
        let seen = words.claims.load(Ordering::Acquire); // SYNC: share opens
        let (open, next) = halves(seen);
        let addr = words.addr.load(Ordering::Relaxed);
        if open != number || next >= slices || words.len.load(Ordering::Relaxed) != len {
            return None;
        }
        let (taken, refused) = (Ordering::Relaxed, Ordering::Relaxed);
        let claimed = claims(number, next + 1);
        if words.claims.compare_exchange_weak(seen, claimed, taken, refused).is_ok() {
            return Some((next, addr));
        }
    }
}

/// The target has written the slice that it claimed, or hands it back (U4).
pub(crate) fn finish(words: &Words, handed_back: Option<u32>) {
    let back = handed_back.map_or(0, |slice| u64::from(slice) + 1);
    words.done.fetch_add(back << 32 | 1, Ordering::Release); // SYNC: share done
}

/// A get under way at its origin.
struct Get {
    opened: Opened,
    remote: RemoteRegion,
    offset: u64,
    into: RecvRegion,
}

/// One task's part in shared gets: as their origin, one per target, and as the target of any.
pub(crate) struct Shares {
    task: TaskId,
    fences: Fences,
    /// By target.
    gets: Vec<Option<Get>>,
    /// Number of the last get.
    last: u32,
    /// Whether the system has refused a write: then this task helps no more.
    refused: bool,
    segment: Arc<Segment>,
}

impl Shares {
    pub(crate) fn new(segment: Arc<Segment>, task: TaskId, fences: Fences) -> Self {
        let gets = std::iter::repeat_with(|| None).take(segment.layout().tasks()).collect();
        Self { task, fences, gets, last: 0, refused: false, segment }
    }

    /// See [`crate::adapter::Adapter::share`].
    pub(crate) fn begin(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: RecvRegion,
    ) -> Option<u32> {
        let place = self.gets.get_mut(target as usize)?;
        let slices = slices(into.len()).filter(|&slices| slices > 1)?;
        if target == self.task || place.is_some() {
            return None;
        }
        self.last = self.last.wrapping_add(1);
        let words = self.segment.share(self.task as usize, target as usize);
        let (addr, len) = (into.as_mut_ptr() as u64, into.len());
        let opened = Opened::new(words, self.last, addr, len as u64, slices);
        *place = Some(Get { opened, remote, offset, into });
        Some(self.last)
    }

    /// See [`crate::adapter::Adapter::advance`]. `read` copies out of the target's memory, `gone` says
    /// whether the target will never write again.
    pub(crate) fn advance(
        &mut self,
        target: TaskId,
        read: impl FnOnce(RemoteRegion, u64, RecvRegion) -> Result<(), AdapterError>,
        gone: impl FnMut() -> bool,
    ) -> Result<Advance, AdapterError> {
        let words = self.segment.share(self.task as usize, target as usize);
        let place = &mut self.gets[target as usize];
        let get = place.as_mut().expect("the transport advances gets that it has begun");
        let copied = match get.opened.next(words) {
            Ok(Next::Wait) => return Ok(Advance::Waiting),
            Ok(Next::Over) => {
                *place = None;
                return Ok(Advance::Complete);
            }
            Ok(Next::Copy(slice)) => {
                let at = slice as usize * slice_len(get.into.len());
                let part = get.into.part(at, slice_len(get.into.len()));
                read(get.remote, get.offset + at as u64, part)
            }
            Err(Damage) => {
                let what = "the division of a get is not one that its ends make";
                Err(AdapterError::Corrupt { origin: target, what })
            }
        };
        if copied.is_err() {
            self.end(target, gone);
        }
        copied.map(|()| Advance::Copied)
    }

    /// Ends the get from `target`, if there is one, and waits until nobody writes any more (U6).
    pub(crate) fn end(&mut self, target: TaskId, mut gone: impl FnMut() -> bool) {
        let words = self.segment.share(self.task as usize, target as usize);
        let Some(mut get) = self.gets[target as usize].take() else {
            return;
        };
        if get.opened.close(words).is_err() {
            return;
        }
        let mut looks = 0;
        while !get.opened.is_settled(words) {
            looks += 1;
            if looks < LOOKS {
                std::hint::spin_loop();
            } else if gone() {
                return;
            }
        }
    }

    /// See [`crate::adapter::Adapter::help`]. `write` copies into the origin's memory: an address and
    /// an offset from it.
    pub(crate) fn help(
        &mut self,
        origin: TaskId,
        number: u32,
        from: SendRegion,
        write: impl FnOnce(u64, usize, SendRegion) -> io::Result<()>,
    ) -> bool {
        if self.refused || origin == self.task {
            return false;
        }
        let words = self.segment.share(origin as usize, self.task as usize);
        let len = from.len();
        let claimed = slices(len).and_then(|slices| claim(words, number, len as u64, slices));
        let Some((slice, addr)) = claimed else {
            return false;
        };
        let at = slice as usize * slice_len(len);
        self.refused = write(addr, at, from.part(at, slice_len(len))).is_err();
        finish(words, self.refused.then_some(slice));
        // The origin may sleep since nothing was left to it (D1, with the count as the frame).
        self.segment.task(origin as usize).bell.0.ring(self.fences);
        !self.refused
    }
}

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;
