//! Latency of AM-2 between tasks 0 and 1: a request and its reply, short and with payloads that double in length.
//!
//! `cargo run --release -p am2 --example ping` plays with two threads; `mpjrun -n 2 target/release/examples/ping` with
//! two processes. An argument sets the number of round trips for each length.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use am2::{Am, Bundle, BundleKind, Endpoint, MAX_MEDIUM, Payload, Tag};

mod support;

const PING: u8 = 1;
const PONG: u8 = 2;

fn main() -> ExitCode {
    support::play("ping", play)
}

fn play(am: &Am) -> Result<(), Box<dyn Error>> {
    let rounds = std::env::args().nth(1).map_or(Ok(1_000), |rounds| rounds.parse())?;
    let mut bundle = am.allocate_bundle(BundleKind::Sequential)?;
    let endpoint = bundle.allocate_endpoint()?;
    let names = bundle.exchange_names(endpoint)?;
    for name in names {
        bundle.map_any(endpoint, name, Tag::ALL)?;
    }
    bundle.set_tag(endpoint, Tag::ALL)?;
    bundle.set_handler(endpoint, PING, |token, message| {
        let reply = match message.payload {
            Payload::Medium(bytes) => token.reply_medium(PONG, bytes, message.args),
            _ => token.reply_short(PONG, message.args),
        };
        reply.expect("this is the only reply");
    })?;
    let pongs = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&pongs);
    bundle.set_handler(endpoint, PONG, move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
    })?;
    bundle.set_expected_resources(endpoint, 1)?;
    bundle.barrier()?;
    if am.task() == 0 {
        println!("{:>8}  {:>12}", "bytes", "us there and back");
        let sizes = std::iter::successors(Some(8), |size| Some(size * 2));
        for size in std::iter::once(0).chain(sizes.take_while(|size| *size <= MAX_MEDIUM)) {
            let micros = measure(&mut bundle, endpoint, &pongs, rounds, size)?;
            println!("{size:>8}  {micros:>12.2}");
        }
    }
    bundle.leave()?;
    Ok(())
}

/// Returns the microseconds of a round trip. The payload is written anew for each.
fn measure(
    bundle: &mut Bundle,
    endpoint: Endpoint,
    pongs: &AtomicUsize,
    rounds: usize,
    size: usize,
) -> Result<f64, am2::Error> {
    let mut payload = vec![0; size];
    let start = Instant::now();
    for round in 0..rounds {
        let due = pongs.load(Ordering::Relaxed) + 1;
        if size == 0 {
            bundle.request_short(endpoint, 1, PING, &[round as u32])?;
        } else {
            payload.fill(round as u8);
            bundle.request_medium(endpoint, 1, PING, &payload, &[round as u32])?;
        }
        while pongs.load(Ordering::Relaxed) < due {
            bundle.poll()?;
        }
    }
    Ok(start.elapsed().as_secs_f64() * 1e6 / rounds as f64)
}
