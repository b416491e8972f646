//! Shared gets: long reads that both of their ends carry out.
//!
//! The bytes of a get move from the target's memory to the origin's. Either end can copy them: the origin reads from
//! the target's memory, the target writes into the origin's. In a shared get both do. An end *claims* a slice of the
//! bytes, copies it and claims the next one, the origin from the beginning upwards, the target from the end downwards,
//! until they meet. A target that computes claims nothing and costs nothing: the origin copies everything.
//!
//! For each ordered pair of tasks there is one [`Words`] in shared memory, and so one such get at a time. One word
//! contains what is not yet claimed, and a claim is a compare-exchange of it; another counts what the target has
//! written. The get is over when nothing is left to claim and the target has written all that it has claimed. The
//! adapters for threads and for processes ([`crate::adapters::local`]) both use [`Shares`], and differ in how they
//! copy.
//!
//! - U1: each byte is claimed by one end only. [`Words::claims`] contains the number of the get and the range left
//!   between the two ends; a claim is a compare-exchange of both together. Only the origin sets another number, and it
//!   closes the get by claiming all that is left.
//! - U2: the target writes only what it has claimed, and counts it after writing. The origin knows how much the target
//!   has claimed: all that it has not claimed itself. When the count has reached that and nothing is left to claim,
//!   nobody writes any more. Only then does the get end, and only after that are the words used for another one.
//! - U3: the destination is written before the number, and stays until the get has ended. So if a target reads it after
//!   seeing the number and before claiming a slice of that get, it belongs to that get.
//! - U4: a target that could not write returns its slice together with the count, and helps no more. The origin copies
//!   that slice.
//! - U5: the words are untrusted. They are checked before they are used, and an impossible count ends the get with an
//!   error. The address is one in another task's memory, which this task cannot check; so a checksum, the seal, is
//!   stored with it, which reveals damage to either.
//! - U6: a get that fails or is ended early is over when the target has written what it had claimed. A process that is
//!   gone writes nothing; one that is stopped in the middle of a slice delays the end until it continues or is gone.
//!   Nothing here waits for that: callers try again.

use std::io;
use std::sync::Arc;

use crate::adapter::{AdapterError, Advance, TaskId};
use crate::adapters::local::doorbell::Fences;
use crate::adapters::local::layout::SHARE_BYTES;
use crate::adapters::local::segment::Segment;
use crate::memory::region::{RecvPart, RecvRegion, RemoteRegion, SendRegion};
use crate::platform::sync::{AtomicU64, Ordering};

/// Claims are counted in units of this many bytes, or of more in a very long get. Starting a copy costs as much as
/// copying some ten thousand bytes, so smaller units would not pay.
const UNIT: usize = 32 << 10;
/// Most units: a claim has 16 bits for each end.
const MAX_UNITS: usize = u16::MAX as usize;
/// Smallest slice that an end takes of the other end's half, so that the origin of a get without help does not start
/// more copies than necessary.
const SMALLEST: usize = 128 << 10;
/// Largest slice: a task polls for other messages after each.
const LARGEST: usize = 512 << 10;

/// The words that both ends write: the only memory that they share for a get.
#[repr(C, align(128))]
pub(crate) struct Words {
    /// See [`Claims`].
    claims: AtomicU64,
    /// See [`Done`]. The origin sets it to 0 before it opens the get; then only the target writes it.
    done: AtomicU64,
    /// The destination's address in the origin's memory (U3).
    addr: AtomicU64,
    /// The length of the get in bytes.
    len: AtomicU64,
    /// See [`seal`].
    seal: AtomicU64,
}

const _: () = assert!(cfg!(loom) || size_of::<Words>() == SHARE_BYTES);

/// The seal of these values (U5): a change of any of them changes it.
fn seal(number: u32, addr: u64, len: u64) -> u64 {
    let mixed = (addr ^ len.rotate_left(40) ^ u64::from(number).rotate_left(20)).wrapping_mul(ODD);
    mixed ^ mixed >> 32
}

/// An odd multiplier, which maps different numbers to different ones: the golden ratio.
const ODD: u64 = 0x9E37_79B9_7F4A_7C15;

/// How a get is divided between its ends (U1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Claims {
    /// Number of the get; 32 bits.
    number: u32,
    /// Units that the origin has claimed, counted from the beginning; 16 bits.
    low: u16,
    /// The first unit that the target has claimed; it has all from there to the end; 16 bits.
    high: u16,
}

impl Claims {
    fn decode(word: u64) -> Self {
        Self { number: (word >> 32) as u32, low: (word >> 16) as u16, high: word as u16 }
    }

