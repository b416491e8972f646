//! Windows: memory of each rank of a communicator that the other ranks read and write (MPI-4.1 chapter 12).
//!
//! A window has a communicator of its own. If all ranks are on one host, each one carries its operations out itself, also
//! while the target computes (`direct.rs`): it has the memory of all mapped, if the window has allocated it, or reads and
//! writes memory that programs have brought in their processes, if the system lets it (`remote.rs`). In all other windows,
//! dynamic ones above all, its operations are messages in that communicator's context, which the device delivers to the
//! target's [`Window`] instead of keeping them for a receive. A thread of the target that makes progress, in whatever call,
//! carries them out. So a target that computes serves nobody, unless it has a progress thread. For such windows:
//!
//! - OW1: the messages of a rank to another one have numbers, and the target carries them out in that order, one at a time
//!   (`stream.rs`), whatever the order in which threads send and receive them. So operations on the same place are
//!   ordered, and an answer to a flush, which has a number too, says that all operations before it have been carried out.
//!   So does the data of a get, and the answer to a short put or accumulate, which one asks for that follows no other one
//!   whose end is not known. A flush behind such an operation is no message.
//! - OW2: the data of short puts, and of accumulates, are copied into their messages. So the program's buffer is free at
//!   once. Long puts and gets of one block at the target are two messages: the second one has the data, which the device
//!   moves between the program's buffer and the window. The target carries nothing out behind them before the data have
//!   been moved: a lock that is given back there protects them until then.
//! - OW3: a lock is asked for by a message, and the target holds all later messages of the rank back until the rank has the
//!   lock. So calls that lock wait only for the own window, whose program may access its memory directly. What is held
//!   back is bounded: an origin whose messages are too many bytes ahead of the target's answers waits for one.
//! - OW4: a rank that waits for others needs all ranks of the window: the loss of any one ends the wait, and
//!   transfers of long data. The data of short gets that then arrive are dropped, except for those with requests, which
//!   need their target only. Other threads may wait for what was dropped, so all later waits for operations fail, too.
//!
//! Where hardware of a network reads and writes memory of other hosts, puts and gets of one block are its accesses instead,
//! for which no target makes progress (`network.rs`).
//!
//! The files: `operation.rs`, `sync.rs` and `service.rs` are the origin's operations, the calls that synchronize, and what
//! the target does. `direct.rs`, `remote.rs` and `gate.rs` are operations that an origin carries out itself, and the words
//! by which ranks exclude each other there; `batch.rs` gathers short ones. Pure are `head.rs` (messages), `stream.rs`
//! (their order), `locks.rs`, `epoch.rs` (what a program may call when), `conflicts.rs` (accesses that conflict) and
//! `update.rs` (accumulates). `memory.rs` and `place.rs` have the memory, and bytes of it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use mpjdev::{Call, Ending, RecvRegion, Sink, Status};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::communicator::Communicator;
use crate::error::{Error, WindowError};
use crate::group::Group;

mod batch;
mod conflicts;
mod direct;
mod epoch;
mod gate;
mod head;
mod locks;
mod memory;
mod network;
mod operation;
mod place;
mod remote;
mod service;
mod stream;
mod sync;
#[cfg(test)]
mod tests;
mod update;

use conflicts::Log;
use direct::Direct;
use epoch::{Epochs, Open};
use head::{Head, Kind, Shape};
use locks::Locks;
use memory::Memory;
use network::Network;
pub use operation::Target;
use stream::Stream;
pub use sync::LockKind;

/// A window: memory of each rank of a communicator that the other ranks access. Clones are the same window.
#[derive(Clone)]
pub struct Window(Arc<Inner>);

/// How a window got its memory: the attribute MPI_WIN_CREATE_FLAVOR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flavor {
    /// From the program.
    Create,
    /// The window has allocated it.
    Allocate,
    /// The window has allocated it in memory that all ranks have mapped.
    Shared,
    /// The program attaches and detaches it.
    Dynamic,
}

