//! Communicators (MPI-4.1 chapter 7): what the C face adds to those of `mpicore`, and their handles.

use std::ffi::c_int;
use std::ops::Deref;
use std::sync::Arc;

use mpicore::Communicator;
use mpicore::group::Group;
use mpjdev::Device;
use mpjdev::wireup::Native;

use crate::abi::*;
use crate::call::{Fault, Outcome, mpi, out};
use crate::errhandler::Place;
use crate::handles::{Held, OBJECTS};
use crate::object::Kind;
use crate::state;

/// A communicator.
pub(crate) struct Comm {
    /// What it means.
    pub core: Communicator,
    /// The device, found in one step.
    pub device: &'static Device<Native>,
    /// The device's context of point-to-point messages.
    pub context: u32,
    /// The number of ranks if these are the device's, so that nothing is translated; otherwise 0.
    whole: u32,
    /// The error handler.
    pub handler: Place,
}

impl Comm {
    /// Makes a communicator with an error handler.
    pub fn new(core: Communicator, device: &'static Device<Native>, handler: Place) -> Self {
        let size = device.size() as u32;
        let is_whole = *core.peers() == Group::world(size) && !core.is_inter();
        let whole = if is_whole { size } else { 0 };
        Self { context: core.context(), whole, core, device, handler }
    }

    /// Makes a communicator that was derived from this one, whose error handler it inherits, and returns its handle.
    pub fn child(&self, core: Communicator) -> Outcome<MPI_Comm> {
        let made = Self::new(core, self.device, Place::new(self.handler.get()));
        Ok(MPI_Comm(OBJECTS.insert(Arc::new(made))?))
    }

    /// Returns its name for messages.
    pub fn title(&self) -> String {
        let name = self.core.name();
        if name.is_empty() { "a communicator without a name".to_owned() } else { name }
    }

    /// Returns the job rank of the receiver of a message; `None` for MPI_PROC_NULL.
    ///
    /// # Errors
    /// MPI_ERR_RANK.
    #[inline(always)]
    pub fn receiver(&self, dest: c_int) -> Outcome<Option<usize>> {
        if (dest as u32) < self.whole { Ok(Some(dest as usize)) } else { self.peer(dest, "dest") }
    }

    /// Returns the job rank of the sender of a message, where `None` is any; `None` as a whole for MPI_PROC_NULL.
    ///
    /// # Errors
    /// MPI_ERR_RANK.
    #[inline(always)]
    pub fn sender(&self, source: c_int) -> Outcome<Option<Option<usize>>> {
        match source {
            _ if (source as u32) < self.whole => Ok(Some(Some(source as usize))),
            MPI_ANY_SOURCE => Ok(Some(None)),
            _ => Ok(self.peer(source, "source")?.map(Some)),
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

/// A communicator that a request keeps.
pub(crate) enum Owner {
    /// One that is never freed.
    Forever(&'static Arc<Comm>),
    /// One that may be freed meanwhile.
    Counted(Arc<Comm>),
}

impl Owner {
    /// Keeps a communicator.
    #[inline]
    pub fn of(comm: &Held<'static, Arc<Comm>>) -> Self {
        match comm.forever_object() {
            Some(comm) => Self::Forever(comm),
            None => Self::Counted(Arc::clone(comm)),
        }
    }
}

impl Deref for Owner {
    type Target = Arc<Comm>;

    #[inline]
    fn deref(&self) -> &Arc<Comm> {
        match self {
            Self::Forever(comm) => comm,
            Self::Counted(comm) => comm,
        }
    }
}

impl MPI_Comm {
    /// Holds the communicator.
    ///
    /// # Errors
    /// MPI_ERR_COMM; MPI_ERR_OTHER when MPI is not running.
    #[inline(always)]
    pub fn find(self) -> Outcome<Held<'static, Arc<Comm>>> {
        match self {
            MPI_COMM_WORLD => Ok(Held::forever(&state::needed()?.world)),
            MPI_COMM_SELF => Ok(Held::forever(&state::needed()?.own)),
            MPI_Comm(handle) => OBJECTS.hold(handle).map_err(|fault| fault.about("comm")),
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

    fn MPI_Comm_dup(comm: MPI_Comm, newcomm: *mut MPI_Comm) -> c_int {
        let comm = comm.find()?;
        out::write(newcomm, "newcomm", comm.child(comm.core.dup()?)?)
    }

    fn MPI_Comm_free(comm: *mut MPI_Comm) -> c_int {
        let place = comm.as_mut().ok_or_else(|| out::null("comm"))?;
        match *place {
            MPI_COMM_WORLD | MPI_COMM_SELF => {
                Err(Fault::argument(MPI_ERR_COMM, "comm", "a predefined communicator cannot be freed"))
            }
            MPI_Comm(handle) => {
                OBJECTS.free::<Arc<Comm>>(handle)?;
                *place = MPI_COMM_NULL;
                Ok(())
            }
        }
    }
}

/// Communicators can be held by several threads.
const _: fn() = || {
    fn is_shared<T: Kind + Send + Sync>() {}
    is_shared::<Arc<Comm>>();
};
