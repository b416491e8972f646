//! Random message-passing programs: correct ones, in which every call returns, spoilt ones, in
//! which one cannot, and such with a planted mistake.
//!
//! A program is a list of operations in one global order, of which each rank carries out its own.
//! `src/bin/program.rs` runs them ([`play`]); the tests of deadlock detection show that correct ones
//! are never reported and that spoilt ones always are, those of mistakes between ranks that planted
//! ones are found (`programs/planted.rs`).
//!
//! - PR1: a correct program ends. Operations are added in units. Every operation is complete when the
//!   units before its own have been carried out, and its own has been begun, by all ranks: a blocking
//!   send stands in one unit with its receive or behind the posting of it, a wait behind both ends of
//!   what it waits for, a collective call in one unit with those of all other ranks. So, by induction over the
//!   units, every rank comes to the end. What a receiver has to do for its sender beside, it does in
//!   its next call, or when it leaves.
//! - PR2: every receive can meet one message only, or messages that are alike. A tag is used by one
//!   message, or by those of one unit with one target and one length. A receive for any tag is for a
//!   source whose messages in that communicator stand in single units of their own, so they come in
//!   the order of the receives.

use crate::conformance::Numbers;

pub mod planted;
pub mod play;

/// Number of tags that one program may use.
pub const TAGS: usize = 512;

/// Most chains of a program. Each uses one tag.
const MOST_CHAINS: usize = 24;

/// Lengths of messages: short, in pieces, and by rendezvous.
const LENGTHS: [usize; 8] = [0, 8, 40, 1_000, 17_000, 70_000, 140_000, 600_000];

/// How a rank waits for what it has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// One after the other.
    Each,
    /// With one call for all.
    All,
    /// For the first, again and again.
    Any,
    /// By repeated tests.
    Test,
}

/// How a blocking receive is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taking {
    /// Into a buffer.
    Plain,
    /// Into a vector, by a matched probe.
    Vector,
    /// After a probe.
    Probe,
    /// After repeated probes that do not block.
    Poll,
}

/// What one rank does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// A blocking send.
    Send { to: usize, tag: i32, bytes: usize, sync: bool },
    /// A non-blocking send, known by its slot.
    Start { slot: usize, to: usize, tag: i32, bytes: usize, sync: bool },
    /// A non-blocking receive.
    Post { slot: usize, from: Option<usize>, tag: i32, bytes: usize },
    /// A blocking receive. `quiet`: for any tag, in the communicator for that (PR2).
    Recv { from: Option<usize>, tag: i32, bytes: usize, taking: Taking },
    /// A blocking send in the communicator for receives of any tag.
    QuietSend { to: usize, tag: i32, bytes: usize },
    /// A blocking receive of any tag there.
    QuietRecv { from: usize, tag: i32, bytes: usize },
    /// Waits for what it has started.
    Wait { slots: Vec<usize>, waiting: Waiting },
    /// Sends to the next rank and receives from the one before in one call.
    Exchange { to: usize, from: usize, tag: i32, bytes: usize },
    /// A collective call.
    Together(Together),
    /// The same with elements of another type.
    Strangely(Box<Action>),
    /// Starts a receive and drops it.
    Drop { from: Option<usize>, tag: i32, bytes: usize },
    /// Does nothing for so many microseconds.
    Pause(u64),
    /// Computes for so many microseconds.
    Compute(u64),
}

/// A collective call, the same on all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Together {
    pub call: Collective,
    pub root: usize,
    /// Whether a reduction multiplies; otherwise it adds.
    pub multiplies: bool,
    /// Number of elements.
    pub elements: usize,
    /// Whether these are floating-point numbers; otherwise they are integers of the same size.
    pub floats: bool,
    /// Whether it is started, and then waited for; otherwise it blocks.
    pub starts: bool,
}

/// Which collective call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Collective {
    Barrier,
    Broadcast,
    Reduce,
    AllReduce,
    AllGather,
    Scan,
}

impl Collective {
    const ALL: [Self; 6] = [
        Self::Barrier,
        Self::Broadcast,
        Self::Reduce,
        Self::AllReduce,
        Self::AllGather,
        Self::Scan,
    ];
}

/// An operation of one rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Op {
    /// Who.
    rank: usize,
    /// What.
    action: Action,
}

/// Operations, those of each rank in the order in which it carries them out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program(Vec<Op>);

/// What a program may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    /// Everything.
    All,
    /// No repeated tests or probes, which the detector of deadlocks must take for work.
    Blocking,
}

impl Program {
    /// The correct program of a seed for this number of ranks.
    pub fn correct(seed: u64, ranks: usize, calls: Calls) -> Self {
        let numbers = Numbers(seed.wrapping_mul(31).wrapping_add(ranks as u64));
        Writer { numbers, ranks, calls, slots: 0, tags: 0, ops: Vec::new(), chains: Vec::new() }
            .write()
    }

