//! The processors that each rank may run on: `--bind-to`, `--map-by`, `--report-bindings`.
//!
//! [`Topology::here`] asks the system; all else is pure. Called before the ranks start; each rank binds itself between
//! fork and exec (`transport_lapi::bootstrap::spawn`).
//!
//! - BI1: ranks are bound only to processors that the launcher itself may use, as a container or a batch system allows.
//! - BI2: all places get a rank before one gets a second one. A job with more ranks than places starts again at the
//!   first place, and a note says so.
//! - BI3: where nothing is asked for, several ranks divide the processors evenly, neighbours beside each other: by cores,
//!   or by hardware threads if there are fewer cores than ranks. A rank is bound to its share. OpenMP and other runtimes
//!   take as many threads as they see processors, so all ranks together have as many as there are. With more ranks than
//!   processors each rank may use all of them. If they come out equally many for each, it gets one as its home, to
//!   which its waits return: such ranks poll and yield in turns, and the kernel may leave three of four of them on one
//!   of two processors for a tenth of a second.

use std::fmt::Write;
use std::fs;
use std::io;

use clap::ValueEnum;
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity};

/// What a rank is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BindTo {
    /// Nothing: the kernel may move ranks
    None,
    /// One core, with all its hardware threads
    Core,
    /// One hardware thread
    Hwthread,
    /// All cores of one socket
    #[value(alias = "package")]
    Socket,
}

/// The order in which ranks get their places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MapBy {
    /// Neighbours on neighbouring cores
    #[value(alias = "slot")]
    Core,

    /// Neighbours on different sockets, in turn
    #[value(alias = "package")]
    Socket,
    /// Neighbours on the hardware threads of one core
    Hwthread,
    /// Neighbours on different hosts, in turn; on one host as `core`
    Node,
}

/// How the ranks of a job are bound to processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding {
    /// What each rank is bound to; `None` if the launcher chooses (BI3).
    pub bind_to: Option<BindTo>,
    /// The order of their places.
    pub map_by: MapBy,
    /// Whether the launcher prints where each rank runs.
    pub report: bool,
}

impl Binding {
    /// Makes the binding from the options. `--map-by` alone also binds, to a core or a hardware thread.
    pub fn new(bind_to: Option<BindTo>, map_by: Option<MapBy>, report: bool) -> Self {
        let bind_to = bind_to.or(map_by.map(|order| match order {
            MapBy::Core | MapBy::Socket | MapBy::Node => BindTo::Core,
            MapBy::Hwthread => BindTo::Hwthread,
        }));
        Self { bind_to, map_by: map_by.unwrap_or(MapBy::Core), report }
    }
}

/// A core, with those of its processors that may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Core {
    socket: usize,
    /// The number of its first processor, usable or not.
    number: usize,
    threads: Vec<usize>,
}

/// The cores with processors that may be used, sorted by socket and number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Topology {
    cores: Vec<Core>,
}

impl Topology {
    /// The processors that this process may use (BI1). One that the system does not describe is a core of its own.
    pub(crate) fn here() -> io::Result<Self> {
        let usable = sched_getaffinity(None)?;
        let usable = (0..CpuSet::MAX_CPU).filter(|cpu| usable.is_set(*cpu));
        let topology = Self::new(usable.map(|cpu| (cpu, place_of(cpu))));
        if topology.cores.is_empty() { Err(Errno::NODEV.into()) } else { Ok(topology) }
    }

    /// From processors, each with its socket and the number of its core.
    fn new(processors: impl IntoIterator<Item = (usize, (usize, usize))>) -> Self {
        let mut cores: Vec<Core> = Vec::new();
        for (cpu, (socket, number)) in processors {
            match cores.iter_mut().find(|core| (core.socket, core.number) == (socket, number)) {
                Some(core) => core.threads.push(cpu),
                None => cores.push(Core { socket, number, threads: vec![cpu] }),
            }
        }
        cores.sort_by_key(|core| (core.socket, core.number));
        Self { cores }
    }

