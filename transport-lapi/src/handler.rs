//! Header and completion handlers: what they see, what they answer, what they may not do.
//!
//! - H1: a header handler runs inline in the dispatcher, when the first packet of a message is
//!   there. It gets the client's state, but neither the context nor an outbox: it cannot
//!   communicate, and a call on the context from inside it fails with
//!   [`crate::LapiError::InHandler`].
//! - H2: an inline completion handler runs in the dispatcher when the last byte has been stored. It
//!   may start communication through the [`Outbox`], which never blocks, and must not wait.
//! - H3: a completion handler on the completion thread may do anything, including waiting; handlers
//!   run there one after another, so one that blocks delays the next ones.

use crate::adapter::TaskId;
use crate::outbox::Outbox;
use crate::region::{ForeignBytes, RecvRegion};

/// Size of the handler table: LAPI's LOC_ADDRTBL_SZ. Index 0 is not used.
pub const MAX_HANDLERS: usize = 256;

/// A header handler: sees the beginning of a message, says what becomes of it (H1).
pub type HeaderHandler<S> = fn(state: &mut S, message: Arrival<'_>) -> HeaderAction<S>;

/// A header handler for messages that came whole in one packet, with one word of user header and no
/// counters: most messages, on the path of which nothing is handed over in memory. It has taken what
/// it wants of `udata` when it returns (H1), and may answer an inline completion handler (H2) with its
/// argument.
pub type ShortHandler<S> = fn(
    state: &mut S,
    origin: TaskId,
    uhdr: [u8; 8],
    udata: ForeignBytes<'_>,
) -> Option<(InlineHandler<S>, u64)>;

/// A handler that runs in the dispatcher and may communicate through the outbox (H2). The last
/// argument is what was given along with the handler: LAPI's `user_info`.
pub type InlineHandler<S> = fn(state: &mut S, outbox: &mut Outbox<S>, info: u64);

/// A message whose first packet is there.
#[derive(Debug)]
pub struct Arrival<'a> {
    /// The task that sent it.
    pub origin: TaskId,
    /// The user header; gone when the handler returns.
    pub uhdr: &'a [u8],
    /// Length of `udata` in bytes, all packets together.
    pub len: u64,
    /// All of `udata`, if it came in this one packet: LAPI's `udata_one_pkt_ptr`. `Some` even for
    /// no bytes.
    pub data: Option<ForeignBytes<'a>>,
}

/// What a header handler answers: LAPI's `lapi_return_info_t`.
pub enum HeaderAction<S> {
    /// The message is dealt with: the handler took what it wanted from [`Arrival::data`]. What has
    /// not arrived yet is thrown away.
    Consumed,
    /// Store the bytes, as many as fit, then run the completion handler. Bytes beyond the region
    /// are thrown away.
    Deliver {
        /// Where the bytes go.
        into: RecvRegion,
        /// What runs when they are there.
        completion: Completion<S>,
    },
    /// Throw the message away: LAPI_BURY_MSG.
    Drop,
}

/// What runs when the last byte of a message has been stored.
pub enum Completion<S> {
    /// Nothing.
    None,
    /// Run in the dispatcher, with this argument (H2): LAPI_SEND_REPLY.
    Inline(InlineHandler<S>, u64),
    /// Run on the completion thread (H3): LAPI_NORMAL.
    Thread(Box<dyn FnOnce() + Send>),
}
