//! Files that the ranks of a communicator read and write together (MPI-4.1 chapter 14).
//!
//! All ranks open the file themselves, and each one sees it through a view (`view.rs`). A call that works alone
//! (`alone.rs`) reads and writes the blocks of the view itself; scattered reads fetch what lies between, too. A collective
//! call whose ranks have short blocks side by side works in two phases (`together.rs`): the ranks exchange, so that few of
//! them access long parts of the file. `pointer.rs` has the pointers, `disk.rs` the file, `memory.rs` the elements.
//!
//! - FI1: an access is complete when its call returns, also for the calls that MPI calls nonblocking; their requests are
//!   complete at once. Collective ones of these work alone, so that no rank waits for others in them.
//! - FI2: in atomic mode each access has the lock of the file. Collective accesses work alone then.
//! - FI3: writes change the bytes of their blocks only, whatever lies between, unless a hint allows more. So ranks may
//!   write different bytes of a file at the same time.
//! - FI4: a rank whose arguments are wrong takes part in the messages of a collective call before it returns its error.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mpjdev::{Call, Sink, Source};

use crate::communicator::Communicator;
use crate::datatype::Datatype;
use crate::error::{Error, FileError};
use crate::group::Group;
use crate::info::Info;
use crate::op::ElementKind;

mod alone;
mod amode;
mod disk;
mod hints;
mod memory;
mod pointer;
#[cfg(test)]
mod tests;
mod together;
pub(crate) mod view;

pub use amode::Amode;
use disk::Disk;
use hints::Hints;
use memory::{Incoming, Outgoing};
use pointer::Shared;
pub use pointer::Whence;
use together::Staging;
use view::{Representation, View};

/// A file that the ranks of a communicator have opened.
pub struct File {
    communicator: Communicator,
    disk: Disk,
    amode: Amode,
    view: Mutex<Arc<View>>,
    /// This rank's pointer, in etypes.
    position: Mutex<i64>,
    shared: Shared,
    is_atomic: AtomicBool,
    hints: Mutex<Hints>,
    /// Where collective calls gather data, once one has done so.
    staging: Mutex<Option<Staging>>,
}

/// Where an access begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// At a position of the view, in etypes.
    At(i64),
    /// At this rank's pointer, which moves behind it.
    Individual,
    /// At the shared pointer, which moves behind it; in a collective call, the ranks follow each other.
    Shared,
}

/// What a call accesses.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// Where it begins.
    pub position: Position,
    /// Whether all ranks make the call, and wait for each other.
    pub is_collective: bool,
    /// The number of elements.
    pub count: i64,
    /// Their datatype.
    pub datatype: &'a Datatype,
}

/// A part of the stream of a view.
struct Stretch {
    view: Arc<View>,
    from: u64,
    /// Its length in bytes.
    len: u64,
}

impl File {
    /// Opens a file: MPI_File_open. Collective on an intracommunicator. With [`Amode::CREATE`], rank 0 makes it.
    ///
    /// # Errors
    /// [`FileError::Amode`]; [`FileError::Different`] if the ranks give different access modes; [`FileError::System`] where
    /// the file cannot be opened, and then [`FileError::Elsewhere`] on other ranks; [`Error::Kind`]; [`Error::Contexts`];
    /// the loss of a member; what made the device unusable.
    pub fn open(
        communicator: &Communicator,
        path: &Path,
        amode: Amode,
        info: &Info,
    ) -> Result<Self, Error> {
        Self::open_with(communicator, path, amode, false, info)
    }

