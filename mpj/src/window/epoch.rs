//! The operations of an epoch.

use std::borrow::Cow;
use std::marker::PhantomData;

use mpicore::op::Predefined;
use mpjdev::{RecvRegion, SendRegion, Sink, Source};

use super::handle::Handle;
use super::place::Place;
use crate::datatype::{Datatype, TypeMap, count};
use crate::error::Error;
use crate::group::narrowed;
use crate::memory::{RecvBuffer, SendBuffer, sink, source};
use crate::op::{Number, Op};

/// An epoch, in which elements of other ranks are accessed: see [`Window`](crate::Window). Several threads may use it
/// at once.
///
/// Operations name a rank and a [`Place`] in its window, by default the index of the first element. Those that write
/// return when their data may change, and what was written is in its place when the epoch ends, or after a
/// [`flush`](Self::flush). Those that read return with the result. Operations of one rank on the same elements of
/// another one are carried out in their order. In a [`scope`](Self::scope), several operations are under way at once.
///
/// ```
/// mpj::local::run(2, |world| {
///     let mut window = world.allocate_window::<i64>(8).unwrap();
///     let other = 1 - world.rank();
///     window.lock_all(|epoch| {
///         epoch.put(&[1, 2, 3], other, 5)?;
///         let mut got = [0; 2];
///         epoch.get(&mut got, other, 6)?;
///         assert_eq!(got, [2, 3]);
///         Ok(())
///     })
///     .unwrap();
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
pub struct Epoch<'e, T: Datatype> {
    handle: &'e Handle,
    elements: &'e TypeMap,
    types: PhantomData<fn(T) -> T>,
}

impl<'e, T: Datatype> Epoch<'e, T> {
    pub(super) fn new(handle: &'e Handle, elements: &'e TypeMap) -> Self {
        Self { handle, elements, types: PhantomData }
    }

    /// Writes elements to a rank (MPI_Put).
    ///
    /// # Errors
    /// [`ErrorClass::RmaRange`](crate::ErrorClass::RmaRange): the rank has no such elements. No such rank; the epoch
    /// does not access that rank; [`Error::Overlap`] and [`Error::Blocks`] for a place; a rank is lost; the device has
    /// failed.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut window = world.allocate_window::<u8>(4).unwrap();
    ///     let outside = window.lock(1, |epoch| epoch.put(&[1, 2], 1, 3)).unwrap_err();
    ///     assert_eq!(outside.class(), mpj::ErrorClass::RmaRange);
    ///     window.lock(1, |epoch| epoch.put(&[1, 2], 1, 2)).unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Put")]
    #[track_caller]
    pub fn put<B: SendBuffer<Element = T> + ?Sized>(
        &self,
        data: &B,
        rank: usize,
        at: impl Into<Place>,
    ) -> Result<(), Error> {
        let _site = self.site("put");
        self.settled(rank, self.begin_put(data, rank, at.into()))
    }

    /// Reads elements of a rank (MPI_Get).
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut window = world.allocate_window::<u8>(4).unwrap();
    ///     let mut got = [9; 4];
    ///     window.lock(1, |epoch| epoch.get(&mut got, 1, 0)).unwrap();
    ///     assert_eq!(got, [0; 4]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Get")]
    #[track_caller]
    pub fn get<B: RecvBuffer<Element = T> + ?Sized>(
        &self,
        into: &mut B,
        rank: usize,
        at: impl Into<Place>,
    ) -> Result<(), Error> {
        let _site = self.site("get");
        self.settled(rank, self.begin_get(into, rank, at.into()))
    }

    /// Reads `len` elements of a rank, and returns them.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut window = world.allocate_window::<u8>(4).unwrap();
    ///     assert_eq!(window.lock(1, |epoch| epoch.get_vec(3, 1, 1)).unwrap(), [0; 3]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[track_caller]
    pub fn get_vec(&self, len: usize, rank: usize, at: impl Into<Place>) -> Result<Vec<T>, Error> {
        let mut got = vec![T::zeroed(); len];
        self.get(&mut got, rank, at)?;
        Ok(got)
    }

    /// Waits until what this rank has written to a rank is in its place (MPI_Win_flush). Only in epochs of locks.
    ///
    /// # Errors
    /// As [`put`](Self::put); [`ErrorClass::RmaSync`](crate::ErrorClass::RmaSync) in other epochs.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut window = world.allocate_window::<usize>(2).unwrap();
    ///     window.lock_all(|epoch| {
    ///         epoch.put(&[7], 0, world.rank())?;
    ///         epoch.flush(0)?;
    ///         // Now all ranks see both numbers.
    ///         world.barrier()?;
    ///         assert_eq!(epoch.get_vec(2, 0, 0)?, [7, 7]);
    ///         Ok(())
    ///     })
    ///     .unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Win_flush")]
    pub fn flush(&self, rank: usize) -> Result<(), Error> {
        self.handle.answer(self.handle.core.flush(Some(narrowed(rank))))
    }

