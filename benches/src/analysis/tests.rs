//! Tests of the analysis, on runs that are made up so that the answer is plain.

use mpj_bench_programs::Sample;

use super::*;
use crate::model::{FORMAT, Launch, RuntimeInfo};

const NEAR: Option<(f64, f64)> = Some((50.0, 60.0));
const FAR: Option<(f64, f64)> = Some((300.0, 200.0));
const MIXED: Option<(f64, f64)> = Some((50.0, 300.0));

fn header(ids: &[&str]) -> Header {
    let ours = ["auto", "eager", "rendezvous"];
    let info = |id: &&str| RuntimeInfo {
        id: (*id).to_owned(),
        label: format!("the {id}"),
        ours: ours.contains(id),
    };
    Header {
        format: FORMAT,
        command: String::new(),
        started: String::new(),
        machine: Vec::new(),
        runtimes: ids.iter().map(info).collect(),
        thresholds: Vec::new(),
        rounds: 100,
    }
}

/// A launch of `benchmark` with one figure of the series of that name.
fn launch(round: usize, runtime: &str, series: &str, x: u64, values: &[f64]) -> Launch {
    let sample = Sample { series: series.to_owned(), x, values: values.to_vec(), raw: None };
    Launch {
        round,
        runtime: runtime.to_owned(),
        benchmark: series.to_owned(),
        ranks: 2,
        oversubscribed: false,
        raw: NEAR,
        seconds: 1.0,
        failure: None,
        unclear: Vec::new(),
        samples: vec![sample],
    }
}

/// The time of a runtime in each round.
type Times = fn(usize) -> f64;

/// `rounds` rounds of latency at 8 bytes in which `auto` and `openmpi` take what the functions say.
fn duel(rounds: usize, auto: Times, openmpi: Times) -> Run {
    let of_round = |round| {
        [("openmpi", openmpi(round)), ("auto", auto(round))]
            .map(|(runtime, value)| launch(round, runtime, "latency", 8, &[value]))
    };
    Run { header: header(&["auto", "openmpi"]), launches: (0..rounds).flat_map(of_round).collect() }
}

fn only_row(run: &Run) -> Row {
    let mut tables = tables(run);
    assert_eq!(tables.len(), 1);
    assert_eq!(tables[0].rows.len(), 1);
    tables.remove(0).rows.remove(0)
}

fn only_ratio(run: &Run) -> Ratio {
    let row = only_row(run);
    assert_eq!(row.ratios.len(), 1);
    row.ratios[0].clone()
}

#[test]
fn a_launch_counts_as_its_median() {
    let raw: [&[f64]; 3] = [&[1.0, 2.0, 90.0], &[4.0], &[3.0, 3.0, 3.0, 3.0]];
    let launches = raw.iter().enumerate();
    let launches = launches.map(|(round, raw)| launch(round, "auto", "latency", 8, raw)).collect();
    let row = only_row(&Run { header: header(&["auto", "openmpi"]), launches });
    let expected = Estimate {
        median: 3.0,
        interval: None,
        min: 1.0,
        p99: 90.0,
        mean: 109.0 / 8.0,
        n: 8,
        launches: 3,
    };
    assert_eq!(row.cells, [Some(expected), None]);
    assert_eq!(row.ratios, []);
}

#[test]
fn tables_come_in_the_order_of_the_series_then_by_ranks_then_by_x() {
    let run = |x, ranks, series| Launch { ranks, ..launch(0, "auto", series, x, &[1.0]) };
    let launches = vec![
        run(4, 4, "laplace"),
        run(8, 4, "bcast"),
        run(1, 1, "laplace"),
        run(1024, 2, "bcast"),
        run(8, 2, "bcast"),
        run(2, 2, "latency"),
    ];
    let tables = tables(&Run { header: header(&["auto"]), launches });
    let shape = |table: &Table| {
        (table.series.id, table.ranks, table.rows.iter().map(|row| row.x).collect::<Vec<_>>())
    };
    let expected = [
        ("latency", Some(2), vec![2]),
        ("bcast", Some(2), vec![8, 1024]),
        ("bcast", Some(4), vec![8]),
        ("laplace", None, vec![1, 4]),
    ];
    assert_eq!(tables.iter().map(shape).collect::<Vec<_>>(), expected);
}

