//! Latency of messages between ranks 0 and 1, as a table in the format of the OSU benchmarks, beside the time that one
//! cache line takes between two cores of this machine.
//!
//! `cargo mpj run -n 2 --release --example pingpong`
//!
//! Every payload is checked, outside the timed part. The cache line is measured just before and after the messages of 8
//! bytes, by ranks 0 and 1 in memory that they share: a host may change its speed from one second to the next, so only
//! figures from the same moment are comparable. There is none between two hosts. If ranks 0 and 1 share a processor, or
//! others spin for ever on theirs, the figure means nothing.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::hint;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use mpj::{Communicator, Error, SharedArray};

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
/// The cache-line test also ends after this time, in case the two ranks share a processor.
const RAW_LIMIT: Duration = Duration::from_millis(100);
/// How often a rank looks at a line before it leaves the processor to others for once.
const LOOKS: usize = 1000;
/// Ends the echo of the cache-line test.
const STOP: u64 = u64::MAX;
/// Words from one line to the next: 128 bytes, because lines are fetched in pairs.
const APART: usize = 16;

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
    let passed = match comm.split_some((comm.rank() < 2).then_some(0), 0)? {
        Some(pair) if pair.rank() == 0 => ping(comm, &Lines::of(&pair)?, &options)?,
        Some(pair) => pong(comm, &Lines::of(&pair)?, &options)?,
        None => true,
    };
    // The other ranks wait here without disturbing the measurement.
    comm.barrier()?;
    support::outcome(comm, passed)
}

/// Rank 0: measures, checks and prints. Returns whether every payload was right.
fn ping(comm: &Communicator, lines: &Lines, options: &Options) -> Result<bool, Error> {
    println!("# MPJ Latency Test");
    println!("{:<10}{:>20}", "# Size", "Latency (us)");
    let framed = options.framed();
    let (mut before, mut after) = (None, None);
    let mut passed = true;
    let mut eight_bytes = None;
    for size in options.sizes() {
        if size == framed.0 {
            before = lines.exchange(0);
        }
        passed &= check_ping(comm, size)?;
        let latency = time_ping(comm, size, options.iterations(size))?;
        println!("{size:<10}{latency:>20.3}");
        if size == 8 {
            eight_bytes = Some(latency * 1e3);
        }
        if size == framed.1 {
            after = lines.exchange(1);
        }
    }
    println!("# Rendezvous reads by: {}", comm.one_sided_path());
    if let (Some(before), Some(after)) = (before, after) {
        println!("# Raw cache line (ns, one way): before {before:.1} after {after:.1}");
        if let Some(eight_bytes) = eight_bytes {
            println!("# 8-byte latency / raw: {:.2}", eight_bytes / ((before + after) / 2.0));
        }
    }
    Ok(passed)
}

/// Rank 1: the counterpart of [`ping`], call by call.
fn pong(comm: &Communicator, lines: &Lines, options: &Options) -> Result<bool, Error> {
    let framed = options.framed();
    let mut passed = true;
    for size in options.sizes() {
        if size == framed.0 {
            lines.echo(0);
        }
        passed &= check_pong(comm, size)?;
        time_pong(comm, size, options.iterations(size))?;
        if size == framed.1 {
            lines.echo(1);
        }
    }
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

/// Words that ranks 0 and 1 share, each alone on its cache lines, if both are on one host.
struct Lines(Option<SharedArray<AtomicU64>>);

impl Lines {
    fn of(pair: &Communicator) -> Result<Self, Error> {
        let here = pair.split_by_host(0)?;
        let are_both = here.size() == 2;
        are_both.then(|| here.allocate_shared(2 * APART)).transpose().map(Self)
    }

    /// The words of the first or the second measurement: from rank 0 to rank 1, and back.
    fn words(&self, measurement: usize) -> Option<[&AtomicU64; 2]> {
        let words = self.0.as_ref()?;
        Some([0, 1].map(|way| &words[(2 * measurement + way) * APART]))
    }

    /// Rank 0: returns the nanoseconds that a word takes from one rank to the other: the median over many batches of round
    /// trips.
    fn exchange(&self, measurement: usize) -> Option<f64> {
        let [there, back] = self.words(measurement)?;
        let start = Instant::now();
        let mut batches = Vec::with_capacity(BATCHES);
        let mut turn = 0;
        while batches.is_empty() || (batches.len() < BATCHES && start.elapsed() < RAW_LIMIT) {
            let batch = Instant::now();
            for _ in 0..BATCH {
                there.store(turn + 1, Ordering::Release);
                turn = wait_past(back, turn);
            }
            batches.push(batch.elapsed().as_nanos() as f64 / (2 * BATCH) as f64);
        }
        there.store(STOP, Ordering::Release);
        batches.sort_by(f64::total_cmp);
        Some(batches[batches.len() / 2])
    }

    /// Rank 1: answers.
    fn echo(&self, measurement: usize) {
        let Some([there, back]) = self.words(measurement) else { return };
        let mut turn = 0;
        loop {
            turn = wait_past(there, turn);
            if turn == STOP {
                return;
            }
            back.store(turn, Ordering::Release);
        }
    }
}

/// Waits until the other rank has stored a value other than `seen`.
fn wait_past(word: &AtomicU64, seen: u64) -> u64 {
    loop {
        for _ in 0..LOOKS {
            // Pairs with the Release store of the other rank.
            let value = word.load(Ordering::Acquire);
            if value != seen {
                return value;
            }
            hint::spin_loop();
        }
        thread::yield_now();
    }
}
