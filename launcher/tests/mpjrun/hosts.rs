//! Jobs on several hosts. Their agents all run on this one, since `--agent-launcher` is a shell that ignores the name of
//! the host; what they do is the same.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::Duration;

use mpj_harness::process::{await_end, find, signal};
use mpj_harness::{Launch, Running, Scene, command, eventually, launch, mpjrun, mpjrun_path, skip};
use rustix::process::Signal;

use crate::Mark;

/// Runs the agent here: `$1` is the host.
const HERE: &str = "shift; exec \"$@\"";

/// A job on these hosts whose ranks run `run`, and whose agents are started by the shell script `start`.
fn started_by(start: &str, hosts: &str, run: &str) -> Launch {
    let starter = format!("sh -c '{start}' starter");
    launch("sh").options(["--agent-launcher", &starter, "--hosts", hosts]).args(["-c", run])
}

fn on(hosts: &str, run: &str) -> Launch {
    started_by(HERE, hosts, run)
}

#[test]
fn ranks_are_numbered_through_the_hosts() {
    let run = "echo $MPJ_RANK of $MPJ_SIZE, $MPJ_LOCAL_RANK here";
    let done = on("a:2,b:1", run).expect_quiet();
    assert_eq!(done.sorted_lines(), ["0 of 3, 0 here", "1 of 3, 1 here", "2 of 3, 0 here"]);
    let done = on("a,b", run).options(["-n", "3", "--map-by", "node", "-l"]).expect_quiet();
    let lines = ["[0] 0 of 3, 0 here", "[1] 1 of 3, 0 here", "[2] 2 of 3, 1 here"];
    assert_eq!(done.sorted_lines(), lines);
}

#[test]
fn ranks_have_the_folder_and_the_variables_of_mpjrun() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().canonicalize().expect("it is there");
    let job = on("a,b", "echo $A $B in $PWD").env("A", "from here");
    let done = job.options(["-x", "B=given"]).set(|it| it.current_dir(&home)).expect_quiet();
    let line = format!("from here given in {}", home.display());
    assert_eq!(done.sorted_lines(), [&line, &line]);
}

#[test]
fn ranks_have_the_limits_and_the_signal_mask_of_mpjrun() {
    let run = "ulimit -n; grep SigBlk /proc/self/status";
    let here = launch("sh").ranks(1).args(["-c", run]).expect_quiet().stdout;
    for line in on("a,b,c", run).options(CHAIN).expect_quiet().stdout.lines() {
        assert!(here.lines().any(|it| it == line), "{line} is not of {here}");
    }
}

#[test]
fn the_first_failure_ends_the_job_and_names_its_host() {
    let run = "[ $MPJ_RANK = 2 ] && exit 7; exec sleep 600";
    let done = on("a:2,b:2", run).expect(7);
    assert!(done.stderr.contains("mpjrun: rank 2 (pid "), "{done:?}");
    assert!(done.stderr.contains(", host b) exited with code 7, "), "{done:?}");
}

#[test]
fn a_watch_shows_the_ranks_of_all_hosts() {
    let mark = Mark::new();
    let run = format!("until [ -e {} ]; do sleep 0.01; done", mark.path().display());
    let job = on("a:1,b:1", &run).options(["--watch", "--watch-every", "0.05"]).start();
    eventually("a block has the memory of both ranks", || {
        let is_row =
            |line: &str, rank: &str| line.starts_with(rank) && line.ends_with("M  not joined");
        let said = job.stderr();
        ["mpjrun: 0 ", "mpjrun: 1 "].iter().all(|rank| said.lines().any(|line| is_row(line, rank)))
    });
    mark.set();
    job.expect(0);
}

#[test]
fn a_job_that_goes_on_reports_failures() {
    let mark = Mark::new();
    let run = format!(
        "[ $MPJ_RANK = 1 ] && exit 5; until [ -e {} ]; do sleep 0.01; done; echo done",
        mark.path().display()
    );
    let job = on("a,b,c", &run).options(["--on-failure", "keep"]).start();
    eventually("the failure is told", || job.stderr().contains("the other ranks go on"));
    mark.set();
    let done = job.expect(5);
    assert_eq!(done.stdout, "done\ndone\n");
    assert!(done.stderr.contains(", host b) exited with code 5, "), "{done:?}");
}

