//! Results of every operation on every kind except `long double`, compared with naive ones, on unaligned buffers.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{ElementKind, GUARD, Op, Predefined, reduced};

/// Generates the distances of two buffers from a multiple of 16.
fn shifts() -> impl Strategy<Value = (usize, usize)> {
    (0..16_usize, 0..16_usize)
}

/// Iterates over all operations that are legal on a kind.
fn legal(kind: ElementKind) -> impl Iterator<Item = Predefined> {
    Predefined::ALL.into_iter().filter(move |op| Op::from(*op).check(kind).is_ok())
}

/// Returns the input, or the present value.
fn moved<T>(op: Predefined, a: T, b: T) -> T {
    match op {
        Predefined::Replace => a,
        Predefined::NoOp => b,
        _ => unreachable!("{op} does not move"),
    }
}

/// Computes in 128 bits, of which the result keeps the low ones: for all operations that do not compare.
fn integer(op: Predefined, a: i128, b: i128) -> i128 {
    match op {
        Predefined::Sum => a.wrapping_add(b),
        Predefined::Prod => a.wrapping_mul(b),
        Predefined::Land => i128::from(a != 0 && b != 0),
        Predefined::Lor => i128::from(a != 0 || b != 0),
        Predefined::Lxor => i128::from((a != 0) != (b != 0)),
        Predefined::Band => a & b,
        Predefined::Bor => a | b,
        Predefined::Bxor => a ^ b,
        _ => moved(op, a, b),
    }
}

/// Tests of integers, truth values and bytes, which share one reference.
macro_rules! integers {
    ($($test:ident: $number:ty, $($kind:ident)+;)*) => { $(
        proptest! {
            #[test]
            fn $test(
                operands in vec((edge(any::<$number>()), edge(any::<$number>())), 0..70),
                shifts in shifts(),
            ) {
                let (a, b): (Vec<_>, Vec<_>) = operands.iter().copied().unzip();
                let bytes =
                    |all: &[$number]| -> Vec<u8> { all.iter().flat_map(|x| x.to_ne_bytes()).collect() };
                for kind in [$(ElementKind::$kind),+] {
                    for op in legal(kind) {
                        let naive = operands.iter().map(|(a, b)| match op {
                            Predefined::Max => *a.max(b),
                            Predefined::Min => *a.min(b),
                            _ => integer(op, *a as i128, *b as i128) as $number,
                        });
                        let result = reduced(op, kind, (&bytes(&a), &bytes(&b)), shifts);
                        prop_assert_eq!(result, bytes(&naive.collect::<Vec<_>>()), "{}", op);
                    }
                }
            }
        }
    )* };
}

integers! {
    signed_8: i8, I8;
    signed_16: i16, I16;
    signed_32: i32, I32;
    signed_64: i64, I64;
    signed_128: i128, I128;
    unsigned_8: u8, U8 Bool Byte;
    unsigned_16: u16, U16 Logical2;
    unsigned_32: u32, U32 Logical4;
    unsigned_64: u64, U64 Logical8;
    unsigned_128: u128, U128;
}

/// Generates any value, and often zero or one, so that operands are equal or false.
fn edge<T: Clone + std::fmt::Debug + From<bool> + 'static>(
    any: impl Strategy<Value = T> + 'static,
) -> impl Strategy<Value = T> {
    prop_oneof![3 => any, 1 => Just(T::from(false)), 1 => Just(T::from(true))]
}

/// Tests of pairs, laid out by the compiler as C does, with values that are often equal.
macro_rules! pairs {
    ($($test:ident: $value:ty, $values:expr, $index:ty, $indices:expr, $kind:ident;)*) => { $(
        proptest! {
            #[test]
            fn $test(
                operands in vec((($values, $indices), ($values, $indices), any::<bool>()), 0..40),
                shifts in shifts(),
            ) {
                #[repr(C)]
                struct Laid($value, $index);
                let bytes = |(value, index): ($value, $index)| {
                    let mut bytes = [GUARD; size_of::<Laid>()];
                    let at = std::mem::offset_of!(Laid, 1);
                    bytes[..size_of::<$value>()].copy_from_slice(&value.to_ne_bytes());
                    bytes[at..at + size_of::<$index>()].copy_from_slice(&index.to_ne_bytes());
                    bytes
                };
                let operands: Vec<_> = operands
                    .into_iter()
                    .map(|(a, b, equal)| (a, if equal { (a.0, b.1) } else { b }))
                    .collect();
                let a: Vec<_> = operands.iter().map(|(a, _)| bytes(*a)).collect();
                let b: Vec<_> = operands.iter().map(|(_, b)| bytes(*b)).collect();
                for op in legal(ElementKind::$kind) {
                    let naive = operands.iter().map(|&(a, b)| match op {
                        Predefined::MaxLoc if a.0 > b.0 => a,
                        Predefined::MinLoc if a.0 < b.0 => a,
                        Predefined::MaxLoc | Predefined::MinLoc if a.0 == b.0 && a.1 < b.1 => a,
                        Predefined::MaxLoc | Predefined::MinLoc => b,
                        _ => moved(op, a, b),
                    });
                    let naive: Vec<_> = naive.map(bytes).collect();
                    let kind = ElementKind::$kind;
                    let result = reduced(op, kind, (&a.concat(), &b.concat()), shifts);
                    prop_assert_eq!(result, naive.concat(), "{}", op);
                }
            }
        }
    )* };
}

