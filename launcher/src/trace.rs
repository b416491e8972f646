//! What the ranks of a job have recorded, as the viewer's file and the profile take it: `mpjrun --trace`.
//!
//! ```text
//!  memories   the memory of each rank, made when it starts, read when all have ended
//!     │   footprints   how much memory the ranks occupy
//!     │
//!     │   incoming   those of ranks on other hosts, as their agents send them
//!     │   clocks     the times of other hosts
//!     │
//!  collect    records of ranks, which are claims, become calls
//!   └─ pairs   which receive got which send
//!     │
//!  perfetto   writes the viewer's file
//!   └─ proto   in the encoding of Protocol Buffers
//! ```

pub(crate) mod clocks;
mod collect;
mod footprints;
mod incoming;
mod memories;
mod pairs;
mod perfetto;
mod proto;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub(crate) use incoming::{HostRecords, Incoming};
pub use memories::TraceChoice;
pub(crate) use memories::{Memories, collect_hosts};

/// What the ranks of a job have recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Trace {
    pub(crate) ranks: Vec<RankTrace>,
}

/// What one rank has recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RankTrace {
    /// Its number in MPI_COMM_WORLD.
    pub(crate) rank: u32,
    pub(crate) host: String,
    /// One for each thread that called, in the order of their first calls.
    pub(crate) threads: Vec<ThreadTrace>,
    /// How long its queues were, in the order of time.
    pub(crate) levels: Vec<Levels>,
    /// How many bytes of memory it occupied, each with its time in nanoseconds since the job began, in this order.
    pub(crate) footprint: Vec<(u64, u64)>,
}

impl RankTrace {
    /// Adds up a number of each thread. A rank may claim any number.
    pub(crate) fn sum(&self, of: impl Fn(&ThreadTrace) -> u64) -> u64 {
        self.threads.iter().map(of).fold(0, u64::saturating_add)
    }
}

/// How long the queues of a rank were at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Levels {
    /// Nanoseconds since the job began.
    pub(crate) at: u64,
    /// The device whose queues they are, from 1: one for each context of the rank.
    pub(crate) device: u64,
    /// Receives that were posted.
    pub(crate) posted: u64,
    /// Messages that had come before their receive.
    pub(crate) unexpected: u64,
    /// Bytes of memory with such messages.
    pub(crate) bytes: u64,
}

/// What one thread of a rank has recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ThreadTrace {
    /// In the order in which they began. A call that had not ended when the job did has no end.
    pub(crate) calls: Vec<Call>,
    /// How many later calls were not recorded because the memory was full.
    pub(crate) lost: u64,
    /// How many earlier calls were overwritten by others, where the newest ones are kept.
    pub(crate) overwritten: u64,
}

/// A call, or a span of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// "MPI_Send" in C, "send" in mpj, or the program's own name of a span.
    pub(crate) name: Arc<str>,
    pub(crate) kind: Kind,
    /// "src/main.rs:12", or nothing for C.
    pub(crate) place: Option<Arc<str>>,
    /// Nanoseconds since the job began.
    pub(crate) start: u64,
    pub(crate) end: Option<u64>,
    /// A number of the communicator that is the same on all its ranks.
    pub(crate) communicator: Option<u32>,
    /// The peer as a rank of the world: destination, source that was received from, or root.
    pub(crate) peer: Option<u32>,
    pub(crate) tag: Option<i32>,
    /// Bytes that this rank sends or receives in this call.
    pub(crate) bytes: u64,
    /// Pairs a send with its receive, which have the same number, if that is known. A wait has the number of the receive
    /// that it ended, if it ended one. A call that sends and receives has that of the message that it received.
    pub(crate) message: Option<u64>,
    /// Of collective calls: which call on this communicator it is, the same on all its ranks. Of their rounds the number.
    pub(crate) sequence: Option<u64>,
    /// Of sends whose protocol is known, whether it is rendezvous.
    pub(crate) by_rendezvous: Option<bool>,
}

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Send,
    Receive,
    /// Sends and receives.
    Exchange,
    Wait,
    Probe,
    Collective,
    OneSided,
    File,
    /// A part of the program that it has named itself.
    Span,
    /// A part of the call around it.
    Part,
    Other,
}

/// A trace with what its calls alone do not say.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) trace: Trace,
    /// The messages of which both ends are known.
    pub(crate) flows: Vec<Flow>,
    /// In a job that has agents, how wrong the difference between times of two hosts can be, in nanoseconds.
    pub(crate) error_between_hosts: Option<u64>,
}

impl Collected {
    /// Says how exactly times of different hosts can be compared, if there are several.
    fn comparable(&self) -> Option<String> {
        let micros = self.error_between_hosts.filter(|error| *error > 0)?.div_ceil(1000);
        Some(format!("times of different hosts agree to within {micros} µs"))
    }

    /// Returns a call that there is.
    fn call(&mut self, CallAt { rank, thread, call }: CallAt) -> &mut Call {
        &mut self.trace.ranks[rank].threads[thread].calls[call]
    }
}

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) number: u64,
    /// The call that sent it.
    pub(crate) from: CallAt,
    /// The call at whose end it was received.
    pub(crate) to: CallAt,
}

/// Where a call is in a trace: places in the lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CallAt {
    pub(crate) rank: usize,
    pub(crate) thread: usize,
    pub(crate) call: usize,
}
