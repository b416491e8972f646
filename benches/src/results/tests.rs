//! Sentences about constructed data, and the document of a run that nobody measured.

use super::findings::answers;
use super::*;
use crate::analysis::{Ratio, Verdict};
use crate::page::synthetic;
use crate::views::is_settled;

const ALL: &[&str] = &["eager", "rendezvous", "auto", "openmpi", "mpich"];

fn estimate_of(median: f64) -> Estimate {
    let interval = Some((median * 0.99, median * 1.01));
    Estimate { median, interval, min: median, p99: median, mean: median, n: 6, launches: 6 }
}

fn ratio_of(ours: usize, peer: usize, median: f64, verdict: Verdict) -> Ratio {
    let interval = Some((median * 0.99, median * 1.01));
    Ratio { ours, peer, median, interval, pairs: 6, alone: 0, verdict }
}

/// A view of latency with runtimes auto and mpich, and this verdict and ratio at each size.
fn against_mpich(points: &[(u64, Verdict, f64)]) -> (Header, View) {
    let row = |&(x, verdict, ratio): &(u64, Verdict, f64)| Row {
        x,
        oversubscribed: false,
        cells: vec![Some(estimate_of(ratio)), Some(estimate_of(1.0))],
        ratios: vec![ratio_of(0, 1, ratio, verdict)],
    };
    let series = Series::named("latency").unwrap();
    let table = Table { series, ranks: Some(2), rows: points.iter().map(row).collect() };
    (synthetic::header(&["auto", "mpich"]), View { face: None, table, usual: true })
}

fn sentences(header: &Header, view: View, heading: &str) -> Vec<String> {
    let answers = answers(header, &[view]);
    let found = answers.into_iter().find(|answer| answer.heading == heading);
    found.map(|answer| answer.sentences).unwrap_or_default()
}

#[test]
fn wins_losses_and_doubts_are_told_apart() {
    use Verdict::{Faster, Open, Slower};
    let points = [
        (0, Faster, 0.5),
        (1, Faster, 0.5),
        (1024, Open, 1.0),
        (2048, Faster, 0.4),
        (4096, Slower, 2.0),
    ];
    let (header, view) = against_mpich(&points);
    let expected = "Latency, rewritten: faster at 3 of 5 sizes (0 to 1, 2K), open at 1 (1K), slower at \
                    1 (4K). Medians of the ratios: 0.400–0.500 where faster, 2.000 where slower.";
    assert_eq!(sentences(&header, view, "mpj auto against MPICH 4.0.2"), [expected]);
}

#[test]
fn one_verdict_for_all_is_said_once() {
    let points = [(1, Verdict::Slower, 2.0), (2, Verdict::Slower, 2.0)];
    let (header, view) = against_mpich(&points);
    let expected =
        "Latency, rewritten: slower at all 2 sizes. Medians of the ratios: 2.000 where slower.";
    assert_eq!(sentences(&header, view, "mpj auto against MPICH 4.0.2"), [expected]);
}

/// A view of latency with runtimes eager and rendezvous and these times, without ratios.
fn of_backends(points: &[(u64, f64, f64)]) -> (Header, View) {
    let row = |&(x, eager, rendezvous): &(u64, f64, f64)| Row {
        x,
        oversubscribed: false,
        cells: vec![Some(estimate_of(eager)), Some(estimate_of(rendezvous))],
        ratios: Vec::new(),
    };
    let series = Series::named("latency").unwrap();
    let table = Table { series, ranks: Some(2), rows: points.iter().map(row).collect() };
    (synthetic::header(&["eager", "rendezvous"]), View { face: None, table, usual: true })
}

#[test]
fn the_crossover_is_named() {
    let points = [(1, 1.0, 2.0), (1024, 2.0, 2.0), (2048, 4.0, 3.0), (4096, 8.0, 4.0)];
    let (header, view) = of_backends(&points);
    let expected = "Latency, rewritten: eager is faster at 1; rendezvous is faster at 2K to 4K; open at \
                    1K. Crossover by medians: rendezvous is not behind from 1K on.";
    assert_eq!(sentences(&header, view, "Eager or rendezvous"), [expected]);
}

