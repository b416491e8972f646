//! Generalized requests (MPI-4.1 section 13.2): operations of the program's own that are waited for like those of MPI.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mpicore::{Cause, GeneralizedCallbacks, GeneralizedRequest};

use super::shared::Shared;
use super::{Request, Role, wrong};
use crate::abi::*;
use crate::call::{Outcome, checked, failed, mpi, out};
use crate::handles::{Held, OBJECTS};
use crate::process;

/// A generalized request with the functions of the program.
#[derive(Clone)]
pub(crate) struct Generalized {
    core: GeneralizedRequest,
    program: Arc<Program>,
}

/// The functions of the program for a request.
struct Program {
    query: MPI_Grequest_query_function,
    free: MPI_Grequest_free_function,
    cancel: MPI_Grequest_cancel_function,
    extra_state: usize,
    /// The status that the last query gave.
    status: Mutex<MPI_Status>,
    /// Whether MPI_Request_free was called.
    is_released: AtomicBool,
}

impl Program {
    fn extra_state(&self) -> *mut c_void {
        ptr::with_exposed_provenance_mut(self.extra_state)
    }
}

/// The form of the functions that `mpicore` calls.
struct Callbacks(Arc<Program>);

impl GeneralizedCallbacks for Callbacks {
    fn query(&self) -> Result<mpjdev::Status, Cause> {
        let mut status = MPI_Status::EMPTY;
        // SAFETY: FC1: the program's function gets the program's state.
        checked(unsafe { (self.0.query)(self.0.extra_state(), &raw mut status) })?;
        *self.0.status.lock().unwrap_or_else(PoisonError::into_inner) = status;
        let bytes = usize::try_from(status.bytes()).unwrap_or(usize::MAX);
        let cancelled = status.is_cancelled();
        let status = mpjdev::Status::new(status.MPI_SOURCE as u32, status.MPI_TAG, bytes);
        Ok(mpjdev::Status { cancelled, ..status })
    }

    fn free(&self) -> Result<(), Cause> {
        // SAFETY: as above.
        checked(unsafe { (self.0.free)(self.0.extra_state()) })
    }

    fn cancel(&self, is_complete: bool) -> Result<(), Cause> {
        // SAFETY: as above.
        checked(unsafe { (self.0.cancel)(self.0.extra_state(), is_complete.into()) })
    }
}

impl Generalized {
    /// Asks the program for the status.
    pub fn query(&self) -> Outcome<MPI_Status> {
        self.core.query().map_err(failed)?;
        Ok(*self.program.status.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lets the program free what belongs to the request, after the last query.
    pub fn free(&self) -> Outcome {
        self.core.free().map_err(failed)
    }

    /// Asks the program to cancel the operation.
    pub fn cancel(&self) -> Outcome {
        self.core.cancel().map_err(failed)
    }

    /// Gives up the request, whose handle is gone for all calls but MPI_Grequest_complete.
    pub fn release(&self, handle: MPI_Request, open: Option<mpjdev::Request>) -> Outcome {
        self.program.is_released.store(true, Ordering::SeqCst);
        if let Some(open) = open {
            process::needed()?.device.detach(open, Box::new(()));
        }
        let released = self.core.release().map_err(failed);
        self.forget_if_over(handle);
        released
    }

    /// Completes the operation.
    fn complete(&self, handle: MPI_Request) -> Outcome {
        let completed = self.core.complete().map_err(failed);
        self.forget_if_over(handle);
        completed
    }

    /// Forgets a request that was given up and is complete. The later one of the calls that do so gets here last.
    fn forget_if_over(&self, handle: MPI_Request) {
        if self.program.is_released.load(Ordering::SeqCst) && self.core.is_complete() {
            Shared::withdraw(handle);
        }
    }
}

mpi! {
    fn MPI_Grequest_start(
        query_fn: Option<MPI_Grequest_query_function>, free_fn: Option<MPI_Grequest_free_function>,
        cancel_fn: Option<MPI_Grequest_cancel_function>, extra_state: *mut c_void, request: *mut MPI_Request
    ) -> c_int {
        let place = out::place(request, "request")?;
        let program = Arc::new(Program {
            query: query_fn.ok_or_else(|| out::null("query_fn"))?,
            free: free_fn.ok_or_else(|| out::null("free_fn"))?,
            cancel: cancel_fn.ok_or_else(|| out::null("cancel_fn"))?,
            extra_state: extra_state.expose_provenance(),
            status: Mutex::new(MPI_Status::EMPTY),
            is_released: AtomicBool::new(false),
        });
        let (world, slot) = (&process::needed()?.world, OBJECTS.reserve()?);
        let (core, open) = GeneralizedRequest::start(&world.core, Callbacks(program.clone()))?;
        let shared = Shared::Generalized(Generalized { core, program });
        *place = Request::new(Held::forever(world), Role::Other, open).sharing(shared).keep(slot);
        Ok(())
    }

    fn MPI_Grequest_complete(request: MPI_Request) -> c_int {
        match Shared::find(request) {
            Some((_, Shared::Generalized(generalized))) => generalized.complete(request),
            _ => Err(wrong("it is no generalized request")),
        }
    }
}
