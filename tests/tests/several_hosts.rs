//! Jobs whose ranks run on several hosts made out of namespaces and reach each other by libfabric: results are right, and
//! whatever goes away, the job ends with the cause and leaves nothing.
//!
//! Where the system refuses namespaces, or libfabric is not installed, the tests say so and show nothing.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use mpj_doubles::numbers::Numbers;
use mpj_harness::{
    Hosts, Launch, REFUSED, command, eventually, mpjrun_path, process, skip, workspace,
};
use mpj_tests::conformance::collective::Case;
use mpj_tests::conformance::collective::case::PARAMETERS;
use mpj_tests::conformance::collective::pairwise::pairwise;
use mpj_tests::faults::asked;
use mpjdev::BackendChoice;
use rustix::process::Signal;

#[path = "several_hosts/clients.rs"]
mod clients;
#[path = "several_hosts/contacts.rs"]
mod contacts;
#[path = "several_hosts/network.rs"]
mod network;
#[path = "several_hosts/programs.rs"]
mod programs;
#[path = "several_hosts/slurm.rs"]
mod slurm;
#[path = "several_hosts/traces.rs"]
mod traces;

const CLIENTS: &str = env!("CARGO_BIN_EXE_clients");
const RANK: &str = env!("CARGO_BIN_EXE_rank");
const PROGRAM: &str = env!("CARGO_BIN_EXE_program");
const DEADLOCK: &str = env!("CARGO_BIN_EXE_deadlock");
const COLLECTIVES: &str = env!("CARGO_BIN_EXE_collectives");
/// Starts agents with a line that goes over the network of their hosts.
const LINE: &str = env!("CARGO_BIN_EXE_line");

/// Opens so many hosts with a network between them.
fn open(count: usize) -> Option<Hosts> {
    open_sharing(count, &[])
}

/// The same with folders that all of them have.
fn open_sharing(count: usize, folders: &[&Path]) -> Option<Hosts> {
    if let Err(reason) = mpj_doubles::fabric::fabric() {
        skip(reason);
        return None;
    }
    Hosts::open_sharing(count, folders)
}

/// A job of `each` ranks on every host, started on the first.
fn job(hosts: &Hosts, each: usize, program: &str) -> Launch {
    let names: Vec<String> = hosts.names().map(|name| format!("{name}:{each}")).collect();
    hosts.on("node1", mpjrun_path()).options(["--hosts", &names.join(",")]).args([program])
}

/// Waits until nothing of a job is left on a host.
#[track_caller]
fn await_quiet(hosts: &Hosts, host: &str) {
    eventually("the host is quiet", || hosts.processes(host).next().is_none());
}

#[test]
fn ranks_of_two_and_of_three_hosts_meet() {
    // With a fan-out of 1 the agents are a chain.
    for (count, each, fanout) in [(2, 2, "16"), (3, 1, "1")] {
        let Some(hosts) = open(count) else { return };
        let size = count * each;
        let job = job(&hosts, each, RANK).options(["--agent-fanout", fanout]);
        let told = job.args(["well"]).expect_quiet();
        let expected: Vec<String> =
            (0..size).map(|rank| format!("rank {rank} of {size}")).collect();
        assert_eq!(told.sorted_lines(), expected);
        assert_eq!(hosts.remains(), [""; 0]);
    }
}

/// A program in the `/tmp` of the first host, which the other one does not see, is sent there, and nothing is left of it
/// even if the agent is killed.
#[test]
fn a_program_is_copied() {
    let Some(hosts) = open(2) else { return };
    let program = "/tmp/program";
    hosts.on("node1", "cp").args([RANK, program]).expect_quiet();
    let missing = job(&hosts, 1, program).args(["well"]).expect(127);
    missing.says("host node2: program not found: /tmp/program; install it there, or let mpjrun --copy send it");
    let told = job(&hosts, 1, program).options(["--copy"]).args(["well"]).expect_quiet();
    assert_eq!(told.sorted_lines(), ["rank 0 of 2", "rank 1 of 2"]);
    let job = job(&hosts, 1, program).options(["--copy"]).args(["idle"]).start();
    let _ = job.numbers(2);
    let is_agent = |process: &process::Process| process.name == "mpjrun";
    let agent = hosts.processes("node2").find(is_agent).expect("it runs");
    process::signal(agent.pid, Signal::KILL).expect("it runs");
    job.expect(125).says("host node2 was lost");
    ["node1", "node2"].iter().for_each(|host| await_quiet(&hosts, host));
    assert_eq!(hosts.remains(), ["node1:/tmp/program"]);
}