/// A job on these hosts whose processes are these, with the agent of rank 1 last.
#[track_caller]
fn with_agent_by(start: &str, hosts: &str, more: &[&str]) -> (Running, Vec<u32>) {
    let run = "sleep 600 & echo $!; echo $$; [ $MPJ_RANK = 1 ] && echo $PPID; wait";
    let job = started_by(start, hosts, run).options(more).start();
    let pids = job.numbers(2 * hosts.split(',').count() + 1);
    let is_agent = |pid: &&u32| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains("--agent")
    };
    let agent = *pids.iter().find(is_agent).expect("it is the parent of a rank");
    let others = pids.iter().filter(|pid| **pid != agent);
    let pids = others.copied().chain([agent]).collect();
    (job, pids)
}

#[track_caller]
fn with_agent_on(hosts: &str, more: &[&str]) -> (Running, Vec<u32>) {
    with_agent_by(HERE, hosts, more)
}

#[track_caller]
fn with_agent(more: &[&str]) -> (Running, Vec<u32>) {
    with_agent_on("a,b", more)
}

/// Each agent with the process that has started it.
#[track_caller]
fn agents_of(hosts: &str, more: &[&str]) -> Vec<(u32, u32)> {
    let run = "read -r _ _ _ parent _ </proc/$PPID/stat; echo $PPID $parent";
    let done = on(hosts, run).options(more).expect_quiet();
    let number = |word: Option<&str>| word.and_then(|it| it.parse().ok()).expect("a process");
    let pair = |line: &str| {
        let mut words = line.split(' ');
        (number(words.next()), number(words.next()))
    };
    done.stdout.lines().map(pair).collect()
}

#[test]
fn many_agents_start_each_other() {
    let hosts: Vec<String> = (0..20).map(|number| format!("h{number}")).collect();
    for (more, depth) in [(&[][..], 2), (&["--agent-fanout", "3"], 3)] {
        let agents = agents_of(&hosts.join(","), more);
        let parent = |agent: u32| agents.iter().find(|it| it.0 == agent).map(|it| it.1);
        let level = |agent| std::iter::successors(Some(agent), |at| parent(*at)).count() - 1;
        let levels = agents.iter().map(|(agent, _)| level(*agent));
        assert_eq!((agents.len(), levels.max()), (20, Some(depth)), "{agents:?}");
        let most = if depth == 2 { 16 } else { 3 };
        for (_, parent) in &agents {
            assert!(agents.iter().filter(|it| it.1 == *parent).count() <= most, "{agents:?}");
        }
    }
}

/// The options of a job whose agents are a chain.
const CHAIN: &[&str] = &["--agent-fanout", "1"];

#[test]
fn a_killed_agent_takes_those_below_with_it() {
    let (job, pids) = with_agent_on("a,b,c", CHAIN);
    signal(pids[6], Signal::KILL).expect("it runs");
    job.expect(125).says("the line to it ended: sh ended (signal: 9 (SIGKILL))");
    await_end(&pids);
}

#[test]
fn a_lost_host_is_told_once() {
    let run = "echo $PPID; exec sleep 600";
    let job = on("a,b:4", run).options(["--on-failure", "keep"]).start();
    let agents = job.numbers(5);
    let is_second = |agent: &&u32| agents.iter().filter(|it| it == agent).count() == 4;
    let second = *agents.iter().find(is_second).expect("four ranks have one parent");
    signal(second, Signal::KILL).expect("it runs");
    eventually("the loss is told", || job.stderr().contains("the other ranks go on"));
    job.signal(Signal::TERM);
    let done = job.expect(143).says("mpjrun: host b was lost with ranks 1-4, ");
    assert_eq!(done.stderr.matches("the line to it ended").count(), 1, "{done:?}");
}