struct Inner {
    communicator: Communicator,
    flavor: Flavor,
    /// What each rank exposes. Set before any operation.
    exposed: OnceLock<Vec<Exposed>>,
    memory: Mutex<Memory>,
    /// The memory of all ranks, if all access it themselves.
    direct: Option<Direct>,
    /// How a network finds memory of ranks, if it does. Set before any operation.
    network: OnceLock<Network>,
    state: Mutex<State>,
    /// What the epochs allow. Nothing if accesses are noted.
    open: Open,
    /// The accesses, in a job that looks for mistakes between ranks.
    log: Option<Mutex<Log>>,
    /// Calls that need no other rank, and make progress only now and then.
    calls: AtomicU32,
}

/// What a rank exposes.
#[derive(Debug, Clone, Copy)]
struct Exposed {
    size: u64,
    /// Bytes by which a displacement counts.
    unit: u64,
}

#[derive(Default)]
struct State {
    epochs: Epochs,
    /// By rank.
    peers: Vec<Peer>,
    /// Gets without data, by target and number.
    gets: FxHashMap<(u32, u64), Fetch>,
    /// Transfers of long data that have not ended, to and from all ranks.
    transfers: usize,
    /// How often this rank was told to look whether it has got a lock.
    told: u64,
    /// What waits for something to change.
    waiting: Vec<Ending>,
    /// The lock of this rank's window. A rank that waits has the number of its message, if it wants an answer.
    locks: Locks<Option<u64>>,
    /// Messages of other ranks, by rank.
    streams: Vec<Stream<Incoming>>,
    /// Ranks whose operations were refused since they last flushed.
    refused: FxHashSet<u32>,
    /// The loss after which places of gets were dropped, or which has ended accesses by the network.
    given_up: Option<Error>,
}

/// What a rank knows of another one.
#[derive(Debug, Default, Clone)]
struct Peer {
    /// Number of messages so far (OW1).
    sent: u64,
    /// The highest number that was answered, so that all messages up to it have been carried out.
    done: u64,
    /// The highest number that it is to answer, and whether there are operations since.
    asked: u64,
    is_open: bool,
    /// The numbers whose answers may say that something was refused, and have not come: several threads take answers.
    awaited: VecDeque<u64>,
    /// Whether some of the operations were refused.
    is_refused: bool,
    /// The numbers of short gets without data, and of transfers of long data.
    open: BTreeSet<u64>,
    /// Accesses to its memory by the network that have not ended (NW2), and the number of the last one.
    accesses_under_way: Vec<network::Access>,
    next_access: u64,
    /// Whether the network has refused one.
    refuses_accesses: bool,
    /// Number of the message that ended the last epoch of start, and of the one that asked for the lock.
    completed: u64,
    locked: u64,
    /// Bytes of messages that it was not known to have carried out, since it last had carried out all.
    ahead: usize,
    /// How often it has exposed its window to this rank, and has completed its accesses, beyond what was waited for.
    posts: u32,
    completes: u32,
    /// What it has accessed in each epoch of start that it has completed (WN1).
    accesses: VecDeque<Vec<u64>>,
}

/// A get without data.
struct Fetch {
    /// Where the data go, unless the wait for them was given up (OW4).
    into: Option<Sink>,
    /// The request, if there is one.
    ending: Option<Ending>,
}

/// A message to be carried out.
struct Incoming {
    head: Head,
    shape: Option<Shape>,
    message: Vec<u8>,
    /// Where its data begin.
    data: usize,
}