/// Agents that Slurm starts, the second by the first.
#[test]
fn ranks_meet_in_an_allocation_of_slurm() {
    if let Err(reason) = mpj_doubles::fabric::fabric() {
        return skip(reason);
    }
    let mpjrun = mpjrun_path();
    let slurm = command(workspace().join("tests/slurm")).args(["-s".as_ref(), workspace()]);
    let job = slurm.args(["salloc", "--quiet", "-N2"]);
    let job = job.args([mpjrun.as_os_str(), "--agent-fanout".as_ref(), "1".as_ref()]);
    let told = job.args(["-n", "4", "--per-host", "2", RANK, "well"]).run();
    if told.code == REFUSED {
        return skip(&told.stderr);
    }
    let expected = [0, 1, 2, 3].map(|rank| format!("rank {rank} of 4"));
    assert_eq!(told.expect(0).sorted_lines(), expected);
}

#[test]
fn a_communicator_is_divided_by_hosts() {
    let Some(hosts) = open(2) else { return };
    let job = job(&hosts, 2, RANK).options(["--map-by", "node"]).args(["hosts"]).expect_quiet();
    let lines = ["rank 0 is 0 of 2", "rank 1 is 0 of 2", "rank 2 is 1 of 2", "rank 3 is 1 of 2"];
    assert_eq!(job.sorted_lines(), lines);
}

#[test]
fn info_says_how_messages_travel_inside_of_hosts_and_between_them() {
    let Some(hosts) = open(2) else { return };
    let info = hosts.on("node1", mpjrun_path()).options(["--hosts", "node1,node2", "--info"]);
    let told = info.expect(0).stdout;
    for kind in ["inside of a host", "between hosts"] {
        assert!(told.contains(&format!("\nmessages {kind}\n  up to ")), "{told}");
    }
    assert!(told.contains("the first of the preferred providers that is offered here"), "{told}");
}

/// Cases of the collectives' conformance suite in which each two values meet, dealt out to jobs of each protocol, with
/// consecutive ranks on each host and with others.
#[test]
fn collectives_are_right_over_two_and_over_three_hosts() {
    let lists = pairwise(Case::values(), 1, Case::settle);
    for (kind, (count, each)) in [(2, 2), (3, 1)].into_iter().enumerate() {
        let Some(hosts) = open(count) else { return };
        let protocols = [("auto", "core"), ("eager", "node"), ("rendezvous", "node")];
        for (number, (backend, map)) in protocols.into_iter().enumerate() {
            let dealt = lists.iter().zip(0..).skip(2 * number + kind).step_by(6);
            let case = |(list, seed): (&[usize; PARAMETERS], u64)| {
                Case::new(*list, seed).moved_to(count * each, BackendChoice::Auto).to_string()
            };
            let cases: Vec<String> = dealt.map(case).collect();
            let job = job(&hosts, each, COLLECTIVES).options(["--backend", backend]);
            job.options(["--map-by", map]).args(cases).expect_quiet();
        }
    }
}

#[test]
fn a_rank_that_is_killed_ends_the_job_on_all_hosts() {
    let Some(hosts) = open(2) else { return };
    let says = ["mpjrun: rank 3 (pid ", "signal 9 (SIGKILL)", "node2"];
    job(&hosts, 2, RANK).args(["after", "kill", "3"]).expect(137).says_all(&says);
    ["node1", "node2"].iter().for_each(|host| await_quiet(&hosts, host));
}

