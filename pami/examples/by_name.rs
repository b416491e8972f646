//! A collective by each algorithm that fits, chosen by the program: the sum of the tasks' numbers, and how long it takes.
//!
//! `cargo run --release -p pami --example by_name`, or `mpjrun -n 4 target/release/examples/by_name [bytes]`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::error::Error;
use std::process::ExitCode;
use std::sync::mpsc;

use pami::{
    Algorithm, Client, Collective, CollectiveCall, Context, ElementKind, Guard, Predefined,
    Reduction, Xfer,
};

mod support;

/// How often each algorithm runs.
const TIMES: usize = 20;

fn main() -> ExitCode {
    support::play("by_name", 1, play)
}

fn play(client: &Client, contexts: Vec<Context>) -> Result<(), Box<dyn Error>> {
    let len = std::env::args().nth(1).map_or(Ok(1 << 16), |bytes| bytes.parse())?;
    let (mut guard, world) = (contexts[0].lock()?, client.world());
    let op = Reduction::of(Predefined::Sum, ElementKind::U64)?;
    let allreduce = Collective::Allreduce { len, op };
    let [always, checked] = world.algorithms(Xfer::Allreduce);
    for algorithm in always.into_iter().chain(checked) {
        match world.check(algorithm, &allreduce) {
            Ok(()) => {
                for _ in 0..TIMES {
                    sum(&mut guard, client, &allreduce, algorithm)?;
                }
            }
            Err(unfit) if client.task() == 0 => println!("{algorithm} does not fit: {unfit}"),
            Err(_) => {}
        }
    }
    // What all members have recorded together says which one is the best.
    let (told, found) = mpsc::channel();
    guard.tune(world, Xfer::Allreduce, move |_, best| told.send(best).expect("it waits"))?;
    let best = support::answer(&mut guard, &found)??;
    if client.task() == 0 {
        for record in world.records(Xfer::Allreduce).into_iter().filter(|one| one.times > 1) {
            println!("{}, {len} bytes: {:?} on average", record.algorithm, record.mean);
        }
        let best = best.and_then(|best| best.choose(len as u64).copied());
        best.iter().for_each(|best| println!("the best: {best}"));
    }
    Ok(())
}

/// Adds the tasks' numbers by an algorithm, and checks the sums.
fn sum(
    guard: &mut Guard<'_>,
    client: &Client,
    allreduce: &Collective,
    algorithm: Algorithm,
) -> Result<(), Box<dyn Error>> {
    let own = u64::from(client.task()).to_ne_bytes();
    let (told, found) = mpsc::channel();
    let call = CollectiveCall::new(
        client.world(),
        allreduce.clone(),
        own.repeat(allreduce.size() as usize / 8),
    );
    guard.collective(CollectiveCall {
        algorithm: Some(algorithm),
        on_done: Some(Box::new(move |_, result| told.send(result).expect("it waits"))),
        ..call
    })?;
    let finished = support::answer(guard, &found)??;
    let all = (0..client.num_tasks() as u64).sum::<u64>().to_ne_bytes();
    match finished.output.chunks(8).all(|sum| sum == all) {
        true => Ok(()),
        false => Err(format!("{algorithm} has another sum").into()),
    }
}
