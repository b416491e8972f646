//! Latency of active messages between tasks 0 and 1: there and back, immediate ones and others of growing length.
//!
//! `cargo run --release -p pami --example there_and_back` plays with two threads; `mpjrun -n 2
//! target/release/examples/there_and_back` with two processes. An argument sets the number of round trips for each length.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use pami::{
    Arriving, Client, Context, Endpoint, Guard, Hints, Message, SEND_IMMEDIATE_MAX, Section,
    SendCall,
};
use transport_lapi::Source;

mod support;

/// The dispatch of all messages.
const BALL: usize = 1;

fn main() -> ExitCode {
    support::play("there_and_back", 1, play)
}

fn play(client: &Client, contexts: Vec<Context>) -> Result<(), Box<dyn Error>> {
    let rounds = std::env::args().nth(1).map_or(Ok(1_000), |rounds| rounds.parse())?;
    let mut guard = contexts[0].lock()?;
    let caught = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&caught);
    let catch = move |_: &mut Section<'_>, message: Message<'_>| {
        let count = Arc::clone(&count);
        match message.data {
            Arriving::Immediate(_) => drop(count.fetch_add(1, Ordering::Relaxed)),
            Arriving::Asynchronous(data) => data.receive_vec(move |_, data| {
                data.expect("the data come");
                count.fetch_add(1, Ordering::Relaxed);
            }),
        }
    };
    guard.dispatch_set(BALL, catch, Hints::default())?;
    let sizes = std::iter::successors(Some(8), |size| Some(size * 4)).take(9);
    let mut due = 0;
    for size in std::iter::once(0).chain(sizes) {
        let start = Instant::now();
        // Task 0 throws first; others than the first two only watch.
        let (first, peer) = (client.task() == 0, 1 - client.task().min(1));
        let dest = client.endpoint(peer, 0)?;
        for _ in 0..if client.task() < 2 { rounds } else { 0 } {
            due += 1;
            if first {
                throw(&mut guard, dest, size)?;
            }
            support::until(&mut guard, || caught.load(Ordering::Relaxed) >= due)?;
            if !first {
                throw(&mut guard, dest, size)?;
            }
        }
        if first {
            let micros = start.elapsed().as_secs_f64() * 1e6 / rounds as f64;
            println!("{size:>8} bytes  {micros:>10.2} us there and back");
        }
    }
    Ok(())
}

fn throw(guard: &mut Guard<'_>, dest: Endpoint, size: usize) -> Result<(), pami::Error> {
    if size <= SEND_IMMEDIATE_MAX {
        return guard.send_immediate(dest, BALL, &[], &[7; SEND_IMMEDIATE_MAX][..size]).map(drop);
    }
    guard.send(SendCall { data: Source::from(vec![7; size]), ..SendCall::new(dest, BALL) })
}
