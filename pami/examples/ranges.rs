//! Selection tables: the lengths of messages, and of broadcasts, at which another algorithm carries them out, before and
//! behind each bound.
//!
//! `cargo run -p pami --example ranges`, or `mpjrun -n 2 target/debug/examples/ranges`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::error::Error;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, mpsc};

use pami::{
    Algorithm, Arriving, Client, Collective, CollectiveCall, Context, Finished, Guard, Hints,
    Message, NoAlgorithm, Protocol, Section, SendCall, Xfer,
};
use transport_lapi::{Ranges, Source};

mod support;

fn main() -> ExitCode {
    support::play("ranges", 1, play)
}

fn play(client: &Client, contexts: Vec<Context>) -> Result<(), Box<dyn Error>> {
    let bounds = [(100, Protocol::Eager), (1_000, Protocol::Rendezvous), (2_000, Protocol::Eager)];
    let mut guard = contexts[0].lock()?;
    guard.send_association().set(Ranges::new(bounds)?);
    // Messages that come at once were sent eagerly.
    let seen = Arc::new(Mutex::new(Vec::new()));
    let to = Arc::clone(&seen);
    let note = move |_: &mut Section<'_>, message: Message<'_>| {
        let row = match message.data {
            Arriving::Immediate(data) => (data.len(), Protocol::Eager),
            Arriving::Asynchronous(data) => (data.len(), Protocol::Rendezvous),
        };
        to.lock().expect("nobody panics").push(row);
    };
    guard.dispatch_set(1, note, Hints::default())?;
    let next = (client.task() + 1) % client.num_tasks() as u32;
    let dest = client.endpoint(next, 0)?;
    let lengths = [0, 99, 100, 101, 999, 1_000, 1_001, 2_000];
    for len in lengths {
        guard.send(SendCall { data: Source::from(vec![1; len]), ..SendCall::new(dest, 1) })?;
    }
    let data = Source::from(vec![1; 2_001]);
    let error = guard.send(SendCall { data, ..SendCall::new(dest, 1) }).expect_err("no range");
    let count = || seen.lock().expect("nobody panics").len();
    support::until(&mut guard, || count() == lengths.len())?;
    if client.task() == 0 {
        for (len, protocol) in seen.lock().expect("nobody panics").iter() {
            println!("{len:>5} bytes  {protocol:?}");
        }
        println!(" 2001 bytes  {error}");
    }
    broadcasts(client, &mut guard)
}

/// Broadcasts from task 0 by the association of the world.
fn broadcasts(client: &Client, guard: &mut Guard<'_>) -> Result<(), Box<dyn Error>> {
    let names = [(100, "binomial"), (1_000, "scatter_allgather"), (u64::MAX, "binomial")];
    let named = names.map(|(bound, name)| Ok((bound, Algorithm::named(Xfer::Broadcast, name)?)));
    let rows = named.into_iter().collect::<Result<Vec<_>, NoAlgorithm>>()?;
    client.world().associate(Ranges::new(rows)?)?;
    for len in [0, 100, 101, 1_000, 1_001] {
        let input = if client.task() == 0 { vec![1; len] } else { Vec::new() };
        let broadcast = Collective::Broadcast { root: 0, len };
        let call = CollectiveCall::new(client.world(), broadcast, input);
        let (told, found) = mpsc::channel();
        let on_done = Box::new(move |_: &mut Section<'_>, result| {
            told.send(result).expect("it waits");
        });
        guard.collective(CollectiveCall { on_done: Some(on_done), ..call })?;
        let Finished { output, algorithm } = support::answer(guard, &found)??;
        if client.task() == 0 {
            println!("{:>5} bytes  {algorithm}", output.len());
        }
    }
    Ok(())
}
