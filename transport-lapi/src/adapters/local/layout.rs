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

/// The sizes of one job's segment, and the places in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    tasks: usize,
    contexts: usize,
    slots: usize,
    data_ring: usize,
    /// Bytes of a shared area.
    area: usize,
}

impl Layout {
    /// Makes the layout of a job of `tasks` tasks with `contexts` contexts each. Every task computes the same one, as
    /// all are on one machine.
    pub(crate) fn new(tasks: usize, contexts: usize) -> Result<Self, AdapterError> {
        Self::with_data_ring(tasks, contexts, data_ring_of_two)
    }

    /// [`Layout::new`] where a pair in a job of two tasks has `of_two` data ring bytes. Other jobs do not ask for
    /// these.
    fn with_data_ring(
        tasks: usize,
        contexts: usize,
        of_two: impl FnOnce() -> usize,
    ) -> Result<Self, AdapterError> {
        if !(1..=MAX_PLACES_PER_HOST).contains(&tasks) {
            return Err(AdapterError::HostTaskCount { asked: tasks, max: MAX_PLACES_PER_HOST });
        }
        if !(1..=MAX_CONTEXTS).contains(&contexts) {
            return Err(AdapterError::ContextCount { asked: contexts, max: MAX_CONTEXTS });
        }
        let pairs = tasks * tasks;
        let slots = floor_power_of_two(JOB_SLOTS / pairs).clamp(16, 256);
        let limit = if tasks == 2 { of_two() } else { TASK_DATA / (tasks - 1).max(1) };
        let data_ring = floor_power_of_two(limit.min(JOB_DATA / pairs)).max(32 << 10);
        let area = floor_power_of_two(JOB_AREAS / tasks).clamp(*AREA.start(), *AREA.end());
        Ok(Self { tasks, contexts, slots, data_ring, area })
    }

    /// Number of tasks.
    pub(crate) const fn tasks(&self) -> usize {
        self.tasks
    }

    /// Number of contexts of each task.
    pub(crate) const fn contexts(&self) -> usize {
        self.contexts
    }

    /// Slots per pair.
    pub(crate) const fn slots(&self) -> usize {
        self.slots
    }

    /// Bytes of data ring per pair.
    pub(crate) const fn data_ring(&self) -> usize {
        self.data_ring
    }

    /// Bytes of the recycled buffers of two tasks together: a quarter of a data ring, or none if the longest body in
    /// recycled buffers does not fit there.
    pub(crate) const fn recycled_bytes(&self) -> usize {
        let most = MAX_BUFFERS * BUFFER_BYTES;
        let quarter = self.data_ring / 4 / LONGEST * LONGEST;
        if quarter < most { quarter } else { most }
    }

    /// Largest body of one frame: at most a quarter of the data ring, as rule B2 of
    /// [`crate::adapters::local::data_ring`] demands.
    pub(crate) fn max_body(&self) -> usize {
        MAX_BODY.min(self.data_ring / 4)
    }

    /// Where the segment of `context` starts. All other places are relative to it.
    pub(crate) const fn context_at(&self, context: usize) -> usize {
        context * self.context_bytes()
    }

    /// Where the block of `task` starts.
    pub(crate) const fn task_at(&self, task: usize) -> usize {
        HEADER_BYTES + task * TASK_BYTES
    }

    /// Where the wait table of `task` starts.
    pub(crate) const fn wait_table_at(&self, task: usize) -> usize {
        self.task_at(self.tasks) + task * WAIT_TABLE_BYTES
    }

    /// Where the indices of the pair start.
    pub(crate) const fn indices_at(&self, origin: usize, target: usize) -> usize {
        self.wait_table_at(self.tasks) + self.pair(origin, target) * INDICES_BYTES
    }

    /// Where the pair's words for a shared get start.
    pub(crate) const fn share_at(&self, origin: usize, target: usize) -> usize {
        let all_indices = self.tasks * self.tasks * INDICES_BYTES;
        self.indices_at(0, 0) + all_indices + self.pair(origin, target) * SHARE_BYTES
    }

    /// Where the slots of the pair start.
    pub(crate) const fn slots_at(&self, origin: usize, target: usize) -> usize {
        let all_shares = self.tasks * self.tasks * SHARE_BYTES;
        self.share_at(0, 0) + all_shares + self.pair(origin, target) * self.slots * SLOT_BYTES
    }

    /// Where the data ring of the pair starts.
    pub(crate) const fn data_ring_at(&self, origin: usize, target: usize) -> usize {
        let all_slots = self.tasks * self.tasks * self.slots * SLOT_BYTES;
        self.slots_at(0, 0) + all_slots + self.pair(origin, target) * self.data_ring
    }