    /// Likewise, and empties the file if it `truncates`, as all ranks must demand or none.
    ///
    /// # Errors
    /// As [`File::open`].
    pub fn open_with(
        communicator: &Communicator,
        path: &Path,
        amode: Amode,
        truncates: bool,
        info: &Info,
    ) -> Result<Self, Error> {
        let call = Call::FileOpen;
        communicator.intra("a file")?;
        let communicator = communicator.apart(call)?;
        communicator.set_name("file");
        agree(&communicator, call, amode.check().map_err(Error::from))?;
        let words = vec![amode.0.into(), truncates.into()];
        same(&communicator, call, "the access mode, or of whether the file is emptied", words)?;
        let mut options = OpenOptions::new();
        options.read(amode.reads()).write(amode.writes()).mode(hints::permissions(info));
        if amode.has(Amode::CREATE) {
            let made = match communicator.rank() {
                0 => {
                    let mut options = options.clone();
                    options.create(true).create_new(amode.has(Amode::EXCL));
                    Disk::open(path, &options).map(drop)
                }
                _ => Ok(()),
            };
            agree(&communicator, call, made.map_err(Error::from))?;
        }
        let disk = agree(&communicator, call, Disk::open(path, &options).map_err(Error::from))?;
        let shared = Shared::new(&communicator)?;
        let byte = Datatype::named(ElementKind::Byte, "MPI_BYTE");
        let view = View::new(0, &byte, &byte, Representation::Native, true)?;
        let mut hints = Hints::default();
        hints.take(info);
        hints.agree(&communicator.bcast_words(call, hints.to_words(), 0)?);
        let file = Self {
            communicator,
            disk,
            amode,
            view: Mutex::new(Arc::new(view)),
            position: Mutex::default(),
            shared,
            is_atomic: AtomicBool::new(false),
            hints: Mutex::new(hints),
            staging: Mutex::default(),
        };
        if truncates {
            file.set_size(0)?;
        }
        if amode.has(Amode::APPEND) {
            file.append()?;
        }
        Ok(file)
    }

    /// Moves all pointers to the end of the file. Collective.
    fn append(&self) -> Result<(), Error> {
        let end = self.disk.len().map(|len| len as i64);
        let end = self.agree(Call::FileOpen, end.map_err(Error::from))?;
        *self.position() = end;
        let set = if self.communicator.rank() == 0 { self.shared.set(end) } else { Ok(()) };
        self.agree(Call::FileOpen, set)
    }

    /// Ends the file, when all ranks have called this: MPI_File_close. Collective. Behind it, the file system has what was
    /// written, and a file that is to be deleted is.
    ///
    /// # Errors
    /// [`FileError::System`], [`FileError::Elsewhere`] if the file system has lost what was written, or if the file is to be
    /// deleted and cannot be; the loss of a member; what made the device unusable.
    pub fn close(&self) -> Result<(), Error> {
        let call = Call::FileClose;
        let flushed = self.agree(call, self.disk.flush().map_err(Error::from));
        let is_deleted = self.amode.has(Amode::DELETE_ON_CLOSE) && self.communicator.rank() == 0;
        let deleted = if is_deleted { Self::delete(Path::new(self.disk.path())) } else { Ok(()) };
        let ended = self.agree(call, deleted);
        if let Some(staging) = self.staging().take() {
            staging.free()?;
        }
        self.shared.free()?;
        flushed.and(ended)
    }

    /// Ends the file, when all ranks have called this, but does not wait for them: until then this rank serves the others.
    pub fn close_later(self) {
        if let Some(staging) = self.staging().take() {
            staging.free_later();
        }
        self.shared.free_later();
        if self.amode.has(Amode::DELETE_ON_CLOSE) && self.communicator.rank() == 0 {
            // Ranks that have it open still do; nobody is told whether it could be deleted.
            let _ = Self::delete(Path::new(self.disk.path()));
        }
    }

    /// Deletes a file: MPI_File_delete.
    ///
    /// # Errors
    /// [`FileError::System`].
    pub fn delete(path: &Path) -> Result<(), Error> {
        let name = path.to_string_lossy();
        let done = std::fs::remove_file(path);
        Ok(done.map_err(|error| FileError::system(&name, "it cannot be deleted", &error))?)
    }

