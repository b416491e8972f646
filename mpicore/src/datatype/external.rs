//! Packing in the representation `external32`, which is the same on all machines: MPI_Pack_external and its
//! companions (MPI-4.1 sections 5.3 and 14.5.2).
//!
//! Numbers are big-endian, integers in two's complement, floating-point numbers in the formats of IEEE 754; `long
//! double` has 128 bits. Conversion follows the signature, run by run, with a buffer of a few thousand bytes.

use transport_lapi::{Layout, LayoutError};

use super::pack::end;
use super::{Basic, Datatype, DatatypeError};
use crate::op::ElementKind;

/// Number of bytes in memory that are converted at a time.
const CHUNK: usize = 4096;
/// The exponent of infinities and of values that are not numbers, in both formats of `long double`.
const SPECIAL: u16 = 0x7fff;
/// How many more bits of fraction the format of 128 bits has than that of the x87 unit.
const EXTRA_BITS: u32 = 49;

impl Datatype {
    /// Returns the exact number of bytes of `count` elements in `external32`: MPI_Pack_external_size.
    ///
    /// # Errors
    /// [`DatatypeError::Negative`], [`DatatypeError::Layout`] if memory cannot have that many bytes.
    pub fn pack_external_size(&self, count: i64) -> Result<usize, DatatypeError> {
        let size = self.signature_of(count)?.sum(&|basic| basic.external_size() as u64);
        let size = size.and_then(|size| isize::try_from(size).ok());
        Ok(size.ok_or(LayoutError::TooLarge)?.unsigned_abs())
    }

    /// Converts `count` elements to `external32` at `position` of a packed buffer, and advances the position:
    /// MPI_Pack_external (MPI-4.1 section 5.3). Arguments are as in [`pack`](Self::pack).
    ///
    /// ```
    /// use mpicore::datatype::Datatype;
    /// use mpicore::op::ElementKind;
    /// let int = Datatype::predefined(ElementKind::I32);
    /// let (mut packed, mut position) = ([0; 4], 0);
    /// int.pack_external(&258_i32.to_ne_bytes(), 0, 1, &mut packed, &mut position)?;
    /// assert_eq!((packed, position), ([0, 0, 1, 2], 4));
    /// # Ok::<(), mpicore::datatype::DatatypeError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`pack`](Self::pack); nothing has changed then. [`DatatypeError::Conversion`] if a `long` or a wide
    /// character does not fit; the elements before it have been converted, and the position has not moved.
    pub fn pack_external(
        &self,
        memory: &[u8],
        origin: isize,
        count: i64,
        into: &mut [u8],
        position: &mut usize,
    ) -> Result<(), DatatypeError> {
        self.write_external(&self.layout(count)?, memory, origin, count, into, position)
    }

    /// Like [`pack_external`](Self::pack_external), for elements that [`pack`](Self::pack) has packed: their bytes in
    /// the order of the type map.
    ///
    /// # Errors
    /// As there.
    pub fn packed_to_external(
        &self,
        packed: &[u8],
        count: i64,
        into: &mut [u8],
        position: &mut usize,
    ) -> Result<(), DatatypeError> {
        let layout = Layout::contiguous(self.pack_size(count)?)?;
        self.write_external(&layout, packed, 0, count, into, position)
    }

    fn write_external(
        &self,
        layout: &Layout,
        memory: &[u8],
        origin: isize,
        count: i64,
        into: &mut [u8],
        position: &mut usize,
    ) -> Result<(), DatatypeError> {
        let end = end(*position, self.pack_external_size(count)?, into.len())?;
        let (mut offset, mut at, mut buffer) = (0, *position, [0; CHUNK]);
        self.signature_of(count)?.each_run(&mut |basic, elements| {
            let (size, external) = (basic.size(), basic.external_size());
            for elements in chunks(elements, size) {
                let native = &mut buffer[..elements * size];
                offset += layout.pack(memory, origin, offset, native)?;
                let places = into[at..].chunks_exact_mut(external);
                for (value, place) in native.chunks_exact(size).zip(places) {
                    to_external(basic, value, place)
                        .ok_or(DatatypeError::Conversion { basic, bytes: external })?;
                }
                at += elements * external;
            }
            Ok::<_, DatatypeError>(())
        })?;
        *position = end;
        Ok(())
    }

