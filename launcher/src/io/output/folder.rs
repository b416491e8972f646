//! The files of `--output dir=D`: `D/rank.N.stdout` and `D/rank.N.stderr`, with the bytes as they are.
//!
//! They are regular files: opening or writing anything else could wait for somebody.

use std::fs::{File, OpenOptions, create_dir_all};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::Stream;
use crate::LaunchError;

/// A folder for the output of ranks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Folder<'a>(&'a Path);

/// The two files of one rank.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) out: File,
    pub(crate) err: File,
}

impl<'a> Folder<'a> {
    /// Makes the folder, and those above it, if they are missing.
    pub(crate) fn make(path: &'a Path) -> Result<Self, LaunchError> {
        create_dir_all(path).map_err(|source| refused(path.to_owned(), source))?;
        Ok(Self(path))
    }

    /// Makes the files of `rank`; what an earlier job left in them is gone.
    pub(crate) fn files_of(self, rank: usize) -> Result<Files, LaunchError> {
        Ok(Files { out: self.create(rank, Stream::Out)?, err: self.create(rank, Stream::Err)? })
    }

    fn create(self, rank: usize, stream: Stream) -> Result<File, LaunchError> {
        let stream = match stream {
            Stream::Out => "stdout",
            Stream::Err => "stderr",
        };
        let path = self.0.join(format!("rank.{rank}.{stream}"));
        create_regular(&path).map_err(|source| refused(path, source))
    }
}

/// Makes an empty file, or empties it. Opening does not wait for whoever reads from a named pipe.
fn create_regular(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    let is_no_file = || io::Error::new(ErrorKind::InvalidInput, "not a regular file");
    let mut options = OpenOptions::new();
    let opened = options.write(true).create(true).truncate(false).custom_flags(flags).open(path);
    let file = match opened {
        Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
            return Err(is_no_file());
        }
        opened => opened?,
    };
    if !file.metadata()?.is_file() {
        return Err(is_no_file());
    }
    file.set_len(0)?;
    Ok(file)
}

/// Writes `bytes` to a file of the folder.
pub(crate) fn write_file(mut file: &File, bytes: &[u8]) -> Result<(), Errno> {
    file.write_all(bytes).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

fn refused(path: PathBuf, source: io::Error) -> LaunchError {
    LaunchError::OutputFile { path, source }
}
