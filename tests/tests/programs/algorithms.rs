//! The distributed algorithms of `matmul` on every kind of shape, with ranks as threads of this process, and the
//! arithmetic of their blocks.
//!
//! The values are small integers, so that sums have the same bits in every order.

use proptest::prelude::*;

use algorithm::{Algorithm, Product};
use grid::{Block, Grid, Placement, Shape};
use matrix::Matrix;
use partition::part;

use super::npy_format::npy;
use ranks::job;

#[path = "../../../mpj/examples/matmul/algorithm.rs"]
mod algorithm;
#[path = "../../../mpj/examples/matmul/blocks.rs"]
mod blocks;
#[path = "../../../mpj/examples/matmul/cannon.rs"]
mod cannon;
#[path = "../../../mpj/examples/matmul/grid.rs"]
mod grid;
#[path = "../../../mpj/examples/matmul/local.rs"]
mod local;
#[path = "../../../mpj/examples/matmul/matrix.rs"]
mod matrix;
#[path = "../../../mpj/examples/support/partition.rs"]
mod partition;
#[path = "../../../mpj/examples/support/random.rs"]
mod random;
#[path = "../../../mpj/tests/job/mod.rs"]
mod ranks;
#[path = "../../../mpj/examples/matmul/ring.rs"]
mod ring;
#[path = "../../../mpj/examples/matmul/summa.rs"]
mod summa;
#[path = "../../../mpj/examples/matmul/verify.rs"]
mod verify;

/// Integers between -8 and 8.
fn integers(rows: usize, cols: usize, seed: u64) -> Matrix<f64> {
    let mut matrix = Matrix::<f64>::seeded(rows, cols, seed);
    matrix.values_mut().iter_mut().for_each(|value| *value = (*value * 8.0).round());
    matrix
}

/// Every algorithm that this number of ranks can run.
fn algorithms(ranks: usize) -> Vec<Algorithm> {
    let mut all = vec![Algorithm::Ring { ranks }, Algorithm::Summa(Grid::nearest_square(ranks))];
    all.extend(Grid::square(ranks).map(Algorithm::Cannon));
    all
}

/// The product as all ranks together compute it.
fn distributed(algorithm: Algorithm, shape: Shape, ranks: usize) -> Matrix<f64> {
    let placements: Vec<Placement> =
        (0..ranks).map(|rank| algorithm.placement(shape, rank)).collect();
    let blocks =
        |of: fn(&Placement) -> &Block| placements.iter().map(of).cloned().collect::<Vec<_>>();
    let (of_a, of_b, of_c) = (blocks(|p| &p.a), blocks(|p| &p.b), blocks(|p| &p.c));
    let factors = (integers(shape.m, shape.k, 1), integers(shape.k, shape.n, 2));
    let products = job(ranks, move |world| {
        let root = (world.rank() == 0).then_some(&factors);
        let a = blocks::scatter(world, &of_a, root.map(|factors| &factors.0))?;
        let b = blocks::scatter(world, &of_b, root.map(|factors| &factors.1))?;
        let mut product = Product::zeros(&of_c[world.rank()]);
        algorithm.multiply(world, shape, a, b, &mut product)?;
        let mut whole = Matrix::zeros(shape.m, shape.n);
        blocks::gather(world, &of_c, &product.block, &mut whole)?;
        Ok::<_, mpj::Error>(whole)
    });
    let first = products.into_iter().next();
    first.expect("there is a rank 0").expect("no message fails")
}

fn alone(shape: Shape) -> Matrix<f64> {
    verify::reference(&integers(shape.m, shape.k, 1), &integers(shape.k, shape.n, 2))
}

#[test]
fn takes_cannon_where_the_ranks_make_a_square() {
    let grid = |rows, cols| Grid { rows, cols };
    assert_eq!(Algorithm::for_ranks(1), Algorithm::Cannon(grid(1, 1)));
    assert_eq!(Algorithm::for_ranks(9), Algorithm::Cannon(grid(3, 3)));
    assert_eq!(Algorithm::for_ranks(7), Algorithm::Summa(grid(1, 7)));
    assert_eq!(Algorithm::for_ranks(12), Algorithm::Summa(grid(3, 4)));
}