#[test]
fn a_host_that_ends_is_the_cause() {
    let Some(hosts) = open(2) else { return };
    let job = job(&hosts, 1, RANK)
        .options(["--host-timeout", "2", "--deadlock", "ignore"])
        .args(["idle"])
        .start();
    let _ = job.numbers(2);
    hosts.end("node2");
    job.expect(125).says("node2");
    await_quiet(&hosts, "node1");
}

#[test]
fn nothing_is_left_when_mpjrun_is_killed() {
    let Some(hosts) = open(2) else { return };
    let job = job(&hosts, 1, RANK).options(["--deadlock", "ignore"]).args(["idle"]).start();
    let ranks = job.numbers(2);
    // The program that was started is that which enters the host; mpjrun is the parent of the rank there.
    let launchers = hosts.processes("node1").filter(|process| process.name == "mpjrun");
    let launchers: Vec<u32> = launchers.map(|process| process.pid).collect();
    assert!(!launchers.is_empty(), "mpjrun runs on node1");
    for launcher in launchers {
        let _ = process::signal(launcher, Signal::KILL);
    }
    process::await_end(&ranks);
    ["node1", "node2"].iter().for_each(|host| await_quiet(&hosts, host));
    job.expect(137);
}

/// A cable that is out for a moment costs time and nothing else. While messages wait for it, all ranks wait for each
/// other, and that is no deadlock.
#[test]
fn a_cable_that_is_out_for_a_moment_changes_no_result() {
    let Some(hosts) = open(2) else { return };
    let mut numbers = Numbers(7);
    let case = |_| Case::random(&mut numbers).moved_to(2, BackendChoice::Auto).to_string();
    let cases: Vec<String> = (0..60).map(case).collect();
    let options = ["--look-every", "0.01"];
    let job = job(&hosts, 1, COLLECTIVES).options(options).args(cases).start();
    eventually("all have joined", || job.stdout().contains("playing"));
    for time in [300, 300, 2_500] {
        std::thread::sleep(Duration::from_millis(100));
        hosts.plug("node2", false);
        std::thread::sleep(Duration::from_millis(time));
        hosts.plug("node2", true);
    }
    job.expect(0);
}

/// Asks `mpjrun` on node1 for the state of the job, unless it has just been started: then the signal would end it.
fn inquire(hosts: &Hosts) {
    let is_meant = |process: &process::Process| {
        process.name == "mpjrun" && process::heeds(process.pid, Signal::QUIT)
    };
    for launcher in hosts.processes("node1").filter(is_meant) {
        // An agent takes no notice.
        let _ = process::signal(launcher.pid, Signal::QUIT);
    }
}

#[test]
fn what_all_ranks_do_is_told_on_request() {
    let Some(hosts) = open(2) else { return };
    let job = job(&hosts, 1, DEADLOCK).args(["asleep"]).stdin(Stdio::null()).start();
    let row =
        "mpjrun:   0      node1  recv        rank 1    6  world             1  no message has come";
    let is_rank = |process: process::Process| process.name == "deadlock";
    eventually("rank 1 runs", || hosts.processes("node2").any(is_rank));
    eventually("rank 0 waits", || {
        inquire(&hosts);
        job.stderr().contains(row)
    });
    let rest = "mpjrun:   rank 1 on node2: joined, asleep outside of MPI: in a lock, a pipe or a timer, still running";
    let chain = "mpjrun:   chain: 0 on node1 waits for 1 (recv tag 6) -> 1 on node2 (asleep outside of MPI)";
    for words in [rest, chain] {
        assert!(job.stderr().contains(words), "no {words:?} in {}", job.stderr());
    }
}

