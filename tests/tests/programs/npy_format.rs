//! `matmul`'s reader of `.npy` files, on valid, damaged and arbitrary files.

use proptest::prelude::*;

use mpj::bytemuck;
use npy::{Dtype, Header, NpyError, Scalar};

#[path = "../../../mpj/examples/matmul/literal.rs"]
mod literal;
#[path = "../../../mpj/examples/matmul/npy.rs"]
pub mod npy;

/// A file with the given header text and payload.
fn file(major: u8, text: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x93, b'N', b'U', b'M', b'P', b'Y', major, 0];
    match major {
        2 => bytes.extend((text.len() as u32).to_le_bytes()),
        _ => bytes.extend((text.len() as u16).to_le_bytes()),
    }
    bytes.extend(text.as_bytes());
    bytes.extend(payload);
    bytes
}

fn header(mut bytes: &[u8]) -> Result<Header, NpyError> {
    let length = bytes.len() as u64;
    npy::read_header(&mut bytes, length)
}

fn read<T: Scalar>(mut bytes: &[u8]) -> (Header, Vec<T>) {
    let length = bytes.len() as u64;
    let header = npy::read_header(&mut bytes, length).expect("a valid header");
    let values = npy::read_values(&mut bytes, &header).expect("as many values as the header says");
    assert!(bytes.is_empty(), "nothing follows the values");
    (header, values)
}

/// The error that a header text leads to.
fn refused(text: &str) -> NpyError {
    header(&file(1, text, &[])).expect_err(text)
}

fn written<T: Scalar>(shape: &[usize], values: &[T]) -> Vec<u8> {
    let mut bytes = Vec::new();
    npy::write(&mut bytes, shape, values).expect("a vector takes all bytes");
    bytes
}

#[test]
fn reads_headers_in_every_spelling() {
    let expected = Header { dtype: Dtype::F32, fortran_order: true, shape: vec![1, 2] };
    for text in [
        "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2), }  \n",
        "{'shape':(1,2,),'fortran_order':True,'descr':\"<f4\"}",
        "  { 'fortran_order' : True , 'shape' : ( 1 , 2 ) , 'descr' : '<f4' , } \n\n",
    ] {
        for major in [1, 2] {
            assert_eq!(header(&file(major, text, &[0; 8])).expect(text), expected);
        }
    }
    let shapes = [("()", vec![], 8), ("(3,)", vec![3], 24), ("(0, 5)", vec![0, 5], 0)];
    for (shape, expected, bytes) in shapes {
        let text = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}");
        assert_eq!(header(&file(1, &text, &vec![0; bytes])).expect(shape).shape, expected);
    }
}

#[test]
fn writes_what_numpy_writes() {
    let bytes = written(&[2, 1], &[1.0_f64, -2.0]);
    let text = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1), }";
    assert_eq!(bytes[..10], *b"\x93NUMPY\x01\0\x76\0");
    assert_eq!(bytes[10..128], *format!("{text:<117}\n").as_bytes());
    assert_eq!(bytes[128..136], 1.0_f64.to_le_bytes());
    assert_eq!(bytes[136..], (-2.0_f64).to_le_bytes());
    for (shape, spelled) in [(vec![], "()"), (vec![0], "(0,)"), (vec![1, 0, 4], "(1, 0, 4)")] {
        let values = vec![0.0_f32; shape.iter().product()];
        let text = String::from_utf8_lossy(&written(&shape, &values)).into_owned();
        assert!(text.contains(&format!("'shape': {spelled}, }}")), "{text}");
    }
}

#[test]
fn names_what_is_wrong_with_the_frame() {
    let text = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }";
    let sound = file(1, text, &[0; 32]);
    for length in 0..10 {
        let error = header(&sound[..length]).expect_err("too short");
        assert!(matches!(error, NpyError::NotNpy), "{length}: {error}");
    }
    let error = header(b"\x94NUMPY\x01\0\0\0").expect_err("wrong magic");
    assert!(matches!(error, NpyError::NotNpy), "{error}");
    let error = header(&file(3, text, &[0; 32])).expect_err("wrong version");
    assert!(matches!(error, NpyError::Version { major: 3, minor: 0 }), "{error}");
    let error = header(&sound[..20]).expect_err("header cut off");
    assert!(matches!(error, NpyError::HeaderTruncated { stated: 59, found: 10 }), "{error}");
    let mut long = file(2, text, &[]);
    long[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    let error = header(&long).expect_err("header of 4 GiB");
    assert!(matches!(error, NpyError::HeaderTooLong { stated: 0xffff_ffff }), "{error}");
    for found in [sound.len() - 1, sound.len() + 1] {
        let error = npy::read_header(&mut &sound[..], found as u64).expect_err("wrong length");
        let expected = sound.len() as u64;
        let as_stated = matches!(error, NpyError::Length { expected: e, found: f }
            if e == expected && f == found as u64);
        assert!(as_stated, "{error}");
    }
}

