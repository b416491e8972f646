//! Windows in memory that programs bring, all of whose ranks are processes of one host that can read and write each other's
//! memory: an origin copies between the processes itself ([`PeerMemory`]), while the target computes.
//!
//! - WR1: the words by which ranks exclude each other lie in mapped memory, as in windows that allocate theirs ([`super::gate`]).
//!   An update copies elements here, changes the copy, and copies it back, while it has the target's serialiser.
//! - WR2: a rank writes into another one's memory only between [`Gate::begin_write`] and the end of what that returns.
//!   So a rank whose program may free the memory, although others do not know, forbids it before (WG6).
//! - WR3: a rank's own part is memory of this process (WB1).

#![expect(unsafe_code, reason = "memory that ranks let others write")]

use std::ops::ControlFlow;
use std::sync::Arc;

use mpjdev::RecvRegion;
use transport_lapi::adapter::AdapterError;
use transport_lapi::{ForeignBytes, LapiError, Layout, PeerBytes, PeerMemory, RecvPart};

use super::batch::{Batches, Short};
use super::gate::Gate;
use crate::communicator::Communicator;
use crate::error::{Error, WindowError};

/// The memory of all ranks of a window.
pub(super) struct Brought {
    rank: u32,
    /// This rank's part.
    own: RecvRegion,
    way: Way,
    batches: Batches,
}

/// What reads and writes memory of other ranks, whose numbers in the job are these.
pub(super) struct Way {
    memory: Arc<dyn PeerMemory>,
    tasks: Vec<u32>,
}

/// Bytes of another rank.
#[derive(Clone, Copy)]
pub(super) struct Remote<'m> {
    brought: &'m Brought,
    rank: u32,
    /// The address of the first one there.
    addr: u64,
    len: usize,
    /// The gates of this rank and of that one.
    gates: [&'m Gate; 2],
}

/// The most blocks of a layout that one call copies.
const MOST: usize = 512;

impl Brought {
    /// Returns the way to the memory of all ranks, if this rank has one: it can read and write all others, and its own
    /// memory is such that the system copies it.
    pub fn way(communicator: &Communicator, own: &RecvRegion) -> Option<Way> {
        let device = communicator.device();
        let memory = device.peer_memory()?;
        let is_copied = |at: usize| {
            let addr = own.as_mut_ptr().addr().wrapping_add(at) as u64;
            let byte = PeerBytes { addr, len: 1 };
            memory.read(device.rank(), &[byte], RecvPart::of_slice(&mut [0])).is_ok()
        };
        let is_own_copied = own.is_empty() || is_copied(0) && is_copied(own.len() - 1);
        let tasks: Vec<u32> = communicator.group().iter().collect();
        let are_reached = is_own_copied && tasks.iter().all(|task| memory.reaches(*task));
        are_reached.then_some(Way { memory, tasks })
    }

    /// Makes it from a rank and its part.
    pub fn new((rank, own): (u32, RecvRegion), way: Way) -> Self {
        let batches = Batches::new(way.tasks.len());
        Self { rank, own, way, batches }
    }

    /// Returns this rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Returns where its part begins.
    pub fn part(&self) -> *mut u8 {
        self.own.as_mut_ptr()
    }

    /// Returns whether the process of a rank has ended, so that it writes nowhere.
    pub fn is_gone(&self, rank: u32) -> bool {
        self.way.memory.has_ended(self.way.tasks[rank as usize])
    }

    /// Returns bytes of another rank of the window, from an address there on. The gates are those of this rank and of that
    /// one.
    pub fn bytes<'m>(
        &'m self,
        rank: u32,
        (addr, len): (u64, usize),
        gates: [&'m Gate; 2],
    ) -> Remote<'m> {
        Remote { brought: self, rank, addr, len, gates }
    }
}

