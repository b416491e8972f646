//! Jobs that a process manager has started: `srun --mpi=pmi2`, `srun --mpi=pmix`, `mpiexec.hydra`, Open MPI's `mpirun`.
//!
//! A process manager tells a rank its number, the number of ranks, and which of them share a host. For all else it has
//! a key-value space: each rank puts values, all meet at a fence, and then each gets what the others have put. That
//! suffices to make the job: the ranks of a host pass a segment among themselves (`handover.rs`), and all exchange the
//! addresses of their endpoints. There is no launcher of ours then, and so no control line: a rank that fails has the
//! process manager end the job.
//!
//! - KV1: a value is written in hexadecimal, in pieces that fit the limits of the manager. Each piece says whether
//!   another one follows. So a value may have any bytes, and none that a manager would take for a separator.
//! - KV2: what other ranks have put is a claim: it is checked before it is used.
//! - KV3: a fork of the rank says nothing: the manager would take it for the rank.
//! - KV4: a manager that is to end the job may throw away what ranks have written and it has not read. So a rank first
//!   waits until its pipes are empty.
//!
//! | file | contents |
//! |---|---|
//! | `pmi1`, `pmi2`, `pmix` | the clients |
//! | `line`, `record` | the connection of PMI, and what it carries |
//! | `mapping` | which rank runs on which host |
//! | `handover` | descriptors from one rank of a host to the others |

pub(crate) mod mapping;
pub(crate) mod record;

mod handover;
mod line;
mod pmi1;
mod pmi2;
mod pmix;

use std::fmt::{self, Display, Formatter, Write};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, fstat};
use rustix::io::ioctl_fionread;

use crate::adapter::{MAX_TASKS, TaskId};
use crate::platform::fork::ProcessMark;

/// The key of the process mapping in PMI.
const MAPPING: &str = "PMI_process_mapping";
/// Most hexadecimal digits of one piece of a value. Some managers take lines of 1024 bytes, in which a value comes with
/// its key and the name of the space.
const PIECE: usize = 600;
/// The same for a manager that takes less: one that takes less than this refuses values.
const LEAST_PIECE: usize = 64;
/// Longest value without a limit of the manager's own, with a terminating zero.
const LONGEST_VALUE: usize = 1024;
/// Longest value that can be put, in bytes.
pub const MAX_VALUE: usize = 2048;
/// How long a rank waits for a manager that does not read what the rank has written.
const LONGEST_READING: Duration = Duration::from_millis(500);
/// Most pieces of a value.
const MAX_PIECES: usize = 2 * MAX_VALUE / LEAST_PIECE;

/// The process managers that have started jobs of ours, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Manager {
    /// Hydra and others that speak PMI-1.
    Pmi1,
    /// Slurm's plug-in `pmi2`.
    Pmi2,
    /// Slurm's plug-in `pmix`, Open MPI's launcher.
    Pmix,
}

impl Display for Manager {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pmi1 => "the process manager (PMI-1, mpiexec)",
            Self::Pmi2 => "the process manager (PMI-2, srun --mpi=pmi2)",
            Self::Pmix => "the process manager (PMIx, srun --mpi=pmix or mpirun)",
        })
    }
}

