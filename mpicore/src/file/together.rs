//! Collective accesses in two phases. The file is divided into stages, each of which belongs to one of some ranks, the
//! *aggregators*. In a round, each aggregator has one stage in its memory, a window: the other ranks put there what
//! they write, and it writes the stage; or it reads the stage, and the others get from there what they need.
//!
//! - FT1: all ranks know the same stages, and access those of a round between the same two meetings. An aggregator
//!   accesses its memory only between the two that the others keep away from it.
//! - FT2: a stage is written as a whole only if each of its bytes is written by exactly one rank, for the whole access.
//!   Otherwise the ranks put marks beside their bytes, and the aggregator writes what is marked (FI3). Whether that is
//!   so, a sum over all ranks tells: each block adds a number for its end, and subtracts that of its beginning. The
//!   numbers of a division without gaps and overlaps cancel out; others do so with a probability of 2^-64.
//! - FT3: an access of which no blocks lie between those of other ranks, or whose blocks are long, or have long gaps
//!   between them, is not worth this: the ranks work alone. So do they if one of them has a view with blocks that do
//!   not ascend.

#![expect(unsafe_code, reason = "names this rank's memory in a window")]

use std::ops::{ControlFlow, Range};

use mpjdev::{Call, RecvRegion, SendRegion, Sink, Source};
use transport_lapi::{ForeignBytes, Layout};

use super::alone::{LONG, WASTE};
use super::memory::{Incoming, Outgoing};
use super::{File, Stretch};
use crate::communicator::Communicator;
use crate::datatype::Datatype;
use crate::error::{Error, FileError};
use crate::process::scrambled;
use crate::window::{Target, Window};

/// How many ranks of each host gather data, unless a hint says otherwise.
const OF_HOST: usize = 4;

/// The most parts of a file of which ranks tell each other whether they access them.
const MOST_CELLS: u64 = 4096;

/// The shape of a stretch that demands that all ranks work alone.
const ALONE: [u64; 5] = [0, 0, 0, 0, 1];

/// The most blocks that one operation moves.
const AT_ONCE: usize = 1 << 16;

/// Where the stages of a file are gathered: a window with the memory of each aggregator, of two stages.
pub(super) struct Staging {
    window: Window,
    aggregators: Vec<u32>,
    /// The length of a stage.
    stage: u64,
}

/// An access that all ranks make together.
struct Access<'a> {
    call: Call,
    staging: &'a Staging,
    /// The bytes of the file from the first to the last of all ranks.
    range: Range<u64>,
    /// The stages that somebody accesses, in order, by their numbers.
    stages: Vec<u64>,
    /// Whether each byte of the range is accessed by exactly one rank (FT2).
    is_exact: bool,
}

/// Returns the ranks that gather data: of each host the same number, as far as there are so many.
pub(super) fn aggregators(communicator: &Communicator, most: u64) -> Vec<u32> {
    let device = communicator.device();
    let mut hosts: Vec<(u32, Vec<u32>)> = Vec::new();
    for (rank, job_rank) in (0..).zip(communicator.group().iter()) {
        let host = device.host_of(job_rank);
        match hosts.iter_mut().find(|(known, _)| *known == host) {
            Some((_, ranks)) => ranks.push(rank),
            None => hosts.push((host, vec![rank])),
        }
    }
    let most = if most == 0 { OF_HOST * hosts.len() } else { most as usize };
    let depth = hosts.iter().map(|(_, ranks)| ranks.len()).max().unwrap_or(0);
    let places = (0..depth).flat_map(|place| hosts.iter().map(move |(_, ranks)| ranks.get(place)));
    places.flatten().copied().take(most).collect()
}

impl Staging {
    /// Makes the window. Collective.
    fn new(communicator: &Communicator, stage: u64, nodes: u64) -> Result<Self, Error> {
        let aggregators = aggregators(communicator, nodes);
        let own = aggregators.contains(&communicator.rank());
        let size = if own { 2 * stage as usize } else { 0 };
        let window = Window::allocate(communicator, size, 1)?;
        window.lock_all(false)?;
        Ok(Self { window, aggregators, stage })
    }

    /// Ends the window. Collective.
    pub fn free(self) -> Result<(), Error> {
        self.window.unlock_all()?;
        self.window.free()
    }

    /// Ends the window without waiting for other ranks.
    pub fn free_later(self) {
        self.window.free_later();
    }

    /// Returns `len` bytes of this rank's memory.
    fn memory(&self, at: u64, len: u64) -> RecvRegion {
        let first = self.window.base().wrapping_add(at as usize);
        // SAFETY: G2, by FT1: of this rank's part of the window, which has two stages and lasts as long as `self`.
        unsafe { RecvRegion::new(first, len as usize) }
    }

