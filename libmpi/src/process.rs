//! The process's part in the job (MPI-5.0 chapter 11): MPI_Init, MPI_Finalize and what asks about them. `session.rs`
//! has the sessions.
//!
//! A process joins its job once, by MPI_Init or with its first session, and leaves it when MPI is finalized and no
//! session is open. One that has used sessions only may open more of them, so it leaves when it exits.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, ThreadId};

use mpicore::job::{self, Job};
use mpicore::{Communicator, Process};
use mpjdev::Device;
use mpjdev::wireup::Control;

use crate::abi::*;
use crate::call::{Fault, Outcome, failed, mpi, mpi_anytime, out};
use crate::comm::Comm;
use crate::error::handler::{Handler, Place};

pub(crate) mod session;

/// What exists from MPI_Init on. It is never freed, so threads that call a function while another one calls
/// MPI_Finalize, which is wrong, find a device that has ended.
pub(crate) struct Running {
    /// MPI_COMM_WORLD.
    pub world: Arc<Comm>,
    /// MPI_COMM_SELF.
    pub own: Arc<Comm>,
    /// The device of all communicators.
    pub device: &'static Device,
    rank: &'static Rank,
    /// The number of the program in its job, from 0, if a launcher started it.
    pub program: Option<c_int>,
    main: ThreadId,
}

/// The state of a rank.
struct Rank {
    process: Arc<Process>,
    /// The devices of further contexts. No communicator uses them, but other ranks wait for their ends.
    further: Vec<Device>,
    control: Option<Control>,
}

/// The phases of the process.
const BEFORE: u8 = 0;
const STARTING: u8 = 1;
const RUNNING: u8 = 2;
const FINALIZED: u8 = 3;

static PHASE: AtomicU8 = AtomicU8::new(BEFORE);
/// The level of thread support that the process has; before it joins its job, the one that MPI_Init gives.
static LEVEL: AtomicI32 = AtomicI32::new(MPI_THREAD_SINGLE);
/// Null unless the process is in its job.
static STATE: AtomicPtr<Running> = AtomicPtr::new(ptr::null_mut());

/// Who uses the job.
static USERS: Mutex<Users> = Mutex::new(Users { count: 0, left: None });

struct Users {
    /// Open sessions, and one more from MPI_Init to MPI_Finalize.
    count: usize,
    /// The state of a process that was in the job and is in it no more. Tools that look for leaks find it here.
    left: Option<&'static Running>,
}

fn users() -> MutexGuard<'static, Users> {
    USERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the state while the process is in its job.
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

/// Returns the level of thread support, also before and after the process is in its job.
pub(crate) fn level() -> c_int {
    LEVEL.load(Ordering::Relaxed)
}

/// Returns the level of thread support for a program that requires this one. All levels are provided; the lowest one
/// that suffices is named.
pub(crate) fn thread_level(required: c_int) -> c_int {
    let levels = [MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED];
    levels.into_iter().find(|level| required <= *level).unwrap_or(MPI_THREAD_MULTIPLE)
}

fn start(required: c_int) -> Outcome<c_int> {
    let level = thread_level(required);
    let begun = PHASE.compare_exchange(BEFORE, STARTING, Ordering::Relaxed, Ordering::Relaxed);
    match begun {
        Ok(_) => {}
        Err(FINALIZED) => {
            return Err(Fault::other("MPI was finalized; it can be initialized once"));
        }
        Err(_) => return Err(Fault::other("MPI is initialized already")),
    }
    match enter(level) {
        Ok(_) => {
            LEVEL.store(level, Ordering::Relaxed);
            PHASE.store(RUNNING, Ordering::Relaxed);
            Ok(level)
        }
        Err(fault) => {
            PHASE.store(BEFORE, Ordering::Relaxed);
            Err(fault)
        }
    }
}

/// Joins the job, unless the process has, for one more user.
///
/// # Errors
/// The job cannot be joined, or the process has left it.
pub(crate) fn enter(level: c_int) -> Outcome<&'static Running> {
    let mut users = users();
    if users.left.is_some() {
        return Err(Fault::other("the process has left its job; it can join it once"));
    }
    if running().is_none() {
        let state = Box::into_raw(Box::new(Running::new()?));
        LEVEL.store(level, Ordering::Relaxed);
        STATE.store(state, Ordering::Release); // SYNC: state
    }
    users.count += 1;
    needed()
}

