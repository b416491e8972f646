//! Solves a system of linear equations with a sparse matrix by conjugate gradients, and checks the
//! residual on one rank.
//!
//! `cargo mpj run -n 4 --release --example conjugate_gradient -- --grid 100`
//! `cargo mpj run -n 4 --release --example conjugate_gradient -- --matrix A.mtx`
//!
//! The matrix is symmetric and positive definite: that of Poisson's equation on a square grid, or one from a Matrix
//! Market file. Rank 0 reads it and gives every rank consecutive rows. Each iteration needs a product with the matrix,
//! for which the ranks exchange the elements that their rows use, and two inner products, which are sums over all
//! ranks. The right-hand side is computed from a solution of numbers between -1 and 1. At the end rank 0 has the whole
//! solution `x`, and computes the residual `b - A x` with the whole matrix.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ArgGroup, Parser};
use mpj::{Communicator, Error, Op};

use csr::Csr;
use matrix_market::MarketError;
use rows::Rows;

mod csr;
mod matrix_market;
#[path = "../support/partition.rs"]
mod partition;
#[path = "../support/random.rs"]
mod random;
mod rows;
#[path = "../support/mod.rs"]
mod support;

const SEED: u64 = 7;

/// Solves a sparse system of linear equations by conjugate gradients.
#[derive(Parser)]
#[command(
    name = "conjugate_gradient",
    group(ArgGroup::new("system").required(true).args(["matrix", "grid"]))
)]
struct Options {
    /// Matrix Market file: coordinate form, real numbers, general or symmetric
    #[arg(long, value_name = "A.mtx")]
    matrix: Option<PathBuf>,
    /// Poisson's equation on N x N points instead
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=4096))]
    grid: Option<u64>,
    /// Stop when the residual is this part of the right-hand side
    #[arg(long, default_value_t = 1e-10, value_parser = tolerance)]
    tolerance: f64,
    /// Maximum number of iterations
    #[arg(long, default_value_t = 10_000)]
    iterations: u64,
}

fn tolerance(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if (1e-14..1.0).contains(&value) { Ok(value) } else { Err("expected 1e-14 to 1".to_owned()) }
}

/// Why a matrix cannot be used.
#[derive(Debug, thiserror::Error)]
enum InputError {
    #[error("{}: cannot read: {reason}", path.display())]
    Open {
        path: PathBuf,
        #[source]
        reason: io::Error,
    },
    #[error("{}: {reason}", path.display())]
    Market {
        path: PathBuf,
        #[source]
        reason: MarketError,
    },
    #[error(
        "{}: not symmetric at row {row}, column {column}: conjugate gradients need a symmetric matrix",
        path.display()
    )]
    Asymmetric { path: PathBuf, row: usize, column: usize },
}

fn main() -> ExitCode {
    support::run(start)
}

fn start(comm: &Communicator, options: Options) -> Result<ExitCode, Error> {
    let whole = if comm.rank() == 0 {
        load(&options).map_err(|error| eprintln!("conjugate_gradient: {error}")).ok()
    } else {
        None
    };
    let mut rows = whole.as_ref().map_or(0, Csr::rows);
    comm.broadcast(&mut rows, 0)?;
    if rows == 0 {
        return Ok(ExitCode::from(support::USAGE));
    }
    let share = Rows::scatter(comm, rows, whole.as_ref())?;

    let first = partition::part(rows, comm.size(), comm.rank()).start;
    let mut vector = vec![0.0; share.own() + share.remote()];
    for (place, value) in vector[..share.own()].iter_mut().enumerate() {
        *value = random::uniform(SEED, (first + place) as u64);
    }
    let mut right = vec![0.0; share.own()];
    share.multiply(&mut vector, &mut right)?;

    comm.barrier()?;
    let start = mpj::wtime();
    let solution = solve(&share, &right, &options)?;
    let mut seconds = mpj::wtime() - start;
    comm.all_reduce(&mut seconds, Op::Max)?;
    let Some(solution) = solution else {
        let reason = "the matrix is not positive definite";
        return Ok(support::refuse_job::<Options>(comm, reason));
    };
    let mut remote = share.remote();
    comm.all_reduce(&mut remote, Op::Max)?;

    let blocks = rows::row_blocks(rows, comm);
    let room = if whole.is_some() { rows } else { 0 };
    let (mut x, mut b) = (vec![0.0; room], vec![0.0; room]);
    comm.gatherv(&solution.x, &mut x, &blocks, 0)?;
    comm.gatherv(&right, &mut b, &blocks, 0)?;
    let passed = whole.is_none_or(|whole| {
        println!(
            "conjugate_gradient: {rows} equations, {} entries, {} ranks",
            whole.values().len(),
            comm.size()
        );
        println!("  iterations      {}", solution.iterations);
        println!("  time            {seconds:.6} s");
        println!("  exchanged       {remote} elements for each product, the most of all ranks");
        conclude(&whole, &x, &b, options.tolerance)
    });
    support::outcome(comm, passed)
}

