//! Tests of groups: MPI's rules by example, memory, and every operation against vectors.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::subsequence;

use super::{Comparison, Group, GroupError, RankRange};
use crate::ErrorClass;

fn group(job_ranks: &[u32]) -> Group {
    Group::of_ranks(job_ranks.iter().copied()).unwrap()
}

fn list(group: &Group) -> Vec<u32> {
    group.iter().collect()
}

fn range(first: i32, last: i32, stride: i32) -> RankRange {
    RankRange { first, last, stride }
}

#[test]
fn the_world_has_its_ranks_for_job_ranks() {
    let world = Group::world(5);
    assert_eq!((world.size(), world.is_empty()), (5, false));
    assert_eq!(list(&world), [0, 1, 2, 3, 4]);
    assert_eq!((world.rank_of(4), world.rank_of(5)), (Some(4), None));
    assert_eq!(world.job_rank(4), Ok(4));
}

#[test]
fn the_empty_group_has_no_ranks() {
    let empty = Group::empty();
    assert!(empty.is_empty());
    assert_eq!(empty.rank_of(0), None);
    assert_eq!(empty.job_rank(0), Err(GroupError::Rank { rank: 0, size: 0 }));
    assert_eq!(empty, group(&[]));
    assert_eq!(empty, group(&[3]).difference(&Group::world(4)));
}

#[test]
fn order_tells_similar_from_identical() {
    let compare = |left: &[u32], right: &[u32]| group(left).compare(&group(right));
    assert_eq!(compare(&[0, 1, 2], &[0, 1, 2]), Comparison::Identical);
    assert_eq!(compare(&[0, 5, 2], &[0, 5, 2]), Comparison::Identical);
    assert_eq!(compare(&[0, 1, 2], &[2, 1, 0]), Comparison::Similar);
    assert_eq!(compare(&[0, 1, 2], &[1, 0, 2]), Comparison::Similar);
    assert_eq!(compare(&[0, 1, 2], &[0, 1, 3]), Comparison::Unequal);
    assert_eq!(compare(&[0, 1, 2], &[0, 1]), Comparison::Unequal);
    assert_eq!(compare(&[], &[]), Comparison::Identical);
    assert_eq!(compare(&[], &[0]), Comparison::Unequal);
}

#[test]
fn sets_keep_the_order_of_the_first_group() {
    let (left, right) = (group(&[6, 0, 4, 2]), group(&[1, 2, 3, 4]));
    assert_eq!(list(&left.union(&right)), [6, 0, 4, 2, 1, 3]);
    assert_eq!(list(&right.union(&left)), [1, 2, 3, 4, 6, 0]);
    assert_eq!(list(&left.intersection(&right)), [4, 2]);
    assert_eq!(list(&right.intersection(&left)), [2, 4]);
    assert_eq!(list(&left.difference(&right)), [6, 0]);
    assert_eq!(list(&right.difference(&left)), [1, 3]);
}

#[test]
fn no_ranks_include_nothing_and_exclude_nothing() {
    let some = group(&[6, 0, 4, 2]);
    assert_eq!((some.incl(&[]), some.range_incl(&[])), (Ok(Group::empty()), Ok(Group::empty())));
    assert_eq!((some.excl(&[]), some.range_excl(&[])), (Ok(some.clone()), Ok(some)));
}

#[test]
fn included_members_stand_in_the_order_of_naming_others_in_their_own() {
    let some = group(&[10, 11, 12, 13, 14]);
    assert_eq!(list(&some.incl(&[3, 0, 4]).unwrap()), [13, 10, 14]);
    assert_eq!(list(&some.excl(&[3, 0]).unwrap()), [11, 12, 14]);
    let ranges = [range(4, 3, -1), range(0, 1, 5)];
    assert_eq!(list(&some.range_incl(&ranges).unwrap()), [14, 13, 10]);
    assert_eq!(list(&some.range_excl(&ranges).unwrap()), [11, 12]);
}

#[test]
fn the_last_rank_of_a_range_need_not_be_met() {
    let world = Group::world(8);
    let included = |first, last, stride| world.range_incl(&[range(first, last, stride)]);
    assert_eq!(included(1, 6, 2), Ok(group(&[1, 3, 5])));
    assert_eq!(included(0, 8, 3), Ok(group(&[0, 3, 6])));
    assert_eq!(included(4, -1, -2), Ok(group(&[4, 2, 0])));
    assert_eq!(included(7, i32::MAX, i32::MAX), Ok(group(&[7])));
    assert_eq!(included(7, 0, i32::MIN), Ok(group(&[7])));
    assert_eq!(included(2, 2, -1), Ok(group(&[2])));
}

