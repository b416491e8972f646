//! Tests of the file: round trips, each rule broken once, and arbitrary damage.

use std::fs;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::model::{RuntimeInfo, Threshold};

fn header() -> Header {
    let info = |id: &str, ours| RuntimeInfo { id: id.to_owned(), label: format!("the {id}"), ours };
    Header {
        format: FORMAT,
        command: "mpj-bench --np 2".to_owned(),
        started: "2026-01-02T03:04:05Z".to_owned(),
        machine: vec![("kernel".to_owned(), "Linux \"6\"\nµ".to_owned())],
        runtimes: vec![info("auto", true), info("openmpi", false)],
        thresholds: vec![Threshold { bytes: 1024, what: "rendezvous".to_owned() }],
        rounds: 3,
    }
}

fn launch() -> Launch {
    let sample = |series: &str| Sample {
        series: series.to_owned(),
        x: 8,
        values: vec![0.25, 3.0],
        raw: Some((54.5, 55.25)),
    };
    Launch {
        round: 2,
        runtime: "openmpi".to_owned(),
        benchmark: "latency".to_owned(),
        ranks: 2,
        oversubscribed: false,
        raw: Some((55.0, 300.5)),
        seconds: 1.5,
        failure: None,
        samples: vec![sample("latency"), sample("bibw")],
        unclear: vec![("rate".to_owned(), 8)],
    }
}

/// A file of two launches, as text.
fn text() -> String {
    let failed = Launch { raw: None, failure: Some("hung".to_owned()), ..launch() };
    let line = |launch: &Launch| serde_json::to_string(launch).expect("it has a form in JSON");
    let header = serde_json::to_string(&header()).expect("it has a form in JSON");
    format!("{header}\n{}\n{}\n", line(&launch()), line(&failed))
}

/// Replaces `from` by `to`, and returns the line and the problem.
fn broken(from: &str, to: &str) -> (usize, Problem) {
    let text = text();
    assert!(text.contains(from), "{from} is not in {text}");
    let error = parse(&text.replacen(from, to, 1)).expect_err("the file is broken");
    (error.line, error.problem)
}

#[test]
fn what_is_written_is_read() {
    let folder = tempfile::tempdir().expect("the system gives folders");
    let path = folder.path().join("run.jsonl");
    let mut writer = Writer::create(&path, &header()).expect("the folder is ours");
    assert_eq!(read(&path).expect("it has a header").launches, []);
    writer.append(&launch()).expect("the folder is ours");
    assert_eq!(read(&path).expect("a line is whole").launches, [launch()]);
    writer.append(&launch()).expect("the folder is ours");
    let run = Run { header: header(), launches: vec![launch(), launch()] };
    assert_eq!(read(&path).expect("lines are whole"), run);
}

#[test]
fn a_launch_that_could_not_be_read_is_not_written() {
    let folder = tempfile::tempdir().expect("the system gives folders");
    let path = folder.path().join("run.jsonl");
    let mut writer = Writer::create(&path, &header()).expect("the folder is ours");
    let mut bad = launch();
    bad.samples[1].values[0] = f64::NAN;
    let error = writer.append(&bad).expect_err("no figure");
    let end = "run.jsonl: bibw is NaN; it has to be from 0 to 1e18";
    assert!(error.to_string().ends_with(end), "{error}");
    for infinite in [f64::INFINITY, 2e18, -1e-9] {
        bad.samples[1].values[0] = infinite;
        assert!(matches!(writer.append(&bad), Err(StoreError::Refused { .. })), "{infinite}");
    }
    writer.append(&launch()).expect("the writer goes on");
    assert_eq!(read(&path).expect("lines are whole").launches, [launch()]);
}

#[test]
fn every_rule() {
    let unknown = |text: &str| Problem::Unknown(text.to_owned());
    assert_eq!(broken("\"bibw\"", "\"warp\""), (2, unknown("warp")));
    assert_eq!(broken("\"rate\"", "\"race\""), (2, unknown("race")));
    assert_eq!(broken("\"format\":2", "\"format\":7"), (1, Problem::Format(7)));
    let negative = Problem::Figure { what: "latency".to_owned(), value: -0.5 };
    assert_eq!(broken("0.25", "-0.5"), (2, negative));
    let raw = Problem::Figure { what: "raw".to_owned(), value: -1.0 };
    assert_eq!(broken("300.5", "-1.0"), (2, raw));
    let seconds = Problem::Figure { what: "seconds".to_owned(), value: 1e19 };
    assert_eq!(broken("\"seconds\":1.5", "\"seconds\":1e19"), (2, seconds));
    // This replaces the `openmpi` of the header; the launches then name a missing runtime.
    assert_eq!(broken("\"openmpi\"", "\"mpich\""), (2, unknown("openmpi")));
}

