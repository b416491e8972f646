//! The packets of AM-2 and their codec, which is pure. All integers are little endian:
//!
//! ```text
//!  0       kind: opcode 1 to 6, 7 acknowledgement, 8 returned message, 9 exchange
//!  1       handler
//!  2       number of arguments
//!  3       status (low 4 bits) and opcode of a returned message, else 0
//!  4..6    number of the endpoint that sends
//!  6..8    number of the endpoint that receives
//!  8..10   instance  ┐
//! 10..12   sequence  ├ the ticket of the request
//! 12..16   index     ┘
//! 16..24   tag; the word of an exchange
//! 24..32   only of a long message: offset in the segment
//!  ..      arguments, 4 bytes each; 4 bytes of 0 if their number is odd
//! ```
//!
//! A packet that is short enough together with its payload is sent as one word of user header and the rest as data:
//! the transport's fastest way ([`with_packed`]). Any other is a user header, and the payload is the data.
//!
//! Everything decoded is untrusted: this file checks the form, `arrival.rs` the meaning. One packet has one encoding.

use transport_lapi::ForeignBytes;

use crate::MAX_SHORT;
use crate::name::Tag;
use crate::status::{Opcode, Status};

/// Bytes before the arguments, except of a long message.
pub(crate) const FIXED: usize = 24;
/// The bytes of a long message's offset.
const OFFSET: usize = 8;
/// Most bytes of a packet.
pub(crate) const LONGEST: usize = FIXED + OFFSET + 4 * MAX_SHORT;
/// The user header of a packed packet.
const WORD: usize = size_of::<u64>();
/// Most bytes of a packed packet with its payload: what a cell of the transport's rings takes, or a little less.
const PACKED: usize = 288;

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
    pub sequence: u16,
}

/// What a packet says, except for the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub kind: Kind,
    pub handler: u8,
    pub source: u16,
    pub dest: u16,
    pub ticket: Ticket,
    /// The length of the payload, which the transport tells: it is not in the packet.
    pub len: u32,
    pub tag: Tag,
    /// Where the payload of a long message goes; of others 0, and not in the packet.
    pub offset: u64,
}

/// The arguments of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Args {
    len: usize,
    words: [u32; MAX_SHORT],
}

impl Args {
    /// `None` if there are more than [`MAX_SHORT`].
    pub fn new(args: &[u32]) -> Option<Self> {
        let mut words = [0; MAX_SHORT];
        words.get_mut(..args.len())?.copy_from_slice(args);
        Some(Self { len: args.len(), words })
    }

    pub fn words(&self) -> &[u32] {
        &self.words[..self.len]
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Replaces the arguments by `count` that are encoded at the beginning of `pairs`, with 0 behind an odd number.
    /// Returns whether they are so, and are not too many.
    #[inline]
    pub fn decode(&mut self, count: usize, pairs: &[u64]) -> bool {
        self.len = count;
        if count == 0 {
            return true;
        }
        let Some(words) = self.words.get_mut(..count.next_multiple_of(2)) else { return false };
        for (place, pair) in words.chunks_exact_mut(2).zip(pairs) {
            let pair = u64::from_le(*pair);
            (place[0], place[1]) = (pair as u32, (pair >> 32) as u32);
        }
        count % 2 == 0 || words[count] == 0
    }
}

/// An encoded packet.
pub(crate) struct Encoded {
    words: [u64; LONGEST / WORD],
    len: usize,
}

impl Encoded {
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len]
    }
}

/// Calls `send` with the user header and the data of a packed packet; `None` if that is too long.
#[inline]
pub(crate) fn with_packed<R>(
    header: &Header,
    args: &[u32],
    payload: &[u8],
    send: impl FnOnce(u64, &[u8]) -> R,
) -> Option<R> {
    let len = header.length(args.len());
    if payload.is_empty() {
        let mut words = [0; LONGEST / WORD];
        header.write(args, &mut words);
        return Some(send(u64::from_le(words[0]), &bytemuck::cast_slice(&words)[WORD..len]));
    }
    if len + payload.len() > PACKED {
        return None;
    }
    let mut words = [0; PACKED / WORD];
    header.write(args, words.first_chunk_mut().expect("it is longer"));
    let bytes = bytemuck::cast_slice_mut::<u64, u8>(&mut words);
    bytes[len..len + payload.len()].copy_from_slice(payload);
    let word = u64::from_le(words[0]);
    Some(send(word, &bytemuck::cast_slice(&words)[WORD..len + payload.len()]))
}

/// The bytes of a packet that has arrived, or more.
pub(crate) struct Unpacked {
    words: [u64; LONGEST / WORD],
    len: usize,
}

impl Unpacked {
    /// Copies them out of a message with this user header and this data.
    #[inline]
    pub fn new(word: u64, data: ForeignBytes<'_>) -> Self {
        let mut words = [0; LONGEST / WORD];
        words[0] = word.to_le();
        let len = WORD + data.copy_to(bytemuck::cast_slice_mut(&mut words[1..]));
        Self { words, len }
    }

