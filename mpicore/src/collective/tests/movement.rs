//! Collectives that move equal blocks, for all sizes, roots and counts, with datatypes that differ between ranks and
//! between buffers.

use super::{Actor, COUNTS, SIZES, elements, member, moved, unset};
use crate::collective::{
    Blocks, Scratch, allgather, alltoall, bcast, divided_bcast, gather, scatter,
};

/// Iterates over every size with every root and count.
fn with_roots() -> impl Iterator<Item = (u32, u32, u64)> {
    let roots = SIZES.into_iter().flat_map(|size| (0..size).map(move |root| (size, root)));
    roots.flat_map(|(size, root)| COUNTS.into_iter().map(move |count| (size, root, count)))
}

/// Returns one of two descriptions of `2 * count` strings: count and width of the elements.
fn described(which: u32, count: u64) -> (u64, usize) {
    if which % 2 == 0 { (count, 2) } else { (2 * count, 1) }
}

/// Returns strings of the blocks of `len` that ranks `0..size` send, from `first` on.
fn blocks_of_all(size: u32, first: u64, len: u64) -> Vec<String> {
    (0..size).flat_map(|rank| elements(rank, first, len)).collect()
}

#[test]
fn bcast_brings_the_roots_elements_to_all() {
    for (size, root, count) in with_roots() {
        let actor = |rank| {
            let (own, width) = described(rank, count);
            let schedule = bcast(member(rank, size), root, own).unwrap();
            let data = if rank == root { elements(root, 0, 2 * count) } else { unset(2 * count) };
            Actor::new(schedule, vec![], data).widths(1, width)
        };
        let expected = vec![elements(root, 0, 2 * count); size as usize];
        assert_eq!(moved((0..size).map(actor).collect()), expected, "{size} {root} {count}");
    }
}

#[test]
fn divided_bcast_does_so_too() {
    for (size, root, count) in with_roots() {
        let actor = |rank| {
            let schedule = divided_bcast(member(rank, size), root, count).unwrap();
            let data = if rank == root { elements(root, 0, count) } else { unset(count) };
            Actor::new(schedule, vec![], data)
        };
        let expected = vec![elements(root, 0, count); size as usize];
        assert_eq!(moved((0..size).map(actor).collect()), expected, "{size} {root} {count}");
    }
}

#[test]
fn gather_brings_all_blocks_to_the_root_in_order() {
    for (size, root, count) in with_roots() {
        for in_place in [false, true] {
            let (receive, receive_width) = described(1, count);
            let actor = |rank| {
                let (send, width) = described(rank, count);
                let is_in_place = in_place && rank == root;
                let send = (!is_in_place).then_some(send);
                let schedule = gather(member(rank, size), root, send, receive).unwrap();
                let mut output = unset(if rank == root { 2 * count * u64::from(size) } else { 0 });
                let mut input = elements(rank, 0, 2 * count);
                if is_in_place {
                    let start = rank as usize * input.len();
                    let own = std::mem::take(&mut input);
                    output[start..start + own.len()].clone_from_slice(&own);
                }
                Actor::new(schedule, input, output).widths(width, receive_width)
            };
            let outputs = moved((0..size).map(actor).collect());
            let expected = blocks_of_all(size, 0, 2 * count);
            assert_eq!(outputs[root as usize], expected, "{size} {root} {count}");
        }
    }
}

#[test]
fn scatter_brings_each_rank_its_block_of_the_root() {
    for (size, root, count) in with_roots() {
        for in_place in [false, true] {
            let (send, send_width) = described(1, count);
            let actor = |rank| {
                let (receive, width) = described(rank, count);
                let is_in_place = in_place && rank == root;
                let receive = (!is_in_place).then_some(receive);
                let schedule = scatter(member(rank, size), root, send, receive).unwrap();
                let all = 2 * count * u64::from(size);
                let input = if rank == root { elements(root, 0, all) } else { vec![] };
                let output = unset(if is_in_place { 0 } else { 2 * count });
                Actor::new(schedule, input, output).widths(send_width, width)
            };
            let outputs = moved((0..size).map(actor).collect());
            for (rank, output) in (0..size).zip(outputs) {
                let block = elements(root, u64::from(rank) * 2 * count, 2 * count);
                let is_empty = in_place && rank == root;
                let expected = if is_empty { vec![] } else { block };
                assert_eq!(output, expected, "{size} {root} {count} {rank}");
            }
        }
    }
}

#[test]
fn only_ranks_with_others_below_them_keep_blocks() {
    let scratch = |rank| match gather(member(rank, 8), 2, Some(3), 3).unwrap().scratch() {
        Scratch::Elements { count, .. } => count,
        other => unreachable!("blocks are elements, not {other}"),
    };
    assert_eq!([2, 3, 4, 5, 6, 7, 0, 1].map(scratch), [0, 0, 6, 0, 12, 0, 6, 0]);
}

#[test]
fn allgather_brings_all_blocks_to_all() {
    for size in SIZES {
        for (count, in_place) in
            COUNTS.into_iter().flat_map(|count| [(count, false), (count, true)])
        {
            let actor = |rank| {
                let ((send, width), (receive, receive_width)) =
                    (described(rank, count), described(rank / 2, count));
                let schedule =
                    allgather(member(rank, size), (!in_place).then_some(send), receive).unwrap();
                let mut output = unset(2 * count * u64::from(size));
                let mut input = elements(rank, 0, 2 * count);
                if in_place {
                    let own = std::mem::take(&mut input);
                    let start = rank as usize * own.len();
                    output[start..start + own.len()].clone_from_slice(&own);
                }
                Actor::new(schedule, input, output).widths(width, receive_width)
            };
            let expected = vec![blocks_of_all(size, 0, 2 * count); size as usize];
            assert_eq!(moved((0..size).map(actor).collect()), expected, "{size} {count}");
        }
    }
}

#[test]
fn alltoall_brings_each_rank_its_block_of_each() {
    for size in SIZES {
        for (count, in_place) in
            COUNTS.into_iter().flat_map(|count| [(count, false), (count, true)])
        {
            let actor = |rank| {
                let ((send, width), (receive, receive_width)) =
                    (described(rank, count), described(rank / 2, count));
                let send = (!in_place).then_some(Blocks::Equal { count: send });
                let receive = Blocks::Equal { count: receive };
                let schedule = alltoall(member(rank, size), send, receive).unwrap();
                let all = elements(rank, 0, 2 * count * u64::from(size));
                let empty = unset(all.len() as u64);
                let (input, output) = if in_place { (vec![], all) } else { (all, empty) };
                Actor::new(schedule, input, output).widths(width, receive_width)
            };
            let outputs = moved((0..size).map(actor).collect());
            for (rank, output) in (0_u64..).zip(outputs) {
                let expected = blocks_of_all(size, rank * 2 * count, 2 * count);
                assert_eq!(output, expected, "{size} {count}, rank {rank}");
            }
        }
    }
}
