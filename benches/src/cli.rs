//! The command line of `mpj-bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use mpj::BackendChoice;
use mpj_bench_programs::Buffers;

use crate::catalogue::Benchmark;

/// The default number of rounds: the fewest that give a 95 % interval.
const ROUNDS: usize = 6;
const QUICK_ROUNDS: usize = 3;

/// Measures both backends, and system MPIs beside them
///
/// Every round starts each runtime once per configuration, in random order; a launch counts as one
/// value. Medians with 95 % intervals; no speed-up is claimed when intervals overlap.
#[derive(Debug, Clone, Parser)]
#[command(name = "cargo mpj bench", bin_name = "cargo mpj bench", version, max_term_width = 100)]
pub struct Options {
    /// What to measure [default: all but lapi and am2]
    #[arg(value_name = "WHAT")]
    what: Vec<Benchmark>,
    /// Numbers of ranks; each benchmark's own if not given
    #[arg(long, short = 'n', value_name = "N", value_delimiter = ',', value_parser = ranks)]
    pub np: Vec<usize>,
    /// Backends of mpj
    #[arg(long, value_name = "B", value_delimiter = ',', default_value = "eager,rendezvous,auto")]
    pub backend: Vec<Backend>,
    /// A system MPI to measure beside mpj: openmpi, mpich, impi, libmpi, a folder with bin/mpicc, or self
    /// for mpj once more; beside lapi and am2: ucx or self. Repeatable
    #[arg(long, value_name = "P")]
    pub peer: Vec<String>,
    /// Launches of each runtime per configuration [default: 6, with --quick 3]
    #[arg(long, value_name = "K", value_parser = launches)]
    launches: Option<usize>,
    /// Message sizes instead of each benchmark's own: 1,64K or 8..1M
    #[arg(long, value_name = "S", value_delimiter = ',', value_parser = sizes)]
    sizes: Vec<Numbers>,
    /// What the buffers of latency, bandwidth, bibw, rate, lapi, am2 and the ping-pong of matrices do
    /// between messages; each has tables of its own [default: rewritten, for lapi and am2 unchanged]
    #[arg(long, value_name = "B", value_delimiter = ',')]
    pub buffers: Vec<Buffers>,
    /// Orders N of matrices instead of the benchmark's own: 64,1024 or 64..1K
    #[arg(long, value_name = "S", value_delimiter = ',', value_parser = orders)]
    orders: Vec<Numbers>,
    /// A short look: fewer points, less time, three launches, so no intervals
    #[arg(long)]
    pub quick: bool,
    /// Write everything that is measured, launch by launch
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page with charts
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write a short table in Markdown, and a picture if several sizes are measured: FILE.md and
    /// FILE.svg
    #[arg(long, value_name = "FILE.md")]
    pub summary: Option<PathBuf>,
    /// Compare with an earlier run, a file of --json
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Measure nothing; show this earlier run, a file of --json
    #[arg(long, value_name = "FILE", conflicts_with_all = ["what", "peer", "json", "np", "backend", "launches", "buffers", "sizes", "orders", "quick"])]
    pub from: Option<PathBuf>,
    /// End a launch that gives no figure for S seconds
    #[arg(long, value_name = "S", default_value = "60", value_parser = seconds)]
    pub patience: Duration,
    /// Order of the launches
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// The word for a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// One active message carries envelope and data
    Eager,
    /// The receiver fetches the data
    Rendezvous,
    /// By the size of the message
    Auto,
}

impl From<Backend> for BackendChoice {
    fn from(backend: Backend) -> Self {
        match backend {
            Backend::Eager => Self::Eager,
            Backend::Rendezvous => Self::Rendezvous,
            Backend::Auto => Self::Auto,
        }
    }
}

impl Options {
    /// Returns the benchmarks to run.
    pub fn what(&self) -> Vec<Benchmark> {
        if !self.what.is_empty() {
            return self.what.clone();
        }
        let all = Benchmark::value_variants().iter().copied();
        all.filter(|benchmark| !benchmark.is_of_transport()).collect()
    }

    /// Returns the one benchmark of the transport that is measured; `None` if MPI is.
    ///
    /// # Errors
    /// Such a benchmark is to be measured together with others.
    pub fn of_transport(&self) -> Result<Option<Benchmark>, String> {
        let what = self.what();
        let found = what.iter().copied().find(|benchmark| benchmark.is_of_transport());
        match found {
            Some(one) if what.iter().any(|other| *other != one) => {
                let name = one.name();
                Err(format!("{name} has runtimes of its own: measure it in a run of its own"))
            }
            found => Ok(found),
        }
    }

    /// Returns the number of launches of each runtime per configuration.
    pub fn rounds(&self) -> usize {
        self.launches.unwrap_or(if self.quick { QUICK_ROUNDS } else { ROUNDS })
    }

