//! Files that all ranks read and write (MPI-4.1 chapter 14).
//!
//! - FJ1: what is read into a buffer is bytes of elements of its type, which may be any (DT1). Each access has ended when its
//!   call returns, with an error, too.
//! - FJ2: a view borrows its file exclusively, since a file has one view at a time.
//!
//! `options.rs`: how a file is opened. `view.rs`: its elements.

use std::path::Path;

use crate::communicator::Communicator;
use crate::error::Error;

mod options;
mod view;

pub use options::FileOptions;
pub use view::FileView;

/// A file that all ranks of a communicator have opened, and read and write together or each for itself.
///
/// [`view`](Self::view), [`view_block`](Self::view_block) and [`view_subarray`](Self::view_subarray) say which elements of
/// the file a rank sees; the [`FileView`] that they return has the calls that access them. All methods are collective but
/// for [`len`](Self::len): all ranks make the same calls in the same order.
///
/// Elements lie in the file as in memory, one after another, structures with their padding.
///
/// A file that is dropped, instead of [closed](Self::close), waits for no other rank. All ranks drop it, or all close it.
///
/// # Example
/// A matrix of 4 rows and 6 columns, of which each rank has some columns:
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("matrix");
/// mpj::local::run(2, move |world| {
///     let columns = 3 * world.rank()..3 * world.rank() + 3;
///     let mine = [world.rank() as f64; 12];
///     let mut file = mpj::File::create(&world, &path).unwrap();
///     let view = file.view_subarray::<f64>(0, &[4, 6], &[0..4, columns]).unwrap();
///     view.write_at_all(&mine, 0).unwrap();
///     file.sync_all().unwrap();
///
///     let mut rows = [0.0; 12];
///     let view = file.view_block::<f64>(0, 24).unwrap();
///     assert_eq!(view.read_at_all(&mut rows, 0).unwrap(), 12);
///     assert_eq!(rows, [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
///     file.close().unwrap();
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The compiler refuses two views at a time, and data of another type:
///
/// ```compile_fail
/// fn wrong(file: &mut mpj::File) -> Result<(), mpj::Error> {
///     let [bytes, numbers] = [file.view::<u8>(0)?, file.view::<u8>(8)?];
///     bytes.write_at(&[1], 0)?;
///     numbers.write_at(&[1], 0)
/// }
/// ```
///
/// ```compile_fail
/// fn wrong(file: &mut mpj::File) -> Result<(), mpj::Error> {
///     file.view::<u64>(0)?.write_at(&[1.0], 0)
/// }
/// ```
pub struct File {
    /// Taken only when the file ends.
    core: Option<mpicore::File>,
    communicator: Communicator,
}

impl File {
    /// Opens a file that exists for reading (MPI_File_open). Collective.
    ///
    /// # Errors
    /// As [`FileOptions::open`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let missing = mpj::File::open(&world, "/no/such/file").err().unwrap();
    ///     assert_eq!(missing.class(), mpj::ErrorClass::NoSuchFile);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_File_open")]
    #[track_caller]
    pub fn open(communicator: &Communicator, path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::options().read(true).open(communicator, path)
    }

    /// Makes a file, or empties one that exists, for reading and writing. Collective.
    ///
    /// # Errors
    /// As [`FileOptions::open`].
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// mpj::local::run(2, move |world| {
    ///     assert_eq!(mpj::File::create(&world, &path).unwrap().len().unwrap(), 0);
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn create(communicator: &Communicator, path: impl AsRef<Path>) -> Result<Self, Error> {
        let mut options = Self::options();
        options.read(true).write(true).create(true).truncate(true).open(communicator, path)
    }

    /// Returns the options by which a file is opened, of which none is set.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// mpj::local::run(2, move |world| {
    ///     let mut options = mpj::File::options();
    ///     options.write(true).create_new(true);
    ///     options.open(&world, &path).unwrap().close().unwrap();
    ///     let again = options.open(&world, &path).err().unwrap();
    ///     assert_eq!(again.class(), mpj::ErrorClass::FileExists);
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn options() -> FileOptions {
        FileOptions::default()
    }

