//! Faults of jobs on several hosts at random moments: a rank, an agent or mpjrun is killed or stands still for a while, or a
//! cable is out for a while. Each time the job's results are right, or it ends soon with an error that names the rank or
//! the host, and nothing is left on any host.
//!
//! Each round has a seed, which a failure prints. `MPJ_FAULT_ROUNDS=500 MPJ_FAULT_SEED=1 cargo test -p
//! mpj-tests --test host_faults` runs more rounds than the usual 4, and others. Where the system refuses namespaces, or
//! libfabric is not installed, the test says so and shows nothing.

use std::thread;
use std::time::Duration;

use mpj_doubles::numbers::Numbers;
use mpj_harness::{Hosts, Outcome, eventually, mpjrun_path, process, skip};
use mpj_tests::conformance::collective::Case;
use mpj_tests::faults::asked;
use mpjdev::BackendChoice;
use rustix::process::Signal;

const COLLECTIVES: &str = env!("CARGO_BIN_EXE_collectives");
const LINE: &str = env!("CARGO_BIN_EXE_line");
/// Rounds, unless another number is given.
const ROUNDS: u64 = 4;
/// Collectives of each job: about a second.
const CASES: usize = 60;
/// How long nothing may come from a host, in seconds.
const SILENCE: &str = "2";
/// How long a fault that passes may last: longer than that, too.
const LONGEST: usize = 3_000;
/// The exit code of a job that a lost host has ended.
const LOST: i32 = 125;
/// The exit code of a process that SIGKILL has ended.
const KILLED: i32 = 137;

/// A process of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    /// One of the ranks on a host.
    Rank(&'static str),
    /// The agent of node2.
    Agent,
    /// The process that the user started.
    Launcher,
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    Killed(Who),
    /// Stopped for so many milliseconds.
    Stopped(Who, u64),
    /// The cable of node2 is out for so many milliseconds.
    Cut(u64),
}

/// Says how to repeat a round that has failed.
struct Round(u64, Fault);

impl Drop for Round {
    #[expect(clippy::print_stderr, reason = "a test that fails says how to repeat it")]
    fn drop(&mut self) {
        if thread::panicking() {
            let Self(seed, fault) = self;
            eprintln!("MPJ_FAULT_ROUNDS=1 MPJ_FAULT_SEED={seed}: {fault:?}");
        }
    }
}

#[test]
fn whatever_befalls_a_host_is_told_and_nothing_is_left() {
    if let Err(reason) = mpj_doubles::fabric::fabric() {
        return skip(reason);
    }
    let Some(hosts) = Hosts::open(2) else { return };
    let first = asked("MPJ_FAULT_SEED", 1);
    for seed in (0..asked("MPJ_FAULT_ROUNDS", ROUNDS)).map(|round| first.wrapping_add(round)) {
        play(&hosts, seed);
    }
}

fn play(hosts: &Hosts, seed: u64) {
    let mut numbers = Numbers(seed);
    let fault = drawn(&mut numbers);
    let round = Round(seed, fault);
    let each = 1 + numbers.below(2);
    let case = |_| Case::random(&mut numbers).moved_to(2 * each, BackendChoice::Auto).to_string();
    let cases: Vec<String> = (0..CASES).map(case).collect();
    let slots = format!("node1:{each},node2:{each}");
    let job = hosts.on("node1", mpjrun_path()).options(["--hosts", &slots, "--map-by", "node"]);
    let job = job.options(["--agent-launcher", LINE, "--host-timeout", SILENCE]);
    let job = job.args([COLLECTIVES]).args(cases).start();
    eventually("all have joined", || job.stdout().contains("playing"));
    thread::sleep(Duration::from_millis(numbers.below(400) as u64));
    carry_out(hosts, fault);
    let outcome = job.finish();
    check(fault, &outcome).unwrap_or_else(|why| panic!("{why}: {outcome:?}"));
    eventually("nothing is left", || hosts.remains().is_empty());
    drop(round);
}

fn drawn(numbers: &mut Numbers) -> Fault {
    let who = numbers.pick(&[Who::Rank("node1"), Who::Rank("node2"), Who::Agent, Who::Launcher]);
    let millis = numbers.below(LONGEST) as u64;
    match numbers.below(3) {
        0 => Fault::Killed(who),
        1 => Fault::Stopped(who, millis),
        _ => Fault::Cut(millis),
    }
}

/// A process of the job, unless it has ended.
fn find(hosts: &Hosts, who: Who) -> Option<u32> {
    let named = |host: &str, name: &str| {
        hosts.processes(host).filter(|it| it.name == name).collect::<Vec<_>>()
    };
    match who {
        Who::Rank(host) => named(host, "collectives").first().map(|rank| rank.pid),
        Who::Agent => named("node2", "collectives").first().map(|rank| rank.parent),
        Who::Launcher => named("node1", "line").first().map(|line| line.parent),
    }
}

fn carry_out(hosts: &Hosts, fault: Fault) {
    let pause = |millis| thread::sleep(Duration::from_millis(millis));
    // It may end meanwhile.
    let signal = |pid: Option<u32>, signal| _ = pid.map(|pid| process::signal(pid, signal));
    match fault {
        Fault::Killed(who) => signal(find(hosts, who), Signal::KILL),
        Fault::Stopped(who, millis) => {
            let pid = find(hosts, who);
            signal(pid, Signal::STOP);
            pause(millis);
            signal(pid, Signal::CONT);
        }
        Fault::Cut(millis) => {
            hosts.plug("node2", false);
            pause(millis);
            hosts.plug("node2", true);
        }
    }
}

/// Whether a job that ended like this was told the truth. All faults may come too late.
fn check(fault: Fault, Outcome { code, stderr, .. }: &Outcome) -> Result<(), &'static str> {
    let (names_host, names_rank) = (stderr.contains("host node"), stderr.contains("mpjrun: rank "));
    let is_told = match (fault, *code) {
        (_, 0) => stderr.is_empty(),
        (Fault::Killed(Who::Rank(_)), KILLED) => names_rank && stderr.contains("SIGKILL"),
        (Fault::Killed(Who::Launcher), KILLED) => true,
        (Fault::Killed(Who::Agent) | Fault::Cut(_), LOST) => names_host,
        (Fault::Stopped(Who::Agent | Who::Launcher, _), LOST) => names_host,
        _ => false,
    };
    if is_told { Ok(()) } else { Err("not what such a fault may lead to") }
}
