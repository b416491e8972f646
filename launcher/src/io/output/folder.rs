//! The files of `--output dir=D`: `D/rank.N.stdout` and `D/rank.N.stderr`, with the unchanged bytes of the streams.
//!
//! They are regular files: opening or writing a pipe could block.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use rustix::io::Errno;

use crate::LaunchError;

/// Creates the two files of `rank` in a folder, and the folder if it is missing. Files of an earlier job are emptied.
pub(crate) fn files_of(folder: &Path, rank: usize) -> Result<[File; 2], LaunchError> {
    let refused = |path: &Path| {
        let path = path.to_owned();
        |source| LaunchError::OutputFile { path, source }
    };
    fs::create_dir_all(folder).map_err(refused(folder))?;
    let [out, err] = ["stdout", "stderr"].map(|stream| {
        let path = folder.join(format!("rank.{rank}.{stream}"));
        create_regular(&path).map_err(refused(&path))
    });
    Ok([out?, err?])
}

fn create_regular(path: &Path) -> io::Result<File> {
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    File::create(path)
}

/// Writes `bytes` to a file of the folder.
pub(crate) fn write_file(mut file: &File, bytes: &[u8]) -> Result<(), Errno> {
    file.write_all(bytes).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}