/// Tests of floating-point numbers, the same for both lengths.
macro_rules! reals {
    ($module:ident, $number:ident, $bits:ty, $real:ident, $complex:ident, $pair:ident, $two:ident) => {
        mod $module {
            use super::*;

            /// Generates any bits, and often special values.
            fn number() -> impl Strategy<Value = $number> {
                let special = [0.0, -0.0, 1.0, -1.5, $number::NAN, $number::INFINITY, $number::MIN];
                prop_oneof![
                    2 => any::<$bits>().prop_map($number::from_bits),
                    2 => (-100..100_i8).prop_map($number::from),
                    1 => proptest::sample::select(special.to_vec()),
                ]
            }

            fn bytes(all: &[$number]) -> Vec<u8> {
                all.iter().flat_map(|number| number.to_ne_bytes()).collect()
            }

            fn numbers(bytes: &[u8]) -> Vec<$number> {
                let one = |bytes: &[u8]| $number::from_ne_bytes(bytes.try_into().expect("whole"));
                bytes.chunks_exact(size_of::<$number>()).map(one).collect()
            }

            /// Compares numbers. The payload of a result that is not a number depends on the processor.
            fn same(one: $number, other: $number) -> bool {
                one.to_bits() == other.to_bits() || one.is_nan() && other.is_nan()
            }

            fn all_same(one: &[$number], other: &[$number]) -> bool {
                one.len() == other.len() && one.iter().zip(other).all(|(a, b)| same(*a, *b))
            }

            fn naive(op: Predefined, a: $number, b: $number) -> $number {
                match op {
                    Predefined::Max if a > b => a,
                    Predefined::Min if a < b => a,
                    Predefined::Max | Predefined::Min => b,
                    Predefined::Sum => a + b,
                    Predefined::Prod => a * b,
                    _ => moved(op, a, b),
                }
            }

            fn naive_complex(op: Predefined, a: [$number; 2], b: [$number; 2]) -> [$number; 2] {
                match op {
                    Predefined::Sum => [a[0] + b[0], a[1] + b[1]],
                    Predefined::Prod => [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]],
                    _ => moved(op, a, b),
                }
            }

            proptest! {
                #[test]
                fn real(operands in vec((number(), number()), 0..70), shifts in shifts()) {
                    let (a, b): (Vec<_>, Vec<_>) = operands.iter().copied().unzip();
                    for op in legal(ElementKind::$real) {
                        let expected: Vec<_> =
                            operands.iter().map(|(a, b)| naive(op, *a, *b)).collect();
                        let result =
                            reduced(op, ElementKind::$real, (&bytes(&a), &bytes(&b)), shifts);
                        let result = numbers(&result);
                        prop_assert!(all_same(&result, &expected), "{op}: {result:?} {expected:?}");
                    }
                }

                #[test]
                fn complex(
                    operands in vec(([number(), number()], [number(), number()]), 0..40),
                    shifts in shifts(),
                ) {
                    let (a, b): (Vec<_>, Vec<_>) = operands.iter().copied().unzip();
                    let (a, b) = (bytes(&a.concat()), bytes(&b.concat()));
                    for op in legal(ElementKind::$complex) {
                        let expected: Vec<_> =
                            operands.iter().map(|(a, b)| naive_complex(op, *a, *b)).collect();
                        let expected = expected.concat();
                        let result =
                            numbers(&reduced(op, ElementKind::$complex, (&a, &b), shifts));
                        prop_assert!(all_same(&result, &expected), "{op}: {result:?} {expected:?}");
                    }
                }
            }

            pairs! {
                with_int: $number, number(), i32, any::<i8>().prop_map(i32::from), $pair;
                of_two: $number, number(), $number, any::<i8>().prop_map($number::from), $two;
            }
        }
    };
}

reals!(of_32_bits, f32, u32, F32, ComplexF32, FloatInt, TwoReal);
reals!(of_64_bits, f64, u64, F64, ComplexF64, DoubleInt, TwoDoublePrecision);

pairs! {
    long_int: i64, any::<i64>(), i32, any::<i32>(), LongInt;
    two_int: i32, any::<i32>(), i32, any::<i32>(), TwoInt;
    short_int: i16, any::<i16>(), i32, any::<i32>(), ShortInt;
}

/// Which operand is the result if values are equal or are not numbers.
#[test]
fn the_result_stays_unless_the_input_is_better() {
    let run = |op, a: f64, b: f64| {
        let result = reduced(op, ElementKind::F64, (&a.to_ne_bytes(), &b.to_ne_bytes()), (1, 7));
        f64::from_ne_bytes(result.try_into().expect("one number"))
    };
    for op in [Predefined::Max, Predefined::Min] {
        assert_eq!(run(op, f64::NAN, 1.0), 1.0);
        assert!(run(op, 1.0, f64::NAN).is_nan());
        assert!(run(op, 0.0, -0.0).is_sign_negative());
        assert!(run(op, -0.0, 0.0).is_sign_positive());
    }
}
