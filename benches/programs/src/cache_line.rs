//! The raw ping-pong of one cache line between two processors: a lower bound for every message, and
//! the measure of the processor distance. Ranks 0 and 1 run it beside every figure, and the harness
//! runs it beside every launch.
//!
//! One side stores a flag and the other awaits it (Release, Acquire), so each store is seen.
//!
//! - CL1: a mapping is as long as [`Lines`], begins on a page, lives as long as the [`SharedLines`]
//!   that made it, and is only accessed as [`Lines`], for which any bytes are a valid value and
//!   which changes by atomic operations alone.

#![expect(unsafe_code, reason = "maps a file that two processes share")]

use std::fs::OpenOptions;
use std::hint;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rustix::mm::{MapFlags, ProtFlags};

use crate::runtime::Failure;

/// Round trips between two reads of the clock.
const ROUND_TRIPS: u64 = 40;
/// Batches of a figure, which is their median.
const BATCHES: usize = 5;
/// All round trips of a figure, and one more at the start that waits for both sides.
const TURNS: u64 = ROUND_TRIPS * BATCHES as u64 + 1;

/// A word alone on its cache lines; 128 bytes, because lines are fetched in pairs.
#[derive(Debug, Default)]
#[repr(C, align(128))]
struct Flag(AtomicU64);

impl Flag {
    /// Waits until the other side has stored `value`.
    fn wait_for(&self, value: u64) {
        loop {
            let seen = self.0.load(Ordering::Acquire); // SYNC: cache line
            if seen == value {
                return;
            }
            hint::spin_loop();
        }
    }

    fn store(&self, value: u64) {
        self.0.store(value, Ordering::Release); // SYNC: cache line
    }
}

/// What two sides share, initially zero.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Lines {
    there: Flag,
    back: Flag,
}

impl Lines {
    /// Runs the first side and returns nanoseconds one way. `past` is the number of figures already
    /// taken with these lines. The other side calls [`Lines::echo`].
    pub fn ping(&self, past: u64) -> f64 {
        let mut turn = past * TURNS;
        let mut round_trip = || {
            turn += 1;
            self.there.store(turn);
            self.back.wait_for(turn);
        };
        round_trip();
        let mut batches = [(); BATCHES].map(|()| {
            let start = Instant::now();
            (0..ROUND_TRIPS).for_each(|_| round_trip());
            start.elapsed().as_nanos() as f64 / (2 * ROUND_TRIPS) as f64
        });
        batches.sort_by(f64::total_cmp);
        batches[BATCHES / 2]
    }

    /// Runs the other side of [`Lines::ping`].
    pub fn echo(&self, past: u64) {
        for turn in past * TURNS + 1..=(past + 1) * TURNS {
            self.there.wait_for(turn);
            self.back.store(turn);
        }
    }
}

/// Lines that two processes share through a file, with the number of figures taken.
#[derive(Debug)]
pub struct SharedLines {
    lines: NonNull<Lines>,
    past: u64,
}

/// The required length of the file, in bytes.
pub const FILE_BYTES: usize = size_of::<Lines>();

impl SharedLines {
    /// Maps the file at `path`, which initially holds [`FILE_BYTES`] zeros.
    ///
    /// # Errors
    /// The file cannot be opened or mapped, or is too short.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            Failure::new(format_args!("cannot map {}: {error}", path.display()))
        };
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.len() < FILE_BYTES as u64 {
            return Err(failed(std::io::ErrorKind::UnexpectedEof.into()));
        }
        let (access, sharing) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at a place of the kernel's choice (CL1).
        let base =
            unsafe { rustix::mm::mmap(ptr::null_mut(), FILE_BYTES, access, sharing, &file, 0) };
        let base = base.map_err(|error| failed(error.into()))?;
        let lines = NonNull::new(base.cast()).expect("a mapping is not at address 0");
        Ok(Self { lines, past: 0 })
    }

    /// Measures one figure as rank 0 or 1; rank 0 gets nanoseconds one way.
    pub fn measure(&mut self, rank: usize) -> Option<f64> {
        // SAFETY: CL1.
        let lines = unsafe { self.lines.as_ref() };
        let past = self.past;
        self.past += 1;
        if rank == 0 {
            return Some(lines.ping(past));
        }
        lines.echo(past);
        None
    }
}

impl Drop for SharedLines {
    fn drop(&mut self) {
        // SAFETY: CL1: nothing refers to the mapping any more. It cannot fail for a mapping that is
        // there.
        let _ = unsafe { rustix::mm::munmap(self.lines.as_ptr().cast(), FILE_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::thread;

    use super::*;

    #[test]
    fn two_sides_of_a_file_meet_again_and_again() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(&[0; FILE_BYTES]).expect("written");
        let path = file.path();
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut other = SharedLines::open(path).expect("mapped");
                (0..3).for_each(|_| assert_eq!(other.measure(1), None));
            });
            let mut one = SharedLines::open(path).expect("mapped");
            (0..3).for_each(|_| assert!(one.measure(0).expect("rank 0 measures") > 0.1));
        });
    }

    #[test]
    fn files_that_are_short_or_missing_are_refused() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert!(SharedLines::open(file.path()).is_err());
        assert!(SharedLines::open(Path::new("/no/such/file")).is_err());
    }
}
