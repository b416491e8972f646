//! Operations of an epoch that are under way at once.

use std::marker::PhantomData;

use super::epoch::Epoch;
use super::place::Place;
use crate::datatype::Datatype;
use crate::error::Error;
use crate::memory::{RecvBuffer, SendBuffer};
use crate::op::{Number, Op};
use crate::scope::ScopeOutcome;

/// A scope in which operations of an epoch borrow their buffers: see [`Epoch::scope`].
pub struct EpochScope<'scope, 'env: 'scope, T: Datatype> {
    epoch: &'scope Epoch<'scope, T>,
    environment: PhantomData<&'env mut &'env ()>,
}

impl<T: Datatype> Clone for EpochScope<'_, '_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Datatype> Copy for EpochScope<'_, '_, T> {}

impl<T: Datatype> Epoch<'_, T> {
    /// Runs `body` with a scope whose operations do not wait: they borrow their buffers, and when this returns, results are
    /// there, and data may change (MPI_Win_flush_local_all). If `body` panics, the scope waits for them all the same.
    ///
    /// # Errors
    /// The error of `body`; as [`put`](Self::put).
    ///
    /// ```
    /// mpj::local::run(4, |world| {
    ///     let mut window = world.allocate_window::<usize>(1).unwrap();
    ///     window.local().unwrap()[0] = world.rank();
    ///     let mut all = [9_usize; 4];
    ///     world.barrier().unwrap();
    ///     window.lock_all(|epoch| {
    ///         epoch.scope(|scope| (0..4).zip(&mut all).try_for_each(|(rank, number)| scope.get(number, rank, 0)))
    ///     })
    ///     .unwrap();
    ///     assert_eq!(all, [0, 1, 2, 3]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    ///
    /// The compiler refuses to read a result before the scope has ended:
    ///
    /// ```compile_fail
    /// fn wrong(epoch: &mpj::Epoch<'_, u8>) -> Result<(), mpj::Error> {
    ///     let mut got = [0];
    ///     epoch.scope(|scope| {
    ///         scope.get(&mut got, 0, 0)?;
    ///         assert_eq!(got, [7]);
    ///         Ok(())
    ///     })
    /// }
    /// ```
    ///
    /// ```compile_fail
    /// fn wrong(epoch: &mpj::Epoch<'_, u8>) -> Result<(), mpj::Error> {
    ///     epoch.scope(|scope| {
    ///         let mut got = [0];
    ///         scope.get(&mut got, 0, 0)
    ///     })
    /// }
    /// ```
    #[doc(alias("MPI_Win_flush_local", "MPI_Win_flush_local_all"))]
    pub fn scope<'env, R: ScopeOutcome>(
        &self,
        body: impl for<'scope> FnOnce(EpochScope<'scope, 'env, T>) -> R,
    ) -> Result<R::Value, Error> {
        /// Waits after a panic.
        struct AfterPanic<'e, T: Datatype>(&'e Epoch<'e, T>);

        impl<T: Datatype> Drop for AfterPanic<'_, T> {
            fn drop(&mut self) {
                let _ = self.0.settle(None);
            }
        }

        let panicked = AfterPanic(self);
        let value = body(EpochScope { epoch: self, environment: PhantomData }).into_result();
        std::mem::forget(panicked);
        let settled = self.settle(None);
        // As after an epoch.
        let value = value?;
        self.answer(settled)?;
        Ok(value)
    }
}

impl<'env, T: Datatype> EpochScope<'_, 'env, T> {
    /// Begins to write elements to a rank (MPI_Rput).
    ///
    /// # Errors
    /// As [`Epoch::put`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut window = world.allocate_window::<u8>(100_000).unwrap();
    ///     let data = vec![7; 50_000];
    ///     window.fence(|epoch| {
    ///         epoch.scope(|scope| (0..2).try_for_each(|rank| scope.put(&data, rank, 50_000 * world.rank())))
    ///     })
    ///     .unwrap();
    ///     assert!(window.local().unwrap().iter().all(|byte| *byte == 7));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Rput")]
    #[track_caller]
    pub fn put<B: SendBuffer<Element = T> + ?Sized>(
        self,
        data: &'env B,
        rank: usize,
        at: impl Into<Place>,
    ) -> Result<(), Error> {
        let _site = self.epoch.site("put");
        self.epoch.answer(self.epoch.begin_put(data, rank, at.into()))
    }

    /// Begins to read elements of a rank (MPI_Rget).
    ///
    /// # Errors
    /// As [`Epoch::put`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut window = world.allocate_window::<u8>(4).unwrap();
    ///     let (mut some, mut others) = ([9; 2], [9; 2]);
    ///     window.lock(1, |epoch| {
    ///         epoch.scope(|scope| {
    ///             scope.get(&mut some, 1, 0)?;
    ///             scope.get(&mut others, 1, 2)
    ///         })
    ///     })
    ///     .unwrap();
    ///     assert_eq!([some, others], [[0; 2]; 2]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Rget")]
    #[track_caller]
    pub fn get<B: RecvBuffer<Element = T> + ?Sized>(
        self,
        into: &'env mut B,
        rank: usize,
        at: impl Into<Place>,
    ) -> Result<(), Error> {
        let _site = self.epoch.site("get");
        self.epoch.answer(self.epoch.begin_get(into, rank, at.into()))
    }
}

impl<'env, T: Number> EpochScope<'_, 'env, T> {
    /// Begins to combine elements with those of a rank, and to read what was there (MPI_Rget_accumulate).
    ///
    /// # Errors
    /// As [`Epoch::accumulate`].
    ///
    /// ```
    /// use mpj::Op;
    /// mpj::local::run(2, |world| {
    ///     let mut counters = world.allocate_window::<u64>(1).unwrap();
    ///     let mut before = [[9]; 2];
    ///     counters.lock_all(|epoch| {
    ///         epoch.scope(|scope| {
    ///             (0..2).zip(&mut before).try_for_each(|(rank, before)| scope.get_accumulate(&[1], before, rank, 0, Op::Sum))
    ///         })
    ///     })
    ///     .unwrap();
    ///     assert!(before.iter().all(|before| before[0] < 2));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Rget_accumulate")]
    #[track_caller]
    pub fn get_accumulate<B, C>(
        self,
        data: &'env B,
        before: &'env mut C,
        rank: usize,
        at: impl Into<Place>,
        op: Op,
    ) -> Result<(), Error>
    where
        B: SendBuffer<Element = T> + ?Sized,
        C: RecvBuffer<Element = T> + ?Sized,
    {
        let _site = self.epoch.site("get_accumulate");
        let buffers = (data, before);
        let op = op.predefined();
        self.epoch.answer(self.epoch.begin_get_accumulate(buffers, op, rank, at.into()))
    }
}
