//! Geometries: ordered sets of endpoints, the algorithms of their collectives, and what was measured of these. No
//! communication: `collective.rs` and its folder have that.
//!
//! `call.rs` has the collectives and their rounds, `engine.rs` those that have begun, `agreement.rs` the geometries that
//! come and go, and `records.rs` remembers how long collectives took.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use mpicore::collective::{Hosts, Member};
use parking_lot::Mutex;
use transport_lapi::{Ranges, TaskId};

use crate::algorithm::{Algorithm, Need, Unfit, Xfer};
use crate::error::Error;
use crate::types::{Endpoint, choose};

pub(crate) mod agreement;
pub(crate) mod call;
pub(crate) mod engine;
pub(crate) mod records;

use call::Collective;
pub use records::Record;

/// An ordered set of endpoints (pami_geometry_t). Clones are the same geometry, which is destroyed by
/// [`Section::geometry_destroy`](crate::Section::geometry_destroy). Each task has it once, for all its contexts.
#[derive(Clone)]
pub struct Geometry(pub(crate) Arc<Inner>);

/// What tasks agree on: the creation or the destruction of a geometry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Matter {
    /// The id of the geometry.
    pub geometry: u32,
    /// The generation of the geometry that is destroyed, or [`Matter::creation`].
    pub which: u32,
}

/// The bit that tells creations from generations.
const CREATION: u32 = 1 << 31;

impl Matter {
    /// The last generation.
    pub const LAST: u32 = CREATION - 1;

    /// The creation of a geometry by the tasks of a group, the members or those of the parent. Another creation with the same
    /// id is another matter.
    pub fn creation(geometry: u32, group: &[Endpoint], generation: u32) -> Self {
        let words = group.iter().map(|one| one.to_bits()).chain([geometry, generation]);
        // FNV-1a, by words.
        let hash =
            words.fold(0x811C_9DC5, |hash: u32, word| (hash ^ word).wrapping_mul(0x0100_0193));
        Self { geometry, which: hash | CREATION }
    }

    pub fn is_creation(self) -> bool {
        self.which & CREATION != 0
    }
}

pub(crate) struct Inner {
    id: u32,
    /// The greatest generation that this task knew when it began to create it.
    floor: u32,
    /// Its own, which is greater, once all tasks have agreed on it.
    generation: OnceLock<u32>,
    members: Vec<Endpoint>,
    /// The first endpoint of each task, in the order of ranks: by these, tasks wait for each other.
    pub leaders: Arc<[Endpoint]>,
    ranks: HashMap<Endpoint, u32>,
    /// The numbers of the members' hosts.
    hosts: Vec<u32>,
    /// How many collectives each member of this task has begun.
    begun: Vec<AtomicU32>,
    /// Has a clone for each collective of a member of this task that has not ended.
    pub uses: Arc<()>,
    optimize: AtomicBool,
    associations: Mutex<HashMap<Xfer, Ranges<Algorithm>>>,
    records: Mutex<records::Records>,
}

impl fmt::Debug for Geometry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "geometry {} of {:?}", self.id(), self.members())
    }
}

/// The members of a geometry, in the order of their ranks. An offset of `None` is PAMI_ALL_CONTEXTS: all endpoints of each
/// task.
#[derive(Debug, Clone)]
pub enum Members {
    /// Ranges of tasks, with both ends (PAMI_Geometry_create_taskrange).
    Ranges(Vec<RangeInclusive<TaskId>>, Option<usize>),
    /// Tasks (PAMI_Geometry_create_tasklist).
    Tasks(Vec<TaskId>, Option<usize>),
    /// Endpoints (PAMI_Geometry_create_endpointlist).
    Endpoints(Vec<Endpoint>),
}

impl Members {
    /// Whether all endpoints of each task are members by definition.
    pub(crate) fn are_all_contexts(&self) -> bool {
        matches!(self, Self::Ranges(_, None) | Self::Tasks(_, None))
    }

    /// Lists the endpoints, if a client has so many contexts. Those that it does not have are refused by the caller.
    pub(crate) fn list(self, num_tasks: usize, contexts: usize) -> Vec<Endpoint> {
        let (tasks, offset): (Vec<TaskId>, _) = match self {
            Self::Endpoints(endpoints) => return endpoints,
            Self::Tasks(tasks, offset) => (tasks, offset),
            // One more than there can be, whatever the ranges say.
            Self::Ranges(ranges, offset) => {
                (ranges.into_iter().flatten().take(num_tasks + 1).collect(), offset)
            }
        };
        let offsets = offset.map_or(0..contexts, |offset| offset..offset.saturating_add(1));
        let of_task = |task| offsets.clone().map(move |offset| Endpoint::any(task, offset));
        tasks.into_iter().flat_map(of_task).collect()
    }
}

