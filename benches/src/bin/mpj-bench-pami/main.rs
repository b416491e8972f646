//! The benchmark worker for PAMI: one task of a launch, with a client of several contexts. `mpj-bench` starts it through
//! `mpjrun`.

mod dispatches;
mod job;

use std::process::ExitCode;

use mpj_bench::transfers;
use mpj_bench_programs::worker;

use job::PamiJob;

fn main() -> ExitCode {
    worker::main(PamiJob::join, |job, orders| {
        worker::run_by(job, orders, &mut worker::print, |order, program, sink| {
            transfers::run(job, order, program, sink)
        })
    })
}
