//! The word with which each packet begins: pure codec.
//!
//! A packet is an active message of the transport. Its user header is the word, and perhaps the beginning of what
//! follows, filled up to whole words: an answer's number if one is wanted, the header of the message, and its data, or
//! instead of them where the data lie.

use transport_lapi::{RemoteRegion, TaskId};

use crate::MAX_HEADER;
use crate::error::Violation;
use crate::hints::Hints;

/// The ways to send a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// One packet carries header and data.
    Eager,
    /// The receiver fetches the data. Messages that do not fit into a packet go this way always.
    Rendezvous,
}

/// What a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packet {
    /// A message for a dispatch.
    Message(Head),
    /// The end of an operation at the task that it was sent to: its number, and whether it has succeeded.
    Answer { number: u64, is_good: bool },
}

/// What is known of a message before its header: its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head(u64);

/// Bits of the number of an operation.
pub(crate) const NUMBER_BITS: u32 = 60;

/// Bytes that describe where data lie.
pub(crate) const PLACE_BYTES: usize = 64;

const IS_LONG: u64 = 1 << 1;
const WANTS_ANSWER: u64 = 1 << 2;
const OFFSET_AT: u32 = 3;
const DISPATCH_AT: u32 = 7;
const HINTS_AT: u32 = 15;
const HEADER_AT: u32 = HINTS_AT + Hints::BITS;

impl Head {
    /// That of messages of a context for a dispatch, which have no header.
    #[inline]
    pub fn new(offset: usize, dispatch: u8, hints: Hints) -> Self {
        let hints = u64::from(hints.to_bits()) << HINTS_AT;
        Self((offset as u64) << OFFSET_AT | u64::from(dispatch) << DISPATCH_AT | hints)
    }

    /// The same with a header of so many bytes, at most [`MAX_HEADER`].
    #[inline]
    pub fn with_header(self, len: usize) -> Self {
        Self(self.0 | (len as u64) << HEADER_AT)
    }

    /// The same with the number of an operation of the sender, which is to be answered.
    #[inline]
    pub fn wanting_answer(self) -> Self {
        Self(self.0 | WANTS_ANSWER)
    }

    /// The same with a description of where the data lie at the sender instead of them, which is to be answered.
    #[inline]
    pub fn long(self) -> Self {
        Self(self.0 | IS_LONG | WANTS_ANSWER)
    }

    /// The word.
    #[inline]
    pub fn word(self) -> u64 {
        self.0
    }

    /// The offset of the sender's context.
    #[inline]
    pub fn offset(self) -> usize {
        (self.0 >> OFFSET_AT & 0xF) as usize
    }

    #[inline]
    pub fn dispatch(self) -> u8 {
        (self.0 >> DISPATCH_AT) as u8
    }

    #[inline]
    pub fn hints(self) -> Hints {
        Hints::from_bits((self.0 >> HINTS_AT) as u32 & ((1 << Hints::BITS) - 1))
    }

    #[inline]
    fn header_len(self) -> usize {
        (self.0 >> HEADER_AT) as usize
    }

    #[inline]
    fn is(self, flag: u64) -> bool {
        self.0 & flag != 0
    }
}

impl Packet {
    /// Decodes what a peer has sent.
    #[inline]
    pub fn decode(word: u64) -> Result<Self, Violation> {
        let head = Head(word);
        if word & 1 == 1 {
            return Ok(Self::Answer { number: word >> 4, is_good: word & 2 != 0 });
        }
        match head.header_len() > MAX_HEADER || head.is(IS_LONG) && !head.is(WANTS_ANSWER) {
            true => Err(Violation::Packet { word }),
            false => Ok(Self::Message(head)),
        }
    }

    /// The word of an answer.
    pub fn answer(number: u64, is_good: bool) -> u64 {
        1 | u64::from(is_good) << 1 | number << 4
    }
}

/// The parts of a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    /// The number of the sender's operation that is to be answered.
    pub answer: Option<u64>,
    pub header: &'a [u8],
    pub data: Data<'a>,
}

/// The data of a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Data<'a> {
    Here(&'a [u8]),
    /// Where they lie at the sender: see [`place`].
    There(&'a [u8; PLACE_BYTES]),
}

impl Parts<'_> {
    /// The length of the data.
    pub fn len(&self) -> usize {
        match self.data {
            Data::Here(bytes) => bytes.len(),
            Data::There(bytes) => usize::try_from(place(bytes).len).unwrap_or(usize::MAX),
        }
    }
}

