//! Where everything is in a job segment; arithmetic only.
//!
//! A segment contains a *context segment* for each context of a task, one after another and all alike. Context `c` of a
//! task communicates with context `c` of the others, so a segment grows with the number of contexts, not with its
//! square. A context segment contains, in this order: the header page, one block and one wait table per task, for every
//! ordered pair of tasks, including a task with itself, its indices, its words for a shared get, its slots and its data
//! ring, and for every two tasks the recycled buffers that they pass to each other. The pairs of one target are
//! adjacent, so that what a task polls is contiguous. Data of the whole job is in the header page of the segment of
//! context 0; the header pages of the other context segments are not used. Behind the context segments are the tasks'
//! shared areas, one for each context of each task.
//!
//! All this is for the tasks that the job starts with, so that their messages do not depend on how many others it may
//! start later. If it may, each context segment goes on with its *room*: the same parts once more, with rings of other
//! sizes, for the later tasks and for all pairs with at least one of them. The room is laid out for all tasks, the first
//! ones included, since that costs nothing: memory is taken only where something is written. Behind the first tasks'
//! shared areas are, likewise, those of the room.
//!
//! - LY1: the parts of a context segment do not overlap, and the last one ends at [`Layout::context_bytes`], where the
//!   next context segment begins.
//! - LY2: context segments, header, task blocks, wait tables, indices and words start on a multiple of [`SEPARATION`],
//!   slots, data rings and the recycled buffers of two tasks on a multiple of [`LINE`], shared areas on a multiple of
//!   [`PAGE`].
//! - LY3: the number of slots and the size of a data ring are powers of two. So is the number of recycled buffers of
//!   two tasks, or it is zero.
//! - LY4: the shared areas begin behind the last context segment, do not overlap, and end at [`Layout::bytes`].

use std::ops::RangeInclusive;

use crate::adapter::AdapterError;
use crate::adapters::local::recycled::{BUFFER_BYTES, LONGEST, MAX_BUFFERS};
use crate::platform::sys::{self, LINE};

/// Distance between the writes of two tasks: processors fetch lines in pairs.
pub(crate) const SEPARATION: usize = 128;

/// Most tasks that a job can start with on one host.
pub const MAX_TASKS_PER_HOST: usize = 256;

/// Most tasks that a job can have on one host in its life, with those that others spawn: the places of a segment.
pub const MAX_PLACES_PER_HOST: usize = 4 * MAX_TASKS_PER_HOST;

/// Most contexts that a client of a task can ask the launcher for.
pub const MAX_CONTEXTS: usize = 4;

/// Further contexts of each task that is a process: for clients that join the job beside the first one. They occupy
/// memory only where a client uses them. Where limits on files or on the address space are low, there are none.
pub const SPARE_CONTEXTS: usize = 3;

/// Size of the header page.
pub(crate) const HEADER_BYTES: usize = 4096;

/// Size of one task's block.
pub(crate) const TASK_BYTES: usize = 2 * SEPARATION;

/// Size of one task's wait table.
pub(crate) const WAIT_TABLE_BYTES: usize = 4 * SEPARATION;

/// Size of one pair's indices.
pub(crate) const INDICES_BYTES: usize = SEPARATION;

/// Size of the words that one pair uses to share a get.
pub(crate) const SHARE_BYTES: usize = SEPARATION;

/// Size of one slot.
pub(crate) const SLOT_BYTES: usize = 5 * LINE;

/// Largest body of one frame, if the data ring is large enough.
const MAX_BODY: usize = 64 << 10;

/// Slots of all pairs of a job together, within the limits per pair. Few for Miri, whose work per borrow grows with the
/// size of the memory.
const JOB_SLOTS: usize = if cfg!(miri) { 1 << 6 } else { 1 << 16 };

/// Bytes of the data rings of all pairs of a job together, within the limits per pair; likewise.
const JOB_DATA: usize = if cfg!(miri) { 32 << 10 } else { 32 << 20 };

/// Size of a page, by which shared areas are apart.
pub(crate) const PAGE: usize = 4096;

/// Bytes of the shared areas of all tasks of a job together, for one context each, within the limits per task. They
/// occupy memory only where a task has allocated it.
const JOB_AREAS: usize = 64 << 20;

/// Least and most bytes of one shared area. Few for Miri, as above.
const AREA: RangeInclusive<usize> = if cfg!(miri) { PAGE..=PAGE } else { 64 << 10..=16 << 20 };

/// Bytes of the data rings of one task towards all others, except in a job of two tasks, within the limits per pair.
/// Bodies reuse this memory round and round, so it should fit into a cache.
const TASK_DATA: usize = 1 << 20;

