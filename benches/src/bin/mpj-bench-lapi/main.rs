//! The benchmark worker for the transport itself: one task of a launch, over a context of `transport-lapi`. `mpj-bench`
//! starts it through `mpjrun`.

mod job;

use std::process::ExitCode;

use mpj_bench::transfers;
use mpj_bench_programs::worker;

use job::LapiJob;

fn main() -> ExitCode {
    worker::main(LapiJob::join, |job, orders| {
        worker::run_by(job, orders, &mut worker::print, |order, program, sink| {
            transfers::run(job, order, program, sink)
        })
    })
}
