//! A whole run: who takes part, then round after round, launch after launch.
//!
//! In each round every configuration is launched once with every runtime, runtimes in random order
//! and close together in time, with the raw cache-line ping-pong before and after each launch. A
//! runtime that fails a configuration is not tried on it again, so that one that hangs does not use up
//! the time of all others.
//!
//! Figures compare only within one face of the machine. So a configuration in which messages travel
//! gets more rounds than planned, until as many as planned, or as an interval takes, have seen one
//! and the same face throughout; up to [`MOST_ROUNDS`] times the planned ones.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mpj_bench_programs::{Library, Order, Program, Record, Sample, Series};

use crate::cache_line;
use crate::catalogue::{Benchmark, Configuration};
use crate::contender::Contender;
use crate::launch::{self, Outcome};
use crate::model::{Face, Header, Launch, MOST_ROUNDS};

/// What is told while it runs.
pub trait Watcher {
    /// A launch begins.
    fn begins(&mut self, round: usize, configuration: &Configuration, contender: &Contender);
    /// The launch has measured something.
    fn record(&mut self, record: &Record);
    /// A launch has ended, with these figures.
    fn ended(&mut self, launch: &Launch);
}

/// How launches are made.
#[derive(Debug, Clone)]
pub struct Conduct {
    /// The processors that ranks stay on.
    pub processors: Vec<usize>,
    /// How long a launch may be silent.
    pub patience: Duration,
    /// Set when the user wants to stop.
    pub stop: Arc<AtomicBool>,
}

impl Conduct {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn launch(
        &self,
        contender: &Contender,
        configuration: &Configuration,
        watch: impl FnMut(&Record),
    ) -> Outcome {
        let command = contender.command(configuration, &self.processors);
        launch::run(command, self.patience, &self.stop, watch)
    }

    /// The raw cache-line time between the first two processors, in nanoseconds.
    fn raw(&self) -> Option<f64> {
        let pair = self.processors.first_chunk()?;
        Some(cache_line::one_way(*pair))
    }

    /// Starts `contender` once without measuring, and returns what its library says of itself.
    ///
    /// # Errors
    /// Why it does not run: one line.
    pub fn introduce(&self, contender: &Contender, ranks: usize) -> Result<Library, String> {
        let programs = vec![Program::Empty];
        let (sizes, orders, products, depths) = (vec![], vec![], vec![], vec![]);
        let effort = mpj_bench_programs::order::Effort::default();
        let order = Order { programs, effort, sizes, orders, products, depths, pin: vec![] };
        let configuration = Configuration { benchmark: Benchmark::Startup, ranks, order };
        let outcome = self.launch(contender, &configuration, |_| {});
        match outcome {
            Outcome { failure: Some(reason), .. } => Err(reason),
            Outcome { library: Some(library), .. } => Ok(library),
            Outcome { .. } => Err("it does not say what it is".to_owned()),
        }
    }
}

/// Rounds of one face that are enough for any plan: those that an interval takes.
const ENOUGH: usize = 6;

/// Measures `configurations` with `contenders`, as many rounds as the header plans and the machine's
/// changes of face make necessary, and returns what was measured until the end or until the user
/// stopped it.
pub fn run(
    conduct: &Conduct,
    header: &Header,
    configurations: &[Configuration],
    contenders: &[Contender],
    seed: u64,
    watcher: &mut impl Watcher,
) -> Vec<Launch> {
    let mut launches = Vec::new();
    let mut lottery = Lottery::new(seed);
    let mut given_up = HashSet::new();
    let mut raw = conduct.raw();
    for round in 0..header.rounds * MOST_ROUNDS {
        for (place, configuration) in configurations.iter().enumerate() {
            if round >= header.rounds && is_settled(configuration, header.rounds, &launches) {
                continue;
            }
            for contender in lottery.shuffled(contenders) {
                let attempt = (place, contender.info.id.clone());
                if given_up.contains(&attempt) {
                    continue;
                }
                if conduct.is_stopped() {
                    return launches;
                }
                watcher.begins(round, configuration, contender);
                let outcome = conduct.launch(contender, configuration, |it| watcher.record(it));
                let before = std::mem::replace(&mut raw, conduct.raw());
                if outcome.failure.is_some() {
                    given_up.insert(attempt);
                }
                let mut launch = described(outcome, round, configuration, contender);
                launch.oversubscribed = configuration.ranks > conduct.processors.len();
                launch.raw = before.zip(raw);
                watcher.ended(&launch);
                launches.push(launch);
            }
        }
    }
    launches
}

