//! Streams between ranks 0 and 1: windows of messages under way at once, one way or both ways.
//!
//! Every message of a window is received into a place of its own. So that the places of long
//! messages do not ask for more memory than a machine has, the window shrinks above 1 MiB.
//!
//! With rewritten buffers every message of a window is also sent from a place of its own. The sender
//! stores all of them before it starts the first send, and the receiver reads all of them after the last
//! has come, before it lets the sender go on: so storing, messages and reading follow one another, and
//! nothing that is subtracted was hidden behind something else. Both ways, the two ranks store at the
//! same time, and read at the same time.

use crate::order::{Memory, Order};
use crate::pace::{self, Turns};
use crate::payload;
use crate::pool::{Pool, Use};
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
    bandwidth(runtime, order, sink, "bandwidth", Flow::OneWay)
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
    bandwidth(runtime, order, sink, "bibw", Flow::BothWays)
}

fn bandwidth<R: Runtime>(
    runtime: &R,
    order: &Order,
    sink: &mut Sink<'_>,
    name: &str,
    flow: Flow,
) -> Result<(), Failure> {
    needs_two(runtime, name)?;
    let mut stream = Stream::new(runtime, order, order.memory, flow)?;
    let series = order.buffers.series(&order.memory.series(name));
    let ways = if flow == Flow::OneWay { 1 } else { 2 };
    for &size in order.sizes.iter().filter(|&&size| size > 0) {
        let seconds = stream.measure(size)?;
        let bytes = (ways * size * stream.window) as f64;
        sink.sample_if_clear(&series, size, rates(seconds, bytes / 1e6));
    }
    Ok(())
}

/// Messages of 8 bytes per second from rank 0 to rank 1.
///
/// # Errors
/// As [`one_way`].
pub fn rate<R: Runtime>(runtime: &R, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    needs_two(runtime, "rate")?;
    let mut stream = Stream::new(runtime, order, Memory::Ordinary, Flow::OneWay)?;
    let seconds = stream.measure(RATE_BYTES)?;
    let rates = rates(seconds, stream.window as f64 / 1e6);
    sink.sample_if_clear(&order.buffers.series("rate"), RATE_BYTES, rates);
    Ok(())
}

/// So much per window, per second.
fn rates(seconds: Option<Vec<f64>>, per_window: f64) -> Option<Vec<f64>> {
    seconds.map(|seconds| seconds.iter().map(|seconds| per_window / seconds).collect())
}

/// Who sends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    /// Rank 0.
    OneWay,
    /// Ranks 0 and 1.
    BothWays,
}

/// Windows of messages of one size after the other.
struct Stream<'runtime, R: Runtime + 'runtime> {
    runtime: &'runtime R,
    order: &'runtime Order,
    flow: Flow,
    /// Messages under way at once.
    window: usize,
    size: usize,
    out: Pool<'runtime, R>,
    places: Pool<'runtime, R>,
}

impl<'runtime, R: Runtime> Stream<'runtime, R> {
    fn new(
        runtime: &'runtime R,
        order: &'runtime Order,
        memory: Memory,
        flow: Flow,
    ) -> Result<Self, Failure> {
        let out = Pool::new(runtime, order, memory, Use::Send)?;
        let places = Pool::new(runtime, order, memory, Use::Receive)?;
        Ok(Self { runtime, order, flow, window: 0, size: 0, out, places })
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

    /// Seconds per window of messages of `size` bytes, batch by batch; `None` if they are
    /// [unclear](pace::less). What has come at last is checked.
    fn measure(&mut self, size: usize) -> Result<Option<Vec<f64>>, Failure> {
        (self.window, self.size) = (WINDOW.min((MOST_BYTES / size).max(2)), size);
        let (sends, receives) = self.roles();
        if sends {
            self.out.cut(size, self.window)?;
        }
        if receives {
            self.places.cut(size, self.window)?;
        }
        let (runtime, effort) = (self.runtime, &self.order.effort);
        let seconds = pace::measure(runtime, effort, || self.exchange(true))?;
        let turns = if self.flow == Flow::OneWay { Turns::InTurn } else { Turns::AtOnce };
        let alone = pace::alone(runtime, self.order, turns, || self.store_and_read())?;
        self.check()?;
        Ok(pace::less(&seconds, alone))
    }

    /// What is done to the buffers of a window, by itself.
    fn store_and_read(&mut self) {
        let (sends, receives) = self.roles();
        if sends {
            self.out.store();
        }
        if receives {
            self.places.read();
        }
    }

    /// A window of messages that are known.
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

    /// A window. If it is `timed`, its buffers are the next ones, and the sender stores and the receiver
    /// reads.
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

    /// A window to rank 1, and the answer that it has arrived.
    fn send(&mut self, timed: bool) -> Result<(), Failure> {
        if timed {
            self.out.store();
        }
        self.runtime.start_all(sends(&self.out, self.window, 1), || Ok(()))?;
        self.runtime.recv(&mut [], Source::Rank(1), ANSWER)
    }

    /// A window from rank 0, and the answer.
    fn receive(&mut self, timed: bool) -> Result<(), Failure> {
        self.runtime.start_all(receives(&mut self.places, 0), || Ok(()))?;
        if timed {
            self.places.read();
        }
        self.runtime.send(&[], 0, ANSWER)
    }

    /// A window each way. The next one starts when this rank has all of this one.
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

fn sends<'a, R: Runtime>(
    out: &'a Pool<'_, R>,
    window: usize,
    to: usize,
) -> impl Iterator<Item = Post<'a>> {
    (0..window).map(move |place| Post::Send { data: out.message(place), to, tag: DATA })
}

fn receives<'a, R: Runtime>(
    places: &'a mut Pool<'_, R>,
    from: usize,
) -> impl Iterator<Item = Post<'a>> {
    let from = Source::Rank(from);
    places.places().map(move |buffer| Post::Receive { buffer, from, tag: DATA })
}
