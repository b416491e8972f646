//! Accesses of one rank, which waits for no other.
//!
//! Each block of the view is one call of the system. Where short blocks lie close together, a read fetches a long part of
//! the file with all of them: *sieving*. A write does that only if a hint allows it (FI3), with the lock of the file.

use std::ops::ControlFlow;

use super::disk::{Disk, Locked};
use super::hints::Hints;
use super::memory::{Incoming, Outgoing};
use super::{File, Stretch};
use crate::error::{Error, FileError};

/// Blocks of at least so many bytes, on average, are accessed one by one.
pub(super) const LONG: u64 = 16 << 10;

/// How many bytes may be moved for each one that is needed.
pub(super) const WASTE: u64 = 16;

/// A part of the file in memory.
struct Sieve<'a> {
    disk: &'a Disk,
    /// Where it begins in the file.
    at: u64,
    bytes: Vec<u8>,
    /// How many bytes it may have.
    size: u64,
}

impl Stretch {
    /// Returns whether its blocks are short and lie close together.
    fn is_scattered(&self) -> Result<bool, FileError> {
        if !self.view.is_ascending() {
            return Ok(false);
        }
        let (first, end, blocks) = self.view.range(self.from, self.len)?;
        let is_short = blocks > 1 && self.len / blocks < LONG;
        Ok(is_short && (end - first) / self.len < WASTE)
    }

    /// Calls `visit` with place, offset in this stretch and length of each block, until it fails or breaks.
    fn each(
        &self,
        mut visit: impl FnMut(u64, u64, u64) -> Result<ControlFlow<()>, FileError>,
    ) -> Result<(), FileError> {
        let (mut done, mut failed) = (0, Ok(()));
        self.view.spans(self.from, self.len, |at, len| {
            let offset = done;
            done += len;
            visit(at, offset, len).unwrap_or_else(|error| {
                failed = Err(error);
                ControlFlow::Break(())
            })
        })?;
        failed
    }
}

impl Sieve<'_> {
    /// Reads the part that begins at a place, and ends at `end` at the latest.
    fn read(&mut self, at: u64, end: u64) -> Result<(), FileError> {
        let len = self.size.min(end - at) as usize;
        self.bytes.resize(len, 0);
        let read = self.disk.read_bytes(&mut self.bytes, at)?;
        self.bytes[read..].fill(0);
        self.at = at;
        Ok(())
    }
}

impl File {
    /// Writes a stretch.
    pub(super) fn write_alone(&self, stretch: &Stretch, from: &mut Outgoing) -> Result<(), Error> {
        if stretch.len == 0 {
            return Ok(());
        }
        let hints = self.hints();
        let is_sieved = hints.sieves_writes && self.amode.reads() && stretch.is_scattered()?;
        // Beside ranks that sieve, a write of single blocks needs the lock, too, but does not exclude its like.
        let _locked = match self.is_atomic() {
            true => Some(self.disk.lock(false)?),
            // Some file systems lock only what may be read for those who share the lock.
            false if hints.sieves_writes && !is_sieved => Some(self.disk.lock(self.amode.reads())?),
            false => None,
        };
        if is_sieved {
            return Ok(self.write_sieved(stretch, from, hints)?);
        }
        stretch.each(|at, offset, len| {
            from.each(offset, len, |region, by| self.disk.write(region, at + by))?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(())
    }

    /// Writes a stretch, and what lies between its blocks.
    fn write_sieved(
        &self,
        stretch: &Stretch,
        from: &mut Outgoing,
        hints: Hints,
    ) -> Result<(), FileError> {
        let (_, end, _) = stretch.view.range(stretch.from, stretch.len)?;
        let mut sieve = Sieve { disk: &self.disk, at: 0, bytes: Vec::new(), size: hints.write };
        let (mut changed, mut locked) = (0, None::<Locked<'_>>);
        stretch.each(|mut at, mut offset, mut len| {
            while len > 0 {
                if at >= sieve.at + sieve.bytes.len() as u64 {
                    self.disk.write_bytes(&sieve.bytes[..changed], sieve.at)?;
                    // In atomic mode the call has the lock already.
                    drop(locked.take());
                    locked = (!self.is_atomic()).then(|| self.disk.lock(false)).transpose()?;
                    sieve.read(at, end)?;
                }
                let place = (at - sieve.at) as usize;
                let part = len.min((sieve.bytes.len() - place) as u64);
                changed = place + part as usize;
                from.copy(offset, &mut sieve.bytes[place..changed]);
                (at, offset, len) = (at + part, offset + part, len - part);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        self.disk.write_bytes(&sieve.bytes[..changed], sieve.at)
    }

    /// Reads a stretch. Returns how many bytes of it the file has.
    pub(super) fn read_alone(&self, stretch: &Stretch, into: &mut Incoming) -> Result<u64, Error> {
        if stretch.len == 0 {
            return Ok(0);
        }
        let _locked = self.is_atomic().then(|| self.disk.lock(true)).transpose()?;
        if stretch.is_scattered()? {
            return Ok(self.read_sieved(stretch, into)?);
        }
        let mut found = 0;
        stretch.each(|at, offset, len| {
            let read = into.each(offset, len, |region, by| self.disk.read(region, at + by))?;
            found = offset + read;
            Ok(if read < len { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(found)
    }

    /// Reads a stretch, and what lies between its blocks.
    fn read_sieved(&self, stretch: &Stretch, into: &mut Incoming) -> Result<u64, FileError> {
        let (_, end, _) = stretch.view.range(stretch.from, stretch.len)?;
        let found = stretch.below(self.disk.len()?);
        let size = self.hints().read;
        let mut sieve = Sieve { disk: &self.disk, at: 0, bytes: Vec::new(), size };
        stretch.each(|mut at, mut offset, mut len| {
            while len > 0 && offset < found {
                if at >= sieve.at + sieve.bytes.len() as u64 {
                    sieve.read(at, end)?;
                }
                let place = (at - sieve.at) as usize;
                let part = len.min((sieve.bytes.len() - place) as u64).min(found - offset);
                into.store(offset, &sieve.bytes[place..][..part as usize]);
                (at, offset, len) = (at + part, offset + part, len - part);
            }
            Ok(if len > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(found)
    }
}