impl Head {
    /// How many bytes follow the word before the data.
    pub fn len_before_data(self) -> usize {
        self.header_len() + if self.is(WANTS_ANSWER) { size_of::<u64>() } else { 0 }
    }

    /// Splits what follows the word.
    #[inline]
    pub fn split(self, bytes: &[u8]) -> Result<Parts<'_>, Violation> {
        let short = || Violation::Length { len: bytes.len() };
        let mut rest = bytes;
        let mut answer = None;
        if self.is(WANTS_ANSWER) {
            let (number, behind) = rest.split_first_chunk().ok_or_else(short)?;
            (answer, rest) = (Some(u64::from_le_bytes(*number)), behind);
        }
        let (header, rest) = rest.split_at_checked(self.header_len()).ok_or_else(short)?;
        let data = match self.is(IS_LONG) {
            false => Data::Here(rest),
            true => Data::There(rest.try_into().map_err(|_| short())?),
        };
        Ok(Parts { answer, header, data })
    }
}

/// Memory of a task in the form in which its description travels.
pub(crate) fn place_bytes(region: RemoteRegion) -> [u8; PLACE_BYTES] {
    let mut bytes = [0; PLACE_BYTES];
    for (into, word) in bytes.chunks_exact_mut(8).zip(region.to_words()) {
        into.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// The memory that a task has described.
pub(crate) fn place(bytes: &[u8; PLACE_BYTES]) -> RemoteRegion {
    let mut words = [0; PLACE_BYTES / 8];
    for (word, from) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(from.try_into().unwrap_or_default());
    }
    RemoteRegion::from_words(words)
}

/// Words in the form in which they travel.
pub(crate) fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The words that a peer has sent, if there are so many.
pub(crate) fn words_of<const N: usize>(bytes: &[u8]) -> Option<[u32; N]> {
    let words =
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap_or_default()));
    let words = words.collect::<Vec<_>>().try_into().ok();
    words.filter(|_| bytes.len() == 4 * N)
}

/// Offsets of contexts that a word has room for.
pub(crate) const MAX_CONTEXTS: usize = 16;

/// Identifies an operation until it is answered: by whom, and its number.
pub(crate) type Answer = (TaskId, u64);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn packets_round_trip(
            [is_long, wants_answer, is_good]: [bool; 3], offset in 0..MAX_CONTEXTS, dispatch: u8,
            hints in 0_u32..1 << Hints::BITS, header_len in 0..=MAX_HEADER,
            number in 0_u64..1 << NUMBER_BITS,
        ) {
            let hints = Hints::from_bits(hints);
            let mut head = Head::new(offset, dispatch, hints).with_header(header_len);
            head = if wants_answer { head.wanting_answer() } else { head };
            head = if is_long { head.long() } else { head };
            prop_assert_eq!(Packet::decode(head.word()), Ok(Packet::Message(head)));
            let parts = (head.offset(), head.dispatch(), head.hints(), head.header_len());
            prop_assert_eq!(parts, (offset, dispatch, hints, header_len));
            prop_assert_eq!((head.is(IS_LONG), head.is(WANTS_ANSWER)), (is_long, wants_answer || is_long));
            let answer = Packet::Answer { number, is_good };
            prop_assert_eq!(Packet::decode(Packet::answer(number, is_good)), Ok(answer));
        }

        #[test]
        fn no_word_and_no_bytes_are_trusted(word: u64, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(Packet::Message(head)) = Packet::decode(word) {
                if let Ok(parts) = head.split(&bytes) {
                    prop_assert_eq!(parts.header.len(), head.header_len());
                    prop_assert_eq!(parts.answer.is_some(), head.is(WANTS_ANSWER));
                }
            }
        }
    }

    #[test]
    fn each_wrong_packet_is_refused() {
        let head = Head::new(0, 1, Hints::default()).with_header(4).long();
        let too_long = head.with_header(MAX_HEADER + 1).word();
        for wrong in [too_long, head.word() & !WANTS_ANSWER] {
            assert_eq!(Packet::decode(wrong), Err(Violation::Packet { word: wrong }));
        }
        for len in [0, 7, 8, 11, 12, 75, 77] {
            assert_eq!(head.split(&[0; 100][..len]), Err(Violation::Length { len }));
        }
        assert!(head.split(&[0; 76]).is_ok());
    }
}
