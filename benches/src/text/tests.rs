//! Tests of the text: whole tables as a reader sees them.

use mpj_bench_programs::Sample;

use super::*;
use crate::model::{FORMAT, Launch, RuntimeInfo, Threshold};

fn header_of(runtimes: &[(&str, &str)]) -> Header {
    let info = |(id, label): &(&str, &str)| RuntimeInfo {
        id: (*id).to_owned(),
        label: (*label).to_owned(),
        ours: label.starts_with("mpj "),
    };
    Header {
        format: FORMAT,
        command: "cargo mpj bench latency".to_owned(),
        started: "2026-01-02T03:04:05Z".to_owned(),
        machine: vec![("kernel".to_owned(), "Linux 6".to_owned())],
        runtimes: runtimes.iter().map(info).collect(),
        thresholds: vec![Threshold { bytes: 4096, what: "auto: rendezvous".to_owned() }],
        rounds: 6,
    }
}

fn launch(round: usize, runtime: &str, samples: Vec<Sample>) -> Launch {
    Launch {
        round,
        runtime: runtime.to_owned(),
        benchmark: "latency".to_owned(),
        ranks: 2,
        oversubscribed: false,
        raw: Some((50.0, 52.0)),
        seconds: 1.0,
        failure: None,
        unclear: Vec::new(),
        samples,
    }
}

/// Six rounds of latency in which each runtime takes its time for 1 and 4096 bytes, and each round a
/// thousandth more than the one before. A time of zero is not measured.
fn run(runtimes: &[(&str, &str)], times: &[[f64; 2]]) -> Run {
    let header = header_of(runtimes);
    let mut launches = Vec::new();
    for round in 0..6 {
        for (runtime, times) in header.runtimes.iter().zip(times) {
            let samples = times.iter().zip([1, 4096]).filter(|(time, _)| **time > 0.0);
            let values = |time: f64| vec![time * (1.0 + round as f64 / 1e3)];
            let series = "latency".to_owned();
            let samples = samples
                .map(|(time, x)| Sample {
                    series: series.clone(),
                    x,
                    values: values(*time),
                    raw: None,
                })
                .collect();
            launches.push(launch(round, &runtime.id, samples));
        }
    }
    Run { header, launches }
}

fn only_table(run: &Run) -> View {
    let mut tables = analysis::tables(run);
    assert_eq!(tables.len(), 1);
    View { face: None, table: tables.remove(0), usual: true }
}

const PEERS: &[(&str, &str)] = &[
    ("eager", "mpj eager"),
    ("auto", "mpj auto"),
    ("openmpi", "Open MPI 4.1.4"),
    ("mpich", "MPICH 4.0.2"),
];

#[test]
fn a_table_with_peers() {
    let mut run = run(PEERS, &[[0.15, 2.0], [0.16, 1.5], [0.25, 1.5], [0.3, 0.0]]);
    run.launches.pop();
    let text = table(&only_table(&run), &run.header);
    let golden = "\
# MPJ Latency, rewritten Test, 2 ranks, 5 to 6 launches
# Size          mpj eager (us)       mpj auto (us)  Open MPI 4.1.4 (us)    MPICH 4.0.2 (us)      auto/best peer       95 % interval
1                        0.150               0.160                0.251               0.301               0.640      [0.640, 0.640]  faster  openmpi
4096                      2.00                1.50                 1.50                   -               1.000      [1.000, 1.000]  ~  openmpi
";
    assert_eq!(text, golden);
}

#[test]
fn a_table_with_one_peer_and_one_of_ours() {
    let mut run = run(&PEERS[1..3], &[[20.0, 1000.0], [10.0, 1000.25]]);
    run.launches.iter_mut().for_each(|launch| launch.oversubscribed = true);
    let golden = "\
# MPJ Latency, rewritten Test, 2 ranks, 6 launches
# Size           mpj auto (us)  Open MPI 4.1.4 (us)        auto/openmpi       95 % interval
1                         20.0                 10.0               2.000      [2.000, 2.000]  slower  *
4096                      1002                 1003               1.000      [1.000, 1.000]  ~  *
# * more ranks than processors: not to be compared with other rows
";
    assert_eq!(table(&only_table(&run), &run.header), golden);
}

#[test]
fn a_table_without_peers() {
    let run = run(&[PEERS[0], ("rendezvous", "mpj rendezvous")], &[[0.0, 2.0], [0.004, 1.0]]);
    let golden = "\
# MPJ Latency, rewritten Test, 2 ranks, 6 launches
# Size          mpj eager (us)  mpj rendezvous (us)    eager/rendezvous       95 % interval
1                            -              0.00401                   -                   -
4096                      2.00                 1.00               2.000      [2.000, 2.000]  slower
";
    assert_eq!(table(&only_table(&run), &run.header), golden);
}

