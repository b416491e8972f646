//! The benchmark program as its users call it, each time for a fraction of a second of measuring.

use std::fs;
use std::path::Path;

use mpj_bench::store::{self, Writer};
use mpj_harness::{Hosts, Launch, command, eventually, mpjrun_path, skip};
use rustix::process::Signal;

/// The benchmark program. What it starts is beside it: cargo builds the worker with this test, and
/// the launcher is built here if need be.
fn bench(folder: &Path) -> Launch {
    command(program()).set(|command| command.current_dir(folder))
}

fn program() -> &'static str {
    let program = env!("CARGO_BIN_EXE_mpj-bench");
    assert_eq!(mpjrun_path().parent(), Path::new(program).parent());
    program
}

/// The least that measures something, and its record.
const SHORT: [&str; 5] = ["--quick", "--launches", "1", "--json", "run.json"];

/// Reports the figures of `run.json` as if the distance of the processors did not matter. The tables
/// of the run itself leave out figures during which it changed, which no test can prevent.
fn reported(folder: &Path, options: &[&str]) -> String {
    let mut run = store::read(&folder.join("run.json")).expect("it was written");
    let mut file = Writer::create(&folder.join("all.json"), &run.header).expect("a new file");
    for launch in &mut run.launches {
        launch.raw = None;
        launch.samples.iter_mut().for_each(|sample| sample.raw = None);
        file.append(launch).expect("written");
    }
    bench(folder).args(["--from", "all.json"]).args(options).expect(0).stdout
}

#[test]
fn both_backends_without_a_peer() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = ["--html", "page.html", "--summary", "few.md"];
    let what =
        ["latency", "rate", "overlap", "--sizes", "8,64K", "--buffers", "rewritten,unchanged"];
    let words = [&what[..], &SHORT, &files].concat();
    let outcome = bench(folder.path()).args(&words).expect(0);
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).expect(name);
    assert!(read("page.html").contains("</html>") && read("few.md").starts_with('#'));
    let tables = reported(folder.path(), &["--html", "page.html", "--summary", "few.md"]);
    for expected in
        ["# Size", "mpj eager", "mpj rendezvous", "mpj auto", "\n65536 ", "Latency, unchanged"]
    {
        assert!(tables.contains(expected), "{expected} in {tables}");
    }
    assert!(read("page.html").contains("<svg"));
    assert!(read("few.md").contains("| Message rate, rewritten"));
    assert!(read("few.md").contains("(few.svg)") && read("few.svg").starts_with("<svg"));
    assert!(outcome.stdout.contains("# computation of overlap: 8 "), "{}", outcome.stdout);
    // A header, and three backends, once to five times: all benchmarks in one launch.
    let launches = read("run.json").lines().count() - 1;
    assert!((3..=15).contains(&launches) && launches % 3 == 0, "{launches}");

    let again =
        bench(folder.path()).args(["--from", "run.json", "--baseline", "run.json"]).expect(0);
    assert!(again.stdout.starts_with(outcome.stdout.trim_end()), "the file tells the same story");
}

#[test]
fn the_transport_is_measured_alone_if_its_peer_is_not_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let what = ["lapi", "--sizes", "8,289,64K", "--buffers", "unchanged,rewritten"];
    let words = [&what[..], &["--peer", "ucx"], &SHORT].concat();
    let bench = bench(folder.path()).set(|command| command.env("PATH", folder.path()));
    let outcome = bench.args(&words).expect(1);
    let said = "mpj-bench: ucx_perftest is not on PATH: apt-get install ucx-utils\n";
    assert_eq!(outcome.stderr, said);
    let tables = reported(folder.path(), &[]);
    let titles = ["Active message, half a round trip", "Active messages in windows"];
    let others = ["Put, half a round trip", "Puts in windows"];
    for title in [titles, others].concat() {
        for end in [", 2 ranks", ", rewritten, 2 ranks"] {
            assert!(tables.contains(&format!("{title}{end}")), "{title}{end} in {tables}");
        }
    }
    for expected in ["Get, 2 ranks", "Fetch-and-add of 64 bits, 2 ranks", "\n65536 ", "\n289 "] {
        assert!(tables.contains(expected), "{expected} in {tables}");
    }
}

#[test]
fn am2_is_measured_beside_the_transport() {
    let folder = tempfile::tempdir().expect("a folder");
    let what = ["am2", "--sizes", "8,257,6,128K", "--buffers", "unchanged,rewritten"];
    bench(folder.path()).args([&what[..], &SHORT].concat()).expect(0);
    let tables = reported(folder.path(), &["--summary", "am2.md"]);
    for title in ["Active message, half a round trip", "Active messages in windows"] {
        for end in [", 2 ranks", ", rewritten, 2 ranks"] {
            assert!(tables.contains(&format!("{title}{end}")), "{title}{end} in {tables}");
        }
    }
    let puts = ["Short message, half a round trip", "Put, half a round trip", "Puts in windows"];
    for expected in [&puts[..], &["Get, 2 ranks", "am2/lapi", "\n257 ", "\n131072 "]].concat() {
        assert!(tables.contains(expected), "{expected} in {tables}");
    }
    assert!(folder.path().join("am2.md").is_file() && folder.path().join("am2.svg").is_file());
}

