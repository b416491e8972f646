//! Tests of pairing: small cases by hand, and simulated campaigns that compare a runtime with
//! itself on a machine that drifts, changes its processor distance, and disturbs launches.

use mpj_bench_programs::Sample;

use super::*;
use crate::analysis::{self, Verdict};
use crate::model::{Distance, FORMAT, Header, Launch, Run, RuntimeInfo};
use crate::stats;

fn moments(of: &[(usize, f64)]) -> Vec<Moment> {
    of.iter().map(|&(round, at)| Moment { round, at }).collect()
}

#[test]
fn the_closest_ones_are_paired_first() {
    let ours = moments(&[(0, 0.0), (0, 5.0), (1, 9.0)]);
    let peer = moments(&[(0, 4.0), (1, 8.0)]);
    assert_eq!(pairs(&ours, &peer), [(1, 0), (2, 1)]);
    assert_eq!(pairs(&peer, &ours), [(0, 1), (1, 2)]);
    assert_eq!(pairs(&ours, &[]), []);
}

#[test]
fn what_is_too_far_away_is_not_paired() {
    let ours = moments(&[(0, 0.0)]);
    assert_eq!(pairs(&ours, &moments(&[(REACH, 9.0)])), [(0, 0)]);
    assert_eq!(pairs(&ours, &moments(&[(REACH + 1, 9.0)])), []);
}

/// A deterministic pseudo-random generator.
struct Noise(u64);

impl Noise {
    fn part(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A value of mean 0 and deviation 1; the sum of twelve uniform values is close to normal.
    fn deviation(&mut self) -> f64 {
        (0..12).map(|_| self.part()).sum::<f64>() - 6.0
    }
}

/// A simulated machine.
struct Machine {
    noise: Noise,
    distance: Distance,
    /// The logarithm of its slowdown.
    slowness: f64,
}

impl Machine {
    /// Advances time. The processor distance lasts 12 s on average; the speed wanders by 3 % per
    /// square root of a second and drops by 1 % in 10 s.
    fn pass(&mut self, seconds: f64) {
        if self.noise.part() < seconds / 12.0 {
            self.distance =
                if self.distance == Distance::Near { Distance::Far } else { Distance::Near };
        }
        self.slowness += 0.03 * seconds.sqrt() * self.noise.deviation() + 0.001 * seconds;
    }

    /// The figure that a launch measures for work that takes `time` when the processors are near.
    fn figure(&mut self, time: f64) -> f64 {
        let disturbed = if self.noise.part() < 0.1 { 1.5 } else { 1.0 };
        let way = if self.distance == Distance::Near { 1.0 } else { 4.0 };
        time * way * disturbed * (self.slowness + 0.05 * self.noise.deviation()).exp()
    }

    fn raw(&self) -> f64 {
        if self.distance == Distance::Near { 55.0 } else { 250.0 }
    }

    fn launch(&mut self, round: usize, runtime: &str, time: f64) -> Launch {
        let (before, seconds) = (self.raw(), 0.5 + self.noise.part());
        let values = vec![self.figure(time)];
        self.pass(seconds);
        let raw = Some((before, self.raw()));
        let sample = Sample { series: "latency".to_owned(), x: 8, values, raw: None };
        Launch {
            round,
            runtime: runtime.to_owned(),
            benchmark: "latency".to_owned(),
            ranks: 2,
            oversubscribed: false,
            raw,
            seconds,
            failure: None,
            unclear: Vec::new(),
            samples: vec![sample],
        }
    }
}

/// A campaign of eight runtimes in random order. `auto` and `self` are compared; `self` takes
/// `factor` times as long.
fn campaign(seed: u64, rounds: usize, factor: f64) -> Run {
    let info =
        |id: &str| RuntimeInfo { id: id.to_owned(), label: id.to_owned(), ours: id == "auto" };
    let header = Header {
        format: FORMAT,
        command: String::new(),
        started: String::new(),
        machine: Vec::new(),
        runtimes: ["auto", "self"].map(info).to_vec(),
        thresholds: Vec::new(),
        rounds,
    };
    let noise = Noise(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut machine = Machine { noise, distance: Distance::Far, slowness: 0.0 };
    let mut launches = Vec::new();
    for round in 0..rounds {
        let mut order = ["auto", "self", "a", "b", "c", "d", "e", "f"];
        for last in (1..order.len()).rev() {
            order.swap(last, (machine.noise.part() * (last + 1) as f64) as usize);
        }
        let time = |id: &str| if id == "self" { factor } else { 1.0 };
        launches.extend(order.map(|id| machine.launch(round, id, time(id))));
    }
    Run { header, launches }
}

/// Over many campaigns at both distances: how many have an interval, how many of these hold
/// `truth`, and how many conclude that the first runtime is faster.
fn outcomes(factor: f64, truth: f64) -> [f64; 3] {
    let mut counts = [0.0; 3];
    for seed in 1..=600 {
        let run = campaign(seed, 14, factor);
        for table in analysis::tables(&run) {
            let ratio = table.rows[0].ratio.as_ref();
            let Some(ratio) = ratio.filter(|ratio| ratio.interval.is_some()) else { continue };
            assert!(ratio.pairs >= stats::FEWEST);
            let (low, high) = ratio.interval.expect("it was looked for");
            counts[0] += 1.0;
            counts[1] += f64::from(u8::from((low..=high).contains(&truth)));
            counts[2] += f64::from(u8::from(ratio.verdict == Verdict::Faster));
        }
    }
    counts
}

#[test]
fn a_runtime_beside_itself_is_held_to_be_equal() {
    let [intervals, holding, faster] = outcomes(1.0, 1.0);
    assert!(intervals > 300.0, "too few intervals: {intervals}");
    assert!(holding >= 0.945 * intervals, "{holding} of {intervals} hold 1");
    assert!(faster <= 0.03 * intervals, "{faster} of {intervals} say faster");
}

#[test]
fn a_difference_is_found_and_is_the_right_one() {
    let [intervals, holding, faster] = outcomes(4.0, 0.25);
    assert!(holding >= 0.945 * intervals, "{holding} of {intervals} hold the truth");
    assert!(faster > 0.9 * intervals, "{faster} of {intervals} say faster");
}
