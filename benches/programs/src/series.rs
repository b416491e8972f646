//! Everything that is measured, by name: what it is, over what, in which unit.

use std::fmt;

/// One kind of figure.
#[derive(Debug, PartialEq, Eq)]
pub struct Series {
    /// Its name in files: letters, digits and `-`.
    pub id: &'static str,
    /// Its name for readers.
    pub title: &'static str,
    /// What it is measured over.
    pub x: X,
    /// Its unit.
    pub unit: Unit,
    /// Which end is the good one.
    pub better: Better,
}

/// What a figure is measured over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum X {
    /// The length of a message in bytes.
    Bytes,
    /// How many other messages or receives wait in the queue.
    Depth,
    /// The order N of N x N matrices.
    Order,
    /// The number of ranks of the job.
    Ranks,
}

/// Units of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// 10^-6 s.
    Microseconds,
    /// 10^-3 s.
    Milliseconds,
    /// 10^6 bytes per second.
    MegabytesPerSecond,
    /// 10^6 messages per second.
    MillionPerSecond,
    /// 10^9 floating-point operations per second.
    Gflops,
    /// Hundredths.
    Percent,
}

/// Which of two figures is the better one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// The lower.
    Lower,
    /// The higher.
    Higher,
}

impl X {
    /// The head of a column: `Size`.
    pub fn head(self) -> &'static str {
        match self {
            Self::Bytes => "Size",
            Self::Depth => "Depth",
            Self::Order => "N",
            Self::Ranks => "Ranks",
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Microseconds => "us",
            Self::Milliseconds => "ms",
            Self::MegabytesPerSecond => "MB/s",
            Self::MillionPerSecond => "M/s",
            Self::Gflops => "GFLOP/s",
            Self::Percent => "%",
        })
    }
}

const fn row(id: &'static str, title: &'static str, x: X, unit: Unit, better: Better) -> Series {
    Series { id, title, x, unit, better }
}

/// All series, in the order in which they are shown.
pub const SERIES: &[Series] = &[
    row("latency", "Latency", X::Bytes, Unit::Microseconds, Better::Lower),
    row("bandwidth", "Bandwidth", X::Bytes, Unit::MegabytesPerSecond, Better::Higher),
    row("bibw", "Bidirectional bandwidth", X::Bytes, Unit::MegabytesPerSecond, Better::Higher),
    row(
        "latency-allocated",
        "Latency, allocated memory",
        X::Bytes,
        Unit::Microseconds,
        Better::Lower,
    ),
    row(
        "bandwidth-allocated",
        "Bandwidth, allocated memory",
        X::Bytes,
        Unit::MegabytesPerSecond,
        Better::Higher,
    ),
    row(
        "bibw-allocated",
        "Bidirectional bandwidth, allocated memory",
        X::Bytes,
        Unit::MegabytesPerSecond,
        Better::Higher,
    ),
    row("rate", "Message rate", X::Bytes, Unit::MillionPerSecond, Better::Higher),
    row("overlap", "Overlap of send and computation", X::Bytes, Unit::Percent, Better::Higher),
    row(
        "overlap-allocated",
        "Overlap of send and computation, allocated memory",
        X::Bytes,
        Unit::Percent,
        Better::Higher,
    ),
    row("wakeup", "Send to a blocked rank", X::Bytes, Unit::Microseconds, Better::Lower),
    row("wakeup-cpu", "Processor time while blocked", X::Bytes, Unit::Percent, Better::Lower),
    row(
        "matching-posted",
        "Match behind posted receives",
        X::Depth,
        Unit::Microseconds,
        Better::Lower,
    ),
    row(
        "matching-posted-any",
        "Match behind posted wildcard receives",
        X::Depth,
        Unit::Microseconds,
        Better::Lower,
    ),
    row(
        "matching-early",
        "Match behind early messages",
        X::Depth,
        Unit::Microseconds,
        Better::Lower,
    ),
    row(
        "matching-early-any",
        "Wildcard match behind early messages",
        X::Depth,
        Unit::Microseconds,
        Better::Lower,
    ),
    row("startup", "Job start, empty program, end", X::Ranks, Unit::Milliseconds, Better::Lower),
    row("barrier", "Barrier", X::Ranks, Unit::Microseconds, Better::Lower),
    row("bcast", "Broadcast", X::Bytes, Unit::Microseconds, Better::Lower),
    row("allreduce", "Allreduce", X::Bytes, Unit::Microseconds, Better::Lower),
    row("alltoall", "All-to-all", X::Bytes, Unit::Microseconds, Better::Lower),
    row("matrix-f32", "Ping-pong of N x N f32", X::Order, Unit::Microseconds, Better::Lower),
    row("matrix-f64", "Ping-pong of N x N f64", X::Order, Unit::Microseconds, Better::Lower),
    row("cannon", "Cannon's multiplication", X::Order, Unit::Gflops, Better::Higher),
    row("cannon-share", "Cannon: share of communication", X::Order, Unit::Percent, Better::Lower),
    row("summa", "SUMMA multiplication", X::Order, Unit::Gflops, Better::Higher),
    row("summa-share", "SUMMA: share of communication", X::Order, Unit::Percent, Better::Lower),
    row("transpose", "Transpose of N x N f64", X::Order, Unit::Microseconds, Better::Lower),
    row("laplace", "Laplace 512 x 512, red-black", X::Ranks, Unit::Gflops, Better::Higher),
    row("laplace-share", "Laplace: share of communication", X::Ranks, Unit::Percent, Better::Lower),
    row("diffusion", "Diffusion 64 x 64 x 64", X::Ranks, Unit::Gflops, Better::Higher),
    row(
        "diffusion-share",
        "Diffusion: share of communication",
        X::Ranks,
        Unit::Percent,
        Better::Lower,
    ),
    row("flow", "Inviscid flow 256 x 256", X::Ranks, Unit::Gflops, Better::Higher),
    row("flow-share", "Flow: share of communication", X::Ranks, Unit::Percent, Better::Lower),
];

impl Series {
    /// The series of this name.
    pub fn named(id: &str) -> Option<&'static Series> {
        SERIES.iter().find(|series| series.id == id)
    }

    /// Whether it says which part of another series was spent on communication.
    pub fn share_of(&self) -> Option<&'static Series> {
        Self::named(self.id.strip_suffix("-share")?)
    }
}
