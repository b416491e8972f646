//! Values in `external32`, byte by byte.

use super::*;
use crate::ErrorClass;

fn packed(basic: impl Into<Basic>, native: &[u8]) -> Result<Vec<u8>, DatatypeError> {
    let datatype = Datatype::predefined(basic);
    let mut packed = vec![0; datatype.pack_external_size(1)?];
    datatype.pack_external(native, 0, 1, &mut packed, &mut 0)?;
    let mut back = vec![0; native.len()];
    datatype.unpack_external(&packed, &mut 0, &mut back, 0, 1)?;
    assert_eq!(back, native);
    Ok(packed)
}

#[test]
fn numbers_are_big_endian() {
    assert_eq!(packed(ElementKind::I16, &(-2_i16).to_ne_bytes()).unwrap(), [0xff, 0xfe]);
    assert_eq!(packed(ElementKind::F64, &1.5_f64.to_ne_bytes()).unwrap(), 1.5_f64.to_be_bytes());
    let complex = [1_f32.to_ne_bytes(), 2_f32.to_ne_bytes()].concat();
    let expected = [1_f32.to_be_bytes(), 2_f32.to_be_bytes()].concat();
    assert_eq!(packed(ElementKind::ComplexF32, &complex).unwrap(), expected);
    assert_eq!(packed(Basic::Char, b"x").unwrap(), b"x");
}

#[test]
fn long_and_wide_characters_are_shorter() {
    assert_eq!(packed(Basic::Long, &(-3_i64).to_ne_bytes()).unwrap(), (-3_i32).to_be_bytes());
    assert_eq!(packed(Basic::UnsignedLong, &7_u64.to_ne_bytes()).unwrap(), 7_u32.to_be_bytes());
    assert_eq!(packed(Basic::WideChar, &0xe9_u32.to_ne_bytes()).unwrap(), [0, 0xe9]);
    let error = packed(Basic::Long, &(1_i64 << 31).to_ne_bytes()).unwrap_err();
    assert_eq!(error, DatatypeError::Conversion { basic: Basic::Long, bytes: 4 });
    assert_eq!(error.class(), ErrorClass::Conversion);
}

/// A number of the x87 unit.
fn x87(top: u16, mantissa: u64) -> [u8; 16] {
    let mut native = [0; 16];
    native[..8].copy_from_slice(&mantissa.to_le_bytes());
    native[8..10].copy_from_slice(&top.to_le_bytes());
    native
}

#[test]
fn long_double_becomes_an_ieee_number_of_128_bits() {
    let one = x87(0x3fff, 1 << 63);
    assert_eq!(packed(ElementKind::LongDouble, &one).unwrap(), (0x3fff_u128 << 112).to_be_bytes());
    let numbers = [
        (x87(0xbfff, 3 << 62), 0xbfff_8000_u128 << 96),
        (x87(0, 0), 0),
        (x87(0x7fff, 1 << 63), 0x7fff << 112),
        (x87(0, 1), 1 << 49),
        (x87(0x7ffe, u64::MAX), (0x7ffe_u128 << 112) | (((1_u128 << 63) - 1) << 49)),
    ];
    for (native, expected) in numbers {
        assert_eq!((quad(native), extended(expected)), (expected, native), "{expected:#x}");
    }
    assert_eq!(quad(x87(0, 1 << 63)), 1 << 112, "a number in the form of a subnormal one");
    assert_eq!(quad(x87(5, 1)) >> 111, 0xffff, "no number for the unit, so none at all");
}

#[test]
fn long_double_is_rounded_to_the_nearest() {
    let one = 0x3fff_u128 << 112;
    let half = 1_u128 << 48;
    assert_eq!(extended(one | half), x87(0x3fff, 1 << 63), "half way, to the even one");
    assert_eq!(extended(one | half | 1), x87(0x3fff, (1 << 63) | 1));
    assert_eq!(extended(one | (3 * half)), x87(0x3fff, (1 << 63) | 2));
    let greatest = (0x7fff_u128 << 112) - 1;
    assert_eq!(extended(greatest), x87(0x7fff, 1 << 63), "infinite");
    let not_a_number = extended((0x7fff << 112) | 1);
    assert_eq!(not_a_number, x87(0x7fff, 3 << 62));
    let subnormal = (1_u128 << 112) - 1;
    assert_eq!(extended(subnormal), x87(1, 1 << 63), "rounded up to a normal number");
}

#[test]
fn long_runs_are_converted_in_parts() {
    let numbers = Datatype::contiguous(3000, &Datatype::predefined(ElementKind::I32)).unwrap();
    let memory: Vec<_> = (0..6000_i32).flat_map(i32::to_ne_bytes).collect();
    let expected: Vec<_> = (0..6000_i32).flat_map(i32::to_be_bytes).collect();
    let (mut packed, mut position) = (vec![0; memory.len()], 0);
    numbers.pack_external(&memory, 0, 2, &mut packed, &mut position).unwrap();
    assert_eq!((&packed, position), (&expected, 24_000));
    let mut back = vec![0; memory.len()];
    numbers.unpack_external(&packed, &mut 0, &mut back, 0, 2).unwrap();
    assert_eq!(back, memory);
}

#[test]
fn fortran_types_that_are_not_computed_with_reverse_their_parts() {
    let bytes: Vec<u8> = (0..32).collect();
    let reversed = |range: std::ops::Range<u8>| range.rev().collect::<Vec<u8>>();
    let two = |half: u8| [reversed(0..half), reversed(half..2 * half)].concat();
    assert_eq!(packed(Basic::Real16, &bytes[..16]).unwrap(), reversed(0..16));
    assert_eq!(packed(Basic::Logical16, &bytes[..16]).unwrap(), reversed(0..16));
    assert_eq!(packed(Basic::Complex4, &bytes[..4]).unwrap(), two(2));
    assert_eq!(packed(Basic::Complex32, &bytes).unwrap(), two(16));
    assert_eq!(
        (Basic::Complex32.align(), Basic::Complex4.align(), Basic::Long.align()),
        (16, 2, 8)
    );
}

#[test]
fn packed_elements_are_converted_like_elements_in_memory() {
    let int = Datatype::predefined(ElementKind::I32);
    let every_second = Datatype::vector(2, 1, 2, &int).unwrap();
    let memory: Vec<u8> = (0..12).collect();
    let (mut native, mut direct, mut by_packed) = ([0; 8], [0; 9], [0; 9]);
    every_second.pack(&memory, 0, 1, &mut native, &mut 0).unwrap();
    let (mut one, mut other) = (1, 1);
    every_second.pack_external(&memory, 0, 1, &mut direct, &mut one).unwrap();
    every_second.packed_to_external(&native, 1, &mut by_packed, &mut other).unwrap();
    assert_eq!((direct, one), (by_packed, other));
    let mut back = [0; 8];
    every_second.external_to_packed(&direct, &mut 1, &mut back, 1).unwrap();
    assert_eq!(back, native);
    let short = every_second.packed_to_external(&native, 1, &mut [0; 7], &mut 0);
    assert_eq!(short.unwrap_err().class(), ErrorClass::Truncate);
}
