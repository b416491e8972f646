//! Processes started by ranks that are in no rank's process group: `timeout` in a script, a shell's job under
//! `set -m`, an orphan in a group of its own, a daemon. They get the signals of the job, and end with it. Owned by the
//! job; [`crate::host::rank`] signals the ranks' groups.
//!
//! - ST1: during a job the launcher is a subreaper: a process below a rank that loses its parent becomes a child of
//!   the launcher. So all processes of the job are below the launcher. The kernel gives such orphans to the first
//!   thread of a process; a job on another thread adopts none, since those it would find may not be its own.
//! - ST2: three kinds of children are never touched: the ranks, which are reaped when they are dropped (K1), the
//!   guard, which its own value reaps, and *strangers*, the children that this thread had before the job, for example
//!   from a shell that became the launcher by `exec`. Children of a stranger that ends come to the launcher. They are
//!   recognised by their process group, that of a stranger or of the launcher, in which there is no rank; they get no
//!   signal, and are reaped when they have ended. The number of such a group stays taken, since strangers are not
//!   reaped. A process that a stranger starts in yet another group counts as the job's when its parent has ended.
//! - ST3: at the end of the job, children that are left are killed and reaped until there are none, daemons too, which
//!   are reported. A killed process gives its children to the launcher before it can be reaped, and starts no more, so
//!   none escapes. After [`GIVE_UP`] the launcher goes on without those that the kernel cannot end.
//! - ST4: no signal meets a stranger. A child's number stays its own until this thread reaps it. Any other process is
//!   held by a descriptor, and is found below the launcher after that was opened (PT1 of
//!   [`crate::host::process_table`]).
//! - ST5: a process that starts while a signal is being sent may miss it, but not the end of the job (ST3). One
//!   whose parent passes signals on, as `timeout` does, gets them twice.
//! - ST6: where the system does not list children (PT2, `CONFIG_PROC_CHILDREN`), and after a SIGKILL to the launcher,
//!   processes outside the ranks' groups get no signal and stay: the guard knows the groups only.

use std::collections::{BTreeSet, HashSet};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, kill_process, pidfd_open,
    pidfd_send_signal, set_child_subreaper, waitid,
};
use rustix::thread::gettid;
use transport_lapi::bootstrap::guard;

use crate::host::process_table::{Entry, children, entry, own_children};

/// From SIGKILL until a process counts as one that the kernel cannot end.
pub(crate) const GIVE_UP: Duration = Duration::from_secs(2);
/// Time between two looks for children that are left at the end.
const PAUSE: Duration = Duration::from_millis(1);
/// Least time between two looks for orphans that have ended.
const REAP_INTERVAL: Duration = Duration::from_secs(1);
/// Most walks through the processes for one signal, in case new ones start all the time.
const MOST_WALKS: usize = 8;

/// The processes of a job outside its ranks' groups. Dropping this ends them, as [`Orphans::end`] does.
#[derive(Debug)]
pub(crate) struct Orphans {
    /// The launcher's session.
    session: Option<i32>,
    /// The ranks, which lead their groups.
    ranks: HashSet<Pid>,
    /// The strangers (ST2) and the guard.
    strangers: HashSet<Pid>,
    /// The groups of strangers, and that of the launcher.
    strange_groups: HashSet<i32>,
    /// Whether the launcher adopts orphans (ST1); not if the kernel refuses, and not after the end.
    adopts: bool,
    next_reaping: Instant,
}

impl Orphans {
    /// Adopts orphans from now on. Called before ranks are started, by the thread that starts them.
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

    /// Takes the children that are never touched (ST2): the `ranks`, and the `guard` if there is one.
    pub(crate) fn spare(&mut self, ranks: &[Pid], guard: Option<Pid>) {
        self.ranks.extend(ranks);
        self.strangers.extend(guard);
    }

    /// Sends `signal` to all processes of the job; `to_ranks` sends it to the ranks' groups. Those outside the groups
    /// come after their shells, which would react to the stop or the end of a child, except that SIGCONT comes to
    /// them first.
    pub(crate) fn signal(&self, signal: Signal, to_ranks: impl FnOnce()) {
        let send = |processes: Vec<OwnedFd>| {
            for process in processes {
                // It may have ended, or be another user's.
                let _ = pidfd_send_signal(process, signal);
            }
        };
        let mut met = HashSet::new();
        // Found before the signal ends a rank, whose children are then found elsewhere.
        let mut outside = self.outside_groups(&mut met);
        if signal == Signal::CONT {
            send(outside);
            outside = self.outside_groups(&mut met);
        }
        to_ranks();
        // A process that loses its parent during a walk is found by the next one.
        for _ in 1..MOST_WALKS {
            if outside.is_empty() {
                break;
            }
            send(outside);
            outside = self.outside_groups(&mut met);
        }
    }

    /// The processes of the job in no rank's group that are not in `met`; adds them to it.
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

    /// Reaps orphans that have ended, from time to time: they would pile up in a long job. Called in every turn of
    /// the job's loop.
    pub(crate) fn reap_at_times(&mut self, now: Instant) {
        if self.adopts && now >= self.next_reaping {
            self.next_reaping = now + REAP_INTERVAL;
            for orphan in self.orphans() {
                reap(orphan);
            }
        }
    }

    /// Ends the processes that are left when all ranks are gone (ST3). Returns the daemons among them: those in
    /// sessions of their own, except for guards of launchers that ran as ranks.
    pub(crate) fn end(&mut self) -> Vec<String> {
        let until = Instant::now() + GIVE_UP;
        let mut daemons = BTreeSet::new();
        while self.adopts && self.end_orphans(&mut daemons) && Instant::now() < until {
            std::thread::sleep(PAUSE);
        }
        self.adopts = false;
        daemons.into_iter().collect()
    }

    /// The children that are neither ranks, strangers nor the guard.
    fn orphans(&self) -> impl Iterator<Item = Pid> {
        own_children()
            .into_iter()
            .filter(|child| !self.ranks.contains(child) && !self.strangers.contains(child))
    }

    /// Whether a process below the launcher belongs to the job and not to a stranger (ST2).
    fn is_of_job(&self, process: &Entry) -> bool {
        !self.strange_groups.contains(&process.group)
    }

    /// Kills and reaps orphans, and returns whether there may be more: not when there was nothing to do (ST3).
    fn end_orphans(&self, daemons: &mut BTreeSet<String>) -> bool {
        let mut is_changed = false;
        for orphan in self.orphans() {
            let Some(process) = entry(orphan).filter(|process| self.is_of_job(process)) else {
                is_changed |= reap(orphan);
                continue;
            };
            let is_of_launcher = process.name.as_bytes() == guard::NAME.to_bytes();
            let is_daemon = self.session != Some(process.session) && !is_of_launcher;
            if is_daemon && process.state != 'Z' {
                let name = process.name.escape_debug();
                daemons.insert(format!("{name} (process {orphan})"));
            }
            is_changed |= reap(orphan) || kill_process(orphan, Signal::KILL).is_ok();
        }
        is_changed
    }
}

impl Drop for Orphans {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reaps a child of this process if it has ended, and returns whether it had.
fn reap(child: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    waitid(WaitId::Pid(child), options).is_ok_and(|status| status.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_beside_the_first_adopts_nothing() {
        let thread = std::thread::spawn(|| !Orphans::adopt().adopts);
        assert!(thread.join().expect("it does not panic"));
    }
}
