//! Laplace's equation on a square by red-black relaxation, the rows distributed over the ranks, with
//! a halo exchange before every half sweep. It is the benchmark that HPJava was measured with.
//!
//! `cargo mpj run -n 4 --release --example laplace`
//!
//! One edge is held at 1, the other three at 0. A half sweep updates the points of one colour from
//! points of the other colour alone, so the order of the updates does not matter and the result is
//! the same to the last bit for any number of ranks; the checksum shows it. In the exact solution
//! the centre is at 0.25, because four such squares, turned, add up to one at 1 everywhere.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::process::ExitCode;

use clap::Parser;
use mpj::{Communicator, Error};

#[path = "support/partition.rs"]
mod partition;
mod support;

const UPWARD: i32 = 1;
const DOWNWARD: i32 = 2;
/// Iterations from one measurement of the residual to the next.
const CHECK_EVERY: u64 = 10;
/// Three additions and a multiplication per point.
const FLOPS_PER_POINT: f64 = 4.0;

/// Solves Laplace's equation on a square of points by red-black relaxation.
#[derive(Parser)]
#[command(name = "laplace")]
struct Options {
    /// Points along an edge, the fixed ones included
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u64).range(3..=1 << 14))]
    size: u64,
    /// Iterations at most
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
    support::run(solve)
}

fn solve(comm: &Communicator, options: Options) -> Result<ExitCode, Error> {
    let size = options.size as usize;
    if comm.size() > size - 2 {
        let reason = format!(
            "{} ranks share {} inner rows: start at most {} ranks or raise --size",
            comm.size(),
            size - 2,
            size - 2,
        );
        return Ok(support::refuse_job::<Options>(comm, &reason));
    }
    let mut band = Band::new(size, comm.size(), comm.rank());
    comm.barrier()?;
    let run = relax(comm, &mut band, &options)?;
    let communication = support::maximum(comm, run.communication / run.seconds)?;
    let digest = digest(comm, &band)?;
    if comm.rank() == 0 {
        report(comm, &options, &run, communication, &digest);
    }
    Ok(ExitCode::SUCCESS)
}

/// What the iterations took and reached.
struct Run {
    iterations: u64,
    residual: f64,
    seconds: f64,
    /// Seconds of this rank in messages.
    communication: f64,
}

/// Iterates until the residual is small enough or the iterations are used up.
fn relax(comm: &Communicator, band: &mut Band, options: &Options) -> Result<Run, Error> {
    let start = mpj::wtime();
    let mut run = Run { iterations: 0, residual: f64::INFINITY, seconds: 0.0, communication: 0.0 };
    while run.iterations < options.iterations && run.residual > options.tolerance {
        run.iterations += 1;
        let measured = run.iterations % CHECK_EVERY == 0 || run.iterations == options.iterations;
        let mut change = 0.0_f64;
        for colour in 0..2 {
            run.communication += timed(|| band.exchange(comm))?.1;
            change = change.max(band.update(colour, measured));
        }
        if measured {
            let (largest, seconds) = timed(|| support::maximum(comm, change))?;
            run.residual = largest;
            run.communication += seconds;
        }
    }
    run.seconds = mpj::wtime() - start;
    Ok(run)
}

/// The result of `body` and the seconds that it took.
fn timed<R>(body: impl FnOnce() -> Result<R, Error>) -> Result<(R, f64), Error> {
    let start = mpj::wtime();
    let result = body()?;
    Ok((result, mpj::wtime() - start))
}

/// The rows of one rank, between a row of the neighbour (or the fixed edge) above and one below.
struct Band {
    width: usize,
    /// Number of the row above the rank's own, counted from the hot edge.
    above: usize,
    rows: usize,
    values: Vec<f64>,
}

impl Band {
    fn new(width: usize, ranks: usize, rank: usize) -> Self {
        let inner = partition::part(width - 2, ranks, rank);
        let mut values = vec![0.0; (inner.len() + 2) * width];
        if inner.start == 0 {
            values[..width].fill(1.0);
        }
        Self { width, above: inner.start, rows: inner.len(), values }
    }

