//! Half the time of a round trip between ranks 0 and 1, over message sizes.
//!
//! With rewritten buffers each rank stores its message just before the send and reads it just after
//! the receive. The ranks take turns, so a round trip consists of two messages, two times storing
//! and two times reading, one after the other; the time of storing and reading is subtracted.

use crate::order::Order;
use crate::pace::{self, Turns};
use crate::payload;
use crate::pool::{Pool, Use};
use crate::runtime::{Failure, Runtime};
use crate::worker::Sink;

const PING: i32 = 1;
const PONG: i32 = 2;

/// Measures every size of the order.
///
/// # Errors
/// A wrong payload, or an error of the library.
pub fn run<R: Runtime>(runtime: &R, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    let mut pair = PingPong::new(runtime, order);
    for &size in &order.sizes {
        let seed = |rank: usize| 2 * size as u64 + rank as u64;
        let one_way = pair.measure(
            size,
            |buffer, rank| payload::fill(buffer, seed(rank)),
            |buffer, rank| payload::check(buffer, seed(rank)),
        )?;
        let series = order.buffers.series("latency");
        sink.sample_if_clear(&series, size, one_way);
    }
    Ok(())
}

/// Round trips of messages between ranks 0 and 1.
pub struct PingPong<'runtime, R> {
    runtime: &'runtime R,
    order: &'runtime Order,
    out: Pool,
    back: Pool,
}

impl<'runtime, R: Runtime> PingPong<'runtime, R> {
    /// Creates the buffers without sending.
    pub fn new(runtime: &'runtime R, order: &'runtime Order) -> Self {
        let (out, back) = (Pool::new(order, Use::Send), Pool::new(order, Use::Receive));
        Self { runtime, order, out, back }
    }

    /// Returns microseconds one way of messages of `size` bytes for each batch; `None` if they are
    /// [unclear](pace::less). Before and after, a message that the sender filled by `fill` goes
    /// each way, and `check` checks the received one.
    ///
    /// # Errors
    /// An error of `check` or of the library.
    pub fn measure(
        &mut self,
        size: usize,
        fill: impl Fn(&mut [u8], usize),
        check: impl Fn(&[u8], usize) -> Result<(), Failure>,
    ) -> Result<Option<Vec<f64>>, Failure> {
        self.out.cut(size, 1);
        self.back.cut(size, 1);
        let (runtime, effort) = (self.runtime, &self.order.effort);
        self.check(&fill, &check)?;
        let seconds = pace::measure(runtime, effort, || self.round_trip(true))?;
        let alone = pace::alone(runtime, self.order, Turns::InTurn, || {
            self.out.store();
            self.back.read();
        })?;
        self.check(&fill, &check)?;
        let left = pace::less(&seconds, alone);
        Ok(left.map(|left| left.iter().map(|seconds| seconds * 1e6 / 2.0).collect()))
    }

    /// Sends a message from rank 0 to rank 1 and one back; other ranks do nothing. If `timed`, moves to the next buffers,
    /// stores before sending, and reads after receiving.
    #[inline]
    fn round_trip(&mut self, timed: bool) -> Result<(), Failure> {
        if timed {
            self.out.advance();
            self.back.advance();
        }
        match self.runtime.rank() {
            0 => {
                self.send(1, PING, timed)?;
                self.receive(1, PONG, timed)
            }
            1 => {
                self.receive(0, PING, timed)?;
                self.send(0, PONG, timed)
            }
            _ => Ok(()),
        }
    }

    #[inline]
    fn send(&mut self, to: usize, tag: i32, timed: bool) -> Result<(), Failure> {
        if timed {
            self.out.store();
        }
        self.runtime.send(self.out.message(0), to, tag)
    }

    #[inline]
    fn receive(&mut self, from: usize, tag: i32, timed: bool) -> Result<(), Failure> {
        self.runtime.recv(self.back.place(), from, tag)?;
        if timed {
            self.back.read();
        }
        Ok(())
    }

    /// Makes a round trip with known contents and checks it.
    fn check(
        &mut self,
        fill: impl Fn(&mut [u8], usize),
        check: impl Fn(&[u8], usize) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let rank = self.runtime.rank();
        fill(self.out.place(), rank);
        self.back.place().fill(0);
        self.round_trip(false)?;
        if rank < 2 { check(self.back.place(), 1 - rank) } else { Ok(()) }
    }
}
