//! What a worker is to measure: the last word of its command line is a list of orders, in JSON.

use std::path::PathBuf;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::runtime::Failure;

/// Bytes of a pool of cold buffers: two pools exceed the last-level cache of most machines.
pub const POOL: usize = 128 << 20;

/// A task of one launch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Order {
    /// What to run, one after the other.
    pub programs: Vec<Program>,
    /// How much is spent on one point.
    pub effort: Effort,
    /// What the buffers of latency, bandwidth, bibw, rate and matrix-pingpong do between messages.
    pub buffers: Buffers,
    /// Bytes of the pool of cold buffers that each rank sends from, and of the one that it receives into.
    pub pool: usize,
    /// Message sizes in bytes, for the programs that take sizes.
    pub sizes: Vec<usize>,
    /// Orders of matrices in the ping-pong of matrices.
    pub orders: Vec<usize>,
    /// Orders of matrices that are multiplied or transposed.
    pub products: Vec<usize>,
    /// Microseconds that overlap computes beside a message, one for each size; without any, the
    /// transfer is measured alone.
    pub compute: Vec<f64>,
    /// Microseconds for which wakeup lets a rank be blocked.
    pub blocked: Vec<u64>,
    /// Processors on which the ranks stay, that of rank 0 first; without any, the system moves the
    /// ranks. Only the first order's value counts.
    pub pin: Vec<usize>,
    /// File through which ranks 0 and 1 measure the raw cache line beside every figure. Only the
    /// first order's value counts.
    pub line: Option<PathBuf>,
}

impl Order {
    /// Reads the orders of this process.
    ///
    /// # Errors
    /// They are missing or damaged.
    pub fn of_command_line() -> Result<Vec<Self>, Failure> {
        let json = std::env::args().next_back().unwrap_or_default();
        let damaged = |error| Failure::new(format_args!("no orders on the command line: {error}"));
        serde_json::from_str(&json).map_err(damaged)
    }

    /// Returns its programs, each with the order.
    pub fn tasks(&self) -> impl Iterator<Item = (&Self, Program)> {
        self.programs.iter().map(move |program| (self, *program))
    }
}

impl Program {
    /// Returns whether the program has a series for each kind of [`Buffers`].
    pub fn has_buffers(self) -> bool {
        use Program::{Am, AmStream, Put, PutStream};
        use Program::{Bandwidth, Bibw, Latency, MatrixPingpong, Rate};
        matches!(self, Latency | Bandwidth | Bibw | Rate | MatrixPingpong)
            || matches!(self, Am | AmStream | Put | PutStream)
    }

    /// Returns whether ranks 0 and 1 measure what is between them.
    pub fn is_of_two(self) -> bool {
        use Program::{Add, AmLook, AmShort, Contexts, Get, Overlap, Rma, Wakeup};
        self.has_buffers()
            || matches!(self, AmShort | AmLook | Get | Add | Contexts | Overlap | Rma | Wakeup)
    }

    /// Returns the name of its series, if it has one only.
    pub fn series(self, order: &Order) -> String {
        let name = self.name();
        if self.has_buffers() { order.buffers.series(&name) } else { name }
    }

    /// Returns its name in records and messages.
    pub fn name(self) -> String {
        let value = self.to_possible_value().expect("no program is hidden");
        value.get_name().to_owned()
    }
}

/// Timed batches of a point, by default.
const BATCHES: usize = 10;

/// Milliseconds of a point's batches, by default. A fifth as much is for warming up: as long as a library takes to learn
/// what suits a size. For the first 8 ms of rewritten 64 KiB a message takes up to half as long again.
const BUDGET: f64 = 40.0;

/// How much is spent on one point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effort {
    /// Timed batches, at least one; each gives one raw figure.
    pub batches: usize,
    /// Milliseconds that all batches of one point should take together.
    pub budget: f64,
}

impl Default for Effort {
    fn default() -> Self {
        Self { batches: BATCHES, budget: BUDGET }
    }
}

/// What the buffers of messages do between one message and the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum Buffers {
    /// The sender stores every word before each send, the receiver reads every word after it
    #[default]
    Rewritten,
    /// Nothing: the receiver may find the sender's data in its own cache
    Unchanged,
    /// Nothing, but each message has the next one out of more than the last-level cache holds
    Cold,
}

impl Buffers {
    /// Returns the name of the series `id` for these buffers: each kind of buffers has its own
    /// series.
    pub fn series(self, id: &str) -> String {
        match self {
            Self::Rewritten => id.to_owned(),
            Self::Unchanged => format!("{id}-unchanged"),
            Self::Cold => format!("{id}-cold"),
        }
    }
}

/// The programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum Program {
    /// Ping-pong over `sizes`.
    Latency,
    /// Windows one way over `sizes`.
    Bandwidth,
    /// Windows both ways over `sizes`.
    Bibw,
    /// Windows of 8 bytes.
    Rate,
    /// Computation beside messages over `sizes`.
    Overlap,
    /// Sends to a rank that has been blocked for long.
    Wakeup,
    /// One-sided operations over `sizes`.
    Rma,
    /// Nothing at all.
    Empty,
    /// Collective calls over `sizes`.
    Collectives,
    /// Ping-pong of matrices of `orders`.
    MatrixPingpong,
    /// Cannon's algorithm, on a square number of ranks, over `products`.
    Cannon,
    /// SUMMA over `products`.
    Summa,
    /// Transposition over `products`.
    Transpose,
    /// Red-black relaxation of Laplace's equation.
    Laplace,
    /// Diffusion in three dimensions.
    Diffusion,
    /// Ping-pong of messages that consist of a few words, over `sizes` up to 64.
    AmShort,
    /// Ping-pong of active messages over `sizes`.
    Am,
    /// Ping-pong of active messages whose handlers look at one byte, over `sizes` up to 8 KiB.
    AmLook,
    /// Windows of active messages over `sizes`.
    AmStream,
    /// Ping-pong of puts over `sizes`.
    Put,
    /// Windows of puts over `sizes`.
    PutStream,
    /// Gets over `sizes`, one at a time.
    Get,
    /// Fetch-and-adds of 64 bits, one at a time.
    Add,
    /// Windows of 8 bytes by one context, two and so on, a thread for each.
    Contexts,
}
