//! Collectives whose blocks differ in length, place and datatype, with random arguments. Buffers have gaps between the
//! blocks, which must not change.

use std::ops::Range;

use proptest::collection::vec;
use proptest::prelude::*;

use super::simulator::{Actor, run};
use super::{elements, joined, member, unset};
use crate::collective::{Blocks, Schedule, allgatherv, alltoall, gatherv, scatterv};

/// Blocks for each rank, with gaps between them and in any order.
#[derive(Debug, Clone)]
struct Layout {
    counts: Vec<u64>,
    displacements: Vec<i64>,
}

impl Layout {
    /// Sorting `order` determines the order in which the blocks lie; each entry modulo 3 is also a gap.
    fn new(counts: Vec<u64>, order: &[u8]) -> Self {
        let mut ranks: Vec<_> = (0..counts.len()).collect();
        ranks.sort_by_key(|&rank| order[rank]);
        let (mut displacements, mut end) = (vec![0; counts.len()], 0);
        for rank in ranks {
            end += i64::from(order[rank] % 3);
            displacements[rank] = end;
            end += counts[rank] as i64;
        }
        Self { counts, displacements }
    }

    fn blocks(&self) -> Blocks<'_> {
        Blocks::Listed { counts: &self.counts, displacements: &self.displacements }
    }

    fn range(&self, rank: usize) -> Range<usize> {
        let first = self.displacements[rank] as usize;
        first..first + self.counts[rank] as usize
    }

    fn ranges(&self) -> Vec<Range<usize>> {
        (0..self.counts.len()).map(|rank| self.range(rank)).collect()
    }

    /// Returns a buffer in which nothing is set, which ends with a gap.
    fn empty(&self) -> Vec<String> {
        unset(self.ranges().iter().map(|range| range.end as u64).max().unwrap_or(0) + 2)
    }

    /// Returns a buffer with `block(rank)` in each block.
    fn filled(&self, block: impl Fn(usize) -> Vec<String>) -> Vec<String> {
        let mut buffer = self.empty();
        for (rank, range) in self.ranges().into_iter().enumerate() {
            buffer[range].clone_from_slice(&block(rank));
        }
        buffer
    }
}

/// Returns the data that one rank sends to another.
fn block(from: usize, to: usize, count: u64) -> Vec<String> {
    elements(from as u32, 100 * to as u64, count)
}

fn ended(actors: Vec<Actor>, seed: u64) -> Result<Vec<Vec<String>>, TestCaseError> {
    let ended = run(actors, 0, joined, seed).map_err(TestCaseError::fail)?;
    Ok(ended.into_iter().map(|actor| actor.output).collect())
}

/// Generates how many elements each rank sends to each other one.
fn matrix() -> impl Strategy<Value = Vec<Vec<u64>>> {
    (1_usize..10).prop_flat_map(|size| vec(vec(0_u64..5, size), size))
}

/// Generates the order and gaps of blocks in the buffers of ranks.
fn orders() -> impl Strategy<Value = Vec<Vec<u8>>> {
    vec(vec(any::<u8>(), 10), 20)
}

