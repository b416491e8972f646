//! Errors of the typed layer.

use std::sync::Arc;

use mpicore::ErrorClass;

#[cfg(feature = "serde")]
mod object;

#[cfg(feature = "serde")]
pub use object::ObjectError;

/// Why a call failed.
///
/// ```
/// mpj::local::run(1, |world| {
///     let refused = world.send(&[1], 5, 0).unwrap_err();
///     assert_eq!(refused.class(), mpj::ErrorClass::Rank);
///     assert!(refused.to_string().contains("rank 5"));
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device below refused the call or failed. [`Error::class`] returns MPI's class.
    #[error(transparent)]
    Device(mpjdev::Error),
    /// The arguments of a call, the use of a communicator or an operation broke a rule of MPI.
    #[error(transparent)]
    Core(mpicore::Error),
    /// A call of a service brought no answer.
    #[error(transparent)]
    Service(mpicore::ServiceError),
    /// The length of a message is not a whole number of elements.
    #[error(
        "message of {bytes} bytes from rank {source_rank} with tag {tag} is not a whole number of \
         elements of {size} bytes: sender and receiver use different types"
    )]
    Count {
        /// Rank of the sender.
        source_rank: usize,
        /// Tag of the message.
        tag: i32,
        /// Length of the message.
        bytes: usize,
        /// Size of an element.
        size: usize,
    },
    /// An object cannot be sent, or what was received is none.
    #[cfg(feature = "serde")]
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// A message that was received as a text is none.
    #[error(
        "message of {bytes} bytes from rank {source_rank} with tag {tag} is no text in UTF-8: {cause}; receive it as \
         `Vec<u8>`, or send a `str`"
    )]
    Utf8 {
        /// Rank of the sender.
        source_rank: usize,
        /// Tag of the message.
        tag: i32,
        /// Length of the message.
        bytes: usize,
        /// What is wrong, and where.
        cause: std::str::Utf8Error,
    },
    /// There is no memory for a message of unknown length.
    #[error("no memory for a message of {bytes} bytes from rank {source_rank} with tag {tag}")]
    Memory {
        /// Rank of the sender.
        source_rank: usize,
        /// Tag of the message.
        tag: i32,
        /// Length of the message.
        bytes: usize,
    },
    /// There is no memory for a buffer.
    #[error(
        "no memory for a buffer of {len} elements of {size} bytes each: {}; make it shorter, or free \
         others first",
        std::io::Error::from_raw_os_error(*.errno)
    )]
    Buffer {
        /// Number of elements that were asked for.
        len: usize,
        /// Size of an element.
        size: usize,
        /// The system's error number.
        errno: i32,
    },
    /// There is no memory for the copy that a send makes of its data. Nothing was sent.
    #[error(
        "no memory for a copy of the {bytes} bytes to be sent; send them in parts, or by a call that does not copy"
    )]
    NoCopy {
        /// Length of the message.
        bytes: usize,
    },
    /// A scope was given a communicator of a job or context other than its own.
    #[error(
        "the communicator belongs to another job or context of the rank than the scope; open a scope of its own on it"
    )]
    OtherContext,
    /// A buffer names an element twice, so no message can be received into it.
    #[error(
        "the buffer names an element twice, so no message can be received into it; take a step at least as long as \
         its blocks, and a view that does not repeat its elements"
    )]
    Overlap,
    /// A call that was started is not yet complete, so its buffers are in use, and it cannot be started again.
    #[error("the call was started and not waited for; wait for it first")]
    UnderWay,
    /// A buffer cannot be divided into as many equal parts as there are ranks. Nothing was sent.
    #[error(
        "{elements} elements cannot be divided among {ranks} ranks; give a buffer with the same number \
         for each"
    )]
    Division {
        /// Elements of the buffer, or rows of a view with several dimensions.
        elements: usize,
        /// Number of ranks.
        ranks: usize,
    },
    /// A buffer cannot be divided into as many equal partitions, of which there is at least one.
    #[error(
        "{elements} elements cannot be divided into {partitions} equal partitions; give a buffer whose length is a \
         multiple of their number, from 1 to 2^32 - 1"
    )]
    Partitions {
        /// Elements of the buffer.
        elements: usize,
        /// Number of partitions.
        partitions: usize,
    },
    /// Operands and results have different numbers of elements. Nothing was sent.
    #[error("{operands} operands for {results} results; give buffers of the same length")]
    Lengths {
        /// Number of elements that are combined.
        operands: usize,
        /// Number of elements that the results have room for.
        results: usize,
    },
    /// A range is not inside a slice.
    #[error("the range {}..{} is not inside of a slice of {len} elements", range.start, range.end)]
    Range {
        /// The range.
        range: std::ops::Range<usize>,
        /// Number of elements of the slice.
        len: usize,
    },
    /// Blocks of a slice do not lie inside it.
    #[error(
        "{count} blocks of {block} elements, every {step} elements from number {start} on, do not lie inside of a \
         slice of {len}; take fewer blocks, or another step or start"
    )]
    Outside {
        /// Index of the element where the first block begins.
        start: usize,
        /// Number of elements in a block.
        block: usize,
        /// Distance from the beginning of a block to that of the next one, in elements.
        step: isize,
        /// Number of blocks that were asked for.
        count: usize,
        /// Number of elements in the slice.
        len: usize,
    },
    /// A function that divides a call's own buffer returned a part of other memory.
    #[error(
        "a part that is sent or received lies in other memory than the buffer of the call; give parts of the slice that \
         the function gets"
    )]
    Elsewhere,
    /// The length of a slice does not fit the matrix, or the matrix does not contain the part.
    #[error(
        "a slice of {len} elements has {rows} whole rows of {columns}, and not the part that was asked for; give a \
         slice of whole rows, and rows and columns that it has"
    )]
    Matrix {
        /// Number of elements in the slice.
        len: usize,
        /// Number of columns of the matrix.
        columns: usize,
        /// Number of whole rows in the slice.
        rows: usize,
    },
    /// An array cannot have ghost cells of this width.
    #[error(
        "a slice of {len} elements is no array of lengths {dims:?} with {width} ghost cells at each end; the lengths \
         include the ghost cells, and between these there are at least {width} others"
    )]
    Halo {
        /// Number of elements in the slice.
        len: usize,
        /// Lengths of the array along each axis, with ghost cells.
        dims: Vec<usize>,
        /// Number of ghost cells at each end of an axis.
        width: usize,
    },
    /// Two parts of a matrix share an element.
    #[error(
        "parts {first} and {second} of the matrix share an element; give parts that share none"
    )]
    Shared {
        /// Index of one part in the list.
        first: usize,
        /// Index of the other part.
        second: usize,
    },
    /// A place in a window has blocks of another number of elements than the buffer can be divided into.
    #[error(
        "{elements} elements cannot be divided into blocks of {block}; give a buffer whose length is a multiple of that"
    )]
    Blocks {
        /// Elements of the buffer.
        elements: usize,
        /// Elements of a block.
        block: usize,
    },
    /// Ranks give a window elements of different types.
    #[error(
        "the ranks give the window elements of different types; call `allocate_window::<T>`, or `allocate_shared`, with the \
         same type on all ranks"
    )]
    WindowElements,
    /// An epoch of a window did not end, so nobody knows what other ranks do with the memory.
    #[error(
        "an earlier epoch of the window did not end, because of an error or a panic in its closure; make another window"
    )]
    Epoch,
    /// A view of a part of a file has no such elements.
    #[error("elements {index} to {} of a part of a file that has {len}", .index + .elements)]
    FilePart {
        /// The first element.
        index: usize,
        /// The number of elements.
        elements: usize,
        /// The number of elements of the part.
        len: usize,
    },
    /// The ranges are no part of the array in a file.
    #[error(
        "{part:?} is no part of an array of shape {shape:?}; give a range inside of it for each dimension"
    )]
    FileArray {
        /// The shape of the array.
        shape: Vec<usize>,
        /// The ranges.
        part: Vec<std::ops::Range<usize>>,
    },
    /// The layout of the elements cannot be described as a datatype.
    #[error("the buffer cannot be described as a datatype: {0}")]
    Datatype(#[from] mpicore::datatype::DatatypeError),
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
        /// Number of the context that was asked for.
        asked: usize,
        /// Number of contexts of each rank.
        contexts: usize,
    },
}

