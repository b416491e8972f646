//! Communicators: groups of ranks whose messages are separate from all others (MPI-4.1 chapter 7).
//!
//! A communicator has an id on which its members have agreed (`process/context_ids.rs`). Its point-to-point messages
//! use the device's context `2 * id`, and its collective messages context `2 * id + 1`. There all blocking calls share
//! one tag, and a call that is started has its number on the communicator as its tag (PL4 of `plan.rs`). Partitioned
//! messages have two contexts of their own; calls by which some members make a further communicator have one
//! (`process.rs`). Both groups of an intercommunicator agree on one id, so messages of both directions have the same
//! contexts. A communicator is a handle: clones are the same communicator. When the last clone on a rank is dropped,
//! the communicator is gone there, and its id is free again when nothing is pending in its contexts. This is a local
//! matter: members may drop their clones at different times.
//!
//! - `attribute.rs`, `handler.rs`: attributes and error handlers that users attach to communicators.
//! - `buffered.rs`: buffered sends, and the buffers that they use.
//! - `partition_tags.rs`: the tags of partitioned sends.
//! - `workspace.rs`: memory that collective calls use, and leave for the next ones.
//!
//! Collective calls, also those that make communicators (`calls.rs`), and further requests (`request.rs`) stand
//! above.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use mpjdev::{CALL_NUMBERS, Call, Device, Members, recorded};

use crate::attribute::Attributes;
use crate::collective::{Hosts, Member};
use crate::error::Error;
use crate::group::{Comparison, Group};
use crate::process::buffered::{Copies, SessionBuffer};
use crate::process::{
    Process, SELF, WORLD, fingerprint, group_context, partition_contexts, scrambled,
    service_context,
};
use crate::topology::{Cartesian, Topology};

mod attribute;
mod buffered;
mod handler;
mod partition_tags;
#[cfg(test)]
pub(crate) mod ranks;
#[cfg(test)]
pub(crate) mod tests;
mod workspace;

pub use handler::{ErrorHandler, UserHandler};

pub(crate) use attribute::Copied;
use handler::Handler;
use partition_tags::PartitionTags;
use workspace::Workspace;
pub(crate) use workspace::{InUse, Parts};

/// An intra- or intercommunicator. Several threads may call its methods at once. As MPI requires, all members make the
/// collective calls on one communicator in the same order.
///
/// # Errors of collective calls
/// [`Error::Kind`] if the call is for the other kind of communicator (intra or inter); the errors of the function of
/// the same name in [`collective`](crate::collective), or in [`inter`](crate::collective::inter); [`Error::Buffer`],
/// [`Error::Layout`] or [`Error::Datatype`] if the elements do not lie in the buffers; and for reductions those of
/// [`Op::check`](crate::op::Op::check). In all these cases nothing was sent, and the call does not count.
#[derive(Clone)]
pub struct Communicator(Arc<Inner>);

struct Inner {
    process: Arc<Process>,
    id: u32,
    /// This rank's group.
    group: Group,
    rank: u32,
    remote: Option<Group>,
    topology: Option<Topology>,
    /// Its ranks of other worlds.
    elsewhere: Box<[u32]>,
    /// Where the ranks of its group are, if not all are on one host.
    hosts: Option<Hosts>,
    /// Number of collective calls so far, from which the number of the next one follows.
    calls: AtomicU32,
    /// Number of persistent collectives so far.
    persistent: AtomicU32,
    name: Arc<Mutex<String>>,
    attributes: Attributes<Communicator>,
    handler: Handler,
    workspace: Workspace,
    /// The copies of buffered sends for which the communicator has a buffer of its own.
    copies: Copies,
    /// The place of the buffer of the session that the communicator comes from, if it does.
    session: OnceLock<Arc<SessionBuffer>>,
    partition_tags: Mutex<PartitionTags>,
    /// Its number in records of calls, once one was made.
    number_in_records: OnceLock<Option<u32>>,
}

/// The properties of a new communicator, except its id.
pub(crate) struct Origin {
    pub group: Group,
    pub rank: u32,
    pub remote: Option<Group>,
    pub topology: Option<Topology>,
    pub attributes: Attributes<Communicator>,
    pub handler: Handler,
}

/// The relation of two communicators, the result of MPI_Comm_compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Relation {
    /// The same communicator: MPI_IDENT.
    Identical,
    /// The same groups in the same order, other messages: MPI_CONGRUENT.
    Congruent,
    /// The same members in another order: MPI_SIMILAR.
    Similar,
    /// Anything else: MPI_UNEQUAL.
    Unequal,
}