#[test]
fn a_silent_agent_takes_those_below_with_it() {
    let more = [CHAIN, &["--host-timeout", "4", "--on-failure", "keep"]].concat();
    let (job, pids) = with_agent_on("a,b,c", &more);
    signal(pids[6], Signal::STOP).expect("it runs");
    eventually("both hosts are lost", || {
        let said = job.stderr();
        said.contains("nothing has come from it for 4 s (--host-timeout)")
            && said.contains("its line went by host b, which was lost")
    });
    let is_left = |pid: &&u32| find(**pid).is_some_and(|it| it.state != 'Z');
    eventually("only the ranks of the first host are left", || {
        pids.iter().filter(is_left).count() == 2
    });
    job.signal(Signal::TERM);
    job.expect(143);
    await_end(&pids);
}

#[test]
fn an_agent_below_that_cannot_start_is_named() {
    let start = "[ $1 = c ] && { echo no such account >&2; exit 3; }; shift; exec \"$@\"";
    let done = started_by(start, "a,b,c", "echo started").options(CHAIN).expect(125);
    for words in [
        "mpjrun: host c: as seen from host b (--agent-fanout): ",
        "no mpjrun has answered there: sh ended (exit status: 3); it said: no such account",
    ] {
        assert!(done.stderr.contains(words), "no {words:?} in {}", done.stderr);
    }
    assert_eq!(done.stdout, "");
}

#[test]
fn a_killed_agent_is_a_lost_host() {
    let (job, pids) = with_agent(&[]);
    signal(pids[4], Signal::KILL).expect("it runs");
    let done = job.expect(125);
    for words in [
        "mpjrun: host b was lost with rank 1, ",
        "the line to it ended: sh ended (signal: 9 (SIGKILL))",
    ] {
        assert!(done.stderr.contains(words), "no {words:?} in {}", done.stderr);
    }
    await_end(&pids);
}

#[test]
fn a_silent_agent_is_a_lost_host() {
    let (job, pids) = with_agent(&["--host-timeout", "4"]);
    signal(pids[4], Signal::STOP).expect("it runs");
    job.expect(125).says("nothing has come from it for 4 s (--host-timeout)");
    await_end(&pids);
}

/// The program that starts the agent stays in between, as ssh does, and is all that mpjrun can end.
#[test]
fn a_suspended_agent_that_goes_on_sees_that_its_line_has_ended() {
    let (job, pids) = with_agent_by("shift; \"$@\"; exit 3", "a,b", &["--host-timeout", "4"]);
    signal(pids[4], Signal::STOP).expect("it runs");
    job.expect(125).says("nothing has come from it for 4 s (--host-timeout)");
    assert!(find(pids[4]).is_some_and(|agent| agent.state == 'T'));
    signal(pids[4], Signal::CONT).expect("it is there");
    await_end(&pids);
}

/// Nothing ends the line of the agent here when mpjrun has ended.
#[test]
fn a_suspended_agent_that_goes_on_sees_that_its_line_is_silent() {
    let start = "shift; { cat; exec sleep 15; } | \"$@\"";
    let (job, pids) = with_agent_by(start, "a,b", &["--host-timeout", "2"]);
    signal(pids[4], Signal::STOP).expect("it runs");
    job.signal(Signal::KILL);
    job.finish();
    signal(pids[4], Signal::CONT).expect("it is there");
    await_end(&pids);
}

#[test]
fn an_agent_that_is_asked_to_end_ends_its_ranks() {
    let (job, pids) = with_agent(&[]);
    signal(pids[4], Signal::TERM).expect("it runs");
    job.expect(125).says("mpjrun: host b was lost with rank 1, ");
    await_end(&pids);
}

#[test]
fn nothing_is_left_when_mpjrun_is_killed() {
    let (job, pids) = with_agent(&[]);
    job.signal(Signal::KILL);
    job.finish();
    await_end(&pids);
}

#[test]
fn signals_reach_the_ranks_of_all_hosts() {
    let (job, pids) = with_agent(&[]);
    job.signal(Signal::TERM);
    job.expect(143).says("mpjrun: ended by signal 15 (SIGTERM)");
    await_end(&pids);
    let run = "trap \"echo got it; exit 0\" USR1; echo $$; while :; do sleep 0.01; done";
    let job = on("a,b", run).start();
    job.numbers(2);
    job.signal(Signal::USR1);
    assert_eq!(job.expect(0).stdout.matches("got it").count(), 2);
}

