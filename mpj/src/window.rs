//! Windows: memory of each rank that the other ranks read and write (MPI-4.1 chapter 12).
//!
//! - WJ1: the memory of a [`Window`] begins as zeros, which are elements, and operations of all ranks write nothing into it
//!   but bytes that the datatype of `T` describes, which may be any (DT1): all ranks have the same one.
//! - WJ2: the elements are borrowed only while this rank has its own window locked exclusively ([`Local`]). No other rank
//!   accesses it then: not by a lock, which excludes this one; not after a fence, since all ranks, this one too, are in
//!   [`Window::fence`] from the first fence to the last; not after a start, since that needs an [`Exposure`] here, whose end
//!   waits for the accesses. If a call that ends an epoch fails, or a closure panics, that is not so, and the window is
//!   broken: it refuses all further epochs.
//! - WJ3: each operation without a scope has ended, as far as this rank's buffers matter, when it returns, with an error,
//!   too; those of an [`EpochScope`] have when the scope has, also by a panic.
//!
//! `epoch.rs`, `scope.rs`: operations. `place.rs`: where their elements lie. `local.rs`: a rank's own elements. `handle.rs`:
//! the window of the core. `array.rs`, `counter.rs`: arrays and counters that ranks share.

use std::marker::PhantomData;
use std::sync::atomic::Ordering;

use mpicore::LockKind;

use crate::communicator::Communicator;
use crate::datatype::{Datatype, TypeMap};
use crate::error::Error;
use crate::group::no_rank;
use crate::scope::ScopeOutcome;

mod array;
mod counter;
mod epoch;
mod handle;
mod local;
mod place;
mod scope;

pub use array::{AtomicElement, SharedArray};
pub use counter::SharedCounter;
pub use epoch::Epoch;
use handle::Handle;
pub use local::Local;
pub use place::Place;
pub use scope::EpochScope;

/// Elements in the memory of each rank, which the other ranks read and write without its help: see
/// [`Communicator::allocate_window`]. There are as many as the rank asked for, at first zeros.
///
/// Ranks access them in *epochs*. A method opens one, calls a closure with an [`Epoch`] that has the operations, and ends
/// it. What has been written is in its place then.
///
/// | | which ranks call it | accesses |
/// |---|---|---|
/// | [`fence`](Self::fence) | all | to all ranks |
/// | [`expose`](Self::expose), [`access`](Self::access) | those that are accessed; those that access them | to these ranks |
/// | [`lock`](Self::lock), [`lock_exclusive`](Self::lock_exclusive), [`lock_all`](Self::lock_all) | only those that access others | to a rank, or to all |
/// | [`local`](Self::local) | any | to the rank's own elements, as a slice |
///
/// If all ranks are on one host, each carries its operations out itself, in memory that all have mapped. Otherwise the rank
/// that is accessed does, in any call that waits or polls, and beside computation only if it has a progress thread
/// ([`World::progress_thread`](crate::World::progress_thread)).
///
/// Several ranks may access the same element in one epoch. If one of them writes it then, other reads and writes get any of
/// the values, or parts of them; jobs that look for [mistakes between ranks](crate#mistakes-between-ranks) report it where
/// they can. Operations that are *atomic* see each other as a whole, in some order:
/// [`accumulate`](Epoch::accumulate), [`fetch_and_op`](Epoch::fetch_and_op) and those below them.
///
/// Dropping a window does not wait. Its memory stays until all ranks have dropped theirs, or until their processes end if a
/// rank does so because of an error.
///
/// # Errors and panics of closures
/// An epoch whose closure returns an error ends as usual. If the closure panics, locks and what [`access`](Self::access)
/// has opened end as usual, too. Ranks that wait for a rank which has panicked in [`fence`](Self::fence) learn that it is
/// lost, or are reported as part of a deadlock. After a panic in [`fence`](Self::fence) or [`expose`](Self::expose), and
/// after an epoch that could not be ended, all methods fail with [`Error::Epoch`].
///
/// # Example
///
/// ```
/// use mpj::Op;
/// mpj::local::run(3, |world| {
///     let (rank, next) = (world.rank(), (world.rank() + 1) % 3);
///     let mut window = world.allocate_window::<u64>(2).unwrap();
///     window.fence(|epoch| {
///         epoch.put(&[10 * rank as u64], next, 0)?;
///         epoch.accumulate(&[1], 0, 1, Op::Sum)
///     })
///     .unwrap();
///     let of_next = window.lock(next, |epoch| epoch.get_vec(2, next, 0)).unwrap();
///     assert_eq!(of_next, [10 * rank as u64, if next == 0 { 3 } else { 0 }]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
///
/// The compiler refuses two epochs at a time, and an epoch outside of its closure:
///
/// ```compile_fail
/// fn wrong(window: &mut mpj::Window<u8>) -> Result<(), mpj::Error> {
///     window.fence(|_| window.lock(0, |_| {}))
/// }
/// ```
///
/// ```compile_fail
/// fn wrong(window: &mut mpj::Window<u8>) -> Result<(), mpj::Error> {
///     let mut kept = None;
///     window.lock_all(|epoch| kept = Some(epoch))?;
///     kept.unwrap().put(&[1], 0, 0)
/// }
/// ```
///
/// It also refuses elements that other ranks could set to something illegal, and data of another type:
///
/// ```compile_fail
/// fn wrong(world: &mpj::World) {
///     world.allocate_window::<char>(1).unwrap();
/// }
/// ```
///
/// ```compile_fail
/// fn wrong(window: &mut mpj::Window<u64>) -> Result<(), mpj::Error> {
///     window.fence(|epoch| epoch.put(&[1.0], 0, 0))
/// }
/// ```
#[doc(alias = "MPI_Win_free")]
pub struct Window<T: Datatype> {
    handle: Handle,
    elements: TypeMap,
    len: usize,
    types: PhantomData<fn(T) -> T>,
}

