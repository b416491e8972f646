//! Errors of calls on buffers: mpjdev's eight conditions, and the ways in which the bytes of a message can be wrong.
//!
//! [`TransferError`] carries both to those who send and receive buffers.

use std::sync::Arc;

use super::element::ElementType;
use super::wire::MAX_PAYLOAD;
use crate::error::{Error, ErrorClass};

/// The reason why a buffer was not sent or received.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The buffer cannot be sent as it is. Nothing was sent.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// The message does not have the format of a buffer, or there is no memory for it. The message is consumed, and the
    /// device stays usable.
    #[error(
        "the message from rank {source_rank} with tag {tag} is not a buffer: {violation}; receive \
         it in the form in which it was sent"
    )]
    Malformed {
        /// Rank of the sender.
        source_rank: u32,
        /// Tag of the message.
        tag: i32,
        /// What is wrong with the message.
        violation: ParseError,
    },
    /// The device did not carry it out.
    #[error(transparent)]
    Device(#[from] Error),
}

impl TransferError {
    /// Returns MPI's class of this error.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Malformed { violation: ParseError::Memory { .. }, .. } => ErrorClass::NoMem,
            Self::Buffer(_) | Self::Malformed { .. } => ErrorClass::Other,
            Self::Device(error) => error.class(),
        }
    }
}

/// The reason why a call on a buffer failed. The buffer is unchanged.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BufferError {
    /// The buffer is not in the state that the call needs.
    #[error(transparent)]
    WrongState(#[from] WrongState),
    /// The buffer has no room for the header of a section or for elements. Nothing was written.
    #[error(
        "{needed} bytes do not fit the {free} bytes that are free; make the buffer with a larger \
         capacity, or send several messages"
    )]
    Overflow {
        /// Bytes that the call needs.
        needed: usize,
        /// Bytes that are free: in a static section, of the capacity; in a dynamic section, of the longest payload that
        /// a message can have.
        free: usize,
    },
    /// The call asks for more than there is to read. Nothing was read.
    #[error(transparent)]
    Underflow(#[from] Underflow),
    /// The elements of the section have another type.
    #[error(
        "the section has elements of type {section}, the call is for type {element}; use the Rust \
         type of the section"
    )]
    TypeMismatch {
        /// The section's type.
        section: ElementType,
        /// The type that the call is for.
        element: ElementType,
    },
    /// The call asks for the next section while elements of the current one are unread.
    #[error("{remaining} elements of the section are unread; read them before the next section")]
    SectionSizeMismatch {
        /// Elements that are unread.
        remaining: usize,
    },
    /// An object could not be serialized, or what was received is not an object of the wanted type.
    #[error("{}", match .is_writing {
        true => "the object cannot be serialized; see the cause for what serde refused",
        false => "the object cannot be read as this type; read it as the type that was written",
    })]
    Dynamic {
        /// Whether the object was being written.
        is_writing: bool,
        /// The error of the serializer.
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// An element lies outside the caller's slice.
    #[error(
        "element {index} is outside of a slice of {len} elements; use a longer slice, or smaller indexes"
    )]
    OutOfBounds {
        /// The element's index. It is negative if the elements begin before the slice. An index that is no `isize`
        /// becomes the nearest one.
        index: isize,
        /// Number of elements of the slice.
        len: usize,
    },
    /// An argument is illegal.
    #[error(transparent)]
    IllegalArgument(#[from] IllegalArgument),
}

/// Which state of the buffer prevents the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WrongState {
    /// The call writes, but the buffer is readable.
    #[error("the buffer is readable; clear it before you write")]
    Readable,
    /// The call reads or sends, but the buffer is writable.
    #[error("the buffer is writable; commit it before you read or send it")]
    Writable,
    /// The call needs a section, but there is no current one.
    #[error("there is no current section; begin one by put_section_header or get_section_header")]
    NoSection,
}

/// What ran out while reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Underflow {
    /// All sections have been read.
    #[error("the buffer has no more sections; read as many as were written, or rewind by commit")]
    Sections,
    /// The section has fewer unread elements than the call asks for.
    #[error(
        "{wanted} elements were asked for, {remaining} of the section are unread; see remaining"
    )]
    Elements {
        /// Elements that were asked for.
        wanted: usize,
        /// Elements that are unread.
        remaining: usize,
    },
}

/// The argument that is illegal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IllegalArgument {
    /// The capacity is longer than a message can be, or there is no memory for it.
    #[error(
        "a capacity of {capacity} bytes is not available; {MAX_PAYLOAD} is the most there can be"
    )]
    Capacity {
        /// The capacity that was asked for.
        capacity: usize,
    },
    /// The section would have no type.
    #[error("a section cannot be of type UNDEFINED; use the type of its elements")]
    Type,
    /// The rank is larger than the number of extents or strides in the shape.
    #[error(
        "{rank} dimensions need the entries of the shape from {from} on, and it has {len} entries in all"
    )]
    Rank {
        /// The rank.
        rank: usize,
        /// Where the extents, or the strides, begin in the shape.
        from: usize,
        /// Number of entries of the shape.
        len: usize,
    },
    /// An extent is negative.
    #[error("extent {extent} of dimension {dimension} is negative; extents are 0 or more")]
    Extent {
        /// The extent.
        extent: isize,
        /// The dimension, counted from 0.
        dimension: usize,
    },
}

/// Why bytes are not a buffer. Each way in which a message can be wrong has a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// The message is too short.
    #[error("the message ends after {len} bytes, where at least {needed} are needed")]
    Truncated {
        /// Number of bytes of the message.
        len: usize,
        /// Number of bytes that the message needs.
        needed: usize,
    },
    /// The encoding is neither big nor little endian.
    #[error("unknown encoding {0:#04x}")]
    UnknownEncoding(u8),
    /// The primary payload ends where no section can end.
    #[error("a primary payload of {len} bytes, which is no multiple of 8")]
    UnevenLength {
        /// The length that was claimed.
        len: usize,
    },
    /// The secondary header claims a length other than that of the message.
    #[error("the header claims {claimed} bytes of secondary payload, the message has {carried}")]
    SecondaryLength {
        /// The length that was claimed.
        claimed: usize,
        /// Number of bytes after the header.
        carried: usize,
    },
    /// A section has a type that does not exist.
    #[error("the section at byte {at} has the unknown type {code}")]
    UnknownType {
        /// Where the section begins in the message.
        at: usize,
        /// The code that was claimed.
        code: u8,
    },
    /// A section claims more elements than the payload has bytes for.
    #[error(
        "the section at byte {at} claims {count} elements of type {element}, more than there are bytes for"
    )]
    Count {
        /// Where the section begins in the message.
        at: usize,
        /// The number of elements that was claimed.
        count: usize,
        /// Type of the elements.
        element: ElementType,
    },
    /// An element of type BOOLEAN is neither 0 nor 1.
    #[error("the section at byte {at} has a BOOLEAN of value {value}")]
    Boolean {
        /// Where the section begins in the message.
        at: usize,
        /// The value.
        value: u8,
    },
    /// Bytes of the secondary payload belong to no section.
    #[error("{len} bytes of the secondary payload belong to no section")]
    Leftover {
        /// Number of these bytes.
        len: usize,
    },
    /// There is no memory for the message.
    #[error("a message of {len} bytes, for which there is no memory")]
    Memory {
        /// Length of the message.
        len: usize,
    },
}
