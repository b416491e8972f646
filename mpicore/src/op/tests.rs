//! Tests of operations: which are legal, what is refused, operand order, padding. `values.rs` compares results with
//! naive ones.

use std::sync::{Arc, Mutex};

use super::kernels::kernel;
use super::{Class, ElementKind, Op, OpError, Predefined, UserOp, reduce_local};
use crate::ErrorClass;

mod values;

/// A byte that no operation may change.
const GUARD: u8 = 0xA5;

/// Places `bytes` at this distance from a multiple of 16. Returns the memory and the range of the bytes.
fn placed(bytes: &[u8], shift: usize) -> (Vec<u8>, std::ops::Range<usize>) {
    let mut room = vec![GUARD; bytes.len() + 64];
    let begin = room.as_ptr().align_offset(16) + shift;
    let place = begin..begin + bytes.len();
    room[place.clone()].copy_from_slice(bytes);
    (room, place)
}

/// Returns the result of an operation on two buffers at these places. Nothing but the result may be written.
fn reduced(
    op: Predefined,
    kind: ElementKind,
    operands: (&[u8], &[u8]),
    shifts: (usize, usize),
) -> Vec<u8> {
    let (input, from) = placed(operands.0, shifts.0);
    let (mut inout, to) = placed(operands.1, shifts.1);
    reduce_local(&op.into(), kind, &input[from], &mut inout[to.clone()]).expect("legal and whole");
    assert!(inout[..to.start].iter().chain(&inout[to.end..]).all(|byte| *byte == GUARD));
    inout[to].to_vec()
}

/// MPI's table, written out by kind: which elements each operation takes.
fn takes(op: Predefined, kind: ElementKind) -> bool {
    use ElementKind::*;
    let integer = matches!(kind, I8 | I16 | I32 | I64 | I128 | U8 | U16 | U32 | U64 | U128);
    let floating = matches!(kind, F16 | BF16 | F32 | F64 | LongDouble);
    let logical = matches!(kind, Bool | Logical2 | Logical4 | Logical8);
    let complex = matches!(kind, ComplexF32 | ComplexF64 | ComplexLongDouble);
    let pair = matches!(
        kind,
        FloatInt
            | DoubleInt
            | LongInt
            | TwoInt
            | ShortInt
            | LongDoubleInt
            | TwoReal
            | TwoDoublePrecision
    );
    match op {
        Predefined::Max | Predefined::Min => integer || floating,
        Predefined::Sum | Predefined::Prod => integer || floating || complex,
        Predefined::Land | Predefined::Lor | Predefined::Lxor => integer || logical,
        Predefined::Band | Predefined::Bor | Predefined::Bxor => integer || kind == Byte,
        Predefined::MaxLoc | Predefined::MinLoc => pair,
        Predefined::Replace | Predefined::NoOp => true,
    }
}

/// Every operation with every kind.
fn combinations() -> impl Iterator<Item = (Predefined, ElementKind)> {
    Predefined::ALL.into_iter().flat_map(|op| ElementKind::ALL.map(|kind| (op, kind)))
}

#[test]
fn the_lists_are_complete_and_in_order() {
    for (index, kind) in ElementKind::ALL.into_iter().enumerate() {
        assert_eq!(kind as usize, index, "{kind}");
    }
    assert_eq!(ElementKind::ALL.len(), ElementKind::TwoDoublePrecision as usize + 1);
    for (index, op) in Predefined::ALL.into_iter().enumerate() {
        assert_eq!(op as usize, index, "{op}");
    }
    assert_eq!(Predefined::ALL.len(), Predefined::NoOp as usize + 1);
}

#[test]
fn exactly_the_combinations_of_the_standard_are_legal() {
    for (op, kind) in combinations() {
        let answer = Op::from(op).check(kind);
        if !takes(op, kind) {
            assert_eq!(answer, Err(OpError::Undefined { op, kind }));
            assert_eq!(answer.map_err(|error| error.class()), Err(ErrorClass::Op));
        } else if kind.is_available() {
            assert_eq!(answer, Ok(()), "{op} on {kind}");
        } else {
            assert_eq!(answer, Err(OpError::Unavailable { op, kind }));
        }
    }
}

