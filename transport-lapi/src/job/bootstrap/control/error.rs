//! Why packets of the control line are refused.

use std::io;

use super::{MAX_MESSAGE, Vocabulary};

/// Why a packet was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The packet has more than [`MAX_MESSAGE`] bytes.
    #[error("control message of {len} bytes, the limit is {MAX_MESSAGE}")]
    TooLong {
        /// Its length.
        len: usize,
    },
    /// The bytes are not a message.
    #[error("undecodable control message")]
    Undecodable(#[source] bincode::error::DecodeError),
    /// There are bytes after the message.
    #[error("{extra} bytes behind a control message")]
    TrailingBytes {
        /// Number of such bytes.
        extra: usize,
    },
    /// A vocabulary has more than [`Vocabulary::MAX_CALLS`] calls.
    #[error("vocabulary of {number} calls, the limit is {}", Vocabulary::MAX_CALLS)]
    TooManyCalls {
        /// Their number.
        number: usize,
    },
    /// A name in a vocabulary, or of an algorithm, is not fit to be shown.
    #[error("name {place} is not 1 to {} printable characters", Vocabulary::MAX_NAME)]
    IllegalName {
        /// Its place, from 1 on: in a vocabulary first those of the calls, then those of spaces.
        place: usize,
    },
    /// The socket failed.
    #[error("cannot receive from the control socket")]
    Receive(#[source] io::Error),
}
