//! What the kernel's table says of processes: whose child one is, which children and threads it has, and what
//! those do. Called where the launcher looks beyond its ranks, [`crate::job::suspend`] upwards and
//! [`crate::host::stragglers`] downwards, and where it looks at the ranks themselves: [`crate::hang::watch`],
//! [`crate::hang::idle`], [`crate::hang::standstill`], [`crate::hang::observe`] and, for what a panic has left, `job/judge.rs`.
//!
//! - PT1: an answer is of a moment. A number may be another process's by the time it is used, so whoever acts
//!   on one makes sure of it first.
//! - PT2: the list of a thread's own children has the numbers that this process knows them by. Where `/proc` is
//!   another namespace's it has none, as with a kernel that keeps no such lists.
//! - PT3: no thread that was told is passed over: one that is gone when it is asked about is `None`. The
//!   iterator over threads that `procfs` has leaves it out.

use std::fs;
use std::path::{Path, PathBuf};

use procfs::FromRead;
use procfs::process::Stat;
use rustix::process::{Pid, getpid};
use transport_lapi::bootstrap::board::bystander_name;

/// A process or a thread, as the kernel's table has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Entry {
    pub(crate) number: i32,
    pub(crate) name: String,
    /// What it does, in the kernel's letter.
    pub(crate) state: char,
    /// The next three are those of its process.
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// Processor time that the process with all its threads has used, or the thread by itself, in ticks of the
    /// kernel (100 in a second).
    pub(crate) ticks: u64,
    /// When it was started, in such ticks since the system was.
    pub(crate) started: u64,
    /// Where the stack of its process begins; 0 if that is hidden from this one.
    pub(crate) stack: u64,
}

impl Entry {
    /// Whether it is a thread that never communicates. A name alone may be inherited.
    pub(crate) fn is_bystander(&self) -> bool {
        self.name == bystander_name(self.number)
    }
}

/// The process of this number, which may be a claim, if one can have it.
pub(crate) fn numbered(number: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).ok()?)
}

/// What the table says of process `pid`, if there is one.
pub(crate) fn entry(pid: Pid) -> Option<Entry> {
    entry_in(Path::new(&format!("/proc/{pid}")))
}

/// What the table says of each thread of process `pid`, if there is one (PT3).
pub(crate) fn threads(pid: Pid) -> Option<impl Iterator<Item = Option<Entry>>> {
    Some(thread_folders(pid)?.map(|folder| entry_in(&folder?)))
}

/// Whether process `pid`, which may be a claim, has this thread.
pub(crate) fn has_thread(pid: u32, thread: i32) -> bool {
    Path::new(&format!("/proc/{pid}/task/{thread}")).exists()
}

fn thread_folders(pid: Pid) -> Option<impl Iterator<Item = Option<PathBuf>>> {
    let folders = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    Some(folders.map(|folder| Some(folder.ok()?.path())))
}

/// What stands in the folder of a process or a thread.
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

/// The children of this thread: what it has forked, and, for the first thread of a process that adopts, what
/// it has adopted. None is missing, since those that end stay in the list until they are reaped (but see PT2).
pub(crate) fn own_children() -> Vec<Pid> {
    if !has_our_numbers() {
        return Vec::new();
    }
    numbers(&fs::read_to_string("/proc/thread-self/children").unwrap_or_default())
}

fn has_our_numbers() -> bool {
    let own = getpid().as_raw_pid().to_string();
    fs::read_link("/proc/self").is_ok_and(|name| name.as_os_str() == own.as_str())
}

/// The children of all threads of process `pid`. Some may be missing if others end meanwhile.
pub(crate) fn children(pid: Pid) -> Vec<Pid> {
    let folders = thread_folders(pid).into_iter().flatten().flatten();
    let lists = folders.filter_map(|folder| fs::read_to_string(folder.join("children")).ok());
    lists.flat_map(|list| numbers(&list)).collect()
}

/// Where the stack of each process below this one begins ([`Entry::stack`]).
pub(crate) fn stacks() -> Vec<u64> {
    let mut stacks = Vec::new();
    let mut open = own_children();
    while let Some(pid) = open.pop() {
        let entry = entry(pid).filter(|entry| entry.state != 'Z');
        stacks.extend(entry.map(|entry| entry.stack));
        open.extend(children(pid));
    }
    stacks
}

fn numbers(list: &str) -> Vec<Pid> {
    let numbers = list.split_whitespace().filter_map(|number| number.parse().ok());
    numbers.filter(|number| *number > 0).filter_map(Pid::from_raw).collect()
}

#[cfg(test)]
mod tests {
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
    fn a_list_of_children_has_processes_only() {
        let pids = |list: &str| -> Vec<i32> {
            numbers(list).into_iter().map(|pid| pid.as_raw_pid()).collect()
        };
        assert_eq!(pids("12 3456 "), [12, 3456]);
        // One of another namespace has no number here.
        assert_eq!(pids("0 7 -1 x"), [7]);
        assert!(pids("").is_empty());
    }
}