/// Returns the matrix that the options select.
fn load(options: &Options) -> Result<Csr, InputError> {
    let Some(path) = options.matrix.as_deref() else {
        return Ok(Csr::poisson(options.grid.unwrap_or(1) as usize));
    };
    let owned = || Path::to_owned(path);
    let file = File::open(path).map_err(|reason| InputError::Open { path: owned(), reason })?;
    let matrix = matrix_market::read(BufReader::new(file))
        .map_err(|reason| InputError::Market { path: owned(), reason })?;
    match matrix.asymmetry() {
        Some((row, column)) => {
            Err(InputError::Asymmetric { path: owned(), row: row + 1, column: column + 1 })
        }
        None => Ok(matrix),
    }
}

/// The elements of a solution on this rank.
struct Solution {
    x: Vec<f64>,
    iterations: u64,
}

/// Runs conjugate gradients, starting from zero. Returns `None` if the matrix turns out not to be positive definite.
/// All ranks find that out together, since they have the same inner products.
fn solve(rows: &Rows<'_>, right: &[f64], options: &Options) -> Result<Option<Solution>, Error> {
    let own = rows.own();
    let mut solution = Solution { x: vec![0.0; own], iterations: 0 };
    let mut residual = right.to_vec();
    let mut direction = vec![0.0; own + rows.remote()];
    direction[..own].copy_from_slice(right);
    let mut product = vec![0.0; own];
    let mut square = rows.dot(right, right)?;
    let goal = square * options.tolerance * options.tolerance;
    while square > goal && solution.iterations < options.iterations {
        solution.iterations += 1;
        rows.multiply(&mut direction, &mut product)?;
        let curvature = rows.dot(&direction[..own], &product)?;
        if curvature <= 0.0 {
            return Ok(None);
        }
        let length = square / curvature;
        for place in 0..own {
            solution.x[place] += length * direction[place];
            residual[place] -= length * product[place];
        }
        let next = rows.dot(&residual, &residual)?;
        for (direction, residual) in direction.iter_mut().zip(&residual) {
            *direction = residual + next / square * *direction;
        }
        square = next;
    }
    Ok(Some(solution))
}

/// Computes the residual of the whole solution, and reports. Returns whether it is small enough.
fn conclude(whole: &Csr, x: &[f64], b: &[f64], tolerance: f64) -> bool {
    let mut product = vec![0.0; b.len()];
    whole.multiply(x, &mut product);
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>().sqrt();
    let left = norm(&mut b.iter().zip(&product).map(|(b, product)| b - product));
    let error = if left == 0.0 { 0.0 } else { left / norm(&mut b.iter().copied()) };
    // The iteration updates its residual instead of recomputing it, so rounding errors add up.
    let limit = 10.0 * tolerance;
    let figures = format!("{error:.3e} of the right-hand side (at most {limit:.3e})");
    if error <= limit {
        println!("  residual        {figures}: verified");
        return true;
    }
    eprintln!(
        "conjugate_gradient: not solved, residual {figures}: raise --iterations or --tolerance"
    );
    false
}