#[test]
fn ranges_that_lead_nowhere_are_refused() {
    let world = Group::world(8);
    for refused in [range(3, 3, 0), range(0, 7, 0)] {
        let error = GroupError::StrideZero(refused);
        assert_eq!(world.range_incl(&[range(0, 1, 1), refused]), Err(error));
        assert_eq!(world.range_excl(&[refused]), Err(error));
        assert_eq!(error.class(), ErrorClass::Arg);
    }
    for refused in [range(3, 4, -1), range(4, 3, 1), range(i32::MIN, i32::MAX, i32::MIN)] {
        let error = GroupError::StrideAway(refused);
        assert_eq!(world.range_incl(&[refused]), Err(error));
        assert_eq!(world.range_excl(&[refused]), Err(error));
        assert_eq!(error.class(), ErrorClass::Arg);
    }
}

#[test]
fn ranges_beyond_the_group_are_refused() {
    let world = Group::world(8);
    let refused = [
        (range(0, 8, 1), 8),
        (range(8, 0, -1), 8),
        (range(8, 9, 1), 8),
        (range(-1, 3, 1), -1),
        (range(3, -2, -2), -1),
        (range(0, i32::MAX, i32::MAX), i32::MAX),
        (range(i32::MIN, i32::MAX, 1), i32::MIN),
    ];
    for (range, rank) in refused {
        let error = GroupError::RangeRank { range, rank: rank.into(), size: 8 };
        assert_eq!(world.range_incl(&[range]), Err(error));
        assert_eq!(world.range_excl(&[range]), Err(error));
        assert_eq!(error.class(), ErrorClass::Rank);
    }
}

#[test]
fn ranks_are_named_once() {
    let some = group(&[6, 0, 4, 2]);
    let twice = GroupError::RankTwice { rank: 1 };
    assert_eq!(some.incl(&[1, 3, 1, 3]), Err(twice));
    assert_eq!(some.excl(&[1, 1]), Err(twice));
    assert_eq!(some.range_incl(&[range(0, 2, 1), range(3, 1, -2)]), Err(twice));
    assert_eq!(some.range_excl(&[range(1, 1, 1), range(1, 1, 1)]), Err(twice));
    assert_eq!(twice.class(), ErrorClass::Rank);
}

#[test]
fn ranks_are_those_of_the_group() {
    let some = group(&[6, 0, 4, 2]);
    let refused = GroupError::Rank { rank: 6, size: 4 };
    assert_eq!(some.job_rank(6), Err(refused));
    assert_eq!(some.incl(&[0, 6]), Err(refused));
    assert_eq!(some.excl(&[6, 6]), Err(refused));
    assert_eq!(some.translate_ranks(&[0, 6], &Group::world(9)), Err(refused));
    assert_eq!(refused.class(), ErrorClass::Rank);
}

#[test]
fn a_group_has_each_task_once() {
    for twice in [vec![2, 2], vec![0, 1, 2, 2], vec![2, 0, 5, 2, 5]] {
        let error = GroupError::JobRankTwice { job_rank: 2 };
        assert_eq!(Group::of_ranks(twice), Err(error));
        assert_eq!(error.class(), ErrorClass::Group);
    }
    let error = GroupError::JobRank { job_rank: u32::MAX };
    assert_eq!(Group::of_ranks([u32::MAX - 1, u32::MAX]), Err(error));
    assert_eq!(error.class(), ErrorClass::Group);
}

