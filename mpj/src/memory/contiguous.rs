//! Buffers whose elements are contiguous: slices, types that dereference to slices, numbers, texts, and pointers to
//! buffers.

#![expect(unsafe_code, reason = "promises that slices are buffers")]

use std::rc::Rc;
use std::sync::Arc;

use super::{RecvBuffer, SendBuffer, View};
use crate::datatype::{Bool, Datatype};
use crate::error::Error;
use crate::memory::Buffer;

// SAFETY: BF1: the elements of a slice, which are initialised as DT1 says. BF3: returns itself.
unsafe impl<T: Datatype> SendBuffer for [T] {
    type Element = T;
    type Memory = Self;

    #[inline(always)]
    fn memory(&self) -> &Self {
        self
    }

    #[inline(always)]
    fn as_elements(&self) -> Option<&[T]> {
        Some(self)
    }

    #[inline]
    fn describe(&self) -> Result<View<*const u8>, Error> {
        View::of_elements::<T>(self.as_ptr().cast(), self.len())
    }
}

// SAFETY: BF2: the slice is borrowed exclusively, and DT1 says which bytes may be written. BF3: returns itself.
unsafe impl<T: Datatype> RecvBuffer for [T] {
    type MemoryMut = Self;

    #[inline(always)]
    fn memory_mut(&mut self) -> &mut Self {
        self
    }

    #[inline(always)]
    fn as_elements_mut(&mut self) -> Option<&mut [T]> {
        Some(self)
    }

    #[inline]
    fn describe_mut(&mut self) -> Result<View<*mut u8>, Error> {
        View::of_elements::<T>(self.as_mut_ptr().cast(), self.len())
    }
}

/// Implements both traits for numbers, each a buffer of one element.
macro_rules! numbers {
    ($($number:ty)*) => { $(
        // SAFETY: BF1: the number itself. BF3: returns itself.
        unsafe impl SendBuffer for $number {
            type Element = Self;
            type Memory = Self;

            #[inline(always)]
            fn memory(&self) -> &Self {
                self
            }

            #[inline(always)]
            fn as_elements(&self) -> Option<&[Self]> {
                Some(std::slice::from_ref(self))
            }

            #[inline]
            fn describe(&self) -> Result<View<*const u8>, Error> {
                View::of_elements::<Self>(std::ptr::from_ref(self).cast(), 1)
            }
        }

        // SAFETY: BF2: any bytes are a number, and it is borrowed exclusively. BF3: returns itself.
        unsafe impl RecvBuffer for $number {
            type MemoryMut = Self;

            #[inline(always)]
            fn memory_mut(&mut self) -> &mut Self {
                self
            }

            #[inline(always)]
            fn as_elements_mut(&mut self) -> Option<&mut [Self]> {
                Some(std::slice::from_mut(self))
            }

            #[inline]
            fn describe_mut(&mut self) -> Result<View<*mut u8>, Error> {
                View::of_elements::<Self>(std::ptr::from_mut(self).cast(), 1)
            }
        }
    )* };
}

numbers!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64 Bool);
#[cfg(feature = "num-complex")]
numbers!(num_complex::Complex32 num_complex::Complex64);
#[cfg(feature = "half")]
numbers!(half::f16 half::bf16);

/// Implements [`SendBuffer`] for a type that contains or points to a buffer, which `$get` returns.
macro_rules! sends {
    (($($generics:tt)*) $buffer:ty, $memory:ty, $this:ident => $get:expr) => {
        // SAFETY: BF1, BF3: a borrow of the value borrows the buffer too.
        unsafe impl<$($generics)*> SendBuffer for $buffer {
            type Element = <$memory as SendBuffer>::Element;
            type Memory = <$memory as SendBuffer>::Memory;

            #[inline(always)]
            fn memory(&self) -> &Self::Memory {
                let $this = self;
                <$memory as SendBuffer>::memory($get)
            }

            #[inline(always)]
            fn as_elements(&self) -> Option<&[Self::Element]> {
                let $this = self;
                <$memory as SendBuffer>::as_elements($get)
            }

            #[inline]
            fn describe(&self) -> Result<View<*const u8>, Error> {
                let $this = self;
                <$memory as SendBuffer>::describe($get)
            }
        }
    };
}

/// Implements [`RecvBuffer`] in the same way.
macro_rules! receives {
    (($($generics:tt)*) $buffer:ty, $memory:ty, $this:ident => $get:expr) => {
        // SAFETY: BF2, BF3: an exclusive borrow of the value borrows the buffer exclusively too.
        unsafe impl<$($generics)*> RecvBuffer for $buffer {
            type MemoryMut = <$memory as RecvBuffer>::MemoryMut;

            #[inline(always)]
            fn memory_mut(&mut self) -> &mut Self::MemoryMut {
                let $this = self;
                <$memory as RecvBuffer>::memory_mut($get)
            }

            #[inline(always)]
            fn as_elements_mut(&mut self) -> Option<&mut [Self::Element]> {
                let $this = self;
                <$memory as RecvBuffer>::as_elements_mut($get)
            }

            #[inline]
            fn describe_mut(&mut self) -> Result<View<*mut u8>, Error> {
                let $this = self;
                <$memory as RecvBuffer>::describe_mut($get)
            }
        }
    };
}

sends!((T: Datatype, const N: usize) [T; N], [T], this => this.as_slice());
receives!((T: Datatype, const N: usize) [T; N], [T], this => this.as_mut_slice());
sends!((T: Datatype) Vec<T>, [T], this => this.as_slice());
receives!((T: Datatype) Vec<T>, [T], this => this.as_mut_slice());
sends!((T: Datatype) Buffer<T>, [T], this => this);
receives!((T: Datatype) Buffer<T>, [T], this => this);

sends!(() bool, Bool, this => Bool::of(this));
sends!(() str, [u8], this => this.as_bytes());
sends!(() String, [u8], this => this.as_bytes());

sends!((B: SendBuffer + ?Sized) &B, B, this => this);
sends!((B: SendBuffer + ?Sized) &mut B, B, this => this);
receives!((B: RecvBuffer + ?Sized) &mut B, B, this => this);
sends!((B: SendBuffer + ?Sized) Box<B>, B, this => this);
receives!((B: RecvBuffer + ?Sized) Box<B>, B, this => this);
sends!((B: SendBuffer + ?Sized) Rc<B>, B, this => this);
sends!((B: SendBuffer + ?Sized) Arc<B>, B, this => this);
