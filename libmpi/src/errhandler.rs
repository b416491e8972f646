//! Error handlers (MPI-4.1 section 9.3): who gets the error of a function, and what then happens.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, PoisonError};

use mpicore::job;

use crate::abi::*;
use crate::call::{Fault, Subject, mpi, mpi_anytime, out};
use crate::comm::Comm;
use crate::state;

/// What happens when a call on an object fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handler {
    /// MPI_ERRORS_ARE_FATAL, which nobody has set.
    Initial,
    /// MPI_ERRORS_ARE_FATAL.
    Fatal,
    /// MPI_ERRORS_ABORT.
    Abort,
    /// MPI_ERRORS_RETURN.
    Return,
}

/// The error handler of an object, which may change at any time.
pub(crate) struct Place(Mutex<Handler>);

impl Place {
    /// Makes the place of a new object.
    pub fn new(handler: Handler) -> Self {
        Self(Mutex::new(handler))
    }

    /// Returns the handler.
    pub fn get(&self) -> Handler {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the handler.
    pub fn set(&self, handler: Handler) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = handler;
    }
}

/// Passes the error of a function to the error handler that is responsible, and returns the code for the caller.
///
/// A communicator's errors are its own. Errors without an object go to the handler of MPI_COMM_SELF; if the program has
/// set none there, to that of MPI_COMM_WORLD, as versions of MPI before 4.0 say. Without communicators they are fatal.
#[cold]
#[inline(never)]
pub(crate) fn fail(name: &'static str, subject: Subject, fault: Fault) -> c_int {
    let named = match subject {
        Subject::Comm(comm) => comm.find().ok().map(|comm| Arc::clone(&comm)),
        Subject::None | Subject::Win(_) | Subject::File(_) | Subject::Session(_) => None,
    };
    let comm = fault.comm().cloned().or(named);
    let handler = match (&comm, state::running()) {
        (Some(comm), _) => comm.handler.get(),
        (None, Some(running)) => match running.own.handler.get() {
            Handler::Initial => running.world.handler.get(),
            set => set,
        },
        (None, None) => Handler::Initial,
    };
    match handler {
        Handler::Return => fault.code(),
        Handler::Initial | Handler::Fatal | Handler::Abort => end(name, comm.as_deref(), &fault),
    }
}

/// Ends the job because of an error. The launcher's report shows the message; without a launcher it goes to standard
/// error, since nobody else could show it.
fn end(name: &str, comm: Option<&Comm>, fault: &Fault) -> ! {
    let place = comm.map_or_else(String::new, |comm| {
        format!(" on {}, rank {}", comm.title(), comm.core.rank())
    });
    let message = format!(
        "{name} failed{place}: {} ({})",
        fault.text(),
        class_name(fault.code()).unwrap_or("an error code of the program")
    );
    if !job::complain(&message) {
        let _ = rustix::io::write(rustix::stdio::stderr(), format!("{message}\n").as_bytes());
    }
    job::abort(fault.code())
}

/// Returns the name of an error class.
pub(crate) fn class_name(class: c_int) -> Option<&'static str> {
    CLASSES.iter().find(|(number, _)| *number == class).map(|(_, name)| *name)
}

impl MPI_Errhandler {
    fn find(self) -> Result<Handler, Fault> {
        match self {
            MPI_ERRORS_ARE_FATAL => Ok(Handler::Fatal),
            MPI_ERRORS_ABORT => Ok(Handler::Abort),
            MPI_ERRORS_RETURN => Ok(Handler::Return),
            _ => Err(Fault::argument(
                MPI_ERR_ERRHANDLER,
                "errhandler",
                "the handle names no error handler",
            )),
        }
    }
}

mpi! {
    fn MPI_Comm_set_errhandler(comm: MPI_Comm, errhandler: MPI_Errhandler) -> c_int {
        let comm = comm.find()?;
        comm.handler.set(errhandler.find()?);
        Ok(())
    }

    fn MPI_Comm_get_errhandler(comm: MPI_Comm, errhandler: *mut MPI_Errhandler) -> c_int {
        let handle = match comm.find()?.handler.get() {
            Handler::Initial | Handler::Fatal => MPI_ERRORS_ARE_FATAL,
            Handler::Abort => MPI_ERRORS_ABORT,
            Handler::Return => MPI_ERRORS_RETURN,
        };
        out::write(errhandler, "errhandler", handle)
    }
}

mpi_anytime! {
    fn MPI_Error_class(errorcode: c_int, errorclass: *mut c_int) -> c_int {
        match class_name(errorcode) {
            Some(_) => out::write(errorclass, "errorclass", errorcode),
            None => Err(Fault::argument(MPI_ERR_ARG, "errorcode", format!("{errorcode} is no error code"))),
        }
    }

    fn MPI_Error_string(errorcode: c_int, string: *mut c_char, resultlen: *mut c_int) -> c_int {
        match class_name(errorcode) {
            Some(name) => out::text(string, resultlen, name, MPI_MAX_ERROR_STRING),
            None => Err(Fault::argument(MPI_ERR_ARG, "errorcode", format!("{errorcode} is no error code"))),
        }
    }
}

macro_rules! classes {
    ($($class:ident)*) => {
        const CLASSES: &[(c_int, &str)] = &[$(($class, stringify!($class))),*];
    };
}

classes! {
    MPI_SUCCESS MPI_ERR_BUFFER MPI_ERR_COUNT MPI_ERR_TYPE MPI_ERR_TAG MPI_ERR_COMM MPI_ERR_RANK MPI_ERR_REQUEST
    MPI_ERR_ROOT MPI_ERR_GROUP MPI_ERR_OP MPI_ERR_TOPOLOGY MPI_ERR_DIMS MPI_ERR_ARG MPI_ERR_UNKNOWN
    MPI_ERR_TRUNCATE MPI_ERR_OTHER MPI_ERR_INTERN MPI_ERR_PENDING MPI_ERR_IN_STATUS MPI_ERR_ACCESS MPI_ERR_AMODE
    MPI_ERR_ASSERT MPI_ERR_BAD_FILE MPI_ERR_BASE MPI_ERR_CONVERSION MPI_ERR_DISP MPI_ERR_DUP_DATAREP
    MPI_ERR_FILE_EXISTS MPI_ERR_FILE_IN_USE MPI_ERR_FILE MPI_ERR_INFO_KEY MPI_ERR_INFO_NOKEY MPI_ERR_INFO_VALUE
    MPI_ERR_INFO MPI_ERR_IO MPI_ERR_KEYVAL MPI_ERR_LOCKTYPE MPI_ERR_NAME MPI_ERR_NO_MEM MPI_ERR_NOT_SAME
    MPI_ERR_NO_SPACE MPI_ERR_NO_SUCH_FILE MPI_ERR_PORT MPI_ERR_QUOTA MPI_ERR_READ_ONLY MPI_ERR_RMA_ATTACH
    MPI_ERR_RMA_CONFLICT MPI_ERR_RMA_RANGE MPI_ERR_RMA_SHARED MPI_ERR_RMA_SYNC MPI_ERR_SERVICE MPI_ERR_SIZE
    MPI_ERR_SPAWN MPI_ERR_UNSUPPORTED_DATAREP MPI_ERR_UNSUPPORTED_OPERATION MPI_ERR_WIN MPI_ERR_RMA_FLAVOR
    MPI_ERR_PROC_ABORTED MPI_ERR_VALUE_TOO_LARGE MPI_ERR_SESSION MPI_ERR_ERRHANDLER MPI_ERR_ABI MPI_ERR_LASTCODE
}
