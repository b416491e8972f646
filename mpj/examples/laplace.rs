//! Laplace's equation on a square by Jacobi iteration, the points distributed in blocks over a grid
//! of ranks, with a halo exchange before every sweep; checked against the sweeps of one rank.
//!
//! `cargo mpj run -n 4 --release --example laplace -- --size 512`
//!
//! One edge is held at 1, the other three at 0. A sweep gives every inner point the mean of its four neighbours'
//! previous values. The ranks form a two-dimensional Cartesian communicator, each with a block of the inner points. The
//! halo lies around a block: on each side the nearest row or column of the neighbour's block or, if there is no
//! neighbour, the fixed edge. A column of a block is sent by one call, without copying it first.
//!
//! Every value depends only on the previous sweep, so the result is the same to the last bit for any number of ranks.
//! In the exact solution the centre is at 0.25, because four such squares, each turned by a quarter, add up to a square
//! that is 1 everywhere.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::process::ExitCode;

use clap::Parser;
use mpj::{CartesianCommunicator, Communicator, Error, Op};

#[path = "support/partition.rs"]
mod partition;
mod support;

/// Tags of messages towards lower and higher coordinates.
const DOWNWARD: i32 = 1;
const UPWARD: i32 = 2;
const BLOCK: i32 = 3;
/// Number of sweeps between two measurements of the residual.
const CHECK_EVERY: u64 = 10;
/// Three additions and a multiplication per point.
const FLOPS_PER_POINT: f64 = 4.0;

/// Solves Laplace's equation on a square of points by Jacobi iteration.
#[derive(Parser)]
#[command(name = "laplace")]
struct Options {
    /// Points along an edge, the fixed ones included
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u64).range(3..=1 << 14))]
    size: u64,
    /// Maximum number of iterations
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    iterations: u64,
    /// Stop when no point changes by more than this in one iteration
    #[arg(long, default_value_t = 1e-5, value_parser = tolerance)]
    tolerance: f64,
}

fn tolerance(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if value >= 0.0 { Ok(value) } else { Err("expected a number that is not negative".to_owned()) }
}

fn main() -> ExitCode {
    support::run(start)
}

