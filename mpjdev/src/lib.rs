//! The device layer: point-to-point messages between ranks, matched by context, source and tag. The design follows
//! HPJava's *mpjdev over LAPI*.
//!
//! The rooms, from the top down; each uses only those below it:
//!
//! ```text
//!  wireup     joins a job and makes its devices      buffer   messages that describe their contents
//!  device     isend · irecv · wait · probe · cancel · dump: the calls of the device
//!  backend    eager: one Amsend carries envelope and data
//!             rendezvous: Amsend carries the envelope, Get fetches the data
//!  state      what the handlers change: unexpected messages, credit, losses, statistics
//!  request    operations that have been started
//!  matching   posted-receive queue and unexpected queue (pure)
//!  protocol   which protocol for which message (pure)
//!  error      errors, with MPI's classes
//!  description   what programs say of messages, where mistakes between ranks are found
//!  envelope   the headers of messages, and how a peer can break their rules
//!  calls      names of calls and contexts, for the launcher's reports
//! ──────────────────────────────────────────────────────────────
//!  transport_lapi::Context<State>
//! ```
//!
//! The device uses MPI's terms: rank, source, tag, context, envelope, request, status. It moves bytes; the layer
//! above adds element types. A program that uses the device directly, as programs of mpjdev do, composes its messages
//! in a [`Buffer`], which describes its contents. The device uses transport-lapi's public interface and never an
//! adapter.

mod backend;
pub mod buffer;
mod call_names;
mod description;
mod device;
mod envelope;
mod error;
pub mod matching;
pub mod protocol;
mod request;
mod state;
pub mod wireup;

pub use buffer::Buffer;
pub use call_names::{CONTEXT_IDS, Call};
pub use description::{Described, Description, Elements, Types, shortened};
pub use device::recorded::{self, CallKind, Recorded, RecordedSpan};
pub use device::{CallMembers, Delivery, Device, Ending, Message, Mode, Options, Records};
pub use envelope::{Failure, PeerError};
pub use error::{Error, ErrorClass, Misfit, Unreceived, UnreceivedList};
pub use protocol::{Facts, HugeRange, Protocol, Row, Table, When};
pub use request::{Request, Status};
pub use state::{COUNTERS, Counter, CounterKind, Members, ProtocolStats, State, Stats};

pub use transport_lapi::Step;
pub use transport_lapi::bootstrap::waits::{CALL_NUMBERS, Within};
pub use transport_lapi::config::{BackendChoice, GetMode, Settings, WaitMode};
pub use transport_lapi::{
    Layout, LayoutError, Processor, RecvRegion, RemoteRegion, SendRegion, Sink, Source, Spans,
    adapter::Adapter, panic_text,
};
