//! Memory of other tasks of this host, which a task reads and writes alone, at addresses that its owner has told it: not
//! memory that was registered for an operation, and without a ticket.

#![expect(unsafe_code, reason = "memory of others is written")]

use crate::adapter::{AdapterError, TaskId};
use crate::memory::region::{ForeignBytes, PeerBytes, RecvPart};

/// The memory of the other tasks of this host, as far as the system lets this task read and write it.
///
/// The owner takes no part in the copies, and they may meet its own accesses: whoever tells an address says when others
/// may use it. A bad address is an error.
pub trait PeerMemory: Send + Sync {
    /// Returns whether this task can read and write the memory of a task now, and the number of that task's process is not
    /// used again while the job lasts. It tries to read something there.
    fn reaches(&self, task: TaskId) -> bool;

    /// Returns whether the process of a task has ended, with all its threads.
    fn has_ended(&self, task: TaskId) -> bool;

    /// Fills `into` with these bytes of a task, one after the other. They are at least as many as there is room for.
    ///
    /// # Errors
    /// [`AdapterError::PeerLost`] if its process has ended; [`AdapterError::AccessFailed`] if the system refuses the
    /// access, or the task has no such memory.
    fn read(
        &self,
        task: TaskId,
        from: &[PeerBytes],
        into: RecvPart<'_>,
    ) -> Result<(), AdapterError>;

    /// Writes `from` to these bytes of a task, one after the other. They are at least as many.
    ///
    /// # Errors
    /// As [`PeerMemory::read`].
    ///
    /// # Safety
    /// Whoever owns the bytes lets this task write them now. Its process may be this one.
    unsafe fn write(
        &self,
        task: TaskId,
        to: &[PeerBytes],
        from: ForeignBytes<'_>,
    ) -> Result<(), AdapterError>;
}