    /// Copies them from a user header.
    pub fn of(uhdr: &[u8]) -> Self {
        let mut words = [0; LONGEST / WORD];
        let bytes = bytemuck::cast_slice_mut::<u64, u8>(&mut words);
        let len = uhdr.len().min(bytes.len());
        bytes[..len].copy_from_slice(&uhdr[..len]);
        Self { words, len }
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The payload behind a packet of `len` bytes.
    pub fn payload(len: usize, data: ForeignBytes<'_>) -> ForeignBytes<'_> {
        data.part(len - WORD, data.len())
    }

    /// Decodes the packet into `header` and `args`. Returns its length; `None` if the arguments do not match their
    /// number, and then there are none, but the rest can still be used to return the message.
    ///
    /// # Errors
    /// [`PacketError`].
    #[inline]
    pub fn decode(
        &self,
        header: &mut Header,
        args: &mut Args,
    ) -> Result<Option<usize>, PacketError> {
        let Self { words, len } = *self;
        if len < FIXED {
            return Err(PacketError::Truncated { len });
        }
        let [first, ticket, tag, offset] = [0, 1, 2, 3].map(|at| u64::from_le(words[at]));
        let [code, handler, count, returned, ..] = first.to_le_bytes();
        header.kind = decode_kind(code, returned)?;
        header.handler = handler;
        (header.source, header.dest) = ((first >> 32) as u16, (first >> 48) as u16);
        let (instance, sequence) = (ticket as u16, (ticket >> 16) as u16);
        header.ticket = Ticket { index: (ticket >> 32) as u32, instance, sequence };
        header.tag = Tag(tag);
        let (mut at, mut from) = (FIXED / WORD, 0);
        if header.kind.is_long() {
            if len < FIXED + OFFSET {
                return Err(PacketError::Truncated { len });
            }
            (at, from) = (at + 1, offset);
        }
        (header.offset, header.len) = (from, 0);
        let whole = header.length(count.into());
        let has_args = len >= whole && args.decode(count.into(), &words[at..]);
        if !has_args {
            args.clear();
        }
        Ok(has_args.then_some(whole))
    }
}

impl Header {
    /// A header without contents, to be decoded into.
    pub const EMPTY: Self = Self {
        kind: Kind::Acknowledge,
        handler: 0,
        source: 0,
        dest: 0,
        ticket: Ticket { index: 0, instance: 0, sequence: 0 },
        len: 0,
        tag: Tag::NONE,
        offset: 0,
    };

    /// Encodes the packet with these arguments, at most [`MAX_SHORT`].
    pub fn encode(&self, args: &[u32]) -> Encoded {
        let mut words = [0; LONGEST / WORD];
        self.write(args, &mut words);
        Encoded { words, len: self.length(args.len()) }
    }

    /// Length of the packet with so many arguments: a multiple of 8.
    #[inline]
    fn length(&self, args: usize) -> usize {
        let offset = if self.kind.is_long() { OFFSET } else { 0 };
        FIXED + offset + 4 * args.next_multiple_of(2)
    }

    /// Writes the packet to the beginning of `words`, in which the rest stays as it is.
    #[inline]
    fn write(&self, args: &[u32], words: &mut [u64; LONGEST / WORD]) {
        let (kind, status, opcode) = match self.kind {
            Kind::Message(opcode) => (opcode as u8, 0, 0),
            Kind::Acknowledge => (ACKNOWLEDGE, 0, 0),
            Kind::Returned { opcode, status } => (RETURNED, status as u8, opcode as u8),
            Kind::Exchange => (EXCHANGE, 0, 0),
        };
        let Ticket { index, instance, sequence } = self.ticket;
        let codes = [kind, self.handler, args.len() as u8, status | opcode << 4];
        let codes = u64::from(u32::from_le_bytes(codes));
        let first = codes | u64::from(self.source) << 32 | u64::from(self.dest) << 48;
        let ticket = u64::from(instance) | u64::from(sequence) << 16 | u64::from(index) << 32;
        words[0] = first.to_le();
        words[1] = ticket.to_le();
        words[2] = self.tag.0.to_le();
        let mut at = FIXED / WORD;
        if self.kind.is_long() {
            words[at] = self.offset.to_le();
            at += 1;
        }
        for (place, pair) in words[at..].iter_mut().zip(args.chunks(2)) {
            let second = pair.get(1).copied().unwrap_or(0);
            *place = (u64::from(pair[0]) | u64::from(second) << 32).to_le();
        }
    }

    /// Whether the packet is a request.
    pub fn is_request(&self) -> bool {
        matches!(self.kind, Kind::Message(opcode) if opcode.is_request())
    }
}

impl Kind {
    /// Whether the packet is a long message, and so has an offset.
    #[inline]
    fn is_long(self) -> bool {
        matches!(self, Self::Message(Opcode::RequestLong | Opcode::ReplyLong))
    }
}

/// Decodes the byte of the kind, and the one of the codes of returned messages.
#[inline]
fn decode_kind(code: u8, returned: u8) -> Result<Kind, PacketError> {
    if code == RETURNED {
        let (status, opcode) = (returned & 0xf, returned >> 4);
        let status = Status::from_code(status).ok_or(PacketError::UnknownStatus(status))?;
        let opcode = Opcode::from_code(opcode).ok_or(PacketError::UnknownOpcode(opcode))?;
        return Ok(Kind::Returned { opcode, status });
    }
    let kind = match code {
        ACKNOWLEDGE => Kind::Acknowledge,
        EXCHANGE => Kind::Exchange,
        code => Kind::Message(Opcode::from_code(code).ok_or(PacketError::UnknownKind(code))?),
    };
    if returned == 0 { Ok(kind) } else { Err(PacketError::NotZero { at: 3, value: returned }) }
}
#[cfg(test)]
mod tests;
