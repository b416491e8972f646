//! Latency of messages between ranks 0 and 1, as a table in the format of the OSU benchmarks, beside the time that one
//! cache line takes between two cores of this machine.
//!
//! `cargo mpj run -n 2 --release --example pingpong`
//!
//! Every payload is checked, outside the timed part. The cache line is measured just before and after the messages of 8
//! bytes, by two threads of rank 0 while rank 1 sleeps in a receive: a host may change its speed from one second to the
//! next, so only figures from the same moment are comparable. If blocked ranks spin for ever, they take the cores from
//! these threads, and the figure means nothing.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::hint;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use mpj::{Communicator, Error};

mod support;

const PING: i32 = 1;
const PONG: i32 = 2;
/// Sizes above this many bytes get a tenth of the iterations.
const LARGE: usize = 8192;
/// Number of payloads that are checked per size and direction.
const CHECKED: usize = 3;
/// Number of round trips between two readings of the clock in the cache-line test.
const BATCH: u64 = 200;
const BATCHES: usize = 200;
/// The cache-line test also ends after this time, in case two threads share a core.
const RAW_LIMIT: Duration = Duration::from_millis(100);
/// Ends the echoing thread of the cache-line test.
const STOP: u64 = u64::MAX;

/// Measures the latency of messages between ranks 0 and 1.
#[derive(Parser)]
#[command(name = "pingpong")]
struct Options {
    /// Smallest message, in bytes; sizes double from here
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    min: u64,
    /// Largest message, in bytes
    #[arg(long, default_value_t = 4 << 20, value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    max: u64,
    /// Round trips per size up to 8 KiB; a tenth above
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    iterations: u64,
}

impl Options {
    fn sizes(&self) -> impl Iterator<Item = usize> + use<> {
        let (min, max) = (self.min as usize, self.max as usize);
        std::iter::successors(Some(min), |size| Some(size * 2)).take_while(move |size| *size <= max)
    }

    /// Returns the first and last size between the two cache-line tests: 8 bytes only, or all sizes.
    fn framed(&self) -> (usize, usize) {
        if self.sizes().any(|size| size == 8) {
            return (8, 8);
        }
        let first = self.min as usize;
        (first, self.sizes().last().unwrap_or(first))
    }

    fn iterations(&self, size: usize) -> u64 {
        if size <= LARGE { self.iterations } else { (self.iterations / 10).max(1) }
    }
}

fn main() -> ExitCode {
    support::run(measure)
}

fn measure(comm: &Communicator, options: Options) -> Result<ExitCode, Error> {
    if comm.size() < 2 {
        let reason = "needs at least 2 ranks, this job has 1: start it with mpjrun -n 2";
        return Ok(support::refuse_job::<Options>(comm, reason));
    }
    if options.min > options.max {
        let reason = format!("--min {} is larger than --max {}", options.min, options.max);
        return Ok(support::refuse_job::<Options>(comm, &reason));
    }
    let passed = match comm.rank() {
        0 => ping(comm, &options)?,
        1 => pong(comm, &options)?,
        _ => true,
    };
    // The other ranks wait here without disturbing the measurement.
    comm.barrier()?;
    support::outcome(comm, passed)
}

/// Rank 0: measures, checks and prints. Returns whether every payload was right.
fn ping(comm: &Communicator, options: &Options) -> Result<bool, Error> {
    println!("# MPJ Latency Test");
    println!("{:<10}{:>20}", "# Size", "Latency (us)");
    let framed = options.framed();
    let (mut before, mut after) = (0.0, 0.0);
    let mut passed = true;
    let mut eight_bytes = None;
    for size in options.sizes() {
        if size == framed.0 {
            before = raw_line();
        }
        passed &= check_ping(comm, size)?;
        let latency = time_ping(comm, size, options.iterations(size))?;
        println!("{size:<10}{latency:>20.3}");
        if size == 8 {
            eight_bytes = Some(latency * 1e3);
        }
        if size == framed.1 {
            after = raw_line();
        }
    }
    // Rank 1 waits for this if the last cache-line test comes after the last size.
    comm.send::<u8>(&[], 1, PING)?;
    println!("# Rendezvous reads by: {}", comm.one_sided_path());
    println!("# Raw cache line (ns, one way): before {before:.1} after {after:.1}");
    if let Some(eight_bytes) = eight_bytes {
        println!("# 8-byte latency / raw: {:.2}", eight_bytes / ((before + after) / 2.0));
    }
    Ok(passed)
}

/// Rank 1: the counterpart of [`ping`], call by call.
fn pong(comm: &Communicator, options: &Options) -> Result<bool, Error> {
    let mut passed = true;
    for size in options.sizes() {
        passed &= check_pong(comm, size)?;
        time_pong(comm, size, options.iterations(size))?;
    }
    comm.recv::<u8>(&mut [], 0, PING)?;
    Ok(passed)
}

