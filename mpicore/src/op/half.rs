//! Floating-point numbers of 16 bits, for which Rust has no type: computed in 32 bits and rounded to the nearest, of two
//! to the even one.
//!
//! The loops of `kernels.rs` use them. One sum or product rounded twice is the same as rounded once, since 24 bits of
//! significand are at least two more than twice the 11 or 8 bits here.

use std::cmp::Ordering;

use super::element::{Arithmetic, Element};

/// IEEE's number of 16 bits: 5 bits of exponent, 10 of fraction.
#[derive(Debug, Clone, Copy)]
pub(super) struct F16(u16);

/// The upper half of an `f32`: 8 bits of exponent, 7 of fraction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bf16(u16);

impl F16 {
    fn widen(self) -> f32 {
        let (sign, rest) = (u32::from(self.0 & 0x8000) << 16, u32::from(self.0 & 0x7fff));
        let magnitude = match rest {
            // Infinity and values that are not numbers.
            0x7c00.. => rest << 13 | 0x7f80_0000,
            0x0400.. => (rest << 13) + ((127 - 15) << 23),
            // Multiples of the least number; `rest` has at most 10 bits, so this is exact.
            _ => (rest as f32 / (1 << 24) as f32).to_bits(),
        };
        f32::from_bits(sign | magnitude)
    }

    fn round(wide: f32) -> Self {
        let bits = wide.to_bits();
        let (sign, magnitude) = ((bits >> 16) as u16 & 0x8000, bits & 0x7fff_ffff);
        let rest = match magnitude {
            0x7f80_0001.. => 0x7e00,
            // From 65520 on, half a step above the greatest number.
            0x477f_f000.. => 0x7c00,
            0x3880_0000.. => rounded(magnitude - ((127 - 15) << 23), 13),
            // Below the least normal number: adding a number whose last bit is worth 2^-24 rounds to its multiples.
            _ => (f32::from_bits(magnitude) + 0.5).to_bits() - 0.5_f32.to_bits(),
        };
        Self(sign | rest as u16)
    }
}

impl Bf16 {
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }

    fn round(wide: f32) -> Self {
        let bits = wide.to_bits();
        Self(if wide.is_nan() { (bits >> 16) as u16 | 0x40 } else { rounded(bits, 16) as u16 })
    }
}

/// Drops the lowest bits and rounds to the nearest, of two to the even number. A carry out of the fraction correctly
/// increases the exponent.
fn rounded(bits: u32, dropped: u32) -> u32 {
    let half_less_one = (1 << (dropped - 1)) - 1;
    (bits + half_less_one + (bits >> dropped & 1)) >> dropped
}

macro_rules! numbers {
    ($($number:ident)*) => { $(
        impl Element for $number {
            const EXTENT: usize = 2;
            const ALIGN: usize = 2;

            #[inline]
            fn read(bytes: &[u8]) -> Self {
                Self(u16::read(bytes))
            }

            #[inline]
            fn write(self, bytes: &mut [u8]) {
                self.0.write(bytes);
            }
        }

        impl Arithmetic for $number {
            #[inline]
            fn plus(self, other: Self) -> Self {
                Self::round(self.widen() + other.widen())
            }

            #[inline]
            fn minus(self, other: Self) -> Self {
                Self::round(self.widen() - other.widen())
            }

            #[inline]
            fn times(self, other: Self) -> Self {
                Self::round(self.widen() * other.widen())
            }
        }

        impl PartialEq for $number {
            #[inline]
            fn eq(&self, other: &Self) -> bool {
                self.widen() == other.widen()
            }
        }

        impl PartialOrd for $number {
            #[inline]
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                self.widen().partial_cmp(&other.widen())
            }
        }
    )* };
}

numbers!(F16 Bf16);

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares numbers by their bits; the payload of what is not a number does not matter.
    #[track_caller]
    fn same(one: u16, other: u16, is_nan: bool, what: impl std::fmt::Debug) {
        assert!(one == other || is_nan, "{what:?}: {one:#06x} is not {other:#06x}");
    }

    #[test]
    fn all_numbers_become_what_the_crate_half_says_and_come_back() {
        for bits in 0..=u16::MAX {
            let (narrow, judge) = (F16(bits), half::f16::from_bits(bits));
            assert!(narrow.widen() == judge.to_f32() || judge.is_nan() && narrow.widen().is_nan());
            same(F16::round(narrow.widen()).0, bits, judge.is_nan(), judge);

            let (narrow, judge) = (Bf16(bits), half::bf16::from_bits(bits));
            assert!(narrow.widen() == judge.to_f32() || judge.is_nan() && narrow.widen().is_nan());
            same(Bf16::round(narrow.widen()).0, bits, judge.is_nan(), judge);
        }
    }

    #[test]
    fn rounding_is_that_of_the_crate_half() {
        // Every number of 16 bits and both its neighbours, the ties between them, and what lies close to these.
        for bits in (0..=u16::MAX).map(u32::from) {
            let near = [F16(bits as u16).widen().to_bits(), bits << 16];
            let ties = [near[0].wrapping_add(1 << 12), near[1].wrapping_add(1 << 15)];
            for middle in near.into_iter().chain(ties) {
                for wide in [middle.wrapping_sub(1), middle, middle.wrapping_add(1)] {
                    let wide = f32::from_bits(wide);
                    let nan = wide.is_nan();
                    same(F16::round(wide).0, half::f16::from_f32(wide).to_bits(), nan, wide);
                    same(Bf16::round(wide).0, half::bf16::from_f32(wide).to_bits(), nan, wide);
                    assert!(!nan || F16::round(wide).widen().is_nan());
                    assert!(!nan || Bf16::round(wide).widen().is_nan());
                }
            }
        }
    }

    #[test]
    fn values_are_combined_and_compared_as_numbers() {
        let f16 = F16::round;
        assert_eq!(f16(1.5).plus(f16(2.25)), f16(3.75));
        assert_eq!(f16(1.5).minus(f16(2.25)), f16(-0.75));
        assert_eq!(f16(65504.0).times(f16(2.0)), f16(f32::INFINITY));
        assert!(f16(-1.0) < f16(0.5) && f16(0.0) == f16(-0.0));
        assert!(Bf16::round(f32::NAN).partial_cmp(&Bf16::round(1.0)).is_none());
    }
}