#[test]
fn lines_that_are_not_ours() {
    let cases = [
        ("\"ranks\":2", "\"ranks\":-2", 2, "invalid value"),
        ("\"ranks\":2", "\"ranks\":2,\"speed\":1", 2, "unknown field `speed`"),
        ("\"command\"", "\"commando\"", 1, "unknown field `commando`"),
        ("\"format\":2", "\"format\":\"1\"", 1, "invalid type"),
        ("0.25", "null", 2, "invalid type: null"),
        ("0.25", "NaN", 2, "expected value at column"),
        ("0.25", "1e999", 2, "number out of range"),
        ("{\"round\"", "\n{\"round\"", 2, "EOF while parsing"),
    ];
    for (from, to, line, reason) in cases {
        let (at, problem) = broken(from, to);
        assert_eq!(at, line, "{problem}");
        assert!(matches!(&problem, Problem::NotOurs(text) if text.contains(reason)), "{problem}");
    }
    let missing = broken("\"format\":2,", "").1.to_string();
    assert!(missing.contains("missing field `format`"), "{missing}");
}

#[test]
fn messages_name_file_and_line() {
    let folder = tempfile::tempdir().expect("the system gives folders");
    let path = folder.path().join("run.jsonl");
    let message = |contents: &[u8]| {
        fs::write(&path, contents).expect("the folder is ours");
        let message = read(&path).expect_err("it is broken").to_string();
        message.replace(&folder.path().display().to_string(), "")
    };
    let other = text().replace("\"format\":2", "\"format\":7");
    assert_eq!(
        message(other.as_bytes()),
        "/run.jsonl, line 1: format 7; this program reads 2, since buffers are rewritten: measure again"
    );
    let empty = "/run.jsonl, line 1: the file is empty; it was not written by mpj-bench --json";
    assert_eq!(message(b""), empty);
    let cut = &text()[..text().len() - 5];
    let line = "/run.jsonl, line 3: cut short; delete this line to use the ones before it";
    assert_eq!(message(cut.as_bytes()), line);
    assert!(message(&[0xff, 0xfe, b'\n']).starts_with("cannot read /run.jsonl: "));
}

#[test]
fn a_last_line_may_lack_its_end() {
    let whole = text();
    assert_eq!(parse(whole.trim_end()), parse(&whole));
}

#[test]
fn what_the_system_refuses() {
    let folder = tempfile::tempdir().expect("the system gives folders");
    let there = folder.path().join("no").join("where");
    assert!(matches!(read(&there), Err(StoreError::Read { .. })));
    assert!(matches!(read(folder.path()), Err(StoreError::Read { .. })));
    assert!(matches!(Writer::create(&there, &header()), Err(StoreError::Write { .. })));
}

proptest! {
    /// Sixteenths are exact in binary and in decimal.
    #[test]
    fn figures_come_back(raw in vec(0..u32::MAX, 1..40), x in any::<u64>()) {
        let mut launch = launch();
        launch.samples[0].x = x;
        launch.samples[0].values = raw.into_iter().map(|it| f64::from(it) / 16.0).collect();
        let line = serde_json::to_string(&launch).expect("it has a form in JSON");
        prop_assert_eq!(super::launch(&line, &header()), Ok(launch));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..300)) {
        let _ = parse(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn damage_is_read_or_refused(
        flips in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        end in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut bytes = text().into_bytes();
        for (index, byte) in flips {
            let place = index.index(bytes.len());
            bytes[place] = byte;
        }
        bytes.truncate(if is_cut { end.index(bytes.len()) } else { bytes.len() });
        let parsed = parse(&String::from_utf8_lossy(&bytes));
        // The analysis relies on these rules for every accepted file.
        for launch in parsed.iter().flat_map(|run| &run.launches) {
            let sound = |value: &f64| value.is_finite() && *value >= 0.0;
            prop_assert!(launch.samples.iter().all(|it| it.values.iter().all(sound)));
        }
        if let Ok(run) = &parsed {
            let _ = crate::analysis::tables(run);
        }
    }
}
