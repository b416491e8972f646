//! Tests of datatypes: the examples of MPI-4.1 chapter 5, every refusal, and type maps written out in full as
//! oracles.

use super::*;
use crate::op::ElementKind;

mod arrays;
mod contents;
mod nested;

fn int() -> Datatype {
    Datatype::predefined(ElementKind::I32)
}

fn double() -> Datatype {
    Datatype::predefined(ElementKind::F64)
}

fn character() -> Datatype {
    Datatype::predefined(Basic::Char)
}

/// Makes the datatype `{(double, 0), (char, 8)}`.
fn record() -> Datatype {
    Datatype::create_struct(&[1, 1], &[0, 8], &[double(), character()]).unwrap()
}

/// Returns the displacement of every byte of an element, in order.
fn places(datatype: &Datatype) -> Vec<isize> {
    let (low, extent) = (datatype.true_lower_bound(), datatype.true_extent().unsigned_abs());
    let mut low_bytes = vec![0; datatype.size()];
    let mut high_bytes = low_bytes.clone();
    let numbers = |shift: usize| (0..extent).map(|i| (i >> shift) as u8).collect::<Vec<_>>();
    datatype.pack(&numbers(0), -low, 1, &mut low_bytes, &mut 0).unwrap();
    datatype.pack(&numbers(8), -low, 1, &mut high_bytes, &mut 0).unwrap();
    let both = low_bytes.iter().zip(&high_bytes);
    both.map(|(one, other)| low + isize::from(*one) + (isize::from(*other) << 8)).collect()
}

/// Returns the displacement of every element of `size` bytes, in elements of that size.
fn elements(datatype: &Datatype, size: isize) -> Vec<isize> {
    places(datatype).chunks_exact(size as usize).map(|bytes| bytes[0] / size).collect()
}

#[test]
fn predefined_datatypes_are_their_kinds() {
    for kind in ElementKind::ALL {
        let datatype = Datatype::predefined(kind);
        let expected = (kind.size(), 0, kind.extent() as isize, kind.align());
        let (size, low, extent) = (datatype.size(), datatype.lower_bound(), datatype.extent());
        assert_eq!((size, low, extent, datatype.align()), expected, "{kind}");
        assert_eq!(datatype.signature().size(), kind.size() as u64, "{kind}");
        assert_eq!(datatype.to_string(), kind.name());
    }
    assert_eq!(places(&Datatype::predefined(ElementKind::ShortInt)), [0, 1, 4, 5, 6, 7]);
}

/// Examples 5.1 to 5.7.
#[test]
fn the_constructors_examples() {
    let record = record();
    assert_eq!((record.size(), record.lower_bound(), record.extent()), (9, 0, 16));
    assert_eq!((record.true_lower_bound(), record.true_extent()), (0, 9));

    let three = Datatype::contiguous(3, &record).unwrap();
    assert_eq!(elements(&three, 1)[9..11], [16, 17]);
    assert_eq!((three.size(), three.extent()), (27, 48));
    assert_eq!(three.signature().to_string(), "3 times [1 double, 1 char]");

    let vector = Datatype::vector(2, 3, 4, &record).unwrap();
    let starts: Vec<_> = places(&vector).chunks_exact(9).map(|bytes| bytes[0]).collect();
    assert_eq!(starts, [0, 16, 32, 64, 80, 96]);
    let vector = Datatype::vector(3, 1, -2, &record).unwrap();
    let starts: Vec<_> = places(&vector).chunks_exact(9).map(|bytes| bytes[0]).collect();
    assert_eq!((starts, vector.lower_bound(), vector.extent()), (vec![0, -32, -64], -64, 80));

    let indexed = Datatype::indexed(&[3, 1], &[4, 0], &record).unwrap();
    let starts: Vec<_> = places(&indexed).chunks_exact(9).map(|bytes| bytes[0]).collect();
    assert_eq!(starts, [64, 80, 96, 0]);

    let float = Datatype::predefined(ElementKind::F32);
    let types = [float, record, character()];
    let mixed = Datatype::create_struct(&[2, 1, 3], &[0, 16, 26], &types).unwrap();
    let expected = (0..8).chain(16..25).chain(26..29).collect::<Vec<_>>();
    assert_eq!((places(&mixed), mixed.extent()), (expected, 32));
    assert_eq!(mixed.signature().to_string(), "[2 float, [1 double, 1 char], 3 char]");
}

#[test]
fn markers_decide_bounds_and_are_inherited() {
    let resized = int().resized(-3, 9).unwrap();
    assert_eq!((resized.lower_bound(), resized.extent()), (-3, 9));
    assert_eq!((resized.true_lower_bound(), resized.true_extent()), (0, 4));
    let two = Datatype::contiguous(2, &resized).unwrap();
    assert_eq!((two.lower_bound(), two.extent(), places(&two)[4]), (-3, 18, 9));
    let beside = Datatype::create_struct(&[1, 1], &[0, 40], &[two, int()]).unwrap();
    assert_eq!((beside.lower_bound(), beside.extent()), (-3, 18), "markers alone decide");
    assert_eq!(beside.true_extent(), 44);
    let back = beside.resized(0, -8).unwrap();
    assert_eq!((back.extent(), back.layout(2).unwrap().bounds()), (-8, (-8, 44)));
}

