//! The hosts that jobs of several hosts are tested on: they reach each other by name, what one does to them takes
//! effect, and nothing is left of them.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use mpj_harness::{Hosts, Running, command, eventually, process, workspace};
use rustix::process::Signal;

const GREETER: &str = env!("CARGO_BIN_EXE_greeter");

/// Starts a program on a host that waits to be greeted, and returns it with its port.
#[track_caller]
fn listen(hosts: &Hosts, host: &str) -> (Running, String) {
    let listener = hosts.on(host, GREETER).args(["listen"]).start();
    let port = listener.numbers(1)[0].to_string();
    (listener, port)
}

/// The names of network interfaces on this machine, what is mounted here, and the folders of hosts.
fn machine() -> BTreeSet<String> {
    let names = |folder: &str| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let mounts = fs::read_to_string("/proc/self/mounts").expect("the kernel lists mounts");
    let mounts = mounts.lines().map(str::to_owned).collect();
    [names("/sys/class/net"), mounts].concat().into_iter().collect()
}

#[test]
fn hosts_reach_each_other_by_name() {
    let Some(hosts) = Hosts::open(3) else { return };
    assert!(hosts.names().eq(["node1", "node2", "node3"]));
    for (from, to) in [("node1", "node2"), ("node2", "node1"), ("node3", "node3")] {
        let (listener, port) = listen(&hosts, to);
        let greeter = hosts.on(from, GREETER).args(["greet", to, &port]).expect_quiet();
        assert_eq!(greeter.stdout, format!("GOOD MORNING from {}\n", hosts.address(to)));
        listener.expect(0);
    }
    assert_eq!(hosts.remains(), [""; 0]);
}

#[test]
fn each_host_has_a_name_and_files_of_its_own() {
    let Some(hosts) = Hosts::open(2) else { return };
    let script = "hostname; ls /sys/class/net; touch /tmp/mine /dev/shm/mine";
    let shell = hosts.on("node1", "sh").args(["-c", script]).expect_quiet();
    assert_eq!(shell.sorted_lines(), ["eth0", "lo", "node1"]);
    assert_eq!(hosts.remains(), ["node1:/tmp/mine", "node1:/dev/shm/mine"]);
    for file in ["/tmp/mine", "/dev/shm/mine"] {
        assert!(!Path::new(file).exists());
        assert_ne!(hosts.on("node2", "ls").args([file]).run().code, 0, "{file}");
    }
}

#[test]
fn a_program_is_started_as_by_srun_or_as_by_ssh() {
    let Some(hosts) = Hosts::open(2) else { return };
    let script = "echo $SAID from $(hostname); pwd; exit 5";
    let here = workspace().to_str().expect("a name in UTF-8");
    let entered = hosts.on("node2", "sh").args(["-c", script]).env("SAID", "a  b");
    let entered = entered.set(|command| command.current_dir(here)).expect(5);
    assert_eq!(entered.stdout, format!("a b from node2\n{here}\n"));
    // What ssh starts gets its words by a shell, and nothing else from its caller.
    let by_ssh = |words: &[&str]| {
        let ssh = hosts.on("node1", "ssh").args(["-x", "-o", "BatchMode=yes", "me@node2"]);
        ssh.args(words).env("SAID", "a  b").run()
    };
    assert_eq!(by_ssh(&[script]).expect(5).stdout.lines().next(), Some("from node2"));
    assert_eq!(by_ssh(&["echo", "'a  b'", "c;", "hostname"]).expect(0).stdout, "a  b c\nnode2\n");
    hosts.on("node1", "ssh").args(["node3", "true"]).expect(255).says("Could not resolve hostname");
    let input = fs::File::open("/etc/hostname").expect("a file");
    let through = command(hosts.enter()).args(["node2", "cat"]).stdin(input).expect_quiet();
    assert_eq!(through.stdout, fs::read_to_string("/etc/hostname").expect("a file"));
}

#[test]
fn a_cable_is_pulled_and_plugged_in_again() {
    let Some(hosts) = Hosts::open(2) else { return };
    let (listener, port) = listen(&hosts, "node2");
    hosts.plug("node2", false);
    let greeter = hosts.on("node1", GREETER).args(["greet", "node2", &port]).start();
    let asks = || hosts.on("node1", "ip").args(["neighbour"]).run().stdout.contains("INCOMPLETE");
    eventually("the greeter looks for the other host", asks);
    hosts.plug("node2", true);
    assert!(greeter.expect(0).stdout.starts_with("GOOD MORNING"));
    listener.expect(0);
}