#[test]
fn no_crossover_is_no_crossover() {
    let (header, view) = of_backends(&[(1, 1.0, 2.0), (1024, 2.0, 4.0)]);
    let expected = "Latency, rewritten: eager is faster at 1 to 1K. No crossover by medians: eager is \
                    ahead at the largest, 1K.";
    assert_eq!(sentences(&header, view, "Eager or rendezvous"), [expected]);
    let (header, view) = of_backends(&[(1, 2.0, 1.0), (1024, 2.0, 1.0)]);
    let expected = "Latency, rewritten: rendezvous is faster at 1 to 1K. No crossover by medians: \
                    rendezvous is never behind.";
    assert_eq!(sentences(&header, view, "Eager or rendezvous"), [expected]);
}

/// A threshold at 1000 would otherwise count thrice.
#[test]
fn neighbours_of_thresholds_do_not_count() {
    use Verdict::{Faster, Slower};
    let points = [
        (0, Faster, 0.5),
        (512, Faster, 0.5),
        (999, Slower, 2.0),
        (1000, Slower, 2.0),
        (1001, Slower, 2.0),
        (1024, Faster, 0.5),
    ];
    let (header, view) = against_mpich(&points);
    let expected =
        "Latency, rewritten: faster at all 3 sizes. Medians of the ratios: 0.500 where faster.";
    assert_eq!(sentences(&header, view, "mpj auto against MPICH 4.0.2"), [expected]);
    let (header, view) = against_mpich(&points[2..5]);
    let expected =
        "Latency, rewritten: slower at all 3 sizes. Medians of the ratios: 2.000 where slower.";
    assert_eq!(sentences(&header, view, "mpj auto against MPICH 4.0.2"), [expected]);
}

#[test]
fn more_ranks_than_processors_are_counted_apart() {
    let points = [(1, Verdict::Faster, 0.05), (2, Verdict::Slower, 2.0)];
    let (header, mut view) = against_mpich(&points);
    view.table.rows[1].oversubscribed = true;
    let expected = [
        "Latency, rewritten: faster. Medians of the ratios: 0.0500 where faster.",
        "Latency, rewritten *: slower. Medians of the ratios: 2.000 where slower.",
    ];
    assert_eq!(sentences(&header, view, "mpj auto against MPICH 4.0.2"), expected);
}

#[test]
fn without_intervals_nothing_is_open() {
    let (header, mut view) = against_mpich(&[(1, Verdict::Open, 0.5), (2, Verdict::Open, 2.0)]);
    view.table.rows[0].ratios[0].interval = None;
    let heading = "mpj auto against MPICH 4.0.2";
    assert_eq!(
        sentences(&header, view.clone(), heading),
        ["Latency, rewritten: open at all 2 sizes."]
    );
    view.table.rows[1].ratios[0].interval = None;
    let expected = "Latency, rewritten: no intervals: 6 launches of each.";
    assert_eq!(sentences(&header, view, heading), [expected]);
}

#[test]
fn a_run_of_few_rounds_says_that_there_are_no_intervals() {
    let mut run = synthetic::run(ALL);
    run.launches.retain(|launch| launch.round == 0);
    let text = markdown(&run);
    assert!(text.contains("| no intervals: 1 launch of each |"));
    assert!(text.contains("There are no intervals, so nothing is said: one takes 6 launches"));
    for word in ["Nowhere", " open |", " faster at", " slower at"] {
        assert!(!text.contains(word), "{word}");
    }
}

