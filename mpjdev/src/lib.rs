//! The device layer: point-to-point messages between ranks, matched by context, source and tag. The design follows
//! HPJava's *mpjdev over LAPI*.
//!
//! ```text
//!    clients (mpj)
//!   ──────────────────────────────────────────────────────────────
//!    Device        isend · irecv · wait · probe · cancel · dump
//!      │ matching  posted-receive queue and early-send queue (pure)
//!      │ protocol  which protocol for which message (pure)
//!      ├─ backend::eager        one Amsend carries envelope and data
//!      └─ backend::rendezvous   Amsend carries the envelope, Get fetches the data
//!   ──────────────────────────────────────────────────────────────
//!    transport_lapi::Context<A, State>
//! ```
//!
//! The device uses MPI's terms: rank, source, tag, context, envelope, request, status. It moves bytes; the layer
//! above adds element types. A program that uses the device directly, as programs of mpjdev do, composes its messages
//! in a [`Buffer`], which describes its contents. The device uses transport-lapi's public interface and never an
//! adapter.

mod backend;
mod begun;
pub mod buffer;
mod credit;
mod device;
mod dump;
mod early;
mod early_buffer;
mod envelope;
mod error;
mod failure;
mod follow;
mod huge;
mod idle;
mod loss;
pub mod matching;
mod members;
mod note;
mod probe;
pub mod protocol;
mod receive;
mod request;
mod send;
mod slab;
mod state;
mod stats;
mod status;
mod wait;
pub mod wireup;

pub use begun::Ending;
pub use buffer::Buffer;
pub use device::{Device, Options};
pub use error::{Error, ErrorClass, PeerError};
pub use failure::Failure;
pub use huge::HugeRange;
pub use members::{CallMembers, Members};
pub use probe::Message;
pub use protocol::{Facts, Protocol, Row, Table, When};
pub use request::Request;
pub use send::Mode;
pub use state::State;
pub use stats::{ProtocolStats, Stats};
pub use status::Status;

pub use transport_lapi::Step;
pub use transport_lapi::bootstrap::board::{CALL_NUMBERS, CONTEXT_IDS, Call, Within};
pub use transport_lapi::config::{BackendChoice, GetMode, Settings, WaitMode};
pub use transport_lapi::{
    Layout, LayoutError, Processor, RecvRegion, SendRegion, Sink, Source, Spans, adapter::Adapter,
    panic_text,
};
