//! LAPI's error handler, for conditions that no call of the program has caused.
//!
//! Such a condition is found while progress is made. Without a handler the next call of progress returns it. With one,
//! the handler gets it instead: as a continuation (H4 of [`crate::handler`]), that is, when the lock is free, in a thread
//! that makes progress in a call or in the notification thread. So it may call the context, for example to purge the task
//! concerned.

use std::fmt;
use std::sync::Arc;

use crate::adapter::{Adapter, AdapterError, TaskId};
use crate::error::{LapiError, Violation};
use crate::message_text::Code;
use crate::session::Session;

/// The kind of operation in which an asynchronous condition was found: LAPI's `lapi_err_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// GET_ERR: a get.
    Get,
    /// PUT_ERR: a put.
    Put,
    /// RMW_ERR: an atomic operation.
    Rmw,
    /// AM_ERR: an active message.
    Am,
    /// INT_ERR: the transport itself, such as the loss of a task, damage, or a panic.
    Internal,
    /// TMR_ERR: a timer.
    Timer,
}

/// An asynchronous condition, as the error handler gets it.
#[derive(Debug)]
pub struct AsyncError {
    /// LAPI's code.
    pub code: Code,
    /// The kind of operation.
    pub kind: ErrorKind,
    /// The task that has found the condition: the caller's.
    pub task: TaskId,
    /// The task that the condition is about, or `task` if it is about no other.
    pub source: TaskId,
    /// The error, which names the cause.
    pub error: LapiError,
}

/// The function that gets asynchronous conditions (`err_hndlr` of LAPI_Init); see [`crate::Options`]. It may call the
/// context, and must not panic: a panic unwinds out of the call in which the handler runs.
#[derive(Clone)]
pub struct ErrorHandler(Arc<dyn Fn(AsyncError) + Send + Sync>);

impl ErrorHandler {
    /// Makes a handler of a function.
    pub fn new(handler: impl Fn(AsyncError) + Send + Sync + 'static) -> Self {
        Self(Arc::new(handler))
    }
}

impl fmt::Debug for ErrorHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ErrorHandler")
    }
}

impl AsyncError {
    fn new(task: TaskId, error: LapiError) -> Self {
        let source = match &error {
            LapiError::Peer { origin, .. } | LapiError::HdrHndlrNull { origin, .. } => *origin,
            LapiError::Timeout { target, .. } | LapiError::TgtPurged { target } => *target,
            LapiError::Adapter(AdapterError::PeerLost { task }) => *task,
            LapiError::Adapter(AdapterError::Corrupt { origin, .. }) => *origin,
            LapiError::Adapter(AdapterError::GetFailed { target, .. }) => *target,
            _ => task,
        };
        Self { code: error.code(), kind: kind(&error), task, source, error }
    }
}

/// The kind of operation that an error is about.
fn kind(error: &LapiError) -> ErrorKind {
    match error {
        LapiError::Timeout { .. } => ErrorKind::Timer,
        LapiError::HdrHndlrNull { .. } => ErrorKind::Am,
        LapiError::Adapter(AdapterError::GetFailed { .. }) => ErrorKind::Get,
        LapiError::Peer { violation, .. } => match violation {
            Violation::StrayGet { .. }
            | Violation::UnregisteredGet { .. }
            | Violation::GetRefused { .. } => ErrorKind::Get,
            Violation::UnregisteredPut | Violation::PutRefused => ErrorKind::Put,
            Violation::UnregisteredGetv => ErrorKind::Get,
            Violation::UnregisteredRmw | Violation::RmwRefused | Violation::StrayRmw { .. } => {
                ErrorKind::Rmw
            }
            Violation::Interleaved { .. }
            | Violation::StrayBody { .. }
            | Violation::BodyOffset { .. }
            | Violation::NotShort { .. }
            | Violation::UnknownCounter { .. } => ErrorKind::Am,
            _ => ErrorKind::Internal,
        },
        _ => ErrorKind::Internal,
    }
}

impl<A: Adapter, S> Session<A, S> {
    /// Reports an asynchronous condition: to the error handler or, if there is none, by an error.
    #[cold]
    pub(crate) fn report(&mut self, error: LapiError) -> Result<(), LapiError> {
        let Some(ErrorHandler(handler)) = self.error_handler.clone() else { return Err(error) };
        let error = AsyncError::new(self.engine.task, error);
        self.engine.outbox.when_unlocked(Box::new(move || handler(error)));
        Ok(())
    }

    /// Reports the error that was kept, if there is one.
    #[inline(always)]
    pub(crate) fn report_trouble(&mut self) -> Result<(), LapiError> {
        match self.trouble.take() {
            None => Ok(()),
            Some(trouble) => self.report(*trouble),
        }
    }
}