/// Why a job could not be made with the help of a process manager.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExchangeError {
    /// The connection failed.
    #[error(
        "{manager} was to {to}, but the connection to it failed: {source}; it ends a job in which a rank has failed, \
         and lets each rank join once, so a script that is a rank may run one mpj program, not several"
    )]
    Connection {
        /// The process manager.
        manager: Manager,
        /// What it was asked for.
        to: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The manager answered that it cannot do what it was asked for.
    #[error("{manager} was to {to}, but refused ({answer}); {OTHER_WAYS}")]
    Refused {
        /// The process manager.
        manager: Manager,
        /// What it was asked for.
        to: &'static str,
        /// Its answer.
        answer: String,
    },
    /// The answer is none to what was asked.
    #[error("{manager} was to {to}, but said what is no answer to that ({answer:?}); {OTHER_WAYS}")]
    Unexpected {
        /// The process manager.
        manager: Manager,
        /// What it was asked for.
        to: &'static str,
        /// Its answer.
        answer: String,
    },
    /// The manager gives this process a place that does not exist.
    #[error(
        "{manager} says that this is rank {rank} of {size}, and a job has 1 to {MAX_TASKS} ranks; {OTHER_WAYS}"
    )]
    Place {
        /// The process manager.
        manager: Manager,
        /// The rank.
        rank: u64,
        /// The number of ranks.
        size: u64,
    },
    /// The text that says which rank runs where cannot be read.
    #[error("{manager} says that the ranks run on {mapping:?}, which is no mapping; {OTHER_WAYS}")]
    Mapping {
        /// The process manager.
        manager: Manager,
        /// The text.
        mapping: String,
    },
    /// A rank has not put what it should have, or something else.
    #[error(
        "rank {owner} has not given its {name} to {manager}; start the same version of the program on all hosts"
    )]
    Missing {
        /// The process manager.
        manager: Manager,
        /// The rank that should have put the value.
        owner: TaskId,
        /// The name of the value.
        name: String,
    },
    /// The library of PMIx is missing.
    #[error(
        "the process manager that has started this program speaks PMIx, whose library cannot be loaded: {source}; install \
         it (Debian: libpmix2), add its folder to LD_LIBRARY_PATH, or use srun --mpi=pmi2 or mpjrun -n N PROGRAM"
    )]
    Library {
        /// The error of the loader.
        source: io::Error,
    },
    /// The first rank of this host has memory for all of them, which could not be passed on.
    #[error(
        "the {name} that rank {owner} has made for the ranks of this host cannot be opened: {source}; they must run as one user, see the same /proc and be in one PID namespace: start all ranks of a host in one container"
    )]
    Handover {
        /// The first rank of the host.
        owner: TaskId,
        /// What the memory is.
        name: &'static str,
        /// What the system answered.
        source: io::Error,
    },
}

/// Advice for managers with which nothing can be done.
const OTHER_WAYS: &str = "start the program with mpjrun -n N PROGRAM, or with srun --mpi=pmi2";

/// What the key-value spaces of all process managers have in common.
trait KeyValueSpace: Send {
    /// Puts a value. Others find it after a fence.
    fn put(&mut self, key: &str, value: &str) -> Result<(), ExchangeError>;

    /// Waits until all ranks have come to this fence.
    fn fence(&mut self) -> Result<(), ExchangeError>;

    /// Gets the value that `owner` has put before a fence; `None` if it has put none.
    fn get(&mut self, owner: TaskId, key: &str) -> Result<Option<String>, ExchangeError>;

    /// Has the manager end the job with exit code `code`.
    fn abort(&mut self, code: i32, why: &str) -> Result<(), ExchangeError>;

    /// Leaves the job: from now on the rank may end without harm to the others.
    fn finalize(&mut self) -> Result<(), ExchangeError>;
}

/// What a manager says when a rank joins.
#[derive(Debug)]
struct Job {
    rank: TaskId,
    size: usize,
    /// Most bytes of a value, with a terminating zero.
    longest_value: usize,
    /// The process mapping of PMI, if there is one.
    mapping: Option<String>,
    /// The host of each rank, if the manager says it in another way.
    hosts: Option<Vec<u32>>,
}

/// A rank's connection to the process manager that has started its job. Clones share it.
#[derive(Clone)]
pub struct Exchange {
    place: Arc<Place>,
    space: Arc<Mutex<Box<dyn KeyValueSpace>>>,
    /// Whether this rank has left the job, or has had it ended.
    has_left: Arc<AtomicBool>,
    process: ProcessMark,
}

