//! How a peer can break the device's protocols.

/// A violation of the device's protocols by a peer. Each violation has a variant, and each variant a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// The user header, or the data of a rendezvous envelope, does not have the length that its handler needs.
    #[error("an envelope of {len} bytes, where {needed} were expected")]
    Envelope {
        /// Bytes of the header or of the data.
        len: usize,
        /// Bytes that the handler needs.
        needed: usize,
    },
    /// The peer sent more unexpected messages than it had credit for.
    #[error(
        "unexpected messages beyond the agreed {limit} bytes; set MPJ_EARLY_LIMIT to the same value on all ranks"
    )]
    Credit {
        /// The agreed limit in bytes.
        limit: usize,
    },
    /// The peer returned more credit than this rank has spent.
    #[error("{bytes} bytes of credit, more than were spent")]
    CreditReturn {
        /// Bytes of credit that were returned.
        bytes: u64,
    },
    /// A message that must not carry data carries some.
    #[error("{len} bytes of data with a message that has none")]
    Data {
        /// Bytes of data.
        len: u64,
    },
    /// The peer answered a send that is not under way to it.
    #[error("the end of a send that is not under way")]
    StrayDone,
    /// The peer confirmed a withdrawal that this rank did not ask for.
    #[error("the withdrawal of a send that was not withdrawn")]
    StrayWithdrawn,
    /// The peer reported the failure of a rank that does not exist.
    #[error("a failure of rank {rank}, which the job does not have")]
    FailedRank {
        /// The rank that was named.
        rank: u32,
    },
    /// A message to a service, or from one, is none.
    #[error("a message of {len} bytes to a service, or from one, that is none")]
    Service {
        /// Length of the message.
        len: usize,
    },
    /// The peer answered a call that is not under way to it.
    #[error("the answer to a call of a service that is not under way")]
    StrayAnswer,
    /// A message about a window is none.
    #[error("a message of {len} bytes about a window that is none")]
    Window {
        /// Length of the message.
        len: usize,
    },
    /// The peer answered an operation on its window that is not under way.
    #[error("the answer to an operation on a window that is not under way")]
    StrayWindowAnswer,
    /// A message claims to be longer than the address space.
    #[error("a message of {len} bytes, for which there is no memory")]
    Length {
        /// The length that was claimed.
        len: u64,
    },
}
