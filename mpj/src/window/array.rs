//! Memory that ranks of one host share.
//!
//! - SA1: the elements of all ranks follow each other in memory that this process has mapped, as long as the window of the
//!   core lives on all ranks (WJ4). Nobody accesses them otherwise than by the atomic operations of this type: the core's
//!   operations on that window are never called, and nobody else has it.

#![expect(unsafe_code, reason = "borrows memory that ranks share")]

use std::ops::Deref;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::{
    AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicU8, AtomicU16, AtomicU32,
    AtomicU64, AtomicUsize,
};

use super::handle::Handle;
use crate::communicator::Communicator;
use crate::error::Error;

/// Atomic elements in memory that all ranks of a communicator share: see [`Communicator::allocate_shared`]. It is a slice of
/// the elements of all ranks, in the order of ranks.
///
/// Dropping it does not wait. The memory stays until all ranks have dropped theirs.
///
/// ```
/// use std::sync::atomic::AtomicU32;
/// use std::sync::atomic::Ordering::{Acquire, Release};
/// fn exchange(world: &mpj::World) -> Result<(), mpj::Error> {
///     let host = world.split_by_host(0)?;
///     let marks: mpj::SharedArray<AtomicU32> = host.allocate_shared(1)?;
///     marks[host.rank()].store(7, Release);
///     while marks.iter().any(|mark| mark.load(Acquire) == 0) {
///         std::thread::yield_now();
///     }
///     Ok(())
/// }
/// mpj::local::run(3, |world| exchange(&world).unwrap())?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
///
/// The compiler refuses elements that are not atomic, and a reference that outlives the array:
///
/// ```compile_fail
/// fn wrong(world: &mpj::World) -> Result<(), mpj::Error> {
///     world.allocate_shared::<u32>(1).map(drop)
/// }
/// ```
///
/// ```compile_fail
/// fn wrong(array: mpj::SharedArray<std::sync::atomic::AtomicU32>) -> &'static [std::sync::atomic::AtomicU32] {
///     array.part(0)
/// }
/// ```
pub struct SharedArray<A: AtomicElement> {
    _handle: Handle,
    start: NonNull<A>,
    /// Where the elements of each rank begin, and where all end.
    bounds: Vec<usize>,
}

/// Elements that several ranks may read and write at the same time: the atomic integers of the standard library.
///
/// # Safety
/// The type is as large as its alignment, any bytes are a value, and all accesses by shared references are atomic.
pub unsafe trait AtomicElement: Send + Sync + 'static {}

macro_rules! elements {
    ($($atomic:ty)*) => { $(
        // SAFETY: it is an atomic integer.
        unsafe impl AtomicElement for $atomic {}
    )* };
}

elements! {
    AtomicI8 AtomicI16 AtomicI32 AtomicI64 AtomicIsize AtomicU8 AtomicU16 AtomicU32 AtomicU64 AtomicUsize
}

/// # Memory of one host
impl Communicator {
    /// Makes an array of atomic elements in memory that all ranks share, `len` of them of this rank, at first zeros
    /// (MPI_Win_allocate_shared). Collective; all ranks have elements of the same type, each as many as it likes.
    ///
    /// The ranks must be on one host; [`Communicator::split_by_host`] makes a communicator of such ranks.
    ///
    /// # Errors
    /// As [`Communicator::allocate_window`]; [`ErrorClass::RmaShared`](crate::ErrorClass::RmaShared), on all ranks, if they
    /// have no memory in common, or not so much.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// mpj::local::run(3, |world| {
    ///     let array = world.allocate_shared::<AtomicU64>(5).unwrap();
    ///     array[4].fetch_add(7, Ordering::Relaxed);
    ///     world.barrier().unwrap();
    ///     assert_eq!((array.len(), array.part(0)[4].load(Ordering::Relaxed)), (15, 21));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Win_allocate_shared")]
    #[track_caller]
    pub fn allocate_shared<A: AtomicElement>(&self, len: usize) -> Result<SharedArray<A>, Error> {
        let (size, _site) = (size_of::<A>(), self.site("allocate_shared", || None));
        let bytes = len.checked_mul(size).unwrap_or(usize::MAX / 2);
        let make = |core: &_| mpicore::Window::allocate_shared(core, bytes, size);
        let handle = Handle::new(self, &format!("{size} bytes, atomic"), make)?;
        let (mut bounds, mut first) = (vec![0], None);
        for rank in 0..handle.core.group().size() {
            let (start, bytes, _) = handle.answer(handle.core.shared_query(Some(rank)))?;
            bounds.push(bounds[rank as usize] + bytes as usize / size);
            first = first.or(NonNull::new(start));
        }
        let start = first.map_or(NonNull::dangling(), NonNull::cast::<A>);
        assert!(start.is_aligned(), "memory that ranks share begins at a page");
        let array = SharedArray { _handle: handle, start, bounds };
        // SAFETY: SA1; no rank uses the elements before all have come to the barrier below.
        unsafe { array.start.add(array.bounds[self.rank()]).write_bytes(0, len) };
        self.barrier()?;
        Ok(array)
    }
}

impl<A: AtomicElement> SharedArray<A> {
    /// Returns the elements of a rank.
    ///
    /// # Panics
    /// If there is no such rank.
    ///
    /// ```
    /// use std::sync::atomic::AtomicU8;
    /// mpj::local::run(1, |world| assert_eq!(world.allocate_shared::<AtomicU8>(3).unwrap().part(0).len(), 3))?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Win_shared_query")]
    pub fn part(&self, rank: usize) -> &[A] {
        &self[self.bounds[rank]..self.bounds[rank + 1]]
    }
}

impl<A: AtomicElement> Deref for SharedArray<A> {
    type Target = [A];

    fn deref(&self) -> &[A] {
        let len = self.bounds.last().copied().unwrap_or_default();
        // SAFETY: SA1: they are there as long as the window, which this has, and any bytes are elements.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), len) }
    }
}

// SAFETY: it is a slice of elements that threads may share.
unsafe impl<A: AtomicElement> Send for SharedArray<A> {}
// SAFETY: as above.
unsafe impl<A: AtomicElement> Sync for SharedArray<A> {}