    /// Where the recycled buffers of two different tasks start, in whichever order these are given.
    pub(crate) const fn recycled_at(&self, one: usize, other: usize) -> usize {
        let (low, high) = if one < other { (one, other) } else { (other, one) };
        let all_data_rings = self.tasks * self.tasks * self.data_ring;
        self.data_ring_at(0, 0)
            + all_data_rings
            + (high * (high - 1) / 2 + low) * self.recycled_bytes()
    }

    /// Size of the segment of one context.
    pub(crate) const fn context_bytes(&self) -> usize {
        self.recycled_at(0, self.tasks)
    }

    /// Size of all context segments, the part of the segment that every job uses.
    pub(crate) const fn contexts_bytes(&self) -> usize {
        self.contexts * self.context_bytes()
    }

    /// The same layout without shared areas, for several tasks that are threads.
    pub(crate) const fn without_areas(self) -> Self {
        Self { area: 0, ..self }
    }

    /// The same layout with so many contexts more, for further clients of tasks that are processes.
    pub(crate) const fn with_spare(self, contexts: usize) -> Self {
        Self { contexts: self.contexts + contexts, ..self }
    }

    /// The layout of a segment that claims to have so many contexts in all.
    pub(crate) fn of_segment(tasks: usize, contexts: usize) -> Result<Self, AdapterError> {
        let asked = contexts.min(MAX_CONTEXTS);
        let max = MAX_CONTEXTS + SPARE_CONTEXTS;
        match contexts - asked {
            spare @ ..=SPARE_CONTEXTS => Ok(Self::new(tasks, asked)?.with_spare(spare)),
            _ => Err(AdapterError::ContextCount { asked: contexts, max }),
        }
    }

    /// Bytes of one shared area.
    pub(crate) const fn area_bytes(&self) -> usize {
        self.area
    }

    /// Where the shared area of `task` for `context` starts in the segment.
    pub(crate) const fn area_at(&self, context: usize, task: usize) -> usize {
        let first = self.contexts_bytes().next_multiple_of(PAGE);
        first + (context * self.tasks + task) * self.area_bytes()
    }

    /// Size of the segment.
    pub(crate) const fn bytes(&self) -> usize {
        self.area_at(self.contexts, 0)
    }

    const fn pair(&self, origin: usize, target: usize) -> usize {
        target * self.tasks + origin
    }
}

/// Returns the size in bytes that the segment of a job of `num_tasks` tasks with `contexts` contexts each has at least: it
/// is larger where there is room for the contexts of further clients. It occupies memory only where a job touches it.
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
mod tests {
    use std::ops::Range;

    use proptest::prelude::*;

    use super::*;

    /// Every part of a segment, in no particular order, with the alignment that it needs.
    fn parts(layout: &Layout) -> Vec<(Range<usize>, usize)> {
        let part = |start: usize, len: usize, align: usize| (start..start + len, align);
        let mut parts = vec![part(0, HEADER_BYTES, SEPARATION)];
        for target in 0..layout.tasks() {
            parts.push(part(layout.task_at(target), TASK_BYTES, SEPARATION));
            parts.push(part(layout.wait_table_at(target), WAIT_TABLE_BYTES, SEPARATION));
            for origin in 0..layout.tasks() {
                let slots = layout.slots() * SLOT_BYTES;
                parts.push(part(layout.indices_at(origin, target), INDICES_BYTES, SEPARATION));
                parts.push(part(layout.share_at(origin, target), SHARE_BYTES, SEPARATION));
                parts.push(part(layout.slots_at(origin, target), slots, LINE));
                parts.push(part(layout.data_ring_at(origin, target), layout.data_ring(), LINE));
            }
            for lower in 0..target {
                assert_eq!(layout.recycled_at(target, lower), layout.recycled_at(lower, target));
                parts.push(part(layout.recycled_at(lower, target), layout.recycled_bytes(), LINE));
            }
        }
        parts
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        /// LY1 to LY4.
        #[test]
        fn parts_tile_their_plane_and_planes_the_segment(
            tasks in 1..=MAX_TASKS_PER_HOST,
            contexts in 1..=MAX_CONTEXTS,
            of_two in TWO_TASKS,
        ) {
            let layout = Layout::with_data_ring(tasks, contexts, || of_two).unwrap();
            prop_assert!(layout.slots().is_power_of_two());
            prop_assert!(layout.data_ring().is_power_of_two());
            prop_assert!(layout.max_body() * 4 <= layout.data_ring());
            let recycled = layout.recycled_bytes() / BUFFER_BYTES;
            prop_assert!(recycled == 0 || recycled.is_power_of_two() && recycled <= MAX_BUFFERS);
            prop_assert_eq!(layout.recycled_bytes() % BUFFER_BYTES, 0);
            let mut parts = parts(&layout);
            parts.sort_by_key(|(range, _)| range.start);
            for (range, align) in &parts {
                prop_assert_eq!(range.start % align, 0);
            }
            for pair in parts.windows(2) {
                prop_assert!(pair[0].0.end <= pair[1].0.start);
            }
            prop_assert_eq!(parts.last().unwrap().0.end, layout.context_bytes());
            prop_assert_eq!(layout.context_bytes() % SEPARATION, 0);
            let ends = (1..=contexts).map(|context| layout.context_at(context));
            prop_assert!(ends.eq((1..=contexts).map(|contexts| contexts * layout.context_bytes())));
            prop_assert_eq!(layout.context_at(contexts), layout.contexts_bytes());
            prop_assert!((0..PAGE).contains(&(layout.area_at(0, 0) - layout.contexts_bytes())));
            let areas = (0..contexts).flat_map(|c| (0..tasks).map(move |t| layout.area_at(c, t)));
            let places = (0..).map(|nth| layout.area_at(0, 0) + nth * layout.area_bytes());
            prop_assert!(areas.clone().eq(places.take(contexts * tasks)));
            let end = areas.last().unwrap() + layout.area_bytes();
            prop_assert_eq!(end, layout.bytes());
            prop_assert_eq!(layout.area_bytes() % PAGE, 0);
        }
    }

