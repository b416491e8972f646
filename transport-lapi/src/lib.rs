//! Active messages in the manner of IBM's LAPI. A message names a *header handler* at its target, which decides where
//! the bytes go; a *completion handler* runs once they have arrived. There are also counters, one-sided gets and
//! fences.
//!
//! ```text
//!        clients (mpjdev)
//!   ─────────────────────────────────────────────
//!    Context ── Session      one task's access to the job; the same, locked
//!       │ amsend · get · counters · fence · progress
//!    Engine                  dispatcher: header handlers, reassembly, completion
//!       │ wire               packets: pure codec
//!   ───┼───────────────────── the interface `adapter::Adapter`
//!    layers                  adapters around an adapter: faults; repetition of lost frames
//!    adapters::threads       ranks are threads; rings on the heap
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
//! # Ordering
//!
//! Header handlers of messages from one origin to one target run in the order of sending. Messages may complete out
//! of order. LAPI guarantees no order at all.

pub mod adapter;
pub mod adapters;
pub mod bootstrap;
pub mod config;
pub mod layers;
pub mod wireup;

mod amsend;
mod awaited;
mod body;
mod completion;
mod context;
mod copy;
mod counter;
mod engine;
mod error;
mod fence;
mod fork;
mod get;
mod handler;
mod layout;
mod lock;
mod outbox;
mod query;
mod region;
mod registry;
mod session;
mod slots;
mod sync;
mod sys;
mod wait;
mod wire;

pub use adapter::TaskId;
pub use amsend::{Amsend, Sent};
pub use awaited::Awaited;
pub use body::{Pack, Piece, Sink, Source, Spans, Unpack};
pub use completion::panic_text;
pub use context::{Context, Options, SessionGuard};
pub use counter::CounterId;
pub use error::{LapiError, Violation};
pub use handler::{
    Arrival, Continuation, HeaderAction, HeaderHandler, InlineHandler, MAX_HANDLERS, Next,
    ShortHandler,
};
pub use layout::{Layout, LayoutError};
pub use outbox::Outbox;
pub use query::{Query, Step};
pub use region::{ForeignBytes, RecvPart, RecvRegion, RemoteRegion, SendRegion};
pub use session::Session;
pub use wire::{MAX_UHDR, WireError};

#[doc(hidden)]
pub use wire::fuzz_decode;
