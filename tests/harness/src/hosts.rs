//! Hosts made out of namespaces by the script `tests/hosts`, for tests of jobs that need several.
//!
//! ```no_run
//! use mpj_harness::Hosts;
//!
//! let Some(hosts) = Hosts::open(2) else { return };
//! hosts.on("node1", "ssh").args(["node2", "hostname"]).expect(0);
//! ```
//!
//! - HB1: all that a host has (processes, network, mounts) lives in its namespaces. The script removes them when its
//!   input ends, so nothing is left when the hosts are dropped, or the process of the tests is killed.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use crate::process::{self, Process};
use crate::{Launch, built, command, eventually, workspace};

/// The exit code of scripts where there cannot be what they open.
pub const REFUSED: i32 = 77;

/// Hosts that reach each other, but not the machine that they are on; removed when dropped (HB1). They are called
/// `node1`, `node2` and so on. Programs and files are the same on all of them, except in `/tmp` and `/dev/shm`.
#[derive(Debug)]
pub struct Hosts {
    script: Child,
    folder: PathBuf,
    hosts: Vec<Host>,
    /// Files of the hosts' own when they were opened.
    files: Vec<String>,
}

#[derive(Debug)]
struct Host {
    name: String,
    /// The number of the process that keeps its namespaces.
    keeper: u32,
    /// The kernel's name for its network.
    network: PathBuf,
}

impl Hosts {
    /// Opens `count` hosts. Where the system refuses them, it says on standard error that the test is skipped.
    ///
    /// # Panics
    /// When they cannot be opened for another reason.
    #[track_caller]
    pub fn open(count: usize) -> Option<Self> {
        Self::open_sharing(count, &[])
    }

    /// Like [`Hosts::open`]; these folders are the same on all hosts even though they are in `/tmp`.
    ///
    /// # Panics
    /// As [`Hosts::open`].
    #[track_caller]
    pub fn open_sharing(count: usize, folders: &[&Path]) -> Option<Self> {
        let script = workspace().join("tests/hosts");
        Self::open_by(Command::new(script), count, folders).inspect_err(|why| skip(why)).ok()
    }

    /// Opens hosts, or returns the reason why the system refuses them.
    #[track_caller]
    fn open_by(mut script: Command, count: usize, folders: &[&Path]) -> Result<Self, String> {
        script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        script.arg("-n").arg(count.to_string());
        for folder in [&[workspace(), &built::profile_folder()], folders].concat() {
            script.arg("-s").arg(folder);
        }
        let words = format!("{script:?}");
        let mut script = script.spawn().unwrap_or_else(|error| panic!("{words}: {error}"));
        let mut folder = String::new();
        let out = script.stdout.take().expect("it is piped");
        BufReader::new(out).read_line(&mut folder).expect("a line of text");
        if folder.is_empty() {
            let mut why = String::new();
            script.stderr.take().expect("it is piped").read_to_string(&mut why).expect("text");
            let status = script.wait().expect("our child");
            assert_eq!(status.code(), Some(REFUSED), "{words}: {why}");
            return Err(why.trim_end().to_owned());
        }
        let folder = PathBuf::from(folder.trim_end());
        let hosts = (1..=count).map(|number| Host::read(&folder, format!("node{number}")));
        let mut hosts = Self { hosts: hosts.collect(), script, folder, files: Vec::new() };
        hosts.files = hosts.files();
        Ok(hosts)
    }