#[test]
fn empty_datatypes_are_legal() {
    let empty = Datatype::create_struct(&[], &[], &[]).unwrap();
    assert_eq!((empty.size(), empty.extent(), empty.true_extent()), (0, 0, 0));
    let none = Datatype::indexed(&[0, 0], &[i64::MAX, 5], &double()).unwrap();
    assert_eq!((none.size(), none.extent(), none.signature().elements()), (0, 0, 0));
    let hole = none.resized(4, 8).unwrap();
    assert_eq!((hole.lower_bound(), hole.extent()), (4, 8));
    let behind = Datatype::create_struct(&[1, 1], &[8, 0], &[hole, character()]).unwrap();
    assert_eq!((behind.lower_bound(), behind.extent(), behind.align()), (12, 8, 1));
    assert_eq!(Datatype::vector(0, 5, i64::MAX, &int()).unwrap().size(), 0);
    let mut position = 3;
    empty.pack(&[], 9, 100, &mut [0; 3], &mut position).unwrap();
    assert_eq!((position, empty.is_contiguous(7)), (3, true));
}

#[test]
fn spans_are_found() {
    let row = Datatype::contiguous(4, &int()).unwrap();
    assert_eq!(row.span(3), Some((0, 48)));
    assert_eq!((record().span(1), record().span(2)), (Some((0, 9)), None));
    let wide = int().resized(0, 8).unwrap();
    assert_eq!((wide.span(1), wide.span(2)), (Some((0, 4)), None));
    let moved = Datatype::hindexed(&[2], &[12], &int()).unwrap();
    assert_eq!((moved.span(1), moved.span(0), moved.span(-1)), (Some((12, 8)), Some((0, 0)), None));
}

#[test]
fn signatures_match_as_messages_may() {
    let signature = |datatype: &Datatype, count| datatype.signature().repeat(count);
    let records = Datatype::contiguous(1_000_000_000, &record()).unwrap();
    assert_eq!(signature(&records, 3), signature(&record(), 3_000_000_000));
    assert!(signature(&record(), 2_999_999_999).is_received_by(&signature(&records, 3)));
    assert!(!signature(&records, 3).is_received_by(&signature(&record(), 2_999_999_999)));
    let part = Datatype::create_struct(&[1, 1, 1], &[0, 8, 16], &[double(), character(), double()]);
    assert!(part.as_ref().unwrap().signature().is_received_by(records.signature()));
    assert_ne!(double().signature(), int().signature());
    assert!(!signature(&int(), 2).is_received_by(&signature(&double(), 2)));
    let long = Datatype::predefined(Basic::Long);
    assert_eq!(long.signature(), Datatype::predefined(ElementKind::I64).signature());
    let packed = Datatype::predefined(Basic::Packed);
    assert!(record().signature().is_received_by(&signature(&packed, 9)));
    assert!(!record().signature().is_received_by(&signature(&packed, 8)));
}

#[test]
fn elements_are_counted_in_bytes() {
    let records = record().signature().repeat(3);
    let counts: Vec<_> = [0, 8, 9, 17, 27].map(|bytes| records.elements_in(bytes)).into();
    assert_eq!(counts, [Some(0), Some(1), Some(2), Some(3), Some(6)]);
    assert_eq!((records.elements_in(4), records.elements_in(28)), (None, None));
}

#[test]
fn wrong_arguments_are_named() {
    use crate::ErrorClass as Class;
    let refused = |result: Result<Datatype, _>, class, says: &str| {
        let error: DatatypeError = result.unwrap_err();
        assert_eq!((error.class(), error.to_string().as_str()), (class, says));
    };
    refused(Datatype::contiguous(-1, &int()), Class::Count, "count is -1; give 0 or more");
    let result = Datatype::vector(1, -2, 1, &int());
    refused(result, Class::Arg, "blocklength is -2; give 0 or more");
    let result = Datatype::indexed(&[1, 2], &[0], &int());
    let says = "array_of_displacements has 1 entries; give 2, as many as in array_of_blocklengths";
    refused(result, Class::Arg, says);
    let result = Datatype::hindexed(&[1, -1], &[0, 0], &int());
    let says = "array_of_blocklengths[1] is -1; give 0 to 9223372036854775807";
    refused(result, Class::Arg, says);
    let result = Datatype::contiguous(i64::MAX, &int());
    refused(result, Class::Count, "the layout is larger than memory can be");
    let result = int().resized(isize::MAX, 1);
    refused(result, Class::Count, "the layout is larger than memory can be");
    let mut nested = int();
    for _ in 1..Datatype::MAX_DEPTH {
        nested = nested.dup().unwrap();
    }
    refused(
        nested.dup(),
        Class::Type,
        "the datatype is made of datatypes in more than 1024 levels",
    );
}

#[test]
fn packing_says_what_does_not_fit() {
    use crate::ErrorClass as Class;
    let (memory, mut packed, mut position) = ([7; 16], [0; 10], 2);
    let mut pack = |count, position: &mut usize| {
        record().pack(&memory, 0, count, &mut packed, position).unwrap_err()
    };
    let error = pack(1, &mut position);
    assert_eq!(error, DatatypeError::NoRoom { position: 2, left: 8, needed: 9 });
    assert_eq!((error.class(), position), (Class::Truncate, 2));
    assert_eq!(pack(1, &mut 11), DatatypeError::Position { position: 11, len: 10 });
    assert_eq!(pack(-1, &mut 0).class(), Class::Count);
    let error = record().pack(&memory, 8, 1, &mut packed, &mut 0).unwrap_err();
    assert_eq!(error.class(), Class::Buffer);
    let twice = Datatype::indexed(&[1, 1], &[0, 0], &int()).unwrap();
    let error = twice.unpack(&[0; 8], &mut 0, &mut [0; 8], 0, 1).unwrap_err();
    assert_eq!(error.class(), Class::Type);
}
