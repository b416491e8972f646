//! Collectives in tests: how they are posted and awaited, and what they bring, computed without messages.

use std::ops::Range;

use pami::{
    Collective, CollectiveCall, Context, Error, Finished, Geometry, Guard, Members, Outcome,
    Reduction, Section,
};

use super::{Log, Task, pattern, until};

/// Posts a collective, and waits for its end.
pub fn carry_out(guard: &mut Guard<'_>, call: CollectiveCall) -> Result<Finished, Error> {
    let ends = Log::new();
    post(guard, call, &ends);
    until(guard, || ends.len() == 1);
    ends.take().remove(0)
}

pub fn post(section: &mut Section<'_>, call: CollectiveCall, ends: &Log<Result<Finished, Error>>) {
    let to = ends.clone();
    let on_done = move |_: &mut Section<'_>, result: Result<Finished, Error>| to.push(result);
    section.collective(CollectiveCall { on_done: Some(Box::new(on_done)), ..call }).unwrap();
}

/// Advances all contexts of a task until `condition` holds.
pub fn until_all(contexts: &[Context], mut condition: impl FnMut() -> bool) {
    while !condition() {
        if Context::trylock_advancev(contexts, 1).unwrap() == Outcome::Again {
            std::thread::yield_now();
        }
    }
}

