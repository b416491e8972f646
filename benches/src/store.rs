//! Stores a run as JSON lines: the header first, then one line per launch.
//!
//! The harness appends a line when a launch has ended, so an interrupted run keeps its results.
//! Files are untrusted: everything is checked, and the error for an invalid file names the line.

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

/// The largest accepted figure, in any unit.
pub const MAX_FIGURE: f64 = 1e18;

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
    /// The launch would make the file unreadable. Nothing was written.
    #[error("a launch of {runtime} was not written to {}: {problem}", path.display())]
    Refused {
        /// The path of the file.
        path: PathBuf,
        /// The runtime of the launch, [`Launch::runtime`].
        runtime: String,
        /// The rule that it breaks.
        problem: Problem,
    },
    /// A line breaks a rule.
    #[error("{}, {source}", path.display())]
    Line {
        /// The path of the file.
        path: PathBuf,
        /// The line and the rule.
        source: LineError,
    },
}

/// The first line of a text that breaks a rule.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct LineError {
    /// The number of the line, from 1.
    pub line: usize,
    /// The rule that it breaks.
    pub problem: Problem,
}

/// The possible problems of a line.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The header is missing.
    #[error("the file is empty; it was not written by mpj-bench --json")]
    Empty,
    /// The line is not JSON or has the wrong fields.
    #[error("not a line of mpj-bench --json: {0}")]
    NotOurs(String),
    /// The last line is incomplete.
    #[error("cut short; delete this line to use the ones before it")]
    CutShort,
    /// The file has another format version.
    #[error("format {0}; this program reads {FORMAT}, since buffers are rewritten: measure again")]
    Format(u64),
    /// The runtime is not in the header, or this version does not know the series.
    #[error(
        "nothing is called `{0}`: neither a runtime of the header nor a series of this version"
    )]
    Unknown(String),
    /// No measurement gives this number.
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
    /// Creates the file, or replaces an existing one.
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
    /// [`StoreError::Write`]; [`StoreError::Refused`] for a launch that would make the file
    /// unreadable. Further launches can be written after that.
    pub fn append(&mut self, launch: &Launch) -> Result<(), StoreError> {
        check_launch(launch, &self.header).map_err(|problem| {
            let (path, runtime) = (self.path.clone(), launch.runtime.clone());
            StoreError::Refused { path, runtime, problem }
        })?;
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
/// [`StoreError::Read`], [`StoreError::Line`].
pub fn read(path: &Path) -> Result<Run, StoreError> {
    let failed = |source| StoreError::Read { path: path.to_owned(), source };
    let text = std::fs::read_to_string(path).map_err(failed)?;
    parse(&text).map_err(|source| StoreError::Line { path: path.to_owned(), source })
}

/// Parses the text of a file.
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
    // The version is checked first: a header of another format may have other fields.
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
    // Keeps the column of the error; the line is always 1.
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
