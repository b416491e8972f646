//! Active messages in the manner of IBM's LAPI. A message names a *header handler* at its target, which decides where
//! the bytes go; a *completion handler* runs once they have arrived. There are also counters, one-sided puts, gets and
//! read-modify-writes, and fences.
//!
//! ```text
//!        clients (mpjdev)
//!   ─────────────────────────────────────────────
//!    Context ── Session      one task's access to the job; the same, locked
//!       │ amsend · put · get · rmw · counters · fence · progress
//!    Engine                  dispatcher: header handlers, reassembly, completion
//!       │ wire               packets: pure codec
//!   ───┼───────────────────── the interface `adapter::Adapter`
//!    adapters::threads       ranks are threads; rings in one private mapping
//!    adapters::shm           ranks are processes; rings in one memfd
//! ```
//!
//! The terms are LAPI's: *task*, *origin* (the caller's task), *target* (the other task), `uhdr` (the small user
//! header in the first packet), `udata` (the data). LAPI_Probe is called [`Session::progress`], because *probe*
//! belongs to MPI.
//!
//! ```
//! use transport_lapi::{Amsend, Arrival, Context, HeaderAction, SendRegion, adapters};
//!
//! fn hello(seen: &mut Vec<u8>, message: Arrival<'_>) -> HeaderAction<Vec<u8>> {
//!     seen.extend(message.uhdr);
//!     HeaderAction::Consumed
//! }
//!
//! let adapter = adapters::threads::job(1)?.remove(0);
//! let context = Context::init(adapter, Vec::new(), Default::default());
//! context.session()?.addr_set(7, hello)?;
//! context.session()?.amsend(Amsend::new(0, 7, b"8 bytes!", SendRegion::EMPTY))?;
//! context.wait(|session| (!session.state.is_empty()).then_some(()))?;
//! assert_eq!(context.session()?.state, b"8 bytes!");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What handlers may do
//!
//! LAPI forbids calls from a header handler, which would deadlock. Here such a handler gets nothing that it could call:
//! its arguments are the client's state and the message, and what is to happen next is its result. If the state leads it
//! to the context all the same, [`Context::session`] refuses with [`LapiError::InHandler`]. Completion handlers
//! communicate through the [`Outbox`].
//!
//! # Progress
//!
//! A context makes progress in the calls that wait or poll. With [`Context::senv`] a program switches to interrupt mode,
//! LAPI's default, in which a thread of the transport makes progress while the program's threads do not.
//!
//! # Ordering
//!
//! Header handlers of messages from one origin to one target run in the order of sending. Messages may complete out
//! of order. LAPI guarantees no order at all.
//!
//! # Where things are
//!
//! - `context.rs`, `session.rs`: the calls. A context is a lock around a session; `lock.rs`, `wait.rs`, `awaited.rs`
//!   and `home.rs` are how threads take the lock, spend a wait, describe it and stay on their processors.
//! - `engine.rs`: what happens to a frame that arrives. `handler.rs`, `completion.rs`: handlers and what follows them.
//! - `outbox.rs`, `slots.rs`: operations that have not ended, each of which is started in a file of its own:
//!   `amsend.rs`, `lent.rs`, `get.rs`, `one_sided.rs`, `vector.rs`, `fence.rs`. `counter.rs`: what they count.
//! - `wire.rs`: the packets.
//! - `region.rs`, `registry.rs`: memory that is borrowed, and memory that other tasks may access. `body.rs`,
//!   `layout.rs`, `dgsp.rs`: bodies that are not contiguous. `copy.rs`, `places.rs`: how bodies are copied.
//! - `query.rs`, `addresses.rs`, `error_handler.rs`, `message_text.rs`, `timeout.rs`, `msgpoll.rs`, `nopoll.rs`,
//!   `interrupt.rs`, `recovery.rs`: LAPI's periphery. No message needs it.
//! - `adapter.rs`: the interface to adapters. `adapters.rs`: the adapters.
//! - `config.rs`: settings. `bootstrap.rs`: what launcher and ranks share. `wireup.rs`: how a task joins.
//! - `sync.rs`, `sys.rs`, `fork.rs`: the primitives of shared memory, system calls, forks. `fuzz.rs`: entries of fuzz
//!   targets.

pub mod adapter;
pub mod adapters;
pub mod bootstrap;
pub mod config;
#[doc(hidden)]
pub mod fuzz;
pub mod wireup;

mod addresses;
mod amsend;
mod awaited;
mod body;
mod completion;
mod context;
mod copy;
mod counter;
mod dgsp;
mod engine;
mod error;
mod error_handler;
mod fence;
mod fork;
mod get;
mod handler;
mod home;
mod interrupt;
mod layout;
mod lent;
mod lock;
mod message_text;
mod msgpoll;
mod nopoll;
mod one_sided;
mod outbox;
mod places;
mod query;
mod recovery;
mod region;
mod registry;
mod session;
mod slots;
mod sync;
mod sys;
mod timeout;
mod vector;
mod wait;
mod wire;

pub use adapter::TaskId;
pub use amsend::{Amsend, IN_PLACE_FROM, Sent};
pub use awaited::Awaited;
pub use body::{Pack, Piece, Sink, Source, Spans, Unpack};
pub use completion::panic_text;
pub use context::{Context, Options, SessionGuard};
pub use counter::{CounterId, DestStatus};
pub use dgsp::{Dgsp, DgspError, DgspOp};
pub use error::{End, LapiError, Violation};
pub use error_handler::{AsyncError, ErrorHandler, ErrorKind};
pub use handler::{
    Arrival, Continuation, HeaderAction, HeaderHandler, InlineHandler, MAX_HANDLERS, Next,
    ShortHandler,
};
pub use layout::{Layout, LayoutError};
pub use message_text::{Code, msg_string};
pub use msgpoll::MsgInfo;
pub use one_sided::{Getv, Operation, Put, Putv, Rmw, RmwOp, SharedMemory, Xfer};
pub use outbox::Outbox;
pub use query::{Query, Statistics, Step};
pub use region::{ForeignBytes, RecvPart, RecvRegion, RemoteRegion, SendRegion};
pub use session::Session;
pub use sys::Processor;
pub use vector::Vector;
pub use wire::{MAX_UHDR, WireError};
