//! The worker for mpj: one rank of a launch. Started by `mpj-bench` through `mpjrun`.

#![allow(clippy::print_stdout, reason = "records go to standard output")]

use std::process::ExitCode;

use mpj_bench::over_mpj::OverMpj;
use mpj_bench_programs::{Order, Record, worker};

fn main() -> ExitCode {
    let orders = Order::several(std::env::args()).unwrap_or_else(|error| error.exit());
    let world = match mpj::init() {
        Ok(world) => world,
        Err(error) => return failed(&error.to_string()),
    };
    let runtime = OverMpj::new(&world);
    let measured = worker::run(&runtime, &orders, &mut |record| println!("{}", record.line()));
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // The others may wait for this rank, so it goes without them, which ends the job.
            let code = failed(&format!("rank {}: {failure}", world.rank()));
            std::mem::forget(world);
            code
        }
    }
}

fn failed(reason: &str) -> ExitCode {
    println!("{}", Record::Failed(reason.to_owned()).line());
    ExitCode::FAILURE
}
