//! Types of elements besides the primitive numbers: truth values, texts, arrays, and those of other crates.
//!
//! Every job runs under a watchdog.

use job::{job, job_with};
use mpj::tuning::Options;
use mpj::{Bool, Error, ErrorClass, Number, Op};

mod job;

/// Combines what each of three ranks makes, with as many elements that it goes in one short message, by the calls
/// without a schedule, or in pieces.
#[track_caller]
fn reduced<T: Number + PartialEq + std::fmt::Debug>(op: Op, of: fn(usize) -> T, expected: T) {
    for len in [1, 7, 300_000 / size_of::<T>()] {
        job(3, move |world| {
            let mut all = vec![of(world.rank()); len];
            world.all_reduce(&mut all, op).unwrap();
            assert!(all.iter().all(|one| *one == expected), "{op:?} of {len}: {:?}", all[0]);
            let mut first = vec![expected; if world.rank() == 1 { len } else { 0 }];
            world.reduce(&vec![of(world.rank()); len], &mut first, op, 1).unwrap();
            assert!(first.iter().all(|one| *one == expected), "{op:?} of {len}");
        });
    }
}

/// An operation that is not defined on the elements is refused by all ranks.
#[track_caller]
fn refused<T: Number>(op: Op, value: T) {
    job(2, move |world| {
        let error = world.all_reduce(&mut vec![value; 2], op).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Op, "{error}");
        world.barrier().unwrap();
    });
}

#[test]
fn truth_values_are_combined_by_logic_only() {
    reduced(Op::LogicalAnd, |rank| Bool::from(rank > 0), false.into());
    reduced(Op::LogicalAnd, |_| Bool::from(true), true.into());
    reduced(Op::LogicalOr, |rank| Bool::from(rank == 2), true.into());
    reduced(Op::LogicalXor, |_| Bool::from(true), true.into());
    reduced(Op::LogicalXor, |rank| Bool::from(rank > 0), false.into());
    refused(Op::Sum, Bool::from(true));
    refused(Op::BitAnd, Bool::from(true));
}

#[test]
fn any_byte_is_a_truth_value() {
    job(2, |world| {
        if world.rank() == 0 {
            world.send(&[0_u8, 1, 2, 255], 1, 0).unwrap();
            world.send(&true, 1, 1).unwrap();
        } else {
            let (got, status) = world.recv_vec::<Bool>(0, 0).unwrap();
            assert_eq!(
                (&got[..], status.bytes),
                (&[false, true, true, true].map(Bool::from)[..], 4)
            );
            let mut one = Bool::default();
            world.recv(&mut one, 0, 1).unwrap();
            assert!(one.get());
        }
    });
}

#[test]
fn a_text_arrives_as_it_was_sent_and_other_bytes_are_refused() {
    job(2, |world| {
        let long = "ß".repeat(100_000);
        if world.rank() == 0 {
            world.send("", 1, 0).unwrap();
            world.send(&long, 1, 0).unwrap();
            world.send(&long.as_bytes()[1..], 1, 7).unwrap();
            world.barrier().unwrap();
        } else {
            assert_eq!(world.recv_string(0, 0).unwrap().0, "");
            let (text, status) = world.recv_string(mpj::ANY_SOURCE, 0).unwrap();
            assert_eq!((text, status.bytes), (long, 200_000));
            let error = world.recv_string(0, mpj::ANY_TAG).unwrap_err();
            assert!(matches!(error, Error::Utf8 { source_rank: 0, tag: 7, bytes: 199_999, .. }));
            let text = error.to_string();
            assert!(text.contains("from rank 0 with tag 7") && text.contains("index 0"), "{text}");
            assert_eq!(error.class(), ErrorClass::Type);
            world.barrier().unwrap();
        }
    });
}

