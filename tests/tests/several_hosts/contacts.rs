//! First contacts between ranks of two hosts: what keeps them from reaching each other is told, and a rank that merely does
//! not answer yet is waited for.

use std::thread::sleep;
use std::time::Duration;

use mpj_harness::{Hosts, Launch, Outcome, eventually, process};
use rustix::process::Signal;

use super::{PROGRAM, RANK, job, open};

/// The exit code of a job that mpjrun has ended.
const ENDED: i32 = 125;
/// Which packets begin connections of ranks.
const FIRST: [&str; 3] = ["-p", "tcp", "--syn"];

/// A job whose ranks have to reach each other within this many seconds.
fn within(hosts: &Hosts, seconds: &str, program: &str) -> Launch {
    job(hosts, 1, program).env("MPJ_CONNECT_TIMEOUT", seconds)
}

/// Either rank may have been the first to say so.
#[track_caller]
fn check(hosts: &Hosts, outcome: &Outcome, cause: &str) {
    let told = outcome.stderr.lines().next().unwrap_or_default();
    let by = |rank: u32, other: u32| {
        let (host, other_host) = (format!("host node{})", rank + 1), format!("node{}", other + 1));
        told.starts_with(&format!("mpjrun: rank {rank} (pid "))
            && told.contains(&format!("{host} cannot reach rank {other} on host {other_host} by "))
    };
    assert!((by(0, 1) || by(1, 0)) && told.contains(cause), "{outcome:?}");
    assert!(told.contains(":eth") && told.contains("MPJ_FABRIC=provider:domain"), "{outcome:?}");
    assert!(!outcome.stderr.contains("is gone"), "{outcome:?}");
    assert_eq!(hosts.remains(), [""; 0]);
}

#[test]
fn a_firewall_between_ranks_is_told() {
    let Some(hosts) = open(2) else { return };
    let rules: [(&[&str], &str, &str); 2] = [
        (&["-j", "DROP"], ": no answer for 1 s;", "kill"),
        (&["-j", "REJECT", "--reject-with", "tcp-reset"], ": Connection refused", "keep"),
    ];
    for (rule, cause, policy) in rules {
        let rule = [&FIRST, rule].concat();
        if !["node1", "node2"].iter().all(|host| hosts.filter(host, &rule)) {
            return;
        }
        let job = within(&hosts, "1", RANK).options(["--on-failure", policy]).args(["well"]);
        check(&hosts, &job.expect(ENDED), cause);
    }
}

/// Connections can be made from one of the hosts only. They do for messages, and memory is not read by the network.
#[test]
fn a_firewall_that_lets_one_direction_pass_changes_no_result() {
    let Some(hosts) = open(2) else { return };
    if hosts.filter("node2", &[&FIRST[..], &["-j", "DROP"]].concat()) {
        let job = within(&hosts, "1", PROGRAM).options(["--backend", "rendezvous"]);
        job.args(["correct", "1", "5"]).expect_quiet();
    }
}

/// The second interface of each host leads nowhere, and there is no way from one network to the other.
#[test]
fn an_interface_that_reaches_no_other_host_is_told() {
    let Some(hosts) = open(2) else { return };
    for (host, address) in [("node1", "10.54.1.1/24"), ("node2", "10.54.2.1/24")] {
        let ip = |words: &str| hosts.on(host, "ip").args(words.split(' ')).expect_quiet();
        ip("link add eth1 type veth peer name nowhere");
        ip(&format!("address add {address} dev eth1"));
        ["eth1", "nowhere"].iter().for_each(|end| _ = ip(&format!("link set dev {end} up")));
    }
    let network = mpj_doubles::fabric::fabric().expect("it was there").caps().name;
    let job = within(&hosts, "1", RANK).env("MPJ_FABRIC", format!("{network}:eth1"));
    check(&hosts, &job.args(["well"]).expect(ENDED), ": Network is unreachable");
}

#[test]
fn a_rank_that_computes_first_is_waited_for() {
    let Some(hosts) = open(2) else { return };
    let told = within(&hosts, "1", RANK).args(["aloof", "computes"]).expect_quiet();
    assert_eq!(told.stdout.matches("met\n").count(), 2, "{told:?}");
}

#[test]
fn a_rank_that_is_stopped_before_the_first_contact_is_waited_for() {
    let Some(hosts) = open(2) else { return };
    let job = within(&hosts, "1", RANK).args(["aloof", "stopped"]).start();
    let rank = job.numbers(1)[0];
    eventually("it is stopped", || process::find(rank).is_some_and(|rank| rank.state == 'T'));
    sleep(Duration::from_secs(3));
    process::signal(rank, Signal::CONT).expect("it is there");
    let told = job.expect(0);
    assert_eq!(told.stdout.matches("met\n").count(), 2, "{told:?}");
}

/// They say so before they run. With `--on-failure keep` they do, too, since none can do without the other.
#[test]
fn networks_that_do_not_understand_each_other_are_told() {
    let Some(hosts) = open(2) else { return };
    let script = "[ $(hostname) = node1 ] || export MPJ_FABRIC='tcp;ofi_rxm'; exec \"$@\"";
    for policy in ["kill", "keep"] {
        let job = job(&hosts, 1, "sh").options(["--on-failure", policy]);
        let outcome = job.args(["-c", script, "sh", RANK, "well"]).expect(ENDED);
        let told = outcome.stderr.lines().next().unwrap_or_default();
        // Either host may have been the first to say what it has.
        let words = [
            " cannot reach rank ",
            "host node1 is ",
            "host node2 is tcp;ofi_rxm of libfabric ",
            "install the same libfabric on all hosts",
        ];
        assert!(words.iter().all(|words| told.contains(words)), "{outcome:?}");
        assert_eq!((outcome.stdout.as_str(), hosts.remains()), ("", Vec::new()));
    }
}