impl Geometry {
    /// Makes a geometry of endpoints that exist.
    ///
    /// # Errors
    /// [`Error::Members`].
    pub(crate) fn new(
        (id, floor): (u32, u32),
        members: Vec<Endpoint>,
        host_of: impl Fn(TaskId) -> u32,
    ) -> Result<Self, Error> {
        let ranks: HashMap<_, _> = members.iter().copied().zip(0..).collect();
        if ranks.len() != members.len() || members.is_empty() {
            return Err(Error::Members { id, given: members.len(), different: ranks.len() });
        }
        let mut seen = std::collections::HashSet::new();
        let leaders = members.iter().copied().filter(|one| seen.insert(one.task())).collect();
        Ok(Self(Arc::new(Inner {
            id,
            floor,
            generation: if id == 0 { OnceLock::from(0) } else { OnceLock::new() },
            leaders,
            ranks,
            hosts: members.iter().map(|one| host_of(one.task())).collect(),
            begun: members.iter().map(|_| AtomicU32::new(0)).collect(),
            members,
            uses: Arc::default(),
            optimize: AtomicBool::new(true),
            associations: Mutex::default(),
            records: Mutex::default(),
        })))
    }

    /// Returns its id; that of the world is 0.
    pub fn id(&self) -> u32 {
        self.0.id
    }

    /// Notes on which generation the tasks have agreed.
    pub(crate) fn agree(&self, generation: u32) {
        self.0.generation.get_or_init(|| generation);
    }

    /// The generation, once the tasks have agreed on it.
    pub(crate) fn agreed(&self) -> Option<u32> {
        self.0.generation.get().copied()
    }

    /// The generation, on which the tasks have agreed before the program gets the geometry.
    pub(crate) fn generation(&self) -> u32 {
        self.agreed().expect("its creation has ended")
    }

    /// Compares a generation that a member names with that of this geometry, which may still be created.
    pub(crate) fn compare(&self, named: u32) -> std::cmp::Ordering {
        match self.0.generation.get() {
            Some(own) => named.cmp(own),
            // Others may know it already.
            None if named > self.0.floor => std::cmp::Ordering::Equal,
            None => std::cmp::Ordering::Less,
        }
    }

    /// Whether a member has begun this collective.
    pub(crate) fn has_begun(&self, rank: usize, instance: u32) -> bool {
        let begun = self.0.begun[rank].load(Ordering::Relaxed);
        (instance.wrapping_sub(begun) as i32) < 0
    }

    /// Returns the members in the order of their ranks.
    pub fn members(&self) -> &[Endpoint] {
        &self.0.members
    }

    /// Whether both are the same geometry.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the rank of an endpoint, if it is a member.
    pub fn rank(&self, endpoint: Endpoint) -> Option<usize> {
        self.0.ranks.get(&endpoint).map(|rank| *rank as usize)
    }

    /// Returns whether algorithms of the second list are chosen where nothing is associated (PAMI_GEOMETRY_OPTIMIZE), which
    /// is so at first.
    pub fn is_optimized(&self) -> bool {
        self.0.optimize.load(Ordering::Relaxed)
    }

    /// Updates that attribute (PAMI_Geometry_update). All members set it alike.
    pub fn set_optimized(&self, is_optimized: bool) {
        self.0.optimize.store(is_optimized, Ordering::Relaxed);
    }

    /// Returns the two lists of algorithms (PAMI_Geometry_algorithms_num, PAMI_Geometry_algorithms_query): those that always
    /// work, and those of which [`Geometry::check`] says whether they do.
    pub fn algorithms(&self, xfer: Xfer) -> [Vec<Algorithm>; 2] {
        let (always, checked) =
            Algorithm::all(xfer).partition(|algorithm| algorithm.need() == Need::Nothing);
        [always, checked]
    }

