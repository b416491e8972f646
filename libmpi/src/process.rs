//! The process's part in the job (MPI-5.0 chapter 11): MPI_Init, MPI_Finalize and what asks about them. `session.rs`
//! has the sessions,
//! `worlds.rs` the processes that this one spawns or meets.
//!
//! A process joins its job once, by MPI_Init or with its first session, and leaves it when MPI is finalized and no
//! session is open. One that has used sessions only may open more of them, so it leaves when it exits. To leave means to
//! wait for the other processes, so that all may exit. After that, sessions still connect those that open them, and nobody
//! waits for the others any more.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::thread::{self, ThreadId};

use mpicore::job::{self, Job};
use mpicore::{Communicator, Process};
use mpjdev::wireup::Control;
use mpjdev::{Device, Stats};

use crate::abi::*;
use crate::call::{Fault, Outcome, failed, mpi, mpi_anytime, out};
use crate::comm::Comm;
use crate::error::handler::{Handler, Place};
use crate::handles::OBJECTS;

pub(crate) mod session;
mod worlds;

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
    /// The number of the program among those that were started together, from 0, if a launcher started it.
    pub program: Option<c_int>,
    /// How many ranks the program may expect in all, with those that it spawns.
    pub expected: c_int,
    /// The communicator with the ranks that have spawned this one.
    parent: Option<Weak<Comm>>,
    main: ThreadId,
    /// Whether the process has left its job.
    has_left: AtomicBool,
}

/// The state of a rank.
struct Rank {
    process: Arc<Process>,
    /// The devices of further contexts. No communicator uses them, but other ranks wait for their ends.
    further: Vec<Device>,
    control: Option<Control>,
    /// Whether a thread makes progress.
    has_thread: bool,
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
    /// The state of a process that was in the job and is in it no more, unless a session is open. Tools that look for
    /// leaks find it here.
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

/// Returns whether the process is in its job, or was.
pub(crate) fn has_joined() -> bool {
    let users = users();
    running().or(users.left).is_some()
}

/// Returns what the process has sent and received in its job; zeros before it has joined.
pub(crate) fn stats() -> Stats {
    running().or(users().left).map_or_else(Stats::default, Running::stats)
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
/// The job cannot be joined.
pub(crate) fn enter(level: c_int) -> Outcome<&'static Running> {
    let mut users = users();
    if running().is_none() {
        let state = match users.left {
            Some(state) => {
                state.start_progress()?;
                state
            }
            None => Box::leak(Box::new(Running::new(level)?)),
        };
        users.left = None;
        LEVEL.store(level, Ordering::Relaxed);
        STATE.store(ptr::from_ref(state).cast_mut(), Ordering::Release); // SYNC: state
    }
    if level == MPI_THREAD_MULTIPLE {
        OBJECTS.set_single(false);
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
    running.own.core.close_ports();
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
    fn new(level: c_int) -> Outcome<Self> {
        let Job { devices, control, program, expected, parent, progress_thread, .. } =
            job::join(false)?;
        let program = program.map(|number| number as c_int);
        let expected = expected as c_int;
        let mut devices = devices.into_iter();
        let process = Process::new(devices.next().expect("a rank has context 0"), ());
        let (process, further) = (Arc::new(process), devices.collect());
        let rank = Rank { process, further, control, has_thread: progress_thread };
        // The state is never freed, and so neither is the device.
        let rank: &'static Rank = Box::leak(Box::new(rank));
        let (process, device) = (&rank.process, rank.process.device());
        let comm =
            |core, handle| Comm::new(core, device, Place::new(Handler::Initial)).predefined(handle);
        let world = comm(Communicator::world(process.clone())?, MPI_COMM_WORLD);
        let own = comm(Communicator::self_comm(process.clone())?, MPI_COMM_SELF);
        world.core.set_name("MPI_COMM_WORLD");
        own.core.set_name("MPI_COMM_SELF");
        let parent =
            parent.map(|parent| worlds::parents(&world.core, device, parent)).transpose()?;
        OBJECTS.set_single(level == MPI_THREAD_SINGLE && !progress_thread);
        let (main, has_left) = (thread::current().id(), AtomicBool::new(false));
        let running = Self { world, own, device, rank, program, expected, parent, main, has_left };
        running.start_progress()?;
        Ok(running)
    }

    fn start_progress(&self) -> Outcome {
        if self.rank.has_thread {
            self.rank.process.start_progress()?;
        }
        Ok(())
    }

    /// Returns the devices of all contexts.
    fn devices(&self) -> impl Iterator<Item = &'static Device> {
        std::iter::once(self.device).chain(&self.rank.further)
    }

    fn stats(&self) -> Stats {
        self.devices().map(|device| device.stats().unwrap_or_default()).sum()
    }

    /// Deletes the attributes of MPI_COMM_SELF, then those of MPI_COMM_WORLD.
    fn delete_attributes(&self) -> Outcome {
        let of_own = self.own.attributes.delete_all(&MPI_COMM_SELF);
        let of_world = self.world.attributes.delete_all(&MPI_COMM_WORLD);
        of_own.map_err(|error| failed(error).on(&self.own))?;
        of_world.map_err(|error| failed(error).on(&self.world))
    }

    /// Leaves the job. The second time, all that was sent since then is on its way.
    fn finish(&self) -> Outcome {
        self.rank.process.stop_progress();
        if self.has_left.swap(true, Ordering::Relaxed) {
            return Ok(self.device.rest_again()?);
        }
        let devices: Vec<_> = self.devices().collect();
        job::leave(&devices, self.rank.control.as_ref(), |device, _| device.rest().map(|()| true))?;
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
