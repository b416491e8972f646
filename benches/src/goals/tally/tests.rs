//! Tests of the tally, on runs that are made up so that the answer is plain.

use super::*;
use crate::page::synthetic;

const PEERS: &[&str] = &["auto", "openmpi", "mpich"];

/// Launches of these jobs, six rounds near and six far. `time` gives the figure of a runtime at a point.
fn run(
    ids: &[&str],
    jobs: &[(&'static str, usize, &[u64])],
    time: impl Fn(&str, &str, u64) -> f64,
) -> Run {
    let header = synthetic::header(ids);
    let mut launches = Vec::new();
    for round in 0..12 {
        for &(series, ranks, xs) in jobs {
            for runtime in &header.runtimes {
                let sample = |&x: &u64| Sample {
                    series: series.to_owned(),
                    x,
                    values: vec![time(&runtime.id, series, x)],
                    raw: (ranks == 2 && series != "startup").then_some(RAW[round / 6]),
                };
                launches.push(Launch {
                    round,
                    runtime: runtime.id.clone(),
                    benchmark: series.to_owned(),
                    ranks,
                    oversubscribed: ranks > 2,
                    raw: Some(RAW[round / 6]),
                    seconds: 0.5,
                    failure: None,
                    unclear: Vec::new(),
                    samples: xs.iter().map(sample).collect(),
                });
            }
        }
    }
    Run { header, launches }
}

/// Near, then far.
const RAW: [(f64, f64); 2] = [(50.0, 60.0), (250.0, 260.0)];

fn of<'a>(standings: &'a [Standing], goal: &str) -> Vec<&'a Standing> {
    standings.iter().filter(|it| it.goal.name == goal).collect()
}

#[test]
fn every_goal_is_about_series_and_points_that_there_are() {
    for goal in GOALS {
        for part in goal.parts {
            let series = Series::named(part.series).expect(goal.name);
            assert!(part.from <= part.to, "{}", goal.name);
            assert!(series.x != X::Ranks || part.from == part.ranks, "{}", goal.name);
        }
    }
}

/// Openmpi is the best peer at 8 and 16, mpich at 64; 20 is no size that counts.
#[test]
fn the_worst_point_is_over_the_best_peer_there() {
    let time = |id: &str, _: &str, x: u64| match (id, x) {
        ("auto", 20) => 9.0,
        ("auto", 64) => 0.55,
        ("auto", _) => 0.4,
        ("openmpi", 64) => 4.0,
        ("openmpi", _) => 1.0,
        (_, 64) => 1.0,
        _ => 2.0,
    };
    let run = run(PEERS, &[("latency", 2, &[4, 8, 16, 20, 64])], time);
    let standings = standings(&run);
    let found = of(&standings, "Latency, 8 to 256 bytes");
    let faces: Vec<_> = found.iter().map(|it| it.face).collect();
    assert_eq!(faces, [Some(Face::Near), Some(Face::Far)]);
    for standing in found {
        let worst = standing.worst().expect("it was measured");
        assert_eq!((worst.x, worst.ratio.median, worst.ratio.peer), (64, 0.55, 2));
        assert_eq!((standing.median(), standing.pairs()), (Some(0.4), Some(6)));
        assert_eq!(standing.word(), Word::Reached);
    }
}

#[test]
fn a_goal_is_missed_by_one_point_and_open_with_few_pairs() {
    let time = |id: &str, _: &str, x: u64| match (id, x) {
        ("auto", 32) => 0.9,
        ("auto", _) => 0.5,
        _ => 1.0,
    };
    let mut run = run(PEERS, &[("latency", 2, &[8, 32])], time);
    let words = |run: &Run| {
        let standings = standings(run);
        of(&standings, "Latency, 8 to 256 bytes").iter().map(|it| it.word()).collect::<Vec<_>>()
    };
    assert_eq!(words(&run), [Word::Missed, Word::Missed]);
    run.launches.retain(|launch| launch.round < 8);
    assert_eq!(words(&run), [Word::Missed, Word::TooFew]);
    run.launches.retain(|launch| launch.round < 6 || launch.runtime == "auto");
    assert_eq!(words(&run), [Word::Missed, Word::NotMeasured]);
}

