//! Counts the words of a text that is divided over the ranks, and checks the counts on one rank.
//!
//! `cargo mpj run -n 4 --release --features serde --example word_count -- --text README.md`
//!
//! Rank 0 reads the text and deals out its lines (`scatter_objects`), each rank counts its own, and the maps of counts are
//! added up at rank 0 (`reduce_objects`). Objects of any type that serde knows travel so.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use mpj::{Communicator, Error};

#[path = "support/partition.rs"]
mod partition;
mod support;

/// Counts the words of a text.
#[derive(Parser)]
#[command(name = "word_count")]
struct Options {
    /// File with the text; without it, a poem of its own
    #[arg(long)]
    text: Option<PathBuf>,
    /// Number of words to print, the most frequent first
    #[arg(long, default_value_t = 5)]
    top: usize,
}

const POEM: &str = "a rose is a rose\nis a rose is a rose\nand a word is a word\n";

fn main() -> ExitCode {
    support::run(start)
}

fn start(comm: &Communicator, options: Options) -> Result<ExitCode, Error> {
    let read = match &options.text {
        Some(path) if comm.rank() == 0 => {
            std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
        }
        _ => Ok(POEM.to_owned()),
    };
    // All ranks learn why there is no text.
    if let Some(reason) = comm.broadcast_object(Some(read.as_ref().err().cloned()), 0)? {
        return Ok(support::refuse_job::<Options>(comm, &reason));
    }
    let text = read.unwrap_or_default();
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let parts = (comm.rank() == 0).then(|| {
        let part = |rank| lines[partition::part(lines.len(), comm.size(), rank)].to_vec();
        (0..comm.size()).map(part).collect()
    });
    let mine: Vec<String> = comm.scatter_objects(parts, 0)?;
    let counts = comm.reduce_objects(count(&mine), merged, 0)?;
    let passed = counts.is_none_or(|counts| conclude(&counts, &count(&lines), options.top));
    support::outcome(comm, passed)
}

/// Counts the words of some lines.
fn count(lines: &[String]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for word in lines.iter().flat_map(|line| line.split(|c: char| !c.is_alphanumeric())) {
        if !word.is_empty() {
            *counts.entry(word.to_lowercase()).or_insert(0) += 1;
        }
    }
    counts
}

/// Adds the counts of two parts.
fn merged(mut all: BTreeMap<String, u64>, more: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    for (word, count) in more {
        *all.entry(word).or_insert(0) += count;
    }
    all
}

/// Prints the most frequent words, and compares all counts with those of one rank. Returns whether they agree.
fn conclude(counts: &BTreeMap<String, u64>, alone: &BTreeMap<String, u64>, top: usize) -> bool {
    let mut frequent: Vec<_> = counts.iter().collect();
    frequent.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    for (word, count) in frequent.into_iter().take(top) {
        println!("{count:8} {word}");
    }
    if counts == alone {
        println!("word_count: {} different words: verified", counts.len());
        return true;
    }
    eprintln!("word_count: the counts differ from those of one rank");
    false
}
