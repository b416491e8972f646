//! Memory of other tasks of this host, which a task reads and writes alone, at addresses that its owner has told it: not
//! memory that was registered for an operation, and without a ticket.

use crate::adapter::{AdapterError, TaskId};
use crate::memory::region::{ForeignBytes, PeerBytes, RecvPart};

/// The memory of the other tasks of this host, as far as the system lets this task read and write it.
///
/// The owner takes no part in the copies, and they may meet its own accesses: whoever tells an address says when others
/// may use it. A bad address is an error.
pub trait PeerMemory: Send + Sync {
    /// Returns whether this task can read and write the memory of a task, and nobody else can get the place of that
    /// task's process meanwhile. It tries to read something there.
    fn reaches(&self, task: TaskId) -> bool;

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
    fn write(
        &self,
        task: TaskId,
        to: &[PeerBytes],
        from: ForeignBytes<'_>,
    ) -> Result<(), AdapterError>;
}
