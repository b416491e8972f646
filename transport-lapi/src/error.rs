//! Errors of the transport, with LAPI's names and conditions.
//!
//! Synchronous errors come from the call that was wrong. Asynchronous ones (LAPI hands them to the
//! error handler) come from [`crate::Session::progress`] and the calls that run it.

use crate::adapter::{AdapterError, TaskId};
use crate::wire::WireError;

/// The reason why a transport call failed. Each description names LAPI's condition.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LapiError {
    /// HNDL_INVALID: the context was terminated.
    #[error("the context was terminated; no transport call is possible after term")]
    HndlInvalid,
    /// A call was made on a context from inside one of its own handlers (a deadlock in LAPI), or
    /// while the same thread holds the session.
    #[error(
        "transport call from inside a handler of the same context; \
         return an action from the header handler, or use the outbox of the completion handler"
    )]
    InHandler,
    /// The process is a fork of a task. It has no part in the job, and none of the job's memory.
    #[error(
        "this process is a fork of rank {task} and has no part in the job; let the rank itself communicate, or \
         start the other program with exec"
    )]
    Forked {
        /// The task whose process forked.
        task: TaskId,
    },
    /// TGT: the target is not a task of this job.
    #[error("target {target} is out of range: the job has ranks 0 to {last}", last = .num_tasks - 1)]
    Tgt {
        /// The target that was asked for.
        target: TaskId,
        /// How many tasks there are.
        num_tasks: usize,
    },
    /// UHDR_LEN: longer than the maximum, or not a multiple of 8.
    #[error("user header of {len} bytes: it must be a multiple of 8 and at most {max}")]
    UhdrLen {
        /// The length that was given.
        len: usize,
        /// The limit, [`crate::Query::MaxUhdrSz`].
        max: usize,
    },
    /// ORG_ADDR_NULL: a null origin address with a length.
    #[error("origin address is null, but {len} bytes are to be moved")]
    OrgAddrNull {
        /// The length that was given.
        len: usize,
    },
    /// TGT_ADDR_NULL: a null target address with a length.
    #[error("target address is null, but {len} bytes are to be moved")]
    TgtAddrNull {
        /// The length that was given.
        len: u64,
    },
    /// DATA_LEN: longer than any memory, or outside the region that is read.
    #[error("{len} bytes at offset {offset} do not fit the {limit} bytes there are")]
    DataLen {
        /// Where the transfer would begin.
        offset: u64,
        /// How long it would be.
        len: u64,
        /// What there is.
        limit: u64,
    },
    /// ADDR_HNDL_RANGE: handler index outside the table.
    #[error("handler index {index} is outside 1 to {last}", last = crate::MAX_HANDLERS - 1)]
    AddrHndlRange {
        /// The index that was given.
        index: usize,
    },
    /// HDR_HNDLR_NULL, asynchronous: a message named a handler that this task has not set.
    #[error(
        "rank {origin} sent a message for handler {index}, which is not set here; \
         set the same handlers on every rank before the first message"
    )]
    HdrHndlrNull {
        /// Who sent it.
        origin: TaskId,
        /// The index that it named.
        index: u8,
    },
    /// CNTR_NULL: no such counter.
    #[error("counter {index} does not exist: {count} were made here")]
    CntrNull {
        /// The index that was given.
        index: u32,
        /// How many counters there are.
        count: usize,
    },
    /// CNTR_VAL: a wait for less than one event.
    #[error("cannot wait for {value} events: the value must be at least 1")]
    CntrVal {
        /// The value that was given.
        value: i64,
    },
    /// A completion handler panicked on the completion thread; its message counts as not completed.
    #[error("a completion handler panicked: {message}")]
    CompletionPanicked {
        /// What the panic said.
        message: String,
    },
    /// The completion thread could not be started.
    #[error("cannot start the completion thread: {0}")]
    CompletionThread(#[source] std::io::Error),
    /// A peer broke the protocol.
    #[error("rank {origin} broke the protocol: {violation}")]
    Peer {
        /// Who sent it.
        origin: TaskId,
        /// What was wrong with it.
        violation: Violation,
    },
    /// The adapter below failed.
    #[error(transparent)]
    Adapter(#[from] AdapterError),
}

/// A violation of the protocol by a peer: one variant for each, and a test for each variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The packet could not be decoded.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A message began before the one before it was complete.
    #[error("message {next} began before message {open} was complete")]
    Interleaved {
        /// The message that was still open.
        open: u32,
        /// The message that began.
        next: u32,
    },
    /// A body packet of a message that is not being received.
    #[error("a body packet of message {msg}, which is not being received")]
    StrayBody {
        /// The message it named.
        msg: u32,
    },
    /// A body packet that is not the continuation of what came before, or goes past the end.
    #[error("a body packet at offset {offset}, where {expected} was expected")]
    BodyOffset {
        /// The offset it named.
        offset: u64,
        /// The offset that was due.
        expected: u64,
    },
    /// A message that is not short, for a handler that takes no others.
    #[error(
        "a message for handler {index}, which takes one word of user header, one packet and no counters"
    )]
    NotShort {
        /// The handler it named.
        index: u8,
    },
    /// A counter that does not exist here.
    #[error("an update of counter {index}, which does not exist here")]
    UnknownCounter {
        /// The counter it named.
        index: u32,
    },
    /// Data or a refusal for a get that is not under way.
    #[error("an answer to get {ticket}, which is not under way")]
    StrayGet {
        /// The get it named.
        ticket: u32,
    },
    /// A get of memory that is not registered here, or outside the registered region.
    #[error("a get of {len} bytes at offset {offset} of a region that is not registered here")]
    UnregisteredGet {
        /// Where it would begin.
        offset: u64,
        /// How long it would be.
        len: u64,
    },
    /// The peer refused a get, since the region is not registered there.
    #[error("it refused get {ticket}: the region is not registered there")]
    GetRefused {
        /// The get it refused.
        ticket: u32,
    },
    /// A fence answer that was not asked for.
    #[error("an answer to a fence that was not asked for")]
    StrayFence,
    /// A barrier round that does not exist.
    #[error("a barrier message of round {round}, which does not exist")]
    BarrierRound {
        /// The round it named.
        round: u8,
    },
}
