//! Active Messages 2 (AM-2) over the LAPI-like transport: requests that run a handler at another endpoint, and replies
//! that run one at the endpoint that asked.
//!
//! ```text
//!   Am            one task's use of AM-2
//!   Bundle        endpoints that are polled together, by one thread at a time
//!   Endpoint      256 handlers, a translation table, a tag, a segment
//!   ──────────────────────────────────────────────────────────────────
//!   request.rs    poll.rs    exchange.rs        what programs call
//!   arrival.rs    the header handler: judges packets, places payloads
//!   state.rs      table.rs   queue.rs           what it needs of an endpoint
//!   packet.rs     the packets: pure codec
//!   ──────────────────────────────────────────────────────────────────
//!   transport_lapi::Context, one for each task
//! ```
//!
//! An endpoint sends *requests* to the endpoints that its translation table maps, and a handler of a request sends at
//! most one *reply*. A message carries up to [`MAX_SHORT`] arguments of 32 bits. *Short* messages carry nothing else;
//! *medium* ones carry up to [`MAX_MEDIUM`] bytes, which the handler gets in a buffer; *long* ones carry up to
//! [`MAX_LONG`] bytes, which are stored in the receiver's *segment* before its handler runs. Handlers run only while
//! the program calls the bundle. A message that the receiver does not accept comes back, and runs handler 0 of its
//! sender. No order of messages is guaranteed.
//!
//! ```
//! use am2::{Am, BundleKind, Error, Tag};
//!
//! let am = Am::in_process(1)?.remove(0);
//! let mut bundle = am.allocate_bundle(BundleKind::Sequential)?;
//! let endpoint = bundle.allocate_endpoint()?;
//! let (own, (told, answers)) = (bundle.name(endpoint)?, std::sync::mpsc::channel());
//! bundle.set_tag(endpoint, Tag::ALL)?;
//! bundle.map(endpoint, 0, own, Tag::ALL)?;
//! bundle.set_expected_resources(endpoint, 4)?;
//! bundle.set_handler(endpoint, 1, |token, message| {
//!     let sum = message.args.iter().sum();
//!     token.reply_short(2, &[sum]).expect("this is the only reply");
//! })?;
//! bundle.set_handler(endpoint, 2, move |_, message| {
//!     told.send(message.args[0]).expect("somebody listens");
//! })?;
//! bundle.request_short(endpoint, 0, 1, &[20, 22])?;
//! assert_eq!(answers.recv()?, 42);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod arrival;
mod bundle;
mod error;
mod exchange;
#[doc(hidden)]
pub mod fuzz;
mod memory;
mod message;
mod name;
mod packet;
mod poll;
mod queue;
mod request;
mod state;
mod stats;
mod status;
mod table;
mod task;

pub use bundle::{Bundle, BundleKind, EventMask};
pub use error::{Code, Error, Violation};
pub use message::{Message, Payload, Returned, Token};
pub use name::{Endpoint, EndpointName, Tag};
pub use packet::PacketError;
pub use stats::{Counts, Stats};
pub use status::{Opcode, Status};
pub use task::{Am, JoinError};

/// Most arguments of a message (AM_MaxShort).
pub const MAX_SHORT: usize = 16;
/// Most bytes of a medium message (AM_MaxMedium).
pub const MAX_MEDIUM: usize = 64 << 10;
/// Most bytes of a long message (AM_MaxLong). Programs cut longer transfers.
pub const MAX_LONG: usize = 16 << 20;
/// Handlers of an endpoint (AM_MaxNumHandlers).
pub const NUM_HANDLERS: usize = 256;
/// Most translations of an endpoint (AM_MaxNumTranslations).
pub const MAX_TRANSLATIONS: usize = 1 << 20;
/// Most bytes of a segment (AM_MaxSegLength): those of the largest vector.
pub const MAX_SEGMENT: usize = isize::MAX as usize;
/// Most bundles of a task at one time.
pub const MAX_BUNDLES: usize = 255;
/// Most endpoints that a task makes.
pub const MAX_ENDPOINTS: usize = 1 << 16;
/// Most requests that may be outstanding at a translation.
pub const MAX_OUTSTANDING: usize = 1024;
/// Most messages that one poll handles.
pub const POLL_LIMIT: usize = 10;

/// The transport's handler of all packets of AM-2.
const PACKETS: u8 = 1;
