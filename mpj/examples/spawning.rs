//! A job that grows: its ranks spawn workers, send each of them a piece of a sum, and add up the answers.
//!
//! `cargo mpj run -n 1 --example spawning -- 4`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::process::ExitCode;

use mpj::spawn::Command;
use mpj::{Error, InterCommunicator, World};

const PIECE: i32 = 1;
const SUM: i32 = 2;
const NUMBERS: u64 = 1_000_000;

fn main() -> ExitCode {
    let outcome = mpj::init().and_then(|world| match world.parents() {
        Some(parents) => work(parents).map(|()| true),
        None => manage(&world),
    });
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("spawning: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Spawns workers, and checks the sum of what they answer.
fn manage(world: &World) -> Result<bool, Error> {
    let workers = std::env::args().nth(1).and_then(|number| number.parse().ok()).unwrap_or(2);
    let program = std::env::current_exe().unwrap_or_else(|_| "spawning".into());
    let workers = Command::new(program).ranks(workers).spawn(world, 0)?;
    if world.rank() != 0 {
        return Ok(true);
    }
    let pieces = workers.remote_size() as u64;
    let mut sum = 0;
    for worker in 0..pieces {
        let piece = [worker * NUMBERS / pieces, (worker + 1) * NUMBERS / pieces];
        workers.send(&piece, worker as usize, PIECE)?;
    }
    for worker in 0..pieces {
        let mut answer = [0];
        workers.recv(&mut answer, worker as usize, SUM)?;
        sum += answer[0];
    }
    println!("{pieces} workers have added up {NUMBERS} numbers: {sum}");
    Ok(sum == NUMBERS * (NUMBERS - 1) / 2)
}

/// Adds up the numbers of one piece.
fn work(parents: &InterCommunicator) -> Result<(), Error> {
    let mut piece = [0_u64; 2];
    parents.recv(&mut piece, 0, PIECE)?;
    parents.send(&[(piece[0]..piece[1]).sum::<u64>()], 0, SUM)
}
