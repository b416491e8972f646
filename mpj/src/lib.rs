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
//! scope ends. Elements are numbers and structures of them: see [`trait@Datatype`]. Any slice will do, a single number,
//! and data that do not lie together: [`column`](fn@column) and [`block`] of a matrix, parts of one that was divided
//! ([`split_columns_mut`], [`split_blocks_mut`]), [`Strided`] elements of a slice, and with the feature `ndarray` the
//! arrays and views of that crate; see [`SendBuffer`]. Long messages are fastest from memory of [`alloc_buffer`].
//!
//! # Ends
//!
//! Dropping the [`World`] ends the rank's part: it waits for all other ranks to come there, as
//! MPI_Finalize does. If the thread is panicking, or its last call on the world had an error, it tells
//! the job and waits for nobody: this is how `main` leaves by `?`. So it does where the last call of
//! another thread had an error, also of one that has ended, and no call of the dropping thread has
//! succeeded since. A program that has dealt with an error and then communicates no more ends with
//! [`World::finish`].

#![deny(unsafe_code)]

mod abort;
mod buffer;
mod buffered;
mod collective;
mod communicator;
mod datatype;
mod error;
mod group;
mod lent;
pub mod local;
mod memory;
mod message;
mod op;
mod peer;
mod persistent;
mod point_to_point;
mod rank_device;
mod request;
mod scope;
mod selector;
mod status;
#[cfg(feature = "test")]
#[doc(hidden)]
pub mod testing;
mod world;

pub use abort::abort;
pub use buffer::{Buffer, Pages, alloc_buffer};
pub use bytemuck::{self, Pod, Zeroable};
pub use collective::{Blocks, CollectiveRequest, PersistentCollective};
pub use communicator::{
    CartesianCommunicator, Communicator, InterCommunicator, Key, OtherGroup, PendingCommunicator,
    PointToPoint, Root, ScopeBetween, Shift, dims_create,
};
#[doc(hidden)]
pub use datatype::derive;
pub use datatype::{Datatype, TypeMap};
pub use error::Error;
pub use group::{Comparison, Group};
pub use memory::{RecvBuffer, SendBuffer, Unit, View};
pub use memory::{Strided, StridedMut, block, block_mut, column, column_mut};
pub use memory::{split_blocks_mut, split_columns_mut};
pub use message::Message;
pub use mpicore::ErrorClass;
pub use mpicore::group::RankRange;
pub use mpicore::{Cause, Relation};
/// Makes a structure an element of messages: see the trait [`trait@Datatype`].
///
/// Every field has to be an element: a number, a [`Pod`], another structure with this derive, or an array of these.
/// The structure has to be [`Copy`]; it becomes [`Zeroable`] by this derive, too. Only fields are sent and written,
/// with their private ones, so let no field have values that are illegal to the rest of the program. A structure that
/// is [`Pod`] is an element without this derive.
///
/// ```
/// #[derive(Clone, Copy, Debug, PartialEq, mpj::Datatype)]
/// struct Sample<T> {
///     at: u32,
///     value: T,
///     flags: [u8; 3],
/// }
///
/// let sample = Sample { at: 1, value: 0.5, flags: [1, 2, 3] };
/// mpj::local::run(2, |world| {
///     if world.rank() == 0 {
///         world.send(&[sample; 2], 1, 0).unwrap();
///     } else {
///         assert_eq!(world.recv_vec::<Sample<f64>>(0, 0).unwrap().0, [sample; 2]);
///     }
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
///
/// Enumerations and unions are refused, since not all of their bytes make a value; so are fields of the types `bool`
/// and `char`, and references, which mean nothing on another rank:
///
/// ```compile_fail
/// #[derive(Clone, Copy, mpj::Datatype)]
/// enum Direction { North, South }
/// ```
///
/// ```compile_fail
/// #[derive(Clone, Copy, mpj::Datatype)]
/// struct Flag { on: bool }
/// ```
///
/// ```compile_fail
/// #[derive(Clone, Copy, mpj::Datatype)]
/// struct Name { text: &'static u8 }
/// ```
///
/// ```compile_fail
/// #[derive(Clone, Copy, mpj::Datatype)]
/// struct Nested { direction: std::cmp::Ordering }
/// ```
pub use mpj_macros::Datatype;
/// Makes a function a test that runs on the ranks of a job, each a process of its own. With the feature
/// `test`, which belongs in `dev-dependencies`:
///
/// ```toml
/// [dev-dependencies]
/// mpj = { workspace = true, features = ["test"] }
/// ```
///
/// ```
/// #[mpj::test(ranks = 4, timeout = "10s")]
/// fn neighbours_agree(world: &mpj::World) -> Result<(), mpj::Error> {
///     let (rank, size) = (world.rank(), world.size());
///     let sent = world.isend(vec![rank], (rank + 1) % size, 0)?;
///     let mut received = [0];
///     world.recv(&mut received, (rank + size - 1) % size, 0)?;
///     assert_eq!(received[0], (rank + size - 1) % size);
///     sent.wait()?;
///     Ok(())
/// }
/// ```
///
/// `cargo test`, `cargo nextest` and IDEs run it as any other test, without a launcher and without
/// settings: the test starts its own executable again, as launcher and as ranks. What the ranks print
/// comes out in whole lines that begin with `[rank] `. The test fails when a rank panics, returns an
/// error, exits with another code than 0 or is killed, and says what the rank that failed first said,
/// where, and what the others were doing. Nothing is left when it ends, also when it is killed.
///
/// # Options
/// * `ranks`: how many, from 1 to 256; has to be given.
/// * `timeout`: a text such as `"500ms"`, `"10s"` or `"2m"`; `"60s"` if not given. A test that takes
///   longer is ended and fails with the report of what every rank was doing.
/// * `backend`: `"auto"`, `"eager"` or `"rendezvous"`; that of the environment if not given.
///
/// # The function
/// It takes its world as `&mpj::World` or `mpj::World`, or nothing; then it calls [`init`] itself. It
/// returns nothing, or a `Result<(), E>` whose error can be written with [`Debug`]. Prefer `&mpj::World`:
/// a body that owns its world drops it before anybody sees which error it returns, and the drop waits
/// for the other ranks. `#[ignore]`, `#[should_panic]` and other attributes of tests work as usual.
#[cfg(feature = "test")]
pub use mpj_macros::test;
pub use mpjdev::{
    BackendChoice, Circumstance, Options, Protocol, ProtocolStats, Stats, Step, Table,
};
pub use mpjdev::{WaitMode, become_bystander};
pub use op::{Number, Op, Operation, UserOp, ValueIndex};
pub use peer::PROC_NULL;
pub use persistent::{PersistentRequest, start_all};
pub use request::{
    Completed, Completion, Request, test_all, test_any, test_some, wait_all, wait_any, wait_some,
};
pub use scope::{Scope, ScopeOn, ScopedCollective, ScopedRequest};
pub use selector::{ANY_SOURCE, ANY_TAG, Source, Tag};
pub use status::Status;
pub use world::{World, init, wtime};
