//! No rank takes for data what was not received (PL2): in random collectives one message is replaced by a longer one, so
//! that a receive fails somewhere. Whoever succeeds nevertheless must have the right result, and the next call must find
//! no message of the failed one.

#![expect(unsafe_code, reason = "lends the buffers of a test")]

use std::sync::mpsc;

use mpjdev::{BackendChoice, Options, RecvRegion, SendRegion};
use proptest::prelude::*;

use super::*;
use crate::collective::Blocks;
use crate::communicator::tests::run_with;
use crate::memory::{Elements, Input, Operand, Output};
use crate::op::{ElementKind, Predefined};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Barrier,
    Bcast,
    Gather,
    Scatter,
    Allgather,
    Alltoall,
    Reduce,
    Allreduce,
    ReduceScatterBlock,
    Scan,
    Exscan,
}

impl Kind {
    fn reduces(self) -> bool {
        use Kind::*;
        matches!(self, Reduce | Allreduce | ReduceScatterBlock | Scan | Exscan)
    }
}

/// How the ranks run their plans.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Executor {
    /// At once if the collective is short.
    Blocking,
    /// By a recorded schedule, whose rounds the caller runs.
    Recorded,
    /// By a recorded schedule, whose rounds run in any call that makes progress.
    Started,
}

#[derive(Debug, Clone, Copy)]
struct Case {
    kind: Kind,
    executor: Executor,
    backend: BackendChoice,
    ranks: u32,
    root: u32,
    /// Words in a block.
    count: usize,
    /// Whether the call lists the lengths of blocks, where there is such a call.
    listed: bool,
    /// The rank that sends a message of another length, and which of its sends that is, in thousandths of them.
    saboteur: u32,
    send: usize,
}

/// The buffers of a rank, in words.
struct Buffers {
    input: Vec<u64>,
    output: Vec<u64>,
}

impl Buffers {
    fn input(&self) -> Input {
        // SAFETY: G1 of the transport: the buffers live until the collective has ended on this rank.
        let region =
            unsafe { SendRegion::new(self.input.as_ptr().cast(), size_of_val(&*self.input)) };
        Input::new(region, 0, Elements::Plain { size: 8 })
    }

    fn output(&mut self) -> Output {
        let len = size_of_val(&*self.output);
        // SAFETY: G2 of the transport: as above, and nobody else uses the output meanwhile.
        let region = unsafe { RecvRegion::new(self.output.as_mut_ptr().cast(), len) };
        Output::new(region, 0, Elements::Plain { size: 8 })
    }
}

/// Returns word number `at` of what a rank puts in.
fn word(rank: u32, at: usize) -> u64 {
    1 + u64::from(rank) * 1_000_003 + at as u64
}

fn words(rank: u32, count: usize) -> Vec<u64> {
    (0..count).map(|at| word(rank, at)).collect()
}

fn sum(ranks: std::ops::Range<u32>, from: usize, count: usize) -> Vec<u64> {
    (from..from + count).map(|at| ranks.clone().map(|rank| word(rank, at)).sum()).collect()
}

impl Case {
    /// Returns what a rank has in its buffers before the call.
    fn buffers(&self, rank: u32) -> Buffers {
        let Self { kind, ranks, root, count, .. } = *self;
        let all = ranks as usize * count;
        let (input, output) = match kind {
            Kind::Barrier => (0, 0),
            Kind::Bcast | Kind::Reduce | Kind::Allreduce | Kind::Scan | Kind::Exscan => {
                (count, count)
            }
            Kind::Gather | Kind::Allgather => (count, all),
            Kind::Scatter | Kind::ReduceScatterBlock => (all, count),
            Kind::Alltoall => (all, all),
        };
        let mut output = vec![0; output];
        if kind == Kind::Bcast && rank == root {
            output = words(root, count);
        }
        Buffers { input: words(rank, input), output }
    }

