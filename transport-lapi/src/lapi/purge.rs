//! LAPI_Purge_totask and LAPI_Resume_totask: gives up a task, and takes it back later. They close the connection to the
//! task and open it again (PU1, PU2).

use crate::adapter::TaskId;
use crate::error::LapiError;
use crate::progress::amsend::check_target;
use crate::progress::handler::Next;
use crate::progress::session::Session;

impl<S> Session<S> {
    /// Gives up a task (LAPI_Purge_totask), without telling it. Messages to it that are queued end, as if they had been
    /// sent, so their buffers are reusable; gets of its memory fail with [`LapiError::TgtPurged`], and so do later
    /// calls that name it, and waits for counters that need it ([`Session::setcntr_wstatus`]). What it sends is
    /// discarded. Use no collective call while a task is purged.
    ///
    /// # Errors
    /// [`LapiError::Tgt`].
    pub fn purge_totask(&mut self, target: TaskId) -> Result<(), LapiError> {
        let Self { state, engine, .. } = self;
        check_target(target, engine.outbox.send_queues.num_tasks())?;
        engine.close(state, target);
        self.end_call(Next::Nothing);
        Ok(())
    }

    /// Resumes a purged task (LAPI_Resume_totask). Both tasks must have purged each other, and must resume each other.
    /// The call does not block: communication is possible again as soon as the other task has resumed this one too,
    /// which [`Session::is_purged`] tells. For a task that is not purged the call does nothing.
    ///
    /// # Errors
    /// [`LapiError::Tgt`].
    pub fn resume_totask(&mut self, target: TaskId) -> Result<(), LapiError> {
        check_target(target, self.engine.outbox.send_queues.num_tasks())?;
        self.engine.reopen(target);
        self.end_call(Next::Nothing);
        Ok(())
    }

    /// Returns whether a task was purged and has not been taken back. Progress changes that once the other task has
    /// resumed this one.
    ///
    /// # Errors
    /// [`LapiError::Tgt`].
    pub fn is_purged(&self, task: TaskId) -> Result<bool, LapiError> {
        let send_queues = &self.engine.outbox.send_queues;
        check_target(task, send_queues.num_tasks())?;
        Ok(send_queues[task].is_closed())
    }
}
