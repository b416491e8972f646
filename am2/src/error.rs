//! Errors of the calls, with AM-2's meanings.

use transport_lapi::{LapiError, TaskId};

use crate::name::EndpointName;
use crate::packet::PacketError;
use crate::{MAX_BUNDLES, MAX_ENDPOINTS, MAX_OUTSTANDING, MAX_SHORT, MAX_TRANSLATIONS};

/// AM-2's return code of an error. AM_OK is `Ok`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// AM_ERR_NOT_INIT.
    NotInit = 1,
    /// AM_ERR_BAD_ARG.
    BadArg = 2,
    /// AM_ERR_RESOURCE.
    Resource = 3,
    /// AM_ERR_NOT_SENT.
    NotSent = 4,
    /// AM_ERR_IN_USE.
    InUse = 5,
}

/// Why a call failed. There is one variant for each cause; [`Error::code`] returns AM-2's code.
///
/// Types exclude some of AM-2's errors: there is no bundle before [`crate::Am::init`], no null pointer, no handler
/// index above 255, and no token whose handler does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// NOT_INIT: the last [`crate::Am`] of the task was terminated.
    #[error("task {task}: AM-2 was terminated; keep an `Am` until the last call")]
    Terminated {
        /// The task.
        task: TaskId,
    },
    /// NOT_INIT: a request before [`crate::Bundle::set_expected_resources`].
    #[error(
        "{name} has no resources for requests; call set_expected_resources before the first one"
    )]
    NoResources {
        /// The endpoint.
        name: EndpointName,
    },
    /// BAD_ARG or RESOURCE: the handle names no endpoint of this bundle.
    #[error(
        "task {task}: the handle names no endpoint of this bundle; it was freed, moved or belongs to another one"
    )]
    UnknownEndpoint {
        /// The task.
        task: TaskId,
    },
    /// BAD_ARG: the translation index is out of range.
    #[error(
        "translation index {index} is out of range, the table of {name} has {len} entries; see set_num_translations"
    )]
    IndexRange {
        /// The endpoint.
        name: EndpointName,
        /// The index of the call.
        index: usize,
        /// Entries of the table.
        len: usize,
    },
    /// BAD_ARG in a request, RESOURCE in other calls: nothing is mapped at the index.
    #[error("{name} has no translation at index {index}; map one before set_expected_resources")]
    Unmapped {
        /// The endpoint.
        name: EndpointName,
        /// The index of the call.
        index: usize,
        /// Whether the call was a request.
        in_request: bool,
    },
    /// BAD_ARG: too many arguments.
    #[error(
        "task {task}: {count} arguments, a message carries at most {MAX_SHORT}; send the rest as payload"
    )]
    TooManyArgs {
        /// The task.
        task: TaskId,
        /// The number of the call.
        count: usize,
    },
    /// BAD_ARG: the payload is too long.
    #[error(
        "task {task}: a payload of {len} bytes, such a message carries at most {max}; send it in parts"
    )]
    PayloadLen {
        /// The task.
        task: TaskId,
        /// Length of the payload.
        len: usize,
        /// The limit.
        max: usize,
    },
    /// BAD_ARG: a message names handler 0, which is for returned messages.
    #[error(
        "task {task}: a message names handler 0, which gets returned messages only; name another one"
    )]
    HandlerZero {
        /// The task.
        task: TaskId,
    },
    /// BAD_ARG: the number of outstanding requests is out of range.
    #[error(
        "{name}: {depth} outstanding requests for each peer are out of range; choose 1 to {MAX_OUTSTANDING}"
    )]
    Depth {
        /// The endpoint.
        name: EndpointName,
        /// The number of the call.
        depth: usize,
    },
    /// RESOURCE: parallel bundles are not supported.
    #[error(
        "task {task}: parallel bundles (AM_PAR) are not supported; give each thread a sequential bundle"
    )]
    Parallel {
        /// The task.
        task: TaskId,
    },
    /// RESOURCE: too many bundles.
    #[error("task {task} has {MAX_BUNDLES} bundles, which is the limit; free one")]
    TooManyBundles {
        /// The task.
        task: TaskId,
    },
    /// RESOURCE: the numbers of endpoints are used up. A number is never used again.
    #[error("task {task} has made {MAX_ENDPOINTS} endpoints, which is the limit; reuse endpoints")]
    TooManyEndpoints {
        /// The task.
        task: TaskId,
    },
    /// RESOURCE: the bundles belong to different [`crate::Am`]s.
    #[error("task {task}: the endpoint can only move to a bundle of the same `Am`")]
    ForeignBundle {
        /// The task.
        task: TaskId,
    },
    /// RESOURCE: the index is in use.
    #[error("{name} has a translation at index {index} already; unmap it or use map_any")]
    Mapped {
        /// The endpoint.
        name: EndpointName,
        /// The index of the call.
        index: usize,
    },
    /// RESOURCE: every index is in use.
    #[error("all {len} translations of {name} are in use; make the table larger")]
    TableFull {
        /// The endpoint.
        name: EndpointName,
        /// Entries of the table.
        len: usize,
    },
    /// RESOURCE: the name names a task that the job does not have.
    #[error("{name} is unknown: the job has tasks 0 to {last}", last = .num_tasks - 1)]
    UnknownName {
        /// The name of the call.
        name: EndpointName,
        /// Tasks of the job.
        num_tasks: usize,
    },
    /// RESOURCE: the table is frozen, or the resources were set before.
    #[error("{name} has its resources already, which is done once and freezes the translations")]
    Frozen {
        /// The endpoint.
        name: EndpointName,
    },
    /// RESOURCE: the number of translations is too large, or would cut entries in use.
    #[error(
        "{name} cannot have {len} translations: the limit is {MAX_TRANSLATIONS}, and the last index in use is {used}",
        used = .last_used.map_or("none".to_owned(), |index| index.to_string())
    )]
    TableLen {
        /// The endpoint.
        name: EndpointName,
        /// The number of the call.
        len: usize,
        /// The last index in use.
        last_used: Option<usize>,
    },
    /// RESOURCE: the number of handlers is fixed.
    #[error("{name} cannot have {count} handlers; every endpoint has 256")]
    HandlerCount {
        /// The endpoint.
        name: EndpointName,
        /// The number of the call.
        count: usize,
    },
    /// RESOURCE: every handler index is in use.
    #[error("all handlers of {name} are set; replace one with set_handler")]
    HandlersFull {
        /// The endpoint.
        name: EndpointName,
    },
    /// RESOURCE: a reply to a message that is no request.
    #[error(
        "task {task}: a reply to a message of {source_name} that is no request; only request handlers reply"
    )]
    NotARequest {
        /// The task.
        task: TaskId,
        /// The sender of the message.
        source_name: EndpointName,
    },
    /// RESOURCE: a second reply to one request.
    #[error(
        "task {task}: a second reply to a request of {source_name}; a request handler replies at most once"
    )]
    SecondReply {
        /// The task.
        task: TaskId,
        /// The sender of the request.
        source_name: EndpointName,
    },
    /// RESOURCE: a call from inside a handler, or from inside the closure of [`crate::Bundle::with_segment`].
    #[error(
        "task {task}: a handler made a call that communicates; it may only reply with its token"
    )]
    InHandler {
        /// The task.
        task: TaskId,
    },
    /// RESOURCE: a wait that no event would end.
    #[error(
        "task {task} would wait for ever: no event is armed; set the event mask to NotEmpty first"
    )]
    NoEvent {
        /// The task.
        task: TaskId,
    },
    /// IN_USE: the request would have to wait for the receiver.
    #[error(
        "{name} has no credit for a request to index {index} until one is answered; poll and try again"
    )]
    WouldWait {
        /// The endpoint.
        name: EndpointName,
        /// Index of the translation.
        index: usize,
    },
    /// IN_USE: an accepted message still refers to the segment.
    #[error("an accepted message of {name} still refers to its segment; poll and try again")]
    SegmentInUse {
        /// The endpoint.
        name: EndpointName,
    },
    /// IN_USE: another bundle of this task takes part in an exchange.
    #[error(
        "task {task}: another bundle is in an exchange or barrier; a task takes part once at a time"
    )]
    ExchangeInUse {
        /// The task.
        task: TaskId,
    },
    /// NOT_SENT: the transport did not take the message.
    #[error("nothing was sent to {name}: {cause}")]
    NotSent {
        /// The receiver.
        name: EndpointName,
        /// The error of the transport.
        #[source]
        cause: LapiError,
    },
    /// RESOURCE, asynchronous: a peer broke the protocol. Its packet was dropped.
    #[error("task {origin} broke the protocol of AM-2: {violation}")]
    Peer {
        /// The peer.
        origin: TaskId,
        /// What it did.
        violation: Violation,
    },
    /// RESOURCE: the transport failed.
    #[error("task {task}: {cause}")]
    Transport {
        /// The task.
        task: TaskId,
        /// The error of the transport.
        #[source]
        cause: LapiError,
    },
}

