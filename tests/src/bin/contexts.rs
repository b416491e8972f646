//! A rank whose threads use a context each. The main thread uses context 0.
//!
//! - `contexts exchange`: every thread exchanges messages with the next rank, and the rank prints how often a thread
//!   has waited for a lock.
//! - `contexts deadlock`: every thread receives what nobody sends.
//! - `contexts unattended`: rank 0 sends to context 1 of the others, where nobody waits, and then all wait in
//!   context 0.
//! - `contexts late`: only the thread of context 1 of rank 0 is in no call; after a second it sends what all others
//!   wait for.
//! - `contexts fetched`: the others fetch what rank 0 has begun to send in context 1 while rank 0 is at its end.
//! - `contexts beyond` asks for a context that does not exist.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program talks to its user")]

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use mpj::{Communicator, Error, World};
use mpj_harness::process::await_sleep;
use mpj_tests::bytes::are_all;

/// Messages of each thread.
const MESSAGES: usize = 1_000;
/// Their lengths, in turn.
const LENGTHS: [usize; 5] = [0, 8, 300, 9_000, 100_000];
/// Bytes of a message that waits for its receive.
const LARGE: usize = 30_000_000;

fn main() -> ExitCode {
    let how = std::env::args().nth(1).unwrap_or_default();
    match take_part(&how) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(3)
        }
    }
}

fn take_part(how: &str) -> Result<(), Error> {
    let world = mpj::init()?;
    match how {
        "exchange" => exchange(&world),
        "deadlock" => in_each_context(&world, |ranks| ranks.recv(&mut [0_u8], 0, 7).map(drop)),
        "unattended" => unattended(&world),
        "late" => late(&world),
        "fetched" => fetched(&world),
        "beyond" => world.on_endpoint(world.contexts()).map(drop),
        other => panic!("what is {other:?}?"),
    }
}

/// Runs `body` in one thread for each context, in this thread for the first.
fn in_each_context(
    world: &World,
    body: impl Fn(&Communicator) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let body = &body;
    thread::scope(|scope| {
        let start = |context| {
            let ranks = world.on_endpoint(context)?;
            Ok(scope.spawn(move || body(&ranks)))
        };
        let threads = (1..world.contexts()).map(start).collect::<Result<Vec<_>, Error>>()?;
        let own = body(world);
        let others = threads.into_iter().map(|one| one.join().expect("no thread panics"));
        others.fold(own, Result::and)
    })
}

fn exchange(world: &World) -> Result<(), Error> {
    in_each_context(world, |ranks| {
        let (rank, size) = (ranks.rank(), ranks.size());
        let (up, down) = ((rank + 1) % size, (rank + size - 1) % size);
        let longest = LENGTHS.into_iter().max().unwrap_or(0);
        let (mut sent, mut got) = (vec![0_u8; longest], vec![0_u8; longest]);
        for (number, len) in LENGTHS.into_iter().cycle().take(MESSAGES).enumerate() {
            let fill = number as u8;
            sent[..len].fill(fill ^ rank as u8);
            ranks.scope(|scope| {
                scope.irecv(&mut got[..len], down, 1)?;
                scope.isend(&sent[..len], up, 1)?;
                Ok(())
            })?;
            assert!(are_all(&got[..len], fill ^ down as u8));
        }
        Ok(())
    })?;
    for context in 0..world.contexts() {
        let contended = world.on_endpoint(context)?.stats()?.contended;
        println!("context {context}: {contended} times contended");
    }
    Ok(())
}

fn unattended(world: &World) -> Result<(), Error> {
    if world.rank() == 0 {
        let further = world.on_endpoint(1)?;
        (1..world.size()).try_for_each(|rank| further.send(&[1_u8], rank, 7))?;
    }
    let below = (world.rank() + world.size() - 1) % world.size();
    world.recv(&mut [0_u8], below, 7).map(drop)
}

fn late(world: &World) -> Result<(), Error> {
    let further = world.on_endpoint(1)?;
    if world.rank() > 0 {
        further.recv(&mut [0_u8], 0, 7)?;
        return world.send(&[2_u8], 0, 8);
    }
    thread::scope(|scope| {
        let others = 1..world.size();
        let sender = scope.spawn(move || {
            // The launcher looks at the ranks many times meanwhile, and must find no deadlock.
            thread::sleep(Duration::from_secs(1));
            others.into_iter().try_for_each(|rank| further.send(&[1_u8], rank, 7))
        });
        for rank in 1..world.size() {
            world.recv(&mut [0_u8], rank, 8)?;
        }
        sender.join().expect("no thread panics")
    })
}

fn fetched(world: &World) -> Result<(), Error> {
    let further = world.on_endpoint(1)?;
    if world.rank() == 0 {
        drop(further.isend(vec![5_u8; LARGE], 1, 7)?);
        return world.send(&[std::process::id()], 1, 8);
    }
    let mut process = [0];
    world.recv(&mut process, 0, 8)?;
    // Rank 0 is at its end.
    await_sleep(&process);
    let mut got = vec![0_u8; LARGE];
    further.recv(&mut got, 0, 7)?;
    assert!(are_all(&got, 5));
    Ok(())
}
