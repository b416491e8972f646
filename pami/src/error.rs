//! Errors of the calls, with PAMI's result codes.

use std::sync::Arc;

use mpicore::collective::CollectiveError;
use mpicore::op::OpError;
use transport_lapi::adapter::AdapterError;
use transport_lapi::wireup::WireupError;
use transport_lapi::{LapiError, LayoutError, TaskId};

use crate::algorithm::{Algorithm, NoAlgorithm, Unfit, Xfer};
use crate::types::{Endpoint, Hint, Setting};
use crate::{MAX_DISPATCH, MAX_HEADER, RECV_IMMEDIATE_MAX, SEND_IMMEDIATE_MAX};

/// PAMI's code of an error (pami_result_t). PAMI_SUCCESS and PAMI_EAGAIN are no errors: see [`crate::Outcome`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// PAMI_ERROR.
    Error = 1,
    /// PAMI_INVAL.
    Inval = 2,
    /// PAMI_UNIMPL.
    Unimpl = 3,
    /// PAMI_SHUTDOWN: a task is lost.
    Shutdown = 6,
}

/// Why a call or an operation failed. There is one variant for each cause; [`Error::code`] returns PAMI's code.
///
/// Types exclude many of PAMI's: there are no null pointers, no handles that were destroyed, no communication without
/// the context, no advance inside of a callback, and no types that are not complete.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the text of each variant says what its fields are")]
pub enum Error {
    /// The client could not join its job.
    #[error("client {name} cannot be created: {source}")]
    Join { name: String, source: Arc<WireupError> },
    /// A client has a name of 1 to `max` bytes.
    #[error("{name:?} is no name of a client: choose one of 1 to {max} bytes")]
    Name { name: String, max: usize },
    /// The client has not so many contexts left.
    #[error(
        "task {task}: {asked} more contexts; the client was created with {all}, of which {left} are left"
    )]
    TooManyContexts { task: TaskId, asked: usize, all: usize, left: usize },
    /// The client still has contexts.
    #[error("task {task}: {left} contexts of the client exist; destroy them first")]
    ContextsLeft { task: TaskId, left: usize },
    /// The client was destroyed.
    #[error("task {task}: the client was destroyed")]
    Destroyed { task: TaskId },
    /// The client has no such endpoint.
    #[error("there is no {endpoint}: the job has tasks 0 to {last}, of {contexts} contexts each", last = .num_tasks - 1)]
    NoEndpoint { endpoint: Endpoint, num_tasks: usize, contexts: usize },
    /// The thread holds the context already.
    #[error(
        "task {task}: this thread holds context {offset} already; use its guard, or the argument of the callback"
    )]
    Held { task: TaskId, offset: usize },
    /// A callback would wait for another context, and two of them for each other.
    #[error("task {task}: a callback locks context {offset}; use trylock, or post the work")]
    LockInCallback { task: TaskId, offset: usize },
    /// Nobody would carry out what is posted: this task has not created the context.
    #[error(
        "task {task} has not created its context {offset}, which messages to that offset use; create as many contexts on all tasks"
    )]
    NoContext { task: TaskId, offset: usize },
    /// The number of a dispatch is out of range.
    #[error("dispatch {id} is out of range, the last one is {MAX_DISPATCH}")]
    DispatchRange { id: usize },
    /// The dispatch is not set in this context.
    #[error(
        "dispatch {id} is not set in context {offset} of task {task}; set it on all tasks before the first message"
    )]
    NoDispatch { task: TaskId, offset: usize, id: usize },
    /// A hard hint cannot be honoured.
    #[error("the hint {hint:?} cannot be {}; leave it at its default", .setting.text())]
    Unsupported { hint: Hint, setting: Setting },
    /// The message would break a hint of its dispatch.
    #[error("a message to {dest} breaks the hint {hint:?} of its dispatch, which is {}: {why}", .setting.text())]
    Hinted { dest: Endpoint, hint: Hint, setting: Setting, why: &'static str },
    /// The association has no algorithm for the size.
    #[error(
        "{len} bytes are above the last range of the association, which ends at {last}; let it end at u64::MAX"
    )]
    NoRange { len: u64, last: u64 },
    /// The header is too long.
    #[error("a header of {len} bytes, at most {MAX_HEADER} are possible; send the rest as data")]
    HeaderLen { len: usize },
    /// The message is too long to be sent immediately.
    #[error(
        "{len} bytes of header and data, at most {SEND_IMMEDIATE_MAX} are sent immediately; use send"
    )]
    ImmediateLen { len: usize },
    /// A transfer of no bytes.
    #[error("a transfer of no bytes to or from {dest}; leave it out")]
    NoBytes { dest: Endpoint },
    /// A fence outside of a region, or a region inside of one.
    #[error("task {task}: {}", if *.is_open { "a fence region is open; end it first" } else { "no fence region is open; begin one first" })]
    FenceRegion { task: TaskId, is_open: bool },
    /// A task cannot be purged or resumed by this context.
    #[error(
        "{endpoint} cannot be purged or resumed here: a context does so with other tasks' contexts of its own offset"
    )]
    Purge { endpoint: Endpoint },
    /// The bytes of a type do not fit.
    #[error("a type cannot be used: {0}")]
    Type(#[from] LayoutError),
    /// The size of a type's atoms is 0, or does not divide the length of each of its blocks.
    #[error(
        "atoms of {atom} bytes; the length of each block of a type is a multiple of that of its atoms"
    )]
    AtomSize { atom: usize },
    /// A variable is not aligned.
    #[error("a variable of {size} bytes at offset {offset}; choose a multiple of {size}")]
    Unaligned { offset: u64, size: u64 },
    /// The two sides of a transfer have different numbers of bytes.
    #[error(
        "a transfer with {dest} of {local} bytes here and {remote} there; both sides have the same number"
    )]
    Sizes { dest: Endpoint, local: usize, remote: usize },
    /// An id that no new geometry can have.
    #[error("there is a geometry {id} already; destroy it first, or choose another id above 0")]
    GeometryId { id: u32 },
    /// The members of a geometry are none, or some are there twice.
    #[error(
        "geometry {id} with {given} members, of which {different} differ; give one at least, and each once"
    )]
    Members { id: u32, given: usize, different: usize },
    /// The caller takes no part.
    #[error("{endpoint} is no member of geometry {id}, as this call needs; call it on a member")]
    NoMember { endpoint: Endpoint, id: u32 },
    /// A geometry cannot have this parent.
    #[error("geometry {id} cannot have the parent {parent}: {why}; create it without a parent")]
    Parent { id: u32, parent: u32, why: &'static str },
    /// The client does not have the geometry.
    #[error("geometry {id} was destroyed, or is another client's; create it again")]
    NoGeometry { id: u32 },
    /// A geometry cannot be destroyed.
    #[error("geometry {id} cannot be destroyed: {why}")]
    Undying { id: u32, why: &'static str },
    /// A block ends before it starts.
    #[error("a block from {start} to {end} ends before it starts; give its end behind its start")]
    Reversed { start: usize, end: usize },
    /// A reduction ends inside of an element.
    #[error("{len} bytes are no whole number of elements of {size} bytes")]
    Elements { len: usize, size: usize },
    /// The buffers of a collective have other lengths than its arguments say.
    #[error(
        "{given} bytes of {what} for a collective with {needed}; give as many, or other arguments"
    )]
    BufferLen { what: &'static str, given: usize, needed: usize },
    /// The arguments of a collective cannot be used.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
    /// An operation is not defined on elements of a kind.
    #[error(transparent)]
    Op(#[from] OpError),
    /// No algorithm has this name.
    #[error(transparent)]
    NoAlgorithm(#[from] NoAlgorithm),
    /// The algorithm of the call cannot carry out the collective.
    #[error("{algorithm} cannot be used: {source}; choose another algorithm, or none")]
    Unfit { algorithm: Algorithm, source: Unfit },
    /// The algorithms of an association are of several types.
    #[error("an association with algorithms of {xfer:?} and of {other:?}; make one for each type")]
    Mixed { xfer: Xfer, other: Xfer },
    /// Members have called a collective differently.
    #[error(
        "in geometry {geometry}, {from} has {theirs} where this member has {ours}; all members give the same arguments, and choose the same algorithms in the same order"
    )]
    Disagree { geometry: u32, from: Endpoint, theirs: String, ours: String },
    /// A task is lost, or was purged.
    #[error("task {task} is lost or purged")]
    Lost { task: TaskId },
    /// The receiver could not take the data of a message.
    #[error("task {task} could not fetch the data of a message; it reports why")]
    Refused { task: TaskId },
    /// Asynchronous: a peer broke the protocol. Its packet was dropped.
    #[error("a message of task {origin} was dropped: {violation}")]
    Peer { origin: TaskId, violation: Violation },
    /// The transport failed.
    #[error("task {task}: {source}")]
    Transport { task: TaskId, source: Arc<LapiError> },
}