#[test]
fn packets_are_lost() {
    let Some(hosts) = Hosts::open(2) else { return };
    if !hosts.lose("node2", 1.0) {
        return;
    }
    let (listener, port) = listen(&hosts, "node2");
    let greeter = hosts.on("node1", GREETER).args(["greet", "node2", &port]).start();
    let count = || hosts.on("node2", "iptables-nft").args(["-nvL", "INPUT"]).run().stdout;
    eventually("a packet is lost", || !count().contains("    0     0 DROP"));
    assert!(hosts.lose("node2", 0.0));
    greeter.expect(0);
    listener.expect(0);
}

#[test]
fn a_host_stands_still_or_ends_with_all_that_runs_on_it() {
    let Some(hosts) = Hosts::open(2) else { return };
    let start = |host| hosts.on(host, "sh").args(["-c", "sleep 100 & echo $!; wait"]).start();
    let [first, second] = ["node1", "node2"].map(start);
    let [first_sleeper, second_sleeper] = [&first, &second].map(|shell| shell.numbers(1)[0]);
    hosts.freeze("node2");
    let states = |host| hosts.processes(host).map(|process| process.state).collect::<String>();
    assert_eq!((states("node1").as_str(), states("node2").as_str()), ("SS", "TT"));
    hosts.end("node2");
    second.expect(137);
    process::await_end(&[second_sleeper]);
    assert!(process::runs(first_sleeper));
    hosts.on("node2", "true").expect(255).says("host node2 is gone");
    hosts.on("node1", "ssh").args(["node2", "true"]).expect(255);
}

/// Whatever ends the hosts, it leaves no process, no interface, no mount and no file.
#[test]
fn nothing_is_left() {
    let before = machine();
    let start = |hosts: &Hosts| {
        let script = "setsid sleep 100 & echo $!; wait";
        let shell = hosts.on("node2", "sh").args(["-c", script]).start();
        let sleeper = shell.numbers(1)[0];
        (shell, sleeper)
    };
    let Some(hosts) = Hosts::open(2) else { return };
    let (folder, (shell, sleeper)) = (hosts.enter(), start(&hosts));
    drop(hosts);
    shell.expect(137);
    assert!(!process::runs(sleeper) && !folder.exists());
    let hosts = Hosts::open(2).expect("there were some before");
    let (folder, (shell, sleeper)) = (hosts.enter(), start(&hosts));
    let panic = catch_unwind(AssertUnwindSafe(move || {
        let _hosts = hosts;
        panic!("a test fails");
    }));
    assert!(panic.is_err() && !process::runs(sleeper) && !folder.exists());
    shell.expect(137);
    assert_eq!(machine(), before);
}

/// All that is left of a process that was killed is the end of what it writes to the script.
#[test]
fn hosts_end_with_the_process_that_opened_them_and_with_their_script() {
    if Hosts::open(1).is_none() {
        return;
    }
    let open = || {
        let script = command(workspace().join("tests/hosts")).stdin(Stdio::piped()).start();
        eventually("the hosts are open", || script.stdout().contains('\n'));
        let folder = PathBuf::from(script.stdout().trim_end());
        let keeper = |host| {
            let text = fs::read_to_string(folder.join(format!("host.{host}"))).expect("it is open");
            text.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
        };
        let keepers: Vec<u32> = ["node1", "node2"].into_iter().map(keeper).collect();
        (script, folder, keepers)
    };
    let (mut script, folder, keepers) = open();
    drop(script.stdin());
    script.expect(0);
    assert!(!folder.exists() && !keepers.into_iter().any(process::runs));
    let (script, folder, keepers) = open();
    script.signal(Signal::KILL);
    script.expect(137);
    process::await_end(&keepers);
    fs::remove_dir_all(folder).expect("our own folder");
}

/// A user who may have no more namespaces of networks stands for a system that has none.
#[test]
fn a_system_that_has_no_hosts_says_so() {
    let limited = "echo 0 >/proc/sys/user/max_net_namespaces && exec \"$@\"";
    let script = workspace().join("tests/hosts");
    let unshare = command("unshare").args(["--user", "--map-root-user", "sh", "-c", limited, "sh"]);
    let limited = unshare.args([script]).args(["true"]).run();
    assert!(limited.code == 77 || limited.code == 1 && limited.stdout.is_empty(), "{limited:?}");
    assert!(limited.stderr.contains("unshare: "), "{limited:?}");
}
