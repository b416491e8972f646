//! What ranks start and what has left their groups: `timeout` in a script, a shell's job under `set -m`, an
//! orphan in a group of its own, a daemon. Owned by the job, which reaches the groups themselves by
//! [`crate::host::rank`].
//!
//! - ST1: from the start of a job on, the launcher adopts: a process that loses its parent below a rank becomes the
//!   launcher's child, not that of the first process of the system. So all that is left of a job is found
//!   among the launcher's children. The kernel gives them to the first thread of a process; a job that
//!   another thread runs adopts nothing, since what it would find there may be others'.
//! - ST2: never touched are the ranks, which are reaped when they are dropped (K1), the guard, which reaps
//!   itself, and strangers: the children that this thread had before the job, since a shell that became the
//!   launcher by `exec` may have left some. A stranger that ends leaves its own children to the launcher. They
//!   are known by their process group, which is a stranger's or the launcher's, where no rank is; they get no
//!   signal, and are reaped when they have ended. Such a group keeps its number, since who was in it is not
//!   reaped. What a stranger starts in yet another group counts as the job's once it is left.
//! - ST3: at the end, what is left is killed and reaped until there is nothing, daemons too, of which the
//!   launcher tells. A process that is killed gives its own children to the launcher before it can be reaped,
//!   and one that is being killed starts no more, so nothing escapes. Two seconds are the limit, for what the
//!   kernel cannot end.
//! - ST4: no signal meets a stranger. A child is signalled by its number, which is its own until this thread
//!   reaps it. Any other process is held by a descriptor, and is found to be below the launcher after that was
//!   opened (PT1 of [`crate::host::process_table`]).
//! - ST5: a process that is started while the others are being signalled may be missed; the end of the job
//!   misses none (ST3). One whose parent passes the signal on, as `timeout` does, gets it twice.
//! - ST6: where the system does not list children (PT2, `CONFIG_PROC_CHILDREN`), what has left the ranks' groups gets
//!   no signal and stays when the launcher ends. So it does after a SIGKILL to the launcher: the guard knows
//!   groups only.

use std::collections::{BTreeSet, HashSet};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, kill_process, pidfd_open,
    pidfd_send_signal, set_child_subreaper, waitid,
};
use rustix::thread::gettid;

use crate::host::process_table::{Entry, children, entry, own_children};
use crate::job::GIVE_UP;

/// Between two looks at whether what is left at the end is gone.
const PAUSE: Duration = Duration::from_millis(1);
/// At least this long passes between two looks for orphans that have ended.
const REAP_INTERVAL: Duration = Duration::from_secs(1);

/// Most walks for one signal: what starts processes faster than they are found is left to the end.
const MOST_WALKS: usize = 8;

/// See the module's head. Dropping it is [`Stragglers::end`].
#[derive(Debug)]
pub(crate) struct Stragglers {
    /// The launcher's session.
    session: Option<i32>,
    /// Leaders of the groups that get signals as groups.
    ranks: HashSet<Pid>,
    /// See ST2, as the next one.
    strangers: HashSet<Pid>,
    strange_groups: HashSet<i32>,
    /// Not on another thread than the first (ST1), nor with a kernel that lets nobody adopt, nor when all has ended.
    adopts: bool,
    next_reaping: Instant,
}

impl Stragglers {
    /// Adopts from now on what loses its parent; called before ranks are started, by the thread that starts
    /// them.
    pub(crate) fn adopt() -> Self {
        let any = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let has_children = !matches!(waitid(WaitId::All, any), Err(Errno::CHILD));
        let children = if has_children { own_children() } else { Vec::new() };
        let own = entry(getpid());
        let session = own.as_ref().map(|own| own.session);
        let members = children.iter().filter_map(|child| entry(*child)).chain(own);
        Self {
            session,
            ranks: HashSet::new(),
            strange_groups: members.map(|member| member.group).collect(),
            strangers: children.into_iter().collect(),
            adopts: gettid() == getpid() && set_child_subreaper(Some(getpid())).is_ok(),
            next_reaping: Instant::now() + REAP_INTERVAL,
        }
    }

    /// Tells which children are none (ST2): the `ranks`, and the process of the guard if there is one.
    pub(crate) fn know(&mut self, ranks: &[Pid], guard: Option<Pid>) {
        self.ranks.extend(ranks);
        self.strangers.extend(guard);
    }

