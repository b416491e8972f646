//! The benchmark worker for AM-2: one task of a launch, with one endpoint. `mpj-bench` starts it through `mpjrun`.

mod handlers;
mod job;
mod messages;

use std::process::ExitCode;

use mpj_bench_programs::worker;

use job::AmJob;

fn main() -> ExitCode {
    worker::main(AmJob::join, |job, orders| {
        worker::run_by(job, orders, &mut worker::print, |order, program, sink| {
            messages::run(job, order, program, sink)
        })
    })
}
