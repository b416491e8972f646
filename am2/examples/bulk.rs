//! Bandwidth of AM-2 from task 0 to task 1: long requests that fill a segment, of lengths that double. Task 1 checks
//! what it gets.
//!
//! `cargo run --release -p am2 --example bulk` plays with two threads; `mpjrun -n 2 target/release/examples/bulk` with
//! two processes. An argument sets how many MiB are sent of each length.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use am2::{Am, BundleKind, MAX_LONG, Payload, Tag};

mod support;

const STORE: u8 = 1;
const STORED: u8 = 2;
/// Requests on their way at one time.
const DEPTH: usize = 4;

fn main() -> ExitCode {
    support::play("bulk", play)
}

fn play(am: &Am) -> Result<(), Box<dyn Error>> {
    let mebibytes: usize = std::env::args().nth(1).map_or(Ok(64), |number| number.parse())?;
    let mut bundle = am.allocate_bundle(BundleKind::Sequential)?;
    let endpoint = bundle.allocate_endpoint()?;
    let names = bundle.exchange_names(endpoint)?;
    for name in names {
        bundle.map_any(endpoint, name, Tag::ALL)?;
    }
    bundle.set_tag(endpoint, Tag::ALL)?;
    bundle.set_segment(endpoint, vec![0; MAX_LONG])?;
    bundle.set_handler(endpoint, STORE, |token, message| {
        let first = message.args[0] as u8;
        let is_right = match message.payload {
            Payload::Long { bytes, .. } => bytes.iter().all(|byte| *byte == first),
            _ => false,
        };
        token.reply_short(STORED, &[is_right.into()]).expect("this is the only reply");
    })?;
    let (stored, damaged) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (count, faults) = (Arc::clone(&stored), Arc::clone(&damaged));
    bundle.set_handler(endpoint, STORED, move |_, message| {
        count.fetch_add(1, Ordering::Relaxed);
        faults.fetch_add(usize::from(message.args[0] != 1), Ordering::Relaxed);
    })?;
    bundle.set_expected_resources(endpoint, DEPTH)?;
    bundle.barrier()?;
    if am.task() == 0 {
        println!("{:>10}  {:>8}", "bytes", "MB/s");
        let sizes = std::iter::successors(Some(1 << 10), |size| Some(size * 4));
        for size in sizes.take_while(|size| *size * DEPTH <= MAX_LONG) {
            let rounds = (mebibytes << 20).div_ceil(size).min(10_000);
            let due = stored.load(Ordering::Relaxed) + rounds;
            let start = Instant::now();
            for round in 0..rounds {
                // Written anew each time, since a payload that stays the same stays in the caches.
                let payload = Arc::new(vec![round as u8; size]);
                let (offset, args) = (round % DEPTH * size, [round as u32 & 255]);
                loop {
                    match bundle.request_long_async(endpoint, 1, STORE, offset, &payload, &args) {
                        Err(am2::Error::WouldWait { .. }) => {}
                        sent => break sent?,
                    }
                }
            }
            while stored.load(Ordering::Relaxed) < due {
                bundle.poll()?;
            }
            let seconds = start.elapsed().as_secs_f64();
            println!("{size:>10}  {:>8.0}", (rounds * size) as f64 / 1e6 / seconds);
        }
    }
    bundle.leave()?;
    match damaged.load(Ordering::Relaxed) {
        0 => Ok(()),
        count => Err(format!("{count} payloads arrived damaged").into()),
    }
}
