//! The heads of messages about windows, and the places that they name.
//!
//! ```text
//! byte 0  the kind; for accumulates the operation and the kind of elements, for locks and answers flags; whether it is
//!         to be answered
//!      4  number of words of the place
//!      8  number of the message; of an answer, that of the message that it answers
//!     16  displacement of the place in bytes: from the beginning of the window, in dynamic ones an address
//!     24  the words of the place: its length if it is one block, otherwise its layout; then the data
//! ```
//!
//! All numbers are little endian, 8 bytes for words.
//!
//! - WH1: a head is read only if all of it is legal: the kind has a place or none, the data are as long as the kind and the
//!   place say, and an operation is defined on its elements.

use std::ops::Deref;

use mpjdev::Layout;

use super::update::Update;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Stores the data.
    Put,
    /// Asks for the data.
    Get,
    /// Combines the data with those of the window.
    Accumulate(Update),
    /// The same, and asks for what was there.
    GetAccumulate(Update),
    /// Stores the second half of the data if the first half is there, and asks for what was there.
    CompareAndSwap,
    /// Stores data that come as a message of their own.
    LongPut,
    /// Asks for data as a message of their own.
    LongGet,
    /// Asks whether all earlier messages have been carried out.
    Flush,
    /// Asks for the lock; with `answers` the target says when it is there. Later messages wait for it.
    Lock { exclusive: bool, answers: bool },
    /// Gives the lock back, and asks as `Flush` does.
    Unlock,
    /// Ends the accesses of an epoch.
    Complete,
    /// Exposes the window.
    Post,
    /// Tells a target what an origin has accessed in an epoch of start (WN1).
    Accesses,
    /// Tells a rank that waits for a lock in shared memory to look whether it has got it.
    Look,
    /// The answer to a flush, a lock or an unlock, and whether an operation before it has failed.
    Done { failed: bool },
    /// The answer to a get: the data, unless it has failed; and whether another operation before it has failed.
    Data { failed: bool, refused: bool },
}

/// See the head of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub kind: Kind,
    pub number: u64,
    pub displacement: i64,
    /// Whether the target answers a put or an accumulate as it answers a flush (OW1).
    pub answers: bool,
}

/// How the bytes of a place lie, from its displacement on.
#[derive(Debug, Clone)]
pub(super) enum Shape {
    /// One block of so many bytes.
    Block(usize),
    /// As in this layout.
    Layout(Layout),
}

/// The words of a place.
pub(super) enum Words {
    One([u64; 1]),
    Many(Vec<u64>),
}

impl Deref for Words {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        match self {
            Self::One(word) => word,
            Self::Many(words) => words,
        }
    }
}

/// The most bytes of data for which a message has room from its beginning: there may not be so much memory.
const SPARE: usize = 64 << 10;

/// Length of a head without the words of the place.
const HEAD: usize = 24;

impl Shape {
    /// Returns the number of bytes.
    pub fn size(&self) -> usize {
        match self {
            Self::Block(len) => *len,
            Self::Layout(layout) => layout.size(),
        }
    }

    /// Returns the first byte and the byte after the last one, from the displacement on.
    pub fn bounds(&self) -> (isize, isize) {
        match self {
            // No memory is longer.
            Self::Block(len) => (0, isize::try_from(*len).unwrap_or(isize::MAX)),
            Self::Layout(layout) => layout.bounds(),
        }
    }

    /// Returns whether it names no byte twice.
    pub fn is_disjoint(&self) -> bool {
        match self {
            Self::Block(_) => true,
            Self::Layout(layout) => layout.is_disjoint(),
        }
    }

    /// Returns the words of the place.
    pub fn words(&self) -> Result<Words, mpjdev::LayoutError> {
        Ok(match self {
            Self::Block(len) => Words::One([*len as u64]),
            Self::Layout(layout) => Words::Many(layout.to_words()?),
        })
    }

    fn of_words(words: &[u64]) -> Option<Self> {
        match words {
            [len] => Some(Self::Block(
                usize::try_from(*len).ok().filter(|len| *len <= isize::MAX as usize)?,
            )),
            words => Layout::from_words(words).ok().map(Self::Layout),
        }
    }
}

