//! Shared parts of Cannon and SUMMA: the matrices, the product of local blocks, the check.
//!
//! All elements of the factors are small odd integers. So every sum is exact in `f64` in any order,
//! and a lost element or a wrong sign always shows.

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2};

use super::grid::Grid;
use crate::order::Effort;
use crate::runtime::{Failure, Runtime};

/// From this order on only [`FEW`] repetitions are made, since many would take long.
const LARGE: usize = 1024;
/// The number of repetitions for large orders.
const FEW: usize = 3;

/// Blocks of the two factors, each in row-major order.
pub type Factors = [Vec<f64>; 2];

/// Returns the part of `effort` for order `n`.
pub fn effort(effort: &Effort, n: usize) -> Effort {
    let most = if n < LARGE { effort.batches } else { FEW };
    Effort { batches: effort.batches.min(most), ..*effort }
}

/// Returns the floating-point operations of one product of N x N matrices.
pub fn operations(n: usize) -> f64 {
    2.0 * (n as f64).powi(3)
}

/// Returns this rank's blocks of the factors.
pub fn factors(grid: &Grid, n: usize) -> Factors {
    [0, 1].map(|factor| {
        let row = |row| grid.block_columns(n).map(move |column| element(factor, row, column));
        grid.block_rows(n).flat_map(row).collect()
    })
}

/// Multiplies `product` by `beta` and adds the product of `factors`, whose inner side is `inner`.
/// Returns the seconds taken.
pub fn multiply<R: Runtime>(
    runtime: &R,
    product: &mut [f64],
    factors: &Factors,
    inner: usize,
    beta: f64,
) -> f64 {
    let start = runtime.wtime();
    let (rows, columns) = (factors[0].len() / inner, factors[1].len() / inner);
    let fits = "blocks are made with these sides";
    let left = ArrayView2::from_shape((rows, inner), &factors[0]).expect(fits);
    let right = ArrayView2::from_shape((inner, columns), &factors[1]).expect(fits);
    let mut sum = ArrayViewMut2::from_shape((rows, columns), product).expect(fits);
    general_mat_mul(1.0, &left, &right, beta, &mut sum);
    runtime.wtime() - start
}

/// Checks this rank's block of the product. For a vector x, (A B) x = A (B x), and the right-hand
/// side takes only N^2 operations; no element of x is 0, so a single wrong element is always found.
///
/// # Errors
/// A wrong row.
pub fn check(program: &str, product: &[f64], grid: &Grid, n: usize) -> Result<(), Failure> {
    let (rows, columns) = (grid.block_rows(n), grid.block_columns(n));
    let x: Vec<_> = columns.clone().map(|column| element(2, 0, column)).collect();
    let right = |row| dot(columns.clone().map(|column| element(1, row, column)), &x);
    let right: Vec<_> = (0..n).map(right).collect();
    let wrong = rows.zip(product.chunks(columns.len())).find(|(row, block)| {
        let expected = dot((0..n).map(|column| element(0, *row, column)), &right);
        dot(block.iter().copied(), &x) != expected
    });
    match wrong {
        None => Ok(()),
        Some((row, _)) => Err(Failure::new(format_args!(
            "wrong product from {program} of N = {n}: row {row}, columns {} to {}",
            columns.start,
            columns.end - 1,
        ))),
    }
}

fn dot(row: impl Iterator<Item = f64>, x: &[f64]) -> f64 {
    row.zip(x).map(|(value, x)| value * x).sum()
}

/// An element of A (0), B (1) or x (2): odd, from -127 to 127.
fn element(matrix: u64, row: usize, column: usize) -> f64 {
    let place = (matrix << 56) | ((row as u64) << 28) | column as u64;
    let mixed = (place + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed >> 57) * 2) as f64 - 127.0
}
