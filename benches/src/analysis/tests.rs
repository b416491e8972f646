//! Tests of the analysis on made-up runs with a known answer.

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

/// A launch with one figure of `series`.
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

/// The time of a runtime by round.
type Times = fn(usize) -> f64;

/// A run of latency at 8 bytes in which `auto` and `openmpi` take the given times.
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
    only_row(run).ratio.expect("both were measured")
}

#[test]
fn a_launch_counts_as_its_median() {
    let raw: [&[f64]; 3] = [&[1.0, 2.0, 90.0], &[4.0], &[3.0, 3.0, 3.0, 3.0]];
    let launches = raw.iter().enumerate();
    let launches = launches.map(|(round, raw)| launch(round, "auto", "latency", 8, raw)).collect();
    let row = only_row(&Run { header: header(&["auto", "openmpi"]), launches });
    let expected = Estimate { median: 3.0, interval: None, launches: 3 };
    assert_eq!((row.cells, row.ratio), (vec![Some(expected), None], None));
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
    // The machine slows down tenfold each round; the ratio stays the same.
    let run =
        duel(4, |round| 10.0_f64.powi(round as i32), |round| 2.0 * 10.0_f64.powi(round as i32));
    let ratio = only_ratio(&run);
    assert_eq!((ratio.peer, ratio.median, ratio.interval), (1, 0.5, None));
    assert_eq!((ratio.pairs, ratio.verdict), (4, Verdict::Open));
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
fn distances_have_tables_of_their_own() {
    let mut run = duel(8, |_| 1.0, |_| 2.0);
    for (pair, raw) in run.launches.chunks_mut(2).zip([NEAR, FAR, MIXED].into_iter().cycle()) {
        pair.iter_mut().for_each(|launch| launch.raw = raw);
    }
    let shape = |run: &Run| {
        let of_table =
            |table: &Table| (table.distance, table.rows[0].ratio.clone().map(|it| it.pairs));
        tables(run).iter().map(of_table).collect::<Vec<_>>()
    };
    assert_eq!(shape(&run), [(Some(Distance::Near), Some(3)), (Some(Distance::Far), Some(3))]);
    // A distance seen only once has no table.
    run.launches.iter_mut().for_each(|launch| launch.raw = FAR);
    run.launches[0].raw = NEAR;
    assert_eq!(shape(&run), [(Some(Distance::Far), Some(7))]);
    run.launches.iter_mut().for_each(|launch| launch.oversubscribed = true);
    assert_eq!(shape(&run), [(None, Some(8))]);
    run.launches.iter_mut().for_each(|launch| launch.samples[0].series = "barrier".to_owned());
    run.launches.iter_mut().for_each(|launch| launch.oversubscribed = false);
    assert_eq!(shape(&run), [(None, Some(8))], "series over ranks are not split");
}

/// The first round has no partner within reach. `auto` is slow there: including that launch would
/// make its interval overlap the peer's.
#[test]
fn a_verdict_rests_on_the_paired_launches() {
    let mut run = duel(12, |round| if round < 6 { 9.0 } else { 1.0 }, |_| 2.0);
    run.launches.retain(|launch| launch.runtime == "auto" || launch.round >= 6);
    run.launches.iter_mut().filter(|it| it.round < 6).for_each(|launch| launch.round = 0);
    let cell = only_row(&run).cells[0].clone().expect("it was measured");
    assert_eq!(cell.interval, Some((1.0, 9.0)));
    let ratio = only_ratio(&run);
    assert_eq!((ratio.pairs, ratio.verdict), (6, Verdict::Faster));
}

#[test]
fn several_launches_of_a_round_pair_by_time() {
    let launches =
        [("auto", 1.0), ("auto", 6.0), ("openmpi", 4.0), ("openmpi", 3.0), ("auto", 9.0)];
    let launches = launches.map(|(runtime, value)| launch(0, runtime, "latency", 8, &[value]));
    let run = Run { header: header(&["auto", "openmpi"]), launches: launches.to_vec() };
    let ratio = only_ratio(&run);
    assert_eq!((ratio.pairs, ratio.median), (2, (1.5 + 3.0) / 2.0));
}

#[test]
fn a_figure_of_zero_makes_no_ratio() {
    let zero_first = |round: usize| if round == 0 { 0.0 } else { 1.0 };
    assert_eq!(only_ratio(&duel(3, zero_first, |_| 2.0)).pairs, 2);
    assert_eq!(only_ratio(&duel(3, |_| 2.0, zero_first)).pairs, 2);
    assert_eq!(only_row(&duel(3, |_| 0.0, |_| 0.0)).ratio, None);
}

#[test]
fn the_principal_runtime_is_compared_with_peers_or_itself_or_backends() {
    let contest = |ids: &[&str]| (principal(&header(ids)), others(&header(ids)));
    assert_eq!(contest(&["eager", "auto", "openmpi", "self"]), (Some(1), vec![2]));
    assert_eq!(contest(&["eager", "auto", "self"]), (Some(1), vec![2]));
    assert_eq!(contest(&["auto", "eager", "rendezvous"]), (Some(0), vec![1, 2]));
    assert_eq!(contest(&["eager", "rendezvous"]), (Some(0), vec![1]));
    assert_eq!(contest(&["auto"]), (Some(0), vec![]));
    assert_eq!(contest(&["openmpi"]).0, None);
}

#[test]
fn the_best_peer_depends_on_what_is_better() {
    let ids = ["auto", "openmpi", "mpich", "impi"];
    let figures = [1.0, 5.0, 3.0];
    for (series, best) in [("latency", 2), ("bandwidth", 1)] {
        let launches = ids.iter().zip(figures).map(|(id, it)| launch(0, id, series, 8, &[it]));
        let ratio = only_ratio(&Run { header: header(&ids), launches: launches.collect() });
        assert_eq!(ratio.peer, best, "{series}");
    }
}

#[test]
fn a_row_is_oversubscribed_as_its_launches_were() {
    let mut run = duel(2, |_| 1.0, |_| 2.0);
    assert!(!only_row(&run).oversubscribed);
    run.launches.iter_mut().for_each(|launch| launch.oversubscribed = true);
    assert!(only_row(&run).oversubscribed);
}