impl Kind {
    /// Returns the code and its two arguments.
    fn bytes(self) -> [u8; 3] {
        let with = |code, update: Update| {
            let [op, kind] = update.bytes();
            [code, op, kind]
        };
        match self {
            Self::Put => [1, 0, 0],
            Self::Get => [2, 0, 0],
            Self::Accumulate(update) => with(3, update),
            Self::GetAccumulate(update) => with(4, update),
            Self::CompareAndSwap => [5, 0, 0],
            Self::Flush => [6, 0, 0],
            Self::Lock { exclusive, answers } => [7, exclusive.into(), answers.into()],
            Self::Unlock => [8, 0, 0],
            Self::Complete => [9, 0, 0],
            Self::Post => [10, 0, 0],
            Self::Done { failed } => [11, failed.into(), 0],
            Self::Data { failed, refused } => [12, failed.into(), refused.into()],
            Self::LongPut => [13, 0, 0],
            Self::LongGet => [14, 0, 0],
            Self::Look => [15, 0, 0],
            Self::Accesses => [16, 0, 0],
        }
    }

    fn of_bytes(bytes: [u8; 3]) -> Option<Self> {
        Some(match bytes {
            [1, 0, 0] => Self::Put,
            [2, 0, 0] => Self::Get,
            [3, op, kind] => Self::Accumulate(Update::of_bytes([op, kind])?),
            [4, op, kind] => Self::GetAccumulate(Update::of_bytes([op, kind])?),
            [5, 0, 0] => Self::CompareAndSwap,
            [6, 0, 0] => Self::Flush,
            [7, exclusive @ 0..=1, answers @ 0..=1] => {
                Self::Lock { exclusive: exclusive == 1, answers: answers == 1 }
            }
            [8, 0, 0] => Self::Unlock,
            [9, 0, 0] => Self::Complete,
            [10, 0, 0] => Self::Post,
            [11, failed @ 0..=1, 0] => Self::Done { failed: failed == 1 },
            [12, failed @ 0..=1, refused @ 0..=1] => {
                Self::Data { failed: failed == 1, refused: refused == 1 }
            }
            [13, 0, 0] => Self::LongPut,
            [14, 0, 0] => Self::LongGet,
            [15, 0, 0] => Self::Look,
            [16, 0, 0] => Self::Accesses,
            _ => return None,
        })
    }

    /// Returns the number of bytes of data with a place of `size` bytes; `None` if it cannot have such a place.
    pub fn data_of(self, size: usize) -> Option<usize> {
        match self {
            Self::Put => Some(size),
            Self::Get | Self::LongPut | Self::LongGet => Some(0),
            Self::Accumulate(update) | Self::GetAccumulate(update) => {
                let are_whole = size % update.size() == 0;
                are_whole.then_some(if update.needs_data() { size } else { 0 })
            }
            Self::CompareAndSwap => size.checked_mul(2),
            _ => None,
        }
    }

    /// Returns whether it answers a message of this rank, or tells it something; all others are carried out in order.
    pub fn is_news(self) -> bool {
        matches!(
            self,
            Self::Post | Self::Look | Self::Accesses | Self::Done { .. } | Self::Data { .. }
        )
    }
}

impl Head {
    /// Makes a head of a message that is not answered for its own sake.
    pub fn new(kind: Kind, number: u64, displacement: i64) -> Self {
        Self { kind, number, displacement, answers: false }
    }

    /// Makes a message, to which `data` bytes are appended.
    pub fn message(self, words: &[u64], data: usize) -> Vec<u8> {
        let [code, one, other] = self.kind.bytes();
        let mut message = Vec::with_capacity(HEAD + size_of_val(words) + data.min(SPARE));
        message.extend([code, one, other, self.answers.into()]);
        message.extend((words.len() as u32).to_le_bytes());
        message.extend(self.number.to_le_bytes());
        message.extend(self.displacement.to_le_bytes());
        message.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        message
    }

    /// Makes a message that names no place.
    pub fn alone(kind: Kind, number: u64) -> Vec<u8> {
        Self::new(kind, number, 0).message(&[], 0)
    }

    /// Sets the number of a message, and whether it is to be answered.
    pub fn set_number(message: &mut [u8], number: u64, answers: bool) {
        message[3] = answers.into();
        message[8..16].copy_from_slice(&number.to_le_bytes());
    }

