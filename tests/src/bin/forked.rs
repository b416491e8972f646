//! A rank that forks: its child ends by returning from `main`, and is no part of the job.

#![allow(unsafe_code, reason = "fork")]

use rustix::process::{Pid, WaitOptions, waitpid};

fn main() -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    world.barrier()?;
    if world.rank() == 1 {
        // SAFETY: a rank has one thread, so that the child finds no lock taken.
        let child = unsafe { libc::fork() };
        let Some(child) = Pid::from_raw(child) else {
            return Ok(());
        };
        let _ = waitpid(Some(child), WaitOptions::empty());
    }
    world.barrier()
}
