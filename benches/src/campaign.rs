//! A whole run: for every round, every launch of every runtime.
//!
//! In each round every bundle of configurations is launched once with every runtime. The runtimes
//! come in random order and close together in time, with the raw cache-line ping-pong before and
//! after each launch. A runtime that fails a bundle twice is not tried on it again, so that one
//! that hangs does not use up the time of the others.
//!
//! Figures are comparable only at the same processor distance. So a bundle gets up to `MOST_ROUNDS`
//! times the planned rounds, until every distance that was seen often has enough pairs.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mpj_bench_programs::{Library, Order, Program, Sample, Series};

use crate::bundle::Bundle;
use crate::cache_line::{self, LineFile};
use crate::catalogue::{Benchmark, Configuration};
use crate::contender::Contender;
use crate::hosts::Hosts;
use crate::launch::{self, Outcome};
use crate::model::{Header, Launch, Run};
use crate::{analysis, stats};

/// How long a launch may be silent.
const PATIENCE: Duration = Duration::from_secs(60);
/// What the order of launches is computed from.
const SEED: u64 = 1;

/// Observes a run in progress.
pub trait Watcher {
    /// Called when a launch begins.
    fn begins(&mut self, round: usize, bundle: &Bundle, contender: &Contender);
    /// Called when a launch has ended, with its figures.
    fn ended(&mut self, launch: &Launch);
}

/// The settings of all launches.
#[derive(Debug, Clone)]
pub struct Conduct {
    /// Where ranks run.
    pub hosts: Hosts,
    /// Set when the user stops the run.
    pub stop: Arc<AtomicBool>,
}

impl Conduct {
    /// Returns whether the user stopped the run.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Launches `contender` once.
    pub fn launch(&self, contender: &Contender, bundle: &Bundle) -> Outcome {
        // Without the file, the raw times around the launch are used. Hosts do not share it.
        let line = LineFile::new().ok().filter(|_| !self.hosts.are_several());
        let path = line.as_ref().map(LineFile::path);
        let command = contender.command(bundle, &self.hosts, path);
        let mut outcome = launch::run(command, PATIENCE, &self.stop);
        let ranks = outcome.library.as_ref().map(|library| library.ranks);
        if ranks.is_some_and(|ranks| ranks != bundle.ranks()) {
            outcome.samples.clear();
            outcome.failure.get_or_insert_with(|| {
                let (ranks, asked) = (ranks.unwrap_or_default(), bundle.ranks());
                format!("the job has {ranks} ranks, not {asked}: launcher and library do not fit")
            });
        }
        outcome
    }

    /// The raw cache-line time between the first two processors, in nanoseconds. It says little about a network.
    fn raw(&self) -> Option<f64> {
        let pair = self.hosts.processors.first_chunk().filter(|_| !self.hosts.are_several())?;
        Some(cache_line::one_way(*pair))
    }

    /// Starts `contender` once without measuring, and returns the facts that its library reports.
    ///
    /// # Errors
    /// A one-line reason why it does not run.
    pub fn introduce(&self, contender: &Contender, ranks: usize) -> Result<Library, String> {
        let order = Order { programs: vec![Program::Empty], ..Order::default() };
        let configuration = Configuration { benchmark: Benchmark::Startup, ranks, order };
        let outcome = self.launch(contender, &configuration.into());
        match outcome {
            Outcome { failure: Some(reason), .. } => Err(reason),
            Outcome { library: Some(library), .. } => Ok(library),
            Outcome { .. } => Err("it does not say what it is".to_owned()),
        }
    }
}

/// A runtime is not tried again on a bundle after this many failures.
const MOST_FAILURES: usize = 2;

/// The largest number of rounds, as a multiple of the planned ones.
const MOST_ROUNDS: usize = 5;

/// Measures `bundles` with `contenders`. Adds rounds to the planned ones where the processor
/// distance changes. Returns everything measured until the end or until the user stops the run.
pub fn run(
    conduct: &Conduct,
    header: &Header,
    bundles: &[Bundle],
    contenders: &[Contender],
    watcher: &mut impl Watcher,
) -> Vec<Launch> {
    let mut launches = Vec::new();
    let mut lottery = Lottery::new(SEED);
    let mut failures: HashMap<(usize, String), usize> = HashMap::new();
    let mut raw = conduct.raw();
    for round in 0..header.rounds * MOST_ROUNDS {
        for (place, bundle) in bundles.iter().enumerate() {
            if round >= header.rounds && is_settled(header, bundle, &launches) {
                continue;
            }
            for contender in lottery.shuffled(contenders) {
                let attempt = (place, contender.info.id.clone());
                if failures.get(&attempt).is_some_and(|&failures| failures >= MOST_FAILURES) {
                    continue;
                }
                if conduct.is_stopped() {
                    return launches;
                }
                watcher.begins(round, bundle, contender);
                let outcome = conduct.launch(contender, bundle);
                let before = std::mem::replace(&mut raw, conduct.raw());
                if outcome.failure.is_some() {
                    *failures.entry(attempt).or_default() += 1;
                }
                let mut launch = described(outcome, round, bundle, contender);
                launch.oversubscribed = conduct.hosts.is_oversubscribed(bundle.ranks());
                launch.raw = before.zip(raw);
                watcher.ended(&launch);
                launches.push(launch);
            }
        }
    }
    launches
}

/// Whether the launches of a bundle have enough pairs for an interval at every distance that they
/// saw often, if that many rounds were planned. The figures themselves do not matter.
fn is_settled(header: &Header, bundle: &Bundle, launches: &[Launch]) -> bool {
    let name = bundle.name();
    let own = launches.iter().filter(|it| it.benchmark == name && it.ranks == bundle.ranks());
    let run = Run { header: header.clone(), launches: own.cloned().collect() };
    let enough = header.rounds.min(stats::FEWEST);
    analysis::tables(&run).iter().filter(|table| table.distance.is_some()).all(|table| {
        let has_enough = |row: &&analysis::Row| row.launches() >= enough;
        2 * table.rows.iter().filter(has_enough).count() >= table.rows.len()
    })
}

fn described(outcome: Outcome, round: usize, bundle: &Bundle, contender: &Contender) -> Launch {
    let Outcome { seconds, mut samples, unclear, failure, .. } = outcome;
    if bundle.is_startup() && failure.is_none() {
        let startup = Series::named("startup").expect("it is in the table");
        samples.push(Sample::new(startup, bundle.ranks(), vec![seconds * 1e3]));
    }
    Launch {
        round,
        runtime: contender.info.id.clone(),
        benchmark: bundle.name(),
        ranks: bundle.ranks(),
        oversubscribed: false,
        raw: None,
        seconds,
        failure,
        samples,
        unclear,
    }
}

/// A small random number generator (xorshift64*), enough for the order of launches and reproducible
/// by its seed.
struct Lottery(u64);

impl Lottery {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let mixed = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d);
        ((mixed >> 32) as usize * limit) >> 32
    }

    /// Returns the items in random order.
    fn shuffled<'a, T>(&mut self, items: &'a [T]) -> Vec<&'a T> {
        let mut order: Vec<&T> = items.iter().collect();
        for last in (1..order.len()).rev() {
            order.swap(last, self.below(last + 1));
        }
        order
    }
}
