//! MPI's classes of errors (MPI-4.1 section 9.4). The errors of all modules answer with one; faces pass it on.

/// The class of an error: what `MPI_Error_class` tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorClass {
    /// MPI_ERR_ARG.
    Arg,
    /// MPI_ERR_BUFFER.
    Buffer,
    /// MPI_ERR_CONVERSION.
    Conversion,
    /// MPI_ERR_COUNT.
    Count,
    /// MPI_ERR_DIMS.
    Dims,
    /// MPI_ERR_GROUP.
    Group,
    /// MPI_ERR_OP.
    Op,
    /// MPI_ERR_RANK.
    Rank,
    /// MPI_ERR_ROOT.
    Root,
    /// MPI_ERR_TRUNCATE.
    Truncate,
    /// MPI_ERR_TYPE.
    Type,
}
