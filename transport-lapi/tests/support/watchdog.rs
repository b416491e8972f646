//! Ends a test that hangs.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Time limit of a test.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Runs `body` on a thread of its own and returns its result.
///
/// # Panics
/// If `body` panics, or takes longer than [`LIMIT`].
pub fn watch<R: Send + 'static>(body: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, outcome) = mpsc::channel();
    thread::spawn(move || {
        // The receiver is gone only after the limit, when the test has already failed.
        let _ = done.send(catch_unwind(AssertUnwindSafe(body)));
    });
    match outcome.recv_timeout(LIMIT) {
        Ok(Ok(answer)) => answer,
        Ok(Err(panic)) => resume_unwind(panic),
        Err(_) => panic!("not done after {LIMIT:?}: a message or a wake-up was lost"),
    }
}
