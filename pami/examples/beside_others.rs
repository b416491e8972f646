//! Three clients in one process, each with traffic: PAMI passes numbers around a ring of tasks, AM-2 counts what has
//! come at task 0, and `mpj` adds up and compares.
//!
//! `cargo run --release -p pami --example beside_others`, or `mpjrun -n 4 target/release/examples/beside_others` for four
//! ranks. An argument sets the number of messages of PAMI and of AM-2 that each task sends.
#![allow(clippy::print_stdout, reason = "a program prints")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use am2::{Am, BundleKind, Tag};
use mpj::{Op, collective};
use pami::{Client, Hints, Message, Section};

/// The request of AM-2 that counts.
const COUNT: u8 = 1;

fn main() -> Result<(), Box<dyn Error>> {
    let messages: u64 = std::env::args().nth(1).map_or(Ok(10_000), |number| number.parse())?;
    // All ranks join with the same clients in the same order.
    let world = mpj::init()?;
    let am = Am::join()?;
    let mut client = Client::create("pami", 1)?;

    let mut bundle = am.allocate_bundle(BundleKind::Sequential)?;
    let endpoint = bundle.allocate_endpoint()?;
    for name in bundle.exchange_names(endpoint)? {
        bundle.map_any(endpoint, name, Tag::ALL)?;
    }
    bundle.set_tag(endpoint, Tag::ALL)?;
    let counted = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&counted);
    bundle.set_handler(endpoint, COUNT, move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
    })?;
    bundle.set_expected_resources(endpoint, 64)?;
    bundle.barrier()?;

    let context = client.create_contexts(1)?.remove(0);
    let mut guard = context.lock()?;
    let (came, sum) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (number_of, total) = (Arc::clone(&came), Arc::clone(&sum));
    let take = move |_: &mut Section<'_>, message: Message<'_>| {
        let number = u64::from_le_bytes(message.header.try_into().expect("a number"));
        total.fetch_add(number, Ordering::Relaxed);
        number_of.fetch_add(1, Ordering::Relaxed);
    };
    guard.dispatch_set(0, take, Hints::default())?;
    let next = client.endpoint((client.task() + 1) % client.num_tasks() as u32, 0)?;
    for number in 0..messages {
        let _ = guard.send_immediate(next, 0, &number.to_le_bytes(), &[])?;
        bundle.request_short(endpoint, 0, COUNT, &[])?;
        let _ = guard.advance(1)?;
    }
    while came.load(Ordering::Relaxed) < messages {
        let _ = guard.advance(100)?;
        bundle.poll()?;
    }
    // Others may still wait for what this rank has queued, so it serves both clients until all have everything.
    let mut barrier = world.start(collective::barrier())?;
    while barrier.test()?.is_none() {
        let _ = guard.advance(100)?;
        bundle.poll()?;
    }
    bundle.leave()?;
    drop(guard);
    drop(context);
    client.destroy()?;

    let mut all = [
        came.load(Ordering::Relaxed),
        sum.load(Ordering::Relaxed),
        counted.load(Ordering::Relaxed),
    ];
    world.all_reduce(&mut all, Op::Sum)?;
    let ranks = world.size() as u64;
    assert_eq!(all, [ranks * messages, ranks * messages * (messages - 1) / 2, ranks * messages]);
    if world.rank() == 0 {
        println!("each of {} messages came once", 2 * ranks * messages);
    }
    Ok(())
}
