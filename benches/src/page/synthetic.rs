//! A run that nobody measured: every series, both faces, for tests of what readers see.

use mpj_bench_programs::series::SERIES;
use mpj_bench_programs::{Sample, Series, Unit, X};

use crate::model::{FORMAT, Header, Launch, Run, RuntimeInfo, Threshold};

/// Where eager and rendezvous are equally fast in latency.
pub const CROSSING: f64 = 12_000.0;

/// Ids, labels, and whether they are ours.
const RUNTIMES: &[(&str, &str, bool)] = &[
    ("eager", "mpj eager", true),
    ("rendezvous", "mpj rendezvous", true),
    ("auto", "mpj auto", true),
    ("openmpi", "Open MPI 4.1.4", false),
    ("mpich", "MPICH 4.0.2", false),
];

/// A header with the runtimes of these ids.
pub fn header(ids: &[&str]) -> Header {
    let chosen = RUNTIMES.iter().filter(|(id, ..)| ids.contains(id));
    let runtime = |&(id, label, ours): &(&str, &str, bool)| {
        let (id, label) = (id.to_owned(), label.to_owned());
        RuntimeInfo { id, label, ours }
    };
    let fact = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Header {
        format: FORMAT,
        command: "cargo mpj bench all --peer openmpi --peer mpich".to_owned(),
        started: "2026-11-21T04:00:00Z".to_owned(),
        machine: vec![
            fact("processor", "Example <4> Processor @ 2.50GHz"),
            fact("usable processors", "2"),
            fact("kernel", "Linux 6.1.0"),
            fact("clock", "tsc, 20 ns"),
        ],
        runtimes: chosen.map(runtime).collect(),
        thresholds: vec![
            Threshold { bytes: 4056, what: "mpj eager: more than one frame".to_owned() },
            Threshold { bytes: 16_384, what: "mpj auto: rendezvous instead of eager".to_owned() },
        ],
        rounds: 14,
    }
}

/// A run of every series over these runtimes, 14 rounds, one half near and one far.
pub fn run(ids: &[&str]) -> Run {
    let header = header(ids);
    let mut noise = Noise(7);
    let mut launches = Vec::new();
    for round in 0..header.rounds {
        let near = round % 2 == 0;
        for series in SERIES {
            for &ranks in jobs(series) {
                for runtime in &header.runtimes {
                    launches.push(launch(&mut noise, series, ranks, &runtime.id, round, near));
                }
            }
        }
    }
    Run { header, launches }
}

fn launch(
    noise: &mut Noise,
    series: &Series,
    ranks: usize,
    runtime: &str,
    round: usize,
    near: bool,
) -> Launch {
    let drift = noise.about_1(0.05);
    let samples = points(series, ranks).into_iter().map(|x| {
        let value = value(series, x, runtime, near) * drift;
        let values = (0..4).map(|_| value * noise.about_1(0.03)).collect();
        Sample::new(series, x, values)
    });
    let samples = samples.collect();
    let way = if near { 60.0 } else { 210.0 };
    Launch {
        round,
        runtime: runtime.to_owned(),
        benchmark: series.id.to_owned(),
        ranks,
        oversubscribed: ranks > 2,
        raw: Some((way * noise.about_1(0.1), way * noise.about_1(0.1))),
        seconds: 0.2,
        failure: None,
        unclear: Vec::new(),
        samples,
    }
}

/// The numbers of ranks on which a series is measured.
fn jobs(series: &Series) -> &'static [usize] {
    match (series.x, series.id) {
        (X::Ranks, _) => &[1, 2, 4, 8],
        (_, "bcast" | "reduce" | "allreduce") => &[2, 4],
        (_, "gather" | "scatter" | "allgather" | "alltoall") => &[2, 4],
        (_, "cannon" | "cannon-share") => &[4],
        _ => &[2],
    }
}

fn points(series: &Series, ranks: usize) -> Vec<usize> {
    let powers = |low: u32, high: u32| (low..=high).map(|power| 1usize << power);
    match (series.x, series.id) {
        (X::Ranks, _) => vec![ranks],
        (X::Blocked, _) => vec![30, 200, 1000, 4000, 1_000_000],
        (X::Bytes, rate) if rate.starts_with("rate") => vec![8],
        (X::Bytes, "latency") => {
            let around = [0, 4055, 4056, 4057, 16_383, 16_385];
            let mut sizes: Vec<_> = powers(0, 24).chain(around).collect();
            sizes.sort_unstable();
            sizes
        }
        (X::Bytes, overlap) if overlap.starts_with("overlap") => {
            powers(10, 22).step_by(4).collect()
        }
        (X::Bytes, "bandwidth" | "bibw") => powers(0, 22).collect(),
        (X::Bytes, other) if other.contains('-') => powers(16, 22).step_by(2).collect(),
        (X::Bytes, _) => vec![8, 1 << 10, 1 << 16, 1 << 20],
        (X::Depth, _) => vec![1, 10, 100, 1000, 10_000],
        (X::Order, "matrix-f32" | "matrix-f64") => powers(0, 11).collect(),
        (X::Order, matrix) if matrix.starts_with("matrix") => powers(5, 11).step_by(3).collect(),
        (X::Order, _) => vec![64, 128, 256, 512, 1024],
    }
}

/// Microseconds for a message of `x` bytes.
fn time(x: usize, runtime: &str, near: bool) -> f64 {
    let bytes = x as f64;
    let way = if near { 0.12 } else { 0.42 };
    match runtime {
        "eager" => 0.10 + way + bytes / 5e3,
        "rendezvous" => 0.10 + way + CROSSING * (1.0 / 5e3 - 1.0 / 11e3) + bytes / 11e3,
        "auto" if bytes <= CROSSING => time(x, "eager", near) * 1.02,
        "auto" => time(x, "rendezvous", near) * 1.01,
        "openmpi" => 0.22 + way + bytes / 8e3,
        _ => 0.15 + way + bytes / 6.5e3,
    }
}

fn value(series: &Series, x: usize, runtime: &str, near: bool) -> f64 {
    let message = time(8, runtime, near);
    match (series.unit, series.x) {
        (Unit::Times, _) => {
            if runtime == "eager" {
                1.9
            } else {
                1.05
            }
        }
        (Unit::Percent, _) => 6.0 + 60.0 * message / (x as f64).sqrt(),
        (Unit::MegabytesPerSecond, _) => x as f64 / time(x, runtime, near),
        (Unit::MillionPerSecond, _) => 4.0 / message,
        (Unit::Milliseconds, _) => 3.0 + 8.0 * message * x as f64,
        (Unit::Gflops, X::Ranks) => 1.9 * (x as f64).min(2.0) / (0.5 + message).sqrt(),
        (Unit::Gflops, _) => 30.0 / (1.0 + 900.0 * message / x as f64),
        (_, X::Depth) => message + x as f64 * if runtime == "mpich" { 2e-3 } else { 4e-4 },
        (_, X::Order) => time(x * x * 8, runtime, near),
        (_, X::Ranks) => message * x as f64 * if x > 2 { 40.0 } else { 1.0 },
        (_, X::Blocked) => 10.0 + message,
        (_, X::Bytes) => time(x, runtime, near),
    }
}

/// Numbers that look random and are the same in every run.
struct Noise(u64);

impl Noise {
    /// 1, give or take `spread`.
    fn about_1(&mut self, spread: f64) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let part = (self.0 >> 11) as f64 / (1u64 << 53) as f64;
        1.0 + spread * (2.0 * part - 1.0)
    }
}