    /// Does the same for all ranks (MPI_Win_flush_all).
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut window = world.allocate_window::<usize>(2).unwrap();
    ///     window.lock_all(|epoch| {
    ///         (0..2).try_for_each(|rank| epoch.put(&[7], rank, world.rank()))?;
    ///         epoch.flush_all()
    ///     })
    ///     .unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Win_flush_all")]
    pub fn flush_all(&self) -> Result<(), Error> {
        self.handle.answer(self.handle.core.flush(None))
    }

    /// Notes where the program makes an operation, where accesses are compared.
    #[track_caller]
    pub(super) fn site(&self, name: &'static str) -> Option<crate::communicator::Sited> {
        self.handle.communicator.site(name, || None)
    }

    /// Begins a put; `data` is in use until [`Epoch::settle`] has returned (WJ3).
    pub(super) fn begin_put<B: SendBuffer<Element = T> + ?Sized>(
        &self,
        data: &B,
        rank: usize,
        at: Place,
    ) -> Result<(), Error> {
        let from = source(data.memory())?;
        // Elements in one span have no padding, and neither have those of the window.
        if let (Source::Span(from), Some(index)) = (&from, at.index())
            && self.handle.core.put_plain(*from, narrowed(rank), index)
        {
            return Ok(());
        }
        let elements = self.elements(from.len());
        at.of(rank, elements, |target| self.handle.core.put(from, target))
    }

    /// Begins a get; as [`Epoch::begin_put`].
    pub(super) fn begin_get<B: RecvBuffer<Element = T> + ?Sized>(
        &self,
        into: &mut B,
        rank: usize,
        at: Place,
    ) -> Result<(), Error> {
        if let (Sink::Span(into), Some(index)) = (sink(into.memory_mut())?, at.index())
            && self.handle.core.get_plain(into, narrowed(rank), index)
        {
            return Ok(());
        }
        let into = sink(into.memory_mut())?;
        let elements = self.elements(into.len());
        at.of(rank, elements, |target| self.handle.core.get(into, target))
    }

    /// Returns how many elements so many bytes are.
    fn elements(&self, bytes: usize) -> (usize, &TypeMap) {
        (bytes.checked_div(T::SIZE).unwrap_or(0), self.elements)
    }

    /// Waits until the buffers of operations on a rank, or on all ranks, are not in use any more. They are not either
    /// when this has failed (WJ3).
    pub(super) fn settle(&self, rank: Option<usize>) -> Result<(), Error> {
        Ok(self.handle.core.settle_local(rank.map(narrowed))?)
    }

    /// Ends an operation on a rank (WJ3).
    fn settled(&self, rank: usize, begun: Result<(), Error>) -> Result<(), Error> {
        let settled = self.settle(Some(rank));
        self.answer(begun.and(settled))
    }

    pub(super) fn answer<R>(&self, outcome: Result<R, Error>) -> Result<R, Error> {
        self.handle.communicator.answer(outcome)
    }
}

