//! A hash table that is spread over all ranks, in a window: any rank inserts and finds keys by atomic operations on the
//! memory of the rank to which they fall, which runs no code of the program for it. Keys and values are numbers, and the
//! table has a fixed size; the example `hash_map` keeps anything, by functions that the owner of a key runs.
//! This one counts how often each of many random numbers occurs.
//!
//! `cargo mpj run --release -n 4 --example dht -- --numbers 100000 --distinct 5000`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::process::ExitCode;

use clap::Parser;
use mpj::{Communicator, Epoch, Error, Op, Window};

#[path = "support/random.rs"]
mod random;
mod support;

const SEED: u64 = 5;
/// What a slot has as long as it has no key.
const FREE: u64 = 0;

/// Counts random numbers in a distributed hash table.
#[derive(Parser)]
#[command(name = "dht")]
struct Options {
    /// Numbers that each rank counts
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(..=1 << 24))]
    numbers: u64,
    /// How many different numbers there are
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    distinct: u64,
}

/// The slots of all ranks in one row; each has a key and a count.
struct Table {
    window: Window<u64>,
    /// Slots of a rank.
    slots: usize,
}

/// The table while keys are inserted and found.
struct Entries<'t> {
    epoch: &'t Epoch<'t, u64>,
    slots: usize,
    ranks: usize,
}

impl Table {
    /// Makes a table with room for so many keys. Collective.
    fn new(over: &Communicator, keys: usize) -> Result<Self, Error> {
        // Half of the slots stay free, so that few keys meet.
        let slots = (2 * keys).div_ceil(over.size());
        Ok(Self { window: over.allocate_window(2 * slots)?, slots })
    }

    /// Inserts and finds keys, while other ranks do the same.
    fn with<R>(&mut self, body: impl FnOnce(&Entries) -> Result<R, Error>) -> Result<R, Error> {
        let (slots, ranks) = (self.slots, self.window.communicator().size());
        self.window.lock_all(|epoch| body(&Entries { epoch, slots, ranks }))
    }
}

impl Entries<'_> {
    /// Adds to the count of a key, which is not [`FREE`].
    fn add(&self, key: u64, by: u64) -> Result<(), Error> {
        let (rank, slot) = self.find(key, |rank, slot| {
            // Of several ranks that claim a free slot, one gets it. The others see its key.
            self.epoch.compare_and_swap(FREE, key, rank, slot)
        })?;
        self.epoch.accumulate(&[by], rank, slot + 1, Op::Sum)
    }

    /// Returns the count of a key.
    fn count(&self, key: u64) -> Result<u64, Error> {
        let (rank, slot) = self.find(key, |rank, slot| self.epoch.load(rank, slot))?;
        self.epoch.load(rank, slot + 1)
    }

    /// Returns where a key is, or the first free slot where it may be: goes from slot to slot as long as `key_at` says that
    /// there are other keys.
    fn find(
        &self,
        key: u64,
        key_at: impl Fn(usize, usize) -> Result<u64, Error>,
    ) -> Result<(usize, usize), Error> {
        let first = random::mixed(0, key) as usize;
        let mut at = first % (self.ranks * self.slots);
        loop {
            let (rank, slot) = (at / self.slots, 2 * (at % self.slots));
            let found = key_at(rank, slot)?;
            if found == key || found == FREE {
                return Ok((rank, slot));
            }
            at = (at + 1) % (self.ranks * self.slots);
        }
    }
}

fn main() -> ExitCode {
    support::run(start)
}

fn start(comm: &Communicator, options: Options) -> Result<ExitCode, Error> {
    let Options { numbers, distinct } = options;
    let number = |index| 1 + random::mixed(SEED, index) % distinct;
    let mut table = Table::new(comm, distinct as usize)?;
    comm.barrier()?;
    let start = mpj::wtime();
    let first = comm.rank() as u64 * numbers;
    table.with(|entries| (first..first + numbers).try_for_each(|at| entries.add(number(at), 1)))?;
    let mut seconds = mpj::wtime() - start;
    comm.all_reduce(&mut seconds, Op::Max)?;

    // Each rank looks for some of the numbers, and all count what they have.
    let mut expected = vec![0; distinct as usize];
    (0..comm.size() as u64 * numbers).for_each(|at| expected[number(at) as usize - 1] += 1);
    let mine = (1..=distinct).skip(comm.rank()).step_by(comm.size());
    let differs = table.with(|entries| {
        let mut differs = 0;
        for key in mine {
            differs += u64::from(entries.count(key)? != expected[key as usize - 1]);
        }
        Ok(differs)
    })?;
    let used = table.window.local()?.chunks_exact(2).filter(|slot| slot[0] != FREE).count();
    let mut sums = [differs, used as u64];
    comm.all_reduce(&mut sums, Op::Sum)?;
    let keys = expected.iter().filter(|count| **count > 0).count() as u64;
    let passed = sums == [0, keys];
    if comm.rank() == 0 {
        println!("dht: {keys} keys, {} slots on {} ranks", table.slots * comm.size(), comm.size());
        println!(
            "  time            {:.2} us for each number",
            seconds / numbers.max(1) as f64 * 1e6
        );
        match passed {
            true => println!("  counts          verified"),
            false => {
                eprintln!("dht: {} counts are wrong, {} keys are there", sums[0], sums[1])
            }
        }
    }
    support::outcome(comm, passed)
}
