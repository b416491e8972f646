//! Streams between ranks 0 and 1: windows of messages under way at once, one way or both ways.
//!
//! Every message of a window is received into a place of its own. So that the places of long
//! messages do not ask for more memory than a machine has, the window shrinks above 1 MiB.

use std::ops::DerefMut;

use crate::order::{Memory, Order};
use crate::pace;
use crate::payload::{self, Payload};
use crate::runtime::{Failure, Post, Runtime, Source};
use crate::worker::{Sink, needs_two};

/// Messages under way at once.
const WINDOW: usize = 64;
/// Bytes under way at once, and a window of two messages at least.
const MOST_BYTES: usize = 64 << 20;
/// Length of the messages whose rate is measured.
const RATE_BYTES: usize = 8;

const DATA: i32 = 1;
const ANSWER: i32 = 2;

/// Bandwidth from rank 0 to rank 1.
///
/// # Errors
/// A job of one rank, a wrong payload, the library's.
pub fn one_way<R: Runtime>(runtime: &R, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    needs_two(runtime, "bandwidth")?;
    for &size in order.sizes.iter().filter(|&&size| size > 0) {
        let mut stream = Stream::new(runtime, order.memory, size)?;
        let seconds = stream.measure(runtime, order, &[1], Stream::one_way)?;
        let bytes = (size * stream.window) as f64;
        sink.sample(&order.memory.series("bandwidth"), size, rates(&seconds, bytes / 1e6));
    }
    Ok(())
}

/// Sum of the bandwidths from rank 0 to rank 1 and back, at the same time.
///
/// # Errors
/// As [`one_way`].
pub fn both_ways<R: Runtime>(
    runtime: &R,
    order: &Order,
    sink: &mut Sink<'_>,
) -> Result<(), Failure> {
    needs_two(runtime, "bibw")?;
    for &size in order.sizes.iter().filter(|&&size| size > 0) {
        let mut stream = Stream::new(runtime, order.memory, size)?;
        let seconds = stream.measure(runtime, order, &[0, 1], Stream::both_ways)?;
        let bytes = (2 * size * stream.window) as f64;
        sink.sample(&order.memory.series("bibw"), size, rates(&seconds, bytes / 1e6));
    }
    Ok(())
}

/// Messages of 8 bytes per second from rank 0 to rank 1.
///
/// # Errors
/// As [`one_way`].
pub fn rate<R: Runtime>(runtime: &R, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    needs_two(runtime, "rate")?;
    let mut stream = Stream::new(runtime, Memory::Ordinary, RATE_BYTES)?;
    let seconds = stream.measure(runtime, order, &[1], Stream::one_way)?;
    sink.sample("rate", RATE_BYTES, rates(&seconds, stream.window as f64 / 1e6));
    Ok(())
}

/// So much per window, per second.
fn rates(seconds: &[f64], per_window: f64) -> Vec<f64> {
    seconds.iter().map(|seconds| per_window / seconds).collect()
}

/// The messages of one size.
struct Stream<A> {
    size: usize,
    window: usize,
    out: Payload<A>,
    places: Payload<A>,
}

impl<'runtime, A: DerefMut<Target = [u8]>> Stream<A> {
    fn new<R>(runtime: &'runtime R, memory: Memory, size: usize) -> Result<Self, Failure>
    where
        R: Runtime<Allocated<'runtime> = A>,
    {
        let window = WINDOW.min((MOST_BYTES / size).max(2));
        let out = payload::zeroed(runtime, memory, size)?;
        let places = payload::zeroed(runtime, memory, size * window)?;
        Ok(Self { size, window, out, places })
    }

    /// Seconds per window, batch by batch; what the `receivers` have got is checked.
    fn measure<R: Runtime>(
        &mut self,
        runtime: &R,
        order: &Order,
        receivers: &[usize],
        exchange: impl Fn(&mut Self, &R) -> Result<(), Failure>,
    ) -> Result<Vec<f64>, Failure> {
        let rank = runtime.rank();
        payload::fill(&mut self.out, rank as u64);
        let seconds = pace::measure(runtime, &order.effort, || exchange(self, runtime))?;
        self.places.fill(0);
        exchange(self, runtime)?;
        if receivers.contains(&rank) {
            let sender = 1 - rank as u64;
            self.places.chunks(self.size).try_for_each(|place| payload::check(place, sender))?;
        }
        Ok(seconds)
    }

    /// A window from rank 0, and the answer that it has arrived.
    fn one_way<R: Runtime>(&mut self, runtime: &R) -> Result<(), Failure> {
        match runtime.rank() {
            0 => {
                runtime.start_all(sends(&self.out, self.window, 1), || Ok(()))?;
                runtime.recv(&mut [], Source::Rank(1), ANSWER)
            }
            1 => {
                runtime.start_all(receives(&mut self.places, self.size, 0), || Ok(()))?;
                runtime.send(&[], 0, ANSWER)
            }
            _ => Ok(()),
        }
    }

    /// A window each way. The next one starts when this rank has all of this one.
    fn both_ways<R: Runtime>(&mut self, runtime: &R) -> Result<(), Failure> {
        let rank = runtime.rank();
        if rank > 1 {
            return Ok(());
        }
        let other = 1 - rank;
        let receives = receives(&mut self.places, self.size, other);
        runtime.start_all(receives.chain(sends(&self.out, self.window, other)), || Ok(()))
    }
}

fn sends(data: &[u8], window: usize, to: usize) -> impl Iterator<Item = Post<'_>> {
    (0..window).map(move |_| Post::Send { data, to, tag: DATA })
}

fn receives(places: &mut [u8], size: usize, from: usize) -> impl Iterator<Item = Post<'_>> {
    let places = places.chunks_mut(size);
    places.map(move |buffer| Post::Receive { buffer, from: Source::Rank(from), tag: DATA })
}