impl Window {
    /// Makes a window of memory that the program has: MPI_Win_create. Collective on an intracommunicator. `unit` is the
    /// number of bytes by which displacements in this rank's memory count.
    ///
    /// The region is a promise that the memory stays until [`Window::free`] has returned, or the device has failed.
    ///
    /// # Errors
    /// [`Error::Kind`]; [`Error::Contexts`]; the loss of a member; what made the device unusable.
    pub fn create(
        communicator: &Communicator,
        memory: RecvRegion,
        unit: usize,
    ) -> Result<Self, Error> {
        let size = memory.len();
        communicator.intra("a window")?;
        match Direct::over(communicator, memory, unit)? {
            Ok(direct) => Self::share(communicator, Flavor::Create, direct, (size, unit)),
            Err(memory) => {
                let memory = Some(Memory::of(memory));
                Self::make(communicator, Flavor::Create, (memory, None), (size, unit))
            }
        }
    }

    /// Makes a window with new memory of `size` bytes, which contains zeros: MPI_Win_allocate. Collective.
    ///
    /// # Errors
    /// As [`Window::create`]; [`Error::Memory`] on all ranks if one has not so much memory.
    pub fn allocate(communicator: &Communicator, size: usize, unit: usize) -> Result<Self, Error> {
        communicator.intra("a window")?;
        match Direct::agree(communicator, (size, unit), false)? {
            Some(direct) => Self::share(communicator, Flavor::Allocate, direct, (size, unit)),
            None => {
                Self::make(communicator, Flavor::Allocate, (Memory::new(size), None), (size, unit))
            }
        }
    }

    /// Makes a window with new memory that all ranks have mapped: MPI_Win_allocate_shared. Collective. The parts of the
    /// ranks follow each other, in the order of ranks.
    ///
    /// # Errors
    /// As [`Window::allocate`]; [`WindowError::NotShared`], on all ranks, if they are not all on one host, or there is not
    /// so much memory that they share.
    pub fn allocate_shared(
        communicator: &Communicator,
        size: usize,
        unit: usize,
    ) -> Result<Self, Error> {
        communicator.intra("a window")?;
        let direct = Direct::agree(communicator, (size, unit), true)?;
        let why = "the ranks are not all on one host (divide the communicator by MPI_Comm_split_type), or they cannot open \
                   memory of each other, or there is not so much";
        let direct = direct.ok_or(WindowError::NotShared { why })?;
        Self::share(communicator, Flavor::Shared, direct, (size, unit))
    }

    /// Makes a window without memory, to which the program attaches some: MPI_Win_create_dynamic. Collective.
    /// Displacements are addresses at the target.
    ///
    /// # Errors
    /// As [`Window::create`].
    pub fn dynamic(communicator: &Communicator) -> Result<Self, Error> {
        Self::make(communicator, Flavor::Dynamic, (Some(Memory::dynamic()), None), (0, 1))
    }

    /// Makes a window in memory that all ranks access themselves.
    fn share(
        communicator: &Communicator,
        flavor: Flavor,
        direct: Direct,
        sizes: (usize, usize),
    ) -> Result<Self, Error> {
        // No operation on it is a message.
        Self::make(communicator, flavor, (Some(Memory::dynamic()), Some(direct)), sizes)
    }

