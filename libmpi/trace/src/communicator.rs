//! Which ranks of the world the ranks of a communicator are, and a number for it that all its ranks have. Called by
//! [`crate::call`], and by the functions that make or free communicators and windows.
//!
//! - KN1: ranks make the communicators of the same members in the same order. So the number follows from the members and
//!   from how many communicators with these members were made before, and no rank asks another one.
//! - KN2: what is known of a communicator stays until the program ends, so that threads keep references to it.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxBuildHasher;
use transport_lapi::bootstrap::trace::{self, Kind};

use crate::abi::*;
use crate::site::Site;

/// Numbers that no reader can make sense of begin here; the launcher replaces them.
const UNREADABLE: u64 = 1 << 31;

/// A communicator.
pub struct Communicator {
    /// Its number.
    pub number: u32,
    /// The world ranks of those that its calls name: its members, or the other group.
    peers: &'static [Option<u32>],
    /// How many of these, from the first one on, have the same ranks in MPI_COMM_WORLD.
    as_in_world: usize,
    /// The first rank of MPI_COMM_WORLD.
    first: u32,
    /// How many collective calls this rank has made.
    collectives: AtomicU64,
}

impl Communicator {
    /// Returns the world rank of a rank, if it is one.
    #[inline]
    pub fn world_rank(&self, rank: c_int) -> Option<u32> {
        let rank = usize::try_from(rank).ok()?;
        if rank < self.as_in_world {
            return Some(self.first + rank as u32);
        }
        *self.peers.get(rank)?
    }

    /// Returns the number of the collective call that this rank makes now. Programs make one at a time on a communicator.
    #[inline]
    pub fn next_collective(&self) -> u64 {
        let number = self.collectives.load(Relaxed);
        self.collectives.store(number + 1, Relaxed);
        number
    }
}

/// A receive whose end tells its source as a rank of the communicator.
#[derive(Clone, Copy)]
pub struct Awaited {
    pub comm: &'static Communicator,
    /// Whether its request is persistent.
    pub is_kept: bool,
}

/// The members of a group, with how many communicators were made of them.
type Groups = HashMap<Vec<u32>, (&'static [u32], u64), FxBuildHasher>;

/// What is known.
#[derive(Default)]
struct Known {
    communicators: HashMap<MPI_Comm, &'static Communicator, FxBuildHasher>,
    windows: HashMap<MPI_Win, &'static Communicator, FxBuildHasher>,
    /// The receives from any rank that have not ended.
    awaited: HashMap<MPI_Request, Awaited, FxBuildHasher>,
    /// The communicators of messages that were found and not received yet.
    messages: HashMap<MPI_Message, &'static Communicator, FxBuildHasher>,
    groups: Groups,
}

static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);
/// Whether the program has MPI_COMM_WORLD.
static HAS_WORLD: AtomicBool = AtomicBool::new(false);
/// How often a communicator was freed; what threads remember counts only while this is unchanged.
static FREED: AtomicUsize = AtomicUsize::new(0);
/// How many receives [`Known::awaited`] has.
static AWAITED: AtomicUsize = AtomicUsize::new(0);

/// The number in the job of the first rank of MPI_COMM_WORLD.
static FIRST_RANK: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The communicator that this thread has used last, with [`FREED`] then.
    static LAST: Cell<(MPI_Comm, usize, Option<&'static Communicator>)> =
        const { Cell::new((0, 0, None)) };
}

fn known() -> MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a communicator, if it is known.
#[inline]
pub fn find(comm: MPI_Comm) -> Option<&'static Communicator> {
    let freed = FREED.load(Acquire);
    match LAST.get() {
        (last, then, found @ Some(_)) if last == comm && then == freed => found,
        _ => {
            let found = known().communicators.get(&comm).copied();
            LAST.set((comm, freed, found));
            found
        }
    }
}

/// Returns the communicator of a window, if it is known.
pub fn of_window(win: MPI_Win) -> Option<&'static Communicator> {
    known().windows.get(&win).copied()
}

