//! Makes a mistake between two ranks, whose report docs/running.md shows.
//!
//! `cargo mpj run -n 2 --example mistakes -- KIND`
#![allow(clippy::print_stderr, reason = "a program prints")]

use std::process::ExitCode;

use mpj::{Error, Op, Partition, World, collective};

fn main() -> ExitCode {
    let kind = std::env::args().nth(1).unwrap_or_default();
    match mpj::init().and_then(|world| make(&world, &kind)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("mistakes: {kind:?} is none of this program's");
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("mistakes: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether there is such a mistake.
fn make(world: &World, kind: &str) -> Result<bool, Error> {
    let (rank, other, mut sum) = (world.rank(), world.rank() ^ 1, [1.5]);
    let is_first = rank == 0;
    match kind {
        "call" if is_first => world.broadcast(&mut sum, 0)?,
        "call" => world.reduce(&[1.5], &mut sum, Op::Sum, 0)?,
        "root" => world.broadcast(&mut sum, rank)?,
        "operation" => world.all_reduce(&mut sum, if is_first { Op::Sum } else { Op::Product })?,
        "length" => world.all_reduce(&mut vec![1.5; 1 + rank], Op::Sum)?,
        "elements" if is_first => world.all_reduce(&mut [1], Op::Sum)?,
        "elements" => world.all_reduce(&mut [1.5_f32], Op::Sum)?,
        "form" if is_first => world.barrier()?,
        "form" => drop(world.start(collective::barrier())?.wait()?),
        "communicator" if is_first => world.barrier()?,
        "communicator" => drop(world.dup()?),
        "omitted" => {
            if is_first {
                world.barrier()?;
            }
            world.all_reduce(&mut sum, Op::Sum)?;
        }
        "types" if is_first => world.send(&[1.5; 4], other, 5)?,
        "types" => drop(world.recv(&mut [0; 8], other, 5)?),
        "unreceived" if is_first => world.send(&[1.5; 4], other, 5)?,
        "unreceived" => {}
        "dropped" if is_first => world.send(&[1.5; 4], other, 5)?,
        "dropped" => {
            world.probe(other, 5)?;
            drop(world.irecv(vec![0.0; 4], other, 5)?);
        }
        "window" => {
            let mut window = world.allocate_window::<f64>(1)?;
            window.fence(|epoch| match is_first {
                true => epoch.put(&[1.5], 1, 0),
                false => epoch.get(&mut sum, 1, 0),
            })?;
        }
        "blocks" if is_first => world.gatherv(&[1], &mut [0; 2], &Partition::packed([1, 1]), 0)?,
        "blocks" => world.gatherv(&[1, 2], &mut [0; 0], &Partition::packed([]), 0)?,
        _ => return Ok(false),
    }
    Ok(true)
}