#[test]
fn arrays_are_combined_number_by_number() {
    reduced(Op::Sum, |rank| [rank as f64, 1.0, -2.0], [3.0, 3.0, -6.0]);
    reduced(Op::Max, |rank| [[rank, 7], [5, 2 - rank]], [[2, 7], [5, 2]]);
    reduced(Op::Product, |_| [u128::MAX, 1 << 100], [u128::MAX, 0]);
    reduced(Op::Min, |rank| [-(rank as i128) << 100], [-2 << 100]);
    reduced(
        Op::LogicalAnd,
        |rank| [Bool::from(rank > 0), true.into()],
        [false.into(), true.into()],
    );
    refused(Op::BitOr, [1.0_f32; 4]);
    let options = Options { checks: Some(true), ..Options::default() };
    job_with(&options, 3, |world| {
        // Elements on one rank that are numbers on another: the operands are the same.
        let mut sums = [[1.5_f32, 2.5]; 4];
        if world.rank() == 0 {
            world.all_reduce(&mut sums, Op::Sum).unwrap();
        } else {
            world.all_reduce(sums.as_flattened_mut(), Op::Sum).unwrap();
        }
        assert_eq!(sums, [[4.5, 7.5]; 4]);
        // Elements that do not lie together.
        let mut matrix = [[world.rank(), 1]; 6];
        world.all_reduce(&mut mpj::column_mut(&mut matrix, 2, 1).unwrap(), Op::Sum).unwrap();
        let me = world.rank();
        assert_eq!(matrix, [[me, 1], [3, 3], [me, 1], [3, 3], [me, 1], [3, 3]]);
    });
}

#[test]
fn truth_values_and_arrays_are_fields_of_structures() {
    #[derive(Debug, Clone, Copy, PartialEq, mpj::Datatype)]
    struct Flagged {
        is_set: Bool,
        number: u128,
        flags: [Bool; 3],
    }
    job(2, |world| {
        let flags = [true, false, true].map(Bool::from);
        let sent = [Flagged { is_set: true.into(), number: u128::MAX, flags }; 2];
        if world.rank() == 0 {
            world.send(&sent, 1, 0).unwrap();
        } else {
            let (got, status) = world.recv_vec::<Flagged>(0, 0).unwrap();
            assert_eq!((&got[..], status.bytes), (&sent[..], 40));
        }
    });
}

#[cfg(feature = "num-complex")]
#[test]
fn complex_numbers_have_sums_and_products_but_no_order() {
    use num_complex::{Complex32, Complex64};
    reduced(Op::Sum, |rank| Complex64::new(rank as f64, -1.0), Complex64::new(3.0, -3.0));
    reduced(Op::Product, |_| Complex32::new(0.0, 1.0), Complex32::new(0.0, -1.0));
    reduced(Op::Sum, |_| [Complex32::new(0.5, 1.0); 3], [Complex32::new(1.5, 3.0); 3]);
    refused(Op::Max, Complex64::new(1.0, 0.0));
    job(2, |world| {
        let (mine, mut theirs) = (Complex64::new(world.rank() as f64, 0.5), Complex64::default());
        let other = 1 - world.rank();
        world.sendrecv(&mine, other, 0, &mut theirs, other, 0).unwrap();
        assert_eq!(theirs, Complex64::new(other as f64, 0.5));
    });
    use mpj::Datatype;
    assert_eq!(Complex32::datatype().unwrap().to_string(), "float complex");
}

#[cfg(feature = "half")]
#[test]
fn numbers_of_16_bits_are_rounded_after_every_operation() {
    use half::{bf16, f16};
    reduced(Op::Sum, |rank| f16::from_f32(rank as f32 + 0.25), f16::from_f32(3.75));
    reduced(Op::Max, |rank| bf16::from_f32(-(rank as f32)), bf16::from_f32(0.0));
    reduced(Op::Product, |_| [bf16::from_f32(4.0); 5], [bf16::from_f32(64.0); 5]);
    // 2048 and 1 have no sum among numbers with 11 bits.
    reduced(Op::Sum, |rank| f16::from_f32([2048.0, 1.0, 0.0][rank]), f16::from_f32(2048.0));
    refused(Op::BitXor, f16::ONE);
}
