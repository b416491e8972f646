//! The benchmarks by name, and the launches that each name stands for.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use mpj_bench_programs::order::{Effort, POOL};
use mpj_bench_programs::{Buffers, Order, Program};

/// The largest size of a message or order of a matrix.
const MOST: usize = 1 << 30;
/// How long ranks are blocked, in microseconds.
const BLOCKED: [u64; 5] = [30, 200, 1000, 4000, 1_000_000];

/// The benchmarks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Benchmark {
    /// Half a round trip, 0 B to 16 MiB, also around every threshold
    Latency,
    /// Windows of 64 messages one way, 1 B to 4 MiB
    Bandwidth,
    /// Windows of 64 messages both ways at once
    Bibw,
    /// Messages of 8 bytes per second, windows of 64
    Rate,
    /// A fixed computation beside a send, and beside a receive
    Overlap,
    /// A message to a rank that has been blocked for 30 us to 1 s
    Wakeup,
    /// Job start, empty program, end; 2 to 16 ranks
    Startup,
    /// Barrier, and seven collective calls of 8 B to 1 MiB per rank; 2, 4 and 8 ranks
    Collectives,
    /// Matrices: ping-pong, Cannon, SUMMA, transpose, Laplace, diffusion
    Matrix,
    /// One-sided operations of 8 B to 1 MiB, through MPI's interface for C; in a run of its own
    Rma,
    /// The transport itself: active messages, puts, gets, fetch-and-add; in a run of its own
    Lapi,
    /// AM-2 beside the transport: short, medium and long messages; in a run of its own
    Am2,
    /// PAMI beside the transport: messages, puts, gets, fetch-and-add, several contexts; in a run of its own
    Pami,
}

/// How much to measure.
#[derive(Debug, Clone, Default, Args)]
pub struct Extent {
    /// A short look: fewer points, less time, three launches, so no intervals
    #[arg(long)]
    pub quick: bool,
    /// Numbers of ranks; each benchmark's own if not given
    #[arg(long = "np", short = 'n', value_name = "N", value_delimiter = ',', value_parser = RangedU64ValueParser::<usize>::new().range(1..=256))]
    pub ranks: Vec<usize>,
    /// What the buffers of latency, bandwidth, bibw, rate, lapi, am2, pami and the ping-pong of matrices
    /// do between messages; each has tables of its own [default: rewritten, for lapi, am2, pami unchanged]
    #[arg(long, value_name = "B", value_delimiter = ',')]
    pub buffers: Vec<Buffers>,
    /// Message sizes instead of each benchmark's own: 1,64K or 8..1M
    #[arg(long, value_name = "S", value_parser = numbers, default_value = "", hide_default_value = true)]
    pub sizes: ::std::vec::Vec<usize>,
    /// Orders N of matrices instead of the benchmark's own: 64,1024 or 64..1K
    #[arg(long, value_name = "S", value_parser = numbers, default_value = "", hide_default_value = true)]
    pub orders: ::std::vec::Vec<usize>,
    /// Largest message sizes (inclusive) of each protocol or algorithm.
    #[arg(skip)]
    pub thresholds: Vec<usize>,
    /// Number of hosts that share the ranks; 0 for this machine alone.
    #[arg(skip)]
    pub hosts: usize,
}

/// Parses numbers, and ranges of numbers that double: `8..1M,100`. Returns them in ascending order.
fn numbers(text: &str) -> Result<Vec<usize>, String> {
    let mut numbers = BTreeSet::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once("..").unwrap_or((part, part));
        let range = number(first).zip(number(last)).filter(|(first, last)| first <= last);
        let Some((first, last)) = range else {
            return Err(format!("a number up to {MOST}, as 100, 64K or 1M, or two: 8..1M"));
        };
        let doubled = std::iter::successors(Some(first), |number| Some((number * 2).max(1)));
        numbers.extend(doubled.take_while(|number| *number <= last));
    }
    Ok(numbers.into_iter().collect())
}

/// Parses a number with an optional suffix: `64K`.
fn number(text: &str) -> Option<usize> {
    let suffixes = [("K", 10), ("M", 20), ("G", 30)];
    let of_suffix = |(suffix, shift)| Some((text.strip_suffix(suffix)?, shift));
    let (digits, shift) = suffixes.into_iter().find_map(of_suffix).unwrap_or((text, 0));
    let number = digits.parse::<usize>().ok()?.checked_mul(1 << shift)?;
    (number <= MOST).then_some(number)
}

/// One configuration: what a launch runs, for any runtime.
#[derive(Debug, Clone, PartialEq)]
pub struct Configuration {
    /// The benchmark it belongs to.
    pub benchmark: Benchmark,
    /// The number of ranks.
    pub ranks: usize,
    /// The order for the worker.
    pub order: Order,
}

impl Configuration {
    /// Returns its name in files and for users: the benchmark and the options that differ from the
    /// defaults.
    pub fn name(&self) -> String {
        self.order.buffers.series(&self.benchmark.name())
    }
}

