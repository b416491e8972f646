//! An installation of libmpi, and a program in C that was compiled with it. Used by the tests of this folder.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mpj_harness::{Launch, command, libmpi, libmpi_trace, mpjrun_path};
use mpj_install::{Built, install};
use tempfile::TempDir;

/// There is one at a time: what another thread starts while the files are written has them open for a moment, and then they
/// cannot be run.
pub(crate) struct Installed {
    /// Where the program is.
    pub(crate) folder: TempDir,
    pub(crate) program: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

impl Installed {
    /// Installs, and compiles this program. `None`, after a word about it, if there is no compiler.
    pub(crate) fn with(source: &str) -> Option<Self> {
        let found = Command::new("cc").arg("--version").stdout(Stdio::null()).status();
        if !found.is_ok_and(|status| status.success()) {
            eprintln!("skipped: there is no C compiler called cc");
            return None;
        }
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().expect("a folder");
        let built = Built { library: libmpi(), trace: libmpi_trace(), mpjrun: mpjrun_path() };
        install(&built, &folder.path().join("prefix")).expect("everything was built");
        let [file, program] = ["program.c", "program"].map(|name| folder.path().join(name));
        fs::write(&file, source).expect("a file");
        let installed = Self { folder, program, _alone };
        let compiler = installed.command("mpicc").args(["-O2", "-Wall", "-Werror"]);
        compiler.args([&file]).args(["-o"]).args([&installed.program]).expect_quiet();
        Some(installed)
    }

    /// An installed command.
    pub(crate) fn command(&self, name: &str) -> Launch {
        command(self.folder.path().join("prefix/bin").join(name))
    }
}
