//! What a collective should do: the data of every rank before the call and after it, by plain loops over the data of
//! all ranks. Nothing here knows of schedules or messages.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::case::{Case, Collective, Size};
use super::shape::{Form, Shape, Side};
use crate::conformance::Numbers;

/// Data of a buffer, block by block; `None` for a block that does not matter.
pub type Data = Vec<Option<Vec<u8>>>;

/// A rank's part of a call.
#[derive(Debug, Clone)]
pub struct Share {
    /// The input, if the call is given one.
    pub input: Option<Side>,
    /// The output, if the call is given one.
    pub output: Option<Side>,
}

/// What is in the buffers of a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// In the input, before the call and after it.
    pub input: Data,
    /// In the output before the call.
    pub before: Data,
    /// In the output after it.
    pub after: Data,
    /// These data are at the address of the output after the call, whatever blocks are there.
    pub front: Option<Vec<u8>>,
}

/// The operands of some ranks combined, up to each of them.
type Prefixes = Arc<Vec<Vec<u8>>>;

/// A case, with results that the ranks of a job compute only once.
#[derive(Debug)]
pub struct Reference {
    case: Case,
    /// By round, block, and whether they are of the other group of rank 0.
    combined: Mutex<BTreeMap<(usize, usize, bool), Prefixes>>,
}

/// The group of a rank: its ranks of the job, in order. Between groups, every third rank is in the first one.
pub fn group_of(case: &Case, rank: usize) -> Vec<usize> {
    let is_inter = case.collective().is_inter();
    (0..case.ranks()).filter(|other| !is_inter || is_first(*other) == is_first(rank)).collect()
}

/// The group with which a rank exchanges data.
pub fn peers_of(case: &Case, rank: usize) -> Vec<usize> {
    let is_inter = case.collective().is_inter();
    (0..case.ranks()).filter(|other| !is_inter || is_first(*other) != is_first(rank)).collect()
}

/// Whether a rank is in the first of two groups, in which roots are.
pub fn is_first(rank: usize) -> bool {
    rank % 3 == 0
}

impl Reference {
    /// The reference of a case.
    pub fn new(case: Case) -> Self {
        Self { case, combined: Mutex::default() }
    }

    /// The case.
    pub fn case(&self) -> &Case {
        &self.case
    }

    /// The root, as a rank of the job.
    pub fn root(&self) -> usize {
        let group = group_of(&self.case, 0);
        group[self.case.root(group.len())]
    }

    /// Whether this rank of the job is the root, or all are alike.
    fn is_root(&self, rank: usize) -> bool {
        !self.case.collective().is_rooted() || rank == self.root()
    }

    /// Whether a rank of a rooted call hears from the root, or the root from it.
    fn is_at_the_other_end(&self, rank: usize) -> bool {
        !self.case.collective().is_inter() || !is_first(rank)
    }

    fn is_in_place(&self, rank: usize) -> bool {
        self.case.is_in_place() && self.is_root(rank)
    }

    /// The buffers that a rank gives to the call.
    pub fn share(&self, rank: usize) -> Share {
        use Collective as C;
        let collective = self.case.collective();
        let (here, there) = (self.is_root(rank), self.is_at_the_other_end(rank));
        let (has_input, has_output) = match collective {
            C::Barrier | C::InterBarrier => (false, false),
            C::Bcast => (false, true),
            C::InterBcast => (false, here || there),
            C::Gather | C::Gatherv | C::InterGather | C::InterGatherv => (there, here),
            C::Scatter | C::Scatterv | C::InterScatter | C::InterScatterv => (here, there),
            C::Reduce | C::InterReduce => (there, here),
            _ => (true, true),
        };
        let scatters = matches!(collective, C::Scatter | C::Scatterv);
        let (input, output) = match (self.is_in_place(rank), scatters) {
            (false, _) => (has_input, has_output),
            (true, false) => (false, has_output),
            (true, true) => (has_input, false),
        };
        Share {
            input: input.then(|| self.side(rank, true)),
            output: output.then(|| self.side(rank, false)),
        }
    }

    /// How the blocks of one buffer of a rank lie.
    fn side(&self, rank: usize, is_input: bool) -> Side {
        use Collective as C;
        let (case, collective) = (&self.case, self.case.collective());
        let shape = match (collective, is_input) {
            (C::Bcast | C::InterBcast, _) if rank == self.root() => case.send(),
            (_, true) => case.send(),
            (_, false) => case.receive(),
        };
        let form = |shape| Form::new(shape, case.kind());
        let datatypes = |elements: usize, shape: Shape| elements / shape.elements();
        let elements = self.block_elements(rank, is_input);
        let counts: Vec<_> = elements.iter().map(|one| datatypes(*one, shape)).collect();
        let holds_blocks = match collective {
            C::Gatherv | C::InterGatherv | C::Allgatherv | C::InterAllgatherv => !is_input,
            C::Scatterv | C::InterScatterv => is_input,
            C::Alltoallv | C::InterAlltoallv => true,
            _ => false,
        };
        if collective.is_typed() {
            let blocks = elements.iter().enumerate().map(|(number, elements)| {
                let shape = shape.of_block(number + rank, case.kind());
                (form(shape), datatypes(*elements, shape))
            });
            return Side::typed(blocks.collect());
        }
        if holds_blocks {
            Side::scattered(&form(shape), &counts)
        } else {
            Side::consecutive(&form(shape), &counts)
        }
    }

