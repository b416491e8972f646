//! A message to a rank that has been blocked in its receive for a while: the time from the call of
//! send until the receive returns, and the processor time of the wait.
//!
//! HPJava's authors gave this figure for waiting and waking up a thread (57.49 us in Java, 10.68 us
//! with POSIX threads on their machine); here it is measured between processes. Both ranks read the
//! same clock of the host.
//!
//! If the ranks share memory apart from the library, the wake of a bare futex after pauses of the same length is measured
//! next, and the delays are divided by it.

use std::hint;
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::futex::Futex;
use crate::order::Order;
use crate::pace;
use crate::runtime::{Failure, Runtime};
use crate::worker::{Sink, needs_two};

/// The length of the message, which holds its send time.
const BYTES: usize = 8;
/// The approximate total pause of all repetitions per requested batch, of the messages and again of the futex; there is
/// at least one repetition.
const PAUSES: Duration = Duration::from_millis(200);
/// How long the sender computes at the end of its pause, so that its own processor is awake.
const AWAKE: Duration = Duration::from_millis(10);

const GO: i32 = 1;
const TIMES: i32 = 2;

/// Measures every pause of the order. The number of batches sets the repetitions; long pauses have
/// fewer.
///
/// # Errors
/// A job of one rank, or an error of the library.
pub fn run<R: Runtime>(runtime: &R, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    needs_two(runtime, "wakeup")?;
    for &microseconds in &order.blocked {
        let length = Duration::from_micros(microseconds);
        let repetitions = 0..repetitions(order.effort.batches, length);
        let (mut delays, mut shares) = (Vec::new(), Vec::new());
        for _ in repetitions.clone() {
            match runtime.rank() {
                0 => {
                    let (delay, share) = wake(runtime, length)?;
                    delays.push(delay * 1e6);
                    shares.push(share * 100.0);
                }
                1 => {
                    let (delay, share) = blocked(runtime)?;
                    runtime.send(&delay.to_ne_bytes(), 0, TIMES)?;
                    runtime.send(&share.to_ne_bytes(), 0, TIMES)?;
                }
                _ => {}
            }
        }
        let mut bare = Vec::new();
        if let Some(futex) = sink.futex() {
            for _ in repetitions {
                match runtime.rank() {
                    0 => bare.push(wake_bare(runtime, futex, length)? * 1e6),
                    _ => blocked_bare(runtime, futex)?,
                }
            }
        }
        let times = by_median(&delays, &bare);
        let microseconds = microseconds as usize;
        sink.sample("wakeup", microseconds, delays);
        sink.sample("wakeup-cpu", microseconds, shares);
        if sink.has_futex() {
            sink.sample_if_clear("wakeup-times", microseconds, times);
        }
    }
    Ok(())
}

/// Divides the delays by the median of the bare futex; `None` if it was not measured, or if a sleeper was not asleep.
fn by_median(delays: &[f64], bare: &[f64]) -> Option<Vec<f64>> {
    if bare.is_empty() || !bare.iter().all(|delay| delay.is_finite()) {
        return None;
    }
    let median = pace::middle(bare);
    Some(delays.iter().map(|delay| delay / median).collect())
}

fn repetitions(batches: usize, length: Duration) -> usize {
    let all = PAUSES.as_secs_f64() * batches as f64;
    ((all / length.as_secs_f64()) as usize).clamp(1, batches)
}

/// Sends one message after a pause. Returns what rank 1 measured.
fn wake<R: Runtime>(runtime: &R, length: Duration) -> Result<(f64, f64), Failure> {
    pause(length);
    runtime.send(&seconds(ClockId::Monotonic).to_ne_bytes(), 1, GO)?;
    let (mut delay, mut share) = ([0; 8], [0; 8]);
    runtime.recv(&mut delay, 1, TIMES)?;
    runtime.recv(&mut share, 1, TIMES)?;
    Ok((f64::from_ne_bytes(delay), f64::from_ne_bytes(share)))
}

/// Waits exactly this long: a sleep would end some 50 us late.
fn pause(length: Duration) {
    let start = Instant::now();
    thread::sleep(length.saturating_sub(AWAKE));
    while start.elapsed() < length {
        hint::spin_loop();
    }
}

/// Receives one message. Returns its delay in seconds, and this rank's processor time divided by
/// the elapsed time.
fn blocked<R: Runtime>(runtime: &R) -> Result<(f64, f64), Failure> {
    let mut sent = [0; BYTES];
    let (start, used) = (seconds(ClockId::Monotonic), seconds(ClockId::ProcessCPUTime));
    runtime.recv(&mut sent, 0, GO)?;
    let now = seconds(ClockId::Monotonic);
    let used = seconds(ClockId::ProcessCPUTime) - used;
    Ok((now - f64::from_ne_bytes(sent), used / (now - start)))
}

/// Wakes rank 1 from a futex after a pause. Returns the delay in seconds, or NaN if rank 1 was not asleep.
fn wake_bare<R: Runtime>(runtime: &R, futex: &Futex, length: Duration) -> Result<f64, Failure> {
    // Rank 1 sleeps while the value is the one that it was told.
    runtime.send(&futex.value().to_ne_bytes(), 1, GO)?;
    pause(length);
    let sent = seconds(ClockId::Monotonic);
    futex.wake()?;
    let mut now = [0; 8];
    runtime.recv(&mut now, 1, TIMES)?;
    Ok(f64::from_ne_bytes(now) - sent)
}

/// The other side of [`wake_bare`].
fn blocked_bare<R: Runtime>(runtime: &R, futex: &Futex) -> Result<(), Failure> {
    let mut value = [0; 4];
    runtime.recv(&mut value, 0, GO)?;
    let was_asleep = futex.wait_while(u32::from_ne_bytes(value))?;
    let now = if was_asleep { seconds(ClockId::Monotonic) } else { f64::NAN };
    runtime.send(&now.to_ne_bytes(), 0, TIMES)
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_that_was_awake_makes_the_point_unclear() {
        assert_eq!(by_median(&[3.0, 6.0], &[3.0, 1.0, 2.0]), Some(vec![1.5, 3.0]));
        assert_eq!(by_median(&[3.0, 6.0], &[1.0, f64::NAN]), None);
        assert_eq!(by_median(&[3.0], &[]), None);
    }

    #[test]
    fn long_pauses_are_repeated_less_often() {
        let of = |batches, millis| repetitions(batches, Duration::from_millis(millis));
        assert_eq!([of(20, 1), of(20, 4), of(20, 1000), of(5, 1000)], [20, 20, 4, 1]);
    }
}
