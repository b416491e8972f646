//! The word with which each packet begins: pure codec.
//!
//! A packet is an active message of the transport. Its user header is the word, and perhaps the beginning of what
//! follows, filled up to whole words: an answer's number if one is wanted, the header of the message, and its data, or
//! instead of them where the data lie.

use transport_lapi::RemoteRegion;

use crate::MAX_HEADER;
use crate::error::Violation;
use crate::types::Hints;

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
pub(crate) struct Head {
    /// The offset of the sender's context.
    pub offset: u8,
    pub dispatch: u8,
    pub hints: Hints,
    /// Bytes of the header, at most [`MAX_HEADER`].
    pub header_len: u16,
    /// Whether the number of an operation of the sender, which is to be answered, comes before the header.
    pub wants_answer: bool,
    /// Whether a description of where the data lie at the sender comes instead of them; an answer is wanted then.
    pub is_long: bool,
}

/// Offsets of contexts that a word has room for.
pub(crate) const MAX_CONTEXTS: usize = 16;

const OFFSET_AT: u32 = 3;
const DISPATCH_AT: u32 = 7;
const HINTS_AT: u32 = 15;
const HEADER_AT: u32 = HINTS_AT + Hints::BITS;

impl Head {
    #[inline]
    pub fn word(self) -> u64 {
        let flags = u64::from(self.is_long) << 1 | u64::from(self.wants_answer) << 2;
        let to = u64::from(self.offset) << OFFSET_AT | u64::from(self.dispatch) << DISPATCH_AT;
        let hints = u64::from(self.hints.to_bits()) << HINTS_AT;
        flags | to | hints | u64::from(self.header_len) << HEADER_AT
    }
}

impl Packet {
    /// Decodes what a peer has sent.
    #[inline]
    pub fn decode(word: u64) -> Result<Self, Violation> {
        if word & 1 == 1 {
            return Ok(Self::Answer { number: word >> 4, is_good: word & 2 != 0 });
        }
        let head = Head {
            offset: (word >> OFFSET_AT) as u8 % MAX_CONTEXTS as u8,
            dispatch: (word >> DISPATCH_AT) as u8,
            hints: Hints::from_bits((word >> HINTS_AT) as u32 % (1 << Hints::BITS)),
            header_len: (word >> HEADER_AT).try_into().unwrap_or(u16::MAX),
            wants_answer: word & 4 != 0,
            is_long: word & 2 != 0,
        };
        match usize::from(head.header_len) > MAX_HEADER || head.is_long && !head.wants_answer {
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
    /// Where they lie at the sender.
    There(RemoteRegion),
}

impl Parts<'_> {
    /// The length of the data.
    #[inline]
    pub fn len(&self) -> usize {
        match self.data {
            Data::Here(bytes) => bytes.len(),
            Data::There(region) => usize::try_from(region.len).unwrap_or(usize::MAX),
        }
    }
}

impl Head {
    /// How many bytes follow the word before the data.
    pub fn len_before_data(self) -> usize {
        usize::from(self.header_len) + if self.wants_answer { size_of::<u64>() } else { 0 }
    }

    /// Splits what follows the word.
    #[inline]
    pub fn split(self, bytes: &[u8]) -> Result<Parts<'_>, Violation> {
        let short = || Violation::Length { len: bytes.len() };
        let mut rest = bytes;
        let mut answer = None;
        if self.wants_answer {
            let (number, behind) = rest.split_first_chunk().ok_or_else(short)?;
            (answer, rest) = (Some(u64::from_le_bytes(*number)), behind);
        }
        let (header, rest) = rest.split_at_checked(self.header_len.into()).ok_or_else(short)?;
        let data = match self.is_long {
            false => Data::Here(rest),
            true => Data::There(RemoteRegion::from_bytes(rest.try_into().map_err(|_| short())?)),
        };
        Ok(Parts { answer, header, data })
    }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn packets_round_trip(
            [is_long, wants_answer, is_good]: [bool; 3], offset in 0..MAX_CONTEXTS as u8, dispatch: u8,
            hints in 0_u32..1 << Hints::BITS, header_len in 0..=MAX_HEADER as u16,
            number in 0_u64..1 << 60,
        ) {
            let (hints, wants_answer) = (Hints::from_bits(hints), wants_answer || is_long);
            let head = Head { offset, dispatch, hints, header_len, wants_answer, is_long };
            prop_assert_eq!(Packet::decode(head.word()), Ok(Packet::Message(head)));
            let answer = Packet::Answer { number, is_good };
            prop_assert_eq!(Packet::decode(Packet::answer(number, is_good)), Ok(answer));
        }

        #[test]
        fn no_word_and_no_bytes_are_trusted(word: u64, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(Packet::Message(head)) = Packet::decode(word) {
                if let Ok(parts) = head.split(&bytes) {
                    prop_assert_eq!(parts.header.len(), usize::from(head.header_len));
                    prop_assert_eq!(parts.answer.is_some(), head.wants_answer);
                }
            }
        }
    }

    #[test]
    fn each_wrong_packet_is_refused() {
        let (hints, header_len) = (Hints::default(), 4);
        let (wants_answer, is_long) = (true, true);
        let head = Head { offset: 0, dispatch: 1, hints, header_len, wants_answer, is_long };
        let too_long = Head { header_len: MAX_HEADER as u16 + 1, ..head };
        for wrong in [too_long, Head { wants_answer: false, ..head }].map(Head::word) {
            assert_eq!(Packet::decode(wrong), Err(Violation::Packet { word: wrong }));
        }
        for len in [0, 7, 8, 11, 12, 75, 77] {
            assert_eq!(head.split(&[0; 100][..len]), Err(Violation::Length { len }));
        }
        assert!(head.split(&[0; 76]).is_ok());
    }
}
