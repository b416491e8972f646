//! Looks whether a job has left anything behind: processes, zombies, files.
//!
//! Every process of a job carries a mark in its environment. The process of the tests adopts orphans
//! (PR_SET_CHILD_SUBREAPER), so that a rank which the launcher did not reap shows up as a zombie among
//! its children.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, waitpid};

use crate::launch::{self, Outcome};

/// The variable that carries the mark.
const MARK: &str = "MPJ_TEST_MARK";

/// How long processes that the kernel ends may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A place for jobs whose remains are looked for.
pub struct Scene {
    mark: String,
    /// The ranks' program, as the kernel names its processes; empty if other tests run it too.
    program: String,
    /// Where temporary files would go.
    folder: String,
    names: BTreeSet<String>,
}

/// What the kernel says of a process.
struct Process {
    pid: i32,
    name: String,
    state: char,
    parent: i32,
}

impl Scene {
    /// A scene for jobs of `program`, with `folder` for temporary files. The mark must be unlike that
    /// of any other scene. Zombies are looked for only if the program is named, which no other test
    /// of the same process may run.
    ///
    /// # Panics
    /// When this process may not adopt orphans.
    pub fn new(mark: &str, program: &str, folder: &Path) -> Self {
        set_child_subreaper(Some(getpid())).expect("no privilege is needed for it");
        let name = program.rsplit('/').next().unwrap_or_default().chars().take(15).collect();
        let folder = folder.to_str().expect("text").to_owned();
        let mark = format!("{mark}-{}", std::process::id());
        Self { mark, program: name, folder, names: shared_names() }
    }

    /// Runs `mpjrun` with these arguments to its end.
    pub fn mpjrun(&self, args: &[&str]) -> Outcome {
        launch::run(self.mark(Command::new(launch::mpjrun_path()).args(args)))
    }

    /// Makes a command leave its traces here.
    pub fn mark<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        let places = ["TMPDIR", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME"];
        command.envs(places.map(|place| (place, &self.folder)));
        command.env(MARK, &self.mark).env("MPJ_TUNING", "none")
    }

    /// What jobs have left behind, in words; empty if nothing.
    pub fn remains(&self) -> Vec<String> {
        let mut remains = Vec::new();
        let wanted = format!("{MARK}={}", self.mark);
        for Process { pid, name, state, parent } in processes() {
            let orphan = parent == getpid().as_raw_nonzero().get() && name == self.program;
            if orphan || has_variable(pid, &wanted) {
                remains.push(format!("process {pid} ({name}), state {state}, child of {parent}"));
            }
        }
        let names = shared_names();
        let new = names.difference(&self.names).filter(|name| name.contains("mpj"));
        remains.extend(new.map(|name| format!("/dev/shm/{name}")));
        let files = fs::read_dir(&self.folder).expect("the folder is there");
        remains.extend(files.map(|file| format!("{:?}", file.expect("readable").path())));
        remains
    }

    /// Waits until the ranks of a job whose launcher was killed are gone, and does for them what
    /// init would do.
    pub fn bury_orphans(&self) {
        let start = Instant::now();
        while start.elapsed() < PATIENCE && !self.remains().is_empty() {
            for Process { pid, name, state, parent } in processes() {
                if parent == getpid().as_raw_nonzero().get() && name == self.program && state == 'Z'
                {
                    // Gone in either case.
                    let _ = waitpid(Pid::from_raw(pid), WaitOptions::NOHANG);
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Every process that can be seen.
fn processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").expect("it is there").filter_map(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(process).collect()
}

fn process(pid: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.split_once('(')?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?.chars().next()?;
    Some(Process { pid, name: name.to_owned(), state, parent: fields.next()?.parse().ok()? })
}

/// Whether a process was started with this entry in its environment.
fn has_variable(pid: i32, entry: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|line| line == entry.as_bytes())
}

/// Names in `/dev/shm`.
fn shared_names() -> BTreeSet<String> {
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
