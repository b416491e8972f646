//! The raw cache-line ping-pong beside every launch, by two threads on the processors of ranks 0
//! and 1; and the file through which the ranks run it beside every figure.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::thread;

use mpj_bench_programs::cache_line::{FILE_BYTES, Lines};
use mpj_bench_programs::worker;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

/// Measures how many nanoseconds a word takes from one processor to the other. Where pinning is refused, a thread runs
/// anywhere.
pub fn one_way([first, second]: [usize; 2]) -> f64 {
    let lines = Lines::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = worker::stay(second);
            lines.echo(0);
        });
        let pinging = scope.spawn(|| {
            let _ = worker::stay(first);
            lines.ping(0)
        });
        pinging.join().expect("the measurement does not panic")
    })
}

/// An unnamed file for one launch, which lives as long as this value.
#[derive(Debug)]
pub struct LineFile(File);

impl LineFile {
    /// Creates a file.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn new() -> std::io::Result<Self> {
        let file = memfd_create(c"mpj-bench", MemfdFlags::CLOEXEC)?;
        ftruncate(&file, FILE_BYTES as u64)?;
        Ok(Self(file.into()))
    }

    /// Returns the path by which other processes of this user open it.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()).into()
    }
}

#[cfg(test)]
mod tests {
    use mpj_bench_programs::cache_line::SharedLines;

    use super::*;
    use crate::machine;

    #[test]
    fn a_word_goes_there_and_back() {
        let mine = machine::processors();
        let nanoseconds = one_way([mine[0], *mine.last().expect("this runs somewhere")]);
        assert!(nanoseconds > 0.1, "{nanoseconds}");
    }

    #[test]
    fn others_find_the_file() {
        let file = LineFile::new().expect("a file");
        assert!(SharedLines::open(&file.path()).is_ok());
    }
}