/// Creates a geometry by the first context, and waits for it.
pub fn create(
    task: &Task,
    id: u32,
    members: Members,
    parent: Option<&Geometry>,
) -> Result<Option<Geometry>, Error> {
    let made = Log::new();
    let to = made.clone();
    let on_done = Box::new(move |_: &mut Section<'_>, result| to.push(result));
    task.lock().geometry_create(id, members, parent, on_done)?;
    until_all(&task.contexts, || made.len() == 1);
    made.take().remove(0)
}

/// Destroys a geometry, and waits for that.
pub fn destroy(task: &Task, geometry: &Geometry) {
    let gone = Log::new();
    let to = gone.clone();
    let on_done = Box::new(move |_: &mut Section<'_>, result| to.push(result));
    task.lock().geometry_destroy(geometry, Some(on_done)).unwrap();
    until_all(&task.contexts, || gone.len() == 1);
    gone.take().remove(0).unwrap();
}

/// Composes permutations of 0 to 3, of which each byte is one, two bits for each number: their order matters.
pub fn compose(left: &[u8], right: &mut [u8]) {
    for (left, right) in left.iter().zip(right) {
        let image = |of: u8, at: u8| of >> (2 * at) & 3;
        *right = (0..4).fold(0, |all, at| all | image(*right, image(*left, at)) << (2 * at));
    }
}

/// The permutation with this number.
fn permutation(number: usize) -> u8 {
    let mut left = vec![0_u8, 1, 2, 3];
    let digits = [number / 6 % 4, number / 2 % 3, number % 2, 0];
    (0..4).fold(0, |all, at| all | left.remove(digits[at]) << (2 * at))
}

/// Input of a rank that `compose` takes.
fn operands(seed: usize, len: usize) -> Vec<u8> {
    pattern(seed, len).into_iter().map(|byte| permutation(byte.into())).collect()
}

/// Combines the inputs of ranks in their order.
fn combined(inputs: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut inputs: Vec<_> = inputs.into_iter().collect();
    let mut result = inputs.pop().unwrap();
    while let Some(left) = inputs.pop() {
        compose(&left, &mut result);
    }
    result
}

/// Blocks of lengths that differ, with gaps, one of them empty, the last ranks first.
fn blocks(seed: usize, members: usize) -> Vec<Range<usize>> {
    let mut at = 0;
    let mut blocks: Vec<_> = (0..members)
        .map(|rank| {
            at += 3;
            let start = at;
            at += (rank + seed) % 4 * 100;
            start..at
        })
        .collect();
    blocks.reverse();
    blocks
}

/// What a member gives and gets in a collective, whose inputs have a seed: computed without messages.
pub fn oracle(
    collective: &Collective,
    seed: usize,
    rank: usize,
    members: usize,
) -> (Vec<u8>, Vec<u8>) {
    use Collective::*;
    let input = |rank: usize, len: usize| pattern(seed + rank, len);
    let reduced =
        |ranks: Range<usize>, len: usize| combined(ranks.map(|rank| operands(seed + rank, len)));
    let at = |root: usize, bytes: Vec<u8>| if rank == root { bytes } else { Vec::new() };
    let end = |blocks: &[Range<usize>]| blocks.iter().map(|block| block.end).max().unwrap();
    let spread = |blocks: &[Range<usize>], from: &dyn Fn(usize, usize) -> Vec<u8>| {
        let mut all = vec![0; end(blocks)];
        for (rank, block) in blocks.iter().enumerate() {
            all[block.clone()].copy_from_slice(&from(rank, block.len()));
        }
        all
    };
    let ranks = 0..members;
    match collective {
        Barrier => (vec![], vec![]),
        Broadcast { root, len } => (at(*root, input(*root, *len)), input(*root, *len)),
        Allreduce { len, .. } => (operands(seed + rank, *len), reduced(ranks, *len)),
        Reduce { root, len, .. } => (operands(seed + rank, *len), at(*root, reduced(ranks, *len))),
        Scan { len, exclusive, .. } => {
            let result = match (exclusive, rank) {
                (true, 0) => vec![0; *len],
                (true, _) => reduced(0..rank, *len),
                (false, _) => reduced(0..rank + 1, *len),
            };
            (operands(seed + rank, *len), result)
        }
        ReduceScatter { lens, .. } => {
            let first = lens[..rank].iter().sum();
            let all = lens.iter().sum();
            let result = reduced(ranks, all)[first..][..lens[rank]].to_vec();
            (operands(seed + rank, all), result)
        }
        Allgather { block } => {
            (input(rank, *block), ranks.flat_map(|rank| input(rank, *block)).collect())
        }
        Allgatherv { blocks } => (input(rank, blocks[rank].len()), spread(blocks, &input)),
        Gather { root, block } => {
            let all = ranks.flat_map(|rank| input(rank, *block)).collect();
            (input(rank, *block), at(*root, all))
        }
        Gatherv { root, blocks } => {
            (input(rank, blocks[rank].len()), at(*root, spread(blocks, &input)))
        }
        Scatter { root, block } => {
            let all = input(*root, members * block);
            (at(*root, all.clone()), all[rank * block..][..*block].to_vec())
        }
        Scatterv { root, blocks } => {
            let all = input(*root, end(blocks));
            (at(*root, all.clone()), all[blocks[rank].clone()].to_vec())
        }
        Alltoall { block } => {
            let all = |from| input(from, members * block);
            let own = |from| all(from)[rank * block..][..*block].to_vec();
            (all(rank), ranks.flat_map(own).collect())
        }
        Alltoallv { send, receive } => {
            // The other members' blocks are those of `alltoallv`.
            let from = |peer: usize, _: usize| {
                let Alltoallv { send, .. } = alltoallv(peer, members) else { unreachable!() };
                input(peer, end(&send))[send[rank].clone()].to_vec()
            };
            (input(rank, end(send)), spread(receive, &from))
        }
        other => unreachable!("{other:?} has no oracle here"),
    }
}

/// An exchange in which members send blocks of different lengths.
fn alltoallv(rank: usize, members: usize) -> Collective {
    let list = |len: &dyn Fn(usize) -> usize| {
        let mut at = 0;
        let block = |peer| {
            let start = at + 5;
            at = start + len(peer);
            start..at
        };
        (0..members).map(block).collect()
    };
    let len = |from: usize, to: usize| (3 * from + to) % 5 * 50;
    Collective::Alltoallv {
        send: list(&|to| len(rank, to)),
        receive: list(&|from| len(from, rank)),
    }
}

/// One of each type that all members begin.
pub fn each(rank: usize, members: usize, len: usize) -> Vec<Collective> {
    use Collective::*;
    let (root, op) = (members / 2, Reduction::function(1, false, compose));
    let (block, blocks) = (len, blocks(len, members));
    let lens = (0..members).map(|rank| rank * len % 900).collect();
    vec![
        Barrier,
        Broadcast { root, len },
        Allreduce { len, op: op.clone() },
        Reduce { root, len, op: op.clone() },
        Scan { len, op: op.clone(), exclusive: false },
        Scan { len, op: op.clone(), exclusive: true },
        ReduceScatter { lens, op },
        Allgather { block },
        Allgatherv { blocks: blocks.clone() },
        Scatter { root, block },
        Scatterv { root, blocks: blocks.clone() },
        Gather { root, block },
        Gatherv { root, blocks },
        Alltoall { block },
        alltoallv(rank, members),
    ]
}
