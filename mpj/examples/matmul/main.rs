//! Multiplies two matrices on all ranks and checks the product against that of one rank.
//!
//! `cargo mpj run -n 4 --release --example matmul -- --size 512`
//! `cargo mpj run -n 4 --release --example matmul -- --a A.npy --b B.npy --out C.npy`
//!
//! Rank 0 reads or makes up the factors, and tells the others the plan, or that there is none. It distributes blocks,
//! all ranks run one of the algorithms, and it collects the product.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgGroup, Parser, ValueEnum};
use mpj::{Communicator, Error};

use algorithm::{Algorithm, Product};
use files::{Factors, FileError, Input};
use grid::{Block, Grid, Shape};
use local::Element;
use matrix::Matrix;
use npy::Dtype;

mod algorithm;
mod blocks;
mod cannon;
mod files;
mod grid;
mod literal;
mod local;
mod matrix;
mod npy;
#[path = "../support/partition.rs"]
mod partition;
#[path = "../support/random.rs"]
mod random;
mod ring;
mod summa;
#[path = "../support/mod.rs"]
mod support;
mod verify;

/// Multiplies two matrices.
#[derive(Parser)]
#[command(name = "matmul", group(ArgGroup::new("factors").required(true).args(["a", "size"])))]
struct Options {
    /// First factor, a NumPy file of f4 or f8
    #[arg(long, value_name = "A.npy", requires = "b", required_unless_present = "size")]
    a: Option<PathBuf>,
    /// Second factor, a NumPy file of the same type
    #[arg(long, value_name = "B.npy", requires = "a")]
    b: Option<PathBuf>,
    /// Multiply two made-up matrices of N x N instead
    #[arg(long, value_name = "N", conflicts_with = "b")]
    size: Option<usize>,
    /// Type of the made-up matrices
    #[arg(long, value_enum, default_value_t = Type::F64, conflicts_with_all = ["a", "b"])]
    dtype: Type,
    /// Where to write the product
    #[arg(long, value_name = "C.npy")]
    out: Option<PathBuf>,
    /// How the ranks share the work
    #[arg(long, value_enum, default_value_t = Choice::Auto)]
    algorithm: Choice,
}

