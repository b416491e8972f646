//! The file of tuned values: a TOML table, written by `cargo mpj tune` and read by the launcher once per job. No other
//! file knows the format.
//!
//! - TF1: a file is taken as a whole or refused: if it is damaged or incomplete, if it has unknown fields or values
//!   outside their limits, or if it belongs to another machine.
//! - TF2: a file that nobody named and that this user may not read is ignored with a note: it is another user's, found
//!   by a `HOME` that stayed the same when the user changed.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use transport_lapi::config::{
    self, Pieces, Protocol, Ranges, RangesError, Tuning, TuningError, TuningSource,
};

use crate::host::machine::Machine;

/// The format that this version reads and writes.
const FORMAT: u32 = 1;
/// Longest file, in bytes; written ones are a tenth as long.
const MAX_FILE: u64 = 16 << 10;
/// The first lines of a file.
const HEAD: &str = "\
# Values tuned to one machine, written by `cargo mpj tune`. `mpjrun --info` shows them; with MPJ_TUNING=none
# the built-in values are used.
";
/// The remedy for a file that is refused.
const REMEDY: &str = "measure again with `cargo mpj tune`, or set MPJ_TUNING=none for the built-in \
                      values";

/// The values in force, and the file that they come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tuned {
    /// The values.
    pub tuning: Tuning,
    /// The file; `None` for built-in values.
    pub file: Option<PathBuf>,
    /// Why a file is ignored, in one line (TF2).
    pub note: Option<String>,
}

/// Why a file was refused.
#[derive(Debug, thiserror::Error)]
#[error("tuning file {}: {problem}", path.display())]
pub struct TuningFileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    #[source]
    pub problem: Problem,
}

/// What is wrong with a file of tuned values.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The system refused to read it.
    #[error("cannot be read: {0}; {REMEDY}")]
    Read(io::Error),
    /// The system refused to write it.
    #[error("cannot be written: {0}; name another file with --output")]
    Write(io::Error),
    /// It is too long to be such a file.
    #[error("longer than {MAX_FILE} bytes; {REMEDY}")]
    TooLong,
    /// A line is not correct.
    #[error("line {line}: {what}; {REMEDY}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// It has the format of another version.
    #[error("format {0}, this version reads format {FORMAT}; {REMEDY}")]
    Format(i64),
    /// It was measured on another machine.
    #[error("measured on {there}, this is {here}; {REMEDY}")]
    Foreign {
        /// The machine it was measured on.
        there: Machine,
        /// This machine.
        here: Machine,
    },
    /// A value is outside its limits.
    #[error("{0}; {REMEDY}")]
    Value(#[from] TuningError),
}

/// The fields of a file. `bounds` are upper bounds of message sizes in bytes; there is one value more than bounds.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    format: u32,
    machine: Machine,
    protocols: Protocols,
    pieces: Cuts,
    wait: Wait,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Protocols {
    bounds: Vec<usize>,
    r#use: Vec<Word>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Eager,
    Rendezvous,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cuts {
    whole_up_to: usize,
    bounds: Vec<usize>,
    bytes: Vec<usize>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wait {
    spin: u32,
}

/// Returns the values that `source` names. They are the built-in ones for a user who has no file, or may not read it
/// (TF2).
///
/// # Errors
/// [`TuningFileError`] for a file that is refused (TF1), and for one that was named and is not there.
pub fn load(source: &TuningSource) -> Result<Tuned, TuningFileError> {
    let built_in = Tuned { tuning: Tuning::default(), file: None, note: None };
    let path = match source {
        TuningSource::BuiltIn => return Ok(built_in),
        TuningSource::File(path) => path.clone(),
        TuningSource::User => match config::user_tuning_file() {
            Some(path) => path,
            None => return Ok(built_in),
        },
    };
    match read(&path, &Machine::here()) {
        Ok(tuning) => Ok(Tuned { tuning, file: Some(path), note: None }),
        Err(Problem::Read(error)) if *source == TuningSource::User => {
            match error.kind() {
                // A link that leads nowhere was made for a file that is missing.
                ErrorKind::NotFound | ErrorKind::NotADirectory if !path.is_symlink() => {
                    Ok(built_in)
                }
                ErrorKind::PermissionDenied => {
                    Ok(Tuned { note: Some(ignored(&path, &error)), ..built_in })
                }
                _ => Err(TuningFileError { path, problem: Problem::Read(error) }),
            }
        }
        Err(problem) => Err(TuningFileError { path, problem }),
    }
}

fn ignored(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    format!("tuning file {path} cannot be read: {error}; the built-in values are used")
}

fn read(path: &Path, here: &Machine) -> Result<Tuning, Problem> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(Problem::Read)?;
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(Problem::Read)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(Problem::TooLong);
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        Problem::Line { line: line_at(before), what: "not text in UTF-8".to_owned() }
    })?;
    parse(&text, here)
}