    /// Returns its ranks: MPI_File_get_group.
    pub fn group(&self) -> &Group {
        self.communicator.group()
    }

    /// Returns how it was opened: MPI_File_get_amode.
    pub fn amode(&self) -> Amode {
        self.amode
    }

    /// Returns its length in bytes: MPI_File_get_size.
    ///
    /// # Errors
    /// [`FileError::System`].
    pub fn size(&self) -> Result<u64, Error> {
        Ok(self.disk.len()?)
    }

    /// Sets its length in bytes: MPI_File_set_size. Collective, with the same length.
    ///
    /// # Errors
    /// [`FileError::Different`], [`FileError::Access`], [`FileError::Sequential`], [`FileError::System`],
    /// [`FileError::Elsewhere`]; the loss of a member; what made the device unusable.
    pub fn set_size(&self, size: u64) -> Result<(), Error> {
        self.resize(Call::FileSetSize, size, |disk| disk.set_len(size))
    }

    /// Reserves space for the first `size` bytes, and extends a file that is shorter: MPI_File_preallocate. Collective,
    /// with the same size.
    ///
    /// # Errors
    /// As [`File::set_size`].
    pub fn preallocate(&self, size: u64) -> Result<(), Error> {
        self.resize(Call::FilePreallocate, size, |disk| disk.reserve(size))
    }

    fn resize(
        &self,
        call: Call,
        size: u64,
        resize: impl FnOnce(&Disk) -> Result<(), FileError>,
    ) -> Result<(), Error> {
        self.check_mode(false)?;
        if self.amode.has(Amode::SEQUENTIAL) {
            let why = "its size cannot be set";
            return Err(FileError::Sequential { why }.into());
        }
        self.same(call, "the size", vec![size])?;
        let done = if self.communicator.rank() == 0 { resize(&self.disk) } else { Ok(()) };
        self.agree(call, done.map_err(Error::from))
    }

    /// Waits until all that was written is on the device, on all ranks: MPI_File_sync. Collective.
    ///
    /// # Errors
    /// [`FileError::System`]; the loss of a member; what made the device unusable.
    pub fn sync(&self) -> Result<(), Error> {
        self.agree(Call::FileSync, self.disk.sync().map_err(Error::from))
    }

    /// Sets whether accesses are atomic (FI2): MPI_File_set_atomicity. Collective, with the same value.
    ///
    /// # Errors
    /// [`FileError::Different`]; the loss of a member; what made the device unusable.
    pub fn set_atomicity(&self, is_atomic: bool) -> Result<(), Error> {
        self.same(Call::FileSetAtomicity, "the flag", vec![is_atomic.into()])?;
        self.is_atomic.store(is_atomic, Ordering::Relaxed);
        Ok(())
    }

    /// Returns whether accesses are atomic: MPI_File_get_atomicity.
    pub fn is_atomic(&self) -> bool {
        self.is_atomic.load(Ordering::Relaxed)
    }

    /// Takes over hints: MPI_File_set_info. Collective; for collective calls, those of rank 0 count.
    ///
    /// # Errors
    /// The loss of a member; what made the device unusable.
    pub fn set_info(&self, info: &Info) -> Result<(), Error> {
        self.take_hints(Call::FileSetInfo, info)
    }

    fn take_hints(&self, call: Call, info: &Info) -> Result<(), Error> {
        let mut hints = self.hints();
        hints.take(info);
        let words = self.communicator.bcast_words(call, hints.to_words(), 0)?;
        hints.agree(&words);
        *self.hints.lock().unwrap_or_else(PoisonError::into_inner) = hints;
        Ok(())
    }

    /// Returns the hints in use: MPI_File_get_info.
    ///
    /// # Errors
    /// None in practice: all keys and values are short.
    pub fn info(&self) -> Result<Info, crate::InfoError> {
        let hints = self.hints();
        hints.to_info(together::aggregators(&self.communicator, hints.nodes).len())
    }

