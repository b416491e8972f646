//! Windows in memory that all ranks have mapped, which are on one host: an origin carries its operations out itself,
//! while the target computes. Only what wakes a rank that sleeps is a message.
//!
//! - DW1: the memory is one mapping ([`MappedMemory`]): a gate for each rank, then the parts of the ranks. It lasts as
//!   long as the window, which ends when all ranks have ended it.
//! - DW2: all updates of elements, by whichever rank, exclude each other by the target's serialiser ([`super::gate`]),
//!   whatever the sizes and types of the elements are; no operation is a read-modify-write of the processor. Puts and
//!   gets are copies (WB1).
//! - DW3: an operation has been carried out when its call returns. So a flush orders memory and does nothing else.

#![expect(unsafe_code, reason = "memory that ranks share")]

use std::sync::atomic::{AtomicU8, AtomicU32};

use mpjdev::{Call, Device, RecvRegion, SendRegion, Sink};
use transport_lapi::{ForeignBytes, MappedMemory, RecvPart, SharedBytes};

use super::gate::{Gate, Gated, Signal, Turn};
use super::head::{Head, Kind, Shape};
use super::operation::Work;
use super::place::Place;
use super::update::Update;
use super::{Inner, LockKind};
use crate::communicator::Communicator;
use crate::error::Error;

/// The memory of all ranks of a window.
pub(super) struct Direct {
    memory: MappedMemory,
    parts: Vec<Part>,
}

/// The part of a rank.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// Where it begins in the memory.
    at: usize,
    len: usize,
    /// Bytes by which a displacement counts.
    unit: usize,
}

/// The multiple of bytes at which parts begin that need not follow each other.
const PAGE: usize = 4096;

/// Rounds of progress in which a rank looks for a signal before it sleeps: on a processor of its own, some ten
/// microseconds.
const MANY_LOOKS: u32 = 500;
const FEW_LOOKS: u32 = 10;

/// How often a wait looks before it sleeps.
pub(super) fn looks(device: &Device) -> u32 {
    match device.shares_processors() {
        true => FEW_LOOKS,
        false if device.polls() => MANY_LOOKS,
        false => 0,
    }
}

/// The most bytes of an offer.
const OFFER: usize = 240;

impl Direct {
    /// Makes memory of `size` bytes on this rank, which contains zeros. Collective. `None`, on all ranks, if they are
    /// not all on one host, or cannot share so much. Without `is_contiguous`, each part begins at a page.
    ///
    /// # Errors
    /// The loss of a member; what made the device unusable.
    pub fn agree(
        communicator: &Communicator,
        (size, unit): (usize, usize),
        is_contiguous: bool,
    ) -> Result<Option<Self>, Error> {
        let (device, rank) = (communicator.device(), communicator.rank());
        let is_here = |rank| device.host_of(rank) == device.host();
        if device.has_hosts() && !communicator.group().iter().all(is_here) {
            return Ok(None);
        }
        let words = vec![size as u64, unit as u64];
        let words = communicator.gather_words(Call::WinCreate, words)?;
        let ranks = communicator.size() as usize;
        let gates = gate_bytes(ranks).saturating_mul(ranks);
        let mut end = gates.saturating_add(PAGE - 1) / PAGE * PAGE;
        let mut parts = Vec::with_capacity(ranks);
        for words in words.chunks_exact(2) {
            let [len, unit] =
                [words[0], words[1]].map(|word| usize::try_from(word).unwrap_or(usize::MAX));
            parts.push(Part { at: end, len, unit });
            end = end.saturating_add(len);
            if !is_contiguous {
                end = end.checked_next_multiple_of(PAGE).unwrap_or(usize::MAX);
            }
        }
        let made = match rank {
            0 => MappedMemory::create(end).ok(),
            _ => None,
        };
        let offer = made.as_ref().map_or(&[][..], |(_, offer)| offer.bytes());
        let words = communicator.bcast_words(Call::WinCreate, to_words(offer), 0)?;
        let memory = match made {
            Some((memory, offer)) => Some((memory, Some(offer))),
            None => MappedMemory::open(&of_words(&words), end).ok().map(|memory| (memory, None)),
        };
        let Part { at, len, .. } = parts[rank as usize];
        let gate = gate_bytes(ranks);
        let memory = memory.filter(|(memory, _)| {
            let gate = memory.reserve(rank as usize * gate, gate);
            gate.and(memory.reserve(at, len)).is_ok()
        });
        // The offer stands until all ranks have answered. A rank without the memory lets the others know.
        let is_there = u64::from(memory.is_some());
        let are_there = communicator.gather_words(Call::WinCreate, vec![is_there])?;
        let memory = memory.filter(|_| !are_there.contains(&0));
        Ok(memory.map(|(memory, _)| Self { memory, parts }))
    }