#[test]
fn reads_matrices_by_columns() {
    let by_columns = Matrix::from_columns(2, 3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(by_columns, Matrix::from_rows(2, 3, vec![1.0, 3.0, 5.0, 2.0, 4.0, 6.0]));
    assert_eq!(Matrix::<f64>::from_columns(0, 3, &[]), Matrix::zeros(0, 3));
}

#[test]
fn multiplies_beyond_one_panel() {
    let shape = Shape { m: 3, k: 1100, n: 2 };
    assert_eq!(distributed(Algorithm::for_ranks(2), shape, 2), alone(shape));
}

/// The residual of a product of 1 x 2 and 2 x 2 values, against `reference`.
fn residual(a: [f64; 2], b: [f64; 4], c: [f64; 2], reference: [f64; 2]) -> verify::Residual {
    let row = |values: &[f64]| Matrix::from_rows(1, 2, values.to_vec());
    let b = Matrix::from_rows(2, 2, b.to_vec());
    verify::residual(&row(&a), &b, &row(&c), &row(&reference))
}

#[test]
fn tells_rounding_from_mistakes() {
    let (a, b, c) = ([3.0, 4.0], [1.0, 0.0, 0.0, 1.0], [3.0, 4.0]);
    let exact = residual(a, b, c, c);
    assert_eq!((exact.relative, exact.verified()), (0.0, true));
    // Two sums of two products, each with half a unit in the last place per operation.
    assert!((exact.limit / (2.0 * f64::EPSILON) - 1.0).abs() < 1e-12, "{exact:?}");
    assert!(residual(a, b, [3.0 + 2.0 * f64::EPSILON, 4.0], c).verified());
    assert!(!residual(a, b, [3.0 + 1e-14, 4.0], c).verified());
    assert!(!residual(a, b, [4.0, 3.0], c).verified());
    assert!(!residual([0.0; 2], b, [0.0, 1e-300], [0.0; 2]).verified());
}

#[test]
fn verifies_products_at_the_ends_of_the_range() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let b = [1e300, 0.0, 0.0, 1e300];
    assert!(residual([1e300; 2], b, [inf, nan], [nan, inf]).verified());
    assert!(!residual([1e300; 2], b, [inf, 1.0], [inf, inf]).verified());
    assert!(!residual([1.0; 2], b, [nan, 1e300], [1e300; 2]).verified());
    // The squares of these overflow; the norms must not.
    assert!(!residual([1.0; 2], b, [1.1e300, 1e300], [1e300; 2]).verified());
    assert!(residual([1.0; 2], b, [1e300 * (1.0 + f64::EPSILON), 1e300], [1e300; 2]).verified());
    let none = Matrix::<f64>::zeros(2, 0);
    let zeros = Matrix::zeros(2, 2);
    assert!(verify::residual(&none, &Matrix::zeros(0, 2), &zeros, &zeros).verified());
}

proptest! {
    #[test]
    fn parts_are_consecutive_and_even(whole in 0_usize..100, parts in 1_usize..20) {
        let all: Vec<_> = (0..parts).map(|index| part(whole, parts, index)).collect();
        prop_assert_eq!(all[0].start, 0);
        prop_assert_eq!(all[parts - 1].end, whole);
        prop_assert!(all.windows(2).all(|pair| pair[0].end == pair[1].start));
        let lengths = || all.iter().map(|part| part.len());
        prop_assert!(lengths().max().unwrap_or(0) - lengths().min().unwrap_or(0) <= 1);
        for position in 0..whole {
            prop_assert!(all[grid::owner(whole, parts, position)].contains(&position));
        }
    }

    #[test]
    fn panels_have_one_owner(k in 0_usize..60, ranks in 1_usize..20, widest in 1_usize..9) {
        let grid = Grid::nearest_square(ranks);
        let panels = grid::summa_panels(k, grid, widest);
        prop_assert_eq!(panels.iter().map(|panel| panel.len()).sum::<usize>(), k);
        let mut next = 0;
        for panel in panels {
            prop_assert_eq!(panel.start, next);
            prop_assert!(!panel.is_empty() && panel.len() <= widest);
            for parts in [grid.rows, grid.cols] {
                let owner = grid::owner(k, parts, panel.start);
                prop_assert_eq!(owner, grid::owner(k, parts, panel.end - 1));
            }
            next = panel.end;
        }
    }

    #[test]
    fn blocks_tile_the_product(m in 0_usize..12, n in 0_usize..12, ranks in 1_usize..17) {
        let shape = Shape { m, k: 5, n };
        for algorithm in algorithms(ranks) {
            let mut covered = vec![0; m * n];
            for rank in 0..ranks {
                let Placement { a, b, c } = algorithm.placement(shape, rank);
                for row in c.rows.clone() {
                    c.cols.clone().for_each(|col| covered[row * n + col] += 1);
                }
                // A rank has the rows of A and the columns of B that its block of C needs.
                prop_assert_eq!(a.rows, c.rows);
                prop_assert_eq!(b.cols, c.cols);
            }
            prop_assert!(covered.iter().all(|times| *times == 1), "{algorithm}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn all_ranks_together_compute_the_product(
        m in 0_usize..14,
        k in 0_usize..14,
        n in 0_usize..14,
        ranks in 1_usize..10,
    ) {
        let shape = Shape { m, k, n };
        for algorithm in algorithms(ranks) {
            prop_assert_eq!(distributed(algorithm, shape, ranks), alone(shape), "{}", algorithm);
        }
    }
}
