//! The smallest program: every rank sends its name, and rank 0 checks that it has received all of them.
//!
//! `cargo mpj run -n 4 --example hello`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::process::ExitCode;

use mpj::{Communicator, Error};

const NAME: i32 = 1;

fn main() -> ExitCode {
    match mpj::init().and_then(|world| greet(&world)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("hello: {error}");
            ExitCode::FAILURE
        }
    }
}

fn greet(comm: &Communicator) -> Result<bool, Error> {
    let name = name(comm.rank(), comm.size());
    println!("hello from {name}, process {}", std::process::id());
    if comm.rank() != 0 {
        comm.send(name.as_bytes(), 0, NAME)?;
        return Ok(true);
    }
    let mut heard = 1;
    for rank in 1..comm.size() {
        let (bytes, _) = comm.recv_vec::<u8>(rank, NAME)?;
        if bytes == self::name(rank, comm.size()).as_bytes() {
            heard += 1;
        } else {
            eprintln!("rank {rank} calls itself {:?}", String::from_utf8_lossy(&bytes));
        }
    }
    println!("rank 0 has heard {heard} of {} ranks", comm.size());
    Ok(heard == comm.size())
}

fn name(rank: usize, size: usize) -> String {
    format!("rank {rank} of {size}")
}