    /// Sets what this rank sees of the file, and moves all pointers to its beginning: MPI_File_set_view. Collective, with
    /// the same representation, and etypes of the same size. Without a displacement (MPI_DISPLACEMENT_CURRENT), which
    /// sequential files need, the view begins at the shared pointer.
    ///
    /// # Errors
    /// [`FileError::View`], [`FileError::Argument`], [`FileError::Datatype`], [`FileError::Sequential`],
    /// [`FileError::Different`], [`FileError::Elsewhere`]; the loss of a member; what made the device unusable.
    pub fn set_view(
        &self,
        displacement: Option<u64>,
        etype: &Datatype,
        filetype: &Datatype,
        representation: Representation,
        info: &Info,
    ) -> Result<(), Error> {
        let call = Call::FileSetView;
        let displacement = match displacement {
            None => self.shared.get().and_then(|at| self.place(at)),
            Some(_) if self.amode.has(Amode::SEQUENTIAL) => {
                let why = "the displacement of a view must be MPI_DISPLACEMENT_CURRENT";
                Err(FileError::Sequential { why }.into())
            }
            Some(displacement) => Ok(displacement),
        };
        let view = displacement.and_then(|displacement| {
            Ok(View::new(displacement, etype, filetype, representation, self.amode.writes())?)
        });
        let view = self.agree(call, view)?;
        let words = vec![view.unit(), view.representation() as u64];
        self.same(call, "the size of the etype, or the representation", words)?;
        *self.view.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(view);
        *self.position() = 0;
        let set = if self.communicator.rank() == 0 { self.shared.set(0) } else { Ok(()) };
        self.agree(call, set)?;
        self.take_hints(call, info)
    }

    /// Returns what this rank sees of the file: MPI_File_get_view.
    pub fn view(&self) -> Arc<View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the distance of elements in the file: MPI_File_get_type_extent.
    ///
    /// # Errors
    /// [`FileError::Datatype`].
    pub fn type_extent(&self, datatype: &Datatype) -> Result<isize, Error> {
        Ok(self.view().representation().in_file(datatype)?.extent())
    }

    /// Writes elements. Returns the bytes of those in memory that were written.
    ///
    /// # Errors
    /// [`Error::Buffer`] if the memory has another length than the elements; [`FileError::Access`],
    /// [`FileError::Sequential`], [`FileError::Argument`], [`FileError::Etypes`],
    /// [`FileError::System`]; [`Error::Datatype`] if a value does not fit into the representation; [`FileError::Elsewhere`]
    /// if a collective call has failed on another rank; the loss of a member; what made the device unusable.
    pub fn write(&self, part: Part<'_>, from: Source) -> Result<u64, Error> {
        let (elements, len) = ((part.datatype, part.count), from.len() as u64);
        let prepared = self.stretch(Call::FileWriteAll, part, from.len(), false);
        let prepared = prepared.and_then(|stretch| {
            let from = Outgoing::new(from, elements, stretch.view.representation())?;
            Ok((stretch, from))
        });
        match part.is_collective {
            true => self.write_together(prepared)?,
            false => {
                let (stretch, mut from) = prepared?;
                self.write_alone(&stretch, &mut from)?;
            }
        }
        Ok(len)
    }

    /// Reads elements. Returns the bytes of those in memory that were read: fewer at the end of the file.
    ///
    /// # Errors
    /// As [`File::write`].
    pub fn read(&self, part: Part<'_>, into: Sink) -> Result<u64, Error> {
        let elements = (part.datatype, part.count);
        let prepared = self.stretch(Call::FileReadAll, part, into.len(), true);
        let prepared = prepared.and_then(|stretch| {
            let into = Incoming::new(into, elements, stretch.view.representation())?;
            Ok((stretch, into))
        });
        let (into, bytes) = match part.is_collective {
            true => self.read_together(prepared)?,
            false => {
                let (stretch, mut into) = prepared?;
                let bytes = self.read_alone(&stretch, &mut into)?;
                (into, bytes)
            }
        };
        into.finish(elements, bytes)
    }

