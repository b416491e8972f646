//! Tests of `long double`: against `f64` where that is exact, against integers of up to 64 bits where it is not, and by
//! known cases.

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::{ElementKind, Predefined, reduce_local};

/// A number in memory, with padding that must not matter.
type Bytes = [u8; 16];

const SIGN: u16 = 1 << 15;
const BIAS: u16 = 16383;

/// Makes a number from its parts: a significand of 64 bits, and a sign above 15 bits of exponent.
fn of_parts(significand: u64, head: u16) -> Bytes {
    let mut bytes = [0xEE; 16];
    bytes[..8].copy_from_slice(&significand.to_le_bytes());
    bytes[8..10].copy_from_slice(&head.to_le_bytes());
    bytes
}

/// Converts an integer without rounding: only its 64 highest bits from the highest one on may be set.
fn of_integer(integer: i128) -> Bytes {
    let magnitude = integer.unsigned_abs();
    if magnitude == 0 {
        return of_parts(0, 0);
    }
    let place = magnitude.ilog2() as u16;
    let significand = magnitude << (127 - place) >> 64;
    assert_eq!(significand << 64, magnitude << (127 - place), "{integer} is exact");
    of_parts(significand as u64, BIAS + place + if integer < 0 { SIGN } else { 0 })
}

/// Converts a number of 64 bits to 80 bits, which is exact.
fn of_f64(number: f64) -> Bytes {
    let sign = if number.is_sign_negative() { SIGN } else { 0 };
    let exponent = (number.to_bits() >> 52 & 0x7ff) as u16;
    let fraction = (number.to_bits() & ((1 << 52) - 1)) << 11;
    match (exponent, fraction) {
        (0, 0) => of_parts(0, sign),
        (0, _) => {
            let shift = fraction.leading_zeros() as u16;
            of_parts(fraction << shift, sign | (BIAS - 1022 - shift))
        }
        (0x7ff, _) => of_parts(1 << 63 | fraction, sign | 0x7fff),
        _ => of_parts(1 << 63 | fraction, sign | (exponent + BIAS - 1023)),
    }
}

/// Returns the ten bytes of the number.
fn data(bytes: &[u8]) -> [u8; 10] {
    bytes[..10].try_into().expect("ten bytes")
}

/// Returns the result of an operation on elements that consist of these numbers, at odd addresses.
fn reduced(op: Predefined, kind: ElementKind, a: &[Bytes], b: &[Bytes]) -> Vec<Bytes> {
    let input = [vec![0], a.concat()].concat();
    let mut inout = [vec![0; 3], b.concat()].concat();
    reduce_local(&op.into(), kind, &input[1..], &mut inout[3..]).expect("legal and whole");
    inout[3..].chunks_exact(16).map(|bytes| bytes.try_into().expect("16 bytes")).collect()
}

fn one(op: Predefined, a: Bytes, b: Bytes) -> Bytes {
    reduced(op, ElementKind::LongDouble, &[a], &[b])[0]
}

#[track_caller]
fn same(result: Bytes, expected: Bytes) {
    assert_eq!(data(&result), data(&expected));
}

#[test]
fn all_64_bits_of_a_significand_count() {
    let big = 1_i128 << 63;
    same(one(Predefined::Sum, of_integer(big), of_integer(1)), of_integer(big + 1));
    assert_eq!(2_f64.powi(63) + 1.0, 2_f64.powi(63), "as f64 does not show");
    let (odd, factor) = ((1_i128 << 32) - 1, (1_i128 << 32) - 3);
    same(one(Predefined::Prod, of_integer(odd), of_integer(factor)), of_integer(odd * factor));
    same(one(Predefined::Max, of_integer(big), of_integer(big + 1)), of_integer(big + 1));
    same(one(Predefined::Min, of_integer(big + 1), of_integer(big)), of_integer(big));
}