#[test]
fn there_is_a_loop_for_what_is_legal_and_for_nothing_else() {
    for (op, kind) in combinations() {
        assert_eq!(kernel(op, kind).is_some(), Op::from(op).check(kind).is_ok(), "{op} on {kind}");
    }
}

#[test]
fn what_is_refused_changes_nothing() {
    for (op, kind) in combinations() {
        let mut inout = [GUARD; 64];
        let answer = reduce_local(&op.into(), kind, &[7; 64], &mut inout);
        assert_eq!(answer, Op::from(op).check(kind));
        assert!(answer.is_ok() || inout == [GUARD; 64], "{op} on {kind}");
    }
}

#[test]
fn buffers_of_different_lengths_are_refused() {
    for (op, kind) in combinations().filter(|(op, kind)| Op::from(*op).check(*kind).is_ok()) {
        let mut inout = vec![GUARD; 2 * kind.extent()];
        let refused = reduce_local(&op.into(), kind, &vec![7; kind.extent()], &mut inout);
        let error = OpError::Lengths { input: kind.extent(), inout: 2 * kind.extent() };
        assert_eq!(refused, Err(error));
        assert_eq!(error.class(), ErrorClass::Arg);
        assert_eq!(inout, vec![GUARD; 2 * kind.extent()]);
    }
}

#[test]
fn parts_of_elements_are_refused() {
    let whole = |kind: &ElementKind| kind.extent() > 1 && kind.is_available();
    for kind in ElementKind::ALL.into_iter().filter(whole) {
        for len in [1, kind.extent() - 1, kind.extent() + 1, 3 * kind.extent() - 1] {
            let mut inout = vec![GUARD; len];
            let op = Op::from(Predefined::Replace);
            let refused = reduce_local(&op, kind, &vec![7; len], &mut inout);
            assert_eq!(refused, Err(OpError::Partial { len, kind }));
            assert_eq!(inout, vec![GUARD; len]);
        }
    }
    let error = OpError::Partial { len: 12, kind: ElementKind::DoubleInt };
    assert_eq!(error.class(), ErrorClass::Count);
    assert_eq!(
        error.to_string(),
        "12 bytes are no whole number of MPI_DOUBLE_INT, which take 16 bytes each"
    );
}

#[test]
fn empty_buffers_have_an_empty_result() {
    for (op, kind) in combinations() {
        assert_eq!(reduce_local(&op.into(), kind, &[], &mut []), Op::from(op).check(kind));
    }
}

#[test]
fn errors_say_what_is_legal() {
    let message =
        |op: Predefined, kind| Op::from(op).check(kind).expect_err("not defined").to_string();
    assert_eq!(
        message(Predefined::Band, ElementKind::F32),
        "MPI_BAND is not defined on float; it takes integers and bytes"
    );
    assert_eq!(
        message(Predefined::Prod, ElementKind::Byte),
        "MPI_PROD is not defined on MPI_BYTE; it takes integers, floating-point numbers and complex \
         numbers"
    );
    assert_eq!(
        message(Predefined::MaxLoc, ElementKind::I32),
        "MPI_MAXLOC is not defined on int32_t; it takes pairs of value and index"
    );
}

#[test]
fn an_error_names_what_the_processor_lacks() {
    let (op, kind) = (Predefined::Sum, ElementKind::LongDouble);
    let error = OpError::Unavailable { op, kind };
    assert_eq!(error.class(), ErrorClass::Type);
    assert!(error.to_string().starts_with("MPI_SUM on long double needs"));
}

#[test]
fn operations_of_windows_do_not_reduce() {
    for op in Predefined::ALL {
        let for_windows = [Predefined::Replace, Predefined::NoOp].contains(&op);
        assert_eq!((op.reduces(), Op::from(op).commutes()), (!for_windows, !for_windows), "{op}");
    }
}