/// Notes that a message was found in a communicator.
pub fn matched(message: MPI_Message, comm: MPI_Comm) {
    if let Some(comm) = find(comm) {
        known().messages.insert(message, comm);
    }
}

/// Returns the communicator of a message that is about to be received.
pub fn taken(message: MPI_Message) -> Option<&'static Communicator> {
    known().messages.remove(&message)
}

/// Notes a window.
pub fn window_made(win: MPI_Win, comm: MPI_Comm) {
    let found = find(comm);
    let mut known = known();
    match found {
        Some(found) => drop(known.windows.insert(win, found)),
        None => drop(known.windows.remove(&win)),
    }
}

/// Forgets a communicator that the program frees.
pub fn freed(comm: MPI_Comm) {
    known().communicators.remove(&comm);
    FREED.fetch_add(1, Release);
}

/// Notes that a request of a receive from any rank of a communicator was made, unless all its ranks are those of the world.
#[inline]
pub fn awaits_any(request: MPI_Request, awaited: Awaited) {
    if awaited.comm.as_in_world < awaited.comm.peers.len() {
        note_awaited(request, awaited);
    }
}

fn note_awaited(request: MPI_Request, awaited: Awaited) {
    if known().awaited.insert(request, awaited).is_none() {
        AWAITED.fetch_add(1, Relaxed);
    }
}

/// Returns the world rank from which a receive from any rank, which has ended, got its message. Of other operations the
/// result says nothing: of those from one rank it is known.
#[inline]
pub fn source_of(request: MPI_Request, source: c_int) -> Option<u32> {
    if AWAITED.load(Relaxed) > 0 {
        if let Some(comm) = awaited(request) {
            return comm.world_rank(source);
        }
    }
    let source = u32::try_from(source).ok()?;
    Some(FIRST_RANK.load(Relaxed) + source)
}

fn awaited(request: MPI_Request) -> Option<&'static Communicator> {
    let mut known = known();
    let found = known.awaited.get(&request).copied()?;
    if !found.is_kept {
        known.awaited.remove(&request);
        AWAITED.fetch_sub(1, Relaxed);
    }
    Some(found.comm)
}

/// Forgets a request that the program frees: another one may get its number.
pub fn request_freed(request: MPI_Request) {
    if AWAITED.load(Relaxed) > 0 && known().awaited.remove(&request).is_some() {
        AWAITED.fetch_sub(1, Relaxed);
    }
}

/// Notes the communicators that there are from the beginning.
pub fn world_made() {
    let first = trace::recorder().map_or(0, |recorder| recorder.first_task());
    FIRST_RANK.store(first, Relaxed);
    HAS_WORLD.store(true, Relaxed);
    made(MPI_COMM_WORLD);
    made(MPI_COMM_SELF);
}

/// Notes a communicator that was made.
pub fn made(comm: MPI_Comm) {
    if comm == MPI_COMM_NULL || !HAS_WORLD.load(Relaxed) {
        return;
    }
    let Some((members, peers)) = members_of(comm) else { return };
    let peers = &*peers.leak();
    let first = FIRST_RANK.load(Relaxed);
    let in_world = peers.iter().zip((first..).map(Some));
    let as_in_world = in_world.take_while(|(peer, same)| *peer == same).count();
    let mut known = known();
    let count = known.groups.entry(members).or_insert_with_key(|key| (key.clone().leak(), 0));
    let (members, before) = *count;
    count.1 += 1;
    let is_first_world = comm == MPI_COMM_WORLD && members.first() == Some(&0);
    let number = if is_first_world { 0 } else { number_of(members, before) };
    let collectives = AtomicU64::new(0);
    let new = Communicator { number, peers, as_in_world, first, collectives };
    known.communicators.insert(comm, Box::leak(Box::new(new)));
    drop(known);
    // A number of a handle that was in use before may be that of this one.
    FREED.fetch_add(1, Release);
}

