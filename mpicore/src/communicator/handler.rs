//! Error handlers of communicators (MPI-4.1 section 9.3). The layer above passes each error to [`Communicator::handle`]
//! before it returns the error to its caller, and acts on the returned handler.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::Communicator;
use crate::error::Error;

/// MPI's error handlers. This crate calls functions of users, and leaves everything else to the layer above.
#[derive(Clone, Default)]
pub enum ErrorHandler {
    /// The call returns the error: MPI_ERRORS_RETURN. This is the default.
    #[default]
    Return,
    /// The layer above ends the whole job: MPI_ERRORS_ARE_FATAL.
    Fatal,
    /// The layer above ends the ranks of the communicator: MPI_ERRORS_ABORT.
    Abort,
    /// The function gets the error, then the call returns it: MPI_Comm_create_errhandler. The function runs while no
    /// lock of this crate is held, and may call MPI.
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

/// The handler of a communicator, which may change at any time.
#[derive(Default)]
pub(crate) struct Handler(Mutex<ErrorHandler>);

impl Handler {
    pub(super) fn new(handler: ErrorHandler) -> Self {
        Self(Mutex::new(handler))
    }
}

impl Communicator {
    /// Returns the error handler: MPI_Comm_get_errhandler. A communicator inherits the handler of the one it was made
    /// from.
    pub fn handler(&self) -> ErrorHandler {
        self.0.handler.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the error handler, on this rank: MPI_Comm_set_errhandler. Communicators made from this one keep theirs.
    pub fn set_handler(&self, handler: ErrorHandler) {
        let mut place = self.0.handler.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *place, handler);
        // Drop what a user's function has captured while no lock is held.
        drop(place);
        drop(before);
    }

    /// Handles the error of a call on this communicator: MPI_Comm_call_errhandler. It runs a user's function; the
    /// layer above does the rest, according to the returned handler.
    pub fn handle(&self, error: &Error) -> ErrorHandler {
        let handler = self.handler();
        if let ErrorHandler::User(function) = &handler {
            function(self, error);
        }
        handler
    }
}
