//! Launches built-in values and alternatives in turn, and pairs neighbouring launches. Ratios use
//! samples of one round with the same processor distance before and after, by the raw cache-line
//! times that the ranks measure beside every figure.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::Command;

use mpj::BackendChoice;
use mpj_bench_programs::order::Effort;
use mpj_bench_programs::{Order, Program, Sample};
use mpj_launcher::machine::Machine;
use mpj_launcher::tuning_file;
use rustix::fs::{MemfdFlags, memfd_create};
use transport_lapi::config::{SETTINGS, Tuning, tuning_entry};

use crate::cache_line::LineFile;
use crate::campaign::Conduct;
use crate::catalogue::{Benchmark, Configuration};
use crate::contender::{Contender, Programs};
use crate::launch;
use crate::model::Distance;
use crate::stats;
use crate::tune::plan::{Arm, Plan};
use crate::tune::verdict::{Aspect, Flow, Pairs, sights};

/// The effort for one size in one launch. The best batch counts, as the least disturbed one.
const EFFORT: Effort = Effort { batches: 5, budget: 2.0 };
/// Wake-ups in one launch.
const WAKE_UPS: Effort = Effort { batches: 10, budget: 0.0 };
/// How long the rank is blocked before a wake-up, in microseconds.
const BLOCKED: u64 = 4000;
/// The largest number of rounds, as a multiple of the planned ones, where the processor distance
/// changes too often.
const MOST_ROUNDS: usize = 3;
/// Early memory that lets the longest compared messages travel eagerly.
const EARLY_LIMIT: &str = "256M";
/// Two spins; the difference of their times gives the time of a turn.
const SPINS: [u32; 2] = [1_000, 16_000];

/// The job of 2 ranks that is launched repeatedly.
#[derive(Debug)]
pub struct Bench {
    /// The programs of mpj.
    pub programs: Programs,
    /// The settings of all launches.
    pub conduct: Conduct,
    /// The planned rounds.
    pub rounds: usize,
}

/// The values for a launch, in an unnamed file.
struct Prepared {
    backend: BackendChoice,
    file: File,
}

impl Prepared {
    fn new(arm: &Arm) -> io::Result<Self> {
        let mut file = File::from(memfd_create(c"mpj-tune", MemfdFlags::CLOEXEC)?);
        file.write_all(tuning_file::text(&arm.tuning, &Machine::here()).as_bytes())?;
        Ok(Self { backend: arm.backend, file })
    }

    /// The path by which other processes of this user open the file.
    fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }
}

impl Bench {
    /// Runs `plan`, calls `watch` after every launch, and returns the pairs of each question.
    ///
    /// # Errors
    /// A one-line reason why a launch failed.
    pub fn answer(&self, plan: &Plan, mut watch: impl FnMut()) -> Result<Vec<Pairs>, String> {
        let arms = prepared(&plan.arms)?;
        let mut pairs = vec![Pairs::default(); plan.questions.len()];
        for round in 0..self.rounds * MOST_ROUNDS {
            for sizes in &plan.groups {
                if round >= self.rounds && is_settled(plan, sizes, &pairs) {
                    continue;
                }
                let mut measured = vec![BTreeMap::new(); arms.len()];
                // Rotates the arms, because the first launch of a round finds the machine in
                // another state.
                for place in 0..arms.len() {
                    let arm = (place + round) % arms.len();
                    measured[arm] = by_aspect(&self.launch(&arms[arm], sizes)?);
                    watch();
                }
                for (question, pairs) in plan.questions.iter().zip(&mut pairs) {
                    let (before, after) = (question.built_in, question.alternative);
                    for &aspect in &question.aspects {
                        add(pairs, aspect, &measured[before], &measured[after]);
                    }
                }
            }
        }
        Ok(pairs)
    }

    /// Measures the microseconds of a turn of polling and of a wake-up, in each round.
    ///
    /// # Errors
    /// A one-line reason why a launch failed.
    pub fn waiting(
        &self,
        tuning: &Tuning,
        mut watch: impl FnMut(),
    ) -> Result<Vec<(f64, f64)>, String> {
        let arm = |spin| {
            let (protocols, pieces) = (tuning.protocols().clone(), tuning.pieces().clone());
            let tuning = Tuning::new(protocols, pieces, spin).expect("a spin within the limits");
            Arm { backend: BackendChoice::Auto, tuning }
        };
        let arms = prepared(&SPINS.map(arm))?;
        let mut rounds = Vec::new();
        for _ in 0..self.rounds {
            let (mut busy, mut wake_up) = ([0.0; 2], f64::INFINITY);
            for (arm, busy) in arms.iter().zip(&mut busy) {
                let samples = self.run(arm, vec![Program::Wakeup], WAKE_UPS, &[8])?;
                let figure = |series: &str| {
                    let sample = samples.iter().find(|sample| sample.series == series);
                    sample.map_or(&[][..], |sample| &sample.values)
                };
                let delay = stats::median(figure("wakeup")).unwrap_or_default();
                let share = stats::median(figure("wakeup-cpu")).unwrap_or_default();
                *busy = share / 100.0 * (BLOCKED as f64 + delay);
                wake_up = figure("wakeup").iter().copied().fold(wake_up, f64::min);
                watch();
            }
            rounds.push(((busy[1] - busy[0]) / f64::from(SPINS[1] - SPINS[0]), wake_up));
        }
        Ok(rounds)
    }

