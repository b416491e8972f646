//! All measured quantities by name, with what they are measured over and their units.

use std::fmt;

/// One kind of figure.
#[derive(Debug, PartialEq, Eq)]
pub struct Series {
    /// Its name in files: letters, digits and `-`.
    pub id: &'static str,
    /// Its name for readers.
    pub title: &'static str,
    /// The quantity it is measured over.
    pub x: X,
    /// Its unit.
    pub unit: Unit,
    /// Whether lower or higher figures are better.
    pub better: Better,
}

/// The quantity that figures are measured over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum X {
    /// The length of a message in bytes.
    Bytes,
    /// The order N of N x N matrices.
    Order,
    /// The number of ranks of the job.
    Ranks,
    /// The time that a rank has been blocked, in microseconds.
    Blocked,
    /// The number of contexts that a rank uses.
    Contexts,
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
    /// Percent.
    Percent,
    /// A multiple of another figure of the same launch.
    Times,
}

/// Whether lower or higher figures are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Lower figures are better.
    Lower,
    /// Higher figures are better.
    Higher,
}

impl X {
    /// Returns the head of a column: `Size`.
    pub fn head(self) -> &'static str {
        match self {
            Self::Bytes => "Size",
            Self::Order => "N",
            Self::Ranks => "Ranks",
            Self::Blocked => "Blocked",
            Self::Contexts => "Contexts",
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
            Self::Times => "times",
        })
    }
}

impl Unit {
    /// Returns whether the unit relates to another figure: a ratio of two such figures is
    /// meaningless.
    pub fn is_relative(self) -> bool {
        matches!(self, Self::Percent | Self::Times)
    }
}

const fn row(id: &'static str, title: &'static str, x: X, unit: Unit, better: Better) -> Series {
    Series { id, title, x, unit, better }
}

/// A time over message sizes.
const fn time(id: &'static str, title: &'static str) -> Series {
    row(id, title, X::Bytes, Unit::Microseconds, Better::Lower)
}

/// A bandwidth over message sizes.
const fn speed(id: &'static str, title: &'static str) -> Series {
    row(id, title, X::Bytes, Unit::MegabytesPerSecond, Better::Higher)
}

/// A message rate.
const fn rate(id: &'static str, title: &'static str) -> Series {
    row(id, title, X::Bytes, Unit::MillionPerSecond, Better::Higher)
}

/// A time over orders of matrices.
const fn matrix(id: &'static str, title: &'static str) -> Series {
    row(id, title, X::Order, Unit::Microseconds, Better::Lower)
}

/// The speed of a computation.
const fn gflops(id: &'static str, title: &'static str, x: X) -> Series {
    row(id, title, x, Unit::Gflops, Better::Higher)
}

/// The share of time that was not spent on computing.
const fn share(id: &'static str, title: &'static str, x: X) -> Series {
    row(id, title, x, Unit::Percent, Better::Lower)
}

