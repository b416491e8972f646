//! SUMMA: matrices in blocks on a grid of ranks. Panel by panel, the owners of some columns of A
//! send them along their rows, the owners of the same rows of B send them along their columns, and
//! every rank adds the product of the two.
//!
//! Panels are not sent ahead, so no communication is hidden. Compared with [`super::cannon`],
//! messages are shorter and more frequent.

use super::dense::{self, Factors};
use super::grid::Grid;
use crate::order::Order;
use crate::pace;
use crate::runtime::{Failure, Post, Runtime};
use crate::worker::Sink;

/// The most columns of A and rows of B that travel together.
const WIDEST_PANEL: usize = 64;

const LEFT: i32 = 1;
const RIGHT: i32 = 2;

/// Measures every order of `products`.
///
/// # Errors
/// An order that the sides of the grid do not divide, a wrong product, or an error of the library.
pub fn run<R: Runtime>(runtime: &R, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    let grid = Grid::most_square(runtime.rank(), runtime.size());
    for &n in order.products.iter().filter(|&&n| n > 0) {
        grid.check_order("summa", n)?;
        let mut summa = Summa::new(grid, n);
        let effort = dense::effort(&order.effort, n);
        let batches = pace::measure_together(runtime, &effort, || summa.multiply(runtime))?;
        dense::check("summa", &summa.product, &grid, n)?;
        super::report(sink, "summa", n, dense::operations(n), &batches);
    }
    Ok(())
}

/// One rank's blocks.
struct Summa {
    grid: Grid,
    /// Rows and columns of a block.
    sides: [usize; 2],
    width: usize,
    own: Factors,
    panels: Factors,
    product: Vec<f64>,
}

impl Summa {
    fn new(grid: Grid, n: usize) -> Self {
        let sides = [n / grid.rows, n / grid.columns];
        let divides = |width: &usize| sides.iter().all(|side| side % width == 0);
        let width = (1..=WIDEST_PANEL).rev().find(divides).expect("1 divides every number");
        let own = dense::factors(&grid, n);
        let (panels, product) =
            (sides.map(|side| vec![0.0; side * width]), vec![0.0; own[0].len()]);
        Self { grid, sides, width, own, panels, product }
    }

    /// Computes one product. Returns the seconds of multiplication.
    fn multiply<R: Runtime>(&mut self, runtime: &R) -> Result<f64, Failure> {
        let mut multiplying = 0.0;
        for first in (0..self.sides[0] * self.grid.rows).step_by(self.width) {
            self.spread(runtime, first)?;
            let beta = if first == 0 { 0.0 } else { 1.0 };
            multiplying +=
                dense::multiply(runtime, &mut self.product, &self.panels, self.width, beta);
        }
        Ok(multiplying)
    }

    /// Sends the panels that begin at column and row `first` to the ranks that need them.
    fn spread<R: Runtime>(&mut self, runtime: &R, first: usize) -> Result<(), Failure> {
        let Self { grid, sides: [height, width], .. } = *self;
        let (owner_row, owner_column) = (first / height, first / width);
        let [left, right] = &mut self.panels;
        if grid.column == owner_column {
            let rows = self.own[0].chunks(width).zip(left.chunks_mut(self.width));
            rows.for_each(|(row, part)| part.copy_from_slice(&row[first % width..][..self.width]));
        }
        if grid.row == owner_row {
            let start = first % height * width;
            right.copy_from_slice(&self.own[1][start..][..self.width * width]);
        }
        let me = runtime.rank();
        let row = (0..grid.columns).map(|column| grid.rank(grid.row, column));
        let column = (0..grid.rows).map(|row| grid.rank(row, grid.column));
        let lefts = share(left, grid.rank(grid.row, owner_column), me, row, LEFT);
        let rights = share(right, grid.rank(owner_row, grid.column), me, column, RIGHT);
        runtime.start_all(lefts.chain(rights), || Ok(()))
    }
}

/// Runs the part of rank `me` in sending the panel of `owner` to all ranks of `line`.
fn share<'a>(
    panel: &'a mut [f64],
    owner: usize,
    me: usize,
    line: impl Iterator<Item = usize> + 'a,
    tag: i32,
) -> impl Iterator<Item = Post<'a>> {
    let panel = bytemuck::cast_slice_mut(panel);
    let (data, place) = if owner == me { (Some(&*panel), None) } else { (None, Some(panel)) };
    let receive = place.map(|buffer| Post::Receive { buffer, from: owner, tag });
    let others = line.filter(move |&to| data.is_some() && to != me);
    let sends = others.filter_map(move |to| Some(Post::Send { data: data?, to, tag }));
    receive.into_iter().chain(sends)
}
