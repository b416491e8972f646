//! Borrowed buffers that operations of the device use after the call that started them has returned.
//!
//! A buffer that is only read is held as a reference. A buffer that is written is held as an address: a reference to it
//! would assert, whenever it is moved, that nobody else writes the buffer, while the device does so through its
//! pointer. [`crate::Scope`] and collective calls make these, and [`crate::ScopedRequest`] holds them.
//!
//! - LE1: a [`Borrowed`] is made from an exclusive borrow that lasts for `'env`, and replaces it: only the one
//!   operation that has its region or sink uses the elements. That region or sink is made from the address, not from
//!   another reference (BF1, BF2 of `memory.rs`).
//! - LE2: a caller takes the borrow back only after it has seen the operation end, so there are no further writes.

#![expect(unsafe_code, reason = "makes a reference of an address again")]

use std::marker::PhantomData;
use std::ptr::NonNull;

use mpicore::{Input, Output};
use mpjdev::{RecvRegion, SendRegion};

use crate::datatype::Datatype;
use crate::error::Error;
use crate::memory::{self, Border, Ghost, Indexed, IndexedMut, Strided, StridedMut};

/// A borrow that a request returns at its end: that of a buffer that is sent or received into. A view is one, too: it
/// has the address of its elements, which stay in their place when it moves.
pub trait Borrow {
    /// The form in which the operation holds the buffer.
    type Held;

    /// Returns the borrow, after the operation has ended (LE2).
    fn take_back(held: Self::Held) -> Self;
}

impl<B: ?Sized> Borrow for &B {
    type Held = Self;

    fn take_back(held: Self) -> Self {
        held
    }
}

impl<'env, B: ?Sized> Borrow for &'env mut B {
    type Held = Borrowed<'env, B>;

    fn take_back(mut held: Borrowed<'env, B>) -> Self {
        // SAFETY: LE1: the borrow lasts for 'env and nothing else of it is left. LE2: the operation, the only user of
        // the buffer, has ended.
        unsafe { held.buffer.as_mut() }
    }
}

/// Implements [`Borrow`] for views that are passed by value: they reach their elements by address, not by reference.
macro_rules! views {
    ($(($($generics:tt)*) $view:ty;)+) => { $(
        impl<$($generics)*> Borrow for $view {
            type Held = Self;

            fn take_back(held: Self) -> Self {
                held
            }
        }
    )+ };
}

