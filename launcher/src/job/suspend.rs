//! Ctrl-Z: stops the ranks and the launcher if a shell can continue it, and continues the ranks afterwards. Called by the
//! job's poll loop.
//!
//! - SU1: a launcher in an orphaned process group is not stopped: no shell watches such a group, so nobody would
//!   continue it. The kernel does not obey SIGTSTP there either.
//! - SU2: the time for which it was stopped does not count as time of the job.

use std::iter::successors;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, kill_process};

use super::{Job, Phase};
use crate::host::process_table::{Entry, entry};

/// Limits the walk from the launcher up to its shell, since processes come and go meanwhile.
const MOST_ANCESTORS: usize = 64;

impl Job {
    /// Stops the ranks and the launcher itself until a shell continues them.
    pub(super) fn suspend(&mut self) {
        if !has_watcher() {
            return self.printer.say("mpjrun: not suspended, since no shell could continue it\n");
        }
        self.signal_all(Signal::STOP);
        self.ranks.suspended(true);
        let pause = stop_myself();
        self.ranks.suspended(false);
        self.signal_all(Signal::CONT);
        self.resumed(pause);
    }

    /// Moves all deadlines by a `pause` of the job.
    pub(super) fn resumed(&mut self, pause: Duration) {
        self.watcher.resumed();
        if let Some((_, at)) = &mut self.timeout {
            *at += pause;
        }
        match &mut self.phase {
            Phase::Running => {}
            Phase::Dismissing { until: at, .. }
            | Phase::Stopping { kill_at: at }
            | Phase::Killing { give_up_at: at } => *at += pause,
        }
    }
}

/// Whether somebody can continue this process once it has stopped (SU1).
fn has_watcher() -> bool {
    is_watched(getpid().as_raw_pid(), |pid| entry(Pid::from_raw(pid)?))
}

/// Stops this process, and returns for how long it was stopped (SU2).
fn stop_myself() -> Duration {
    let start = Instant::now();
    // A process may always stop itself; the call returns when it is continued.
    let _ = kill_process(getpid(), Signal::STOP);
    start.elapsed()
}

/// Whether the first ancestor of `pid` outside its group, a shell, is in the same session.
fn is_watched(pid: i32, entry: impl Fn(i32) -> Option<Entry>) -> bool {
    let Some(own) = entry(pid) else { return false };
    let ancestors = successors(entry(own.parent), |ancestor| entry(ancestor.parent));
    let outside = ancestors.take(MOST_ANCESTORS).find(|ancestor| ancestor.group != own.group);
    outside.is_some_and(|ancestor| ancestor.session == own.session)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process table of number, parent, group and session.
    fn watched(table: &[(i32, i32, i32, i32)], pid: i32) -> bool {
        is_watched(pid, |wanted| {
            let (_, parent, group, session) = *table.iter().find(|row| row.0 == wanted)?;
            Some(Entry { parent, group, session, ..Entry::default() })
        })
    }

    #[test]
    fn a_job_of_a_shell_is_watched() {
        assert!(watched(&[(10, 1, 10, 10), (20, 10, 20, 10)], 20));
        let behind_a_script = [(10, 1, 10, 10), (20, 10, 20, 10), (21, 20, 20, 10)];
        assert!(watched(&behind_a_script, 21));
    }

    #[test]
    fn a_group_that_nobody_watches_is_orphaned() {
        let parent_in_another_session = [(10, 1, 10, 10), (20, 10, 20, 20)];
        assert!(!watched(&parent_in_another_session, 20));
        let script_of_a_session_leader = [(1, 0, 1, 1), (10, 1, 10, 10), (11, 10, 10, 10)];
        assert!(!watched(&script_of_a_session_leader, 11));
        let parent_out_of_sight = [(20, 0, 20, 20)];
        assert!(!watched(&parent_out_of_sight, 20));
        let in_a_ring = [(20, 21, 20, 20), (21, 20, 20, 20)];
        assert!(!watched(&in_a_ring, 20));
    }
}
