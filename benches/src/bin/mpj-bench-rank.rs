//! The benchmark worker for mpj: one rank of a launch. `mpj-bench` starts it through `mpjrun`.

use std::process::ExitCode;

use mpj_bench::over_mpj::OverMpj;
use mpj_bench_programs::worker;

fn main() -> ExitCode {
    worker::main(OverMpj::init, |mpj, orders| worker::run(mpj, orders, &mut worker::print))
}
