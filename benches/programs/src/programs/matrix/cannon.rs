//! Cannon's algorithm: matrices in square blocks on a square grid of ranks. After a first skew every
//! rank multiplies the blocks that it has, while the next ones come from its right and from below.
//!
//! Speed counts the skew. What is not the local product is communication: the skew, and the part of
//! the shifts that the products do not hide.

use std::mem;

use super::dense::{self, Factors};
use super::grid::Grid;
use crate::order::Order;
use crate::pace;
use crate::runtime::{Failure, Post, Runtime, Source};
use crate::worker::Sink;

/// Measures every order of `products`.
///
/// # Errors
/// A number of ranks that is no square, an order that its root does not divide, a wrong product,
/// the library's.
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
    /// The factors of this step.
    here: Factors,
    /// Those of the next one, on their way.
    next: Factors,
    product: Vec<f64>,
}

/// Where a block goes, and where the one that takes its place comes from.
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

    /// The routes of A to the left and of B upwards, so many places.
    fn routes(&self, left: usize, up: usize) -> [Route; 2] {
        let (grid, ring) = (&self.grid, self.grid.rows);
        [
            Route { to: grid.further(0, ring - left), from: grid.further(0, left) },
            Route { to: grid.further(ring - up, 0), from: grid.further(up, 0) },
        ]
    }

    /// One product. Returns the seconds that were spent on multiplying.
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

/// Sends `blocks` along their routes and gets others `into` their places, and `meanwhile` done.
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
        posts.push(Post::Receive { buffer, from: Source::Rank(route.from), tag });
        posts.push(Post::Send { data: bytemuck::cast_slice(data), to: route.to, tag });
    }
    runtime.start_all(posts, meanwhile)
}