impl Origin {
    /// Returns the properties of an intracommunicator with nothing attached.
    pub fn of(group: Group, rank: u32) -> Self {
        let (attributes, handler) = <(Attributes<Communicator>, Handler)>::default();
        Self { group, rank, remote: None, topology: None, attributes, handler }
    }
}

impl Communicator {
    /// Makes the communicator of all ranks of this rank's world: MPI_COMM_WORLD. Once per process.
    ///
    /// # Errors
    /// What made the device unusable.
    pub fn world(process: Arc<Process>) -> Result<Self, Error> {
        let device = process.device();
        device.publish_stats();
        let world = device.world();
        let (rank, group) = (device.rank() - world.start, Group::of_ranks(world)?);
        Self::new(process, WORLD, Origin::of(group, rank), "world")
    }

    /// Makes the communicator of this rank alone: MPI_COMM_SELF. Once per process.
    ///
    /// # Errors
    /// What made the device unusable.
    pub fn self_comm(process: Arc<Process>) -> Result<Self, Error> {
        let rank = process.device().rank();
        Self::new(process, SELF, Origin::of(Group::of_ranks([rank])?, 0), "self")
    }

    fn new(process: Arc<Process>, id: u32, origin: Origin, name: &str) -> Result<Self, Error> {
        let Origin { group, rank, remote, topology, attributes, handler } = origin;
        let (calls, persistent) = (AtomicU32::new(0), AtomicU32::new(0));
        let name = Arc::new(Mutex::new(name.to_owned()));
        let (workspace, copies) = <(Workspace, Copies)>::default();
        let hosts = hosts_of(process.device(), &group, rank);
        let elsewhere = elsewhere(process.device(), &group, remote.as_ref());
        process.device().connect(&elsewhere);
        let inner = Inner {
            process,
            id,
            group,
            rank,
            remote,
            topology,
            elsewhere,
            hosts,
            calls,
            persistent,
            name,
            attributes,
            handler,
            workspace,
            copies,
            session: OnceLock::new(),
            partition_tags: Mutex::default(),
            number_in_records: OnceLock::new(),
        };
        // The handle is made before anything can fail: dropping it releases the id.
        let made = Self(Arc::new(inner));
        made.device().set_members(made.collective_context(), made.members())?;
        Ok(made)
    }

    /// Makes a communicator that inherits the error handler of this one, and its session.
    pub(crate) fn child(&self, id: u32, origin: Origin) -> Result<Self, Error> {
        let handler = Handler::new(self.handler());
        let made = Self::new(self.process().clone(), id, Origin { handler, ..origin }, "")?;
        if let Some(session) = self.session_buffer() {
            made.share_buffer(session.clone());
        }
        Ok(made)
    }

    /// Returns the rank of this process in its group: MPI_Comm_rank.
    #[inline]
    pub fn rank(&self) -> u32 {
        self.0.rank
    }

    /// Returns the number of ranks of its group: MPI_Comm_size.
    #[inline]
    pub fn size(&self) -> u32 {
        self.0.group.size()
    }

    /// Returns this rank's group: MPI_Comm_group.
    #[inline]
    pub fn group(&self) -> &Group {
        &self.0.group
    }

    /// Returns the other group of an intercommunicator: MPI_Comm_remote_group.
    pub fn remote_group(&self) -> Option<&Group> {
        self.0.remote.as_ref()
    }

    /// Returns its topology, if it has one: MPI_Topo_test.
    pub fn topology(&self) -> Option<&Topology> {
        self.0.topology.as_ref()
    }

    /// Returns the grid of its ranks, if it has one: MPI_Cart_get, MPI_Topo_test.
    pub fn grid(&self) -> Option<&Cartesian> {
        match self.topology() {
            Some(Topology::Grid(grid)) => Some(grid),
            _ => None,
        }
    }

    /// Returns whether it is an intercommunicator: MPI_Comm_test_inter.
    #[inline]
    pub fn is_inter(&self) -> bool {
        self.0.remote.is_some()
    }

    /// Returns the group of the peers of messages: the group of an intracommunicator, the remote group of an
    /// intercommunicator.
    #[inline]
    pub fn peers(&self) -> &Group {
        self.0.remote.as_ref().unwrap_or(&self.0.group)
    }

    /// Returns the device's context of point-to-point messages.
    #[inline]
    pub fn context(&self) -> u32 {
        2 * self.0.id
    }

