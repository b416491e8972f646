//! Why a job could not be started, with the exit code that says so.

use std::io;
use std::path::PathBuf;

use transport_lapi::adapter::AdapterError;
use transport_lapi::config::ConfigError;

use crate::host::tuning_file::TuningFileError;

/// Why no rank was started, or not all of them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// There is no such program.
    #[error("program not found: {}{hint}", program.display())]
    NotFound {
        /// As it was asked for.
        program: PathBuf,
        /// What is wrong with it, or may have been meant; empty, or continues the sentence.
        hint: String,
    },
    /// The program is there but cannot be run.
    #[error("cannot execute {}: {reason}", program.display())]
    NotExecutable {
        /// As it was asked for.
        program: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The folder for the ranks to start in is not usable.
    #[error("--wdir {}: {reason}", path.display())]
    WorkingFolder {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file for the output of a rank, or its folder, could not be made.
    #[error("--output dir: cannot make {}: {source}", path.display())]
    OutputFile {
        /// The file or folder.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// The rank that is to get the standard input is not in the job.
    #[error("--stdin {asked}: this job has ranks 0 to {}; or ask for none", ranks - 1)]
    NoSuchReader {
        /// Which rank was asked for.
        asked: usize,
        /// How many there are.
        ranks: usize,
    },
    /// `-x NAME` without a value, and the launcher's own environment has none to pass on.
    #[error("-x {name}: not set in the environment of mpjrun; give a value: -x {name}=VALUE")]
    UnsetVariable {
        /// The variable.
        name: String,
    },
    /// A setting in the environment is not legal: every rank would refuse it.
    #[error(transparent)]
    Setting(#[from] ConfigError),
    /// The file of tuned values is not usable.
    #[error(transparent)]
    Tuning(#[from] TuningFileError),
    /// The job segment could not be made.
    #[error(transparent)]
    Segment(#[from] AdapterError),
    /// The system refused something the launcher needs.
    #[error("cannot {action}: {source}{}", AdapterError::remedy(source))]
    System {
        /// What was being done.
        action: &'static str,
        /// What the system answered.
        source: io::Error,
    },
    /// A rank could not be started; those before it have been ended.
    #[error(
        "cannot start rank {rank}: {source}; check the limits on processes and open files \
             (ulimit -u, ulimit -n), or ask for fewer ranks"
    )]
    Spawn {
        /// The rank.
        rank: usize,
        /// What the system answered.
        source: io::Error,
    },
}

impl LaunchError {
    /// The exit code for this: 127 not found, 126 not executable, 2 wrong usage, 125 the launcher's
    /// own failure, as `env` and `timeout` have them.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NotFound { .. } => 127,
            Self::NotExecutable { .. } => 126,
            Self::WorkingFolder { .. }
            | Self::OutputFile { .. }
            | Self::NoSuchReader { .. }
            | Self::UnsetVariable { .. }
            | Self::Setting(_)
            | Self::Tuning(_) => 2,
            Self::Segment(_) | Self::System { .. } | Self::Spawn { .. } => 125,
        }
    }
}
