//! PAMI, IBM's Parallel Active Messaging Interface, over the LAPI-like transport: active messages, one-sided
//! communication and collectives between contexts of named clients.
//!
//! ```text
//!   Client                      a name; several side by side in one process
//!   Context    Guard  Section   a partition of its means; held, and advancing; held
//!   ───────────────────────────────────────────────────────────────────────────────
//!   send.rs   one_sided.rs   collective.rs            what programs call
//!   dispatch.rs   memory.rs   types.rs                dispatches, memory, layouts
//!   geometry.rs   algorithm.rs                        members, the choice of algorithms, collectives under way
//!   state.rs   posted.rs   packet.rs                  operations; posted work; packets
//!   ───────────────────────────────────────────────────────────────────────────────
//!   transport_lapi::Context, one for each context;    mpicore's schedules
//! ```
//!
//! A context is used by one thread at a time: calls are methods of the [`Guard`] that [`Context::lock`] returns, or of
//! the [`Section`] that callbacks get. Only [`Context::post`] needs neither. Nothing happens but in
//! [`Guard::advance`], and nothing blocks but the lock and what creates and destroys clients.
//!
//! ```
//! use pami::{Arriving, Client, Hints, Outcome};
//!
//! let mut client = Client::in_process("example", 1, 1)?.remove(0);
//! let context = client.create_contexts(1)?.remove(0);
//! let (told, answers) = std::sync::mpsc::channel();
//! let mut guard = context.lock()?;
//! let print = move |_: &mut pami::Section<'_>, message: pami::Message<'_>| {
//!     let Arriving::Immediate(data) = message.data else { return };
//!     told.send([message.header, data].concat()).expect("somebody listens");
//! };
//! guard.dispatch_set(7, print, Hints::default())?;
//! let to = guard.endpoint();
//! assert_eq!(guard.send_immediate(to, 7, b"head", b"er")?, Outcome::Done);
//! while guard.advance(100)? == Outcome::Again {}
//! assert_eq!(answers.recv()?, b"header");
//! # drop(guard);
//! # drop(context);
//! # client.destroy()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `docs/pami.md` goes through PAMI's calls one by one.

mod algorithm;
mod client;
mod collective;
mod context;
mod dispatch;
mod error;
#[doc(hidden)]
pub mod fuzz;
mod geometry;
mod memory;
mod one_sided;
mod packet;
mod posted;
mod send;
mod state;
mod types;

pub use algorithm::{Algorithm, Metadata, NoAlgorithm, Property, Unfit, Xfer};
pub use client::Client;
pub use collective::{AmMessage, CollectiveCall, GeometryCallback};
pub use context::{Callback, CallbackOf, Context, Guard, Outcome, Section};
pub use dispatch::{Arriving, Asynchronous, Message};
pub use error::{Code, Error, Violation};
pub use geometry::call::{Collective, Reduction};
pub use geometry::engine::{CollectiveCallback, Finished};
pub use geometry::{Geometry, Members, Record};
pub use memory::Memregion;
pub use mpicore::collective::CollectiveError;
pub use mpicore::op::{ElementKind, OpError, Predefined};
pub use one_sided::rmw::{Modify, RmwCall, ValueCallback};
pub use one_sided::{GetCall, PutCall, Transfer};
pub use send::SendCall;
pub use types::{
    Access, Association, Endpoint, Hint, Hints, Protocol, Setting, Type, TypeBuilder, Value, Way,
    data_sink, data_source,
};

/// Memory of another task, or of this one, as an operation names it (pami_memregion_t): a value that may be sent in
/// messages, as bytes too. Operations with it go to the endpoint on which it was created.
pub use transport_lapi::RemoteRegion as RemoteMemory;

/// The last dispatch of a context (PAMI_CONTEXT_DISPATCH_ID_MAX).
pub const MAX_DISPATCH: usize = 254;
/// Most bytes of a header.
pub const MAX_HEADER: usize = 2048;
/// Most bytes of header and data of a message that is sent immediately (PAMI_DISPATCH_SEND_IMMEDIATE_MAX).
pub const SEND_IMMEDIATE_MAX: usize = 512;
/// Most bytes of header and data of a message that is always received immediately (PAMI_DISPATCH_RECV_IMMEDIATE_MAX).
pub const RECV_IMMEDIATE_MAX: usize = 1024;

/// The transport's handler of all packets of PAMI.
const PACKETS: u8 = 1;
/// The dispatch of the messages of collectives, behind those of programs.
const COLLECTIVES: usize = MAX_DISPATCH + 1;
