//! A rank of a job to be watched: rank 0 sends a thousand messages to rank 1, which waits for another one until the input
//! ends.

#![allow(clippy::print_stdout, reason = "a program talks to its user")]

use std::io;

fn main() -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    let mut data = [0u64; 100];
    for _ in 0..1_000 {
        if world.rank() == 0 {
            world.send(&data, 1, 5)?;
        } else {
            world.recv(&mut data, 0, 5)?;
        }
    }
    println!("{}", std::process::id());
    if world.rank() == 0 {
        io::copy(&mut io::stdin(), &mut io::sink()).expect("the input can be read");
        world.send(&data, 1, 6)?;
    } else {
        world.recv(&mut data, 0, 6)?;
    }
    Ok(())
}