    /// Returns the number of launches of a plan if the processor distance does not change.
    pub fn launches(&self, plan: &Plan) -> usize {
        self.rounds * plan.groups.len() * plan.arms.len()
    }

    fn launch(&self, arm: &Prepared, sizes: &[usize]) -> Result<Vec<Sample>, String> {
        self.run(arm, vec![Program::Latency, Program::Bandwidth], EFFORT, sizes)
    }

    fn run(
        &self,
        arm: &Prepared,
        programs: Vec<Program>,
        effort: Effort,
        sizes: &[usize],
    ) -> Result<Vec<Sample>, String> {
        let (sizes, blocked) = (sizes.to_vec(), vec![BLOCKED]);
        let order = Order { programs, effort, sizes, blocked, ..Order::default() };
        let configuration = Configuration { benchmark: Benchmark::Latency, ranks: 2, order };
        let line = LineFile::new().map_err(|error| format!("cannot make a file: {error}"))?;
        let contender = Contender::mpj(&self.programs, arm.backend);
        let processors = &self.conduct.processors;
        let mut command = contender.command(&configuration.into(), processors, Some(line.path()));
        settle(&mut command, &arm.path());
        let Conduct { patience, stop, .. } = &self.conduct;
        let outcome = launch::run(command, *patience, stop, |_| {});
        outcome.failure.map_or(Ok(outcome.samples), Err)
    }
}

/// Makes `command` read its values from `file` only, without the user's settings.
fn settle(command: &mut Command, file: &std::path::Path) {
    for setting in SETTINGS {
        command.env_remove(setting.name);
    }
    let (name, value) = tuning_entry(file);
    command.env(name, value).env("MPJ_EARLY_LIMIT", EARLY_LIMIT);
}

fn prepared(arms: &[Arm]) -> Result<Vec<Prepared>, String> {
    let prepared: io::Result<_> = arms.iter().map(Prepared::new).collect();
    prepared.map_err(|error| format!("cannot make a file: {error}"))
}

/// Whether the questions about `sizes` have enough pairs at one processor distance.
fn is_settled(plan: &Plan, sizes: &[usize], pairs: &[Pairs]) -> bool {
    plan.questions.iter().zip(pairs).all(|(question, pairs)| {
        let concerns = question.aspects.iter().any(|aspect| sizes.contains(&aspect.1));
        !concerns || !sights(pairs, &question.aspects).is_empty()
    })
}

/// The result of a launch: per aspect the time, in any unit, and the processor distance, if
/// constant.
type Measured = BTreeMap<Aspect, (f64, Distance)>;

fn by_aspect(samples: &[Sample]) -> Measured {
    samples.iter().filter_map(timed).collect()
}

fn timed(sample: &Sample) -> Option<(Aspect, (f64, Distance))> {
    let (before, after) = sample.raw?;
    let distance = Distance::of(before);
    let values = sample.values.iter().copied();
    let (flow, time) = match sample.series.as_str() {
        "latency" => (Flow::Single, values.fold(f64::INFINITY, f64::min)),
        "bandwidth" => (Flow::Stream, 1.0 / values.fold(0.0, f64::max)),
        _ => return None,
    };
    if !time.is_normal() {
        return None;
    }
    (distance == Distance::of(after)).then_some(((flow, sample.x as usize), (time, distance)))
}

fn add(pairs: &mut Pairs, aspect: Aspect, built_in: &Measured, alternative: &Measured) {
    if let (Some(before), Some(after)) = (built_in.get(&aspect), alternative.get(&aspect)) {
        if before.1 == after.1 {
            pairs.add(aspect, before.1, after.0 / before.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(series: &str, value: f64, raw: Option<(f64, f64)>) -> Sample {
        Sample { series: series.to_owned(), x: 64, values: vec![value], raw }
    }

    #[test]
    fn a_sample_without_one_distance_tells_nothing() {
        let near = Some((50.0, 60.0));
        let single = (Flow::Single, 64);
        assert_eq!(timed(&sample("latency", 2.0, near)), Some((single, (2.0, Distance::Near))));
        let stream = (Flow::Stream, 64);
        assert_eq!(timed(&sample("bandwidth", 2.0, near)), Some((stream, (0.5, Distance::Near))));
        assert_eq!(timed(&sample("latency", 2.0, Some((50.0, 300.0)))), None);
        assert_eq!(timed(&sample("latency", 2.0, None)), None);
        assert_eq!(timed(&sample("rate", 2.0, near)), None);
        assert_eq!(timed(&Sample { values: vec![], ..sample("latency", 1.0, near) }), None);
    }

    #[test]
    fn only_samples_of_the_same_distance_make_a_pair() {
        let aspect = (Flow::Single, 64);
        let of = |value, raw| by_aspect(&[sample("latency", value, Some((raw, raw)))]);
        let mut pairs = Pairs::default();
        for _ in 0..6 {
            add(&mut pairs, aspect, &of(2.0, 50.0), &of(1.0, 50.0));
            add(&mut pairs, aspect, &of(2.0, 50.0), &of(9.0, 300.0));
        }
        let seen = sights(&pairs, &[aspect]);
        assert_eq!(seen.len(), 1);
        assert_eq!((seen[0].distance, seen[0].pairs, seen[0].mean), (Distance::Near, 6, 0.5));
    }
}
