//! Generalized requests: operations of the program's own that are waited for like those of MPI (MPI-4.1 section 13.2).
//!
//! The request is one of the device, so all waits and tests take it, also in a list with others. A layer above keeps
//! the [`GeneralizedRequest`] beside it. When a wait or test has taken the device's request, that layer calls
//! [`query`](GeneralizedRequest::query) for the status and then [`free`](GeneralizedRequest::free).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mpjdev::{Call, Ending, Request, Status};

use crate::attribute::Cause;
use crate::communicator::Communicator;
use crate::error::Error;
use crate::process::Process;

/// The functions of a program for its generalized request. They run while no lock of this crate is held, and may call
/// MPI.
pub trait GeneralizedCallbacks: Send + Sync {
    /// Returns the status of the operation, which is complete: MPI_Grequest_query_function.
    ///
    /// # Errors
    /// The error of the operation.
    fn query(&self) -> Result<Status, Cause>;

    /// Frees what belongs to the request: MPI_Grequest_free_function. It is called once, when the operation is complete
    /// and nobody uses the request any more.
    ///
    /// # Errors
    /// The call that frees the request returns the error.
    fn free(&self) -> Result<(), Cause>;

    /// Cancels the operation, if the program can; `is_complete` says whether it is complete:
    /// MPI_Grequest_cancel_function.
    ///
    /// # Errors
    /// The call that cancels returns the error.
    fn cancel(&self, is_complete: bool) -> Result<(), Cause>;
}

/// A generalized request. Clones are the same request.
#[derive(Clone)]
pub struct GeneralizedRequest(Arc<Inner>);

struct Inner {
    process: Arc<Process>,
    callbacks: Box<dyn GeneralizedCallbacks>,
    state: Mutex<State>,
    is_freed: AtomicBool,
}

struct State {
    /// The right to end the request of the device, until the operation is complete.
    ending: Option<Ending>,
    /// Whether nobody waits for the request any more, so that its completion frees it.
    is_released: bool,
}

impl GeneralizedRequest {
    /// Starts an operation, which [`complete`](Self::complete) completes: MPI_Grequest_start. `over` is a communicator
    /// of the rank, for example that of all ranks. Returns the operation and the device's request for it.
    ///
    /// # Errors
    /// What made the device unusable.
    pub fn start(
        over: &Communicator,
        callbacks: impl GeneralizedCallbacks + 'static,
    ) -> Result<(Self, Request), Error> {
        let (request, ending) = over.device().begin(Call::Other, over.context(), 0)?;
        let state = Mutex::new(State { ending: Some(ending), is_released: false });
        let (process, callbacks) = (over.process().clone(), Box::new(callbacks));
        let inner = Inner { process, callbacks, state, is_freed: AtomicBool::new(false) };
        Ok((Self(Arc::new(inner)), request))
    }

    /// Completes the operation: MPI_Grequest_complete. Threads that wait for it wake up. If it was
    /// [released](Self::release), this frees it.
    ///
    /// # Errors
    /// [`mpjdev::Error::Request`] if it is complete already; [`Error::Callback`] if it was released and cannot be
    /// freed.
    pub fn complete(&self) -> Result<(), Error> {
        let mut state = self.state();
        let ending = state.ending.take().ok_or(mpjdev::Error::Request)?;
        let is_released = state.is_released;
        drop(state);
        // The status comes from the query function, when the request is waited for.
        self.0.process.device().end(ending, Ok(Status::new(0, 0, 0)));
        if is_released { self.free() } else { Ok(()) }
    }

    /// Returns whether the operation is complete.
    pub fn is_complete(&self) -> bool {
        self.state().ending.is_none()
    }

    /// Asks the program for the status of the operation, which is complete. Each wait, test or MPI_Request_get_status
    /// that finds it complete calls this once.
    ///
    /// # Errors
    /// [`Error::Callback`].
    pub fn query(&self) -> Result<Status, Error> {
        self.0
            .callbacks
            .query()
            .map_err(|cause| failed("query callback of a generalized request", cause))
    }

    /// Lets the program free what belongs to the request, after the query of the wait or test that has taken it. Later
    /// calls do nothing.
    ///
    /// # Errors
    /// [`Error::Callback`].
    pub fn free(&self) -> Result<(), Error> {
        match self.0.is_freed.swap(true, Ordering::AcqRel) {
            true => Ok(()),
            false => self
                .0
                .callbacks
                .free()
                .map_err(|cause| failed("free callback of a generalized request", cause)),
        }
    }

    /// Gives up the request: MPI_Request_free. It is freed when the operation is complete, perhaps at once. The caller
    /// passes the device's request to `detach` of the device.
    ///
    /// # Errors
    /// [`Error::Callback`].
    pub fn release(&self) -> Result<(), Error> {
        let mut state = self.state();
        state.is_released = true;
        let is_complete = state.ending.is_none();
        drop(state);
        if is_complete { self.free() } else { Ok(()) }
    }

    /// Asks the program to cancel the operation: MPI_Cancel. The operation is complete only when the program completes
    /// it.
    ///
    /// # Errors
    /// [`Error::Callback`].
    pub fn cancel(&self) -> Result<(), Error> {
        let is_complete = self.is_complete();
        self.0
            .callbacks
            .cancel(is_complete)
            .map_err(|cause| failed("cancel callback of a generalized request", cause))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn failed(callback: &'static str, cause: Cause) -> Error {
    Error::Callback { callback, cause: cause.into() }
}