impl Error {
    /// Returns PAMI's code.
    pub fn code(&self) -> Code {
        match self {
            Self::Unsupported { .. } => Code::Unimpl,
            Self::Lost { .. } => Code::Shutdown,
            Self::Transport { source, .. } if is_of_caller(source) => Code::Inval,
            Self::Join { .. }
            | Self::Refused { .. }
            | Self::Disagree { .. }
            | Self::Peer { .. }
            | Self::Transport { .. } => Code::Error,
            _ => Code::Inval,
        }
    }

    /// The error for a failure of the transport.
    pub(crate) fn of(task: TaskId, cause: LapiError) -> Self {
        match cause {
            LapiError::Adapter(AdapterError::PeerLost { task }) => Self::Lost { task },
            LapiError::TgtPurged { target } => Self::Lost { task: target },
            cause => Self::Transport { task, source: cause.into() },
        }
    }
}

/// Whether the caller has passed a wrong argument.
fn is_of_caller(cause: &LapiError) -> bool {
    matches!(
        cause,
        LapiError::DataLen { .. }
            | LapiError::OrgAddrNull { .. }
            | LapiError::TgtAddrNull { .. }
            | LapiError::VecLen { .. }
            | LapiError::VecOutside { .. }
    )
}

impl Setting {
    fn text(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Enable => "enabled",
            Self::Disable => "disabled",
        }
    }
}

