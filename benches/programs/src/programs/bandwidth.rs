//! Streams between ranks 0 and 1: windows of messages in flight, one way or both ways.
//!
//! Every message of a window has a receive buffer of its own. To limit the memory, the window
//! shrinks for messages above 1 MiB.
//!
//! With rewritten buffers every message of a window also has a send buffer of its own. The sender
//! stores all of them before the first send starts. The receiver reads all of them after the last
//! message has arrived, before it lets the sender continue. So storing, messages and reading do not
//! overlap, and the subtracted time is not hidden behind other work. In the two-way program both
//! ranks store at the same time, and read at the same time.

use crate::order::{Order, Program};
use crate::pace::{self, Turns};
use crate::payload;
use crate::pool::{Pool, Use};
use crate::runtime::{Failure, Post, Runtime};
use crate::worker::Sink;

/// Messages in flight.
const WINDOW: usize = 64;
/// The most bytes in flight; a window has at least two messages all the same.
const MOST_BYTES: usize = 64 << 20;
/// The length of the messages of `rate`.
const RATE_BYTES: usize = 8;

const DATA: i32 = 1;
const ANSWER: i32 = 2;

/// Measures the bandwidth from rank 0 to rank 1 (`bandwidth`), the sum of the simultaneous bandwidths there and back
/// (`bibw`), or messages of 8 bytes per second (`rate`).
///
/// # Errors
/// A wrong payload, or an error of the library.
pub fn run<R: Runtime>(
    runtime: &R,
    order: &Order,
    program: Program,
    sink: &mut Sink<'_>,
) -> Result<(), Failure> {
    let flow = if program == Program::Bibw { Flow::BothWays } else { Flow::OneWay };
    let mut stream = Stream::new(runtime, order, flow);
    let sizes = if program == Program::Rate { &[RATE_BYTES] } else { &order.sizes[..] };
    for &size in sizes.iter().filter(|size| **size > 0) {
        let seconds = stream.measure(size)?;
        let million = stream.window as f64 / 1e6;
        let per_window = match program {
            Program::Rate => million,
            Program::Bibw => 2.0 * size as f64 * million,
            _ => size as f64 * million,
        };
        let rates =
            |seconds: Vec<f64>| seconds.iter().map(|seconds| per_window / seconds).collect();
        sink.sample_if_clear(&program.series(order), size, seconds.map(rates));
    }
    Ok(())
}

/// The sending ranks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    /// Rank 0.
    OneWay,
    /// Ranks 0 and 1.
    BothWays,
}

/// Windows of messages, of one size at a time.
struct Stream<'runtime, R> {
    runtime: &'runtime R,
    order: &'runtime Order,
    flow: Flow,
    /// Messages in flight.
    window: usize,
    size: usize,
    out: Pool,
    places: Pool,
}

impl<'runtime, R: Runtime> Stream<'runtime, R> {
    fn new(runtime: &'runtime R, order: &'runtime Order, flow: Flow) -> Self {
        let (out, places) = (Pool::new(order, Use::Send), Pool::new(order, Use::Receive));
        Self { runtime, order, flow, window: 0, size: 0, out, places }
    }

    /// Whether this rank sends, and whether it receives.
    fn roles(&self) -> (bool, bool) {
        match (self.flow, self.runtime.rank()) {
            (Flow::OneWay, 0) => (true, false),
            (Flow::OneWay, 1) => (false, true),
            (Flow::BothWays, 0 | 1) => (true, true),
            _ => (false, false),
        }
    }

    /// Returns seconds per window of messages of `size` bytes for each batch; `None` if they are
    /// [unclear](pace::less). Checks a final window.
    fn measure(&mut self, size: usize) -> Result<Option<Vec<f64>>, Failure> {
        (self.window, self.size) = (WINDOW.min((MOST_BYTES / size).max(2)), size);
        let (sends, receives) = self.roles();
        if sends {
            self.out.cut(size, self.window);
        }
        if receives {
            self.places.cut(size, self.window);
        }
        let (runtime, effort) = (self.runtime, &self.order.effort);
        let seconds = pace::measure(runtime, effort, || self.exchange(true))?;
        let turns = if self.flow == Flow::OneWay { Turns::InTurn } else { Turns::AtOnce };
        let alone = pace::alone(runtime, self.order, turns, || self.store_and_read())?;
        self.check()?;
        Ok(pace::less(&seconds, alone))
    }

    /// Stores and reads the buffers of a window without sending.
    fn store_and_read(&mut self) {
        let (sends, receives) = self.roles();
        if sends {
            self.out.store();
        }
        if receives {
            self.places.read();
        }
    }

    /// Exchanges a window with known contents and checks it.
    fn check(&mut self) -> Result<(), Failure> {
        let (rank, (sends, receives)) = (self.runtime.rank(), self.roles());
        if sends {
            self.out.places().for_each(|place| payload::fill(place, rank as u64));
        }
        if receives {
            self.places.places().for_each(|place| place.fill(0));
        }
        self.exchange(false)?;
        if receives {
            let sender = 1 - rank as u64;
            self.places.places().try_for_each(|place| payload::check(place, sender))?;
        }
        Ok(())
    }

    /// Exchanges a window. If `timed`, moves to the next buffers, stores before sending, and reads
    /// after receiving.
    fn exchange(&mut self, timed: bool) -> Result<(), Failure> {
        if timed {
            self.out.advance();
            self.places.advance();
        }
        match (self.flow, self.runtime.rank()) {
            (Flow::OneWay, 0) => self.send(timed),
            (Flow::OneWay, 1) => self.receive(timed),
            (Flow::BothWays, rank @ (0 | 1)) => self.both_ways(1 - rank, timed),
            _ => Ok(()),
        }
    }

    /// Sends a window to rank 1, and waits for its acknowledgement.
    fn send(&mut self, timed: bool) -> Result<(), Failure> {
        if timed {
            self.out.store();
        }
        self.runtime.start_all(sends(&self.out, self.window, 1), || Ok(()))?;
        self.runtime.recv(&mut [], 1, ANSWER)
    }

    /// Receives a window from rank 0, and acknowledges it.
    fn receive(&mut self, timed: bool) -> Result<(), Failure> {
        self.runtime.start_all(receives(&mut self.places, 0), || Ok(()))?;
        if timed {
            self.places.read();
        }
        self.runtime.send(&[], 0, ANSWER)
    }

    /// Exchanges a window each way. The next one starts when this rank has received all of this
    /// one.
    fn both_ways(&mut self, other: usize, timed: bool) -> Result<(), Failure> {
        if timed {
            self.out.store();
        }
        let receives = receives(&mut self.places, other);
        let posts = receives.chain(sends(&self.out, self.window, other));
        self.runtime.start_all(posts, || Ok(()))?;
        if timed {
            self.places.read();
        }
        Ok(())
    }
}

fn sends<'a>(out: &'a Pool, window: usize, to: usize) -> impl Iterator<Item = Post<'a>> {
    (0..window).map(move |place| Post::Send { data: out.message(place), to, tag: DATA })
}

fn receives(places: &mut Pool, from: usize) -> impl Iterator<Item = Post<'_>> {
    places.places().map(move |buffer| Post::Receive { buffer, from, tag: DATA })
}