impl Error {
    /// Returns AM-2's code.
    pub fn code(&self) -> Code {
        match self {
            Self::Terminated { .. } | Self::NoResources { .. } => Code::NotInit,
            Self::UnknownEndpoint { .. }
            | Self::IndexRange { .. }
            | Self::Unmapped { in_request: true, .. }
            | Self::TooManyArgs { .. }
            | Self::PayloadLen { .. }
            | Self::HandlerZero { .. }
            | Self::Depth { .. } => Code::BadArg,
            Self::Unmapped { .. }
            | Self::Parallel { .. }
            | Self::TooManyBundles { .. }
            | Self::TooManyEndpoints { .. }
            | Self::ForeignBundle { .. }
            | Self::Mapped { .. }
            | Self::TableFull { .. }
            | Self::UnknownName { .. }
            | Self::Frozen { .. }
            | Self::TableLen { .. }
            | Self::HandlerCount { .. }
            | Self::HandlersFull { .. }
            | Self::NotARequest { .. }
            | Self::SecondReply { .. }
            | Self::InHandler { .. }
            | Self::NoEvent { .. }
            | Self::Peer { .. }
            | Self::Transport { .. } => Code::Resource,
            Self::WouldWait { .. } | Self::SegmentInUse { .. } | Self::ExchangeInUse { .. } => {
                Code::InUse
            }
            Self::NotSent { .. } => Code::NotSent,
        }
    }
}

/// A peer's violation of AM-2's protocol. There is one variant for each violation, and a test for each variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The packet could not be decoded.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// A reply, an acknowledgement or a returned request of which no request is outstanding.
    #[error("an answer of endpoint {number} to a request that is not outstanding")]
    StrayAnswer {
        /// The endpoint that the answer names as its sender.
        number: u16,
    },
    /// A returned reply, but no reply to that endpoint was sent, or each of them was returned already.
    #[error("a returned reply from endpoint {number}, to which no such reply was sent")]
    StrayReturn {
        /// The endpoint that the message names as its sender.
        number: u16,
    },
    /// A packet for an endpoint that this task never made, and which cannot be returned.
    #[error("an answer for endpoint {number}, which this task never made")]
    NeverMade {
        /// The endpoint that the packet names.
        number: u16,
    },
    /// The arguments of a reply do not match their number.
    #[error("a reply whose arguments do not match their number")]
    ReplyArgs,
    /// A packet that has no payload carries data.
    #[error("a packet without payload carries {len} bytes")]
    Payload {
        /// Length of the data.
        len: u64,
    },
    /// Words for more exchanges than can be in progress.
    #[error("a word for an exchange that cannot have begun")]
    EarlyExchange,
}
