//! The user headers of the transport's own messages, those for handler 0, which ask the target for a one-sided
//! operation. Pure: nothing but the arguments is accessed.
//!
//! A user header consists of words of 64 bits, little endian: the operation, the key of the target's region, a word
//! whose meaning depends on the operation, and possibly the words of a vector. A longer vector was sent ahead, in
//! messages of its own.

use super::vector::Vector;
use crate::wire::{Encoded, MAX_UHDR};

/// Index of the handler that clients cannot set.
pub(crate) const OWN: u8 = 0;

/// Most words of a user header.
const MAX_WORDS: usize = MAX_UHDR / 8;

const PUT: u64 = 1;
const PUTV: u64 = 2;
const GETV: u64 = 3;
const VECTOR: u64 = 4;

/// What the origin asks for. All of it is a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    /// Store the data in the region, beginning at `offset`.
    Put { key: u64, offset: u64 },
    /// Store the data in the blocks of a vector in the region; without a vector, of the one that was sent ahead.
    Putv { key: u64, vector: Option<Vector> },
    /// Answer get `ticket` with the blocks of a vector in the region.
    Getv { key: u64, ticket: u32, vector: Option<Vector> },
    /// The data is a part of the words of a vector, perhaps the first one.
    Vector { is_first: bool },
}

impl Request {
    /// Whether a vector of so many words fits into the user header.
    pub fn takes(words: usize) -> bool {
        words <= MAX_WORDS - 3
    }

    /// Encodes the request. The caller has checked that the vector fits.
    pub fn encode(&self) -> Encoded {
        let mut header = Encoded::EMPTY;
        match self {
            Self::Put { key, offset } => header.push(&[PUT, *key, *offset]),
            Self::Putv { key, .. } => header.push(&[PUTV, *key, 0]),
            Self::Getv { key, ticket, .. } => header.push(&[GETV, *key, u64::from(*ticket)]),
            Self::Vector { is_first } => header.push(&[VECTOR, u64::from(*is_first)]),
        }
        if let Self::Putv { vector: Some(vector), .. } | Self::Getv { vector: Some(vector), .. } =
            self
        {
            header.push(&vector.words());
        }
        header
    }

    /// Decodes a peer's user header; `None` if it is no request.
    pub fn decode(uhdr: &[u8]) -> Option<Self> {
        let mut words = [0; MAX_WORDS];
        let chunks = uhdr.chunks_exact(8);
        if !chunks.remainder().is_empty() || uhdr.len() > MAX_UHDR {
            return None;
        }
        for (word, chunk) in words.iter_mut().zip(chunks) {
            *word = u64::from_le_bytes(chunk.try_into().ok()?);
        }
        let vector = |rest: &[u64]| match rest {
            [] => Some(None),
            words => Vector::from_words(words).map(Some),
        };
        match words[..uhdr.len() / 8] {
            [PUT, key, offset] => Some(Self::Put { key, offset }),
            [PUTV, key, 0, ref rest @ ..] => Some(Self::Putv { key, vector: vector(rest)? }),
            [GETV, key, ticket, ref rest @ ..] => {
                let ticket = u32::try_from(ticket).ok()?;
                Some(Self::Getv { key, ticket, vector: vector(rest)? })
            }
            [VECTOR, first @ (0 | 1)] => Some(Self::Vector { is_first: first == 1 }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn vectors() -> impl Strategy<Value = Option<Vector>> {
        let blocks = || proptest::collection::vec(any::<(u64, u64)>(), 0..=6);
        prop_oneof![
            Just(None),
            blocks().prop_map(|blocks| Some(Vector::Blocks(blocks))),
            blocks().prop_map(|blocks| Some(Vector::Generic(blocks))),
            any::<[u64; 4]>().prop_map(|[base, block, stride, count]| {
                Some(Vector::Strided { base, block, stride, count })
            }),
        ]
    }

    proptest! {
        #[test]
        fn requests_round_trip(key: u64, offset: u64, ticket: u32, vector in vectors()) {
            for request in [
                Request::Put { key, offset },
                Request::Putv { key, vector: vector.clone() },
                Request::Getv { key, ticket, vector },
                Request::Vector { is_first: key % 2 == 0 },
            ] {
                prop_assert_eq!(Request::decode(request.encode().bytes()), Some(request));
            }
        }

        #[test]
        fn arbitrary_headers_are_refused_or_encode_back(
            kind in 0_u64..6, rest in proptest::collection::vec(any::<u8>(), 0..=MAX_UHDR),
        ) {
            let mut uhdr = kind.to_le_bytes().to_vec();
            uhdr.extend(&rest[..rest.len().min(MAX_UHDR - 8)]);
            if let Some(request) = Request::decode(&uhdr) {
                let again = request.encode();
                prop_assert_eq!(again.bytes(), &uhdr[..]);
            }
        }
    }

    #[test]
    fn a_vector_that_does_not_fit_is_not_taken() {
        let blocks = |count| Vector::Blocks(vec![(1, 2); count]);
        assert!(Request::takes(blocks(6).words().len()));
        assert!(!Request::takes(blocks(7).words().len()));
    }
}