#[test]
fn sums_are_rounded_to_the_nearest_even_one() {
    let big = 1_i128 << 64;
    same(one(Predefined::Sum, of_integer(big), of_integer(1)), of_integer(big));
    same(one(Predefined::Sum, of_integer(big), of_integer(3)), of_integer(big + 4));
    same(one(Predefined::Sum, of_integer(big - 1), of_integer(1)), of_integer(big));
}

#[test]
fn products_have_15_bits_of_exponent() {
    let huge = of_f64(f64::MAX);
    let product = one(Predefined::Prod, huge, huge);
    assert!(product[8..10] < (0x7fff_u16.to_le_bytes())[..], "not infinite");
    let (top, infinite) = (of_parts(1 << 63, 0x7ffe), of_f64(f64::INFINITY));
    same(one(Predefined::Prod, top, top), infinite);
    same(one(Predefined::Sum, infinite, of_integer(-1)), infinite);
    let no_number = one(Predefined::Sum, infinite, of_f64(f64::NEG_INFINITY));
    assert_eq!(u16::from_le_bytes([no_number[8], no_number[9]]) & 0x7fff, 0x7fff);
    assert_ne!(data(&no_number)[..8], data(&infinite)[..8]);
}

#[test]
fn the_result_stays_unless_the_input_is_better() {
    for op in [Predefined::Max, Predefined::Min] {
        let (nan, number) = (of_f64(f64::NAN), of_integer(1));
        same(one(op, nan, number), number);
        same(one(op, number, nan), nan);
        same(one(op, of_f64(0.0), of_f64(-0.0)), of_f64(-0.0));
        same(one(op, of_f64(-0.0), of_f64(0.0)), of_f64(0.0));
    }
}

/// Makes an element of `MPI_LONG_DOUBLE_INT`.
fn pair(value: Bytes, index: i32) -> [Bytes; 2] {
    let mut place = [0xDD; 16];
    place[..4].copy_from_slice(&index.to_ne_bytes());
    [value, place]
}

#[test]
fn a_place_is_found_by_value_then_by_index() {
    let big = 1_i128 << 63;
    let (low, high, nan) = (of_integer(big), of_integer(big + 1), of_f64(f64::NAN));
    let find = |op, a: [Bytes; 2], b: [Bytes; 2]| {
        let result = reduced(op, ElementKind::LongDoubleInt, &a, &b);
        (data(&result[0]), result[1][..4].to_vec())
    };
    let is = |value: Bytes, index: i32| (data(&value), index.to_ne_bytes().to_vec());
    assert_eq!(find(Predefined::MaxLoc, pair(high, 9), pair(low, 1)), is(high, 9));
    assert_eq!(find(Predefined::MaxLoc, pair(low, 1), pair(high, 9)), is(high, 9));
    assert_eq!(find(Predefined::MinLoc, pair(high, 1), pair(low, 9)), is(low, 9));
    assert_eq!(find(Predefined::MinLoc, pair(low, 9), pair(high, 1)), is(low, 9));
    for op in [Predefined::MaxLoc, Predefined::MinLoc] {
        assert_eq!(find(op, pair(low, -1), pair(low, 5)), is(low, -1));
        assert_eq!(find(op, pair(low, 5), pair(low, -1)), is(low, -1));
        assert_eq!(find(op, pair(nan, 0), pair(low, 1)), is(low, 1));
        assert_eq!(find(op, pair(low, 0), pair(nan, 1)), is(nan, 1));
    }
}

#[test]
fn complex_products_have_all_bits() {
    let (a, b) = ([(1 << 31) + 1, 3], [(1 << 31) - 5, 7]);
    let product = [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]];
    let kind = ElementKind::ComplexLongDouble;
    let result = reduced(Predefined::Prod, kind, &a.map(of_integer), &b.map(of_integer));
    same(result[0], of_integer(product[0]));
    same(result[1], of_integer(product[1]));
}

/// Generates any 64 bits, and often special values.
fn number() -> impl Strategy<Value = f64> {
    let special = vec![0.0, -0.0, 1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN];
    prop_oneof![
        2 => any::<u64>().prop_map(f64::from_bits),
        1 => (-9..9_i8).prop_map(f64::from),
        1 => proptest::sample::select(special),
    ]
}