#[test]
fn a_killed_rank_is_the_cause() {
    let run = "echo $$; [ $MPJ_RANK = 1 ] && kill -9 $$; exec sleep 600";
    let done = on("a,b", run).expect(137);
    assert!(done.stderr.contains(", host b) was killed by signal 9 (SIGKILL), "), "{done:?}");
}

#[test]
fn the_time_limit_holds_for_all_hosts() {
    let job = on("a,b", "exec sleep 600").options(["--timeout", "1"]);
    job.expect(124).says("the job still ran after 1 s");
    let job = started_by("sleep 600", "a", "true").options(["--timeout", "0.5"]);
    job.expect(124).says("the time limit was over before all ranks were started");
}

#[test]
fn input_goes_to_the_rank_that_asks_for_it() {
    let run = "[ $MPJ_RANK = 1 ] && wc -c; true";
    for more in [&[][..], CHAIN] {
        let job = on("a,b", run).options(["--stdin", "1"]).options(more);
        let mut job = job.stdin(Stdio::piped()).start();
        let mut input = job.stdin();
        input.write_all(&vec![b'x'; 300_000]).expect("it is read");
        drop(input);
        assert_eq!(job.expect(0).stdout.trim(), "300000");
    }
    let job = on("a,b", "cat; echo end").stdin(Stdio::null());
    assert_eq!(job.expect_quiet().stdout, "end\nend\n");
}

#[test]
fn much_output_arrives_whole() {
    let run = "i=0; while [ $i -lt 40 ]; do head -c 100000 /dev/zero | tr \"\\0\" $MPJ_RANK; echo; i=$((i+1)); done";
    for more in [&[][..], CHAIN] {
        let done = on("a,b", run).options(more).expect(0);
        let of = |rank: &str| done.stdout.matches(rank).count();
        assert_eq!((of("0"), of("1")), (4_000_000, 4_000_000));
    }
}

#[test]
fn daemons_of_hosts_are_ended() {
    let run = "setsid sleep 600 & echo $!; \
        until [ $(cat /proc/$!/comm) = sleep ]; do sleep 0.01; done";
    let job = on("a,b", run).options(CHAIN).start();
    let pids = job.numbers(2);
    let says = ["mpjrun: ended daemons that ranks had started: ", " on host a", " on host b"];
    job.expect(0).says_all(&says);
    assert!(pids.iter().all(|pid| find(*pid).is_none()));
}

#[test]
fn what_a_login_shell_prints_is_skipped() {
    let done = started_by(&format!("echo Welcome to $1; {HERE}"), "a,b", "echo hi").expect_quiet();
    assert_eq!(done.stdout, "hi\nhi\n");
}

/// Signs of life wait for an agent that starts late.
#[test]
fn a_starter_that_takes_its_time() {
    let job = started_by(&format!("sleep 1.5; {HERE}"), "a,b", "echo hi");
    let done = job.options(["--host-timeout", "4"]).expect_quiet();
    assert_eq!(done.stdout, "hi\nhi\n");
}

/// The job comes to the agent bit by bit. Meanwhile each end hears signs of life of the other.
#[test]
fn a_job_that_is_told_slowly_is_no_silence() {
    let trickle = "{ i=0; while [ $i -lt 16 ]; do head -c 40; sleep 0.25; i=$((i+1)); done; cat; }";
    let job = started_by(&format!("shift; {trickle} | \"$@\""), "a,b", "echo hi");
    let done = job.options(["--host-timeout", "2"]).expect_quiet();
    assert_eq!(done.stdout, "hi\nhi\n");
}

#[test]
fn a_starter_that_prints_without_end_is_given_up() {
    assert_no_start("yes", &["it prints without end before mpjrun answers"]);
}

