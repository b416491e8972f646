//! Code that the example programs share: options, the exit code of a rank, and collective operations in the forms that
//! they need, on values whose number only the sender knows.
//!
//! Every rank of a job calls each collective operation in the same order.
#![allow(dead_code, reason = "no single example needs all of it")]

use std::process::ExitCode;

use clap::Parser;
use mpj::{Communicator, Datatype, Error, Op, World};

/// Exit code for wrong options and unusable input; clap uses the same.
pub const USAGE: u8 = 2;

/// Tag of the collective operations. Messages between two ranks do not overtake each other, so one
/// tag serves a sequence of operations.
const COLLECTIVE: i32 = i32::MAX;

/// Runs one rank: starts, parses the options, calls `body`, finishes.
///
/// A wrong option is wrong on every rank, so only rank 0 reports it. The same holds for every other reason why `body`
/// returns an exit code: all ranks have to agree on it.
pub fn run<O: Parser>(body: impl FnOnce(&Communicator, O) -> Result<ExitCode, Error>) -> ExitCode {
    let world = match mpj::init() {
        Ok(world) => world,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let options = match O::try_parse() {
        Ok(options) => options,
        Err(error) => return refuse(&world, &error),
    };
    match body(&world, options) {
        Ok(code) => code,
        Err(error) => abandon(world, &error),
    }
}

/// Reports a clap error once and gives its exit code: 0 for help, [`USAGE`] otherwise.
fn refuse(comm: &Communicator, error: &clap::Error) -> ExitCode {
    if comm.rank() == 0 {
        // There is nowhere left to report that standard error is closed.
        let _ = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE))
}

/// Reports once, in one line, why this job cannot do what the options ask for.
pub fn refuse_job<O: Parser>(comm: &Communicator, reason: &str) -> ExitCode {
    if comm.rank() == 0 {
        eprintln!("{}: {reason}", O::command().get_name());
    }
    ExitCode::from(USAGE)
}

/// Ends a rank whose communication failed.
///
/// Finishing is collective, and the rank's peers may wait for messages that will never come. So the rank exits without
/// finishing, which makes the launcher end the job.
fn abandon(world: World, error: &Error) -> ExitCode {
    eprintln!("rank {}: {error}", world.rank());
    std::mem::forget(world);
    ExitCode::FAILURE
}

/// Gives the values of rank 0 to every rank.
pub fn broadcast<T: Datatype>(comm: &Communicator, values: Vec<T>) -> Result<Vec<T>, Error> {
    if comm.rank() != 0 {
        return Ok(comm.recv_vec(0, COLLECTIVE)?.0);
    }
    for rank in 1..comm.size() {
        comm.send(&values, rank, COLLECTIVE)?;
    }
    Ok(values)
}

/// Gives the largest value of all ranks to every rank.
pub fn maximum(comm: &Communicator, mut value: f64) -> Result<f64, Error> {
    comm.all_reduce(&mut value, Op::Max)?;
    Ok(value)
}

/// Returns the exit code of all ranks: a failure if any rank failed its check.
pub fn outcome(comm: &Communicator, passed: bool) -> Result<ExitCode, Error> {
    let failed = maximum(comm, f64::from(u8::from(!passed)))? > 0.0;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
