//! What a rank uses and what it has sent, read from the kernel's files about its process. The rank does nothing for it.
//!
//! - US1: addresses and what lies there are claims of the rank. The kernel refuses an address that is none, and numbers
//!   are only shown.
//! - US2: the kernel shows the memory of a process to those above it, or to all of its user, as `kernel.yama.ptrace_scope`
//!   says. The launcher, or its agent, is above the ranks.

use std::fs::File;
use std::os::unix::fs::FileExt;

use procfs::process::Process;
use transport_lapi::bootstrap::control::{MessageTotals, Usage};
use transport_lapi::bootstrap::waits::TaskState;

/// The process of a rank in this state, for which this `child` was started, if one was. There is none if it is in another
/// PID namespace.
pub(crate) fn process(state: &TaskState, child: Option<u32>) -> Option<u32> {
    match state.pid {
        0 => child,
        pid => Some(pid).filter(|_| state.is_here),
    }
}

/// What process `pid` uses, whose clients count messages at these addresses.
pub(crate) fn of(pid: u32, counters: &[u64]) -> Usage {
    Usage { memory: memory(pid), totals: totals(pid, counters) }
}

/// How many bytes of memory process `pid` occupies.
pub(crate) fn memory(pid: u32) -> Option<u64> {
    let process = Process::new(i32::try_from(pid).ok()?).ok()?;
    Some(process.statm().ok()?.resident.saturating_mul(procfs::page_size()))
}

fn totals(pid: u32, counters: &[u64]) -> Option<MessageTotals> {
    if counters.is_empty() {
        return None;
    }
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    counters.iter().map(|address| totals_at(&memory, *address)).sum()
}

fn totals_at(memory: &File, address: u64) -> Option<MessageTotals> {
    let mut bytes = [0; 8 * MessageTotals::WORDS];
    memory.read_exact_at(&mut bytes, address).ok()?;
    let mut words = [0; MessageTotals::WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_ne_bytes(bytes.try_into().expect("a chunk has eight bytes"));
    }
    Some(MessageTotals::of_words(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_where_they_are() {
        let words: Box<[u64; MessageTotals::WORDS]> = Box::new([1, 10, 0, 0, 2, 20, 0, 0, 4]);
        let address = words.as_ptr().addr() as u64;
        let usage = of(std::process::id(), &[address, address]);
        assert_eq!(usage.totals, Some(MessageTotals { sent: 6, bytes: 60, received: 8 }));
        assert!(usage.memory.is_some_and(|bytes| bytes > 1 << 16), "{usage:?}");
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        let own = std::process::id();
        for address in [1, u64::MAX] {
            assert_eq!(of(own, &[address]).totals, None);
        }
        assert_eq!(of(own, &[]).totals, None);
        assert_eq!(of(u32::MAX, &[4096]), Usage::default());
    }
}