    fn make(
        communicator: &Communicator,
        flavor: Flavor,
        (memory, direct): (Option<Memory>, Option<Direct>),
        (size, unit): (usize, usize),
    ) -> Result<Self, Error> {
        communicator.intra("a window")?;
        let communicator = communicator.apart(Call::WinCreate)?;
        communicator.set_name("window");
        let ranks = communicator.size() as usize;
        let streams = std::iter::repeat_with(Stream::default).take(ranks).collect();
        let state = State { peers: vec![Peer::default(); ranks], streams, ..State::default() };
        let (exposed, has_memory) = (OnceLock::new(), memory.is_some());
        let memory = Mutex::new(memory.unwrap_or_else(Memory::dynamic));
        let state = Mutex::new(state);
        let log = communicator.is_checked().then(Mutex::default);
        let inner = Arc::new(Inner {
            communicator,
            flavor,
            exposed,
            memory,
            direct,
            network: OnceLock::new(),
            state,
            open: Open::default(),
            log,
            calls: AtomicU32::new(0),
        });
        inner.begin()?;
        let own = network::expose(&inner.communicator, inner.memory().whole());
        // All ranks take messages, and have registered their memory, before any rank has this answer.
        let mut words = vec![size as u64, unit as u64, u64::from(has_memory)];
        words.extend(network::words_of(own));
        let each = words.len();
        let words = inner.communicator.gather_words(Call::WinCreate, words);
        let told = words.iter().flat_map(|words| words.chunks_exact(each));
        let network =
            Network::new(&inner.communicator, own, told.map(|words| (words[0], &words[3..])));
        // Whatever has failed, the memory is registered no longer than the window lasts.
        inner.network.get_or_init(|| network);
        let words = words?;
        let of_ranks = words.chunks_exact(each);
        if let Some(without) = of_ranks.clone().find(|words| words[2] == 0) {
            return Err(Error::Memory { bytes: without[0] as usize });
        }
        let exposed = of_ranks.map(|words| Exposed { size: words[0], unit: words[1] }).collect();
        inner.exposed.get_or_init(|| exposed);
        Ok(Self(inner))
    }

    /// Ends the window, when all ranks have called this: MPI_Win_free. Collective.
    ///
    /// # Errors
    /// [`WindowError::Sync`] inside of an epoch; the loss of a member; what made the device unusable.
    pub fn free(self) -> Result<(), Error> {
        self.check_free()?;
        self.0.take_answers();
        let met = self.0.communicator.gather_words(Call::WinFree, vec![0]);
        self.0.close_network();
        // Nobody accesses this rank's memory any more; after an error, nobody may.
        met.map(drop).inspect_err(|why| {
            self.0.communicator.device().end_delivery(self.0.communicator.context());
            self.0.give_up(why);
            *self.0.memory() = Memory::dynamic();
            self.0.direct.iter().for_each(Direct::close);
        })
    }

    /// Ends the window, whatever epochs are open, when all ranks have called this, but does not wait for them: until then it
    /// serves the others. If a rank is lost before, or the device fails, the memory stays as long as the process.
    pub fn free_later(self) {
        let kept = self.clone();
        let have_come = move |outcome: Result<_, Error>| match outcome {
            Ok(_) => drop(kept),
            Err(_) => std::mem::forget(kept),
        };
        let communicator = &self.0.communicator;
        if communicator.gather_words_then(Call::WinFree, vec![0], have_come).is_err() {
            std::mem::forget(self);
        }
    }

    /// Checks that no epoch is open, before [`Window::free`].
    ///
    /// # Errors
    /// [`WindowError::Sync`].
    pub fn check_free(&self) -> Result<(), Error> {
        Ok(self.0.epochs(|epochs| epochs.free())?)
    }

    /// Attaches memory to a dynamic window: MPI_Win_attach. The region is a promise that the memory stays until it is
    /// detached, or [`Window::free`] has returned, or the device has failed.
    ///
    /// # Errors
    /// [`WindowError::Flavor`]; [`WindowError::Attachment`].
    pub fn attach(&self, memory: RecvRegion) -> Result<(), Error> {
        self.needs_dynamic("attach")?;
        Ok(self.0.memory().attach(memory)?)
    }

    /// Detaches the memory that begins at `base`: MPI_Win_detach.
    ///
    /// # Errors
    /// As [`Window::attach`].
    pub fn detach(&self, base: *const u8) -> Result<(), Error> {
        self.needs_dynamic("detach")?;
        Ok(self.0.memory().detach(base.addr())?)
    }

    fn needs_dynamic(&self, call: &'static str) -> Result<(), WindowError> {
        match self.0.flavor {
            Flavor::Dynamic => Ok(()),
            _ => Err(WindowError::Flavor { call, by: "MPI_Win_create_dynamic" }),
        }
    }