    /// Sends `signal` to all processes of the job: `to_ranks` sends it to the ranks and their groups. A shell
    /// that sees its job stop or end goes on, so the shell comes first, and last when they are continued.
    pub(crate) fn signal(&self, signal: Signal, to_ranks: impl FnOnce()) {
        let send = |processes: Vec<OwnedFd>| {
            for process in processes {
                // It may have ended, or be another user's.
                let _ = pidfd_send_signal(process, signal);
            }
        };
        let mut met = HashSet::new();
        // Looked for before a rank ends, which cuts off what is below it.
        let mut outside = self.outside_groups(&mut met);
        if signal == Signal::CONT {
            send(outside);
            outside = self.outside_groups(&mut met);
        }
        to_ranks();
        // What loses its parent meanwhile is found the next time.
        for _ in 1..MOST_WALKS {
            if outside.is_empty() {
                break;
            }
            send(outside);
            outside = self.outside_groups(&mut met);
        }
    }

    /// The processes of the job in no rank's group that are not in `met`, which they come into.
    fn outside_groups(&self, met: &mut HashSet<Pid>) -> Vec<OwnedFd> {
        let launcher = getpid();
        let mut outside = Vec::new();
        let mut seen = HashSet::new();
        let own = own_children().into_iter().filter(|child| !self.strangers.contains(child));
        let mut open: Vec<(Pid, Pid)> = own.map(|child| (launcher, child)).collect();
        while let Some((parent, pid)) = open.pop() {
            // The order matters (ST4).
            let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
            let Some(entry) = entry(pid).filter(|entry| self.is_of_job(entry)) else { continue };
            let is_below = [parent, launcher].map(Pid::as_raw_pid).contains(&entry.parent);
            if !is_below || !seen.insert(pid) {
                continue;
            }
            let is_reached = Pid::from_raw(entry.group).is_some_and(|g| self.ranks.contains(&g));
            if !is_reached && met.insert(pid) {
                outside.push(process);
            }
            open.extend(children(pid).into_iter().map(|child| (pid, child)));
        }
        outside
    }

    /// Reaps orphans that have ended, if it is time: they would pile up in a job that runs for long. Called
    /// whenever the job's loop is awake.
    pub(crate) fn reap_at_times(&mut self, now: Instant) {
        if self.adopts && now >= self.next_reaping {
            self.next_reaping = now + REAP_INTERVAL;
            for orphan in self.orphans() {
                reap(orphan);
            }
        }
    }

    /// Ends what is left of the job (ST3), whose ranks are gone. Answers which daemons
    /// there were: processes in sessions of their own.
    pub(crate) fn end(&mut self) -> Vec<String> {
        let until = Instant::now() + GIVE_UP;
        let mut daemons = BTreeSet::new();
        while self.adopts && self.end_orphans(&mut daemons) && Instant::now() < until {
            std::thread::sleep(PAUSE);
        }
        self.adopts = false;
        daemons.into_iter().collect()
    }

    /// The children that are neither ranks nor strangers.
    fn orphans(&self) -> impl Iterator<Item = Pid> {
        own_children()
            .into_iter()
            .filter(|child| !self.ranks.contains(child) && !self.strangers.contains(child))
    }

    /// Whether a process below the launcher is no stranger's (ST2).
    fn is_of_job(&self, process: &Entry) -> bool {
        !self.strange_groups.contains(&process.group)
    }

    /// Kills and reaps orphans, and answers whether there may be more: there are none when nothing was left
    /// to do (ST3).
    fn end_orphans(&self, daemons: &mut BTreeSet<String>) -> bool {
        let mut is_changed = false;
        for orphan in self.orphans() {
            let Some(process) = entry(orphan).filter(|process| self.is_of_job(process)) else {
                is_changed |= reap(orphan);
                continue;
            };
            if self.session != Some(process.session) && process.state != 'Z' {
                let name = process.name.escape_debug();
                daemons.insert(format!("{name} (process {orphan})"));
            }
            is_changed |= reap(orphan) || kill_process(orphan, Signal::KILL).is_ok();
        }
        is_changed
    }
}

impl Drop for Stragglers {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reaps a child of this process if it has ended, and answers whether it had.
fn reap(child: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    waitid(WaitId::Pid(child), options).is_ok_and(|status| status.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_beside_the_first_adopts_nothing() {
        let thread = std::thread::spawn(|| !Stragglers::adopt().adopts);
        assert!(thread.join().expect("it does not panic"));
    }
}
