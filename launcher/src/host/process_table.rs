//! The kernel's table of processes, in `/proc`: parents, children, groups, threads and their states. Called by
//! [`crate::job::suspend`] and [`crate::host::orphans`], which look for other processes, and by [`crate::hang`] and
//! `job/judge.rs`, which look at the threads of ranks.
//!
//! - PT1: an answer may be old. A number may belong to another process when it is used, so callers check that first.
//! - PT2: the list of a thread's children has numbers of this process's namespace. It is empty where `/proc` belongs
//!   to another namespace, or the kernel keeps no such lists.
//! - PT3: every listed thread is returned, as `None` if it has ended meanwhile. The iterator of `procfs` leaves those
//!   out.

use std::fs;
use std::path::Path;

use procfs::FromRead;
use procfs::process::{Process, Stat, Task};
use rustix::process::{Pid, getpid};
use rustix::thread::gettid;
use transport_lapi::bootstrap::waits::bystander_name;

/// The entry of a process or a thread.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Entry {
    pub(crate) number: i32,
    pub(crate) name: String,
    /// The kernel's letter for what it does.
    pub(crate) state: char,
    /// The parent of the process; likewise the next two.
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// Processor time that the thread, or all threads of the process, have used, in ticks of the kernel (100 in a
    /// second).
    pub(crate) ticks: u64,
    /// When it was started, in such ticks since the system was.
    pub(crate) started: u64,
    /// Where the stack of its process begins; 0 if that is hidden from this one.
    pub(crate) stack: u64,
}

impl Entry {
    /// Whether it has ended. The first thread of a process stays in the list until all others have ended, too.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// Whether it is a thread that never communicates. Its name contains its number, since names are inherited.
    pub(crate) fn is_bystander(&self) -> bool {
        self.name == bystander_name(self.number)
    }
}

/// The process id of this number, if it can be one.
pub(crate) fn numbered(number: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).ok()?)
}

/// The entry of process `pid`, if there is one.
pub(crate) fn entry(pid: Pid) -> Option<Entry> {
    entry_in(Path::new(&format!("/proc/{pid}")))
}

/// The entries of the threads of process `pid`, if there is one (PT3).
pub(crate) fn threads(pid: Pid) -> Option<impl Iterator<Item = Option<Entry>>> {
    let folders = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    Some(folders.map(|folder| entry_in(&folder.ok()?.path())))
}

/// The entry of a thread of process `pid` that has not ended, if there is one: often its first one.
pub(crate) fn living_thread(pid: Pid) -> Option<Entry> {
    entry(pid)
        .filter(|first| !first.has_ended())
        .or_else(|| threads(pid)?.flatten().find(|thread| !thread.has_ended()))
}

/// Whether there is a process `pid` with this thread.
pub(crate) fn has_thread(pid: u32, thread: i32) -> bool {
    Path::new(&format!("/proc/{pid}/task/{thread}")).exists()
}

/// The entry in the folder of a process or a thread.
fn entry_in(folder: &Path) -> Option<Entry> {
    let stat = Stat::from_file(folder.join("stat")).ok()?;
    Some(Entry {
        number: stat.pid,
        name: stat.comm,
        state: stat.state,
        parent: stat.ppid,
        group: stat.pgrp,
        session: stat.session,
        ticks: stat.utime.saturating_add(stat.stime),
        started: stat.starttime,
        stack: stat.startstack,
    })
}

/// The children of this thread: those that it has forked and, for the first thread of a subreaper, those that it has
/// adopted. None is missing, since they stay in the list until they are reaped (but see PT2).
pub(crate) fn own_children() -> Vec<Pid> {
    let own = Process::myself().ok().filter(|own| own.pid == getpid().as_raw_pid());
    let thread = own.and_then(|own| own.task_from_tid(gettid().as_raw_pid()).ok());
    children_of(thread)
}

/// The children of all threads of process `pid`. Some may be missing if others end meanwhile.
pub(crate) fn children(pid: Pid) -> Vec<Pid> {
    let threads = Process::new(pid.as_raw_pid()).and_then(|process| process.tasks());
    children_of(threads.into_iter().flatten().flatten())
}

/// The children of these threads that have numbers in this process's namespace.
fn children_of(threads: impl IntoIterator<Item = Task>) -> Vec<Pid> {
    let lists = threads.into_iter().filter_map(|thread| thread.children().ok());
    lists.flatten().filter_map(numbered).collect()
}

/// Where the stack of each process below this one begins ([`Entry::stack`]).
pub(crate) fn stacks() -> Vec<u64> {
    let mut stacks = Vec::new();
    let mut open = own_children();
    while let Some(pid) = open.pop() {
        stacks.extend(living_thread(pid).map(|thread| thread.stack));
        open.extend(children(pid));
    }
    stacks
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use rustix::thread::set_name;

    use super::*;

    #[test]
    fn a_bystander_has_its_own_number_in_its_name() {
        let named = |number, name: &str| Entry { number, name: name.into(), ..Entry::default() };
        assert!(named(12, "mpj-by-12").is_bystander());
        assert!(!named(13, "mpj-by-12").is_bystander(), "an inherited name");
        assert!(!named(12, "rank").is_bystander());
    }

    #[test]
    fn this_process_and_its_threads_are_in_the_table() {
        let own = entry(getpid()).expect("it is there");
        assert_eq!(own.number, getpid().as_raw_pid());
        let gone = numbered(u32::MAX >> 1).expect("one may have it");
        assert_eq!(entry(gone), None);
        assert!(threads(gone).is_none());
        assert_eq!((numbered(0), numbered(u32::MAX)), (None, None));
        let mut threads = threads(getpid()).expect("it is there").flatten();
        assert!(threads.any(|thread| thread.number == own.number && thread.group == own.group));
    }

    #[test]
    fn a_name_that_is_cut_inside_a_letter_hides_nothing() {
        let thread = std::thread::spawn(|| {
            set_name(c"fifteen bytes \xc3").expect("a thread may have any name");
            entry_in(Path::new("/proc/thread-self")).map(|entry| entry.name)
        });
        let name = thread.join().expect("it does not panic").expect("it is there");
        assert!(name.starts_with("fifteen bytes "), "{name:?}");
    }

    #[test]
    fn children_are_those_of_this_thread_or_of_all_threads() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("it is installed");
        let pid = numbered(child.id()).expect("it is one");
        assert!(own_children().contains(&pid));
        let elsewhere = std::thread::spawn(|| (own_children(), children(getpid())));
        let (own, all) = elsewhere.join().expect("it does not panic");
        assert!(!own.contains(&pid) && all.contains(&pid), "{own:?}, {all:?}");
        drop(child.stdin.take());
        child.wait().expect("it ends without input");
    }
}