impl Benchmark {
    /// Returns its name on the command line and in files.
    pub fn name(self) -> String {
        let value = self.to_possible_value().expect("no benchmark is hidden");
        value.get_name().to_owned()
    }

    /// Returns whether it measures the transport, or AM-2 or PAMI over it, which have runtimes of their own.
    pub fn is_of_transport(self) -> bool {
        matches!(self, Self::Lapi | Self::Am2 | Self::Pami)
    }

    /// Returns whether a run of it has no other benchmarks, since its runtimes are others.
    pub fn is_apart(self) -> bool {
        self == Self::Rma || self.is_of_transport()
    }

    /// Returns the configurations of the benchmark, and one line for each request that is
    /// impossible.
    pub fn configurations(self, extent: &Extent) -> (Vec<Configuration>, Vec<String>) {
        let (legal, own): (_, &[usize]) = match self {
            Self::Startup if extent.quick => (1..=256, &[2, 4, 8]),
            Self::Startup => (1..=256, &[2, 4, 8, 16]),
            Self::Matrix => (1..=256, &[1, 2, 4]),
            Self::Collectives => (2..=256, &[2, 4, 8]),
            Self::Rma | Self::Lapi | Self::Am2 | Self::Pami => (2..=2, &[2]),
            _ => (2..=256, &[2]),
        };
        let own = self.over_hosts(own, extent.hosts);
        let asked = if extent.ranks.is_empty() { &own } else { &extent.ranks };
        let (name, (least, most)) = (self.name(), (legal.start(), legal.end()));
        let mut refused = Vec::new();
        let mut fits = |ranks: usize| {
            let refusal = if !legal.contains(&ranks) {
                format!("{name} has {least} to {most} ranks, not --np {ranks}")
            } else {
                match self.refusal(ranks, extent.hosts) {
                    Some(refusal) => refusal,
                    None => return true,
                }
            };
            refused.push(refusal);
            false
        };
        let numbers: Vec<usize> = asked.iter().copied().filter(|ranks| fits(*ranks)).collect();
        let treatments = self.treatments(extent, &mut refused);
        let mut configurations = Vec::new();
        for ranks in numbers {
            let programs = self.programs(ranks, extent);
            for (buffers, programs) in by_buffers(&programs, &treatments) {
                let order = Order { buffers, ..self.order(programs, ranks, extent) };
                configurations.push(Configuration { benchmark: self, ranks, order });
            }
        }
        (configurations, refused)
    }

    /// Its own numbers of ranks over so many hosts, of those on one: two ranks on each host in collectives, and one where
    /// ranks 0 and 1 measure what is between them.
    fn over_hosts(self, own: &[usize], hosts: usize) -> Vec<usize> {
        match self {
            _ if hosts == 0 => own.to_vec(),
            Self::Collectives => vec![2 * hosts],
            Self::Startup | Self::Matrix => {
                own.iter().copied().filter(|ranks| ranks % hosts == 0).collect()
            }
            _ => vec![hosts],
        }
    }

    /// Why so many ranks do not suit so many hosts.
    fn refusal(self, ranks: usize, hosts: usize) -> Option<String> {
        let name = self.name();
        let is_of_pair = !matches!(self, Self::Collectives | Self::Startup | Self::Matrix);
        match hosts {
            0 => None,
            _ if ranks % hosts > 0 => {
                Some(format!("{name}: --np {ranks} is no multiple of the {hosts} hosts"))
            }
            _ if is_of_pair && ranks != hosts => {
                Some(format!("{name} has one rank on each host, so --np {hosts}, not {ranks}"))
            }
            _ => None,
        }
    }

    /// The programs that run on `ranks` ranks.
    fn programs(self, ranks: usize, extent: &Extent) -> Vec<Program> {
        match self {
            Self::Startup => vec![Program::Empty],
            Self::Matrix => matrix_programs(ranks, extent),
            Self::Lapi => {
                use Program::{Add, Am, AmLook, AmStream, Get, Put, PutStream};
                vec![Am, AmLook, AmStream, Put, PutStream, Get, Add]
            }
            Self::Am2 => {
                use Program::{Am, AmShort, AmStream, Get, Put, PutStream};
                vec![AmShort, Am, AmStream, Put, PutStream, Get]
            }
            Self::Pami => {
                use Program::{Add, Am, AmShort, AmStream, Contexts, Get, Put, PutStream};
                vec![AmShort, Am, AmStream, Put, PutStream, Get, Add, Contexts]
            }
            other => {
                let program = Program::from_str(&other.name(), false);
                vec![program.expect("it has the name of its program")]
            }
        }
    }

