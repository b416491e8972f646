//! What blocked ranks wait for: the types in which ranks describe it to the launcher.
//!
//! The terms are MPI's, since the launcher's user reads them. A thread that goes to sleep in a call publishes a
//! [`Wait`] in the job segment. A rank that is asked for its queues sends them over the control line. Everything read
//! from the segment is untrusted.

use std::cell::Cell;

/// Returns the name that marks thread `thread` as one that never communicates: a rank may be in deadlock although such
/// a thread runs. It must not start threads that communicate either. The name contains the thread's number because new
/// threads inherit the name of the thread that starts them, and may be older than the mark. The runtime's own thread
/// has such a name.
pub fn bystander_name(thread: i32) -> String {
    format!("mpj-by-{thread}")
}

/// The call in which a thread is blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(u32)]
pub enum Call {
    /// Any call not listed here.
    #[default]
    Other,
    /// Blocking send of any mode.
    Send,
    /// Blocking receive.
    Recv,
    /// Blocking probe, matched or not.
    Probe,
    /// Wait for one request.
    Wait,
    /// Wait for the first of several requests, or for some of them.
    WaitAny,
    /// Wait for all of several requests.
    WaitAll,
    /// Barrier.
    Barrier,
    /// Duplication of a communicator.
    Dup,
    /// The end of the rank's part of the job, where it waits for all others to get there.
    Finish,
    /// Broadcast.
    Bcast,
    /// Gather.
    Gather,
    /// Gather of blocks of different lengths.
    Gatherv,
    /// Scatter.
    Scatter,
    /// Scatter of blocks of different lengths.
    Scatterv,
    /// Gather to all.
    Allgather,
    /// Gather of blocks of different lengths to all.
    Allgatherv,
    /// Exchange of all with all.
    Alltoall,
    /// Exchange of blocks of different lengths.
    Alltoallv,
    /// Exchange of blocks of different lengths and datatypes.
    Alltoallw,
    /// Reduction.
    Reduce,
    /// Reduction to all.
    Allreduce,
    /// Reduction of blocks of different lengths, one of which each rank gets.
    ReduceScatter,
    /// Reduction of blocks, one of which each rank gets.
    ReduceScatterBlock,
    /// Inclusive prefix reduction.
    Scan,
    /// Exclusive prefix reduction.
    Exscan,
    /// Division of a communicator by colours.
    Split,
    /// A communicator of some ranks of another one, made by all ranks of that one.
    Create,
    /// A communicator of some ranks of another one, made by those ranks only.
    CreateGroup,
    /// An intercommunicator.
    IntercommCreate,
    /// The union of both sides of an intercommunicator.
    IntercommMerge,
    /// Gather among neighbours in a topology.
    NeighborAllgather,
    /// Gather of blocks of different lengths among neighbours.
    NeighborAllgatherv,
    /// Exchange among neighbours in a topology.
    NeighborAlltoall,
    /// Exchange of blocks of different lengths among neighbours.
    NeighborAlltoallv,
    /// Exchange of blocks of different lengths and datatypes among neighbours.
    NeighborAlltoallw,
}

/// The progress of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum Phase {
    /// Unknown.
    #[default]
    Unknown,
    /// A receive or probe for which no message has arrived.
    Unmatched,
    /// A receive that has matched an eager message whose data are arriving.
    Arriving,
    /// A receive that has matched a rendezvous message and fetches its data.
    Fetching,
    /// A send whose data wait for room at the receiver.
    Leaving,
    /// A send by rendezvous whose data the receiver has not fetched yet.
    Offered,
    /// A synchronous send whose message has not been matched by a receive.
    Unanswered,
    /// A rank at its end, which other ranks have not reached yet.
    Others,
}

/// The call in which one thread of a rank is blocked, and what it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wait {
    /// The call.
    pub call: Call,
    /// The collective operation that the thread waits for. For a blocking one this equals `call`; for a non-blocking
    /// one `call` is a wait. [`Call::Other`] for messages between two ranks.
    pub operation: Call,
    /// Number of incomplete operations of the call; the fields below describe the first of them.
    pub open: u32,
    /// Whether that operation sends.
    pub sends: bool,
    /// The other end; `None` stands for any rank, or all of them.
    pub peer: Option<u32>,
    /// The tag; `None` stands for any. In a collective operation, its number on the communicator: see [`goes_before`].
    pub tag: Option<i32>,
    /// The MPI context: communicator number times two, plus one for collective calls. When read from a rank, the high
    /// half contains the number of the task's context (see [`context_of`]).
    pub context: u64,
    /// Length of the buffer in bytes.
    pub bytes: u64,
    /// The progress of the operation.
    pub phase: Phase,
    /// Whether no other thread of the rank has access to the library any more.
    pub alone: bool,
    /// Whether the thread is unwinding from a panic.
    pub unwinding: bool,
    /// When the thread blocked, by [`crate::bootstrap::monotonic_nanos`].
    pub since: u64,
    /// The number of the thread in its PID namespace; 0 if unknown.
    pub thread: u32,
}

