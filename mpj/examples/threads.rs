//! Counts primes with several threads on each rank, all of which talk to rank 0 at the same time; checked by a sieve.
//!
//! `cargo mpj run -n 2 --release --example threads -- --threads 4 --below 2000000`
//!
//! A thread of rank 0 deals out ranges of numbers to whoever asks. Every other thread, on any rank, asks with a tag of its
//! own, so that its answers reach no other thread. Any thread may use a communicator; no initialization has to ask for it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::process::ExitCode;
use std::thread;

use clap::Parser;
use mpj::{ANY_SOURCE, ANY_TAG, Communicator, Error, Op};

mod support;

/// Numbers that a thread gets at a time.
const RANGE: u64 = 10_000;

/// Counts primes by threads of several ranks.
#[derive(Parser)]
#[command(name = "threads")]
struct Options {
    /// Threads of each rank
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(i32).range(1..=256))]
    threads: i32,
    /// Counts the primes below this number
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(..=1 << 28))]
    below: u64,
}

fn main() -> ExitCode {
    support::run(start)
}

fn start(comm: &Communicator, options: Options) -> Result<ExitCode, Error> {
    let Options { threads, below } = options;
    // Communicators of their own keep requests from answers, and both from all other messages.
    let (requests, answers) = (&comm.dup()?, &comm.dup()?);
    let mut count = thread::scope(|scope| {
        let dealer = (comm.rank() == 0)
            .then(|| scope.spawn(move || deal([requests, answers], threads, below)));
        let workers: Vec<_> =
            (0..threads).map(|tag| scope.spawn(move || work([requests, answers], tag))).collect();
        let counts = workers.into_iter().map(|worker| worker.join().expect("no thread panics"));
        let count = counts.sum::<Result<u64, Error>>();
        dealer.map_or(Ok(()), |dealer| dealer.join().expect("no thread panics")).and(count)
    })?;
    comm.all_reduce(&mut count, Op::Sum)?;
    let passed = comm.rank() > 0 || conclude(below, count, comm.size() as i32 * threads);
    support::outcome(comm, passed)
}

/// Answers every request with the next range, and each thread's last one with an empty range.
fn deal([requests, answers]: [&Communicator; 2], threads: i32, below: u64) -> Result<(), Error> {
    let mut next = 0;
    let mut working = requests.size() as i32 * threads;
    while working > 0 {
        let request = requests.recv(&mut [0_u8; 0], ANY_SOURCE, ANY_TAG)?;
        let range = [next, below.min(next + RANGE)];
        working -= i32::from(range[0] == range[1]);
        next = range[1];
        answers.send(&range, request.source, request.tag)?;
    }
    Ok(())
}

/// Asks for ranges until one is empty, and returns the number of primes in all of them.
fn work([requests, answers]: [&Communicator; 2], tag: i32) -> Result<u64, Error> {
    let mut primes = 0;
    loop {
        let mut range = [0; 2];
        requests.send(&[0_u8; 0], 0, tag)?;
        answers.recv(&mut range, 0, tag)?;
        if range[0] == range[1] {
            return Ok(primes);
        }
        primes += (range[0]..range[1]).filter(|&number| is_prime(number)).count() as u64;
    }
}

fn is_prime(number: u64) -> bool {
    let mut divisors = (2..).take_while(|divisor| divisor * divisor <= number);
    number > 1 && divisors.all(|divisor| number % divisor > 0)
}

/// Compares with a sieve on one rank. Returns whether they agree.
fn conclude(below: u64, count: u64, threads: i32) -> bool {
    let mut composite = vec![false; below as usize];
    for number in (2..below as usize).take_while(|number| number * number < below as usize) {
        if !composite[number] {
            (number * number..below as usize).step_by(number).for_each(|at| composite[at] = true);
        }
    }
    let expected = composite.iter().skip(2).filter(|composite| !**composite).count() as u64;
    if count == expected {
        println!("threads: {count} primes below {below}, by {threads} threads: verified");
        return true;
    }
    eprintln!("threads: {count} primes below {below}, but a sieve finds {expected}");
    false
}