    /// Returns what a rank has in its output after a call that has succeeded, if the call defines that.
    fn expected(&self, rank: u32) -> Option<Vec<u64>> {
        let Self { kind, ranks, root, count, .. } = *self;
        let (own, is_root) = (rank as usize * count, rank == root);
        let blocks = |first| {
            (0..ranks).flat_map(move |of| (first..first + count).map(move |at| word(of, at)))
        };
        match kind {
            Kind::Barrier => None,
            Kind::Bcast => Some(words(root, count)),
            Kind::Gather => is_root.then(|| blocks(0).collect()),
            Kind::Scatter => Some((own..own + count).map(|at| word(root, at)).collect()),
            Kind::Allgather => Some(blocks(0).collect()),
            Kind::Alltoall => Some(blocks(own).collect()),
            Kind::Reduce => is_root.then(|| sum(0..ranks, 0, count)),
            Kind::Allreduce => Some(sum(0..ranks, 0, count)),
            Kind::ReduceScatterBlock => Some(sum(0..ranks, own, count)),
            Kind::Scan => Some(sum(0..rank + 1, 0, count)),
            Kind::Exscan => (rank > 0).then(|| sum(0..rank, 0, count)),
        }
    }

    fn plan<'c>(&self, over: &'c Communicator, buffers: &mut Buffers) -> Plan<'c> {
        let (root, count) = (self.root, self.count as u64);
        let (input, output) = (buffers.input(), buffers.output());
        let operand = Operand::Kind(ElementKind::U64);
        let sum = Reduction { op: Predefined::Sum.into(), operand };
        let counts = vec![count; self.ranks as usize];
        let displacements: Vec<_> =
            (0..i64::from(self.ranks)).map(|at| at * count as i64).collect();
        let listed = Blocks::Listed { counts: &counts, displacements: &displacements };
        let equal = if self.listed { listed } else { Blocks::Equal { count } };
        let plan = match self.kind {
            Kind::Gather if self.listed => over.gatherv(Some((input, count)), output, listed, root),
            Kind::Scatter if self.listed => {
                over.scatterv(input, listed, Some((output, count)), root)
            }
            Kind::Allgather if self.listed => over.allgatherv(Some((input, count)), output, listed),
            Kind::ReduceScatterBlock if self.listed => {
                over.reduce_scatter(Some(input), output, &counts, sum)
            }
            Kind::Barrier => over.barrier(),
            Kind::Bcast => over.bcast(output, count, root),
            Kind::Gather => over.gather(Some((input, count)), output, count, root),
            Kind::Scatter => over.scatter(input, count, Some((output, count)), root),
            Kind::Allgather => over.allgather(Some((input, count)), output, count),
            Kind::Alltoall => over.alltoall(Some((input, equal)), output, equal),
            Kind::Reduce => over.reduce(Some(input), output, count, sum, root),
            Kind::Allreduce => over.allreduce(Some(input), output, count, sum),
            Kind::ReduceScatterBlock => over.reduce_scatter_block(Some(input), output, count, sum),
            Kind::Scan => over.scan(Some(input), output, count, sum),
            Kind::Exscan => over.exscan(Some(input), output, count, sum),
        };
        plan.expect("the arguments are right")
    }

    /// Makes the call on this rank, and returns whether it has succeeded.
    fn run(&self, over: &Communicator) -> bool {
        let mut buffers = self.buffers(over.rank());
        let plan = self.plan(over, &mut buffers);
        let outcome = match self.executor {
            _ if over.rank() == self.saboteur => self.sabotage(plan),
            Executor::Blocking => plan.run(),
            Executor::Recorded => {
                plan.into_scheduled().unwrap().run_rounds().map_err(|error| *error)
            }
            Executor::Started => {
                let (ended, outcome) = mpsc::channel();
                plan.once().unwrap().start_then(move |got| ended.send(got).unwrap());
                let got = std::iter::repeat_with(|| over.device().progress().unwrap())
                    .find_map(|()| outcome.try_recv().ok());
                got.expect("the iterator is endless").map(drop)
            }
        };
        if let (Ok(()), Some(expected)) = (&outcome, self.expected(over.rank())) {
            assert!(buffers.output == expected, "rank {} has wrong data: {self:?}", over.rank());
        }
        outcome.is_ok()
    }

    /// Runs the rounds as the other ranks do, but sends eight bytes more in one message.
    fn sabotage(&self, plan: Plan<'_>) -> Result<(), Error> {
        let Scheduled { communicator, call, route, mut work, .. } = plan.into_scheduled()?;
        let tag = match self.executor {
            Executor::Started => route.tag.of_started(),
            _ => route.tag.of_blocking(),
        };
        let (device, context) = (communicator.device(), route.context);
        let endpoint = Endpoint { device, peers: communicator.peers(), context, tag, call };
        let Parts { schedule, memory, reduction, .. } = work.parts();
        let is_send = |message: &&Message| matches!(message, Message::Send { .. });
        let all = schedule.rounds().flat_map(|round| round.messages).filter(is_send).count();
        let (mut failure, mut left, mut longer) = (None, all * self.send / 1000, Vec::new());
        for Round { messages, local } in schedule.rounds() {
            let mut started = Vec::new();
            for message in messages {
                if let Message::Send { peer, from } = message {
                    left = left.wrapping_sub(1);
                    if left == usize::MAX {
                        longer = vec![0; memory.source(from).unwrap().len() + 8];
                        // SAFETY: G1 of the transport: the bytes live until the wait below.
                        let region = unsafe { SendRegion::new(longer.as_ptr(), longer.len()) };
                        let sent =
                            device.isend(region, *peer as usize, tag, context, Mode::Standard);
                        started.push((sent.unwrap(), None));
                        continue;
                    }
                }
                let request = endpoint.start(message, memory, &mut failure);
                started.extend(request.map(|request| (request, memory.expected(message))));
            }
            for (request, expected) in started {
                note(endpoint.call, &mut failure, device.iwait(request), expected);
            }
            if failure.is_none() {
                failure = take_steps(local, memory, reduction).err();
            }
        }
        drop(longer);
        failure.map_or(Ok(()), Err)
    }
}