/// A start that fails, and what is said.
#[track_caller]
fn assert_no_start(start: &str, said: &[&str]) {
    let scene = Scene::new("");
    let job = started_by(start, "a,b", "echo started").at(&scene);
    let done = job.limit(Duration::from_secs(30)).options(["--host-timeout", "5"]).expect(125);
    for words in said {
        assert!(done.stderr.contains(words), "no {words:?} in {}", done.stderr);
    }
    assert_eq!(done.stdout, "");
    // What a starter has started ends by itself when its pipes are closed.
    scene.bury_orphans();
}

#[test]
fn a_start_that_fails_names_host_and_cause() {
    assert_no_start(
        "[ $1 = b ] && { echo Welcome; echo no such account >&2; exit 3; }; shift; exec \"$@\"",
        &[
            "mpjrun: host b: no mpjrun has answered there: sh ended (exit status: 3)",
            "it said: Welcome; no such account",
        ],
    );
    assert_no_start(
        "printf \"\\0mpj-agent 9.9\\0\"; exec cat >/dev/null",
        &["mpjrun: host ", "mpjrun 9.9 is installed there, and this is 0.1.0"],
    );
    let no_starter = launch("true").options(["--agent-launcher", "/absent", "--hosts", "a"]);
    no_starter.expect(125).says("mpjrun: host a: cannot start /absent: ");
}

#[test]
fn a_wrong_secret_is_refused() {
    assert_no_start(
        "shift; { read secret; printf \"%064d\\n\" 0; exec cat; } | \"$@\"",
        &[
            "mpjrun: host ",
            "refused what came from it: message 0 does not prove to come from this job",
        ],
    );
}

#[test]
fn an_agent_that_never_answers_is_given_up() {
    let job = started_by("exec sleep 600", "a", "true").options(["--host-timeout", "1"]);
    job.expect(125).says("host a: no mpjrun has answered there for 1 s (--host-timeout)");
}

#[test]
fn a_program_that_is_missing_is_found_before_the_start() {
    let starter = ["--agent-launcher", "sh -c 'shift; exec \"$@\"' starter", "--hosts", "a,b"];
    let folder = tempfile::tempdir().expect("a folder");
    let job = mpjrun(starter).args(["./absent"]).set(|it| it.current_dir(folder.path()));
    job.expect(127).says(": program not found: ./absent");
    // The folder of mpjrun goes before the agent of the second host enters it.
    let gone = folder.path().join("gone");
    fs::create_dir(&gone).expect("a folder");
    let start = format!("rm -rf {}; {HERE}", gone.display());
    let job = started_by(&start, "a", "true").set(|it| it.current_dir(&gone));
    job.expect(2).says("host a: cannot enter ");
}

#[test]
fn copies_of_programs_are_run() {
    let folder = tempfile::tempdir().expect("a folder");
    // A program of several pieces: what follows a shell does not matter to it.
    let shell = fs::read("/bin/sh").expect("there is a shell");
    let paths = [
        ("program", [&shell[..], &vec![1; 1 << 20]].concat()),
        ("script", b"#!/bin/sh\nreadlink -m $0; echo $1\n".to_vec()),
    ];
    let [program, script] = paths.map(|(name, bytes)| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("our own folder");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our own file");
        path.into_os_string()
    });
    let starter = format!("sh -c '{HERE}' starter");
    let job = mpjrun(["--agent-launcher", &starter, "--hosts", "a,b,c", "--copy", "-n", "3"]);
    let job = job.args(CHAIN).args([&program]).args(["-c", "readlink /proc/$$/exe; exit 3"]);
    let done = job.args([":", "-n", "2"]).args([&script]).args(["x y"]).expect(3);
    let lines = done.sorted_lines();
    assert!(lines.contains(&"/memfd:program (deleted)"), "{lines:?}");
    let job = mpjrun(["--agent-launcher", &starter, "--hosts", "a,b", "--copy"]);
    let done = job.args([&script]).args(["x y"]).expect_quiet();
    let lines = done.sorted_lines();
    assert_eq!(lines[2..], ["x y", "x y"]);
    assert!(lines[..2].iter().all(|line| line.contains("/memfd:script")), "{lines:?}");
}

