//! How a file is opened: a builder in the manner of `std::fs::OpenOptions`.

use std::path::Path;

use mpicore::{Amode, Info};

use super::File;
use crate::communicator::Communicator;
use crate::error::Error;

/// Options by which a [`File`] is opened. All ranks give the same.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("file");
/// mpj::local::run(2, move |world| {
///     let mut options = mpj::File::options();
///     options.read(true).write(true).create(true).delete_on_close(true).hint("cb_buffer_size", "1048576");
///     options.open(&world, &path).unwrap().close().unwrap();
///     assert!(!path.exists());
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct FileOptions {
    reads: bool,
    writes: bool,
    truncates: bool,
    creates: bool,
    creates_new: bool,
    deletes: bool,
    hints: Vec<(String, String)>,
}

impl FileOptions {
    /// Makes the file if it does not exist (MPI_MODE_CREATE). Needs [`write`](Self::write).
    ///
    /// See [`FileOptions`] for an example.
    #[doc(alias = "MPI_MODE_CREATE")]
    pub fn create(&mut self, create: bool) -> &mut Self {
        self.creates = create;
        self
    }

    /// Makes the file, and refuses one that exists (MPI_MODE_EXCL). [`create`](Self::create) and
    /// [`truncate`](Self::truncate) mean nothing then. Needs [`write`](Self::write).
    ///
    /// See [`FileOptions`] for an example.
    #[doc(alias = "MPI_MODE_EXCL")]
    pub fn create_new(&mut self, create_new: bool) -> &mut Self {
        self.creates_new = create_new;
        self
    }

    /// Deletes the file when it ends (MPI_MODE_DELETE_ON_CLOSE).
    ///
    /// See [`FileOptions`] for an example.
    #[doc(alias = "MPI_MODE_DELETE_ON_CLOSE")]
    pub fn delete_on_close(&mut self, delete_on_close: bool) -> &mut Self {
        self.deletes = delete_on_close;
        self
    }

    /// Lets ranks read (MPI_MODE_RDONLY, MPI_MODE_RDWR).
    ///
    /// See [`FileOptions`] for an example.
    #[doc(alias("MPI_MODE_RDONLY", "MPI_MODE_RDWR"))]
    pub fn read(&mut self, read: bool) -> &mut Self {
        self.reads = read;
        self
    }

    /// Lets ranks write (MPI_MODE_WRONLY, MPI_MODE_RDWR).
    ///
    /// See [`FileOptions`] for an example.
    #[doc(alias("MPI_MODE_WRONLY", "MPI_MODE_RDWR"))]
    pub fn write(&mut self, write: bool) -> &mut Self {
        self.writes = write;
        self
    }

    /// Empties a file that exists. Needs [`write`](Self::write).
    ///
    /// See [`FileOptions`] for an example.
    pub fn truncate(&mut self, truncate: bool) -> &mut Self {
        self.truncates = truncate;
        self
    }

    /// Sets a hint (MPI_File_set_info). `docs/libmpi.md` lists those in use; others are ignored, as are values that mean
    /// nothing, and keys and values that are too long.
    ///
    /// See [`FileOptions`] for an example.
    #[doc(alias = "MPI_File_set_info")]
    pub fn hint(&mut self, key: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.hints.push((key.into(), value.into()));
        self
    }

    /// Opens a file with these options. Collective.
    ///
    /// # Errors
    /// [`ErrorClass::NoSuchFile`](crate::ErrorClass::NoSuchFile), [`FileExists`](crate::ErrorClass::FileExists),
    /// [`Access`](crate::ErrorClass::Access) and so on, on all ranks, where the file cannot be opened;
    /// [`Amode`](crate::ErrorClass::Amode) for options that do not go together, or without any;
    /// [`NotSame`](crate::ErrorClass::NotSame) if ranks give different ones; as [`Communicator::dup`].
    ///
    /// See [`FileOptions`] for an example.
    #[track_caller]
    pub fn open(&self, communicator: &Communicator, path: impl AsRef<Path>) -> Result<File, Error> {
        let access = match (self.reads, self.writes) {
            (true, true) => Amode::RDWR,
            (true, false) => Amode::RDONLY,
            (false, true) => Amode::WRONLY,
            (false, false) => Amode::default(),
        };
        let creation = match (self.creates_new, self.creates) {
            (true, _) => Amode::CREATE | Amode::EXCL,
            (false, true) => Amode::CREATE,
            (false, false) => Amode::default(),
        };
        let deletion = if self.deletes { Amode::DELETE_ON_CLOSE } else { Amode::default() };
        let truncates = self.truncates && !self.creates_new;
        let mut hints = Info::default();
        for (key, value) in &self.hints {
            // Those that are refused are ignored, like all that mean nothing.
            let _ = hints.set(key.as_bytes(), value.as_bytes());
        }
        let _site = communicator.site("open", || None);
        let (core, amode) = (&communicator.core, access | creation | deletion);
        let opened = mpicore::File::open_with(core, path.as_ref(), amode, truncates, &hints);
        let core = Some(communicator.answer(opened)?);
        Ok(File { core, communicator: communicator.clone() })
    }
}
