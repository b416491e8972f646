//! Looks whether jobs have left anything behind: processes, zombies, files.
//!
//! Every process of a job carries the mark of its scene in its environment. The process of the tests adopts orphans
//! (PR_SET_CHILD_SUBREAPER), so that a rank which the launcher did not reap shows up as a zombie among its children.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, waitpid};
use tempfile::TempDir;

use crate::{eventually, process};

/// A place in which jobs run, and which finds what they have left behind.
pub struct Scene {
    mark: String,
    /// The kernel's name for the processes of the ranks' program; empty if other tests run it too.
    program: String,
    /// The folder for temporary files.
    folder: TempDir,
    names: BTreeSet<String>,
}

impl Scene {
    /// A scene for jobs of `program`. It looks for zombies only if the program is named; then no other test of the same
    /// process may run it.
    ///
    /// # Panics
    /// When this process may not adopt orphans, or make a temporary folder.
    pub fn new(program: &str) -> Self {
        static SCENES: AtomicUsize = AtomicUsize::new(0);
        set_child_subreaper(Some(getpid())).expect("no privilege is needed for it");
        let number = SCENES.fetch_add(1, Ordering::Relaxed);
        Self {
            mark: format!("{}-scene-{number}", std::process::id()),
            program: program.rsplit('/').next().unwrap_or_default().chars().take(15).collect(),
            folder: tempfile::tempdir().expect("a folder"),
            names: shared_names(),
        }
    }

    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    /// The folder for temporary files of the jobs.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What jobs have left behind, in words; empty if nothing.
    ///
    /// # Panics
    /// When the temporary folder cannot be read.
    pub fn remains(&self) -> Vec<String> {
        let processes = self.orphans().chain(process::marked(&self.mark));
        let mut remains: Vec<_> = processes.map(|process| process.to_string()).collect();
        let names = shared_names();
        let new = names.difference(&self.names).filter(|name| name.contains("mpj"));
        remains.extend(new.map(|name| format!("/dev/shm/{name}")));
        let files = fs::read_dir(&self.folder).expect("the folder is there");
        remains.extend(files.map(|file| format!("{:?}", file.expect("readable").path())));
        remains
    }

    /// Asserts that nothing was left behind.
    ///
    /// # Panics
    /// When something was.
    #[track_caller]
    pub fn assert_clean(&self) {
        assert_eq!(self.remains(), [""; 0]);
    }

    /// Waits until the ranks of a job whose launcher was killed are gone, and reaps them, as init would.
    ///
    /// # Panics
    /// When they do not go.
    #[track_caller]
    pub fn bury_orphans(&self) {
        eventually("every orphan is gone", || {
            for orphan in self.orphans().filter(|orphan| orphan.state == 'Z') {
                // It is gone in either case.
                let _ = waitpid(Pid::from_raw(orphan.pid as i32), WaitOptions::NOHANG);
            }
            self.remains().is_empty()
        });
    }

    /// The processes of ranks that this process has adopted.
    fn orphans(&self) -> impl Iterator<Item = process::Process> {
        let me = std::process::id();
        process::all().filter(move |process| process.parent == me && process.name == self.program)
    }
}

/// Names in `/dev/shm`.
fn shared_names() -> BTreeSet<String> {
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
