//! The packets of the transport and their codec, which is pure: it accesses no memory but its arguments.
//!
//! A packet is the head of a frame; its part of `udata` is the frame's body. All integers are little endian, all
//! positions fixed:
//!
//! ```text
//!  0      kind (low 7 bits), bit 7: counters follow
//!  1      handler index (0: the transport's own), barrier round, or operation and size of a read-modify-write
//!  2..4   uhdr length in bytes
//!  4..8   number of a message or shared get, ticket of a get, read-modify-write or in-flight send, or completion
//!         counter + 1
//!  8..16  counters, if announced: target counter + 1, completion counter + 1 (0: none)
//!  ...    u64 fields of the kind: place, total length, offset, key, length
//!  ...    uhdr
//! ```
//!
//! Everything decoded is untrusted: this file checks lengths, the engine checks meanings.

use crate::adapter::SHORT_HEAD;

/// Size of the handler table: LAPI's LOC_ADDRTBL_SZ. Index 0 is not used.
pub const MAX_HANDLERS: usize = 256;

/// Largest user header in bytes: LAPI's MAX_UHDR_SZ.
pub const MAX_UHDR: usize = 128;

/// Largest head that [`Encoded`] can hold: base, counters, three fields, user header. A read-modify-write has four fields,
/// but neither counters nor a user header.
pub(crate) const MAX_HEAD: usize = 8 + 8 + 24 + MAX_UHDR;

/// Bytes at the start of every head.
pub(crate) const BASE: usize = 8;
const COUNTERS: u8 = 0x80;

const SINGLE: u8 = 1;
const FIRST: u8 = 2;
const BODY: u8 = 3;
const COMPLETE: u8 = 4;
const GET_REQUEST: u8 = 5;
const GET_DATA: u8 = 6;
const GET_REFUSED: u8 = 7;
const FENCE: u8 = 8;
const FENCE_ACK: u8 = 9;
const BARRIER: u8 = 10;
const GET_SHARE: u8 = 11;
const PLACED: u8 = 12;
const COPIED: u8 = 13;
const PUT_REFUSED: u8 = 20;
const RMW: u8 = 21;
const RMW_DONE: u8 = 22;
const RMW_REFUSED: u8 = 23;
const ADDRESS: u8 = 40;
const RESUME: u8 = 41;

/// Why a packet was refused. There is one variant for each violation, and a test for each variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The head ends before its fields do.
    #[error("packet head has {len} bytes, its kind needs {needed}")]
    Truncated {
        /// Length of the head.
        len: usize,
        /// Length that its kind needs.
        needed: usize,
    },
    /// The kind of packet does not exist.
    #[error("unknown packet kind {0:#04x}")]
    UnknownKind(u8),
    /// The user header's length does not match the head, or is not legal.
    #[error("packet claims a user header of {claimed} bytes and carries {carried}")]
    UhdrLength {
        /// The length in the packet.
        claimed: usize,
        /// The length that is there.
        carried: usize,
    },
    /// The packet has a body, but its kind has none.
    #[error("a packet of kind {kind:#04x} carries {len} bytes of body")]
    UnexpectedBody {
        /// The kind.
        kind: u8,
        /// Length of the body.
        len: usize,
    },
    /// The body of a first packet is longer than its message.
    #[error("a first packet carries {carried} bytes of a message of {total}")]
    Overlong {
        /// Length of the body.
        carried: usize,
        /// Length of the message.
        total: u64,
    },
}

/// Counters that a message updates when it is complete. Each number is the index in the table plus one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RemoteCounters {
    /// Counter of the target, 0 for none.
    pub target: u32,
    /// Counter of the origin, incremented on completion; 0 for none.
    pub completion: u32,
}

impl RemoteCounters {
    /// Whether neither counter is named.
    pub fn is_none(self) -> bool {
        self.target == 0 && self.completion == 0
    }
}

