//! Views: which bytes of a file a rank sees, in which order (MPI-4.1 section 14.3). Pure.
//!
//! The bytes of a view are its *stream*: those of the first filetype from the displacement on, then those of the next
//! one, and so on. Positions of programs count etypes of the stream.

use std::ops::ControlFlow;

use transport_lapi::Layout;

use crate::datatype::Datatype;
use crate::error::FileError;

/// How elements are represented in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Representation {
    /// As in memory: `native`.
    #[default]
    Native,
    /// As in memory, too, since all ranks of a job have the same: `internal`.
    Internal,
    /// As on all machines: `external32`.
    External32,
}

impl Representation {
    /// Returns MPI's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Internal => "internal",
            Self::External32 => "external32",
        }
    }

    /// Returns the representation with this name.
    ///
    /// # Errors
    /// [`FileError::Representation`].
    pub fn of_name(name: &str) -> Result<Self, FileError> {
        let all = [Self::Native, Self::Internal, Self::External32];
        let found = all.into_iter().find(|one| one.name() == name);
        found.ok_or_else(|| FileError::Representation { name: name.to_owned() })
    }

    /// Returns a datatype whose displacements are those of the elements in a file.
    pub(super) fn in_file(self, datatype: &Datatype) -> Result<Datatype, FileError> {
        match self {
            Self::Native | Self::Internal => Ok(datatype.clone()),
            Self::External32 => {
                datatype.in_external().map_err(|error| FileError::Datatype { error })
            }
        }
    }
}

/// A view of a file: MPI_File_set_view.
#[derive(Debug, Clone)]
pub struct View {
    displacement: u64,
    etype: Datatype,
    filetype: Datatype,
    representation: Representation,
    /// Bytes of an etype in the file.
    unit: u64,
    /// The bytes of a filetype in the file.
    tile: Layout,
    /// The distance of two filetypes.
    extent: i128,
    /// Whether the bytes of the stream have ascending places in the file.
    is_ascending: bool,
}

impl View {
    /// Makes a view that begins `displacement` bytes behind the beginning of the file, which may be written.
    ///
    /// # Errors
    /// [`FileError::View`] if the etype or the filetype has bytes before its beginning, or others that MPI forbids (MPI-4.1
    /// section 14.1.1); [`FileError::Argument`] if the filetype does not consist of whole etypes; [`FileError::Datatype`].
    pub fn new(
        displacement: u64,
        etype: &Datatype,
        filetype: &Datatype,
        representation: Representation,
        is_writable: bool,
    ) -> Result<Self, FileError> {
        let wrong = |why| Err(FileError::Argument { why });
        let (unit, file) = (representation.in_file(etype)?, representation.in_file(filetype)?);
        if unit.size() == 0 {
            return wrong("the etype has no bytes");
        }
        if file.size() % unit.size() != 0 {
            return wrong("the filetype does not consist of whole etypes");
        }
        check_order(&unit, is_writable)?;
        let has_overlaps = check_order(&file, is_writable)?;
        let (extent, (low, high)) = (file.extent() as i128, layout(&file)?.bounds());
        let is_ascending = !has_overlaps && (high - low) as i128 <= extent;
        let (etype, filetype, tile) = (etype.clone(), filetype.clone(), layout(&file)?);
        let unit = unit.size() as u64;
        Ok(Self { displacement, etype, filetype, representation, unit, tile, extent, is_ascending })
    }

    /// Returns where it begins, in bytes from the beginning of the file.
    pub fn displacement(&self) -> u64 {
        self.displacement
    }

    /// Returns the etype, in which positions count.
    pub fn etype(&self) -> &Datatype {
        &self.etype
    }

    /// Returns the filetype.
    pub fn filetype(&self) -> &Datatype {
        &self.filetype
    }

    /// Returns the representation of elements.
    pub fn representation(&self) -> Representation {
        self.representation
    }

    /// Returns the bytes of an etype in the file.
    pub(super) fn unit(&self) -> u64 {
        self.unit
    }

    /// Returns whether the bytes of the stream have ascending places in the file.
    pub(super) fn is_ascending(&self) -> bool {
        self.is_ascending
    }

