//! Message rate with several contexts: one thread for each context, which sends immediate messages of 8 bytes to the
//! context of the same offset in the next task.
//!
//! `cargo run --release -p pami --example rate` plays with two threads as tasks; `mpjrun -n 2
//! target/release/examples/rate` with two processes. An argument sets the number of messages for each context.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use pami::{Client, Context, Hints, Message, Section};

mod support;

const CONTEXTS: usize = 3;

fn main() -> ExitCode {
    support::play("rate", CONTEXTS, play)
}

fn play(client: &Client, contexts: Vec<Context>) -> Result<(), Box<dyn Error>> {
    let messages: u64 = std::env::args().nth(1).map_or(Ok(100_000), |number| number.parse())?;
    for threads in 1..=CONTEXTS {
        let start = Instant::now();
        let busy = &AtomicUsize::new(threads);
        thread::scope(|scope| {
            let run = |context| scope.spawn(move || stream(client, context, messages, busy));
            let threads: Vec<_> = contexts[..threads].iter().map(run).collect();
            threads.into_iter().try_for_each(|one| {
                one.join().map_err(|_| "a thread panicked")?.map_err(|error| error.to_string())
            })
        })?;
        if client.task() == 0 {
            let rate = threads as f64 * messages as f64 / start.elapsed().as_secs_f64();
            println!("{threads} contexts  {:>8.2} million messages per second", rate / 1e6);
        }
    }
    Ok(())
}

/// Sends the numbers from 0 on to the next task, and takes those of the one before. Then it sends what is still queued,
/// until no thread of this task is busy.
fn stream(
    client: &Client,
    context: &Context,
    messages: u64,
    busy: &AtomicUsize,
) -> Result<(), pami::Error> {
    let mut guard = context.lock()?;
    let next = (client.task() + 1) % client.num_tasks() as u32;
    let dest = client.endpoint(next, guard.endpoint().offset())?;
    let (came, sum) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (count, total) = (Arc::clone(&came), Arc::clone(&sum));
    let take = move |_: &mut Section<'_>, message: Message<'_>| {
        let number = u64::from_le_bytes(message.header.try_into().expect("a number"));
        total.fetch_add(number, Ordering::Relaxed);
        count.fetch_add(1, Ordering::Relaxed);
    };
    // The next measurement has another dispatch, so that early messages wait for it.
    let id = (1..).find(|id| !guard.is_dispatch_set(*id)).expect("there are enough");
    guard.dispatch_set(id, take, Hints::default())?;
    for number in 0..messages {
        let _ = guard.send_immediate(dest, id, &number.to_le_bytes(), &[])?;
        if number % 64 == 0 {
            let _ = guard.advance(1)?;
        }
    }
    support::until(&mut guard, || came.load(Ordering::Relaxed) == messages)?;
    assert_eq!(sum.load(Ordering::Relaxed), messages * (messages - 1) / 2, "each came once");
    busy.fetch_sub(1, Ordering::Relaxed);
    support::until(&mut guard, || busy.load(Ordering::Relaxed) == 0)
}
