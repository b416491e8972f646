//! Windows whose ranks are on one host, in memory that all of them have mapped, or that each can read and write in the
//! processes of the others ([`super::remote`]): an origin carries its operations out itself, while the target computes.
//! Only what wakes a rank that sleeps is a message.
//!
//! - DW1: one mapping ([`MappedMemory`]) has a gate for each rank, and, unless programs have brought them, the parts of
//!   the ranks. It lasts as long as the window, which ends when all ranks have ended it.
//! - DW2: all updates of elements, by whichever rank, exclude each other by the target's serialiser ([`super::gate`]),
//!   whatever the sizes and types of the elements are; no operation is a read-modify-write of the processor. Puts and
//!   gets are copies (WB1).
//! - DW3: an operation has been carried out when its call returns, but for short ones on memory of other processes, which
//!   [`super::batch`] gathers. So a flush ends a batch, orders memory, and does nothing else.

#![expect(unsafe_code, reason = "memory that ranks share")]

use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicU32};

use mpjdev::{Call, Device, RecvRegion, SendRegion, Sink};
use transport_lapi::{ForeignBytes, MappedMemory, RecvPart, SharedBytes};

use super::batch::Short;
use super::gate::{Gate, Gated, Signal, Turn};
use super::head::{Head, Kind, Shape};
use super::operation::Work;
use super::place::{Bytes, Place};
use super::remote::{Brought, Remote};
use super::sync::first_error;
use super::update::Update;
use super::{Inner, LockKind};
use crate::communicator::Communicator;
use crate::error::Error;

/// The memory of all ranks of a window.
pub(super) struct Direct {
    memory: MappedMemory,
    parts: Vec<Part>,
    /// The way to parts in memory that programs have brought.
    brought: Option<Brought>,
}

/// The part of a rank.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// Where it begins; null if it is in another process.
    start: *mut u8,
    /// Its address in its own process.
    addr: u64,
    len: usize,
    /// Bytes by which a displacement counts.
    unit: usize,
}