#[test]
fn a_table_of_one_runtime() {
    let run = run(&[("auto", "mpj\nauto")], &[[1.0, 2.0]]);
    let golden = "\
# MPJ Latency, rewritten Test, 2 ranks, 6 launches
# Size           mpj auto (us)
1                         1.00
4096                      2.00
";
    assert_eq!(table(&only_table(&run), &run.header), golden);
}

#[test]
fn all_details() {
    let run = run(&PEERS[1..], &[[1.0, 0.0], [2.0, 12345678.0], [0.0, 0.0]]);
    let golden = "\
# MPJ Latency, rewritten Test, 2 ranks, 6 launches, figures in us
# mpj auto
# Size                  median       95 % interval      min of batches      p99 of batches                mean             batches            launches
1                         1.00        [1.00, 1.00]                1.00                1.00                1.00                   6                   6
# Open MPI 4.1.4
# Size                  median         95 % interval      min of batches      p99 of batches                mean             batches            launches
1                         2.00          [2.00, 2.01]                2.00                2.01                2.00                   6                   6
4096                  12376542  [12345678, 12407406]            12345678            12407406            12376542                   6                   6
# auto/openmpi
# Size                   ratio       95 % interval               pairs            left out
1                        0.500      [0.500, 0.500]                   6                   0  faster
";
    assert_eq!(details(&only_table(&run), &run.header), golden);
}

#[test]
fn facts_and_the_way_to_read() {
    let mut run = run(&PEERS[1..3], &[[1.0, 1.0], [2.0, 2.0]]);
    run.launches.truncate(3);
    let text = header(&run);
    let facts = "\
# cargo mpj bench latency
# started 2026-01-02T03:04:05Z
# kernel: Linux 6
# runtime auto: mpj auto
# runtime openmpi: Open MPI 4.1.4
# above 4096 bytes, auto: rendezvous
# rounds: 2 of 6, 3 launches
";
    let rest = text.strip_prefix(facts).unwrap_or_else(|| panic!("{text}"));
    assert!(rest.lines().all(|line| line.starts_with("# ")), "{rest}");
    let rest = rest.replace("\n# ", " ");
    for rule in facts::method(&run.header) {
        assert!(rest.contains(rule), "{rest}");
    }
    assert!(rest.contains("~ is open"), "{rest}");
}

#[test]
fn what_happened_to_the_launches() {
    let mut run = run(&PEERS[1..3], &[[1.0, 1.0], [2.0, 2.0]]);
    run.launches.truncate(4);
    run.launches[0].raw = Some((300.0, 310.0));
    run.launches[1].raw = Some((310.0, 50.0));
    run.launches[3].raw = None;
    run.launches[3].failure = Some("no answer\nfor 60 s".to_owned());
    let golden = "\
# The processors of ranks 0 and 1 were near in 1 launch (a cache line takes less than 120 ns one way),
# far in 1, and changed during 1; in the median a cache line took 300 ns before a launch and 52.0 ns
# after it. Figures between ranks stand apart for each face that was seen often enough.
# failed: round 2, openmpi, latency on 2 ranks: no answer for 60 s
";
    assert_eq!(launches_note(&run), golden);
    run.launches.iter_mut().for_each(|launch| (launch.raw, launch.failure) = (None, None));
    let alone = "# No launch saw two processors, so that there is no way between them.\n";
    assert_eq!(launches_note(&run), alone);
    run.launches.clear();
    assert_eq!(launches_note(&run), "");
}

#[test]
fn without_intervals_there_are_no_verdicts() {
    let mut run = run(&PEERS[1..3], &[[1.0, 0.0], [2.0, 0.0]]);
    run.launches.truncate(6);
    let golden = "\
# MPJ Latency, rewritten Test, 2 ranks, 3 launches
# Size           mpj auto (us)  Open MPI 4.1.4 (us)        auto/openmpi       95 % interval
1                         1.00                 2.00               0.500                   -
# no intervals: 3 launches of each
";
    assert_eq!(table(&only_table(&run), &run.header), golden);
}

#[test]
fn sends_to_a_blocked_rank_say_what_to_read_them_with() {
    let mut run = run(&PEERS[1..2], &[[1.0, 0.0]]);
    let samples = run.launches.iter_mut().flat_map(|launch| &mut launch.samples);
    samples.for_each(|sample| sample.series = "wakeup".to_owned());
    let text = table(&only_table(&run), &run.header);
    let note = text.lines().skip(3).map(|line| line.trim_start_matches("# "));
    assert_eq!(note.collect::<Vec<_>>().join(" "), facts::WAKEUP);
}

#[test]
fn paragraphs_are_wrapped_and_lose_nothing() {
    let lines = wrapped(facts::WAKEUP);
    assert!(lines.len() > 1 && lines.iter().all(|line| line.len() <= LINE), "{lines:?}");
    assert_eq!(lines.join(" "), facts::WAKEUP);
}