#[test]
fn figures_of_nobody_and_without_values_are_left_out() {
    let launches = vec![
        launch(0, "mpich", "latency", 8, &[1.0]),
        launch(0, "auto", "warp", 8, &[1.0]),
        launch(0, "auto", "latency", 8, &[]),
    ];
    assert_eq!(tables(&Run { header: header(&["auto"]), launches }), []);
}

#[test]
fn one_launch_counts_once_at_a_point() {
    let mut twice = launch(0, "auto", "latency", 8, &[5.0]);
    twice.samples.push(Sample { values: vec![9.0], ..twice.samples[0].clone() });
    let row = only_row(&Run { header: header(&["auto"]), launches: vec![twice] });
    let cell = row.cells[0].as_ref().expect("it was measured");
    assert_eq!((cell.launches, cell.median), (1, 5.0));
}

#[test]
fn ratios_are_made_of_neighbours() {
    // The machine slows down tenfold in each round; the ratio stays.
    let run =
        duel(4, |round| 10.0_f64.powi(round as i32), |round| 2.0 * 10.0_f64.powi(round as i32));
    let ratio = only_ratio(&run);
    assert_eq!((ratio.ours, ratio.peer), (0, 1));
    assert_eq!((ratio.median, ratio.interval), (0.5, None));
    assert_eq!((ratio.pairs, ratio.alone, ratio.verdict), (4, 0, Verdict::Open));
}

#[test]
fn a_rate_gives_a_ratio_of_times() {
    let rate = |round, runtime, value| launch(round, runtime, "bandwidth", 8, &[value]);
    let of_round = |round| [rate(round, "auto", 4000.0), rate(round, "openmpi", 1000.0)];
    let launches = (0..6).flat_map(of_round).collect();
    let ratio = only_ratio(&Run { header: header(&["auto", "openmpi"]), launches });
    assert_eq!((ratio.median, ratio.verdict), (0.25, Verdict::Faster));
}

#[test]
fn verdicts() {
    let spread = |round: usize| 1.0 + 0.01 * round as f64;
    let cases: [(usize, Times, Times, Verdict); 5] = [
        (6, |round| 1.0 + 0.01 * round as f64, |_| 2.0, Verdict::Faster),
        (6, |_| 2.0, |round| 1.0 + 0.01 * round as f64, Verdict::Slower),
        // Too few launches for intervals.
        (5, |_| 1.0, |_| 2.0, Verdict::Open),
        // Every ratio is 0.9, but the figures overlap.
        (8, |round| 0.9 * (1.0 + round as f64), |round| 1.0 + round as f64, Verdict::Open),
        (8, |_| 1.0, |_| 1.0, Verdict::Open),
    ];
    for (rounds, auto, openmpi, verdict) in cases {
        assert_eq!(only_ratio(&duel(rounds, auto, openmpi)).verdict, verdict, "{rounds} rounds");
    }
    assert_eq!(only_ratio(&duel(6, spread, |_| 2.0)).interval, Some((0.5, 0.525)));
}

#[test]
fn faces_are_not_mixed() {
    let mut run = duel(6, |_| 1.0, |_| 2.0);
    let faces =
        [(NEAR, NEAR), (FAR, FAR), (NEAR, FAR), (MIXED, NEAR), (MIXED, MIXED), (None, None)];
    for (pair, faces) in run.launches.chunks_mut(2).zip(faces) {
        (pair[0].raw, pair[1].raw) = faces;
    }
    // The near ones of rounds 2 and 3 are neighbours.
    let ratio = only_ratio(&run);
    assert_eq!((ratio.pairs, ratio.alone), (4, 2));
    let figures = |sight| {
        let run = by_sight(&run, sight);
        assert_eq!(run.launches.len(), 12);
        run.launches.iter().map(|launch| launch.samples.len()).sum::<usize>()
    };
    assert_eq!([Sight::One(Face::Near), Sight::One(Face::Far)].map(figures), [4, 3]);
    assert_eq!([Sight::Both, Sight::Any].map(figures), [3, 2]);
    run.launches.iter_mut().for_each(|launch| launch.raw = MIXED);
    assert_eq!(only_row(&run).ratios, []);
    assert_eq!(only_row(&run).cells[0].as_ref().map(|cell| cell.launches), Some(6));
}