    fn order(self, programs: Vec<Program>, ranks: usize, extent: &Extent) -> Order {
        let quick = extent.quick;
        let effort = match (self, quick) {
            (_, true) => Effort { batches: 5, budget: 2.0 },
            (Self::Wakeup, false) => Effort { batches: 20, budget: 0.0 },
            // It has many points.
            (Self::Rma, false) => Effort { budget: 20.0, ..Effort::default() },
            (_, false) => Effort::default(),
        };
        let (orders, least) = match &extent.orders[..] {
            [] if quick => (powers(1, 512, 4), 64),
            [] => (powers(1, 2048, 2), 64),
            asked => (asked.to_vec(), 1),
        };
        // Those that all ranks can divide equally.
        let products = orders.iter().filter(|order| **order >= least);
        let products: BTreeSet<_> = products.map(|order| order.next_multiple_of(ranks)).collect();
        let products = products.into_iter().collect();
        let sizes = if extent.sizes.is_empty() { self.sizes(extent) } else { extent.sizes.clone() };
        let (pool, blocked) = (POOL, BLOCKED.to_vec());
        let order = Order { programs, effort, pool, sizes, orders, ..Order::default() };
        Order { products, blocked, ..order }
    }

    /// The treatments of buffers; empty for rewritten ones. The tool of the transport's peer does not rewrite, so
    /// unchanged buffers are the transport's own treatment.
    fn treatments(self, extent: &Extent, refused: &mut Vec<String>) -> Vec<Buffers> {
        let mut treatments = extent.buffers.clone();
        if self.is_of_transport() {
            if treatments.contains(&Buffers::Cold) {
                refused.push(format!("{} has no --buffers cold", self.name()));
                treatments.retain(|buffers| *buffers != Buffers::Cold);
            }
            if treatments.is_empty() {
                treatments.push(Buffers::Unchanged);
            }
        }
        treatments
    }

    fn sizes(self, extent: &Extent) -> Vec<usize> {
        let step = if extent.quick { 4 } else { 2 };
        let sizes = match self {
            Self::Latency => powers(1, 16 << 20, step),
            Self::Bandwidth | Self::Bibw => powers(1, 4 << 20, step),
            Self::Overlap => powers(1 << 10, 4 << 20, 4),
            Self::Collectives if extent.quick => vec![8, 64 << 10],
            Self::Collectives => vec![8, 1 << 10, 64 << 10, 1 << 20],
            Self::Rma if !extent.quick => {
                vec![8, 64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20]
            }
            Self::Rma | Self::Lapi | Self::Am2 | Self::Pami if extent.quick => {
                vec![8, 4 << 10, 64 << 10, 1 << 20]
            }
            Self::Lapi | Self::Am2 | Self::Pami => {
                [vec![8, 64, 256], powers(1 << 10, 4 << 20, 4)].concat()
            }
            _ => return vec![8],
        };
        let mut sizes: BTreeSet<usize> = sizes.into_iter().collect();
        if self == Self::Latency || self.is_of_transport() {
            sizes.extend(extent.thresholds.iter().flat_map(|&bytes| [bytes, bytes + 1]));
        }
        if self == Self::Latency {
            sizes.insert(0);
        }
        sizes.into_iter().collect()
    }
}

/// The programs for each treatment of buffers: all of them for the first, only those of messages
/// for the others.
fn by_buffers(programs: &[Program], asked: &[Buffers]) -> Vec<(Buffers, Vec<Program>)> {
    let has = |program: &Program| program.has_buffers();
    let plain = [Buffers::default()];
    let is_plain = asked.is_empty() || !programs.iter().any(has);
    let kinds = if is_plain { &plain } else { asked };
    let of_kind = |(place, &buffers): (usize, &Buffers)| {
        let programs = programs.iter().copied();
        (buffers, programs.filter(|program| place == 0 || has(program)).collect())
    };
    let all = kinds.iter().enumerate().map(of_kind);
    all.filter(|(_, programs): &(_, Vec<_>)| !programs.is_empty()).collect()
}

/// The matrix programs that run on `ranks` ranks. If no number of ranks was requested, everything
/// runs on 2. Cannon's algorithm runs on 4, since it needs a square; the stencils also run on 1, to
/// show their speed-up.
fn matrix_programs(ranks: usize, extent: &Extent) -> Vec<Program> {
    let is_square = ranks.isqrt().pow(2) == ranks;
    let stencils = [Program::Laplace, Program::Diffusion];
    let mut programs = Vec::new();
    if extent.ranks.is_empty() && ranks != 2 {
        programs.extend(if ranks == 1 { &stencils[..] } else { &[Program::Cannon] });
        return programs;
    }
    if ranks > 1 {
        programs.push(Program::MatrixPingpong);
    }
    if is_square {
        programs.push(Program::Cannon);
    }
    programs.extend([Program::Summa, Program::Transpose]);
    programs.extend(stencils);
    programs
}

/// The numbers from `first` to `last`, each `step` times the one before.
fn powers(first: usize, last: usize, step: usize) -> Vec<usize> {
    std::iter::successors(Some(first), |value| Some(value * step))
        .take_while(|value| *value <= last)
        .collect()
}
