//! What a job's user is told when it fails, hangs or is asked about.

mod snapshot;

use crate::exits::{Ledger, Verdict};
pub(crate) use snapshot::{Seen, Snapshot};

/// The report on a job that `verdict` ended, whose ranks were stopped at `stopped_at` and were seen as
/// in `snapshot` before that. Empty if there is nobody to read it.
pub(crate) fn of_verdict(
    ledger: &Ledger,
    verdict: Verdict,
    stopped_at: u64,
    snapshot: &Snapshot,
) -> String {
    let told = ledger.report(verdict, stopped_at);
    if verdict == Verdict::Deadlock { told + &on_request(ledger, snapshot) } else { told }
}

/// The state of a job that goes on, for who asked for it by a signal.
pub(crate) fn on_request(_: &Ledger, snapshot: &Snapshot) -> String {
    let lines = snapshot.ranks.iter().map(|seen| format!("mpjrun:   {seen:?}\n"));
    lines.collect()
}
