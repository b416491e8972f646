//! Shared parts of the programs on grids: a grid distributed over the ranks by lines (or
//! planes), the exchange of edge lines, the check against one rank, the figures.
//!
//! A rank stores its lines between two *ghosts*, copies of its neighbours' lines. Every point is
//! computed by the same code from the same numbers on any number of ranks, so results are compared
//! bit by bit.

use std::array;
use std::ops::Range;

use bytemuck::Pod;

use crate::order::Order;
use crate::pace;
use crate::runtime::{Failure, Post, Runtime};
use crate::worker::Sink;

/// The steps of one timed round, and of the check.
const STEPS: usize = 10;

/// Tags of lines by their direction, since both neighbours may be the same rank.
const UP: i32 = 1;
const DOWN: i32 = 2;
const RESULT: i32 = 3;

/// A state that advances step by step.
pub trait Stencil {
    /// The series of its speed.
    const SERIES: &'static str;
    /// The number of lines of the grid, over all ranks.
    const LINES: usize;
    /// Whether the first line follows the last one; otherwise the ghosts at the edges are constant.
    const PERIODIC: bool;
    /// The floating-point operations of one step, over all ranks.
    const OPERATIONS: usize;

    /// Creates the initial state of the lines of `slab`.
    fn start(slab: &Slab) -> Self;

    /// Runs one step. Returns the seconds of [`Slab::exchange`].
    ///
    /// # Errors
    /// The errors of [`Slab::exchange`].
    fn step<R: Runtime>(&mut self, runtime: &R, slab: &Slab) -> Result<f64, Failure>;

    /// Returns all numbers of some stored lines; 0 is the first line that is not a ghost.
    fn values(&self, lines: Range<usize>) -> Vec<f64>;

    /// Checks invariants of the whole grid between the initial and the final state.
    ///
    /// # Errors
    /// A broken invariant.
    fn check(start: &Self, end: &Self) -> Result<(), Failure>;
}

/// Checks the first steps of a stencil, then measures it.
///
/// # Errors
/// More ranks than lines, a wrong result, or an error of the library.
pub fn run<S: Stencil, R: Runtime>(
    runtime: &R,
    order: &Order,
    sink: &mut Sink<'_>,
) -> Result<(), Failure> {
    let ranks = runtime.size();
    if ranks > S::LINES {
        let (name, lines) = (S::SERIES, S::LINES);
        return Err(Failure::new(format_args!(
            "{name} has {lines} lines to spread, this job has {ranks} ranks"
        )));
    }
    let slab = Slab::of::<S>(runtime.rank(), ranks);
    let mut state = S::start(&slab);
    steps(runtime, &slab, &mut state)?;
    check(runtime, &slab, &state)?;
    let batches =
        pace::measure_together(runtime, &order.effort, || steps(runtime, &slab, &mut state))?;
    super::report(sink, S::SERIES, ranks, (S::OPERATIONS * STEPS) as f64, &batches);
    Ok(())
}

/// Runs a round of steps. Returns the seconds of computation.
fn steps<S: Stencil, R: Runtime>(runtime: &R, slab: &Slab, state: &mut S) -> Result<f64, Failure> {
    let start = runtime.wtime();
    let mut exchanging = 0.0;
    for _ in 0..STEPS {
        exchanging += state.step(runtime, slab)?;
    }
    Ok(runtime.wtime() - start - exchanging)
}

/// Compares the states of all ranks after one round with rank 0's own computation of the whole
/// grid.
fn check<S: Stencil, R: Runtime>(runtime: &R, slab: &Slab, state: &S) -> Result<(), Failure> {
    let own = state.values(0..slab.lines.len());
    if runtime.rank() != 0 {
        return runtime.send(bytemuck::cast_slice(&own), 0, RESULT);
    }
    let whole = Slab::of::<S>(0, 1);
    let (start, mut end) = (S::start(&whole), S::start(&whole));
    steps(runtime, &whole, &mut end)?;
    S::check(&start, &end)?;
    for rank in 0..runtime.size() {
        let expected = end.values(Slab::of::<S>(rank, runtime.size()).lines);
        let mut result = if rank == 0 { own.clone() } else { vec![f64::NAN; expected.len()] };
        if rank != 0 {
            let buffer = bytemuck::cast_slice_mut(&mut result);
            runtime.recv(buffer, rank, RESULT)?;
        }
        if !result.iter().map(|value| value.to_bits()).eq(expected.iter().map(|v| v.to_bits())) {
            let name = S::SERIES;
            return Err(Failure::new(format_args!(
                "wrong result of {name}: the lines of rank {rank} are not those that one rank gets"
            )));
        }
    }
    Ok(())
}

