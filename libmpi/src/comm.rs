//! Groups, communicators and their attributes (MPI-5.0 chapter 7). This file has what the C face adds to the
//! communicators of `mpicore`, their handles, and the calls that ask about them, names and hints (info) too.
//!
//! - `group.rs`: groups.
//! - `create.rs`: calls that make and free communicators.
//! - `attribute.rs`: attributes of communicators, those of programs and the predefined ones.
//! - `keyval.rs`: keys of attributes, for objects of all kinds.

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::abi::*;
use crate::call::{Fault, Outcome, mpi, out};
use crate::error::handler::Place;
use crate::handles::kind::Kind;
use crate::handles::{Held, OBJECTS, Reserved};
use crate::info::Hints;
use crate::process;
use mpicore::group::Group;
use mpicore::{Attributes, Communicator, Info, Relation};
use mpjdev::Device;

mod attribute;
pub(crate) mod create;
pub(crate) mod group;
pub(crate) mod keyval;

/// A communicator.
pub(crate) struct Comm {
    /// What it means.
    pub core: Communicator,
    /// The device, found in one step.
    pub device: &'static Device,
    /// The device's context of point-to-point messages.
    pub context: u32,
    /// The number of ranks if these are the first ones of the job, so that nothing is translated; otherwise 0.
    whole: u32,
    /// The error handler.
    pub handler: Place,
    /// The handle; 0 until it has one.
    handle: AtomicUsize,
    /// The attributes, whose callbacks get the handle.
    pub attributes: Attributes<MPI_Comm>,
    /// The hints in use.
    hints: Mutex<Info>,
    /// The name that the program has set, in its encoding.
    name: Mutex<Option<Vec<u8>>>,
}

/// The hints that a communicator keeps and shows: the standard's assertions. Others are ignored.
const HINTS: [&[u8]; 6] = [
    b"mpi_assert_memory_alloc_kinds",
    b"mpi_assert_no_any_tag",
    b"mpi_assert_no_any_source",
    b"mpi_assert_exact_length",
    b"mpi_assert_allow_overtaking",
    b"mpi_assert_strict_persistent_collective_ordering",
];

impl Comm {
    /// Makes a communicator with an error handler.
    pub fn new(core: Communicator, device: &'static Device, handler: Place) -> Self {
        let size = core.peers().size();
        let is_whole = *core.peers() == Group::world(size) && !core.is_inter();
        let whole = if is_whole { size } else { 0 };
        let (handle, attributes, hints, name) = Default::default();
        let context = core.context();
        Self { context, whole, core, device, handler, handle, attributes, hints, name }
    }

    /// Makes a predefined communicator.
    pub fn predefined(self, handle: MPI_Comm) -> Arc<Self> {
        self.handle.store(handle.0, Ordering::Relaxed);
        Arc::new(self)
    }

    /// Puts it into the table, and returns its handle.
    pub fn keep(self) -> Outcome<MPI_Comm> {
        Ok(self.keep_in(OBJECTS.reserve()?))
    }

    /// Puts it into a slot of the table, and returns its handle.
    fn keep_in(self, slot: Reserved<'static>) -> MPI_Comm {
        let made = Arc::new(self);
        let handle = slot.fill(made.clone());
        made.handle.store(handle, Ordering::Relaxed);
        MPI_Comm(handle)
    }

    /// Makes a communicator that was derived from this one, whose error handler it inherits, and returns its handle.
    pub fn child(&self, core: Communicator) -> Outcome<MPI_Comm> {
        Self::new(core, self.device, Place::new(self.handler.get())).keep()
    }

    /// Like [`Comm::child`]; MPI_COMM_NULL if this rank is in no new communicator.
    pub fn child_or_null(&self, core: Option<Communicator>) -> Outcome<MPI_Comm> {
        core.map_or(Ok(MPI_COMM_NULL), |core| self.child(core))
    }

    /// Returns its handle.
    pub fn handle(&self) -> MPI_Comm {
        MPI_Comm(self.handle.load(Ordering::Relaxed))
    }

