//! The file pointers (MPI-4.1 section 14.4): that of each rank, and the one that all share.
//!
//! - FP1: the shared pointer is a word of rank 0 in a window, in etypes. Each change of it by one rank is one update of
//!   that word. So accesses by it get parts of the file that do not overlap.

use std::sync::{Arc, Mutex, PoisonError};

use mpjdev::{Call, Sink, Source};
use transport_lapi::{ForeignBytes, Unpack};

use super::{File, Position};
use crate::communicator::Communicator;
use crate::datatype::Datatype;
use crate::error::{Error, FileError};
use crate::op::{ElementKind, Predefined};
use crate::window::{Target, Window};

/// From where a seek counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whence {
    /// From the beginning of the view: MPI_SEEK_SET.
    Set,
    /// From the pointer: MPI_SEEK_CUR.
    Current,
    /// From the end of the file: MPI_SEEK_END.
    End,
}

/// The shared pointer (FP1).
pub(super) struct Shared {
    window: Window,
    word: Datatype,
}

/// The word that a fetch returns. It outlives a fetch that has failed.
#[derive(Clone, Default)]
struct Fetched(Arc<Mutex<[u8; 8]>>);

impl Unpack for Fetched {
    fn size(&self) -> usize {
        8
    }

    fn unpack(&mut self, offset: usize, from: ForeignBytes<'_>) {
        from.copy_to(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)[offset..]);
    }
}

impl Shared {
    /// Makes the pointer, which is 0. Collective.
    pub fn new(communicator: &Communicator) -> Result<Self, Error> {
        let size = if communicator.rank() == 0 { 8 } else { 0 };
        let window = Window::allocate(communicator, size, 1)?;
        window.lock_all(false)?;
        Ok(Self { window, word: Datatype::predefined(ElementKind::I64) })
    }