/// One packet, decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packet<'a> {
    /// A whole message; the body is `udata`.
    Single { handler: u8, counters: RemoteCounters, uhdr: &'a [u8] },
    /// The beginning of a message of `total` bytes.
    First { handler: u8, counters: RemoteCounters, msg: u32, total: u64, uhdr: &'a [u8] },
    /// The bytes of message `msg` from `offset` on.
    Body { msg: u32, offset: u64 },
    /// A whole message whose `total` bytes lie at `place` of the sender's shared area.
    Placed {
        handler: u8,
        counters: RemoteCounters,
        ticket: u32,
        place: u64,
        total: u64,
        uhdr: &'a [u8],
    },
    /// Answers that the bytes of such a message are not read any more.
    Copied { ticket: u32 },
    /// Increments completion counter `counter` (its index plus one) of the receiver.
    Complete { counter: u32 },
    /// Requests this part of the region, for a get over messages.
    GetRequest { ticket: u32, key: u64, offset: u64, len: u64 },
    /// The bytes of a get over messages, from `offset` of the get on.
    GetData { ticket: u32, offset: u64 },
    /// Answers that the region is not registered.
    GetRefused { ticket: u32 },
    /// Offers the receiver to help with a get of this part of its region.
    GetShare { number: u32, key: u64, offset: u64, len: u64 },
    /// Answers that the region of a put is not registered for writing.
    PutRefused,
    /// Requests a read-modify-write of the variable at `offset` of a region. `operation` says which, and its size.
    Rmw { ticket: u32, operation: u8, key: u64, offset: u64, operands: [u64; 2] },
    /// The result of a read-modify-write.
    RmwDone { ticket: u32, value: u64 },
    /// Answers that a read-modify-write is not possible.
    RmwRefused { ticket: u32 },
    /// Requests an answer once everything before this has been stored.
    Fence,
    /// Answers that everything before the fence has been stored.
    FenceAck,
    /// One round of the dissemination barrier.
    Barrier { round: u8 },
    /// The sender's value in a collective exchange of addresses.
    Address { value: u64 },
    /// The sender has purged and resumed the receiver, and has sent nothing after that.
    Resume,
}

// A short head belongs to a message that is one packet, with one word of user header and no counters. Most messages are
// such, so this head is encoded and decoded as a whole, not field by field.
const _: () = assert!(SHORT_HEAD == BASE + 8);

/// Encodes the head of a [`Packet::Single`] for `handler` with this user header and no counters.
#[inline(always)]
pub(crate) fn short_head(handler: u8, uhdr: u64) -> [u8; SHORT_HEAD] {
    (u128::from(base(SINGLE, handler, 8, 0)) | u128::from(uhdr) << 64).to_le_bytes()
}

/// Whether a head of [`SHORT_HEAD`] bytes that begins with `first` is a short one.
#[inline(always)]
pub(crate) fn is_short(first: u64) -> bool {
    first & !base(0, u8::MAX, 0, 0) == base(SINGLE, 0, 8, 0)
}

/// The handler named in the first word of a head.
#[inline(always)]
pub(crate) fn handler_of(first: u64) -> u8 {
    (first >> 8) as u8
}

/// The first word of a head.
#[inline(always)]
fn base(kind: u8, handler: u8, uhdr_len: usize, number: u32) -> u64 {
    u64::from(kind) | u64::from(handler) << 8 | (uhdr_len as u64) << 16 | u64::from(number) << 32
}

/// Encoded bytes on the stack: the head of a packet, or the user header of a request.
pub(crate) struct Encoded {
    bytes: [u8; MAX_HEAD],
    len: usize,
}

impl Encoded {
    /// No bytes.
    pub const EMPTY: Self = Self { bytes: [0; MAX_HEAD], len: 0 };

    /// The encoded bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Appends words.
    #[inline]
    pub fn push(&mut self, words: &[u64]) {
        for word in words {
            self.bytes[self.len..self.len + 8].copy_from_slice(&word.to_le_bytes());
            self.len += 8;
        }
    }

    /// The head of a message.
    #[inline]
    fn message(
        kind: u8,
        handler: u8,
        counters: RemoteCounters,
        number: u32,
        fields: &[u64],
        uhdr: &[u8],
    ) -> Self {
        let mut head = Self::EMPTY;
        head.push(&[base(kind, handler, uhdr.len(), number)]);
        if !counters.is_none() {
            head.bytes[0] |= COUNTERS;
            head.push(&[u64::from(counters.target) | u64::from(counters.completion) << 32]);
        }
        head.push(fields);
        head.bytes[head.len..head.len + uhdr.len()].copy_from_slice(uhdr);
        head.len += uhdr.len();
        head
    }

    /// The head of any other packet.
    #[inline]
    fn control(kind: u8, second: u8, number: u32, fields: &[u64]) -> Self {
        Self::message(kind, second, RemoteCounters::default(), number, fields, &[])
    }
}

impl Packet<'_> {
    /// Encodes the packet. The caller has refused user headers that are longer than [`MAX_UHDR`] or not a multiple of
    /// 8.
    pub fn encode(&self) -> Encoded {
        let (message, control) = (Encoded::message, Encoded::control);
        match *self {
            Packet::Single { handler, counters, uhdr } => {
                message(SINGLE, handler, counters, 0, &[], uhdr)
            }
            Packet::First { handler, counters, msg, total, uhdr } => {
                message(FIRST, handler, counters, msg, &[total], uhdr)
            }
            Packet::Placed { handler, counters, ticket, place, total, uhdr } => {
                message(PLACED, handler, counters, ticket, &[place, total], uhdr)
            }
            Packet::Copied { ticket } => control(COPIED, 0, ticket, &[]),
            Packet::Body { msg, offset } => control(BODY, 0, msg, &[offset]),
            Packet::Complete { counter } => control(COMPLETE, 0, counter, &[]),
            Packet::GetRequest { ticket, key, offset, len } => {
                control(GET_REQUEST, 0, ticket, &[key, offset, len])
            }
            Packet::GetData { ticket, offset } => control(GET_DATA, 0, ticket, &[offset]),
            Packet::GetRefused { ticket } => control(GET_REFUSED, 0, ticket, &[]),
            Packet::GetShare { number, key, offset, len } => {
                control(GET_SHARE, 0, number, &[key, offset, len])
            }
            Packet::PutRefused => control(PUT_REFUSED, 0, 0, &[]),
            Packet::Rmw { ticket, operation, key, offset, operands: [first, second] } => {
                control(RMW, operation, ticket, &[key, offset, first, second])
            }
            Packet::RmwDone { ticket, value } => control(RMW_DONE, 0, ticket, &[value]),
            Packet::RmwRefused { ticket } => control(RMW_REFUSED, 0, ticket, &[]),
            Packet::Fence => control(FENCE, 0, 0, &[]),
            Packet::FenceAck => control(FENCE_ACK, 0, 0, &[]),
            Packet::Barrier { round } => control(BARRIER, round, 0, &[]),
            Packet::Address { value } => control(ADDRESS, 0, 0, &[value]),
            Packet::Resume => control(RESUME, 0, 0, &[]),
        }
    }
}

