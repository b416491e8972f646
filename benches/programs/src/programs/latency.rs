//! Half of the time of a round trip between ranks 0 and 1, over message sizes.

use crate::order::Order;
use crate::pace;
use crate::payload;
use crate::runtime::{Failure, Runtime, Source};
use crate::worker::{Sink, needs_two};

const PING: i32 = 1;
const PONG: i32 = 2;

/// Measures every size of the order.
///
/// # Errors
/// A job of one rank, a wrong payload, the library's.
pub fn run<R: Runtime>(runtime: &R, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    needs_two(runtime, "latency")?;
    for &size in &order.sizes {
        let mut out = payload::zeroed(runtime, order.memory, size)?;
        let mut back = payload::zeroed(runtime, order.memory, size)?;
        let mut buffers = Buffers { out: &mut out, back: &mut back };
        check_round_trip(runtime, &mut buffers)?;
        let seconds = pace::measure(runtime, &order.effort, || buffers.round_trip(runtime))?;
        check_round_trip(runtime, &mut buffers)?;
        let one_way = seconds.iter().map(|seconds| seconds * 1e6 / 2.0).collect();
        sink.sample(&order.memory.series("latency"), size, one_way);
    }
    Ok(())
}

/// What goes out and where the answer comes in.
struct Buffers<'a> {
    out: &'a mut [u8],
    back: &'a mut [u8],
}

impl Buffers<'_> {
    #[inline]
    fn round_trip<R: Runtime>(&mut self, runtime: &R) -> Result<(), Failure> {
        round_trip(runtime, self.out, self.back)
    }
}

/// A message from rank 0 to rank 1, and one back: each sends `out` and receives into `back`. Other
/// ranks do nothing.
///
/// # Errors
/// The library's.
#[inline]
pub fn round_trip<R: Runtime>(runtime: &R, out: &[u8], back: &mut [u8]) -> Result<(), Failure> {
    match runtime.rank() {
        0 => {
            runtime.send(out, 1, PING)?;
            runtime.recv(back, Source::Rank(1), PONG)
        }
        1 => {
            runtime.recv(back, Source::Rank(0), PING)?;
            runtime.send(out, 0, PONG)
        }
        _ => Ok(()),
    }
}

/// A round trip whose payloads are checked.
fn check_round_trip<R: Runtime>(runtime: &R, buffers: &mut Buffers<'_>) -> Result<(), Failure> {
    let (rank, seed) = (runtime.rank() as u64, buffers.out.len() as u64);
    payload::fill(buffers.out, 2 * seed + rank);
    buffers.back.fill(0);
    buffers.round_trip(runtime)?;
    if rank < 2 { payload::check(buffers.back, 2 * seed + (1 - rank)) } else { Ok(()) }
}