    /// Reads a message of a peer: the head, the place if it has one, and the data; `None` if it is none (WH1).
    pub fn read(message: &[u8]) -> Option<(Self, Option<Shape>, &[u8])> {
        let (first, rest) = message.split_at_checked(HEAD)?;
        let word = |bytes: &[u8], at: usize| {
            bytes[at..at + 8].try_into().map(u64::from_le_bytes).expect("the slice has 8 bytes")
        };
        let [code, one, other, answers @ 0..=1] = *first.first_chunk()? else { return None };
        let kind = Kind::of_bytes([code, one, other])?;
        let (number, displacement) = (word(first, 8), word(first, 16) as i64);
        let head = Self { kind, number, displacement, answers: answers == 1 };
        if head.answers && !matches!(kind, Kind::Put | Kind::Accumulate(_)) {
            return None;
        }
        let words = (word(first, 0) >> 32) as usize;
        if words == 0 {
            let may_have_data = matches!(kind, Kind::Data { failed: false, .. } | Kind::Accesses)
                || rest.is_empty();
            return (may_have_data && kind.data_of(0).is_none()).then_some((head, None, rest));
        }
        let (words, data) = rest.split_at_checked(words.checked_mul(8)?)?;
        let shape = match words.len() {
            8 => Shape::of_words(&[word(words, 0)])?,
            _ => {
                let words: Vec<u64> = words.chunks_exact(8).map(|bytes| word(bytes, 0)).collect();
                Shape::of_words(&words)?
            }
        };
        (kind.data_of(shape.size())? == data.len()).then_some((head, Some(shape), data))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::datatype::Datatype;
    use crate::op::{ElementKind, Predefined};

    fn kinds() -> Vec<Kind> {
        let long = Datatype::predefined(ElementKind::I64);
        let update = |op| Update::new(op, long.signature()).unwrap();
        let flags = [false, true];
        let of_flags = flags.into_iter().flat_map(|one| {
            let locks = flags.map(|answers| Kind::Lock { exclusive: one, answers });
            [Kind::Done { failed: one }, Kind::Data { failed: one, refused: !one }]
                .into_iter()
                .chain(locks)
        });
        let others = [
            Kind::Put,
            Kind::Get,
            Kind::Accumulate(update(Predefined::Min)),
            Kind::GetAccumulate(update(Predefined::NoOp)),
            Kind::CompareAndSwap,
            Kind::LongPut,
            Kind::LongGet,
            Kind::Flush,
            Kind::Unlock,
            Kind::Complete,
            Kind::Post,
            Kind::Look,
            Kind::Accesses,
        ];
        of_flags.chain(others).collect()
    }

    #[test]
    fn heads_are_read_as_they_were_written() {
        let layout = Layout::strided(8, 24, 2).unwrap();
        for (kind, number) in kinds().into_iter().zip(1 << 40..) {
            let answers = matches!(kind, Kind::Put | Kind::Accumulate(_));
            let head = Head { kind, number, displacement: -(number as i64), answers };
            let shapes = [Shape::Block(16), Shape::Layout(layout.clone())];
            if kind.data_of(16).is_none() {
                let (read, shape, data) = (head.message(&[], 0), None::<Shape>, &[][..]);
                let (again, found, rest) = Head::read(&read).unwrap();
                assert_eq!((again, found.is_none(), rest), (head, shape.is_none(), data));
                assert!(Head::read(&head.message(&[16], 0)).is_none(), "{kind:?} has no place");
                continue;
            }
            for shape in shapes {
                let data = kind.data_of(16).unwrap();
                let mut message = head.message(&shape.words().unwrap(), data);
                message.resize(message.len() + data, 7);
                let (again, found, rest) = Head::read(&message).unwrap();
                assert_eq!(
                    (again, found.unwrap().bounds(), rest.len()),
                    (head, shape.bounds(), data)
                );
                message.push(7);
                assert!(Head::read(&message).is_none(), "{kind:?} with too many data");
                assert!(Head::read(&message[..message.len() - 2]).is_none());
            }
        }
    }

    #[test]
    fn elements_are_whole() {
        for kind in kinds() {
            let is_accumulate =
                matches!(kind, Kind::Accumulate(_) | Kind::GetAccumulate(Update { .. }));
            let message = Head::new(kind, 1, 0).message(&[9], 0);
            let message = [&*message, &[0; 9][..kind.data_of(8).unwrap_or(0).min(9)]].concat();
            assert!(
                !is_accumulate
                    || kind.data_of(9).is_none()
                    || Head::read(&message).is_none()
                    || kind.data_of(9) == Some(0)
            );
        }
    }

    proptest! {
        /// Whatever a peer sends, what is read has data of the length that it says.
        #[test]
        fn any_bytes_are_read_or_refused(code in 0..18_u8, rest: [u8; 3], words in 0..4_u32, more: Vec<u8>) {
            let mut message = vec![code, rest[0], rest[1], rest[2] % 3];
            message.extend(words.to_le_bytes());
            message.extend([0; 16]);
            message.extend(&more);
            if let Some((head, shape, data)) = Head::read(&message) {
                prop_assert_eq!(shape.is_some(), words > 0);
                let due = shape.and_then(|shape| head.kind.data_of(shape.size()));
                prop_assert!(due.is_none_or(|due| due == data.len()));
            }
        }
    }
}
