//! Messages of 8 bytes per second between two tasks with 1 and 2 threads each, over one context for all threads and
//! over one context for each, with a count of how often a thread had to wait for another one's lock.
//!
//! `cargo run --release -p transport-lapi --example contexts` measures between threads,
//! `mpjrun -n 2 --contexts 2 target/release/examples/contexts` between processes. An argument sets the number of
//! messages of each thread.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use transport_lapi::{Context, ForeignBytes, InlineHandler, TaskId};

mod support;
use support::{Contexts, Outcome};

/// Messages that a thread sends before it waits for as many.
const WINDOW: u64 = 64;

/// Number of messages that have arrived for each thread.
type Arrived = [u64; 2];

fn count(
    arrived: &mut Arrived,
    _: TaskId,
    thread: u64,
    _: ForeignBytes<'_>,
) -> Option<(InlineHandler<Arrived>, u64)> {
    arrived[(thread & 1) as usize] += 1;
    None
}

fn main() -> ExitCode {
    support::play("contexts", 2, 2, play)
}

fn play(contexts: &Contexts<Arrived>) -> Outcome<()> {
    let messages = std::env::args().nth(1).map_or(Ok(1_000_000), |count| count.parse::<u64>())?;
    if contexts.len() < 2 || contexts[0].num_tasks() != 2 {
        return Err("it takes two tasks with two contexts each: mpjrun -n 2 --contexts 2".into());
    }
    for context in contexts {
        context.session()?.addr_set_short(1, count)?;
    }
    for (threads, own) in [(1, false), (2, false), (2, true)] {
        contexts.iter().try_for_each(|context| context.gfence())?;
        for context in contexts {
            context.session()?.state = [0; 2];
        }
        contexts.iter().try_for_each(|context| context.gfence())?;
        let contended = || contexts.iter().map(|context| context.contended()).sum::<u64>();
        let (before, start) = (contended(), Instant::now());
        thread::scope(|scope| {
            let begin = |nth: usize| {
                let context = &contexts[if own { nth } else { 0 }];
                scope.spawn(move || run(context, nth as u64, messages).map_err(|e| e.to_string()))
            };
            let running: Vec<_> = (0..threads).map(begin).collect();
            running.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a panic")?)
        })?;
        let seconds = start.elapsed().as_secs_f64();
        if contexts[0].task() == 0 {
            let rate = messages as f64 * threads as f64 / seconds / 1e6;
            let whose = if own { "one context each" } else { "one context for all" };
            println!(
                "{threads} thread(s), {whose}: {rate:.2} million messages/s each way, {} contended locks",
                contended() - before
            );
        }
    }
    Ok(())
}

/// Sends windows of messages to the same thread of the other task, and waits for as many from it.
fn run(context: &Arc<Context<Arrived>>, thread: u64, messages: u64) -> Outcome<()> {
    let peer = 1 - context.task();
    let (mut sent, nth) = (0, thread as usize);
    while sent < messages {
        let window = WINDOW.min(messages - sent);
        for _ in 0..window {
            let mut session = context.session()?;
            let head = [thread.to_le_bytes(), 7_u64.to_le_bytes()];
            while !session.try_amsend_bytes(peer, 1, thread, &head[1]) {
                session.progress()?;
            }
        }
        sent += window;
        context.wait(|session| (session.state[nth] >= sent).then_some(()))?;
    }
    Ok(())
}