/// The published state of one rank. All of it is untrusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskState {
    /// The rank's process; 0 before it has attached to the segment.
    pub pid: u32,
    /// Whether that number denotes the same process here, that is, in the same PID namespace.
    pub is_here: bool,
    /// Grows whenever a thread of the rank starts or stops sleeping. It is the sum over the rank's contexts, each of
    /// which only grows: equal sums at two times mean that nothing has changed.
    pub epoch: u64,
    /// Usually changes when the rank receives messages. Also a sum over the contexts.
    pub moves: u64,
    /// The blocked threads, context by context, at most [`TaskState::LISTED`] for each.
    pub blocked: Vec<Blocked>,
    /// Number of further blocked threads.
    pub unlisted: u32,
    /// Number of contexts of the rank.
    pub contexts: usize,
}

/// Combines MPI context `context` with the number `of_task` of the task's context, in the high half, into a number that
/// distinguishes its messages from all others. For a task with one context the result is `context`.
pub fn context_of(of_task: usize, context: u64) -> u64 {
    (of_task as u64) << 32 | context & u64::from(u32::MAX)
}

/// Splits a number made by [`context_of`] into its two parts.
pub fn parts_of_context(context: u64) -> (u32, u32) {
    ((context >> 32) as u32, context as u32)
}

/// How many ids communicators have. Half of a context, modulo this number, is the id of its communicator, except for
/// the contexts from 6 times this number on, which belong to calls of ranks without a communicator.
pub const CONTEXT_IDS: u32 = 1 << 29;

/// How many numbers the collective calls of a communicator have before they start again at 0.
pub const CALL_NUMBERS: u32 = 1 << 30;

/// Returns whether collective call `one` of a communicator precedes call `other`. Numbers start at 0 and are counted
/// modulo [`CALL_NUMBERS`]; the current numbers of the communicator's ranks are close to each other.
pub fn goes_before(one: i32, other: i32) -> bool {
    let distance = other.wrapping_sub(one) as u32 % CALL_NUMBERS;
    (1..CALL_NUMBERS / 2).contains(&distance)
}

impl Call {
    /// All calls, in the order of their numbers.
    pub const ALL: [Self; 36] = [
        Self::Other,
        Self::Send,
        Self::Recv,
        Self::Probe,
        Self::Wait,
        Self::WaitAny,
        Self::WaitAll,
        Self::Barrier,
        Self::Dup,
        Self::Finish,
        Self::Bcast,
        Self::Gather,
        Self::Gatherv,
        Self::Scatter,
        Self::Scatterv,
        Self::Allgather,
        Self::Allgatherv,
        Self::Alltoall,
        Self::Alltoallv,
        Self::Alltoallw,
        Self::Reduce,
        Self::Allreduce,
        Self::ReduceScatter,
        Self::ReduceScatterBlock,
        Self::Scan,
        Self::Exscan,
        Self::Split,
        Self::Create,
        Self::CreateGroup,
        Self::IntercommCreate,
        Self::IntercommMerge,
        Self::NeighborAllgather,
        Self::NeighborAllgatherv,
        Self::NeighborAlltoall,
        Self::NeighborAlltoallv,
        Self::NeighborAlltoallw,
    ];

    /// Returns whether all ranks of a communicator make this call (MPI-4.1 chapters 6 and 7). [`Call::Finish`] belongs
    /// to no communicator.
    pub fn is_collective(self) -> bool {
        self > Self::Finish || matches!(self, Self::Barrier | Self::Dup)
    }

    /// Returns the name for users: MPI's in small letters, without the prefix.
    pub fn name(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Send => "send",
            Self::Recv => "recv",
            Self::Probe => "probe",
            Self::Wait => "wait",
            Self::WaitAny => "waitany",
            Self::WaitAll => "waitall",
            Self::Barrier => "barrier",
            Self::Dup => "dup",
            Self::Finish => "finish",
            Self::Bcast => "bcast",
            Self::Gather => "gather",
            Self::Gatherv => "gatherv",
            Self::Scatter => "scatter",
            Self::Scatterv => "scatterv",
            Self::Allgather => "allgather",
            Self::Allgatherv => "allgatherv",
            Self::Alltoall => "alltoall",
            Self::Alltoallv => "alltoallv",
            Self::Alltoallw => "alltoallw",
            Self::Reduce => "reduce",
            Self::Allreduce => "allreduce",
            Self::ReduceScatter => "reduce_scatter",
            Self::ReduceScatterBlock => "reduce_scatter_block",
            Self::Scan => "scan",
            Self::Exscan => "exscan",
            Self::Split => "split",
            Self::Create => "create",
            Self::CreateGroup => "create_group",
            Self::IntercommCreate => "intercomm_create",
            Self::IntercommMerge => "intercomm_merge",
            Self::NeighborAllgather => "neighbor_allgather",
            Self::NeighborAllgatherv => "neighbor_allgatherv",
            Self::NeighborAlltoall => "neighbor_alltoall",
            Self::NeighborAlltoallv => "neighbor_alltoallv",
            Self::NeighborAlltoallw => "neighbor_alltoallw",
        }
    }
}

