//! How the examples begin: as a task of a job, or as two threads if the process was started alone.
#![allow(dead_code, reason = "every example uses its own part")]

use std::error::Error;
use std::process::ExitCode;
use std::sync::mpsc::Receiver;
use std::thread;

use pami::{Client, Context, Guard, Outcome};

/// What an example does in each task.
type Part = fn(&Client, Vec<Context>) -> Result<(), Box<dyn Error>>;

/// Runs `part` in the task of a job that this process is, or in two tasks that are threads, with so many contexts.
pub fn play(name: &str, contexts: usize, part: Part) -> ExitCode {
    match begin(name, contexts, part) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn begin(name: &str, contexts: usize, part: Part) -> Result<(), Box<dyn Error>> {
    let client = Client::create(name, contexts)?;
    if client.num_tasks() > 1 {
        return run(client, contexts, part);
    }
    thread::scope(|scope| {
        let start = |client| {
            scope.spawn(move || run(client, contexts, part).map_err(|error| error.to_string()))
        };
        let clients = Client::in_process(name, 2, contexts)?.into_iter();
        let threads: Vec<_> = clients.map(start).collect();
        for thread in threads {
            thread.join().map_err(|_| "a task panicked")??;
        }
        Ok(())
    })
}

fn run(mut client: Client, contexts: usize, part: Part) -> Result<(), Box<dyn Error>> {
    let contexts = client.create_contexts(contexts)?;
    part(&client, contexts)?;
    Ok(client.destroy()?)
}

/// Advances until `condition` holds.
pub fn until(guard: &mut Guard<'_>, condition: impl Fn() -> bool) -> Result<(), pami::Error> {
    while !condition() {
        if guard.advance(100)? == Outcome::Again {
            thread::yield_now();
        }
    }
    Ok(())
}

/// Advances until a callback has sent something.
pub fn answer<T>(guard: &mut Guard<'_>, found: &Receiver<T>) -> Result<T, pami::Error> {
    loop {
        match found.try_recv() {
            Ok(answer) => return Ok(answer),
            Err(_) if guard.advance(100)? == Outcome::Again => thread::yield_now(),
            Err(_) => {}
        }
    }
}
