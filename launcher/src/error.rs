//! Errors before a job runs, and their exit codes.

use std::io;
use std::path::PathBuf;

use transport_lapi::adapter::AdapterError;
use transport_lapi::bootstrap::control::line::MAX_FRAME;
use transport_lapi::config::ConfigError;

/// Why the ranks were not started, or not all of them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// There is no such program.
    #[error("program not found: {}{hint}", program.display())]
    NotFound {
        /// The program as the user named it.
        program: PathBuf,
        /// Continues the sentence with a likely remedy; may be empty.
        hint: String,
    },
    /// The program is there but cannot be run.
    #[error("cannot execute {}: {reason}", program.display())]
    NotExecutable {
        /// The program as the user named it.
        program: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The ranks cannot start in the folder of `--wdir`.
    #[error("--wdir {}: {reason}", path.display())]
    WorkingFolder {
        /// The folder.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A file of `--output dir=`, or its folder, cannot be created.
    #[error("--output dir: cannot make {}: {source}", path.display())]
    OutputFile {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file of `--trace` cannot be created.
    #[error("--trace {}: {source}", path.display())]
    Trace {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file of `--profile` cannot be created.
    #[error("--profile={}: {source}", path.display())]
    Profile {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// `--watch` names a process whose job cannot be watched.
    #[error("--watch {launcher}: {reason}")]
    NotWatchable {
        /// The process.
        launcher: u32,
        /// Why not.
        reason: String,
    },
    /// `--stdin` names a rank that the job does not have.
    #[error("--stdin {asked}: this job has ranks 0 to {}; or ask for none", ranks - 1)]
    NoSuchReader {
        /// The rank.
        asked: usize,
        /// The number of ranks.
        ranks: usize,
    },
    /// `-x NAME` without a value names a variable that the launcher's environment does not have.
    #[error("-x {name}: not set in the environment of mpjrun; give a value: -x {name}=VALUE")]
    UnsetVariable {
        /// The variable.
        name: String,
    },
    /// Ranks would refuse a setting of their environment.
    #[error(transparent)]
    Setting(#[from] ConfigError),
    /// The job segment cannot be created.
    #[error(transparent)]
    Segment(#[from] AdapterError),
    /// A system call of the launcher failed.
    #[error("cannot {action}: {source}{}", AdapterError::remedy(source))]
    System {
        /// What the launcher tried to do.
        action: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The job cannot start on one of its hosts.
    #[error("host {host}: {reason}")]
    Host {
        /// The host.
        host: String,
        /// Why not.
        reason: String,
        /// The exit code that follows.
        code: u8,
    },
    /// A host does not have the folder in which `mpjrun` was started.
    #[error("cannot enter {}, the folder of mpjrun: {source}", path.display())]
    CurrentFolder {
        /// The folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A program cannot be copied to other hosts.
    #[error("--copy: cannot copy {}: {source}{}", path.display(), AdapterError::remedy(source))]
    Copy {
        /// The program.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The job is too long to be told to agents.
    #[error(
        "the arguments and variables of all programs have {len} bytes, and the agents of hosts take {MAX_FRAME}: \
         pass long data in files"
    )]
    TooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// A signal came before the ranks of all hosts were started.
    #[error("ended by signal {signal} before all ranks were started")]
    Interrupted {
        /// The kernel's number of the signal.
        signal: i32,
    },
    /// The time limit was over before the ranks of all hosts were started.
    #[error("the time limit was over before all ranks were started")]
    StartTimedOut,
    /// A rank cannot be started; those before it have been ended.
    #[error(
        "cannot start rank {rank}: {source}; check the limits on processes and open files \
             (ulimit -u, ulimit -n), or ask for fewer ranks"
    )]
    Spawn {
        /// The rank.
        rank: usize,
        /// The error of the system.
        source: io::Error,
    },
}

impl LaunchError {
    /// Returns the exit code, as `env` and `timeout` have it: 127 for a program that is not found, 126 for one that
    /// cannot be executed, 2 for wrong usage, 125 for a failure of the launcher itself.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NotFound { .. } => 127,
            Self::NotExecutable { .. } => 126,
            Self::Host { code, .. } => *code,
            Self::Interrupted { signal } => u8::try_from(128 + signal).unwrap_or(u8::MAX),
            Self::StartTimedOut => 124,
            Self::WorkingFolder { .. }
            | Self::CurrentFolder { .. }
            | Self::OutputFile { .. }
            | Self::Trace { .. }
            | Self::Profile { .. }
            | Self::NotWatchable { .. }
            | Self::NoSuchReader { .. }
            | Self::UnsetVariable { .. }
            | Self::TooLong { .. }
            | Self::Setting(_) => 2,
            Self::Segment(_) | Self::System { .. } | Self::Spawn { .. } | Self::Copy { .. } => 125,
        }
    }
}
