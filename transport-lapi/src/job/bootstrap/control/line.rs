//! The line to an agent on another host, from `mpjrun` or from the agent that has started it: bytes to messages and
//! back. Pure.
//!
//! The line is the standard input and output of the program that starts the agent, so nothing listens. Each line has a
//! secret, the first line of the agent's input; it is in no argument, no variable and no file.
//!
//! - LI1: a frame is its length, its number, a hash and a message. Frames are numbered from 0 in each direction. The
//!   hash is keyed by the secret and the direction, and covers the number and the message: no frame can be invented,
//!   altered, repeated, left out or sent back. The first wrong frame ends the line.
//! - LI2: a message is decoded only after its hash was found right; it has at most [`MAX_FRAME`] bytes.
//! - LI3: before its first frame an agent announces itself, in clear, with its version. A login shell may print before
//!   that; what it prints has no zero bytes.

use std::io;
use std::marker::PhantomData;
use std::rc::Rc;

use bincode::config::{Configuration, Fixint, Limit, LittleEndian};
use bincode::{Decode, Encode};

use super::agents::{News, Order};

/// Largest message, in bytes: the first order of the largest job, with a host for each rank.
pub const MAX_FRAME: usize = 64 << 20;
/// Bytes of a hash.
const HASH: usize = blake3::OUT_LEN;
/// Bytes before the message: length, number and hash.
const HEAD: usize = 4 + 8 + HASH;
/// How the announcement begins; a version and a zero byte follow.
const ANNOUNCEMENT: &[u8] = b"\0mpj-agent ";
/// Longest version in an announcement.
const LONGEST_VERSION: usize = 64;

/// The secret of a line.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// Makes a new one.
    ///
    /// # Errors
    /// The error of the system if it has no random bytes.
    pub fn random() -> io::Result<Self> {
        crate::platform::sys::random().map(Self)
    }

    /// Returns the line that passes it on: hexadecimal digits and a newline.
    pub fn to_line(&self) -> String {
        format!("{}\n", blake3::Hash::from_bytes(self.0).to_hex())
    }

    /// Reads such a line, without its newline.
    pub fn from_line(line: &[u8]) -> Option<Self> {
        blake3::Hash::from_hex(line).ok().map(|hash| Self(*hash.as_bytes()))
    }

    /// Returns a secret that ranks use among themselves. It does not reveal this one.
    pub fn of_ranks(&self) -> [u8; 32] {
        self.derived("mpj 2026 messages between ranks")
    }

    fn derived(&self, context: &str) -> [u8; 32] {
        blake3::derive_key(context, &self.0)
    }
}

/// What travels on one direction of a line.
pub trait Travels: Encode + Decode<()> {
    /// Separates the keys of the two directions.
    const DIRECTION: &'static str;
}

impl Travels for Order {
    const DIRECTION: &'static str = "mpj 2026 line to an agent";
}

impl Travels for News {
    const DIRECTION: &'static str = "mpj 2026 line from an agent";
}

/// Why a line has ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// A frame is longer than any can be.
    #[error("a message of {len} bytes, the limit is {MAX_FRAME}")]
    TooLong {
        /// The length that it states.
        len: usize,
    },
    /// A frame has another number than the one that is due.
    #[error("message {number} came in place of message {due}")]
    OutOfOrder {
        /// Its number.
        number: u64,
        /// The number that is due.
        due: u64,
    },
    /// A hash is wrong: another secret, or changed bytes.
    #[error(
        "message {number} does not prove to come from this job: another secret, or changed on its way"
    )]
    Unproven {
        /// Its number.
        number: u64,
    },
    /// The bytes are no message, though their hash is right: another build of the program.
    #[error("a message that this mpjrun cannot read: another build of it runs there")]
    Undecodable(#[source] bincode::error::DecodeError),
    /// There are bytes behind the message.
    #[error("{extra} bytes behind a message: another build of mpjrun runs there")]
    TrailingBytes {
        /// Number of such bytes.
        extra: usize,
    },
}

const ENCODING: Configuration<LittleEndian, Fixint, Limit<MAX_FRAME>> =
    bincode::config::standard().with_fixed_int_encoding().with_limit::<MAX_FRAME>();

fn hash(key: &[u8; 32], number: u64, body: &[u8]) -> blake3::Hash {
    blake3::Hasher::new_keyed(key).update(&number.to_le_bytes()).update(body).finalize()
}

/// A message that can be written to any number of lines.
#[derive(Debug, Clone)]
pub struct Encoded<M> {
    body: Rc<[u8]>,
    messages: PhantomData<M>,
}

