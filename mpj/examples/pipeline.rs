//! A pipeline: data pass through all ranks, each of which does a part of the work on them. They travel in partitions, so
//! that a rank works on what has arrived, while the rank before it works on the rest.
//!
//! `cargo mpj run --release -n 4 --example pipeline -- --partitions 16`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::process::ExitCode;

use clap::Parser;
use mpj::{Communicator, Error, PROC_NULL};

#[path = "support/random.rs"]
mod random;
mod support;

const SEED: u64 = 13;
const TAG: i32 = 1;

/// Passes blocks of data through all ranks.
#[derive(Parser)]
#[command(name = "pipeline")]
struct Options {
    /// Numbers in a partition
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(..=1 << 20))]
    numbers: u64,
    /// Partitions of a block
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=1 << 10))]
    partitions: u64,
    /// Blocks
    #[arg(long, default_value_t = 10)]
    blocks: u64,
}

/// The work of a rank on a number.
fn work(rank: usize, number: f64) -> f64 {
    let number = (0..20).fold(number, |number, _| (number * 1.5 + rank as f64).sin());
    number + rank as f64
}

/// Returns the numbers of a block at the start of the pipeline.
fn block(index: u64, len: usize) -> impl Iterator<Item = f64> {
    (0..len as u64).map(move |at| random::uniform(SEED + index, at))
}

fn main() -> ExitCode {
    support::run(start)
}

fn start(comm: &Communicator, options: Options) -> Result<ExitCode, Error> {
    let (rank, ranks) = (comm.rank(), comm.size());
    let (partitions, each) = (options.partitions as usize, options.numbers as usize);
    let len = partitions * each;
    // Nobody is before the first rank, and nobody behind the last one.
    let before = rank.checked_sub(1).unwrap_or(PROC_NULL);
    let behind = if rank + 1 < ranks { rank + 1 } else { PROC_NULL };
    let mut receive = comm.precv_init(vec![0.0; len], partitions, before, TAG)?;
    let mut send = comm.psend_init(vec![0.0; len], partitions, behind, TAG)?;
    let mut differ = 0;
    comm.barrier()?;
    let start = mpj::wtime();
    for index in 0..options.blocks {
        let first: Vec<f64> = block(index, if rank == 0 { len } else { 0 }).collect();
        receive.scope(|arrivals| {
            send.scope(|unready| {
                for mut partition in unready {
                    let at = partition.index();
                    let numbers = loop {
                        match arrivals.arrived(at)? {
                            _ if rank == 0 => break &first[at * each..][..each],
                            Some(numbers) => break numbers,
                            None => {}
                        }
                    };
                    let pairs = partition.iter_mut().zip(numbers);
                    pairs.for_each(|(after, before)| *after = work(rank, *before));
                    partition.ready()?;
                }
                Ok::<_, Error>(())
            })?
        })??;
        if rank + 1 == ranks {
            let expected = block(index, len)
                .map(|number| (0..ranks).fold(number, |number, rank| work(rank, number)));
            differ +=
                send.buffer()?.iter().zip(expected).filter(|(one, other)| *one != other).count();
        }
    }
    let seconds = mpj::wtime() - start;
    if rank + 1 == ranks {
        println!(
            "pipeline: {ranks} ranks, {} blocks of {partitions} x {each} numbers",
            options.blocks
        );
        println!("  time            {seconds:.6} s");
        match differ {
            0 => println!("  numbers         verified"),
            differ => eprintln!("pipeline: {differ} numbers are wrong"),
        }
    }
    support::outcome(comm, differ == 0)
}
