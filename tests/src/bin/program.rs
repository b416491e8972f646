//! A rank that carries out random programs, one after the other.
//!
//! - `program correct FIRST COUNT` plays the correct programs of COUNT seeds, every fifth time in two threads that play
//!   different ones.
//! - `program pooled FIRST COUNT` plays them with a pool of threads.
//! - `program spoilt SEED` plays a program that cannot end.
//! - `program planted SEED` plays a program with a mistake.
//! - `program left` sends a message that nobody receives; its receiver says so and ends well.

#![allow(clippy::print_stderr, reason = "a program talks to its user")]

use std::process::ExitCode;

use mpj::Error;
use mpj_tests::programs::play::Stage;
use mpj_tests::programs::{Calls, Program};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u64> = words.iter().skip(1).filter_map(|word| word.parse().ok()).collect();
    let outcome = match (words.first().map(String::as_str), &numbers[..]) {
        (Some("correct"), &[first, count]) => correct(first, count),
        (Some("pooled"), &[first, count]) => pooled(first, count),
        (Some("spoilt"), &[seed]) => alone(|ranks| Program::spoilt(seed, ranks)),
        (Some("planted"), &[seed]) => alone(|ranks| Program::planted(seed, ranks).0),
        (Some("left"), _) => left(),
        _ => return ExitCode::from(2),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn correct(first: u64, count: u64) -> Result<(), Error> {
    let world = mpj::init()?;
    let stage = || Ok::<_, Error>(Stage { world: world.dup()?, quiet: world.dup()? });
    let (stage, second) = (stage()?, stage()?);
    let ranks = world.size();
    for (number, seed) in (first..first + count).enumerate() {
        let program = Program::correct(seed, ranks, Calls::All);
        if seed % 5 != 0 {
            stage.play(&program, number)?;
            continue;
        }
        let other = Program::correct(!seed, ranks, Calls::All);
        std::thread::scope(|scope| {
            let beside = scope.spawn(|| second.play(&other, number));
            stage.play(&program, number)?;
            beside.join().expect("a program that goes wrong has said so")
        })?;
    }
    world.finish()
}

fn left() -> Result<(), Error> {
    let world = mpj::init()?;
    if world.rank() == 0 {
        world.send(&[1.5], 1, 5)?;
    }
    world.finish().unwrap_or_else(|error| eprintln!("at the end: {error}"));
    Ok(())
}

fn pooled(first: u64, count: u64) -> Result<(), Error> {
    let world = mpj::init()?;
    let stage = Stage { world: world.dup()?, quiet: world.dup()? };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build();
    let pool = pool.expect("this system starts threads");
    for (number, seed) in (first..first + count).enumerate() {
        let program = Program::correct(seed, world.size(), Calls::All);
        stage.play_beside(&program, number, &pool)?;
    }
    world.finish()
}

fn alone(program: impl Fn(usize) -> Program) -> Result<(), Error> {
    let world = mpj::init()?;
    let stage = Stage { world: world.dup()?, quiet: world.dup()? };
    stage.play(&program(world.size()), 0)?;
    world.finish()
}
