//! A message to a rank that has been blocked in its receive for long: how long it takes from the
//! call of send until the receive returns, and how much processor time the wait took.
//!
//! It is the figure that HPJava's authors gave for waiting and waking up a thread (57.49 us in Java,
//! 10.68 us with POSIX threads on their machine), measured from process to process. Both ranks read
//! the same clock of the host.

use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::order::Order;
use crate::runtime::{Failure, Runtime, Source};
use crate::worker::{Sink, needs_two};

/// How long rank 1 has been blocked when the message is sent.
pub const BLOCKED: Duration = Duration::from_millis(4);
/// Length of the message: the moment at which it was sent.
const BYTES: usize = 8;

const GO: i32 = 1;
const TIMES: i32 = 2;

/// Measures as many messages as the order wants batches.
///
/// # Errors
/// A job of one rank, the library's.
pub fn run<R: Runtime>(runtime: &R, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    needs_two(runtime, "wakeup")?;
    let (mut delays, mut shares) = (Vec::new(), Vec::new());
    for _ in 0..order.effort.batches {
        match runtime.rank() {
            0 => {
                thread::sleep(BLOCKED);
                runtime.send(&seconds(ClockId::Monotonic).to_ne_bytes(), 1, GO)?;
                let (mut delay, mut share) = ([0; 8], [0; 8]);
                runtime.recv(&mut delay, Source::Rank(1), TIMES)?;
                runtime.recv(&mut share, Source::Rank(1), TIMES)?;
                delays.push(f64::from_ne_bytes(delay) * 1e6);
                shares.push(f64::from_ne_bytes(share) * 100.0);
            }
            1 => {
                let (delay, share) = blocked(runtime)?;
                runtime.send(&delay.to_ne_bytes(), 0, TIMES)?;
                runtime.send(&share.to_ne_bytes(), 0, TIMES)?;
            }
            _ => {}
        }
    }
    sink.sample("wakeup", BYTES, delays);
    sink.sample("wakeup-cpu", BYTES, shares);
    Ok(())
}

/// Receives one message; its delay in seconds, and processor time by time of this rank meanwhile.
fn blocked<R: Runtime>(runtime: &R) -> Result<(f64, f64), Failure> {
    let mut sent = [0; BYTES];
    let (start, used) = (seconds(ClockId::Monotonic), seconds(ClockId::ProcessCPUTime));
    runtime.recv(&mut sent, Source::Rank(0), GO)?;
    let now = seconds(ClockId::Monotonic);
    let used = seconds(ClockId::ProcessCPUTime) - used;
    Ok((now - f64::from_ne_bytes(sent), used / (now - start)))
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