/// The system's variable counts for one namespace of processes.
#[test]
fn a_system_that_forbids_programs_in_memory_is_named() {
    let inside = "echo 2 2>/dev/null >/proc/sys/vm/memfd_noexec || exit 77; exec \"$@\"";
    let user = ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "sh", "-c", inside];
    let starter = format!("sh -c '{HERE}' starter");
    let job = command("unshare").args(user).args(["sh".as_ref(), mpjrun_path().as_os_str()]);
    let job = job.args(["--agent-launcher", &starter, "--hosts", "a", "--copy", "true"]).run();
    if job.code == 77 || job.stderr.contains("unshare: ") {
        return skip(&job.stderr);
    }
    let says = "true: the system forbids programs in memory: set its variable vm.memfd_noexec";
    assert!(job.code == 125 && job.stderr.contains(says), "{job:?}");
}

#[test]
fn an_agent_is_for_mpjrun_only() {
    mpjrun(["--agent"]).expect(2).says("mpjrun: --agent is for agents");
}

#[test]
fn ranks_that_join_no_job_record_nothing_on_any_host() {
    for more in [&[][..], CHAIN] {
        let job = on("a,b:2,c", "echo hi").options(["--profile"]).options(more).expect(0);
        let [times, none, ..] = &job.stderr.lines().collect::<Vec<_>>()[..] else {
            panic!("{job:?}");
        };
        assert!(times.starts_with("mpjrun: times of different hosts agree to within "), "{job:?}");
        assert!(none.starts_with("mpjrun: no rank has recorded anything"), "{job:?}");
        assert!(!job.stderr.contains("missing"), "{job:?}");
    }
}

/// A job whose second agent falls silent, whether it has told that its rank is gone or not, and whose first rank ends.
/// `meanwhile` is called until `mpjrun` says why the records of that host are missing.
#[track_caller]
fn assert_silent_at_the_end(timeout: &str, why: &str, meanwhile: impl Fn(&Running)) {
    let mark = Mark::new();
    let wait = format!("until [ -e {} ]; do sleep 0.01; done", mark.path().display());
    let run = format!("[ $MPJ_RANK = 1 ] && {{ echo $$; echo $PPID; exit; }}; {wait}");
    let more = ["--on-failure", "keep", "--host-timeout", timeout, "--profile"];
    let job = on("a,b", &run).options(more).start();
    let pids = job.numbers(2);
    await_end(&pids[..1]);
    signal(pids[1], Signal::STOP).expect("it runs");
    mark.set();
    let why = format!("mpjrun: the records of host b are missing: {why}\n");
    eventually("it is said", || {
        meanwhile(&job);
        job.stderr().contains(&why)
    });
    let done = job.finish();
    // A signal counts for all hosts.
    let are_lost = done.stderr.contains("records of host a");
    assert_eq!(are_lost, why.contains("asked to end"), "{done:?}");
    await_end(&pids);
}

#[test]
fn records_of_a_silent_host_are_not_waited_for_without_end() {
    let why = "nothing has come from it for 2 s (--host-timeout)";
    assert_silent_at_the_end("2", why, |_| {});
}

#[test]
fn a_signal_ends_the_wait_for_records() {
    let why = "mpjrun was asked to end";
    assert_silent_at_the_end("600", why, |job| job.signal(Signal::TERM));
}

#[test]
fn records_of_lost_hosts_are_said_to_be_missing() {
    let mark = Mark::new();
    let wait = format!("until [ -e {} ]; do sleep 0.01; done", mark.path().display());
    let run =
        format!("[ $MPJ_RANK = 1 ] && echo $PPID; [ $MPJ_RANK = 0 ] || exec sleep 600; {wait}");
    let more = [CHAIN, &["--on-failure", "keep", "--profile"]].concat();
    let job = on("a,b,c", &run).options(more).start();
    signal(job.numbers(1)[0], Signal::KILL).expect("it runs");
    eventually("both are lost", || job.stderr().contains("went by host b, which was lost"));
    mark.set();
    let done = job.expect(125).says_all(&[
        "mpjrun: the records of host b are missing: ",
        "mpjrun: the records of host c are missing: its line went by host b, which was lost",
        "mpjrun: no rank has recorded anything",
    ]);
    assert!(!done.stderr.contains("records of host a"), "{done:?}");
}
