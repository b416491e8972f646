//! Runs the ranks of a job as threads under a watchdog.
//!
//! A job that does not end in time fails with the dumps of all ranks, so that a hang reads like any other failure.
//! What does not depend on the test is compiled once, not for each test.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use mpicore::Process;
use mpj_harness::watch_with;
use mpjdev::{Device, Error};

/// How long a dump may take.
const GRACE: Duration = Duration::from_secs(3);

/// What the watchdog needs of a rank, to report a hang and to end it.
pub trait Watched: Send + Sync {
    /// What the rank is doing.
    ///
    /// # Errors
    /// What made the device unusable.
    fn dump(&self) -> Result<String, Error>;

    /// Gives the rank up, so that nobody waits for it.
    fn abort(&self);
}

impl Watched for Device {
    fn dump(&self) -> Result<String, Error> {
        self.dump()
    }

    fn abort(&self) {
        self.abort();
    }
}

impl Watched for Process {
    fn dump(&self) -> Result<String, Error> {
        self.device().dump()
    }

    fn abort(&self) {
        self.device().abort();
    }
}

/// What one rank does, by its number; the error says what is wrong.
type Part = dyn Fn(usize) -> Result<(), String> + Send + Sync;

/// Runs `part` for every rank, each on a thread of its own; returns the answers.
///
/// # Panics
/// When a rank fails or panics, or the job does not end in time.
pub fn run<R: Send + 'static>(
    ranks: &[Arc<dyn Watched>],
    part: impl Fn(usize) -> Result<R, String> + Send + Sync + 'static,
) -> Vec<R> {
    let answers: Arc<Vec<_>> = Arc::new(ranks.iter().map(|_| Mutex::new(None)).collect());
    let kept = answers.clone();
    let part = move |rank| {
        *lock(&kept[rank]) = Some(part(rank)?);
        Ok(())
    };
    run_each(ranks, Box::new(part));
    answers.iter().filter_map(|answer| lock(answer).take()).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run_each(ranks: &[Arc<dyn Watched>], part: Box<Part>) {
    let (mine, failure) = (ranks.to_vec(), Arc::new(OnceLock::new()));
    let cause = failure.clone();
    let play = move |number: usize| {
        let outcome = catch_unwind(AssertUnwindSafe(|| part(number)));
        let outcome = outcome.unwrap_or_else(|panic| Err(mpjdev::panic_text(&*panic)));
        if let Err(what) = outcome {
            // The cause is kept before the others fail because of it.
            cause.get_or_init(|| format!("rank {number}: {what}"));
            mine[number].abort();
        }
    };
    let count = ranks.len();
    let all = move || {
        let play = &play;
        thread::scope(|scope| {
            for number in 0..count {
                let thread = thread::Builder::new().name(format!("rank {number}"));
                let play = move || play(number);
                thread.spawn_scoped(scope, play).expect("a thread for a rank");
            }
        });
    };
    let cause = || failure.get().cloned().unwrap_or_default();
    watch_with(|| cause() + "\n" + &dumps(ranks), all);
    assert!(failure.get().is_none(), "{}", cause());
}

/// Returns what the ranks are doing, and ends them. A rank whose lock is never released is passed over.
fn dumps(ranks: &[Arc<dyn Watched>]) -> String {
    let mut text = String::new();
    for (number, rank) in ranks.iter().enumerate() {
        let (reader, (say, said)) = (rank.clone(), mpsc::channel());
        thread::spawn(move || say.send(reader.dump()));
        text += &match said.recv_timeout(GRACE) {
            Ok(Ok(dump)) => dump,
            Ok(Err(error)) => format!("rank {number}: {error}\n"),
            Err(_) => format!("rank {number}: holds its lock and does not give it up\n"),
        };
    }
    ranks.iter().for_each(|rank| rank.abort());
    text
}
