//! Message passing between ranks in the manner of MPI: typed, thread-safe, pure Rust.
//!
//! A program is started several times by `mpjrun -n N PROGRAM`; every process calls [`init`] and
//! gets its [`World`]: the communicator of all ranks.
//!
//! ```no_run
//! fn main() -> Result<(), mpj::Error> {
//!     let world = mpj::init()?;
//!     if world.rank() == 0 {
//!         for rank in 1..world.size() {
//!             world.send(&[rank as f64], rank, 0)?;
//!         }
//!     } else {
//!         let mut value = [0.0];
//!         world.recv(&mut value, 0, mpj::ANY_TAG)?;
//!         assert_eq!(value[0], world.rank() as f64);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! The same program can run its ranks as threads of one process, without a launcher, which is what
//! tests and examples in documentation do: see [`local::run`].
//!
//! # Buffers
//!
//! Blocking calls borrow their buffer. Non-blocking ones come in two shapes, neither of which lets
//! a buffer be touched or freed while it is in use: *owning* ones take a `Vec` and give it back from
//! [`Request::wait`]; *scoped* ones ([`Communicator::scope`]) borrow, and are complete when the
//! scope ends. Elements are any plain old data: see [`Datatype`]. Any slice will do; long messages are
//! fastest from memory of [`alloc_buffer`].
//!
//! # Ends
//!
//! Dropping the [`World`] ends the rank's part: it waits for all other ranks to come there, as
//! MPI_Finalize does. If the thread is panicking, or the last call on the world had an error, it tells
//! the job and waits for nobody: this is how `main` leaves by `?`. A program that has dealt with an
//! error and then communicates no more ends with [`World::finish`].

#![deny(unsafe_code)]

mod abort;
mod buffer;
mod collective;
mod communicator;
mod datatype;
mod error;
pub mod local;
mod point_to_point;
mod request;
mod scope;
mod seat;
mod selector;
mod status;
mod world;

pub use abort::abort;
pub use buffer::{Buffer, Pages, alloc_buffer};
pub use bytemuck::{self, Pod, Zeroable};
pub use communicator::Communicator;
pub use datatype::Datatype;
pub use error::Error;
pub use mpjdev::WaitMode;
pub use mpjdev::{
    BackendChoice, Circumstance, ErrorClass, Options, Protocol, ProtocolStats, Stats, Step, Table,
};
pub use request::{Request, wait_all, wait_any};
pub use scope::{Scope, ScopedRequest};
pub use selector::{ANY_SOURCE, ANY_TAG, Source, Tag};
pub use status::Status;
pub use world::{World, init, wtime};