/// Ends the part of one user. The last one leaves the job, if MPI is finalized.
///
/// # Errors
/// What made the device unusable.
pub(crate) fn leave() -> Outcome {
    let mut users = users();
    users.count = users.count.saturating_sub(1);
    if users.count == 0 && PHASE.load(Ordering::Relaxed) == FINALIZED {
        leave_job(users)
    } else {
        Ok(())
    }
}

fn leave_job(mut users: MutexGuard<'_, Users>) -> Outcome {
    let Some(running) = running() else { return Ok(()) };
    users.left = Some(running);
    drop(users);
    // A failure still goes to the error handlers.
    running.finish()?;
    STATE.store(ptr::null_mut(), Ordering::Release); // SYNC: state
    Ok(())
}

/// Runs when the process exits: one that has used sessions only, and has finalized them, leaves its job here.
extern "C" fn at_exit() {
    // A thread that has the lock waits for the job in MPI_Init. It may be this one, in which a signal handler has
    // called exit, and nobody can tell how long the others wait.
    let users = match USERS.try_lock() {
        Ok(users) => users,
        Err(TryLockError::Poisoned(users)) => users.into_inner(),
        Err(TryLockError::WouldBlock) => return,
    };
    if users.count == 0 && PHASE.load(Ordering::Relaxed) == BEFORE {
        // Nobody is left to whom an error or a panic could be told.
        let _ = catch_unwind(AssertUnwindSafe(|| leave_job(users)));
    }
}

// SAFETY: the section holds pointers to functions of this type, which the loader calls when the process exits.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;

impl Running {
    fn new() -> Outcome<Self> {
        let Job { devices, control, program, progress_thread, .. } = job::join(false)?;
        let program = program.map(|number| number as c_int);
        let mut devices = devices.into_iter();
        let process = Process::new(devices.next().expect("a rank has context 0"), ());
        let rank = Rank { process: Arc::new(process), further: devices.collect(), control };
        // The state is never freed, and so neither is the device.
        let rank: &'static Rank = Box::leak(Box::new(rank));
        let (process, device) = (&rank.process, rank.process.device());
        let comm =
            |core, handle| Comm::new(core, device, Place::new(Handler::Initial)).predefined(handle);
        let world = comm(Communicator::world(process.clone())?, MPI_COMM_WORLD);
        let own = comm(Communicator::self_comm(process.clone())?, MPI_COMM_SELF);
        world.core.set_name("MPI_COMM_WORLD");
        own.core.set_name("MPI_COMM_SELF");
        if progress_thread {
            process.start_progress()?;
        }
        let main = thread::current().id();
        Ok(Self { world, own, device, rank, program, main })
    }

    /// Deletes the attributes of MPI_COMM_SELF, then those of MPI_COMM_WORLD.
    fn delete_attributes(&self) -> Outcome {
        let of_own = self.own.attributes.delete_all(&MPI_COMM_SELF);
        let of_world = self.world.attributes.delete_all(&MPI_COMM_WORLD);
        of_own.map_err(|error| failed(error).on(&self.own))?;
        of_world.map_err(|error| failed(error).on(&self.world))
    }

    /// Leaves the job.
    fn finish(&self) -> Outcome {
        self.rank.process.stop_progress();
        let devices: Vec<_> = std::iter::once(self.device).chain(&self.rank.further).collect();
        job::leave(&devices, self.rank.control.as_ref(), |device, _| {
            device.finish().map(|()| true)
        })?;
        Ok(())
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
        if PHASE.load(Ordering::Relaxed) != RUNNING {
            return Err(Fault::other(format!("it was called {}", when_not_running())));
        }
        // All attributes are deleted, and the first error is returned.
        let deleted = needed()?.delete_attributes();
        PHASE.store(FINALIZED, Ordering::Relaxed);
        leave().and(deleted)
    }

    fn MPI_Query_thread(provided: *mut c_int) -> c_int {
        out::write(provided, "provided", level())
    }

    fn MPI_Is_thread_main(flag: *mut c_int) -> c_int {
        out::write(flag, "flag", (needed()?.main == thread::current().id()).into())
    }
}
