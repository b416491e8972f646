//! The bytes of a buffer on the wire.
//!
//! The buffer writes and reads these bytes, and `transfer.rs` sends them. Bytes from a peer are untrusted: [`parse`]
//! checks every length, type and count before any of them is used, so later reads stay within the message. Memory is
//! only taken for bytes that have arrived, not for what a length claims.
//!
//! - BW1: parts have both headers, and whole sections: each section header has a type that exists, and a count whose
//!   elements are all present. Elements of type BOOLEAN are 0 or 1.

use bytemuck::CheckedBitPattern;

use super::element::ElementType;
use super::error::ParseError;

/// Length of each header, both that of a part and that of a section.
pub(super) const HEADER: usize = 8;
/// Sections begin at multiples of this.
pub(super) const ALIGNMENT: usize = 8;
/// Where the length or count lies in a header.
const LENGTH_AT: usize = 4;
/// The longest payload. Lengths have 31 bits, since some peers have only signed numbers.
pub(super) const MAX_PAYLOAD: usize = i32::MAX as usize / ALIGNMENT * ALIGNMENT;

/// The byte order of numbers, with its code on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Encoding {
    /// The most significant byte comes first.
    BigEndian = 0,
    /// The least significant byte comes first.
    LittleEndian = 1,
}

impl Encoding {
    /// The byte order of this machine.
    pub const NATIVE: Self =
        if cfg!(target_endian = "big") { Self::BigEndian } else { Self::LittleEndian };

    /// Returns the number at `at`, which lies inside `bytes`.
    pub(super) fn number(self, bytes: &[u8], at: usize) -> usize {
        let mut number = [0; 4];
        number.copy_from_slice(&bytes[at..at + 4]);
        let number = match self {
            Self::BigEndian => u32::from_be_bytes(number),
            Self::LittleEndian => u32::from_le_bytes(number),
        };
        number as usize
    }
}

/// The two parts of a message, each with its header.
#[derive(Debug, Clone)]
pub(super) struct Parts {
    /// The sections, after a header that contains the encoding.
    pub primary: Vec<u8>,
    /// The elements of all dynamic sections, one after another.
    pub secondary: Vec<u8>,
}

impl Parts {
    /// Makes parts without sections.
    pub fn empty() -> Self {
        Self { primary: vec![0; HEADER], secondary: vec![0; HEADER] }
    }

    /// Removes the sections, and keeps the memory.
    pub fn clear(&mut self) {
        self.primary.truncate(HEADER);
        self.secondary.truncate(HEADER);
    }

    /// Fills in the headers of the parts, in the byte order of this machine.
    pub fn seal(&mut self) {
        self.primary[0] = Encoding::NATIVE as u8;
        for part in [&mut self.primary, &mut self.secondary] {
            let payload = part.len() - HEADER;
            put_number(part, LENGTH_AT, payload);
        }
    }

    /// Begins a section after the present ones, and returns where it begins.
    pub fn begin_section(&mut self, element: ElementType) -> usize {
        let at = self.primary.len();
        self.primary.resize(at + HEADER, 0);
        self.primary[at] = element.code();
        at
    }

    /// Stores the count of the section at `at`, the last one, and pads it with zeros to where another one can begin.
    pub fn end_section(&mut self, at: usize, count: usize) {
        put_number(&mut self.primary, at + LENGTH_AT, count);
        let end = self.primary.len().next_multiple_of(ALIGNMENT);
        self.primary.resize(end, 0);
    }
}

/// Stores a number below 2^31 at `at`, in the byte order of this machine.
pub(super) fn put_number(bytes: &mut [u8], at: usize, number: usize) {
    let number = u32::try_from(number).expect("payloads are at most MAX_PAYLOAD bytes long");
    bytes[at..at + 4].copy_from_slice(&number.to_ne_bytes());
}

/// Returns type and count of the section at `at`, whose header lies inside `primary`.
///
/// # Errors
/// [`ParseError::UnknownType`].
pub(super) fn section_header(
    primary: &[u8],
    at: usize,
    encoding: Encoding,
) -> Result<(ElementType, usize), ParseError> {
    let code = primary[at];
    match ElementType::from_code(code) {
        Some(element) if element != ElementType::Undefined => {
            Ok((element, encoding.number(primary, at + LENGTH_AT)))
        }
        _ => Err(ParseError::UnknownType { at, code }),
    }
}

/// Returns the object at the beginning of `bytes`, without its length, and what follows it. `None` if the object is not
/// complete.
pub(super) fn split_object(bytes: &[u8], encoding: Encoding) -> Option<(&[u8], &[u8])> {
    let behind = bytes.get(4..)?;
    behind.split_at_checked(encoding.number(bytes, 0))
}

/// Splits a message into its parts, and checks all of it (BW1).
///
/// # Errors
/// All variants of [`ParseError`] except [`ParseError::Memory`].
pub(super) fn parse(mut message: Vec<u8>) -> Result<(Parts, Encoding), ParseError> {
    let len = message.len();
    if len < 2 * HEADER {
        return Err(ParseError::Truncated { len, needed: 2 * HEADER });
    }
    let encoding = match message[0] {
        0 => Encoding::BigEndian,
        1 => Encoding::LittleEndian,
        other => return Err(ParseError::UnknownEncoding(other)),
    };
    let payload = encoding.number(&message, LENGTH_AT);
    if payload % ALIGNMENT != 0 {
        return Err(ParseError::UnevenLength { len: payload });
    }
    let needed = payload.saturating_add(2 * HEADER);
    if len < needed {
        return Err(ParseError::Truncated { len, needed });
    }
    let secondary = message.split_off(HEADER + payload);
    let (claimed, carried) = (encoding.number(&secondary, LENGTH_AT), secondary.len() - HEADER);
    if claimed != carried {
        return Err(ParseError::SecondaryLength { claimed, carried });
    }
    let parts = Parts { primary: message, secondary };
    check_sections(&parts, encoding)?;
    Ok((parts, encoding))
}

/// Checks all sections and their elements. The primary payload must end where a section can end.
fn check_sections(parts: &Parts, encoding: Encoding) -> Result<(), ParseError> {
    let mut dynamic = &parts.secondary[HEADER..];
    let mut at = HEADER;
    while at < parts.primary.len() {
        let (element, count) = section_header(&parts.primary, at, encoding)?;
        let header = at;
        at += HEADER;
        let too_many = ParseError::Count { at: header, count, element };
        let Some(bytes) = element.element_bytes() else {
            for _ in 0..count {
                (_, dynamic) = split_object(dynamic, encoding).ok_or(too_many)?;
            }
            continue;
        };
        let from = if element.is_dynamic() { dynamic } else { &parts.primary[at..] };
        let split = from.split_at_checked(count.saturating_mul(bytes));
        let (elements, behind) = split.ok_or(too_many)?;
        if element.to_static() == ElementType::Boolean {
            check_booleans(elements, header)?;
        }
        if element.is_dynamic() {
            dynamic = behind;
        } else {
            at += elements.len().next_multiple_of(ALIGNMENT);
        }
    }
    match dynamic.len() {
        0 => Ok(()),
        len => Err(ParseError::Leftover { len }),
    }
}

fn check_booleans(elements: &[u8], at: usize) -> Result<(), ParseError> {
    match elements.iter().find(|value| !bool::is_valid_bit_pattern(value)) {
        Some(&value) => Err(ParseError::Boolean { at, value }),
        None => Ok(()),
    }
}