    fn encode(self) -> u64 {
        u64::from(self.number) << 32 | u64::from(self.low) << 16 | u64::from(self.high)
    }

    /// How many units an end claims next that has claimed `mine`: the rest of its own half first, then half of all that
    /// is left.
    fn share(self, mine: u16, measure: Measure) -> u16 {
        let left = self.high - self.low;
        let missing = measure.units.div_ceil(2).saturating_sub(mine);
        let wanted = if missing > 0 { missing } else { measure.smallest.max(left / 2) };
        wanted.min(measure.largest).min(left)
    }
}

/// What a target has done. The low half of the word counts units; the high half contains the slice that it returned, as
/// first unit and length, or 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Done {
    units: u32,
    handed_back: Option<Slice>,
}

impl Done {
    fn decode(word: u64) -> Self {
        let slice = Slice { first: (word >> 48) as u16, units: (word >> 32) as u16 };
        Self { units: word as u32, handed_back: (slice.units > 0).then_some(slice) }
    }

    fn encode(self) -> u64 {
        let back = self.handed_back.unwrap_or(Slice { first: 0, units: 0 });
        u64::from(back.first) << 48 | u64::from(back.units) << 32 | u64::from(self.units)
    }
}

/// Units that one end has claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slice {
    first: u16,
    units: u16,
}

/// How the bytes of a get are divided into units; the same at both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Measure {
    len: usize,
    unit: usize,
    units: u16,
    /// Length of the smallest slice and of the largest one, in units.
    smallest: u16,
    largest: u16,
}

impl Measure {
    fn of(len: usize) -> Self {
        let unit = len.div_ceil(MAX_UNITS).max(1).next_multiple_of(UNIT);
        let units = len.div_ceil(unit) as u16;
        let slice = |bytes: usize| (bytes / unit).max(1) as u16;
        Self { len, unit, units, smallest: slice(SMALLEST), largest: slice(LARGEST) }
    }

    /// Offset of a slice's first byte, and its length in bytes.
    fn bytes(self, slice: Slice) -> (usize, usize) {
        let begin = self.unit * usize::from(slice.first);
        (begin, (self.unit * usize::from(slice.units)).min(self.len - begin))
    }
}

/// The words contain values that the protocol never writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShareDamage;

/// What the origin does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextSlice {
    /// Copy this slice.
    Copy(Slice),
    /// Nothing is left to copy except what the target has claimed.
    Wait,
    /// All bytes have arrived.
    Over,
}

/// The origin's end of one get.
#[derive(Debug)]
pub(crate) struct Opened {
    number: u32,
    measure: Measure,
    /// Units that the origin has claimed.
    mine: u16,
    /// Whether the origin copies, or has copied, the slice that the target returned.
    taken_back: bool,
}

impl Opened {
    /// Opens the words to claims. The previous get, if any, has ended (U2).
    pub(crate) fn new(words: &Words, number: u32, addr: u64, measure: Measure) -> Self {
        words.done.store(0, Ordering::Relaxed);
        words.addr.store(addr, Ordering::Relaxed);
        words.len.store(measure.len as u64, Ordering::Relaxed);
        words.seal.store(seal(number, addr, measure.len as u64), Ordering::Relaxed);
        let claims = Claims { number, low: 0, high: measure.units };
        words.claims.store(claims.encode(), Ordering::Release); // SYNC: share opens
        Self { number, measure, mine: 0, taken_back: false }
    }

    /// Claims a slice for the origin, or returns that it must wait or that the get is over.
    pub(crate) fn next(&mut self, words: &Words) -> Result<NextSlice, ShareDamage> {
        loop {
            let seen = words.claims.load(Ordering::Relaxed);
            let claims = self.check(Claims::decode(seen))?;
            if claims.low == claims.high {
                return self.last(words, claims);
            }
            let slice = Slice { first: claims.low, units: claims.share(claims.low, self.measure) };
            let claimed = Claims { low: claims.low + slice.units, ..claims };
            // Relaxed: the origin reads nothing that a claim of the target publishes.
            if exchange(&words.claims, seen, claimed) {
                self.mine = claimed.low;
                return Ok(NextSlice::Copy(slice));
            }
        }
    }

    /// Checks claims that were loaded (U5).
    fn check(&self, claims: Claims) -> Result<Claims, ShareDamage> {
        let Claims { number, low, high } = claims;
        let right = number == self.number && low == self.mine;
        if right && low <= high && high <= self.measure.units {
            Ok(claims)
        } else {
            Err(ShareDamage)
        }
    }

