//! Random programs: blocking and started collectives, with messages between them, on communicators that are made from
//! each other and dropped again.
//!
//! - RP1: every rank draws the same steps from the seed, and knows the members of all communicators, also of those that
//!   it is not in. All take the steps in the same order, so no program can stop.
//! - RP2: each rank draws for itself which requests it waits for, how, and when it drops its handle of a communicator.

use mpicore::op::{ElementKind, Predefined};
use mpicore::{Communicator, Error, Input, Operand, Output, Plan, Reduction};
use mpjdev::{Mode, Request};

use super::area::Area;
use super::element::Kind;
use super::shape::{Form, Shape, Side};
use crate::conformance::Numbers;

mod tree;

use tree::{Node, Own};

/// Most communicators that a program has at a time.
const MOST: usize = 14;
/// Lengths of data, in words.
const LENGTHS: [usize; 5] = [0, 1, 3, 200, 6_000];
/// For how many steps at most a rank keeps what all have given up.
const LINGER: usize = 8;

/// A rank's thread in its program.
pub struct Program {
    seed: u64,
    rank: u32,
    step: usize,
    /// RP1.
    common: Numbers,
    /// RP2.
    own: Numbers,
    nodes: Vec<Node>,
    /// Handles that were given up, with the step at which each is dropped.
    leaving: Vec<(usize, Own)>,
    pending: Vec<Pending>,
}

/// An operation under way.
struct Pending {
    request: Request,
    what: String,
    buffers: Buffers,
}

/// What an operation reads, what it writes, and what should be there at its end.
#[derive(Default)]
struct Buffers {
    input: Option<Area>,
    output: Option<Area>,
    expected: Vec<u8>,
}

impl Buffers {
    /// Buffers with `sent` in one and room for `expected` in the other.
    fn new(sent: Option<&[u8]>, expected: Option<Vec<u8>>) -> Self {
        let input = sent.map(|data| filled(data.len(), Some(data)));
        let output = expected.as_ref().map(|data| filled(data.len(), None));
        let expected = output.as_ref().zip(expected);
        let expected = expected.map_or(vec![], |(area, data)| area.image(&[Some(data)], None));
        Self { input, output, expected }
    }

    fn input(&mut self) -> Input {
        self.input.as_mut().map_or_else(Input::none, Area::lend_input)
    }

    fn output(&mut self) -> Output {
        self.output.as_mut().map_or_else(Output::none, Area::lend_output)
    }

    /// Takes the memory back after the end, and checks it.
    fn check(mut self, what: &str) -> Result<(), String> {
        self.input.iter_mut().for_each(|area| area.set_lent(false));
        let Some(mut output) = self.output.take() else { return Ok(()) };
        output.set_lent(false);
        if output.memory() == self.expected {
            return Ok(());
        }
        let mut bytes = output.memory().iter().zip(&self.expected);
        match bytes.position(|(is, should)| is != should) {
            Some(at) => {
                Err(format!("{what}: byte {} is wrong", at as i64 - output.side().start() as i64))
            }
            None => Ok(()),
        }
    }
}

/// Memory of this many bytes of words, with contents.
fn filled(bytes: usize, data: Option<&[u8]>) -> Area {
    let form = Form::new(Shape::Plain, Kind::I64);
    let mut area = Area::new(Side::consecutive(&form, &[bytes / Kind::I64.size()]));
    area.fill(&[data.map(<[u8]>::to_vec)]);
    area
}

/// Words of a rank.
fn words(error: Error) -> String {
    error.to_string()
}

