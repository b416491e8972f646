//! What the kernel reports about memory: which pages a mapping lies on, and how much memory is left.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::Range;

/// The kind of pages that memory lies on.
///
/// ```
/// match mpj::alloc_buffer::<f64>(1 << 17)?.pages() {
///     mpj::tuning::Pages::Huge => println!("1 MiB takes a huge page"),
///     other => println!("messages may be slower: {other:?}"),
/// }
/// # Ok::<(), mpj::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pages {
    /// All of the memory lies on huge pages, which rendezvous reads fast.
    Huge,
    /// At least a part of the memory lies on ordinary pages: it is short, or the kernel has no huge pages left, or it
    /// is configured to give none (`/sys/kernel/mm/transparent_hugepage/enabled`).
    Ordinary,
    /// The kernel does not say.
    Unknown,
}

/// Returns the kind of pages of a mapping of this process that has just been touched.
pub(super) fn of(range: &Range<u64>) -> Pages {
    match File::open("/proc/self/smaps") {
        Ok(file) => told(BufReader::new(file), range),
        Err(_) => Pages::Unknown,
    }
}

/// Returns the kind of pages of `range`, by the text of `/proc/self/smaps`. The kernel reports whole mappings, which it
/// may have joined with their neighbours; only a mapping that is huge throughout counts as huge.
fn told(smaps: impl BufRead, range: &Range<u64>) -> Pages {
    let mut mapping = None;
    // Lines may contain file names, which need not be UTF-8.
    for line in smaps.split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        if let Some(next) = mapping_of(&line) {
            mapping = Some(next).filter(|it| it.start <= range.start && range.end <= it.end);
        } else if let Some((mapping, huge)) = mapping.as_ref().zip(bytes(&line, "AnonHugePages:")) {
            let is_huge = huge >= mapping.end - mapping.start;
            return if is_huge { Pages::Huge } else { Pages::Ordinary };
        }
    }
    Pages::Unknown
}

/// Returns the addresses in the first line of a mapping: `7f0000000000-7f0000200000 rw-p ...`.
fn mapping_of(line: &str) -> Option<Range<u64>> {
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    Some(address(start)?..address(end)?)
}

/// Returns how many bytes of memory and swap this machine has left, if the kernel reports it.
pub(super) fn available() -> Option<u64> {
    left(BufReader::new(File::open("/proc/meminfo").ok()?))
}

/// Returns the memory and swap that are left, by the text of `/proc/meminfo`.
fn left(meminfo: impl BufRead) -> Option<u64> {
    let lines: Vec<String> = meminfo.lines().map_while(Result::ok).collect();
    let amount = |name| lines.iter().find_map(|line| bytes(line, name));
    Some(amount("MemAvailable:")?.saturating_add(amount("SwapFree:").unwrap_or(0)))
}

/// Returns the amount in a line `name 2048 kB`, in bytes.
fn bytes(line: &str, name: &str) -> Option<u64> {
    let amount = line.strip_prefix(name)?.strip_suffix("kB")?;
    amount.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
00400000-00600000 r-xp 00000000 fe:00 1234    /usr/bin/a-b c
Size:               2048 kB
AnonHugePages:         0 kB
VmFlags: rd ex mr mw me
7f0000000000-7f0000400000 rw-p 00000000 00:00 0
Size:               4096 kB
AnonHugePages:      4096 kB
7f0000400000-7f0000401000 ---p 00000000 00:00 0
AnonHugePages:         0 kB
7f0000600000-7f0000a00000 rw-p 00000000 00:00 0
AnonHugePages:      2048 kB
7f0001000000-7f0001200000 rw-p 00000000 00:00 0
Size:               2048 kB
7f0002000000-7f0002200000 rw-p 00000000 00:00 0
AnonHugePages:      many kB
";

    #[test]
    fn only_what_is_huge_throughout_counts_as_huge() {
        let at = |start: u64, len| told(SMAPS.as_bytes(), &(start..start + len));
        assert_eq!(at(0x7f00_0000_0000, 4 << 20), Pages::Huge);
        assert_eq!(at(0x7f00_0020_0000, 2 << 20), Pages::Huge);
        assert_eq!(at(0x0040_0000, 4096), Pages::Ordinary);
        assert_eq!(at(0x7f00_0060_0000, 2 << 20), Pages::Ordinary);
        for (start, len) in [
            (0x7f00_0000_0000, (4 << 20) + 1),
            (0x7f00_0050_0000, 4096),
            (0x7f00_0100_0000, 2 << 20),
            (0x7f00_0200_0000, 2 << 20),
        ] {
            assert_eq!(at(start, len), Pages::Unknown, "{len} bytes at {start:#x}");
        }
    }

    #[test]
    fn swap_counts_as_memory() {
        let text = "MemTotal:  9 kB\nMemAvailable:      3 kB\nSwapFree:  2 kB\n";
        assert_eq!(left(text.as_bytes()), Some(5 << 10));
        assert_eq!(left(&b"MemAvailable: 3 kB\n"[..]), Some(3 << 10));
        assert_eq!(left(&b"MemFree: 3 kB\n"[..]), None);
    }
}
