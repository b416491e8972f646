//! The process's part in the job: MPI_Init, MPI_Finalize and what asks about them (MPI-4.1 sections 11.2 and 11.6).

use std::ffi::c_int;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};
use std::thread::{self, ThreadId};

use mpicore::job::{self, Job};
use mpicore::{Communicator, Host, Process};
use mpjdev::Device;
use mpjdev::wireup::{Control, Native};

use crate::abi::*;
use crate::call::{Fault, Outcome, mpi, mpi_anytime, out};
use crate::comm::Comm;
use crate::errhandler::{Handler, Place};

/// What exists from MPI_Init on. It is never freed, so threads that call a function while another one calls
/// MPI_Finalize, which is wrong, find a device that has ended.
pub(crate) struct Running {
    /// MPI_COMM_WORLD.
    pub world: Arc<Comm>,
    /// MPI_COMM_SELF.
    pub own: Arc<Comm>,
    /// The device of all communicators.
    pub device: &'static Device<Native>,
    rank: Arc<Rank>,
    main: ThreadId,
    level: c_int,
}

/// The state of a rank that its communicators share.
pub(crate) struct Rank {
    process: Process,
    /// The devices of further contexts. No communicator uses them, but other ranks wait for their ends.
    further: Vec<Device<Native>>,
    control: Option<Control>,
}

impl AsRef<Process> for Rank {
    fn as_ref(&self) -> &Process {
        &self.process
    }
}

/// The phases of the process.
const BEFORE: u8 = 0;
const STARTING: u8 = 1;
const RUNNING: u8 = 2;
const FINALIZED: u8 = 3;

static PHASE: AtomicU8 = AtomicU8::new(BEFORE);
/// Null outside of the phase RUNNING.
static STATE: AtomicPtr<Running> = AtomicPtr::new(ptr::null_mut());

/// Returns the state between MPI_Init and MPI_Finalize.
#[inline(always)]
pub(crate) fn running() -> Option<&'static Running> {
    let state = STATE.load(Ordering::Acquire); // SYNC: state
    // SAFETY: FC2: the state is never freed.
    unsafe { state.as_ref() }
}

/// Returns the state for a call that needs it.
#[inline(always)]
pub(crate) fn needed() -> Outcome<&'static Running> {
    running().ok_or_else(|| Fault::other(format!("it was called {}", when_not_running())))
}

/// Says when a call outside of the phase RUNNING happens.
pub(crate) fn when_not_running() -> &'static str {
    match PHASE.load(Ordering::Relaxed) {
        FINALIZED => "after MPI_Finalize",
        _ => "before MPI_Init",
    }
}

fn start(required: c_int) -> Outcome<c_int> {
    // All levels are provided; the lowest one that suffices is named.
    let levels = [MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED];
    let level = levels.into_iter().find(|level| required <= *level).unwrap_or(MPI_THREAD_MULTIPLE);
    let begun = PHASE.compare_exchange(BEFORE, STARTING, Ordering::Relaxed, Ordering::Relaxed);
    match begun {
        Ok(_) => {}
        Err(FINALIZED) => {
            return Err(Fault::other("MPI was finalized; it can be initialized once"));
        }
        Err(_) => return Err(Fault::other("MPI is initialized already")),
    }
    match Running::new(level) {
        Ok(state) => {
            STATE.store(Box::into_raw(Box::new(state)), Ordering::Release); // SYNC: state
            PHASE.store(RUNNING, Ordering::Relaxed);
            Ok(level)
        }
        Err(fault) => {
            PHASE.store(BEFORE, Ordering::Relaxed);
            Err(fault)
        }
    }
}

impl Running {
    fn new(level: c_int) -> Outcome<Self> {
        let Job { devices, control, .. } = job::join()?;
        let mut devices = devices.into_iter();
        let process = Process::new(devices.next().expect("a rank has context 0"));
        let rank = Arc::new(Rank { process, further: devices.collect(), control });
        // The state is never freed, and so neither is the device.
        let kept: &'static Arc<Rank> = Box::leak(Box::new(rank.clone()));
        let device = kept.process.device();
        let host: Host = rank.clone();
        let comm = |core| Arc::new(Comm::new(core, device, Place::new(Handler::Initial)));
        let world = comm(Communicator::world(host.clone())?);
        let own = comm(Communicator::own(host)?);
        world.core.set_name("MPI_COMM_WORLD");
        own.core.set_name("MPI_COMM_SELF");
        Ok(Self { world, own, device, rank, main: thread::current().id(), level })
    }

    /// Leaves the job.
    fn finish(&self) -> Outcome {
        // All attributes are deleted, and the first error is returned.
        let deleted = self.own.core.delete_attributes().and(self.world.core.delete_attributes());
        let devices: Vec<_> = std::iter::once(self.device).chain(&self.rank.further).collect();
        job::leave(&devices, self.rank.control.as_ref(), |device| device.finish().map(|()| true))?;
        Ok(deleted?)
    }
}

mpi_anytime! {
    fn MPI_Init(argc: *mut c_int, argv: *mut *mut *mut c_char) -> c_int {
        let _ = (argc, argv);
        start(MPI_THREAD_SINGLE).map(drop)
    }

    fn MPI_Init_thread(argc: *mut c_int, argv: *mut *mut *mut c_char, required: c_int, provided: *mut c_int) -> c_int {
        let _ = (argc, argv);
        out::write(provided, "provided", start(required)?)
    }

    fn MPI_Initialized(flag: *mut c_int) -> c_int {
        out::write(flag, "flag", (PHASE.load(Ordering::Relaxed) >= RUNNING).into())
    }

    fn MPI_Finalized(flag: *mut c_int) -> c_int {
        out::write(flag, "flag", (PHASE.load(Ordering::Relaxed) == FINALIZED).into())
    }

    fn MPI_Abort(comm: MPI_Comm, errorcode: c_int) -> c_int {
        // The whole job ends, whatever the communicator.
        let _ = comm;
        job::abort(errorcode)
    }
}

mpi! {
    fn MPI_Finalize() -> c_int {
        let state = needed()?;
        let finished = state.finish();
        PHASE.store(FINALIZED, Ordering::Relaxed);
        // A failure still goes to the error handlers.
        finished?;
        STATE.store(ptr::null_mut(), Ordering::Release); // SYNC: state
        Ok(())
    }

    fn MPI_Query_thread(provided: *mut c_int) -> c_int {
        out::write(provided, "provided", needed()?.level)
    }

    fn MPI_Is_thread_main(flag: *mut c_int) -> c_int {
        out::write(flag, "flag", (needed()?.main == thread::current().id()).into())
    }
}
