//! MPI's concepts, independent of Rust's types and of C's handles: groups, communicators, topologies, datatypes,
//! operations, collectives.
//!
//! The interfaces for users (`mpj` for Rust) translate their callers' types into those of this crate, and contain no
//! algorithms of their own. This crate works on bytes; its caller states the kind of the elements. *Job ranks* are the
//! ranks of the device below.
//!
//! # The rooms
//!
//! From the top; `ARCHITECTURE.md` has the table of which room may use which:
//!
//! - `file`: files that the ranks of a communicator read and write.
//! - `service`: functions that other ranks call. `window`: memory that other ranks access.
//! - `calls`: the collective calls, and those that make communicators, with topologies too. `plan`: how they run, at once
//!   or step by step.
//! - `request`: what programs say of messages; exchanges, persistent and partitioned transfers, and requests that the
//!   program completes.
//! - `communicator`: communicators, their attributes, error handlers and buffered sends. `attribute`: attributes of any
//!   object.
//! - `process`: what communicators of a rank share: the device, the ids on which members agree, the copies of buffered
//!   sends; joining, leaving and aborting the job.
//! - `memory`: the buffers of a collective call.
//! - Pure, and without the device: `collective` (algorithms, as schedules), `datatype`, `group`, `op`, `topology`.
//! - `error`, `error_class`: errors, those of programs too, and MPI's classes of them. `info`: hints.

mod attribute;
mod calls;
pub mod collective;
mod communicator;
pub mod datatype;
mod error;
mod error_class;
mod file;
pub mod group;
mod info;
mod memory;
pub mod op;
mod plan;
mod process;
mod request;
mod service;
pub mod topology;
mod window;

pub use attribute::{Attributes, Cause, Key, Value, WeakKey};
pub use calls::Sent;
pub use calls::create::worlds;
pub use calls::create::{Created, Creating, RemoteLeader, SplitKey};
pub use communicator::{Communicator, ErrorHandler, Relation, UserHandler};
pub use error::code::{CodeError, ErrorCodes};
pub use error::{
    Aspect, Conflict, Error, FileError, Mistake, ServiceError, WindowError, WorldError,
};
pub use error_class::ErrorClass;
pub use file::view::{Representation, View};
pub use file::{Amode, File, Part, Position, Whence};
pub use info::{Info, InfoError, Start};
pub use memory::{Elements, Input, Operand, Output, Plain, Reduction, TypedBlock};
pub use plan::claim::{Entered, Site};
pub use plan::{Persistent, Plan, Steps};
pub use process::buffered::{AttachedBuffer, SendBuffer, SessionBuffer};
pub use process::progress::Alarm;
pub use process::{Process, job};
pub use request::{
    ExchangeTypes, GeneralizedCallbacks, GeneralizedRequest, PROC_NULL, PartitionedReceive,
    PartitionedSend, PersistentTransfer, SendMode,
};
pub use service::{Answer, Handler, Payload, Refusal, Services};
pub use window::{Flavor, LockKind, Target, Window};