/// A number for the communicator of these members that was made after so many others of them (KN1).
fn number_of(members: &[u32], before: u64) -> u32 {
    let words = members.iter().map(|member| u64::from(*member)).chain([before]);
    let mixed = words.fold(0xcbf2_9ce4_8422_2325, |hash: u64, word| {
        (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    });
    (mixed >> 16 | UNREADABLE) as u32
}

/// The members of a communicator as ranks of the world, in an order that all ranks agree on, and those that its calls name.
fn members_of(comm: MPI_Comm) -> Option<(Vec<u32>, Vec<Option<u32>>)> {
    let own = translated(group_of(comm, c"PMPI_Comm_group")?)?;
    let other = match is_inter(comm) {
        true => Some(translated(group_of(comm, c"PMPI_Comm_remote_group")?)?),
        false => None,
    };
    // Ranks of other worlds are not known here.
    let known = |ranks: &[Option<u32>]| -> Vec<u32> {
        ranks.iter().map(|rank| rank.unwrap_or(u32::MAX)).collect()
    };
    let mut groups = vec![known(&own)];
    groups.extend(other.as_deref().map(known));
    groups.sort();
    Some((groups.join(&u32::MAX), other.unwrap_or(own)))
}

fn is_inter(comm: MPI_Comm) -> bool {
    static SITE: Site = Site::new(c"PMPI_Comm_test_inter", Kind::Other);
    type Next = unsafe extern "C-unwind" fn(MPI_Comm, *mut c_int) -> c_int;
    let mut flag = 0;
    // SAFETY: TP1; a communicator that was just made, and a place for the answer.
    unsafe { SITE.next::<Next>().map(|next| next(comm, &mut flag)) };
    flag != 0
}

fn group_of(comm: MPI_Comm, function: &'static std::ffi::CStr) -> Option<MPI_Group> {
    type Next = unsafe extern "C-unwind" fn(MPI_Comm, *mut MPI_Group) -> c_int;
    let (site, mut group) = (Site::new(function, Kind::Other), MPI_GROUP_NULL);
    // SAFETY: TP1; as in `is_inter`.
    let code = unsafe { site.next::<Next>()?(comm, &mut group) };
    (code == MPI_SUCCESS).then_some(group)
}

/// Frees a group, and returns its ranks as ranks of the world.
fn translated(mut group: MPI_Group) -> Option<Vec<Option<u32>>> {
    static SIZE: Site = Site::new(c"PMPI_Group_size", Kind::Other);
    static TRANSLATE: Site = Site::new(c"PMPI_Group_translate_ranks", Kind::Other);
    static FREE: Site = Site::new(c"PMPI_Group_free", Kind::Other);
    type Size = unsafe extern "C-unwind" fn(MPI_Group, *mut c_int) -> c_int;
    type Translate =
        unsafe extern "C-unwind" fn(MPI_Group, c_int, *const c_int, MPI_Group, *mut c_int) -> c_int;
    type Free = unsafe extern "C-unwind" fn(*mut MPI_Group) -> c_int;
    let mut world = group_of(MPI_COMM_WORLD, c"PMPI_Comm_group")?;
    let mut size = 0;
    // SAFETY: TP1; groups that were just made, and a place for the answer.
    unsafe { SIZE.next::<Size>()?(group, &mut size) };
    let ranks: Vec<c_int> = (0..size).collect();
    let mut of_world = ranks.clone();
    // SAFETY: TP1; both lists are as long as is said, and the groups are ours to free.
    unsafe {
        let translate = TRANSLATE.next::<Translate>()?;
        translate(group, size, ranks.as_ptr(), world, of_world.as_mut_ptr());
        let free = FREE.next::<Free>()?;
        free(&mut group);
        free(&mut world);
    }
    let first = trace::recorder()?.first_task();
    Some(of_world.into_iter().map(|rank| Some(first + u32::try_from(rank).ok()?)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_differ_by_members_and_by_order_and_are_never_read_as_others() {
        let all = [
            number_of(&[0, 1], 0),
            number_of(&[0, 1], 1),
            number_of(&[1, 0], 0),
            number_of(&[0], 1),
        ];
        assert!(all.iter().all(|number| u64::from(*number) >= UNREADABLE));
        let distinct: std::collections::BTreeSet<_> = all.into_iter().collect();
        assert_eq!(distinct.len(), 4);
    }
}
