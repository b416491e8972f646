//! A message to a rank that has been blocked in its receive for a while: the time from the call of
//! send until the receive returns, and the processor time of the wait.
//!
//! HPJava's authors gave this figure for waiting and waking up a thread (57.49 us in Java, 10.68 us
//! with POSIX threads on their machine); here it is measured between processes. Both ranks read the
//! same clock of the host.

use std::hint;
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::order::Order;
use crate::runtime::{Failure, Runtime};
use crate::worker::Sink;

/// The approximate total pause of all repetitions per requested batch; there is at least one repetition.
const PAUSES: Duration = Duration::from_millis(200);
/// How long the sender computes at the end of its pause, so that its own processor is awake.
const AWAKE: Duration = Duration::from_millis(10);

const GO: i32 = 1;
const TIMES: i32 = 2;

/// Measures every pause of the order. The number of batches sets the repetitions; long pauses have
/// fewer.
///
/// # Errors
/// An error of the library.
pub fn run<R: Runtime>(runtime: &R, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    for &microseconds in &order.blocked {
        let length = Duration::from_micros(microseconds);
        let (mut delays, mut shares) = (Vec::new(), Vec::new());
        for _ in 0..repetitions(order.effort.batches, length) {
            match runtime.rank() {
                0 => {
                    let [delay, share] = wake(runtime, length)?;
                    delays.push(delay * 1e6);
                    shares.push(share * 100.0);
                }
                1 => {
                    let times = blocked(runtime)?;
                    runtime.send(bytemuck::bytes_of(&times), 0, TIMES)?;
                }
                _ => {}
            }
        }
        sink.sample("wakeup", microseconds as usize, delays);
        sink.sample("wakeup-cpu", microseconds as usize, shares);
    }
    Ok(())
}

fn repetitions(batches: usize, length: Duration) -> usize {
    let all = PAUSES.as_secs_f64() * batches as f64;
    ((all / length.as_secs_f64()) as usize).clamp(1, batches)
}

/// Sends one message after a pause. Returns what rank 1 measured.
fn wake<R: Runtime>(runtime: &R, length: Duration) -> Result<[f64; 2], Failure> {
    // Exactly this long: a sleep would end some 50 us late.
    let start = Instant::now();
    thread::sleep(length.saturating_sub(AWAKE));
    while start.elapsed() < length {
        hint::spin_loop();
    }
    runtime.send(&seconds(ClockId::Monotonic).to_ne_bytes(), 1, GO)?;
    let mut times = [0.0; 2];
    runtime.recv(bytemuck::bytes_of_mut(&mut times), 1, TIMES)?;
    Ok(times)
}

/// Receives one message, which holds its send time. Returns its delay in seconds, and this rank's processor time
/// divided by the elapsed time.
fn blocked<R: Runtime>(runtime: &R) -> Result<[f64; 2], Failure> {
    let mut sent = [0; size_of::<f64>()];
    let (start, used) = (seconds(ClockId::Monotonic), seconds(ClockId::ProcessCPUTime));
    runtime.recv(&mut sent, 0, GO)?;
    let now = seconds(ClockId::Monotonic);
    let used = seconds(ClockId::ProcessCPUTime) - used;
    Ok([now - f64::from_ne_bytes(sent), used / (now - start)])
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_pauses_are_repeated_less_often() {
        let of = |batches, millis| repetitions(batches, Duration::from_millis(millis));
        assert_eq!([of(20, 1), of(20, 4), of(20, 1000), of(5, 1000)], [20, 20, 4, 1]);
    }
}