    /// Returns the length in bytes (MPI_File_get_size). Not collective.
    ///
    /// # Errors
    /// The system refuses it.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// mpj::local::run(2, move |world| {
    ///     let file = mpj::File::create(&world, &path).unwrap();
    ///     file.set_len(100).unwrap();
    ///     assert_eq!(file.len().unwrap(), 100);
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[expect(clippy::len_without_is_empty, reason = "std's File has none either")]
    #[doc(alias = "MPI_File_get_size")]
    pub fn len(&self) -> Result<u64, Error> {
        self.communicator.answer(self.core().size())
    }

    /// Sets the length in bytes, the same on all ranks (MPI_File_set_size).
    ///
    /// # Errors
    /// Ranks give different lengths; the file was not opened for writing; the system refuses it, on any rank; a rank is
    /// lost; the device has failed.
    ///
    /// See [`len`](Self::len) for an example.
    #[doc(alias = "MPI_File_set_size")]
    #[track_caller]
    pub fn set_len(&self, len: u64) -> Result<(), Error> {
        let _site = self.communicator.site("set_len", || None);
        self.communicator.answer(self.core().set_size(len))
    }

    /// Reserves space for the first `len` bytes, and extends a file that is shorter (MPI_File_preallocate).
    ///
    /// # Errors
    /// As [`set_len`](Self::set_len); there is no such space.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// mpj::local::run(2, move |world| {
    ///     mpj::File::create(&world, &path).unwrap().preallocate(4096).unwrap();
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "MPI_File_preallocate")]
    #[track_caller]
    pub fn preallocate(&self, len: u64) -> Result<(), Error> {
        let _site = self.communicator.site("preallocate", || None);
        self.communicator.answer(self.core().preallocate(len))
    }

    /// Waits until all that any rank has written is on the device, and seen by all ranks (MPI_File_sync).
    ///
    /// # Errors
    /// The system refuses it, on any rank; a rank is lost; the device has failed.
    ///
    /// See [`File`] for an example.
    #[doc(alias = "MPI_File_sync")]
    #[track_caller]
    pub fn sync_all(&self) -> Result<(), Error> {
        let _site = self.communicator.site("sync_all", || None);
        self.communicator.answer(self.core().sync())
    }

    /// Sets whether each access is seen by other ranks as a whole, which makes accesses slow (MPI_File_set_atomicity).
    ///
    /// # Errors
    /// Ranks say different things; a rank is lost; the device has failed.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// mpj::local::run(2, move |world| {
    ///     let mut file = mpj::File::create(&world, &path).unwrap();
    ///     file.set_atomic(true).unwrap();
    ///     let view = file.view::<u8>(0).unwrap();
    ///     view.write_at(&[world.rank() as u8; 100], 0).unwrap();
    ///     let mut bytes = [0; 100];
    ///     view.read_at(&mut bytes, 0).unwrap();
    ///     assert!([[0; 100], [1; 100]].contains(&bytes));
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "MPI_File_set_atomicity")]
    #[track_caller]
    pub fn set_atomic(&self, is_atomic: bool) -> Result<(), Error> {
        let _site = self.communicator.site("set_atomic", || None);
        self.communicator.answer(self.core().set_atomicity(is_atomic))
    }

    /// Ends the file, when all ranks have called this (MPI_File_close). A file that is to be deleted is when it returns.
    ///
    /// # Errors
    /// A file that is to be deleted cannot be, or the file system has lost what was written, on any rank; a rank is
    /// lost; the device has failed.
    ///
    /// See [`File`] for an example.
    #[doc(alias = "MPI_File_close")]
    #[track_caller]
    pub fn close(mut self) -> Result<(), Error> {
        let _site = self.communicator.site("close", || None);
        let core = self.core.take().expect("only the end takes it");
        self.communicator.answer(core.close())
    }

    fn core(&self) -> &mpicore::File {
        self.core.as_ref().expect("only the end takes it")
    }
}

impl Drop for File {
    /// Does not wait. A rank that leaves because of an error does not tell the others that it has come to this, as it does
    /// for windows.
    fn drop(&mut self) {
        if let Some(core) = self.core.take() {
            match std::thread::panicking() || self.communicator.device.complaint().is_some() {
                true => std::mem::forget(core),
                false => core.close_later(),
            }
        }
    }
}
