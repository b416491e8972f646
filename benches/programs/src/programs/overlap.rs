//! Computation beside a message: rank 0 starts a send, computes for a fixed time, and waits; then
//! the same with a receive.
//!
//! The order fixes the computation, the same for every library, so that totals are comparable: a
//! library with slow transfers has more to hide.
//!
//! The sender stores every word of the message before each send, and the receiver reads every word
//! after it. A send is timed from before the stores, which take longer if the receiver has fetched the
//! message out of the sender's cache, until the receiver reports that it has the whole message; the
//! time of the same stores without messages is subtracted. A receive is timed from its start; the
//! sender sends when the receiver reports that it has started.

use std::hint::black_box;

use crate::order::Order;
use crate::pace;
use crate::payload::{self, Buffer};
use crate::runtime::{Failure, Post, Runtime};
use crate::words;
use crate::worker::Sink;

const DATA: i32 = 1;
const ANSWER: i32 = 2;
const READY: i32 = 3;

/// Turns of the computation that measure its speed.
const SAMPLE: u32 = 1 << 16;
/// How often to repeat a measurement that should be undisturbed.
const TRIES: usize = 9;

/// Measures every size of the order.
///
/// # Errors
/// A wrong payload, or an error of the library.
pub fn run<R: Runtime>(runtime: &R, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    let per_turn = computation(SAMPLE) / f64::from(SAMPLE);
    for (place, &size) in order.sizes.iter().enumerate().filter(|(_, size)| **size > 0) {
        let turns = order.compute.get(place).map(|microseconds| {
            let turns = pace::of_rank_0(runtime, microseconds / per_turn)?;
            Ok(turns.max(1.0) as u32)
        });
        let turns = turns.transpose()?;
        let mut buffer = Buffer::zeroed(size);
        for (side, series) in [(Side::Send, "overlap-send"), (Side::Receive, "overlap-receive")] {
            let mut messages = Messages { runtime, side, buffer: &mut buffer, turn: 0 };
            messages.check()?;
            let alone = messages.measure(order, 0)?;
            if side == Side::Send {
                sink.sample("overlap-alone", size, alone);
            }
            let Some(turns) = turns else { continue };
            let totals = messages.measure(order, turns)?;
            messages.check()?;
            sink.sample(series, size, totals);
        }
    }
    Ok(())
}

/// The operation of rank 0.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Send,
    Receive,
}

/// Messages of one size, one way.
struct Messages<'a, R> {
    runtime: &'a R,
    side: Side,
    buffer: &'a mut [u8],
    /// How often the buffer was stored to; 0 while its contents are known.
    turn: u64,
}

impl<R: Runtime> Messages<'_, R> {
    /// Returns microseconds of one message beside `turns` of computation, for each batch.
    fn measure(&mut self, order: &Order, turns: u32) -> Result<Vec<f64>, Failure> {
        let (runtime, sends) = (self.runtime, self.sends());
        let batches = pace::measure_together(runtime, &order.effort, || {
            self.turn += 1;
            let seconds = self.exchange(turns)?;
            if !sends {
                words::read(self.buffer);
            }
            Ok(seconds)
        })?;
        let stores = match self.side {
            Side::Send => pace::alone_here(runtime, &order.effort, || self.store())?,
            Side::Receive => 0.0,
        };
        self.turn = 0;
        Ok(batches.iter().map(|batch| (batch.part - stores) * 1e6).collect())
    }

    /// Stores every word of a message that is to be sent, unless its contents are known.
    fn store(&mut self) {
        if self.sends() && self.turn > 0 {
            words::store(self.buffer, self.turn);
        }
    }

    fn sends(&self) -> bool {
        (self.side == Side::Send) == (self.runtime.rank() == 0)
    }

    /// Exchanges a message with known contents and checks it.
    fn check(&mut self) -> Result<(), Failure> {
        payload::fill(self.buffer, if self.sends() { 7 } else { 0 });
        self.exchange(0)?;
        if self.runtime.rank() < 2 { payload::check(self.buffer, 7) } else { Ok(()) }
    }

    /// Exchanges one message. Returns the seconds on rank 0.
    fn exchange(&mut self, turns: u32) -> Result<f64, Failure> {
        let (runtime, side) = (self.runtime, self.side);
        let (mut start, source) = (0.0, 1 - runtime.rank().min(1));
        match (side, runtime.rank()) {
            (Side::Send, 0) => {
                runtime.recv(&mut [], source, READY)?;
                start = runtime.wtime();
                self.store();
                let post = Post::Send { data: self.buffer, to: 1, tag: DATA };
                runtime.start_all([post], || compute(turns))?;
                runtime.recv(&mut [], source, ANSWER)?;
            }
            (Side::Send, 1) => {
                let post = Post::Receive { buffer: self.buffer, from: source, tag: DATA };
                runtime.start_all([post], || runtime.send(&[], 0, READY))?;
                runtime.send(&[], 0, ANSWER)?;
            }
            (Side::Receive, 0) => {
                // The sender has stored its message.
                runtime.recv(&mut [], source, READY)?;
                start = runtime.wtime();
                let post = Post::Receive { buffer: self.buffer, from: source, tag: DATA };
                runtime.start_all([post], || {
                    runtime.send(&[], 1, READY)?;
                    compute(turns)
                })?;
            }
            (Side::Receive, 1) => {
                self.store();
                runtime.send(&[], 0, READY)?;
                runtime.recv(&mut [], source, READY)?;
                runtime.send(self.buffer, 0, DATA)?;
            }
            _ => return Ok(0.0),
        }
        Ok(runtime.wtime() - start)
    }
}

/// Returns the least microseconds of `turns` of [`compute`]; longer times are disturbed.
fn computation(turns: u32) -> f64 {
    let once = |_| {
        let start = std::time::Instant::now();
        let _ = compute(turns);
        start.elapsed().as_secs_f64() * 1e6
    };
    (0..TRIES).map(once).fold(f64::INFINITY, f64::min)
}

/// Keeps the processor busy without touching memory. It never fails.
fn compute(turns: u32) -> Result<(), Failure> {
    let mut value = 1.0_f64;
    for _ in 0..turns {
        value = black_box(value * 1.000_000_1 + 1e-9);
    }
    Ok(())
}
