//! Collective requests of a scope, and how they start. The calls are in `collective/scoped.rs`; those between two
//! groups are in `communicator/inter_collective/scoped.rs`.

use mpicore::Plan;

use super::ScopeOn;
use crate::collective::RecvArg;
use crate::communicator::Communicator;
use crate::error::Error;
use crate::memory::RecvBuffer;
use crate::memory::borrowed::{Borrow, Borrowed};
use crate::memory::core::output;

/// A collective call under way in a scope. Waiting for it is optional: the scope waits for all.
///
/// `B` is the borrow of the results, which [`ScopedCollective::wait`] returns.
///
/// ```
/// mpj::local::run(2, |world| {
///     let mut sum = [world.rank()];
///     let outcome: Result<(), mpj::Error> = world.scope(|scope| {
///         let sums = scope.iall_reduce(&mut sum, mpj::Op::Sum)?;
///         sums.wait()?[0] += 10;
///         Ok(())
///     });
///     outcome.unwrap();
///     assert_eq!(sum, [11]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
pub struct ScopedCollective<'scope, 'env, B: Borrow> {
    on: ScopeOn<'scope, 'env>,
    /// The scope keeps the request at this place.
    place: usize,
    results: B::Held,
}

impl<B: Borrow> ScopedCollective<'_, '_, B> {
    /// Waits until the call is complete on this rank, and returns the borrow of the results (MPI_Wait).
    ///
    /// # Errors
    /// As the blocking form of the call.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut all = [9; 2];
    ///     let mine = world.rank();
    ///     let all = world.scope(|scope| scope.iall_gather(&mine, &mut all)?.wait()).unwrap();
    ///     assert_eq!(all, [0, 1]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn wait(self) -> Result<B, Error> {
        let ScopeOn { state, communicator, .. } = self.on;
        let ended = communicator.device.iwait(state.take(self.place)?);
        // After an error the borrow ends with the scope, which waits for the local steps.
        communicator.answer(ended.map_err(mpicore::Error::from))?;
        Ok(B::take_back(self.results))
    }
}

impl<'scope, 'env> ScopeOn<'scope, 'env> {
    /// Starts the collective call that `plan` makes for the place of its results.
    pub(crate) fn start_collective<B: RecvBuffer + ?Sized>(
        self,
        results: &'env mut B,
        plan: impl FnOnce(&'scope Communicator, RecvArg) -> Result<Plan<'scope>, Error>,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut B::MemoryMut>, Error> {
        self.start_lent(results.memory_mut(), |on, results| plan(on, output(results)?))
    }

    /// Starts the collective call that `plan` makes for the buffer or buffers of its results.
    pub(crate) fn start_lent<B: ?Sized>(
        self,
        results: &'env mut B,
        plan: impl FnOnce(&'scope Communicator, &mut B) -> Result<Plan<'scope>, Error>,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut B>, Error> {
        self.check()?;
        let mut results = Borrowed::new(results);
        let plan = results.plan(|results| plan(self.communicator, results));
        let place = self.start_plan(plan)?;
        Ok(ScopedCollective { on: self, place, results })
    }

    /// Starts the collective call without results that `plan` makes.
    pub(crate) fn start_barrier(
        self,
        plan: impl FnOnce(&'scope Communicator) -> Result<Plan<'scope>, mpicore::Error>,
    ) -> Result<ScopedCollective<'scope, 'env, ()>, Error> {
        self.check()?;
        let place = self.start_plan(plan(self.communicator).map_err(Error::from))?;
        Ok(ScopedCollective { on: self, place, results: () })
    }

    fn start_plan(self, plan: Result<Plan<'_>, Error>) -> Result<usize, Error> {
        let (request, steps) = self.communicator.begin(plan)?;
        self.state.steps.borrow_mut().push(steps);
        Ok(self.state.keep(request))
    }
}