    /// The program of a seed with one send missing, or sent with a tag that nobody wants: its receive
    /// waits for ever.
    pub fn spoilt(seed: u64, ranks: usize) -> Self {
        let Self(mut ops) = Self::correct(seed, ranks, Calls::Blocking);
        let mut numbers = Numbers(!seed);
        let sends = |op: &Op| matches!(op.action, Action::Send { .. } | Action::Start { .. });
        let places: Vec<_> = (0..ops.len()).filter(|&place| sends(&ops[place])).collect();
        // A program without such a send gets a receive without a message.
        let Some(&place) = places.get(numbers.below(places.len().max(1))) else {
            let taking = Taking::Plain;
            let tag = TAGS as i32 - 1;
            let action = Action::Recv { from: Some(1), tag, bytes: 8, taking };
            ops.push(Op { rank: 0, action });
            return Self(ops);
        };
        match (&mut ops[place].action, numbers.below(2)) {
            // Only short ones: a long send would not return, which is another deadlock.
            (Action::Send { tag, .. } | Action::Start { tag, .. }, 0) => *tag += TAGS as i32 / 2,
            (Action::Start { slot, .. }, _) => {
                let slot = *slot;
                ops.remove(place);
                ops.iter_mut().for_each(|op| op.forget(slot));
            }
            _ => drop(ops.remove(place)),
        }
        Self(ops)
    }

    /// The operations of one rank.
    pub(crate) fn of_rank(&self, rank: usize) -> impl Iterator<Item = &Action> {
        self.0.iter().filter(move |op| op.rank == rank).map(|op| &op.action)
    }
}

impl Op {
    /// Removes the waits for what was never started.
    fn forget(&mut self, slot: usize) {
        if let Action::Wait { slots, .. } = &mut self.action {
            slots.retain(|other| *other != slot);
        }
    }
}

/// Units that still have to be added, in their order.
type Chain = std::collections::VecDeque<Vec<Op>>;

/// Makes a program.
struct Writer {
    numbers: Numbers,
    ranks: usize,
    calls: Calls,
    slots: usize,
    tags: usize,
    ops: Vec<Op>,
    /// The chains that have begun; they grow side by side.
    chains: Vec<Chain>,
}

impl Writer {
    fn write(mut self) -> Program {
        let mut to_begin = 4 + self.numbers.below(MOST_CHAINS - 4);
        while to_begin > 0 || !self.chains.is_empty() {
            if to_begin > 0 && (self.chains.is_empty() || self.numbers.below(3) == 0) {
                to_begin -= 1;
                let chain = self.chain();
                self.chains.push(chain);
            }
            self.advance();
        }
        Program(self.ops)
    }

    /// Adds the next unit of one of the chains. Where that is a wait, others of the same rank that
    /// are due may be waited for in the same call.
    fn advance(&mut self) {
        let chosen = self.numbers.below(self.chains.len());
        let Some(mut unit) = self.chains[chosen].pop_front() else { return };
        if let [Op { rank, action: Action::Wait { slots, .. } }] = &mut unit[..] {
            for chain in &mut self.chains {
                let also = match chain.front().map(Vec::as_slice) {
                    Some([Op { rank: other, action: Action::Wait { slots, .. } }])
                        if other == rank =>
                    {
                        slots.clone()
                    }
                    _ => continue,
                };
                if self.numbers.below(2) == 0 {
                    slots.extend(also);
                    chain.pop_front();
                }
            }
        }
        self.ops.append(&mut unit);
        self.chains.retain(|chain| !chain.is_empty());
    }

    fn chain(&mut self) -> Chain {
        match self.numbers.below(16) {
            0..=8 => self.message(),
            9 => Chain::from([self.fan_in()]),
            10 => Chain::from([self.exchange()]),
            11 => Chain::from([self.quiet()]),
            12 => Chain::from([self.together()]),
            13 | 14 => {
                let micros = self.numbers.below(300) as u64;
                Chain::from([vec![op(self.numbers.below(self.ranks), Action::Compute(micros))]])
            }
            _ => {
                let micros = self.numbers.below(500) as u64;
                Chain::from([vec![op(self.numbers.below(self.ranks), Action::Pause(micros))]])
            }
        }
    }

    fn tag(&mut self) -> i32 {
        self.tags += 1;
        self.tags as i32
    }

    fn slot(&mut self) -> usize {
        self.slots += 1;
        self.slots
    }

    fn bytes(&mut self) -> usize {
        // Long ones are rare: they take time, and one in a program is enough.
        let lengths = if self.numbers.below(4) == 0 { LENGTHS.len() } else { 5 };
        LENGTHS[self.numbers.below(lengths)]
    }