    fn inner(&self) -> &[f64] {
        &self.values[self.width..][..self.rows * self.width]
    }

    /// Fills the rows above and below from the neighbours.
    fn exchange(&mut self, comm: &Communicator) -> Result<(), Error> {
        let width = self.width;
        let (above, rest) = self.values.split_at_mut(width);
        let (inner, below) = rest.split_at_mut(self.rows * width);
        let (first, last) = (&inner[..width], &inner[inner.len() - width..]);
        comm.scope(|scope| {
            if let Some(neighbour) = comm.rank().checked_sub(1) {
                scope.irecv(above, neighbour, DOWNWARD)?;
                scope.isend(first, neighbour, UPWARD)?;
            }
            if comm.rank() + 1 < comm.size() {
                let neighbour = comm.rank() + 1;
                scope.irecv(below, neighbour, UPWARD)?;
                scope.isend(last, neighbour, DOWNWARD)?;
            }
            Ok(())
        })
    }

    /// Updates the points of one colour. Returns the largest change where that is wanted.
    fn update(&mut self, colour: usize, measured: bool) -> f64 {
        let rows = 1..=self.rows;
        if measured {
            rows.map(|row| self.update_row::<true>(row, colour)).fold(0.0, f64::max)
        } else {
            rows.map(|row| self.update_row::<false>(row, colour)).fold(0.0, f64::max)
        }
    }

    fn update_row<const MEASURED: bool>(&mut self, row: usize, colour: usize) -> f64 {
        let width = self.width;
        let (above, rest) = self.values[(row - 1) * width..(row + 2) * width].split_at_mut(width);
        let (own, below) = rest.split_at_mut(width);
        let mut change = 0.0_f64;
        // Point (i, j) has the colour of i + j.
        for column in (1 + (self.above + row + 1 + colour) % 2..width - 1).step_by(2) {
            let sum = above[column] + below[column] + own[column - 1] + own[column + 1];
            let value = 0.25 * sum;
            if MEASURED {
                change = change.max((value - own[column]).abs());
            }
            own[column] = value;
        }
        change
    }
}

/// What rank 0 learns of the solution.
struct Digest {
    centre: f64,
    /// FNV-1a over the bits of all inner rows, in order.
    checksum: u64,
}

fn digest(comm: &Communicator, band: &Band) -> Result<Digest, Error> {
    let width = band.width;
    // The centre of an even number of points is the mean of the four around it.
    let middle = [(width - 1) / 2, width / 2];
    let mut digest = Digest { centre: 0.0, checksum: 0xcbf2_9ce4_8422_2325 };
    let mut number = 0;
    support::gather(comm, band.inner(), |_, rows| {
        for row in rows.chunks_exact(width) {
            number += 1;
            for value in row {
                digest.checksum =
                    (digest.checksum ^ value.to_bits()).wrapping_mul(0x0100_0000_01b3);
            }
            let weight = middle.iter().filter(|middle| **middle == number).count() as f64;
            digest.centre += weight * (row[middle[0]] + row[middle[1]]) / 4.0;
        }
    })?;
    Ok(digest)
}

fn report(comm: &Communicator, options: &Options, run: &Run, communication: f64, digest: &Digest) {
    let (size, ranks) = (options.size, comm.size());
    let points = ((size - 2) * (size - 2)) as f64;
    let flops = FLOPS_PER_POINT * points * run.iterations as f64;
    let (reached, tolerance) = (run.residual <= options.tolerance, options.tolerance);
    println!("laplace: {size} x {size} points, {ranks} ranks");
    println!("  iterations      {}", run.iterations);
    println!("  residual        {:.6e}, the largest change in the last iteration", run.residual);
    println!(
        "  tolerance       {tolerance:e}, {}",
        if reached { "reached" } else { "not reached" }
    );
    println!("  centre          {:.9e}, 0.25 when solved", digest.centre);
    println!("  time            {:.6} s", run.seconds);
    println!("  speed           {:.1} MFLOP/s", flops / run.seconds / 1e6);
    println!("  communication   {:.1} %, the largest of all ranks", communication * 100.0);
    println!("  checksum        {:016x}", digest.checksum);
}