/// # Windows
impl Communicator {
    /// Makes a window with `len` elements of this rank (MPI_Win_allocate). Collective; all ranks have elements of the same
    /// type, each as many as it likes.
    ///
    /// # Errors
    /// As [`Communicator::dup`]; [`Error::WindowElements`]; [`ErrorClass::NoMem`](crate::ErrorClass::NoMem), on all ranks, if
    /// one has not so much memory.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     // Only rank 0 has memory.
    ///     let mut board = world.allocate_window::<f64>(if world.rank() == 0 { 100 } else { 0 }).unwrap();
    ///     board.lock(0, |epoch| epoch.put(&[0.5], 0, 10 * world.rank())).unwrap();
    ///     assert_eq!(board.lock(0, |epoch| epoch.get_vec(1, 0, 10 * world.rank())).unwrap(), [0.5]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias("MPI_Win_allocate", "MPI_Win_create"))]
    #[track_caller]
    pub fn allocate_window<T: Datatype>(&self, len: usize) -> Result<Window<T>, Error> {
        let elements = self.step(T::datatype())?;
        let size = size_of::<T>();
        let _site = self.site("allocate_window", || None);
        // No memory is as long as a number that is too high.
        let bytes = len.checked_mul(size).unwrap_or(usize::MAX / 2);
        let make = |core: &_| mpicore::Window::allocate(core, bytes, size);
        let handle = Handle::new(self, &elements.to_string(), make)?;
        Ok(Window { handle, elements, len, types: PhantomData })
    }
}