/// In the rounds that are left out everything is slow, for `auto` only: with those launches its
/// interval would reach that of the peer.
#[test]
fn a_verdict_rests_on_the_paired_launches() {
    let slow = |round: usize| if round < 6 { 1.0 } else { 9.0 };
    let mut run = duel(12, slow, |_| 2.0);
    run.launches[12..].iter_mut().for_each(|launch| launch.raw = MIXED);
    let cell = only_row(&run).cells[0].clone().expect("it was measured");
    assert_eq!(cell.interval, Some((1.0, 9.0)));
    let ratio = only_ratio(&run);
    assert_eq!((ratio.pairs, ratio.alone, ratio.verdict), (6, 6, Verdict::Faster));
}

#[test]
fn several_launches_of_a_round_pair_by_time() {
    let launches =
        [("auto", 1.0), ("auto", 6.0), ("openmpi", 4.0), ("openmpi", 3.0), ("auto", 9.0)];
    let launches = launches.map(|(runtime, value)| launch(0, runtime, "latency", 8, &[value]));
    let run = Run { header: header(&["auto", "openmpi"]), launches: launches.to_vec() };
    let ratio = only_ratio(&run);
    assert_eq!((ratio.pairs, ratio.alone, ratio.median), (2, 1, (1.5 + 3.0) / 2.0));
}

#[test]
fn what_is_caught_of_a_face_counts_by_pairs() {
    let mut run = duel(8, |_| 1.0, |_| 2.0);
    // One of them is near in the rounds 0 and 1, the other in 1 and 2.
    for (place, launch) in run.launches.iter_mut().enumerate() {
        let near = if place % 2 == 0 { 0..2 } else { 1..3 };
        launch.raw = if near.contains(&launch.round) { NEAR } else { FAR };
    }
    let expected = Catch { pairs: [2, 6], figures: [4, 12] };
    assert_eq!(catches(&run), [Some(expected)]);
    run.launches.retain(|launch| launch.runtime == "auto" || launch.round > 6);
    // The peer gave up; so there is no other, and figures count.
    assert_eq!(catches(&run)[0].map(|it| it.pairs), Some([2, 6]));
    // And where it is ours that has no such call.
    run.launches.retain(|launch| launch.runtime == "auto");
    run.launches.iter_mut().for_each(|launch| launch.runtime = "openmpi".to_owned());
    assert_eq!(catches(&run)[0].map(|it| it.pairs), Some([2, 6]));
    run.launches.iter_mut().for_each(|launch| launch.oversubscribed = true);
    assert_eq!(catches(&run), [None]);
}

#[test]
fn a_figure_of_zero_makes_no_ratio() {
    let zero_first = |round: usize| if round == 0 { 0.0 } else { 1.0 };
    let ratio = only_ratio(&duel(3, zero_first, |_| 2.0));
    assert_eq!((ratio.pairs, ratio.alone), (2, 0));
    assert_eq!(only_ratio(&duel(3, |_| 2.0, zero_first)).pairs, 2);
    assert_eq!(only_row(&duel(3, |_| 0.0, |_| 0.0)).ratios, []);
}

#[test]
fn pairs_with_and_without_peers() {
    let pairs = |ids: &[&str]| pairs(&header(ids));
    assert_eq!(pairs(&["eager", "auto", "openmpi", "self"]), [(0, 2), (0, 3), (1, 2), (1, 3)]);
    assert_eq!(pairs(&["auto", "eager", "rendezvous"]), [(1, 2), (0, 2), (0, 1)]);
    assert_eq!(pairs(&["auto", "eager"]), [(0, 1)]);
    assert_eq!(pairs(&["auto"]), []);
    assert_eq!(pairs(&["openmpi"]), []);
}

#[test]
fn the_best_peer_depends_on_what_is_better() {
    let ids = ["auto", "openmpi", "mpich", "impi"];
    let figures = [1.0, 5.0, 3.0];
    let launches = ids.iter().zip(figures).map(|(id, it)| launch(0, id, "latency", 8, &[it]));
    let row = only_row(&Run { header: header(&ids), launches: launches.collect() });
    assert_eq!(row.best_peer(Better::Lower, &header(&ids)), Some(2));
    assert_eq!(row.best_peer(Better::Higher, &header(&ids)), Some(1));
    assert_eq!(row.best_peer(Better::Lower, &header(&["auto"])), None);
    assert!(row.ratio(0, 2).is_some() && row.ratio(0, 3).is_none());
}

