//! Two clients in one process: AM-2 gives the numbers of a loop to whoever asks next, and `mpj` adds up what was found.
//!
//! `cargo run -p am2 --example beside_mpj`, or `mpjrun -n 4 target/debug/examples/beside_mpj` for four ranks.
#![allow(clippy::print_stdout, reason = "a program prints")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use am2::{Am, BundleKind, Tag};
use mpj::Op;

/// The numbers below this one are looked at.
const END: u32 = 2_000;
/// A request for the next number, and the reply with it.
const NEXT: u8 = 1;
const GIVEN: u8 = 2;

fn main() -> Result<(), Box<dyn Error>> {
    // All ranks join with the same clients in the same order.
    let world = mpj::init()?;
    let am = Am::join()?;
    let mut bundle = am.allocate_bundle(BundleKind::Sequential)?;
    let endpoint = bundle.allocate_endpoint()?;
    for name in bundle.exchange_names(endpoint)? {
        bundle.map_any(endpoint, name, Tag::ALL)?;
    }
    bundle.set_tag(endpoint, Tag::ALL)?;
    let mut next = 2;
    bundle.set_handler(endpoint, NEXT, move |token, _| {
        token.reply_short(GIVEN, &[next]).expect("this is the only reply");
        next += 1;
    })?;
    let given = Arc::new(AtomicU32::new(0));
    let to = Arc::clone(&given);
    bundle.set_handler(endpoint, GIVEN, move |_, message| {
        to.store(message.args[0], Ordering::Relaxed);
    })?;
    bundle.set_expected_resources(endpoint, world.size())?;
    bundle.barrier()?;
    let mut primes = 0_u32;
    loop {
        bundle.request_short(endpoint, 0, NEXT, &[])?;
        while given.load(Ordering::Relaxed) == 0 {
            bundle.poll()?;
        }
        match given.swap(0, Ordering::Relaxed) {
            END.. => break,
            number => primes += u32::from((2..number).all(|divisor| number % divisor != 0)),
        }
    }
    // Rank 0 answers those who still ask.
    bundle.leave()?;
    let mut all = [primes];
    world.all_reduce(&mut all, Op::Sum)?;
    if world.rank() == 0 {
        println!("{} primes below {END}", all[0]);
    }
    Ok(())
}
