//! Borrowed buffers that operations of the device use after the call that started them has returned.
//!
//! What is only read is held as the reference that it was. What is written is held as an address: beside
//! the pointer through which the device writes there is no reference then, which would say, wherever it is
//! moved, that nobody else writes there. [`crate::Scope`] makes these, [`crate::ScopedRequest`] holds them.
//!
//! - LE1: a [`Lent`] was made of an exclusive borrow that lasts for `'env`, and is all that is left of it:
//!   nobody but the one operation that has its region uses the elements.
//! - LE2: who takes the borrow back has seen the operation end, so nobody writes any more.

#![allow(unsafe_code, reason = "makes a reference of an address again")]

use std::marker::PhantomData;
use std::ptr::NonNull;

use mpjdev::RecvRegion;

use crate::datatype::Datatype;

/// A borrow that a request gives back: of a slice that is sent, or that is received into.
pub trait Borrow {
    /// The buffer while the operation has it.
    type Held;

    /// The borrow again, after the operation has ended (LE2).
    fn take_back(held: Self::Held) -> Self;
}

impl<T: Datatype> Borrow for &[T] {
    type Held = Self;

    fn take_back(held: Self) -> Self {
        held
    }
}

impl<'env, T: Datatype> Borrow for &'env mut [T] {
    type Held = Lent<'env, T>;

    fn take_back(mut held: Lent<'env, T>) -> Self {
        // SAFETY: LE1: the borrow lasts for 'env and nothing else is left of it; LE2: its operation, which
        // alone has used it, has ended.
        unsafe { held.elements.as_mut() }
    }
}

/// A buffer that an operation writes, lent for as long as it was borrowed.
pub struct Lent<'env, T> {
    elements: NonNull<[T]>,
    borrow: PhantomData<&'env mut [T]>,
}

impl<'env, T: Datatype> Lent<'env, T> {
    #[inline(always)]
    pub(crate) fn new(buffer: &'env mut [T]) -> Self {
        Self { elements: NonNull::from(buffer), borrow: PhantomData }
    }

    /// The bytes, for one operation. Any bytes are a valid `T`.
    #[inline(always)]
    pub(crate) fn region(&self) -> RecvRegion {
        let len = self.elements.len() * size_of::<T>();
        // SAFETY: LE1, for as long as the operation lasts: Z1 of the scope, which keeps its request.
        unsafe { RecvRegion::new(self.elements.as_ptr().cast(), len) }
    }
}
