//! The output of a worker: JSON records, one per line, each behind a mark, since launchers and
//! libraries print lines in between.

use serde::{Deserialize, Serialize};

use crate::series::Series;

/// The mark at the start of a record's line.
pub const MARK: &str = "@mpj-bench ";

/// One record of a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// The job runs. This is the first record.
    Library(Library),
    /// Measured figures.
    Sample(Sample),
    /// A point, as series and x, without figures: storing and reading the buffers alone took about
    /// as long as the whole measurement, so the difference is meaningless.
    Unclear(String, u64),
    /// All is measured and every payload was right. This is the last record.
    Complete,
    /// The program could not continue.
    Failed(String),
}

/// The facts that a library reports about itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Library {
    /// The number of ranks of the job.
    pub ranks: usize,
    /// The largest message size (inclusive) of each protocol or algorithm, and what longer messages
    /// use.
    pub thresholds: Vec<(usize, String)>,
    /// Other facts for readers of the figures, as pairs of name and value.
    pub facts: Vec<(String, String)>,
}

/// The figures of one launch for one point of a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The name of the series, [`Series::id`].
    pub series: String,
    /// The point: bytes, order or ranks.
    pub x: u64,
    /// The raw figures in the unit of the series, in measurement order.
    pub values: Vec<f64>,
    /// The raw cache-line times between ranks 0 and 1 just before and just after, in nanoseconds
    /// one way; only if ranks are pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<(f64, f64)>,
}

impl Sample {
    /// Creates a sample of `series` at `x`.
    pub fn new(series: &Series, x: usize, values: Vec<f64>) -> Self {
        Self { series: series.id.to_owned(), x: x as u64, values, raw: None }
    }
}

impl Record {
    /// Formats the record as a line without its end.
    pub fn line(&self) -> String {
        let json = serde_json::to_string(self).expect("texts and numbers have a form in JSON");
        format!("{MARK}{json}")
    }

    /// Parses the record of a line; `None` for lines of other programs.
    ///
    /// # Errors
    /// The line has the mark but no valid record.
    pub fn of_line(line: &str) -> Option<Result<Self, serde_json::Error>> {
        // A launcher may prefix the line with a label.
        let (_, json) = line.split_once(MARK)?;
        Some(serde_json::from_str(json))
    }
}