views! {
    ('a, T) Strided<'a, T>;
    ('a, T) StridedMut<'a, T>;
    ('a, T) Indexed<'a, T>;
    ('a, T) IndexedMut<'a, T>;
    ('a, T, const N: usize) Border<'a, T, N>;
    ('a, T, const N: usize) Ghost<'a, T, N>;
}

/// A call without results returns no borrow.
impl Borrow for () {
    type Held = ();

    fn take_back((): ()) -> Self {}
}

/// A buffer that an operation writes, lent for as long as it was borrowed.
pub struct Borrowed<'env, B: ?Sized> {
    buffer: NonNull<B>,
    borrow: PhantomData<&'env mut B>,
}

impl<'env, B: ?Sized> Borrowed<'env, B> {
    #[inline(always)]
    pub(crate) fn new(buffer: &'env mut B) -> Self {
        Self { buffer: NonNull::from(buffer), borrow: PhantomData }
    }

    /// Lends the buffer to one operation: a receive, or the plan of a collective call. `to` makes the sink or the plan,
    /// and keeps no reference. The scope keeps the operation (Z1).
    #[inline(always)]
    pub(crate) fn lend<R>(&mut self, to: impl FnOnce(&mut B) -> R) -> R {
        // SAFETY: LE1: no operation has the buffer yet, and the reference ends with `to`.
        to(unsafe { self.buffer.as_mut() })
    }
}

// SAFETY: it stands for an exclusive borrow (LE1).
unsafe impl<B: Send + ?Sized> Send for Borrowed<'_, B> {}
// SAFETY: as above.
unsafe impl<B: Sync + ?Sized> Sync for Borrowed<'_, B> {}

impl<B: ?Sized> Borrowed<'_, B> {
    /// Returns the buffer, which no operation has yet.
    pub(crate) fn get(&self) -> &B {
        // SAFETY: LE1: nothing else uses the elements.
        unsafe { self.buffer.as_ref() }
    }

    /// Returns the buffer for writing; no operation has it yet.
    pub(crate) fn get_mut(&mut self) -> &mut B {
        // SAFETY: LE1: nothing else uses the elements.
        unsafe { self.buffer.as_mut() }
    }
}

impl<T> Borrowed<'_, [T]> {
    /// Returns the address and the number of the elements.
    pub(crate) fn place(&self) -> (*mut T, usize) {
        (self.buffer.cast().as_ptr(), self.buffer.len())
    }
}

/// Elements of a persistent call, which the program may use between two starts.
///
/// - LE3: the program and the operations reach the elements through the same address. A reference to them lasts no
///   longer than the borrow of this value, and is made only while no operation is under way, or of a partition that the
///   operation does not use then (PS4 of `partitioned.rs`).
pub struct PersistentBuffer<T> {
    start: NonNull<T>,
    len: usize,
    capacity: usize,
}

// SAFETY: this owns the elements, as a `Vec` does.
unsafe impl<T: Send> Send for PersistentBuffer<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for PersistentBuffer<T> {}

impl<T> PersistentBuffer<T> {
    pub(crate) fn new(elements: Vec<T>) -> Self {
        let mut elements = std::mem::ManuallyDrop::new(elements);
        let start = NonNull::new(elements.as_mut_ptr()).expect("a vector has an address");
        Self { start, len: elements.len(), capacity: elements.capacity() }
    }

    /// Makes a buffer without elements.
    pub(crate) fn empty() -> Self {
        Self::new(Vec::new())
    }

    /// Returns the elements; no operation is under way (LE3).
    pub(crate) fn elements(&self) -> &[T] {
        // SAFETY: LE3; they are the elements of a vector.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// Returns the elements for writing; no operation is under way (LE3).
    pub(crate) fn elements_mut(&mut self) -> &mut [T] {
        // SAFETY: LE3; they are the elements of a vector.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// Returns the elements in equal partitions; an operation under way uses none of them before it was given back.
    pub(crate) fn divide(&mut self, partitions: usize) -> impl Iterator<Item = Borrowed<'_, [T]>> {
        let each = self.len / partitions;
        let mut rest = self.elements_mut();
        (0..partitions).map(move |_| {
            let (part, others) = std::mem::take(&mut rest).split_at_mut(each);
            rest = others;
            Borrowed::new(part)
        })
    }

    /// Returns a partition that nobody writes as long as this value is borrowed.
    pub(crate) fn part(&self, partitions: usize, index: usize) -> &[T] {
        let each = self.len / partitions;
        assert!(index < partitions, "there is such a partition");
        // SAFETY: it lies inside the elements of a vector; LE3.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(index * each), each) }
    }
}

impl<T: Datatype> PersistentBuffer<T> {
    /// Returns the input of the operations of one plan.
    pub(crate) fn input(&self) -> Result<(Input, u64), Error> {
        // SAFETY: LE3, for as long as the plan runs: the owner of the plan keeps this value.
        let memory = unsafe { SendRegion::new(self.start.as_ptr().cast(), self.bytes()) };
        Ok((Input::new(memory, 0, memory::core::elements::<T>()?), self.len as u64))
    }

    /// Returns the place of the results, for the operations of one plan.
    pub(crate) fn output(&self) -> Result<(Output, u64), Error> {
        // SAFETY: LE3, as above.
        let memory = unsafe { RecvRegion::new(self.start.as_ptr().cast(), self.bytes()) };
        Ok((Output::new(memory, 0, memory::core::elements::<T>()?), self.len as u64))
    }

    fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }
}

impl<T> Drop for PersistentBuffer<T> {
    fn drop(&mut self) {
        // SAFETY: these are the parts of a vector, of which there is no other owner.
        drop(unsafe { Vec::from_raw_parts(self.start.as_ptr(), self.len, self.capacity) });
    }
}