    /// Returns whether there is such a rank.
    #[inline]
    pub fn has(&self, rank: u32) -> bool {
        (rank as usize) < self.parts.len()
    }

    /// Returns where the part of a rank is.
    pub fn part(&self, rank: u32) -> *mut u8 {
        self.memory.as_mut_ptr().wrapping_add(self.parts[rank as usize].at)
    }

    /// Stores bytes in the part of a rank, at a displacement in its units. Returns whether they lie inside of it.
    #[inline]
    pub fn store(&self, from: SendRegion, rank: u32, displacement: i64) -> bool {
        let Some(place) = self.bytes(rank, displacement, from.len()) else { return false };
        // SAFETY: SB1, by DW1 and WB1: inside of the mapping.
        unsafe { SharedBytes::new(place, from.len()) }.store(from.foreign());
        true
    }

    /// Copies bytes of the part of a rank like [`Direct::store`].
    #[inline]
    pub fn load(&self, mut into: RecvRegion, rank: u32, displacement: i64) -> bool {
        let Some(place) = self.bytes(rank, displacement, into.len()) else { return false };
        // SAFETY: as in `store`.
        unsafe { SharedBytes::new(place, into.len()) }.load(into.part(0, usize::MAX));
        true
    }

    /// Returns where so many bytes of the part of a rank are; `None` if they do not lie inside.
    #[inline]
    fn bytes(&self, rank: u32, displacement: i64, len: usize) -> Option<*mut u8> {
        // The general path tells forks that they are some.
        let part = self.parts.get(rank as usize).filter(|_| !self.memory.is_fork())?;
        let at = usize::try_from(displacement).ok()?.checked_mul(part.unit)?;
        let is_inside = at.checked_add(len)? <= part.len;
        is_inside.then(|| self.memory.as_mut_ptr().wrapping_add(part.at + at))
    }

    /// Returns the place at a rank, which has been checked to lie inside of its part.
    pub fn place<'m>(&'m self, rank: u32, displacement: i64, shape: &'m Shape) -> Place<'m> {
        let (low, high) = shape.bounds();
        let first = self.part(rank).wrapping_offset(displacement as isize + low);
        // SAFETY: as in `store`.
        let bytes = unsafe { SharedBytes::new(first, high.abs_diff(low)) };
        Place::new(bytes, -low, shape)
    }

    /// Returns the place of a block at a rank, at a displacement in its units; `None` if it does not lie inside of its
    /// part.
    #[inline]
    pub fn plain_place<'m>(
        &'m self,
        rank: u32,
        displacement: i64,
        block: &'m Shape,
    ) -> Option<Place<'m>> {
        let first = self.bytes(rank, displacement, block.size())?;
        // SAFETY: as in `store`.
        Some(Place::new(unsafe { SharedBytes::new(first, block.size()) }, 0, block))
    }

    /// Returns what the ranks agree on for a target.
    fn gated(&self, target: u32) -> Gated<'_> {
        let ranks = self.parts.len();
        let at = self.memory.as_mut_ptr().wrapping_add(target as usize * gate_bytes(ranks));
        // SAFETY: DW1: so many bytes of the mapping, which begins at a page, are the gate of this rank; all processes
        // access them by these atomics only, for which any bytes are values.
        unsafe {
            let holders = at.wrapping_add(size_of::<Gate>());
            let queue = holders.wrapping_add(ranks.next_multiple_of(size_of::<AtomicU32>()));
            let signals = queue.wrapping_add(ranks * size_of::<AtomicU32>());
            Gated {
                gate: &*at.cast::<Gate>(),
                holders: std::slice::from_raw_parts(holders.cast::<AtomicU8>(), ranks),
                queue: std::slice::from_raw_parts(queue.cast::<AtomicU32>(), ranks),
                signals: std::slice::from_raw_parts(signals.cast::<AtomicU32>(), 2 * ranks),
            }
        }
    }
}

