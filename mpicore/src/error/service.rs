//! Why a call of a service brought no answer.

use crate::ErrorClass;

/// Why a call of a service brought no answer. Ranks are those of the communicator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The handler refused the call.
    #[error("service {service} of rank {rank} refused the call: {message}")]
    Failed {
        /// The rank that was called.
        rank: u32,
        /// The number of the service.
        service: u32,
        /// What the handler said, cut after a thousand bytes.
        message: String,
    },
    /// The handler panicked.
    #[error("service {service} panicked on rank {rank}: {message}")]
    Panicked {
        /// The rank that was called.
        rank: u32,
        /// The number of the service.
        service: u32,
        /// The message of the panic, cut after a thousand bytes.
        message: String,
    },
    /// The rank that was called cannot read the request.
    #[error(
        "rank {rank} cannot read the request to its service {service}: {cause}; register the same services on all \
         ranks, in the same order"
    )]
    Request {
        /// The rank that was called.
        rank: u32,
        /// The number of the service.
        service: u32,
        /// What is wrong with the request, by the rank that was called.
        cause: String,
    },
    /// This rank cannot read the answer.
    #[error(
        "the answer of service {service} of rank {rank} is no {type_name}: {cause}; register the same services on all \
         ranks, in the same order"
    )]
    Answer {
        /// The rank that was called.
        rank: u32,
        /// The number of the service.
        service: u32,
        /// The type that was expected.
        type_name: &'static str,
        /// What is wrong with the answer.
        cause: String,
    },
    /// The rank that was called has no such service.
    #[error(
        "rank {rank} has no service {service}; register the same services on all ranks, in the same order"
    )]
    Unknown {
        /// The rank that was called.
        rank: u32,
        /// The number of the service.
        service: u32,
    },
    /// Too many handlers of services call each other.
    #[error(
        "a chain of {most} calls that handlers of services make is under way, and this one would be the next; make it \
         outside of handlers, or let them return first"
    )]
    TooDeep {
        /// The most calls of such a chain.
        most: u8,
    },
    /// The call waits for handlers to return, and was made in one.
    #[error("a handler of a service waits for all handlers; call quiesce outside of handlers")]
    InHandler,
}

impl ServiceError {
    /// Returns MPI's class of this error.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Request { .. } | Self::Answer { .. } => ErrorClass::Type,
            Self::Unknown { .. } => ErrorClass::Arg,
            Self::Failed { .. } | Self::Panicked { .. } => ErrorClass::Other,
            Self::TooDeep { .. } | Self::InHandler => ErrorClass::Other,
        }
    }
}
