//! Cannon's algorithm: matrices in square blocks on a square grid of ranks. After a first skew
//! every rank multiplies its blocks while the next ones arrive from the right and from below.
//!
//! The speed includes the skew. Everything except the local product is communication: the skew, and
//! the part of the shifts that the products do not hide.

use std::mem;

use super::dense::{self, Factors};
use super::grid::Grid;
use crate::order::Order;
use crate::pace;
use crate::runtime::{Failure, Post, Runtime};
use crate::worker::Sink;

/// Measures every order of `products`.
///
/// # Errors
/// A number of ranks that is not a square, an order that its root does not divide, a wrong product,
/// or an error of the library.
pub fn run<R: Runtime>(runtime: &R, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    let ranks = runtime.size();
    let grid = Grid::square(runtime.rank(), ranks).ok_or_else(|| {
        Failure::new(format_args!("cannon needs a square number of ranks, this job has {ranks}"))
    })?;
    for &n in order.products.iter().filter(|&&n| n > 0) {
        grid.check_order("cannon", n)?;
        let mut cannon = Cannon::new(grid, n);
        let effort = dense::effort(&order.effort, n);
        let batches = pace::measure_together(runtime, &effort, || cannon.multiply(runtime))?;
        dense::check("cannon", &cannon.product, &grid, n)?;
        super::report(sink, "cannon", n, dense::operations(n), &batches);
    }
    Ok(())
}

/// One rank's blocks.
struct Cannon {
    grid: Grid,
    /// The side of a block.
    side: usize,
    own: Factors,
    /// The factors of the current step.
    here: Factors,
    /// The factors of the next step, in transit.
    next: Factors,
    product: Vec<f64>,
}

/// The destination of a block, and the source of its replacement.
struct Route {
    to: usize,
    from: usize,
}

impl Cannon {
    fn new(grid: Grid, n: usize) -> Self {
        let own = dense::factors(&grid, n);
        let (here, next, product) = (own.clone(), own.clone(), vec![0.0; own[0].len()]);
        Self { grid, side: n / grid.rows, own, here, next, product }
    }

    /// Returns the routes that shift A by `left` places to the left, and B by `up` places upwards.
    fn routes(&self, left: usize, up: usize) -> [Route; 2] {
        let (grid, ring) = (&self.grid, self.grid.rows);
        [
            Route { to: grid.further(0, ring - left), from: grid.further(0, left) },
            Route { to: grid.further(ring - up, 0), from: grid.further(up, 0) },
        ]
    }

    /// Computes one product. Returns the seconds of multiplication.
    fn multiply<R: Runtime>(&mut self, runtime: &R) -> Result<f64, Failure> {
        let skew = self.routes(self.grid.row, self.grid.column);
        exchange(runtime, &self.own, &mut self.here, &skew, || Ok(()))?;
        let mut multiplying = 0.0;
        for step in 1..=self.grid.rows {
            let routes = self.routes(1, 1);
            let beta = if step == 1 { 0.0 } else { 1.0 };
            let (here, product) = (&self.here, &mut self.product);
            let mut local = || Ok(dense::multiply(runtime, product, here, self.side, beta));
            if step == self.grid.rows {
                multiplying += local()?;
            } else {
                multiplying += exchange(runtime, here, &mut self.next, &routes, local)?;
                mem::swap(&mut self.here, &mut self.next);
            }
        }
        Ok(multiplying)
    }
}

/// Sends `blocks` along their routes, receives others into `into`, and runs `meanwhile`.
fn exchange<R: Runtime, T>(
    runtime: &R,
    blocks: &Factors,
    into: &mut Factors,
    routes: &[Route; 2],
    meanwhile: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut posts = Vec::with_capacity(4);
    for (((data, place), route), tag) in blocks.iter().zip(into).zip(routes).zip(1..) {
        if route.to == runtime.rank() {
            place.copy_from_slice(data);
            continue;
        }
        let buffer = bytemuck::cast_slice_mut(place);
        posts.push(Post::Receive { buffer, from: route.from, tag });
        posts.push(Post::Send { data: bytemuck::cast_slice(data), to: route.to, tag });
    }
    runtime.start_all(posts, meanwhile)
}
