//! Finds idle threads: threads outside of all calls that sleep until their own process wakes them, such as those of a
//! pool without work, one that joins another, or one that waits for a channel. [`crate::hang::watch`] judges a rank in
//! spite of them.
//!
//! A thread is idle while it waits for a futex without a time limit, and only an awake thread of its own process can
//! wake it:
//!
//! - ID1: the futex is private to the process, by the flag of its call or by its memory: `pthread_join` sets no such
//!   flag, and its futex lies in memory that no other process has. The kernel shows the call of a thread only while the
//!   thread is off its processor. A thread that is still on its way into the futex can only be off it to wait for
//!   memory, which is another state.
//! - ID2: the process catches no signal that comes from outside: a handler interrupts the wait of the thread that runs
//!   it, and may wake others. Signals of faults do not count, since a thread causes them itself, and neither do the two
//!   that the C library keeps for itself.
//! - ID3: no other process has its memory. Processes that share it (CLONE_VM) report the same address of the stack, and
//!   are below the launcher like all that ranks start.
//! - ID4: a thread that was not switched off its processor between two looks at which it slept has slept all the time.
//!   So its switches are counted after each look at what it does. The time of its start distinguishes it from a later
//!   thread with its number.
//! - ID5: the kernel does not wake it on behalf of something else, as `io_uring` can.
//! - ID6: no thread that is blocked in a call wakes it. A thread that looks for messages in vain only releases the lock
//!   of its context, for which all others wait with a time limit (X9 of `transport_lapi`'s lock).

use std::cell::LazyCell;
use std::fs;

use procfs::FromRead;
use procfs::process::{MMPermissions, MemoryMaps, Status, Syscall};
use rustix::process::Pid;

use crate::host::process_table::{self, Entry};

/// [`process_table::stacks`], read on first use.
pub(crate) type Stacks = LazyCell<Vec<u64>>;

/// A thread that was found idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Idle {
    thread: i32,
    started: u64,
    /// How often it has been switched off its processor.
    switches: u64,
}

/// The threads of process `pid` that are neither bystanders nor `blocked` in calls; `None` unless all of them are idle.
/// All threads are listed before the first is asked what it does. A first thread that has ended is left out: it does
/// nothing, and the kernel lists it for as long as there are others.
pub(crate) fn beside(pid: Pid, blocked: &[u32], stacks: &Stacks) -> Option<Vec<Idle>> {
    // If one is gone, the list may lack another (PT3).
    let threads: Option<Vec<Entry>> = process_table::threads(pid)?.collect();
    let is_blocked = |thread: &Entry| blocked.contains(&thread.number.unsigned_abs());
    let (in_calls, others): (Vec<_>, Vec<_>) = threads?.into_iter().partition(is_blocked);
    if in_calls.len() != blocked.len() {
        return None;
    }
    let others = others.iter().filter(|thread| !thread.is_bystander() && !thread.has_ended());
    let idle: Option<Vec<Idle>> = others.map(|thread| idle(pid, thread)).collect();
    idle.filter(|idle| idle.is_empty() || is_by_itself(pid, stacks))
}

/// The thread, if it is idle by the rules for a single thread (ID1, ID4).
fn idle(pid: Pid, thread: &Entry) -> Option<Idle> {
    let Entry { number, started, .. } = *thread;
    let folder = format!("/proc/{pid}/task/{number}");
    let does = Syscall::from_file(format!("{folder}/syscall")).ok()?;
    let is_private = |address| {
        parsed(&format!("{folder}/maps")).is_some_and(|maps| is_private_memory(&maps, address))
    };
    let status: Status = parsed(&format!("{folder}/status"))?;
    let switches = switches(&status)?;
    let is_idle = status.state.starts_with('S') && is_wait_without_end(does, is_private);
    is_idle.then_some(Idle { thread: number, started, switches })
}

/// Whether only its own threads wake the threads of the process (ID2, ID3, ID5). A thread that has ended shows no memory.
fn is_by_itself(pid: Pid, stacks: &Stacks) -> bool {
    let Some(Entry { number, stack, .. }) = process_table::living_thread(pid) else { return false };
    let file = |name: &str| format!("/proc/{pid}/task/{number}/{name}");
    let is_deaf = || Some(catches_nothing_from_outside(&parsed(&file("status"))?));
    let has_no_ring = || Some(!text(&file("maps"))?.contains("[io_uring]"));
    [is_deaf(), has_no_ring(), Some(is_only_one(stack, stacks))] == [Some(true); 3]
}

/// What is in a file, if all of it is as expected. Names in it need not be text, on which `procfs` would insist.
fn parsed<T: FromRead>(file: &str) -> Option<T> {
    T::from_read(text(file)?.as_bytes()).ok()
}

fn text(file: &str) -> Option<String> {
    fs::read(file).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether a thread in this call waits for a futex of its own process without a time limit.
fn is_wait_without_end(does: Syscall, is_private: impl FnOnce(u64) -> bool) -> bool {
    let Syscall::Blocked { syscall_number: libc::SYS_futex, argument_registers, .. } = does else {
        return false;
    };
    let [address, operation, _, limit, ..] = argument_registers;
    // The upper half of the register is not the kernel's argument.
    let operation = operation as u32 as i32 & !libc::FUTEX_CLOCK_REALTIME;
    let command = operation & !libc::FUTEX_PRIVATE_FLAG;
    let waits = command == libc::FUTEX_WAIT || command == libc::FUTEX_WAIT_BITSET;
    waits && limit == 0 && (operation != command || is_private(address))
}

/// Whether the memory at an address belongs to no other process and to no file, which another process may have mapped.
fn is_private_memory(maps: &MemoryMaps, address: u64) -> bool {
    let mut around = maps.iter().filter(|map| (map.address.0..map.address.1).contains(&address));
    around.any(|map| map.perms.contains(MMPermissions::PRIVATE) && map.inode == 0)
}

/// How often a thread has been switched off its processor, whether it waited or was preempted.
fn switches(status: &Status) -> Option<u64> {
    Some(status.voluntary_ctxt_switches?.wrapping_add(status.nonvoluntary_ctxt_switches?))
}

/// Whether ID2 holds. The first signal has the lowest bit.
fn catches_nothing_from_outside(status: &Status) -> bool {
    let of_faults =
        [libc::SIGILL, libc::SIGTRAP, libc::SIGBUS, libc::SIGFPE, libc::SIGSEGV, libc::SIGSYS];
    let of_itself = [libc::SIGABRT, 32, 33];
    let harmless = of_faults.into_iter().chain(of_itself);
    status.sigcgt & !harmless.fold(0, |mask, signal| mask | 1 << (signal - 1)) == 0
}

/// Whether exactly one process has its stack there (ID3). A process that hides its address (0) may have it there too.
fn is_only_one(stack: u64, of_all: &[u64]) -> bool {
    let mut alike = of_all.iter().filter(|other| [0, stack].contains(other));
    alike.next() == Some(&stack) && stack != 0 && alike.next().is_none()
}

#[cfg(test)]
mod tests;
