//! Smooths numbers on a torus, whose blocks lie on a grid of ranks, with halos that are exchanged in two ways: by a
//! collective call among neighbours, and by puts into windows that are exposed to neighbours only. Both give the same
//! numbers, to the last bit.
//!
//! `cargo mpj run --release -n 4 --example halo -- --size 200 --sweeps 100`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::process::ExitCode;

use clap::Parser;
use mpj::{CartesianCommunicator, Communicator, Error, Op, Window};

#[path = "support/random.rs"]
mod random;
mod support;

const SEED: u64 = 8;

/// Smooths numbers on a torus.
#[derive(Parser)]
#[command(name = "halo")]
struct Options {
    /// Numbers along the edge of a rank's block
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1 << 12))]
    size: u64,
    /// How often each number becomes the mean of its neighbours
    #[arg(long, default_value_t = 50)]
    sweeps: u64,
}

/// A square block of numbers, row by row.
#[derive(Clone, PartialEq)]
struct Block {
    size: usize,
    numbers: Vec<f64>,
}

impl Block {
    /// Returns the edges one after the other, in the order of neighbours in a grid: above, below, left, right.
    fn edges(&self) -> Vec<f64> {
        let Self { size, numbers } = self;
        let (first, last) = (&numbers[..*size], &numbers[numbers.len() - size..]);
        let rows = || numbers.chunks_exact(*size);
        let (left, right) = (rows().map(|row| row[0]), rows().map(|row| row[size - 1]));
        [first, last].concat().into_iter().chain(left).chain(right).collect()
    }

    /// Replaces each number by the mean of the four around it. Those beyond the edges are `ghosts`, in the order of
    /// [`Block::edges`].
    fn sweep(&mut self, ghosts: &[f64]) {
        let size = self.size;
        let beside: Vec<&[f64]> = ghosts.chunks_exact(size).collect();
        let old = std::mem::take(&mut self.numbers);
        let mean = |at: usize| {
            let (row, column) = (at / size, at % size);
            let above = if row == 0 { beside[0][column] } else { old[at - size] };
            let below = if row == size - 1 { beside[1][column] } else { old[at + size] };
            let left = if column == 0 { beside[2][row] } else { old[at - 1] };
            let right = if column == size - 1 { beside[3][row] } else { old[at + 1] };
            0.25 * (above + below + (left + right))
        };
        self.numbers = (0..size * size).map(mean).collect();
    }
}

/// Gets the ghosts by a collective call among neighbours.
fn exchange(grid: &CartesianCommunicator, edges: &[f64], ghosts: &mut [f64]) -> Result<(), Error> {
    grid.neighbour_all_to_all(edges, ghosts)
}

/// Puts each edge into the window of the neighbour beyond it, which has it as the ghosts of its opposite edge.
fn put(window: &mut Window<f64>, neighbours: &[usize; 4], edges: &[f64]) -> Result<(), Error> {
    let size = edges.len() / 4;
    window.expose(neighbours, |exposure| {
        exposure.access(neighbours, |epoch| {
            epoch.scope(|scope| {
                let each = edges.chunks_exact(size).zip(neighbours);
                each.zip([1, 0, 3, 2]).try_for_each(|((edge, neighbour), opposite)| {
                    scope.put(edge, *neighbour, opposite * size)
                })
            })
        })
    })
}

fn main() -> ExitCode {
    support::run(start)
}

fn start(comm: &Communicator, options: Options) -> Result<ExitCode, Error> {
    let size = options.size as usize;
    let dims = mpj::dims_create(comm.size(), [0, 0])?;
    let grid = comm.create_cartesian(&dims, &[true, true], false)?;
    let grid = grid.expect("every rank has a place");
    let beside =
        [grid.shift(0, 1)?, grid.shift(1, 1)?].map(|shift| [shift.source, shift.destination]);
    let [above, below, left, right] = beside.concat()[..] else { unreachable!("two dimensions") };
    let neighbours = [above, below, left, right].map(|rank| rank.expect("a torus has no end"));

    let first = (size * size * grid.rank()) as u64;
    let numbers = (0..(size * size) as u64).map(|at| random::uniform(SEED, first + at)).collect();
    let before = Block { size, numbers };
    let [mut by_call, mut by_puts] = [before.clone(), before.clone()];
    let (mut ghosts, mut seconds) = (vec![0.0; 4 * size], [0.0; 2]);
    let mut window = grid.allocate_window(4 * size)?;
    for _ in 0..options.sweeps {
        let edges = by_call.edges();
        seconds[0] += timed(|| exchange(&grid, &edges, &mut ghosts))?;
        by_call.sweep(&ghosts);
    }
    for _ in 0..options.sweeps {
        let edges = by_puts.edges();
        seconds[1] += timed(|| put(&mut window, &neighbours, &edges))?;
        by_puts.sweep(&window.local()?);
    }

    // Means keep the sum, apart from rounding.
    let sum = |block: &Block| block.numbers.iter().sum::<f64>();
    let mut sums = [sum(&before), sum(&by_call)];
    grid.all_reduce(&mut sums, Op::Sum)?;
    grid.all_reduce(&mut seconds, Op::Max)?;
    let keeps = (sums[0] - sums[1]).abs() < 1e-9 * (size * size * grid.size()) as f64;
    let passed = grid.all(keeps && by_call == by_puts)?;
    if grid.rank() == 0 {
        println!("halo: {} x {} ranks, each with {size} x {size} numbers", dims[0], dims[1]);
        let [call, puts] = seconds.map(|seconds| seconds / options.sweeps.max(1) as f64 * 1e6);
        println!("  call            {call:.2} us for each exchange");
        println!("  puts            {puts:.2} us for each exchange");
        match passed {
            true => println!("  numbers         verified"),
            false => eprintln!("halo: the numbers differ, or their sum has changed: {sums:?}"),
        }
    }
    support::outcome(&grid, passed)
}

/// Returns the seconds that `body` took.
fn timed(body: impl FnOnce() -> Result<(), Error>) -> Result<f64, Error> {
    let start = mpj::wtime();
    body()?;
    Ok(mpj::wtime() - start)
}
