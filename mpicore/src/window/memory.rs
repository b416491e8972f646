//! The memory that a rank exposes: one piece, or in dynamic windows those that its program has attached.
//!
//! - WM1: whoever makes a window, or attaches memory, promises that the memory stays until the window has ended, or the
//!   memory is detached, and that the program accesses it only as MPI allows beside the operations of other ranks.
//! - WM2: operations of other ranks are carried out by one thread at a time, which has this exclusively: the lock of the
//!   memory is the one serialiser of the accumulate family. They copy bytes as WB1 says. The device has regions of long
//!   puts and gets, whose bytes it copies at any time until it reports their end. Until then, operations that meet them
//!   are put off, unless all only read, so that programs which do not order accesses have no data race either.

#![expect(unsafe_code, reason = "reads and writes memory that programs expose")]

use std::collections::BTreeMap;

use mpjdev::{RecvRegion, SendRegion, Sink, Source};
use transport_lapi::{RecvPart, SharedBytes};

use super::Incoming;
use super::head::{Kind, Shape};
use super::place::{Bytes, Place};
use crate::error::{Error, WindowError};

/// The memory that this rank exposes.
pub(super) struct Memory {
    /// By the displacement at which they begin: 0, in dynamic windows the address.
    pieces: BTreeMap<usize, RecvRegion>,
    is_dynamic: bool,
    /// What the device copies now, and the messages that are put off until it has.
    moving: Vec<Moved>,
    put_off: Vec<(u32, Incoming)>,
    /// The memory, if the window owns it.
    _owned: Vec<u128>,
}

/// Bytes that an operation accesses, from the first to the one after the last, and whether it writes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moved {
    low: i64,
    high: i64,
    writes: bool,
}

impl Moved {
    pub fn of(kind: Kind, displacement: i64, shape: &Shape) -> Self {
        let (low, high) = shape.bounds();
        let [low, high] = [low, high].map(|by| displacement.saturating_add(by as i64));
        Self { low, high, writes: !matches!(kind, Kind::Get | Kind::LongGet) }
    }

    fn meets(&self, other: &Self) -> bool {
        self.low < other.high && other.low < self.high && (self.writes || other.writes)
    }
}

impl Memory {
    /// Exposes the program's memory.
    pub fn of(memory: RecvRegion) -> Self {
        Self { pieces: BTreeMap::from([(0, memory)]), is_dynamic: false, ..Self::dynamic() }
    }

    /// Returns whether the device copies bytes that an operation meets. Its message is to be put off then.
    pub fn is_moving(&self, operation: &Moved) -> bool {
        self.moving.iter().any(|moved| moved.meets(operation))
    }

    /// Puts a message of a rank off, until the device has copied something.
    pub fn put_off(&mut self, rank: u32, incoming: Incoming) {
        self.put_off.push((rank, incoming));
    }

    /// Notes that the device copies bytes.
    pub fn begin_move(&mut self, moved: Moved) {
        self.moving.push(moved);
    }

    /// Notes that it has. Returns the messages that were put off.
    pub fn end_move(&mut self, moved: &Moved) -> Vec<(u32, Incoming)> {
        if let Some(at) = self.moving.iter().position(|other| other == moved) {
            self.moving.swap_remove(at);
        }
        std::mem::take(&mut self.put_off)
    }

    /// Exposes new memory, which contains zeros; `None` if there is not so much.
    pub fn new(len: usize) -> Option<Self> {
        let mut owned = Vec::new();
        let units = len.div_ceil(size_of::<u128>());
        owned.try_reserve_exact(units).ok()?;
        owned.resize(units, 0);
        // SAFETY: G2: the vector is kept with the region, and nobody uses it otherwise.
        let memory = unsafe { RecvRegion::new(owned.as_mut_ptr().cast(), len) };
        Some(Self { _owned: owned, ..Self::of(memory) })
    }