    /// How many elements each block of a buffer has.
    fn block_elements(&self, rank: usize, is_input: bool) -> Vec<usize> {
        use Collective as C;
        let peers = peers_of(&self.case, rank);
        let for_each = || peers.iter().map(|peer| self.elements(rank, *peer)).collect();
        let from_each = || peers.iter().map(|peer| self.elements(*peer, *peer)).collect();
        match (self.case.collective(), is_input) {
            (C::Gather | C::Gatherv | C::InterGather | C::InterGatherv, false) => from_each(),
            (C::Allgather | C::Allgatherv | C::InterAllgather | C::InterAllgatherv, false) => {
                from_each()
            }
            (C::Scatter | C::Scatterv | C::InterScatter | C::InterScatterv, true) => from_each(),
            (C::ReduceScatter | C::ReduceScatterBlock, true) => from_each(),
            (C::ReduceScatter | C::ReduceScatterBlock, false) if self.is_in_place(rank) => {
                from_each()
            }
            (C::Alltoall | C::Alltoallv | C::Alltoallw, _) => for_each(),
            (C::InterAlltoall | C::InterAlltoallv | C::InterAlltoallw, _) => for_each(),
            _ => vec![self.elements(rank, rank)],
        }
    }

    /// How many elements go from one rank to another, or, where they are the same one, the block that belongs to it
    /// has. The same in both directions, as working in place needs it.
    fn elements(&self, rank: usize, other: usize) -> usize {
        let case = &self.case;
        let together = if case.collective().is_typed() {
            12
        } else {
            let (send, receive) = (case.send().elements(), case.receive().elements());
            (send.max(receive)..).find(|one| one % send == 0 && one % receive == 0).unwrap_or(12)
        };
        let blocks = if case.collective().has_blocks() { case.ranks() } else { 1 };
        let wanted = match case.size() {
            Size::Nothing => 0,
            Size::One => 1,
            Size::Few => 7,
            Size::Some => 1_003,
            Size::Long => 65_537 / blocks / case.kind().extent(),
            Size::Longest => (1 << 20) / blocks / case.kind().extent(),
        };
        let groups = wanted.div_ceil(together);
        let groups = match (rank + other) % 5 {
            _ if groups == 0 || !case.collective().lists() => groups,
            1 => groups + 1,
            2 => 0,
            4 => groups + 2,
            _ => groups,
        };
        groups * together
    }

    /// The data that a rank brings: those of a block for each rank, or of its only one. `other` is the rank for
    /// which they are, where there is one.
    fn data(&self, round: usize, rank: usize, other: Option<usize>) -> Vec<u8> {
        let case = &self.case;
        let whom = other.map_or(99, |other| other + 100);
        let seed = [round, rank, whom].iter().fold(case.seed, |seed, number| {
            seed.wrapping_mul(0x100_0193).wrapping_add(*number as u64 + 1)
        });
        case.kind().data(&mut Numbers(seed), self.data_elements(rank, other))
    }

    fn data_elements(&self, rank: usize, other: Option<usize>) -> usize {
        use Collective as C;
        match (self.case.collective(), other) {
            (_, None) => self.elements(rank, rank),
            (C::Alltoall | C::Alltoallv | C::Alltoallw, Some(other)) => self.elements(rank, other),
            (C::InterAlltoall | C::InterAlltoallv | C::InterAlltoallw, Some(other)) => {
                self.elements(rank, other)
            }
            (_, Some(other)) => self.elements(other, other),
        }
    }

    /// What is in the buffers of a rank in a round of the call.
    pub fn contents(&self, round: usize, rank: usize) -> Contents {
        let own = self.brought(round, rank);
        let has_output = self.share(rank).output.is_some();
        let result = if has_output { self.result(round, rank) } else { Vec::new() };
        let nothing = || vec![None; result.len()];
        if !has_output || !self.is_in_place(rank) {
            let before = if self.is_broadcast() { own.clone() } else { nothing() };
            return Contents { input: own, before, after: result, front: None };
        }
        if self.divides_results() {
            let (before, front) = (own, result.into_iter().next().flatten());
            return Contents { input: vec![], after: before.clone(), before, front };
        }
        let mut before = nothing();
        if own.len() == result.len() {
            before = own;
        } else {
            before[rank] = own.into_iter().next().flatten();
        }
        let after = kept(&before, result);
        Contents { input: vec![], before, after, front: None }
    }

    fn divides_results(&self) -> bool {
        let collective = self.case.collective();
        matches!(collective, Collective::ReduceScatter | Collective::ReduceScatterBlock)
    }

    fn is_broadcast(&self) -> bool {
        matches!(self.case.collective(), Collective::Bcast | Collective::InterBcast)
    }