fn start(comm: &Communicator, options: Options) -> Result<ExitCode, Error> {
    let inner = options.size as usize - 2;
    let dims = mpj::dims_create(comm.size(), [0, 0])?;
    if dims.iter().any(|ranks| *ranks > inner) {
        let reason = format!(
            "{} x {} ranks share {inner} x {inner} inner points: start another number of ranks or \
             raise --size",
            dims[0], dims[1],
        );
        return Ok(support::refuse_job::<Options>(comm, &reason));
    }
    // Without reordering, every rank has a place in the grid, with the same number as here.
    match comm.create_cartesian(&dims, &[false, false], false)? {
        Some(grid) => solve(&grid, dims, &options),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn solve(
    grid: &CartesianCommunicator,
    dims: [usize; 2],
    options: &Options,
) -> Result<ExitCode, Error> {
    let inner = options.size as usize - 2;
    let mut block = Block::new(inner, dims, grid.rank());
    grid.barrier()?;
    let mut run = relax(grid, &mut block, options)?;
    run.communication /= run.seconds;
    grid.all_reduce(&mut run.communication, Op::Max)?;
    let passed = match gather(grid, inner, dims, &block)? {
        Some(whole) => {
            println!(
                "laplace: {size} x {size} points, {} x {} ranks",
                dims[0],
                dims[1],
                size = options.size,
            );
            report(options, &run, &whole);
            conclude(inner, run.iterations, &whole)
        }
        None => true,
    };
    support::outcome(grid, passed)
}

/// The outcome and the cost of the iterations.
struct Run {
    iterations: u64,
    residual: f64,
    seconds: f64,
    /// Seconds that this rank spent on messages.
    communication: f64,
}

/// Iterates until the residual is small enough or the iterations are used up.
fn relax(grid: &CartesianCommunicator, block: &mut Block, options: &Options) -> Result<Run, Error> {
    let neighbours = Neighbours::of(grid)?;
    let start = mpj::wtime();
    let mut run = Run { iterations: 0, residual: f64::INFINITY, seconds: 0.0, communication: 0.0 };
    while run.iterations < options.iterations && run.residual > options.tolerance {
        run.iterations += 1;
        run.communication += timed(|| block.exchange(grid, &neighbours))?;
        block.sweep();
        if run.iterations % CHECK_EVERY == 0 || run.iterations == options.iterations {
            run.residual = block.change();
            run.communication += timed(|| grid.all_reduce(&mut run.residual, Op::Max))?;
        }
    }
    run.seconds = mpj::wtime() - start;
    Ok(run)
}

/// Returns the seconds that `body` took.
fn timed(body: impl FnOnce() -> Result<(), Error>) -> Result<f64, Error> {
    let start = mpj::wtime();
    body()?;
    Ok(mpj::wtime() - start)
}

/// The ranks of the neighbouring blocks; `None` beyond an edge.
struct Neighbours {
    above: Option<usize>,
    below: Option<usize>,
    left: Option<usize>,
    right: Option<usize>,
}

impl Neighbours {
    fn of(grid: &CartesianCommunicator) -> Result<Self, Error> {
        let (vertical, horizontal) = (grid.shift(0, 1)?, grid.shift(1, 1)?);
        Ok(Self {
            above: vertical.source,
            below: vertical.destination,
            left: horizontal.source,
            right: horizontal.destination,
        })
    }
}

/// The points of one rank, row by row, and the halo around them.
struct Block {
    rows: usize,
    columns: usize,
    values: Vec<f64>,
    /// Values of the previous sweep.
    old: Vec<f64>,
    above: Vec<f64>,
    below: Vec<f64>,
    left: Vec<f64>,
    right: Vec<f64>,
}

impl Block {
    /// Makes a block with all points at 0 and the fixed edges as halo; neighbours replace their parts of the halo.
    fn new(inner: usize, dims: [usize; 2], rank: usize) -> Self {
        let (rows, columns) = partition::block([inner; 2], dims, rank);
        let hot = if rows.start == 0 { 1.0 } else { 0.0 };
        let (rows, columns) = (rows.len(), columns.len());
        Self {
            rows,
            columns,
            values: vec![0.0; rows * columns],
            old: vec![0.0; rows * columns],
            above: vec![hot; columns],
            below: vec![0.0; columns],
            left: vec![0.0; rows],
            right: vec![0.0; rows],
        }
    }

    /// Fills the halo from the neighbours.
    fn exchange(&mut self, grid: &Communicator, neighbours: &Neighbours) -> Result<(), Error> {
        let columns = self.columns;
        let (first, last) = (&self.values[..columns], &self.values[self.values.len() - columns..]);
        let leftmost = mpj::column(&self.values, columns, 0)?;
        let rightmost = mpj::column(&self.values, columns, columns - 1)?;
        grid.scope(|scope| {
            if let Some(above) = neighbours.above {
                scope.irecv(&mut self.above, above, UPWARD)?;
                scope.isend(first, above, DOWNWARD)?;
            }
            if let Some(below) = neighbours.below {
                scope.irecv(&mut self.below, below, DOWNWARD)?;
                scope.isend(last, below, UPWARD)?;
            }
            if let Some(left) = neighbours.left {
                scope.irecv(&mut self.left, left, UPWARD)?;
                scope.isend(&leftmost, left, DOWNWARD)?;
            }
            if let Some(right) = neighbours.right {
                scope.irecv(&mut self.right, right, DOWNWARD)?;
                scope.isend(&rightmost, right, UPWARD)?;
            }
            Ok(())
        })
    }

    /// Replaces every value by the mean of the four around it.
    fn sweep(&mut self) {
        std::mem::swap(&mut self.values, &mut self.old);
        let columns = self.columns;
        let old = |row: usize| &self.old[row * columns..][..columns];
        for (row, new) in self.values.chunks_exact_mut(columns).enumerate() {
            let own = old(row);
            let above = if row == 0 { &self.above } else { old(row - 1) };
            let below = if row + 1 == self.rows { &self.below } else { old(row + 1) };
            let mut left = self.left[row];
            for (column, new) in new.iter_mut().enumerate() {
                let right = own.get(column + 1).copied().unwrap_or(self.right[row]);
                *new = 0.25 * (above[column] + below[column] + left + right);
                left = own[column];
            }
        }
    }

    /// Returns the largest change of the last sweep.
    fn change(&self) -> f64 {
        let changes = self.values.iter().zip(&self.old).map(|(new, old)| (new - old).abs());
        changes.fold(0.0, f64::max)
    }
}

/// Collects the inner points of all ranks on rank 0, row by row. Collective.
fn gather(
    grid: &Communicator,
    inner: usize,
    dims: [usize; 2],
    block: &Block,
) -> Result<Option<Vec<f64>>, Error> {
    if grid.rank() > 0 {
        grid.send(&block.values, 0, BLOCK)?;
        return Ok(None);
    }
    let mut whole = vec![0.0; inner * inner];
    for (row, values) in block.values.chunks_exact(block.columns).enumerate() {
        whole[row * inner..][..block.columns].copy_from_slice(values);
    }
    for rank in 1..grid.size() {
        let (rows, columns) = partition::block([inner; 2], dims, rank);
        // A block of the whole matrix is also one buffer.
        grid.recv(&mut mpj::block_mut(&mut whole, inner, rows, columns)?, rank, BLOCK)?;
    }
    Ok(Some(whole))
}

/// Returns the value at the centre. For an even number of points it is the mean of the four points around the centre.
fn centre(inner: usize, whole: &[f64]) -> f64 {
    let middle = [(inner - 1) / 2, inner / 2];
    let row = |row: usize| whole[row * inner + middle[0]] + whole[row * inner + middle[1]];
    (row(middle[0]) + row(middle[1])) / 4.0
}

/// Returns FNV-1a over the bits of all values.
fn checksum(whole: &[f64]) -> u64 {
    whole.iter().fold(0xcbf2_9ce4_8422_2325, |sum, value| {
        (sum ^ value.to_bits()).wrapping_mul(0x0100_0000_01b3)
    })
}

fn report(options: &Options, run: &Run, whole: &[f64]) {
    let flops = FLOPS_PER_POINT * whole.len() as f64 * run.iterations as f64;
    let (reached, tolerance) = (run.residual <= options.tolerance, options.tolerance);
    println!("  iterations      {}", run.iterations);
    println!("  residual        {:.6e}, the largest change in the last iteration", run.residual);
    println!(
        "  tolerance       {tolerance:e}, {}",
        if reached { "reached" } else { "not reached" }
    );
    println!(
        "  centre          {:.9e}, 0.25 when solved",
        centre(options.size as usize - 2, whole)
    );
    println!("  time            {:.6} s", run.seconds);
    println!("  speed           {:.1} MFLOP/s", flops / run.seconds / 1e6);
    println!("  communication   {:.1} %, the largest of all ranks", run.communication * 100.0);
    println!("  checksum        {:016x}", checksum(whole));
}

/// Compares with the same number of sweeps on one rank. Returns whether they agree.
fn conclude(inner: usize, iterations: u64, whole: &[f64]) -> bool {
    let start = mpj::wtime();
    let mut alone = Block::new(inner, [1, 1], 0);
    (0..iterations).for_each(|_| alone.sweep());
    println!("  one rank        {:.6} s", mpj::wtime() - start);
    let differences = whole.iter().zip(&alone.values).map(|(one, other)| (one - other).abs());
    // In this order, values that are not numbers are the greatest.
    let error = differences.max_by(f64::total_cmp).unwrap_or(0.0);
    if error == 0.0 {
        println!("  error           {error:.3e}: verified");
        return true;
    }
    eprintln!("laplace: the values differ from those of one rank by up to {error:.3e}");
    false
}
