//! Arrays and views of the crate `ndarray`: any axes, any strides.

use mpj::{Error, SendBuffer};
use ndarray::{Array0, Array2, Array3, Axis, ShapeBuilder, arr0, aview1, s};

use crate::job::job;

/// An array of this shape whose elements count in the order of its indices.
fn counting(shape: (usize, usize, usize)) -> Array3<i32> {
    let len = shape.0 * shape.1 * shape.2;
    Array3::from_shape_vec(shape, (0..).take(len).collect()).unwrap()
}

#[test]
fn a_transposed_view_arrives_in_contiguous_memory() {
    job(2, |world| {
        let matrix = Array2::from_shape_fn((300, 200), |(row, column)| row * 1_000 + column);
        if world.rank() == 0 {
            return world.send(&matrix.t(), 1, 0).unwrap();
        }
        let mut transposed = vec![0usize; 60_000];
        world.recv(&mut transposed, 0, 0).unwrap();
        let expected = (0..200).flat_map(|column| (0..300).map(move |row| row * 1_000 + column));
        assert!(transposed.into_iter().eq(expected));
    });
}

#[test]
fn any_strides_meet_any_others() {
    job(2, |world| {
        let other = 1 - world.rank();
        let whole = counting((4, 5, 6));
        let sent = whole.slice(s![..;-1, 1..;2, ..;-3]);
        let expected = sent.to_owned();
        let mut fortran = Array3::<i32>::zeros((4, 2, 2).f());
        world.sendrecv(&sent, other, 0, &mut fortran, other, 0).unwrap();
        assert_eq!(fortran, expected);

        let mut around = Array3::from_elem((8, 4, 2), -1);
        let mut into = around.slice_mut(s![..;-2, 2.., ..;-1]);
        world.sendrecv(&fortran, other, 0, &mut into, other, 0).unwrap();
        assert_eq!(into, expected);
        assert!(around.slice(s![..;2, .., ..]).iter().all(|&kept| kept == -1));
        assert!(around.slice(s![.., ..2, ..]).iter().all(|&kept| kept == -1));

        let mut permuted = Array3::<i32>::zeros((2, 4, 2)).permuted_axes([1, 0, 2]);
        world.sendrecv(&into_owned(&around), other, 0, &mut permuted, other, 0).unwrap();
        assert_eq!(permuted, expected);
    });
}

/// The received elements, without their surroundings.
fn into_owned(around: &Array3<i32>) -> Array3<i32> {
    around.slice(s![..;-2, 2.., ..;-1]).to_owned()
}

#[test]
fn views_that_lie_between_each_other_receive_at_once() {
    job(2, |world| {
        let other = 1 - world.rank();
        let data = Array2::from_shape_fn((1_000, 2), |(row, column)| (row * 2 + column) as f64);
        let mut got = Array2::<f64>::zeros((1_000, 2));
        let (mut left, mut right) = got.multi_slice_mut((s![.., 0], s![.., 1]));
        let (first, second) = (data.column(0), data.column(1));
        world
            .scope(|scope| {
                scope.irecv(&mut left, other, 0).unwrap();
                scope.irecv(&mut right, other, 1).unwrap();
                scope.isend(&first, other, 0).unwrap();
                scope.isend(&second, other, 1).unwrap();
                Ok(())
            })
            .unwrap();
        assert_eq!(got, data);
    });
}

#[test]
fn elements_that_are_shared_become_ones_own() {
    job(2, |world| {
        let other = 1 - world.rank();
        let kept = counting((2, 2, 2)).into_shared();
        let mut mine = kept.clone().permuted_axes([2, 1, 0]);
        world.sendrecv(&[9; 8], other, 0, &mut mine, other, 0).unwrap();
        assert!(mine.iter().all(|&nine| nine == 9));
        assert_eq!(kept, counting((2, 2, 2)));
    });
}

#[test]
fn repeated_elements_empty_axes_and_no_axis() {
    job(2, |world| {
        let other = 1 - world.rank();
        let row = aview1(&[1u8, 2, 3]);
        let mut three = [0u8; 9];
        let repeated = row.broadcast((3, 3)).unwrap();
        world.sendrecv(&repeated, other, 0, &mut three, other, 0).unwrap();
        assert_eq!(three, [1, 2, 3, 1, 2, 3, 1, 2, 3]);

        let whole = counting((3, 4, 5));
        for axis in 0..3 {
            let empty = whole.slice_axis(Axis(axis), (2..2).into());
            let status = world.sendrecv(&empty, other, 0, &mut [0; 3], other, 0).unwrap();
            assert_eq!(status.bytes, 0);
        }
        let mut one = Array0::<i64>::zeros(());
        world.sendrecv(&arr0(5_i64), other, 0, &mut one, other, 0).unwrap();
        assert_eq!(one[()], 5);
    });
}

#[test]
fn units_run_along_the_outermost_axis() {
    let whole = counting((4, 5, 6));
    let view = whole.slice(s![..;-1, .., ..;2]).describe().unwrap();
    assert_eq!((view.units, view.elements_per_unit), (4, 15));
    assert_eq!((view.origin, view.len), (4 * 90, 4 * (90 + 24 + 4 + 1)));
}

#[test]
fn more_bytes_than_memory_has_are_refused() {
    job(2, |world| {
        let one = [0u64; 1];
        let many = aview1(&one);
        let many = many.broadcast(isize::MAX as usize).unwrap();
        let error = world.send(&many, 0, 0).unwrap_err();
        assert!(matches!(error, Error::Datatype(_)), "{error}");
    });
}