    /// Returns the stretch of an access to so many bytes of memory, and moves the pointer behind it.
    fn stretch(
        &self,
        call: Call,
        part: Part<'_>,
        memory: usize,
        is_read: bool,
    ) -> Result<Stretch, Error> {
        let view = self.view();
        let len = self.check(&view, part, memory, is_read);
        let etypes = len.as_ref().map_or(0, |len| len / view.unit()) as i64;
        let at = match part.position {
            Position::Shared if part.is_collective => self.reserve_in_order(call, etypes)?,
            _ if len.is_err() => 0,
            position => self.reserve(position, etypes)?,
        };
        let (len, why) = (len?, "the position is negative, or behind the longest possible file");
        let from = u64::try_from(at).ok().and_then(|at| at.checked_mul(view.unit()));
        let from = from.ok_or(FileError::Argument { why })?;
        Ok(Stretch { view, from, len })
    }

    /// Checks an access, and returns its length in the stream.
    fn check(
        &self,
        view: &View,
        part: Part<'_>,
        memory: usize,
        is_read: bool,
    ) -> Result<u64, Error> {
        self.check_mode(is_read)?;
        if part.datatype.pack_size(part.count)? != memory {
            return Err(Error::Buffer { first: 0, count: part.count as u64, len: memory });
        }
        if self.amode.has(Amode::SEQUENTIAL) && part.position != Position::Shared {
            let why = "it is accessed by the shared pointer only";
            return Err(FileError::Sequential { why }.into());
        }
        let bytes = match view.representation() {
            Representation::External32 => part.datatype.pack_external_size(part.count)?,
            Representation::Native | Representation::Internal => {
                part.datatype.pack_size(part.count)?
            }
        } as u64;
        match bytes % view.unit() {
            0 => Ok(bytes),
            _ => Err(FileError::Etypes { bytes, unit: view.unit() }.into()),
        }
    }

    fn check_mode(&self, is_read: bool) -> Result<(), FileError> {
        match if is_read { self.amode.reads() } else { self.amode.writes() } {
            true => Ok(()),
            false => Err(FileError::Access { path: self.disk.path().to_owned(), is_read }),
        }
    }

    /// Returns the value if no rank has an error. Collective.
    fn agree<T>(&self, call: Call, own: Result<T, Error>) -> Result<T, Error> {
        agree(&self.communicator, call, own)
    }

    /// Checks that all ranks give the same words. Collective.
    fn same(&self, call: Call, what: &'static str, words: Vec<u64>) -> Result<(), Error> {
        same(&self.communicator, call, what, words)
    }

    fn hints(&self) -> Hints {
        *self.hints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn position(&self) -> MutexGuard<'_, i64> {
        self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn staging(&self) -> MutexGuard<'_, Option<Staging>> {
        self.staging.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the value if no rank has an error. Collective.
fn agree<T>(communicator: &Communicator, call: Call, own: Result<T, Error>) -> Result<T, Error> {
    let word = own.as_ref().err().map_or(0, |error| 1 + error.class().number());
    let words = communicator.gather_words(call, vec![word.into()])?;
    let value = own?;
    match (0..).zip(words).find(|(_, word)| *word > 0) {
        None => Ok(value),
        Some((rank, word)) => {
            let class = crate::ErrorClass::of_number((word - 1) as u32);
            Err(FileError::Elsewhere { rank, class }.into())
        }
    }
}

/// Checks that all ranks give the same words. Collective.
fn same(
    communicator: &Communicator,
    call: Call,
    what: &'static str,
    words: Vec<u64>,
) -> Result<(), Error> {
    let len = words.len();
    let all = communicator.gather_words(call, words)?;
    match all.chunks_exact(len).all(|words| *words == all[..len]) {
        true => Ok(()),
        false => Err(FileError::Different { what }.into()),
    }
}