    /// Exposes nothing yet.
    pub fn dynamic() -> Self {
        let (pieces, moving, put_off) = Default::default();
        Self { pieces, is_dynamic: true, moving, put_off, _owned: Vec::new() }
    }

    /// Returns the address of the only piece; null in a dynamic window.
    pub fn base(&self) -> *mut u8 {
        let only = self.pieces.get(&0).filter(|_| !self.is_dynamic);
        only.map_or(std::ptr::null_mut(), RecvPart::as_mut_ptr)
    }

    /// Returns all of the only piece, for the network; `None` in a dynamic window.
    pub fn whole(&self) -> Option<RecvRegion> {
        let only = self.pieces.get(&0).filter(|_| !self.is_dynamic)?;
        // SAFETY: G2: the holder is the device, whose exposure ends before this memory does (WM1).
        Some(unsafe { RecvRegion::new(only.as_mut_ptr(), only.len()) })
    }

    /// Adds a piece.
    pub fn attach(&mut self, piece: RecvRegion) -> Result<(), WindowError> {
        let begin = piece.as_mut_ptr().addr();
        let end = begin.saturating_add(piece.len());
        // Pieces are disjoint, so only the last one that begins before the end can reach into this one.
        let before = self.pieces.range(..end.max(begin.saturating_add(1))).next_back();
        let overlaps = before.is_some_and(|(other, region)| {
            *other == begin || other.saturating_add(region.len()) > begin
        });
        if overlaps {
            return Err(WindowError::Attachment { is_attached: true });
        }
        self.pieces.insert(begin, piece);
        Ok(())
    }

    /// Removes the piece that begins at this address.
    pub fn detach(&mut self, base: usize) -> Result<(), WindowError> {
        let removed = self.pieces.remove(&base);
        removed.map(drop).ok_or(WindowError::Attachment { is_attached: false })
    }

    /// Returns a place; `None` if its bytes are not exposed.
    pub fn place<'m>(&'m mut self, displacement: i64, shape: &'m Shape) -> Option<Place<'m>> {
        let (low, high) = shape.bounds();
        if low == high {
            return Some(Place::new(Bytes::Here(SharedBytes::EMPTY), 0, shape));
        }
        // Addresses above the middle of the range are negative here, as in MPI_Aint.
        let at =
            if self.is_dynamic { i128::from(displacement as u64) } else { displacement.into() };
        let from = usize::try_from(at.checked_add(low as i128)?).ok()?;
        let to = from.checked_add(high.abs_diff(low))?;
        let (begin, piece) = self.pieces.range(..=from).next_back()?;
        let mut end = begin.checked_add(piece.len())?;
        // Pieces that the program has attached side by side are accessed as one.
        while end < to {
            end = end.checked_add(self.pieces.get(&end).filter(|next| !next.is_empty())?.len())?;
        }
        let first = piece.as_mut_ptr().wrapping_add(from - begin);
        // SAFETY: SB1, by WM1 and WM2: all these bytes are exposed, and `self` is borrowed for as long.
        let bytes = unsafe { SharedBytes::new(first, to - from) };
        Some(Place::new(Bytes::Here(bytes), -low, shape))
    }

    /// Returns the place of a long put or get; `None` if it is not exposed, or may be detached at any moment.
    pub fn region(&mut self, displacement: i64, len: usize) -> Option<RecvRegion> {
        if self.is_dynamic {
            return None;
        }
        let shape = Shape::Block(len);
        let Place { bytes: Bytes::Here(bytes), .. } = self.place(displacement, &shape)? else {
            return None;
        };
        // SAFETY: G2: the holder is the device, which reports the end; WM2.
        Some(unsafe { RecvRegion::new(bytes.as_mut_ptr(), bytes.len()) })
    }

    /// Like [`Memory::region`], to be read.
    pub fn readable(&mut self, displacement: i64, len: usize) -> Option<SendRegion> {
        let region = self.region(displacement, len)?;
        // SAFETY: G1, by WM1 and WM2.
        Some(unsafe { SendRegion::new(region.as_mut_ptr(), region.len()) })
    }
}