    /// Checks whether an algorithm can carry out a collective of this geometry (check_fn). The result is the same on all
    /// members.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn check(&self, algorithm: Algorithm, collective: &Collective) -> Result<(), Unfit> {
        let members = self.0.members.len();
        let elements = collective.elements();
        let unfit = match algorithm.need() {
            _ if algorithm.xfer() != collective.xfer() => Unfit::Type(algorithm.xfer()),
            Need::Share if elements < members as u64 => Unfit::Range { elements, members },
            Need::Hosts if self.0.hosts.iter().all(|host| *host == self.0.hosts[0]) => {
                Unfit::OneHost
            }
            Need::PowerOfTwo if !members.is_power_of_two() => Unfit::Members(members),
            _ => return Ok(()),
        };
        Err(unfit)
    }

    /// Associates algorithms of one type with ranges of sizes, for the collectives of this geometry. All members do so
    /// between the same collectives. Where the associated algorithm does not fit, another one is chosen.
    ///
    /// # Errors
    /// [`Error::Mixed`] if the algorithms are of several types.
    pub fn associate(&self, algorithms: Ranges<Algorithm>) -> Result<(), Error> {
        let xfer = xfer_of(&algorithms)?;
        self.0.associations.lock().insert(xfer, algorithms);
        Ok(())
    }

    /// Returns the association of a type, if there is one.
    pub fn association(&self, xfer: Xfer) -> Option<Ranges<Algorithm>> {
        self.0.associations.lock().get(&xfer).cloned()
    }

    /// Chooses the algorithm of a collective: by the association of the geometry, by that of the context, which is `other`,
    /// or else by what is known of the algorithms.
    ///
    /// # Errors
    /// [`Error::NoRange`].
    pub(crate) fn choose(
        &self,
        collective: &Collective,
        other: Option<&Ranges<Algorithm>>,
    ) -> Result<Algorithm, Error> {
        let (xfer, len) = (collective.xfer(), collective.size());
        let fits = |algorithm: &Algorithm| self.check(*algorithm, collective).is_ok();
        let own = self.0.associations.lock();
        if let Some(ranges) = own.get(&xfer).or(other) {
            let chosen = choose(ranges, len)?;
            if fits(chosen) {
                return Ok(*chosen);
            }
        }
        let is_good = |one: &Algorithm| one.metadata().range_perf.contains(&len) && fits(one);
        let [always, checked] = self.algorithms(xfer);
        let optimized = checked.into_iter().filter(|_| self.is_optimized());
        let good = optimized.chain(always.iter().copied()).find(is_good);
        Ok(good.unwrap_or(always[0]))
    }

    /// Returns the member with a rank, as schedules take it. It knows the hosts if the algorithm needs them.
    pub(crate) fn with_member<R>(
        &self,
        rank: usize,
        algorithm: Algorithm,
        build: impl FnOnce(Member<'_>) -> R,
    ) -> R {
        let (rank, size) = (rank as u32, self.0.members.len() as u32);
        let needs_hosts = algorithm.need() == Need::Hosts;
        let of = || Hosts::of(rank, size, |rank| self.0.hosts[rank as usize]);
        let hosts = needs_hosts.then(of).flatten();
        build(Member::new(rank, size).expect("it is a member").on(hosts.as_ref()))
    }

    /// The first endpoint of a task.
    pub(crate) fn leader_of(&self, task: TaskId) -> Option<Endpoint> {
        self.0.leaders.iter().copied().find(|leader| leader.task() == task)
    }

    /// Returns how many collectives a member has begun, and counts one more.
    pub(crate) fn count(&self, rank: usize) -> u32 {
        self.0.begun[rank].fetch_add(1, Ordering::Relaxed)
    }
}

/// The type of associated algorithms.
pub(crate) fn xfer_of(algorithms: &Ranges<Algorithm>) -> Result<Xfer, Error> {
    let (first, rest) = algorithms.rows().split_first().expect("there is a range");
    let xfer = first.1.xfer();
    let other = rest.iter().map(|(_, algorithm)| algorithm.xfer()).find(|other| *other != xfer);
    other.map_or(Ok(xfer), |other| Err(Error::Mixed { xfer, other }))
}

/// The geometries of a client on a task, by their ids, and how often algorithms were chosen.
#[derive(Default)]
pub(crate) struct Geometries {
    by_id: Mutex<HashMap<u32, Geometry>>,
    /// The greatest generation that this task knows.
    newest: AtomicU32,
    chosen: Mutex<BTreeMap<Algorithm, u64>>,
}

impl Geometries {
    /// Enters a geometry.
    ///
    /// # Errors
    /// [`Error::GeometryId`] if there is one with its id.
    pub fn insert(&self, geometry: &Geometry) -> Result<(), Error> {
        let mut by_id = self.by_id.lock();
        if by_id.contains_key(&geometry.id()) {
            return Err(Error::GeometryId { id: geometry.id() });
        }
        by_id.insert(geometry.id(), geometry.clone());
        Ok(())
    }

    pub fn get(&self, id: u32) -> Option<Geometry> {
        self.by_id.lock().get(&id).cloned()
    }

    pub fn remove(&self, id: u32) {
        self.by_id.lock().remove(&id);
    }

    pub fn newest(&self) -> u32 {
        self.newest.load(Ordering::Relaxed)
    }

    /// Notes a generation on which this task has agreed.
    pub fn agree(&self, generation: u32) {
        self.newest.fetch_max(generation, Ordering::Relaxed);
    }

    pub fn note(&self, algorithm: Algorithm) {
        *self.chosen.lock().entry(algorithm).or_default() += 1;
    }

    /// Returns how often each algorithm was chosen.
    pub fn chosen(&self) -> Vec<(Algorithm, u64)> {
        self.chosen.lock().iter().map(|(algorithm, times)| (*algorithm, *times)).collect()
    }
}
