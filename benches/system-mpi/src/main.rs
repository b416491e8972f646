//! The worker for a system MPI: one rank of a launch. Built by `mpj-bench` once for each MPI, and
//! started by it through the launcher that belongs to that MPI.

mod mpi;

use std::process::ExitCode;

use mpj_bench_programs::worker;

use crate::mpi::SystemMpi;

fn main() -> ExitCode {
    worker::main(SystemMpi::init, |mpi, orders| {
        worker::run_with_windows(mpi, orders, &mut worker::print)
    })
}