/// A peer's violation of the protocol. There is one variant for each, and a test for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the text of each variant says what its fields are")]
pub enum Violation {
    /// The word of a packet is none.
    #[error("no packet begins with {word:#018x}")]
    Packet { word: u64 },
    /// A packet is too short, or has a length that its kind cannot have.
    #[error("a packet of {len} bytes has another length than it says")]
    Length { len: usize },
    /// A packet arrived in parts.
    #[error("a packet of {len} bytes came in parts, which no packet does")]
    Parts { len: u64 },
    /// The hints of the dispatch differ between sender and receiver.
    #[error("the hints of dispatch {id} differ between the tasks; set the same ones on all")]
    Hints { id: u8 },
    /// The message does not do what the hints of its dispatch say.
    #[error(
        "dispatch {id} has messages of at most {RECV_IMMEDIATE_MAX} bytes by its hints, this one has {len}"
    )]
    TooLong { id: u8, len: usize },
    /// Too many messages for a dispatch that was not set yet.
    #[error(
        "dispatch {id} is not set, and too many messages for it wait already; set it before messages are sent"
    )]
    Early { id: u8 },
    /// A message of a collective that is none, or of an endpoint that is no member.
    #[error(
        "a message of a collective of {len} bytes is none of a geometry of which both ends are members"
    )]
    Collective { len: usize },
    /// Too many messages of collectives that have not begun here.
    #[error(
        "too many messages of collectives of geometry {geometry} and others wait already; let all members begin them"
    )]
    EarlyCollective { geometry: u32 },
    /// An answer to an operation that waits for none of this task.
    #[error("an answer to operation {number:#x}, which does not wait for it")]
    StrayAnswer { number: u64 },
}
