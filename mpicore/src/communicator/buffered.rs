//! Buffered sends on a communicator (MPI-4.1 section 3.6). `process/buffered.rs` keeps the copies.

use std::sync::Arc;

use mpjdev::{Source, Status};

use super::Communicator;
use crate::error::Error;
use crate::process::buffered::{self, SendBuffer, SessionBuffer};

impl Communicator {
    /// Returns the place of the rank's buffer, which all communicators of the same context use: the argument of
    /// MPI_Buffer_attach, MPI_Buffer_flush and so on.
    pub fn rank_buffer(&self) -> SendBuffer<'_> {
        SendBuffer::new(self.device(), &self.process().copies)
    }

    /// Returns the place of the communicator's own buffer: the argument of MPI_Comm_attach_buffer and so on. If one is
    /// attached, buffered sends on the communicator use it instead of the session's and of the rank's.
    pub fn own_buffer(&self) -> SendBuffer<'_> {
        SendBuffer::new(self.device(), self.copies())
    }

    /// States the session that the communicator comes from, whose buffer it then uses instead of the rank's, if one is
    /// attached. Communicators that are made from it later use the same. Only the first call has an effect.
    pub fn share_buffer(&self, buffer: Arc<SessionBuffer>) {
        let _ = self.session().set(buffer);
    }

    /// Returns the place of the buffer of the session that the communicator comes from, if it comes from one.
    pub fn session_buffer(&self) -> Option<&Arc<SessionBuffer>> {
        self.session().get()
    }

    /// Sends a copy of `data` to the job rank `dest`, and never waits for the receiver: MPI_Bsend, and each start of
    /// MPI_Bsend_init. The message is sent whenever the rank is in a call that makes progress. Returns the status of a
    /// request that is complete, for MPI_Ibsend.
    ///
    /// # Errors
    /// [`Error::AttachedBuffer`] if there is not enough room, or no buffer; [`Error::Memory`] if memory is exhausted;
    /// those of `isend` of the device. Nothing was sent then.
    pub fn bsend(&self, data: &Source, dest: usize, tag: i32) -> Result<Status, Error> {
        let of_rank = &self.process().copies;
        let of_session = self.session_buffer().map_or(of_rank, |session| session.copies());
        let places = [self.copies(), of_session, of_rank];
        buffered::send(self.device(), places, data, (dest, tag, self.context()))
    }
}
