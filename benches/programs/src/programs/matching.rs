//! What one match costs behind long queues: half of a round trip of 8 bytes while other receives are
//! posted, or other messages have arrived early, at rank 1.
//!
//! * *posted*: `depth` receives with other tags were posted before the one that matches;
//! * *posted, any*: the same, all of them from any source;
//! * *early*: `depth` messages with other tags have arrived before the one that matches;
//! * *early, any*: the same, received from any source.

use crate::order::Order;
use crate::pace;
use crate::runtime::{Failure, Post, Runtime, Source};
use crate::worker::{Sink, needs_two};

const PING: i32 = 1;
const PONG: i32 = 2;
const READY: i32 = 3;
/// The tags of the others begin here.
const OTHERS: i32 = 16;
const BYTES: usize = 8;

/// Measures every depth of the order, all four ways.
///
/// # Errors
/// A job of one rank, the library's.
pub fn run<R: Runtime>(runtime: &R, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    needs_two(runtime, "matching")?;
    for &depth in &order.depths {
        for (series, any) in [("matching-posted", false), ("matching-posted-any", true)] {
            let seconds = behind_posted(runtime, order, depth, any)?;
            sink.sample(series, depth, halves(&seconds));
        }
        for (series, any) in [("matching-early", false), ("matching-early-any", true)] {
            let seconds = behind_early(runtime, order, depth, any)?;
            sink.sample(series, depth, halves(&seconds));
        }
    }
    Ok(())
}

fn halves(seconds: &[f64]) -> Vec<f64> {
    seconds.iter().map(|seconds| seconds * 1e6 / 2.0).collect()
}

/// The tags of `depth` other messages.
fn tags(depth: usize) -> impl Iterator<Item = i32> {
    (OTHERS..).take(depth)
}

fn source(any: bool) -> Source {
    if any { Source::Any } else { Source::Rank(0) }
}

fn behind_posted<R: Runtime>(
    runtime: &R,
    order: &Order,
    depth: usize,
    any: bool,
) -> Result<Vec<f64>, Failure> {
    let mut places = vec![0; depth * BYTES];
    let others = tags(depth).zip(places.chunks_mut(BYTES));
    let posts = others.map(|(tag, buffer)| Post::Receive { buffer, from: source(any), tag });
    if runtime.rank() == 1 {
        // The others get their messages only when all is measured.
        return runtime.start_all(posts, || {
            runtime.send(&[], 0, READY)?;
            pace::measure(runtime, &order.effort, || round_trip(runtime, source(any)))
        });
    }
    if runtime.rank() == 0 {
        runtime.recv(&mut [], Source::Rank(1), READY)?;
    }
    let seconds = pace::measure(runtime, &order.effort, || round_trip(runtime, Source::Rank(0)))?;
    if runtime.rank() == 0 {
        tags(depth).try_for_each(|tag| runtime.send(&[0; BYTES], 1, tag))?;
    }
    Ok(seconds)
}

fn behind_early<R: Runtime>(
    runtime: &R,
    order: &Order,
    depth: usize,
    any: bool,
) -> Result<Vec<f64>, Failure> {
    let from = if runtime.rank() == 0 { Source::Rank(1) } else { source(any) };
    // Messages do not overtake each other: when the first ping is there, all others are.
    let measure = || pace::measure(runtime, &order.effort, || round_trip(runtime, from));
    if runtime.rank() == 0 {
        // A send may wait for its receive.
        let data = &[0; BYTES];
        return runtime.start_all(tags(depth).map(|tag| Post::Send { data, to: 1, tag }), measure);
    }
    let seconds = measure()?;
    if runtime.rank() == 1 {
        let mut place = [0; BYTES];
        for tag in tags(depth) {
            runtime.recv(&mut place, Source::Rank(0), tag)?;
        }
    }
    Ok(seconds)
}

/// A message to rank 1, which receives it from `from`, and one back.
fn round_trip<R: Runtime>(runtime: &R, from: Source) -> Result<(), Failure> {
    let mut place = [0; BYTES];
    match runtime.rank() {
        0 => {
            runtime.send(&[0; BYTES], 1, PING)?;
            runtime.recv(&mut place, Source::Rank(1), PONG)
        }
        1 => {
            runtime.recv(&mut place, from, PING)?;
            runtime.send(&place, 0, PONG)
        }
        _ => Ok(()),
    }
}
