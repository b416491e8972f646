//! A rank that forks, and prints how its child has ended. The child is no part of the job: whatever it does ends nobody
//! but itself.
//!
//! - `forked returns`: the child ends by returning from `main`.
//! - `forked uses`: it calls the library and prints the answer. `forked interrupts`: the same, while another thread of
//!   the rank may hold the library's lock.
//! - `forked drops`: it drops what it has inherited and goes on with memory of its own.
//! - `forked aborts`: it calls `mpj::abort`.
//! - `forked starts`: it has a job of its own.
//! - `forked records`: it ends a part of the program that the rank has begun and does not end, and begins others.

#![expect(unsafe_code, reason = "fork")]
#![allow(clippy::print_stdout, reason = "a program talks to its user")]

use mpj::World;
use rustix::process::{Pid, WaitOptions, waitpid};

/// Long enough for a mapping of its own, which the kernel may place where the job's memory is missing in the child.
const LONG: usize = 4 << 20;
/// A tag that nobody sends.
const NEVER: i32 = 99;
/// Calls after which the only calling thread owns the lock of the library.
const TURNS: usize = 50;

fn main() -> Result<(), mpj::Error> {
    let what = std::env::args().nth(1).unwrap_or_default();
    let world = mpj::init()?;
    let pending = world.irecv(vec![0u8], 0, NEVER)?;
    for _ in 0..TURNS {
        world.iprobe(mpj::ANY_SOURCE, NEVER)?;
    }
    if what == "interrupts" {
        // Another thread calls the library all the time.
        let polling = world.dup()?;
        std::thread::spawn(move || while polling.iprobe(mpj::ANY_SOURCE, mpj::ANY_TAG).is_ok() {});
    }
    world.barrier()?;
    if world.rank() == 1 {
        let around = (what == "records").then(|| mpj::span("around"));
        // SAFETY: of the locks that another thread may hold, the child needs only those of the allocator, which the C
        // library releases in a fork.
        let child = unsafe { libc::fork() };
        let Some(child) = Pid::from_raw(child) else {
            drop((pending, around));
            return act(&what, world);
        };
        std::mem::forget(around);
        let status = waitpid(Some(child), WaitOptions::empty()).ok().flatten();
        let status = status.expect("a child that was not waited for yet").1;
        let (code, signal) = (status.exit_status(), status.terminating_signal());
        println!("code {code:?}, signal {signal:?}");
    }
    world.barrier()?;
    pending.cancel()?;
    drop(pending);
    world.finish()
}

/// What the child does.
fn act(what: &str, world: World) -> Result<(), mpj::Error> {
    match what {
        "uses" | "interrupts" => {
            let mut room = [0u8];
            let calls = [
                world.send(&[1u8], 0, 0),
                world.recv(&mut room, 0, 0).map(drop),
                world.isend(vec![1u8], 0, 0).map(drop),
                world.irecv(vec![1u8], 0, 0).map(drop),
                world.iprobe(0, 0).map(drop),
                world.barrier(),
                world.dup().map(drop),
                world.stats().map(drop),
                world.dump().map(drop),
                mpj::init().map(drop),
                world.finish(),
            ];
            for error in calls.into_iter().map(|call| call.expect_err("the child is no rank")) {
                println!("{error}");
            }
        }
        "drops" => {
            let bytes: Vec<u8> = (0..LONG).map(|at| at as u8).collect();
            drop(world);
            assert!(bytes.iter().enumerate().all(|(at, &byte)| byte == at as u8));
        }
        "records" => (0..TURNS).for_each(|_| drop(mpj::span("in the child"))),
        "aborts" => mpj::abort(9),
        "starts" => {
            let ranks = mpj::local::run(2, |world| world.barrier().is_ok());
            assert_eq!(ranks.ok(), Some(vec![true, true]));
        }
        _ => {}
    }
    Ok(())
}
