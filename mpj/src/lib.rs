//! Message passing in the manner of MPI: typed, thread-safe, without an installed MPI.
//!
//! ```toml
//! [dependencies]
//! mpj = { path = "../mpj/mpj" }   # once it is published: "0.1"
//! ```
//!
//! `mpjrun -n N PROGRAM`, of the package `mpj-launcher`, starts a program N times. Each process calls [`init`] and gets
//! its [`World`], the communicator of all ranks.
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
//! [`local::run`] runs ranks as threads of one process, without a launcher, for tests and for examples in
//! documentation.
//!
//! | to learn | read |
//! |---|---|
//! | which calls there are | [`Communicator`] |
//! | how to start jobs, and what they say when they fail or hang | [`guide::running`], [`guide::hosts`] |
//! | where a program waits that does not scale | [`guide::performance`] |
//! | how to test | [`guide::testing`] |
//! | what is called how, for users of MPI or of the crate `mpi` | [`guide::from_mpi`], [`guide::from_rsmpi`] |
//! | how messages travel, and what can be set | [`guide::backends`], [`tuning`] |
//! | whom a job trusts | [`guide::security`] |
//!
//! # Features
//!
//! None is on by default.
//!
//! | feature | what it adds |
//! |---|---|
//! | `serde` | messages that are one object: see [Objects](#objects); [remote calls](#remote-calls) |
//! | `ndarray` | arrays and views of that crate as buffers |
//! | `num-complex`, `half` | the numbers of these crates as elements |
//! | `tracing` | spans of that crate in a timeline of the job: see `SpanLayer` |
//! | `test` | `#[mpj::test]`: tests on several processes; for `dev-dependencies` |
//!
//! # Buffers
//!
//! Blocking calls borrow their buffer. Non-blocking calls come in two forms, and neither lets a program touch or free a
//! buffer that is in use. *Owning* calls take a `Vec` and return it from [`Request::wait`]. *Scoped* calls
//! ([`Communicator::scope`]) borrow their buffer, and are complete when the scope ends. Elements are numbers and
//! structures of numbers: see [`trait@Datatype`]. A truth value is received as a [`Bool`]. A buffer is a slice, a
//! single number, or data that are not contiguous: a [`column`](fn@column) or [`block`] of a matrix, the parts of a
//! divided matrix ([`split_columns_mut`], [`split_blocks_mut`]), its ghost cells and what neighbours get for theirs
//! ([`split_halo_mut`]), [`Strided`] elements of a slice; see [`SendBuffer`]. Long messages are fastest from memory of
//! [`alloc_buffer`].
//!
//! # Objects
//!
//! With the feature `serde`, every value that serde can serialize can be a message: `send_object`, `recv_object`,
//! `broadcast_object`, `gather_objects`, `all_gather_objects`, `scatter_objects`, `reduce_objects`. Numbers travel faster
//! as buffers.
//!
//! # Collective calls
//!
//! Those that block are methods: [`Communicator::broadcast`], [`Communicator::all_reduce`] and so on. The module
//! [`collective`] describes the same calls as values, which also other forms take: non-blocking, persistent, and between
//! two groups.
//!
//! # Remote calls
//!
//! With the feature `serde`, ranks call functions of each other. All ranks register a function (`Communicator::serve`),
//! and any of them calls it on any rank: `Service::call` waits for the answer, `Service::start` returns a request, and
//! `Service::notify` wants no answer. The rank that is called runs the function in any call that waits or polls, so a
//! rank that waits serves the others. Functions may communicate and call further services; their errors and panics reach
//! the caller ([`ServiceError`]). `Communicator::quiesce` waits until no call is under way on any rank. The examples
//! `hash_map` and `task_farm` use all this.
//!
//! # Memory of other ranks
//!
//! A [`Window`] has elements of each rank ([`Communicator::allocate_window`]). Other ranks read, write and combine them,
//! between [fences](Window::fence), when they are [exposed](Window::expose), or by [locks](Window::lock), without a call of
//! the rank for each access. A [`SharedCounter`] gives all ranks different numbers, for example of pieces of work. Ranks of
//! one host share a [`SharedArray`] of atomic elements.
//!
//! # Files
//!
//! All ranks open a [`File`]. Each sees some of its elements, all of them, a block or a part of an array, and reads and
//! writes them alone or together with the others. The example `npy` writes a divided matrix as NumPy does.
//!
//! # Requests
//!
//! What starts an operation returns a request: [`Request`], [`ScopedRequest`], [`PersistentRequest`],
//! [`PendingCommunicator`], `PendingCall`. All have `wait`, `test` and `is_done`, and all can be awaited
//! ([`Completion`]), in any executor. [`wait_any`] and its kin take lists of any of them ([`AnyRequest`]). Operations
//! go on while a thread of the rank is in a call, and with [`World::progress_thread`] also beside computation.
//!
//! # Leaving the job
//!
//! Dropping the [`World`] ends the rank's part in the job: it waits until all other ranks do the same, as
//! MPI_Finalize does. It does not wait if the thread is panicking or if its last call on the world failed; it then
//! reports the failure to the launcher. So `main` can return an error with `?`. A failed last call of another thread,
//! even of one that has ended, has the same effect, unless a call of the dropping thread has succeeded since. A
//! program that has handled an error and communicates no more calls [`World::finish`].
//!
//! # Mistakes between ranks
//!
//! In debug builds, ranks compare their calls and the types of messages, and refuse what does not fit together. There, a
//! message that was sent and never received makes the program fail at its end, with exit code 1. `mpjrun --check` does the
//! same in release builds, `--check=no` does not do it in debug builds; see [`guide::running`].

#![cfg_attr(docsrs, feature(doc_cfg))]