impl Phase {
    /// All phases, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::Unknown,
        Self::Unmatched,
        Self::Arriving,
        Self::Fetching,
        Self::Leaving,
        Self::Offered,
        Self::Unanswered,
        Self::Others,
    ];
}

impl TaskState {
    /// Most blocked threads that are published for each context of a rank.
    pub const LISTED: usize = 7;

    /// Returns whether the rank has attached to the segment.
    pub fn is_there(&self) -> bool {
        self.pid != 0
    }
}

/// A blocked thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocked {
    /// What the thread waits for.
    pub wait: Wait,
    /// Whether nobody has rung the bell since the thread last polled for messages.
    pub undisturbed: bool,
    /// Whether the wait has ended with an error; it stays published.
    pub failed: bool,
    /// How many times the thread has polled for messages in vain while asleep.
    pub looks: u32,
}

/// A call that consists of other calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outer {
    pub(crate) call: Call,
    /// For a collective call: the context of its messages, and its number on the communicator.
    pub(crate) collective: Option<(u32, i32)>,
    pub(crate) alone: bool,
}

/// The call that a thread is in, if it differs from the call that waits.
struct Calling {
    /// The call, and whether it is `alone` (see [`Within::end`]).
    call: Cell<Option<(Call, bool)>>,
    /// For a collective call: the context of its messages, and its number on the communicator in the lower half. It is
    /// a cell of its own, because a larger one would be stored field by field and loaded as a whole, which stalls.
    collective: Cell<u64>,
}

thread_local! {
    static CALLING: Calling = const { Calling { call: Cell::new(None), collective: Cell::new(0) } };
}

/// Marks this thread as being in a call that consists of other calls. Until this value is dropped, waits of the thread
/// are published under the name of that call.
#[must_use = "the call ends when this is dropped"]
pub struct Within {
    before: (Option<(Call, bool)>, u64),
}

impl Within {
    /// Begins a call.
    pub fn call(call: Call) -> Self {
        Self::begin((call, false), 0)
    }

    /// Begins a collective call with this number on its communicator (see [`goes_before`]). The number is published
    /// instead of the tags of its messages, whose MPI context is `context`.
    #[inline]
    pub fn collective(call: Call, context: u32, number: i32) -> Self {
        Self::begin((call, false), u64::from(context) << 32 | u64::from(number as u32))
    }

    /// Marks the call in which this rank leaves the job. `alone` means that no other thread has access to the library
    /// any more. Such threads then do not prevent the job from being in deadlock, whatever they do.
    pub fn end(alone: bool) -> Self {
        Self::begin((Call::Finish, alone), 0)
    }

    #[inline]
    fn begin(call: (Call, bool), collective: u64) -> Self {
        CALLING.with(|calling| Self {
            before: (calling.call.replace(Some(call)), calling.collective.replace(collective)),
        })
    }

    /// Returns the call that this thread is in, if any.
    pub(crate) fn current() -> Option<Outer> {
        let (call, word) = CALLING.with(|calling| (calling.call.get(), calling.collective.get()));
        let (call, alone) = call?;
        let collective = call.is_collective().then_some(((word >> 32) as u32, word as i32));
        Some(Outer { call, collective, alone })
    }
}

impl Drop for Within {
    #[inline]
    fn drop(&mut self) {
        CALLING.with(|calling| {
            calling.call.set(self.before.0);
            calling.collective.set(self.before.1);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collective_calls_are_those_of_communicators() {
        let others = [Call::Other, Call::Send, Call::Recv, Call::Probe, Call::Finish];
        let waits = [Call::Wait, Call::WaitAny, Call::WaitAll];
        let are_none = |call: &Call| others.contains(call) || waits.contains(call);
        for call in Call::ALL {
            assert_eq!(call.is_collective(), !are_none(&call), "{}", call.name());
        }
        let names: std::collections::BTreeSet<&str> = Call::ALL.map(Call::name).into();
        assert_eq!(names.len(), Call::ALL.len(), "no two have the same name");
    }

    #[test]
    fn numbers_of_calls_begin_again_at_0() {
        let last = (CALL_NUMBERS - 1) as i32;
        for (one, other) in [(0, 1), (16, 40), (last, 0), (last - 3, 5)] {
            assert!(goes_before(one, other) && !goes_before(other, one), "{one} {other}");
        }
        assert!(!goes_before(7, 7));
        // Untrusted values.
        assert!(!goes_before(i32::MIN, i32::MIN) && !goes_before(-1, -1));
    }
}
