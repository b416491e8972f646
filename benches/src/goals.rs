//! The goals of this project, as data: what its times should be as parts of those of the best system MPI
//! at the same point, or of what the machine can do at all. Who measures sees how far they are reached.

mod tally;

pub use tally::{Excess, Measured, Standing, Word, beyond_backends, standings};

/// One goal.
#[derive(Debug, PartialEq)]
pub struct Goal {
    /// What it is about, for readers.
    pub name: &'static str,
    /// The points that it is about.
    pub parts: &'static [Part],
    /// What the times are compared with.
    pub beside: Beside,
    /// The ratio that none of its points should exceed; `None` if there is no goal, just a look.
    pub most: Option<f64>,
}

/// Points of one series.
#[derive(Debug, PartialEq)]
pub struct Part {
    /// Its name: [`mpj_bench_programs::Series::id`].
    pub series: &'static str,
    /// The number of ranks.
    pub ranks: u64,
    /// The first point.
    pub from: u64,
    /// The last point.
    pub to: u64,
}

/// What the times of a goal are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// At each point the peer with the best median there.
    BestPeer,
    /// The raw cache line between the two processors, measured before and after the figure by the same
    /// ranks.
    CacheLine,
}

/// So many times the better one of eager and rendezvous auto may take.
pub const BEYOND_BACKENDS: f64 = 1.05;

const K: u64 = 1 << 10;
const M: u64 = 1 << 20;

/// All goals, in the order in which they are shown.
pub const GOALS: &[Goal] = &[
    goal("Latency, 8 to 256 bytes", &[two_ranks("latency", 8, 256)], 0.6),
    goal("Message rate", &[two_ranks("rate", 8, 8)], 0.35),
    goal("Latency, 1K to 8K", &[two_ranks("latency", K, 8 * K)], 0.85),
    goal("Latency, 16K to 512K", &[two_ranks("latency", 16 * K, 512 * K)], 1.0),
    goal("Latency, from 1M on", &[two_ranks("latency", M, u64::MAX)], 0.85),
    goal(
        "Latency, from 256K on, allocated memory",
        &[two_ranks("latency-allocated", 256 * K, u64::MAX)],
        0.45,
    ),
    goal("Streams, from 4K on", &[two_ranks("bandwidth", 4 * K, u64::MAX)], 0.4),
    goal(
        "Barrier, allreduce, broadcast on 2 ranks, up to 32K",
        &[crowd("barrier", 2), two_ranks("allreduce", 8, 32 * K), two_ranks("bcast", 8, 32 * K)],
        0.5,
    ),
    goal(
        "Allreduce, broadcast on 2 ranks, above 32K",
        &[two_ranks("allreduce", 32 * K + 1, u64::MAX), two_ranks("bcast", 32 * K + 1, u64::MAX)],
        1.0,
    ),
    goal(
        "Barrier, allreduce of 8 bytes on 4 ranks",
        &[crowd("barrier", 4), eight("allreduce", 4)],
        1.0,
    ),
    goal(
        "Barrier, allreduce of 8 bytes on 8 ranks",
        &[crowd("barrier", 8), eight("allreduce", 8)],
        1.0,
    ),
    Goal {
        name: "Send to a blocked rank",
        parts: &[two_ranks("wakeup", 8, 8)],
        beside: Beside::BestPeer,
        most: None,
    },
    goal("Start and end of a job of 2 ranks", &[crowd("startup", 2)], 0.5),
    Goal {
        name: "Latency of 8 bytes by the raw cache line",
        parts: &[two_ranks("latency", 8, 8)],
        beside: Beside::CacheLine,
        most: Some(1.15),
    },
];

const fn goal(name: &'static str, parts: &'static [Part], most: f64) -> Goal {
    Goal { name, parts, beside: Beside::BestPeer, most: Some(most) }
}

const fn two_ranks(series: &'static str, from: u64, to: u64) -> Part {
    Part { series, ranks: 2, from, to }
}

const fn eight(series: &'static str, ranks: u64) -> Part {
    Part { series, ranks, from: 8, to: 8 }
}

/// Of a series over ranks, the point of so many.
const fn crowd(series: &'static str, ranks: u64) -> Part {
    Part { series, ranks, from: ranks, to: ranks }
}
