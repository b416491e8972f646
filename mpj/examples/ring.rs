//! A token goes round all ranks; every rank checks it, counts its hop and passes it on.
//!
//! `cargo mpj run -n 4 --release --example ring -- --laps 10000`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::process::ExitCode;

use clap::Parser;
use mpj::{Communicator, Error, Pod, Zeroable};

mod support;

const TOKEN: i32 = 1;

/// Sends a token round all ranks and prints the time per hop.
#[derive(Parser)]
#[command(name = "ring")]
struct Options {
    /// How often the token goes round
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    laps: u64,
}

/// The token. Any plain-old-data struct can be sent.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[bytemuck(crate = "mpj::bytemuck")]
#[repr(C)]
struct Token {
    lap: u64,
    hops: u64,
}

fn main() -> ExitCode {
    support::run(circulate)
}

fn circulate(comm: &Communicator, options: Options) -> Result<ExitCode, Error> {
    comm.barrier()?;
    let start = mpj::wtime();
    let mut wrong = 0;
    for lap in 0..options.laps {
        wrong += u64::from(!run_lap(comm, lap)?);
    }
    let seconds = mpj::wtime() - start;
    if wrong > 0 {
        eprintln!("rank {}: {wrong} of {} tokens were wrong", comm.rank(), options.laps);
    }
    if comm.rank() == 0 {
        let hops = options.laps as f64 * comm.size() as f64;
        let microseconds = seconds * 1e6 / hops;
        println!("ring of {} ranks: {hops} hops, {microseconds:.3} us per hop", comm.size());
    }
    support::outcome(comm, wrong == 0)
}

/// Sends the token round once. Returns whether this rank received the right one. A wrong token is passed on all the
/// same, because the next rank waits for it.
fn run_lap(comm: &Communicator, lap: u64) -> Result<bool, Error> {
    let (rank, size) = (comm.rank(), comm.size());
    let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
    let before = lap * size as u64;
    let mut token = [Token { lap, hops: before + 1 }];
    if rank == 0 {
        // One call does both, so that a single rank does not wait for itself.
        let first = token;
        comm.sendrecv(&first, next, TOKEN, &mut token, previous, TOKEN)?;
        return Ok(token[0] == Token { lap, hops: before + size as u64 });
    }
    comm.recv(&mut token, previous, TOKEN)?;
    let right = token[0] == Token { lap, hops: before + rank as u64 };
    token[0].hops += 1;
    comm.send(&token, next, TOKEN)?;
    Ok(right)
}