/// All series in display order. Those of rewritten buffers, on which claims are based, come first.
pub const SERIES: &[Series] = &[
    time("latency", "Latency, rewritten"),
    speed("bandwidth", "Bandwidth, rewritten"),
    speed("bibw", "Bidirectional bandwidth, rewritten"),
    rate("rate", "Message rate, rewritten"),
    time("latency-unchanged", "Latency, unchanged"),
    speed("bandwidth-unchanged", "Bandwidth, unchanged"),
    speed("bibw-unchanged", "Bidirectional bandwidth, unchanged"),
    rate("rate-unchanged", "Message rate, unchanged"),
    time("latency-cold", "Latency, cold"),
    speed("bandwidth-cold", "Bandwidth, cold"),
    speed("bibw-cold", "Bidirectional bandwidth, cold"),
    rate("rate-cold", "Message rate, cold"),
    time("overlap-alone", "Transfer beside no computation"),
    time("overlap-send", "Send, computation, wait"),
    time("overlap-receive", "Receive, computation, wait"),
    row("wakeup", "Send to a blocked rank", X::Blocked, Unit::Microseconds, Better::Lower),
    row("wakeup-cpu", "Processor time while blocked", X::Blocked, Unit::Percent, Better::Lower),
    row("startup", "Job start, empty program, end", X::Ranks, Unit::Milliseconds, Better::Lower),
    row("barrier", "Barrier", X::Ranks, Unit::Microseconds, Better::Lower),
    time("bcast", "Broadcast"),
    time("reduce", "Reduce"),
    time("allreduce", "Allreduce"),
    time("gather", "Gather"),
    time("scatter", "Scatter"),
    time("allgather", "Allgather"),
    time("alltoall", "All-to-all"),
    time("rma-put-flush", "Put, flush"),
    time("rma-put-lock", "Put, lock and unlock"),
    time("rma-put-fence", "Put, two fences"),
    time("rma-put-pscw", "Put, start and complete"),
    time("rma-get-flush", "Get, flush"),
    time("rma-get-lock", "Get, lock and unlock"),
    time("rma-get-fence", "Get, two fences"),
    time("rma-get-pscw", "Get, start and complete"),
    time("rma-acc-flush", "Accumulate, flush"),
    time("rma-acc-lock", "Accumulate, lock and unlock"),
    time("rma-acc-fence", "Accumulate, two fences"),
    time("rma-acc-pscw", "Accumulate, start and complete"),
    time("rma-getacc-flush", "Get-accumulate, flush"),
    time("rma-getacc-lock", "Get-accumulate, lock and unlock"),
    time("rma-getacc-fence", "Get-accumulate, two fences"),
    time("rma-getacc-pscw", "Get-accumulate, start and complete"),
    time("rma-fop-flush", "Fetch-and-op, flush"),
    time("rma-fop-lock", "Fetch-and-op, lock and unlock"),
    time("rma-fop-fence", "Fetch-and-op, two fences"),
    time("rma-fop-pscw", "Fetch-and-op, start and complete"),
    time("rma-cas-flush", "Compare-and-swap, flush"),
    time("rma-cas-lock", "Compare-and-swap, lock and unlock"),
    time("rma-cas-fence", "Compare-and-swap, two fences"),
    time("rma-cas-pscw", "Compare-and-swap, start and complete"),
    time("rma-put-created", "Put, flush, created window"),
    time("rma-get-created", "Get, flush, created window"),
    time("rma-acc-created", "Accumulate, flush, created window"),
    time("rma-put-computing", "Put, flush, computing target"),
    row(
        "rma-put-ratio",
        "Put to a computing target beside one to a waiting target",
        X::Bytes,
        Unit::Times,
        Better::Lower,
    ),
    matrix("matrix-f32", "Ping-pong of N x N f32, rewritten"),
    matrix("matrix-f64", "Ping-pong of N x N f64, rewritten"),
    matrix("matrix-f32-unchanged", "Ping-pong of N x N f32, unchanged"),
    matrix("matrix-f64-unchanged", "Ping-pong of N x N f64, unchanged"),
    matrix("matrix-f32-cold", "Ping-pong of N x N f32, cold"),
    matrix("matrix-f64-cold", "Ping-pong of N x N f64, cold"),
    gflops("cannon", "Cannon's multiplication", X::Order),
    share("cannon-share", "Cannon: share of communication", X::Order),
    gflops("summa", "SUMMA multiplication", X::Order),
    share("summa-share", "SUMMA: share of communication", X::Order),
    row("transpose", "Transpose of N x N f64", X::Order, Unit::Microseconds, Better::Lower),
    gflops("laplace", "Laplace 512 x 512, red-black", X::Ranks),
    share("laplace-share", "Laplace: share of communication", X::Ranks),
    gflops("diffusion", "Diffusion 64 x 64 x 64", X::Ranks),
    share("diffusion-share", "Diffusion: share of communication", X::Ranks),
    time("am-short", "Short message, half a round trip"),
    time("am", "Active message, half a round trip, rewritten"),
    time("am-unchanged", "Active message, half a round trip"),
    time("am-look", "Active message that is not stored, half a round trip"),
    speed("am-stream", "Active messages in windows, rewritten"),
    speed("am-stream-unchanged", "Active messages in windows"),
    time("put", "Put, half a round trip, rewritten"),
    time("put-unchanged", "Put, half a round trip"),
    speed("put-stream", "Puts in windows, rewritten"),
    speed("put-stream-unchanged", "Puts in windows"),
    time("get", "Get"),
    time("add", "Fetch-and-add of 64 bits"),
    row(
        "contexts",
        "8-byte messages by contexts with a thread each",
        X::Contexts,
        Unit::MillionPerSecond,
        Better::Higher,
    ),
];

impl Series {
    /// Returns the series with this name.
    pub fn named(id: &str) -> Option<&'static Series> {
        SERIES.iter().find(|series| series.id == id)
    }
}
