//! Why a call on a window was refused.

use crate::ErrorClass;
use crate::op::Predefined;

/// Why a call on a window was refused. Ranks are those of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WindowError {
    /// The call does not fit the epochs that are open.
    #[error("{call}: {why}")]
    Sync {
        /// MPI's name of the call, in small letters without the prefix.
        call: &'static str,
        /// What is wrong, and what to change.
        why: &'static str,
    },
    /// An operation accesses bytes outside of the memory that a rank exposes.
    #[error(
        "bytes {low} to {high} lie outside of the {size} bytes that rank {rank} exposes; check the displacement, the \
         count and the datatype at the target"
    )]
    Range {
        /// The target.
        rank: u32,
        /// The first byte of the access, from the beginning of the window.
        low: i128,
        /// The byte after the last one.
        high: i128,
        /// The length of the window.
        size: u64,
    },
    /// A target has refused operations, when it carried them out.
    #[error(
        "rank {rank} has refused an operation, which accesses memory that it has not attached to the window; exchange \
         addresses after MPI_Win_attach, and before MPI_Win_detach end all accesses"
    )]
    Refused {
        /// The target.
        rank: u32,
    },
    /// The memory that a target has given to the window cannot be accessed, or the buffer at the origin.
    #[error(
        "the memory that rank {rank} has given to the window, or the buffer here, cannot be read or written: {}; keep \
         the memory until MPI_Win_free has returned on all ranks",
        std::io::Error::from_raw_os_error(*errno)
    )]
    Access {
        /// The target.
        rank: u32,
        /// The error number of the system.
        errno: i32,
    },
    /// The datatype at the target names a byte twice, so what is written there is not defined.
    #[error("the datatype at the target names a byte more than once; write to each byte once")]
    Overlap,
    /// Memory is attached of which a part is attached already, or detached that is not attached.
    #[error(
        "{}",
        if *.is_attached {
            "a part of the memory is attached already; detach it before, or attach the rest only"
        } else {
            "no memory that begins at this address is attached; detach what was attached, by its first address"
        }
    )]
    Attachment {
        /// Whether it is attached.
        is_attached: bool,
    },
    /// The call is for windows of another kind.
    #[error("{call} is for windows that were made by {by}")]
    Flavor {
        /// MPI's name of the call, in small letters without the prefix.
        call: &'static str,
        /// The call that makes such windows.
        by: &'static str,
    },
    /// The ranks cannot share memory.
    #[error("{why}")]
    NotShared {
        /// Why, and what to change.
        why: &'static str,
    },
    /// The elements at the origin and at the target have different lengths.
    #[error(
        "{origin} bytes at the origin and {target} bytes at the target; both sides name the same elements"
    )]
    Lengths {
        /// Bytes of the elements at the origin, or of the result.
        origin: usize,
        /// Bytes of the elements at the target.
        target: usize,
    },
    /// The elements are not all of one predefined datatype on which the operation is defined.
    #[error(
        "{op} is not defined on elements of the target's datatype, or these are not all of one predefined datatype"
    )]
    Elements {
        /// The operation.
        op: Predefined,
    },
    /// The elements cannot be compared.
    #[error(
        "compare_and_swap is not defined on elements of this datatype; use integers, truth values or bytes"
    )]
    NotCompared,
}

impl WindowError {
    /// Returns MPI's class of this error.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Sync { .. } => ErrorClass::RmaSync,
            Self::Range { .. } | Self::Refused { .. } | Self::Access { .. } => ErrorClass::RmaRange,
            Self::Attachment { .. } => ErrorClass::RmaAttach,
            Self::Overlap => ErrorClass::Type,
            Self::Flavor { .. } => ErrorClass::RmaFlavor,
            Self::NotShared { .. } => ErrorClass::RmaShared,
            Self::Lengths { .. } => ErrorClass::Count,
            Self::Elements { .. } => ErrorClass::Op,
            Self::NotCompared => ErrorClass::Type,
        }
    }
}
