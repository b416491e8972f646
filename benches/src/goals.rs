//! The goals of this project, as data: what its times should be as parts of those of the best system MPI
//! at the same point, or of what the machine can do at all. Who measures sees how far they are reached.

mod tally;

pub use tally::{Excess, Measured, Standing, Word, beyond_backends, standings};

use crate::model::Face;

/// One goal.
#[derive(Debug, PartialEq)]
pub struct Goal {
    /// What it is about, for readers.
    pub name: &'static str,
    /// The points that it is about.
    pub parts: &'static [Part],
    /// What the times are compared with.
    pub beside: Beside,
    /// The ratio that none of its points should exceed.
    pub most: f64,
    /// Where processors are near each other, if it is another one.
    pub near: Option<f64>,
}

impl Goal {
    /// The ratio that none of its points should exceed on this face of the machine.
    pub fn most(&self, face: Option<Face>) -> f64 {
        self.near.filter(|_| face == Some(Face::Near)).unwrap_or(self.most)
    }
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
    /// Nothing: it is the figure itself that should not be exceeded, in its unit.
    Nothing,
}

/// So many times the better one of eager and rendezvous auto may take.
pub const BEYOND_BACKENDS: f64 = 1.05;

const K: u64 = 1 << 10;
const M: u64 = 1 << 20;

/// All goals, in the order in which they are shown. Series without a word for their buffers are those of
/// rewritten ones.
pub const GOALS: &[Goal] = &[
    Goal {
        near: Some(0.6),
        ..goal("Latency, 8 to 256 bytes", &[two_ranks("latency", 8, 256)], 0.8)
    },
    goal("Latency, 512 bytes to 8K", &[two_ranks("latency", 512, 8 * K)], 0.9),
    goal("Latency, 16K to 128K", &[two_ranks("latency", 16 * K, 128 * K)], 0.95),
    goal("Latency, from 256K on", &[two_ranks("latency", 256 * K, u64::MAX)], 0.75),
    goal(
        "Latency, from 256K on, allocated memory",
        &[two_ranks("latency-allocated", 256 * K, u64::MAX)],
        0.45,
    ),
    goal("Message rate", &[two_ranks("rate", 8, 8)], 0.5),
    goal("Streams, up to 64K", &[two_ranks("bandwidth", 1, 64 * K)], 0.8),
    goal("Streams, above 64K", &[two_ranks("bandwidth", 64 * K + 1, u64::MAX)], 0.7),
    goal("Streams both ways", &[two_ranks("bibw", 1, u64::MAX)], 1.0),
    goal(
        "Barrier, allreduce, broadcast on 2 ranks, up to 8K",
        &[crowd("barrier", 2), two_ranks("allreduce", 8, 8 * K), two_ranks("bcast", 8, 8 * K)],
        0.5,
    ),
    goal(
        "Allreduce, broadcast on 2 ranks, 16K to 32K",
        &[two_ranks("allreduce", 8 * K + 1, 32 * K), two_ranks("bcast", 8 * K + 1, 32 * K)],
        0.75,
    ),
    goal(
        "Allreduce, broadcast on 2 ranks, above 32K",
        &[two_ranks("allreduce", 32 * K + 1, u64::MAX), two_ranks("bcast", 32 * K + 1, u64::MAX)],
        1.1,
    ),
    goal("All-to-all on 2 ranks", &[two_ranks("alltoall", 8, u64::MAX)], 1.0),
    goal("Collective calls of 8 bytes on 4 ranks", &crowds(4), 1.0),
    goal("Collective calls of 8 bytes on 8 ranks", &crowds(8), 1.0),
    goal("Send to a rank blocked for 4 ms", &[two_ranks("wakeup", 4000, 4000)], 0.8),
    Goal {
        beside: Beside::Nothing,
        ..goal(
            "Processor time of a rank blocked for 1 s, in percent",
            &[two_ranks("wakeup-cpu", 1_000_000, 1_000_000)],
            1.0,
        )
    },
    goal("Send, computation, wait, 1M to 4M", &[two_ranks("overlap-send", M, 4 * M)], 1.0),
    goal("Start and end of a job of 2 ranks", &[crowd("startup", 2)], 0.2),
    Goal {
        beside: Beside::CacheLine,
        ..goal("Latency of 8 bytes by the raw cache line", &[two_ranks("latency", 8, 8)], 1.15)
    },
];

const fn goal(name: &'static str, parts: &'static [Part], most: f64) -> Goal {
    Goal { name, parts, beside: Beside::BestPeer, most, near: None }
}

/// Every call of 8 bytes.
const fn crowds(ranks: u64) -> [Part; 4] {
    let calls = [eight("bcast", ranks), eight("allreduce", ranks), eight("alltoall", ranks)];
    let [bcast, allreduce, alltoall] = calls;
    [crowd("barrier", ranks), bcast, allreduce, alltoall]
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
