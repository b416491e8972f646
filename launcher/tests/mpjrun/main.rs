//! `mpjrun` as its users meet it, with shell scripts for ranks. Programs that really join their job
//! are in the tests of the workspace.

use std::path::{Path, PathBuf};

use mpj_harness::{Launch, eventually, launch};
use tempfile::TempDir;

mod binding;
mod cargo;
mod cleanup;
mod descriptors;
mod exits;
mod hosts;
mod info;
mod mpiexec;
mod output;
mod programs;
mod streams;
mod terminal;
mod watchdog;
mod watching;

/// A job whose ranks run this script.
fn script(ranks: usize, script: &str) -> Launch {
    launch("sh").ranks(ranks).args(["-c", script])
}

/// A file that a script waits for, and that a test makes: `until [ -e FILE ]; do sleep 0.01; done`.
struct Mark {
    _folder: TempDir,
    path: PathBuf,
}

impl Mark {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { path: folder.path().join("mark"), _folder: folder }
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn set(&self) {
        std::fs::write(&self.path, "").expect("a file");
    }

    #[track_caller]
    fn wait(&self) {
        eventually("the mark is set", || self.path.exists());
    }
}
