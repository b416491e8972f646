//! Short operations on memory of other processes, which are gathered until something depends on them: the system copies many
//! blocks in the time of a few calls.
//!
//! - WQ1: a batch has operations of one kind on one target. Those on it are carried out in the order of their calls: another
//!   kind, and what is not gathered, first ends the batch. The system copies blocks in their order; elements that one batch
//!   updates are different ones.
//! - WQ2: each call after which a program may rely on an operation ends the batches that may have it. What has failed then is
//!   that call's error.
//! - WQ3: the first operation since such a call is not gathered: most programs wait for each one. A word for each target
//!   says whether there was one since ([`BEGUN`]), or there is a batch ([`GATHERED`]), which only who has the lock of the
//!   batches says and takes back. So where it says neither, there is no batch that another call would have to end before.
//! - WQ4: a thread that ends a batch has the lock of the batches, and may wait for the target's serialiser; whoever has the
//!   serialiser waits for nothing.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mpjdev::{RecvRegion, SendRegion};
use transport_lapi::{ForeignBytes, PeerBytes, RecvPart};

use super::remote::Remote;
use super::update::Update;
use crate::error::Error;

/// Batches, by target.
pub(super) struct Batches {
    /// What there was since the last wait (WQ3).
    words: Vec<AtomicU8>,
    batches: Mutex<Vec<Batch>>,
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
    /// Returns whether it may be gathered, with its first byte at an address: it is short, and updated elements are the same
    /// one, or have no byte in common.
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
        let batches = std::iter::repeat_with(Batch::default).take(ranks).collect();
        let words = std::iter::repeat_with(AtomicU8::default).take(ranks).collect();
        Self { words, batches: Mutex::new(batches) }
    }

    /// Begins an operation on bytes of a target: carries it out, or adds it to those that [`Batches::finish`] carries out.
    pub fn begin(&self, remote: Remote<'_>, operation: Short) -> Result<(), Error> {
        let word = &self.words[remote.rank() as usize];
        let first = word.compare_exchange(IDLE, BEGUN, Ordering::Relaxed, Ordering::Relaxed);
        if first.is_ok() {
            return operation.carry_out(remote);
        }
        let mut batches = self.all();
        let batch = &mut batches[remote.rank() as usize];
        if !batch.takes(remote.addr(), &operation) {
            batch.end(remote);
        }
        batch.add(remote.addr(), operation);
        word.store(GATHERED, Ordering::Relaxed);
        Ok(())
    }

    /// Carries out the operations on a target, bytes of which are given. [`Batches::finish`] tells what has failed.
    pub fn end(&self, remote: Remote<'_>) {
        if self.words[remote.rank() as usize].load(Ordering::Relaxed) == GATHERED {
            self.all()[remote.rank() as usize].end(remote);
        }
    }

    /// Does what [`Batches::end`] does before a program waits for nothing else (WQ2).
    ///
    /// # Errors
    /// The first one of gathered operations since this was called last.
    pub fn finish(&self, remote: Remote<'_>) -> Result<(), Error> {
        let word = &self.words[remote.rank() as usize];
        let begun = word.compare_exchange(BEGUN, IDLE, Ordering::Relaxed, Ordering::Relaxed);
        if begun != Err(GATHERED) {
            return Ok(());
        }
        let mut batches = self.all();
        let batch = &mut batches[remote.rank() as usize];
        batch.end(remote);
        word.store(IDLE, Ordering::Relaxed);
        batch.failed.take().map_or(Ok(()), Err)
    }

    fn all(&self) -> MutexGuard<'_, Vec<Batch>> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
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
            self.failed.get_or_insert(why);
        }
        self.places.clear();
        self.data.clear();
        self.into.clear();
        self.updated = [0; WORDS];
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
