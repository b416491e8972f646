//! Collective calls as values (MPI-4.1 chapter 6). Each function here describes a call with its buffers, and
//! communicators and intercommunicators make it in one of four forms:
//!
//! | form | in MPI, for example | buffers |
//! |---|---|---|
//! | [`Communicator::run`] | MPI_Bcast | references, borrowed until the call returns |
//! | [`Communicator::start`] | MPI_Ibcast | vectors, which [`Request::wait`] returns |
//! | [`Scope::start`] | MPI_Ibcast | references, borrowed until the scope ends |
//! | [`Communicator::persistent`] | MPI_Bcast_init | vectors, which the [`PersistentRequest`] keeps |
//!
//! The methods of a communicator that have the names of the functions here are short for `run`. They say what a call
//! does, and when it fails; all forms have the same errors.
//!
//! ```
//! use mpj::{Op, collective};
//! mpj::local::run(3, |world| {
//!     let mut sum = world.rank();
//!     world.all_reduce(&mut sum, Op::Sum).unwrap();
//!
//!     let started = world.start(collective::all_reduce(vec![world.rank()], Op::Sum)).unwrap();
//!     // Work that needs no sum.
//!     assert_eq!(started.wait().unwrap().0, [sum]);
//!
//!     let mut lent = world.rank();
//!     world.scope(|scope| scope.start(collective::all_reduce(&mut lent, Op::Sum)).map(drop)).unwrap();
//!     assert_eq!(lent, sum);
//!
//!     let mut kept = world.persistent(collective::all_reduce(vec![0], Op::Sum)).unwrap();
//!     for step in 0..10 {
//!         kept.buffer_mut().unwrap()[0] = step * world.rank();
//!         kept.start().unwrap();
//!         kept.wait().unwrap();
//!         assert_eq!(kept.buffer().unwrap(), [step * sum]);
//!     }
//! })?;
//! # Ok::<(), mpj::local::LocalError>(())
//! ```
//!
//! All ranks of a communicator make the same calls on it in the same order, and in the same form: a blocking call does
//! not match a non-blocking or a persistent one (MPI-4.1 section 6.12).
//!
//! A call that divides a buffer among the ranks gives each rank one part, in the order of ranks. A buffer that only the
//! root uses may be empty on other ranks: `&mut []`, or `vec![]`.
//!
//! # Between two groups
//! On an [`InterCommunicator`] all data go to the other group (MPI-4.1 section 6.2.3): parts and blocks are those of its
//! ranks, and the root is a [`Root`]. There are no [`scan`], [`exscan`] and [`all_reduce`] between groups;
//! [`all_reduce_into`] there is.
//!
//! ```
//! use mpj::{RemoteLeader, Root, collective};
//! mpj::local::run(4, |world| {
//!     let is_odd = world.rank() % 2 == 1;
//!     let half = world.split(is_odd.into(), 0).unwrap();
//!     let other = RemoteLeader { peers: &world, leader: (!is_odd).into(), tag: 0 };
//!     let between = half.create_inter(0, Some(other)).unwrap();
//!     // World rank 1 is the root; the even ranks get what it has, and rank 3 nothing.
//!     let root = [Root::There(0), Root::Here, Root::There(0), Root::Beside][world.rank()];
//!     let mut word = [0, 7, 0, 9][world.rank()];
//!     between.run(collective::broadcast(&mut word, root)).unwrap();
//!     assert_eq!(word, [7, 7, 7, 9][world.rank()]);
//! })?;
//! # Ok::<(), mpj::local::LocalError>(())
//! ```
//!
//! The compiler refuses a rank as a root between two groups, and a [`Root`] in one:
//!
//! ```compile_fail
//! fn wrong(between: &mpj::InterCommunicator) {
//!     let _ = between.run(mpj::collective::broadcast(&mut 7, 0));
//! }
//! ```
//!
//! ```compile_fail
//! fn wrong(world: &mpj::World) {
//!     let _ = world.run(mpj::collective::broadcast(&mut 7, mpj::Root::Here));
//! }
//! ```
//!
//! It also refuses a form with buffers that it could not keep:
//!
//! ```compile_fail
//! fn wrong(world: &mpj::World) {
//!     let _ = world.start(mpj::collective::broadcast(&mut 7, 0));
//! }
//! ```
//!
//! ```compile_fail
//! fn wrong(world: &mpj::World) {
//!     let _ = world.scope(|scope| {
//!         let mut word = 7;
//!         scope.start(mpj::collective::broadcast(&mut word, 0)).map(drop)
//!     });
//! }
//! ```
//!
//! [`Communicator::run`]: crate::Communicator::run
//! [`Communicator::start`]: crate::Communicator::start
//! [`Communicator::persistent`]: crate::Communicator::persistent
//! [`InterCommunicator`]: crate::InterCommunicator
//! [`PersistentRequest`]: crate::PersistentRequest
//! [`Request::wait`]: crate::Request::wait
//! [`Scope::start`]: crate::Scope::start