// SAFETY: DW1 and WM1: the memory is there for any thread, which uses it as SB1 says.
unsafe impl Send for Part {}
// SAFETY: as above.
unsafe impl Sync for Part {}

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
        if !are_here(communicator) {
            return Ok(None);
        }
        let words = vec![size as u64, unit as u64];
        let words = communicator.gather_words(Call::WinCreate, words)?;
        let mut end = gates_end(communicator);
        let mut ranges = Vec::with_capacity(words.len() / 2);
        for words in words.chunks_exact(2) {
            let begin = end;
            end = end.saturating_add(to_usize(words[0]));
            ranges.push(begin..end);
            if !is_contiguous {
                end = end.checked_next_multiple_of(PAGE).unwrap_or(usize::MAX);
            }
        }
        let own = ranges[communicator.rank() as usize].clone();
        let Some(memory) = map_together(communicator, end, own)? else { return Ok(None) };
        let part = |(range, words): (Range<usize>, &[u64])| {
            let start = memory.as_mut_ptr().wrapping_add(range.start);
            Part { start, addr: start.addr() as u64, len: range.len(), unit: to_usize(words[1]) }
        };
        let parts = ranges.into_iter().zip(words.chunks_exact(2)).map(part).collect();
        Ok(Some(Self { memory, parts, brought: None }))
    }

    /// Makes a way to memory that the program has brought on each rank. Collective. The region comes back, on all ranks,
    /// if one of them cannot read and write the memory of all others.
    ///
    /// # Errors
    /// The loss of a member; what made the device unusable.
    pub fn over(
        communicator: &Communicator,
        own: RecvRegion,
        unit: usize,
    ) -> Result<Result<Self, RecvRegion>, Error> {
        if !are_here(communicator) {
            return Ok(Err(own));
        }
        let way = Brought::way(communicator, &own);
        let addr = own.as_mut_ptr().addr() as u64;
        let words = vec![own.len() as u64, unit as u64, addr, u64::from(way.is_some())];
        let words = communicator.gather_words(Call::WinCreate, words)?;
        let of_ranks = words.chunks_exact(4);
        let way = way.filter(|_| of_ranks.clone().all(|words| words[3] == 1));
        let Some(way) = way else { return Ok(Err(own)) };
        let memory = map_together(communicator, gates_end(communicator), 0..0)?;
        let Some(memory) = memory else { return Ok(Err(own)) };
        let brought = Brought::new((communicator.rank(), own), way);
        let part = |(rank, words): (u32, &[u64])| {
            let start = if rank == brought.rank() { brought.part() } else { ptr::null_mut() };
            let [len, unit] = [words[0], words[1]].map(to_usize);
            Part { start, addr: words[2], len, unit }
        };
        let parts = (0..).zip(of_ranks).map(part).collect();
        Ok(Ok(Self { memory, parts, brought: Some(brought) }))
    }

    /// Returns whether there is such a rank.
    #[inline]
    pub fn has(&self, rank: u32) -> bool {
        (rank as usize) < self.parts.len()
    }

    /// Returns where the part of a rank is in this process; null if it is in another one.
    pub fn part(&self, rank: u32) -> *mut u8 {
        self.parts[rank as usize].start
    }

    /// Stores bytes in the part of a rank, at a displacement in its units. Returns whether it did: they lie inside of it,
    /// and it is in this process.
    #[inline]
    pub fn store(&self, from: SendRegion, rank: u32, displacement: i64) -> bool {
        let Some(place) = self.bytes(rank, displacement, from.len()) else { return false };
        place.store(from.foreign());
        true
    }

    /// Copies bytes of the part of a rank like [`Direct::store`].
    #[inline]
    pub fn load(&self, mut into: RecvRegion, rank: u32, displacement: i64) -> bool {
        let Some(place) = self.bytes(rank, displacement, into.len()) else { return false };
        place.load(into.part(0, usize::MAX));
        true
    }

    /// Returns so many bytes of the part of a rank; `None` if they do not lie inside, or in another process.
    #[inline]
    fn bytes(&self, rank: u32, displacement: i64, len: usize) -> Option<SharedBytes<'_>> {
        let (part, at) = self.inside(rank, displacement, len)?;
        if part.start.is_null() {
            return None;
        }
        // SAFETY: SB1, by DW1 and WB1: inside of the mapping, or of memory that stays as long as the window (WM1).
        Some(unsafe { SharedBytes::new(part.start.wrapping_add(at), len) })
    }

    /// Returns the part of a rank, and how far in it a displacement is; `None` if so many bytes do not lie inside.
    #[inline]
    fn inside(&self, rank: u32, displacement: i64, len: usize) -> Option<(&Part, usize)> {
        // The general path tells forks that they are some.
        let part = self.parts.get(rank as usize).filter(|_| !self.memory.is_fork())?;
        let at = usize::try_from(displacement).ok()?.checked_mul(part.unit)?;
        let is_inside = at.checked_add(len)? <= part.len;
        is_inside.then_some((part, at))
    }

    /// Returns whether the part of a rank is in another process.
    #[inline]
    pub fn is_remote(&self, rank: u32) -> bool {
        self.brought.as_ref().is_some_and(|brought| brought.rank() != rank)
    }

    /// Returns bytes of a part in another process, at an address there; `None` if it is in this one.
    fn remote(&self, rank: u32, addr: u64, len: usize) -> Option<Remote<'_>> {
        let brought = self.brought.as_ref().filter(|brought| brought.rank() != rank)?;
        let gates = [brought.rank(), rank].map(|rank| self.gated(rank).gate);
        Some(brought.bytes(rank, (addr, len), gates))
    }

    /// Begins a short operation on a part in another process, which [`Direct::finish_batch`] ends. Returns whether it did:
    /// it is short, it lies inside of the part, and that is in another process.
    #[inline(never)]
    pub fn begin_short(&self, rank: u32, displacement: i64, operation: Short) -> Option<()> {
        let (part, at) = self.inside(rank, displacement, operation.len())?;
        let addr = part.addr.wrapping_add(at as u64);
        let may_be_gathered = operation.is_short_at(addr);
        let remote = self.remote(rank, addr, operation.len()).filter(|_| may_be_gathered)?;
        remote.begin(operation);
        Some(())
    }

    /// Carries out what was gathered for a rank (WQ2).
    ///
    /// # Errors
    /// The first one since the last call.
    #[inline]
    pub fn finish_batch(&self, rank: u32) -> Result<(), Error> {
        if self.is_remote(rank) { self.finish_remote_batch(rank) } else { Ok(()) }
    }

    #[inline(never)]
    fn finish_remote_batch(&self, rank: u32) -> Result<(), Error> {
        if self.memory.is_fork() {
            // The error of the call that follows says so.
            return Ok(());
        }
        self.remote(rank, 0, 0).map_or(Ok(()), Remote::finish_batch)
    }

    /// Carries out what was gathered for these ranks, like [`Direct::finish_batch`].
    pub fn finish_batches(&self, ranks: impl IntoIterator<Item = u32>) -> Result<(), Error> {
        match self.brought {
            Some(_) => first_error(ranks.into_iter().map(|rank| self.finish_batch(rank))),
            None => Ok(()),
        }
    }

    /// Keeps other ranks from writing into memory that this rank's program has brought, from now on (WG6).
    pub fn close(&self) {
        let Some(brought) = self.brought.as_ref().filter(|_| !self.memory.is_fork()) else {
            return;
        };
        self.gated(brought.rank()).gate.close();
        for rank in (0..self.parts.len() as u32).filter(|rank| *rank != brought.rank()) {
            while self.gated(rank).gate.is_writing() && !brought.is_gone(rank) {
                std::thread::yield_now();
            }
        }
    }

    /// Returns the place at a rank, which has been checked to lie inside of its part.
    pub fn place<'m>(&'m self, rank: u32, displacement: i64, shape: &'m Shape) -> Place<'m> {
        let ((low, high), part) = (shape.bounds(), self.parts[rank as usize]);
        let (at, len) = (displacement as isize + low, high.abs_diff(low));
        let bytes = match self.remote(rank, part.addr.wrapping_add_signed(at as i64), len) {
            Some(remote) => {
                remote.end_batch();
                Bytes::There(remote)
            }
            // SAFETY: as in `bytes`.
            None => Bytes::Here(unsafe { SharedBytes::new(part.start.wrapping_offset(at), len) }),
        };
        Place::new(bytes, -low, shape)
    }

    /// Returns the place of a block at a rank, at a displacement in its units; `None` if it does not lie inside of its
    /// part, or in another process.
    #[inline]
    pub fn plain_place<'m>(
        &'m self,
        rank: u32,
        displacement: i64,
        block: &'m Shape,
    ) -> Option<Place<'m>> {
        let bytes = self.bytes(rank, displacement, block.size())?;
        Some(Place::new(Bytes::Here(bytes), 0, block))
    }

    /// Returns what the ranks agree on for a target.
    #[inline]
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

