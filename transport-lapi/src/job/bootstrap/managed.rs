//! Joins a job that a process manager has started, and makes the segment of this host's ranks among themselves. Called
//! only by [`super`].
//!
//! The first rank of each host makes the segment and offers it (`exchange/handover.rs`); the others open it. The segment
//! says that the job goes on without lost tasks, since process managers reap a rank while others still run, so that its
//! process number may be used again.
//!
//! A rank that exits without having left its job has failed. Not every manager then ends the others, which may wait for
//! it, so it asks for that at its exit, when the program has said why.
//!
//! - MG1: the function that runs at exit never panics and waits for no lock, since other threads may still run.

#![expect(unsafe_code, reason = "a function that runs at exit")]

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use super::exchange::{self, Exchange};
use super::waits::JobView;
use super::{BootstrapError, Control, Membership, TAKEN, contexts, inherit, take_once};
use crate::adapter::TaskId;
use crate::adapters::shm::create_segment;
use crate::job::config::{self, Start};

/// What the segment of a host is called in the key-value space.
const SEGMENT: &str = "segment";

/// The job that this process has joined.
static JOINED: OnceLock<Exchange> = OnceLock::new();

/// Joins the job of the process manager that `start` describes. If the ranks of this host do not find each other, the
/// manager ends the job when this process exits, so that no rank of another host waits for them.
pub(super) fn join(start: Start) -> Result<Membership, BootstrapError> {
    let contexts = contexts(&config::environment)?;
    let exchange = connect(start)?;
    let exchange = JOINED.get_or_init(|| exchange);
    // SAFETY: MG1. If there is no room for another function, a rank that fails leaves it to the manager to notice.
    let _ = unsafe { on_exit(at_exit, ptr::null_mut()) };
    meet(exchange, contexts)
}

/// Has the manager end the job if this process exits with `code` without having left it (MG1).
extern "C" fn at_exit(code: c_int, _: *mut c_void) {
    JOINED.get().into_iter().for_each(|exchange| exchange.abandon(code));
}

unsafe extern "C" {
    /// Like `atexit`, for a function that wants to know the exit code.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

fn connect(start: Start) -> Result<Exchange, BootstrapError> {
    let take = |descriptor| take_once(&TAKEN, || inherit::take_manager(descriptor));
    Ok(match start {
        Start::Pmi1 { descriptor, rank, size } => {
            Exchange::pmi1(take(descriptor)?, rank, size as usize)?
        }
        Start::Pmi2 { descriptor, job, rank, size } => {
            Exchange::pmi2(take(descriptor)?, &job, rank, size as usize)?
        }
        Start::Pmi1Port { address, id } => {
            take_once(&TAKEN, || Ok(()))?;
            Exchange::pmi1_by_port(&address, &id)?
        }
        Start::Pmix { prefix } => {
            take_once(&TAKEN, || Ok(()))?;
            Exchange::pmix(prefix.as_deref())?
        }
        Start::Alone | Start::Foreign(_) => unreachable!("these are no process managers"),
    })
}

/// Makes the segment of this host, or gets it from the rank that makes it.
fn meet(exchange: &Exchange, contexts: usize) -> Result<Membership, BootstrapError> {
    let here: Vec<TaskId> = exchange.ranks_of(exchange.host()).collect();
    let (num_tasks, rank) = (here.len(), exchange.rank());
    let segment = if rank == exchange.first_of_host() {
        let name = exchange::random_name();
        let name = name.map_err(|source| BootstrapError::Random { source })?;
        let segment = create_segment(&name, num_tasks, contexts)?;
        JobView::open(&segment)?.goes_on();
        exchange.offer(SEGMENT, &segment)?;
        exchange.fence()?;
        segment
    } else {
        exchange.fence()?;
        exchange.take(SEGMENT)?
    };
    let place = here.iter().position(|of| *of == rank).expect("this rank is one of its host");
    let control = Control::to_manager(rank, exchange.clone());
    let (task, exchange) = (place as TaskId, Some(exchange.clone()));
    Ok(Membership { task, num_tasks, contexts, segment, control, exchange })
}