fn case() -> impl Strategy<Value = Case> {
    let kind = prop::sample::select(vec![
        Kind::Barrier,
        Kind::Bcast,
        Kind::Gather,
        Kind::Scatter,
        Kind::Allgather,
        Kind::Alltoall,
        Kind::Reduce,
        Kind::Allreduce,
        Kind::ReduceScatterBlock,
        Kind::Scan,
        Kind::Exscan,
    ]);
    let executor =
        prop::sample::select(vec![Executor::Blocking, Executor::Recorded, Executor::Started]);
    let backend = prop::sample::select(vec![BackendChoice::Eager, BackendChoice::Rendezvous]);
    let count = prop::sample::select(vec![0, 1, 3, 100, 1_500, 9_000, 140_000]);
    let ranks = (2_u32..=7).prop_flat_map(|ranks| (Just(ranks), 0..ranks, 0..ranks));
    let forms = (any::<bool>(), 0_usize..1000);
    (kind, executor, backend, count, ranks, forms).prop_map(
        |(kind, executor, backend, count, (ranks, root, saboteur), (listed, send))| {
            // Only long reductions run in pieces.
            let count = if kind.reduces() { count } else { count.min(9_000) };
            Case { kind, executor, backend, ranks, root, count, listed, saboteur, send }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn no_rank_succeeds_with_data_that_were_not_received(case in case()) {
        let options = Options::with_backend(case.backend);
        run_with(case.ranks as usize, 1 << 30, options, move |world| {
            case.run(world);
            let next = Case { kind: Kind::Allreduce, saboteur: u32::MAX, count: 3, ..case };
            assert!(next.run(world), "the next call finds its own messages: {case:?}");
        });
    }
}
