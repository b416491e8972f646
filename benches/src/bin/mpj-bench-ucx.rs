//! The benchmark worker for UCX: it runs pairs of `ucx_perftest`, and prints what they measure as every worker does.
//! `mpj-bench` starts it, with the path of `ucx_perftest` before the orders.

use std::path::PathBuf;
use std::process::ExitCode;

use mpj_bench::ucx;
use mpj_bench_programs::{Order, worker};

fn main() -> ExitCode {
    let perftest: PathBuf = std::env::args().nth(1).unwrap_or_default().into();
    let measured = Order::of_command_line();
    worker::ended(measured.and_then(|orders| ucx::run(&perftest, &orders, &mut worker::print)))
}
