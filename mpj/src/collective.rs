//! Collective calls (MPI-4 chapter 6): what the core plans, run for the caller's buffers.

use crate::communicator::Communicator;
use crate::error::Error;

impl Communicator {
    /// Waits until every rank has called it (MPI_Barrier).
    ///
    /// # Errors
    /// As [`Communicator::recv`].
    pub fn barrier(&self) -> Result<(), Error> {
        self.device.answer(self.core.barrier().and_then(mpicore::Plan::run))
    }
}