#[test]
fn pami_is_measured_beside_the_transport() {
    let folder = tempfile::tempdir().expect("a folder");
    let what = ["pami", "--sizes", "8,64K", "--buffers", "unchanged,rewritten"];
    bench(folder.path()).args([&what[..], &SHORT].concat()).expect(0);
    let tables = reported(folder.path(), &[]);
    let both = ["Active message, half a round trip", "Puts in windows"];
    for end in [", 2 ranks", ", rewritten, 2 ranks"] {
        for title in both {
            assert!(tables.contains(&format!("{title}{end}")), "{title}{end} in {tables}");
        }
    }
    let others = ["Short message, half a round trip", "Get, 2 ranks", "Fetch-and-add of 64 bits"];
    let contexts = ["8-byte messages by contexts", "# Contexts", "\n3 ", "pami/lapi", "\n65536 "];
    for expected in [&others[..], &contexts].concat() {
        assert!(tables.contains(expected), "{expected} in {tables}");
    }
}

#[test]
fn what_cannot_be_measured_costs_a_line_and_the_exit_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = ["latency", "startup", "--np", "1", "--backend", "auto", "--peer", "nowhere/mpi"];
    let outcome = bench(folder.path()).args([&asked, &SHORT[..]].concat()).expect(1);
    let lines: Vec<_> = outcome.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("nowhere/mpi"), "{lines:?}");
    assert!(lines[1].contains("latency has 2 to 256 ranks, not --np 1"), "{lines:?}");
    assert!(outcome.stdout.contains("# Ranks"), "startup was measured: {}", outcome.stdout);
}

#[test]
fn wrong_calls_are_refused_before_anything_is_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("damaged.json"), "{\"format\":2}\n").expect("written");
    fs::write(folder.path().join("earlier.json"), "{\"format\":1}\n").expect("written");
    for (words, said) in [
        (&["latencie"][..], "latency"),
        (&["rate", "--json", "missing/run.json"], "missing/run.json"),
        (&["rate", "--html", "missing/page.html"], "missing/page.html"),
        (&["rate", "--baseline", "damaged.json"], "line 1"),
        (&["--from", "none.json"], "none.json"),
        (&["lapi", "rate"], "run of its own"),
        (&["am2", "lapi"], "run of its own"),
        (&["rma"], "cargo mpj install --prefix DIR"),
        (&["--from", "earlier.json"], "format 1; this program reads 2"),
    ] {
        let outcome = bench(folder.path()).args(words).run();
        assert_eq!(outcome.code, 2, "{words:?}: {outcome:?}");
        assert!(outcome.stderr.contains(said), "{words:?}: {outcome:?}");
        assert_eq!(outcome.stdout, "", "{words:?}");
    }
}

#[test]
fn an_interrupt_ends_the_measurement_and_shows_what_there_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let words = ["latency", "--sizes", "8", "--launches", "3000", "--json", "run.json"];
    let bench = bench(folder.path()).args(words).args(["--html", "page.html"]).start();
    let stored = || fs::read_to_string(folder.path().join("run.json")).unwrap_or_default();
    eventually("something is measured", || stored().lines().count() >= 4);
    bench.signal(Signal::INT);
    let outcome = bench.expect(130);
    let tables = reported(folder.path(), &[]);
    assert!(tables.contains("\n8 "), "{tables}");
    assert!(outcome.stdout.starts_with("# cargo mpj bench latency"), "{outcome:?}");
    assert!(folder.path().join("page.html").is_file());
}

/// Over two hosts made out of namespaces, beside libfabric without an MPI.
#[test]
fn hosts_share_the_ranks() {
    let Some(hosts) = Hosts::open(2) else { return };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let bench = |what: &[&str]| {
        let bench = hosts.on("node1", program()).set(|command| command.current_dir(folder.path()));
        bench.args(what).args(["--hosts", "node1,node2"]).args(SHORT).run()
    };
    let outcome = bench(&["latency", "--sizes", "8", "--peer", "fabric"]);
    if outcome.stderr.contains("libfabric.so.1 cannot be loaded") {
        return skip(&outcome.stderr);
    }
    let outcome = outcome.expect(0);
    for expected in [
        "namespaces of one machine",
        "libfabric alone",
        "Latency, rewritten, 2 ranks (us)",
        "divided by that of libfabric alone: ",
    ] {
        assert!(outcome.stdout.contains(expected), "{expected} in {}", outcome.stdout);
    }
    let outcome = bench(&["startup", "--np", "4", "--backend", "auto"]).expect(0);
    assert!(outcome.stdout.contains("\n4*  "), "{}", outcome.stdout);
    assert_eq!(hosts.remains(), [""; 0]);
    let refused = hosts.on("node1", program());
    refused.args(["rate", "--hosts", "node1,node3"]).expect(2).says("host node3: no answer by ssh");
}
