//! Why a call on a file was refused, or has failed.

use std::io;

use rustix::io::Errno;

use crate::ErrorClass;
use crate::datatype::DatatypeError;

/// Why a call on a file was refused, or has failed. Ranks are those of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The system has refused a call.
    #[error("{path}: {what}: {}", io::Error::from_raw_os_error(*.errno))]
    System {
        /// The path of the file.
        path: String,
        /// What was tried.
        what: &'static str,
        /// The system's error number.
        errno: i32,
    },
    /// Access modes that do not go together.
    #[error("access mode: {why}")]
    Amode {
        /// What is wrong.
        why: &'static str,
    },
    /// The access mode does not allow the call.
    #[error("{path} was opened without leave to {}", if *.is_read { "read" } else { "write" })]
    Access {
        /// The path of the file.
        path: String,
        /// Whether the call reads.
        is_read: bool,
    },
    /// The call is not for files that were opened as sequential.
    #[error("the file was opened with MPI_MODE_SEQUENTIAL, so {why}")]
    Sequential {
        /// What is wrong, and what to change.
        why: &'static str,
    },
    /// An argument has no meaning.
    #[error("{why}")]
    Argument {
        /// What is wrong.
        why: &'static str,
    },
    /// Ranks give different arguments where all must give the same.
    #[error("the ranks give different values of {what}; give the same on all")]
    Different {
        /// The argument.
        what: &'static str,
    },
    /// There is no such representation.
    #[error("there is no representation `{name}`; use native, internal or external32")]
    Representation {
        /// The name that was given.
        name: String,
    },
    /// A datatype of a view has bytes that MPI forbids there.
    #[error("{why}")]
    View {
        /// What is wrong.
        why: &'static str,
    },
    /// A call accesses a part of an etype.
    #[error(
        "{bytes} bytes are no whole number of etypes of {unit} bytes; give a count and a datatype that make whole etypes"
    )]
    Etypes {
        /// The bytes of the call in the file.
        bytes: u64,
        /// The bytes of an etype there.
        unit: u64,
    },
    /// A split collective is under way, or none, or another one.
    #[error("{why}")]
    Split {
        /// What is wrong, and what to change.
        why: &'static str,
    },
    /// A datatype cannot be used for a file.
    #[error(transparent)]
    Datatype {
        /// Why not.
        error: DatatypeError,
    },
    /// A collective call has failed on another rank.
    #[error("the call has failed on rank {rank} of the file; see what it says there")]
    Elsewhere {
        /// The first such rank.
        rank: u32,
        /// The class of the error there.
        class: ErrorClass,
    },
}

impl FileError {
    /// Makes the error of a call of the system.
    pub(crate) fn system(path: &str, what: &'static str, error: &io::Error) -> Self {
        let errno = error.raw_os_error().unwrap_or_else(|| match error.kind() {
            // The standard library has refused an argument itself: a path with a zero byte, a length below no limit.
            io::ErrorKind::InvalidInput => Errno::INVAL.raw_os_error(),
            _ => Errno::IO.raw_os_error(),
        });
        Self::System { path: path.to_owned(), what, errno }
    }

    /// Returns MPI's class of this error.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::System { errno, .. } => class_of(Errno::from_raw_os_error(*errno)),
            Self::Amode { .. } => ErrorClass::Amode,
            Self::Access { is_read: true, .. } => ErrorClass::Access,
            Self::Access { is_read: false, .. } => ErrorClass::ReadOnly,
            Self::Sequential { .. } => ErrorClass::UnsupportedOperation,
            Self::Argument { .. } => ErrorClass::Arg,
            Self::Different { .. } => ErrorClass::NotSame,
            Self::Representation { .. } => ErrorClass::UnsupportedDatarep,
            Self::Etypes { .. } | Self::Split { .. } | Self::View { .. } => ErrorClass::Io,
            Self::Datatype { error } => error.class(),
            Self::Elsewhere { class, .. } => *class,
        }
    }
}

fn class_of(errno: Errno) -> ErrorClass {
    match errno {
        Errno::NOENT => ErrorClass::NoSuchFile,
        Errno::EXIST => ErrorClass::FileExists,
        Errno::ACCESS | Errno::PERM => ErrorClass::Access,
        Errno::NOTDIR | Errno::ISDIR | Errno::NAMETOOLONG | Errno::LOOP => ErrorClass::BadFile,
        Errno::NOSPC => ErrorClass::NoSpace,
        Errno::INVAL => ErrorClass::Arg,
        Errno::DQUOT => ErrorClass::Quota,
        Errno::ROFS => ErrorClass::ReadOnly,
        Errno::TXTBSY | Errno::BUSY => ErrorClass::FileInUse,
        _ => ErrorClass::Io,
    }
}
