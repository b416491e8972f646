//! What befalls the network of a job: it loses packets, strangers speak to its ports, its cable is out for ever. A job of
//! one host has no network.

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use mpj_doubles::numbers::Numbers;
use mpj_harness::{Hosts, Launch, eventually, launch, process};
use mpj_tests::conformance::collective::Case;
use mpjdev::BackendChoice;
use rustix::process::Signal;

use super::{COLLECTIVES, LINE, PROGRAM, RANK, await_quiet, job, open};

const GREETER: &str = env!("CARGO_BIN_EXE_greeter");
/// What an entry of the kernel's table of TCP sockets says of one that listens.
const LISTENS: &str = "0A";

/// A job of two hosts that checks so many random collectives.
fn checked(hosts: &Hosts, each: usize, cases: usize) -> Launch {
    let mut numbers = Numbers(7);
    let case = |_| Case::random(&mut numbers).moved_to(2 * each, BackendChoice::Auto).to_string();
    let cases: Vec<String> = (0..cases).map(case).collect();
    job(hosts, each, COLLECTIVES).options(["--map-by", "node"]).args(cases)
}

/// The ports that listen on a host.
fn ports(hosts: &Hosts, host: &str) -> BTreeSet<String> {
    let pids = hosts.processes(host).map(|process| process.pid);
    let tables = pids.flat_map(|pid| ["tcp", "tcp6"].map(|kind| format!("/proc/{pid}/net/{kind}")));
    let text: String = tables.filter_map(|table| fs::read_to_string(table).ok()).collect();
    let port = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let port = words.get(1)?.rsplit(':').next()?;
        let listens = words.get(3) == Some(&LISTENS);
        Some(u16::from_str_radix(port, 16).ok()?.to_string()).filter(|_| listens)
    };
    text.lines().filter_map(port).collect()
}

/// What strangers say to ports of ranks changes nothing, and a job does not wait for them.
#[test]
fn strangers_change_no_result() {
    let Some(hosts) = open(2) else { return };
    let job = checked(&hosts, 2, 40).start();
    eventually("all have joined", || job.stdout().contains("playing"));
    let mut strangers = Vec::new();
    for (from, to) in [("node1", "node2"), ("node2", "node1")] {
        let ports = ports(&hosts, to);
        assert!(!ports.is_empty(), "the ranks of {to} listen");
        let stranger = hosts.on(from, GREETER).args(["disturb", to]).args(&ports);
        strangers.push(stranger.stdin(Stdio::piped()).start());
    }
    for stranger in &strangers {
        eventually("all was said", || stranger.stdout().contains("disturbed"));
    }
    job.expect(0);
    for mut stranger in strangers {
        drop(stranger.stdin());
        stranger.expect(0);
    }
    assert_eq!(hosts.remains(), [""; 0]);
}

/// Whoever speaks libfabric, but has not the secret of the job, adds nothing to it. Rank 0 waits for rank 1 meanwhile.
#[test]
fn packets_without_the_secret_of_the_job_are_dropped_and_counted() {
    let Some(hosts) = open(2) else { return };
    let job = job(&hosts, 1, RANK).options(["--stats"]).args(["aloof", "stopped"]).start();
    let rank = job.numbers(1)[0];
    eventually("it is stopped", || process::find(rank).is_some_and(|rank| rank.state == 'T'));
    let ports = ports(&hosts, "node1");
    let stranger = hosts.on("node2", GREETER).args(["forge", "node1"]).args(&ports).expect_quiet();
    assert_eq!(stranger.stdout, "disturbed\n");
    process::signal(rank, Signal::CONT).expect("it is there");
    let told = job.expect(0).says("mpjrun: 3 packets were dropped that strangers had sent");
    assert_eq!(told.stdout.matches("met\n").count(), 2, "{told:?}");
    assert_eq!(hosts.remains(), [""; 0]);
}