#[derive(Clone, Copy, ValueEnum)]
enum Type {
    F32,
    F64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Choice {
    /// Cannon on a square number of ranks, SUMMA otherwise
    Auto,
    Cannon,
    Summa,
    Ring,
}

impl Choice {
    fn algorithm(self, ranks: usize) -> Result<Algorithm, String> {
        Ok(match self {
            Self::Auto => Algorithm::for_ranks(ranks),
            Self::Cannon => Algorithm::Cannon(Grid::square(ranks).ok_or_else(|| {
                format!(
                    "Cannon's algorithm needs a square number of ranks, not {ranks}: take \
                     --algorithm auto, summa or ring"
                )
            })?),
            Self::Summa => Algorithm::Summa(Grid::nearest_square(ranks)),
            Self::Ring => Algorithm::Ring { ranks },
        })
    }
}

fn main() -> ExitCode {
    support::run(start)
}

/// Agrees on the plan, or reports that the input allows none.
fn start(comm: &Communicator, options: Options) -> Result<ExitCode, Error> {
    let algorithm = match options.algorithm.algorithm(comm.size()) {
        Ok(algorithm) => algorithm,
        Err(reason) => return Ok(support::refuse_job::<Options>(comm, &reason)),
    };
    let input = if comm.rank() == 0 { report_error(load(&options)) } else { None };
    let Some((dtype, shape)) = announce(comm, input.as_ref().map(Input::plan))? else {
        return Ok(ExitCode::from(support::USAGE));
    };
    match (input, dtype) {
        (Some(Input::F32(factors)), _) => run(comm, &options, algorithm, shape, Some(factors)),
        (Some(Input::F64(factors)), _) => run(comm, &options, algorithm, shape, Some(factors)),
        (None, Dtype::F32) => run::<f32>(comm, &options, algorithm, shape, None),
        (None, Dtype::F64) => run::<f64>(comm, &options, algorithm, shape, None),
    }
}

fn load(options: &Options) -> Result<Input, FileError> {
    let input = match (&options.a, &options.b) {
        (Some(a), Some(b)) => Input::read(a, b)?,
        _ => {
            let dtype = match options.dtype {
                Type::F32 => Dtype::F32,
                Type::F64 => Dtype::F64,
            };
            Input::seeded(options.size.unwrap_or_default(), dtype)?
        }
    };
    if let Some(out) = &options.out {
        files::check_writable(out)?;
    }
    Ok(input)
}

fn report_error<T>(result: Result<T, FileError>) -> Option<T> {
    result.map_err(|error| eprintln!("matmul: {error}")).ok()
}

/// Tells every rank the plan of rank 0, which is `None` if the input is unusable.
fn announce(
    comm: &Communicator,
    plan: Option<(Dtype, Shape)>,
) -> Result<Option<(Dtype, Shape)>, Error> {
    let words = plan.map_or(Vec::new(), |(dtype, shape)| {
        vec![dtype.size() as u64, shape.m as u64, shape.k as u64, shape.n as u64]
    });
    let words = support::broadcast(comm, words)?;
    let [size, m, k, n] = words[..] else {
        return Ok(None);
    };
    let dtype = if size == Dtype::F32.size() as u64 { Dtype::F32 } else { Dtype::F64 };
    Ok(Some((dtype, Shape { m: m as usize, k: k as usize, n: n as usize })))
}

/// Seconds of each phase, and the share of the multiplication that was communication, not local products, on the rank
/// where it is largest.
struct Times {
    distribute: f64,
    multiply: f64,
    gather: f64,
    communication: f64,
}

fn run<T: Element>(
    comm: &Communicator,
    options: &Options,
    algorithm: Algorithm,
    shape: Shape,
    factors: Option<Factors<T>>,
) -> Result<ExitCode, Error> {
    let (c, times) = multiply(comm, algorithm, shape, factors.as_ref())?;
    let mut code = 0;
    if let Some(factors) = factors {
        println!(
            "matmul: {m} x {k} times {k} x {n}, {}, {algorithm}",
            T::DTYPE,
            m = shape.m,
            k = shape.k,
            n = shape.n,
        );
        report_times(shape, &times);
        code = conclude(options, shape, &factors, &c);
    }
    let code = support::broadcast(comm, vec![code])?[0];
    Ok(ExitCode::from(code))
}

/// Computes the product, which is complete on rank 0, where the factors are.
fn multiply<T: Element>(
    comm: &Communicator,
    algorithm: Algorithm,
    shape: Shape,
    factors: Option<&Factors<T>>,
) -> Result<(Matrix<T>, Times), Error> {
    let placements: Vec<_> =
        (0..comm.size()).map(|rank| algorithm.placement(shape, rank)).collect();
    let list = |of: fn(&grid::Placement) -> &Block| -> Vec<Block> {
        placements.iter().map(of).cloned().collect()
    };
    let blocks_of_c = list(|placement| &placement.c);
    let mut product = Product::zeros(&blocks_of_c[comm.rank()]);
    let extents = if comm.rank() == 0 { (shape.m, shape.n) } else { (0, 0) };
    let mut whole = Matrix::zeros(extents.0, extents.1);

    let start = mpj::wtime();
    let a = blocks::scatter(comm, &list(|placement| &placement.a), factors.map(|f| &f.a))?;
    let b = blocks::scatter(comm, &list(|placement| &placement.b), factors.map(|f| &f.b))?;
    comm.barrier()?;
    let distributed = mpj::wtime();
    algorithm.multiply(comm, shape, a, b, &mut product)?;
    let own_seconds = mpj::wtime() - distributed;
    comm.barrier()?;
    let multiplied = mpj::wtime();
    blocks::gather(comm, &blocks_of_c, &product.block, &mut whole)?;
    let gathered = mpj::wtime();

    let times = Times {
        distribute: distributed - start,
        multiply: multiplied - distributed,
        gather: gathered - multiplied,
        communication: support::maximum(comm, 1.0 - product.seconds / own_seconds)?,
    };
    Ok((whole, times))
}

fn report_times(shape: Shape, times: &Times) {
    println!("  distribute      {:.6} s", times.distribute);
    println!(
        "  multiply        {:.6} s, {:.2} GFLOP/s",
        times.multiply,
        gflops(shape, times.multiply)
    );
    println!(
        "  communication   {:.1} % of multiply, the largest of all ranks",
        times.communication * 100.0
    );
    println!("  gather          {:.6} s", times.gather);
}

fn gflops(shape: Shape, seconds: f64) -> f64 {
    let flops = 2.0 * shape.m as f64 * shape.k as f64 * shape.n as f64;
    // A product without values may take less time than the clock can measure.
    flops / seconds.max(f64::MIN_POSITIVE) / 1e9
}

/// Compares with the product of one rank and writes the file. Returns the exit code.
fn conclude<T: Element>(
    options: &Options,
    shape: Shape,
    factors: &Factors<T>,
    c: &Matrix<T>,
) -> u8 {
    let start = mpj::wtime();
    let reference = verify::reference(&factors.a, &factors.b);
    let seconds = mpj::wtime() - start;
    println!("  one rank        {seconds:.6} s, {:.2} GFLOP/s", gflops(shape, seconds));
    let residual = verify::residual(&factors.a, &factors.b, c, &reference);
    let figures = format!("{:.3e} (at most {:.3e})", residual.relative, residual.limit);
    if !residual.verified() {
        eprintln!("matmul: the product differs from that of one rank: residual {figures}");
        return 1;
    }
    println!("  residual        {figures}: verified");
    if let Some(out) = &options.out {
        if report_error(files::write(out, c)).is_none() {
            return 1;
        }
        println!("  written         {}", out.display());
    }
    0
}
