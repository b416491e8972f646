//! Reductions, with an operation that shows the order in which operands were combined, and one that shows how they were
//! associated.

use super::{Actor, COUNTS, SIZES, elements, joined, member, outputs, unset};
use crate::collective::{
    CollectiveError, Exchange, Local, Member, Operands, Order, Schedule, allreduce, exscan, reduce,
    reduce_scatter, reduce_scatter_block, scan,
};

/// Records how operands were associated.
pub(super) fn tree(left: &str, right: &str) -> String {
    format!("({left} {right})")
}

/// A commutative operation: the operands, sorted.
pub(super) fn merged(left: &str, right: &str) -> String {
    let mut operands: Vec<_> =
        left.split_inclusive('>').chain(right.split_inclusive('>')).collect();
    operands.sort_unstable();
    operands.concat()
}

/// Returns the operands of ranks `0..size`, from element `first` on, joined in the order of ranks.
pub(super) fn in_order(size: u32, first: u64, count: u64) -> Vec<String> {
    let element = |index| (0..size).map(|rank| format!("<{rank}.{index}>")).collect();
    (first..first + count).map(element).collect()
}

/// Makes a rank with `operands` elements, whose output has room for `results`.
fn actor(schedule: Schedule, rank: u32, place: Operands, operands: u64, results: u64) -> Actor {
    let data = elements(rank, 0, operands);
    match place {
        Operands::Input => Actor::new(schedule, data, unset(results)),
        Operands::InPlace => Actor::new(schedule, vec![], data),
    }
}

/// Iterates over every size with every count, in place and not.
fn cases() -> impl Iterator<Item = (u32, u64, Operands)> {
    let sizes = SIZES.into_iter().flat_map(|size| COUNTS.map(|count| (size, count)));
    let places = [Operands::Input, Operands::InPlace];
    sizes.flat_map(move |(size, count)| places.map(|place| (size, count, place)))
}

/// Returns the outputs of a collective that all ranks call in the same way.
fn symmetric(
    (size, count, place): (u32, u64, Operands),
    build: impl Fn(Member, u64, Operands) -> Result<Schedule, CollectiveError>,
    op: super::Op,
) -> Vec<Vec<String>> {
    let schedule = |rank| build(member(rank, size), count, place).unwrap();
    let ranks = (0..size).map(|rank| actor(schedule(rank), rank, place, count, count));
    outputs(&ranks.collect::<Vec<_>>(), 0, op)
}

/// Returns what a reduction leaves in the output of the root.
fn at_root((size, count, place): (u32, u64, Operands), root: u32, order: Order) -> Vec<String> {
    let rank = |rank| {
        let is_root = rank == root;
        let place = if is_root { place } else { Operands::Input };
        let schedule = reduce(member(rank, size), root, count, place, order).unwrap();
        actor(schedule, rank, place, count, if is_root { count } else { 0 })
    };
    let op = if order == Order::Free { merged } else { joined };
    outputs(&(0..size).map(rank).collect::<Vec<_>>(), 0, op).swap_remove(root as usize)
}

#[test]
fn reduce_combines_in_the_order_of_ranks_or_in_any() {
    for case @ (size, count, _) in cases() {
        for root in 0..size {
            assert_eq!(
                at_root(case, root, Order::Ranks),
                in_order(size, 0, count),
                "{case:?} {root}"
            );
            let sorted: Vec<_> =
                in_order(size, 0, count).iter().map(|all| merged(all, "")).collect();
            assert_eq!(at_root(case, root, Order::Free), sorted, "{case:?} {root}");
        }
    }
}

/// Returns the outputs of an allreduce.
fn allreduced(case: (u32, u64, Operands), exchange: Exchange, op: super::Op) -> Vec<Vec<String>> {
    symmetric(case, |member, count, place| allreduce(member, count, place, exchange), op)
}

#[test]
fn allreduce_combines_in_the_order_of_ranks() {
    for case @ (size, count, _) in cases() {
        let expected = vec![in_order(size, 0, count); size as usize];
        for exchange in [Exchange::Whole, Exchange::Halves] {
            assert_eq!(allreduced(case, exchange, joined), expected, "{case:?} {exchange:?}");
        }
    }
}