    /// Returns where the memory of a rank is in this process, in bytes how long it is, and the unit of displacements;
    /// without a rank, of the first one that has some. If it has none, or this process does not have it, the address is null
    /// and the length 0. MPI_Win_shared_query.
    ///
    /// # Errors
    /// [`WindowError::Flavor`] for a dynamic window; [`Error::Group`] if there is no such rank.
    pub fn shared_query(&self, rank: Option<u32>) -> Result<(*mut u8, u64, u64), Error> {
        if self.0.flavor == Flavor::Dynamic {
            let by = "MPI_Win_allocate_shared";
            return Err(WindowError::Flavor { call: "shared_query", by }.into());
        }
        let all = self.0.exposed.get().map_or(&[][..], Vec::as_slice);
        let first = (0..).zip(all).find(|(_, exposed)| exposed.size > 0);
        let rank = rank.or(first.map(|(rank, _)| rank)).unwrap_or(self.rank());
        let Exposed { size, unit } = self.0.exposed(rank)?;
        match &self.0.direct {
            _ if size == 0 => Ok((std::ptr::null_mut(), 0, unit)),
            Some(direct) if self.0.flavor == Flavor::Shared => Ok((direct.part(rank), size, unit)),
            _ if rank == self.rank() => Ok((self.base(), size, unit)),
            _ => Ok((std::ptr::null_mut(), 0, unit)),
        }
    }

    /// Returns the address of this rank's memory: the attribute MPI_WIN_BASE. It is null in dynamic windows.
    pub fn base(&self) -> *mut u8 {
        match &self.0.direct {
            Some(direct) => direct.part(self.rank()),
            None => self.0.memory().base(),
        }
    }

    /// Returns the bytes of this rank's memory, and the unit of its displacements: MPI_WIN_SIZE, MPI_WIN_DISP_UNIT.
    pub fn extent(&self) -> (u64, u64) {
        let own = self.0.exposed(self.0.communicator.rank());
        own.map_or((0, 1), |Exposed { size, unit }| (size, unit))
    }

    /// Returns how it was made: MPI_WIN_CREATE_FLAVOR.
    pub fn flavor(&self) -> Flavor {
        self.0.flavor
    }

    /// Returns its ranks: MPI_Win_get_group.
    pub fn group(&self) -> &Group {
        self.0.communicator.group()
    }

    /// Returns the rank of this process among them.
    pub fn rank(&self) -> u32 {
        self.0.communicator.rank()
    }

    /// Lets checks take for mistakes what MPI leaves undefined, although this library defines it: accesses of one rank to
    /// the same bytes that no flush separates, and different operations of the accumulate family on them.
    pub fn check_as_mpi(&self) {
        if let Some(mut log) = self.0.log() {
            log.is_mpi = true;
        }
    }

    /// Sets the name that reports use, on this rank.
    pub fn set_name(&self, name: impl Into<String>) {
        self.0.communicator.set_name(name);
    }
}

impl Inner {
    /// Takes messages from now on.
    fn begin(self: &Arc<Self>) -> Result<(), Error> {
        let (weak, device) = (Arc::downgrade(self), self.communicator.device());
        let take = move |message| {
            // Messages that come after the end of the window are for nobody.
            if let Some(window) = weak.upgrade() {
                window.arrived(message);
            }
        };
        device.deliver(self.communicator.context(), take)?;
        let contexts = [self.waits(), self.transfers()];
        Ok(contexts
            .into_iter()
            .try_for_each(|of| device.set_members(of, self.communicator.members()))?)
    }

    /// Waits for the answers that are under way, since nobody takes them after the end of the window. What is lost is told by
    /// the caller's next wait.
    fn take_answers(&self) {
        let all = 0..self.communicator.size();
        let asked = |rank| self.state().peers[rank as usize].asked;
        all.for_each(|rank| drop(self.settle_up_to(Call::WinFree, rank, asked(rank))));
    }