/// Least and most data ring bytes of a pair in a job of two tasks.
const TWO_TASKS: RangeInclusive<usize> = 1 << 20..=4 << 20;

/// Returns the data ring bytes of a pair in a job of two tasks on this machine: twice the second-level cache of a
/// processor. When the turn of a line comes again, it has then left the cache of the processor that read it last, so
/// that to overwrite it takes less time. In larger jobs, where tasks may share processors, that gains nothing.
fn data_ring_of_two() -> usize {
    let cache = sys::second_level_cache().unwrap_or(0);
    cache.saturating_mul(2).clamp(*TWO_TASKS.start(), *TWO_TASKS.end())
}

/// Slots and bytes of the data rings of all pairs of a room together, within the limits per pair. More than for the
/// first tasks, since few pairs of a room are ever used.
const ROOM_SLOTS: usize = if cfg!(miri) { 1 << 6 } else { 1 << 21 };
const ROOM_DATA: usize = if cfg!(miri) { 32 << 10 } else { 2 << 30 };

/// The parts of a context segment that there are for each task and for each pair: their sizes, and their places in the
/// context segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tier {
    /// Where it begins.
    start: usize,
    tasks: usize,
    slots: usize,
    data_ring: usize,
    /// Bytes of a shared area.
    area: usize,
}

impl Tier {
    /// That of the tasks that a job starts with, where a pair in a job of two tasks has `of_two` data ring bytes.
    fn of_first(tasks: usize, of_two: impl FnOnce() -> usize) -> Self {
        let pairs = tasks * tasks;
        let slots = floor_power_of_two(JOB_SLOTS / pairs).clamp(16, 256);
        let limit = if tasks == 2 { of_two() } else { TASK_DATA / (tasks - 1).max(1) };
        let data_ring = floor_power_of_two(limit.min(JOB_DATA / pairs)).max(32 << 10);
        Self { start: HEADER_BYTES, tasks, slots, data_ring, area: area_of(tasks) }
    }

    /// That of a room of `tasks` tasks, the first ones included, which begins behind other parts.
    fn of_room(tasks: usize, start: usize) -> Self {
        let pairs = tasks * tasks;
        let slots = floor_power_of_two(ROOM_SLOTS / pairs).clamp(16, 256);
        let limit = (TASK_DATA / (tasks - 1).max(1)).max(64 << 10).min(ROOM_DATA / pairs);
        let data_ring = floor_power_of_two(limit).max(32 << 10);
        Self { start, tasks, slots, data_ring, area: area_of(tasks) }
    }

    const fn recycled_bytes(&self) -> usize {
        let most = MAX_BUFFERS * BUFFER_BYTES;
        let quarter = self.data_ring / 4 / LONGEST * LONGEST;
        if quarter < most { quarter } else { most }
    }

    const fn task_at(&self, task: usize) -> usize {
        self.start + task * TASK_BYTES
    }

    const fn wait_table_at(&self, task: usize) -> usize {
        self.task_at(self.tasks) + task * WAIT_TABLE_BYTES
    }

    const fn indices_at(&self, origin: usize, target: usize) -> usize {
        self.wait_table_at(self.tasks) + self.pair(origin, target) * INDICES_BYTES
    }

    const fn share_at(&self, origin: usize, target: usize) -> usize {
        let all_indices = self.tasks * self.tasks * INDICES_BYTES;
        self.indices_at(0, 0) + all_indices + self.pair(origin, target) * SHARE_BYTES
    }

    const fn slots_at(&self, origin: usize, target: usize) -> usize {
        let all_shares = self.tasks * self.tasks * SHARE_BYTES;
        self.share_at(0, 0) + all_shares + self.pair(origin, target) * self.slots * SLOT_BYTES
    }

    const fn data_ring_at(&self, origin: usize, target: usize) -> usize {
        let all_slots = self.tasks * self.tasks * self.slots * SLOT_BYTES;
        self.slots_at(0, 0) + all_slots + self.pair(origin, target) * self.data_ring
    }

    const fn recycled_at(&self, one: usize, other: usize) -> usize {
        let (low, high) = if one < other { (one, other) } else { (other, one) };
        let all_data_rings = self.tasks * self.tasks * self.data_ring;
        self.data_ring_at(0, 0)
            + all_data_rings
            + (high * (high - 1) / 2 + low) * self.recycled_bytes()
    }

    /// Where it ends.
    const fn end(&self) -> usize {
        self.recycled_at(0, self.tasks)
    }