/// The lines of one rank, and its neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slab {
    /// The lines of the grid that this rank owns.
    pub lines: Range<usize>,
    rank: usize,
    above: Option<usize>,
    below: Option<usize>,
}

impl Slab {
    fn of<S: Stencil>(rank: usize, ranks: usize) -> Self {
        let lines = rank * S::LINES / ranks..(rank + 1) * S::LINES / ranks;
        let above = (S::PERIODIC || rank > 0).then(|| (rank + ranks - 1) % ranks);
        let below = (S::PERIODIC || rank + 1 < ranks).then(|| (rank + 1) % ranks);
        Self { lines, rank, above, below }
    }

    /// Returns the number of stored lines, including both ghosts.
    pub fn stored(&self) -> usize {
        self.lines.len() + 2
    }

    /// Sends the edge lines to both neighbours and fills the ghosts of `stored`. Returns the
    /// seconds taken.
    ///
    /// # Errors
    /// The errors of the library.
    pub fn exchange<R: Runtime, L: Pod>(
        &self,
        runtime: &R,
        stored: &mut [L],
    ) -> Result<f64, Failure> {
        let start = runtime.wtime();
        let [ghost_above, own @ .., ghost_below] = stored else { return Ok(0.0) };
        let (first, last) = (&own[0], &own[own.len() - 1]);
        if self.above == Some(self.rank) {
            (*ghost_above, *ghost_below) = (*last, *first);
            return Ok(runtime.wtime() - start);
        }
        let above = self.above.map(|rank| swap(rank, ghost_above, DOWN, first, UP));
        let below = self.below.map(|rank| swap(rank, ghost_below, UP, last, DOWN));
        runtime.start_all(above.into_iter().chain(below).flatten(), || Ok(()))?;
        Ok(runtime.wtime() - start)
    }
}

/// Receives a neighbour's line and sends it one.
fn swap<'a, L: Pod>(
    rank: usize,
    ghost: &'a mut L,
    arrives: i32,
    line: &'a L,
    leaves: i32,
) -> [Post<'a>; 2] {
    let (buffer, data) = (bytemuck::bytes_of_mut(ghost), bytemuck::bytes_of(line));
    [Post::Receive { buffer, from: rank, tag: arrives }, Post::Send { data, to: rank, tag: leaves }]
}

/// Computes a row of a periodic grid: `point` gets the indices of a point and of its two
/// neighbours.
///
/// The length is a constant, so the compiler drops every bounds check and uses vectors.
#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "the bounds have to be seen by the compiler")]
pub fn around<const N: usize>(row: &mut [f64; N], point: impl Fn(usize, usize, usize) -> f64) {
    row[0] = point(N - 1, 0, 1);
    for here in 1..N - 1 {
        row[here] = point(here - 1, here, here + 1);
    }
    row[N - 1] = point(N - 2, N - 1, 0);
}

/// Returns a row of pseudo-random numbers in 0..1, which depend only on `line` and index.
pub fn noise<const N: usize>(line: usize) -> [f64; N] {
    let mixed = |place| ((line * N + place + 1) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    array::from_fn(|place| (mixed(place) >> 11) as f64 / (1_u64 << 53) as f64)
}

/// Checks that a sum over the grid is unchanged, except for rounding.
///
/// # Errors
/// It has changed.
pub fn conserved(what: &str, before: f64, after: f64) -> Result<(), Failure> {
    if (after - before).abs() <= 1e-10 * before.abs() {
        return Ok(());
    }
    Err(Failure::new(format_args!("{what} is not conserved: {before} became {after}")))
}
