//! The texts about jobs that fail, hang, or are asked for their state. Pure: times and the state of the ranks are
//! arguments.
//!
//! [`of_verdict`] is the report at the end of a job that did not succeed, [`on_request`] the answer to SIGQUIT, and
//! [`on_standstill`] a note about a job that goes on.
//!
//! ```text
//!  exits: Ledger ──────┐                    ┌── cause      the headline: who, how, when
//!                      ├── standing ────────┼── table      who is blocked in what, in columns
//!  segment: Snapshot ──┘   one per rank     ├── waits      the cycle, or the chain and its end
//!                                           ├── gatherings who has not come to a collective call
//!                                           ├── unjudged   why it was not found to be a deadlock
//!                                           ├── misses     messages that nearly match
//!                                           └── queues     both queues of each rank
//! ```
//!
//! [`stats`] is the table of `--stats`.
//!
//! - RE1: nothing that is read from the segment or sent by a rank is trusted. Ranks and lengths are compared before
//!   they are used as an index; sums and differences saturate.
//! - RE2: each part of a report has a limit of lines, each list a limit of entries, and each text a limit of bytes.
//!   What is left out is counted.

mod cause;
mod columns;
mod gatherings;
mod graph;
mod misses;
mod queues;
mod standing;
mod stats;
mod table;
mod unjudged;
mod waits;
mod words;

use std::time::Duration;

use crate::exits::{Failure, Fault, Ledger, Verdict};
use crate::hang::snapshot::Snapshot;
use crate::io::output::Broken;
pub(crate) use cause::{early_ends, in_brief};
pub(crate) use columns::aligned;
use standing::Standing;
pub(crate) use stats::text as stats;
pub(crate) use words::ranks as of_ranks;

/// The start of every line of a report but the first.
const INDENT: &str = "mpjrun:   ";

/// The report on a job that `verdict` ended. Its ranks were stopped at `stopped_at`; `snapshot` is their state before.
/// Empty if nobody can read it.
pub(crate) fn of_verdict(
    ledger: &Ledger,
    verdict: Verdict,
    stopped_at: u64,
    snapshot: &Snapshot,
) -> String {
    let headline = cause::headline(ledger, verdict);
    let mut standings = standing::of_all(ledger, snapshot, Some(stopped_at));
    let what_follows = match verdict {
        Verdict::Output(Broken::Closed) => return String::new(),
        Verdict::Output(_) => String::new(),
        Verdict::Failed(failure) => {
            // The headline is about this rank.
            let said = cause::complaints_of(&ledger.records()[failure.rank]);
            if matches!(failure.fault, Fault::Deserted | Fault::Unwinding) {
                // Other threads of the rank take part in the hang.
                said + &states(ledger, snapshot, &standings) + &findings(&standings, "")
            } else {
                standings[failure.rank].is_listed = false;
                standings.iter_mut().for_each(Standing::forget_errors);
                said + &states(ledger, snapshot, &standings)
            }
        }
        Verdict::Deadlock => hang(ledger, snapshot, &standings, ""),
        _ => unjudged(ledger, snapshot, &standings),
    };
    headline + &what_follows
}

/// Why a rank has failed, with its complaints.
pub(crate) fn cause(ledger: &Ledger, failure: Failure) -> String {
    let headline = cause::headline(ledger, Verdict::Failed(failure));
    headline + &cause::complaints_of(&ledger.records()[failure.rank])
}

/// The state of a job that goes on, for SIGQUIT.
pub(crate) fn on_request(ledger: &Ledger, snapshot: &Snapshot) -> String {
    let standings = standing::of_all(ledger, snapshot, None);
    let after = words::seconds_between(ledger.start(), snapshot.at);
    let headline = format!("mpjrun: state of the job {after} s after start\n");
    headline + &unjudged(ledger, snapshot, &standings)
}

/// The state of a job that goes on, after a time without progress. `launcher` is the process number of mpjrun.
pub(crate) fn on_standstill(
    ledger: &Ledger,
    snapshot: &Snapshot,
    lasted: Duration,
    launcher: u32,
) -> String {
    let standings = standing::of_all(ledger, snapshot, None);
    let lasted = lasted.as_secs_f64();
    let headline = format!(
        "mpjrun: no rank has made progress for {lasted:.0} s, and none computes: the job may hang; it \
         goes on (kill -QUIT {launcher} prints this again, --stall S would end it, --deadlock ignore silences \
         this)\n"
    );
    headline + &unjudged(ledger, snapshot, &standings)
}

fn states(ledger: &Ledger, snapshot: &Snapshot, standings: &[Standing]) -> String {
    table::text(standings, ledger.start(), snapshot.at)
}

/// The state of a job that was not found to be in deadlock.
fn unjudged(ledger: &Ledger, snapshot: &Snapshot, standings: &[Standing]) -> String {
    hang(ledger, snapshot, standings, &unjudged::text(standings, snapshot))
}

/// The state of a job without a failed rank. Complaints come first: a panic is likely the cause.
fn hang(ledger: &Ledger, snapshot: &Snapshot, standings: &[Standing], unjudged: &str) -> String {
    let findings = findings(standings, unjudged);
    [cause::complaints(ledger), states(ledger, snapshot, standings), findings].concat()
}

/// Why a job may hang, and why it was not found to be in deadlock.
fn findings(standings: &[Standing], unjudged: &str) -> String {
    let (misses, queues) = (misses::text(standings), queues::text(standings));
    [&waits::text(standings), unjudged, &misses, &queues].concat()
}

#[cfg(test)]
mod tests;