#[test]
fn errors_say_what_is_legal() {
    let told = [
        (
            GroupError::Rank { rank: -3, size: 4 },
            "rank -3 is out of range: the group has ranks 0 to 3",
        ),
        (GroupError::Rank { rank: 0, size: 0 }, "rank 0 is out of range: the group is empty"),
        (
            GroupError::RangeRank { range: range(0, 9, 3), rank: 9, size: 4 },
            "range (0, 9, 3) names rank 9, which is out of range: the group has ranks 0 to 3",
        ),
        (
            GroupError::JobRank { job_rank: u32::MAX },
            "job rank 4294967295 is out of range: job ranks are 0 to 4294967294",
        ),
    ];
    for (error, text) in told {
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn even_groups_take_no_memory_however_they_were_made() {
    let world = Group::world(1 << 16);
    let odd = world.range_incl(&[range(65535, 0, -2)]).unwrap();
    let listed = Group::of_ranks((0..1000).map(|rank| 3 * rank)).unwrap();
    let ends = group(&[u32::MAX - 1, 0]);
    let halves = [range(0, 99, 1), range(100, 65535, 1)];
    let whole = world.range_incl(&halves).unwrap();
    for even in [&world, &odd, &listed, &ends, &whole, &Group::empty()] {
        assert_eq!(even.members.heap_bytes(), 0, "{even:?}");
    }
    assert_eq!(world.difference(&odd).members.heap_bytes(), 0);
    assert_eq!(odd.excl(&[0]).unwrap().members.heap_bytes(), 0);
    assert!(size_of::<Group>() <= 24);
}

#[test]
fn other_groups_take_memory_once() {
    let uneven = Group::world(1000).excl(&[500]).unwrap();
    assert!((8 * 999..8 * 999 + 64).contains(&uneven.members.heap_bytes()));
    let (copy, bytes) = (uneven.clone(), uneven.members.heap_bytes());
    assert_eq!((copy == uneven, copy.members.heap_bytes()), (true, bytes));
}

#[test]
fn a_lookup_in_a_wide_run_does_not_wrap() {
    let wide = group(&[u32::MAX - 1, 1 << 31, 2]);
    assert_eq!(wide.members.heap_bytes(), 0);
    assert_eq!(list(&wide), [u32::MAX - 1, 1 << 31, 2]);
    assert_eq!(wide.rank_of(2), Some(2));
    for stranger in [0, 1, 3, (1 << 31) - 1, u32::MAX] {
        assert_eq!(wide.rank_of(stranger), None, "{stranger}");
    }
    let beyond = group(&[0, 3 << 30, 2 << 30]);
    assert!(beyond.members.heap_bytes() > 0, "the distances are equal modulo 2^32 only");
    assert_eq!((list(&beyond), beyond.rank_of(2 << 30)), (vec![0, 3 << 30, 2 << 30], Some(2)));
}

/// Generates lists of few job ranks, so that groups overlap: ascending and descending runs, and shuffled lists.
fn any_list() -> impl Strategy<Value = Vec<u32>> {
    let run = (0..12_u32, 1..4_u32, 0..8_u32).prop_map(|(first, stride, count)| {
        (0..count).map(|at| first + at * stride).collect::<Vec<_>>()
    });
    let down = run.clone().prop_map(|run| run.into_iter().rev().collect());
    let some = subsequence((0..12).collect::<Vec<_>>(), 0..12).prop_shuffle();
    prop_oneof![run, down, some]
}

/// Generates ranks of a group of up to 12, sometimes with a rank that is too high or that occurs twice.
fn any_ranks() -> impl Strategy<Value = Vec<u32>> {
    let legal = subsequence((0..8).collect::<Vec<_>>(), 0..8).prop_shuffle();
    prop_oneof![3 => legal, 1 => vec(0..12_u32, 0..5)]
}

fn any_ranges() -> impl Strategy<Value = Vec<[i32; 3]>> {
    let towards = |[first, last, stride]: [i32; 3]| {
        [first, last, if last < first { -stride.abs() } else { stride.abs() }]
    };
    let any = [-1..10_i32, -1..10_i32, -3..4_i32];
    vec(prop_oneof![3 => any.clone().prop_map(towards), 1 => any], 0..4)
}

/// The rule of MPI_Group_range_incl, step by step; `None` if it makes the call erroneous.
fn walk(ranges: &[[i32; 3]], size: u32) -> Option<Vec<u32>> {
    let mut ranks = Vec::new();
    for &[first, last, stride] in ranges {
        let leads = stride != 0 && (first == last || (first < last) == (stride > 0));
        let mut rank = first;
        while leads && (if stride > 0 { rank <= last } else { rank >= last }) {
            ranks.push(u32::try_from(rank).ok()?);
            rank += stride;
        }
        leads.then_some(())?;
    }
    is_selection(&ranks, size).then_some(ranks)
}

/// Returns whether these are distinct ranks of a group of `size`.
fn is_selection(ranks: &[u32], size: u32) -> bool {
    let once = |&rank: &u32| ranks.iter().filter(|&&other| other == rank).count() == 1;
    ranks.iter().all(|rank| *rank < size && once(rank))
}

fn included(list: &[u32], ranks: &[u32]) -> Vec<u32> {
    ranks.iter().map(|&rank| list[rank as usize]).collect()
}

fn excluded(list: &[u32], ranks: &[u32]) -> Vec<u32> {
    let left = (0..).zip(list).filter(|(rank, _)| !ranks.contains(rank));
    left.map(|(_, &member)| member).collect()
}

proptest! {
    #[test]
    fn a_group_is_its_list(members in any_list()) {
        let group = group(&members);
        prop_assert_eq!(group.size() as usize, members.len());
        prop_assert_eq!(&list(&group), &members);
        prop_assert!(group.iter().rev().eq(members.iter().rev().copied()));
        for job_rank in 0..40 {
            let expected = members.iter().position(|&member| member == job_rank);
            prop_assert_eq!(group.rank_of(job_rank).map(|rank| rank as usize), expected);
        }
        for rank in 0..16 {
            prop_assert_eq!(group.job_rank(rank).ok(), members.get(rank as usize).copied());
        }
        let is_even = members.windows(3).all(|three| three[0] + three[2] == 2 * three[1]);
        prop_assert_eq!(group.members.heap_bytes() == 0, is_even);
    }

    #[test]
    fn sets_agree_with_lists(left in any_list(), right in any_list()) {
        let (a, b) = (group(&left), group(&right));
        let both: Vec<_> = left.iter().copied().filter(|member| right.contains(member)).collect();
        let left_only = left.iter().copied().filter(|member| !right.contains(member));
        let left_only: Vec<_> = left_only.collect();
        let right_only = right.iter().copied().filter(|member| !left.contains(member));
        let all: Vec<_> = left.iter().copied().chain(right_only).collect();
        prop_assert_eq!(a.union(&b), group(&all));
        prop_assert_eq!(a.intersection(&b), group(&both));
        prop_assert_eq!(a.difference(&b), group(&left_only));
        prop_assert_eq!(list(&a.union(&b)), all);
        prop_assert_eq!(list(&a.intersection(&b)), both);
        prop_assert_eq!(list(&a.difference(&b)), left_only);
    }

    #[test]
    fn comparisons_agree_with_lists(
        left in any_list(),
        right in any_list(),
        is_turned in any::<bool>(),
    ) {
        let right = if is_turned { left.iter().rev().copied().collect() } else { right };
        let sorted = |list: &[u32]| {
            let mut list = list.to_vec();
            list.sort_unstable();
            list
        };
        let expected = match () {
            () if left == right => Comparison::Identical,
            () if sorted(&left) == sorted(&right) => Comparison::Similar,
            () => Comparison::Unequal,
        };
        prop_assert_eq!(group(&left).compare(&group(&right)), expected);
        prop_assert_eq!(group(&right).compare(&group(&left)), expected);
    }

    #[test]
    fn translations_agree_with_lists(
        left in any_list(),
        right in any_list(),
        ranks in vec(0..9_u32, 0..6),
    ) {
        let legal = ranks.iter().all(|&rank| (rank as usize) < left.len());
        let translated = group(&left).translate_ranks(&ranks, &group(&right)).ok();
        let there = |&rank: &u32| {
            let at = right.iter().position(|&member| member == left[rank as usize]);
            at.map(|at| at as u32)
        };
        let expected = legal.then(|| ranks.iter().map(there).collect());
        prop_assert_eq!(translated, expected);
    }

    #[test]
    fn selections_agree_with_lists(members in any_list(), ranks in any_ranks()) {
        let group = group(&members);
        let legal = is_selection(&ranks, group.size());
        let expected = legal.then(|| included(&members, &ranks));
        prop_assert_eq!(group.incl(&ranks).ok().map(|group| list(&group)), expected);
        let expected = legal.then(|| excluded(&members, &ranks));
        prop_assert_eq!(group.excl(&ranks).ok().map(|group| list(&group)), expected);
    }

    #[test]
    fn ranges_agree_with_walking(members in any_list(), triplets in any_ranges()) {
        let (group, ranges) = (group(&members), triplets.iter().map(|&triplet| triplet.into()));
        let ranges: Vec<RankRange> = ranges.collect();
        let ranks = walk(&triplets, group.size());
        let expected = ranks.as_deref().map(|ranks| included(&members, ranks));
        prop_assert_eq!(group.range_incl(&ranges).ok().map(|group| list(&group)), expected);
        let expected = ranks.as_deref().map(|ranks| excluded(&members, ranks));
        prop_assert_eq!(group.range_excl(&ranges).ok().map(|group| list(&group)), expected);
    }
}
