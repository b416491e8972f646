//! Asynchronous conditions as LAPI describes them to an error handler: with a code, the kind of operation, and the task
//! that they are about.

use crate::adapter::{AdapterError, TaskId};
use crate::error::{LapiError, Violation};
use crate::lapi::message_text::Code;
use crate::progress::report::ErrorHandler;

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

impl ErrorHandler {
    /// Makes a handler of a function.
    pub fn new(handler: impl Fn(AsyncError) + Send + Sync + 'static) -> Self {
        Self::of(move |task, error| handler(AsyncError::new(task, error)))
    }
}

impl AsyncError {
    fn new(task: TaskId, error: LapiError) -> Self {
        let source = match &error {
            LapiError::Peer { origin, .. } | LapiError::HdrHndlrNull { origin, .. } => *origin,
            LapiError::Timeout { target, .. } | LapiError::TgtPurged { target } => *target,
            LapiError::Adapter(AdapterError::PeerLost { task }) => *task,
            LapiError::Adapter(AdapterError::Corrupt { origin, .. }) => *origin,
            LapiError::Adapter(AdapterError::AccessFailed { target, .. }) => *target,
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
        LapiError::Adapter(AdapterError::AccessFailed { .. }) => ErrorKind::Get,
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
