//! Values that serde can serialize, as bytes and back. [`Buffer`](super::Buffer) uses it, and so do the layers above for
//! messages that are one object.
//!
//! Only this file knows that the format is CBOR (RFC 8949), and that the crate `cbor4ii` reads and writes it. CBOR marks
//! each value with its type and each field with its name. So bytes of another type are an error and no wrong value, which
//! formats without marks cannot promise. Two things do not come back: `Some(None)` is `None`, and values of more than 256
//! levels, such as long linked lists, are refused by the reader. The crate is
//! maintained, has no dependencies, writes into the vector that is sent, and reads from the bytes that have come: a long
//! text, or bytes by `serde_bytes`, is copied once at each end.

use std::collections::TryReserveError;

use cbor4ii::core::utils::SliceReader;
use cbor4ii::core::{dec, enc};
use cbor4ii::serde::{DecodeError, Deserializer, EncodeError, Serializer};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Why a value was not encoded, or bytes were not decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The encoded value would be longer than is allowed.
    #[error("the encoded value has more than {limit} bytes")]
    TooLong {
        /// The most bytes that are allowed.
        limit: usize,
    },
    /// There is no memory for the encoded value.
    #[error("there is no memory for the encoded value")]
    NoMemory,
    /// The type refused it: its implementation of serde's traits says why.
    #[error("{0}")]
    Refused(Box<str>),
    /// The bytes have a value of another type.
    #[error("there is {found} instead of {wanted}")]
    Mismatch {
        /// What the type asks for.
        wanted: &'static str,
        /// What the bytes have.
        found: &'static str,
    },
    /// The bytes end inside the value.
    #[error("the bytes end inside a value ({wanted})")]
    Truncated {
        /// What ends too early.
        wanted: &'static str,
    },
    /// The value nests deeper than the reader follows.
    #[error("the value nests too deeply")]
    TooDeep,
    /// A number does not fit its type, a text is no UTF-8, or the bytes are no CBOR at all.
    #[error("the bytes are no {wanted}")]
    Malformed {
        /// What the type asks for.
        wanted: &'static str,
    },
    /// The value ends before the bytes do.
    #[error("{len} bytes follow the value")]
    Trailing {
        /// Number of bytes after the value.
        len: usize,
    },
}

/// Appends the encoded value to `into`, which then has at most `limit` bytes.
///
/// ```
/// use mpjdev::buffer::codec::{CodecError, decode, encode};
/// let mut bytes = Vec::new();
/// encode(&("a name", 7), &mut bytes, 100)?;
/// assert_eq!(decode::<(String, u8)>(&bytes)?, ("a name".to_owned(), 7));
/// assert!(matches!(decode::<(u8, u8)>(&bytes), Err(CodecError::Mismatch { .. })));
/// # Ok::<(), CodecError>(())
/// ```
///
/// # Errors
/// [`CodecError::TooLong`], [`CodecError::NoMemory`], [`CodecError::Refused`]. Part of the value has been appended then.
pub fn encode<T: Serialize + ?Sized>(
    value: &T,
    into: &mut Vec<u8>,
    limit: usize,
) -> Result<(), CodecError> {
    let encoded = value.serialize(&mut Serializer::new(Limited { bytes: into, limit }));
    encoded.map_err(|error| match error {
        EncodeError::Core(enc::Error::Write(full)) => full.into(),
        EncodeError::Custom(why) => CodecError::Refused(why),
        error => CodecError::Refused(error.to_string().into()),
    })
}

/// Decodes a value, which has to be all of the bytes. They may come from a peer: memory is taken as values are read,
/// and for at most 1 MiB of elements ahead.
///
/// # Errors
/// All variants of [`CodecError`] that are about bytes.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    let mut deserializer = Deserializer::new(SliceReader::new(bytes));
    let value = T::deserialize(&mut deserializer).map_err(of_bytes)?;
    let mut rest = deserializer.into_inner();
    let Ok(rest) = dec::Read::fill(&mut rest, usize::MAX);
    match rest.as_ref().len() {
        0 => Ok(value),
        len => Err(CodecError::Trailing { len }),
    }
}

fn of_bytes<E: std::fmt::Debug>(error: DecodeError<E>) -> CodecError {
    let error = match error {
        DecodeError::Core(error) => error,
        DecodeError::Custom(why) => return CodecError::Refused(why),
    };
    match error {
        dec::Error::Mismatch { name, found } | dec::Error::Unsupported { name, found } => {
            CodecError::Mismatch { wanted: name, found: type_of(found) }
        }
        dec::Error::Eof { name, .. } => CodecError::Truncated { wanted: name },
        dec::Error::DepthOverflow { .. } => CodecError::TooDeep,
        dec::Error::RequireLength { name, .. }
        | dec::Error::RequireUtf8 { name }
        | dec::Error::LengthOverflow { name, .. }
        | dec::Error::CastOverflow { name }
        | dec::Error::ArithmeticOverflow { name, .. } => CodecError::Malformed { wanted: name },
        other => CodecError::Refused(format!("{other:?}").into()),
    }
}

/// Returns what begins with this byte (RFC 8949 section 3).
fn type_of(first: u8) -> &'static str {
    match (first >> 5, first & 31) {
        (0 | 1, _) => "an integer",
        (2, _) => "bytes",
        (3, _) => "a text",
        (4, _) => "a sequence",
        (5, _) => "a map or structure",
        (6, _) => "a tagged value",
        (_, 20 | 21) => "a truth value",
        (_, 22) => "nothing",
        (_, 25..=27) => "a floating-point number",
        _ => "a special value",
    }
}

/// A vector that takes a limited number of bytes.
struct Limited<'a> {
    bytes: &'a mut Vec<u8>,
    limit: usize,
}

/// Why a [`Limited`] takes no more bytes.
#[derive(Debug, thiserror::Error)]
enum Full {
    #[error("the limit of {0} bytes is reached")]
    Limit(usize),
    #[error(transparent)]
    Memory(#[from] TryReserveError),
}

impl From<Full> for CodecError {
    fn from(full: Full) -> Self {
        match full {
            Full::Limit(limit) => Self::TooLong { limit },
            Full::Memory(_) => Self::NoMemory,
        }
    }
}

impl enc::Write for Limited<'_> {
    type Error = Full;

    #[inline]
    fn push(&mut self, input: &[u8]) -> Result<(), Full> {
        if input.len() > self.limit.saturating_sub(self.bytes.len()) {
            return Err(Full::Limit(self.limit));
        }
        self.bytes.try_reserve(input.len())?;
        self.bytes.extend_from_slice(input);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
