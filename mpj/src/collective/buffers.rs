//! The buffers that descriptions of collective calls hold: borrowed ones for calls that block and for scopes, vectors
//! for calls that outlast the call that starts them.
//!
//! Programs cannot name the traits here, so they can neither implement them nor get regions of memory by their methods.

use super::{RecvArg, SendArg};
use crate::datatype::{Datatype, TypeMap};
use crate::error::Error;
use crate::memory::borrowed::{Borrow, Borrowed};
use crate::memory::core::{input, inputs, output, outputs};
use crate::memory::{Border, Ghost, Indexed, IndexedMut};
use crate::memory::{RecvBuffer, SendBuffer, Strided, StridedMut};

/// What a call on borrowed buffers sends: a reference to a [`SendBuffer`], a view, a [`List`] of buffers,
/// or nothing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no borrowed buffer",
    note = "`run` and `Scope::start` take references to what is sent"
)]
pub trait SendLent {
    /// The type of the elements, if there are some of one type.
    fn element() -> Option<TypeMap> {
        None
    }

    fn input(&self) -> Result<SendArg, Error>;
}

/// Where the results of a call on borrowed buffers go: an exclusive reference to a [`RecvBuffer`], a view, a
/// [`List`] of buffers, or nothing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no exclusively borrowed buffer",
    note = "`run` and `Scope::start` take a `&mut` reference to the buffer of the results"
)]
pub trait RecvLent {
    /// The borrow that the call returns when it has ended.
    type Borrow: Borrow;

    /// As [`SendLent::element`].
    fn element() -> Option<TypeMap> {
        None
    }

    fn lend(self) -> <Self::Borrow as Borrow>::Held;

    fn output(held: &mut <Self::Borrow as Borrow>::Held) -> Result<RecvArg, Error>;
}

/// What a call on its own buffers sends: a vector, or nothing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no owned buffer of `{T}`",
    note = "`start` and `persistent` take a `Vec` of what is sent; in a scope, `Scope::start` takes references"
)]
pub trait SendOwned<T> {
    fn into_vec(self) -> Vec<T>;
}

/// Where the results of a call on its own buffers go: a vector, or nothing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no owned buffer",
    note = "`start` and `persistent` take a `Vec` for the results; in a scope, `Scope::start` takes references"
)]
pub trait RecvOwned {
    /// The type of the elements.
    type Element: Datatype;

    fn into_vec(self) -> Vec<Self::Element>;
}

/// Borrowed buffers, one for each rank: see [`all_to_allw`](super::all_to_allw).
pub struct List<B>(pub(super) B);

impl SendLent for () {
    #[inline]
    fn input(&self) -> Result<SendArg, Error> {
        Ok((mpicore::Input::none(), 0))
    }
}

impl<B: SendBuffer + ?Sized> SendLent for &B {
    fn element() -> Option<TypeMap> {
        B::Element::datatype().ok()
    }

    #[inline]
    fn input(&self) -> Result<SendArg, Error> {
        input(*self)
    }
}

/// Implements the traits for views that are passed by value, to be sent and to be received into.
macro_rules! views {
    ($(($($generics:tt)*) $sent:ty, $received:ty;)+) => { $(
        impl<$($generics)*> SendLent for $sent {
            fn element() -> Option<TypeMap> {
                T::datatype().ok()
            }

            fn input(&self) -> Result<SendArg, Error> {
                input(self)
            }
        }

        impl<$($generics)*> RecvLent for $received {
            type Borrow = Self;

            fn element() -> Option<TypeMap> {
                T::datatype().ok()
            }

            fn lend(self) -> Self {
                self
            }

            fn output(held: &mut Self) -> Result<RecvArg, Error> {
                output(held)
            }
        }
    )+ };
}

views! {
    ('a, T: Datatype) Strided<'a, T>, StridedMut<'a, T>;
    ('a, T: Datatype) Indexed<'a, T>, IndexedMut<'a, T>;
    ('a, T: Datatype, const N: usize) Border<'a, T, N>, Ghost<'a, T, N>;
}

impl<B: SendBuffer> SendLent for List<&[B]> {
    fn input(&self) -> Result<SendArg, Error> {
        inputs(self.0)
    }
}

impl RecvLent for () {
    type Borrow = ();

    fn lend(self) {}

    fn output((): &mut ()) -> Result<RecvArg, Error> {
        Ok((mpicore::Output::none(), 0))
    }
}

impl<'env, B: RecvBuffer + ?Sized> RecvLent for &'env mut B {
    type Borrow = &'env mut B::MemoryMut;

    fn element() -> Option<TypeMap> {
        B::Element::datatype().ok()
    }

    #[inline]
    fn lend(self) -> Borrowed<'env, B::MemoryMut> {
        Borrowed::new(self.memory_mut())
    }

    #[inline]
    fn output(held: &mut Borrowed<'env, B::MemoryMut>) -> Result<RecvArg, Error> {
        held.lend(output)
    }
}

impl<'env, B: RecvBuffer> RecvLent for List<&'env mut [B]> {
    type Borrow = &'env mut [B];

    fn lend(self) -> Borrowed<'env, [B]> {
        Borrowed::new(self.0)
    }

    fn output(held: &mut Borrowed<'env, [B]>) -> Result<RecvArg, Error> {
        held.lend(outputs)
    }
}

impl<T> SendOwned<T> for () {
    fn into_vec(self) -> Vec<T> {
        Vec::new()
    }
}

impl<T> SendOwned<T> for Vec<T> {
    fn into_vec(self) -> Self {
        self
    }
}

/// A call without results has bytes for elements.
impl RecvOwned for () {
    type Element = u8;

    fn into_vec(self) -> Vec<u8> {
        Vec::new()
    }
}

impl<T: Datatype> RecvOwned for Vec<T> {
    type Element = T;

    fn into_vec(self) -> Self {
        self
    }
}