// The rooms:
//
// - `world`: joining and leaving the job, also by an error, or as threads (`local`). `rank_device`: a rank's place in it.
// - `collective`: collective calls, as values and as blocking methods. `point_to_point`: blocking calls, probes, buffered
//   sends, persistent sends and receives.
// - `object`: messages that are one object of serde.
// - `service`: functions that other ranks call. `window`: memory that other ranks access. `file`: files of all ranks.
// - `request`, `scope`: calls that keep a buffer after they return.
// - `communicator`, `group`: communicators and groups. `envelope`: sources, tags and statuses.
// - `memory`: what can be sent and received into, where its bytes lie, and memory on huge pages.
// - `tuning`: settings, and figures about how messages travel. `guide`: the files of `docs`, in the documentation.
// - `datatype`, `op`: types of elements, operations of reductions. `error`: errors.

// The documentation lists the methods of a type in the order of the modules.
mod point_to_point;
mod request;
mod scope;

pub mod collective;
#[cfg(feature = "serde")]
mod object;
#[cfg(feature = "serde")]
mod service;

mod communicator;
mod datatype;
mod envelope;
mod error;
mod file;
mod group;
#[cfg(any(doc, doctest))]
pub mod guide;
mod memory;
mod op;
mod rank_device;
pub mod tuning;
mod window;
mod world;

pub use bytemuck::{self, Pod, Zeroable};
pub use collective::{Partition, Root};
pub use communicator::spawn;
pub use communicator::{
    AttributeKey, CartesianCommunicator, Communicator, Completion, Edge, GraphCommunicator,
    InterCommunicator, PROC_NULL, PendingCommunicator, PointToPoint, RemoteLeader, Shift,
    dims_create,
};
#[doc(hidden)]
pub use datatype::derive;
pub use datatype::{Bool, Datatype, TypeMap};
pub use envelope::{ANY_SOURCE, ANY_TAG, Source, Status, Tag};
pub use error::Error;
#[cfg(feature = "serde")]
pub use error::ObjectError;
pub use file::{File, FileOptions, FileView};
pub use group::{Comparison, Group};
pub use memory::{Border, Ghost, HaloPart, split_halo_mut};
pub use memory::{Buffer, alloc_buffer};
pub use memory::{Indexed, IndexedMut};
pub use memory::{RecvBuffer, SendBuffer, Unit, View};
pub use memory::{Strided, StridedMut, block, block_mut, column, column_mut};
pub use memory::{split_blocks_mut, split_columns_mut};
pub use mpicore::ErrorClass;
pub use mpicore::group::RankRange;
pub use mpicore::{Cause, Relation, ServiceError};
/// Derives [`trait@Datatype`], so that values of a structure can be elements of messages.
///
/// Every field must be an element: a number, a [`Pod`], another structure with this derive, or an array of these. The
/// structure must be [`Copy`]; the derive also makes it [`Zeroable`]. Messages contain all fields, private ones too,
/// and no padding. So a peer can set every field to any value of its type, and a structure whose fields must keep to
/// narrower rules must not be an element. A structure that is [`Pod`] needs no derive.
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
/// The derive refuses enumerations and unions, since some byte patterns are no value of them. It also refuses fields of
/// the types `bool` and `char`, for the same reason (a [`Bool`] is legal), and references, which mean nothing on another rank:
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
/// Makes a function a test that runs on the ranks of a job, each in its own process. It needs the feature `test`, which
/// belongs in `dev-dependencies`:
///
/// ```toml
/// [dev-dependencies]
/// mpj = { path = "../mpj/mpj", features = ["test"] }
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
/// `cargo test`, `cargo nextest` and IDEs run it like any other test, without a launcher or settings: the test starts
/// its own executable again, as launcher and as ranks. Output of the ranks appears in whole lines that begin with
/// `[rank] `. The test fails when a rank panics, returns an error, exits with a code other than 0 or is killed. Its
/// message contains the error of the rank that failed first, the place of the error, and what the other ranks were
/// doing. When the test ends or is killed, no process remains.
///
/// # Options
/// * `ranks`: the number of ranks, from 1 to 256; required.
/// * `timeout`: a text such as `"500ms"`, `"10s"` or `"2m"`; `"60s"` by default. A test that takes longer is ended,
///   and fails with a report of what every rank was doing.
/// * `backend`: `"auto"`, `"eager"` or `"rendezvous"`; by default the one that the environment selects.
///
/// # The function
/// It takes `&mpj::World`, `mpj::World`, or nothing; in the last case it calls [`init`] itself. It returns nothing,
/// or a `Result<(), E>` whose error implements [`Debug`]. Prefer `&mpj::World`: a body that owns its world drops it
/// before its error is seen, and the drop waits for the other ranks. `#[ignore]`, `#[should_panic]` and other
/// attributes of tests work as usual.
#[cfg(feature = "test")]
pub use mpj_macros::test;
pub use op::{Number, Op, Operation, UserOp, ValueIndex};
pub use point_to_point::{
    Arrivals, Message, PartitionedReceive, PartitionedSend, UnreadyPartition,
};
pub use request::{
    AnyRequest, PersistentRequest, Request, start_all, test_all, test_any, test_some, wait_all,
    wait_any, wait_some,
};
pub use scope::{Scope, ScopeOutcome, ScopedRequest};
#[cfg(feature = "serde")]
pub use service::{PendingCall, Service};
pub use window::{
    AtomicElement, Epoch, EpochScope, Exposure, Local, Place, SharedArray, SharedCounter, Window,
};
#[cfg(feature = "tracing")]
pub use world::SpanLayer;
#[cfg(feature = "test")]
#[doc(hidden)]
pub use world::testing;
pub use world::{Span, World, abort, init, local, span, wtime};
