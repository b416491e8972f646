//! How the examples begin: as a task of a job, or as two threads if the process was started alone.

use std::error::Error;
use std::process::ExitCode;
use std::thread;

use am2::Am;

/// What an example does in each task.
type Part = fn(&Am) -> Result<(), Box<dyn Error>>;

/// Runs `part` in the task of a job that this process is, or in two tasks that are threads.
pub fn play(name: &str, part: Part) -> ExitCode {
    match begin(part) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn begin(part: Part) -> Result<(), Box<dyn Error>> {
    let am = Am::join()?;
    if am.num_tasks() > 1 {
        return part(&am);
    }
    let tasks = Am::in_process(2)?;
    thread::scope(|scope| {
        let start = |am| scope.spawn(move || part(am).map_err(|error| error.to_string()));
        let threads: Vec<_> = tasks.iter().map(start).collect();
        let outcomes: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        for outcome in outcomes {
            outcome.map_err(|_| "a task panicked")??;
        }
        Ok(())
    })
}