    /// Converts `count` elements from `external32` at `position` of a packed buffer to their places in `memory`, and
    /// advances the position: MPI_Unpack_external (MPI-4.1 section 5.3). Arguments are as in [`unpack`](Self::unpack).
    /// A `long double` is rounded to the nearest number of the x87 unit.
    ///
    /// # Errors
    /// Those of [`unpack`](Self::unpack). Nothing has changed then.
    pub fn unpack_external(
        &self,
        from: &[u8],
        position: &mut usize,
        memory: &mut [u8],
        origin: isize,
        count: i64,
    ) -> Result<(), DatatypeError> {
        self.read_external(&self.layout(count)?, from, position, memory, origin, count)
    }

    /// Like [`unpack_external`](Self::unpack_external), to elements in packed form, which [`unpack`](Self::unpack)
    /// puts into their places.
    ///
    /// # Errors
    /// As there.
    pub fn external_to_packed(
        &self,
        from: &[u8],
        position: &mut usize,
        packed: &mut [u8],
        count: i64,
    ) -> Result<(), DatatypeError> {
        let layout = Layout::contiguous(self.pack_size(count)?)?;
        self.read_external(&layout, from, position, packed, 0, count)
    }

    /// Returns the bytes that those basic elements have in memory which lie as a whole in the first `bytes` bytes of
    /// `count` elements in `external32`.
    pub(crate) fn packed_part(&self, count: i64, bytes: u64) -> Result<usize, DatatypeError> {
        let (mut left, mut found) = (bytes, 0);
        let _ = self.signature_of(count)?.each_run(&mut |basic, elements| {
            let size = basic.external_size() as u64;
            let whole = elements.min(left / size);
            (left, found) = (left - whole * size, found + whole as usize * basic.size());
            if whole == elements { Ok(()) } else { Err(()) }
        });
        Ok(found)
    }

    fn read_external(
        &self,
        layout: &Layout,
        from: &[u8],
        position: &mut usize,
        memory: &mut [u8],
        origin: isize,
        count: i64,
    ) -> Result<(), DatatypeError> {
        let end = end(*position, self.pack_external_size(count)?, from.len())?;
        let (mut offset, mut at, mut buffer) = (0, *position, [0; CHUNK]);
        self.signature_of(count)?.each_run(&mut |basic, elements| {
            let (size, external) = (basic.size(), basic.external_size());
            for elements in chunks(elements, size) {
                let native = &mut buffer[..elements * size];
                let values = from[at..].chunks_exact(external);
                for (place, value) in native.chunks_exact_mut(size).zip(values) {
                    from_external(basic, value, place);
                }
                offset += layout.unpack(native, offset, memory, origin)?;
                at += elements * external;
            }
            Ok::<_, DatatypeError>(())
        })?;
        *position = end;
        Ok(())
    }
}

/// Divides a run of elements of `size` bytes into parts that fit into the buffer.
fn chunks(elements: u64, size: usize) -> impl Iterator<Item = usize> {
    let most = (CHUNK / size) as u64;
    (0..elements.div_ceil(most)).map(move |chunk| (elements - chunk * most).min(most) as usize)
}

/// Converts one value; returns `None` if it does not fit.
fn to_external(basic: Basic, native: &[u8], external: &mut [u8]) -> Option<()> {
    match basic {
        Basic::Long => {
            let value = i32::try_from(i64::from_ne_bytes(array(native))).ok()?;
            external.copy_from_slice(&value.to_be_bytes());
        }
        Basic::UnsignedLong => {
            let value = u32::try_from(u64::from_ne_bytes(array(native))).ok()?;
            external.copy_from_slice(&value.to_be_bytes());
        }
        Basic::WideChar => {
            let value = u16::try_from(u32::from_ne_bytes(array(native))).ok()?;
            external.copy_from_slice(&value.to_be_bytes());
        }
        _ => each_part(basic, native, external, |native, external| {
            external.copy_from_slice(&quad(array(native)).to_be_bytes());
        }),
    }
    Some(())
}