#[test]
fn allreduce_associates_in_the_same_way_for_all() {
    for size in SIZES {
        for place in [Operands::Input, Operands::InPlace] {
            let trees = allreduced((size, 7, place), Exchange::Whole, tree);
            assert!(trees.iter().all(|tree| *tree == trees[0]), "{trees:?}");
            assert_eq!(allreduced((size, 7, place), Exchange::Halves, tree), trees);
        }
    }
    let three = allreduced((3, 1, Operands::Input), Exchange::Whole, tree);
    assert_eq!(three[0], ["((<0.0> <1.0>) <2.0>)"]);
}

#[test]
fn reduce_scatter_block_divides_results_in_order() {
    for (size, count, place) in cases() {
        let all = count * u64::from(size);
        let rank = |rank| {
            let schedule = reduce_scatter_block(member(rank, size), count, place).unwrap();
            actor(schedule, rank, place, all, count)
        };
        let outputs = outputs(&(0..size).map(rank).collect::<Vec<_>>(), 0, joined);
        for (rank, output) in (0_u32..).zip(outputs) {
            check_part(&output, rank, place, size, u64::from(rank) * count, count);
        }
    }
}

#[test]
fn reduce_scatter_divides_results_by_counts() {
    for size in SIZES {
        for place in [Operands::Input, Operands::InPlace] {
            let counts: Vec<_> = (0..u64::from(size)).map(|rank| (rank * 5 + 2) % 4).collect();
            let rank = |rank: u32| {
                let schedule = reduce_scatter(member(rank, size), &counts, place).unwrap();
                actor(schedule, rank, place, counts.iter().sum(), counts[rank as usize])
            };
            let outputs = outputs(&(0..size).map(rank).collect::<Vec<_>>(), 0, joined);
            for (rank, output) in (0_u32..).zip(outputs) {
                let first = counts[..rank as usize].iter().sum();
                check_part(&output, rank, place, size, first, counts[rank as usize]);
            }
        }
    }
}

/// Checks that the output begins with the results; in place, the rest of the operands follows.
fn check_part(output: &[String], rank: u32, place: Operands, size: u32, first: u64, count: u64) {
    let (results, rest) = output.split_at(count as usize);
    assert_eq!(results, in_order(size, first, count), "{size} {count}, rank {rank}");
    let untouched = elements(rank, count, rest.len() as u64);
    assert_eq!(rest, untouched, "{place:?}");
}

#[test]
fn scan_combines_up_to_each_rank() {
    for case @ (_, count, _) in cases() {
        for (rank, output) in (0_u32..).zip(symmetric(case, scan, joined)) {
            assert_eq!(output, in_order(rank + 1, 0, count), "{case:?}, rank {rank}");
        }
    }
}

#[test]
fn exscan_combines_up_to_the_rank_before_and_leaves_rank_0_alone() {
    for case @ (_, count, place) in cases() {
        for (rank, output) in (0_u32..).zip(symmetric(case, exscan, joined)) {
            let before =
                if place == Operands::Input { unset(count) } else { elements(0, 0, count) };
            let expected = if rank == 0 { before } else { in_order(rank, 0, count) };
            assert_eq!(output, expected, "{case:?}, rank {rank}");
        }
    }
}

/// The last operands are received in the place of the results.
#[test]
fn the_root_of_a_reduction_copies_nothing() {
    for size in SIZES.into_iter().filter(|&size| size > 1) {
        let top = reduce(member(0, size), 0, 1, Operands::Input, Order::Ranks).unwrap();
        let mut local = top.rounds().flat_map(|round| round.local);
        assert!(local.all(|step| matches!(step, Local::Reduce { .. })), "{top}");
    }
}

/// The number of rounds grows logarithmically with the number of ranks.
#[test]
fn reductions_of_many_ranks_have_few_rounds() {
    let rounds = |schedule: Schedule| schedule.rounds().count();
    let last = member(1023, 1024);
    assert_eq!(rounds(allreduce(last, 1, Operands::Input, Exchange::Whole).unwrap()), 10);
    assert_eq!(rounds(scan(last, 1, Operands::InPlace).unwrap()), 10);
    let top = reduce(member(0, 1024), 0, 1, Operands::Input, Order::Ranks).unwrap();
    assert!(top.rounds().all(|round| round.messages.len() == 1));
    assert_eq!(rounds(top), 10);
}