#[test]
fn a_failure_shows_what_ranks_of_all_hosts_were_doing() {
    let Some(hosts) = open(2) else { return };
    let options = ["--deadlock", "ignore"];
    let job = job(&hosts, 2, RANK).options(options).args(["idle"]).start();
    let _ = job.numbers(4);
    eventually("all wait", || {
        inquire(&hosts);
        job.stderr().contains("cycle: ")
    });
    // The request has woken them.
    std::thread::sleep(Duration::from_secs(1));
    let last = hosts.processes("node2").filter(|process| process.name == "rank").last();
    let _ = process::signal(last.expect("it runs").pid, Signal::KILL);
    let job = job.expect(137);
    let (_, report) = job.stderr.split_once("was killed by signal 9").expect("the cause");
    let rows = report.lines().filter(|line| line.contains("recv  "));
    let hosts = rows.filter_map(|line| line.split_whitespace().nth(2));
    assert_eq!(hosts.collect::<Vec<_>>(), ["node1", "node1", "node2"], "{report}");
}

/// A host that does not answer in time is said not to have done so, and the others are shown.
#[test]
fn a_host_that_does_not_answer_is_named() {
    let Some(hosts) = open(2) else { return };
    let job = job(&hosts, 1, RANK)
        .options(["--host-timeout", "60", "--deadlock", "ignore"])
        .args(["idle"])
        .start();
    let _ = job.numbers(2);
    hosts.freeze("node2");
    inquire(&hosts);
    let words = "rank 1 on node2: joined; its host has not answered, still running";
    eventually("the host is named", || job.stderr().contains(words));
}

#[test]
fn stats_are_of_all_ranks() {
    let Some(hosts) = open(2) else { return };
    let job = job(&hosts, 2, RANK).options(["--stats"]).args(["well"]).expect(0);
    // Behind the heads of the table; what its columns say depends on who came first.
    let lines = job.stderr.lines().filter(|line| line.starts_with("mpjrun: ")).skip(2);
    let rows = lines.filter_map(|line| line.split_whitespace().nth(1));
    assert_eq!(rows.collect::<Vec<_>>(), ["0", "1", "2", "3", "all"], "{job:?}");
}

/// Nobody looks for deadlocks, so the job ends when it has stood still for long enough. A report on request is no progress.
#[test]
fn a_stall_ends_the_job() {
    let Some(hosts) = open(2) else { return };
    let options = ["--deadlock", "ignore", "--stall", "3", "--agent-fanout", "1"];
    let job = job(&hosts, 2, DEADLOCK).options(options).args(["ring"]).stdin(Stdio::null()).start();
    let cycle = "0 on node1 waits for 3 (recv tag 5) -> 3 on node2 waits for 2 (recv tag 5)";
    eventually("all wait", || {
        inquire(&hosts);
        std::thread::sleep(Duration::from_millis(300));
        job.stderr().contains(cycle)
    });
    let job = job.expect(124);
    let (_, report) =
        job.stderr.split_once("mpjrun: no rank made progress for 3.").expect("a stall");
    assert!(report.contains(cycle), "{report}");
}

/// A job whose ranks make progress, or compute, neither stalls nor stands still.
#[test]
fn a_job_of_two_hosts_that_makes_progress_is_no_stall() {
    let Some(hosts) = open(2) else { return };
    let options = ["--stall", "1", "--note-after", "1"];
    job(&hosts, 1, PROGRAM).options(options).args(["correct", "1", "40"]).expect_quiet();
    let options = ["--note-after", "1", "--timeout", "4"];
    let job = job(&hosts, 2, RANK).options(options).args(["apart"]).stdin(Stdio::null());
    let told = job.expect(124);
    assert!(!told.stderr.contains("no rank has made progress"), "{told:?}");
}

/// Rank 0 waits for rank 1, which sleeps outside of all calls.
#[test]
fn a_standstill_of_two_hosts_is_noted_once() {
    let Some(hosts) = open(2) else { return };
    let options = ["--note-after", "1", "--timeout", "8"];
    let job = job(&hosts, 1, DEADLOCK).options(options).args(["asleep"]).stdin(Stdio::null());
    let told = job.expect(124);
    let notes: Vec<&str> = told.stderr.split("mpjrun: no rank has made progress for ").collect();
    let chain = "chain: 0 on node1 waits for 1 (recv tag 6) -> 1 on node2 (asleep outside of MPI)";
    assert!(notes.len() == 2 && notes[1].contains(chain), "{told:?}");
}

