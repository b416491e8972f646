//! Collective communication (MPI-5.0 chapter 6, and section 8.6 for neighbours).
//!
//! Each collective has one body for its three forms, both types of counts and all forms of blocks. It gets the buffers and
//! the begun call as values, checks them, makes `mpicore`'s plan of the call, and [`Collective::finish`] runs, starts or
//! keeps the plan.
//!
//! - `movement.rs`: collectives that move data; `reduction.rs`: those that combine them; `neighbour.rs`: those among
//!   neighbours in a topology.
//! - `short.rs`: what runs without a plan. The bodies that use it are compiled for each form by itself, so that a blocking
//!   call does not ask for its form.
//! - `buffer.rs`: the buffers of these calls.
//! - `operation.rs`: operations of reductions.

use std::ffi::{c_int, c_void};

use mpicore::Plan;
use mpicore::collective::inter;

use crate::abi::*;
use crate::call::{Fault, Outcome, out};
use crate::comm::Owner;
use crate::datatype::is_in_place;
use crate::handles::OBJECTS;
use crate::request::{Request, Role};

mod buffer;
mod movement;
mod neighbour;
mod operation;
mod reduction;
mod short;

pub(crate) use buffer::Lists;
pub(crate) use operation::Operation;
pub(crate) use reduction::Operands;

/// The form of a collective that a program calls.
#[derive(Clone, Copy)]
enum Form {
    /// MPI_Bcast: returns at the end.
    Blocking,
    /// MPI_Ibcast: puts the request of a started collective here.
    Started(*mut MPI_Request),
    /// MPI_Bcast_init: puts a request here that starts the collective any number of times.
    Persistent(*mut MPI_Request),
}

/// A call of a collective.
pub(crate) struct Collective {
    comm: Owner,
    form: Form,
}

/// Where the root of a collective is.
#[derive(Clone, Copy)]
enum Root {
    /// A rank of an intracommunicator, and whether it is this one.
    Within(u32, bool),
    /// Somewhere in an intercommunicator.
    Between(inter::Root),
}

impl Root {
    /// Returns whether this rank is the root.
    fn is_here(self) -> bool {
        matches!(self, Self::Within(_, true) | Self::Between(inter::Root::Here))
    }

    /// Returns whether this rank is one of those whose data the root collects, or that get data of the root.
    fn is_served(self) -> bool {
        matches!(self, Self::Within(..) | Self::Between(inter::Root::Remote(_)))
    }
}

impl Collective {
    /// Begins a call that returns at the end.
    ///
    /// # Errors
    /// MPI_ERR_COMM.
    pub fn blocking(comm: MPI_Comm) -> Outcome<Self> {
        Ok(Self { comm: comm.find()?, form: Form::Blocking })
    }

    /// Begins a call that returns a request.
    ///
    /// # Errors
    /// MPI_ERR_COMM, MPI_ERR_ARG.
    pub fn started(comm: MPI_Comm, request: *mut MPI_Request) -> Outcome<Self> {
        match request.is_null() {
            true => Err(out::null("request")),
            false => Ok(Self { comm: comm.find()?, form: Form::Started(request) }),
        }
    }

    /// Begins a call that returns a persistent request. There are no hints for collectives.
    ///
    /// # Errors
    /// MPI_ERR_COMM, MPI_ERR_ARG, MPI_ERR_INFO.
    pub fn persistent(comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> Outcome<Self> {
        if info != MPI_INFO_NULL {
            info.find()?;
        }
        Ok(Self { form: Form::Persistent(request), ..Self::started(comm, request)? })
    }

    /// Returns the number of blocks of buffers that have one for each rank: the number of ranks of the communicator, or
    /// of the other group.
    fn blocks(&self) -> u32 {
        self.comm.core.peers().size()
    }

    /// Returns whether a send buffer is MPI_IN_PLACE, which only intracommunicators allow.
    fn works_in_place(&self, sendbuf: *const c_void) -> bool {
        is_in_place(sendbuf) && !self.comm.core.is_inter()
    }

    /// Finds the root.
    ///
    /// # Errors
    /// MPI_ERR_ROOT.
    fn root(&self, root: c_int) -> Outcome<Root> {
        let (core, size) = (&self.comm.core, self.comm.core.peers().size());
        let found = match (core.is_inter(), root) {
            (true, MPI_ROOT) => Some(Root::Between(inter::Root::Here)),
            (true, MPI_PROC_NULL) => Some(Root::Between(inter::Root::Beside)),
            (is_inter, rank) => {
                u32::try_from(rank).ok().filter(|rank| *rank < size).map(|rank| match is_inter {
                    true => Root::Between(inter::Root::Remote(rank)),
                    false => Root::Within(rank, rank == core.rank()),
                })
            }
        };
        found.ok_or_else(|| self.bad_root(root))
    }

    #[cold]
    fn bad_root(&self, root: c_int) -> Fault {
        let (title, size) = (self.comm.title(), self.comm.core.peers().size());
        let text = match self.comm.core.is_inter() {
            true => format!(
                "root {root} is neither MPI_ROOT nor MPI_PROC_NULL nor one of the {size} ranks of the other group of {title}"
            ),
            false => format!("root {root} is out of range: {title} has {size} ranks"),
        };
        Fault::argument(MPI_ERR_ROOT, "root", text)
    }

    /// Runs a plan, starts it, or keeps it.
    ///
    /// # Safety
    /// FC1: the place of the request may be written.
    unsafe fn finish(&self, plan: Plan<'_>) -> Outcome {
        let owner = || self.comm.clone();
        let (place, slot, request) = match self.form {
            Form::Blocking => return Ok(plan.run()?),
            Form::Started(place) => {
                let slot = OBJECTS.reserve()?;
                (place, slot, Request::new(owner(), Role::Other, plan.start()?))
            }
            Form::Persistent(place) => {
                let slot = OBJECTS.reserve()?;
                let mut kept = plan.persistent()?;
                let start = Box::new(move || Ok(kept.start()?));
                (place, slot, Request::persistent(owner(), Role::Other, start))
            }
        };
        // SAFETY: the caller's promise.
        unsafe { out::write(place, "request", request.keep(slot)) }
    }
}

/// Defines the forms of collectives by their names. Their bodies get the begun call as the last value.
macro_rules! collectives {
    ($($($name:ident),+ $(,)? => $body:ident;)+) => {
        $($($crate::abi::by_name! { $name, [$crate::call::mpi_with_body] $body() collective })+)+
    };
}

use collectives;

/// MPI_Barrier.
#[inline(always)]
unsafe fn barrier(call: Collective) -> Outcome {
    let core = &call.comm.core;
    let plan = match (core.is_inter(), call.form) {
        (true, _) => core.inter_barrier()?,
        (false, Form::Blocking) => return Ok(core.run_barrier()?),
        (false, _) => core.barrier()?,
    };
    // SAFETY: FC1.
    unsafe { call.finish(plan) }
}

collectives! {
    MPI_Barrier, MPI_Ibarrier, MPI_Barrier_init => barrier;
}
