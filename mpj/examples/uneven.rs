//! A program that does not scale: heat spreads along a rod, whose cells are divided evenly, but cells near one end take more
//! work. All ranks wait for the last one, which a timeline shows at a glance.
//!
//! `cargo mpj run -n 4 --release --trace uneven.pftrace --example uneven`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::hint::black_box;
use std::process::ExitCode;

use clap::Parser;
use mpj::{Communicator, Error, Op, PROC_NULL};

mod support;

/// Spreads heat along a rod whose cells take different amounts of work.
#[derive(Parser)]
#[command(name = "uneven")]
struct Options {
    /// How many steps are taken
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
    /// Cells of each rank
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(2..))]
    cells: u32,
    /// How many times as much work a cell of the last rank takes as one of the first
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100))]
    skew: u32,
}

fn main() -> ExitCode {
    support::run(spread)
}

fn spread(comm: &Communicator, options: Options) -> Result<ExitCode, Error> {
    let (rank, size) = (comm.rank(), comm.size());
    let work = 1 + (options.skew - 1) * rank as u32 / (size as u32 - 1).max(1);
    // The cell before the first one and that behind the last one are the neighbours'.
    let mut cells = vec![0.0; options.cells as usize + 2];
    if rank == 0 {
        cells[0] = 1.0;
    }
    let (start, mut change) = (mpj::wtime(), 0.0);
    for _ in 0..options.steps {
        exchange(comm, &mut cells)?;
        change = {
            let _part = mpj::span("step");
            step(&mut cells, work)
        };
        comm.all_reduce(&mut change, Op::Max)?;
    }
    let seconds = mpj::wtime() - start;
    if rank == 0 {
        println!("{} steps of {size} ranks took {seconds:.3} s", options.steps);
    }
    support::outcome(comm, change.is_finite())
}

/// Gives each neighbour the cell beside it, and gets its.
fn exchange(comm: &Communicator, cells: &mut [f64]) -> Result<(), Error> {
    let (rank, last) = (comm.rank(), cells.len() - 1);
    let left = rank.checked_sub(1).unwrap_or(PROC_NULL);
    let right = if rank + 1 < comm.size() { rank + 1 } else { PROC_NULL };
    let (first_own, last_own) = (cells[1], cells[last - 1]);
    comm.sendrecv(&last_own, right, 0, &mut cells[0], left, 0)?;
    comm.sendrecv(&first_own, left, 1, &mut cells[last], right, 1)?;
    Ok(())
}

/// Takes a step, each cell with so much work, and returns the largest change.
fn step(cells: &mut [f64], work: u32) -> f64 {
    let mut change = 0.0_f64;
    let mut before = cells[0];
    for at in 1..cells.len() - 1 {
        let mut next = cells[at];
        // Each round needs the one before, so the compiler cannot do them at once.
        for _ in 0..work {
            next = black_box(0.5 * next + 0.25 * (before + cells[at + 1]));
        }
        change = change.max((next - cells[at]).abs());
        (before, cells[at]) = (cells[at], next);
    }
    change
}