    /// Returns its handle; MPI_COMM_NULL if it was freed, since another object may have the handle.
    pub fn live_handle(&self) -> MPI_Comm {
        let handle = self.handle();
        let is_this = handle.find().is_ok_and(|found| ptr::eq(&raw const **found, self));
        if is_this { handle } else { MPI_COMM_NULL }
    }

    /// Takes over those hints that a communicator keeps.
    fn set_hints(&self, given: &Info) -> Outcome {
        let mut hints = self.hints.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, value) in given.iter().filter(|(key, _)| HINTS.contains(key)) {
            hints.set(key, value)?;
        }
        Ok(())
    }

    /// Returns the other group of an intercommunicator.
    ///
    /// # Errors
    /// MPI_ERR_COMM.
    fn remote(&self) -> Outcome<&Group> {
        self.core.remote_group().ok_or_else(|| {
            Fault::argument(
                MPI_ERR_COMM,
                "comm",
                format!("{} is an intracommunicator", self.title()),
            )
        })
    }

    fn name(&self) -> MutexGuard<'_, Option<Vec<u8>>> {
        self.name.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns its name for messages.
    pub fn title(&self) -> String {
        let name = self.core.name();
        if name.is_empty() { "a communicator without a name".to_owned() } else { name }
    }

    /// Returns the job rank of a rank that sends or receives, if that is the same and needs no other look.
    #[inline(always)]
    pub fn same_rank(&self, rank: c_int) -> Option<usize> {
        ((rank as u32) < self.whole).then_some(rank as usize)
    }

    /// Returns the job rank of the receiver of a message; `None` for MPI_PROC_NULL.
    ///
    /// # Errors
    /// MPI_ERR_RANK.
    #[inline(always)]
    pub fn receiver(&self, dest: c_int) -> Outcome<Option<usize>> {
        self.same_rank(dest).map_or_else(|| self.peer(dest, "dest"), |rank| Ok(Some(rank)))
    }

    /// Returns the job rank of the sender of a message, where `None` is any; `None` as a whole for MPI_PROC_NULL.
    ///
    /// # Errors
    /// MPI_ERR_RANK.
    #[inline(always)]
    pub fn sender(&self, source: c_int) -> Outcome<Option<Option<usize>>> {
        match self.same_rank(source) {
            Some(rank) => Ok(Some(Some(rank))),
            None if source == MPI_ANY_SOURCE => Ok(Some(None)),
            None => Ok(self.peer(source, "source")?.map(Some)),
        }
    }

    #[inline(never)]
    fn peer(&self, rank: c_int, argument: &'static str) -> Outcome<Option<usize>> {
        if rank == MPI_PROC_NULL {
            return Ok(None);
        }
        let peers = self.core.peers();
        match u32::try_from(rank).ok().and_then(|rank| peers.job_rank(rank).ok()) {
            Some(peer) => Ok(Some(peer as usize)),
            None => {
                let (title, size) = (self.title(), peers.size());
                let text = format!("rank {rank} is out of range: {title} has {size} ranks");
                Err(Fault::argument(MPI_ERR_RANK, argument, text))
            }
        }
    }

    /// Returns the rank that a status shows for a job rank.
    #[inline(always)]
    pub fn rank_of(&self, job_rank: u32) -> c_int {
        if job_rank < self.whole { job_rank as c_int } else { self.rank_among_some(job_rank) }
    }

    #[inline(never)]
    fn rank_among_some(&self, job_rank: u32) -> c_int {
        self.core.peers().rank_of(job_rank).map_or(MPI_PROC_NULL, |rank| rank as c_int)
    }
}

/// A communicator that a call holds, and then the request that the call makes, so that it is counted once.
pub(crate) type Owner = Held<'static, Arc<Comm>>;

/// Holds a communicator of the table. Not inlined, so that what calls on the predefined ones pass stays small.
#[inline(never)]
fn hold(handle: usize) -> Outcome<Held<'static, Arc<Comm>>> {
    OBJECTS.hold(handle).map_err(|fault| fault.about("comm"))
}