    /// The places in the order in which ranks get them: cores and threads, each pair once (BI2).
    fn places(&self, map_by: MapBy) -> Vec<(&Core, usize)> {
        let place_in_socket = |index: usize| {
            let socket = self.cores[index].socket;
            self.cores[..index].iter().filter(|core| core.socket == socket).count()
        };
        let places = self.cores.iter().enumerate().flat_map(|(index, core)| {
            core.threads.iter().enumerate().map(move |(turn, cpu)| (index, turn, (core, *cpu)))
        });
        let mut places: Vec<_> = places.collect();
        // A stable sort keeps equal places in the order of the cores.
        places.sort_by_key(|&(index, turn, _)| match map_by {
            MapBy::Hwthread => (index, turn),
            MapBy::Core | MapBy::Node => (turn, index),
            MapBy::Socket => (turn, place_in_socket(index)),
        });
        places.into_iter().map(|(.., place)| place).collect()
    }

    fn socket(&self, socket: usize) -> Vec<usize> {
        let cores = self.cores.iter().filter(|core| core.socket == socket);
        let mut processors: Vec<usize> =
            cores.flat_map(|core| core.threads.iter().copied()).collect();
        processors.sort_unstable();
        processors
    }

    /// Decides where each of `ranks` ranks runs. There is at least one place, see [`Topology::here`].
    pub(crate) fn place(&self, binding: Binding, ranks: usize) -> Placement {
        let Some(bind_to) = binding.bind_to else { return self.place_evenly(ranks) };
        let places = self.places(binding.map_by);
        let seat = |rank: usize| {
            let (core, cpu) = places[rank % places.len()];
            let processors = match bind_to {
                BindTo::None => return None,
                BindTo::Core => core.threads.clone(),
                BindTo::Hwthread => vec![cpu],
                BindTo::Socket => self.socket(core.socket),
            };
            Some(Seat { processors, socket: core.socket })
        };
        let (room, noun) = match (bind_to, binding.map_by) {
            (BindTo::None, _) => (usize::MAX, ""),
            (BindTo::Core, MapBy::Core | MapBy::Socket) => (self.cores.len(), "cores"),
            _ => (places.len(), "processors"),
        };
        let shared = (ranks > room).then_some((room, noun));
        let seats = (0..ranks).map(seat).collect();
        Placement { bind_to: Some(bind_to), seats, homes: Vec::new(), shared }
    }

    /// Decides where `ranks` ranks run of which nothing is asked (BI3).
    fn place_evenly(&self, ranks: usize) -> Placement {
        let places = self.places(MapBy::Hwthread);
        let unbound = Placement::unbound(ranks);
        if ranks == 1 {
            return unbound;
        }
        if ranks > places.len() {
            let each = ranks / places.len();
            let is_even = ranks % places.len() == 0;
            let homes = (0..ranks).filter(|_| is_even).map(|rank| places[rank / each].1).collect();
            return Placement { homes, ..unbound };
        }
        let units: Vec<(usize, Vec<usize>)> = match ranks <= self.cores.len() {
            true => self.cores.iter().map(|core| (core.socket, core.threads.clone())).collect(),
            false => places.iter().map(|(core, cpu)| (core.socket, vec![*cpu])).collect(),
        };
        let seat = |rank: usize| {
            let share = &units[rank * units.len() / ranks..(rank + 1) * units.len() / ranks];
            let mut processors: Vec<usize> =
                share.iter().flat_map(|(_, processors)| processors.iter().copied()).collect();
            processors.sort_unstable();
            Some(Seat { processors, socket: share[0].0 })
        };
        Placement { bind_to: None, seats: (0..ranks).map(seat).collect(), ..unbound }
    }
}