/// Returns whether all ranks are on the host of this one.
fn are_here(communicator: &Communicator) -> bool {
    let device = communicator.device();
    let is_here = |rank| device.host_of(rank) == device.host();
    !device.has_hosts() || communicator.group().iter().all(is_here)
}

/// Returns where the gates of all ranks end, at a page.
fn gates_end(communicator: &Communicator) -> usize {
    let ranks = communicator.size() as usize;
    let gates = gate_bytes(ranks).saturating_mul(ranks);
    gates.checked_next_multiple_of(PAGE).unwrap_or(usize::MAX)
}

/// Makes memory of `len` bytes, which contains zeros, and begins with the gates. Collective. `None`, on all ranks, if they
/// cannot share so much. Each rank reserves its gate and its `part`.
fn map_together(
    communicator: &Communicator,
    len: usize,
    part: Range<usize>,
) -> Result<Option<MappedMemory>, Error> {
    let rank = communicator.rank();
    let made = match rank {
        0 => MappedMemory::create(len).ok(),
        _ => None,
    };
    let offer = made.as_ref().map_or(&[][..], |(_, offer)| offer.bytes());
    let words = communicator.bcast_words(Call::WinCreate, to_words(offer), 0)?;
    let memory = match made {
        Some((memory, offer)) => Some((memory, Some(offer))),
        None => MappedMemory::open(&of_words(&words), len).ok().map(|memory| (memory, None)),
    };
    let gate = gate_bytes(communicator.size() as usize);
    let memory = memory.filter(|(memory, _)| {
        let gate = memory.reserve(rank as usize * gate, gate);
        gate.and(memory.reserve(part.start, part.len())).is_ok()
    });
    // The offer stands until all ranks have answered. A rank without the memory lets the others know.
    let is_there = u64::from(memory.is_some());
    let are_there = communicator.gather_words(Call::WinCreate, vec![is_there])?;
    Ok(memory.filter(|_| !are_there.contains(&0)).map(|(memory, _)| memory))
}

fn to_usize(word: u64) -> usize {
    usize::try_from(word).unwrap_or(usize::MAX)
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
    /// there, like [`Inner::carry_out_at`]. `None` if it does not lie inside of the rank's
    /// part, or in another process.
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
        let done = direct.gated(rank).gate.serialise(self.communicator.rank(), lives, || {
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
        let (gate, own) = (direct.gated(rank).gate, self.communicator.rank());
        let lives = |rank| self.check_owner(rank);
        let (into, bytes) = (into.as_mut().map(|into| into.part(0, usize::MAX)), place.bytes.len());
        let combined = place.combine_block((update, update.size()), (from, into), |piece| {
            gate.serialise(own, lives, piece)?
        });
        combined.map_err(|fault| fault.into_error(bytes))
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
        let (gate, own) = (direct.gated(rank).gate, self.communicator.rank());
        let lives = |rank| self.check_owner(rank);
        let bytes = place.bytes.len();
        let done = match (kind, &mut into) {
            (Kind::Put, _) => place.put(&data[0]),
            (Kind::Get, Some(into)) => place.get(into),
            (Kind::Accumulate(update) | Kind::GetAccumulate(update), into) => {
                let buffers = (data.first(), into.as_mut());
                place
                    .combine((update, grain), buffers, |piece| gate.serialise(own, lives, piece)?)
            }
            (Kind::CompareAndSwap, Some(into)) => {
                gate.serialise(own, lives, || place.compare_and_swap(&data[0], &data[1], into))?
            }
            _ => Ok(()),
        };
        done.map_err(|fault| fault.into_error(bytes))
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
