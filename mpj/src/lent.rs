//! Borrowed buffers that operations of the device use after the call that started them has returned.
//!
//! A buffer that is only read is held as a reference. A buffer that is written is held as an address: a reference
//! beside the pointer through which the device writes would assert, wherever it is moved, that there is no other
//! writer. [`crate::Scope`] makes these, [`crate::ScopedRequest`] holds them.
//!
//! - LE1: a [`Lent`] is made from an exclusive borrow that lasts for `'env`, and replaces it: only the one operation
//!   that has its region or sink uses the elements. That region or sink is made from the address, not from a
//!   reference beside it (BF1, BF2 of `memory.rs`).
//! - LE2: a caller takes the borrow back only after it has seen the operation end, so there are no further writes.

#![expect(unsafe_code, reason = "makes a reference of an address again")]

use std::marker::PhantomData;
use std::ptr::NonNull;

use mpicore::{Input, Output};
use mpjdev::{RecvRegion, SendRegion, Sink};

use crate::datatype::Datatype;
use crate::error::Error;
use crate::memory::{self, RecvBuffer};

/// A borrow that a request returns at its end: of a buffer that is sent, or that is received into.
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
    type Held = Lent<'env, B>;

    fn take_back(mut held: Lent<'env, B>) -> Self {
        // SAFETY: LE1: the borrow lasts for 'env and nothing else is left of it; LE2: its operation, which
        // alone has used it, has ended.
        unsafe { held.buffer.as_mut() }
    }
}

/// A call without results returns no borrow.
impl Borrow for () {
    type Held = ();

    fn take_back((): ()) -> Self {}
}

/// A buffer that an operation writes, lent for as long as it was borrowed.
pub struct Lent<'env, B: ?Sized> {
    buffer: NonNull<B>,
    borrow: PhantomData<&'env mut B>,
}

impl<'env, B: ?Sized> Lent<'env, B> {
    #[inline(always)]
    pub(crate) fn new(buffer: &'env mut B) -> Self {
        Self { buffer: NonNull::from(buffer), borrow: PhantomData }
    }

    /// What a collective call, which is one operation, makes of the buffer. `plan` keeps no reference.
    pub(crate) fn plan<R>(&mut self, plan: impl FnOnce(&mut B) -> R) -> R {
        // SAFETY: LE1: no operation has the buffer yet, and the reference ends with `plan`.
        plan(unsafe { self.buffer.as_mut() })
    }
}

impl<B: RecvBuffer + ?Sized> Lent<'_, B> {
    /// The bytes, for one operation, if they are one span.
    #[inline(always)]
    pub(crate) fn region(&mut self) -> Option<RecvRegion> {
        // SAFETY: LE1: no operation has the buffer yet, and the reference ends here.
        let bytes = memory::bytes_mut(unsafe { self.buffer.as_mut() })?;
        let (start, len) = (bytes.as_mut_ptr(), bytes.len());
        // SAFETY: LE1, for as long as the operation lasts: Z1 of the scope, which keeps its request.
        Some(unsafe { RecvRegion::new(start, len) })
    }

    /// The bytes, for one operation, wherever they lie.
    pub(crate) fn sink(&mut self) -> Result<Sink, Error> {
        // SAFETY: LE1: as in `region`, and the operation lasts no longer than there.
        memory::sink(unsafe { self.buffer.as_mut() })
    }
}

/// Elements that belong to a call which is started again and again, and which the program uses in between.
///
/// - LE3: the elements are reached through one address, which operations use as well. A reference to them lasts no
///   longer than the borrow of this, and is made only while no operation is under way.
pub struct Kept<T> {
    start: NonNull<T>,
    len: usize,
    capacity: usize,
}

// SAFETY: the elements belong to this, as they would to a `Vec`.
unsafe impl<T: Send> Send for Kept<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Kept<T> {}

impl<T> Kept<T> {
    pub(crate) fn new(elements: Vec<T>) -> Self {
        let mut elements = std::mem::ManuallyDrop::new(elements);
        let start = NonNull::new(elements.as_mut_ptr()).expect("a vector has an address");
        Self { start, len: elements.len(), capacity: elements.capacity() }
    }

    /// The elements; no operation is under way (LE3).
    pub(crate) fn elements(&self) -> &[T] {
        // SAFETY: LE3; they are those of a vector.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// The elements, to be changed; no operation is under way (LE3).
    pub(crate) fn elements_mut(&mut self) -> &mut [T] {
        // SAFETY: LE3; they are those of a vector.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Datatype> Kept<T> {
    /// The input of the operations of one plan.
    pub(crate) fn input(&self) -> Result<(Input, u64), Error> {
        // SAFETY: LE3, for as long as the plan runs: who has it keeps this.
        let memory = unsafe { SendRegion::new(self.start.as_ptr().cast(), self.bytes()) };
        Ok((Input::new(memory, 0, memory::core::elements::<T>()?), self.len as u64))
    }

    /// Where results go, for the operations of one plan.
    pub(crate) fn output(&self) -> Result<(Output, u64), Error> {
        // SAFETY: LE3, as above.
        let memory = unsafe { RecvRegion::new(self.start.as_ptr().cast(), self.bytes()) };
        Ok((Output::new(memory, 0, memory::core::elements::<T>()?), self.len as u64))
    }

    fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        // SAFETY: these are the parts of a vector, which nobody else has.
        drop(unsafe { Vec::from_raw_parts(self.start.as_ptr(), self.len, self.capacity) });
    }
}
