//! The loops: for each operation on each kind of elements, one function over two buffers.
//!
//! A loop reads both elements at a place as bytes, computes, and writes the result. So alignment does not matter, and
//! the compiler sees fixed lengths that it can vectorise. For long buffers it does so twice: also for processors with vectors
//! of 32 bytes. Results are the same, since elements are computed one by one.
//!
//! There is one set of loops for memory that nobody else uses, and one for memory that others may read and write
//! meanwhile, into which a loop cannot borrow: it loads a vector, computes, and stores it ([`Memory`]).

#![expect(
    unsafe_code,
    reason = "uses instructions after it has looked whether the processor has them"
)]

use std::ops::{BitAnd, BitOr, BitXor};

use transport_lapi::{ForeignBytes, RecvPart, SharedBytes};

use super::element::{Arithmetic, Complex, Element, Pair};
use super::half::{Bf16, F16};
#[cfg(target_arch = "x86_64")]
use super::long_double::LongDouble;
use super::{ElementKind, Predefined};

/// Combines each element of the first buffer with that of the second, and stores the result in the second. Both buffers
/// have the same length, a whole number of elements.
pub(crate) type Kernel = fn(&[u8], &mut [u8]);

/// The same with a second buffer in shared memory.
pub(crate) type SharedKernel = fn(&[u8], SharedInout<'_>);

/// One of these.
type KernelIn<M> = fn(&[u8], <M as Memory>::Inout<'_>);

/// Where the second operands of a loop are, which its results replace.
trait Memory {
    /// The buffer.
    type Inout<'m>;

    /// Combines buffers: `inout[i] = combine(input[i], inout[i])`.
    fn fold<E: Element>(input: &[u8], inout: Self::Inout<'_>, combine: impl Fn(E, E) -> E);
}

/// Memory that nobody else uses.
enum Private {}

/// Memory that others may access meanwhile.
enum Shared {}

/// A buffer there, whose elements have no padding, and memory of the same length for what was in it, if that is wanted.
pub(crate) struct SharedInout<'m> {
    pub place: SharedBytes<'m>,
    pub before: Option<RecvPart<'m>>,
}

/// Returns the loop of an operation on a kind; `None` if MPI does not define it, or if this processor lacks it.
pub(crate) fn kernel(op: Predefined, kind: ElementKind) -> Option<Kernel> {
    kernel_in::<Private>(op, kind)
}

/// Returns that for shared memory.
pub(crate) fn shared_kernel(op: Predefined, kind: ElementKind) -> Option<SharedKernel> {
    kernel_in::<Shared>(op, kind)
}

fn kernel_in<M: Memory>(op: Predefined, kind: ElementKind) -> Option<KernelIn<M>> {
    match kind {
        ElementKind::I8 => integers::<M, i8>(op),
        ElementKind::I16 => integers::<M, i16>(op),
        ElementKind::I32 => integers::<M, i32>(op),
        ElementKind::I64 => integers::<M, i64>(op),
        ElementKind::I128 => integers::<M, i128>(op),
        ElementKind::U8 => integers::<M, u8>(op),
        ElementKind::U16 => integers::<M, u16>(op),
        ElementKind::U32 => integers::<M, u32>(op),
        ElementKind::U64 => integers::<M, u64>(op),
        ElementKind::U128 => integers::<M, u128>(op),
        ElementKind::F16 => reals::<M, F16>(op),
        ElementKind::BF16 => reals::<M, Bf16>(op),
        ElementKind::F32 => reals::<M, f32>(op),
        ElementKind::F64 => reals::<M, f64>(op),
        ElementKind::Bool => moved::<M, u8>(op).or(logical::<M, u8>(op)),
        ElementKind::Logical2 => moved::<M, u16>(op).or(logical::<M, u16>(op)),
        ElementKind::Logical4 => moved::<M, u32>(op).or(logical::<M, u32>(op)),
        ElementKind::Logical8 => moved::<M, u64>(op).or(logical::<M, u64>(op)),
        ElementKind::Byte => moved::<M, u8>(op).or(bitwise::<M, u8>(op)),
        ElementKind::ComplexF32 => complex::<M, f32>(op),
        ElementKind::ComplexF64 => complex::<M, f64>(op),
        ElementKind::FloatInt => pairs::<M, f32, i32>(op),
        ElementKind::DoubleInt => pairs::<M, f64, i32>(op),
        ElementKind::LongInt => pairs::<M, i64, i32>(op),
        ElementKind::TwoInt => pairs::<M, i32, i32>(op),
        ElementKind::ShortInt => pairs::<M, i16, i32>(op),
        ElementKind::TwoReal => pairs::<M, f32, f32>(op),
        ElementKind::TwoDoublePrecision => pairs::<M, f64, f64>(op),
        #[cfg(target_arch = "x86_64")]
        ElementKind::LongDouble => reals::<M, LongDouble>(op),
        #[cfg(target_arch = "x86_64")]
        ElementKind::ComplexLongDouble => complex::<M, LongDouble>(op),
        #[cfg(target_arch = "x86_64")]
        ElementKind::LongDoubleInt => pairs::<M, LongDouble, i32>(op),
        #[cfg(not(target_arch = "x86_64"))]
        ElementKind::LongDouble | ElementKind::ComplexLongDouble | ElementKind::LongDoubleInt => {
            None
        }
    }
}

/// From how many bytes on wider vectors are looked for.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const LONG: usize = 256;

impl Memory for Private {
    type Inout<'m> = &'m mut [u8];

    #[inline]
    fn fold<E: Element>(input: &[u8], inout: &mut [u8], combine: impl Fn(E, E) -> E) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if inout.len() >= LONG && is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has these instructions.
            return unsafe { fold_by_wide_vectors(input, inout, combine) };
        }
        fold_each(input, inout, combine);
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx2")]
unsafe fn fold_by_wide_vectors<E: Element>(
    input: &[u8],
    inout: &mut [u8],
    combine: impl Fn(E, E) -> E,
) {
    fold_each(input, inout, combine);
}

/// The only loop over elements.
#[inline(always)]
fn fold_each<E: Element>(input: &[u8], inout: &mut [u8], combine: impl Fn(E, E) -> E) {
    let places = input.chunks_exact(E::EXTENT).zip(inout.chunks_exact_mut(E::EXTENT));
    for (input, inout) in places {
        combine(E::read(input), E::read(inout)).write(inout);
    }
}

/// Bytes of a vector in shared memory.
const VECTOR: usize = 32;

impl Memory for Shared {
    type Inout<'m> = SharedInout<'m>;

    #[inline]
    fn fold<E: Element>(input: &[u8], inout: SharedInout<'_>, combine: impl Fn(E, E) -> E) {
        let SharedInout { place, mut before } = inout;
        let mut done = 0;
        #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
        if place.len() >= LONG && VECTOR % E::EXTENT == 0 && is_x86_feature_detected!("avx2") {
            let before = before.as_mut().map(|before| before.part(0, place.len()));
            // SAFETY: the processor has these instructions.
            done = unsafe { fold_shared_vectors(input, (place, before), &combine) };
        }
        // Elements of up to 32 bytes, as many as fit.
        let (mut room, step) = ([0; VECTOR], VECTOR / E::EXTENT * E::EXTENT);
        for at in (done..place.len()).step_by(step) {
            let part = place.part(at, step);
            let now = &mut room[..part.len()];
            part.load(RecvPart::of_slice(now));
            if let Some(before) = &mut before {
                before.part(at, now.len()).store(0, ForeignBytes::from_slice(now));
            }
            fold_each(&input[at..], now, &combine);
            part.store(ForeignBytes::from_slice(now));
        }
    }
}

/// Combines whole vectors, and returns how many bytes these are.
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
#[target_feature(enable = "avx2")]
unsafe fn fold_shared_vectors<E: Element>(
    input: &[u8],
    (place, before): (SharedBytes<'_>, Option<RecvPart<'_>>),
    combine: impl Fn(E, E) -> E,
) -> usize {
    let next = |by: &[u8; VECTOR], mut now: [u8; VECTOR]| {
        fold_each(by, &mut now, &combine);
        now
    };
    let Some(before) = before.filter(|before| before.len() >= place.len()) else {
        // SAFETY: the caller's promise.
        return unsafe { place.change_vectors(input, |_, by, now| next(by, now)) };
    };
    let keep = |at, by: &[u8; VECTOR], now| {
        // SAFETY: the part is as long as the place, inside of which the vector lies.
        unsafe { before.as_mut_ptr().add(at).cast::<[u8; VECTOR]>().write_unaligned(now) };
        next(by, now)
    };
    // SAFETY: the caller's promise.
    unsafe { place.change_vectors(input, keep) }
}

fn integers<M, E>(op: Predefined) -> Option<KernelIn<M>>
where
    M: Memory,
    E: Arithmetic + PartialOrd + From<bool>,
    E: BitAnd<Output = E> + BitOr<Output = E> + BitXor<Output = E>,
{
    reals::<M, E>(op).or(logical::<M, E>(op)).or(bitwise::<M, E>(op))
}

fn reals<M: Memory, E: Arithmetic + PartialOrd>(op: Predefined) -> Option<KernelIn<M>> {
    moved::<M, E>(op).or(ordered::<M, E>(op)).or(arithmetic::<M, E>(op))
}

/// Sums of complex numbers are sums of their parts.
fn complex<M: Memory, E: Arithmetic>(op: Predefined) -> Option<KernelIn<M>> {
    match op {
        Predefined::Sum => arithmetic::<M, E>(op),
        Predefined::Prod => Some(|input, inout| M::fold(input, inout, Complex::<E>::times)),
        _ => moved::<M, Complex<E>>(op),
    }
}

/// Updates of windows: the result is the input, or stays as it is. Padding stays as it is.
fn moved<M: Memory, E: Element>(op: Predefined) -> Option<KernelIn<M>> {
    match op {
        Predefined::Replace => Some(|input, inout| M::fold::<E>(input, inout, |a, _| a)),
        Predefined::NoOp => Some(|_, _| ()),
        _ => None,
    }
}

fn ordered<M: Memory, E: Element + PartialOrd>(op: Predefined) -> Option<KernelIn<M>> {
    match op {
        Predefined::Max => {
            Some(|input, inout| M::fold::<E>(input, inout, |a, b| if a > b { a } else { b }))
        }
        Predefined::Min => {
            Some(|input, inout| M::fold::<E>(input, inout, |a, b| if a < b { a } else { b }))
        }
        _ => None,
    }
}

fn arithmetic<M: Memory, E: Arithmetic>(op: Predefined) -> Option<KernelIn<M>> {
    match op {
        Predefined::Sum => Some(|input, inout| M::fold(input, inout, E::plus)),
        Predefined::Prod => Some(|input, inout| M::fold(input, inout, E::times)),
        _ => None,
    }
}

/// Logical operations. Every value but 0 is true; the result is 0 or 1.
fn logical<M: Memory, E: Element + PartialEq + From<bool>>(op: Predefined) -> Option<KernelIn<M>> {
    match op {
        Predefined::Land => Some(|input, inout| truth::<M, E>(input, inout, |a, b| a & b)),
        Predefined::Lor => Some(|input, inout| truth::<M, E>(input, inout, |a, b| a | b)),
        Predefined::Lxor => Some(|input, inout| truth::<M, E>(input, inout, |a, b| a ^ b)),
        _ => None,
    }
}

#[inline]
fn truth<M, E>(input: &[u8], inout: M::Inout<'_>, combine: impl Fn(bool, bool) -> bool)
where
    M: Memory,
    E: Element + PartialEq + From<bool>,
{
    let zero = E::from(false);
    M::fold(input, inout, |a: E, b: E| E::from(combine(a != zero, b != zero)));
}

fn bitwise<M, E>(op: Predefined) -> Option<KernelIn<M>>
where
    M: Memory,
    E: Element + BitAnd<Output = E> + BitOr<Output = E> + BitXor<Output = E>,
{
    match op {
        Predefined::Band => Some(|input, inout| M::fold(input, inout, E::bitand)),
        Predefined::Bor => Some(|input, inout| M::fold(input, inout, E::bitor)),
        Predefined::Bxor => Some(|input, inout| M::fold(input, inout, E::bitxor)),
        _ => None,
    }
}

fn pairs<M, V, I>(op: Predefined) -> Option<KernelIn<M>>
where
    M: Memory,
    V: Element + PartialOrd,
    I: Element + PartialOrd,
{
    match op {
        Predefined::MaxLoc => Some(|input, inout| located::<M, V, I>(input, inout, |a, b| a > b)),
        Predefined::MinLoc => Some(|input, inout| located::<M, V, I>(input, inout, |a, b| a < b)),
        _ => moved::<M, Pair<V, I>>(op),
    }
}

/// Selects the pair with the better value; of equal values, the pair with the lower index.
#[inline]
fn located<M, V, I>(input: &[u8], inout: M::Inout<'_>, better: impl Fn(V, V) -> bool)
where
    M: Memory,
    V: Element + PartialOrd,
    I: Element + PartialOrd,
{
    M::fold(input, inout, |a: Pair<V, I>, b: Pair<V, I>| {
        let wins = better(a.value, b.value) || (a.value == b.value && a.index < b.index);
        if wins { a } else { b }
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn dense_kinds() -> Vec<ElementKind> {
        ElementKind::ALL.into_iter().filter(|kind| kind.size() == kind.extent()).collect()
    }

    proptest! {
        /// A loop does in shared memory what it does elsewhere, whether vectors fill it or not, and keeps what was there.
        #[test]
        fn loops_in_shared_memory_have_the_same_results(
            kind in prop::sample::select(dense_kinds()), count in 0_usize..200, first: [u64; 2], step: u64,
            keeps: bool,
        ) {
            let len = count * kind.extent();
            let [input, original] = first.map(|first| {
                let words = (0..).map(|at: u64| first.wrapping_add(at.wrapping_mul(step)));
                words.flat_map(u64::to_ne_bytes).take(len).collect::<Vec<_>>()
            });
            for op in Predefined::ALL {
                let (Some(kernel), Some(shared)) = (kernel(op, kind), shared_kernel(op, kind)) else {
                    continue;
                };
                let (mut expected, mut found) = (original.clone(), original.clone());
                let mut kept = vec![0; len];
                kernel(&input, &mut expected);
                // SAFETY: SB1: the vector lasts, and nobody else has it.
                let place = unsafe { SharedBytes::new(found.as_mut_ptr(), len) };
                let before = keeps.then(|| RecvPart::of_slice(&mut kept));
                shared(&input, SharedInout { place, before });
                prop_assert_eq!(&found, &expected, "{} on {}", op, kind);
                prop_assert!(!keeps || op == Predefined::NoOp || kept == original);
            }
        }
    }
}
