//! Packing and unpacking of slices: MPI_Pack, MPI_Unpack and MPI_Pack_size (MPI-4.1 section 5.2).
//!
//! Messages are not packed here: the transport packs them piece by piece, by their layout. Packed bytes are the bytes
//! of the elements in the order of the type map, without a header.

use super::{Datatype, DatatypeError, not_negative};

impl Datatype {
    /// Returns the exact number of bytes of `count` elements in a packed buffer: MPI_Pack_size.
    ///
    /// # Errors
    /// [`DatatypeError::Negative`], [`DatatypeError::Layout`] if memory cannot have that many bytes.
    pub fn pack_size(&self, count: i64) -> Result<usize, DatatypeError> {
        Ok(self.layout(count)?.size())
    }

    /// Copies `count` elements to `position` of a packed buffer, and advances the position: MPI_Pack (MPI-4.1 section
    /// 5.2).
    ///
    /// The elements lie in `memory`. The address that MPI calls `inbuf` is `origin` bytes from its beginning, and may
    /// lie outside the memory, as long as no byte of the elements does.
    ///
    /// ```
    /// use mpicore::datatype::{Basic, Datatype};
    /// let every_second = Datatype::vector(3, 1, 2, &Datatype::predefined(Basic::Char))?;
    /// let (mut packed, mut position) = ([0; 8], 2);
    /// every_second.pack(b"a-b-c", 0, 1, &mut packed, &mut position)?;
    /// assert_eq!((&packed, position), (b"\0\0abc\0\0\0", 5));
    ///
    /// let (mut memory, mut position) = (*b".....", 2);
    /// every_second.unpack(&packed, &mut position, &mut memory, 0, 1)?;
    /// assert_eq!((&memory, position), (b"a.b.c", 5));
    /// # Ok::<(), mpicore::datatype::DatatypeError>(())
    /// ```
    ///
    /// # Errors
    /// [`DatatypeError::Negative`]; [`DatatypeError::Position`] if the position lies beyond the buffer's end;
    /// [`DatatypeError::NoRoom`] if the elements do not fit; [`DatatypeError::Layout`] if they do not lie inside the
    /// memory. Nothing has changed then.
    pub fn pack(
        &self,
        memory: &[u8],
        origin: isize,
        count: i64,
        into: &mut [u8],
        position: &mut usize,
    ) -> Result<(), DatatypeError> {
        let layout = self.layout(count)?;
        let end = end(*position, layout.size(), into.len())?;
        layout.pack(memory, origin, 0, &mut into[*position..end])?;
        *position = end;
        Ok(())
    }

    /// Copies `count` elements from `position` of a packed buffer to their places in `memory`, and advances the
    /// position: MPI_Unpack (MPI-4.1 section 5.2). Bytes between the elements keep their values. `memory` and
    /// `origin` are as in [`pack`](Self::pack).
    ///
    /// # Errors
    /// Those of [`pack`](Self::pack), and [`DatatypeError::Layout`] if a byte would be written twice. Nothing
    /// has changed then.
    pub fn unpack(
        &self,
        from: &[u8],
        position: &mut usize,
        memory: &mut [u8],
        origin: isize,
        count: i64,
    ) -> Result<(), DatatypeError> {
        let layout = self.layout(count)?;
        let end = end(*position, layout.size(), from.len())?;
        layout.unpack(&from[*position..end], 0, memory, origin)?;
        *position = end;
        Ok(())
    }

    /// Returns the signature of `count` elements.
    pub(super) fn signature_of(&self, count: i64) -> Result<super::Signature, DatatypeError> {
        Ok(self.signature().repeat(not_negative("count", count)? as u64))
    }
}

/// Returns where `needed` bytes from `position` on end, in a packed buffer of `len` bytes.
pub(super) fn end(position: usize, needed: usize, len: usize) -> Result<usize, DatatypeError> {
    let left = len.checked_sub(position).ok_or(DatatypeError::Position { position, len })?;
    if needed > left {
        return Err(DatatypeError::NoRoom { position, left, needed });
    }
    Ok(position + needed)
}