/// Appends the bytes of a source to a message.
pub(super) fn append(message: &mut Vec<u8>, from: &Source) -> Result<(), Error> {
    let (start, len) = (message.len(), from.len());
    message.try_reserve(len).map_err(|_| Error::Memory { bytes: len })?;
    let room = message.spare_capacity_mut().as_mut_ptr().cast();
    // SAFETY: G2: the vector has reserved the room, and the region does not outlive the call.
    let into = unsafe { RecvRegion::new(room, len) };
    let copied = from.copy_to(&mut Sink::from(into));
    debug_assert_eq!(copied, len, "there is room for all");
    // SAFETY: so many bytes were just written.
    unsafe { message.set_len(start + copied) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::super::head::Head;
    use super::*;

    #[test]
    fn what_the_device_copies_puts_off_what_meets_it() {
        let moved = |kind, at, len| Moved::of(kind, at, &Shape::Block(len));
        let mut memory = Memory::dynamic();
        let (put, get) = (moved(Kind::LongPut, 16, 16), moved(Kind::LongGet, 64, 16));
        memory.begin_move(put);
        memory.begin_move(get);
        for (kind, at, is_put_off) in [
            (Kind::Get, 9, true),
            (Kind::Put, 31, true),
            (Kind::Put, 8, false),
            (Kind::LongPut, 32, false),
            (Kind::CompareAndSwap, 79, true),
            (Kind::Get, 64, false),
        ] {
            assert_eq!(memory.is_moving(&moved(kind, at, 8)), is_put_off, "{kind:?} at {at}");
        }
        let head = Head::new(Kind::Get, 1, 9);
        memory.put_off(3, Incoming { head, shape: None, data: 0, message: Vec::new() });
        let put_off = memory.end_move(&put);
        assert!(matches!(&put_off[..], [(3, incoming)] if incoming.head == head));
        assert!(!memory.is_moving(&moved(Kind::Put, 16, 16)) && memory.end_move(&get).is_empty());
    }

    /// What lies side by side is accessed as one, for as long as all of it is attached.
    #[test]
    fn attached_neighbours_are_one_piece() {
        let mut bytes = [0, 1, 2, 3, 4, 5, 6, 7, 8];
        let start = bytes.as_mut_ptr();
        let region = |part: Range<usize>| {
            // SAFETY: G2: the bytes last until the end of the test, and are not used otherwise.
            unsafe { RecvRegion::new(start.wrapping_add(part.start), part.len()) }
        };
        let address = |at: usize| start.addr() + at;
        let read = |memory: &mut Memory, part: Range<usize>| {
            let shape = Shape::Block(part.len());
            memory.place(address(part.start) as i64, &shape).and_then(|place| place.read().ok())
        };
        let mut memory = Memory::dynamic();
        for part in [0..3, 6..9, 3..6, 9..9] {
            memory.attach(region(part)).unwrap();
        }
        assert_eq!(read(&mut memory, 1..8), Some((1..8).collect()));
        for taken in [2..4, 0..1, 9..9] {
            let refused = Err(WindowError::Attachment { is_attached: true });
            assert_eq!(memory.attach(region(taken)), refused);
        }
        memory.detach(address(3)).unwrap();
        memory.detach(address(9)).unwrap();
        let refused = Err(WindowError::Attachment { is_attached: false });
        assert_eq!(memory.detach(address(3)), refused);
        assert_eq!(
            [read(&mut memory, 1..4), read(&mut memory, 4..5), read(&mut memory, 5..7)],
            [const { None }; 3]
        );
        assert_eq!(read(&mut memory, 0..3), Some(vec![0, 1, 2]));
        assert_eq!(read(&mut memory, 6..9), Some(vec![6, 7, 8]));
        memory.attach(region(3..5)).unwrap();
        assert_eq!(read(&mut memory, 0..5), Some((0..5).collect()));
        assert_eq!(read(&mut memory, 4..7), None);
    }
}