fn schedule(rank: usize, size: usize, send: Option<Blocks<'_>>, receive: Blocks<'_>) -> Schedule {
    alltoall(member(rank as u32, size as u32), send, receive).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn gatherv_puts_each_block_where_the_root_wants_it(
        counts in vec(0_u64..5, 1..10), order in vec(any::<u8>(), 10), root in 0_usize..10,
        in_place: bool, seed: u64,
    ) {
        let (size, layout) = (counts.len(), Layout::new(counts.clone(), &order));
        let root = root % size;
        let all = layout.filled(|rank| block(rank, 0, counts[rank]));
        let actor = |rank: usize| {
            let is_in_place = in_place && rank == root;
            let send = (!is_in_place).then_some(counts[rank]);
            let me = member(rank as u32, size as u32);
            let schedule = gatherv(me, root as u32, send, layout.blocks()).unwrap();
            let mut output = if rank == root { layout.empty() } else { vec![] };
            let mut input = block(rank, 0, counts[rank]);
            if is_in_place {
                output[layout.range(rank)].clone_from_slice(&input);
                input.clear();
            }
            Actor::new(schedule, input, output)
        };
        let outputs = ended((0..size).map(actor).collect(), seed)?;
        prop_assert_eq!(&outputs[root], &all);
    }

    #[test]
    fn scatterv_takes_each_block_from_where_the_root_has_it(
        counts in vec(0_u64..5, 1..10), order in vec(any::<u8>(), 10), root in 0_usize..10,
        in_place: bool, seed: u64,
    ) {
        let (size, layout) = (counts.len(), Layout::new(counts.clone(), &order));
        let root = root % size;
        let actor = |rank: usize| {
            let is_in_place = in_place && rank == root;
            let receive = (!is_in_place).then_some(counts[rank]);
            let me = member(rank as u32, size as u32);
            let schedule = scatterv(me, root as u32, layout.blocks(), receive).unwrap();
            let blocks = layout.filled(|to| block(root, to, counts[to]));
            let input = if rank == root { blocks } else { vec![] };
            Actor::new(schedule, input, unset(receive.unwrap_or(0)))
        };
        let outputs = ended((0..size).map(actor).collect(), seed)?;
        for (rank, output) in outputs.into_iter().enumerate() {
            let count = if in_place && rank == root { 0 } else { counts[rank] };
            prop_assert_eq!(output, block(root, rank, count));
        }
    }

    #[test]
    fn allgatherv_puts_each_block_where_each_rank_wants_it(
        counts in vec(0_u64..5, 1..10), orders in orders(), in_place: bool, seed: u64,
    ) {
        let size = counts.len();
        let layout = |rank: usize| Layout::new(counts.clone(), &orders[rank]);
        let actor = |rank: usize| {
            let (layout, me) = (layout(rank), member(rank as u32, size as u32));
            let send = (!in_place).then_some(counts[rank]);
            let schedule = allgatherv(me, send, layout.blocks()).unwrap();
            let (mut input, mut output) = (block(rank, 0, counts[rank]), layout.empty());
            if in_place {
                output[layout.range(rank)].clone_from_slice(&input);
                input.clear();
            }
            Actor::new(schedule, input, output)
        };
        let outputs = ended((0..size).map(actor).collect(), seed)?;
        for (rank, output) in outputs.into_iter().enumerate() {
            prop_assert_eq!(output, layout(rank).filled(|from| block(from, 0, counts[from])));
        }
    }

    #[test]
    fn alltoallv_and_w_move_each_block_to_its_place(
        sent in matrix(), orders in orders(), typed: bool, seed: u64,
    ) {
        let size = sent.len();
        let received = |rank: usize| sent.iter().map(|counts| counts[rank]).collect::<Vec<_>>();
        let output_layout = |rank: usize| Layout::new(received(rank), &orders[10 + rank]);
        let actor = |rank: usize| {
            let send = Layout::new(sent[rank].clone(), &orders[rank]);
            let (receive, entries) = (output_layout(rank), Blocks::Typed { entries: size });
            let of = |layout: &Layout| layout.ranges();
            let schedule = match typed {
                true => schedule(rank, size, Some(entries), entries),
                false => schedule(rank, size, Some(send.blocks()), receive.blocks()),
            };
            let input = send.filled(|to| block(rank, to, sent[rank][to]));
            Actor::new(schedule, input, receive.empty()).entries(of(&send), of(&receive))
        };
        let outputs = ended((0..size).map(actor).collect(), seed)?;
        for (rank, output) in outputs.into_iter().enumerate() {
            let expected = output_layout(rank).filled(|from| block(from, rank, sent[from][rank]));
            prop_assert_eq!(output, expected);
        }
    }

    /// Each rank receives from another as much as it sends there.
    #[test]
    fn alltoallv_and_w_in_place_replace_each_block(
        matrix in matrix(), orders in orders(), typed: bool, seed: u64,
    ) {
        let size = matrix.len();
        let count = |a: usize, b: usize| matrix[a.min(b)][a.max(b)];
        let layout = |rank: usize| {
            Layout::new((0..size).map(|peer| count(rank, peer)).collect(), &orders[rank])
        };
        let actor = |rank: usize| {
            let (layout, entries) = (layout(rank), Blocks::Typed { entries: size });
            let receive = if typed { entries } else { layout.blocks() };
            let schedule = schedule(rank, size, None, receive);
            let output = layout.filled(|to| block(rank, to, count(rank, to)));
            Actor::new(schedule, vec![], output).entries(vec![], layout.ranges())
        };
        let outputs = ended((0..size).map(actor).collect(), seed)?;
        for (rank, output) in outputs.into_iter().enumerate() {
            prop_assert_eq!(output, layout(rank).filled(|from| block(from, rank, count(from, rank))));
        }
    }
}
