//! The layout: parts that do not overlap, and their sizes.

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
            let slots = layout.slots_of(origin, target) * SLOT_BYTES;
            let data_ring = layout.data_ring_of(origin, target);
            parts.push(part(layout.indices_at(origin, target), INDICES_BYTES, SEPARATION));
            parts.push(part(layout.share_at(origin, target), SHARE_BYTES, SEPARATION));
            parts.push(part(layout.slots_at(origin, target), slots, LINE));
            parts.push(part(layout.data_ring_at(origin, target), data_ring, LINE));
        }
        for lower in 0..target {
            let bytes = layout.recycled_bytes(lower, target);
            assert_eq!(layout.recycled_at(target, lower), layout.recycled_at(lower, target));
            parts.push(part(layout.recycled_at(lower, target), bytes, LINE));
        }
    }
    parts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// LY1 to LY4.
    #[test]
    fn parts_tile_their_plane_and_planes_the_segment(
        first in 1..=MAX_TASKS_PER_HOST,
        later in prop_oneof![Just(0), 1..=150_usize],
        contexts in 1..=MAX_CONTEXTS,
        of_two in TWO_TASKS,
    ) {
        let tasks = first + later;
        let layout = Layout::with_data_ring(first, tasks, contexts, || of_two).unwrap();
        prop_assert_eq!((layout.first_tasks(), layout.tasks()), (first, tasks));
        for (origin, target) in [(0, 0), (0, tasks - 1), (tasks - 1, tasks - 1)] {
            prop_assert!(layout.slots_of(origin, target).is_power_of_two());
            let data_ring = layout.data_ring_of(origin, target);
            prop_assert!(data_ring.is_power_of_two());
            prop_assert!(layout.max_body(origin, target) * 4 <= data_ring);
            let recycled = layout.recycled_bytes(origin, target) / BUFFER_BYTES;
            prop_assert!(recycled == 0 || recycled.is_power_of_two() && recycled <= MAX_BUFFERS);
            prop_assert_eq!(layout.recycled_bytes(origin, target) % BUFFER_BYTES, 0);
        }
        let mut parts = parts(&layout);
        parts.sort_by_key(|(range, _)| (range.start, range.end));
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
        let places = (0..contexts).flat_map(|c| (0..tasks).map(move |t| (c, t)));
        let area = |(c, t)| layout.area_at(c, t)..layout.area_at(c, t) + layout.area_bytes(t);
        let mut areas: Vec<_> = places.map(area).collect();
        areas.sort_by_key(|area| area.start);
        prop_assert!(areas.windows(2).all(|pair| pair[0].end <= pair[1].start));
        prop_assert!(areas.iter().all(|area| area.start % PAGE == 0 && area.end % PAGE == 0));
        prop_assert_eq!(areas.last().unwrap().end, layout.bytes());
    }

    /// What the first tasks use lies where it does in a job that starts no others.
    #[test]
    fn a_room_changes_nothing_for_the_first_tasks(first in 1..40_usize, later in 1..40_usize) {
        let alone = Layout::new(first, 1).unwrap();
        let roomy = Layout::with_room(first, first + later, 1).unwrap();
        let own = parts(&alone);
        let both = parts(&roomy);
        prop_assert!(own.iter().all(|part| both.contains(part)));
        prop_assert_eq!(roomy.first_bytes(), alone.context_bytes());
        prop_assert_eq!(roomy.max_body(0, first - 1), alone.max_body(0, first - 1));
        prop_assert_eq!(roomy.area_bytes(first - 1), alone.area_bytes(0));
    }
}

#[test]
fn sizes_follow_the_number_of_tasks() {
    let sizes = |tasks| {
        let layout = Layout::with_data_ring(tasks, tasks, 1, || 1 << 20).unwrap();
        let last = tasks - 1;
        let (max_body, recycled) = (layout.max_body(0, last), layout.recycled_bytes(0, last));
        (layout.slots(), layout.data_ring(), max_body, recycled)
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
fn sizes_of_a_room_follow_the_number_of_places() {
    let sizes = |tasks| {
        let layout = Layout::with_room(1, tasks, 1).unwrap();
        let last = tasks - 1;
        (layout.slots_of(0, last), layout.data_ring_of(last, 0), layout.max_body(last, last))
    };
    assert_eq!(sizes(5), (256, 256 << 10, 64 << 10));
    assert_eq!(sizes(16), (256, 64 << 10, 16 << 10));
    assert_eq!(sizes(130), (64, 64 << 10, 16 << 10));
    assert_eq!(sizes(384), (16, 32 << 10, 8 << 10));
    assert_eq!(sizes(MAX_PLACES_PER_HOST), (16, 32 << 10, 8 << 10));
}

#[test]
fn the_data_ring_of_two_tasks_follows_the_cache() {
    let data_ring =
        |tasks, of_two| Layout::with_data_ring(tasks, tasks, 1, || of_two).unwrap().data_ring();
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
        assert!(matches!(refused, AdapterError::ContextCount { asked: a, max: 4 } if a == asked));
    }
}

/// Programs and launchers of one version agree on these places.
#[test]
fn one_context_lies_where_it_always_has() {
    let places = |tasks| {
        let layout = Layout::with_data_ring(tasks, tasks, 1, || 1 << 20).unwrap();
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
    assert_eq!(places(16), [0, 7_936, 15_872, 18_304, 79_872, 20_971_520, 36_782_080, 37_830_656]);
    assert_eq!(
        places(MAX_TASKS_PER_HOST),
        [0, 69_376, 200_192, 233_344, 16_945_152, 352_517_120, 2_491_617_280, 2_500_005_888]
    );
}
