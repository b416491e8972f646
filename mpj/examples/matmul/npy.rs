//! NumPy's `.npy` format, versions 1.0 and 2.0, for little-endian `f4` and `f8` arrays.
//!
//! `files.rs` uses it; the tests of the tree include this file as it is. A file is untrusted until it has passed
//! [`read_header`]:
//!
//! - NP1: the length that the file states for its header never causes an allocation above [`MAX_HEADER`].
//! - NP2: the number of values is computed without overflow, and header and values together are exactly as long as the
//!   file. So [`read_values`] allocates no more than the file contains.

use std::fmt;
use std::io::{self, Read, Write};

use mpj::bytemuck;

use super::literal;

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Longest header that is read, in bytes. NumPy has the same limit.
pub const MAX_HEADER: usize = 10_000;

/// NumPy starts the values at a multiple of this many bytes.
const ALIGNMENT: usize = 64;

/// Type of the values in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dtype {
    F32,
    F64,
}

impl Dtype {
    /// Returns the type with this name in a header.
    pub fn from_descr(descr: &str) -> Option<Self> {
        [Self::F32, Self::F64].into_iter().find(|dtype| dtype.descr() == descr)
    }

    fn descr(self) -> &'static str {
        match self {
            Self::F32 => "<f4",
            Self::F64 => "<f8",
        }
    }

    /// Returns the number of bytes of one value.
    pub fn size(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
        })
    }
}

/// A Rust type that is one of the [`Dtype`]s.
pub trait Scalar: bytemuck::Pod {
    const DTYPE: Dtype;

    /// Converts between the byte order of this machine and that of the file, in either direction.
    fn little_endian(self) -> Self;
}

impl Scalar for f32 {
    const DTYPE: Dtype = Dtype::F32;

    fn little_endian(self) -> Self {
        Self::from_bits(self.to_bits().to_le())
    }
}

impl Scalar for f64 {
    const DTYPE: Dtype = Dtype::F64;

    fn little_endian(self) -> Self {
        Self::from_bits(self.to_bits().to_le())
    }
}

/// The properties of the array in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub dtype: Dtype,
    /// Whether the first index varies fastest, instead of the last.
    pub fortran_order: bool,
    pub shape: Vec<usize>,
}

impl Header {
    /// Returns the number of bytes of the values, or `None` if the shape is too large for any file.
    fn payload(&self) -> Option<u64> {
        let sized = self.shape.iter().filter(|extent| **extent != 0);
        let bytes = sized.copied().try_fold(self.dtype.size(), usize::checked_mul)?;
        let empty = self.shape.contains(&0);
        u64::try_from(if empty { 0 } else { bytes }).ok()
    }

    /// Returns the number of values.
    fn count(&self) -> usize {
        self.shape.iter().product()
    }
}

/// Why a file cannot be read. Each violation has a variant.
#[derive(Debug)]
pub enum NpyError {
    /// The file is too short for the fixed part of the header, or has another format.
    NotNpy,
    Version {
        major: u8,
        minor: u8,
    },
    HeaderTooLong {
        stated: usize,
    },
    HeaderTruncated {
        stated: usize,
        found: usize,
    },
    /// The dictionary in the header does not read as `expected` at byte `at`.
    Syntax {
        at: usize,
        expected: &'static str,
    },
    UnknownKey(String),
    RepeatedKey(&'static str),
    MissingKey(&'static str),
    Dtype(String),
    ShapeOverflow(Vec<usize>),
    Length {
        expected: u64,
        found: u64,
    },
    Io(io::Error),
}

impl fmt::Display for NpyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotNpy => {
                write!(f, "not a NumPy file: expected it to start with \\x93NUMPY and a version")
            }
            Self::Version { major, minor } => {
                write!(f, "format version {major}.{minor}: expected 1.0 or 2.0")
            }
            Self::HeaderTooLong { stated } => {
                write!(f, "header of {stated} bytes: expected at most {MAX_HEADER}")
            }
            Self::HeaderTruncated { stated, found } => {
                write!(f, "header ends after {found} bytes: expected {stated}")
            }
            Self::Syntax { at, expected } => {
                write!(f, "malformed header at its byte {at}: expected {expected}")
            }
            Self::UnknownKey(key) => {
                write!(f, "header has key '{}': expected {}", printable(key), literal::KEYS)
            }
            Self::RepeatedKey(key) => write!(f, "header has key '{key}' twice: expected it once"),
            Self::MissingKey(key) => {
                write!(f, "header lacks key '{key}': expected {}", literal::KEYS)
            }
            Self::Dtype(descr) => {
                let descr = printable(descr);
                write!(
                    f,
                    "values of type '{descr}': expected '<f4' or '<f8' (little-endian floats)"
                )
            }
            Self::ShapeOverflow(shape) => {
                write!(f, "shape {shape:?} is too large: expected less than 2^64 bytes of values")
            }
            Self::Length { expected, found } => {
                write!(f, "file of {found} bytes: expected {expected} from its shape and type")
            }
            Self::Io(error) => write!(f, "cannot read: {error}"),
        }
    }
}