    /// The next step when all units are claimed.
    fn last(&mut self, words: &Words, claims: Claims) -> Result<NextSlice, ShareDamage> {
        let done = Done::decode(words.done.load(Ordering::Acquire)); // SYNC: share done
        let theirs = self.measure.units - claims.high;
        if done.units < theirs.into() {
            return Ok(NextSlice::Wait);
        }
        match done.handed_back {
            _ if done.units > theirs.into() => Err(ShareDamage),
            Some(Slice { first, units })
                if units > theirs || first > self.measure.units - units =>
            {
                Err(ShareDamage)
            }
            Some(slice) if !self.taken_back => {
                self.taken_back = true;
                Ok(NextSlice::Copy(slice))
            }
            _ => Ok(NextSlice::Over),
        }
    }

    /// Claims everything that is left, so that the target starts no further slice.
    pub(crate) fn close(&mut self, words: &Words) -> Result<(), ShareDamage> {
        loop {
            let seen = words.claims.load(Ordering::Relaxed);
            let claims = self.check(Claims::decode(seen))?;
            let closed = Claims { low: claims.high, ..claims };
            if exchange(&words.claims, seen, closed) {
                self.mine = closed.low;
                return Ok(());
            }
        }
    }

    /// Whether nobody writes any more, after [`Opened::close`] (U2). Damaged words tell nothing about that, so the
    /// result is then `true`.
    pub(crate) fn is_settled(&mut self, words: &Words) -> bool {
        !matches!(self.next(words), Ok(NextSlice::Wait))
    }
}

/// Replaces the claims, unless they have changed. Relaxed, since claims publish nothing: the opening and the count
/// publish what the other end must see.
fn exchange(word: &AtomicU64, seen: u64, claims: Claims) -> bool {
    let (taken, refused) = (Ordering::Relaxed, Ordering::Relaxed);
    word.compare_exchange(seen, claims.encode(), taken, refused).is_ok()
}

/// Claims a slice of get `number`, which must have this measure, for the target. Returns the slice, and the address of
/// the destination.
pub(crate) fn claim(words: &Words, number: u32, measure: Measure) -> Option<(Slice, u64)> {
    loop {
        let seen = words.claims.load(Ordering::Acquire); // SYNC: share opens
        let claims = Claims::decode(seen);
        let Claims { low, high, .. } = claims;
        let addr = words.addr.load(Ordering::Relaxed);
        let len = words.len.load(Ordering::Relaxed);
        let whole = words.seal.load(Ordering::Relaxed) == seal(number, addr, len);
        let known = claims.number == number && len == measure.len as u64 && high <= measure.units;
        if !known || !whole || low >= high {
            return None;
        }
        let units = claims.share(measure.units - high, measure);
        let claimed = Claims { high: high - units, ..claims };
        if exchange(&words.claims, seen, claimed) {
            return Some((Slice { first: claimed.high, units }, addr));
        }
    }
}

/// Counts the slice that the target claimed, as written or as returned (U4).
pub(crate) fn finish(words: &Words, slice: Slice, written: bool) {
    let handed_back = (!written).then_some(slice);
    let done = Done { units: slice.units.into(), handed_back };
    words.done.fetch_add(done.encode(), Ordering::Release); // SYNC: share done
}

/// A get in progress at its origin.
struct SharedGet {
    opened: Opened,
    remote: RemoteRegion,
    offset: u64,
    into: RecvRegion,
    stage: Stage,
}

/// The state of a get at its origin.
enum Stage {
    /// Slices are being copied.
    Open,
    /// The get has failed with this error, which is reported when it is over (U6).
    Failed(AdapterError),
    /// The get was ended early, and is not over yet.
    GivenUp,
}

impl SharedGet {
    /// Starts no further slice. Returns whether nobody writes any more (U6).
    fn is_over(&mut self, words: &Words, gone: impl FnOnce() -> bool) -> bool {
        self.opened.close(words).is_err() || self.opened.is_settled(words) || gone()
    }
}

/// One task's part in shared gets: as their origin, one per target, and as the target of others.
pub(crate) struct Shares {
    task: TaskId,
    fences: Fences,
    /// This task's gets, by target, up to the last target that there was one from.
    gets: Vec<Option<SharedGet>>,
    /// Number of the last get.
    last: u32,
    /// Whether the system has refused a write; this task then helps no more.
    refused: bool,
    segment: Arc<Segment>,
}

impl Shares {
    pub(crate) fn new(segment: Arc<Segment>, task: TaskId, fences: Fences) -> Self {
        Self { task, fences, gets: Vec::new(), last: 0, refused: false, segment }
    }

