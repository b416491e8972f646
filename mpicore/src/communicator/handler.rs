//! What is done about errors of calls on a communicator (MPI-4.1 section 9.3). A face gives each error to
//! [`Communicator::handle`] before it returns it to its caller, and does what the answer says.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::Communicator;
use crate::error::Error;

/// What is done about an error. Which handlers there are is MPI's; this crate calls functions of users, and leaves
/// the rest to the face.
#[derive(Clone, Default)]
pub enum ErrorHandler {
    /// The call returns it: MPI_ERRORS_RETURN. So it is if nothing else was set.
    #[default]
    Return,
    /// The face ends the whole job: MPI_ERRORS_ARE_FATAL.
    Fatal,
    /// The face ends the ranks of the communicator: MPI_ERRORS_ABORT.
    Abort,
    /// The function gets it, then the call returns it: MPI_Comm_create_errhandler. It runs with no lock of this crate
    /// held and may call MPI.
    User(Arc<UserHandler>),
}

/// A function of the user that gets errors of a communicator.
pub type UserHandler = dyn Fn(&Communicator, &Error) + Send + Sync;

impl fmt::Debug for ErrorHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Return => "Return",
            Self::Fatal => "Fatal",
            Self::Abort => "Abort",
            Self::User(_) => "User",
        })
    }
}

/// The handler of a communicator, which may be changed at any time.
#[derive(Default)]
pub(super) struct Handler(Mutex<ErrorHandler>);

impl Handler {
    pub(super) fn new(handler: ErrorHandler) -> Self {
        Self(Mutex::new(handler))
    }
}

impl Communicator {
    /// What is done about errors: MPI_Comm_get_errhandler. A communicator has at first what the one had of which it was
    /// made.
    pub fn handler(&self) -> ErrorHandler {
        self.0.handler.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets it, on this rank: MPI_Comm_set_errhandler. Communicators that were made of this one keep theirs.
    pub fn set_handler(&self, handler: ErrorHandler) {
        let mut place = self.0.handler.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *place, handler);
        // What a function of the user has captured is dropped with no lock held.
        drop(place);
        drop(before);
    }

    /// Handles the error of a call on this communicator: MPI_Comm_call_errhandler. A function of the user has run when
    /// this returns; what is left to do is the face's, by the handler that this answers.
    pub fn handle(&self, error: &Error) -> ErrorHandler {
        let handler = self.handler();
        if let ErrorHandler::User(function) = &handler {
            function(self, error);
        }
        handler
    }
}
