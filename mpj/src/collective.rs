//! Collective calls (MPI-4.1 chapter 6): the core plans and runs them, for the caller's buffers.
//!
//! All ranks of a communicator make the same collective calls on it in the same order. A buffer is any
//! [`SendBuffer`](crate::SendBuffer) or [`RecvBuffer`](crate::RecvBuffer). A call that divides a buffer among the
//! ranks makes one part for each, in their order. Buffers that only the root uses may be empty elsewhere: `&mut []`.
//!
//! Each call has these forms: blocking; non-blocking with buffers of its own (`i...`, see `started.rs`); non-blocking
//! in a scope, which borrows (`scoped.rs`); and persistent (`..._init`, see `kept.rs`). The forms of MPI_Alltoallw
//! that own their memory are in `parts.rs`. All ranks use the same form: a blocking call does not match a
//! non-blocking one (MPI-4.1 section 6.12). For all forms of a call, one function here makes the plan that they run.

use mpicore::{Input, Output, Plan};

use crate::communicator::Communicator;
use crate::error::Error;
use crate::memory::core::{input, output};
use crate::memory::{RecvBuffer, SendBuffer};

mod blocks;
mod kept;
mod movement;
mod parts;
mod reduction;
mod scoped;
mod started;

pub use blocks::Blocks;
pub use kept::PersistentCollective;
pub(crate) use parts::Parts;
pub(crate) use reduction::{divided, same_length};
pub use started::CollectiveRequest;

/// What a call sends, and how many units that has.
pub(crate) type Given = (Input, u64);

/// Where the results of a call go, and how many units there is room for.
pub(crate) type Room = (Output, u64);

/// Blocks with datatypes of their own, one for each rank.
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

    /// Runs what a call has planned.
    pub(crate) fn run(&self, plan: Result<Plan<'_>, Error>) -> Result<(), Error> {
        self.answer(plan.and_then(|plan| Ok(plan.run()?)))
    }

    /// Runs the plan for these buffers.
    pub(crate) fn run_with<'c, S: SendBuffer + ?Sized, R: RecvBuffer + ?Sized>(
        &'c self,
        data: &S,
        into: &mut R,
        plan: impl FnOnce(Given, Room) -> Result<Plan<'c>, Error>,
    ) -> Result<(), Error> {
        self.run(input(data).and_then(|data| plan(data, output(into)?)))
    }

    /// The units of one rank, of `units` that are divided among all ranks.
    pub(crate) fn share(&self, units: u64) -> Result<u64, Error> {
        let ranks = self.core.peers().size();
        match units.checked_rem(ranks.into()) {
            Some(0) => Ok(units / u64::from(ranks)),
            _ => Err(Error::Division { elements: units as usize, ranks: ranks as usize }),
        }
    }

    /// Blocks of the same length for all ranks, of `units` that are divided among them.
    pub(crate) fn equal_blocks(
        &self,
        units: u64,
    ) -> Result<mpicore::collective::Blocks<'static>, Error> {
        Ok(mpicore::collective::Blocks::Equal { count: self.share(units)? })
    }

    /// A root as the core counts ranks.
    fn root(root: usize) -> u32 {
        // A number that is too large is no rank; the core reports that.
        u32::try_from(root).unwrap_or(u32::MAX)
    }
}
