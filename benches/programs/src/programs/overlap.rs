//! How much computation fits beside a message: rank 0 starts a send, computes for as long as the send
//! takes by itself, and waits.
//!
//! With `transfer` the time of the send and its answer alone, `compute` that of the computation
//! alone and `both` that of send, computation and wait together, the overlap is
//! `(transfer + compute - both) / min(transfer, compute)`: 100 % if the shorter one costs nothing,
//! 0 % if they follow one another.

use std::hint::black_box;

use crate::order::Order;
use crate::pace;
use crate::payload;
use crate::runtime::{Failure, Post, Runtime, Source};
use crate::worker::{Sink, needs_two};

const DATA: i32 = 1;
const ANSWER: i32 = 2;

/// Measures every size of the order.
///
/// # Errors
/// A job of one rank, a wrong payload, the library's.
pub fn run<R: Runtime>(runtime: &R, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    needs_two(runtime, "overlap")?;
    let per_turn = computation(1 << 16) / f64::from(1 << 16);
    for &size in order.sizes.iter().filter(|&&size| size > 0) {
        let mut buffer = payload::zeroed(runtime, order.memory, size)?;
        payload::fill(&mut buffer, if runtime.rank() == 0 { 7 } else { 0 });
        let alone = pace::measure(runtime, &order.effort, || exchange(runtime, &mut buffer, 0))?;
        let transfer = pace::of_rank_0(runtime, middle(&alone))?;
        let turns = (transfer / per_turn).max(1.0) as u32;
        let both = pace::measure(runtime, &order.effort, || exchange(runtime, &mut buffer, turns))?;
        let compute = middle(&(0..9).map(|_| computation(turns)).collect::<Vec<_>>());
        if runtime.rank() < 2 {
            payload::check(&buffer, 7)?;
        }
        let share = |both: &f64| 100.0 * (transfer + compute - both) / transfer.min(compute);
        let shares = both.iter().map(|both| share(both).clamp(0.0, 100.0)).collect();
        sink.sample(&order.memory.series("overlap"), size, shares);
    }
    Ok(())
}

/// A send, a computation meanwhile, and the answer that the message has arrived.
fn exchange<R: Runtime>(runtime: &R, buffer: &mut [u8], turns: u32) -> Result<(), Failure> {
    match runtime.rank() {
        0 => {
            let post = Post::Send { data: buffer, to: 1, tag: DATA };
            runtime.start_all([post], || {
                compute(turns);
                Ok(())
            })?;
            runtime.recv(&mut [], Source::Rank(1), ANSWER)
        }
        1 => {
            runtime.recv(buffer, Source::Rank(0), DATA)?;
            runtime.send(&[], 0, ANSWER)
        }
        _ => Ok(()),
    }
}

/// Seconds of so many turns of [`compute`].
fn computation(turns: u32) -> f64 {
    let start = std::time::Instant::now();
    compute(turns);
    start.elapsed().as_secs_f64()
}

/// Keeps the processor busy without touching memory.
fn compute(turns: u32) {
    let mut value = 1.0_f64;
    for _ in 0..turns {
        value = black_box(value * 1.000_000_1 + 1e-9);
    }
}

fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
