//! Asynchronous errors: an error handler gets them, or else the next call of progress returns them.
//!
//! Such a condition is found while progress is made. Without a handler the next call of progress returns it. With one,
//! the handler gets it instead: as a continuation (H4 of [`crate::progress::handler`]), that is, when the lock is free,
//! in a thread that makes progress in a call or in the notification thread. So it may call the context, for example to
//! purge the task concerned.

use std::fmt;
use std::sync::Arc;

use crate::adapter::TaskId;
use crate::error::LapiError;
use crate::progress::session::Session;

/// The function that gets asynchronous conditions (`err_hndlr` of LAPI_Init); see [`crate::Options`]. It may call the
/// context, and must not panic: a panic unwinds out of the call in which the handler runs.
#[derive(Clone)]
pub struct ErrorHandler(Arc<Report>);

/// Gets the task that has found a condition, and the condition.
type Report = dyn Fn(TaskId, LapiError) + Send + Sync;

impl ErrorHandler {
    pub(crate) fn of(report: impl Fn(TaskId, LapiError) + Send + Sync + 'static) -> Self {
        Self(Arc::new(report))
    }
}

impl fmt::Debug for ErrorHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ErrorHandler")
    }
}

impl<S> Session<S> {
    /// Reports an asynchronous condition: to the error handler or, if there is none, by an error.
    #[cold]
    pub(crate) fn report(&mut self, error: LapiError) -> Result<(), LapiError> {
        let Some(ErrorHandler(report)) = self.error_handler.clone() else { return Err(error) };
        let task = self.engine.task;
        self.engine.outbox.when_unlocked(Box::new(move || report(task, error)));
        Ok(())
    }

    /// Reports the error that was kept, if there is one.
    #[inline(always)]
    pub(crate) fn report_first_error(&mut self) -> Result<(), LapiError> {
        // Nothing is stored where there is none, as in most turns of a spin.
        if self.first_error.is_none() {
            return Ok(());
        }
        self.first_error.take().map_or(Ok(()), |first_error| self.report(*first_error))
    }
}
