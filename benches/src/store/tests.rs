//! Tests of the file: round trips, broken lines, and arbitrary damage.

use std::fs;

use mpj_bench_programs::Sample;
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

/// What is wrong with a file of this content.
fn refusal(contents: &[u8]) -> String {
    let file = tempfile::NamedTempFile::new().expect("the system gives files");
    fs::write(file.path(), contents).expect("the file is ours");
    let message = read(file.path()).expect_err("it is broken").to_string();
    message.replace(&file.path().display().to_string(), "FILE")
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
fn lines_that_are_not_ours() {
    let cases = [
        ("\"ranks\":2", "\"ranks\":-2", 2, "invalid value"),
        ("\"ranks\":2", "\"ranks\":2,\"speed\":1", 2, "unknown field `speed`"),
        ("\"command\"", "\"commando\"", 1, "unknown field `commando`"),
        ("\"format\":2", "\"format\":\"1\"", 1, "invalid type"),
        ("\"format\":2,", "", 1, "missing field `format`"),
        ("0.25", "null", 2, "invalid type: null"),
        ("0.25", "NaN", 2, "expected value at"),
        ("0.25", "1e999", 2, "number out of range"),
        ("{\"round\"", "\n{\"round\"", 2, "EOF while parsing"),
    ];
    for (from, to, line, reason) in cases {
        let text = text();
        assert!(text.contains(from), "{from} is not in {text}");
        let said = refusal(text.replacen(from, to, 1).as_bytes());
        let start = format!("FILE, line {line}: not a line of mpj-bench --json: {reason}");
        assert!(said.starts_with(&start), "{said}");
    }
}

#[test]
fn files_that_are_not_ours() {
    let other = text().replace("\"format\":2", "\"format\":7");
    let said = "FILE: format 7; this program reads 2: measure again";
    assert_eq!(refusal(other.as_bytes()), said);
    assert!(refusal(b"").starts_with("FILE, line 1: "));
    let cut = &text()[..text().len() - 5];
    assert!(refusal(cut.as_bytes()).starts_with("FILE, line 3: "));
    assert!(refusal(&[0xff, 0xfe, b'\n']).starts_with("cannot read FILE: "));
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
        let file = tempfile::NamedTempFile::new().expect("the system gives files");
        fs::write(file.path(), bytes).expect("the file is ours");
        if let Ok(run) = read(file.path()) {
            let tables = crate::analysis::tables(&run);
            let _ = crate::report::page::html(&run, &tables);
        }
    }
}