/// TCP sends again what was lost, so later packets overtake it, too.
#[test]
fn lost_packets_change_no_result() {
    let Some(hosts) = open(2) else { return };
    if ["node1", "node2"].iter().all(|host| hosts.lose(host, 0.01)) {
        checked(&hosts, 1, 20).expect(0);
    }
}

#[test]
fn packets_that_overtake_each_other_change_no_result() {
    let Some(hosts) = open(2) else { return };
    if !["node1", "node2"].iter().all(|host| hosts.reorder(host, 0.2)) {
        return;
    }
    job(&hosts, 1, PROGRAM).args(["correct", "1", "60"]).expect_quiet();
    for host in ["node1", "node2"] {
        assert!(kernel_count(&hosts, host, "TCPOFOQueue") > 0, "some came too early to {host}");
    }
}

/// What the kernel of a host has counted under this name (`/proc/net/netstat`).
fn kernel_count(hosts: &Hosts, host: &str, name: &str) -> u64 {
    let table = hosts.on(host, "cat").args(["/proc/net/netstat"]).expect_quiet().stdout;
    let mut lines = table.lines().filter(|line| line.starts_with("TcpExt:"));
    let mut words = || lines.next().expect("two lines").split_whitespace();
    let (names, counts) = (words(), words());
    let (_, count) = names.zip(counts).find(|(found, _)| *found == name).expect("it is counted");
    count.parse().expect("a number")
}

/// Here the agents' lines, too, go over the network. Each side ends its part of the job.
#[test]
fn a_cable_that_is_out_for_ever_ends_the_job() {
    let Some(hosts) = open(2) else { return };
    let job = job(&hosts, 1, RANK).options(["--host-timeout", "2", "--agent-launcher", LINE]);
    let job = job.args(["idle"]).start();
    let _ = job.numbers(2);
    let start = Instant::now();
    hosts.plug("node2", false);
    let outcome = job.expect(125).says("node2").says("--host-timeout");
    let took = start.elapsed();
    ["node1", "node2"].iter().for_each(|host| await_quiet(&hosts, host));
    assert!(took < Duration::from_secs(20), "{took:?}: {}", outcome.stderr);
    assert_eq!(hosts.remains(), [""; 0]);
}

/// What the system says of it is told on every host.
#[test]
fn a_damaged_libfabric_is_named_with_its_fault() {
    let Some(hosts) = open(2) else { return };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    fs::write(folder.path().join("libfabric.so.1"), "").expect("written");
    let job = job(&hosts, 1, RANK).args(["well"]).env("LD_LIBRARY_PATH", folder.path());
    job.expect(1).says_all(&["libfabric.so.1 cannot be loaded", "file too short"]);
}

/// Whether a process has loaded libfabric, and whether it has a socket that reaches beyond this machine.
fn uses_network(pid: u32) -> (bool, bool) {
    let read = |file| fs::read_to_string(format!("/proc/{pid}/{file}")).expect("the process runs");
    let local: BTreeSet<String> = read("net/unix")
        .lines()
        .filter_map(|line| line.split_whitespace().nth(6))
        .map(|number| format!("socket:[{number}]"))
        .collect();
    let open = fs::read_dir(format!("/proc/{pid}/fd")).expect("the process runs");
    let open = open.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    let mut open = open.map(|path| path.to_string_lossy().into_owned());
    let has_socket = open.any(|file| file.starts_with("socket:") && !local.contains(&file));
    (read("maps").contains("libfabric"), has_socket)
}

/// That the ranks of a job on several hosts do both shows that this is seen.
#[test]
fn a_job_of_one_host_uses_no_network() {
    let alone = launch(RANK).ranks(2).args(["idle"]).start();
    let ranks = alone.numbers(2);
    for pid in ranks.into_iter().chain([alone.pid()]) {
        assert_eq!(uses_network(pid), (false, false), "process {pid}");
    }
    drop(alone);
    let Some(hosts) = open(2) else { return };
    let job = job(&hosts, 1, RANK).args(["idle"]).start();
    for pid in job.numbers(2) {
        assert_eq!(uses_network(pid), (true, true), "process {pid}");
    }
}