impl MPI_Comm {
    /// Returns the communicator if it is a predefined one and MPI is running.
    #[inline(always)]
    pub fn predefined(self) -> Option<&'static Arc<Comm>> {
        match self {
            MPI_COMM_WORLD => Some(&process::running()?.world),
            MPI_COMM_SELF => Some(&process::running()?.own),
            _ => None,
        }
    }

    /// Holds the communicator.
    ///
    /// # Errors
    /// MPI_ERR_COMM; MPI_ERR_OTHER when MPI is not running.
    #[inline(always)]
    pub fn find(self) -> Outcome<Owner> {
        match self {
            MPI_COMM_WORLD => Ok(Held::forever(&process::needed()?.world)),
            MPI_COMM_SELF => Ok(Held::forever(&process::needed()?.own)),
            MPI_Comm(handle) => hold(handle),
        }
    }
}

mpi! {
    fn MPI_Comm_rank(comm: MPI_Comm, rank: *mut c_int) -> c_int {
        out::write(rank, "rank", comm.find()?.core.rank() as c_int)
    }

    fn MPI_Comm_size(comm: MPI_Comm, size: *mut c_int) -> c_int {
        out::write(size, "size", comm.find()?.core.size() as c_int)
    }

    fn MPI_Comm_compare(comm1: MPI_Comm, comm2: MPI_Comm, result: *mut c_int) -> c_int {
        let (one, other) = (comm1.find()?, comm2.find()?);
        out::write(result, "result", match one.core.compare(&other.core) {
            Relation::Identical => MPI_IDENT,
            Relation::Congruent => MPI_CONGRUENT,
            Relation::Similar => MPI_SIMILAR,
            Relation::Unequal => MPI_UNEQUAL,
        })
    }

    fn MPI_Comm_group(comm: MPI_Comm, group: *mut MPI_Group) -> c_int {
        let place = out::place(group, "group")?;
        let comm = comm.find()?;
        *place = group::keep(comm.core.group().clone(), comm.core.session_buffer())?;
        Ok(())
    }

    fn MPI_Comm_test_inter(comm: MPI_Comm, flag: *mut c_int) -> c_int {
        out::write(flag, "flag", comm.find()?.core.is_inter().into())
    }

    fn MPI_Comm_remote_size(comm: MPI_Comm, size: *mut c_int) -> c_int {
        out::write(size, "size", comm.find()?.remote()?.size() as c_int)
    }

    fn MPI_Comm_remote_group(comm: MPI_Comm, group: *mut MPI_Group) -> c_int {
        let place = out::place(group, "group")?;
        let comm = comm.find()?;
        *place = group::keep(comm.remote()?.clone(), comm.core.session_buffer())?;
        Ok(())
    }

    fn MPI_Comm_set_name(comm: MPI_Comm, comm_name: *const c_char) -> c_int {
        let comm = comm.find()?;
        let name = out::bytes(comm_name, MPI_ERR_ARG, "comm_name")?;
        // A name that is too long is cut, as the standard says.
        let name = &name[..name.len().min(MPI_MAX_OBJECT_NAME as usize - 1)];
        comm.core.set_name(String::from_utf8_lossy(name));
        *comm.name() = Some(name.to_owned());
        Ok(())
    }

    fn MPI_Comm_get_name(comm: MPI_Comm, comm_name: *mut c_char, resultlen: *mut c_int) -> c_int {
        if comm == MPI_COMM_NULL {
            return out::text(comm_name, resultlen, "MPI_COMM_NULL", MPI_MAX_OBJECT_NAME);
        }
        let comm = comm.find()?;
        let name = comm.name().clone().unwrap_or_else(|| comm.core.name().into());
        out::text(comm_name, resultlen, name, MPI_MAX_OBJECT_NAME)
    }

    fn MPI_Comm_set_info(comm: MPI_Comm, info: MPI_Info) -> c_int {
        comm.find()?.set_hints(&info.copied()?)
    }

    fn MPI_Comm_get_info(comm: MPI_Comm, info_used: *mut MPI_Info) -> c_int {
        let place = out::place(info_used, "info_used")?;
        let hints = comm.find()?.hints.lock().unwrap_or_else(PoisonError::into_inner).clone();
        *place = Hints::keep_used(hints)?;
        Ok(())
    }
}

/// Communicators can be held by several threads.
const _: fn() = || {
    fn is_shared<T: Kind + Send + Sync>() {}
    is_shared::<Arc<Comm>>();
};