    #[test]
    fn sizes_follow_the_number_of_tasks() {
        let sizes = |tasks| {
            let layout = Layout::with_data_ring(tasks, 1, || 1 << 20).unwrap();
            (layout.slots(), layout.data_ring(), layout.max_body(), layout.recycled_bytes())
        };
        assert_eq!(sizes(1), (256, 1 << 20, 64 << 10, 256 << 10));
        assert_eq!(sizes(2), (256, 1 << 20, 64 << 10, 256 << 10));
        assert_eq!(sizes(4), (256, 256 << 10, 64 << 10, 64 << 10));
        assert_eq!(sizes(8), (256, 128 << 10, 32 << 10, 32 << 10));
        assert_eq!(sizes(16), (256, 64 << 10, 16 << 10, 0));
        assert_eq!(sizes(MAX_TASKS_PER_HOST), (16, 32 << 10, 8 << 10, 0));
        assert_eq!(sizes(MAX_PLACES_PER_HOST), (16, 32 << 10, 8 << 10, 0));
    }

    #[test]
    fn the_data_ring_of_two_tasks_follows_the_cache() {
        let data_ring =
            |tasks, of_two| Layout::with_data_ring(tasks, 1, || of_two).unwrap().data_ring();
        assert_eq!(
            [1, 2, 3, 4].map(|tasks| data_ring(tasks, 4 << 20)),
            [1024, 4096, 512, 256].map(|k| k << 10)
        );
        assert_eq!(data_ring(2, 3 << 20), 2 << 20);
        assert!(TWO_TASKS.contains(&data_ring_of_two()));
    }

    #[test]
    fn refuses_impossible_task_counts() {
        for asked in [0, MAX_PLACES_PER_HOST + 1, usize::MAX] {
            let refused = segment_bytes(asked, 1).unwrap_err();
            assert!(
                matches!(refused, AdapterError::HostTaskCount { asked: a, max: 1024 } if a == asked)
            );
        }
    }

    #[test]
    fn refuses_impossible_numbers_of_contexts() {
        for asked in [0, MAX_CONTEXTS + 1, usize::MAX] {
            let refused = segment_bytes(2, asked).unwrap_err();
            assert!(
                matches!(refused, AdapterError::ContextCount { asked: a, max: 4 } if a == asked)
            );
        }
    }

    /// Programs and launchers of one version agree on these places.
    #[test]
    fn one_context_lies_where_it_always_has() {
        let places = |tasks| {
            let layout = Layout::with_data_ring(tasks, 1, || 1 << 20).unwrap();
            [
                layout.context_at(0),
                layout.task_at(tasks - 1),
                layout.wait_table_at(tasks - 1),
                layout.indices_at(tasks - 1, 0),
                layout.share_at(0, tasks - 1),
                layout.slots_at(tasks - 1, tasks - 1),
                layout.data_ring_at(0, tasks - 1),
                layout.contexts_bytes(),
            ]
        };
        assert_eq!(places(2), [0, 4_352, 5_120, 5_760, 6_400, 252_416, 2_431_488, 4_790_784]);
        assert_eq!(
            places(16),
            [0, 7_936, 15_872, 18_304, 79_872, 20_971_520, 36_782_080, 37_830_656]
        );
        assert_eq!(
            places(MAX_TASKS_PER_HOST),
            [0, 69_376, 200_192, 233_344, 16_945_152, 352_517_120, 2_491_617_280, 2_500_005_888]
        );
    }
}