    /// Returns the sizes, ascending and without duplicates.
    pub fn sizes(&self) -> Vec<usize> {
        ascending(&self.sizes)
    }

    /// Returns the orders of matrices, ascending and without duplicates.
    pub fn orders(&self) -> Vec<usize> {
        ascending(&self.orders)
    }
}

/// One number, or a doubling range of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Numbers {
    first: usize,
    last: usize,
}

fn ascending(lists: &[Numbers]) -> Vec<usize> {
    let of_list = |list: &Numbers| {
        let (first, last) = (list.first, list.last);
        let next = move |number: &usize| (*number * 2).max(1);
        std::iter::successors(Some(first), move |number| Some(next(number)))
            .take_while(move |number| *number <= last)
    };
    let mut numbers: Vec<usize> = lists.iter().flat_map(of_list).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

fn sizes(text: &str) -> Result<Numbers, String> {
    numbers(text, 0, 1 << 30)
}

fn orders(text: &str) -> Result<Numbers, String> {
    numbers(text, 1, 1 << 14)
}

/// Parses `A` or `A..B`.
fn numbers(text: &str, least: usize, most: usize) -> Result<Numbers, String> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    match (number(first), number(last)) {
        (Some(first), Some(last)) if least <= first && first <= last && last <= most => {
            Ok(Numbers { first, last })
        }
        _ => Err(format!("a number from {least} to {most}, as 100, 64K or 1M, or two: 8..1M")),
    }
}

/// Parses a number with an optional suffix: `64K`.
fn number(text: &str) -> Option<usize> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' | b'k' => (&text[..text.len() - 1], 10),
        b'M' | b'm' => (&text[..text.len() - 1], 20),
        b'G' | b'g' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: usize = digits.parse().ok()?;
    number.checked_mul(1 << shift)
}

fn ranks(text: &str) -> Result<usize, String> {
    let ranks = text.parse().ok().filter(|ranks| (1..=256).contains(ranks));
    ranks.ok_or_else(|| "a job has 1 to 256 ranks".to_owned())
}

fn launches(text: &str) -> Result<usize, String> {
    let launches = text.parse().ok().filter(|launches| (1..=10_000).contains(launches));
    launches.ok_or_else(|| "1 to 10000 launches".to_owned())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let duration = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let legal = duration.filter(|duration| !duration.is_zero() && duration.as_secs() < 1 << 32);
    legal.ok_or_else(|| "a number of seconds above 0, fractions allowed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        let words = std::iter::once("mpj-bench").chain(line.split_whitespace());
        Options::try_parse_from(words).map_err(|error| error.to_string())
    }

    #[test]
    fn sizes_are_numbers_and_ranges() {
        let options = parse("latency --sizes 64K,8..100,0 --orders 3").expect("legal");
        assert_eq!(options.sizes(), [0, 8, 16, 32, 64, 65536]);
        assert_eq!(options.orders(), [3]);
        assert_eq!(parse("latency --sizes 0..4").expect("legal").sizes(), [0, 1, 2, 4]);
        for wrong in ["8..4", "x", "K", "2G", "-1", "1..", "99999999999999999999G"] {
            let error = parse(&format!("latency --sizes={wrong}")).expect_err(wrong);
            assert!(error.contains("64K"), "{error}");
        }
    }

    #[test]
    fn an_unknown_benchmark_is_answered_with_the_known_ones() {
        let error = parse("latencie").expect_err("no such benchmark");
        assert!(error.contains("latency") && error.contains("matrix"), "{error}");
    }

    #[test]
    fn nothing_asked_for_is_all_but_the_transport() {
        let all = parse("").expect("legal").what();
        assert!(!all.contains(&Benchmark::Lapi) && !all.contains(&Benchmark::Am2));
        assert_eq!(all.len() + 2, Benchmark::value_variants().len());
        assert_eq!(parse("rate").expect("legal").what(), [Benchmark::Rate]);
    }

    #[test]
    fn the_transport_is_measured_alone() {
        let of = |line: &str| parse(line).expect("legal").of_transport();
        assert_eq!([of("rate"), of("")], [Ok(None), Ok(None)]);
        assert_eq!(of("lapi"), Ok(Some(Benchmark::Lapi)));
        assert_eq!(of("am2 am2"), Ok(Some(Benchmark::Am2)));
        for mixed in ["lapi rate", "rate am2", "lapi am2"] {
            assert!(of(mixed).is_err_and(|error| error.contains("run of its own")), "{mixed}");
        }
    }

    #[test]
    fn launches_by_default_give_intervals_unless_quick() {
        assert_eq!(parse("rate").expect("legal").rounds(), 6);
        assert_eq!(parse("rate --quick").expect("legal").rounds(), 3);
        assert_eq!(parse("rate --quick --launches 9").expect("legal").rounds(), 9);
    }
}
