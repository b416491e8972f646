//! What a worker answers: one record per line, in JSON, behind a mark, since launchers and libraries
//! print lines of their own between them.

use serde::{Deserialize, Serialize};

use crate::series::Series;

/// What a line of a worker begins with.
pub const MARK: &str = "@mpj-bench ";

/// One line of a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// The job runs; first of all.
    Library(Library),
    /// The program has come to a point that is worth showing: what it measures now.
    Progress(String),
    /// Measured figures.
    Sample(Sample),
    /// A point of this series, at this x, without figures: storing and reading the buffers alone took
    /// about as long as all together, so that the difference says nothing.
    Unclear(String, u64),
    /// All is measured and every payload was right; last of all.
    Complete,
    /// The program could not go on.
    Failed(String),
}

/// What a library says of itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Library {
    /// Its name and version.
    pub name: String,
    /// How many ranks the job has.
    pub ranks: usize,
    /// Message sizes up to which (inclusive) messages travel in one way, and how longer ones do.
    pub thresholds: Vec<(usize, String)>,
    /// What else a reader of figures should know, as pairs of name and value.
    pub facts: Vec<(String, String)>,
}

/// The figures of one launch for one point of a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// [`Series::id`].
    pub series: String,
    /// What the series is over: bytes, depth, order or ranks.
    pub x: u64,
    /// The raw figures in the unit of the series, in the order in which they were measured.
    pub values: Vec<f64>,
    /// The raw cache-line time between ranks 0 and 1 just before and just after, in nanoseconds one
    /// way, where ranks stay on processors of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<(f64, f64)>,
}

impl Sample {
    /// Figures of `series` at `x`.
    pub fn new(series: &Series, x: usize, values: Vec<f64>) -> Self {
        Self { series: series.id.to_owned(), x: x as u64, values, raw: None }
    }
}

impl Record {
    /// The line, without its end.
    pub fn line(&self) -> String {
        let json = serde_json::to_string(self).expect("texts and numbers have a form in JSON");
        format!("{MARK}{json}")
    }

    /// The record of a line, `None` for a line that is somebody else's.
    ///
    /// # Errors
    /// A marked line that is no record.
    pub fn of_line(line: &str) -> Option<Result<Self, serde_json::Error>> {
        // A launcher may have put a label before it.
        let (_, json) = line.split_once(MARK)?;
        Some(serde_json::from_str(json))
    }
}