/// Converts one value back.
fn from_external(basic: Basic, external: &[u8], native: &mut [u8]) {
    match basic {
        Basic::Long => {
            let value = i64::from(i32::from_be_bytes(array(external)));
            native.copy_from_slice(&value.to_ne_bytes());
        }
        Basic::UnsignedLong => {
            let value = u64::from(u32::from_be_bytes(array(external)));
            native.copy_from_slice(&value.to_ne_bytes());
        }
        Basic::WideChar => {
            let value = u32::from(u16::from_be_bytes(array(external)));
            native.copy_from_slice(&value.to_ne_bytes());
        }
        _ => each_part(basic, external, native, |external, native| {
            native.copy_from_slice(&extended(u128::from_be_bytes(array(external))));
        }),
    }
}

/// Converts each number of a value that has the same length in both representations: `long double` by `convert`, others
/// by reversing their bytes.
fn each_part(basic: Basic, from: &[u8], to: &mut [u8], convert: impl Fn(&[u8], &mut [u8])) {
    let is_long_double =
        matches!(basic.kind(), Some(ElementKind::LongDouble | ElementKind::ComplexLongDouble));
    let size = basic.size() / basic.parts();
    for (from, to) in from.chunks_exact(size).zip(to.chunks_exact_mut(size)) {
        if is_long_double {
            convert(from, to);
        } else {
            to.copy_from_slice(from);
            if cfg!(target_endian = "little") {
                to.reverse();
            }
        }
    }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("a value has as many bytes as its type says")
}

/// Converts a number of the x87 unit to IEEE's format of 128 bits, without loss. Bit patterns that the unit itself
/// refuses become values that are not numbers.
fn quad(native: [u8; 16]) -> u128 {
    let mantissa = u64::from_le_bytes(array(&native[..8]));
    let top = u16::from_le_bytes(array(&native[8..10]));
    let (sign, exponent) = (top >> 15, top & SPECIAL);
    let (has_integer_bit, fraction) = (mantissa >> 63 == 1, mantissa & (u64::MAX >> 1));
    let (exponent, fraction) = match exponent {
        0 => (u16::from(has_integer_bit), fraction),
        _ if has_integer_bit => (exponent, fraction),
        _ => (SPECIAL, 1 << 62),
    };
    u128::from(sign << 15 | exponent) << 112 | u128::from(fraction) << EXTRA_BITS
}

/// Converts a number in IEEE's format of 128 bits to the nearest one of the x87 unit; of two, to the even one. A value
/// that is not a number stays one.
fn extended(quad: u128) -> [u8; 16] {
    let top = (quad >> 112) as u16;
    let (sign, exponent) = (top >> 15, top & SPECIAL);
    let fraction = quad << 16 >> 16;
    let (kept, lost) = (fraction >> EXTRA_BITS, fraction & ((1 << EXTRA_BITS) - 1));
    let half = 1 << (EXTRA_BITS - 1);
    let whole = u128::from(exponent) << 63 | kept;
    let rounded = match exponent {
        SPECIAL if kept == 0 && lost > 0 => whole | 1 << 62,
        SPECIAL => whole,
        // A carry out of the fraction correctly increases the exponent.
        _ => whole + u128::from(lost > half || (lost == half && kept & 1 == 1)),
    };
    let (exponent, fraction) = ((rounded >> 63) as u16, rounded as u64 & (u64::MAX >> 1));
    let mantissa = u64::from(exponent > 0) << 63 | fraction;
    let mut native = [0; 16];
    native[..8].copy_from_slice(&mantissa.to_le_bytes());
    native[8..10].copy_from_slice(&(sign << 15 | exponent).to_le_bytes());
    native
}

#[cfg(test)]
mod tests;