    /// Whether a get of `len` bytes from `target` can be shared: it has at least two units, and its ends are different
    /// tasks.
    pub(crate) fn can_divide(&self, target: TaskId, len: usize) -> bool {
        target != self.task && Measure::of(len).units >= 2
    }

    /// Whether a get from `target` is being shared now.
    pub(crate) fn is_busy(&self, target: TaskId) -> bool {
        self.gets.get(target as usize).is_some_and(Option::is_some)
    }

    /// See [`crate::adapter::CooperativeCopy::begin`]. The caller has checked that it is possible.
    pub(crate) fn begin(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: RecvRegion,
    ) -> u32 {
        self.last = self.last.wrapping_add(1);
        let words = self.segment.share(self.task as usize, target as usize);
        let opened = Opened::new(words, self.last, into.addr(), Measure::of(into.len()));
        let get = SharedGet { opened, remote, offset, into, stage: Stage::Open };
        let place = target as usize;
        if place >= self.gets.len() {
            self.gets.resize_with(place + 1, || None);
        }
        self.gets[place] = Some(get);
        self.last
    }

    /// See [`crate::adapter::CooperativeCopy::advance`]. `read` copies from the target's memory; `gone` returns whether
    /// the target will never write again.
    pub(crate) fn advance(
        &mut self,
        target: TaskId,
        read: impl FnOnce(RemoteRegion, u64, RecvPart<'_>) -> Result<(), AdapterError>,
        gone: impl FnOnce() -> bool,
    ) -> Result<Advance, AdapterError> {
        let words = self.segment.share(self.task as usize, target as usize);
        let place = &mut self.gets[target as usize];
        let get = place.as_mut().expect("the transport advances gets that it has begun");
        if matches!(get.stage, Stage::Open) {
            let copied = match get.opened.next(words) {
                Ok(NextSlice::Wait) => return Ok(Advance::Waiting),
                Ok(NextSlice::Over) => {
                    *place = None;
                    return Ok(Advance::Complete);
                }
                Ok(NextSlice::Copy(slice)) => {
                    let (at, len) = get.opened.measure.bytes(slice);
                    read(get.remote, get.offset + at as u64, get.into.part(at, len))
                }
                Err(ShareDamage) => {
                    let what = "the division of a get is not one that its ends make";
                    Err(AdapterError::Corrupt { origin: target, what })
                }
            };
            match copied {
                Ok(()) => return Ok(Advance::Copied),
                Err(error) => get.stage = Stage::Failed(error),
            }
        }
        let is_failed = matches!(get.stage, Stage::Failed(_));
        match place.take_if(|get| is_failed && get.is_over(words, gone)) {
            Some(SharedGet { stage: Stage::Failed(error), into, .. }) if error.is_refusal() => {
                Ok(Advance::Refused(into))
            }
            Some(SharedGet { stage: Stage::Failed(error), .. }) => Err(error),
            _ => Ok(Advance::Waiting),
        }
    }

    /// Ends the get from `target`, if there is one. Returns whether nobody writes any more (U6).
    pub(crate) fn end(&mut self, target: TaskId, gone: impl FnOnce() -> bool) -> bool {
        let Some(place) = self.gets.get_mut(target as usize) else { return true };
        let words = self.segment.share(self.task as usize, target as usize);
        if let Some(get) = place.as_mut().filter(|get| matches!(get.stage, Stage::Open)) {
            get.stage = Stage::GivenUp;
        }
        let over = place.take_if(|get| get.is_over(words, gone));
        over.is_some() || place.is_none()
    }

    /// See [`crate::adapter::CooperativeCopy::assist`]. `write` copies into the origin's memory, to an address and an
    /// offset from it.
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
        let measure = Measure::of(from.len());
        let Some((slice, addr)) = claim(words, number, measure) else {
            return false;
        };
        let (at, len) = measure.bytes(slice);
        let written = write(addr, at, from.part(at, len)).is_ok();
        finish(words, slice, written);
        self.refused = !written;
        // The origin may be asleep because nothing was left for it to copy (D1, with the count as the frame).
        self.segment.task(origin as usize).bell.0.ring(self.fences);
        written
    }
}

#[cfg(test)]
impl Shares {
    /// Claims a slice as the target would, but never counts it.
    pub(crate) fn claim_in_the_name_of_target(&self, target: TaskId, number: u32) {
        let get = self.gets[target as usize].as_ref().expect("the test has begun it");
        let words = self.segment.share(self.task as usize, target as usize);
        claim(words, number, get.opened.measure).expect("something is left");
    }
}

#[cfg(all(test, loom))]
#[expect(unsafe_code, reason = "the models lend cells as the tasks' memory")]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;
