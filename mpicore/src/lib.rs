//! MPI's concepts, independent of Rust's types and of C's handles: groups, communicators, topologies, datatypes,
//! operations, collectives.
//!
//! The interfaces for users (`mpj` for Rust) translate their callers' types into those of this crate, and contain no
//! algorithms of their own. This crate works on bytes; its caller states the kind of the elements. *Job ranks* are the
//! ranks of the device below.
//!
//! # Where things are
//!
//! From the top; `ARCHITECTURE.md` has the table of which room may use which:
//!
//! - `create.rs`: the calls that make communicators, intercommunicators and communicators with topologies.
//! - `exchange.rs`, `partitioned.rs`, `transfer.rs`: messages in both directions at once, in partitions, and persistent
//!   ones. `generalized.rs`: requests that the program completes.
//! - `calls.rs`: the collective calls. `plan.rs`: how they run, at once or step by step.
//! - `communicator.rs`: communicators, their attributes, error handlers and buffered sends.
//! - `process.rs`: what communicators of a rank share. `context_ids.rs`: how their members agree on ids.
//! - `attribute.rs`, `buffered.rs`: attributes of any object, and the copies of buffered sends.
//! - `memory.rs`: the buffers of a collective call.
//! - Pure, and without the device: `collective.rs` (algorithms, as schedules), `datatype.rs`, `group.rs`, `op.rs`,
//!   `topology.rs`.
//! - `error.rs`, `error_class.rs`, `error_code.rs`: errors, MPI's classes of them, and those of programs. `info.rs`:
//!   hints. `job.rs`: joining, leaving and aborting the job.

mod attribute;
mod buffered;
mod calls;
pub mod collective;
mod communicator;
mod context_ids;
mod create;
pub mod datatype;
mod error;
mod error_class;
mod error_code;
mod exchange;
mod generalized;
pub mod group;
mod info;
pub mod job;
mod memory;
pub mod op;
mod partitioned;
mod plan;
mod process;
pub mod topology;
mod transfer;

pub use attribute::{Attributes, Cause, Key, Value, WeakKey};
pub use buffered::{AttachedBuffer, SendBuffer};
pub use calls::Sent;
pub use communicator::{Communicator, ErrorHandler, Relation, UserHandler};
pub use create::{Created, Creating, OtherGroup, SplitKey};
pub use error::Error;
pub use error_class::ErrorClass;
pub use error_code::{CodeError, ErrorCodes};
pub use generalized::{GeneralizedCallbacks, GeneralizedRequest};
pub use info::{Info, InfoError, Start};
pub use memory::{Elements, Input, Operand, Output, Plain, Reduction, TypedBlock};
pub use partitioned::{PartitionedReceive, PartitionedSend};
pub use plan::{Persistent, Plan, Steps};
pub use process::Process;
pub use transfer::{PROC_NULL, PersistentTransfer, SendMode};
