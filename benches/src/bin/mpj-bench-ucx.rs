//! The benchmark worker for UCX: it runs pairs of `ucx_perftest`, and prints what they measure as every worker does.
//! `mpj-bench` starts it, with the path of `ucx_perftest` before the orders.

#![allow(clippy::print_stdout, reason = "records go to standard output")]

use std::path::PathBuf;
use std::process::ExitCode;

use mpj_bench::ucx;
use mpj_bench_programs::{Order, Record};

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().collect();
    let perftest: PathBuf = if words.len() > 1 { words.remove(1).into() } else { PathBuf::new() };
    let orders = Order::several(words).unwrap_or_else(|error| error.exit());
    let mut emit = |record: &Record| println!("{}", record.line());
    match ucx::run(&perftest, &orders, &mut emit) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            emit(&Record::Failed(error.to_string()));
            ExitCode::FAILURE
        }
    }
}
