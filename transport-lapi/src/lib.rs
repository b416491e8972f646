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
//! its arguments are the client's state and the message, and what is to happen next is its result. If the state leads
//! it to the context all the same, [`Context::session`] refuses with [`LapiError::InHandler`]. Completion handlers
//! communicate through the [`Outbox`].
//!
//! # Progress
//!
//! A context makes progress in the calls that wait or poll. With [`Context::senv`] a program switches to interrupt
//! mode, LAPI's default, in which a thread of the transport makes progress while the program's threads do not.
//!
//! # Ordering
//!
//! Header handlers of messages from one origin to one target run in the order of sending. Messages may complete out
//! of order. LAPI guarantees no order at all.
//!
//! # Where things are
//!
//! Rooms, from the top; the head of each lists its files, and ARCHITECTURE.md says which may use which.
//!
//! - `lapi`: LAPI's periphery, which no message needs.
//! - `one_sided`: puts, vectors, gets, read-modify-writes, shared memory, fences.
//! - `progress`: contexts, active messages, the dispatcher, waits.
//! - `job`: how a job is described, joined and set. `wire`: the packets. `error`: what can go wrong.
//! - `adapters`: the adapters of one host. `adapter`: the interface to all adapters.
//! - `memory`: borrowed bytes, bytes of peers, layouts, copies. `platform`: shared atomics, system calls, forks.
//! - `ranges`: choice by size.
//! - `fuzz`: entries of fuzz targets.

pub mod adapter;
pub mod adapters;
#[doc(hidden)]
pub mod fuzz;

mod error;
mod job;
mod lapi;
mod memory;
mod one_sided;
mod platform;
mod progress;
mod ranges;
mod wire;

pub use adapter::atomic::{Operation, RmwOp};
pub use adapter::{PeerMemory, TaskId};
pub use adapters::AnyAdapter;
pub use adapters::shm::{MappedMemory, Offered};
pub use error::{End, LapiError, Violation};
pub use job::{bootstrap, config, wireup};
pub use lapi::dgsp::{Dgsp, DgspError, DgspOp};
pub use lapi::error_handler::{AsyncError, ErrorKind};
pub use lapi::message_text::{Code, msg_string};
pub use lapi::msgpoll::MsgInfo;
pub use lapi::query::{Query, Statistics};
pub use lapi::xfer::Xfer;
pub use memory::body::{Pack, Piece, Sink, Source, Spans, Unpack};
pub use memory::layout::{Layout, LayoutError};
pub use memory::region::{
    ForeignBytes, PeerBytes, RecvPart, RecvRegion, RemoteKey, RemoteRegion, SendRegion,
};
pub use memory::shared::SharedBytes;
pub use one_sided::{Getv, Put, Putv, SharedMemory};
pub use platform::sys::Processor;
pub use progress::amsend::{Amsend, IN_PLACE_FROM, Sent, Step};
pub use progress::awaited::Awaited;
pub use progress::completion::panic_text;
pub use progress::context::{Context, Options, SessionGuard};
pub use progress::counter::{CounterId, DestStatus};
pub use progress::handler::{
    Arrival, Continuation, HeaderAction, HeaderHandler, InlineHandler, Next, ShortHandler,
};
pub use progress::outbox::Outbox;
pub use progress::per_task::{PerTask, Tasks};
pub use progress::report::ErrorHandler;
pub use progress::rmw::Rmw;
pub use progress::serve::vector::Vector;
pub use progress::session::Session;
pub use ranges::{Ranges, RangesError};
pub use wire::{MAX_HANDLERS, MAX_UHDR, WireError};