/// The layouts agree with those of the compiler, which lays out such structures as C does.
#[test]
fn layouts_are_those_of_c() {
    use ElementKind::*;
    #[repr(C, align(16))]
    struct X87([u8; 16]);
    #[repr(C)]
    struct Two<A, B>(A, B);
    fn check<T>(kinds: &[ElementKind], size: usize) {
        for kind in kinds {
            let layout = (kind.size(), kind.extent(), kind.align());
            assert_eq!(layout, (size, size_of::<T>(), align_of::<T>()), "{kind}");
        }
    }
    check::<u8>(&[I8, U8, Bool, Byte], 1);
    check::<u16>(&[I16, U16, Logical2, F16, BF16], 2);
    check::<u32>(&[I32, U32, F32, Logical4], 4);
    check::<u64>(&[I64, U64, F64, Logical8], 8);
    check::<i128>(&[I128, U128], 16);
    check::<X87>(&[LongDouble], 16);
    check::<Two<f32, f32>>(&[ComplexF32, TwoReal, FloatInt, TwoInt], 8);
    check::<Two<f64, f64>>(&[ComplexF64, TwoDoublePrecision], 16);
    check::<Two<X87, X87>>(&[ComplexLongDouble], 32);
    check::<Two<f64, i32>>(&[DoubleInt, LongInt], 12);
    check::<Two<i16, i32>>(&[ShortInt], 6);
    check::<Two<X87, i32>>(&[LongDoubleInt], 20);
}

/// Elements of ones, with one value in the padding of the input and another in that of the result.
#[test]
fn padding_is_neither_read_nor_written() {
    let gaps = [
        (ElementKind::ShortInt, 2..4),
        (ElementKind::DoubleInt, 12..16),
        (ElementKind::LongInt, 12..16),
        (ElementKind::LongDoubleInt, 10..16),
        (ElementKind::LongDoubleInt, 20..32),
        (ElementKind::LongDouble, 10..16),
        (ElementKind::ComplexLongDouble, 26..32),
    ];
    for (kind, gap) in gaps.into_iter().filter(|(kind, _)| kind.is_available()) {
        for op in Predefined::ALL.into_iter().filter(|op| Op::from(*op).check(kind).is_ok()) {
            let filled = |byte, padding| {
                let mut element = vec![byte; kind.extent()];
                element[gap.clone()].fill(padding);
                element.repeat(3)
            };
            let result =
                |padding, own| reduced(op, kind, (&filled(1, padding), &filled(2, own)), (3, 5));
            let (one, other) = (result(0xC1, 0xD2), result(0xE3, 0xD2));
            assert_eq!(one, other, "{op} reads the padding of {kind}");
            let kept = one
                .chunks_exact(kind.extent())
                .all(|element| element[gap.clone()].iter().all(|byte| *byte == 0xD2));
            assert!(kept, "{op} writes the padding of {kind}");
        }
    }
}

#[test]
fn the_input_is_the_left_operand_of_a_user_operation() {
    let minus = UserOp::new(false, |input, inout, count, _| {
        assert_eq!((input.len(), inout.len()), (count, count));
        for (left, right) in input.iter().zip(inout) {
            *right = left - *right;
        }
    });
    let op = Op::from(minus);
    let mut inout = [1, 2, 3];
    reduce_local(&op, ElementKind::U8, &[10, 20, 30], &mut inout).expect("users may do all");
    assert_eq!(inout, [9, 18, 27]);
    assert!(!op.commutes());
    assert!(Op::from(UserOp::new(true, |_, _, _, _| ())).commutes());
}

#[test]
fn a_user_operation_is_told_the_count_and_the_type() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&told);
    let op = UserOp::new(true, move |_, _, count, datatype| {
        let kind = datatype.downcast_ref::<ElementKind>().copied();
        tell.lock().expect("no panic").push((count, kind));
    });
    for kind in ElementKind::ALL {
        assert_eq!(Op::from(op.clone()).check(kind), Ok(()));
        let mut inout = vec![0; 2 * kind.extent()];
        let input = inout.clone();
        reduce_local(&op.clone().into(), kind, &input, &mut inout).expect("users may do all");
    }
    op.apply(&[], &mut [], 5, &"a type of the caller");
    let mut expected = ElementKind::ALL.map(|kind| (2, Some(kind))).to_vec();
    expected.push((5, None));
    assert_eq!(*told.lock().expect("no panic"), expected);
}

#[test]
fn names_are_those_of_the_standard() {
    assert_eq!(Predefined::NoOp.to_string(), "MPI_NO_OP");
    assert_eq!(ElementKind::ComplexF32.to_string(), "float complex");
    assert_eq!(Class::Pair.name(), "pairs of value and index");
    let shown = format!("{:?}", UserOp::new(true, |_, _, _, _| ()));
    assert_eq!(shown, "UserOp { commutes: true, .. }");
}
