//! The loops: for each operation on each kind of elements, one function over two buffers.
//!
//! A loop reads both elements at a place as bytes, computes, and writes the result. So alignment does not matter, and
//! the compiler sees fixed lengths that it can vectorise. For long buffers it does so twice: also for processors with vectors
//! of 32 bytes. Results are the same, since elements are computed one by one.

#![expect(
    unsafe_code,
    reason = "uses instructions after it has looked whether the processor has them"
)]

use std::ops::{BitAnd, BitOr, BitXor};

use super::element::{Arithmetic, Complex, Element, Pair};
use super::half::{Bf16, F16};
#[cfg(target_arch = "x86_64")]
use super::long_double::LongDouble;
use super::{ElementKind, Predefined};

/// Combines each element of the first buffer with that of the second, and stores the result in the second. Both buffers
/// have the same length, a whole number of elements.
pub(crate) type Kernel = fn(&[u8], &mut [u8]);

/// Returns the loop of an operation on a kind; `None` if MPI does not define it, or if this processor lacks it.
pub(crate) fn kernel(op: Predefined, kind: ElementKind) -> Option<Kernel> {
    match kind {
        ElementKind::I8 => integers::<i8>(op),
        ElementKind::I16 => integers::<i16>(op),
        ElementKind::I32 => integers::<i32>(op),
        ElementKind::I64 => integers::<i64>(op),
        ElementKind::I128 => integers::<i128>(op),
        ElementKind::U8 => integers::<u8>(op),
        ElementKind::U16 => integers::<u16>(op),
        ElementKind::U32 => integers::<u32>(op),
        ElementKind::U64 => integers::<u64>(op),
        ElementKind::U128 => integers::<u128>(op),
        ElementKind::F16 => reals::<F16>(op),
        ElementKind::BF16 => reals::<Bf16>(op),
        ElementKind::F32 => reals::<f32>(op),
        ElementKind::F64 => reals::<f64>(op),
        ElementKind::Bool => moved::<u8>(op).or(logical::<u8>(op)),
        ElementKind::Logical2 => moved::<u16>(op).or(logical::<u16>(op)),
        ElementKind::Logical4 => moved::<u32>(op).or(logical::<u32>(op)),
        ElementKind::Logical8 => moved::<u64>(op).or(logical::<u64>(op)),
        ElementKind::Byte => moved::<u8>(op).or(bitwise::<u8>(op)),
        ElementKind::ComplexF32 => complex::<f32>(op),
        ElementKind::ComplexF64 => complex::<f64>(op),
        ElementKind::FloatInt => pairs::<f32, i32>(op),
        ElementKind::DoubleInt => pairs::<f64, i32>(op),
        ElementKind::LongInt => pairs::<i64, i32>(op),
        ElementKind::TwoInt => pairs::<i32, i32>(op),
        ElementKind::ShortInt => pairs::<i16, i32>(op),
        ElementKind::TwoReal => pairs::<f32, f32>(op),
        ElementKind::TwoDoublePrecision => pairs::<f64, f64>(op),
        #[cfg(target_arch = "x86_64")]
        ElementKind::LongDouble => reals::<LongDouble>(op),
        #[cfg(target_arch = "x86_64")]
        ElementKind::ComplexLongDouble => complex::<LongDouble>(op),
        #[cfg(target_arch = "x86_64")]
        ElementKind::LongDoubleInt => pairs::<LongDouble, i32>(op),
        #[cfg(not(target_arch = "x86_64"))]
        ElementKind::LongDouble | ElementKind::ComplexLongDouble | ElementKind::LongDoubleInt => {
            None
        }
    }
}

/// From how many bytes on wider vectors are looked for.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const LONG: usize = 256;

/// Combines buffers: `inout[i] = combine(input[i], inout[i])`.
#[inline]
fn fold<E: Element>(input: &[u8], inout: &mut [u8], combine: impl Fn(E, E) -> E) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if inout.len() >= LONG && is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has these instructions.
        return unsafe { fold_by_wide_vectors(input, inout, combine) };
    }
    fold_each(input, inout, combine);
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx2")]
fn fold_by_wide_vectors<E: Element>(input: &[u8], inout: &mut [u8], combine: impl Fn(E, E) -> E) {
    fold_each(input, inout, combine);
}

