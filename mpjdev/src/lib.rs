//! The device layer: point-to-point messages between ranks, matched by context, source and tag. The design follows
//! HPJava's *mpjdev over LAPI*.
//!
//! ```text
//!    clients (mpj)
//!   ──────────────────────────────────────────────────────────────
//!    Device        isend · irecv · wait · probe · cancel · dump
//!      │ matching  posted-receive queue and early-send queue (pure)
//!      │ protocol  which protocol for which message
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
//!
//! # Where things are
//!
//! - `device.rs`: the device. Its calls: `send.rs`, `receive.rs`, `probe.rs`, `wait.rs`, `follow.rs` (cancelling,
//!   joining, continuing), `begun.rs` (operations of a client's own, such as collectives), `failure.rs` (failed
//!   collectives).
//! - `protocol.rs`: the table that chooses the protocol of a message. `huge.rs`: memory for which it chooses otherwise.
//! - `backend.rs`: the two protocols. `envelope.rs`: what their messages say first.
//! - `state.rs`: what handlers change: `matching.rs`, `request.rs`, `slab.rs`, `stats.rs`.
//! - `early.rs`, `early_buffer.rs`, `credit.rs`: early messages, their memory, and its limit.
//! - `loss.rs`, `members.rs`: which operations the loss of a rank ends. `idle.rs`: whether a context is still in use.
//! - `note.rs`, `dump.rs`: what reports show.
//! - `buffer.rs`: mpjdev's buffers of typed sections.
//! - `wireup.rs`: how a rank joins a job.

mod backend;
mod begun;
pub mod buffer;
mod choice;
mod cost;
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
mod receive;
mod request;
mod select;
mod send;
mod slab;
mod state;
mod stats;
mod status;
mod timing;
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
pub use request::Request;
pub use select::Table;
pub use send::Mode;
pub use state::State;
pub use stats::{ProtocolStats, Stats};
pub use status::Status;

pub use transport_lapi::Step;
pub use transport_lapi::bootstrap::board::{CALL_NUMBERS, CONTEXT_IDS, Call, Within};
pub use transport_lapi::config::{
    BackendChoice, Circumstance, GetMode, Protocol, RangesError, Settings, WaitMode,
};
pub use transport_lapi::{
    Layout, LayoutError, RecvRegion, SendRegion, Sink, Source, Spans, adapter::Adapter, panic_text,
};