    fn taking(&mut self) -> Taking {
        let legal = if self.calls == Calls::All { 4 } else { 3 };
        [Taking::Plain, Taking::Vector, Taking::Probe, Taking::Poll][self.numbers.below(legal)]
    }

    fn waiting(&mut self) -> Waiting {
        let legal = if self.calls == Calls::All { 4 } else { 3 };
        [Waiting::Each, Waiting::All, Waiting::Any, Waiting::Test][self.numbers.below(legal)]
    }

    /// Two different ranks.
    fn pair(&mut self) -> (usize, usize) {
        let from = self.numbers.below(self.ranks);
        let to = (from + 1 + self.numbers.below(self.ranks - 1)) % self.ranks;
        (from, to)
    }

    /// A message between two ranks, each of whose ends may block.
    fn message(&mut self) -> Chain {
        let (from, to) = self.pair();
        let (tag, bytes, sync) = (self.tag(), self.bytes(), self.numbers.below(4) == 0);
        let (out, into) = (self.slot(), self.slot());
        let wait =
            |rank, slot, waiting| vec![op(rank, Action::Wait { slots: vec![slot], waiting })];
        let waits = [wait(from, out, self.waiting()), wait(to, into, self.waiting())];
        let [sent, received] = waits;
        let send = op(from, Action::Send { to, tag, bytes, sync });
        let start = op(from, Action::Start { slot: out, to, tag, bytes, sync });
        let any = self.numbers.below(5) == 0;
        let source = (!any).then_some(from);
        let taking = self.taking();
        let recv = op(to, Action::Recv { from: source, tag, bytes, taking });
        let post = op(to, Action::Post { slot: into, from: source, tag, bytes });
        let mut chain = match self.numbers.below(4) {
            0 => return Chain::from([vec![send, recv]]),
            1 => return Chain::from([vec![start], vec![recv], sent]),
            2 => return Chain::from([vec![post], vec![send], received]),
            _ if self.numbers.below(2) == 0 => Chain::from([vec![start], vec![post]]),
            _ => Chain::from([vec![post], vec![start]]),
        };
        let waits = if self.numbers.below(2) == 0 { [sent, received] } else { [received, sent] };
        chain.extend(waits);
        chain
    }

    /// Every rank sends to one, which takes the messages in any order.
    fn fan_in(&mut self) -> Vec<Op> {
        let (root, tag, bytes) = (self.numbers.below(self.ranks), self.tag(), self.bytes());
        let sync = self.numbers.below(4) == 0;
        let others = (0..self.ranks).filter(|&rank| rank != root);
        let send = |from| op(from, Action::Send { to: root, tag, bytes, sync });
        let mut unit: Vec<Op> = others.map(send).collect();
        if self.numbers.below(2) == 0 {
            let slots: Vec<usize> = (1..self.ranks).map(|_| self.slot()).collect();
            for &slot in &slots {
                unit.push(op(root, Action::Post { slot, from: None, tag, bytes }));
            }
            let waiting = self.waiting();
            unit.push(op(root, Action::Wait { slots, waiting }));
        } else {
            for _ in 1..self.ranks {
                let taking = self.taking();
                unit.push(op(root, Action::Recv { from: None, tag, bytes, taking }));
            }
        }
        unit
    }

    /// Every rank sends to the one above it.
    fn exchange(&mut self) -> Vec<Op> {
        let (tag, bytes, ranks) = (self.tag(), self.bytes(), self.ranks);
        let exchange = |rank| {
            let (to, from) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
            op(rank, Action::Exchange { to, from, tag, bytes })
        };
        (0..ranks).map(exchange).collect()
    }

    /// All ranks make a collective call.
    fn together(&mut self) -> Vec<Op> {
        let call = Collective::ALL[self.numbers.below(Collective::ALL.len())];
        let (root, elements) = (self.numbers.below(self.ranks), self.bytes() / 8);
        let [multiplies, floats, starts] = [(); 3].map(|()| self.numbers.below(2) == 0);
        let together = Together { call, root, multiplies, elements, floats, starts };
        (0..self.ranks).map(|rank| op(rank, Action::Together(together))).collect()
    }

    /// A message that is received by any tag (PR2).
    fn quiet(&mut self) -> Vec<Op> {
        let ((from, to), tag, bytes) = (self.pair(), self.tag(), self.bytes());
        vec![
            op(from, Action::QuietSend { to, tag, bytes }),
            op(to, Action::QuietRecv { from, tag, bytes }),
        ]
    }
}

fn op(rank: usize, action: Action) -> Op {
    Op { rank, action }
}

#[cfg(test)]
mod tests;