/// # Atomic operations
///
/// Each reads and writes an element at once. Those that return elements return what was there before.
impl<T: Number> Epoch<'_, T> {
    /// Combines elements with those of a rank, which get the results (MPI_Accumulate). Does not wait for the rank.
    ///
    /// # Errors
    /// As [`put`](Self::put); [`ErrorClass::Op`](crate::ErrorClass::Op) for an operation that is not defined on such
    /// elements.
    ///
    /// ```
    /// use mpj::Op;
    /// mpj::local::run(3, |world| {
    ///     let mut window = world.allocate_window::<f64>(2).unwrap();
    ///     window.fence(|epoch| epoch.accumulate(&[0.5, 2.0], 1, 0, Op::Sum)).unwrap();
    ///     assert!(world.rank() != 1 || *window.local().unwrap() == [1.5, 6.0]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias("MPI_Accumulate", "MPI_Raccumulate"))]
    #[track_caller]
    pub fn accumulate<B: SendBuffer<Element = T> + ?Sized>(
        &self,
        data: &B,
        rank: usize,
        at: impl Into<Place>,
        op: Op,
    ) -> Result<(), Error> {
        let _site = self.site("accumulate");
        self.begin_accumulate(data, rank, at.into(), op.predefined())
    }

    /// Combines elements with those of a rank, and stores into `before` what was there (MPI_Get_accumulate). Both
    /// buffers have the same length.
    ///
    /// # Errors
    /// As [`accumulate`](Self::accumulate).
    ///
    /// ```
    /// use mpj::Op;
    /// mpj::local::run(1, |world| {
    ///     let (mut window, mut before) = (world.allocate_window::<u32>(2).unwrap(), [9; 2]);
    ///     window.lock(0, |epoch| {
    ///         epoch.get_accumulate(&[5, 6], &mut before, 0, 0, Op::Sum)?;
    ///         epoch.get_accumulate(&[1, 1], &mut before, 0, 0, Op::Sum)
    ///     })
    ///     .unwrap();
    ///     assert_eq!((before, &*window.local().unwrap()), ([5, 6], &[6, 7][..]));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Get_accumulate")]
    #[track_caller]
    pub fn get_accumulate<B, C>(
        &self,
        data: &B,
        before: &mut C,
        rank: usize,
        at: impl Into<Place>,
        op: Op,
    ) -> Result<(), Error>
    where
        B: SendBuffer<Element = T> + ?Sized,
        C: RecvBuffer<Element = T> + ?Sized,
    {
        let _site = self.site("get_accumulate");
        let begun = self.begin_get_accumulate((data, before), op.predefined(), rank, at.into());
        self.settled(rank, begun)
    }

    /// Combines a value with an element of a rank (MPI_Fetch_and_op).
    ///
    /// # Errors
    /// As [`accumulate`](Self::accumulate).
    ///
    /// ```
    /// use mpj::Op;
    /// mpj::local::run(2, |world| {
    ///     let mut window = world.allocate_window::<u64>(1).unwrap();
    ///     let ticket = window.lock(0, |epoch| epoch.fetch_and_op(1, 0, 0, Op::Sum)).unwrap();
    ///     let mut tickets = [9; 2];
    ///     world.all_gather(&ticket, &mut tickets).unwrap();
    ///     assert_eq!(tickets.iter().sum::<u64>(), 1, "0 and 1");
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Fetch_and_op")]
    #[track_caller]
    pub fn fetch_and_op(&self, value: T, rank: usize, index: usize, op: Op) -> Result<T, Error> {
        let _site = self.site("fetch_and_op");
        self.fetch(value, rank, index, op.predefined())
    }

    /// Replaces an element of a rank by `new` if it is equal to `compare` (MPI_Compare_and_swap).
    ///
    /// # Errors
    /// As [`put`](Self::put); [`ErrorClass::Type`](crate::ErrorClass::Type) for arrays as elements.
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let mut window = world.allocate_window::<u32>(1).unwrap();
    ///     let swap = |epoch: &mpj::Epoch<'_, u32>| epoch.compare_and_swap(0, 7, 2, 0);
    ///     let is_first = window.lock(2, swap).unwrap() == 0;
    ///     let mut first = u32::from(is_first);
    ///     world.all_reduce(&mut first, mpj::Op::Sum).unwrap();
    ///     assert_eq!(first, 1);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    ///
    /// Floating-point numbers are not compared:
    ///
    /// ```compile_fail
    /// fn wrong(window: &mut mpj::Window<f64>) -> Result<f64, mpj::Error> {
    ///     window.lock(0, |epoch| epoch.compare_and_swap(0.0, 1.0, 0, 0))
    /// }
    /// ```
    #[doc(alias = "MPI_Compare_and_swap")]
    #[track_caller]
    pub fn compare_and_swap(
        &self,
        compare: T,
        new: T,
        rank: usize,
        index: usize,
    ) -> Result<T, Error>
    where
        T: Eq,
    {
        let _site = self.site("compare_and_swap");
        let (compare, new, mut before) = ([compare], [new], [T::zeroed()]);
        let begun = self.begin_swap([&compare, &new], &mut before, rank, index);
        self.settled(rank, begun)?;
        Ok(before[0])
    }

    /// Reads an element of a rank (MPI_NO_OP).
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut window = world.allocate_window::<u64>(1).unwrap();
    ///     window.lock(0, |epoch| epoch.store(5, 0, 0)).unwrap();
    ///     assert_eq!(window.lock(0, |epoch| epoch.load(0, 0)).unwrap(), 5);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_NO_OP")]
    #[track_caller]
    pub fn load(&self, rank: usize, index: usize) -> Result<T, Error> {
        let _site = self.site("load");
        self.fetch(T::zeroed(), rank, index, Predefined::NoOp)
    }

    /// Replaces an element of a rank (MPI_REPLACE). Does not wait for the rank.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut window = world.allocate_window::<u64>(1).unwrap();
    ///     window.fence(|epoch| epoch.store(5, 0, 0)).unwrap();
    ///     assert!(world.rank() == 1 || window.local().unwrap()[0] == 5);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_REPLACE")]
    #[track_caller]
    pub fn store(&self, value: T, rank: usize, index: usize) -> Result<(), Error> {
        let _site = self.site("store");
        self.begin_accumulate(&[value][..], rank, index.into(), Predefined::Replace)
    }

    /// Replaces an element of a rank, and returns what was there (MPI_REPLACE).
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let mut window = world.allocate_window::<u64>(1).unwrap();
    ///     let before = window.lock(0, |epoch| Ok((epoch.swap(5, 0, 0)?, epoch.swap(6, 0, 0)?)));
    ///     assert_eq!(before.unwrap(), (0, 5));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_REPLACE")]
    #[track_caller]
    pub fn swap(&self, value: T, rank: usize, index: usize) -> Result<T, Error> {
        let _site = self.site("swap");
        self.fetch(value, rank, index, Predefined::Replace)
    }

    /// Begins an operation that combines and returns elements; as [`Epoch::begin_put`].
    pub(super) fn begin_get_accumulate<B, C>(
        &self,
        (data, before): (&B, &mut C),
        op: Predefined,
        rank: usize,
        at: Place,
    ) -> Result<(), Error>
    where
        B: SendBuffer<Element = T> + ?Sized,
        C: RecvBuffer<Element = T> + ?Sized,
    {
        let (from, into) = (source(data.memory())?, sink(before.memory_mut())?);
        if let (Source::Span(from), Sink::Span(into), Some(index)) = (&from, into, at.index())
            && from.len() == into.len()
            && let Some(done) = self.combine_plain((*from, Some(into)), op, rank, index)
        {
            return Ok(done?);
        }
        let into = sink(before.memory_mut())?;
        let (elements, number) = (self.elements(into.len()).0, self.number()?);
        at.of(rank, (elements, &number), |target| {
            self.handle.core.get_accumulate(from, into, op, target)
        })
    }

    /// Returns the datatype of an element as numbers, of which an array has several.
    fn number(&self) -> Result<Cow<'_, TypeMap>, Error> {
        let extent = T::KIND.extent();
        if extent == size_of::<T>() {
            return Ok(Cow::Borrowed(self.elements));
        }
        let numbers = count(size_of::<T>() / extent);
        Ok(Cow::Owned(TypeMap::contiguous(numbers, &TypeMap::predefined(T::KIND))?))
    }

    /// The core copies the data of accumulates into their messages (OW2 of the core).
    fn begin_accumulate<B: SendBuffer<Element = T> + ?Sized>(
        &self,
        data: &B,
        rank: usize,
        at: Place,
        op: Predefined,
    ) -> Result<(), Error> {
        let begun = source(data.memory()).and_then(|from| {
            if let (Source::Span(from), Some(index)) = (&from, at.index())
                && let Some(done) = self.combine_plain((*from, None), op, rank, index)
            {
                return Ok(done?);
            }
            let (elements, number) = (self.elements(from.len()).0, self.number()?);
            at.of(rank, (elements, &number), |target| self.handle.core.accumulate(from, op, target))
        });
        self.answer(begun)
    }

    /// Combines elements in one span by the core's short path; `None` if another path must decide.
    #[inline]
    fn combine_plain(
        &self,
        (from, into): (SendRegion, Option<RecvRegion>),
        op: Predefined,
        rank: usize,
        index: i64,
    ) -> Option<Result<(), mpicore::Error>> {
        let from = (op != Predefined::NoOp).then_some(from);
        self.handle.core.combine_plain((from, into), (op, T::KIND), narrowed(rank), index)
    }

    /// Begins to replace the first value by the second one; as [`Epoch::begin_put`].
    fn begin_swap(
        &self,
        [compare, new]: [&[T; 1]; 2],
        before: &mut [T; 1],
        rank: usize,
        index: usize,
    ) -> Result<(), Error> {
        let (compare, from, into) =
            (source(&compare[..])?, source(&new[..])?, sink(&mut before[..])?);
        if let (Source::Span(compare), Source::Span(from), Sink::Span(into)) =
            (&compare, &from, into)
            && let Some(done) = self.handle.core.swap_plain(
                (*from, *compare, into),
                T::KIND,
                narrowed(rank),
                count(index),
            )
        {
            return Ok(done?);
        }
        let into = sink(&mut before[..])?;
        Place::from(index).of(rank, (1, self.elements), |target| {
            self.handle.core.compare_and_swap(from, compare, into, target)
        })
    }

    fn fetch(&self, value: T, rank: usize, index: usize, op: Predefined) -> Result<T, Error> {
        let (value, mut before) = ([value], [T::zeroed()]);
        let buffers = (&value[..], &mut before[..]);
        let begun = self.begin_get_accumulate(buffers, op, rank, index.into());
        self.settled(rank, begun)?;
        Ok(before[0])
    }
}