/// The bytes of a gate with its lists.
fn gate_bytes(ranks: usize) -> usize {
    let lists = ranks.next_multiple_of(size_of::<AtomicU32>()) + 3 * ranks * size_of::<AtomicU32>();
    (size_of::<Gate>() + lists).next_multiple_of(align_of::<Gate>())
}

/// Returns bytes as the words of an offer: their number, then so many.
fn to_words(bytes: &[u8]) -> Vec<u64> {
    let mut words = vec![bytes.len() as u64];
    words.extend(bytes.chunks(8).map(|bytes| {
        let mut padded = [0; 8];
        padded[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(padded)
    }));
    // What is too long is no offer.
    words.resize(1 + OFFER / 8, 0);
    words
}

fn of_words(words: &[u64]) -> Vec<u8> {
    let (len, words) = words.split_first().unwrap_or((&0, &[]));
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    bytes.take(usize::try_from(*len).unwrap_or(usize::MAX)).collect()
}

impl Inner {
    /// Returns what the ranks agree on for a target.
    ///
    /// # Errors
    /// In a fork, which does not have the memory.
    fn gated<'d>(&self, direct: &'d Direct, target: u32) -> Result<Gated<'d>, Error> {
        if direct.memory.is_fork() {
            // The error says so.
            self.communicator.device().progress()?;
        }
        Ok(direct.gated(target))
    }

    /// Changes the number at a displacement of a rank, or leaves it if `change` returns `None`, and gets what was
    /// there, like [`Inner::carry_out_at`]. `None` if it does not lie inside of the rank's part.
    #[inline(always)]
    pub(super) fn change_number<const BYTES: usize>(
        &self,
        direct: &Direct,
        (rank, displacement): (u32, i64),
        change: impl FnOnce([u8; BYTES]) -> Option<[u8; BYTES]>,
        into: Option<RecvRegion>,
    ) -> Option<Result<(), Error>> {
        let place = direct.bytes(rank, displacement, BYTES)?;
        let lives = |rank| self.check_owner(rank);
        let done = direct.gated(rank).serialise(self.communicator.rank(), lives, || {
            // SAFETY: as in `Direct::store`.
            let place = unsafe { SharedBytes::new(place, BYTES) };
            let mut before = [0; BYTES];
            place.load(RecvPart::of_slice(&mut before));
            if let Some(after) = change(before) {
                place.store(ForeignBytes::from_slice(&after));
            }
            before
        });
        Some(done.map(|before| {
            if let Some(mut into) = into {
                into.part(0, BYTES).store(0, ForeignBytes::from_slice(&before));
            }
        }))
    }

    /// Combines a block of a rank like [`Place::combine_block`].
    #[inline]
    pub(super) fn combine_block(
        &self,
        direct: &Direct,
        rank: u32,
        mut place: Place<'_>,
        update: Update,
        (from, mut into): (SendRegion, Option<RecvRegion>),
    ) -> Result<(), Error> {
        let (gated, own) = (direct.gated(rank), self.communicator.rank());
        let lives = |rank| self.check_owner(rank);
        let into = into.as_mut().map(|into| into.part(0, usize::MAX));
        place
            .combine_block((update, update.size()), (from, into), |piece| {
                gated.serialise(own, lives, piece)
            })
            .map(drop)
    }

    /// Carries out an operation on a rank (DW3).
    pub(super) fn carry_out_at(
        &self,
        direct: &Direct,
        rank: u32,
        Work { kind, grain, data }: Work<'_>,
        mut place: Place<'_>,
        mut into: Option<Sink>,
    ) -> Result<(), Error> {
        let (gated, own) = (direct.gated(rank), self.communicator.rank());
        let lives = |rank| self.check_owner(rank);
        let bytes = place.bytes.len();
        let done = match (kind, &mut into) {
            (Kind::Put, _) => place.put(&data[0]),
            (Kind::Get, Some(into)) => place.get(into),
            (Kind::Accumulate(update) | Kind::GetAccumulate(update), into) => {
                let buffers = (data.first(), into.as_mut());
                place
                    .combine((update, grain), buffers, |piece| gated.serialise(own, lives, piece))?
            }
            (Kind::CompareAndSwap, Some(into)) => {
                gated.serialise(own, lives, || place.compare_and_swap(&data[0], &data[1], into))?
            }
            _ => Some(()),
        };
        // No bytes are named twice, so there was no memory for a copy.
        done.ok_or(Error::Memory { bytes })
    }

    /// Gets the lock of a rank's window, which other ranks may have.
    pub(super) fn lock_directly(
        &self,
        direct: &Direct,
        kind: LockKind,
        target: u32,
    ) -> Result<(), Error> {
        let (gated, own) = (self.gated(direct, target)?, self.communicator.rank());
        let lives = |rank| self.check_owner(rank);
        let mut turn = gated.ask(kind, own, lives)?;
        while let Turn::Behind(rank) = turn {
            // Whoever lets this rank go on tells it afterwards, so if nothing was told since before the look, it waits.
            let told = self.state().told;
            turn = gated.turn_of(own, lives)?;
            if turn == Turn::Behind(rank) {
                self.wait_once(Call::WinLock, rank, |state| Ok(state.told != told))?;
            }
        }
        Ok(())
    }

    /// Gives the lock of a rank's window back.
    pub(super) fn unlock_directly(&self, direct: &Direct, target: u32) -> Result<(), Error> {
        let lives = |rank| self.check_owner(rank);
        let told = self.gated(direct, target)?.give_back(self.communicator.rank(), lives)?;
        told.into_iter().try_for_each(|rank| self.post(rank, Head::alone(Kind::Look, 0)))
    }

    /// Gives a signal to a rank.
    pub(super) fn signal(&self, direct: &Direct, to: u32, signal: Signal) -> Result<(), Error> {
        match self.gated(direct, to)?.signal(signal, self.communicator.rank()) {
            true => self.post(to, Head::alone(Kind::Look, 0)),
            false => Ok(()),
        }
    }

    /// Waits for a signal of a rank: at first it looks, while it makes progress; then it sleeps.
    pub(super) fn await_signal(
        &self,
        direct: &Direct,
        call: Call,
        (from, signal): (u32, Signal),
    ) -> Result<(), Error> {
        let gated = self.gated(direct, self.communicator.rank())?;
        let device = self.communicator.device();
        for _ in 0..looks(device) {
            if gated.take(signal, from) {
                return Ok(());
            }
            device.progress()?;
        }
        gated.sleep(true);
        let mut has_come = Ok(false);
        while matches!(has_come, Ok(false)) {
            let mut taken = false;
            let waited = self.wait_once(call, from, |_| {
                taken = gated.take(signal, from);
                Ok(taken)
            });
            has_come = waited.map(|()| taken);
        }
        gated.sleep(false);
        has_come.map(drop)
    }

    /// Returns whether a signal of each of these ranks has come, and takes them then.
    pub(super) fn take_signals(&self, direct: &Direct, from: &[u32], signal: Signal) -> bool {
        let gated = direct.gated(self.communicator.rank());
        from.iter().all(|rank| gated.has_come(signal, *rank))
            && from.iter().all(|rank| gated.take(signal, *rank))
    }

    /// Checks whether a rank of the window is lost.
    pub(super) fn check_alive(&self, rank: u32) -> Result<(), Error> {
        let Ok(peer) = self.communicator.group().job_rank(rank) else { return Ok(()) };
        let context = self.communicator.context();
        Ok(self.communicator.device().check_peer(peer as usize, context, 0)?)
    }

    /// Checks whether the owner of a word is lost, which would keep it for ever. Losses are noticed in rounds of
    /// progress.
    fn check_owner(&self, rank: u32) -> Result<(), Error> {
        self.communicator.device().progress()?;
        self.check_alive(rank)
    }
}
