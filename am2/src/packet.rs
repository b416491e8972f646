//! The packets of AM-2 and their codec, which is pure. A packet is the user header of one active message of the
//! transport; the payload is its data. All integers are little endian:
//!
//! ```text
//!  0       kind: opcode 1 to 6, 7 acknowledgement, 8 returned message, 9 exchange
//!  1       handler
//!  2       number of arguments
//!  3       status of a returned message, else 0
//!  4       opcode of a returned message, else 0
//!  5       0
//!  6..8    number of the endpoint that sends
//!  8..10   number of the endpoint that receives
//! 10..12   instance  ┐
//! 12..16   index     ├ the ticket of the request
//! 16..20   sequence  ┘
//! 20..24   length of the payload in bytes
//! 24..32   tag; the word of an exchange
//! 32..40   offset in the segment
//! 40..     arguments, 4 bytes each; 4 bytes of 0 if their number is odd
//! ```
//!
//! Everything decoded is untrusted: this file checks the form, `arrival.rs` the meaning. One packet has one encoding.

use crate::message::Args;
use crate::name::Tag;
use crate::status::{Opcode, Status};

/// Bytes before the arguments.
pub(crate) const FIXED: usize = 40;
/// Most bytes of a packet.
pub(crate) const LONGEST: usize = FIXED + 4 * crate::MAX_SHORT;

const ACKNOWLEDGE: u8 = 7;
const RETURNED: u8 = 8;
const EXCHANGE: u8 = 9;

/// Why a packet was refused. There is one variant for each violation of the form, and a test for each variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PacketError {
    /// The packet ends before its fixed part does.
    #[error("a packet of {len} bytes, the shortest has {FIXED}")]
    Truncated {
        /// Length of the packet in bytes.
        len: usize,
    },
    /// The kind of packet does not exist.
    #[error("unknown kind of packet {0}")]
    UnknownKind(u8),
    /// The status of a returned message does not exist.
    #[error("unknown status {0} of a returned message")]
    UnknownStatus(u8),
    /// The opcode of a returned message does not exist.
    #[error("unknown opcode {0} of a returned message")]
    UnknownOpcode(u8),
    /// A field that is not used is not 0.
    #[error("byte {at} of the packet is {value}, and has to be 0")]
    NotZero {
        /// Which byte.
        at: usize,
        /// Its value.
        value: u8,
    },
}

/// What a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A request or a reply.
    Message(Opcode),
    /// The reply of a request handler that has not replied: it only ends the request.
    Acknowledge,
    /// A message that its receiver has refused.
    Returned { opcode: Opcode, status: Status },
    /// One task's word of an exchange.
    Exchange,
}

/// Identifies an unfinished request at the endpoint that made it. Replies carry the ticket of their request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Ticket {
    /// Index of the translation.
    pub index: u32,
    /// Which of the requests that may be outstanding there.
    pub instance: u16,
    /// Number of the request, so that late answers to an earlier one are recognised.
    pub sequence: u32,
}

/// The fixed part of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub kind: Kind,
    pub handler: u8,
    pub source: u16,
    pub dest: u16,
    pub ticket: Ticket,
    pub len: u32,
    pub tag: Tag,
    pub offset: u64,
}

/// An encoded packet.
pub(crate) struct Encoded {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Encoded {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Header {
    /// Encodes the packet with these arguments.
    pub fn encode(&self, args: &Args) -> Encoded {
        let (kind, status, opcode) = match self.kind {
            Kind::Message(opcode) => (opcode as u8, 0, 0),
            Kind::Acknowledge => (ACKNOWLEDGE, 0, 0),
            Kind::Returned { opcode, status } => (RETURNED, status as u8, opcode as u8),
            Kind::Exchange => (EXCHANGE, 0, 0),
        };
        let words = args.words();
        let mut bytes = [0; LONGEST];
        bytes[..5].copy_from_slice(&[kind, self.handler, words.len() as u8, status, opcode]);
        bytes[6..8].copy_from_slice(&self.source.to_le_bytes());
        bytes[8..10].copy_from_slice(&self.dest.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.ticket.instance.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.ticket.index.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.ticket.sequence.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.len.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.tag.0.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.offset.to_le_bytes());
        for (place, word) in bytes[FIXED..].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        Encoded { bytes, len: length(words.len()) }
    }

    /// Whether the packet says that it carries a message of this shape to be judged by `arrival.rs`.
    pub fn is_request(&self) -> bool {
        matches!(self.kind, Kind::Message(opcode) if opcode.is_request())
    }
}

/// Length of a packet with this many arguments: a multiple of 8.
fn length(args: usize) -> usize {
    FIXED + 4 * args.next_multiple_of(2)
}

/// Decodes a packet. The arguments are `None` if they do not match their number; then the rest can still be used to
/// return the message.
///
/// # Errors
/// [`PacketError`].
pub(crate) fn decode(bytes: &[u8]) -> Result<(Header, Option<Args>), PacketError> {
    let Some((fixed, rest)) = bytes.split_first_chunk::<FIXED>() else {
        return Err(PacketError::Truncated { len: bytes.len() });
    };
    let returned = fixed[0] == RETURNED;
    let kind = match fixed[0] {
        ACKNOWLEDGE => Kind::Acknowledge,
        RETURNED => {
            let status = Status::from_code(fixed[3]).ok_or(PacketError::UnknownStatus(fixed[3]))?;
            let opcode = Opcode::from_code(fixed[4]).ok_or(PacketError::UnknownOpcode(fixed[4]))?;
            Kind::Returned { opcode, status }
        }
        EXCHANGE => Kind::Exchange,
        code => Kind::Message(Opcode::from_code(code).ok_or(PacketError::UnknownKind(code))?),
    };
    let unused = if returned { &[5][..] } else { &[3, 4, 5] };
    if let Some(&at) = unused.iter().find(|&&at| fixed[at] != 0) {
        return Err(PacketError::NotZero { at, value: fixed[at] });
    }
    let header = Header {
        kind,
        handler: fixed[1],
        source: u16::from_le_bytes(field(fixed, 6)),
        dest: u16::from_le_bytes(field(fixed, 8)),
        ticket: Ticket {
            instance: u16::from_le_bytes(field(fixed, 10)),
            index: u32::from_le_bytes(field(fixed, 12)),
            sequence: u32::from_le_bytes(field(fixed, 16)),
        },
        len: u32::from_le_bytes(field(fixed, 20)),
        tag: Tag(u64::from_le_bytes(field(fixed, 24))),
        offset: u64::from_le_bytes(field(fixed, 32)),
    };
    Ok((header, decode_args(fixed[2].into(), rest)))
}

/// The bytes of a field in the fixed part.
fn field<const N: usize>(fixed: &[u8; FIXED], at: usize) -> [u8; N] {
    fixed[at..at + N].try_into().expect("every field lies inside the fixed part")
}

fn decode_args(count: usize, rest: &[u8]) -> Option<Args> {
    if count > crate::MAX_SHORT || FIXED + rest.len() != length(count) {
        return None;
    }
    let (words, padding) = rest.split_at(4 * count);
    if padding.iter().any(|&byte| byte != 0) {
        return None;
    }
    let mut args = [0; crate::MAX_SHORT];
    for (arg, word) in args.iter_mut().zip(words.chunks_exact(4)) {
        *arg = u32::from_le_bytes(word.try_into().expect("chunks of four bytes"));
    }
    Args::new(&args[..count])
}

#[cfg(test)]
mod tests;