impl std::error::Error for NpyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for NpyError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Returns the beginning of a text from a file, safe to show on a terminal.
fn printable(text: &str) -> String {
    text.chars().take(24).flat_map(char::escape_default).collect()
}

/// Reads the header and leaves `reader` at the first value.
///
/// `file_length` is the length of the whole file in bytes, which must be the length that the header implies.
pub fn read_header(reader: &mut impl Read, file_length: u64) -> Result<Header, NpyError> {
    let [m0, m1, m2, m3, m4, m5, major, minor] = read_fixed(reader)?;
    if [m0, m1, m2, m3, m4, m5] != *MAGIC {
        return Err(NpyError::NotNpy);
    }
    let (stated, length_field) = match (major, minor) {
        (1, 0) => (u32::from(u16::from_le_bytes(read_fixed(reader)?)), 2),
        (2, 0) => (u32::from_le_bytes(read_fixed(reader)?), 4),
        _ => return Err(NpyError::Version { major, minor }),
    };
    let stated = usize::try_from(stated).unwrap_or(usize::MAX);
    if stated > MAX_HEADER {
        return Err(NpyError::HeaderTooLong { stated });
    }
    let mut text = Vec::with_capacity(stated);
    let found = reader.by_ref().take(stated as u64).read_to_end(&mut text)?;
    if found < stated {
        return Err(NpyError::HeaderTruncated { stated, found });
    }
    let header = literal::parse(&text)?;
    let prefix = (MAGIC.len() + 2 + length_field + stated) as u64;
    let expected = header.payload().and_then(|payload| payload.checked_add(prefix));
    match expected {
        None => Err(NpyError::ShapeOverflow(header.shape)),
        Some(expected) if expected != file_length => {
            Err(NpyError::Length { expected, found: file_length })
        }
        Some(_) => Ok(header),
    }
}

/// Reads one of the fields before the header; a file that ends here is of another format.
fn read_fixed<const N: usize>(reader: &mut impl Read) -> Result<[u8; N], NpyError> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => NpyError::NotNpy,
        _ => NpyError::Io(error),
    })?;
    Ok(bytes)
}

/// Reads the values that follow a header that [`read_header`] has accepted, in file order.
///
/// # Panics
///
/// If `T` is not the type that the header names; the caller chooses `T` by the header.
pub fn read_values<T: Scalar>(reader: &mut impl Read, header: &Header) -> Result<Vec<T>, NpyError> {
    assert_eq!(header.dtype, T::DTYPE, "the caller dispatches on the type in the header");
    let mut values = vec![T::zeroed(); header.count()];
    reader.read_exact(bytemuck::cast_slice_mut(&mut values))?;
    for value in &mut values {
        *value = value.little_endian();
    }
    Ok(values)
}

/// Writes an array in C order as a version 1.0 file.
///
/// # Panics
///
/// If `shape` and the number of values disagree, or if the shape has more dimensions than a version 1.0 header can
/// contain.
pub fn write<T: Scalar>(writer: &mut impl Write, shape: &[usize], values: &[T]) -> io::Result<()> {
    assert_eq!(shape.iter().product::<usize>(), values.len(), "the shape counts the values");
    writer.write_all(&header_bytes(T::DTYPE, shape))?;
    let mut block = Vec::new();
    for chunk in values.chunks(4096) {
        block.clear();
        block.extend(chunk.iter().map(|value| value.little_endian()));
        writer.write_all(bytemuck::cast_slice(&block))?;
    }
    Ok(())
}

fn header_bytes(dtype: Dtype, shape: &[usize]) -> Vec<u8> {
    let extents: String = shape.iter().map(|extent| format!("{extent}, ")).collect();
    // A tuple of one element keeps its comma, as in Python.
    let extents =
        if shape.len() == 1 { extents.trim_end() } else { extents.trim_end_matches(", ") };
    let descr = dtype.descr();
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({extents}), }}");
    let prefix = MAGIC.len() + 4;
    let total = (prefix + text.len() + 1).next_multiple_of(ALIGNMENT);
    let length = u16::try_from(total - prefix).expect("a shape of a few extents fits the header");
    let mut bytes = Vec::with_capacity(total);
    bytes.extend(MAGIC);
    bytes.extend([1, 0]);
    bytes.extend(length.to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.resize(total - 1, b' ');
    bytes.push(b'\n');
    bytes
}
