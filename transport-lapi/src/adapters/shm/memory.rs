//! How much memory this process can still get, for the error that too little was available.
//!
//! The sources are the kernel's: the machine, the control group, and the limits of the process. Sources that cannot be
//! read are left out.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

/// The bytes that each limit leaves, with a description of the limit, in ascending order.
pub(super) fn room() -> Vec<(u64, &'static str)> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| available(&text));
    let mut room = Vec::new();
    room.extend(machine.map(|bytes| (bytes, "memory of the machine")));
    room.extend(group().map(|bytes| (bytes, "memory limit of the control group")));
    room.extend(limit(Resource::As).map(|bytes| (bytes, "ulimit -v, addresses in all")));
    room.extend(file_limit().map(|bytes| (bytes, "ulimit -f")));
    room.sort_unstable();
    room
}

/// Whether the limits of this process are so high that a file of so many bytes may be mapped on a mere chance that it is
/// used.
pub(super) fn is_ample_for(bytes: u64) -> bool {
    let is_ample = |limit: Option<u64>, bytes: u64| limit.is_none_or(|limit| bytes <= limit);
    is_ample(file_limit(), bytes) && is_ample(limit(Resource::As), bytes.saturating_mul(4))
}

/// Whether the address space of this process is limited.
pub(super) fn limits_addresses() -> bool {
    limit(Resource::As).is_some()
}

/// Largest file that this process may make; the segment is a file.
pub(super) fn file_limit() -> Option<u64> {
    limit(Resource::Fsize)
}

/// Checks that so many bytes are available now for a file in memory, as far as is known: whoever touches more is ended by
/// the kernel.
///
/// # Errors
/// What is available, and the remedy.
pub(super) fn check_room(bytes: u64) -> std::io::Result<()> {
    if room().first().is_none_or(|(room, _)| bytes <= *room) {
        return Ok(());
    }
    let text = shortage(bytes, "not enough memory");
    Err(std::io::Error::new(std::io::ErrorKind::OutOfMemory, text))
}

/// Text of the error for `bytes` that were not available: how much was, and the remedy.
pub(super) fn shortage(bytes: u64, cause: &str) -> String {
    let room = room().into_iter().map(|(bytes, whose)| format!("{bytes} ({whose})"));
    let room: Vec<_> = room.collect();
    let room = if room.is_empty() { "an unknown number".to_owned() } else { room.join(", ") };
    format!(
        "{bytes} bytes wanted, available: {room}: {cause}; raise the limit, or ask for fewer ranks, or for less room (--universe)"
    )
}

fn limit(resource: Resource) -> Option<u64> {
    getrlimit(resource).current
}

/// The memory that, according to `/proc/meminfo`, a new program could get without swapping.
fn available(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// What is left of the narrowest limit among the control group and its ancestors.
fn group() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let root = Path::new("/sys/fs/cgroup");
    let inside = root.join(path);
    let around = inside.ancestors().take_while(|group| group.starts_with(root));
    let left = |group: &Path| {
        let read = |name| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
        Some(read("memory.max")?.saturating_sub(read("memory.current")?))
    };
    around.filter_map(left).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_counts_in_kilobytes() {
        let text = "MemTotal:   100 kB\nMemFree:  3 kB\nMemAvailable:    41 kB\n";
        assert_eq!(available(text), Some(41 << 10));
        for other in ["", "MemAvailable: 41 MB", "MemAvailable: many kB"] {
            assert_eq!(available(other), None);
        }
    }

    #[test]
    fn a_shortage_names_what_was_wanted_and_what_is_there() {
        let text = shortage(4_096, "no");
        assert!(text.starts_with("4096 bytes wanted, available: "), "{text}");
        assert!(
            text.ends_with(
                ": no; raise the limit, or ask for fewer ranks, or for less room (--universe)"
            ),
            "{text}"
        );
        let room = room();
        assert!(room.is_sorted(), "{room:?}");
    }
}
