//! What the kernel's table says of processes: whose child one is, and which children it has. Called where
//! the launcher looks beyond its ranks: [`crate::suspend`] upwards, [`crate::stragglers`] downwards.
//!
//! - PT1: an answer is of a moment. A number may be another process's by the time it is used, so whoever acts
//!   on one makes sure of it first.
//! - PT2: the list of a thread's own children has the numbers that this process knows them by. Where `/proc` is
//!   another namespace's it has none, as with a kernel that keeps no such lists.

use std::fs;

use rustix::process::{Pid, getpid};

/// A process, as the kernel's table has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
}

/// What the table says of process `pid`, if there is one.
pub(crate) fn entry(pid: Pid) -> Option<Entry> {
    parse(&fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?)
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
    let threads = fs::read_dir(format!("/proc/{}/task", pid.as_raw_pid()));
    let lists = threads.into_iter().flatten().filter_map(|thread| {
        let list = thread.ok()?.path().join("children");
        fs::read_to_string(list).ok()
    });
    lists.flat_map(|list| numbers(&list)).collect()
}

fn numbers(list: &str) -> Vec<Pid> {
    let numbers = list.split_whitespace().filter_map(|number| number.parse().ok());
    numbers.filter(|number| *number > 0).filter_map(Pid::from_raw).collect()
}

/// The fields behind the name, which stands in brackets and may contain anything.
fn parse(stat: &str) -> Option<Entry> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(1).map(|field| field.parse().ok());
    Some(Entry { parent: fields.next()??, group: fields.next()??, session: fields.next()?? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_contain_anything() {
        let stat = "20 (a) b (c) S 10 20 30 34816 20 4194304";
        assert_eq!(parse(stat), Some(Entry { parent: 10, group: 20, session: 30 }));
        assert_eq!(parse("20 (a) S x 20 30"), None);
        assert_eq!(parse(""), None);
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