    /// Ends accesses by the network to the memory of this rank.
    fn close_network(&self) {
        let network = self.network.get();
        network.into_iter().for_each(|network| network.close(self.communicator.device()));
    }

    /// Returns the device's context of waits, which need all ranks (OW4).
    fn waits(&self) -> u32 {
        self.communicator.partition_contexts()[0]
    }

    /// Returns the device's context of long data.
    fn transfers(&self) -> u32 {
        self.communicator.partition_contexts()[1]
    }

    fn exposed(&self, rank: u32) -> Result<Exposed, Error> {
        self.communicator.group().job_rank(rank)?;
        let exposed = self.exposed.get().and_then(|exposed| exposed.get(rank as usize));
        Ok(*exposed.expect("a window is complete before anybody has it"))
    }

    /// Sends a message to a rank.
    fn post(&self, rank: u32, message: Vec<u8>) -> Result<(), Error> {
        let peer = self.communicator.group().job_rank(rank)? as usize;
        Ok(self.communicator.device().send_bytes(message, peer, 0, self.communicator.context())?)
    }

    /// Wakes the threads that wait for something to change.
    fn wake(&self, waiting: Vec<Ending>) {
        for ending in waiting {
            self.communicator.device().end(ending, Ok(Status::new(0, 0, 0)));
        }
    }

    /// Makes progress in each sixteenth call: a program may poll a window for what other ranks write only after messages
    /// of this one have left.
    fn progress_sometimes(&self) -> Result<(), Error> {
        let calls = self.calls.load(Ordering::Relaxed).wrapping_add(1);
        self.calls.store(calls, Ordering::Relaxed);
        match calls % 16 {
            0 => Ok(self.communicator.device().progress()?),
            _ => Ok(()),
        }
    }

    /// Calls `change` with the epochs.
    fn epochs<R>(&self, change: impl FnOnce(&mut Epochs) -> R) -> R {
        let mut state = self.state();
        self.open.tell(&mut state.epochs);
        let result = change(&mut state.epochs);
        if self.log.is_none() {
            self.open.set(state.epochs.open());
        }
        result
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self) -> Option<MutexGuard<'_, Log>> {
        Some(self.log.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns how many messages this rank has sent.
    fn sent(&self) -> u64 {
        let stats = self.communicator.device().stats().unwrap_or_default();
        stats.eager.messages + stats.rendezvous.messages
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.direct.iter().for_each(Direct::close);
        self.close_network();
        let device = self.communicator.device();
        device.end_delivery(self.communicator.context());
        [self.waits(), self.transfers()].into_iter().for_each(|of| device.clear_members(of));
    }
}

/// Returns the tag of the long data that belong to a message of an origin: even for data that go to the target, odd for
/// those that come from there, since both ranks of a pair are origins and count for themselves.
fn tag_of(number: u64, kind: Kind) -> i32 {
    2 * (number % (1 << 30)) as i32 + i32::from(kind == Kind::LongGet)
}

impl Peer {
    /// Returns whether the buffers of all operations on it up to this number are free, and results are there.
    fn is_local_to(&self, number: u64) -> bool {
        self.open.first().is_none_or(|first| *first > number)
    }

    /// Notes that it has carried out all messages up to this one.
    fn carried_out(&mut self, number: u64) {
        self.done = self.done.max(number);
        if self.done == self.sent {
            self.ahead = 0;
        }
    }

    /// Returns whether it has carried out all messages up to this one, and all that it says of them is known.
    fn has_answered(&self, number: u64) -> bool {
        let is_known = self.awaited.front().is_none_or(|first| *first > number);
        self.done >= number && is_known && self.is_local_to(number)
    }

    /// Returns the number of the next message to it.
    fn next(&mut self) -> u64 {
        self.sent += 1;
        self.sent
    }
}
