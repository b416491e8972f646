//! MPI's classes of errors (MPI-4.1 section 9.4). The error types of all modules return one.

/// Declares the classes, and lists them in the order of their declaration.
macro_rules! classes {
    ($($(#[$doc:meta])* $class:ident,)*) => {
        /// The class of an error: the result of `MPI_Error_class`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorClass {
            $($(#[$doc])* $class,)*
        }

        /// All classes.
        const ALL: &[ErrorClass] = &[$(ErrorClass::$class,)*];
    };
}

classes! {
    /// MPI_ERR_ACCESS.
    Access,
    /// MPI_ERR_AMODE.
    Amode,
    /// MPI_ERR_ARG.
    Arg,
    /// MPI_ERR_BAD_FILE.
    BadFile,
    /// MPI_ERR_BUFFER.
    Buffer,
    /// MPI_ERR_COMM.
    Comm,
    /// MPI_ERR_CONVERSION.
    Conversion,
    /// MPI_ERR_COUNT.
    Count,
    /// MPI_ERR_DIMS.
    Dims,
    /// MPI_ERR_FILE_EXISTS.
    FileExists,
    /// MPI_ERR_FILE_IN_USE.
    FileInUse,
    /// MPI_ERR_GROUP.
    Group,
    /// MPI_ERR_INFO_KEY.
    InfoKey,
    /// MPI_ERR_INFO_NOKEY.
    InfoNokey,
    /// MPI_ERR_INFO_VALUE.
    InfoValue,
    /// MPI_ERR_INTERN: a peer or the system broke a rule.
    Intern,
    /// MPI_ERR_IO.
    Io,
    /// MPI_ERR_NAME: no service was published under a name.
    Name,
    /// MPI_ERR_NO_MEM.
    NoMem,
    /// MPI_ERR_NO_SPACE.
    NoSpace,
    /// MPI_ERR_NO_SUCH_FILE.
    NoSuchFile,
    /// MPI_ERR_NOT_SAME.
    NotSame,
    /// MPI_ERR_OP.
    Op,
    /// MPI_ERR_OTHER.
    Other,
    /// MPI_ERR_PORT.
    Port,
    /// MPI_ERR_PROC_FAILED: a rank of the job is gone.
    ProcFailed,
    /// MPI_ERR_QUOTA.
    Quota,
    /// MPI_ERR_RANK.
    Rank,
    /// MPI_ERR_READ_ONLY.
    ReadOnly,
    /// MPI_ERR_REQUEST.
    Request,
    /// MPI_ERR_RMA_ATTACH: memory cannot be attached to a window, or detached.
    RmaAttach,
    /// MPI_ERR_RMA_CONFLICT.
    RmaConflict,
    /// MPI_ERR_RMA_FLAVOR.
    RmaFlavor,
    /// MPI_ERR_RMA_RANGE.
    RmaRange,
    /// MPI_ERR_RMA_SHARED.
    RmaShared,
    /// MPI_ERR_RMA_SYNC.
    RmaSync,
    /// MPI_ERR_ROOT.
    Root,
    /// MPI_ERR_SERVICE: a name cannot be published, or taken back.
    Service,
    /// MPI_ERR_SPAWN.
    Spawn,
    /// MPI_ERR_TAG.
    Tag,
    /// MPI_ERR_TOPOLOGY.
    Topology,
    /// MPI_ERR_TRUNCATE.
    Truncate,
    /// MPI_ERR_TYPE.
    Type,
    /// MPI_ERR_UNSUPPORTED_DATAREP.
    UnsupportedDatarep,
    /// MPI_ERR_UNSUPPORTED_OPERATION.
    UnsupportedOperation,
}

impl ErrorClass {
    /// Returns the number by which ranks tell each other of the class.
    pub(crate) fn number(self) -> u32 {
        self as u32
    }

    /// Returns the class with this number; [`ErrorClass::Other`] if there is none.
    pub(crate) fn of_number(number: u32) -> Self {
        ALL.get(number as usize).copied().unwrap_or(Self::Other)
    }
}

impl From<mpjdev::ErrorClass> for ErrorClass {
    fn from(class: mpjdev::ErrorClass) -> Self {
        use mpjdev::ErrorClass as Device;
        match class {
            Device::Buffer => Self::Buffer,
            Device::Rank => Self::Rank,
            Device::Tag => Self::Tag,
            Device::Truncate => Self::Truncate,
            Device::Type => Self::Type,
            Device::Request => Self::Request,
            Device::ProcFailed => Self::ProcFailed,
            Device::NoMem => Self::NoMem,
            Device::Intern => Self::Intern,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_name_classes() {
        for &class in ALL {
            assert_eq!(ErrorClass::of_number(class.number()), class);
        }
        assert_eq!(ErrorClass::of_number(ALL.len() as u32), ErrorClass::Other);
    }
}
