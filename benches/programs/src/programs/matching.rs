//! The cost of a match behind long queues: half a round trip of 8 bytes while other receives are
//! posted, or other messages have arrived before their receives, at rank 1.
//!
//! * *posted*: `depth` receives with other tags were posted before the matching one;
//! * *posted, any*: the same, all of them from any source;
//! * *unexpected*: `depth` messages with other tags have arrived before the matching one;
//! * *unexpected, any*: the same, received from any source.

use crate::order::Order;
use crate::pace;
use crate::runtime::{Failure, Post, Runtime, Source};
use crate::worker::{Sink, needs_two};

const PING: i32 = 1;
const PONG: i32 = 2;
const READY: i32 = 3;
/// The first tag of the other messages.
const OTHERS: i32 = 16;
const BYTES: usize = 8;

/// Measures every depth of the order, in all four cases.
///
/// # Errors
/// A job of one rank, or an error of the library.
pub fn run<R: Runtime>(runtime: &R, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    needs_two(runtime, "matching")?;
    for &depth in &order.depths {
        for (series, any) in [("matching-posted", false), ("matching-posted-any", true)] {
            let seconds = behind_posted(runtime, order, depth, any)?;
            sink.sample(series, depth, halves(&seconds));
        }
        for (series, any) in [("matching-unexpected", false), ("matching-unexpected-any", true)] {
            let seconds = behind_unexpected(runtime, order, depth, any)?;
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
    if runtime.rank() == 1 {
        let mut places = vec![[0; BYTES]; depth];
        let others = tags(depth).zip(&mut places);
        let posts = others.map(|(tag, buffer)| Post::Receive { buffer, from: source(any), tag });
        // The other receives get their messages after the measurement.
        let seconds = runtime.start_all(posts, || {
            runtime.send(&[], 0, READY)?;
            measure(runtime, order, source(any))
        })?;
        tags(depth).zip(&places).try_for_each(|(tag, place)| check(tag, place))?;
        return Ok(seconds);
    }
    if runtime.rank() == 0 {
        runtime.recv(&mut [], Source::Rank(1), READY)?;
    }
    let seconds = measure(runtime, order, Source::Rank(1))?;
    if runtime.rank() == 0 {
        tags(depth).try_for_each(|tag| runtime.send(&message(tag), 1, tag))?;
    }
    Ok(seconds)
}

fn behind_unexpected<R: Runtime>(
    runtime: &R,
    order: &Order,
    depth: usize,
    any: bool,
) -> Result<Vec<f64>, Failure> {
    if runtime.rank() == 0 {
        // A send may wait for its receive.
        let data: Vec<_> = tags(depth).map(message).collect();
        let others = tags(depth).zip(&data);
        let posts = others.map(|(tag, data)| Post::Send { data, to: 1, tag });
        return runtime.start_all(posts, || measure(runtime, order, Source::Rank(1)));
    }
    // Messages do not overtake each other: when the first ping has arrived, all others have.
    let seconds = measure(runtime, order, source(any))?;
    if runtime.rank() == 1 {
        for tag in tags(depth) {
            let mut place = [0; BYTES];
            runtime.recv(&mut place, Source::Rank(0), tag)?;
            check(tag, &place)?;
        }
    }
    Ok(seconds)
}

/// Returns seconds of a message to rank 1 and one back, each received from `from`. Checks the last
/// one.
fn measure<R: Runtime>(runtime: &R, order: &Order, from: Source) -> Result<Vec<f64>, Failure> {
    let mut place = [0; BYTES];
    let seconds = pace::measure(runtime, &order.effort, || round_trip(runtime, from, &mut place))?;
    match runtime.rank() {
        0 => check(PONG, &place)?,
        1 => check(PING, &place)?,
        _ => {}
    }
    Ok(seconds)
}

fn round_trip<R: Runtime>(
    runtime: &R,
    from: Source,
    place: &mut [u8; BYTES],
) -> Result<(), Failure> {
    match runtime.rank() {
        0 => {
            runtime.send(&message(PING), 1, PING)?;
            runtime.recv(place, from, PONG)
        }
        1 => {
            runtime.recv(place, from, PING)?;
            runtime.send(&message(PONG), 0, PONG)
        }
        _ => Ok(()),
    }
}

/// The content of a message with this tag.
fn message(tag: i32) -> [u8; BYTES] {
    i64::from(tag).to_ne_bytes()
}

/// Checks that a receive with this tag got its own message.
fn check(tag: i32, place: &[u8; BYTES]) -> Result<(), Failure> {
    if *place == message(tag) {
        return Ok(());
    }
    let other = i64::from_ne_bytes(*place);
    Err(Failure::new(format_args!("wrong match: tag {tag} has got the message of tag {other}")))
}
