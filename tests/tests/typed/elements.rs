//! Elements of messages: primitive numbers, plain structures, counts.

use std::fmt::Debug;

use mpj::{ANY_SOURCE, ANY_TAG, Datatype, Error, ErrorClass, Pod, Zeroable};

use super::unchecked;
use crate::job::{job, job_with};

/// Sends the elements and gets them back, with every kind of receive.
fn round_trip<T: Datatype + Debug + PartialEq>(elements: &[T]) {
    let elements = elements.to_vec();
    job(2, move |world| {
        if world.rank() == 0 {
            world.send(&elements, 1, 0).unwrap();
            let (back, status) = world.recv_vec::<T>(1, 1).unwrap();
            assert_eq!(back, elements);
            assert_eq!(status.bytes, size_of_val(&elements[..]));
        } else {
            let mut buffer = vec![T::zeroed(); elements.len()];
            let status = world.recv(&mut buffer, ANY_SOURCE, ANY_TAG).unwrap();
            assert_eq!(buffer, elements);
            assert_eq!(status.count::<T>().unwrap(), elements.len());
            world.send(&buffer, 0, 1).unwrap();
        }
    });
}

#[test]
fn every_primitive_number() {
    round_trip(&[u8::MIN, 7, u8::MAX]);
    round_trip(&[i8::MIN, -7, i8::MAX]);
    round_trip(&[u16::MIN, 7, u16::MAX]);
    round_trip(&[i16::MIN, -7, i16::MAX]);
    round_trip(&[u32::MIN, 7, u32::MAX]);
    round_trip(&[i32::MIN, -7, i32::MAX]);
    round_trip(&[u64::MIN, 7, u64::MAX]);
    round_trip(&[i64::MIN, -7, i64::MAX]);
    round_trip(&[u128::MIN, 7, u128::MAX]);
    round_trip(&[i128::MIN, -7, i128::MAX]);
    round_trip(&[usize::MIN, 7, usize::MAX]);
    round_trip(&[isize::MIN, -7, isize::MAX]);
    round_trip(&[f32::MIN, -0.0, f32::MIN_POSITIVE, f32::INFINITY]);
    round_trip(&[f64::MIN, -0.0, f64::EPSILON, f64::NEG_INFINITY]);
}

#[test]
fn bits_of_numbers_that_are_none() {
    let odd = f64::from_bits(0x7FF8_0000_DEAD_BEEF);
    job(2, move |world| {
        if world.rank() == 0 {
            world.send(&[odd], 1, 0).unwrap();
            return;
        }
        let mut value = [0.0f64];
        world.recv(&mut value, 0, 0).unwrap();
        assert_eq!(value[0].to_bits(), odd.to_bits());
    });
}

/// A structure with the derives that programs use.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[bytemuck(crate = "mpj::bytemuck")]
#[repr(C)]
struct Particle {
    position: [f64; 3],
    number: u32,
    charge: i16,
    flags: [u8; 2],
}

#[test]
fn derived_structures_and_arrays() {
    let particle = |number: u32| Particle {
        position: [f64::from(number), -1.5, 1e300],
        number,
        charge: -(number as i16),
        flags: [1, 255],
    };
    round_trip(&(0..1_000).map(particle).collect::<Vec<_>>());
    round_trip(&[[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    round_trip(&[[[1u8; 4]; 3]; 2]);
}

#[test]
fn many_elements() {
    round_trip(&(0..700_000).map(|index| f64::from(index) * 0.5).collect::<Vec<_>>());
}

#[test]
fn no_elements_of_any_type() {
    round_trip::<u8>(&[]);
    round_trip::<f64>(&[]);
    round_trip::<Particle>(&[]);
}

#[test]
fn elements_without_size() {
    job(2, |world| {
        if world.rank() == 0 {
            world.send(&[(); 9], 1, 0).unwrap();
            world.send(&[1u8], 1, 0).unwrap();
            return;
        }
        let (nothing, status) = world.recv_vec::<()>(0, 0).unwrap();
        assert_eq!((nothing.len(), status.bytes), (0, 0));
        let error = world.recv_vec::<()>(0, 0).unwrap_err();
        assert!(matches!(error, Error::Count { bytes: 1, size: 0, .. }), "{error}");
    });
}

/// A message is bytes: unless it is checked, the receiver may take them as other elements.
#[test]
fn other_elements_of_the_same_bytes() {
    job_with(&unchecked(), 2, |world| {
        if world.rank() == 0 {
            world.send(&[0x0102_0304u32, 0x0506_0708], 1, 0).unwrap();
            return;
        }
        let mut buffer = [0u64; 3];
        let status = world.recv(&mut buffer, 0, 0).unwrap();
        assert_eq!(status.count::<u64>().unwrap(), 1);
        assert_eq!(status.count::<u8>().unwrap(), 8);
        assert_eq!(buffer[0].to_ne_bytes()[..4], 0x0102_0304u32.to_ne_bytes());
        assert_eq!(buffer[1..], [0, 0], "behind the message");
    });
}

#[test]
fn bytes_that_are_no_whole_elements() {
    job(2, |world| {
        if world.rank() == 0 {
            for _ in 0..2 {
                world.send(&[1u8; 11], 1, 0).unwrap();
            }
            world.send(&[5u32], 1, 0).unwrap();
            return;
        }
        let error = world.recv_vec::<u32>(0, 0).unwrap_err();
        let said = "message of 11 bytes from rank 0 with tag 0 is not a whole number of elements of 4 \
                    bytes: sender and receiver use different types";
        assert_eq!(error.to_string(), said);
        assert_eq!(error.class(), ErrorClass::Truncate);
        let mut buffer = [0u32; 3];
        let status = world.recv(&mut buffer, 0, 0).unwrap();
        assert!(matches!(status.count::<u32>(), Err(Error::Count { bytes: 11, size: 4, .. })));
        // Both messages were consumed, and the connection works.
        let (five, _) = world.recv_vec::<u32>(0, 0).unwrap();
        assert_eq!(five, [5]);
    });
}

#[test]
fn lengths_that_the_receiver_does_not_know() {
    const LENGTHS: [usize; 6] = [0, 1, 100, 3_000, 40_000, 400_000];
    job(2, |world| {
        for (tag, len) in (0..).zip(LENGTHS) {
            if world.rank() == 0 {
                world.send(&vec![tag as u16; len], 1, tag).unwrap();
            } else {
                let (data, status) = world.recv_vec::<u16>(ANY_SOURCE, ANY_TAG).unwrap();
                assert_eq!((status.source, status.tag, status.bytes), (0, tag, 2 * len));
                assert_eq!(data, vec![tag as u16; len]);
            }
        }
    });
}
