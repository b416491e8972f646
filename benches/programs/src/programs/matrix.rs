//! Programs on matrices and grids, as typical uses of message passing.
//!
//! Programs that compute report two series: their speed, and the share of rank 0's time that was
//! not spent on computing.

mod dense;
mod grid;
mod slab;

pub mod cannon;
pub mod diffusion;
pub mod laplace;
pub mod pingpong;
pub mod summa;
pub mod transpose;

use crate::pace::Timed;
use crate::worker::Sink;

/// Reports batches of rounds, each of `operations` floating-point operations over all ranks.
fn report(sink: &mut Sink<'_>, series: &str, x: usize, operations: f64, batches: &[Timed]) {
    let speed = |batch: &Timed| operations / batch.seconds / 1e9;
    sink.sample(series, x, batches.iter().map(speed).collect());
    let share = |batch: &Timed| (100.0 * (1.0 - batch.part / batch.seconds)).clamp(0.0, 100.0);
    sink.sample(&format!("{series}-share"), x, batches.iter().map(share).collect());
}
