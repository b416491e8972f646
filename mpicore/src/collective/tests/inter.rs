//! Collectives between two groups of all small sizes.

use super::{Actor, COUNTS, elements, joined, outputs, unset};
use crate::collective::inter::{
    InterMember, Root, allgather, allreduce, alltoall, barrier, bcast, divided_allreduce,
    divided_reduce, gather, reduce, scatter,
};
use crate::collective::{Blocks, CollectiveError, Division, Packing, Schedule};

/// Iterates over pairs of group sizes from 1 to 5.
fn groups() -> impl Iterator<Item = [u32; 2]> {
    (1..=5).flat_map(|first| (1..=5).map(move |second| [first, second]))
}

/// Makes an actor for each rank, the first group first; `build` gets the member and the number of its group.
fn actors(sizes: [u32; 2], build: impl Fn(InterMember, u32, usize) -> Actor) -> Vec<Actor> {
    let of_group = |group: usize| {
        let (size, remote) = (sizes[group], sizes[1 - group]);
        (0..size).map(move |rank| (InterMember::new(rank, size, remote).unwrap(), rank, group))
    };
    let ranks = of_group(0).chain(of_group(1));
    ranks.map(|(member, rank, group)| build(member, rank, group)).collect()
}

/// Runs the actors and returns the outputs of both groups.
fn played(sizes: [u32; 2], actors: &[Actor]) -> [Vec<Vec<String>>; 2] {
    let mut first = outputs(actors, sizes[0] as usize, joined);
    let second = first.split_off(sizes[0] as usize);
    [first, second]
}

/// Returns elements of a rank of a group; ranks of the second group count from 10.
fn data(group: usize, rank: u32, first: u64, count: u64) -> Vec<String> {
    elements(10 * group as u32 + rank, first, count)
}

/// Iterates over all sizes of groups, and over the group and rank of the root.
fn roots() -> impl Iterator<Item = ([u32; 2], usize, u32)> {
    let groups = groups().flat_map(|sizes| [(sizes, 0), (sizes, 1)]);
    groups.flat_map(|(sizes, group)| (0..sizes[group]).map(move |root| (sizes, group, root)))
}

fn seen(root_group: usize, root: u32, group: usize, rank: u32) -> Root {
    match (root_group == group, root == rank) {
        (true, true) => Root::Here,
        (true, false) => Root::Beside,
        (false, _) => Root::Remote(root),
    }
}

/// Returns the outputs of a rooted collective with 3 elements in a block; `is_to_root` gives the direction.
fn rooted(
    (sizes, group, root): ([u32; 2], usize, u32),
    is_to_root: bool,
    room: u64,
    build: impl Fn(InterMember, Root) -> Result<Schedule, CollectiveError>,
) -> [Vec<Vec<String>>; 2] {
    let actors = actors(sizes, |member, rank, own_group| {
        let root = seen(group, root, own_group, rank);
        let is_root = root == Root::Here;
        let (sends, receives) =
            if is_to_root { (own_group != group, is_root) } else { (is_root, own_group != group) };
        let input = if sends { data(own_group, rank, 0, 3 * 5) } else { vec![] };
        let output = if receives { unset(room) } else { vec![] };
        Actor::new(build(member, root).unwrap(), input, output)
    });
    played(sizes, &actors)
}

#[test]
fn a_barrier_ends() {
    for sizes in groups() {
        played(sizes, &actors(sizes, |member, _, _| Actor::new(barrier(member), vec![], vec![])));
    }
}

#[test]
fn a_barrier_waits_for_every_rank_of_both_groups() {
    let nothing = || bcast(InterMember::new(0, 1, 0).unwrap(), Root::Beside, 0).unwrap();
    for (sizes, group, absent) in roots() {
        let ranks = actors(sizes, |member, rank, own| {
            let is_absent = (own, rank) == (group, absent);
            Actor::new(if is_absent { nothing() } else { barrier(member) }, vec![], vec![])
        });
        let why = super::run(ranks, sizes[0] as usize, joined, 3).unwrap_err();
        let absent = if group == 0 { absent } else { sizes[0] + absent };
        for rank in (0..sizes[0] + sizes[1]).filter(|&rank| rank != absent) {
            assert!(why.contains(&format!("rank {rank} waits")), "{why}");
        }
    }
}

#[test]
fn bcast_reaches_the_remote_group() {
    for (sizes, group, root) in roots() {
        let ranks = actors(sizes, |member, rank, own| {
            let root = seen(group, root, own, rank);
            let sent = if root == Root::Here { data(group, rank, 0, 2) } else { vec![] };
            let output = if own == group { sent } else { unset(2) };
            Actor::new(bcast(member, root, 2).unwrap(), vec![], output)
        });
        let outputs = played(sizes, &ranks);
        assert!(outputs[1 - group].iter().all(|output| *output == data(group, root, 0, 2)));
    }
}

