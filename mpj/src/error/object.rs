//! Errors of messages that are one object of serde.

use mpicore::ErrorClass;

/// Why an object was not sent or not received.
///
/// ```
/// mpj::local::run(2, |world| {
///     if world.rank() == 0 {
///         world.send_object("seven", 1, 5).unwrap();
///         return;
///     }
///     let error = world.recv_object::<u32>(0, 5).unwrap_err();
///     assert_eq!(
///         error.to_string(),
///         "object of 6 bytes from rank 0 with tag 5 is no u32: there is a text instead of u32; receive it as the \
///          type that was sent"
///     );
///     # world.finish().unwrap();
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// The object cannot be encoded. Nothing was sent.
    #[error("an object of type {type_name} cannot be sent: {cause}")]
    Encode {
        /// The type of the object.
        type_name: &'static str,
        /// What the type or the encoding refused.
        cause: String,
    },
    /// The object is longer than objects may be. Nothing was sent.
    #[error(
        "an object of type {type_name} has more than {limit} bytes; send its large parts as buffers, or call \
         set_object_limit on all ranks"
    )]
    TooLong {
        /// The type of the object.
        type_name: &'static str,
        /// The most bytes that an object may have.
        limit: usize,
    },
    /// A received object is longer than objects may be on this rank.
    #[error(
        "object of {bytes} bytes from rank {source_rank} is longer than this rank allows, {limit} bytes; call \
         set_object_limit on all ranks, or receive the message as a buffer"
    )]
    Refused {
        /// Rank of the sender.
        source_rank: usize,
        /// Length of the encoded object.
        bytes: u64,
        /// The most bytes that an object may have.
        limit: usize,
    },
    /// There is no memory for the encoded objects of the other ranks.
    #[error("no memory for objects of {bytes} bytes; send smaller ones")]
    NoRoom {
        /// Length of the encoded objects.
        bytes: usize,
    },
    /// What was received is no object of the type that was asked for.
    #[error(
        "object of {bytes} bytes from rank {source_rank}{} is no {type_name}: {cause}; receive it as the type that was \
         sent",
        tag.map(|tag| format!(" with tag {tag}")).unwrap_or_default()
    )]
    Decode {
        /// Rank of the sender.
        source_rank: usize,
        /// Tag of the message; `None` in a collective call.
        tag: Option<i32>,
        /// Length of the encoded object.
        bytes: usize,
        /// The type that was asked for.
        type_name: &'static str,
        /// What is wrong with the bytes.
        cause: String,
    },
    /// In a collective call, another rank had no object to give.
    #[error("rank {rank} sent no object, because its own call failed; see its error")]
    Absent {
        /// The rank without an object.
        rank: usize,
    },
    /// The root of a collective call gave no objects.
    #[error(
        "this rank is the root and gave no object; give Some(..) at the root, and None elsewhere"
    )]
    None,
    /// The root of a scatter gave a wrong number of objects.
    #[error("{objects} objects for {ranks} ranks; give one for each rank")]
    Count {
        /// Number of objects that the root gave.
        objects: usize,
        /// Number of ranks.
        ranks: usize,
    },
}

impl ObjectError {
    /// Returns MPI's class of this error.
    pub(super) fn class(&self) -> ErrorClass {
        match self {
            Self::Encode { .. } | Self::Decode { .. } => ErrorClass::Type,
            Self::TooLong { .. } | Self::Refused { .. } | Self::Count { .. } => ErrorClass::Count,
            Self::NoRoom { .. } => ErrorClass::NoMem,
            Self::None => ErrorClass::Arg,
            Self::Absent { .. } => ErrorClass::Other,
        }
    }
}