proptest! {
    #[test]
    fn integers_of_64_bits_are_exact(pairs in vec((any::<i64>(), any::<i64>()), 0..40)) {
        let a: Vec<_> = pairs.iter().map(|(a, _)| of_integer((*a).into())).collect();
        let b: Vec<_> = pairs.iter().map(|(_, b)| of_integer((*b).into())).collect();
        for op in [Predefined::Sum, Predefined::Max, Predefined::Min] {
            let result = reduced(op, ElementKind::LongDouble, &a, &b);
            for (result, (a, b)) in result.iter().zip(&pairs) {
                let exact = match op {
                    Predefined::Sum => i128::from(*a) + i128::from(*b),
                    Predefined::Max => (*a.max(b)).into(),
                    _ => (*a.min(b)).into(),
                };
                prop_assert_eq!(data(result), data(&of_integer(exact)), "{} of {} {}", op, a, b);
            }
        }
    }

    #[test]
    fn products_of_32_bits_are_exact(a in any::<[i32; 2]>(), b in any::<[i32; 2]>()) {
        let [a, b] = [a, b].map(|both| both.map(i128::from));
        let multiply = |kind| {
            reduced(Predefined::Prod, kind, &a.map(of_integer), &b.map(of_integer))
        };
        // If one factor is zero, the sign of the product is that of the other factor.
        let unsigned = |bytes: &Bytes| if bytes[..8] == [0; 8] { of_parts(0, 0) } else { *bytes };
        let real = multiply(ElementKind::LongDouble);
        for at in 0..2 {
            let expected = of_integer(a[at] * b[at]);
            prop_assert_eq!(data(&unsigned(&real[at])), data(&expected));
        }
        let complex = multiply(ElementKind::ComplexLongDouble);
        let parts = [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]];
        for (result, part) in complex.iter().zip(parts) {
            prop_assert_eq!(data(&unsigned(result)), data(&of_integer(part)));
        }
    }

    // The largest product has 30 + 2 * 489 binary digits before the point, of the 1024 that `f64` has.
    #[test]
    fn sums_and_products_agree_with_f64_where_that_is_exact(
        a in any::<i16>(), b in any::<i16>(), scale in -490..490_i32, other in -490..490_i32,
    ) {
        let (big, small) = (2_f64.powi(scale), 2_f64.powi(other));
        let (a, b) = (f64::from(a), f64::from(b));
        let sum = one(Predefined::Sum, of_f64(a * big), of_f64(b * big));
        prop_assert_eq!(data(&sum), data(&of_f64(a * big + b * big)));
        let product = one(Predefined::Prod, of_f64(a * big), of_f64(b * small));
        prop_assert_eq!(data(&product), data(&of_f64((a * big) * (b * small))));
        let pair = [of_f64(a), of_f64(b)];
        let kind = ElementKind::ComplexLongDouble;
        let sums = reduced(Predefined::Sum, kind, &pair, &pair);
        prop_assert_eq!(data(&sums[0]), data(&of_f64(a + a)));
        prop_assert_eq!(data(&sums[1]), data(&of_f64(b + b)));
    }

    #[test]
    fn comparisons_agree_with_f64(pairs in vec((number(), number()), 0..40)) {
        let a: Vec<_> = pairs.iter().map(|(a, _)| of_f64(*a)).collect();
        let b: Vec<_> = pairs.iter().map(|(_, b)| of_f64(*b)).collect();
        for op in [Predefined::Max, Predefined::Min, Predefined::Replace, Predefined::NoOp] {
            let result = reduced(op, ElementKind::LongDouble, &a, &b);
            for (result, (a, b)) in result.iter().zip(&pairs) {
                let takes_input = match op {
                    Predefined::Max => a > b,
                    Predefined::Min => a < b,
                    _ => op == Predefined::Replace,
                };
                let expected = of_f64(if takes_input { *a } else { *b });
                prop_assert_eq!(data(result), data(&expected), "{} of {} {}", op, a, b);
            }
        }
    }
}