    /// Returns the device's context of collective messages.
    #[inline]
    pub fn collective_context(&self) -> u32 {
        2 * self.0.id + 1
    }

    /// Returns the device that carries its messages.
    #[inline]
    pub fn device(&self) -> &Device {
        self.0.process.device()
    }

    /// Returns the state that it shares with the rank's other communicators.
    pub fn process(&self) -> &Arc<Process> {
        &self.0.process
    }

    /// Returns whether the job finds mistakes between its ranks (`MPJ_CHECK`).
    #[inline(always)]
    pub fn is_checked(&self) -> bool {
        self.device().is_checked()
    }

    /// Returns whether the layer above describes its calls ([`Device::is_described`]).
    #[inline(always)]
    pub fn is_described(&self) -> bool {
        self.device().is_described()
    }

    /// Returns its number in records of calls: the same on all its ranks, and hardly ever that of another one with some of
    /// its ranks. Numbers from 2^31 on mean nothing to a reader.
    #[inline]
    pub fn number_in_records(&self) -> Option<u32> {
        *self.0.number_in_records.get_or_init(|| {
            let mut groups = [Some(&self.0.group), self.0.remote.as_ref()];
            // The ranks of the other group have the two in the other order.
            groups.sort_by_key(|group| group.and_then(|group| group.iter().next()));
            let mut members = groups.into_iter().flatten().flat_map(Group::iter).peekable();
            match (self.0.id, *members.peek()?) {
                // That of the first world: those that were spawned have other ranks.
                (0, 0) => Some(0),
                (id, _) => Some(scrambled(fingerprint(members.chain([id]))) as u32 | 1 << 31),
            }
        })
    }

    /// Says of the call that this thread is in that it is the next collective one, of which this rank has so many bytes, where
    /// calls are described. Returns whether it runs by a schedule: where calls are checked, or their rounds are recorded.
    #[cold]
    #[inline(never)]
    pub(crate) fn tell_collective(&self, call: Call, bytes: Option<u64>) -> bool {
        bytes.into_iter().for_each(recorded::collective_bytes);
        let number = self.0.calls.load(Ordering::Relaxed) % CALL_NUMBERS;
        recorded::collective(call.name(), number as i32);
        self.is_checked() || recorded::has_details()
    }

    /// Compares it with another one: MPI_Comm_compare.
    pub fn compare(&self, other: &Self) -> Relation {
        if Arc::ptr_eq(&self.0, &other.0) {
            return Relation::Identical;
        }
        let groups = self.0.group.compare(&other.0.group);
        let remotes = match (self.remote_group(), other.remote_group()) {
            (None, None) => Comparison::Identical,
            (Some(one), Some(another)) => one.compare(another),
            _ => Comparison::Unequal,
        };
        match (groups, remotes) {
            (Comparison::Unequal, _) | (_, Comparison::Unequal) => Relation::Unequal,
            (Comparison::Identical, Comparison::Identical) => Relation::Congruent,
            _ => Relation::Similar,
        }
    }

    /// Returns the name that reports use: MPI_Comm_get_name. It is empty if none was set.
    pub fn name(&self) -> String {
        self.0.name.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets its name, on this rank: MPI_Comm_set_name.
    pub fn set_name(&self, name: impl Into<String>) {
        *self.0.name.lock().unwrap_or_else(PoisonError::into_inner) = name.into();
    }

    /// Returns the member for which schedules are built.
    #[inline]
    pub(crate) fn member(&self) -> Result<Member<'_>, Error> {
        Ok(Member::new(self.0.rank, self.0.group.size())?.on(self.hosts()))
    }

    /// Returns the hosts of the ranks of its group; `None` if all are on one.
    #[inline]
    pub(crate) fn hosts(&self) -> Option<&Hosts> {
        self.0.hosts.as_ref()
    }