    /// The names of the hosts.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().map(|host| host.name.as_str())
    }

    /// The address of a host.
    ///
    /// # Panics
    /// When there is no such host.
    #[track_caller]
    pub fn address(&self, host: &str) -> Ipv4Addr {
        let names = fs::read_to_string(self.folder.join("names")).expect("the hosts are open");
        let mut lines = names.lines().filter_map(|line| line.split_once(' '));
        let (address, _) = lines.find(|(_, name)| *name == host).expect("a host of this name");
        address.parse().expect("the script writes addresses")
    }

    /// A program that starts others on a host, in the environment and the folder of its caller: `enter HOST PROGRAM
    /// ARGUMENTS`.
    pub fn enter(&self) -> PathBuf {
        self.folder.join("enter")
    }

    /// A program that does so as `ssh` does: a shell on the host evaluates the words, in the environment of a login.
    /// What runs on a host finds it in its `PATH`.
    pub fn ssh(&self) -> PathBuf {
        self.folder.join("ssh")
    }

    /// A program on a host.
    pub fn on(&self, host: &str, program: impl AsRef<OsStr>) -> Launch {
        command(self.enter()).options([host]).options([program])
    }

    /// Pulls the cable of a host, or plugs it in again. Its interface keeps its address.
    ///
    /// # Panics
    /// When there is no such host.
    #[track_caller]
    pub fn plug(&self, host: &str, is_in: bool) {
        let state = if is_in { "up" } else { "down" };
        self.on("switch", "ip").args(["link", "set", "dev", host, state]).expect_quiet();
    }

    /// Loses this share of the packets that a host receives from now on, each by chance. Where the system has nothing
    /// that loses packets, it says on standard error that the test is skipped, and returns `false`.
    ///
    /// # Panics
    /// When there is no such host.
    #[track_caller]
    pub fn lose(&self, host: &str, share: f64) -> bool {
        let share = share.to_string();
        let chance = ["-m", "statistic", "--mode", "random", "--probability", &share, "-j", "DROP"];
        self.filter(host, &chance)
    }

    /// Gives a host a firewall with this one rule for what it receives from other hosts, in the words of iptables; without words
    /// there is none any more. Where the system has no firewall, it says on standard error that the test is skipped, and
    /// returns `false`.
    ///
    /// # Panics
    /// When there is no such host.
    #[track_caller]
    pub fn filter(&self, host: &str, rule: &[&str]) -> bool {
        let table = || self.on(host, "iptables-nft");
        let mut steps = vec![table().args(["-F", "INPUT"])];
        if !rule.is_empty() {
            steps.push(table().args(["-A", "INPUT", "-i", "eth0"]).args(rule));
        }
        let refused = steps.into_iter().map(Launch::run).find(|outcome| outcome.code != 0);
        refused.inspect(|outcome| skip(&outcome.stderr)).is_none()
    }

    /// Delays this share of the packets that a host sends from now on, each by chance, so that later ones overtake them. Where
    /// the system has nothing for that, it says on standard error that the test is skipped, and returns `false`.
    ///
    /// # Panics
    /// When there is no such host.
    #[track_caller]
    pub fn reorder(&self, host: &str, share: f64) -> bool {
        let delayed = format!(
            "iptables-nft -t mangle -A POSTROUTING -o eth0 -m statistic --mode random --probability {share} \
             -j CLASSIFY --set-class 1:1"
        );
        let steps = [
            "tc qdisc add dev eth0 root handle 1: htb default 2",
            "tc class add dev eth0 parent 1: classid 1:1 htb rate 20mbit",
            "tc class add dev eth0 parent 1: classid 1:2 htb rate 10gbit quantum 60000",
            &delayed,
        ];
        let run = |step: &str| self.on(host, "sh").args(["-c", step]).run();
        let refused = steps.into_iter().map(run).find(|outcome| outcome.code != 0);
        refused.inspect(|outcome| skip(&outcome.stderr)).is_none()
    }

    /// Makes a host silent, as one whose kernel hangs: its processes stand still, and nothing comes out of it.
    ///
    /// # Panics
    /// When there is no such host.
    #[track_caller]
    pub fn freeze(&self, host: &str) {
        self.plug(host, false);
        // A process may start another one between two looks.
        eventually("every process of the host stands still", || {
            let others = self.host(host).processes().filter(|process| process.state != 'T');
            all_gone(others.map(|process| process.pid), Signal::STOP)
        });
    }

    /// Ends a host as a power cut does: its processes say good-bye to nobody on the network.
    ///
    /// # Panics
    /// When there is no such host, or it does not end.
    #[track_caller]
    pub fn end(&self, host: &str) {
        self.plug(host, false);
        let host = self.host(host);
        eventually("the host is gone", || {
            let keeper = process::find(host.keeper).filter(|keeper| keeper.runs());
            let all = host.processes().chain(keeper);
            all_gone(all.map(|process| process.pid), Signal::KILL)
        });
    }

    /// The processes on a host.
    ///
    /// # Panics
    /// When there is no such host.
    #[track_caller]
    pub fn processes(&self, host: &str) -> impl Iterator<Item = Process> {
        self.host(host).processes()
    }

    /// What is left on the hosts, in words: processes, and files that were not there before; empty if nothing.
    pub fn remains(&self) -> Vec<String> {
        let mut remains = self.files();
        remains.retain(|file| !self.files.contains(file));
        for host in &self.hosts {
            remains.extend(host.processes().map(|process| format!("{}: {process}", host.name)));
        }
        remains
    }

    fn files(&self) -> Vec<String> {
        self.hosts.iter().flat_map(Host::files).collect()
    }

    #[track_caller]
    fn host(&self, name: &str) -> &Host {
        self.hosts.iter().find(|host| host.name == name).expect("a host of this name")
    }
}

impl Host {
    fn read(folder: &Path, name: String) -> Self {
        let path = folder.join(format!("host.{name}"));
        let text = fs::read_to_string(path).expect("the script writes it before it says so");
        let keeper = text.split(' ').next().and_then(|number| number.parse().ok());
        let keeper = keeper.expect("the file has the number of a process");
        Self { name, keeper, network: network(keeper).expect("the keeper runs") }
    }

    /// The processes on it but for the keeper.
    fn processes(&self) -> impl Iterator<Item = Process> {
        let others = process::all().filter(|process| process.pid != self.keeper);
        others.filter(|process| network(process.pid).as_ref() == Some(&self.network))
    }

    /// Its own files; none if it is gone.
    fn files(&self) -> impl Iterator<Item = String> {
        ["tmp", "dev/shm"].into_iter().flat_map(move |folder| {
            let root = Path::new("/proc").join(self.keeper.to_string()).join("root");
            let entries = fs::read_dir(root.join(folder));
            let paths = entries.into_iter().flatten().flatten();
            paths.map(move |entry| {
                format!("{}:/{folder}/{}", self.name, entry.file_name().to_string_lossy())
            })
        })
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        let _ = self.script.wait();
    }
}

/// Says on standard error that a test shows nothing, and why.
#[expect(clippy::print_stderr, reason = "a test that shows nothing says so")]
pub fn skip(why: &str) {
    eprintln!("skipped: {}", why.trim_end());
}

/// Sends a signal to each of these processes; whether there was none.
fn all_gone(pids: impl Iterator<Item = u32>, signal: Signal) -> bool {
    // One that has ended meanwhile needs no signal.
    pids.map(|pid| _ = process::signal(pid, signal)).count() == 0
}

/// The kernel's name for the network of a process, which one that has ended lacks.
fn network(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/net")).ok()
}
