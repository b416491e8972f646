//! The benchmark worker for mpj: one rank of a launch. `mpj-bench` starts it through `mpjrun`.

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
            // Other ranks may wait for this one, so it exits without them, which ends the job.
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
