//! Sends one message from rank 0 to rank 1, step by step, for `benches/walk`, which lists the functions that run for it
//! and counts instructions.
//!
//! `cargo run -p mpj --example walk -- short|long|windows N`
//!
//! With `windows`, one rank sends itself windows of 64 messages of 8 bytes. Otherwise there are two ranks, which are
//! threads and take turns: while one of them is in a function whose name begins with `walk_`, the other waits outside
//! mpj. `short` sends 8 bytes by `send`. `long` sends 1 MiB by rendezvous; the sender starts, waits for its turn and
//! completes.

use std::process::ExitCode;
use std::sync::Barrier;

use mpj::local::run_with;
use mpj::tuning::{BackendChoice, Options};
use mpj::{Error, Scope, ScopedRequest, World};

/// Number of rounds before the one that counts.
const WARM_UP: usize = 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let turn = Barrier::new(2);
    let run = |backend, ranks, body: &(dyn Fn(&World) -> Result<(), Error> + Sync)| {
        run_with(&Options::with_backend(backend), ranks, |world| body(&world))
    };
    let ranks = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["short"] => run(BackendChoice::Auto, 2, &|world| rank(world, 8, &turn)),
        ["long"] => run(BackendChoice::Rendezvous, 2, &|world| rank(world, 1 << 20, &turn)),
        ["windows", count] => match count.parse() {
            Ok(count) => run(BackendChoice::Auto, 1, &|world| windows(world, count)),
            Err(_) => return ExitCode::from(2),
        },
        _ => return ExitCode::from(2),
    };
    let passed = ranks.is_ok_and(|ranks| ranks.iter().all(Result::is_ok));
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs one rank: some messages both ways, then the steps of one message repeatedly.
fn rank(world: &World, len: usize, turn: &Barrier) -> Result<(), Error> {
    let mut buffer = vec![0; len];
    let data = vec![1; len];
    for _ in 0..WARM_UP {
        let other = 1 - world.rank();
        world.sendrecv(&data, other, 0, &mut buffer, other, 0)?;
    }
    for round in 0..=WARM_UP {
        if round == WARM_UP {
            warmed_up();
        }
        buffer.fill(0);
        match (world.rank(), len) {
            (0, 8) => send(world, &data, turn)?,
            (0, _) => start_and_complete(world, &data, turn)?,
            _ => receive(world, &mut buffer, turn)?,
        }
        turn.wait();
        assert!(world.rank() == 0 || buffer == data, "the message arrived");
    }
    Ok(())
}

/// Sends itself this many windows of 64 messages of 8 bytes.
fn windows(world: &World, count: usize) -> Result<(), Error> {
    let data = [7_u8; 8];
    for _ in 0..count {
        let mut into = [[0_u8; 8]; 64];
        let received: Result<(), Error> = world.scope(|scope| {
            for place in &mut into {
                scope.irecv(place, 0, 1)?;
            }
            for _ in 0..64 {
                scope.isend(&data, 0, 1)?;
            }
            Ok(())
        });
        received?;
        assert_eq!(into[63], data, "the messages arrived");
    }
    Ok(())
}

/// The counter starts again here.
#[inline(never)]
fn warmed_up() {}

fn send(world: &World, data: &[u8], turn: &Barrier) -> Result<(), Error> {
    turn.wait();
    walk_send(world, data)?;
    turn.wait();
    turn.wait();
    Ok(())
}

fn start_and_complete(world: &World, data: &[u8], turn: &Barrier) -> Result<(), Error> {
    world.scope(|scope| {
        turn.wait();
        let request = walk_start(scope, data)?;
        turn.wait();
        turn.wait();
        walk_complete(request)
    })
}

fn receive(world: &World, buffer: &mut [u8], turn: &Barrier) -> Result<(), Error> {
    world.scope(|scope| {
        let request = scope.irecv(buffer, 0, 0)?;
        turn.wait();
        turn.wait();
        walk_receive(request)?;
        turn.wait();
        Ok(())
    })
}

#[inline(never)]
fn walk_send(world: &World, data: &[u8]) -> Result<(), Error> {
    world.send(data, 1, 0)
}

#[inline(never)]
fn walk_start<'scope, 'env>(
    scope: Scope<'scope, 'env>,
    data: &'env [u8],
) -> Result<ScopedRequest<'scope, &'env [u8]>, Error> {
    scope.isend(data, 1, 0)
}

#[inline(never)]
fn walk_complete(request: ScopedRequest<'_, &[u8]>) -> Result<(), Error> {
    request.wait().map(|_| ())
}

#[inline(never)]
fn walk_receive(request: ScopedRequest<'_, &mut [u8]>) -> Result<(), Error> {
    request.wait().map(|_| ())
}