impl<M: Travels> Encoded<M> {
    /// Encodes a message.
    ///
    /// # Errors
    /// [`LineError::TooLong`].
    pub fn of(message: &M) -> Result<Self, LineError> {
        let body = encode(message);
        match body.len() {
            ..=MAX_FRAME => Ok(Self { body: body.into(), messages: PhantomData }),
            len => Err(LineError::TooLong { len }),
        }
    }
}

/// The sending end of a line.
pub struct LineWriter<M> {
    key: [u8; 32],
    next: u64,
    messages: PhantomData<M>,
}

impl<M: Travels> LineWriter<M> {
    /// Makes the end for this secret.
    pub fn new(secret: &Secret) -> Self {
        Self { key: secret.derived(M::DIRECTION), next: 0, messages: PhantomData }
    }

    /// Returns the next frame: its head and the message.
    pub fn frame(&mut self, message: &Encoded<M>) -> [Rc<[u8]>; 2] {
        let body = Rc::clone(&message.body);
        let (len, number) = ((body.len() as u32).to_le_bytes(), self.next.to_le_bytes());
        let hash = hash(&self.key, self.next, &body);
        self.next += 1;
        [[&len[..], &number, hash.as_bytes()].concat().into(), body]
    }
}

/// The receiving end of a line.
pub struct LineReader<M> {
    key: [u8; 32],
    due: u64,
    bytes: Vec<u8>,
    /// Where the bytes begin that have not been used.
    from: usize,
    messages: PhantomData<M>,
}

impl<M: Travels> LineReader<M> {
    /// Makes the end for this secret.
    pub fn new(secret: &Secret) -> Self {
        let key = secret.derived(M::DIRECTION);
        Self { key, due: 0, bytes: Vec::new(), from: 0, messages: PhantomData }
    }

    /// Takes bytes that have come.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.from));
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next message, if it has come whole.
    ///
    /// # Errors
    /// [`LineError`]; the line has ended then (LI1).
    pub fn take(&mut self) -> Result<Option<M>, LineError> {
        let Some((head, rest)) = self.bytes[self.from..].split_at_checked(HEAD) else {
            return Ok(None);
        };
        let word = |range: std::ops::Range<usize>| {
            head[range].iter().rev().fold(0, |word: u64, byte| word << 8 | u64::from(*byte))
        };
        let (len, number) = (word(0..4) as usize, word(4..12));
        if len > MAX_FRAME {
            return Err(LineError::TooLong { len });
        }
        if number != self.due {
            return Err(LineError::OutOfOrder { number, due: self.due });
        }
        let Some(body) = rest.get(..len) else { return Ok(None) };
        let claimed: [u8; HASH] = head[12..].try_into().expect("the rest of a head is a hash");
        // The comparison takes the same time wherever the hashes differ.
        if hash(&self.key, number, body) != claimed {
            return Err(LineError::Unproven { number });
        }
        let message = decode(body)?;
        self.from += HEAD + len;
        self.due += 1;
        Ok(Some(message))
    }
}

/// The bytes of a message.
pub(crate) fn encode<M: Travels>(message: &M) -> Vec<u8> {
    bincode::encode_to_vec(message, ENCODING).expect("memory takes any message")
}

/// Decodes a message whose hash was right.
pub(crate) fn decode<M: Travels>(body: &[u8]) -> Result<M, LineError> {
    let (message, used) =
        bincode::decode_from_slice(body, ENCODING).map_err(LineError::Undecodable)?;
    match body.len() - used {
        0 => Ok(message),
        extra => Err(LineError::TrailingBytes { extra }),
    }
}

/// Returns what an agent of this version writes before its first frame (LI3).
pub fn announcement(version: &str) -> Vec<u8> {
    [ANNOUNCEMENT, version.as_bytes(), b"\0"].concat()
}

/// An announcement among the bytes that have come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announced {
    /// Number of bytes before it.
    pub start: usize,
    /// The version.
    pub version: String,
    /// Where the first frame begins.
    pub end: usize,
}

/// Finds the announcement, if it has come whole (LI3).
pub fn announced(bytes: &[u8]) -> Option<Announced> {
    let is_start = |window: &[u8]| window == ANNOUNCEMENT;
    let start = bytes.windows(ANNOUNCEMENT.len()).position(is_start)?;
    let from = start + ANNOUNCEMENT.len();
    let len = bytes[from..].iter().take(LONGEST_VERSION).position(|byte| *byte == 0)?;
    let version = String::from_utf8_lossy(&bytes[from..from + len]).into_owned();
    Some(Announced { start, version, end: from + len + 1 })
}

#[cfg(test)]
mod tests;
