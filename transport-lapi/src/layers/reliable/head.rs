//! The head that the reliable layer puts before the head of each frame, and its codec, which is pure.
//!
//! All integers are little endian, all positions fixed:
//!
//! ```text
//!  0..4   kind: 1 data, 2 receipt, 3 farewell
//!  4..8   number of the frame; 0 unless the frame carries data
//!  8..12  receipt: number of the frame that the sender expects next from the receiver
//! 12..20  receipt: bit i is set if the sender has got frame `expected + i` already
//! 20..    the caller's head; only before data
//! ```
//!
//! Everything decoded is untrusted: this file checks lengths and kinds, [`super::link`] checks numbers.

/// Length of the head in bytes.
pub(super) const HEAD: usize = 20;

const DATA: u32 = 1;
const RECEIPT: u32 = 2;
const FAREWELL: u32 = 3;

/// Why a frame of a peer was refused. There is one variant for each violation, and a test for each variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The head ends before its fields do.
    #[error("a frame's head has {len} bytes, at least {HEAD} are needed")]
    Truncated {
        /// Length of the head.
        len: usize,
    },
    /// The kind of frame does not exist.
    #[error("unknown kind of frame {0:#010x}")]
    UnknownKind(u32),
    /// A frame that carries no data has a number, or bytes behind the head.
    #[error("a frame without data has number {number} and {len} bytes behind its head")]
    UnexpectedData {
        /// The number.
        number: u32,
        /// How many bytes there are.
        len: usize,
    },
    /// The number of a frame is one that the sender cannot have assigned yet, or never assigned.
    #[error("frame {number} lies outside the window, which begins with frame {expected}")]
    OutsideWindow {
        /// The number of the frame.
        number: u32,
        /// The number of the next frame in order.
        expected: u32,
    },
    /// A receipt for frames that were not sent.
    #[error(
        "a receipt up to frame {expected} with marks {marks:#x}, but frame {next} was not sent yet"
    )]
    UnsentReceipt {
        /// The frame that the peer claims to expect.
        expected: u32,
        /// The frames that it claims to have got beyond that.
        marks: u64,
        /// The next frame to be sent.
        next: u32,
    },
}

/// The number of a frame in its direction of a link. Numbers wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Number(pub u32);

impl Number {
    /// The number of the frame that comes `count` frames later.
    pub fn plus(self, count: usize) -> Self {
        Self(self.0.wrapping_add(count as u32))
    }

    /// How many frames after `earlier` this one comes.
    pub fn since(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }
}

/// What a task has got of the other's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Receipt {
    /// The first frame that was not handed over yet; all before it were.
    pub expected: Number,
    /// Bit `i` is set if frame `expected + i` has arrived.
    pub marks: u64,
}

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A frame of the caller, with its number.
    Data(Number),
    /// Only a receipt: LAPI's acknowledgement.
    Receipt,
    /// The sender leaves, and takes no more frames.
    Farewell,
}

/// Encodes a head.
pub(super) fn encode(kind: Kind, receipt: Receipt) -> [u8; HEAD] {
    let (code, number) = match kind {
        Kind::Data(Number(number)) => (DATA, number),
        Kind::Receipt => (RECEIPT, 0),
        Kind::Farewell => (FAREWELL, 0),
    };
    let Receipt { expected: Number(expected), marks } = receipt;
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&code.to_le_bytes());
    head[4..8].copy_from_slice(&number.to_le_bytes());
    head[8..12].copy_from_slice(&expected.to_le_bytes());
    head[12..].copy_from_slice(&marks.to_le_bytes());
    head
}

/// Decodes the head of a frame whose body has `body` bytes. Returns the caller's head too.
pub(super) fn decode(head: &[u8], body: usize) -> Result<(Kind, Receipt, &[u8]), FrameError> {
    let truncated = FrameError::Truncated { len: head.len() };
    let (fields, rest) = head.split_first_chunk::<HEAD>().ok_or(truncated)?;
    let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| fields[at + byte]));
    let (code, number, expected) = (word(0), word(4), Number(word(8)));
    let marks = u64::from(word(12)) | u64::from(word(16)) << 32;
    let kind = match code {
        DATA => Kind::Data(Number(number)),
        RECEIPT => Kind::Receipt,
        FAREWELL => Kind::Farewell,
        code => return Err(FrameError::UnknownKind(code)),
    };
    let len = rest.len() + body;
    if code != DATA && (number != 0 || len != 0) {
        return Err(FrameError::UnexpectedData { number, len });
    }
    Ok((kind, Receipt { expected, marks }, rest))
}

/// The entry of the fuzz target: decodes arbitrary bytes, which must encode back, and returns whether they are a head.
pub(crate) fn fuzz_frame(head: &[u8], body: usize) -> bool {
    let Ok((kind, receipt, rest)) = decode(head, body) else { return false };
    assert_eq!([&encode(kind, receipt)[..], rest].concat(), head, "the head encodes differently");
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn heads_round_trip(
            number: u32, expected: u32, marks: u64, rest in proptest::collection::vec(any::<u8>(), 0..9),
        ) {
            let receipt = Receipt { expected: Number(expected), marks };
            for kind in [Kind::Data(Number(number)), Kind::Receipt, Kind::Farewell] {
                let rest = if matches!(kind, Kind::Data(_)) { &rest[..] } else { &[] };
                let head = [&encode(kind, receipt)[..], rest].concat();
                prop_assert_eq!(decode(&head, 0), Ok((kind, receipt, rest)));
            }
        }

        #[test]
        fn arbitrary_bytes_are_refused_or_encode_back(
            code in 0_u32..5, bytes in proptest::collection::vec(any::<u8>(), 0..40), body in 0_usize..2,
        ) {
            let mut bytes = bytes;
            // Else hardly any would have a kind that exists.
            if let Some(kind) = bytes.first_chunk_mut() {
                *kind = code.to_le_bytes();
            }
            if let Ok((kind, receipt, rest)) = decode(&bytes, body) {
                prop_assert_eq!([&encode(kind, receipt)[..], rest].concat(), bytes);
            }
        }
    }

    #[test]
    fn every_violation_of_the_format_has_its_error() {
        let receipt = Receipt { expected: Number(7), marks: 0 };
        let mut head = encode(Kind::Receipt, receipt);
        assert_eq!(decode(&head[1..], 0), Err(FrameError::Truncated { len: HEAD - 1 }));
        assert_eq!(decode(&head, 3), Err(FrameError::UnexpectedData { number: 0, len: 3 }));
        head[4] = 9;
        assert_eq!(decode(&head, 0), Err(FrameError::UnexpectedData { number: 9, len: 0 }));
        head[0] = 99;
        assert_eq!(decode(&head, 0), Err(FrameError::UnknownKind(99)));
    }
}