/// The only loop.
#[inline(always)]
fn fold_each<E: Element>(input: &[u8], inout: &mut [u8], combine: impl Fn(E, E) -> E) {
    let places = input.chunks_exact(E::EXTENT).zip(inout.chunks_exact_mut(E::EXTENT));
    for (input, inout) in places {
        combine(E::read(input), E::read(inout)).write(inout);
    }
}

fn integers<E>(op: Predefined) -> Option<Kernel>
where
    E: Arithmetic + PartialOrd + From<bool>,
    E: BitAnd<Output = E> + BitOr<Output = E> + BitXor<Output = E>,
{
    reals::<E>(op).or(logical::<E>(op)).or(bitwise::<E>(op))
}

fn reals<E: Arithmetic + PartialOrd>(op: Predefined) -> Option<Kernel> {
    moved::<E>(op).or(ordered::<E>(op)).or(arithmetic::<E>(op))
}

/// Sums of complex numbers are sums of their parts.
fn complex<E: Arithmetic>(op: Predefined) -> Option<Kernel> {
    match op {
        Predefined::Sum => arithmetic::<E>(op),
        Predefined::Prod => Some(|input, inout| fold(input, inout, Complex::<E>::times)),
        _ => moved::<Complex<E>>(op),
    }
}

/// Updates of windows: the result is the input, or stays as it is. Padding stays as it is.
fn moved<E: Element>(op: Predefined) -> Option<Kernel> {
    match op {
        Predefined::Replace => Some(|input, inout| fold::<E>(input, inout, |a, _| a)),
        Predefined::NoOp => Some(|_, _| ()),
        _ => None,
    }
}

fn ordered<E: Element + PartialOrd>(op: Predefined) -> Option<Kernel> {
    match op {
        Predefined::Max => {
            Some(|input, inout| fold::<E>(input, inout, |a, b| if a > b { a } else { b }))
        }
        Predefined::Min => {
            Some(|input, inout| fold::<E>(input, inout, |a, b| if a < b { a } else { b }))
        }
        _ => None,
    }
}

fn arithmetic<E: Arithmetic>(op: Predefined) -> Option<Kernel> {
    match op {
        Predefined::Sum => Some(|input, inout| fold(input, inout, E::plus)),
        Predefined::Prod => Some(|input, inout| fold(input, inout, E::times)),
        _ => None,
    }
}

/// Logical operations. Every value but 0 is true; the result is 0 or 1.
fn logical<E: Element + PartialEq + From<bool>>(op: Predefined) -> Option<Kernel> {
    match op {
        Predefined::Land => Some(|input, inout| truth::<E>(input, inout, |a, b| a & b)),
        Predefined::Lor => Some(|input, inout| truth::<E>(input, inout, |a, b| a | b)),
        Predefined::Lxor => Some(|input, inout| truth::<E>(input, inout, |a, b| a ^ b)),
        _ => None,
    }
}

#[inline]
fn truth<E>(input: &[u8], inout: &mut [u8], combine: impl Fn(bool, bool) -> bool)
where
    E: Element + PartialEq + From<bool>,
{
    let zero = E::from(false);
    fold(input, inout, |a: E, b: E| E::from(combine(a != zero, b != zero)));
}

fn bitwise<E>(op: Predefined) -> Option<Kernel>
where
    E: Element + BitAnd<Output = E> + BitOr<Output = E> + BitXor<Output = E>,
{
    match op {
        Predefined::Band => Some(|input, inout| fold(input, inout, E::bitand)),
        Predefined::Bor => Some(|input, inout| fold(input, inout, E::bitor)),
        Predefined::Bxor => Some(|input, inout| fold(input, inout, E::bitxor)),
        _ => None,
    }
}

fn pairs<V, I>(op: Predefined) -> Option<Kernel>
where
    V: Element + PartialOrd,
    I: Element + PartialOrd,
{
    match op {
        Predefined::MaxLoc => Some(|input, inout| located::<V, I>(input, inout, |a, b| a > b)),
        Predefined::MinLoc => Some(|input, inout| located::<V, I>(input, inout, |a, b| a < b)),
        _ => moved::<Pair<V, I>>(op),
    }
}

/// Selects the pair with the better value; of equal values, the pair with the lower index.
#[inline]
fn located<V, I>(input: &[u8], inout: &mut [u8], better: impl Fn(V, V) -> bool)
where
    V: Element + PartialOrd,
    I: Element + PartialOrd,
{
    fold(input, inout, |a: Pair<V, I>, b: Pair<V, I>| {
        let wins = better(a.value, b.value) || (a.value == b.value && a.index < b.index);
        if wins { a } else { b }
    });
}
