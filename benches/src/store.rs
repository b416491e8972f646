//! A run as a file: the header in the first line, one launch in each further one, as JSON.
//!
//! The harness appends a line when a launch has ended, so that a run that is interrupted keeps what it
//! has. What is read was perhaps written by somebody else: all is checked, and a file that breaks a
//! rule is refused with the number of the line.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use mpj_bench_programs::{Sample, Series};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::model::{FORMAT, Header, Launch, Run};

/// The largest figure that is accepted, in any unit.
pub const MAX_FIGURE: f64 = 1e18;

/// Why a file cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system does not let us write.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The system does not let us read, or it is no text.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A launch that could not be read again. Nothing was written.
    #[error("a launch of {runtime} was not written to {}: {problem}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// [`Launch::runtime`].
        runtime: String,
        /// Which rule it breaks.
        problem: Problem,
    },
    /// A line that breaks a rule.
    #[error("{}, {source}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, and which rule.
        source: LineError,
    },
}

/// The first line of a text that breaks a rule.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct LineError {
    /// Its number, from 1.
    pub line: usize,
    /// Which rule.
    pub problem: Problem,
}

/// What can be wrong with a line.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// There is no header.
    #[error("the file is empty; it was not written by mpj-bench --json")]
    Empty,
    /// Not JSON, or not the fields that belong there.
    #[error("not a line of mpj-bench --json: {0}")]
    NotOurs(String),
    /// The end of the file is missing.
    #[error("cut short; delete this line to use the ones before it")]
    CutShort,
    /// Of another version.
    #[error("format {0}; this program reads {FORMAT}, since buffers are rewritten: measure again")]
    Format(u64),
    /// A runtime that the header lacks, or a series that this version does not know.
    #[error(
        "nothing is called `{0}`: neither a runtime of the header nor a series of this version"
    )]
    Unknown(String),
    /// A number that no measurement gives.
    #[error("{what} is {value}; it has to be from 0 to {MAX_FIGURE:e}")]
    Figure {
        /// The field or series.
        what: String,
        /// The number.
        value: f64,
    },
}

/// Writes a run launch by launch.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    file: File,
    header: Header,
}

impl Writer {
    /// Begins the file; one that is there is replaced.
    ///
    /// # Errors
    /// [`StoreError::Write`].
    pub fn create(path: &Path, header: &Header) -> Result<Self, StoreError> {
        let failed = |source| StoreError::Write { path: path.to_owned(), source };
        let file = File::create(path).map_err(failed)?;
        let mut writer = Self { path: path.to_owned(), file, header: header.clone() };
        writer.line(header)?;
        Ok(writer)
    }

    /// Writes a launch; it is in the file when this returns.
    ///
    /// # Errors
    /// [`StoreError::Write`]; [`StoreError::Refused`] for a launch that would make the file unreadable,
    /// after which further launches can be written.
    pub fn append(&mut self, launch: &Launch) -> Result<(), StoreError> {
        check_launch(launch, &self.header).map_err(|problem| {
            let (path, runtime) = (self.path.clone(), launch.runtime.clone());
            StoreError::Refused { path, runtime, problem }
        })?;
        self.line(launch)
    }

    /// One call for the whole line, so that an interruption leaves whole lines.
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
/// [`StoreError::Read`], [`StoreError::Line`].
pub fn read(path: &Path) -> Result<Run, StoreError> {
    let failed = |source| StoreError::Read { path: path.to_owned(), source };
    let text = std::fs::read_to_string(path).map_err(failed)?;
    parse(&text).map_err(|source| StoreError::Line { path: path.to_owned(), source })
}

/// Reads the text of a file.
///
/// # Errors
/// The first line that breaks a rule.
pub fn parse(text: &str) -> Result<Run, LineError> {
    let mut lines = text.lines().enumerate();
    let (_, first) = lines.next().ok_or(LineError { line: 1, problem: Problem::Empty })?;
    let is_last = |index: usize| index + 1 == text.lines().count();
    let at = |index: usize, problem| {
        let is_cut = matches!(problem, Problem::NotOurs(_)) && !text.ends_with('\n');
        let problem = if is_cut && is_last(index) { Problem::CutShort } else { problem };
        LineError { line: index + 1, problem }
    };
    let header = header(first).map_err(|problem| at(0, problem))?;
    let launches =
        lines.map(|(index, line)| launch(line, &header).map_err(|problem| at(index, problem)));
    let launches = launches.collect::<Result<_, _>>()?;
    Ok(Run { header, launches })
}

fn header(line: &str) -> Result<Header, Problem> {
    // The number first: a header of another format may have other fields.
    let value: Value = json(line)?;
    match value.get("format").and_then(Value::as_u64) {
        Some(number) if number != u64::from(FORMAT) => return Err(Problem::Format(number)),
        _ => {}
    }
    json(line)
}

fn launch(line: &str, header: &Header) -> Result<Launch, Problem> {
    let launch = json(line)?;
    check_launch(&launch, header)?;
    Ok(launch)
}

fn json<T: DeserializeOwned>(line: &str) -> Result<T, Problem> {
    // The column is of use, the line is always 1.
    let text =
        |error: serde_json::Error| error.to_string().replace(" at line 1 column", " at column");
    serde_json::from_str(line).map_err(|error| Problem::NotOurs(text(error)))
}

fn check_launch(launch: &Launch, header: &Header) -> Result<(), Problem> {
    if !header.runtimes.iter().any(|runtime| runtime.id == launch.runtime) {
        return Err(Problem::Unknown(launch.runtime.clone()));
    }
    check_figure("seconds", launch.seconds)?;
    if let Some((before, after)) = launch.raw {
        check_figure("raw", before)?;
        check_figure("raw", after)?;
    }
    launch.unclear.iter().try_for_each(|(id, _)| check_series(id))?;
    launch.samples.iter().try_for_each(check_sample)
}

fn check_sample(sample: &Sample) -> Result<(), Problem> {
    let id = &sample.series;
    check_series(id)?;
    sample.values.iter().try_for_each(|&value| check_figure(id, value))
}

fn check_series(id: &str) -> Result<(), Problem> {
    Series::named(id).map(|_| ()).ok_or_else(|| Problem::Unknown(id.to_owned()))
}

fn check_figure(what: &str, value: f64) -> Result<(), Problem> {
    let is_one = (0.0..=MAX_FIGURE).contains(&value);
    if is_one { Ok(()) } else { Err(Problem::Figure { what: what.to_owned(), value }) }
}
