//! A rank of a job that goes on without lost ranks (`--on-failure keep`).
//!
//! - `survivor overwritten MILLIS`: rank 0 leaves a send by a panic, that long after its start, and uses the buffer
//!   again; rank 1 prints what it has received.
//! - `survivor long`: two ranks exchange long messages.
//! - `survivor one-ended`: one of three ranks is killed, and another one ends because of that. The third one prints what
//!   its calls return.
//! - `survivor root-killed MICROS`: the root of broadcasts is killed that long after the first of them. The others say
//!   whether all that they have received is right.
//! - `survivor two-lost`: two of four ranks are killed, and the others print what their calls return.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program talks to its user")]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::ExitCode;
use std::time::Duration;

use mpj::World;
use mpj_tests::bytes::are_all;
use rustix::process::{Signal, getpid, kill_process};

/// How long a message's memory stays for a receiver that may still read it. A receiver that comes later is refused.
const AMPLE: Duration = Duration::from_millis(400);
/// The tag of a message whose sender has left the barrier.
const LEFT: i32 = 5;
/// A tag that nobody sends.
const NEVER: i32 = 9;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["overwritten", millis] => overwritten(millis),
        ["long"] => long(),
        ["one-ended"] => one_ended(),
        ["root-killed", micros] => root_killed(micros),
        ["two-lost"] => two_lost(),
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

fn overwritten(millis: &str) -> Result<(), mpj::Error> {
    const LEN: usize = 256 << 20;
    const BLOCK: usize = 1 << 16;
    let pause = Duration::from_millis(millis.parse().expect("a number of milliseconds"));
    let world = mpj::init()?;
    let mut message = vec![7u8; LEN];
    if world.rank() == 0 {
        world.barrier()?;
        let left = catch_unwind(AssertUnwindSafe(|| {
            world.scope(|scope| -> Result<(), mpj::Error> {
                scope.isend(&message, 1, 0).expect("rank 1 is there");
                std::thread::sleep(pause);
                // A panic without its message: to write that would take longer than the transfer.
                resume_unwind(Box::new("rank 0 goes overboard"));
            })
        }));
        assert!(left.is_err(), "the panic was caught");
        message.fill(9);
        // The memory stays until the other rank has looked.
        std::thread::sleep(AMPLE);
        return Ok(());
    }
    message.fill(8);
    world.barrier()?;
    match world.recv(&mut message, 0, 0) {
        Ok(_) => {
            let others = message.chunks(BLOCK).filter(|block| **block != [7; BLOCK]).count();
            println!("received, {others} blocks are not the sender's");
        }
        Err(error) => println!("refused: {error}"),
    }
    Ok(())
}

fn root_killed(micros: &str) -> Result<(), mpj::Error> {
    let pause = Duration::from_micros(micros.parse().expect("a number of microseconds"));
    let world = mpj::init()?;
    world.barrier()?;
    if world.rank() == 0 {
        std::thread::spawn(move || {
            std::thread::sleep(pause);
            kill_process(getpid(), Signal::KILL)
        });
    }
    for number in (1..=u8::MAX).cycle() {
        let mut message = [if world.rank() == 0 { number } else { 0 }; 256];
        if world.broadcast(&mut message, 0).is_err() {
            break;
        }
        if message != [number; 256] {
            println!("wrong");
            return Ok(());
        }
    }
    println!("right");
    Ok(())
}

fn long() -> Result<(), mpj::Error> {
    const LEN: usize = 3 << 20;
    let world = mpj::init()?;
    let other = 1 - world.rank();
    let mut got = vec![0u8; LEN];
    for round in 1..20u8 {
        world.sendrecv(&vec![round; LEN], other, 0, &mut got, other, 0)?;
        assert!(are_all(&got, round), "round {round}");
    }
    if world.rank() == 0 {
        println!("whole");
    }
    Ok(())
}

fn one_ended() -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    let (rank, mut got) = (world.rank(), [0u8]);
    if rank == 1 {
        println!("{}", std::process::id());
        world.send(&[1u8], 2, 1)?;
    }
    // What was sent before the barrier is there after it.
    world.barrier()?;
    if rank == 0 {
        // The others have left the barrier.
        world.recv(&mut got, 1, LEFT)?;
        world.recv(&mut got, 2, LEFT)?;
        kill_process(getpid(), Signal::KILL).expect("a process may signal itself");
    }
    world.send(&[1u8], 0, LEFT)?;
    if rank == 1 {
        // It meets the loss and ends its part, as far as it can, with exit code 0.
        assert!(world.recv(&mut got, 0, NEVER).is_err(), "rank 0 is lost");
        assert!(world.finish().is_err(), "rank 0 does not come");
        return Ok(());
    }
    println!("{}", std::process::id());
    kill_process(getpid(), Signal::STOP).expect("a process may signal itself");
    tell(&world, "receive what the ended rank had sent", world.recv(&mut got, 1, 1));
    tell(&world, "send to the ended rank", world.ssend(&[1u8], 1, 8));
    tell(&world, "receive what it had not sent", world.recv(&mut got, 1, NEVER));
    let outcome = world.finish();
    println!("{rank} finish: {}", words(&outcome));
    Ok(())
}

fn two_lost() -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    let (rank, mut got) = (world.rank(), [0u8]);
    // What is sent before the barrier is there after it.
    for other in (0..2).filter(|&other| other != rank && rank < 3) {
        world.send(&[1u8], other, rank as i32)?;
    }
    world.barrier()?;
    if rank > 1 {
        // The survivors have left the barrier. Whether the other victim is still there does not matter.
        let _ = world.recv(&mut got, 0, LEFT).and_then(|_| world.recv(&mut got, 1, LEFT));
        kill_process(getpid(), Signal::KILL).expect("a process may signal itself");
    }
    world.send(&[1u8], 2, LEFT)?;
    world.send(&[1u8], 3, LEFT)?;
    // Until somebody has seen that both are lost.
    println!("{}", std::process::id());
    kill_process(getpid(), Signal::STOP).expect("a process may signal itself");
    let other = 1 - rank;
    tell(&world, "send to a living rank", world.send(&[1u8], other, 8));
    tell(&world, "send to a lost rank", world.send(&[1u8], 2, 8));
    let (from_living, from_lost) = (other as i32, 2);
    tell(&world, "receive what a living rank has sent", world.recv(&mut got, other, from_living));
    tell(&world, "receive what a lost rank had sent", world.recv(&mut got, 2, from_lost));
    tell(&world, "receive what has not come", world.recv(&mut got, 2, NEVER));
    tell(&world, "send after that", world.send(&[1u8], 2, 8));
    tell(&world, "send to the other one", world.send(&[1u8], 3, 8));
    tell(&world, "exchange", world.sendrecv(&[1u8], other, 7, &mut got, other, 7));
    tell(&world, "receive from any", world.recv(&mut got, mpj::ANY_SOURCE, 8));
    tell(&world, "barrier", world.barrier());
    let outcome = world.finish();
    println!("{rank} finish: {}", words(&outcome));
    outcome
}

fn tell<T>(world: &World, call: &str, outcome: Result<T, mpj::Error>) {
    println!("{} {call}: {}", world.rank(), words(&outcome));
}

fn words<T>(outcome: &Result<T, mpj::Error>) -> String {
    outcome.as_ref().map_or_else(ToString::to_string, |_| "well".to_owned())
}
