//! Takes the snapshot of a job's ranks that a report shows: what the ranks have published, and what the kernel says of
//! their processes. Called only for a report, or a block of `--watch`.
//!
//! - OB1: the kernel is asked between two looks at what a rank has published. If that has changed meanwhile, the report
//!   says only that the rank is awake: a thread that the kernel showed asleep may have slept in a call.
//! - OB2: a rank's process number is a claim of the rank. It only decides which files of `/proc` are read, and nothing
//!   is said of a rank in another PID namespace. A process that the launcher started keeps its number until the job is
//!   over (K1 of [`crate::host::rank`]).

use transport_lapi::bootstrap::monotonic_nanos;
use transport_lapi::bootstrap::waits::{JobView, TaskState};

use crate::hang::idle::Stacks;
use crate::hang::snapshot::{Activity, Seen, Snapshot};
use crate::hang::watch::{self, Look};
use crate::host::process_table::{numbered, stacks, threads};
use crate::host::usage;

/// Takes the snapshot that begins with this `look` at the job. The process of a rank that has not joined is the one
/// of `children` that was started for it, if there is one.
pub(crate) fn snapshot(view: &JobView, look: Look, children: &[u32]) -> Snapshot {
    let process =
        |rank: usize, state: &TaskState| usage::process(state, children.get(rank).copied());
    let usages = look.iter().enumerate().map(|(rank, state)| {
        let pid = process(rank, state.as_ref()?)?;
        Some(usage::of(pid, &view.counters(rank)))
    });
    let usages = usages.map(Option::unwrap_or_default).collect();
    let stacks = Stacks::new(stacks);
    let seen = look.iter().enumerate().map(|(rank, before)| {
        let before = before.as_ref()?;
        let seen = (process(rank, before).and_then(of_process), watch::doubt(before, &stacks));
        view.state(rank).filter(|after| after.epoch == before.epoch).map(|_| seen)
    });
    let (activities, doubts) = seen.map(Option::unwrap_or_default).unzip();
    Snapshot {
        at: monotonic_nanos(),
        ranks: look.into_iter().map(Seen::from).collect(),
        activities,
        doubts,
        usages,
        ..Snapshot::default()
    }
}

fn of_process(pid: u32) -> Option<Activity> {
    let threads = threads(numbered(pid)?)?.flatten();
    of_threads(threads.filter(|thread| !thread.is_bystander()).map(|thread| thread.state))
}

/// What a process does whose threads are in these states. One thread that runs may be the one that matters; a signal
/// that stops a process stops all its threads.
fn of_threads(letters: impl Iterator<Item = char>) -> Option<Activity> {
    let letters: Vec<char> = letters.collect();
    let order = [
        ('T', Activity::Stopped),
        ('R', Activity::Computing),
        ('t', Activity::Traced),
        ('D', Activity::InKernel),
        ('S', Activity::Sleeping),
    ];
    order.into_iter().find(|(letter, _)| letters.contains(letter)).map(|(_, activity)| activity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_that_matters_decides() {
        let of = |letters: &str| of_threads(letters.chars());
        assert_eq!(of("SRS"), Some(Activity::Computing));
        assert_eq!(of("SSS"), Some(Activity::Sleeping));
        assert_eq!(of("SDS"), Some(Activity::InKernel));
        assert_eq!(of("TTT"), Some(Activity::Stopped));
        assert_eq!(of("DTR"), Some(Activity::Stopped), "about to be");
        assert_eq!(of("tt"), Some(Activity::Traced));
        assert_eq!(of("ZS"), Some(Activity::Sleeping));
        assert_eq!(of("Z"), None);
        assert_eq!(of(""), None);
    }
}
