//! The command line of `mpj-bench`.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Parser, ValueEnum};

use crate::catalogue::{Benchmark, Extent};

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
    /// What to measure [default: all but rma, lapi, am2 and pami]
    #[arg(value_name = "WHAT")]
    what: Vec<Benchmark>,
    /// How much to measure.
    #[command(flatten)]
    pub extent: Extent,
    /// Backends of mpj
    #[arg(long, value_name = "B", value_delimiter = ',', value_parser = ["eager", "rendezvous", "auto"], default_value = "eager,rendezvous,auto")]
    pub backend: Vec<String>,
    /// A system MPI to measure beside mpj: openmpi, mpich, impi, libmpi, a folder with bin/mpicc, or self
    /// for mpj once more; beside lapi, am2 and pami: ucx or self. Repeatable. What rma measures is all of them
    #[arg(long, value_name = "P")]
    pub peer: Vec<String>,
    /// Hosts that ssh reaches; each gets an equal share of the ranks, rank 0 on the first. A peer is also
    /// fabric: libfabric without an MPI, to 64 KiB
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub hosts: Vec<String>,
    /// Launches of each runtime per configuration [default: 6, with --quick 3]
    #[arg(long, value_name = "K", value_parser = RangedU64ValueParser::<usize>::new().range(1..=10_000))]
    launches: Option<usize>,
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
    #[arg(long, value_name = "FILE", conflicts_with_all = ["what", "peer", "hosts", "json", "backend", "launches", "Extent"])]
    pub from: Option<PathBuf>,
}

impl Options {
    /// Returns the benchmarks to run.
    pub fn what(&self) -> Vec<Benchmark> {
        if !self.what.is_empty() {
            return self.what.clone();
        }
        let all = Benchmark::value_variants().iter().copied();
        all.filter(|benchmark| !benchmark.is_apart()).collect()
    }

    /// Returns the one benchmark that is measured if it has runtimes of its own.
    ///
    /// # Errors
    /// Such a benchmark is to be measured together with others; one of the transport over several hosts; rma without a
    /// runtime.
    pub fn apart(&self) -> Result<Option<Benchmark>, String> {
        let what = self.what();
        let found = what.iter().copied().find(|benchmark| benchmark.is_apart());
        match found {
            Some(one) if one.is_of_transport() && !self.hosts.is_empty() => {
                Err(format!("{} is measured on one host: leave out --hosts", one.name()))
            }
            Some(Benchmark::Rma) if self.peer.is_empty() => {
                let how = "cargo mpj install --prefix DIR, and give --peer DIR";
                Err(format!("rma calls libmpi and other MPIs: {how}"))
            }
            Some(one) if what.iter().any(|other| *other != one) => {
                let name = one.name();
                Err(format!("{name} has runtimes of its own: measure it in a run of its own"))
            }
            found => Ok(found),
        }
    }

    /// Returns the number of launches of each runtime per configuration.
    pub fn rounds(&self) -> usize {
        self.launches.unwrap_or(if self.extent.quick { QUICK_ROUNDS } else { ROUNDS })
    }
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
        assert_eq!(options.extent.sizes, [0, 8, 16, 32, 64, 65536]);
        assert_eq!(options.extent.orders, [3]);
        let zero = parse("latency --sizes 0..4").expect("legal").extent;
        assert_eq!((&*zero.sizes, &*zero.orders), (&[0, 1, 2, 4][..], &[][..]));
        for wrong in ["8..4", "x", "K", "2G", "-1", "1..", "99999999999999999999G"] {
            let error = parse(&format!("latency --sizes={wrong}")).expect_err(wrong);
            assert!(error.contains("64K"), "{error}");
        }
    }

    #[test]
    fn an_earlier_run_is_shown_whole() {
        for other in ["rate", "--sizes 8", "--quick", "-n 2", "--json some"] {
            assert!(parse(&format!("--from run.json {other}")).is_err(), "{other}");
        }
        assert!(parse("--from run.json --html page.html --baseline then.json").is_ok());
    }

    #[test]
    fn an_unknown_benchmark_is_answered_with_the_known_ones() {
        let error = parse("latencie").expect_err("no such benchmark");
        assert!(error.contains("latency") && error.contains("matrix"), "{error}");
    }

    #[test]
    fn nothing_asked_for_is_all_that_mpj_itself_runs() {
        let all = parse("").expect("legal").what();
        assert!(!all.iter().any(|benchmark| benchmark.is_apart()));
        assert_eq!(all.len() + 4, Benchmark::value_variants().len());
        assert_eq!(parse("rate").expect("legal").what(), [Benchmark::Rate]);
    }

    #[test]
    fn what_has_runtimes_of_its_own_is_measured_alone() {
        let of = |line: &str| parse(line).expect("legal").apart();
        assert_eq!([of("rate"), of("")], [Ok(None), Ok(None)]);
        assert_eq!(of("lapi"), Ok(Some(Benchmark::Lapi)));
        assert_eq!(of("am2 am2"), Ok(Some(Benchmark::Am2)));
        assert_eq!(of("rma --peer mpich --hosts a,b"), Ok(Some(Benchmark::Rma)));
        assert!(of("rma").is_err_and(|error| error.contains("cargo mpj install")));
        for mixed in ["lapi rate", "rate am2", "lapi am2", "pami am2", "rma rate --peer mpich"] {
            assert!(of(mixed).is_err_and(|error| error.contains("run of its own")), "{mixed}");
        }
    }

    #[test]
    fn the_transport_is_measured_on_one_host() {
        let error = parse("lapi --hosts a,b").expect("legal").apart().expect_err("refused");
        assert!(error.contains("leave out --hosts"), "{error}");
        assert_eq!(parse("rate --hosts a,b").expect("legal").hosts, ["a", "b"]);
    }

    #[test]
    fn launches_by_default_give_intervals_unless_quick() {
        assert_eq!(parse("rate").expect("legal").rounds(), 6);
        assert_eq!(parse("rate --quick").expect("legal").rounds(), 3);
        assert_eq!(parse("rate --quick --launches 9").expect("legal").rounds(), 9);
    }
}