#[test]
fn gather_and_reduce_bring_the_remote_groups_data_to_the_root() {
    for case @ (sizes, group, root) in roots() {
        let remote = sizes[1 - group];
        let blocks = Blocks::Equal { count: 3 };
        let gathered = rooted(case, true, 15, |member, root| gather(member, root, 3, blocks));
        let mut expected =
            (0..remote).flat_map(|rank| data(1 - group, rank, 0, 3)).collect::<Vec<_>>();
        expected.resize(15, super::UNSET.into());
        assert_eq!(gathered[group][root as usize], expected, "{case:?}");
        let reduced = rooted(case, true, 3, |member, root| reduce(member, root, 3));
        assert_eq!(reduced[group][root as usize], combined(1 - group, remote, 3), "{case:?}");
    }
}

/// In pieces of 2 operands, where some ranks have elements of 3 operands.
#[test]
fn pieces_of_reductions_between_groups_give_the_same_results() {
    let division = |rank| Division {
        most: 2,
        packing: (rank % 2 == 1).then_some(Packing { operands: 3, size: 8 }),
    };
    let width = |rank| division(rank).packing.map_or(1, |packing| packing.operands);
    for (sizes, group, root) in roots() {
        let reduced = actors(sizes, |member, rank, own| {
            let (seen, width) = (seen(group, root, own, rank), width(rank));
            let schedule = divided_reduce(member, seen, 6 / width, division(rank)).unwrap();
            let output = if seen == Root::Here { unset(6) } else { vec![] };
            let actor = Actor::new(schedule, data(own, rank, 0, 6), output);
            actor.widths(width as usize, width as usize)
        });
        let results = combined(1 - group, sizes[1 - group], 6);
        assert_eq!(played(sizes, &reduced)[group][root as usize], results);
        let all = actors(sizes, |member, rank, own| {
            let width = width(rank);
            let schedule = divided_allreduce(member, 6 / width, division(rank)).unwrap();
            let actor = Actor::new(schedule, data(own, rank, 0, 6), unset(6));
            actor.widths(width as usize, width as usize)
        });
        assert!(played(sizes, &all)[group].iter().all(|output| *output == results));
    }
}

/// Returns the combined operands of all ranks of a group, in order.
fn combined(group: usize, size: u32, count: u64) -> Vec<String> {
    let element = |index| (0..size).flat_map(|rank| data(group, rank, index, 1)).collect();
    (0..count).map(element).collect()
}

#[test]
fn scatter_divides_the_roots_blocks_among_the_remote_group() {
    for case @ (_, group, root) in roots() {
        let blocks = Blocks::Equal { count: 3 };
        let scattered = rooted(case, false, 3, |member, root| scatter(member, root, blocks, 3));
        for (rank, output) in (0_u64..).zip(&scattered[1 - group]) {
            assert_eq!(*output, data(group, root, 3 * rank, 3), "{case:?}");
        }
    }
}

#[test]
fn allreduce_gives_each_group_the_results_of_the_other() {
    for (sizes, count) in groups().flat_map(|sizes| COUNTS.map(|count| (sizes, count))) {
        let ranks = actors(sizes, |member, rank, group| {
            Actor::new(allreduce(member, count).unwrap(), data(group, rank, 0, count), unset(count))
        });
        let outputs = played(sizes, &ranks);
        for group in [0, 1] {
            let expected = combined(1 - group, sizes[1 - group], count);
            assert!(
                outputs[group].iter().all(|output| *output == expected),
                "{sizes:?} {outputs:?}"
            );
        }
    }
}

#[test]
fn allgather_and_alltoall_exchange_blocks_between_groups() {
    for sizes in groups() {
        for (group, outputs) in exchanged(sizes, false).iter().enumerate() {
            let all = (0..sizes[1 - group]).flat_map(|rank| data(1 - group, rank, 0, 2));
            let all: Vec<_> = all.collect();
            assert!(outputs.iter().all(|output| *output == all), "{sizes:?} {outputs:?}");
        }
        for (group, outputs) in exchanged(sizes, true).iter().enumerate() {
            for (rank, output) in (0_u64..).zip(outputs) {
                let own = (0..sizes[1 - group]).flat_map(|peer| data(1 - group, peer, 2 * rank, 2));
                assert_eq!(*output, own.collect::<Vec<_>>(), "{sizes:?}");
            }
        }
    }
}

/// Returns the outputs of allgather or of alltoall, with blocks of 2 elements.
fn exchanged(sizes: [u32; 2], is_personal: bool) -> [Vec<Vec<String>>; 2] {
    let blocks = Blocks::Equal { count: 2 };
    let ranks = actors(sizes, |member, rank, group| {
        let remote = u64::from(sizes[1 - group]);
        let built = if is_personal {
            alltoall(member, blocks, blocks)
        } else {
            allgather(member, 2, blocks)
        };
        let sent = if is_personal { 2 * remote } else { 2 };
        Actor::new(built.unwrap(), data(group, rank, 0, sent), unset(2 * remote))
    });
    played(sizes, &ranks)
}