/// Returns half the time of a round trip, in microseconds.
fn time_ping(comm: &Communicator, size: usize, iterations: u64) -> Result<f64, Error> {
    let (out, mut back) = (vec![0_u8; size], vec![0_u8; size]);
    let mut start = mpj::wtime();
    for round in 0..warm_up(iterations) + iterations {
        if round == warm_up(iterations) {
            start = mpj::wtime();
        }
        comm.send(&out, 1, PING)?;
        comm.recv(&mut back, 1, PONG)?;
    }
    Ok((mpj::wtime() - start) * 1e6 / (2.0 * iterations as f64))
}

fn time_pong(comm: &Communicator, size: usize, iterations: u64) -> Result<(), Error> {
    let (out, mut back) = (vec![0_u8; size], vec![0_u8; size]);
    for _ in 0..warm_up(iterations) + iterations {
        comm.recv(&mut back, 0, PING)?;
        comm.send(&out, 0, PONG)?;
    }
    Ok(())
}

/// Returns the number of untimed round trips before the timed ones.
fn warm_up(iterations: u64) -> u64 {
    iterations / 10 + 1
}

fn check_ping(comm: &Communicator, size: usize) -> Result<bool, Error> {
    let mut passed = true;
    for round in 0..CHECKED {
        comm.send(&pattern(size, round, PING), 1, PING)?;
        passed &= check(comm, 1, size, round, PONG)?;
    }
    Ok(passed)
}

fn check_pong(comm: &Communicator, size: usize) -> Result<bool, Error> {
    let mut passed = true;
    for round in 0..CHECKED {
        passed &= check(comm, 0, size, round, PING)?;
        comm.send(&pattern(size, round, PONG), 0, PONG)?;
    }
    Ok(passed)
}

/// Receives one payload and returns whether it is the one that was sent.
fn check(
    comm: &Communicator,
    source: usize,
    size: usize,
    round: usize,
    tag: i32,
) -> Result<bool, Error> {
    let mut payload = vec![0_u8; size];
    let status = comm.recv(&mut payload, source, tag)?;
    let expected = pattern(size, round, tag);
    if status.bytes == size && payload == expected {
        return Ok(true);
    }
    let wrong = payload.iter().zip(&expected).position(|(found, sent)| found != sent);
    let place = wrong.map_or("none".to_owned(), |at| at.to_string());
    eprintln!(
        "rank {}: payload of {size} bytes from rank {source} is wrong: {} bytes arrived, first \
         wrong byte: {place}",
        comm.rank(),
        status.bytes,
    );
    Ok(false)
}

/// Returns bytes that differ with size, round, direction and position, even between any two fragments.
fn pattern(size: usize, round: usize, tag: i32) -> Vec<u8> {
    let start = ((size * CHECKED + round) as u64) << 32 | u64::from(tag.unsigned_abs()) << 31;
    let byte = |index: u64| ((start + index).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
    (0..size as u64).map(byte).collect()
}

/// A word alone on its cache lines; 128 bytes, because lines are fetched in pairs.
#[repr(align(128))]
struct Flag(AtomicU64);

impl Flag {
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Waits until the other thread has stored a value other than `seen`.
    fn wait_past(&self, seen: u64) -> u64 {
        loop {
            // Pairs with the Release store of the other thread in `exchange` or `echo`.
            let value = self.0.load(Ordering::Acquire);
            if value != seen {
                return value;
            }
            hint::spin_loop();
        }
    }
}

/// Returns the nanoseconds that a word takes from one core to another: the median over many batches of round trips
/// between two threads.
fn raw_line() -> f64 {
    // Give the waiting ranks time to fall asleep.
    thread::sleep(Duration::from_millis(20));
    let (there, back) = (Flag::new(), Flag::new());
    thread::scope(|scope| {
        scope.spawn(|| echo(&there, &back));
        let mut batches = exchange(&there, &back);
        there.0.store(STOP, Ordering::Release);
        batches.sort_by(f64::total_cmp);
        batches[batches.len() / 2]
    })
}

/// Returns the nanoseconds of each batch for one way.
fn exchange(there: &Flag, back: &Flag) -> Vec<f64> {
    let start = Instant::now();
    let mut batches = Vec::with_capacity(BATCHES);
    let mut turn = 0;
    while batches.is_empty() || (batches.len() < BATCHES && start.elapsed() < RAW_LIMIT) {
        let batch = Instant::now();
        for _ in 0..BATCH {
            there.0.store(turn + 1, Ordering::Release);
            turn = back.wait_past(turn);
        }
        batches.push(batch.elapsed().as_nanos() as f64 / (2 * BATCH) as f64);
    }
    batches
}

fn echo(there: &Flag, back: &Flag) {
    let mut turn = 0;
    loop {
        turn = there.wait_past(turn);
        if turn == STOP {
            return;
        }
        back.0.store(turn, Ordering::Release);
    }
}