/// Socket and core of a processor, in the kernel's numbers.
fn place_of(cpu: usize) -> (usize, usize) {
    let read = |name: &str| {
        fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/topology/{name}")).ok()
    };
    let siblings = read("core_cpus_list").or_else(|| read("thread_siblings_list"));
    let core = siblings.as_deref().and_then(first_number).unwrap_or(cpu);
    // Some machines with one socket number it -1.
    let socket = read("physical_package_id").as_deref().and_then(first_number).unwrap_or(0);
    (socket, core)
}

/// The first number of a text like `3,7-9`.
fn first_number(text: &str) -> Option<usize> {
    let end = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

/// Where one rank runs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seat {
    processors: Vec<usize>,
    socket: usize,
}

/// Where the ranks of a job run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placement {
    /// `None` for shares (BI3).
    bind_to: Option<BindTo>,
    /// One per rank; `None` where it is not bound.
    seats: Vec<Option<Seat>>,
    /// The homes of the ranks; none if they have none (BI3).
    homes: Vec<usize>,
    /// The number of places, and of what kind, if they are too few (BI2).
    shared: Option<(usize, &'static str)>,
}

impl Placement {
    /// Binds no rank.
    pub(crate) fn unbound(ranks: usize) -> Self {
        let bind_to = Some(BindTo::None);
        Self { bind_to, seats: vec![None; ranks], homes: Vec::new(), shared: None }
    }

    /// The processors of `rank`, for the system; `None` if it is not bound.
    pub(crate) fn processors(&self, rank: usize) -> Option<CpuSet> {
        let seat = self.seats[rank].as_ref()?;
        let mut set = CpuSet::new();
        seat.processors.iter().for_each(|cpu| set.set(*cpu));
        Some(set)
    }

    /// The home of `rank`, if it has one.
    pub(crate) fn home(&self, rank: usize) -> Option<usize> {
        self.homes.get(rank).copied()
    }

    /// The number of processors of all ranks together; `None` if they are not bound.
    pub(crate) fn total(&self) -> Option<usize> {
        let mut all: Vec<usize> =
            self.seats.iter().flatten().flat_map(|seat| seat.processors.iter().copied()).collect();
        all.sort_unstable();
        all.dedup();
        (!all.is_empty()).then_some(all.len())
    }

    /// A note that ranks share what they are bound to, if they do.
    pub(crate) fn note(&self) -> Option<String> {
        let (room, noun) = self.shared?;
        let ranks = self.seats.len();
        let noun = if room == 1 { noun.trim_end_matches('s') } else { noun };
        Some(format!("{ranks} ranks are bound to {room} {noun}, so some share one"))
    }

    /// Where `rank` runs, in words.
    pub(crate) fn words(&self, rank: usize) -> String {
        let Some(Seat { processors, socket }) = &self.seats[rank] else {
            let home = self.home(rank).map(|home| format!(", at home on processor {home}"));
            return format!("not bound{}", home.unwrap_or_default());
        };
        let noun = if processors.len() == 1 { "processor" } else { "processors" };
        let what = match self.bind_to {
            None => "its share".to_owned(),
            Some(BindTo::Socket | BindTo::None) => format!("all of socket {socket}"),
            Some(BindTo::Core) => format!("a core of socket {socket}"),
            Some(BindTo::Hwthread) => format!("a hardware thread of socket {socket}"),
        };
        format!("bound to {noun} {}, {what}", list(processors))
    }
}

/// Numbers as the kernel and `taskset` write them: `0,2-4`.
fn list(numbers: &[usize]) -> String {
    let mut text = String::new();
    for run in numbers.chunk_by(|one, next| one + 1 == *next) {
        let comma = if text.is_empty() { "" } else { "," };
        // Writing to a string does not fail.
        let _ = match run {
            [first, .., last] => write!(text, "{comma}{first}-{last}"),
            _ => write!(text, "{comma}{}", run[0]),
        };
    }
    text
}

#[cfg(test)]
mod tests;
