//! Builds the worker for a peer: the package `system-mpi`, which is no member of the workspace.

use std::path::{self, Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{Peer, PeerError};

/// Where the package is.
const PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/system-mpi");
impl Peer {
    /// Builds the worker in a folder below `target` that is this peer's alone, and returns its path.
    /// Cargo says on standard error what it does.
    ///
    /// # Errors
    /// Cargo cannot be started, or fails.
    pub fn build(&self, target: &Path) -> Result<PathBuf, PeerError> {
        let start = |source| PeerError::Start { program: "cargo".into(), source };
        let target = path::absolute(target).map_err(start)?.join(self.folder());
        let built = self.cargo(&target).stderr(Stdio::inherit()).output().map_err(start)?;
        let worker = String::from_utf8_lossy(&built.stdout).lines().find_map(executable);
        let worker = worker.filter(|_| built.status.success());
        worker.ok_or_else(|| PeerError::Build(self.label.clone()))
    }

    fn cargo(&self, target: &Path) -> Command {
        let mut cargo = Command::new("cargo");
        cargo.current_dir(PACKAGE).stdin(Stdio::null());
        cargo.args(["build", "--release", "--message-format=json-render-diagnostics"]);
        cargo.arg("--target-dir").arg(target);
        // With these, MPICC would not be asked.
        cargo.env_remove("MPI_PKG_CONFIG").env_remove("CRAY_MPICH_DIR");
        cargo.envs(self.settings()).env("MPICC", &self.mpicc);
        cargo
    }

    /// A name of one folder for this MPI, of this version, at this place: what was built for another
    /// one would not be built again.
    pub(super) fn folder(&self) -> String {
        let place = self.mpicc.to_string_lossy().replace('/', "-");
        format!("{}-{}{place}", self.flavour.id(), self.version)
    }
}

/// The program that a line of cargo's names, if so.
pub(super) fn executable(line: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(line).ok()?;
    message["executable"].as_str().map(PathBuf::from)
}
