//! Transposition of an N x N matrix of `f64` that is distributed over the ranks by rows: every rank
//! packs one square block per rank, exchanges them by all-to-all, and transposes the blocks while
//! it unpacks them. This is the core of two-dimensional Fourier transforms.

use crate::order::Order;
use crate::pace;
use crate::runtime::{Failure, Runtime};
use crate::worker::Sink;

/// Rows of a block that are unpacked together, so that their cache lines stay cached.
const TILE: usize = 8;

/// Measures every order of `products`.
///
/// # Errors
/// An order that the number of ranks does not divide, a wrong result, or an error of the library.
pub fn run<R: Runtime>(runtime: &R, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    let ranks = runtime.size();
    for &n in order.products.iter().filter(|&&n| n > 0) {
        if n % ranks != 0 {
            return Err(Failure::new(format_args!(
                "transpose on {ranks} ranks needs an N that their number divides, not {n}"
            )));
        }
        let mut rows = Rows::new(n, n / ranks, runtime.rank());
        let batches = pace::measure_together(runtime, &order.effort, || rows.transpose(runtime))?;
        rows.check()?;
        sink.sample("transpose", n, batches.iter().map(|batch| batch.seconds * 1e6).collect());
    }
    Ok(())
}

/// One rank's rows, before and after the transposition.
struct Rows {
    n: usize,
    count: usize,
    first: usize,
    matrix: Vec<f64>,
    packed: Vec<f64>,
    arrived: Vec<f64>,
    transposed: Vec<f64>,
}

impl Rows {
    fn new(n: usize, count: usize, rank: usize) -> Self {
        let first = rank * count;
        let matrix = (first * n..(first + count) * n).map(|place| place as f64).collect();
        let [packed, arrived, transposed] = [(); 3].map(|()| vec![-1.0; count * n]);
        Self { n, count, first, matrix, packed, arrived, transposed }
    }

    /// Transposes once. Returns 0 seconds, since nothing is computed.
    fn transpose<R: Runtime>(&mut self, runtime: &R) -> Result<f64, Failure> {
        self.pack();
        let packed = bytemuck::cast_slice(&self.packed);
        runtime.alltoall(packed, bytemuck::cast_slice_mut(&mut self.arrived))?;
        self.unpack();
        Ok(0.0)
    }

    /// Packs the columns for each rank together.
    fn pack(&mut self) {
        let Self { n, count, .. } = *self;
        for (to, block) in self.packed.chunks_mut(count * count).enumerate() {
            for (part, row) in block.chunks_mut(count).zip(self.matrix.chunks(n)) {
                part.copy_from_slice(&row[to * count..][..count]);
            }
        }
    }

    /// Turns the received rows into columns, block by block.
    fn unpack(&mut self) {
        let Self { n, count, .. } = *self;
        for (from, block) in self.arrived.chunks(count * count).enumerate() {
            for (tile, rows) in block.chunks(TILE * count).enumerate() {
                let start = from * count + tile * TILE;
                for (column, line) in self.transposed.chunks_mut(n).enumerate() {
                    let values = rows[column..].iter().step_by(count);
                    line[start..].iter_mut().zip(values).for_each(|(to, value)| *to = *value);
                }
            }
        }
    }

    /// Checks that row i, column j holds the former row j, column i: j N + i.
    fn check(&self) -> Result<(), Failure> {
        let n = self.n;
        let right = |place: usize| (place % n * n + self.first + place / n) as f64;
        match (0..).zip(&self.transposed).find(|(place, value)| **value != right(*place)) {
            None => Ok(()),
            Some((place, value)) => Err(Failure::new(format_args!(
                "wrong transpose of N = {n}: row {}, column {} is {value}, not {}",
                self.first + place / n,
                place % n,
                right(place),
            ))),
        }
    }
}