    /// Calls `visit` with place in the file and length of each block of `len` bytes of the stream from `from` on, until it
    /// breaks. Blocks that touch are one.
    ///
    /// # Errors
    /// [`FileError::Argument`] if there are no such places.
    pub(super) fn spans(
        &self,
        from: u64,
        len: u64,
        mut visit: impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<(), FileError> {
        let Some(end) = self.check(from, len)? else { return Ok(()) };
        let is_dense = |(_, size): &(_, usize)| *size as i128 == self.extent;
        if let Some((at, _)) = self.tile.span().filter(is_dense) {
            let _ = visit(self.displacement + at as u64 + from, len);
            return Ok(());
        }
        let (size, mut joined) = (self.tile.size() as u64, (0, 0));
        for tile in from / size..end.div_ceil(size) {
            let (begin, until) = (from.max(tile * size), end.min((tile + 1).saturating_mul(size)));
            let base = self.base(tile);
            let part = ((begin - tile * size) as usize, (until - begin) as usize);
            let walked = self.tile.each_span(part.0, part.1, &mut |at, len| {
                let (at, len) = ((base + at as i128) as u64, len as u64);
                if joined.0 + joined.1 == at && joined.1 > 0 {
                    joined.1 += len;
                    return ControlFlow::Continue(());
                }
                let (at_last, len_last) = std::mem::replace(&mut joined, (at, len));
                if len_last > 0 { visit(at_last, len_last) } else { ControlFlow::Continue(()) }
            });
            if walked.is_break() {
                return Ok(());
            }
        }
        let _ = visit(joined.0, joined.1);
        Ok(())
    }

    /// Returns where a filetype begins in the file.
    fn base(&self, tile: u64) -> i128 {
        i128::from(self.displacement) + i128::from(tile) * self.extent
    }

    /// Returns where `len` bytes of the stream from `from` on end in the stream, if there are some and all have a place.
    fn check(&self, from: u64, len: u64) -> Result<Option<u64>, FileError> {
        let size = self.tile.size() as u64;
        if len == 0 {
            return Ok(None);
        }
        let far = FileError::Argument { why: "the position lies behind the longest possible file" };
        let end = from.checked_add(len).filter(|_| size > 0).ok_or_else(|| {
            let why = "the filetype has no bytes, so nothing can be accessed by this view";
            if size == 0 { FileError::Argument { why } } else { far.clone() }
        })?;
        let (low, high) = self.tile.bounds();
        let [first, last] = [from / size, (end - 1) / size].map(|tile| self.base(tile));
        let is_inside =
            |base: i128| base + low as i128 >= 0 && base + high as i128 <= i64::MAX.into();
        if is_inside(first) && is_inside(last) { Ok(Some(end)) } else { Err(far) }
    }

    /// Returns the places in the file from the first to the last byte of a part of the stream that is not empty, and about
    /// how many blocks lie there. In views that are not ascending, others may lie outside.
    pub(super) fn range(&self, from: u64, len: u64) -> Result<(u64, u64, u64), FileError> {
        let (first, last) = (self.place(from)?, self.place(from + len - 1)?);
        let blocks = self.tile.blocks() as u128 * u128::from(len) / self.tile.size() as u128;
        let is_one = last.checked_sub(first) == Some(len - 1);
        Ok((first, last + 1, if is_one { 1 } else { (blocks as u64).max(1) }))
    }

    /// Returns the place in the file of a byte of the stream.
    ///
    /// # Errors
    /// [`FileError::Argument`] if it has none.
    pub(super) fn place(&self, from: u64) -> Result<u64, FileError> {
        let mut place = self.displacement;
        self.spans(from, 1, |at, _| {
            place = at;
            ControlFlow::Break(())
        })?;
        Ok(place)
    }

    /// Returns how many bytes of the stream lie before a place in the file, if the view is ascending.
    pub(super) fn below(&self, place: u64) -> u64 {
        let (size, (low, high)) = (self.tile.size() as u64, self.tile.bounds());
        let inside = i128::from(place) - i128::from(self.displacement);
        if size == 0 || inside <= low as i128 || self.extent <= 0 {
            return 0;
        }
        let whole = ((inside - high as i128).div_euclid(self.extent) + 1).max(0) as u64;
        let rest = i128::from(place) - self.base(whole);
        let mut below = 0;
        let _ = self.tile.each_span(0, size as usize, &mut |at, len| {
            let part = (rest - at as i128).clamp(0, len as i128) as u64;
            below += part;
            if part == len as u64 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        whole.saturating_mul(size).saturating_add(below)
    }
}

fn layout(datatype: &Datatype) -> Result<Layout, FileError> {
    datatype.layout(1).map_err(|error| FileError::Datatype { error })
}

/// Checks the order of the bytes of an etype or a filetype. Returns whether blocks overlap, which is legal where nothing is
/// written.
fn check_order(datatype: &Datatype, is_writable: bool) -> Result<bool, FileError> {
    let (layout, mut has_overlaps, mut wrong) = (layout(datatype)?, false, None);
    let (mut begin, mut end) = (0, 0);
    let _ = layout.each_span(0, layout.size(), &mut |at, len| {
        has_overlaps |= at < end;
        wrong = match at {
            ..0 => Some("a datatype of a view has bytes before its beginning"),
            _ if at < begin => Some("the displacements in a datatype of a view descend"),
            _ if at < end && is_writable => {
                Some("a datatype of a view of a file that is written has overlaps")
            }
            _ => None,
        };
        (begin, end) = (at, end.max(at + len as isize));
        if wrong.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    wrong.map_or(Ok(has_overlaps), |why| Err(FileError::View { why }))
}

#[cfg(test)]
mod tests;
