//! Header and completion handlers: their arguments, their results, and their restrictions.
//!
//! A handler returns what happens next as a value ([`Next`]). Calls that start an operation take such a value for its
//! end. "The dispatcher" below is whichever thread makes progress: in polling mode one of the program, in interrupt
//! mode also the notification thread ([`crate::Context::senv`]), which is why that mode needs a client's state that is
//! [`Send`].
//!
//! - H1: a header handler runs inline in the dispatcher when the first packet of a message has arrived. It gets the
//!   client's state, but neither the context nor an outbox, so it cannot communicate. A call on the context from inside
//!   it fails with [`crate::LapiError::InHandler`].
//! - H2: an inline completion handler runs in the dispatcher when the last byte has been stored, or at the end of the
//!   call of the session in which its operation has ended. It may start communication through the [`Outbox`], which
//!   never blocks, and must not wait. The handlers of operations that it starts do not run inside it, but later in the
//!   same round or call: handlers never nest, however long the chain. Only a handler returned by [`Outbox::deregister`]
//!   must be run by the caller.
//! - H3: a completion handler on the completion thread may do anything, including waiting. Handlers run there one after
//!   another, so one that blocks delays the next ones.
//! - H4: a continuation runs with the lock free, in the next thread that makes progress or waits in a call of the
//!   context, and may itself call the context. Continuations start in the order in which they became due, but several
//!   threads may run them concurrently. One that waits in the context runs those that become due meanwhile, nested
//!   inside itself. One that panics unwinds out of the call that ran it, and leaves the context unchanged.

use crate::adapter::TaskId;
use crate::error::LapiError;
use crate::memory::body::Sink;
use crate::memory::region::ForeignBytes;
use crate::progress::counter::{CounterId, Counters};
use crate::progress::outbox::Outbox;

/// A header handler: it sees the beginning of a message and decides what to do with it (H1).
pub type HeaderHandler<S> = fn(state: &mut S, message: Arrival<'_>) -> HeaderAction<S>;

/// A header handler for short messages: those that arrive whole, in one packet or in the sender's shared area
/// ([`crate::Amsend::in_place`]), with one word of user header (eight bytes, little endian) and no counters. Most
/// messages are of this kind, and the arguments travel in registers. The handler must copy what it needs of `udata`
/// before it returns (H1). It may return an inline completion handler (H2) with its argument.
pub type ShortHandler<S> = fn(
    state: &mut S,
    origin: TaskId,
    uhdr: u64,
    udata: ForeignBytes<'_>,
) -> Option<(InlineHandler<S>, u64)>;

/// A handler that runs in the dispatcher and may communicate through the outbox (H2). The last argument is the value
/// given along with the handler: LAPI's `user_info`.
pub type InlineHandler<S> = fn(state: &mut S, outbox: &mut Outbox<S>, info: u64);

/// An inline handler (H2) that gets the outcome of the operation. Other handlers do not run if an operation fails; its
/// error is then reported asynchronously.
pub type OutcomeHandler<S> =
    fn(state: &mut S, outbox: &mut Outbox<S>, info: u64, outcome: Result<(), LapiError>);

/// A message whose first packet has arrived.
#[derive(Debug)]
pub struct Arrival<'a> {
    /// The task that sent it.
    pub origin: TaskId,
    /// The user header; valid until the handler returns.
    pub uhdr: &'a [u8],
    /// Length of `udata` in bytes, all packets together.
    pub len: u64,
    /// All of `udata`, if it came in this one packet or lies in the sender's shared area: LAPI's `udata_one_pkt_ptr`.
    /// It is `Some` even if there are no bytes.
    pub data: Option<ForeignBytes<'a>>,
}

/// What a header handler does with its message: LAPI's `lapi_return_info_t`.
pub enum HeaderAction<S> {
    /// The handler has taken what it needs from [`Arrival::data`]. Bytes that have not arrived yet are discarded.
    Consumed,
    /// The same as [`HeaderAction::Consumed`], and this happens next, when the whole message has arrived.
    Then(Next<S>),
    /// Store the bytes, as many as fit, and discard the rest.
    Deliver {
        /// Where the bytes go.
        into: Sink,
        /// What happens when they have been stored.
        next: Next<S>,
    },
    /// Discard the message: LAPI_BURY_MSG.
    Drop,
}

impl<S> HeaderAction<S> {
    /// Where the bytes go, and what happens when all of them have arrived.
    pub(crate) fn parts(self) -> (Sink, Next<S>) {
        match self {
            Self::Consumed | Self::Drop => (Sink::EMPTY, Next::Nothing),
            Self::Then(next) => (Sink::EMPTY, next),
            Self::Deliver { into, next } => (into, next),
        }
    }
}

/// What happens when an operation has ended: the last byte of a message has been stored, a buffer is reusable (also
/// because the message's target is lost), a get is complete, or a registration has ended.
pub enum Next<S> {
    /// Nothing.
    Nothing,
    /// Adds one to this counter of the task.
    Counter(CounterId),
    /// Runs this handler inline, with this argument (H2): LAPI_SEND_REPLY.
    Inline(InlineHandler<S>, u64),
    /// Runs this handler inline, also if the operation fails.
    Outcome(OutcomeHandler<S>, u64),
    /// Runs this when the lock is free (H4).
    Unlocked(Continuation),
    /// Runs this on the completion thread (H3): LAPI_NORMAL.
    Thread(Box<dyn FnOnce() + Send>),
}

impl<S> Next<S> {
    /// Checks for LAPI's CNTR_NULL condition.
    pub(crate) fn check(&self, counters: &mut Counters) -> Result<(), LapiError> {
        match self {
            Self::Counter(id) => counters.value(*id).map(drop),
            _ => Ok(()),
        }
    }
}

/// A function that runs, when the lock is free, in a thread that is in a call of the context (H4).
pub type Continuation = Box<dyn FnOnce() + Send>;
