//! Errors of the typed layer.

use mpicore::ErrorClass;

/// Why a call failed.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device below refused or failed; see [`Error::class`] for MPI's class.
    #[error(transparent)]
    Device(#[from] mpjdev::Error),
    /// What MPI means was not kept to: the arguments of a call, a communicator, an operation.
    #[error(transparent)]
    Core(mpicore::Error),
    /// The length of a message is not a whole number of elements.
    #[error(
        "message of {bytes} bytes from rank {source_rank} with tag {tag} is not a whole number of \
         elements of {size} bytes: sender and receiver use different types"
    )]
    Count {
        /// Who sent it.
        source_rank: usize,
        /// Its tag.
        tag: i32,
        /// Length of the message.
        bytes: usize,
        /// Size of an element.
        size: usize,
    },
    /// There is no memory for a message of unknown length.
    #[error("no memory for a message of {bytes} bytes from rank {source_rank} with tag {tag}")]
    Memory {
        /// Who sent it.
        source_rank: usize,
        /// Its tag.
        tag: i32,
        /// Its length.
        bytes: usize,
    },
    /// There is no memory for a buffer.
    #[error(
        "no memory for a buffer of {len} elements of {size} bytes each: {}; make it shorter, or free \
         others first",
        std::io::Error::from_raw_os_error(*.errno)
    )]
    Buffer {
        /// How many elements were asked for.
        len: usize,
        /// Size of an element.
        size: usize,
        /// The number of the system's reason.
        errno: i32,
    },
    /// Requests of several jobs, or of several contexts of the rank, were mixed in one call.
    #[error(
        "the requests of one wait belong to different jobs or contexts; wait for those of each by \
         itself"
    )]
    Mixed,
    /// The ranks have no such context.
    #[error(
        "context {asked} is out of range: each rank of this job has {}; start it with mpjrun \
         --contexts N to have more, or with Options::contexts as threads of one process",
        match .contexts { 1 => "context 0 alone".to_owned(), n => format!("contexts 0 to {}", n - 1) }
    )]
    Context {
        /// The context that was asked for.
        asked: usize,
        /// How many there are.
        contexts: usize,
    },
}

impl Error {
    /// MPI's class of this error (MPI-4 section 9.4).
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Device(error) => error.class().into(),
            Self::Core(error) => error.class(),
            Self::Count { .. } => ErrorClass::Truncate,
            Self::Memory { .. } | Self::Context { .. } => ErrorClass::Other,
            Self::Buffer { .. } => ErrorClass::NoMem,
            Self::Mixed => ErrorClass::Request,
        }
    }

    /// The rank whose loss this is, by its number in the world, if it is one.
    pub fn lost_rank(&self) -> Option<usize> {
        match self {
            Self::Device(error) => error.lost_rank().map(|rank| rank as usize),
            Self::Core(error) => error.lost_rank().map(|rank| rank as usize),
            _ => None,
        }
    }
}

impl From<mpicore::Error> for Error {
    fn from(error: mpicore::Error) -> Self {
        match error {
            mpicore::Error::Device(error) => Self::Device(error),
            error => Self::Core(error),
        }
    }
}

/// The message, as [`std::fmt::Display`] writes it: this is what a `main` that returns the error
/// prints.
impl std::fmt::Debug for Error {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{self}")
    }
}