    /// Changes the pointer, and returns what it was.
    fn update(&self, op: Predefined, by: i64) -> Result<i64, Error> {
        let (fetched, by) = (Fetched::default(), Source::from(by.to_ne_bytes().to_vec()));
        let target = Target { rank: 0, displacement: 0, count: 1, datatype: &self.word };
        self.window.get_accumulate(by, Sink::layout(fetched.clone()), op, target)?;
        self.window.flush(Some(0))?;
        Ok(i64::from_ne_bytes(*fetched.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Returns the pointer.
    pub fn get(&self) -> Result<i64, Error> {
        self.update(Predefined::NoOp, 0)
    }

    /// Sets the pointer.
    pub fn set(&self, to: i64) -> Result<(), Error> {
        self.update(Predefined::Replace, to).map(drop)
    }

    /// Moves the pointer forward, and returns where it was. A pointer that has no such place goes back.
    pub fn advance(&self, by: i64) -> Result<i64, Error> {
        let at = self.update(Predefined::Sum, by)?;
        // It is negative while others, who have gone beyond the end, have not gone back yet.
        if at < 0 || at.checked_add(by).is_none() {
            self.update(Predefined::Sum, by.wrapping_neg())?;
            let why = "the access ends behind the longest possible file";
            return Err(FileError::Argument { why }.into());
        }
        Ok(at)
    }

    /// Ends the window. Collective.
    pub fn free(&self) -> Result<(), Error> {
        self.window.unlock_all()?;
        self.window.clone().free()
    }

    /// Ends the window without waiting for other ranks.
    pub fn free_later(&self) {
        self.window.clone().free_later();
    }
}

impl File {
    /// Returns where an access of so many etypes begins, and moves the pointer behind it.
    pub(super) fn reserve(&self, position: Position, etypes: i64) -> Result<i64, Error> {
        match position {
            Position::At(at) => Ok(at),
            Position::Individual => {
                let mut pointer = self.position();
                let at = *pointer;
                *pointer = at.saturating_add(etypes);
                Ok(at)
            }
            Position::Shared => self.shared.advance(etypes),
        }
    }

    /// Returns where this rank's part of an ordered access begins, of which it has so many etypes. Collective.
    pub(super) fn reserve_in_order(&self, call: Call, etypes: i64) -> Result<i64, Error> {
        let (rank, core) = (self.communicator.rank(), &self.communicator);
        let parts = core.gather_words(call, vec![etypes as u64])?;
        let sum =
            |parts: &[u64]| parts.iter().fold(0, |sum: i64, part| sum.saturating_add(*part as i64));
        let first = if rank == 0 { self.shared.advance(sum(&parts)) } else { Ok(0) };
        let first = self.agree(call, first)?;
        let first = core.bcast_words(call, vec![first as u64], 0)?;
        Ok((first[0] as i64).saturating_add(sum(&parts[..rank as usize])))
    }

    /// Moves this rank's pointer: MPI_File_seek.
    ///
    /// # Errors
    /// [`FileError::Argument`] if the pointer would be negative; [`FileError::Sequential`].
    pub fn seek(&self, offset: i64, whence: Whence) -> Result<(), Error> {
        self.check_not_sequential()?;
        let to = self.target(offset, whence, || Ok(*self.position()))?;
        *self.position() = to;
        Ok(())
    }

    /// Returns this rank's pointer, in etypes of the view: MPI_File_get_position.
    ///
    /// # Errors
    /// [`FileError::Sequential`].
    pub fn get_position(&self) -> Result<i64, Error> {
        self.check_not_sequential()?;
        Ok(*self.position())
    }

    /// Moves the shared pointer: MPI_File_seek_shared. Collective, with equal arguments.
    ///
    /// # Errors
    /// As [`File::seek`]; [`FileError::Different`].
    pub fn seek_shared(&self, offset: i64, whence: Whence) -> Result<(), Error> {
        let call = Call::FileSeekShared;
        self.check_not_sequential()?;
        self.same(call, "the offset or the kind of seek", vec![offset as u64, whence as u64])?;
        // The pointer stays until all ranks know where it was.
        let to = self.target(offset, whence, || self.shared.get());
        let to = self.agree(call, to)?;
        let set = if self.communicator.rank() == 0 { self.shared.set(to) } else { Ok(()) };
        self.agree(call, set)
    }

    /// Returns the shared pointer, in etypes of the view: MPI_File_get_position_shared.
    ///
    /// # Errors
    /// [`FileError::Sequential`]; the loss of rank 0; what made the device unusable.
    pub fn get_position_shared(&self) -> Result<i64, Error> {
        self.check_not_sequential()?;
        self.shared.get()
    }

    /// Returns where a position of the view is in the file, in bytes: MPI_File_get_byte_offset.
    ///
    /// # Errors
    /// [`FileError::Argument`] if there is no such place; [`FileError::Sequential`].
    pub fn byte_offset(&self, offset: i64) -> Result<u64, Error> {
        self.check_not_sequential()?;
        self.place(offset)
    }

    /// Returns where a position of the view is in the file.
    pub(super) fn place(&self, offset: i64) -> Result<u64, Error> {
        let view = self.view();
        let from = u64::try_from(offset).ok().and_then(|offset| offset.checked_mul(view.unit()));
        let why = "the position is negative, or lies behind the longest possible file";
        Ok(view.place(from.ok_or(FileError::Argument { why })?)?)
    }

    fn target(
        &self,
        offset: i64,
        whence: Whence,
        current: impl FnOnce() -> Result<i64, Error>,
    ) -> Result<i64, Error> {
        let base = match whence {
            Whence::Set => 0,
            Whence::Current => current()?,
            Whence::End => {
                let view = self.view();
                let end = view.below(self.disk.len()?).div_ceil(view.unit());
                i64::try_from(end).unwrap_or(i64::MAX)
            }
        };
        let to = base.checked_add(offset).filter(|to| *to >= 0);
        let why = "a pointer cannot be negative, nor behind the longest possible file";
        Ok(to.ok_or(FileError::Argument { why })?)
    }

    fn check_not_sequential(&self) -> Result<(), FileError> {
        let why =
            "there are only calls with the shared pointer, and none that move or read pointers";
        match self.amode.has(super::Amode::SEQUENTIAL) {
            true => Err(FileError::Sequential { why }),
            false => Ok(()),
        }
    }
}
