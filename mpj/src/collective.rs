//! Collective calls (MPI-4.1 chapter 6): the core plans and runs them, for the caller's buffers.
//!
//! All ranks of a communicator make the same collective calls on it in the same order. A buffer is any
//! [`SendBuffer`](crate::SendBuffer) or [`RecvBuffer`](crate::RecvBuffer). A call that divides a buffer among the ranks
//! gives each rank one part, in the order of ranks. Buffers that only the root uses may be empty on other ranks: `&mut
//! []`.
//!
//! Each call has these forms: blocking; non-blocking with buffers that the call owns (`i...`, see `request.rs`);
//! non-blocking with borrowed buffers in a scope (`scoped.rs`); and persistent (`..._init`, see `persistent.rs`). The
//! forms of MPI_Alltoallw that own their memory are in `parts.rs`. All ranks use the same form: a blocking call does
//! not match a non-blocking one (MPI-4.1 section 6.12). One function here makes the plan that all forms of a call run.

use mpicore::{Input, Output, Plan};

use crate::communicator::Communicator;
use crate::error::Error;
use crate::memory::core::{input, output};
use crate::memory::{RecvBuffer, SendBuffer};

mod movement;
mod partition;
mod parts;
mod persistent;
mod reduction;
mod request;
mod scoped;

pub use partition::Partition;
pub(crate) use parts::Parts;
pub use persistent::PersistentCollective;
pub(crate) use reduction::{divided, same_length};
pub use request::CollectiveRequest;

/// What a call sends, and how many units that is.
pub(crate) type SendArg = (Input, u64);

/// Where the results of a call go, and how many units fit there.
pub(crate) type RecvArg = (Output, u64);

/// Describes blocks with datatypes of their own, one for each rank.
pub(crate) fn typed(entries: u64) -> mpicore::collective::Blocks<'static> {
    mpicore::collective::Blocks::Typed { entries: entries as usize }
}

impl Communicator {
    /// Waits until every rank has called the barrier (MPI_Barrier).
    ///
    /// # Errors
    /// As [`PointToPoint::recv`](crate::PointToPoint::recv).
    ///
    /// ```
    /// mpj::local::run(3, |world| world.barrier().unwrap())?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn barrier(&self) -> Result<(), Error> {
        self.answer(self.core.run_barrier())
    }

    /// Runs a plan, or returns the error of making it.
    #[inline]
    pub(crate) fn run(&self, plan: Result<Plan<'_>, Error>) -> Result<(), Error> {
        self.answer(plan.and_then(|plan| Ok(plan.run()?)))
    }

    /// Runs the plan that is made for these buffers.
    #[inline]
    pub(crate) fn run_with<'c, S: SendBuffer + ?Sized, R: RecvBuffer + ?Sized>(
        &'c self,
        data: &S,
        into: &mut R,
        plan: impl FnOnce(SendArg, RecvArg) -> Result<Plan<'c>, Error>,
    ) -> Result<(), Error> {
        self.run(input(data).and_then(|data| plan(data, output(into)?)))
    }

    /// Returns how many of `units` each rank gets when they are divided equally.
    #[inline]
    pub(crate) fn share(&self, units: u64) -> Result<u64, Error> {
        let ranks = self.core.peers().size();
        match units.checked_rem(ranks.into()) {
            Some(0) => Ok(units / u64::from(ranks)),
            _ => Err(Error::Division { elements: units as usize, ranks: ranks as usize }),
        }
    }

    /// Describes blocks of the same length for all ranks, into which `units` are divided.
    #[inline]
    pub(crate) fn equal_blocks(
        &self,
        units: u64,
    ) -> Result<mpicore::collective::Blocks<'static>, Error> {
        Ok(mpicore::collective::Blocks::Equal { count: self.share(units)? })
    }

    /// Converts a root to the core's type for ranks.
    #[inline]
    fn root(root: usize) -> u32 {
        // The core refuses a number that is too large, since no rank has it.
        u32::try_from(root).unwrap_or(u32::MAX)
    }
}
