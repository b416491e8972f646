//! The raw ping-pong of one cache line between the processors that ranks 0 and 1 use: what no message
//! can beat, and what tells which face the machine shows.
//!
//! A flag is stored by one thread and awaited by the other (Release, Acquire), so each store is seen,
//! and nothing else is shared.

use std::hint;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

/// Round trips between two looks at the clock.
const ROUND_TRIPS: u64 = 100;
const BATCHES: usize = 100;
/// Ends the measurement also where the two threads have to share a processor.
const LIMIT: Duration = Duration::from_millis(100);
/// Ends the echo.
const STOP: u64 = u64::MAX;

/// A word alone on its cache lines; 128 bytes because lines are fetched in pairs.
#[repr(align(128))]
struct Flag(AtomicU64);

impl Flag {
    /// Waits until the other thread has stored something else than `seen`.
    fn wait_past(&self, seen: u64) -> u64 {
        loop {
            let value = self.0.load(Ordering::Acquire); // SYNC: cache line
            if value != seen {
                return value;
            }
            hint::spin_loop();
        }
    }

    fn store(&self, value: u64) {
        self.0.store(value, Ordering::Release); // SYNC: cache line
    }
}

/// Nanoseconds that a word takes from one processor to the other: the median of many batches.
pub fn one_way(processors: [usize; 2]) -> f64 {
    let (there, back) = (Flag(AtomicU64::new(0)), Flag(AtomicU64::new(0)));
    let [first, second] = processors;
    let mut batches = thread::scope(|scope| {
        scope.spawn(|| {
            stay(second);
            echo(&there, &back);
        });
        let pinging = scope.spawn(|| {
            stay(first);
            let batches = ping(&there, &back);
            there.store(STOP);
            batches
        });
        pinging.join().expect("the measurement does not panic")
    });
    batches.sort_by(f64::total_cmp);
    batches[batches.len() / 2]
}

/// Keeps the calling thread on one processor; if that is refused, it runs where it may.
fn stay(processor: usize) {
    let mut only = CpuSet::new();
    only.set(processor);
    let _ = sched_setaffinity(None, &only);
}

/// Nanoseconds one way, batch by batch.
fn ping(there: &Flag, back: &Flag) -> Vec<f64> {
    let start = Instant::now();
    let mut batches = Vec::with_capacity(BATCHES);
    let mut turn = 0;
    while batches.is_empty() || (batches.len() < BATCHES && start.elapsed() < LIMIT) {
        let batch = Instant::now();
        for _ in 0..ROUND_TRIPS {
            there.store(turn + 1);
            turn = back.wait_past(turn);
        }
        batches.push(batch.elapsed().as_nanos() as f64 / (2 * ROUND_TRIPS) as f64);
    }
    batches
}

fn echo(there: &Flag, back: &Flag) {
    let mut turn = 0;
    loop {
        turn = there.wait_past(turn);
        if turn == STOP {
            return;
        }
        back.store(turn);
    }
}

#[cfg(test)]
mod tests {
    use rustix::thread::sched_getaffinity;

    use super::*;

    #[test]
    fn a_word_goes_there_and_back() {
        let allowed = sched_getaffinity(None).expect("own affinity");
        let mut mine = (0..CpuSet::MAX_CPU).filter(|&processor| allowed.is_set(processor));
        let first = mine.next().expect("this runs somewhere");
        let nanoseconds = one_way([first, mine.next().unwrap_or(first)]);
        assert!(nanoseconds > 0.1, "{nanoseconds}");
    }
}
