//! The results of a run: the header, and one entry per launch. The JSON file holds them line by
//! line; tables, page and results are made from them.

use mpj_bench_programs::Sample;
use serde::{Deserialize, Serialize};

/// The version of the file format; files of other versions are refused.
pub const FORMAT: u32 = 2;
/// The name of the fact that holds the model of the processor.
pub const PROCESSOR: &str = "processor";
/// The [`RuntimeInfo::id`] of mpj as its own peer.
pub const SELF: &str = "self";
/// The [`RuntimeInfo::id`] of libfabric without an MPI.
pub const FABRIC: &str = "fabric";
/// Two processors share a cache if the raw cache-line time is below this many nanoseconds.
pub const NEAR_BELOW: f64 = 120.0;

/// All results of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The header.
    pub header: Header,
    /// The launches in the order of their execution.
    pub launches: Vec<Launch>,
}

/// The description of a run: the first line of its file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The file format, [`FORMAT`].
    pub format: u32,
    /// The command line.
    pub command: String,
    /// The start of the run: UTC, ISO 8601.
    pub started: String,
    /// Facts about the machine, as pairs of name and value.
    pub machine: Vec<(String, String)>,
    /// The compared runtimes, in the order of the columns.
    pub runtimes: Vec<RuntimeInfo>,
    /// Message sizes at which a runtime changes its protocol or algorithm.
    pub thresholds: Vec<Threshold>,
    /// The planned rounds; each launches every runtime and configuration once. More are added where
    /// the processor distance changes too often.
    pub rounds: usize,
}

impl Header {
    /// Returns the model of the processor.
    pub fn processor(&self) -> &str {
        let fact = self.machine.iter().find(|(name, _)| name == PROCESSOR);
        fact.map_or("an unknown processor", |(_, model)| model)
    }
}

/// One of the compared runtimes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuntimeInfo {
    /// Its name in files and on the command line: `auto`, `openmpi`.
    pub id: String,
    /// Its name for readers: `mpj auto`, `Open MPI 4.1.4`.
    pub label: String,
    /// Whether it belongs to this project; all others are peers.
    pub ours: bool,
}

/// The largest message size (inclusive) of one protocol or algorithm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Threshold {
    /// The size in bytes.
    pub bytes: usize,
    /// What changes above it.
    pub what: String,
}

/// One start of one runtime: the unit of the statistics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// Its round, from 0. Ratios pair launches of the same or neighbouring rounds.
    pub round: usize,
    /// The [`RuntimeInfo::id`] of its runtime.
    pub runtime: String,
    /// The benchmarks that it ran: `matrix`, `latency-cold`; `latency, bandwidth` for several.
    pub benchmark: String,
    /// The number of ranks.
    pub ranks: usize,
    /// Whether there were more ranks than processors.
    pub oversubscribed: bool,
    /// The raw cache-line times just before and just after it, in nanoseconds one way. `None` on a
    /// machine with one processor.
    pub raw: Option<(f64, f64)>,
    /// Seconds from start to end.
    pub seconds: f64,
    /// The reason for a failed launch. Its samples are valid nevertheless.
    pub failure: Option<String>,
    /// The measured samples.
    pub samples: Vec<Sample>,
    /// The points without figures, as series and x, because storing and reading the buffers alone
    /// took about as long as the whole measurement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unclear: Vec<(String, u64)>,
}

/// The distance of the two processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// They share a cache.
    Near,
    /// They do not share a cache.
    Far,
}

impl Distance {
    /// Returns the distance that a raw cache-line time indicates.
    pub fn of(nanoseconds: f64) -> Self {
        if nanoseconds < NEAR_BELOW { Self::Near } else { Self::Far }
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Far => "far",
        }
    }
}

/// The processor distances seen during a launch or a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// The same distance before and after.
    One(Distance),
    /// The distance changed.
    Both,
    /// The distance does not matter: ranks are not pinned, or there is only one processor.
    Any,
}

impl Sight {
    /// Derives it from the raw cache-line times before and after.
    pub fn of(raw: Option<(f64, f64)>) -> Self {
        let distances = raw.map(|(before, after)| (Distance::of(before), Distance::of(after)));
        match distances {
            Some((before, after)) if before == after => Self::One(before),
            Some(_) => Self::Both,
            None => Self::Any,
        }
    }
}

impl Launch {
    /// Returns what a sample saw, by its own raw times if it has them, otherwise by those of the
    /// launch.
    pub fn sight(&self, sample: &Sample) -> Sight {
        let matters = self.ranks > 1 && !self.oversubscribed && sample.series != "startup";
        Sight::of(sample.raw.or(self.raw).filter(|_| matters))
    }
}
