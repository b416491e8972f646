//! `mpjrun --trace` and `--profile` of jobs over several hosts: the records of all ranks in one picture, whose times can be
//! compared, and what becomes of it when ranks or hosts fail.

use std::path::{Path, PathBuf};

use mpj_harness::{Arrow, Hosts, Launch, Outcome, Shown, example};
use tempfile::TempDir;

use super::{RANK, job, open_sharing};

/// Two hosts, and the file that a job on them writes.
struct Traced {
    hosts: Hosts,
    folder: TempDir,
}

impl Traced {
    fn open() -> Option<Self> {
        let folder = TempDir::new().expect("a folder");
        Some(Self { hosts: open_sharing(2, &[folder.path()])?, folder })
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("trace")
    }

    /// A job of `each` ranks on both hosts.
    fn job(&self, each: usize, program: impl AsRef<Path>) -> Launch {
        let program = program.as_ref().to_str().expect("a name in UTF-8");
        job(&self.hosts, each, program).options(["--trace"]).options([self.file()])
    }

    fn shown(&self) -> Shown {
        Shown::read(&self.file())
    }
}

/// By how many nanoseconds a job says that times of different hosts may differ.
#[track_caller]
fn error_of(outcome: &Outcome) -> u64 {
    let (_, rest) = outcome.stderr.split_once("agree to within ").expect("it says so");
    let micros = rest.split(' ').next().and_then(|number| number.parse::<u64>().ok());
    micros.expect("a number") * 1000
}

/// A token goes round ranks on alternating hosts: each message leaves before it arrives, and arrives before the next one
/// leaves.
#[test]
fn messages_between_hosts_are_shown_in_the_right_order() {
    let laps = 25;
    // With a fan-out of 1 the second agent speaks through the first.
    for fanout in ["16", "1"] {
        let Some(traced) = Traced::open() else { return };
        let options = ["--map-by", "node", "--agent-fanout", fanout];
        let job = traced.job(2, example("ring")).options(options);
        let outcome = job.args(["--laps", &laps.to_string()]).expect(0);
        let (shown, error) = (traced.shown(), error_of(&outcome));
        let names = ["rank 0 on node1", "rank 1 on node2", "rank 2 on node1", "rank 3 on node2"];
        assert_eq!(shown.tracks[1..], names);
        assert!(shown.tracks[0].contains("4 ranks, times of different hosts agree to within "));
        assert!(shown.messages.values().all(|ends| *ends == 2), "{:?}", shown.messages);
        let hop = |from: usize| -> Vec<&Arrow> {
            let is_hop = |arrow: &&Arrow| {
                arrow.from.0 == names[from] && arrow.to.0 == names[(from + 1) % names.len()]
            };
            shown.arrows.iter().filter(is_hop).collect()
        };
        let hops = [0, 1, 2, 3].map(hop);
        assert!(hops.iter().all(|hop| hop.len() == laps), "{:?}", shown.arrows);
        for lap in 0..laps {
            for (before, after) in hops.iter().zip(&hops[1..]) {
                let (before, after) = (&before[lap], &after[lap]);
                // The clock of a host agrees with itself.
                assert!(before.to.1 <= after.from.1, "lap {lap}: {before:?}, {after:?}");
            }
            for arrow in hops.iter().map(|hop| &hop[lap]) {
                assert!(arrow.from.1 <= arrow.to.1 + error, "lap {lap}: {arrow:?}, {error}");
            }
        }
        assert_eq!(traced.hosts.remains(), [""; 0]);
    }
}

#[test]
fn what_a_killed_rank_on_another_host_has_recorded_is_shown() {
    let Some(traced) = Traced::open() else { return };
    let job = traced.job(2, RANK).options(["--profile"]).args(["after", "kill", "3"]);
    let says = ["mpjrun: rank 3 (pid ", "calls; open it at", "mpjrun: 4 ranks, "];
    let outcome = job.expect(137).says_all(&says);
    let shown = traced.shown();
    let names = ["rank 0 on node1", "rank 1 on node1", "rank 2 on node2", "rank 3 on node2"];
    assert_eq!(shown.tracks[1..], names);
    assert_eq!((shown.calls("barrier"), shown.calls("finish")), (4, 0));
    // Each of the others has sent it one.
    let error = error_of(&outcome);
    assert_eq!(shown.arrows.len(), 3, "{:?}", shown.arrows);
    for (arrow, name) in shown.arrows.iter().zip(names) {
        assert_eq!((arrow.from.0.as_str(), arrow.to.0.as_str()), (name, names[3]));
        assert!(arrow.from.1 <= arrow.to.1 + error, "{arrow:?}, {error}");
    }
}

/// Many records travel in many parts, and those for which there was no memory are counted.
#[test]
fn long_records_come_whole() {
    let Some(traced) = Traced::open() else { return };
    let job = traced.job(2, RANK).options(["--trace-memory", "1M"]);
    job.args(["alone", "13000"]).expect(0).says("later calls are missing");
    let shown = traced.shown();
    // Behind 256 KiB of texts are blocks of 16 KiB with 255 records. Of those of rank 0 a part are no calls.
    let room = ((1 << 20) - (256 << 10)) / (16 << 10) * 255;
    let calls: usize = shown.calls.values().sum();
    assert!((3 * room..=4 * room).contains(&calls), "{calls} calls, {room} records");
    for (track, rank) in shown.tracks[1..].iter().zip(0..) {
        assert!(track.starts_with(&format!("rank {rank} on node")), "{track}");
        assert!(track.contains(" (without its last "), "{track}");
    }
}

#[test]
fn a_host_that_is_lost_loses_its_own_records() {
    let Some(traced) = Traced::open() else { return };
    let options = ["--host-timeout", "2", "--deadlock", "ignore"];
    let job = traced.job(1, RANK).options(options).args(["idle"]).start();
    let _ = job.numbers(2);
    traced.hosts.end("node2");
    job.expect(125).says_all(&["the records of host node2 are missing: ", "calls; open it at"]);
    let shown = traced.shown();
    assert_eq!(shown.tracks[1..], ["rank 0 on node1"]);
    assert_eq!(shown.calls("init"), 1, "{:?}", shown.calls);
}
