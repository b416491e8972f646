//! What tests need whose ranks, or other threads, are in the process of the test: a watchdog, and a way to wait until
//! threads sleep.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;
use std::{fs, thread};

use rustix::thread::gettid;

use crate::process::await_sleep;
use crate::{LIMIT, eventually};

/// Runs `body` on a thread of its own, and returns its result.
///
/// # Panics
/// When `body` does, and when it takes longer than [`LIMIT`].
#[track_caller]
pub fn watch<R: Send + 'static>(body: impl FnOnce() -> R + Send + 'static) -> R {
    watch_with(threads, body)
}

/// Like [`watch`]; the failure of a body that takes too long shows what `diagnose` returns.
///
/// # Panics
/// As [`watch`].
#[track_caller]
pub fn watch_with<R: Send + 'static>(
    diagnose: impl FnOnce() -> String,
    body: impl FnOnce() -> R + Send + 'static,
) -> R {
    within(LIMIT, diagnose, body)
}

#[track_caller]
fn within<R: Send + 'static>(
    limit: Duration,
    diagnose: impl FnOnce() -> String,
    body: impl FnOnce() -> R + Send + 'static,
) -> R {
    let (done, outcome) = mpsc::channel();
    thread::spawn(move || {
        // Nobody listens after the limit.
        let _ = done.send(catch_unwind(AssertUnwindSafe(body)));
    });
    match outcome.recv_timeout(limit) {
        Ok(Ok(answer)) => answer,
        Ok(Err(panic)) => resume_unwind(panic),
        Err(_) => panic!("watchdog: not over after {limit:?}\n{}", diagnose()),
    }
}

/// The threads of this process: what they are called, and in which call of the kernel they wait.
fn threads() -> String {
    let this = procfs::process::Process::myself().and_then(|process| process.tasks());
    let threads = this.into_iter().flatten().flatten().filter_map(|thread| {
        let stat = thread.stat().ok()?;
        let call = fs::read_to_string(format!("/proc/self/task/{}/wchan", thread.tid));
        let (name, state, call) = (stat.comm, stat.state, call.unwrap_or_default());
        Some(format!("thread {} ({name}), state {state}, in {call}\n", thread.tid))
    });
    threads.collect()
}

/// Threads that are about to wait, for another one that goes on once they do.
#[derive(Debug, Default)]
pub struct Sleepers(Mutex<Vec<u32>>);

impl Sleepers {
    /// Adds the calling thread, which has nothing to do from here on but to wait.
    pub fn join(&self) {
        let (me, mut threads) = (gettid().as_raw_pid() as u32, self.threads());
        if !threads.contains(&me) {
            threads.push(me);
        }
    }

    /// Waits until this many threads have been added, asleep or not.
    ///
    /// # Panics
    /// When they are not within [`LIMIT`].
    #[track_caller]
    pub fn wait_for(&self, count: usize) {
        eventually("the threads are about to wait", || self.threads().len() >= count);
    }

    /// Waits until this many threads have been added, and all of them sleep.
    ///
    /// # Panics
    /// When they do not within [`LIMIT`].
    #[track_caller]
    pub fn wait_until_asleep(&self, count: usize) {
        self.wait_for(count);
        await_sleep(&self.threads().clone());
    }

    fn threads(&self) -> MutexGuard<'_, Vec<u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn answers_and_panics_come_through() {
        assert_eq!(watch(|| 5), 5);
        let panic = catch_unwind(|| watch(|| panic!("a wall"))).expect_err("it panics");
        assert_eq!(panic.downcast_ref(), Some(&"a wall"));
    }

    #[test]
    fn a_body_that_hangs_fails_with_the_diagnosis() {
        let (short, hang) = (Duration::from_millis(20), || -> () {
            loop {
                thread::park();
            }
        });
        let panic = catch_unwind(|| within(short, threads, hang)).expect_err("it hangs");
        let said = panic.downcast_ref::<String>().expect("a panic with words");
        for words in ["not over after 20ms\n", "state S, in ", "(watch::tests::a"] {
            assert!(said.contains(words), "no {words:?} in {said}");
        }
    }

    #[test]
    fn a_thread_that_sleeps_is_seen_and_can_be_woken() {
        let sleepers = Arc::new(Sleepers::default());
        let others = sleepers.clone();
        let sleeper = thread::spawn(move || {
            others.join();
            thread::park();
        });
        sleepers.wait_until_asleep(1);
        assert!(!sleeper.is_finished());
        sleeper.thread().unpark();
        sleeper.join().expect("no panic");
    }
}
