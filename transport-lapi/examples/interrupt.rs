//! Interrupt mode and polling mode beside each other: how long a put and an active message to a task take that computes
//! and makes no calls, and how much processor time an idle task uses.
//!
//! `cargo run --release -p transport-lapi --example interrupt` measures between two threads,
//! `mpjrun -n 2 target/release/examples/interrupt` between two processes. An argument sets the number of rounds.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]
#![expect(unsafe_code, reason = "describes buffers as regions")]

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use transport_lapi::{Amsend, Arrival, HeaderAction, Next, Put, Query, RecvRegion, SendRegion};

mod support;
use support::{Contexts, Outcome};

const TAKE: u8 = 1;

/// How long the task computes in a round.
const COMPUTES: Duration = Duration::from_millis(20);
/// How long the tasks are idle.
const IDLE: Duration = Duration::from_secs(1);

fn take(_: &mut (), _: Arrival<'_>) -> HeaderAction<()> {
    HeaderAction::Consumed
}

fn main() -> ExitCode {
    support::play("interrupt", 2, 1, play)
}

fn play(contexts: &Contexts<()>) -> Outcome<()> {
    let context = &contexts[0];
    let rounds = std::env::args().nth(1).map_or(Ok(20), |rounds| rounds.parse())?;
    if context.num_tasks() != 2 {
        return Err("it takes two tasks".into());
    }
    context.session()?.addr_set(TAKE.into(), take)?;
    let mut words = vec![0_u64; 8];
    // SAFETY: the words live until the registration has ended, and nobody else uses them until then.
    let memory = unsafe { RecvRegion::new(words.as_mut_ptr().cast(), 64) };
    let region = context.session()?.register_writable(memory)?;
    let regions = support::exchange(context, region)?;
    for (mode, name) in [(1, "interrupt"), (0, "polling")] {
        context.senv(Query::InterruptSet, mode)?;
        context.gfence()?;
        let mut times = Vec::new();
        for _ in 0..rounds {
            context.gfence()?;
            if context.task() == 1 {
                compute();
                continue;
            }
            // The other task has left the fence, and computes.
            thread::sleep(COMPUTES / 10);
            let done = context.session()?.counter();
            let start = Instant::now();
            let call = Put::new(1, regions[1], 0, SendRegion::EMPTY);
            // SAFETY: a static is never written.
            let bytes = unsafe { SendRegion::new(b"8 bytes!".as_ptr(), 8) };
            let put = Put { from: bytes.into(), cmpl_cntr: Some(done), ..call };
            let _ = context.session()?.put(put)?;
            context.waitcntr(done, 1)?;
            let put = start.elapsed();
            let call = Amsend::new(1, TAKE, &[], bytes);
            let _ = context.session()?.amsend(Amsend { cmpl_cntr: Some(done), ..call })?;
            context.waitcntr(done, 1)?;
            times.push((put, start.elapsed() - put));
        }
        context.gfence()?;
        let idle = idle();
        context.gfence()?;
        if context.task() == 0 {
            let (put, message) = medians(&mut times);
            println!(
                "{name:>9}: put {:.3} ms, message {:.3} ms; idle {:.3} % of a processor",
                put.as_secs_f64() * 1e3,
                message.as_secs_f64() * 1e3,
                idle * 100.0
            );
        }
    }
    let over = context.session()?.counter();
    context.session()?.deregister(region, Next::Counter(over));
    context.waitcntr(over, 1)?;
    Ok(())
}

/// Computes without any call of the transport.
fn compute() {
    let start = Instant::now();
    let mut sum = 0_u64;
    while start.elapsed() < COMPUTES {
        sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(1));
    }
}

/// The part of a processor that this process uses while it sleeps.
fn idle() -> f64 {
    let used = || Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default();
    let before = used();
    thread::sleep(IDLE);
    (used() - before).as_secs_f64() / IDLE.as_secs_f64()
}

fn medians(times: &mut [(Duration, Duration)]) -> (Duration, Duration) {
    let middle = times.len() / 2;
    times.sort_unstable_by_key(|(put, _)| *put);
    let put = times.get(middle).map_or(Duration::ZERO, |(put, _)| *put);
    times.sort_unstable_by_key(|(_, message)| *message);
    (put, times.get(middle).map_or(Duration::ZERO, |(_, message)| *message))
}