#[test]
fn crowds_and_starts_are_judged_once_and_two_ranks_by_face() {
    let jobs: &[(&'static str, usize, &[u64])] =
        &[("barrier", 2, &[2]), ("barrier", 4, &[4]), ("startup", 2, &[2]), ("startup", 8, &[8])];
    let time = |id: &str, series: &str, x: u64| match (id, series, x) {
        ("auto", "startup", 8) => 50.0,
        ("auto", "startup", _) => 0.5,
        ("auto", ..) => 1.0,
        _ => 4.0,
    };
    let standings = standings(&run(PEERS, jobs, time));
    let count = |goal: &str| {
        let found = of(&standings, goal);
        let faces: Vec<_> = found.iter().map(|it| it.face).collect();
        (faces, found[0].word(), found[0].points.len())
    };
    let both = vec![Some(Face::Near), Some(Face::Far)];
    let two_ranks = "Barrier, allreduce, broadcast on 2 ranks, up to 8K";
    assert_eq!(count(two_ranks), (both, Word::Reached, 1));
    let reached = (vec![None], Word::Reached, 1);
    assert_eq!(count("Collective calls of 8 bytes on 4 ranks"), reached);
    assert_eq!(count("Start and end of a job of 2 ranks"), reached);
    let nothing = (vec![None], Word::NotMeasured, 0);
    assert_eq!(count("Collective calls of 8 bytes on 8 ranks"), nothing);
    assert_eq!(count("Message rate"), nothing);
}

#[test]
fn near_processors_may_have_a_goal_of_their_own() {
    let run = run(PEERS, &[("latency", 2, &[8])], |id, _, _| if id == "auto" { 0.7 } else { 1.0 });
    let standings = standings(&run);
    let words =
        of(&standings, "Latency, 8 to 256 bytes").into_iter().map(|it| (it.face, it.word()));
    let expected = [(Some(Face::Near), Word::Missed), (Some(Face::Far), Word::Reached)];
    assert_eq!(words.collect::<Vec<_>>(), expected);
}

#[test]
fn claims_rest_on_rewritten_buffers() {
    let series: &[(&'static str, usize, &[u64])] =
        &[("latency-unchanged", 2, &[8]), ("latency-cold", 2, &[8])];
    let run = run(PEERS, series, |_, _, _| 1.0);
    assert!(standings(&run).iter().all(|it| it.word() == Word::NotMeasured));
}

#[test]
fn a_figure_of_ours_may_be_a_goal_by_itself() {
    let time = |_: &str, _: &str, x: u64| if x == 4000 { 90.0 } else { 0.9 };
    let run = run(PEERS, &[("wakeup-cpu", 2, &[4000, 1_000_000])], time);
    let standings = standings(&run);
    let found = of(&standings, "Processor time of a rank blocked for 1 s, in percent");
    let medians: Vec<_> = found.iter().map(|it| (it.median(), it.word())).collect();
    assert_eq!(medians, [(Some(0.9), Word::Reached); 2]);
}

#[test]
fn the_cache_line_is_that_of_the_same_launch() {
    let run = run(&["auto", "openmpi"], &[("latency", 2, &[8])], |_, _, _| 0.110);
    let standings = standings(&run);
    let found = of(&standings, "Latency of 8 bytes by the raw cache line");
    let ratios: Vec<_> = found.iter().map(|it| it.median().expect("it was measured")).collect();
    assert!(
        (ratios[0] - 2.0).abs() < 1e-9 && (ratios[1] - 110.0 / 255.0).abs() < 1e-9,
        "{ratios:?}"
    );
    assert_eq!([found[0].word(), found[1].word()], [Word::Missed, Word::Reached]);
    assert_eq!(found[0].pairs(), Some(6));
}

#[test]
fn we_are_no_peer_of_our_own() {
    let mut run = run(&["auto", "openmpi"], &[("latency", 2, &[8])], |_, _, _| 1.0);
    run.header.runtimes[1].id = SELF.to_owned();
    run.launches
        .iter_mut()
        .filter(|it| it.runtime == "openmpi")
        .for_each(|it| it.runtime = SELF.to_owned());
    let standings = standings(&run);
    assert!(of(&standings, "Latency, 8 to 256 bytes").iter().all(|it| it.points.is_empty()));
}

#[test]
fn auto_is_held_against_the_better_backend() {
    // Of a rate the higher one is better.
    let time = |id: &str, series: &str, x: u64| match (id, series, x) {
        ("auto", "latency", 8) => 1.04,
        ("auto", "latency", 9) => 1.2,
        ("auto", "bandwidth", 8) => 0.9,
        ("eager", "latency", _) => 1.0,
        ("rendezvous", "latency", _) => 3.0,
        ("rendezvous", "bandwidth", _) => 0.5,
        _ => 1.0,
    };
    let jobs: &[(&'static str, usize, &[u64])] =
        &[("latency", 2, &[8, 9]), ("bandwidth", 2, &[8, 9]), ("wakeup", 2, &[8])];
    let excesses = beyond_backends(&run(&["eager", "rendezvous", "auto"], jobs, time));
    let found: Vec<_> =
        excesses.iter().flatten().map(|it| (it.face, it.point.series.id, it.point.x)).collect();
    let of_face = |face| [(Some(face), "latency", 9), (Some(face), "bandwidth", 8)];
    assert_eq!(found, [of_face(Face::Near), of_face(Face::Far)].concat());
    assert!(beyond_backends(&run(PEERS, jobs, time)).is_none());
}