#[test]
fn names_what_is_wrong_with_the_header() {
    let syntax = [
        ("", "'{'"),
        ("[]", "'{'"),
        ("{", "a quoted string"),
        ("{}x", "nothing but spaces after '}'"),
        ("{'descr", "the closing quote"),
        ("{'de\\x", "the closing quote"),
        ("{'descr' '<f8'}", "':'"),
        ("{'descr': f8}", "a quoted string"),
        ("{'descr': '<f8' 'shape': ()}", "',' or '}'"),
        ("{'fortran_order': Truely}", "True or False"),
        ("{'fortran_order': 1}", "True or False"),
        ("{'shape': 5}", "'('"),
        ("{'shape': (5)}", "','"),
        ("{'shape': (5, 6; 7)}", "',' or ')'"),
        ("{'shape': (-5,)}", "an extent between 0 and 2^64"),
        ("{'shape': (,)}", "an extent between 0 and 2^64"),
        ("{'shape': (18446744073709551616,)}", "an extent between 0 and 2^64"),
    ];
    for (text, expected) in syntax {
        match refused(text) {
            NpyError::Syntax { expected: found, .. } => assert_eq!(found, expected, "{text}"),
            error => panic!("{text}: {error}"),
        }
    }
    let named = [
        ("{'colour': 1}", "header has key 'colour': expected 'descr', 'fortran_order' and 'shape'"),
        ("{'descr': '<f8', 'descr': '<f8'}", "header has key 'descr' twice: expected it once"),
        ("{'descr': '<f8', 'shape': ()}", "header lacks key 'fortran_order': expected 'descr', "),
        ("{'descr': '<c16'}", "values of type '<c16': expected '<f4' or '<f8'"),
        ("{'descr': [('x', '<f8')]}", "values of type 'structured': expected '<f4' or '<f8'"),
    ];
    for (text, message) in named {
        let error = refused(text).to_string();
        assert!(error.starts_with(message), "{text}: {error}");
    }
    // An extent of 0 does not excuse the others.
    for shape in ["(4294967296, 4294967296)", "(18446744073709551615, 0)"] {
        let text = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}");
        assert!(matches!(refused(&text), NpyError::ShapeOverflow(_)), "{shape}");
    }
}

proptest! {
    #[test]
    fn gives_back_what_was_written(
        shape in proptest::collection::vec(0_usize..5, 0..5),
        seed in any::<u64>(),
    ) {
        // Every bit pattern, NaNs and infinities included, has to survive.
        let count: usize = shape.iter().product();
        let bits = (0..count as u64).map(|index| seed.rotate_left(index as u32 % 64) ^ index);
        let wide: Vec<f64> = bits.clone().map(f64::from_bits).collect();
        let narrow: Vec<f32> = bits.map(|bits| f32::from_bits(bits as u32)).collect();

        let (header, values) = read::<f64>(&written(&shape, &wide));
        prop_assert_eq!((header.dtype, header.fortran_order, &header.shape), (Dtype::F64, false, &shape));
        prop_assert_eq!(bytemuck::cast_slice::<_, u8>(&values), bytemuck::cast_slice::<_, u8>(&wide));
        let (header, values) = read::<f32>(&written(&shape, &narrow));
        prop_assert_eq!((header.dtype, header.fortran_order, &header.shape), (Dtype::F32, false, &shape));
        prop_assert_eq!(bytemuck::cast_slice::<_, u8>(&values), bytemuck::cast_slice::<_, u8>(&narrow));
    }

    #[test]
    fn survives_arbitrary_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(header(&bytes).is_err());
        for major in [1, 2] {
            let mut framed = file(major, "", &[]);
            let length = bytes.len() as u8;
            framed[8] = length;
            framed.extend(&bytes);
            prop_assert!(header(&framed).is_err());
        }
    }

    #[test]
    fn survives_arbitrary_headers(text in "[{}()'\":, \nTrueFalsdcshpotn_0-9<f8]{0,80}") {
        // Almost nothing of this is valid; valid files have to be read to their end.
        if let Ok(header) = header(&file(1, &text, &[])) {
            prop_assert!(header.shape.contains(&0));
        }
    }

    #[test]
    fn notices_a_changed_header(at in 0_usize..128, byte in any::<u8>()) {
        let sound = written(&[3, 4], &[0.5_f64; 12]);
        let mut bytes = sound.clone();
        bytes[at] = byte;
        if let Ok(found) = header(&bytes) {
            // An accepted change concerns the spelling, the order, or the shape, whose size stays the same.
            let count: usize = found.shape.iter().product();
            prop_assert_eq!(count * if found.dtype == Dtype::F64 { 8 } else { 4 }, 96);
        }
    }
}
