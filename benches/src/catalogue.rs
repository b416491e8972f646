//! The benchmarks by name, and the launches that each name stands for.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use clap::ValueEnum;
use mpj_bench_programs::order::{Effort, POOL};
use mpj_bench_programs::{Buffers, Order, Program};

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
    /// The transport itself: active messages, puts, gets, fetch-and-add; in a run of its own
    Lapi,
    /// AM-2 beside the transport: short, medium and long messages; in a run of its own
    Am2,
}

/// How much to measure.
#[derive(Debug, Clone, Default)]
pub struct Extent {
    /// Whether to measure fewer points, with less time per point.
    pub quick: bool,
    /// The requested numbers of ranks; empty for each benchmark's own.
    pub ranks: Vec<usize>,
    /// The treatments of buffers between messages, one after the other; empty for each benchmark's own.
    pub buffers: Vec<Buffers>,
    /// The requested message sizes; empty for each benchmark's own.
    pub sizes: Vec<usize>,
    /// The requested orders of matrices; empty for each benchmark's own.
    pub orders: Vec<usize>,
    /// Largest message sizes (inclusive) of each protocol or algorithm.
    pub thresholds: Vec<usize>,
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

    /// Returns whether it measures the transport, or AM-2 over it, which have runtimes of their own.
    pub fn is_of_transport(self) -> bool {
        matches!(self, Self::Lapi | Self::Am2)
    }

    /// Returns the configurations of the benchmark, and one line for each request that is
    /// impossible.
    pub fn configurations(self, extent: &Extent) -> (Vec<Configuration>, Vec<String>) {
        let (least, own): (usize, &[usize]) = match self {
            Self::Startup if extent.quick => (1, &[2, 4, 8]),
            Self::Startup => (1, &[2, 4, 8, 16]),
            Self::Matrix => (1, &[1, 2, 4]),
            Self::Collectives => (2, &[2, 4, 8]),
            _ => (2, &[2]),
        };
        let most = if self.is_of_transport() { 2 } else { usize::MAX };
        let asked = if extent.ranks.is_empty() { own } else { &extent.ranks };
        let mut refused = Vec::new();
        for ranks in asked.iter().filter(|ranks| **ranks < least) {
            let name = self.name();
            refused.push(format!("{name} needs at least {least} ranks, not --np {ranks}"));
        }
        for ranks in asked.iter().filter(|ranks| **ranks > most) {
            let name = self.name();
            refused.push(format!("{name} has at most {most} ranks, not --np {ranks}"));
        }
        let treatments = self.treatments(extent, &mut refused);
        let mut configurations = Vec::new();
        for &ranks in asked.iter().filter(|ranks| (least..=most).contains(*ranks)) {
            let programs = self.programs(ranks, extent);
            for (buffers, programs) in by_buffers(&programs, &treatments) {
                let order = Order { buffers, ..self.order(programs, ranks, extent) };
                configurations.push(Configuration { benchmark: self, ranks, order });
            }
        }
        (configurations, refused)
    }

    /// The programs that run on `ranks` ranks.
    fn programs(self, ranks: usize, extent: &Extent) -> Vec<Program> {
        match self {
            Self::Latency => vec![Program::Latency],
            Self::Bandwidth => vec![Program::Bandwidth],
            Self::Bibw => vec![Program::Bibw],
            Self::Rate => vec![Program::Rate],
            Self::Overlap => vec![Program::Overlap],
            Self::Wakeup => vec![Program::Wakeup],
            Self::Startup => vec![Program::Empty],
            Self::Collectives => vec![Program::Collectives],
            Self::Matrix => matrix_programs(ranks, extent),
            Self::Lapi => {
                use Program::{Add, Am, AmLook, AmStream, Get, Put, PutStream};
                vec![Am, AmLook, AmStream, Put, PutStream, Get, Add]
            }
            Self::Am2 => {
                use Program::{Am, AmShort, AmStream, Get, Put, PutStream};
                vec![AmShort, Am, AmStream, Put, PutStream, Get]
            }
        }
    }

    fn order(self, programs: Vec<Program>, ranks: usize, extent: &Extent) -> Order {
        let quick = extent.quick;
        let effort = match (self, quick) {
            (_, true) => Effort { batches: 5, budget: 2.0 },
            (Self::Wakeup, false) => Effort { batches: 20, budget: 0.0 },
            (_, false) => Effort::default(),
        };
        let orders =
            if extent.orders.is_empty() { self.orders(quick) } else { extent.orders.clone() };
        let products = self.products(&orders, ranks, extent);
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

    /// The orders of matrices that `ranks` ranks can divide equally.
    fn products(self, orders: &[usize], ranks: usize, extent: &Extent) -> Vec<usize> {
        let worth = |order: &&usize| !extent.orders.is_empty() || **order >= 64;
        orders
            .iter()
            .filter(worth)
            .map(|order| order.next_multiple_of(ranks))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect()
    }

    fn orders(self, quick: bool) -> Vec<usize> {
        powers(1, if quick { 512 } else { 2048 }, if quick { 4 } else { 2 })
    }

    fn sizes(self, extent: &Extent) -> Vec<usize> {
        let step = if extent.quick { 4 } else { 2 };
        let sizes = match self {
            Self::Latency => powers(1, 16 << 20, step),
            Self::Bandwidth | Self::Bibw => powers(1, 4 << 20, step),
            Self::Overlap => powers(1 << 10, 4 << 20, 4),
            Self::Collectives if extent.quick => vec![8, 64 << 10],
            Self::Collectives => vec![8, 1 << 10, 64 << 10, 1 << 20],
            Self::Lapi | Self::Am2 if extent.quick => vec![8, 4 << 10, 64 << 10, 1 << 20],
            Self::Lapi | Self::Am2 => [vec![8, 64, 256], powers(1 << 10, 4 << 20, 4)].concat(),
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