impl Program {
    /// The program of a seed, on a communicator that nothing else uses and that has all ranks of the job in order.
    pub fn new(seed: u64, over: &Communicator) -> Self {
        let rank = over.rank();
        Self {
            seed,
            rank,
            step: 0,
            common: Numbers(seed),
            own: Numbers(!seed ^ (u64::from(rank) << 32)),
            nodes: vec![Node::intra((0..over.size()).collect(), Own::Here(over.clone()))],
            leaving: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// Takes this number of steps, and waits for all that is under way then.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn play(mut self, steps: usize) -> Result<(), String> {
        let base = self.nodes[0].communicator().map_err(words)?;
        let base = base.expect("every rank is in it").clone();
        let (seed, rank) = (self.seed, self.rank);
        for step in 0..steps {
            self.step = step;
            let done = self.take_step().and_then(|()| self.attend(&base));
            done.map_err(|what| format!("seed {seed}, step {step}, rank {rank}: {what}"))?;
        }
        while !self.pending.is_empty() {
            self.wait_for_one(&base)?;
        }
        Ok(())
    }

    fn take_step(&mut self) -> Result<(), String> {
        let (chosen, what) = (self.common.below(self.nodes.len()), self.common.below(10));
        match what {
            0 | 1 if self.nodes.len() < MOST => {
                let mut made = tree::make(&mut self.nodes[chosen], &mut self.common, self.rank)
                    .map_err(words)?;
                self.nodes.append(&mut made);
                Ok(())
            }
            0..=2 if chosen > 0 => {
                let node = self.nodes.swap_remove(chosen);
                self.leaving.push((self.step + self.own.below(LINGER), node.into_own()));
                Ok(())
            }
            3 | 4 => self.exchange(chosen),
            _ => self.collective(chosen),
        }
    }

    /// The words of a rank in this step.
    fn data(&self, rank: u32, len: usize) -> Vec<u8> {
        let seed = self.seed.wrapping_mul(31).wrapping_add((self.step as u64) << 20);
        Kind::I64.data(&mut Numbers(seed + u64::from(rank)), len)
    }

    /// Every member sends a message to one of the others.
    fn exchange(&mut self, chosen: usize) -> Result<(), String> {
        let len = LENGTHS[self.common.below(LENGTHS.len())];
        let (shift, tag) = (self.common.below(5), self.common.below(3) as i32);
        let peers = self.nodes[chosen].peers(self.rank).to_vec();
        let own = self.nodes[chosen].group(self.rank).to_vec();
        let Some(over) = self.nodes[chosen].communicator().map_err(words)?.cloned() else {
            return Ok(());
        };
        // Between groups of different sizes, as many as the smaller one has.
        let pairs = own.len().min(peers.len());
        let place = over.rank() as usize;
        if place >= pairs {
            return Ok(());
        }
        let to = peers[(place + shift) % pairs];
        let from = peers[(place + pairs - shift % pairs) % pairs];
        let (sent, expected) = (self.data(self.rank, len), self.data(from, len));
        let (device, context) = (over.device(), over.context());
        let mut receiving = Buffers::new(None, Some(expected));
        let mut sending = Buffers::new(Some(&sent), None);
        let (into, data) = (receiving.output.as_mut(), sending.input.as_mut());
        let (into, data) = into
            .zip(data)
            .map(|(into, data)| (into.lend_sink(), data.lend_source()))
            .expect("both have memory");
        let name = |what: &str| format!("{what} of step {}", self.step);
        let received = device.irecv(into, Some(from as usize), Some(tag), context);
        let sent = device.isend(data, to as usize, tag, context, Mode::Standard);
        let requests = received.and_then(|received| Ok((received, sent?)));
        let (received, sent) = requests.map_err(|error| error.to_string())?;
        let (receive, send) = (name("a receive"), name("a send"));
        self.pending.push(Pending { request: received, what: receive, buffers: receiving });
        self.pending.push(Pending { request: sent, what: send, buffers: sending });
        Ok(())
    }

    fn collective(&mut self, chosen: usize) -> Result<(), String> {
        let (kind, is_blocking) = (self.common.below(6), self.common.below(2) == 0);
        let len = LENGTHS[self.common.below(LENGTHS.len())];
        let node = &mut self.nodes[chosen];
        let root = self.common.below(node.group(self.rank).len().max(1));
        let peers = node.peers(self.rank).to_vec();
        let Some(over) = node.communicator().map_err(words)?.cloned() else { return Ok(()) };
        let (what, mut buffers) = self.buffers(&over, &peers, kind, len, root);
        let plan = call(&over, kind, len as u64, root as u32, &mut buffers).map_err(words)?;
        if is_blocking {
            plan.run().map_err(|error| format!("{what}: {error}"))?;
            return buffers.check(&what);
        }
        let request = plan.start().map_err(|error| format!("{what}: {error}"))?;
        self.pending.push(Pending {
            request,
            what: format!("{what} of step {}", self.step),
            buffers,
        });
        Ok(())
    }

    /// The buffers of a collective of this kind, and its name.
    fn buffers(
        &self,
        over: &Communicator,
        peers: &[u32],
        kind: usize,
        len: usize,
        root: usize,
    ) -> (String, Buffers) {
        let own = self.data(self.rank, len);
        let all = || peers.iter().map(|peer| self.data(*peer, len)).collect::<Vec<_>>().concat();
        let sum = |ranks: &[u32]| {
            let mut sums = vec![0_u64; len];
            for rank in ranks {
                let words: Vec<u64> = bytemuck::pod_collect_to_vec(&self.data(*rank, len));
                for (sum, word) in sums.iter_mut().zip(words) {
                    *sum = sum.wrapping_add(word);
                }
            }
            bytemuck::pod_collect_to_vec(&sums)
        };
        let both = |expected| Buffers::new(Some(&own), Some(expected));
        match (kind, over.is_inter()) {
            (0, _) => ("a barrier".into(), Buffers::default()),
            (1, _) => ("an allgather".into(), both(all())),
            (2, false) => {
                let mut buffers = Buffers::new(None, Some(self.data(peers[root], len)));
                if over.rank() as usize == root {
                    buffers.output.iter_mut().for_each(|area| area.fill(&[Some(own.clone())]));
                }
                ("a broadcast".into(), buffers)
            }
            (3, false) => ("a scan".into(), both(sum(&peers[..=over.rank() as usize]))),
            _ => ("a sum".into(), both(sum(peers))),
        }
    }

    /// Drops what is due, and waits for or tests some of what is under way.
    fn attend(&mut self, base: &Communicator) -> Result<(), String> {
        self.leaving.retain(|(until, _)| *until > self.step);
        match self.own.below(6) {
            0 => self.wait_for_all(base),
            1 | 2 if !self.pending.is_empty() => self.wait_for_one(base),
            3 if !self.pending.is_empty() => self.test_one(base),
            _ => Ok(()),
        }
    }

    fn wait_for_one(&mut self, base: &Communicator) -> Result<(), String> {
        let chosen = self.own.below(self.pending.len());
        let Pending { request, what, buffers } = self.pending.swap_remove(chosen);
        base.device().iwait(request).map_err(|error| format!("{what}: {}", Error::from(error)))?;
        buffers.check(&what)
    }

    fn test_one(&mut self, base: &Communicator) -> Result<(), String> {
        let chosen = self.own.below(self.pending.len());
        let Pending { request, what, buffers } = self.pending.swap_remove(chosen);
        let mut request = Some(request);
        let outcome = base.device().itest(&mut request);
        outcome.map_err(|error| format!("{what}: {}", Error::from(error)))?;
        match request {
            Some(request) => self.pending.push(Pending { request, what, buffers }),
            None => buffers.check(&what)?,
        }
        Ok(())
    }

    /// Waits for collectives and messages in one call.
    fn wait_for_all(&mut self, base: &Communicator) -> Result<(), String> {
        let (mut requests, mut rest) = (Vec::new(), Vec::new());
        for Pending { request, what, buffers } in self.pending.drain(..) {
            requests.push(Some(request));
            rest.push((what, buffers));
        }
        let outcomes = base.device().iwaitall(&mut requests).map_err(|error| error.to_string())?;
        for (outcome, (what, buffers)) in outcomes.into_iter().zip(rest) {
            outcome.map_err(|error| format!("{what}: {}", Error::from(error)))?;
            buffers.check(&what)?;
        }
        Ok(())
    }
}

/// A call of this kind on the buffers that were made for it.
fn call<'c>(
    over: &'c Communicator,
    kind: usize,
    len: u64,
    root: u32,
    buffers: &mut Buffers,
) -> Result<Plan<'c>, Error> {
    use mpicore::collective::Blocks;
    let sum = || Reduction { op: Predefined::Sum.into(), operand: Operand::Kind(ElementKind::I64) };
    let (input, output) = (buffers.input(), buffers.output());
    match (kind, over.is_inter()) {
        (0, false) => over.barrier(),
        (0, true) => over.inter_barrier(),
        (1, false) => over.allgather(Some((input, len)), output, len),
        (1, true) => over.inter_allgather((input, len), output, Blocks::Equal { count: len }),
        (2, false) => over.bcast(output, len, root),
        (3, false) => over.scan(Some(input), output, len, sum()),
        (_, false) => over.allreduce(Some(input), output, len, sum()),
        (_, true) => over.inter_allreduce(input, output, len, sum()),
    }
}