// - `movement.rs`, `neighbour.rs`, `reduction.rs`: the descriptions, and the plans that the core makes of them.
// - `forms.rs`: what runs, starts and keeps descriptions. `buffers.rs`: the buffers that each form takes.
// - `blocking.rs`: the blocking calls under their short names.
// - `partition.rs`, `root.rs`, `parts.rs`: arguments of calls.

use mpicore::collective::Blocks;
use mpicore::{Input, Output, Plan};

use crate::communicator::PointToPoint;
use crate::error::Error;

mod blocking;
mod buffers;
mod forms;
mod movement;
mod neighbour;
mod partition;
mod parts;
mod reduction;
mod root;

pub use movement::{
    all_gather, all_gatherv, all_to_all, all_to_allv, all_to_allw, all_to_allw_owned, barrier,
    broadcast, gather, gatherv, scatter, scatterv,
};
pub use neighbour::{
    neighbour_all_gather, neighbour_all_gatherv, neighbour_all_to_all, neighbour_all_to_allv,
    neighbour_all_to_allw, neighbour_all_to_allw_owned,
};
pub use partition::Partition;
pub use reduction::{
    all_reduce, all_reduce_into, exscan, reduce, reduce_scatter, reduce_scatter_block, scan,
};
pub use root::Root;

/// A collective call with its buffers: the call `K`, the buffer `D` that it sends, and the buffer `I` of its results.
/// See the [module](self).
#[must_use = "a description does nothing until it is run, started or made persistent"]
pub struct Collective<K, D, I> {
    kind: K,
    data: D,
    into: I,
}

/// A call that can be made on `C`, a [`Communicator`](crate::Communicator) or an
/// [`InterCommunicator`](crate::InterCommunicator). Only the calls that this module describes are.
#[diagnostic::on_unimplemented(
    message = "this collective call cannot be made on `{C}`",
    note = "on a `Communicator` the root is a rank, which is a `usize`; on an `InterCommunicator` it is a `Root`",
    note = "an `InterCommunicator` has no scans, and instead of `all_reduce` it has `all_reduce_into`"
)]
pub trait CallOn<C> {
    /// Makes the plan. The caller keeps the borrows of the buffers until the plan has run.
    #[doc(hidden)]
    fn plan(self, on: &C, data: SendArg, into: RecvArg) -> Planned<'_>;
}

/// What a call sends, and how many units that is.
type SendArg = (Input, u64);

/// Where the results of a call go, and how many units fit there.
type RecvArg = (Output, u64);

/// A plan, or the error of making it.
type Planned<'c> = Result<Plan<'c>, Error>;

/// Returns how many of `units` each peer gets when they are divided equally.
#[inline]
fn share(on: &PointToPoint, units: u64) -> Result<u64, Error> {
    divided(units, on.core.peers().size().into())
}

/// Returns how many of `units` each of so many ranks gets when they are divided equally.
#[inline]
fn divided(units: u64, ranks: u64) -> Result<u64, Error> {
    match units.checked_rem(ranks) {
        Some(0) => Ok(units / ranks),
        _ => Err(Error::Division { elements: units as usize, ranks: ranks as usize }),
    }
}

/// Describes blocks with datatypes of their own, one for each rank.
fn typed(entries: u64) -> Blocks<'static> {
    Blocks::Typed { entries: entries as usize }
}

/// Describes blocks of the same length for all peers, into which `units` are divided.
#[inline]
fn equal_blocks(on: &PointToPoint, units: u64) -> Result<Blocks<'static>, Error> {
    Ok(Blocks::Equal { count: share(on, units)? })
}
