//! What a run of the harness measured: the header, and one entry per launch. It is what the JSON file
//! holds line by line, and all that tables, page and results are made from.

use mpj_bench_programs::Sample;
use serde::{Deserialize, Serialize};

/// The format of the files; a file with another number is refused.
pub const FORMAT: u32 = 2;
/// The name of the fact that is the model of the processor.
pub const PROCESSOR: &str = "processor";
/// [`RuntimeInfo::id`] of mpj as its own peer.
pub const SELF: &str = "self";
/// A raw cache-line time below this many nanoseconds means that the two processors share a cache.
pub const NEAR_BELOW: f64 = 120.0;

/// Everything that one run measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// About the run.
    pub header: Header,
    /// The launches in the order in which they were made.
    pub launches: Vec<Launch>,
}

/// About a run: the first line of its file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// [`FORMAT`].
    pub format: u32,
    /// The command line.
    pub command: String,
    /// When it started: UTC, ISO 8601.
    pub started: String,
    /// What the machine is, as pairs of name and value for readers.
    pub machine: Vec<(String, String)>,
    /// What is compared, in the order of the columns.
    pub runtimes: Vec<RuntimeInfo>,
    /// Message sizes at which a runtime changes its way.
    pub thresholds: Vec<Threshold>,
    /// Rounds that were planned; each has one launch of every runtime and configuration. More are added
    /// where the machine changes its face too often.
    pub rounds: usize,
}

impl Header {
    /// The model of the processor.
    pub fn processor(&self) -> &str {
        let fact = self.machine.iter().find(|(name, _)| name == PROCESSOR);
        fact.map_or("an unknown processor", |(_, model)| model)
    }
}

/// One of the things that are compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuntimeInfo {
    /// Its name in files and on the command line: `auto`, `openmpi`.
    pub id: String,
    /// Its name for readers: `mpj auto`, `Open MPI 4.1.4`.
    pub label: String,
    /// Whether it is this project's; all others are peers.
    pub ours: bool,
}

/// A message size up to which (inclusive) messages travel in one way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Threshold {
    /// The size.
    pub bytes: usize,
    /// What changes above it.
    pub what: String,
}

/// One start of one runtime: the unit of the statistics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// Its round, from 0. Ratios are made of launches of the same round or of neighbouring ones.
    pub round: usize,
    /// [`RuntimeInfo::id`].
    pub runtime: String,
    /// What it ran: `matrix`, `latency-allocated`; `latency, bandwidth` if it ran several, one after the
    /// other.
    pub benchmark: String,
    /// How many ranks.
    pub ranks: usize,
    /// Whether there were more ranks than processors.
    pub oversubscribed: bool,
    /// The raw cache-line time just before and just after it, in nanoseconds one way. `None` on a
    /// machine with one processor.
    pub raw: Option<(f64, f64)>,
    /// Seconds from start to end.
    pub seconds: f64,
    /// Why it did not come to its end, if so. Its samples are right nevertheless.
    pub failure: Option<String>,
    /// What it measured.
    pub samples: Vec<Sample>,
    /// The points without figures, series and x, since storing and reading the buffers alone took about
    /// as long as all together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unclear: Vec<(String, u64)>,
}

/// How close the two processors were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Face {
    /// They share a cache.
    Near,
    /// They do not.
    Far,
}

impl Face {
    /// The face that a raw cache-line time shows.
    pub fn of(nanoseconds: f64) -> Self {
        if nanoseconds < NEAR_BELOW { Self::Near } else { Self::Far }
    }

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Far => "far",
        }
    }
}

/// What a launch or a figure saw of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// One face, before and after.
    One(Face),
    /// The machine changed its face.
    Both,
    /// It does not matter, since ranks stay on no processors of their own, or there is but one.
    Any,
}

impl Sight {
    /// What raw cache-line times before and after something say.
    pub fn of(raw: Option<(f64, f64)>) -> Self {
        let faces = raw.map(|(before, after)| (Face::of(before), Face::of(after)));
        match faces {
            Some((before, after)) if before == after => Self::One(before),
            Some(_) => Self::Both,
            None => Self::Any,
        }
    }
}

impl Launch {
    /// What one of its samples saw: by its own raw times, or else by those of the launch.
    pub fn sight(&self, sample: &Sample) -> Sight {
        let matters = self.ranks > 1 && !self.oversubscribed && sample.series != "startup";
        Sight::of(sample.raw.or(self.raw).filter(|_| matters))
    }
}
