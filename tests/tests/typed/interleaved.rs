//! Collective calls on matrices that are stored by columns. A call divides the rows of such a buffer among the ranks;
//! these rows lie interleaved in memory. The results equal those of matrices that are stored by rows.

use mpj::{Communicator, Op, Partition, UserOp};
use ndarray::{Array2, ShapeBuilder};

use crate::job::job;

const COLUMNS: usize = 2;

/// The same numbers by columns and by rows.
fn both(rank: usize, rows: usize) -> [Array2<i64>; 2] {
    let number = |(row, column)| (100 * rank + 10 * row + column) as i64;
    let by_columns = Array2::from_shape_fn((rows, COLUMNS).f(), number);
    let by_rows = by_columns.as_standard_layout().into_owned();
    [by_columns, by_rows]
}

/// Makes a call with each of the two, and compares the results.
#[track_caller]
fn alike(rank: usize, rows: (usize, usize), call: impl Fn(&Array2<i64>, &mut Array2<i64>)) {
    alike_in_units(rank, rows, |data, into, _| call(data, into));
}

/// The same for a call with counts. The unit is a row if rows do not lie side by side, and else a number, of which each
/// row has as many as the last argument says.
#[track_caller]
fn alike_in_units(
    rank: usize,
    (given, got): (usize, usize),
    call: impl Fn(&Array2<i64>, &mut Array2<i64>, usize),
) {
    let ([by_columns, by_rows], [mut columns, mut rows]) = (both(rank, given), both(50, got));
    call(&by_columns, &mut columns, 1);
    call(&by_rows, &mut rows, COLUMNS);
    assert_eq!(columns, rows, "rank {rank}");
}

/// Different numbers of rows for the ranks. The numbers of a single row lie side by side in either order.
fn parts(size: usize) -> Vec<usize> {
    (0..size).map(|rank| rank % 3 + 2).collect()
}

fn on_each(check: impl Fn(&Communicator, usize, usize) + Copy + Send + Sync + 'static) {
    for ranks in [3, 4, 5, 7, 8, 9] {
        job(ranks, move |world| check(world, world.rank(), world.size()));
    }
}

#[test]
fn rows_are_moved() {
    on_each(|world, rank, size| {
        for root in [0, size - 1] {
            let at_root = |rows| if rank == root { rows } else { 0 };
            alike(rank, (3, 3), |_, into| world.broadcast(into, root).unwrap());
            alike(rank, (3, at_root(3 * size)), |data, into| {
                world.gather(data, into, root).unwrap();
            });
            alike(rank, (at_root(3 * size), 3), |data, into| {
                world.scatter(data, into, root).unwrap();
            });
            let (mine, all) = (parts(size)[rank], at_root(parts(size).iter().sum()));
            let blocks = |units| Partition::packed(parts(size).iter().map(|rows| rows * units));
            alike_in_units(rank, (mine, all), |data, into, units| {
                world.gatherv(data, into, &blocks(units), root).unwrap();
            });
            alike_in_units(rank, (all, mine), |data, into, units| {
                world.scatterv(data, &blocks(units), into, root).unwrap();
            });
        }
        alike(rank, (3, 3 * size), |data, into| world.all_gather(data, into).unwrap());
        alike(rank, (0, 3 * size), |_, all| world.all_gather_in_place(all).unwrap());
        alike(rank, (3 * size, 3 * size), |data, into| world.all_to_all(data, into).unwrap());
        alike(rank, (0, 3 * size), |_, all| world.all_to_all_in_place(all).unwrap());
    });
}

#[test]
fn rows_are_combined() {
    on_each(|world, rank, size| {
        let last = UserOp::ordered(|_: &i64, higher: &i64| *higher);
        for root in [0, size - 1] {
            let got = if rank == root { 3 } else { 0 };
            alike(rank, (3, got), |data, into| world.reduce(data, into, Op::Sum, root).unwrap());
            alike(rank, (3, got), |data, into| world.reduce(data, into, &last, root).unwrap());
            alike(rank, (3, got), |data, into| match rank == root {
                true => world.reduce_in_place(into, Op::Sum, root).unwrap(),
                false => world.reduce(data, into, Op::Sum, root).unwrap(),
            });
        }
        alike(rank, (0, 3), |_, all| world.all_reduce(all, Op::Sum).unwrap());
        alike(rank, (3, 3), |data, all| world.all_reduce_into(data, all, &last).unwrap());
        alike(rank, (0, 3), |_, all| world.scan(all, &last).unwrap());
        alike(rank, (0, 3), |_, all| world.exscan(all, &last).unwrap());
        alike(rank, (3 * size, 3), |data, into| {
            world.reduce_scatter_block(data, into, &last).unwrap();
        });
        let (mine, all) = (parts(size)[rank], parts(size).iter().sum());
        alike_in_units(rank, (all, mine), |data, into, units| {
            let counts: Vec<usize> = parts(size).iter().map(|rows| rows * units).collect();
            world.reduce_scatter(data, into, &counts, Op::Sum).unwrap();
        });
    });
}

#[test]
fn long_columns_are_combined() {
    on_each(|world, rank, _| {
        alike(rank, (6_000, 6_000), |data, all| {
            world.all_reduce_into(data, all, Op::Sum).unwrap();
        });
        alike(rank, (6_000, 6_000), |data, into| world.reduce(data, into, Op::Max, 0).unwrap());
    });
}
