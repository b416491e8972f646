//! What blocked ranks wait for: the vocabulary that ranks and launcher share.
//!
//! The words are MPI's, since the launcher's user reads them. A thread that goes to sleep in a call
//! publishes a [`Wait`] in the job segment; a rank that is asked for its queues tells them over the
//! control line. Whatever is read from the segment is a claim of the rank that wrote it.

use std::cell::Cell;

pub use crate::adapters::board::Board;

/// The name of a thread that never communicates, whose number is `thread`: a rank may be found to be in
/// deadlock although such a thread runs. So it must not start threads that communicate either. The number
/// is part of the name since new threads inherit that of the one that starts them, and may have been
/// started before. The runtime's own thread has such a name, and libtest's while it waits for a test of several ranks.
pub fn bystander_name(thread: i32) -> String {
    format!("mpj-by-{thread}")
}

/// The call in which a thread is blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(u32)]
pub enum Call {
    /// A call that is none of the others.
    #[default]
    Other,
    /// Blocking send, of whatever mode.
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
    /// The end of the rank's part: it waits until all others have come there.
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
    /// A communicator of a part of another one, made by all ranks of that.
    Create,
    /// A communicator of a part of another one, made by its own ranks.
    CreateGroup,
    /// An intercommunicator.
    IntercommCreate,
    /// The union of both sides of an intercommunicator.
    IntercommMerge,
}

/// What an operation waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum Phase {
    /// Nothing is known.
    #[default]
    Unknown,
    /// A receive or probe: no message has come yet.
    Unmatched,
    /// A receive that has met an eager message, whose data are arriving.
    Arriving,
    /// A receive that has met a rendezvous message, and fetches its data.
    Fetching,
    /// A send whose data wait for room at the receiver.
    Leaving,
    /// A send by rendezvous whose data the receiver has not fetched yet.
    Offered,
    /// A synchronous send whose message no receive has met yet.
    Unanswered,
    /// A rank at its end: others have not come there yet.
    Others,
}

/// What one thread of a rank is blocked in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wait {
    /// The call.
    pub call: Call,
    /// The collective operation that is waited for: of a blocking one that is the call itself, of a non-blocking one
    /// the call is a wait. [`Call::Other`] for messages between two ranks.
    pub operation: Call,
    /// Operations of the call that are not complete; the fields below are of the first of them.
    pub open: u32,
    /// Whether that one sends.
    pub sends: bool,
    /// Its other end; `None` is any rank, or all of them.
    pub peer: Option<u32>,
    /// Its tag; `None` is any. In a collective operation, its number among those of the communicator: see
    /// [`goes_before`].
    pub tag: Option<i32>,
    /// Its context: communicator number times two, plus one for collective calls. What is read of a rank says in
    /// the high half in which context of the task that is (see [`context_of`]).
    pub context: u64,
    /// Length of its buffer in bytes.
    pub bytes: u64,
    /// How far it has come.
    pub phase: Phase,
    /// Whether no other thread of the rank has access to the library any more.
    pub alone: bool,
    /// Whether the thread is unwinding from a panic.
    pub unwinding: bool,
    /// Since when the thread is blocked, by [`super::monotonic_nanos`].
    pub since: u64,
    /// The number of the thread in its namespace of processes; 0 if it is not known.
    pub thread: u32,
}

/// What was read of one rank. Everything in it is that rank's claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskState {
    /// Its process; 0 before it has attached to the segment.
    pub pid: u32,
    /// Whether that number means the same process here: not in another namespace of processes.
    pub is_here: bool,
    /// Grows whenever a thread of the rank begins or ends to sleep: the sum of what grows in each of its contexts, so
    /// the same sum at two times means that none has changed.
    pub epoch: u64,
    /// Changes, most often, when the rank takes in messages. A sum as well.
    pub moves: u64,
    /// What its threads are blocked in, context by context, at most [`TaskState::LISTED`] of them in each.
    pub blocked: Vec<Blocked>,
    /// Blocked threads that are not among those.
    pub unlisted: u32,
    /// How many contexts it has.
    pub contexts: usize,
}

