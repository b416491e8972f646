//! A rank that plays cases of the conformance suite of collectives, one after the other: `collectives CASE...`, each
//! in the form in which failures print it. Rank 0 says when it begins. The job decides the number of ranks and the protocols.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program talks to its user")]

use std::process::ExitCode;
use std::sync::Arc;

use mpicore::{Communicator, Process};
use mpj_tests::conformance::collective::Case;
use mpj_tests::conformance::collective::play::play;
use mpj_tests::conformance::collective::reference::Reference;
use mpjdev::wireup;

fn main() -> ExitCode {
    match take_part() {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}

fn take_part() -> Result<(), String> {
    let mut job = wireup::join(false).map_err(|error| error.to_string())?;
    let process = Arc::new(Process::new(job.devices.remove(0), ()));
    let world = Communicator::world(process.clone()).map_err(|error| error.to_string())?;
    if world.rank() == 0 {
        println!("playing");
    }
    for text in std::env::args().skip(1) {
        let case: Case = text.parse()?;
        if case.ranks() != world.size() as usize {
            return Err(format!("a job of {} ranks cannot play {case}", world.size()));
        }
        play(&world, &Reference::new(case))?;
    }
    process.device().finish().map_err(|error| error.to_string())?;
    job.control.iter().for_each(|control| control.finished());
    Ok(())
}
