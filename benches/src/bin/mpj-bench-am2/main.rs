//! The benchmark worker for AM-2: one task of a launch, with one endpoint. `mpj-bench` starts it through `mpjrun`.

#![allow(clippy::print_stdout, reason = "records go to standard output")]

mod handlers;
mod job;
mod messages;

use std::process::ExitCode;

use mpj_bench_programs::{Order, Record, worker};

use job::AmJob;

fn main() -> ExitCode {
    let orders = Order::several(std::env::args()).unwrap_or_else(|error| error.exit());
    let job = match AmJob::join() {
        Ok(job) => job,
        Err(failure) => return failed(&failure.to_string()),
    };
    let mut emit = |record: &Record| println!("{}", record.line());
    let measured = worker::run_by(&job, &orders, &mut emit, |order, program, sink| {
        messages::run(&job, order, program, sink)
    });
    match measured.and_then(|()| job.leave()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // The other task may wait for this one, so it exits without it, which ends the job.
            let code = failed(&format!("task {}: {failure}", job.task()));
            std::mem::forget(job);
            code
        }
    }
}

fn failed(reason: &str) -> ExitCode {
    println!("{}", Record::Failed(reason.to_owned()).line());
    ExitCode::FAILURE
}
