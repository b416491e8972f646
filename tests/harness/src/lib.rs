//! Starts jobs for tests the way a user does: through the built `mpjrun`, under a watchdog. Tests whose ranks are threads
//! have a watchdog too.
//!
//! ```no_run
//! use mpj_harness::launch;
//!
//! let outcome = launch("hostname").ranks(4).options(["-l"]).args(["--short"]).expect(0);
//! assert_eq!(outcome.stdout.lines().count(), 4);
//! ```
//!
//! - TH1: every process of a launch carries the launch's mark in its environment, and is killed when the test drops the
//!   launch or fails.
//! - TH2: a launch that does not end within its limit fails its test. The launcher is asked for a report first, so the
//!   failure shows what the ranks did, and what was printed.
//! - TH3: all output is read, but no more than [`MOST_OUTPUT`] of it is kept.

#![forbid(unsafe_code)]

mod built;
mod hosts;
mod launch;
mod outcome;
pub mod process;
mod running;
mod scene;
mod shown;
mod watch;

use std::thread;
use std::time::{Duration, Instant};

pub use built::{example, libmpi, libmpi_trace, mpjrun_path, workspace};
pub use hosts::{Hosts, REFUSED, skip};
pub use launch::{Launch, command, launch, mpjrun, shell};
pub use outcome::Outcome;
pub use running::{MOST_OUTPUT, Running};
pub use scene::Scene;
pub use shown::{Arrow, Shown};
pub use watch::{Sleepers, watch, watch_with};

/// How long anything may take before the watchdog fails the test, unless it is given another limit. Miri is slow, and has
/// its own clock.
pub const LIMIT: Duration = Duration::from_secs(if cfg!(miri) { 3_600 } else { 60 });

/// Time between two looks at a condition.
const TICK: Duration = Duration::from_millis(2);

/// Waits until `condition` holds.
///
/// # Panics
/// When it does not within [`LIMIT`].
#[track_caller]
pub fn eventually(what: &str, condition: impl FnMut() -> bool) {
    assert!(holds_within(LIMIT, condition), "watchdog: never came true: {what}");
}

/// Whether `condition` comes to hold within this time.
fn holds_within(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if condition() {
            return true;
        }
        if start.elapsed() >= limit {
            return false;
        }
        thread::sleep(TICK);
    }
}