#[derive(Debug)]
struct Place {
    manager: Manager,
    rank: TaskId,
    piece: usize,
    host_of: Vec<u32>,
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Exchange {
    /// Joins over a socket that speaks PMI-1.
    pub(super) fn pmi1(socket: OwnedFd, rank: TaskId, size: usize) -> Result<Self, ExchangeError> {
        let (space, job) = pmi1::Pmi1::join(socket, rank, size)?;
        Self::new(Manager::Pmi1, space, job)
    }

    /// Joins as the process called `id`, over the port of a manager that speaks PMI-1.
    pub(super) fn pmi1_by_port(address: &str, id: &str) -> Result<Self, ExchangeError> {
        let (space, job) = pmi1::Pmi1::join_by_port(address, id)?;
        Self::new(Manager::Pmi1, space, job)
    }

    /// Joins the job called `job` over a socket that speaks PMI-2.
    pub(super) fn pmi2(
        socket: OwnedFd,
        job: &str,
        rank: TaskId,
        size: usize,
    ) -> Result<Self, ExchangeError> {
        let (space, job) = pmi2::Pmi2::join(socket, job, rank, size)?;
        Self::new(Manager::Pmi2, space, job)
    }

    /// Joins through the library of PMIx, which may lie in the installation at `prefix`.
    pub(super) fn pmix(prefix: Option<&str>) -> Result<Self, ExchangeError> {
        let (space, job) = pmix::Pmix::join(prefix)?;
        Self::new(Manager::Pmix, space, job)
    }

    fn new(
        manager: Manager,
        space: impl KeyValueSpace + 'static,
        job: Job,
    ) -> Result<Self, ExchangeError> {
        let Job { rank, size, longest_value, mapping, hosts } = job;
        if rank as usize >= size || size > MAX_TASKS {
            let (rank, size) = (rank.into(), size as u64);
            return Err(ExchangeError::Place { manager, rank, size });
        }
        let host_of = match mapping {
            None => hosts.unwrap_or_default(),
            Some(mapping) => {
                mapping::hosts(&mapping, size).ok_or(ExchangeError::Mapping { manager, mapping })?
            }
        };
        let piece = longest_value.saturating_sub(2).clamp(LEAST_PIECE, PIECE);
        let is_known = !host_of.is_empty();
        let place = Place { manager, rank, piece, host_of };
        let space: Box<dyn KeyValueSpace> = Box::new(space);
        let (place, space) = (Arc::new(place), Arc::new(Mutex::new(space)));
        let has_left = Arc::new(AtomicBool::new(false));
        let mut exchange = Self { place, space, has_left, process: ProcessMark::new() };
        if !is_known {
            let host_of = exchange.hosts_by_name(size)?;
            let place = Arc::get_mut(&mut exchange.place).expect("there is no clone yet");
            place.host_of = host_of;
        }
        debug_assert_eq!(exchange.size(), size);
        Ok(exchange)
    }

    /// Asks all ranks for the host that they run on.
    fn hosts_by_name(&self, size: usize) -> Result<Vec<u32>, ExchangeError> {
        self.put("place", &this_host())?;
        self.fence()?;
        let places = (0..size as TaskId).map(|rank| self.get(rank, "place"));
        Ok(mapping::numbered(&places.collect::<Result<Vec<_>, _>>()?))
    }

    /// Returns the process manager.
    pub fn manager(&self) -> Manager {
        self.place.manager
    }

    /// Returns the number of this rank in its job.
    pub fn rank(&self) -> TaskId {
        self.place.rank
    }

    /// Returns the number of ranks of the job.
    pub fn size(&self) -> usize {
        self.place.host_of.len()
    }

    /// Returns the host of each rank. Hosts are numbered from 0 in the order of their first ranks.
    pub fn host_of(&self) -> &[u32] {
        &self.place.host_of
    }

    /// Returns the host of this rank.
    pub fn host(&self) -> u32 {
        self.host_of()[self.rank() as usize]
    }

    /// Returns the number of hosts.
    pub fn hosts(&self) -> usize {
        self.host_of().iter().fold(0, |hosts, host| hosts.max(*host as usize + 1))
    }

    /// Returns the ranks of a host, in order.
    pub fn ranks_of(&self, host: u32) -> impl Iterator<Item = TaskId> {
        let ranks = (0..).zip(self.host_of());
        ranks.filter(move |(_, of)| **of == host).map(|(rank, _)| rank)
    }

    /// Puts a value of this rank; the others get it after a fence.
    ///
    /// # Errors
    /// [`ExchangeError::Connection`], [`ExchangeError::Refused`], [`ExchangeError::Unexpected`]; so for all calls.
    ///
    /// # Panics
    /// If the value is longer than [`MAX_VALUE`].
    pub fn put(&self, name: &str, value: &[u8]) -> Result<(), ExchangeError> {
        assert!(value.len() <= MAX_VALUE, "the {name} of this rank has {} bytes", value.len());
        let digits = hexadecimal(value);
        let pieces = digits.len().div_ceil(self.place.piece).max(1);
        for piece in 0..pieces {
            let from = piece * self.place.piece;
            let text = &digits[from..digits.len().min(from + self.place.piece)];
            let mark = if piece + 1 < pieces { '+' } else { '.' };
            let key = key(self.rank(), name, piece);
            self.with_space((), |space| space.put(&key, &format!("{mark}{text}")))?;
        }
        Ok(())
    }

    /// Waits until all ranks have come to this fence.
    ///
    /// # Errors
    /// As [`Exchange::put`].
    pub fn fence(&self) -> Result<(), ExchangeError> {
        self.with_space((), |space| space.fence())
    }

    /// Gets the value that `owner` has put before a fence. A rank gets its own one, too.
    ///
    /// # Errors
    /// As [`Exchange::put`]; [`ExchangeError::Missing`] if that rank has put none.
    pub fn get(&self, owner: TaskId, name: &str) -> Result<Vec<u8>, ExchangeError> {
        let missing =
            || ExchangeError::Missing { manager: self.manager(), owner, name: name.to_owned() };
        let mut digits = String::new();
        for piece in 0..MAX_PIECES {
            let key = key(owner, name, piece);
            let value = self.with_space(None, |space| space.get(owner, &key))?;
            let value = value.ok_or_else(missing)?;
            if let Some(text) = value.strip_prefix('.') {
                return bytes(&(digits + text)).ok_or_else(missing);
            }
            digits += value.strip_prefix('+').ok_or_else(missing)?;
        }
        Err(missing())
    }

    /// Has the manager end the job with the exit code `code`. What becomes of `why` depends on the manager: some print
    /// it. The call returns, and the manager kills this process soon.
    ///
    /// # Errors
    /// As [`Exchange::put`].
    pub fn abort(&self, code: i32, why: &str) -> Result<(), ExchangeError> {
        self.has_left.store(true, Ordering::Relaxed);
        self.with_space((), |space| {
            await_readers();
            space.abort(code, why)
        })
    }

    /// Has the manager end the job, unless this rank has left it. For a process that exits with `code`: it never waits
    /// for another thread, and reports nothing.
    pub(super) fn abandon(&self, code: i32) {
        if self.process.is_fork() || self.has_left.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Ok(mut space) = self.space.try_lock() {
            let why = format!("rank {} has ended without leaving the job", self.rank());
            await_readers();
            let _ = space.abort(if code == 0 { 1 } else { code }, &why);
        }
    }

    /// Leaves the job: from now on, exit code 0 means success. Call it once, when all communication is over.
    ///
    /// # Errors
    /// As [`Exchange::put`].
    pub fn finalize(&self) -> Result<(), ExchangeError> {
        self.has_left.store(true, Ordering::Relaxed);
        self.with_space((), |space| space.finalize())
    }

    /// Calls the manager, unless this process is a fork, which gets `nothing` (KV3).
    fn with_space<T>(
        &self,
        nothing: T,
        call: impl FnOnce(&mut dyn KeyValueSpace) -> Result<T, ExchangeError>,
    ) -> Result<T, ExchangeError> {
        if self.process.is_fork() {
            return Ok(nothing);
        }
        call(&mut **self.space.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Waits until everything that this process has written to pipes is read, or for [`LONGEST_READING`] (KV4).
fn await_readers() {
    let until = Instant::now() + LONGEST_READING;
    let is_read = |stream: BorrowedFd<'_>| {
        let is_pipe =
            fstat(stream).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
        !is_pipe || ioctl_fionread(stream).map_or(true, |left| left == 0)
    };
    while !(is_read(io::stdout().as_fd()) && is_read(io::stderr().as_fd()))
        && Instant::now() < until
    {
        thread::sleep(Duration::from_millis(1));
    }
}

/// The key of a piece of a value. It is the same for all managers, though some would not need the owner in it.
fn key(owner: TaskId, name: &str, piece: usize) -> String {
    format!("mpj-{owner}-{}-{piece}", name.replace(' ', "_"))
}

/// Writes bytes as hexadecimal digits.
fn hexadecimal(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(digits, "{byte:02x}").expect("a string takes any text");
    }
    digits
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16);
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| Some((digit(pair[0])? << 4 | digit(*pair.get(1)?)?) as u8)).collect()
}

/// Identifies this host: its name, and when its kernel was started. Hosts that share a name differ in that, and
/// containers of one kernel in the name.
fn this_host() -> Vec<u8> {
    let mut host = rustix::system::uname().nodename().to_bytes().to_vec();
    host.push(b' ');
    host.extend(std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default());
    host
}

#[cfg(test)]
pub(super) mod tests;
