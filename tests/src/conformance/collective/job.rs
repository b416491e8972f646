//! Runs the ranks of a job as threads, each with a communicator of all, under a watchdog.
//!
//! A job that does not end in time fails with the dumps of all ranks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use mpicore::{Communicator, Host, Process};
use mpjdev::{BackendChoice, Options, wireup};

/// How long the others may take once one rank has failed, and how long a dump may take.
const GRACE: Duration = Duration::from_secs(3);

/// What a rank answers, or what is wrong, in words.
pub type Answer<R> = Result<R, String>;

/// Runs `body` on every rank and ends the devices together; gives the answers.
///
/// # Panics
/// When a rank panics or fails, or the job does not end within `limit`.
pub fn run<R: Send + 'static>(
    ranks: usize,
    backend: BackendChoice,
    limit: Duration,
    body: impl Fn(&Communicator) -> Answer<R> + Send + Sync + 'static,
) -> Vec<R> {
    run_open(ranks, backend, limit, move |world| {
        let answer = body(world)?;
        world.device().finish().map_err(|error| format!("the end: {error}"))?;
        Ok(answer)
    })
}

/// Runs `body` on every rank, and leaves the devices as they are at its end.
///
/// # Panics
/// As [`run`].
pub fn run_open<R: Send + 'static>(
    ranks: usize,
    backend: BackendChoice,
    limit: Duration,
    body: impl Fn(&Communicator) -> Answer<R> + Send + Sync + 'static,
) -> Vec<R> {
    let options = Options::with_backend(backend);
    let devices = wireup::in_process(ranks, &options).expect("a job of threads");
    let process = |mut devices: Vec<_>| Arc::new(Process::new(devices.remove(0)));
    let ranks: Vec<Arc<Process>> = devices.into_iter().map(process).collect();
    let body = Arc::new(body);
    let (report, reports) = mpsc::channel();
    for (number, process) in ranks.iter().enumerate() {
        let (process, body, report) = (process.clone(), body.clone(), report.clone());
        let play = move || {
            let host: Host = process.clone();
            let part = || {
                let world = Communicator::world(host).map_err(|error| error.to_string())?;
                body(&world)
            };
            let outcome = catch_unwind(AssertUnwindSafe(part));
            let outcome = outcome.unwrap_or_else(|panic| Err(mpjdev::panic_text(&*panic)));
            let failed = outcome.is_err();
            // Before the others fail of it, so that the cause is reported first. After a timeout, nobody listens
            // any more.
            let _ = report.send((number, outcome));
            if failed {
                process.device().abort();
            }
        };
        thread::Builder::new().name(format!("rank {number}")).spawn(play).expect("a thread");
    }
    collect(&ranks, limit, &reports)
}

fn collect<R>(
    ranks: &[Arc<Process>],
    limit: Duration,
    reports: &mpsc::Receiver<(usize, Answer<R>)>,
) -> Vec<R> {
    let mut deadline = Instant::now() + limit;
    let mut answers: Vec<Option<R>> = ranks.iter().map(|_| None).collect();
    let mut failure = None;
    for _ in ranks {
        match reports.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok((number, Ok(answer))) => answers[number] = Some(answer),
            Ok((number, Err(what))) => {
                failure.get_or_insert_with(|| format!("rank {number} failed: {what}"));
                deadline = deadline.min(Instant::now() + GRACE);
            }
            Err(_) => {
                let cause = failure.unwrap_or_else(|| format!("no end after {limit:?}"));
                panic!("{cause}\n{}", dumps(ranks));
            }
        }
    }
    match failure {
        Some(failure) => panic!("{failure}"),
        None => answers.into_iter().flatten().collect(),
    }
}

/// What the ranks are doing; then ends them. One whose lock is never given up is passed by.
fn dumps(ranks: &[Arc<Process>]) -> String {
    let mut all = String::new();
    for (number, process) in ranks.iter().enumerate() {
        let (reader, (say, said)) = (process.clone(), mpsc::channel());
        thread::spawn(move || say.send(reader.device().dump()));
        all += &match said.recv_timeout(GRACE) {
            Ok(Ok(dump)) => dump,
            Ok(Err(error)) => format!("rank {number}: {error}\n"),
            Err(_) => format!("rank {number}: holds its lock and does not give it up\n"),
        };
    }
    ranks.iter().for_each(|process| process.device().abort());
    all
}