/// Whether `planned` rounds of a configuration, or enough for an interval, have seen one face.
fn is_settled(configuration: &Configuration, planned: usize, launches: &[Launch]) -> bool {
    let Configuration { benchmark, ranks, .. } = configuration;
    if *ranks == 1 || *benchmark == Benchmark::Startup {
        return true;
    }
    let name = benchmark.name();
    let mut rounds: BTreeMap<usize, Vec<Option<Face>>> = BTreeMap::new();
    for launch in launches.iter().filter(|it| it.benchmark == name && it.ranks == *ranks) {
        if launch.raw.is_none() {
            return true;
        }
        rounds.entry(launch.round).or_default().push(launch.face());
    }
    let of_face = |face| rounds.values().filter(|it| it.iter().all(|it| *it == Some(face))).count();
    [Face::Near, Face::Far].into_iter().any(|face| of_face(face) >= planned.min(ENOUGH))
}

fn described(
    outcome: Outcome,
    round: usize,
    configuration: &Configuration,
    contender: &Contender,
) -> Launch {
    let Outcome { seconds, mut samples, failure, .. } = outcome;
    if configuration.benchmark == Benchmark::Startup && failure.is_none() {
        let startup = Series::named("startup").expect("it is in the table");
        samples.push(Sample::new(startup, configuration.ranks, vec![seconds * 1e3]));
    }
    Launch {
        round,
        runtime: contender.info.id.clone(),
        benchmark: configuration.benchmark.name(),
        ranks: configuration.ranks,
        oversubscribed: false,
        raw: None,
        seconds,
        failure,
        samples,
    }
}

/// A small generator of random numbers (xorshift64*): the order of launches needs no better one, and
/// is the same for the same seed.
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

    /// The items in random order.
    fn shuffled<'a, T>(&mut self, items: &'a [T]) -> Vec<&'a T> {
        let mut order: Vec<&T> = items.iter().collect();
        for last in (1..order.len()).rev() {
            order.swap(last, self.below(last + 1));
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Extent;

    /// Launches of one configuration, round by round, whose raw times are near or far.
    fn launches(rounds: &[&[bool]]) -> Vec<Launch> {
        let launch = |round: usize, near: bool| Launch {
            round,
            runtime: "auto".to_owned(),
            benchmark: "latency".to_owned(),
            ranks: 2,
            oversubscribed: false,
            raw: Some(if near { (50.0, 51.0) } else { (50.0, 300.0) }),
            seconds: 1.0,
            failure: None,
            samples: Vec::new(),
        };
        let rounds = (0..).zip(rounds);
        rounds.flat_map(|(round, near)| near.iter().map(move |near| launch(round, *near))).collect()
    }

    #[test]
    fn rounds_of_one_face_settle_a_configuration() {
        let extent = Extent::default();
        let latency = Benchmark::Latency.configurations(&extent).0.remove(0);
        let mixed = launches(&[&[true, true], &[true, false], &[true, true]]);
        assert!(is_settled(&latency, 2, &mixed));
        assert!(!is_settled(&latency, 3, &mixed));
        let many = launches(&[&[true][..]; ENOUGH]);
        assert!(is_settled(&latency, 100, &many));
        let startup = Benchmark::Startup.configurations(&extent).0.remove(0);
        assert!(is_settled(&startup, 3, &mixed), "no message of it is measured");
    }

    #[test]
    fn every_order_comes_about_as_often() {
        let mut lottery = Lottery::new(7);
        let mut counts = std::collections::HashMap::new();
        for _ in 0..6000 {
            *counts.entry(lottery.shuffled(&[1, 2, 3])).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_order() {
        let orders = |seed| {
            let mut lottery = Lottery::new(seed);
            (0..20)
                .map(|_| lottery.shuffled(&[1, 2, 3, 4]).into_iter().copied().collect())
                .collect::<Vec<Vec<i32>>>()
        };
        assert_eq!(orders(3), orders(3));
        assert_ne!(orders(3), orders(4));
    }
}