    const fn pair(&self, origin: usize, target: usize) -> usize {
        target * self.tasks + origin
    }
}

/// The sizes of one job's segment, and the places in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// For the tasks that the job starts with.
    first: Tier,
    /// For the others, if it may start others later.
    room: Option<Tier>,
    contexts: usize,
}

impl Layout {
    /// Makes the layout of a job of `tasks` tasks with `contexts` contexts each. Every task computes the same one, as
    /// all are on one machine.
    pub(crate) fn new(tasks: usize, contexts: usize) -> Result<Self, AdapterError> {
        Self::with_room(tasks, tasks, contexts)
    }

    /// [`Layout::new`] for a job that starts with `first` tasks and can have `tasks` in all.
    pub(crate) fn with_room(
        first: usize,
        tasks: usize,
        contexts: usize,
    ) -> Result<Self, AdapterError> {
        Self::with_data_ring(first, tasks, contexts, data_ring_of_two)
    }

    /// [`Layout::with_room`] where a pair in a job that starts with two tasks has `of_two` data ring bytes. Other jobs do
    /// not ask for these.
    fn with_data_ring(
        first: usize,
        tasks: usize,
        contexts: usize,
        of_two: impl FnOnce() -> usize,
    ) -> Result<Self, AdapterError> {
        if !(1..=MAX_PLACES_PER_HOST).contains(&tasks) || !(1..=tasks).contains(&first) {
            return Err(AdapterError::HostTaskCount { asked: tasks, max: MAX_PLACES_PER_HOST });
        }
        if !(1..=MAX_CONTEXTS).contains(&contexts) {
            return Err(AdapterError::ContextCount { asked: contexts, max: MAX_CONTEXTS });
        }
        let of_first = Tier::of_first(first, of_two);
        let room = (tasks > first).then(|| Tier::of_room(tasks, of_first.end()));
        Ok(Self { first: of_first, room, contexts })
    }

    /// The tier in which `task` has its block.
    const fn of_task(&self, task: usize) -> &Tier {
        match &self.room {
            Some(room) if task >= self.first.tasks => room,
            _ => &self.first,
        }
    }

    /// The tier in which two tasks have their rings.
    const fn of_pair(&self, one: usize, other: usize) -> &Tier {
        self.of_task(if one < other { other } else { one })
    }

    /// Number of tasks that the job can have.
    pub(crate) const fn tasks(&self) -> usize {
        match &self.room {
            Some(room) => room.tasks,
            None => self.first.tasks,
        }
    }

    /// Number of tasks that the job starts with.
    pub(crate) const fn first_tasks(&self) -> usize {
        self.first.tasks
    }

    /// Number of contexts of each task.
    pub(crate) const fn contexts(&self) -> usize {
        self.contexts
    }

    /// Slots per pair of the first tasks.
    pub(crate) const fn slots(&self) -> usize {
        self.first.slots
    }

    /// Slots of the ring between two tasks.
    pub(crate) const fn slots_of(&self, origin: usize, target: usize) -> usize {
        self.of_pair(origin, target).slots
    }

    /// Bytes of data ring per pair of the first tasks.
    pub(crate) const fn data_ring(&self) -> usize {
        self.first.data_ring
    }

    /// Bytes of the data ring between two tasks.
    pub(crate) const fn data_ring_of(&self, origin: usize, target: usize) -> usize {
        self.of_pair(origin, target).data_ring
    }

    /// Bytes of the recycled buffers of two tasks together: a quarter of a data ring, or none if the longest body in
    /// recycled buffers does not fit there.
    pub(crate) const fn recycled_bytes(&self, one: usize, other: usize) -> usize {
        self.of_pair(one, other).recycled_bytes()
    }

    /// Largest body of one frame between two tasks: at most a quarter of the data ring, as rule B2 of
    /// [`crate::adapters::local::data_ring`] demands.
    pub(crate) fn max_body(&self, origin: usize, target: usize) -> usize {
        MAX_BODY.min(self.data_ring_of(origin, target) / 4)
    }

    /// Where the segment of `context` starts. All other places are relative to it.
    pub(crate) const fn context_at(&self, context: usize) -> usize {
        context * self.context_bytes()
    }

    /// Where the block of `task` starts.
    pub(crate) const fn task_at(&self, task: usize) -> usize {
        self.of_task(task).task_at(task)
    }

    /// Where the wait table of `task` starts.
    pub(crate) const fn wait_table_at(&self, task: usize) -> usize {
        self.of_task(task).wait_table_at(task)
    }

    /// Where the indices of the pair start.
    pub(crate) const fn indices_at(&self, origin: usize, target: usize) -> usize {
        self.of_pair(origin, target).indices_at(origin, target)
    }

