//! A file that `mpjrun` writes when a job has ended: the timeline of `--trace`, the page of `--profile`.
//!
//! It is opened before the job starts, so that a mistake in its name costs no job. What was in it stays until something
//! else is written: a job that cannot start, or that a signal ends together with `mpjrun`, destroys no earlier file.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file that is written at the end of a job.
#[derive(Debug)]
pub(crate) struct Destination {
    path: PathBuf,
    file: File,
    /// Whether it was made here, and nothing has been written.
    is_new: Cell<bool>,
}

impl Destination {
    /// Opens the file, which need not exist.
    ///
    /// # Errors
    /// What the system answers.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let made = OpenOptions::new().write(true).create_new(true).open(path);
        let is_new = Cell::new(made.is_ok());
        let file = made.or_else(|_| OpenOptions::new().write(true).open(path))?;
        Ok(Self { path: path.to_owned(), file, is_new })
    }

    /// Its name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts what `write` writes in the place of what the file had.
    ///
    /// # Errors
    /// What the system or `write` answers.
    pub(crate) fn replace(
        &self,
        write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.is_new.set(false);
        // Pipes and devices have no length.
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        let mut out = BufWriter::with_capacity(1 << 20, &self.file);
        write(&mut out)?;
        out.flush()
    }
}

impl Drop for Destination {
    /// Removes a file that was made for nothing.
    fn drop(&mut self) {
        if self.is_new.get() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_was_there_stays_until_something_else_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace");
        fs::write(&path, "an earlier trace").expect("a file");
        let destination = Destination::open(&path).expect("it is there");
        assert_eq!(fs::read(&path).expect("it stays"), b"an earlier trace");
        destination.replace(|out| out.write_all(b"a new one")).expect("there is room");
        assert_eq!(fs::read(&path).expect("it was written"), b"a new one");
    }

    #[test]
    fn a_file_that_nothing_was_written_to_is_not_left_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace");
        let destination = Destination::open(&path).expect("it is made");
        assert!(path.exists());
        drop(destination);
        assert!(!path.exists());
    }

    #[test]
    fn devices_and_new_files_are_written_too() {
        let folder = tempfile::tempdir().expect("a folder");
        for path in [Path::new("/dev/null"), &folder.path().join("new")] {
            let destination = Destination::open(path).expect("it can be opened");
            destination.replace(|out| out.write_all(b"a trace")).expect("it takes all");
        }
        assert!(Destination::open(&folder.path().join("absent/file")).is_err());
    }
}
