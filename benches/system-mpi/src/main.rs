//! The worker for a system MPI: one rank of a launch. Built by `mpj-bench` once for each MPI, and
//! started by it through the launcher that belongs to that MPI.

#![allow(clippy::print_stdout, reason = "records go to standard output")]

mod mpi;
mod name;

use std::process::ExitCode;

use mpj_bench_programs::{Order, Record, worker};

use crate::mpi::SystemMpi;

fn main() -> ExitCode {
    let orders = Order::several(std::env::args()).unwrap_or_else(|error| error.exit());
    let mpi = match SystemMpi::init() {
        Ok(mpi) => mpi,
        Err(failure) => {
            emit(&Record::Failed(failure.to_string()));
            return ExitCode::FAILURE;
        }
    };
    match worker::run(&mpi, &orders, &mut emit) {
        Ok(()) => mpi.finalize(),
        Err(failure) => mpi.fail(&failure),
    }
    ExitCode::SUCCESS
}

/// Prints a record. Standard output passes every line on at once.
fn emit(record: &Record) {
    println!("{}", record.line());
}
