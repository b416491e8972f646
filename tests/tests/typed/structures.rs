//! Structures with padding, by a derive that needs no unsafe code of its user.

#![forbid(unsafe_code)]

use mpj::{Datatype, column, column_mut};

use crate::job::job;

/// 5 bytes of fields, and 3 bytes of padding behind the first field.
#[derive(Debug, Clone, Copy, PartialEq, Datatype)]
#[repr(C)]
struct Padded {
    kind: u8,
    number: u32,
}

/// A structure of no particular representation that contains structures and arrays of them.
#[derive(Debug, Clone, Copy, PartialEq, Datatype)]
struct Nested<T, const N: usize> {
    first: u8,
    value: T,
    parts: [[Padded; 2]; N],
    last: (),
}

/// A structure without padding.
#[derive(Debug, Clone, Copy, PartialEq, Datatype)]
struct Whole(u32, [f32; 2], u32);

#[derive(Debug, Clone, Copy, PartialEq, Datatype)]
#[repr(C, packed)]
struct Packed {
    kind: u8,
    number: u64,
}

fn padded(number: u32) -> Padded {
    Padded { kind: number as u8, number }
}

fn nested(number: u32) -> Nested<f64, 2> {
    let parts = [[padded(number), padded(2)], [padded(3), padded(number + 1)]];
    Nested { first: 7, value: f64::from(number), parts, last: () }
}

#[test]
fn fields_arrive_and_padding_stays_at_home() {
    assert_eq!((Padded::SIZE, size_of::<Padded>()), (5, 8));
    assert_eq!(Nested::<f64, 2>::SIZE, 29);
    assert_eq!((Whole::SIZE, Packed::SIZE), (16, 9));
    for len in [0, 1, 3, 5_000] {
        job(2, move |world| {
            let data: Vec<_> = (0..).take(len).map(padded).collect();
            let deep: Vec<_> = (0..).take(len).map(nested).collect();
            let whole = vec![Whole(1, [2.0, 3.0], 4); len];
            let packed = vec![Packed { kind: 1, number: 2 }; len];
            if world.rank() == 0 {
                world.send(&data, 1, 0).unwrap();
                world.send(&deep, 1, 0).unwrap();
                world.send(&whole, 1, 0).unwrap();
                world.isend(packed, 1, 0).unwrap().wait().unwrap();
                return;
            }
            let mut got = vec![padded(99); len];
            let status = world.recv(&mut got, 0, 0).unwrap();
            assert_eq!((status.bytes, status.count::<Padded>().unwrap()), (5 * len, len));
            assert_eq!(got, data);
            let (got, status) = world.recv_vec::<Nested<f64, 2>>(0, 0).unwrap();
            assert_eq!((got, status.bytes), (deep, 29 * len));
            let (got, status) =
                world.irecv(vec![Whole(0, [0.0; 2], 0); len], 0, 0).unwrap().wait().unwrap();
            assert_eq!((got, status.bytes), (whole, 16 * len));
            assert_eq!(world.recv_vec::<Packed>(0, 0).unwrap().0, packed);
        });
    }
}

/// A message of structures has their fields one behind the other; a receive changes nothing else in memory.
#[test]
fn padding_is_left_alone() {
    let two = Padded::datatype().unwrap().layout(2).unwrap();
    let mut memory = [0xEE; 16];
    assert_eq!(two.unpack(&[1, 2, 0, 0, 0, 3, 4, 0, 0, 0], 0, &mut memory, 0), Ok(10));
    let one = |kind, number| [kind, 0xEE, 0xEE, 0xEE, number, 0, 0, 0];
    assert_eq!(memory[..8], one(1, 2));
    assert_eq!(memory[8..], one(3, 4));
    job(2, |world| {
        if world.rank() == 0 {
            return world.send(&[Padded { kind: 1, number: u32::MAX }], 1, 0).unwrap();
        }
        assert_eq!(world.recv_vec::<u8>(0, 0).unwrap().0, [1, 255, 255, 255, 255]);
    });
}

#[test]
fn bounds_are_those_of_the_type() {
    for (datatype, size, extent) in [
        (Padded::datatype(), 5, size_of::<Padded>()),
        (Nested::<u16, 3>::datatype(), 1 + 2 + 30, size_of::<Nested<u16, 3>>()),
        (Whole::datatype(), 16, 16),
        (Packed::datatype(), 9, 9),
        (<[u16; 3]>::datatype(), 6, 6),
    ] {
        let datatype = datatype.unwrap();
        assert_eq!((datatype.size(), datatype.lower_bound()), (size, 0), "{datatype}");
        assert_eq!(datatype.extent(), extent as isize, "{datatype}");
    }
    assert!(Whole::datatype().unwrap().is_contiguous(3), "in the order of memory");
}

#[test]
fn columns_of_structures() {
    job(2, |world| {
        let mut matrix: Vec<_> = (0..12).map(padded).collect();
        if world.rank() == 0 {
            return world.send(&column(&matrix, 3, 2).unwrap(), 1, 0).unwrap();
        }
        world.recv(&mut column_mut(&mut matrix, 3, 0).unwrap(), 0, 0).unwrap();
        let numbers: Vec<_> = matrix.iter().map(|one| one.number).collect();
        assert_eq!(numbers, [2, 1, 2, 5, 4, 5, 8, 7, 8, 11, 10, 11]);
    });
}
