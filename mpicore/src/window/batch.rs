//! Short operations on memory of other processes, which are gathered until something depends on them: the system copies
//! many blocks in the time of a few calls.
//!
//! - WQ1: a batch has operations of one kind on one target. It ends before an operation on the target that is of another
//!   kind, or that is not gathered. So operations on a target are carried out in the order of their calls: the system copies
//!   blocks in their order, and a batch updates no element twice.
//! - WQ2: each call after which a program may rely on an operation ends the batches that may have it. The error of such an
//!   operation is that call's error.
//! - WQ3: the first operation since such a call is not gathered, since most programs wait for each one. A word for each
//!   target says whether there was one ([`BEGUN`]), and whether there is a batch, or an error to be told ([`GATHERED`]).
//!   Only who has the lock of the batch sets or clears GATHERED. So IDLE and BEGUN mean that there is no batch. It is
//!   cleared by Release, after the operations, and read by Acquire.
//! - WQ4: a thread that ends a batch has its lock, and may wait for the target's serialiser. Who has a serialiser waits for
//!   no lock of a batch.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mpjdev::{RecvRegion, SendRegion};
use transport_lapi::{ForeignBytes, PeerBytes, RecvPart};

use super::remote::Remote;
use super::update::Update;
use crate::error::Error;

/// Batches, by target.
pub(super) struct Batches(Vec<OfTarget>);

#[derive(Default)]
struct OfTarget {
    /// What there was since the last wait (WQ3).
    word: AtomicU8,
    batch: Mutex<Batch>,
}

const IDLE: u8 = 0;
const BEGUN: u8 = 1;
const GATHERED: u8 = 2;

/// Operations on one target.
#[derive(Default)]
struct Batch {
    kind: Option<Gathered>,
    /// Where they are, those side by side as one.
    places: Vec<PeerBytes>,
    /// Their data, one after the other; of gets, room for them.
    data: Vec<u8>,
    /// Where gets go, in order.
    into: Vec<RecvRegion>,
    /// Which elements are updated: a bit for each, and for others with the same remainder.
    updated: [u64; WORDS],
    /// Why operations have failed, until a call says so.
    failed: Option<Error>,
}

/// What the operations of a batch are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gathered {
    Puts,
    Gets,
    Updates(Update),
}

/// A short operation.
pub(super) enum Short {
    Put(SendRegion),
    Get(RecvRegion),
    /// Of one element.
    Update(Update, SendRegion),
}

/// The most blocks of a batch, and the most bytes.
const BLOCKS: usize = 64;
const BYTES: usize = 16 << 10;

/// The most bytes of an operation that is gathered.
const SHORT: usize = 512;

/// The most bytes of an element that is.
const ELEMENT: usize = 32;

/// Words of bits for elements that are updated.
const WORDS: usize = 16;

impl Short {
    /// Returns whether it may be gathered, with its first byte at an address. An update has to be of an aligned element: two
    /// of those of one length are the same, or have no byte in common.
    pub fn is_short_at(&self, addr: u64) -> bool {
        let len = self.len();
        let is_apart = match self {
            Self::Update(update, _) => {
                len == update.size() && len <= ELEMENT && addr % len as u64 == 0
            }
            _ => true,
        };
        len <= SHORT && is_apart
    }

    /// Carries it out on bytes of a rank, which are as many.
    fn carry_out(self, remote: Remote<'_>) -> Result<(), Error> {
        match self {
            Self::Put(from) => remote.store(0, from.foreign()),
            Self::Get(mut into) => remote.load(0, into.part(0, usize::MAX)),
            Self::Update(update, from) => {
                let (mut given, mut now) = ([0; ELEMENT], [0; ELEMENT]);
                let [given, now] = [&mut given, &mut now].map(|room| &mut room[..from.len()]);
                from.foreign().copy_to(given);
                remote.serialise(|| {
                    remote.load(0, RecvPart::of_slice(now))?;
                    update.apply(given, now);
                    remote.store(0, ForeignBytes::from_slice(now))
                })
            }
        }
    }

    fn kind(&self) -> Gathered {
        match self {
            Self::Put(_) => Gathered::Puts,
            Self::Get(_) => Gathered::Gets,
            Self::Update(update, _) => Gathered::Updates(*update),
        }
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Put(from) | Self::Update(_, from) => from.len(),
            Self::Get(into) => into.len(),
        }
    }
}

impl Batches {
    /// Makes empty batches for so many ranks.
    pub fn new(ranks: usize) -> Self {
        Self(std::iter::repeat_with(OfTarget::default).take(ranks).collect())
    }

    /// Begins an operation on bytes of a target: carries it out, or adds it to those that [`Batches::finish`] carries out,
    /// which tells in either case what has failed.
    pub fn begin(&self, remote: Remote<'_>, operation: Short) {
        let of_target = &self.0[remote.rank() as usize];
        let first = of_target.replace(IDLE, BEGUN);
        if first.is_ok() {
            if let Err(why) = operation.carry_out(remote) {
                let mut batch = of_target.batch();
                batch.fail(why);
                of_target.word.store(GATHERED, Ordering::Relaxed);
            }
            return;
        }
        let mut batch = of_target.batch();
        if !batch.takes(remote.addr(), &operation) {
            batch.end(remote);
        }
        batch.add(remote.addr(), operation);
        of_target.word.store(GATHERED, Ordering::Relaxed);
    }