    /// The data of this rank for the call, in its input or in its place.
    fn brought(&self, round: usize, rank: usize) -> Data {
        use Collective as C;
        let data = |other| Some(self.data(round, rank, other));
        let for_each = || peers_of(&self.case, rank).iter().map(|peer| data(Some(*peer))).collect();
        match self.case.collective() {
            C::Bcast | C::InterBcast if rank != self.root() => vec![None],
            C::Scatter | C::Scatterv | C::InterScatter | C::InterScatterv => for_each(),
            C::ReduceScatter | C::ReduceScatterBlock => for_each(),
            C::Alltoall | C::Alltoallv | C::Alltoallw => for_each(),
            C::InterAlltoall | C::InterAlltoallv | C::InterAlltoallw => for_each(),
            _ => vec![data(None)],
        }
    }

    /// What the call brings to this rank.
    fn result(&self, round: usize, rank: usize) -> Data {
        use Collective as C;
        let peers = peers_of(&self.case, rank);
        let from = |from: &usize, other| Some(self.data(round, *from, other));
        match self.case.collective() {
            C::Barrier | C::InterBarrier => vec![],
            C::Bcast | C::InterBcast => vec![from(&self.root(), None)],
            C::Scatter | C::Scatterv | C::InterScatter | C::InterScatterv => {
                vec![from(&self.root(), Some(rank))]
            }
            C::Alltoall | C::Alltoallv | C::Alltoallw => {
                peers.iter().map(|peer| from(peer, Some(rank))).collect()
            }
            C::InterAlltoall | C::InterAlltoallv | C::InterAlltoallw => {
                peers.iter().map(|peer| from(peer, Some(rank))).collect()
            }
            C::Scan => vec![Some(self.combined(round, rank, None, rank + 1))],
            C::Exscan if rank == 0 => vec![None],
            C::Exscan => vec![Some(self.combined(round, rank, None, rank))],
            C::ReduceScatter | C::ReduceScatterBlock => {
                vec![Some(self.combined(round, rank, Some(rank), peers.len()))]
            }
            collective if collective.reduces() => {
                vec![Some(self.combined(round, rank, None, peers.len()))]
            }
            _ => peers.iter().map(|peer| from(peer, None)).collect(),
        }
    }

    /// The operands of the first `ranks` peers of a rank, combined in their order.
    fn combined(&self, round: usize, rank: usize, block: Option<usize>, ranks: usize) -> Vec<u8> {
        let peers = peers_of(&self.case, rank);
        let key = (round, block.map_or(0, |block| block + 1), is_first(peers[0]));
        // The others wait meanwhile, rather than compute it too.
        let mut known = self.combined.lock().unwrap_or_else(PoisonError::into_inner);
        let made = known.entry(key);
        let made = made.or_insert_with(|| Arc::new(self.prefixes(round, &peers, block))).clone();
        drop(known);
        made[ranks - 1].clone()
    }

    fn prefixes(&self, round: usize, peers: &[usize], block: Option<usize>) -> Vec<Vec<u8>> {
        let (op, kind) = (self.case.op(), self.case.kind());
        let mut all: Vec<Vec<u8>> = Vec::with_capacity(peers.len());
        for peer in peers {
            let mut next = self.data(round, *peer, block);
            if let Some(before) = all.last() {
                let pairs =
                    before.chunks_exact(kind.size()).zip(next.chunks_exact_mut(kind.size()));
                pairs.for_each(|(left, right)| op.combine(kind, left, right));
            }
            all.push(next);
        }
        all
    }
}

/// The result, and what was before where there is none.
fn kept(before: &Data, result: Data) -> Data {
    let pairs = result.into_iter().zip(before);
    pairs.map(|(result, before)| result.or_else(|| before.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(text: &str, rank: usize) -> Contents {
        Reference::new(text.parse().unwrap()).contents(0, rank)
    }

    /// A few cases whose result is plain to see.
    #[test]
    fn the_reference_does_what_the_names_say() {
        let scattered = contents("collective=scatterv ranks=4 root=last size=7 seed=3", 2);
        let root = contents("collective=scatterv ranks=4 root=last size=7 seed=3", 3);
        assert_eq!(scattered.after[0], root.input[2]);
        let exchanged = |rank| contents("collective=alltoall ranks=3 size=1 in-place=yes", rank);
        assert_eq!(exchanged(1).after[2], exchanged(2).before[1]);
        let text = "collective=exscan ranks=3 size=1 kind=i64 op=sum in-place=yes";
        let of = |data: &Data| i64::from_le_bytes(data[0].clone().unwrap().try_into().unwrap());
        let [first, second, third] = [0, 1, 2].map(|rank| contents(text, rank));
        let sum = of(&first.before).wrapping_add(of(&second.before));
        assert_eq!((of(&third.after), of(&first.after)), (sum, of(&first.before)));
        let between = "collective=inter_allgather ranks=5 size=1";
        assert_eq!(contents(between, 1).after.len(), 2, "from ranks 0 and 3");
        assert_eq!(contents(between, 1).after[1], contents(between, 3).input[0]);
    }
}
