//! Elements as values: how each lies in a buffer, and its arithmetic.
//!
//! The loops of `kernels.rs` are written for these traits; `half.rs` and `long_double.rs` implement them for the types that
//! Rust lacks. Alignment does not matter: elements are read and written as bytes.

use std::ops::{Add, Mul, Sub};

/// A value that buffers consist of.
pub(super) trait Element: Copy {
    /// Distance from one element to the next in bytes, a multiple of [`ALIGN`](Self::ALIGN).
    const EXTENT: usize;
    /// Alignment in C, which determines where the members of a pair lie.
    const ALIGN: usize;

    /// Reads the element at the start of `bytes`, which must be at least [`EXTENT`](Self::EXTENT) long.
    fn read(bytes: &[u8]) -> Self;

    /// Writes the element at the start of `bytes`. Padding keeps its bytes.
    fn write(self, bytes: &mut [u8]);
}

/// Sums and products. Integers wrap.
pub(super) trait Arithmetic: Element {
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
}

/// Implements [`Element`] for Rust's numbers.
macro_rules! elements {
    ($($number:ty)*) => { $(
        impl Element for $number {
            const EXTENT: usize = size_of::<$number>();
            const ALIGN: usize = align_of::<$number>();

            #[inline]
            fn read(bytes: &[u8]) -> Self {
                let own = bytes[..Self::EXTENT].try_into();
                Self::from_ne_bytes(own.expect("as many bytes as the number has"))
            }

            #[inline]
            fn write(self, bytes: &mut [u8]) {
                bytes[..Self::EXTENT].copy_from_slice(&self.to_ne_bytes());
            }
        }
    )* };
}

/// Implements [`Arithmetic`] by the functions of these names.
macro_rules! arithmetic {
    ($plus:ident $minus:ident $times:ident: $($number:ty)*) => { $(
        impl Arithmetic for $number {
            #[inline]
            fn plus(self, other: Self) -> Self {
                self.$plus(other)
            }

            #[inline]
            fn minus(self, other: Self) -> Self {
                self.$minus(other)
            }

            #[inline]
            fn times(self, other: Self) -> Self {
                self.$times(other)
            }
        }
    )* };
}

elements!(i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64);
arithmetic!(wrapping_add wrapping_sub wrapping_mul: i8 i16 i32 i64 i128 u8 u16 u32 u64 u128);
arithmetic!(add sub mul: f32 f64);

/// A complex number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Complex<E> {
    re: E,
    im: E,
}

impl<E: Element> Element for Complex<E> {
    const EXTENT: usize = 2 * E::EXTENT;
    const ALIGN: usize = E::ALIGN;

    #[inline]
    fn read(bytes: &[u8]) -> Self {
        Self { re: E::read(bytes), im: E::read(&bytes[E::EXTENT..]) }
    }

    #[inline]
    fn write(self, bytes: &mut [u8]) {
        self.re.write(bytes);
        self.im.write(&mut bytes[E::EXTENT..]);
    }
}

impl<E: Arithmetic> Complex<E> {
    /// Returns the product by its definition, without C's recovery of infinities (annex G of the C standard).
    #[inline]
    pub(super) fn times(self, other: Self) -> Self {
        let re = self.re.times(other.re).minus(self.im.times(other.im));
        let im = self.re.times(other.im).plus(self.im.times(other.re));
        Self { re, im }
    }
}

/// A value and its index, laid out as C lays out a structure of the two.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair<V, I> {
    pub(super) value: V,
    pub(super) index: I,
}

impl<V: Element, I: Element> Pair<V, I> {
    /// Offset of the index.
    const INDEX_AT: usize = V::EXTENT.next_multiple_of(I::ALIGN);
}

impl<V: Element, I: Element> Element for Pair<V, I> {
    const EXTENT: usize = (Self::INDEX_AT + I::EXTENT).next_multiple_of(Self::ALIGN);
    const ALIGN: usize = if V::ALIGN > I::ALIGN { V::ALIGN } else { I::ALIGN };

    #[inline]
    fn read(bytes: &[u8]) -> Self {
        Self { value: V::read(bytes), index: I::read(&bytes[Self::INDEX_AT..]) }
    }

    #[inline]
    fn write(self, bytes: &mut [u8]) {
        self.value.write(bytes);
        self.index.write(&mut bytes[Self::INDEX_AT..]);
    }
}