impl<T: Datatype> Window<T> {
    /// Returns the number of this rank's elements.
    ///
    /// ```
    /// let lens = mpj::local::run(2, |world| world.allocate_window::<u8>(5 + world.rank()).unwrap().len())?;
    /// assert_eq!(lens, [5, 6]);
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[expect(clippy::len_without_is_empty, reason = "ranks know whether they asked for none")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the communicator on which the window was made (MPI_Win_get_group).
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let window = world.allocate_window::<u8>(1).unwrap();
    ///     assert_eq!(window.communicator().size(), 2);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Win_get_group")]
    pub fn communicator(&self) -> &Communicator {
        &self.handle.communicator
    }

    /// Sets the name that reports use for the window, on this rank (MPI_Win_set_name).
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     world.allocate_window::<u8>(1).unwrap().set_name("board");
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Win_set_name")]
    pub fn set_name(&self, name: impl Into<String>) {
        self.handle.core.set_name(name);
    }

    /// Opens an epoch in which each rank accesses any of them (MPI_Win_fence, before and after). Collective: it begins when
    /// all ranks have called this, and ends when the closures of all ranks have.
    ///
    /// # Errors
    /// The error of `body`; [`Error::Epoch`]; a rank is lost; the device has failed.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut window = world.allocate_window::<usize>(1).unwrap();
    ///     window.fence(|epoch| epoch.put(&world.rank(), 1 - world.rank(), 0)).unwrap();
    ///     assert_eq!(window.local().unwrap()[0], 1 - world.rank());
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Win_fence")]
    pub fn fence<R: ScopeOutcome>(
        &mut self,
        body: impl FnOnce(&Epoch<'_, T>) -> R,
    ) -> Result<R::Value, Error> {
        self.enter(|core| core.fence(false, true))?;
        self.within(|core| core.fence(true, false), false, || body(&self.epoch()))
    }

    /// Lets the ranks `origins` access this rank's elements (MPI_Win_post), each by one [`access`](Self::access), while
    /// `body` runs, and then until all of them have ended (MPI_Win_wait). `body` may access elements of others, by
    /// [`Exposure::access`].
    ///
    /// # Errors
    /// The error of `body`; no such rank; [`Error::Epoch`]; a rank is lost; the device has failed.
    ///
    /// ```
    /// mpj::local::run(4, |world| {
    ///     let (rank, mut window) = (world.rank(), world.allocate_window::<usize>(2).unwrap());
    ///     let neighbours = [(rank + 3) % 4, (rank + 1) % 4];
    ///     window.expose(&neighbours, |exposure| {
    ///         exposure.access(&neighbours, |epoch| {
    ///             epoch.put(&rank, neighbours[0], 1)?;
    ///             epoch.put(&rank, neighbours[1], 0)
    ///         })
    ///     })
    ///     .unwrap();
    ///     assert_eq!(*window.local().unwrap(), neighbours);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias("MPI_Win_post", "MPI_Win_wait"))]
    pub fn expose<R: ScopeOutcome>(
        &mut self,
        origins: &[usize],
        body: impl FnOnce(&mut Exposure<'_, T>) -> R,
    ) -> Result<R::Value, Error> {
        let origins = self.ranks(origins)?;
        self.enter(|core| core.post(&origins))?;
        self.within(mpicore::Window::wait, false, || body(&mut Exposure(self)))
    }

    /// Opens an epoch in which this rank accesses the elements of the ranks `targets` (MPI_Win_start, MPI_Win_complete).
    /// It begins when all of them have called [`expose`](Self::expose) for this rank.
    ///
    /// # Errors
    /// As [`expose`](Self::expose).
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let (rank, mut window) = (world.rank(), world.allocate_window::<usize>(3).unwrap());
    ///     if rank == 0 {
    ///         window.expose(&[1, 2], |_| {}).unwrap();
    ///         assert_eq!(*window.local().unwrap(), [0, 1, 2]);
    ///     } else {
    ///         window.access(&[0], |epoch| epoch.put(&rank, 0, rank)).unwrap();
    ///     }
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias("MPI_Win_start", "MPI_Win_complete"))]
    pub fn access<R: ScopeOutcome>(
        &mut self,
        targets: &[usize],
        body: impl FnOnce(&Epoch<'_, T>) -> R,
    ) -> Result<R::Value, Error> {
        self.start(targets, body)
    }

    /// Opens an epoch in which this rank accesses the elements of a rank, which need not know of it (MPI_Win_lock,
    /// MPI_LOCK_SHARED, MPI_Win_unlock). Other ranks may have such a lock at the same time.
    ///
    /// # Errors
    /// As [`expose`](Self::expose).
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut window = world.allocate_window::<f32>(2).unwrap();
    ///     let old = window.lock(1, |epoch| epoch.fetch_and_op(0.5, 1, 0, mpj::Op::Sum)).unwrap();
    ///     assert!([0.0, 0.5].contains(&old));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias("MPI_Win_lock", "MPI_LOCK_SHARED", "MPI_Win_unlock"))]
    pub fn lock<R: ScopeOutcome>(
        &mut self,
        rank: usize,
        body: impl FnOnce(&Epoch<'_, T>) -> R,
    ) -> Result<R::Value, Error> {
        self.locked(LockKind::Shared, rank, body)
    }

    /// Like [`lock`](Self::lock), but no other rank has a lock of that rank at the same time (MPI_LOCK_EXCLUSIVE).
    ///
    /// # Errors
    /// As [`expose`](Self::expose).
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let mut window = world.allocate_window::<u64>(1).unwrap();
    ///     for _ in 0..5 {
    ///         window.lock_exclusive(0, |epoch| {
    ///             let before = epoch.get_vec(1, 0, 0)?[0];
    ///             epoch.put(&(before + 1), 0, 0)
    ///         })
    ///         .unwrap();
    ///     }
    ///     world.barrier().unwrap();
    ///     assert!(world.rank() > 0 || window.local().unwrap()[0] == 15);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_LOCK_EXCLUSIVE")]
    pub fn lock_exclusive<R: ScopeOutcome>(
        &mut self,
        rank: usize,
        body: impl FnOnce(&Epoch<'_, T>) -> R,
    ) -> Result<R::Value, Error> {
        self.locked(LockKind::Exclusive, rank, body)
    }

    /// Opens an epoch in which this rank accesses the elements of all ranks, which need not know of it (MPI_Win_lock_all,
    /// MPI_Win_unlock_all). It excludes exclusive locks.
    ///
    /// # Errors
    /// As [`expose`](Self::expose).
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let mut window = world.allocate_window::<u64>(1).unwrap();
    ///     window.lock_all(|epoch| (0..3).try_for_each(|rank| epoch.accumulate(&[2], rank, 0, mpj::Op::Sum))).unwrap();
    ///     world.barrier().unwrap();
    ///     assert_eq!(window.local().unwrap()[0], 6);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias("MPI_Win_lock_all", "MPI_Win_unlock_all"))]
    pub fn lock_all<R: ScopeOutcome>(
        &mut self,
        body: impl FnOnce(&Epoch<'_, T>) -> R,
    ) -> Result<R::Value, Error> {
        self.enter(|core| core.lock_all(true))?;
        self.within(mpicore::Window::unlock_all, true, || body(&self.epoch()))
    }

    /// Borrows this rank's own elements: locks its window exclusively until the result is dropped.
    ///
    /// # Errors
    /// As [`lock_exclusive`](Self::lock_exclusive).
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut window = world.allocate_window::<u64>(4).unwrap();
    ///     window.local().unwrap().copy_from_slice(&[1, 2, 3, 4]);
    ///     world.barrier().unwrap();
    ///     assert_eq!(window.lock(0, |epoch| epoch.get_vec(2, 0, 1)).unwrap(), [2, 3]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn local(&mut self) -> Result<Local<'_, T>, Error> {
        Local::new(self)
    }

    fn epoch(&self) -> Epoch<'_, T> {
        Epoch::new(&self.handle, &self.elements)
    }

    fn start<R: ScopeOutcome>(
        &self,
        targets: &[usize],
        body: impl FnOnce(&Epoch<'_, T>) -> R,
    ) -> Result<R::Value, Error> {
        let targets = self.ranks(targets)?;
        self.enter(|core| core.start(&targets))?;
        self.within(mpicore::Window::complete, true, || body(&self.epoch()))
    }

    fn locked<R: ScopeOutcome>(
        &self,
        kind: LockKind,
        rank: usize,
        body: impl FnOnce(&Epoch<'_, T>) -> R,
    ) -> Result<R::Value, Error> {
        let rank = self.rank(rank)?;
        self.enter(|core| core.lock(kind, rank, true))?;
        self.within(|core| core.unlock(rank), true, || body(&self.epoch()))
    }

    /// Checks a rank.
    fn rank(&self, rank: usize) -> Result<u32, Error> {
        let group = self.handle.core.group();
        let found = u32::try_from(rank).ok().filter(|rank| *rank < group.size());
        self.handle.communicator.step(found.ok_or_else(|| no_rank(group, rank)))
    }

    /// Returns the group of ranks, each of which may be named repeatedly.
    fn ranks(&self, ranks: &[usize]) -> Result<mpicore::group::Group, Error> {
        let mut all = ranks.iter().map(|rank| self.rank(*rank)).collect::<Result<Vec<_>, _>>()?;
        all.sort_unstable();
        all.dedup();
        self.handle.communicator.step(self.handle.core.group().incl(&all).map_err(Error::from))
    }

    /// Opens an epoch.
    fn enter(
        &self,
        open: impl FnOnce(&mpicore::Window) -> Result<(), mpicore::Error>,
    ) -> Result<(), Error> {
        if self.handle.is_broken.load(Ordering::Relaxed) {
            return self.handle.communicator.answer(Err(Error::Epoch));
        }
        self.handle.answer(self.noted(open(&self.handle.core)))
    }

    /// Notes that the window is broken if a call has failed that begins or ends an epoch (WJ2).
    fn noted<E>(&self, outcome: Result<(), E>) -> Result<(), E> {
        if outcome.is_err() {
            self.handle.is_broken.store(true, Ordering::Relaxed);
        }
        outcome
    }

    /// Runs a closure in an epoch, which then ends, and if it is said so also after a panic.
    fn within<R: ScopeOutcome>(
        &self,
        close: impl Fn(&mpicore::Window) -> Result<(), mpicore::Error>,
        also_after_panic: bool,
        body: impl FnOnce() -> R,
    ) -> Result<R::Value, Error> {
        let end = || self.noted(close(&self.handle.core));
        let panicked = AfterPanic(|| match also_after_panic {
            // If this fails, the next call says so.
            true => drop(end()),
            false => self.handle.is_broken.store(true, Ordering::Relaxed),
        });
        let value = body().into_result();
        std::mem::forget(panicked);
        let ended = end();
        // The error of the closure is the last that the program has seen, and is told in any case.
        let value = value?;
        self.handle.answer(ended)?;
        Ok(value)
    }
}

/// Calls a function when it is dropped, which happens only by a panic: otherwise it is forgotten.
struct AfterPanic<F: Fn()>(F);

impl<F: Fn()> Drop for AfterPanic<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// A time in which other ranks access this rank's elements: see [`Window::expose`].
pub struct Exposure<'w, T: Datatype>(&'w Window<T>);

impl<T: Datatype> Exposure<'_, T> {
    /// Opens an epoch like [`Window::access`], in which this rank also accesses others.
    ///
    /// # Errors
    /// As [`Window::expose`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let (other, mut window) = (1 - world.rank(), world.allocate_window::<usize>(1).unwrap());
    ///     let swap = |exposure: &mut mpj::Exposure<'_, usize>| exposure.access(&[other], |epoch| epoch.put(&other, other, 0));
    ///     window.expose(&[other], swap).unwrap();
    ///     assert_eq!(window.local().unwrap()[0], world.rank());
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias("MPI_Win_start", "MPI_Win_complete"))]
    pub fn access<R: ScopeOutcome>(
        &mut self,
        targets: &[usize],
        body: impl FnOnce(&Epoch<'_, T>) -> R,
    ) -> Result<R::Value, Error> {
        self.0.start(targets, body)
    }
}