    /// Where the pair's words for a shared get start.
    pub(crate) const fn share_at(&self, origin: usize, target: usize) -> usize {
        self.of_pair(origin, target).share_at(origin, target)
    }

    /// Where the slots of the pair start.
    pub(crate) const fn slots_at(&self, origin: usize, target: usize) -> usize {
        self.of_pair(origin, target).slots_at(origin, target)
    }

    /// Where the data ring of the pair starts.
    pub(crate) const fn data_ring_at(&self, origin: usize, target: usize) -> usize {
        self.of_pair(origin, target).data_ring_at(origin, target)
    }

    /// Where the recycled buffers of two different tasks start, in whichever order these are given.
    pub(crate) const fn recycled_at(&self, one: usize, other: usize) -> usize {
        self.of_pair(one, other).recycled_at(one, other)
    }

    /// Size of the part of a context segment that the first tasks use, at its beginning.
    pub(crate) const fn first_bytes(&self) -> usize {
        self.first.end()
    }

    /// Size of the segment of one context.
    pub(crate) const fn context_bytes(&self) -> usize {
        match &self.room {
            Some(room) => room.end(),
            None => self.first.end(),
        }
    }

    /// Size of all context segments, the part of the segment that every job uses.
    pub(crate) const fn contexts_bytes(&self) -> usize {
        self.contexts * self.context_bytes()
    }

    /// The same layout without shared areas, for several tasks that are threads, which start together.
    pub(crate) const fn without_areas(self) -> Self {
        Self { first: Tier { area: 0, ..self.first }, ..self }
    }

    /// The same layout with so many contexts more, for further clients of tasks that are processes.
    pub(crate) const fn with_spare(self, contexts: usize) -> Self {
        Self { contexts: self.contexts + contexts, ..self }
    }

    /// The layout of a segment that claims to have so many contexts in all, to start with `first` tasks and to have
    /// places for `tasks`.
    pub(crate) fn of_segment(
        first: usize,
        tasks: usize,
        contexts: usize,
    ) -> Result<Self, AdapterError> {
        let asked = contexts.min(MAX_CONTEXTS);
        let max = MAX_CONTEXTS + SPARE_CONTEXTS;
        match contexts - asked {
            spare @ ..=SPARE_CONTEXTS => {
                Ok(Self::with_room(first, tasks, asked)?.with_spare(spare))
            }
            _ => Err(AdapterError::ContextCount { asked: contexts, max }),
        }
    }

    /// Bytes of the shared area of `task`.
    pub(crate) const fn area_bytes(&self, task: usize) -> usize {
        self.of_task(task).area
    }

    /// Where the shared area of `task` for `context` starts in the segment.
    pub(crate) const fn area_at(&self, context: usize, task: usize) -> usize {
        let Tier { tasks, area, .. } = self.first;
        match &self.room {
            Some(room) if task >= tasks => {
                self.first_areas_end() + (context * room.tasks + task) * room.area
            }
            _ => self.areas_at() + (context * tasks + task) * area,
        }
    }

    /// Where the shared areas start.
    const fn areas_at(&self) -> usize {
        self.contexts_bytes().next_multiple_of(PAGE)
    }

    /// Where those of the first tasks end.
    pub(crate) const fn first_areas_end(&self) -> usize {
        self.areas_at() + self.contexts * self.first.tasks * self.first.area
    }

    /// Size of the segment.
    pub(crate) const fn bytes(&self) -> usize {
        self.area_at(self.contexts - 1, self.tasks() - 1) + self.area_bytes(self.tasks() - 1)
    }
}

/// Bytes of a shared area where `tasks` tasks have one.
fn area_of(tasks: usize) -> usize {
    floor_power_of_two(JOB_AREAS / tasks).clamp(*AREA.start(), *AREA.end())
}

/// Returns the size in bytes that the segment of a job of `num_tasks` tasks with `contexts` contexts each has at least: it
/// is larger where there is room for the contexts of further clients or for tasks that are started later. It occupies
/// memory only where a job touches it.
///
/// # Errors
/// [`AdapterError::HostTaskCount`], [`AdapterError::ContextCount`].
pub fn segment_bytes(num_tasks: usize, contexts: usize) -> Result<usize, AdapterError> {
    Layout::new(num_tasks, contexts).map(|layout| layout.bytes())
}

const fn floor_power_of_two(n: usize) -> usize {
    match n.checked_ilog2() {
        Some(log) => 1 << log,
        None => 0,
    }
}

#[cfg(test)]
mod tests;
