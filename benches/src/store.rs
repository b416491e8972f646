//! Stores a run as JSON lines: the header first, then one line per launch.
//!
//! The harness appends a line when a launch has ended, so an interrupted run keeps its results. The error for a file that
//! cannot be read names the line.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{FORMAT, Header, Launch, Run};

/// Why a file cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refused the write.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The system refused the read, or the file is not text.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file has another format version.
    #[error("{}: format {format}; this program reads {FORMAT}: measure again", path.display())]
    Format {
        /// The path of the file.
        path: PathBuf,
        /// Its version.
        format: u64,
    },
    /// A line is not JSON or has the wrong fields.
    #[error("{}, line {line}: not a line of mpj-bench --json: {source}", path.display())]
    Line {
        /// The path of the file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong.
        source: serde_json::Error,
    },
}

/// Writes a run launch by launch.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    file: File,
}

impl Writer {
    /// Creates the file, or replaces an existing one.
    ///
    /// # Errors
    /// [`StoreError::Write`].
    pub fn create(path: &Path, header: &Header) -> Result<Self, StoreError> {
        let failed = |source| StoreError::Write { path: path.to_owned(), source };
        let mut writer = Self { path: path.to_owned(), file: File::create(path).map_err(failed)? };
        writer.line(header)?;
        Ok(writer)
    }

    /// Writes a launch; it is in the file when this returns.
    ///
    /// # Errors
    /// [`StoreError::Write`].
    pub fn append(&mut self, launch: &Launch) -> Result<(), StoreError> {
        self.line(launch)
    }

    /// Writes the whole line in one call, so that an interruption leaves whole lines.
    fn line(&mut self, entry: &impl Serialize) -> Result<(), StoreError> {
        let mut line = serde_json::to_string(entry).expect("texts and numbers have a form in JSON");
        line.push('\n');
        let written = self.file.write_all(line.as_bytes());
        written.map_err(|source| StoreError::Write { path: self.path.clone(), source })
    }
}

/// Reads a file.
///
/// # Errors
/// All but [`StoreError::Write`].
pub fn read(path: &Path) -> Result<Run, StoreError> {
    let failed = |source| StoreError::Read { path: path.to_owned(), source };
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let wrong = |line| move |source| StoreError::Line { path: path.to_owned(), line, source };
    let (first, launches) = text.split_once('\n').unwrap_or((&text, ""));
    // The version is checked first: a header of another format may have other fields.
    let header: Value = serde_json::from_str(first).map_err(wrong(1))?;
    if let Some(format) = header["format"].as_u64().filter(|it| *it != u64::from(FORMAT)) {
        return Err(StoreError::Format { path: path.to_owned(), format });
    }
    let header = Header::deserialize(header).map_err(wrong(1))?;
    let launch = |(line, number)| serde_json::from_str(line).map_err(wrong(number));
    let launches = launches.lines().zip(2..).map(launch).collect::<Result<_, _>>()?;
    Ok(Run { header, launches })
}
