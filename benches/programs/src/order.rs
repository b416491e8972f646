//! What a worker is asked to measure: its command line.

use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum};

/// One launch's task.
#[derive(Debug, Clone, PartialEq, Parser)]
#[command(name = "mpj-bench worker", about = "Measures one library. Started by mpj-bench")]
pub struct Order {
    /// What to run, one after the other
    #[arg(required = true)]
    pub programs: Vec<Program>,
    /// How much is spent on one point
    #[command(flatten)]
    pub effort: Effort,
    /// Where the messages of latency, bandwidth, bibw and overlap lie
    #[arg(long, value_enum, default_value_t)]
    pub memory: Memory,
    /// Message sizes in bytes, for the programs that take sizes
    #[arg(long, value_delimiter = ',', default_value = "8")]
    pub sizes: Vec<usize>,
    /// Orders of matrices in the ping-pong of matrices
    #[arg(long, value_delimiter = ',', default_value = "64")]
    pub orders: Vec<usize>,
    /// Orders of matrices that are multiplied or transposed
    #[arg(long, value_delimiter = ',', default_value = "64")]
    pub products: Vec<usize>,
    /// Depths of the queues
    #[arg(long, value_delimiter = ',', default_value = "1")]
    pub depths: Vec<usize>,
    /// Processors to stay on, that of rank 0 first; none for not staying anywhere
    #[arg(long, value_delimiter = ',')]
    pub pin: Vec<usize>,
    /// File through which ranks 0 and 1 measure the raw cache line beside every figure
    #[arg(long)]
    pub line: Option<PathBuf>,
}

/// How much is spent on one point.
#[derive(Debug, Clone, Copy, PartialEq, Args)]
pub struct Effort {
    /// Timed batches; each gives one raw figure
    #[arg(long, default_value_t = 10, value_parser = at_least_one)]
    pub batches: usize,
    /// Milliseconds that all batches of one point should take together
    #[arg(long, default_value_t = 10.0)]
    pub budget: f64,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "a number from 1 on".to_owned())
}

impl Default for Effort {
    fn default() -> Self {
        Self { batches: 10, budget: 10.0 }
    }
}

/// Where messages lie.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Memory {
    /// In ordinary memory of the process
    #[default]
    Ordinary,
    /// In memory that the library allocates: MPI_Alloc_mem, mpj::alloc_buffer
    Allocated,
}

impl Memory {
    /// The name of the series `id` for messages that lie here: figures of different memory are not of
    /// one series.
    pub fn series(self, id: &str) -> String {
        match self {
            Self::Ordinary => id.to_owned(),
            Self::Allocated => format!("{id}-allocated"),
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
    /// Computation beside sends over `sizes`.
    Overlap,
    /// Sends to a rank that has been blocked for long.
    Wakeup,
    /// Matches behind queues of `depths`.
    Matching,
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
}