impl Remote<'_> {
    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the rank whose bytes these are.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Returns the address of the first one there.
    pub fn addr(&self) -> u64 {
        self.addr
    }

    /// Begins an operation on these bytes, which may be gathered with others. [`Remote::finish_batch`] tells what fails.
    pub fn begin(self, operation: Short) {
        self.brought.batches.begin(self, operation);
    }

    /// Carries out what was gathered for the rank. What fails is told by [`Remote::finish_batch`].
    pub fn end_batch(self) {
        self.brought.batches.end(self);
    }

    /// Carries it out, and returns why gathered operations have failed since this was asked last.
    pub fn finish_batch(self) -> Result<(), Error> {
        self.brought.batches.finish(self)
    }

    /// Calls `update` while no other rank updates elements of this one. It makes no progress while it waits (WQ4).
    pub fn serialise(&self, update: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        let [_, target] = self.gates;
        let lives = |rank| {
            let task = self.brought.way.tasks.get(rank as usize);
            match task.filter(|task| self.brought.way.memory.has_ended(**task)) {
                Some(task) => Err(lost(*task)),
                None => Ok(()),
            }
        };
        target.serialise(self.brought.rank, lives, update)?
    }

    /// Fills `into` with the bytes from `at` on, which are at least as many.
    pub fn load(&self, at: usize, into: RecvPart<'_>) -> Result<(), Error> {
        let from = PeerBytes { addr: self.addr.wrapping_add(at as u64), len: into.len() };
        self.read(&[from], into)
    }

    /// Stores bytes from `at` on, where there are at least as many.
    pub fn store(&self, at: usize, from: ForeignBytes<'_>) -> Result<(), Error> {
        let to = PeerBytes { addr: self.addr.wrapping_add(at as u64), len: from.len() };
        self.write(&[to], from)
    }

    /// Fills `into` with the bytes of a layout from `at` on, whose displacement 0 is at `origin`. It lies inside.
    pub fn load_layout(
        &self,
        (layout, origin): (&Layout, isize),
        at: usize,
        mut into: RecvPart<'_>,
    ) -> Result<(), Error> {
        let (len, mut done) = (into.len(), 0);
        self.each_copy(layout, origin, (at, len), |blocks, len| {
            let outcome = self.read(blocks, into.part(done, len));
            done += len;
            outcome
        })
    }

    /// Stores the bytes of a layout like [`Remote::load_layout`].
    pub fn store_layout(
        &self,
        (layout, origin): (&Layout, isize),
        at: usize,
        from: ForeignBytes<'_>,
    ) -> Result<(), Error> {
        let mut done = 0;
        self.each_copy(layout, origin, (at, from.len()), |blocks, len| {
            let outcome = self.write(blocks, from.part(done, len));
            done += len;
            outcome
        })
    }

    /// Calls `copy` with blocks of a layout, so many that one call copies, and how many bytes they are, until all were given.
    fn each_copy(
        &self,
        layout: &Layout,
        origin: isize,
        (at, len): (usize, usize),
        mut copy: impl FnMut(&[PeerBytes], usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (mut blocks, mut bytes, mut outcome) = (Vec::new(), 0, Ok(()));
        let _ = layout.each_span(at, len, &mut |by, len| {
            let addr = self.addr.wrapping_add_signed((origin + by) as i64);
            blocks.push(PeerBytes { addr, len });
            bytes += len;
            if blocks.len() == MOST {
                outcome = copy(&blocks, bytes);
                blocks.clear();
                bytes = 0;
            }
            if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        match blocks.is_empty() {
            false if outcome.is_ok() => copy(&blocks, bytes),
            _ => outcome,
        }
    }

    /// Fills `into` with bytes of the rank, which are at least as many.
    pub fn read(&self, from: &[PeerBytes], into: RecvPart<'_>) -> Result<(), Error> {
        let task = self.brought.way.tasks[self.rank as usize];
        self.brought.way.memory.read(task, from, into).map_err(|error| self.failed(error))
    }

    /// Stores `from` in bytes of the rank, which are at least as many.
    pub fn write(&self, to: &[PeerBytes], from: ForeignBytes<'_>) -> Result<(), Error> {
        let task = self.brought.way.tasks[self.rank as usize];
        let [own, target] = self.gates;
        let Some(_writing) = own.begin_write(target) else {
            return Err(WindowError::Access { rank: self.rank, errno: libc::EFAULT }.into());
        };
        // SAFETY: WM1: the owner lets others write the bytes of its part, in which these lie, until it closes it (WR2).
        let written = unsafe { self.brought.way.memory.write(task, to, from) };
        written.map_err(|error| self.failed(error))
    }

    #[cold]
    fn failed(&self, error: AdapterError) -> Error {
        match error {
            AdapterError::AccessFailed { reason, .. } => {
                let errno = reason.raw_os_error().unwrap_or(libc::EACCES);
                WindowError::Access { rank: self.rank, errno }.into()
            }
            error => mpjdev::Error::from(LapiError::from(error)).into(),
        }
    }
}

#[cold]
fn lost(task: u32) -> Error {
    mpjdev::Error::from(LapiError::from(AdapterError::PeerLost { task })).into()
}
