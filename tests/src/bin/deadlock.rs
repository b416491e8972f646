//! A rank of a job that cannot go on.
//!
//! `deadlock sends`: both ranks of each pair send first, which ends only where messages need not wait
//! for their receive. `deadlock ring`: every rank receives from the one below it first. `deadlock
//! tag`: rank 0 sends with another tag than rank 1 wants.

#![allow(clippy::print_stderr, reason = "a program talks to its user")]

use std::process::ExitCode;

use mpj::{Error, World};

fn main() -> ExitCode {
    let how = std::env::args().nth(1).unwrap_or_default();
    let outcome = mpj::init().and_then(|world| match how.as_str() {
        "sends" => sends(&world),
        "ring" => ring(&world),
        "tag" => tag(&world),
        _ => Ok(()),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn sends(world: &World) -> Result<(), Error> {
    let other = world.rank() ^ 1;
    let (data, mut room) = ([7u8; 1_000], [0u8; 1_000]);
    world.send(&data, other, 3)?;
    world.recv(&mut room, other, 3).map(drop)
}

fn ring(world: &World) -> Result<(), Error> {
    let (rank, size) = (world.rank(), world.size());
    let mut token = [0u8];
    world.recv(&mut token, (rank + size - 1) % size, 5)?;
    world.send(&token, (rank + 1) % size, 5)
}

fn tag(world: &World) -> Result<(), Error> {
    match world.rank() {
        0 => world.send(&[7u8], 1, 7),
        _ => world.recv(&mut [0u8], 0, 8).map(drop),
    }
}
