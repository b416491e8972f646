//! A rank that forks. `forked returns`: its child ends by returning from `main`, and is no part of the job.
//! `forked uses`: the child uses the library, of which it has nothing but the code.

#![allow(unsafe_code, reason = "fork")]
#![allow(clippy::print_stdout, reason = "a program talks to its user")]

use rustix::process::{Pid, WaitOptions, waitpid};

fn main() -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    world.barrier()?;
    if world.rank() == 1 {
        // SAFETY: a rank has one thread, so that the child finds no lock taken.
        let child = unsafe { libc::fork() };
        let Some(child) = Pid::from_raw(child) else {
            if std::env::args().nth(1).is_some_and(|what| what == "uses") {
                world.send(&[1u8], 0, 0)?;
            }
            return Ok(());
        };
        let status = waitpid(Some(child), WaitOptions::empty());
        let signal = status.ok().flatten().and_then(|(_, status)| status.terminating_signal());
        println!("{}", signal.unwrap_or(0));
    }
    world.barrier()
}
