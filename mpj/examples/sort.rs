//! Sorts keys by sample sort, the keys distributed evenly over the ranks, and checks the result
//! against the sort of one rank.
//!
//! `cargo mpj run -n 4 --release --example sort -- --keys 1000000 --distinct 1000`
//!
//! Every rank sorts its keys and takes evenly spaced samples of them. All ranks get all samples, so they choose the
//! same splitters, one fewer than there are ranks: rank `r` gets the keys between splitters `r - 1` and `r`. An
//! all-to-all of counts tells every rank how many keys come from each other rank, an all-to-all of blocks of these
//! lengths moves the keys, and every rank merges the sorted runs that it received. No rank gets more than about twice
//! its even share, except that equal keys stay together.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::process::ExitCode;

use clap::Parser;
use mpj::{Communicator, Error, Op, Partition};

#[path = "support/partition.rs"]
mod partition;
#[path = "support/random.rs"]
mod random;
mod support;

const SEED: u64 = 3;
/// Number of samples of a rank for each splitter.
const OVERSAMPLING: usize = 8;

/// Sorts made-up keys by sample sort.
#[derive(Parser)]
#[command(name = "sort")]
struct Options {
    /// Keys of all ranks together
    #[arg(long, default_value_t = 1 << 20, value_parser = clap::value_parser!(u64).range(..=1 << 32))]
    keys: u64,
    /// Number of different keys to draw from; 0 draws from all integers of 64 bits
    #[arg(long, default_value_t = 0)]
    distinct: u64,
}

impl Options {
    /// Returns the key at `index` before the sort.
    fn key(&self, index: usize) -> u64 {
        let bits = random::mixed(SEED, index as u64);
        bits.checked_rem(self.distinct).unwrap_or(bits)
    }
}

fn main() -> ExitCode {
    support::run(start)
}

fn start(comm: &Communicator, options: Options) -> Result<ExitCode, Error> {
    let total = options.keys as usize;
    let mine = partition::part(total, comm.size(), comm.rank());
    let keys: Vec<u64> = mine.map(|index| options.key(index)).collect();
    comm.barrier()?;
    let start = mpj::wtime();
    let sorted = sample_sort(comm, keys)?;
    let mut seconds = mpj::wtime() - start;
    comm.all_reduce(&mut seconds, Op::Max)?;

    let mut counts = vec![0; comm.size()];
    comm.all_gather(&sorted.len(), &mut counts)?;
    let blocks = Partition::packed(counts.iter().copied());
    let mut whole = vec![0; if comm.rank() == 0 { blocks.end() } else { 0 }];
    comm.gatherv(&sorted, &mut whole, &blocks, 0)?;
    let passed = comm.rank() > 0 || conclude(&options, &counts, &whole, seconds);
    support::outcome(comm, passed)
}

/// Sorts the keys of all ranks: afterwards no key of a rank is greater than one of a later rank.
/// Collective.
fn sample_sort(comm: &Communicator, mut keys: Vec<u64>) -> Result<Vec<u64>, Error> {
    keys.sort_unstable();
    let splitters = splitters(comm, &keys)?;

    // Where the part of each rank ends: a splitter is the last key of its part.
    let mut ends: Vec<usize> =
        splitters.iter().map(|splitter| keys.partition_point(|key| key <= splitter)).collect();
    ends.resize(comm.size(), keys.len());
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let sent: Vec<usize> = starts.zip(&ends).map(|(start, end)| end - start).collect();

    let mut received = vec![0; comm.size()];
    comm.all_to_all(&sent, &mut received)?;
    let (sent, received) = (Partition::packed(sent), Partition::packed(received));
    let mut sorted = vec![0; received.end()];
    comm.all_to_allv(&keys, &sent, &mut sorted, &received)?;
    // The standard library's stable sort is a merge sort that finds the runs.
    sorted.sort();
    Ok(sorted)
}

/// Returns the splitters in ascending order, the same on every rank: one fewer than ranks, or none without keys.
fn splitters(comm: &Communicator, sorted: &[u64]) -> Result<Vec<u64>, Error> {
    let ranks = comm.size();
    let wanted = OVERSAMPLING * (ranks - 1);
    let samples: Vec<u64> = match sorted.len() {
        0 => Vec::new(),
        keys => (1..=wanted).map(|sample| sorted[sample * keys / (wanted + 1)]).collect(),
    };
    let mut counts = vec![0; ranks];
    comm.all_gather(&samples.len(), &mut counts)?;
    let blocks = Partition::packed(counts);
    let mut all = vec![0; blocks.end()];
    comm.all_gatherv(&samples, &mut all, &blocks)?;
    all.sort_unstable();
    if all.is_empty() {
        return Ok(Vec::new());
    }
    Ok((1..ranks).map(|splitter| all[splitter * all.len() / ranks]).collect())
}

/// Compares with the sort of one rank, and reports. Returns whether they agree.
fn conclude(options: &Options, counts: &[usize], whole: &[u64], seconds: f64) -> bool {
    let (total, ranks) = (options.keys as usize, counts.len());
    let start = mpj::wtime();
    let mut expected: Vec<u64> = (0..total).map(|index| options.key(index)).collect();
    expected.sort_unstable();
    let alone = mpj::wtime() - start;
    let largest = counts.iter().copied().max().unwrap_or(0);
    let share = total as f64 / ranks as f64;
    println!("sort: {total} keys, {ranks} ranks");
    println!("  time            {seconds:.6} s");
    println!("  one rank        {alone:.6} s");
    println!(
        "  largest part    {largest} keys, {:.2} of the even share",
        largest as f64 / share.max(1.0)
    );

    let unordered = whole.windows(2).filter(|pair| pair[0] > pair[1]).count();
    let mut keys = whole.to_vec();
    keys.sort_unstable();
    let differing = keys.iter().zip(&expected).filter(|(key, expected)| key != expected).count();
    let differing = differing + keys.len().abs_diff(expected.len());
    if unordered > 0 || differing > 0 {
        eprintln!(
            "sort: {unordered} keys are smaller than the one before, and {differing} keys are not \
             those that were to be sorted"
        );
        return false;
    }
    println!("  error           0 keys out of order, 0 others than before: verified");
    true
}
