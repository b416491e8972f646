//! Asynchronous tasks on tokio that await messages: tokens go around the ring of ranks, each hop awaited by a task of its
//! own, a few threads serving all of them.
//!
//! `cargo mpj run -n 3 --release --example tasks -- --tokens 100 --laps 20`
//!
//! `request.await` neither blocks a thread nor needs an executor of mpj's: the first future that has to wait starts the
//! rank's progress thread, which wakes the task.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::process::ExitCode;

use clap::Parser;
use mpj::{Communicator, Error};

mod support;

/// Passes tokens around the ring of ranks, by asynchronous tasks.
#[derive(Parser)]
#[command(name = "tasks")]
struct Options {
    /// Tokens, each with a task on every rank
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(i32).range(1..=10_000))]
    tokens: i32,
    /// Laps of each token
    #[arg(long, default_value_t = 10)]
    laps: u64,
}

fn main() -> ExitCode {
    support::run(start)
}

fn start(comm: &Communicator, options: Options) -> Result<ExitCode, Error> {
    let Options { tokens, laps } = options;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build();
    let runtime = runtime.expect("the system starts two threads");
    let tasks: Vec<_> =
        (0..tokens).map(|token| runtime.spawn(pass(comm.clone(), token, laps))).collect();
    let mut hops = 0;
    for task in tasks {
        hops = hops.max(runtime.block_on(task).expect("no task panics")?);
    }
    let expected = laps * comm.size() as u64;
    let passed = comm.rank() > 0 || hops == expected;
    if comm.rank() == 0 && passed {
        println!("tasks: {tokens} tokens, {hops} hops each: verified");
    } else if !passed {
        eprintln!("tasks: a token has made {hops} hops instead of {expected}");
    }
    support::outcome(comm, passed)
}

/// Passes a token on, once for each lap, and returns the hops that it has made in the end.
async fn pass(comm: Communicator, token: i32, laps: u64) -> Result<u64, Error> {
    let (rank, size) = (comm.rank(), comm.size());
    let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
    let mut hops = 0;
    for _ in 0..laps {
        // It begins first, since a rank that is alone sends to itself.
        let from_left = comm.irecv(vec![0], left, token)?;
        if rank == 0 {
            comm.isend(vec![hops + 1], right, token)?.await?;
        }
        hops = from_left.await?.0[0];
        if rank > 0 {
            comm.isend(vec![hops + 1], right, token)?.await?;
        }
    }
    Ok(hops)
}
