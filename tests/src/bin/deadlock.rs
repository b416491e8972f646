//! A rank of a job that cannot go on.
//!
//! - `sends`: both ranks of each pair send first, which ends only where messages need not wait for their receive.
//! - `ring`: every rank first receives from the one below it. `helper`: the same, with a thread in every rank that
//!   sleeps for an hour; `pool`: with a pool of threads that has nothing to do; `joined`: in a thread that another one
//!   joins; `awaits`: in a task, where a progress thread waits.
//! - `tag`: rank 0 sends with another tag than rank 1 wants.
//! - `large`: rank 0 sends large messages in another order than rank 1 receives them. In `barrier`, rank 1 comes to a
//!   barrier before it receives, in `finish` to its end; in `itself`, every rank sends to itself.
//! - `called`: rank 0 calls a service of rank 1, whose handler waits for a message of rank 0; `served-error`: rank 1, which
//!   has a service, meets an error, and rank 0 waits for a message.
//! - `collectives`: rank 0 is in a barrier, the others reduce to the last one.
//! - `fence`: rank 1 panics between the fences of a window, catches that, and waits for a message of rank 0.
//! - `locks`: each rank locks a window, then the other's, at rank 0.
//! - In the others, rank 0 waits for a message of rank 1, once its own input has ended. Rank 1 meets an `error`, `leaves`
//!   without sending, loses the `thread` that is to send by a panic, has `caught` that panic, is `asleep`, or has
//!   `stopped` itself.

#![allow(clippy::print_stderr, reason = "a program talks to its user")]

use std::error::Error;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use mpj::{Op, World};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rustix::process::{Signal, getpid, kill_process};

/// Bytes of a message that waits for its receive.
const LARGE: usize = 30_000_000;

type Outcome = Result<(), Box<dyn Error>>;

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

/// Drops the world before `main` sees the outcome.
fn take_part(how: &str) -> Outcome {
    let world = mpj::init()?;
    match how {
        "sends" => sends(&world),
        "ring" => ring(&world),
        "tag" => tag(&world),
        "large" | "barrier" | "finish" => large(&world, how),
        "itself" => Ok(world.send(&vec![7u8; LARGE], world.rank(), 1)?),
        "collectives" => collectives(&world),
        "called" => called(&world),
        "fence" => fence(&world),
        "locks" => locks(&world),
        "served-error" => {
            world.serve(|_, (): ()| ())?;
            if world.rank() == 0 { waits(&world) } else { Err("no input file".into()) }
        }
        "helper" => {
            thread::spawn(|| thread::sleep(Duration::from_secs(3600)));
            ring(&world)
        }
        "pool" => {
            let threads = rayon::ThreadPoolBuilder::new().num_threads(4);
            let pool = threads.build()?;
            assert_eq!(pool.install(|| (0..1_000).into_par_iter().sum::<u32>()), 499_500);
            ring(&world)
        }
        "awaits" => pollster::block_on(awaits(&world)),
        "joined" => thread::scope(|scope| {
            let ring = scope.spawn(|| ring(&world).map_err(|error| error.to_string()));
            Ok(ring.join().expect("it does not panic")?)
        }),
        _ if world.rank() == 0 => {
            io::copy(&mut io::stdin(), &mut io::sink())?;
            waits(&world)
        }
        "error" => Err("no input file".into()),
        "helped-error" => {
            thread::spawn(thread::park);
            Err("no input file".into())
        }
        "unwinding" => {
            let _guard = Meets(&world);
            panics();
            Ok(())
        }
        "leaves" => Ok(()),
        "asleep" => loop {
            thread::park();
        },
        "stopped" => Ok(kill_process(getpid(), Signal::STOP)?),
        "thread" => {
            thread::spawn(panics);
            waits(&world)
        }
        "caught" => {
            thread::spawn(|| {
                let _ = catch_unwind(panics);
                thread::park();
            });
            waits(&world)
        }
        _ => Err(format!("unknown: {how}").into()),
    }
}

/// Meets the others before it goes.
struct Meets<'a>(&'a World);

impl Drop for Meets<'_> {
    fn drop(&mut self) {
        let _ = self.0.barrier();
    }
}

fn panics() {
    panic!("no more data");
}

fn waits(world: &World) -> Outcome {
    let other = 1 - world.rank();
    world.recv(&mut [0u8], other, 6)?;
    Ok(())
}

fn sends(world: &World) -> Outcome {
    let other = world.rank() ^ 1;
    let (data, mut room) = ([7u8; 1_000], [0u8; 1_000]);
    world.send(&data, other, 3)?;
    world.recv(&mut room, other, 3)?;
    Ok(())
}

fn ring(world: &World) -> Outcome {
    let (rank, size) = (world.rank(), world.size());
    let mut token = [0u8];
    world.recv(&mut token, (rank + size - 1) % size, 5)?;
    world.send(&token, (rank + 1) % size, 5)?;
    Ok(())
}

/// Tasks wait for messages, and the progress thread for whatever comes.
async fn awaits(world: &World) -> Outcome {
    let other = 1 - world.rank();
    let token = world.irecv(vec![0u8], other, 5)?.await?.0;
    Ok(world.send(&token, other, 5)?)
}

fn tag(world: &World) -> Outcome {
    match world.rank() {
        0 => world.send(&[7u8], 1, 7)?,
        _ => drop(world.recv(&mut [0u8], 0, 8)?),
    }
    Ok(())
}

/// Rank 1 takes the message too late.
fn large(world: &World, how: &str) -> Outcome {
    if world.rank() == 0 {
        world.send(&vec![7u8; LARGE], 1, 1)?;
        world.send(&[7u8], 1, 2)?;
        return Ok(());
    }
    match how {
        "finish" => return Ok(()),
        "barrier" => world.barrier()?,
        _ => drop(world.recv(&mut [0u8], 0, 2)?),
    }
    world.recv(&mut vec![0u8; LARGE], 0, 1)?;
    Ok(())
}

fn called(world: &World) -> Outcome {
    let messages = mpj::Communicator::clone(world);
    let fetch =
        world.try_serve(move |caller, tag| messages.recv(&mut 0u8, caller, tag).map(drop))?;
    match world.rank() {
        0 => Ok(fetch.call(1, &4)?),
        _ => waits(world),
    }
}

fn fence(world: &World) -> Outcome {
    let mut window = world.allocate_window::<u8>(1)?;
    if world.rank() == 0 {
        return Ok(window.fence(|_| ())?);
    }
    let outcome = catch_unwind(AssertUnwindSafe(|| window.fence(|_| panics())));
    assert!(outcome.is_err() && window.local().is_err());
    waits(world)
}

fn locks(world: &World) -> Outcome {
    let [mut one, mut other] = [world.allocate_window::<u8>(1)?, world.allocate_window::<u8>(1)?];
    one.set_name("table");
    other.set_name("queue");
    if world.rank() == 1 {
        std::mem::swap(&mut one, &mut other);
    }
    one.lock_exclusive(0, |_| {
        world.barrier()?;
        other.lock_exclusive(0, |_| ())
    })?;
    Ok(())
}

fn collectives(world: &World) -> Outcome {
    match world.rank() {
        0 => world.barrier()?,
        _ => world.reduce(&1, &mut 0, Op::Sum, 2)?,
    }
    Ok(())
}
