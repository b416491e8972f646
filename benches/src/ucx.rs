//! UCX as the peer of the transport: its tool `ucx_perftest` measures the same operations between two processes.
//!
//! UCX has several ways to transfer data within a host (`ways`). Each way is a pair of processes (`pair`), which are
//! given all sizes at once and answer with a table (`answer`). The tool needs up to a tenth of a second to prepare a
//! measurement, so it measures each size once. At each size the fastest way counts. The tool does not
//! rewrite its buffers, so it has no figures for rewritten ones. Called by `mpj-bench` and by the worker
//! `mpj-bench-ucx`.

mod answer;
mod pair;
mod ways;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use mpj_bench_programs::worker::foreign;
use mpj_bench_programs::{
    Better, Buffers, Failure, Library, Order, Program, Record, Sample, Series, Unit,
};

use crate::{cache_line, stats};
use pair::Test;
use ways::Way;

/// The name of the tool.
const PERFTEST: &str = "ucx_perftest";
/// A low estimate of the time of a message, in seconds, and per byte.
const LEAST: (f64, f64) = (50e-9, 25e-12);
/// How the tool measures.
const METHOD: &str = "ucx_perftest: memory that UCX allocates, and which both processes map; buffers are not rewritten; \
                      at each size the fastest of UCP and UCT over posix";

/// Finds the tool on PATH. Also returns the name and version of UCX.
///
/// # Errors
/// It is not installed.
pub fn find() -> Result<(PathBuf, String), Failure> {
    let missing = format!("{PERFTEST} is not on PATH: apt-get install ucx-utils");
    let perftest = which::which(PERFTEST).map_err(|_| Failure::new(missing))?;
    let info = Command::new(perftest.with_file_name("ucx_info")).arg("-v").output();
    let said = info.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let version = said.ok().and_then(|said| answer::version(&said).map(str::to_owned));
    let name = version.map_or("UCX".to_owned(), |version| format!("UCX {version}"));
    Ok((perftest, name))
}

/// Measures `orders` with the tool at `perftest`, as a worker does; `emit` gets the records.
///
/// # Errors
/// A program that UCX does not measure, or a failure of the tool. What is left running ends with the launch.
pub fn run(
    perftest: &Path,
    orders: &[Order],
    emit: &mut dyn FnMut(&Record),
) -> Result<(), Failure> {
    let processors = orders.first().and_then(|order| order.pin.first_chunk().copied());
    let facts = vec![("ucx".to_owned(), METHOD.to_owned())];
    emit(&Record::Library(Library { ranks: 2, facts, ..Library::default() }));
    for (order, program) in orders.iter().flat_map(Order::tasks) {
        if program == Program::Empty {
            continue;
        }
        let ways = ways::of(program).ok_or_else(|| foreign(program))?;
        if program.has_buffers() && order.buffers != Buffers::Unchanged {
            continue;
        }
        let series = Series::named(&program.series(order)).expect("every program has a series");
        let subject = Subject { order, program, series, ways, processors };
        for sample in subject.measure(perftest)? {
            emit(&Record::Sample(sample));
        }
    }
    emit(&Record::Complete);
    Ok(())
}

/// A program to measure.
struct Subject<'a> {
    order: &'a Order,
    program: Program,
    series: &'static Series,
    ways: &'static [Way],
    /// Those of the client and of the server.
    processors: Option<[usize; 2]>,
}

impl Subject<'_> {
    /// Measures the program in all ways. Returns the figures of the best one at each size.
    fn measure(&self, perftest: &Path) -> Result<Vec<Sample>, Failure> {
        let mut best = BTreeMap::<usize, Sample>::new();
        for way in self.ways {
            let tests = self.tests(way);
            if tests.is_empty() {
                continue;
            }
            let before = self.processors.map(cache_line::one_way);
            let rates = pair::run(perftest, way, &tests, self.processors)?;
            let raw = before.zip(self.processors.map(cache_line::one_way));
            for (&Test { size, .. }, &rate) in tests.iter().zip(&rates) {
                let values = vec![self.figure(size, rate)];
                let sample = Sample { raw, ..Sample::new(self.series, size, values) };
                let is_best = |known| is_better(&sample, known, self.series.better);
                if best.get(&size).is_none_or(is_best) {
                    best.insert(size, sample);
                }
            }
        }
        Ok(best.into_values().collect())
    }

    /// All sizes that suit a way.
    fn tests(&self, way: &Way) -> Vec<Test> {
        let sizes = if self.program == Program::Add { &[8][..] } else { &self.order.sizes };
        let sizes = sizes.iter().copied().filter(|size| (way.least..=way.most).contains(size));
        let budget = self.order.effort.budget / 1e3;
        sizes.map(|size| Test { size, iterations: iterations(size, budget) }).collect()
    }

    /// The figure of the series for messages per second.
    fn figure(&self, size: usize, rate: f64) -> f64 {
        match self.series.unit {
            Unit::MegabytesPerSecond => rate * size as f64 / 1e6,
            _ => 1e6 / rate,
        }
    }
}

/// Whether the median of a sample is better than that of another one.
fn is_better(one: &Sample, other: &Sample, better: Better) -> bool {
    let [one, other] = [one, other].map(|sample| stats::median(&sample.values));
    match better {
        Better::Lower => one < other,
        Better::Higher => one > other,
    }
}

/// The number of messages of a test that takes about `budget` seconds.
fn iterations(size: usize, budget: f64) -> u64 {
    let (message, byte) = LEAST;
    let each = message + byte * size as f64;
    ((budget / each) as u64).clamp(20, 1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_repeated_less_often() {
        let counts = [8, 1 << 10, 1 << 20, 1 << 30].map(|size| iterations(size, 0.002));
        assert!(counts.is_sorted_by(|one, next| one > next), "{counts:?}");
        assert_eq!(counts[3], 20);
    }

    #[test]
    fn every_program_of_the_transport_has_ways_and_others_have_none() {
        use Program::{Add, Am, AmStream, Get, Latency, Put, PutStream};
        for program in [Add, Am, AmStream, Get, Put, PutStream] {
            let ways = ways::of(program).expect("there are some");
            assert!(ways.iter().any(|way| way.most == usize::MAX), "{program:?} at all sizes");
        }
        assert!(ways::of(Latency).is_none());
        let order = Order { programs: vec![Latency], ..Order::default() };
        let outcome = run(Path::new("/no/such/tool"), &[order], &mut |_| {});
        assert!(outcome.is_err_and(|error| error.to_string().contains("latency")));
    }

    #[test]
    fn a_missing_tool_fails_and_rewritten_buffers_are_left_out() {
        let order = Order { programs: vec![Program::Am], sizes: vec![8], ..Order::default() };
        let mut records = Vec::new();
        let missing = Path::new("/no/such/tool");
        run(missing, std::slice::from_ref(&order), &mut |it| records.push(it.clone()))
            .expect("nothing is started");
        assert_eq!(records.last(), Some(&Record::Complete));
        assert!(!records.iter().any(|record| matches!(record, Record::Sample(_))));
        let order = Order { buffers: Buffers::Unchanged, ..order };
        let outcome = |tool| run(tool, std::slice::from_ref(&order), &mut |_| {});
        let error = outcome(missing).expect_err("it cannot start").to_string();
        assert!(error.starts_with("cannot start ucx_perftest: "), "{error}");
        let error = outcome(Path::new("/bin/false")).expect_err("it ends at once").to_string();
        assert_eq!(error, "ucx_perftest failed in ucp_am_lat: no message");
    }
}