#[test]
fn a_panic_that_takes_a_thread_of_another_host_with_it_is_the_cause() {
    let Some(hosts) = open(2) else { return };
    let job = |how| job(&hosts, 1, DEADLOCK).args([how]).stdin(Stdio::null());
    job("thread").expect(101).says_all(&[
        "mpjrun: rank 1 (pid ",
        "lost a thread by a panic",
        "0 on node1 waits for 1 (recv tag 6)",
    ]);
    // A panic that was caught is no cause.
    job("caught").expect(125).says_all(&["mpjrun: deadlock", "no more data"]);
}

/// A job on two hosts that cannot go on: it ends with the code for deadlocks, and says all of `says` in this order.
#[track_caller]
fn deadlock(each: usize, how: &str, says: &[&str]) {
    let Some(hosts) = open(2) else { return };
    let outcome = job(&hosts, each, DEADLOCK).args([how]).stdin(Stdio::null()).expect(125);
    let mut rest = outcome.stderr.as_str();
    for words in says {
        let at = rest.find(words);
        let at = at.unwrap_or_else(|| panic!("no {words:?} in order: {outcome:?}"));
        rest = &rest[at + words.len()..];
    }
    assert_eq!(hosts.remains(), [""; 0]);
}

#[test]
fn ranks_of_two_hosts_that_receive_first_are_in_deadlock() {
    let says = [
        "mpjrun: deadlock",
        "0      node1  recv",
        "1      node2  recv",
        "cycle: 0 on node1 waits for 1 (recv tag 5) -> 1 on node2 waits for 0 (recv tag 5) -> 0 on node1",
    ];
    deadlock(1, "ring", &says);
}

/// Frames within a host and between hosts have been received; idle threads and long messages are no obstacle.
#[test]
fn whatever_ranks_of_two_hosts_wait_for_in_vain_is_told() {
    deadlock(1, "tag", &["tag 8", "tag 7", "the tags differ"]);
    deadlock(1, "large", &["0 on node1 waits for 1 (send tag 1)"]);
    deadlock(2, "pool", &["-> 3 on node2 waits for 2 (recv tag 5) -> 2 on node2"]);
    deadlock(
        1,
        "finish",
        &["0 on node1 waits for 1 (send tag 1) -> 1 on node2 waits for 0 (finish)"],
    );
}

/// Rank 1 leaves without sending what rank 0 waits for, which is its failure.
#[test]
fn a_rank_of_another_host_that_left_is_the_cause() {
    let Some(hosts) = open(2) else { return };
    let job = job(&hosts, 1, DEADLOCK).args(["error"]).stdin(Stdio::null());
    job.expect(3).says_all(&["mpjrun: rank 1 (pid ", "no input file"]);
}

/// Some ranks wait for others, which sleep outside of all calls, are stopped or compute.
#[test]
fn ranks_that_may_go_on_are_left_alone() {
    let Some(hosts) = open(2) else { return };
    let jobs = [(DEADLOCK, "asleep"), (RANK, "apart"), (RANK, "waiting")].map(|(program, how)| {
        let options = ["--look-every", "0.01", "--timeout", "4"];
        job(&hosts, 2, program).options(options).args([how]).stdin(Stdio::null()).start()
    });
    for job in jobs {
        job.expect(124).says("the job still ran after 4 s");
    }
}

/// Programs that wait a lot and end, while `mpjrun` and its agents look as often as they can.
#[test]
fn correct_programs_are_left_alone() {
    let Some(hosts) = open(2) else { return };
    let count = asked("MPJ_PROGRAMS", 1_000) / 20;
    let first = asked("MPJ_PROGRAMS_SEED", 1).to_string();
    for (how, backend) in [("correct", "auto"), ("pooled", "rendezvous")] {
        let options = ["--map-by", "node", "--backend", backend, "--look-every", "0.001"];
        job(&hosts, 2, PROGRAM)
            .options(options)
            .args([how, &first, &count.to_string()])
            .expect_quiet();
    }
}