impl Error {
    /// Returns MPI's class of this error (MPI-4 section 9.4).
    ///
    /// ```
    /// let error = mpj::column(&[1, 2, 3], 2, 0).unwrap_err();
    /// assert_eq!(error.class(), mpj::ErrorClass::Arg);
    /// ```
    #[doc(alias = "MPI_Error_class")]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Device(error) => error.class().into(),
            Self::Core(error) => error.class(),
            Self::Service(error) => error.class(),
            Self::Count { .. } => ErrorClass::Truncate,
            Self::Utf8 { .. } => ErrorClass::Type,
            #[cfg(feature = "serde")]
            Self::Object(error) => error.class(),
            Self::Memory { .. } | Self::Context { .. } => ErrorClass::Other,
            Self::Division { .. } | Self::Partitions { .. } => ErrorClass::Count,
            Self::Lengths { .. } | Self::Blocks { .. } => ErrorClass::Count,
            Self::WindowElements => ErrorClass::Type,
            Self::Epoch => ErrorClass::RmaSync,
            Self::FilePart { .. } | Self::FileArray { .. } => ErrorClass::Arg,
            Self::Overlap | Self::Elsewhere | Self::Halo { .. } | Self::Range { .. } => {
                ErrorClass::Arg
            }
            Self::Outside { .. } | Self::Matrix { .. } | Self::Shared { .. } => ErrorClass::Arg,
            Self::Datatype(error) => error.class(),
            Self::Buffer { .. } | Self::NoCopy { .. } => ErrorClass::NoMem,
            Self::OtherContext => ErrorClass::Comm,
            Self::Mixed | Self::UnderWay => ErrorClass::Request,
        }
    }

    /// Returns the error for a layout that no message can be received into or sent from.
    pub(crate) fn of_layout(error: mpjdev::LayoutError) -> Self {
        match error {
            mpjdev::LayoutError::Overlap => Self::Overlap,
            other => Self::Datatype(other.into()),
        }
    }

    /// Returns this error in the form that the core's error handlers get.
    pub(crate) fn into_core(self) -> mpicore::Error {
        match self {
            Self::Device(error) => error.into(),
            Self::Core(error) => error,
            Self::Service(error) => error.into(),
            error => mpicore::Error::Device(mpjdev::Error::Client(Arc::new(error))),
        }
    }

    /// Returns the rank of the world that was lost, if this error is about a loss.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     if world.rank() == 1 {
    ///         // A rank that goes after an error does not wait for the others.
    ///         return drop(world.send(&[1], 5, 0));
    ///     }
    ///     let lost = world.recv(&mut 0, 1, 0).unwrap_err();
    ///     assert_eq!(lost.lost_rank(), Some(1));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn lost_rank(&self) -> Option<usize> {
        match self {
            Self::Device(error) => error.lost_rank().map(|rank| rank as usize),
            Self::Core(error) => error.lost_rank().map(|rank| rank as usize),
            _ => None,
        }
    }
}

impl From<mpjdev::Error> for Error {
    /// Converts an error of the device, or that of a collective call, whose request the device had.
    fn from(error: mpjdev::Error) -> Self {
        mpicore::Error::from(error).into()
    }
}

impl From<mpicore::Error> for Error {
    /// Converts an error of the core or of the device, or an error of this crate that went through a handler of the
    /// core.
    fn from(error: mpicore::Error) -> Self {
        match error {
            mpicore::Error::Device(mpjdev::Error::Client(own)) => {
                match own.downcast_ref::<Self>() {
                    Some(own) => own.clone(),
                    None => Self::Device(mpjdev::Error::Client(own)),
                }
            }
            mpicore::Error::Device(error) => Self::Device(error),
            mpicore::Error::Service(error) => Self::Service(error),
            error => Self::Core(error),
        }
    }
}

/// Writes the message as [`std::fmt::Display`] does, since Rust prints this form of the error that `main` returns.
impl std::fmt::Debug for Error {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{self}")
    }
}
