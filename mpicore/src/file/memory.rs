//! The elements of a call in memory, as the parts of a stream that are moved to or from a file.
//!
//! - FM1: the caller's memory stays until the call has ended, as promised when its region was made (G1, G2 of the
//!   transport). What a call keeps itself lives as long as it does, and does not move.

#![expect(unsafe_code, reason = "names parts of borrowed memory")]

use mpjdev::{RecvRegion, SendRegion, Sink, Source};
use transport_lapi::ForeignBytes;

use super::view::Representation;
use crate::datatype::Datatype;
use crate::error::Error;

/// The most bytes of elements that are not contiguous in memory that are moved at a time.
const PIECE: usize = 4 << 20;

/// What is written.
pub(super) struct Outgoing {
    source: Source,
    /// Bytes that were packed or converted.
    kept: Vec<u8>,
}

/// Where what is read goes.
pub(super) struct Incoming {
    sink: Sink,
    /// The elements as they are in the file, if they must be converted.
    external: Option<Vec<u8>>,
    /// Bytes that are not yet in their places.
    kept: Vec<u8>,
}

impl Outgoing {
    /// Takes elements to be written in a representation.
    ///
    /// # Errors
    /// [`Error::Datatype`] if a value does not fit into the representation.
    pub fn new(
        source: Source,
        (datatype, count): (&Datatype, i64),
        representation: Representation,
    ) -> Result<Self, Error> {
        let kept = match representation {
            Representation::Native | Representation::Internal => Vec::new(),
            Representation::External32 => {
                let packed = source.piece(0, source.len()).to_vec();
                let mut external = vec![0; datatype.pack_external_size(count)?];
                datatype.packed_to_external(&packed, count, &mut external, &mut 0)?;
                return Ok(Self { source: external.into(), kept: Vec::new() });
            }
        };
        Ok(Self { source, kept })
    }

    /// Returns nothing to be written.
    pub fn none() -> Self {
        Self { source: Source::EMPTY, kept: Vec::new() }
    }

    /// Calls `write` with the bytes of a part of the stream, in one piece or several, each with its offset in the part.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn each<E>(
        &mut self,
        offset: u64,
        len: u64,
        mut write: impl FnMut(SendRegion, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let (offset, len) = (offset as usize, len as usize);
        if let Some(region) = self.source.span() {
            return write(region.part(offset, len), 0);
        }
        for at in (0..len).step_by(PIECE) {
            self.kept = self.source.piece(offset + at, PIECE.min(len - at)).to_vec();
            // SAFETY: FM1, G1: the bytes are kept until the next piece.
            write(unsafe { SendRegion::new(self.kept.as_ptr(), self.kept.len()) }, at as u64)?;
        }
        Ok(())
    }

    /// Copies a part of the stream.
    pub fn copy(&self, offset: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.source.piece(offset as usize, into.len()).to_vec());
    }

    /// Returns a part of the stream as the source of an operation that may last longer than the next call.
    pub fn source(&self, offset: u64, len: u64) -> Source {
        match self.source.span() {
            Some(region) => Source::Span(region.part(offset as usize, len as usize)),
            None => Source::from(self.source.piece(offset as usize, len as usize).to_vec()),
        }
    }
}

impl Incoming {
    /// Takes the place for elements that are read in a representation.
    ///
    /// # Errors
    /// [`Error::Datatype`].
    pub fn new(
        sink: Sink,
        (datatype, count): (&Datatype, i64),
        representation: Representation,
    ) -> Result<Self, Error> {
        let external = match representation {
            Representation::Native | Representation::Internal => None,
            Representation::External32 => Some(vec![0; datatype.pack_external_size(count)?]),
        };
        Ok(Self { sink, external, kept: Vec::new() })
    }

    /// Returns a place for nothing.
    pub fn none() -> Self {
        Self { sink: Sink::EMPTY, external: None, kept: Vec::new() }
    }

    /// Returns the memory of a part of the stream, if it is contiguous.
    pub fn region(&mut self, offset: u64, len: u64) -> Option<RecvRegion> {
        let at = match (&mut self.external, &self.sink) {
            (Some(external), _) => external.as_mut_ptr(),
            (None, Sink::Span(region)) => region.as_mut_ptr(),
            (None, Sink::Layout { .. }) => return None,
        };
        // SAFETY: FM1, G2: the part lies inside of the elements, and nobody else uses it meanwhile.
        Some(unsafe { RecvRegion::new(at.wrapping_add(offset as usize), len as usize) })
    }

    /// Has `read` fill a part of the stream, in one piece or several, each with its offset in the part, until it finds less
    /// than a piece. Returns how much it found.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn each<E>(
        &mut self,
        offset: u64,
        len: u64,
        mut read: impl FnMut(&RecvRegion, u64) -> Result<usize, E>,
    ) -> Result<u64, E> {
        if let Some(region) = self.region(offset, len) {
            return Ok(read(&region, 0)? as u64);
        }
        let mut done = 0;
        while done < len {
            self.kept.resize((len - done).min(PIECE as u64) as usize, 0);
            // SAFETY: FM1, G2: the bytes are kept, and nobody else uses them, until they are stored.
            let region = unsafe { RecvRegion::new(self.kept.as_mut_ptr(), self.kept.len()) };
            let found = read(&region, done)?;
            self.sink
                .store((offset + done) as usize, ForeignBytes::from_slice(&self.kept[..found]));
            done += found as u64;
            if found < self.kept.len() {
                break;
            }
        }
        Ok(done)
    }

    /// Stores bytes in a part of the stream.
    pub fn store(&mut self, offset: u64, from: &[u8]) {
        match &mut self.external {
            Some(external) => external[offset as usize..][..from.len()].copy_from_slice(from),
            None => drop(self.sink.store(offset as usize, ForeignBytes::from_slice(from))),
        }
    }

    /// Converts the elements that were read as a whole, of which there are so many bytes. Returns their bytes in memory.
    ///
    /// # Errors
    /// [`Error::Datatype`].
    pub fn finish(mut self, (datatype, count): (&Datatype, i64), bytes: u64) -> Result<u64, Error> {
        let Some(external) = self.external.take() else { return Ok(bytes) };
        let mut packed = vec![0; datatype.pack_size(count)?];
        datatype.external_to_packed(&external, &mut 0, &mut packed, count)?;
        let found = datatype.packed_part(count, bytes)?;
        self.sink.store(0, ForeignBytes::from_slice(&packed[..found]));
        Ok(found as u64)
    }
}
