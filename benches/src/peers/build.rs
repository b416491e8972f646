//! Builds the worker for a peer: the package `system-mpi`, which is not a member of the workspace.

use std::path::{self, Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{Peer, PeerError};

/// The folder of the package.
const PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/system-mpi");
impl Peer {
    /// Builds the worker in a folder below `target` for this peer only, and returns its path. Cargo
    /// prints its messages on standard error.
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
        // These variables would override MPICC.
        cargo.env_remove("MPI_PKG_CONFIG").env_remove("CRAY_MPICH_DIR");
        cargo.envs(self.settings()).env("MPICC", &self.mpicc);
        cargo
    }

    /// A folder name unique to this MPI, version and path: in a shared folder, cargo would not
    /// rebuild the worker for another MPI.
    pub(super) fn folder(&self) -> String {
        let place = self.mpicc.to_string_lossy().replace('/', "-");
        format!("{}-{}{place}", self.flavour.id(), self.version)
    }
}

/// The path of the program named in a line of cargo's output, if any.
pub(super) fn executable(line: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(line).ok()?;
    message["executable"].as_str().map(PathBuf::from)
}