/// Parses the text of a file for the machine `here`.
///
/// # Errors
/// [`Problem`]: the first rule that the text breaks.
pub fn parse(text: &str, here: &Machine) -> Result<Tuning, Problem> {
    let at = |error: toml::de::Error| line_of(text, error.span(), error.message());
    // The format first: another one may have other fields.
    let fields: toml::Table = toml::from_str(text).map_err(at)?;
    match fields.get("format").and_then(toml::Value::as_integer) {
        Some(format) if format != i64::from(FORMAT) => return Err(Problem::Format(format)),
        _ => {}
    }
    let Table { machine, protocols, pieces, wait, .. } = toml::from_str(text).map_err(at)?;
    if machine != *here {
        return Err(Problem::Foreign { there: machine, here: here.clone() });
    }
    let ranges = |field| move |source: RangesError| TuningError::Ranges { field, source };
    let words = protocols.r#use.into_iter().map(|word| match word {
        Word::Eager => Protocol::Eager,
        Word::Rendezvous => Protocol::Rendezvous,
    });
    let protocols = Ranges::new(protocols.bounds, words.collect()).map_err(ranges("protocols"))?;
    let sizes = Ranges::new(pieces.bounds, pieces.bytes).map_err(ranges("pieces"))?;
    let pieces = Pieces::new(pieces.whole_up_to, sizes)?;
    Ok(Tuning::new(protocols, pieces, wait.spin)?)
}

fn line_of(text: &str, span: Option<Range<usize>>, what: &str) -> Problem {
    // A missing field has no place; the end is named for it.
    let at = span.filter(|span| !span.is_empty()).map_or(text.len(), |span| span.start);
    let line = line_at(&text.as_bytes()[..at.min(text.len())]);
    Problem::Line { line, what: what.replace('\n', ", ") }
}

/// The number of the line that follows these bytes.
fn line_at(before: &[u8]) -> usize {
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

/// Returns the text of the file for `tuning`, measured on `machine`.
pub fn text(tuning: &Tuning, machine: &Machine) -> String {
    let words = tuning.protocols().values().iter().map(|protocol| match protocol {
        Protocol::Eager => Word::Eager,
        Protocol::Rendezvous => Word::Rendezvous,
    });
    let sizes = tuning.pieces().sizes();
    let table = Table {
        format: FORMAT,
        machine: machine.clone(),
        protocols: Protocols {
            bounds: tuning.protocols().bounds().to_vec(),
            r#use: words.collect(),
        },
        pieces: Cuts {
            whole_up_to: tuning.pieces().whole(),
            bounds: sizes.bounds().to_vec(),
            bytes: sizes.values().to_vec(),
        },
        wait: Wait { spin: tuning.spin() },
    };
    let table = toml::to_string(&table).expect("numbers below 2^31 and texts have a form in TOML");
    format!("{HEAD}{table}")
}

/// Writes the file for `tuning`, measured on `machine`, and creates its folder if it is missing. An existing file is
/// replaced as a whole.
///
/// # Errors
/// [`Problem::Write`].
pub fn write(path: &Path, tuning: &Tuning, machine: &Machine) -> Result<(), TuningFileError> {
    let failed =
        |source| TuningFileError { path: path.to_owned(), problem: Problem::Write(source) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let written = File::create(&beside)
        .and_then(|mut file| file.write_all(text(tuning, machine).as_bytes()))
        .and_then(|()| fs::rename(&beside, path));
    written.map_err(|error| {
        // An incomplete file is of no use; the first error is the one to report.
        let _ = fs::remove_file(&beside);
        failed(error)
    })
}

#[cfg(test)]
mod tests;