#[test]
fn a_wait_is_shown_with_what_it_costs() {
    let mut run = synthetic::run(&["auto", "mpich"]);
    let slow = run.launches.iter_mut().filter(|it| it.runtime == "auto");
    let samples = slow.flat_map(|launch| &mut launch.samples).filter(|it| it.series == "wakeup");
    samples.flat_map(|sample| &mut sample.values).for_each(|value| *value *= 9.0);
    let text = markdown(&run);
    let line = text.lines().find(|line| line.starts_with("- Send to a blocked rank, near: "));
    let line = line.expect("it is slower");
    assert!(line.contains(". Processor time while blocked: mpj auto "), "{line}");
    assert!(line.contains(" %, MPICH 4.0.2 "), "{line}");
    assert!(text.contains(facts::WAKEUP));
}

#[test]
fn peers_are_named_where_there_are_some() {
    let mut run = synthetic::run(&["eager", "rendezvous"]);
    run.header.command = "cargo mpj bench".to_owned();
    let text = markdown(&run);
    assert!(!text.to_lowercase().contains("peer"), "{text}");
    assert!(markdown(&synthetic::run(ALL)).contains("- Beside peers, eager and rendezvous"));
}

#[test]
fn faces_have_tables_of_their_own_if_both_were_seen() {
    let names = |run: &Run| -> Vec<String> {
        views::of(run, &analysis::tables(run)).iter().map(View::name).collect()
    };
    let all = synthetic::run(&["auto", "mpich"]);
    let split = names(&all);
    assert_eq!(split[..2], ["Latency, rewritten, near", "Latency, rewritten, far"]);
    assert!(split.contains(&"Barrier".to_owned()), "{split:?}");
    let mut run = all.clone();
    run.launches.retain(|launch| launch.benchmark == "latency");
    assert!(is_settled(&run));
    run.launches.retain(|launch| launch.round % 2 == 0 || launch.round < 4);
    assert_eq!(names(&run), ["Latency, rewritten, near"]);
    assert!(is_settled(&run));
    // The face that was seen most is shown, though too seldom.
    run.launches.retain(|launch| launch.round < 3);
    assert_eq!(names(&run), ["Latency, rewritten, near"]);
    assert!(!is_settled(&run));
}

#[test]
fn the_document_answers_and_stays_short() {
    let text = markdown(&synthetic::run(ALL));
    assert!(text.starts_with("# Results\n\nGenerated by `cargo mpj bench all --peer openmpi"));
    assert!(text.lines().count() < 1000, "{} lines", text.lines().count());
    for part in [
        "Latency, rewritten, near: eager is faster at 0 to ",
        "Crossover by medians: rendezvous is not behind from 16K on.",
        "### mpj auto against MPICH 4.0.2",
        "## Against the best peer",
        "| Latency, 8 to 256 bytes | near | 0.6 | ",
        "## Where the first one is slower",
        "| mpj auto / Open MPI 4.1.4 |",
        "## Figures, near",
        "## Figures, far",
        "| Barrier (µs, lower is better), Ranks 8* |",
    ] {
        assert!(text.contains(part), "{part}");
    }
    assert!(!text.contains("Launches that failed"));
}

#[test]
fn every_row_of_a_table_has_the_cells_of_its_head() {
    let text = markdown(&synthetic::run(ALL));
    let mut head = None;
    for line in text.lines() {
        if !line.starts_with('|') {
            head = None;
            continue;
        }
        let bars = line.replace("\\|", "").matches('|').count();
        assert_eq!(*head.get_or_insert(bars), bars, "{line}");
    }
}

#[test]
fn failures_are_listed_and_texts_stay_in_their_cells() {
    let mut run = synthetic::run(&["auto", "mpich"]);
    run.launches[1].failure = Some("gave | nothing <b>\nfor 60 s".to_owned());
    run.header.machine[0].1 = "a|b".to_owned();
    let text = markdown(&run);
    assert!(
        text.contains("- round 1, mpich, latency on 2 ranks: gave \\| nothing &lt;b> for 60 s")
    );
    assert!(text.contains("| processor | a\\|b |"));
}