    /// Returns the member for which schedules are built; refuses an intercommunicator.
    #[inline]
    pub(crate) fn intra(&self, call: &'static str) -> Result<Member<'_>, Error> {
        if self.is_inter() {
            return Err(Error::Kind { call, kind: "intercommunicator" });
        }
        self.member()
    }

    /// Returns the job rank of this rank.
    pub(crate) fn job_rank(&self) -> u32 {
        self.device().rank()
    }

    /// Returns the device's contexts of partitioned communication: for messages that describe partitions, and for their
    /// data. They lie above those of all ids.
    pub(crate) fn partition_contexts(&self) -> [u32; 2] {
        partition_contexts(self.0.id)
    }

    /// Returns the device's context of calls of services. It is in use until the world ends, and so is the id.
    pub(crate) fn service_context(&self) -> u32 {
        service_context(self.0.id)
    }

    /// Returns the device's context in which some of its members make another communicator.
    pub(crate) fn group_context(&self) -> u32 {
        group_context(self.0.id)
    }

    /// Returns a number that distinguishes an agreement of this communicator from others, the same on all ranks of the
    /// call.
    pub(crate) fn salt(&self) -> u32 {
        // Relaxed: the calls of a communicator are made one after another.
        let calls = self.0.calls.load(Ordering::Relaxed);
        self.0.id ^ calls.rotate_left(16)
    }

    /// Returns what its collective calls work with.
    #[inline]
    pub(crate) fn workspace(&self) -> &Workspace {
        &self.0.workspace
    }

    /// Returns the tags of the partitions of sends.
    pub(crate) fn partition_tags(&self) -> MutexGuard<'_, PartitionTags> {
        self.0.partition_tags.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn copies(&self) -> &Copies {
        &self.0.copies
    }

    pub(crate) fn session(&self) -> &OnceLock<Arc<SessionBuffer>> {
        &self.0.session
    }

    /// Takes the number of the next collective call.
    #[inline]
    pub(crate) fn next_number(&self) -> i32 {
        // A load and a store, since a locked instruction takes a twentieth of a barrier. No call is lost: a program
        // orders its collective calls on a communicator.
        let number = self.0.calls.load(Ordering::Relaxed);
        self.0.calls.store(number.wrapping_add(1), Ordering::Relaxed);
        (number % CALL_NUMBERS) as i32
    }

    /// Counts a persistent collective, and returns how many there were before it; `None` if these are `most`. All
    /// members make them in the same order, so the result is the same on each.
    pub(crate) fn next_persistent(&self, most: u32) -> Option<u32> {
        // Relaxed, as above.
        let before = self.0.persistent.load(Ordering::Relaxed);
        if before >= most {
            return None;
        }
        self.0.persistent.store(before + 1, Ordering::Relaxed);
        Some(before)
    }

    /// Returns the ranks that collective calls need.
    pub(crate) fn members(&self) -> Arc<dyn Members> {
        let Inner { group, name, remote, .. } = &*self.0;
        let (group, remote, name) = (group.clone(), remote.clone(), name.clone());
        Arc::new(Gathering { group, remote, name })
    }
}

/// Returns the hosts of the ranks of a group; `None` if all are on one.
fn hosts_of(device: &Device, group: &Group, rank: u32) -> Option<Hosts> {
    let host_of = |rank| device.host_of(group.job_rank(rank).expect("a rank of the group"));
    device.has_hosts().then(|| Hosts::of(rank, group.size(), host_of))?
}

/// Returns the ranks of other worlds among those of a communicator.
fn elsewhere(device: &Device, group: &Group, remote: Option<&Group>) -> Box<[u32]> {
    let world = device.world();
    if world.len() == device.size() {
        return Box::default();
    }
    let ranks = std::iter::once(group).chain(remote).flat_map(Group::iter);
    ranks.filter(|rank| !world.contains(rank)).collect()
}

/// Returns the members of a call that only a group makes.
pub(crate) fn members_of(group: Group) -> Arc<dyn Members> {
    Arc::new(Gathering { group, remote: None, name: Arc::default() })
}

/// The members of a communicator, in the form that the device gets.
struct Gathering {
    group: Group,
    remote: Option<Group>,
    name: Arc<Mutex<String>>,
}

impl Members for Gathering {
    fn contains(&self, rank: u32) -> bool {
        let mut groups = std::iter::once(&self.group).chain(&self.remote);
        groups.any(|group| group.rank_of(rank).is_some())
    }

    fn ranks(&self) -> Vec<u32> {
        let groups = std::iter::once(&self.group).chain(&self.remote);
        groups.flat_map(|group| group.iter().collect::<Vec<_>>()).collect()
    }

    fn name(&self) -> String {
        self.name.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.delete_attributes_at_end() {
            let process = &self.process;
            self.copies.leave(process.device());
            process.device().disconnect(&self.elsewhere);
            process.leave(self.id);
        }
    }
}

impl fmt::Debug for Communicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { id, group, rank, .. } = &*self.0;
        let mut shown = f.debug_struct("Communicator");
        shown.field("id", id).field("group", group).field("rank", rank);
        shown.field("remote_group", &self.remote_group()).finish_non_exhaustive()
    }
}
