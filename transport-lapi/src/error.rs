//! Errors of the transport, with LAPI's names and conditions.
//!
//! Synchronous errors are returned by the call that was wrong. Asynchronous ones are passed to the error handler
//! ([`crate::ErrorHandler`]) or, if there is none, returned by [`crate::Session::progress`] and the calls that run it.

use crate::adapter::{AdapterError, TaskId};
use crate::memory::layout::LayoutError;
use crate::memory::region::RemoteRegion;
use crate::wire::WireError;

/// An end of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The task that made the call.
    Origin,
    /// The other task.
    Target,
}

impl std::fmt::Display for End {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Origin => "origin",
            Self::Target => "target",
        })
    }
}

/// Why a transport call failed. Each description names LAPI's condition.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LapiError {
    /// HNDL_INVALID: the context was terminated.
    #[error("the context was terminated; no transport call is possible after term")]
    HndlInvalid,
    /// A call was made on a context inside one of its own handlers (a deadlock in LAPI), or while the same thread holds
    /// the session.
    #[error(
        "transport call from inside a handler of the same context; \
         return an action from the header handler, or use the outbox of the completion handler"
    )]
    InHandler,
    /// The process is a fork of a task. It does not belong to the job, and has none of the job's memory.
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
        /// The target of the call.
        target: TaskId,
        /// How many tasks there are.
        num_tasks: usize,
    },
    /// UHDR_LEN: longer than the maximum, or not a multiple of 8.
    #[error("user header of {len} bytes: it must be a multiple of 8 and at most {max}")]
    UhdrLen {
        /// The length of the user header.
        len: usize,
        /// The limit, [`crate::Query::MaxUhdrSz`].
        max: usize,
    },
    /// ORG_ADDR_NULL: a null origin address with a length.
    #[error("origin address is null, but {len} bytes are to be moved")]
    OrgAddrNull {
        /// The length of the transfer.
        len: usize,
    },
    /// TGT_ADDR_NULL: a null target address with a length.
    #[error("target address is null, but {len} bytes are to be moved")]
    TgtAddrNull {
        /// The length of the transfer.
        len: u64,
    },
    /// DATA_LEN: longer than any memory, or outside the region that is read.
    #[error("{len} bytes at offset {offset} do not fit the {limit} bytes there are")]
    DataLen {
        /// Offset at which the transfer would begin.
        offset: u64,
        /// Length of the transfer.
        len: u64,
        /// Length of the memory.
        limit: u64,
    },
    /// ADDR_HNDL_RANGE: handler index outside the table.
    #[error("handler index {index} is outside 1 to {last}", last = crate::wire::MAX_HANDLERS - 1)]
    AddrHndlRange {
        /// The index of the call.
        index: usize,
    },
    /// HDR_HNDLR_NULL, asynchronous: a message named a handler that this task has not set.
    #[error(
        "rank {origin} sent a message for handler {index}, which is not set here; \
         set the same handlers on every rank before the first message"
    )]
    HdrHndlrNull {
        /// The task that sent it.
        origin: TaskId,
        /// The index in the message.
        index: u8,
    },
    /// CNTR_NULL: no such counter.
    #[error("counter {index} does not exist: {count} were made here")]
    CntrNull {
        /// The index of the call.
        index: u32,
        /// How many counters there are.
        count: usize,
    },
    /// CNTR_VAL: a wait for less than one event.
    #[error("cannot wait for {value} events: the value must be at least 1")]
    CntrVal {
        /// The value of the call.
        value: i64,
    },
    /// TGT_VAR_NULL: a variable at the null address.
    #[error("the address of the target's variable is null")]
    TgtVarNull,
    /// A variable that is not aligned to its size.
    #[error("the variable at offset {offset} of the region is not aligned to its {size} bytes")]
    Unaligned {
        /// Offset of the variable in its region.
        offset: u64,
        /// Size of the variable in bytes.
        size: u64,
    },
    /// ORG_VEC_ADDR, TGT_VEC_ADDR, STRIDE_ORG_VEC_ADDR_NULL, STRIDE_TGT_VEC_ADDR_NULL: a vector with bytes in memory at
    /// the null address.
    #[error("the memory of the {end}'s vector is at address null")]
    VecAddr {
        /// Whose vector.
        end: End,
        /// Whether the vector is strided.
        is_strided: bool,
    },
    /// ORG_VEC_LEN, TGT_VEC_LEN: more bytes, or more blocks, than a vector can have.
    #[error(
        "the {end}'s vector is too long: it has at most 2^63 - 1 bytes and about half a million blocks"
    )]
    VecLen {
        /// Whose vector.
        end: End,
    },
    /// ORG_STRIDE, TGT_STRIDE: the stride is less than a block.
    #[error("the {end}'s vector has a stride of {stride} bytes, less than its blocks of {block}")]
    Stride {
        /// Whose vector.
        end: End,
        /// The stride in bytes.
        stride: u64,
        /// The length of a block in bytes.
        block: u64,
    },
    /// ORG_EXTENT, TGT_EXTENT: the blocks reach further than memory can.
    #[error(
        "the {end}'s vector of {count} blocks with a stride of {stride} bytes is larger than memory"
    )]
    Extent {
        /// Whose vector.
        end: End,
        /// The stride in bytes.
        stride: u64,
        /// The number of blocks.
        count: u64,
    },
    /// A vector has blocks outside its memory, or, if it is written to, blocks that overlap.
    #[error("the {end}'s vector does not fit its memory: {error}")]
    VecOutside {
        /// Whose vector.
        end: End,
        /// The reason.
        error: LayoutError,
    },
    /// VEC_TYPE_DIFF: the two ends' vectors are of different kinds.
    #[error("the vectors of origin and target are of different kinds")]
    VecTypeDiff,
    /// VEC_NUM_DIFF: the two ends' vectors have different numbers of blocks.
    #[error("the origin's vector has {origin} blocks, the target's {target}")]
    VecNumDiff {
        /// Number of the origin's blocks.
        origin: u64,
        /// Number of the target's blocks.
        target: u64,
    },
    /// VEC_LEN_DIFF: a block, or for generic vectors all of them together, has another length at the other end.
    #[error("the vectors have {origin} bytes at the origin where there are {target} at the target")]
    VecLenDiff {
        /// The origin's length in bytes.
        origin: u64,
        /// The target's length in bytes.
        target: u64,
    },
    /// The adapter has no shared areas.
    #[error("this adapter has no shared areas; register memory of your own for writing instead")]
    NoSharedArea,
    /// The task's shared area has not so many bytes left in one piece.
    #[error(
        "{len} bytes of the shared area are wanted, but at most {longest} are free in one piece"
    )]
    AreaExhausted {
        /// The number of bytes that are wanted.
        len: usize,
        /// The length of the longest free part.
        longest: usize,
    },
    /// MULTIPLE_WAITERS: two threads wait for one counter without polling.
    #[error(
        "another thread waits for counter {index} without polling; let each thread wait for a counter of its own"
    )]
    MultipleWaiters {
        /// The index of the counter.
        index: u32,
    },
    /// A wait without polling that nobody can end: there is neither a notification thread nor any other thread.
    #[error(
        "a wait without polling would never end, since the process has no other thread; \
         switch to interrupt mode, or use a wait that polls"
    )]
    NobodyPolls,
    /// TGT_PURGED: the target was purged.
    #[error(
        "rank {target} was purged; purge and resume it on both sides before you communicate with it again"
    )]
    TgtPurged {
        /// The task that was purged.
        target: TaskId,
    },
    /// QUERY_TYPE: the key is unknown, or the call cannot use it.
    #[error(
        "key {key} cannot be used here: keys 0 to 22, 28 and 29 can be read, and of these ERROR_CHK (4), TIMEOUT (5), \
         INTERRUPT_SET (8) and ACK_THRESHOLD (20) can be set"
    )]
    QueryType {
        /// LAPI's number of the key.
        key: u32,
    },
    /// SET_VAL: the value is out of the range of its key.
    #[error("key {key} cannot be set to {value}: legal are {least} to {most}")]
    SetVal {
        /// LAPI's number of the key.
        key: u32,
        /// The value of the call.
        value: i64,
        /// The least legal value.
        least: i64,
        /// The greatest legal value.
        most: i64,
    },
    /// CODE_UNKNOWN: there is no such code.
    #[error("{code} is not a code of LAPI")]
    CodeUnknown {
        /// The number of the call.
        code: i32,
    },
    /// TIMEOUT, asynchronous: a message waits because its target takes nothing.
    #[error(
        "a message to rank {target} has made no progress for {seconds} s; let that rank make progress, purge it, or \
         set a longer TIMEOUT"
    )]
    Timeout {
        /// The target of the message.
        target: TaskId,
        /// For how long nothing has moved.
        seconds: u64,
    },
    /// A handler panicked on a thread of the transport: a completion handler, whose message then counts as incomplete,
    /// or a handler or continuation on the notification thread.
    #[error("a completion handler panicked: {message}")]
    CompletionPanicked {
        /// The message of the panic.
        message: String,
    },
    /// The completion thread could not be started.
    #[error("cannot start the completion thread: {0}")]
    CompletionThread(#[source] std::io::Error),
    /// The notification thread could not be started.
    #[error("cannot start the notification thread: {0}")]
    NotificationThread(#[source] std::io::Error),
    /// A peer broke the protocol.
    #[error("rank {origin} broke the protocol: {violation}")]
    Peer {
        /// The task that broke it.
        origin: TaskId,
        /// What that task did.
        violation: Violation,
    },
    /// The adapter below failed.
    #[error(transparent)]
    Adapter(#[from] AdapterError),
}

/// A peer's violation of the protocol. There is one variant for each violation, and a test for each variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The packet could not be decoded.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A message began before the previous one was complete.
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
        /// The message that the packet names.
        msg: u32,
    },
    /// A body packet that does not continue the previous one, or goes past the end.
    #[error("a body packet at offset {offset}, where {expected} was expected")]
    BodyOffset {
        /// The offset that the packet names.
        offset: u64,
        /// The offset that was expected.
        expected: u64,
    },
    /// A message that is not short, for an index that has only a handler for short messages.
    #[error(
        "a message for handler {index}, which takes one word of user header, one packet and no counters"
    )]
    NotShort {
        /// The handler that the message names.
        index: u8,
    },
    /// Data outside of the sender's shared area, or where there are no such areas.
    #[error("a message whose {len} bytes at {place} do not lie in the sender's shared area")]
    OutsideArea {
        /// Offset in the area at which the data would begin.
        place: u64,
        /// Length of the data.
        len: u64,
    },
    /// The news that data of this task was copied, which that task was not to copy.
    #[error("the news that it has copied message {ticket}, which does not wait for that")]
    StrayCopied {
        /// The message that the packet names.
        ticket: u32,
    },
    /// A counter that does not exist here.
    #[error("an update of counter {index}, which does not exist here")]
    UnknownCounter {
        /// The counter that the packet names.
        index: u32,
    },
    /// Data or a refusal for a get that is not in progress.
    #[error("an answer to get {ticket}, which is not under way")]
    StrayGet {
        /// The get that the packet names.
        ticket: u32,
    },
    /// A get of memory that is not registered here, or outside the registered region.
    #[error("a get of {len} bytes at offset {offset} of a region that is not registered here")]
    UnregisteredGet {
        /// Offset at which the get would begin.
        offset: u64,
        /// Length of the get.
        len: u64,
    },
    /// The peer refused a get because the region is not registered there.
    #[error("it refused get {ticket}: the region is not registered there")]
    GetRefused {
        /// The get that it refused.
        ticket: u32,
    },
    /// A message for the transport itself that asks for nothing known.
    #[error("a request that the transport does not know")]
    UnknownRequest,
    /// A put into memory that is not registered here for writing, or outside of it.
    #[error("a put into memory that is not registered here for writing")]
    UnregisteredPut,
    /// A get by a vector that does not lie in memory registered here.
    #[error("a get by vector of memory that is not registered here")]
    UnregisteredGetv,
    /// A read-modify-write of a variable that is not aligned, or not in memory registered here for writing.
    #[error(
        "a read-modify-write of a variable that is not aligned, or not in memory registered here for writing"
    )]
    UnregisteredRmw,
    /// The peer refused a put, because the memory is not registered there for writing.
    #[error("it refused a put: the memory is not registered there for writing")]
    PutRefused,
    /// The peer refused a read-modify-write, because the variable is not in memory registered there for writing, or not
    /// aligned.
    #[error(
        "it refused a read-modify-write: the variable is not aligned, or not in memory registered there for writing"
    )]
    RmwRefused,
    /// The answer to a read-modify-write that is not in progress.
    #[error("an answer to read-modify-write {ticket}, which is not under way")]
    StrayRmw {
        /// The operation that the packet names.
        ticket: u32,
    },
    /// A fence answer without a fence.
    #[error("an answer to a fence that was not asked for")]
    StrayFence,
    /// More addresses than the collective calls that this task has made need.
    #[error("an address for a call that cannot have begun")]
    EarlyAddress,
    /// A barrier round that does not exist.
    #[error("a barrier message of round {round}, which does not exist")]
    BarrierRound {
        /// The round that the message names.
        round: u8,
    },
}

impl RemoteRegion {
    /// Checks that an operation on `len` bytes at `offset` is possible: TGT_ADDR_NULL, DATA_LEN.
    pub(crate) fn check(&self, offset: u64, len: u64) -> Result<(), LapiError> {
        if self.addr == 0 && self.len > 0 {
            return Err(LapiError::TgtAddrNull { len: self.len });
        }
        match offset.checked_add(len) {
            Some(end) if end <= self.len => Ok(()),
            _ => Err(LapiError::DataLen { offset, len, limit: self.len }),
        }
    }
}