    /// Carries out what was gathered for a target, bytes of which are given.
    pub fn end(&self, remote: Remote<'_>) {
        let of_target = &self.0[remote.rank() as usize];
        if of_target.word.load(Ordering::Acquire) == GATHERED {
            of_target.batch().end(remote);
        }
    }

    /// Carries it out, too, before a call after which a program relies on it (WQ2).
    ///
    /// # Errors
    /// The first one of operations that were begun since this was called last.
    pub fn finish(&self, remote: Remote<'_>) -> Result<(), Error> {
        let of_target = &self.0[remote.rank() as usize];
        if of_target.replace(BEGUN, IDLE) != Err(GATHERED) {
            return Ok(());
        }
        let mut batch = of_target.batch();
        batch.end(remote);
        of_target.word.store(IDLE, Ordering::Release); // SYNC: batch of a window
        batch.failed.take().map_or(Ok(()), Err)
    }
}

impl OfTarget {
    fn replace(&self, from: u8, to: u8) -> Result<u8, u8> {
        self.word.compare_exchange(from, to, Ordering::Acquire, Ordering::Acquire) // SYNC: batch of a window
    }

    fn batch(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Batch {
    /// Returns whether an operation at an address may be added.
    fn takes(&self, addr: u64, operation: &Short) -> bool {
        let is_alike = self.kind.is_none_or(|kind| kind == operation.kind());
        let has_room = self.places.len() < BLOCKS && self.data.len() + operation.len() <= BYTES;
        let is_new = match operation {
            Short::Update(..) => {
                let (word, bit) = bit_of(addr, operation.len());
                self.updated[word] & bit == 0
            }
            _ => true,
        };
        is_alike && has_room && is_new
    }

    fn add(&mut self, addr: u64, operation: Short) {
        let len = operation.len();
        self.kind = Some(operation.kind());
        match self.places.last_mut().filter(|last| last.addr + last.len as u64 == addr) {
            Some(last) => last.len += len,
            None => self.places.push(PeerBytes { addr, len }),
        }
        let start = self.data.len();
        self.data.resize(start + len, 0);
        match operation {
            Short::Put(from) => drop(from.foreign().copy_to(&mut self.data[start..])),
            Short::Get(into) => self.into.push(into),
            Short::Update(_, from) => {
                from.foreign().copy_to(&mut self.data[start..]);
                let (word, bit) = bit_of(addr, len);
                self.updated[word] |= bit;
            }
        }
    }

    /// Carries the operations out.
    fn end(&mut self, remote: Remote<'_>) {
        let Some(kind) = self.kind.take() else { return };
        let done = match kind {
            Gathered::Puts => remote.write(&self.places, ForeignBytes::from_slice(&self.data)),
            Gathered::Gets => self.get(remote),
            Gathered::Updates(update) => remote.serialise(|| {
                let mut now = vec![0; self.data.len()];
                remote.read(&self.places, RecvPart::of_slice(&mut now))?;
                update.apply(&self.data, &mut now);
                remote.write(&self.places, ForeignBytes::from_slice(&now))
            }),
        };
        if let Err(why) = done {
            self.fail(why);
        }
        self.places.clear();
        self.data.clear();
        self.into.clear();
        self.updated = [0; WORDS];
    }

    /// Notes why an operation has failed, if it is the first one.
    fn fail(&mut self, why: Error) {
        self.failed.get_or_insert(why);
    }

    fn get(&mut self, remote: Remote<'_>) -> Result<(), Error> {
        remote.read(&self.places, RecvPart::of_slice(&mut self.data))?;
        let mut start = 0;
        for into in &mut self.into {
            let end = start + into.len();
            into.store(0, ForeignBytes::from_slice(&self.data[start..end]));
            start = end;
        }
        Ok(())
    }
}

/// Returns the word and the bit of an element of `len` bytes at an address.
fn bit_of(addr: u64, len: usize) -> (usize, u64) {
    let element = addr / len as u64;
    ((element / 64) as usize % WORDS, 1 << (element % 64))
}

#[cfg(test)]
#[expect(unsafe_code, reason = "the test describes a static as a region")]
mod tests {
    use super::*;
    use crate::op::{ElementKind, Predefined};

    #[test]
    fn batches_are_of_one_kind_and_update_elements_once() {
        let put = |len| Short::Put(region(len));
        let update = |op| {
            let update = Update::plain(op, ElementKind::I64).expect("it is defined");
            Short::Update(update, region(8))
        };
        let mut batch = Batch::default();
        for addr in [80, 88, 80, 104] {
            assert!(batch.takes(addr, &put(8)));
            batch.add(addr, put(8));
        }
        let places: Vec<_> = batch.places.iter().map(|place| (place.addr, place.len)).collect();
        assert_eq!(places, [(80, 16), (80, 8), (104, 8)]);
        assert!(batch.takes(112, &put(512)) && !batch.takes(112, &put(BYTES)));
        assert!(!batch.takes(112, &update(Predefined::Sum)));

        let mut batch = Batch::default();
        for addr in [80, 96] {
            batch.add(addr, update(Predefined::Sum));
        }
        let takes = |addr, op| batch.takes(addr, &update(op));
        assert!(takes(88, Predefined::Sum) && !takes(88, Predefined::Max));
        assert!(!takes(96, Predefined::Sum), "the second one would not see the first one");
    }

    fn region(len: usize) -> SendRegion {
        static ROOM: [u8; BYTES] = [0; BYTES];
        // SAFETY: G1: nobody writes the static.
        unsafe { SendRegion::new(ROOM.as_ptr(), len) }
    }
}
