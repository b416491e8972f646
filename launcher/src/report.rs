//! The texts about jobs that fail, hang, or are asked for their state. Pure: times and the state of the ranks are
//! arguments.
//!
//! [`of_verdict`] is the report at the end of a job that did not succeed, [`on_request`] the answer to SIGQUIT, and
//! [`on_standstill`] a note about a job that goes on. After a failure the report has the headline and the table; what
//! needs the queues of the ranks (calls, cycles, near misses) is told of hangs and on request.
//!
//! ```text
//!  exits: ExitLog ─────┐                    ┌── cause                the headline: who, how, when
//!                      ├── standing ────────┼── table                who is blocked in what, in columns
//!  segment: Snapshot ──┘   one per rank     ├── waits                the cycle, or the chain and its end
//!                                           ├── collective_arrivals  who has not come to a collective call
//!                                           ├── unjudged             why it was not found to be a deadlock
//!                                           ├── near_misses          messages that nearly match
//!                                           └── queues               both queues of each rank
//! ```
//!
//! A [`waiting`] thread's call is called what its rank has told. [`last_calls`] are those that ranks have recorded, [`stats`]
//! is the table of `--stats`, [`watch`] the block of `--watch`.
//!
//! - RE1: nothing that is read from the segment or sent by a rank is trusted. Ranks and lengths are compared before
//!   they are used as an index; sums and differences saturate.
//! - RE2: each part of a report has a limit of lines, each list a limit of entries, and each text a limit of bytes.
//!   What is left out is counted.

mod cause;
mod collective_arrivals;
mod columns;
mod format;
mod graph;
mod last_calls;
mod near_misses;
mod queues;
mod standing;
mod stats;
mod table;
mod unjudged;
mod waiting;
mod waits;
mod watch;

use std::time::Duration;

use crate::exits::{ExitLog, Failure, Fault, Verdict};
use crate::hang::snapshot::Snapshot;
use crate::io::output::Broken;
pub(crate) use cause::{early_ends, in_brief};
pub(crate) use columns::aligned;
pub(crate) use format::{printable_line, ranks as of_ranks, three_digits, time};
pub(crate) use last_calls::text as last_calls;
use standing::Standing;
pub(crate) use stats::text as stats;
pub(crate) use watch::Rates;

/// The start of every line of a report but the first.
const INDENT: &str = "mpjrun:   ";

/// The report on a job that `verdict` ended. Its ranks were stopped at `stopped_at`; `snapshot` is their state before.
/// Empty if nobody can read it.
pub(crate) fn of_verdict(
    exit_log: &ExitLog,
    verdict: Verdict,
    stopped_at: u64,
    snapshot: &Snapshot,
) -> String {
    let headline = cause::headline(exit_log, verdict);
    let mut standings = standing::of_all(exit_log, snapshot, Some(stopped_at));
    let what_follows = match verdict {
        Verdict::Output(Broken::Closed) => return String::new(),
        Verdict::Output(_) => String::new(),
        Verdict::Failed(failure) => {
            // The headline is about this rank.
            let said = cause::complaints_of(exit_log, failure.rank);
            if matches!(failure.fault, Fault::Deserted | Fault::Unwinding) {
                // Other threads of the rank take part in the hang.
                said + &states(exit_log, snapshot, &standings) + &findings(&standings, "")
            } else {
                standings[failure.rank].is_listed = false;
                standings.iter_mut().for_each(Standing::forget_errors);
                said + &states(exit_log, snapshot, &standings)
            }
        }
        Verdict::Deadlock => hang(exit_log, snapshot, &standings, ""),
        _ => unjudged(exit_log, snapshot, &standings),
    };
    headline + &what_follows
}

/// Why a rank has failed, with its complaints.
pub(crate) fn cause(exit_log: &ExitLog, failure: Failure) -> String {
    let headline = cause::headline(exit_log, Verdict::Failed(failure));
    headline + &cause::complaints_of(exit_log, failure.rank)
}

/// The state of a job that goes on, for SIGQUIT.
pub(crate) fn on_request(exit_log: &ExitLog, snapshot: &Snapshot) -> String {
    let standings = standing::of_all(exit_log, snapshot, None);
    let after = format::seconds_between(exit_log.start(), snapshot.at);
    let headline = format!("mpjrun: state of the job {after} s after start\n");
    headline + &unjudged(exit_log, snapshot, &standings)
}

/// The state of a job that goes on, after a time without progress. `launcher` is the process number of mpjrun.
pub(crate) fn on_standstill(
    exit_log: &ExitLog,
    snapshot: &Snapshot,
    lasted: Duration,
    launcher: u32,
) -> String {
    let standings = standing::of_all(exit_log, snapshot, None);
    let lasted = lasted.as_secs_f64();
    let headline = format!(
        "mpjrun: no rank has made progress for {lasted:.0} s, and none computes: the job may hang; it \
         goes on (kill -QUIT {launcher} prints this again, --stall S would end it, --deadlock ignore silences \
         this)\n"
    );
    headline + &unjudged(exit_log, snapshot, &standings)
}

fn states(exit_log: &ExitLog, snapshot: &Snapshot, standings: &[Standing<'_>]) -> String {
    table::text(standings, exit_log.start(), snapshot.at)
}

/// The state of a job that was not found to be in deadlock.
fn unjudged(exit_log: &ExitLog, snapshot: &Snapshot, standings: &[Standing<'_>]) -> String {
    hang(exit_log, snapshot, standings, &unjudged::text(standings, snapshot))
}

/// The state of a job without a failed rank. Complaints come first: a panic is likely the cause.
fn hang(
    exit_log: &ExitLog,
    snapshot: &Snapshot,
    standings: &[Standing<'_>],
    unjudged: &str,
) -> String {
    let findings = findings(standings, unjudged);
    [cause::complaints(exit_log), states(exit_log, snapshot, standings), findings].concat()
}

/// Why a job may hang, and why it was not found to be in deadlock.
fn findings(standings: &[Standing<'_>], unjudged: &str) -> String {
    let (misses, queues) = (near_misses::text(standings), queues::text(standings));
    [&waits::text(standings), unjudged, &misses, &queues].concat()
}

#[cfg(test)]
mod tests;
