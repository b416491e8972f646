//! The command line of a worker: one or several orders to measure.

use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, ValueEnum};

/// The word that separates two orders of one launch.
pub const THEN: &str = "then";
/// Bytes of a pool of cold buffers: two pools exceed the last-level cache of most machines.
pub const POOL: usize = 128 << 20;

/// A task of one launch.
#[derive(Debug, Clone, Default, PartialEq, Parser)]
#[command(name = "mpj-bench worker", about = "Measures one library. Started by mpj-bench")]
pub struct Order {
    /// What to run, one after the other
    #[arg(required = true)]
    pub programs: Vec<Program>,
    /// How much is spent on one point
    #[command(flatten)]
    pub effort: Effort,
    /// What the buffers of latency, bandwidth, bibw, rate and matrix-pingpong do between messages
    #[arg(long, value_enum, default_value_t)]
    pub buffers: Buffers,
    /// Bytes of the pool of cold buffers that each rank sends from, and of the one that it receives into
    #[arg(long, default_value_t = POOL)]
    pub pool: usize,
    /// Message sizes in bytes, for the programs that take sizes
    #[arg(long, value_delimiter = ',', default_value = "8")]
    pub sizes: Vec<usize>,
    /// Orders of matrices in the ping-pong of matrices
    #[arg(long, value_delimiter = ',', default_value = "64")]
    pub orders: Vec<usize>,
    /// Orders of matrices that are multiplied or transposed
    #[arg(long, value_delimiter = ',', default_value = "64")]
    pub products: Vec<usize>,
    /// Microseconds that overlap computes beside a message, one for each size; without any, the
    /// transfer is measured alone
    #[arg(long, value_delimiter = ',')]
    pub compute: Vec<f64>,
    /// Microseconds for which wakeup lets a rank be blocked
    #[arg(long, value_delimiter = ',', default_value = "4000")]
    pub blocked: Vec<u64>,
    /// Processors on which the ranks stay, that of rank 0 first; without any, the system moves the
    /// ranks. Only the first order's value counts
    #[arg(long, value_delimiter = ',')]
    pub pin: Vec<usize>,
    /// File through which ranks 0 and 1 measure the raw cache line beside every figure. Only the
    /// first order's value counts
    #[arg(long)]
    pub line: Option<PathBuf>,
}

impl Order {
    /// Parses the orders of a command line, which begins with the name of the program; [`THEN`]
    /// separates them.
    ///
    /// # Errors
    /// The first invalid order.
    pub fn several(words: impl IntoIterator<Item = String>) -> Result<Vec<Self>, clap::Error> {
        let mut words = words.into_iter();
        let program = words.next().unwrap_or_default();
        let words: Vec<String> = words.collect();
        let order = |words: &[String]| {
            let line = std::iter::once(&program).chain(words);
            Self::from_arg_matches(&Self::command().try_get_matches_from(line)?)
        };
        words.split(|word| word == THEN).map(order).collect()
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

    /// Returns its name on the command line.
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
#[derive(Debug, Clone, Copy, PartialEq, Args)]
pub struct Effort {
    /// Timed batches; each gives one raw figure
    #[arg(long, default_value_t = BATCHES, value_parser = at_least_one)]
    pub batches: usize,
    /// Milliseconds that all batches of one point should take together
    #[arg(long, default_value_t = BUDGET)]
    pub budget: f64,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "a number from 1 on".to_owned())
}

impl Default for Effort {
    fn default() -> Self {
        Self { batches: BATCHES, budget: BUDGET }
    }
}

/// What the buffers of messages do between one message and the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
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
    /// Flow of a gas in two dimensions.
    Flow,
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn several(line: &str) -> Result<Vec<Order>, String> {
        let words = line.split_whitespace().map(str::to_owned);
        Order::several(words).map_err(|error| error.to_string())
    }

    #[test]
    fn orders_follow_one_another() {
        let orders =
            several("worker latency --sizes 1,2 then rate wakeup --batches 3").expect("legal");
        assert_eq!(orders.len(), 2);
        assert_eq!(
            (&*orders[0].programs, &*orders[0].sizes),
            (&[Program::Latency][..], &[1, 2][..])
        );
        assert_eq!(orders[1].programs, [Program::Rate, Program::Wakeup]);
        assert_eq!(orders[1].effort.batches, 3);
    }

    #[test]
    fn an_empty_or_unknown_order_is_refused() {
        for wrong in ["worker", "worker rate then", "worker then rate", "worker rate then warp"] {
            assert!(several(wrong).is_err(), "{wrong}");
        }
    }
}
