//! Tests of the comparison with an earlier run.

use mpj_bench_programs::Sample;

use super::*;
use crate::model::{FORMAT, Launch, RuntimeInfo};

const NEAR: Option<(f64, f64)> = Some((50.0, 60.0));
const FAR: Option<(f64, f64)> = Some((300.0, 200.0));

fn header() -> Header {
    let info = |id: &str| RuntimeInfo { id: id.to_owned(), label: id.to_owned(), ours: true };
    Header {
        format: FORMAT,
        command: String::new(),
        started: "2026-01-02T03:04:05Z".to_owned(),
        machine: vec![("kernel".to_owned(), "Linux 6".to_owned())],
        runtimes: vec![info("eager"), info("auto")],
        thresholds: Vec::new(),
        rounds: 12,
    }
}

/// Six launches of `runtime` around one figure, each a hundredth above the one before.
fn six(runtime: &str, series: &str, figure: f64, raw: Option<(f64, f64)>) -> Vec<Launch> {
    let launch = |round: usize| Launch {
        round,
        runtime: runtime.to_owned(),
        benchmark: series.to_owned(),
        ranks: 2,
        oversubscribed: false,
        raw,
        seconds: 1.0,
        failure: None,
        unclear: Vec::new(),
        samples: vec![Sample {
            series: series.to_owned(),
            x: 8,
            values: vec![figure * (1.0 + round as f64 / 100.0)],
            raw: None,
        }],
    };
    (0..6).map(launch).collect()
}

fn run(launches: impl IntoIterator<Item = Vec<Launch>>) -> Run {
    Run { header: header(), launches: launches.into_iter().flatten().collect() }
}

/// Series, runtime, face, verdict of each line.
fn said(now: &Run, then: &Run) -> Vec<(&'static str, String, Option<Face>, Verdict)> {
    let lines = compare(now, then).into_iter();
    lines.map(|line| (line.series.id, line.runtime, line.face, line.verdict)).collect()
}

#[test]
fn only_intervals_apart_allow_to_say_something() {
    let then = run([six("auto", "latency", 1.0, NEAR)]);
    let verdict = |figure| {
        let lines = compare(&run([six("auto", "latency", figure, NEAR)]), &then);
        assert_eq!(lines.len(), 1);
        let ratio = lines[0].ratio.expect("neither is zero");
        assert!((ratio - figure).abs() < 1e-12);
        lines[0].verdict
    };
    assert_eq!(verdict(0.9), Verdict::Faster);
    assert_eq!(verdict(0.96), Verdict::Open);
    assert_eq!(verdict(1.04), Verdict::Open);
    assert_eq!(verdict(1.1), Verdict::Slower);
    let mut five = run([six("auto", "latency", 9.0, NEAR)]);
    five.launches.pop();
    assert_eq!(compare(&five, &then)[0].verdict, Verdict::Open);
}

#[test]
fn more_of_a_rate_is_faster() {
    let (now, then) = (six("auto", "rate", 4.0, None), six("auto", "rate", 1.0, None));
    let lines = compare(&run([now]), &run([then]));
    assert_eq!((lines[0].ratio, lines[0].verdict), (Some(0.25), Verdict::Faster));
}

#[test]
fn a_figure_of_zero_has_no_ratio() {
    let (now, then) =
        (six("auto", "laplace-share", 0.0, None), six("auto", "laplace-share", 50.0, None));
    let lines = compare(&run([now]), &run([then]));
    assert_eq!((lines[0].ratio, lines[0].verdict), (None, Verdict::Faster));
}

#[test]
fn what_only_one_run_has_is_left_out() {
    let now = run([six("auto", "latency", 1.0, NEAR), six("eager", "rate", 1.0, NEAR)]);
    let then = run([six("auto", "latency", 1.0, NEAR), six("eager", "latency", 1.0, NEAR)]);
    assert_eq!(
        said(&now, &then),
        [("latency", "auto".to_owned(), Some(Face::Near), Verdict::Open)]
    );
}

#[test]
fn faces_are_compared_each_with_itself() {
    let both = |near, far| run([six("auto", "rate", near, NEAR), six("auto", "rate", far, FAR)]);
    let expected = [
        ("rate", "auto".to_owned(), Some(Face::Near), Verdict::Slower),
        ("rate", "auto".to_owned(), Some(Face::Far), Verdict::Faster),
    ];
    assert_eq!(said(&both(1.0, 9.0), &both(2.0, 3.0)), expected);
}

#[test]
fn nothing_is_said_across_faces() {
    let now = run([six("auto", "latency", 9.0, FAR)]);
    let then = run([six("auto", "latency", 1.0, NEAR)]);
    assert_eq!(said(&now, &then), [("latency", "auto".to_owned(), None, Verdict::Open)]);
    let blind = run([six("auto", "latency", 1.0, None)]);
    assert_eq!(compare(&now, &blind)[0].verdict, Verdict::Open);
    let now = run([six("auto", "latency", 9.0, None)]);
    assert_eq!(compare(&now, &blind)[0].verdict, Verdict::Slower);
}

#[test]
fn what_else_differs() {
    let then = run([six("auto", "latency", 1.0, NEAR)]);
    assert_eq!(differences(&then, &then), [""; 0]);
    let mut now = run([six("auto", "latency", 1.0, FAR), six("auto", "latency", 1.0, NEAR)]);
    now.header.machine[0].1 = "Linux 7".to_owned();
    now.header.machine.push(("clock".to_owned(), "tsc".to_owned()));
    now.header.runtimes[0].label = "eager 2".to_owned();
    now.header.runtimes.pop();
    let expected = [
        "kernel: Linux 7 now, Linux 6 then",
        "clock: tsc now, nothing then",
        "runtime eager: eager 2 now, eager then",
        "runtime auto: nothing now, auto then",
        "faces of the machine: near and far now, near then",
    ];
    assert_eq!(differences(&now, &then), expected);
}

#[test]
fn the_text() {
    let now = run([six("auto", "latency", 0.5, NEAR), six("auto", "rate", 0.1, NEAR)]);
    let mut then = run([six("auto", "latency", 1.0, NEAR), six("auto", "rate", 0.1, NEAR)]);
    then.header.machine.clear();
    let golden = "\
# Compared with the run of 2026-01-02T03:04:05Z
# not the same: kernel: Linux 6 now, nothing then
# of 2 figures: 1 faster, 0 slower than then

# Latency, rewritten, 2 ranks
# Size                 runtime           then (us)            now (us)            now/then
8                         auto                1.02               0.512               0.500  faster  near

# Message rate, rewritten, 2 ranks
# Size                 runtime          then (M/s)           now (M/s)            now/then
8                         auto               0.103               0.103               1.000  ~  near
";
    assert_eq!(super::text(&now, &then), golden);
}