    /// Likewise, to be read.
    fn bytes(&self, at: u64, len: u64) -> SendRegion {
        // SAFETY: G1, as above.
        unsafe { SendRegion::new(self.memory(at, len).as_mut_ptr(), len as usize) }
    }

    /// Moves the blocks of a stretch that lie in a stage, by `put` or `get`: it gets the memory of the stage's
    /// aggregator from `base` on as a target, and offset and length of its bytes in the stretch, which begin at `done`.
    fn each(
        &self,
        stretch: &Stretch,
        (stage, aggregator): (u64, u32),
        (done, base): (&mut u64, u64),
        mut move_part: impl FnMut(Target<'_>, u64, u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (begin, end) = (stage * self.stage, (stage + 1) * self.stage);
        while *done < stretch.len {
            let (mut blocks, mut len) = (Vec::new(), 0);
            stretch.view.spans(stretch.from + *done, stretch.len - *done, |at, bytes| {
                if at >= end || blocks.len() == AT_ONCE {
                    return ControlFlow::Break(());
                }
                let part = bytes.min(end - at);
                blocks.push(((at - begin) as isize, part as usize));
                len += part;
                if part < bytes { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            if len == 0 {
                break;
            }
            let datatype = Datatype::of_bytes(Layout::indexed(blocks)?)?;
            let displacement = base as i64;
            let target = Target { rank: aggregator, displacement, count: 1, datatype: &datatype };
            move_part(target, *done, len)?;
            *done += len;
        }
        Ok(())
    }
}

impl Access<'_> {
    /// Returns the rounds, each with its number.
    fn rounds(&self) -> impl Iterator<Item = (u64, &[u64])> {
        (0..).zip(self.stages.chunks(self.staging.aggregators.len()))
    }

    /// Returns each stage of a round with its aggregator.
    fn owners(&self, stages: &[u64]) -> impl Iterator<Item = (u64, u32)> {
        stages.iter().copied().zip(self.staging.aggregators.iter().copied())
    }

    /// Returns the bytes of a stage that may be accessed.
    fn part(&self, stage: u64) -> Range<u64> {
        let size = self.staging.stage;
        self.range.start.max(stage * size)..self.range.end.min((stage + 1) * size)
    }
}

impl Stretch {
    /// Returns how many bytes of it lie before a place in the file.
    pub(super) fn below(&self, place: u64) -> u64 {
        self.view.below(place).saturating_sub(self.from).min(self.len)
    }

    /// Returns what each rank tells the others: its first byte in the file, the one behind its last, its length, the
    /// number of its blocks, and whether it demands that all work alone.
    fn shape(&self) -> Result<[u64; 5], FileError> {
        if self.len == 0 {
            return Ok([0; 5]);
        }
        if !self.view.is_ascending() {
            return Ok(ALONE);
        }
        let (first, end, blocks) = self.view.range(self.from, self.len)?;
        Ok([first, end, self.len, blocks, 0])
    }

    /// Returns this rank's part of the sum (FT2), and marks the parts of the file that it accesses, which have this
    /// length and are counted from `base` on.
    fn mark(&self, (base, cell): (u64, u64), cells: &mut [u64]) -> Result<u64, FileError> {
        let mut sum = 0_u64;
        self.view.spans(self.from, self.len, |at, len| {
            sum = sum.wrapping_add(scrambled(at + len)).wrapping_sub(scrambled(at));
            for cell in (at - base) / cell..=(at + len - 1 - base) / cell {
                cells[cell as usize / 64] |= 1 << (cell % 64);
            }
            ControlFlow::Continue(())
        })?;
        Ok(sum)
    }
}

impl File {
    /// Writes the stretches of all ranks. What is wrong with this one's is returned at the end (FI4).
    pub(super) fn write_together(
        &self,
        prepared: Result<(Stretch, Outgoing), Error>,
    ) -> Result<(), Error> {
        let (stretch, mut from, wrong) = self.or_nothing(prepared, Outgoing::none);
        let call = Call::FileWriteAll;
        let mut staging = self.staging();
        let written = match self.access(call, &stretch, &mut staging)? {
            None => self.write_alone(&stretch, &mut from),
            Some((access, _)) => self.write_stages(&access, &stretch, &from),
        };
        self.agree(call, wrong.map_or(written, Err))
    }

    /// Reads the stretches of all ranks. Returns the memory, and how many bytes of this rank's stretch the file has.
    pub(super) fn read_together(
        &self,
        prepared: Result<(Stretch, Incoming), Error>,
    ) -> Result<(Incoming, u64), Error> {
        let (stretch, mut into, wrong) = self.or_nothing(prepared, Incoming::none);
        let call = Call::FileReadAll;
        let mut staging = self.staging();
        let found = match self.access(call, &stretch, &mut staging)? {
            None => self.read_alone(&stretch, &mut into),
            Some((access, size)) => {
                let stretch = Stretch { len: stretch.below(size), ..stretch };
                self.read_stages(&access, &stretch, &mut into).map(|()| stretch.len)
            }
        };
        Ok((into, self.agree(call, wrong.map_or(found, Err))?))
    }

    fn or_nothing<M>(
        &self,
        prepared: Result<(Stretch, M), Error>,
        none: impl FnOnce() -> M,
    ) -> (Stretch, M, Option<Error>) {
        match prepared {
            Ok((stretch, memory)) => (stretch, memory, None),
            Err(error) => (Stretch { view: self.view(), from: 0, len: 0 }, none(), Some(error)),
        }
    }

    /// Agrees on how all ranks access the file: in two phases, or each one alone (FT3). Returns the length of the file,
    /// too.
    fn access<'a>(
        &self,
        call: Call,
        stretch: &Stretch,
        staging: &'a mut Option<Staging>,
    ) -> Result<Option<(Access<'a>, u64)>, Error> {
        let hints = self.hints();
        if !hints.is_collective || self.is_atomic() {
            return Ok(None);
        }
        // A rank whose part has no place says so when it works alone. Nor are there stages without the length of the
        // file.
        let (shape, size) = match (stretch.shape(), self.disk.len()) {
            (Ok(shape), Ok(size)) => (shape, size),
            _ => (ALONE, 0),
        };
        let words = [&shape[..], &[size]].concat();
        let words = self.communicator.gather_words(call, words)?;
        let Some((range, size)) = worth(&words) else { return Ok(None) };
        let is_usable = |staging: &Staging| {
            let aggregators = aggregators(&self.communicator, hints.nodes);
            staging.stage == hints.stage && staging.aggregators == aggregators
        };
        if let Some(old) = staging.take_if(|staging| !is_usable(staging)) {
            old.free()?;
        }
        let staging = match staging {
            Some(staging) => &*staging,
            None => staging.insert(Staging::new(&self.communicator, hints.stage, hints.nodes)?),
        };
        let first = range.start / staging.stage;
        let stages = range.end.div_ceil(staging.stage) - first;
        let of_cell = stages.div_ceil(MOST_CELLS);
        let cells = stages.div_ceil(of_cell);
        let mut marks = vec![0; 1 + cells.div_ceil(64) as usize];
        let (sum, marked) = marks.split_first_mut().expect("there is one for the sum");
        if stretch.len > 0 {
            *sum = stretch.mark((first * staging.stage, of_cell * staging.stage), marked)?;
        }
        let len = marks.len();
        let all = self.communicator.gather_words(call, marks)?;
        let is_marked = |cell: u64| {
            let (word, bit) = (1 + cell as usize / 64, cell % 64);
            all.chunks_exact(len).any(|words| words[word] >> bit & 1 == 1)
        };
        let sum = all.iter().step_by(len).fold(0, |sum: u64, part| sum.wrapping_add(*part));
        let whole = scrambled(range.end).wrapping_sub(scrambled(range.start));
        let stages = (0..stages).filter(|stage| is_marked(stage / of_cell));
        let stages = stages.map(|stage| first + stage).collect();
        Ok(Some((Access { call, staging, range, stages, is_exact: sum == whole }, size)))
    }

    /// Lets all ranks come here. Returns whether all of them are well.
    fn meet(&self, call: Call, is_well: bool) -> Result<bool, Error> {
        let words = self.communicator.gather_words(call, vec![u64::from(is_well)])?;
        Ok(words.iter().all(|word| *word == 1))
    }

    /// Writes the stages of an access. A rank that fails still comes to all meetings.
    fn write_stages(
        &self,
        access: &Access<'_>,
        stretch: &Stretch,
        from: &Outgoing,
    ) -> Result<(), Error> {
        let Access { staging, is_exact, call, .. } = *access;
        let (own, mut done) = (self.communicator.rank(), 0);
        let mut written = Ok(());
        if !is_exact {
            if staging.aggregators.contains(&own) {
                staging.unmark();
            }
            self.meet(call, true)?;
        }
        for (round, stages) in access.rounds() {
            let base = if is_exact { round % 2 * staging.stage } else { 0 };
            let put = access.owners(stages).try_for_each(|owner| {
                staging.each(stretch, owner, (&mut done, base), |target, offset, len| {
                    staging.window.put(from.source(offset, len), target)?;
                    if is_exact {
                        return Ok(());
                    }
                    let marks = Source::from(vec![1; len as usize]);
                    let displacement = staging.stage as i64;
                    staging.window.put(marks, Target { displacement, ..target })
                })
            });
            written = written.and(put).and(staging.window.flush(None));
            let are_well = self.meet(call, written.is_ok())?;
            staging.window.sync()?;
            let owned = access.owners(stages).find(|(_, rank)| *rank == own);
            if let Some((stage, _)) = owned.filter(|_| are_well) {
                written = written.and(self.write_stage(access, stage, base).map_err(Error::from));
            }
            if !is_exact {
                self.meet(call, true)?;
            }
        }
        written
    }

    /// Writes a stage from this rank's memory.
    fn write_stage(&self, access: &Access<'_>, stage: u64, base: u64) -> Result<(), FileError> {
        let (staging, part) = (access.staging, access.part(stage));
        let begin = stage * staging.stage;
        let write = |part: Range<u64>| {
            let bytes = staging.bytes(base + part.start - begin, part.end - part.start);
            self.disk.write(bytes, part.start)
        };
        if access.is_exact {
            return write(part);
        }
        let marks = Source::Span(staging.bytes(staging.stage, staging.stage));
        let marks = marks.piece(0, staging.stage as usize).to_vec();
        staging.unmark();
        let (mut at, mut written) = (0, Ok(()));
        for run in marks.chunk_by(|one, other| one == other) {
            let end = at + run.len() as u64;
            if run[0] == 1 {
                written = written.and(write(begin + at..begin + end));
            }
            at = end;
        }
        written
    }

    /// Reads the stages of an access into a stretch that the file has. A rank that fails still comes to all meetings.
    fn read_stages(
        &self,
        access: &Access<'_>,
        stretch: &Stretch,
        into: &mut Incoming,
    ) -> Result<(), Error> {
        let Access { staging, call, .. } = *access;
        let (own, mut done) = (self.communicator.rank(), 0);
        let mut read = Ok(());
        for (round, stages) in access.rounds() {
            let base = round % 2 * staging.stage;
            if let Some((stage, _)) = access.owners(stages).find(|(_, rank)| *rank == own) {
                read = read.and(self.read_stage(access, stage, base).map_err(Error::from));
            }
            staging.window.sync()?;
            self.meet(call, true)?;
            let mut waiting = Vec::new();
            let got = access.owners(stages).try_for_each(|owner| {
                staging.each(stretch, owner, (&mut done, base), |target, offset, len| {
                    let sink = into.region(offset, len).unwrap_or_else(|| {
                        let mut bytes = vec![0; len as usize];
                        let at = bytes.as_mut_ptr();
                        waiting.push((offset, bytes));
                        // SAFETY: G2: the bytes do not move, and are read only behind the flush.
                        unsafe { RecvRegion::new(at, len as usize) }
                    });
                    staging.window.get(Sink::Span(sink), target)
                })
            });
            read = read.and(got).and(staging.window.flush(None));
            waiting.iter().for_each(|(offset, bytes)| into.store(*offset, bytes));
        }
        read
    }

    /// Reads a stage into this rank's memory.
    fn read_stage(&self, access: &Access<'_>, stage: u64, base: u64) -> Result<(), FileError> {
        let (staging, part) = (access.staging, access.part(stage));
        let at = base + part.start - stage * staging.stage;
        let mut memory = staging.memory(at, part.end - part.start);
        let found = self.disk.read(&memory, part.start)?;
        // What the file lost since its length was asked for is no other stage's.
        let lost = vec![0; memory.len() - found];
        memory.store(found, ForeignBytes::from_slice(&lost));
        Ok(())
    }
}

impl Staging {
    /// Removes all marks from this rank's memory.
    fn unmark(&self) {
        let zeros = vec![0; self.stage as usize];
        self.memory(self.stage, self.stage).store(0, ForeignBytes::from_slice(&zeros));
    }
}

/// Returns the bytes from the first to the last one of all ranks, and the length of the file, if two phases are worth
/// it (FT3).
pub(super) fn worth(words: &[u64]) -> Option<(Range<u64>, u64)> {
    let mut shapes: Vec<_> = words.chunks_exact(6).collect();
    let size = shapes.iter().map(|shape| shape[5]).max()?;
    if shapes.iter().any(|shape| shape[4] == 1) {
        return None;
    }
    shapes.retain(|shape| shape[2] > 0);
    shapes.sort_unstable_by_key(|shape| shape[0]);
    let end = shapes.iter().map(|shape| shape[1]).max()?;
    let has_neighbours = shapes.windows(2).any(|pair| pair[1][0] < pair[0][1]);
    let sum = |word: usize| shapes.iter().map(|shape| u128::from(shape[word])).sum::<u128>();
    let is_short = sum(2) / sum(3).max(1) < u128::from(LONG);
    let is_dense = u128::from(end - shapes[0][0]) / sum(2).max(1) < u128::from(WASTE);
    (has_neighbours && is_short && is_dense).then(|| (shapes[0][0]..end, size))
}