/// Reads a head field by field, and checks the length at each.
struct Reader<'a> {
    head: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    #[inline]
    fn take<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let bytes = self.head.get(self.at..self.at + N).and_then(|bytes| bytes.try_into().ok());
        let bytes =
            bytes.ok_or(WireError::Truncated { len: self.head.len(), needed: self.at + N })?;
        self.at += N;
        Ok(bytes)
    }

    #[inline]
    fn u64(&mut self) -> Result<u64, WireError> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    #[inline]
    fn counters(&mut self, announced: bool) -> Result<RemoteCounters, WireError> {
        if !announced {
            return Ok(RemoteCounters::default());
        }
        let target = u32::from_le_bytes(self.take()?);
        let completion = u32::from_le_bytes(self.take()?);
        Ok(RemoteCounters { target, completion })
    }

    /// Takes the rest of the head, which must be exactly the announced user header.
    #[inline]
    fn uhdr(&self, claimed: usize) -> Result<&'a [u8], WireError> {
        let uhdr = &self.head[self.at..];
        if uhdr.len() != claimed || claimed > MAX_UHDR || claimed % 8 != 0 {
            return Err(WireError::UhdrLength { claimed, carried: uhdr.len() });
        }
        Ok(uhdr)
    }
}

/// Decodes the head of a frame whose body has `body` bytes.
#[inline]
pub(crate) fn decode(head: &[u8], body: usize) -> Result<Packet<'_>, WireError> {
    let mut reader = Reader { head, at: 0 };
    let [first, handler, len0, len1, n0, n1, n2, n3] = reader.take::<BASE>()?;
    let (kind, announced) = (first & !COUNTERS, first & COUNTERS != 0);
    let uhdr_len = usize::from(u16::from_le_bytes([len0, len1]));
    let number = u32::from_le_bytes([n0, n1, n2, n3]);
    let is_message = matches!(kind, SINGLE | FIRST | PLACED);
    if announced && !is_message {
        return Err(WireError::UnknownKind(first));
    }
    let counters = reader.counters(announced)?;
    let packet = match kind {
        SINGLE => Packet::Single { handler, counters, uhdr: reader.uhdr(uhdr_len)? },
        FIRST => {
            let total = reader.u64()?;
            if body as u64 > total {
                return Err(WireError::Overlong { carried: body, total });
            }
            let uhdr = reader.uhdr(uhdr_len)?;
            Packet::First { handler, counters, msg: number, total, uhdr }
        }
        PLACED => {
            let (place, total) = (reader.u64()?, reader.u64()?);
            let uhdr = reader.uhdr(uhdr_len)?;
            Packet::Placed { handler, counters, ticket: number, place, total, uhdr }
        }
        COPIED => Packet::Copied { ticket: number },
        BODY => Packet::Body { msg: number, offset: reader.u64()? },
        COMPLETE => Packet::Complete { counter: number },
        GET_REQUEST => {
            let (key, offset, len) = (reader.u64()?, reader.u64()?, reader.u64()?);
            Packet::GetRequest { ticket: number, key, offset, len }
        }
        GET_DATA => Packet::GetData { ticket: number, offset: reader.u64()? },
        GET_REFUSED => Packet::GetRefused { ticket: number },
        GET_SHARE => {
            let (key, offset, len) = (reader.u64()?, reader.u64()?, reader.u64()?);
            Packet::GetShare { number, key, offset, len }
        }
        PUT_REFUSED => Packet::PutRefused,
        RMW => {
            let (key, offset) = (reader.u64()?, reader.u64()?);
            let operands = [reader.u64()?, reader.u64()?];
            Packet::Rmw { ticket: number, operation: handler, key, offset, operands }
        }
        RMW_DONE => Packet::RmwDone { ticket: number, value: reader.u64()? },
        RMW_REFUSED => Packet::RmwRefused { ticket: number },
        FENCE => Packet::Fence,
        FENCE_ACK => Packet::FenceAck,
        BARRIER => Packet::Barrier { round: handler },
        ADDRESS => Packet::Address { value: reader.u64()? },
        RESUME => Packet::Resume,
        _ => return Err(WireError::UnknownKind(first)),
    };
    if body > 0 && !matches!(kind, SINGLE | FIRST | BODY | GET_DATA) {
        return Err(WireError::UnexpectedBody { kind, len: body });
    }
    if !is_message {
        if let uhdr @ [_, ..] = reader.uhdr(uhdr_len)? {
            return Err(WireError::UhdrLength { claimed: 0, carried: uhdr.len() });
        }
    }
    Ok(packet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counters() -> impl Strategy<Value = RemoteCounters> {
        (any::<u32>(), any::<u32>())
            .prop_map(|(target, completion)| RemoteCounters { target, completion })
    }

    /// Handler and user header of a short head, as the dispatcher decodes it.
    fn taken_apart(head: [u8; SHORT_HEAD]) -> Option<(u8, u64)> {
        let words = u128::from_le_bytes(head);
        let first = words as u64;
        is_short(first).then_some((handler_of(first), (words >> 64) as u64))
    }

    proptest! {
        #[test]
        fn messages_round_trip(
            handler: u8, counters in counters(), msg: u32, total: u64, words in 0usize..=16,
        ) {
            let uhdr: Vec<u8> = (0..words * 8).map(|i| i as u8).collect();
            let single = Packet::Single { handler, counters, uhdr: &uhdr };
            let head = single.encode();
            prop_assert_eq!(decode(head.bytes(), 9), Ok(single));
            let first = Packet::First { handler, counters, msg, total, uhdr: &uhdr };
            let head = first.encode();
            prop_assert_eq!(decode(head.bytes(), 0), Ok(first));
            let (ticket, place) = (msg, total.rotate_left(9));
            let placed = Packet::Placed { handler, counters, ticket, place, total, uhdr: &uhdr };
            let head = placed.encode();
            prop_assert_eq!(decode(head.bytes(), 0), Ok(placed));
        }

        #[test]
        fn short_heads_are_those_of_single_packets(handler: u8, word: u64) {
            let counters = RemoteCounters::default();
            let single = Packet::Single { handler, counters, uhdr: &word.to_le_bytes() };
            let (head, encoded) = (short_head(handler, word), single.encode());
            prop_assert_eq!(&head[..], encoded.bytes());
            prop_assert_eq!(taken_apart(head), Some((handler, word)));
        }

        #[test]
        fn what_is_taken_for_a_short_head_decodes_to_the_same(
            kind in 0u8..4, len in 0u16..17, number in 0u32..2, rest: [u8; 24], cut in 0usize..25,
        ) {
            let mut head = u64::from(kind).to_le_bytes().to_vec();
            head[1] = rest[0];
            head[2..4].copy_from_slice(&len.to_le_bytes());
            head[4..].copy_from_slice(&number.to_le_bytes());
            head.extend(&rest[..cut]);
            let short = <[u8; SHORT_HEAD]>::try_from(&head[..]).ok().and_then(taken_apart);
            if let Some((handler, word)) = short {
                let counters = RemoteCounters::default();
                let single = Packet::Single { handler, counters, uhdr: &word.to_le_bytes() };
                prop_assert_eq!(decode(&head, 3), Ok(single));
            }
        }

        #[test]
        fn control_packets_round_trip(ticket: u32, key: u64, offset: u64, len: u64, round: u8) {
            for packet in [
                Packet::Body { msg: ticket, offset },
                Packet::Copied { ticket },
                Packet::Complete { counter: ticket },
                Packet::GetRequest { ticket, key, offset, len },
                Packet::GetData { ticket, offset },
                Packet::GetRefused { ticket },
                Packet::GetShare { number: ticket, key, offset, len },
                Packet::PutRefused,
                Packet::Rmw { ticket, operation: round, key, offset, operands: [len, key] },
                Packet::RmwDone { ticket, value: key },
                Packet::RmwRefused { ticket },
                Packet::Fence,
                Packet::FenceAck,
                Packet::Barrier { round },
                Packet::Address { value: key },
                Packet::Resume,
            ] {
                let head = packet.encode();
                prop_assert_eq!(decode(head.bytes(), 0), Ok(packet));
            }
        }

        #[test]
        fn arbitrary_heads_are_refused_or_encode_back(
            head in proptest::collection::vec(any::<u8>(), 0..MAX_HEAD), body in 0usize..100,
        ) {
            if let Ok(packet) = decode(&head, body) {
                let again = packet.encode();
                prop_assert_eq!(decode(again.bytes(), body), Ok(packet));
            }
        }
    }

    fn head(kind: u8, uhdr_len: u16, rest: usize) -> Vec<u8> {
        let mut head = vec![0; BASE + rest];
        head[0] = kind;
        head[2..4].copy_from_slice(&uhdr_len.to_le_bytes());
        head
    }

    fn refusal(head: &[u8], body: usize) -> Option<WireError> {
        decode(head, body).err()
    }

    #[test]
    fn every_violation_has_its_error() {
        let truncated = refusal(&[1, 2], 0);
        assert_eq!(truncated, Some(WireError::Truncated { len: 2, needed: 8 }));
        assert_eq!(refusal(&head(99, 0, 0), 0), Some(WireError::UnknownKind(99)));
        let announced = refusal(&head(FENCE | COUNTERS, 0, 0), 0);
        assert_eq!(announced, Some(WireError::UnknownKind(FENCE | COUNTERS)));
        let lies = refusal(&head(SINGLE, 16, 8), 0);
        assert_eq!(lies, Some(WireError::UhdrLength { claimed: 16, carried: 8 }));
        let odd = refusal(&head(SINGLE, 4, 4), 0);
        assert_eq!(odd, Some(WireError::UhdrLength { claimed: 4, carried: 4 }));
        let body = refusal(&head(FENCE, 0, 0), 3);
        assert_eq!(body, Some(WireError::UnexpectedBody { kind: FENCE, len: 3 }));
        let over = refusal(&head(FIRST, 0, 8), 1);
        assert_eq!(over, Some(WireError::Overlong { carried: 1, total: 0 }));
    }
}