/// A table of one launch, with the figures of eager and rendezvous at 1, 2, 4...
fn contest(series: &str, eager: &[f64], rendezvous: &[f64]) -> (Header, Table) {
    let header = header(&["rendezvous", "eager"]);
    let samples = |id: &str, values: &[f64]| {
        let points = values.iter().enumerate().filter(|point| *point.1 > 0.0);
        let mut launch = launch(0, id, series, 0, &[]);
        launch.samples = points
            .map(|(place, value)| Sample {
                series: series.to_owned(),
                x: 1 << place,
                values: vec![*value],
                raw: None,
            })
            .collect();
        launch
    };
    let launches = vec![samples("eager", eager), samples("rendezvous", rendezvous)];
    let table = tables(&Run { header: header.clone(), launches }).remove(0);
    (header, table)
}

#[test]
fn crossovers() {
    let crossover = |series, eager: &[f64], rendezvous: &[f64]| {
        let (header, table) = contest(series, eager, rendezvous);
        crossover(&table, &header)
    };
    assert_eq!(crossover("latency", &[1.0, 2.0, 3.0, 9.0], &[3.0, 1.0, 3.5, 4.0]), Some(8));
    assert_eq!(crossover("latency", &[1.0, 2.0, 3.0], &[3.0, 2.0, 2.9]), Some(2));
    assert_eq!(crossover("latency", &[1.0, 2.0], &[0.5, 0.5]), Some(1));
    assert_eq!(crossover("latency", &[1.0, 2.0], &[0.5, 2.5]), None);
    assert_eq!(crossover("bandwidth", &[1.0, 2.0], &[0.5, 2.5]), Some(2));
    // A point that lacks one of them says nothing.
    assert_eq!(crossover("latency", &[2.0, 2.0, 0.0], &[3.0, 1.0, 1.0]), Some(2));
    assert_eq!(crossover("latency", &[1.0], &[]), None);
    let (_, table) = contest("latency", &[1.0], &[1.0]);
    assert_eq!(super::crossover(&table, &header(&["eager", "auto"])), None);
}

#[test]
fn speedups_are_over_one_rank() {
    let (names, table) = contest("laplace", &[2.0, 3.0, 5.0], &[0.0, 3.0]);
    let expected = [vec![], vec![(1, 1.0), (2, 1.5), (4, 2.5)]];
    assert_eq!(speedups(&table, &names), expected);
    for series in ["laplace-share", "cannon"] {
        let (names, table) = contest(series, &[2.0, 3.0], &[1.0, 1.0]);
        assert_eq!(speedups(&table, &names), [[]; 0], "{series}");
    }
}

#[test]
fn overall_is_made_of_geometric_means_of_rounds() {
    let header = header(&["auto", "self"]);
    let mut launches = Vec::new();
    for round in 0..6 {
        // Ratios 4 and 1/4 in every round, whose mean is 1; in the last one 4 and 1.
        for (x, auto) in [(8, 4.0), (16, if round == 5 { 1.0 } else { 0.25 })] {
            launches.push(launch(round, "auto", "latency", x, &[auto]));
            launches.push(launch(round, "self", "latency", x, &[1.0]));
        }
    }
    launches.push(launch(0, "auto", "rate", 8, &[7.0]));
    launches.push(launch(0, "self", "rate", 8, &[1.0]));
    let run = Run { header, launches };
    let table = &tables(&run)[0];
    let ratio = overall(&run, table, 0, 1).expect("there are pairs");
    assert!((ratio.median - 1.0).abs() < 1e-12, "{ratio:?}");
    let (low, high) = ratio.interval.expect("there are six rounds");
    assert!((low - 1.0).abs() < 1e-12 && (high - 2.0).abs() < 1e-12, "{ratio:?}");
    assert_eq!((ratio.pairs, ratio.alone, ratio.verdict), (6, 0, Verdict::Open));
    assert_eq!(overall(&by_face(&run, Face::Far), table, 0, 1), None);
}

#[test]
fn a_row_is_oversubscribed_if_a_launch_was() {
    let mut run = duel(2, |_| 1.0, |_| 2.0);
    assert!(!only_row(&run).oversubscribed);
    run.launches[0].oversubscribed = true;
    assert!(only_row(&run).oversubscribed);
}