/// What tells messages of `context`, in context `of_task` of their tasks, from all others: the latter in the high
/// half. For a task with one context, that is `context`.
pub fn context_of(of_task: usize, context: u64) -> u64 {
    (of_task as u64) << 32 | context & u64::from(u32::MAX)
}

/// The two parts of what [`context_of`] has made.
pub fn parts_of_context(context: u64) -> (u32, u32) {
    ((context >> 32) as u32, context as u32)
}

/// How many numbers collective calls of one communicator have, before they begin again at 0.
pub const CALL_NUMBERS: u32 = 1 << 30;

/// Whether the collective call with number `one` comes before that with number `other`, of one communicator. Numbers
/// begin at 0 and are counted modulo [`CALL_NUMBERS`]; those that ranks of one communicator are at lie near each other.
pub fn goes_before(one: i32, other: i32) -> bool {
    let distance = other.wrapping_sub(one) as u32 % CALL_NUMBERS;
    (1..CALL_NUMBERS / 2).contains(&distance)
}

impl Call {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 31] = [
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
    ];

    /// Whether all ranks of a communicator make this call (MPI-4.1 chapters 6 and 7). The end of a rank's part belongs
    /// to no communicator.
    pub fn is_collective(self) -> bool {
        self > Self::Finish || matches!(self, Self::Barrier | Self::Dup)
    }

    /// The name that users know it by: that of MPI in small letters, without the prefix.
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
        }
    }
}

impl Phase {
    /// All of them, in the order of their numbers.
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
    /// Most threads of a rank whose calls are published, in each of its contexts.
    pub const LISTED: usize = 7;

    /// Whether the rank was there to publish anything.
    pub fn is_there(&self) -> bool {
        self.pid != 0
    }
}

/// A blocked thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocked {
    /// What it waits for.
    pub wait: Wait,
    /// Whether nobody has rung for it since it looked for messages the last time.
    pub undisturbed: bool,
    /// Whether the wait has ended since by an error: what was published is what it was.
    pub failed: bool,
    /// Counts how often it has looked for messages in vain while it slept.
    pub looks: u32,
}

/// A call of which others are parts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outer {
    pub(crate) call: Call,
    /// Of a collective call: the context of its messages, and its number among those of the communicator.
    pub(crate) collective: Option<(u64, i32)>,
    pub(crate) alone: bool,
}

thread_local! {
    /// The call that the program made, where that is not the one that waits.
    static OUTER: Cell<Option<Outer>> = const { Cell::new(None) };
}

/// Says that this thread is in a call of which others are parts, until it is dropped: what it waits for
/// meanwhile is published under its name.
#[must_use = "the call ends when this is dropped"]
pub struct Within {
    before: Option<Outer>,
}

impl Within {
    /// The call begins.
    pub fn call(call: Call) -> Self {
        Self { before: OUTER.replace(Some(Outer { call, collective: None, alone: false })) }
    }

    /// A collective call begins, which has this number among those of its communicator (see [`goes_before`]): it
    /// stands in place of the tags of its messages, which have this context.
    pub fn collective(call: Call, context: u32, number: i32) -> Self {
        let collective = Some((context.into(), number));
        Self { before: OUTER.replace(Some(Outer { call, collective, alone: false })) }
    }

    /// The end of this rank's part begins; `alone` if no other thread has access to the library any more,
    /// whatever it does: then such threads do not keep the job from being in deadlock.
    pub fn end(alone: bool) -> Self {
        Self { before: OUTER.replace(Some(Outer { call: Call::Finish, collective: None, alone })) }
    }

    /// The call that this thread is in, if it is in one.
    pub(crate) fn current() -> Option<Outer> {
        OUTER.get()
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        OUTER.set(self.before);
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
        // Claims.
        assert!(!goes_before(i32::MIN, i32::MIN) && !goes_before(-1, -1));
    }
}
