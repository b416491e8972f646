//! A rank's part in a case: makes the call in the way of the case, and compares all its memory with the reference.

use std::any::Any;

use mpicore::collective::Blocks;
use mpicore::collective::inter::Root;
use mpicore::op::{Op as CoreOp, UserOp};
use mpicore::{
    Communicator, Error, Input, Operand, Output, Plan, Reduction, RemoteLeader, Sent, SplitKey,
};

use super::area::Area;
use super::case::{Case, Collective, Mode};
use super::element::{Kind, Op};
use super::reference::{Contents, Reference, group_of, is_first};
use super::shape::{Form, Shape};

/// How often a persistent call is started.
const ROUNDS: usize = 3;
/// The tag with which leaders make an intercommunicator.
const TAG: i32 = 77;

/// Plays the part of this rank in a case, on a communicator of as many ranks.
///
/// # Errors
/// The first byte that is wrong, or the error of a call.
pub fn play(world: &Communicator, reference: &Reference) -> Result<(), String> {
    let rank = world.rank() as usize;
    let tell = |what: String| {
        let case = reference.case();
        format!("rank {rank}: {what}\nMPJ_TEST_CASE='{case}' runs it alone")
    };
    let between = reference.case().collective().is_inter();
    let over = if between { halves(world) } else { Ok(world.clone()) };
    let over = over.map_err(|error| tell(format!("no intercommunicator: {error}")))?;
    Part::new(&over, reference, rank).play().map_err(tell)
}

/// The intercommunicator between the two groups of a case.
///
/// # Errors
/// Those of [`Communicator::split`] and [`Communicator::create_inter`].
pub fn halves(world: &Communicator) -> Result<Communicator, Error> {
    let is_first = is_first(world.rank() as usize);
    let own = world.split(SplitKey { color: Some(is_first.into()), key: 0 })?;
    let leader = u32::from(is_first);
    let other = RemoteLeader { peers: world, leader, tag: TAG };
    own.expect("every rank has a color").create_inter(0, Some(other))
}

/// A rank's part in a case.
struct Part<'a> {
    over: &'a Communicator,
    reference: &'a Reference,
    rank: usize,
    input: Option<Area>,
    output: Option<Area>,
}

impl<'a> Part<'a> {
    fn new(over: &'a Communicator, reference: &'a Reference, rank: usize) -> Self {
        let share = reference.share(rank);
        let (input, output) = (share.input.map(Area::new), share.output.map(Area::new));
        Self { over, reference, rank, input, output }
    }

    fn case(&self) -> &'a Case {
        self.reference.case()
    }

    fn play(&mut self) -> Result<(), String> {
        let words = |error: Error| format!("{error} ({:?})", error.class());
        if self.case().mode() == Mode::Persistent {
            let mut plan = self.plan().and_then(Plan::persistent).map_err(words)?;
            self.set_lent(false);
            for round in 0..ROUNDS {
                let contents = self.fill(round);
                self.set_lent(true);
                let request = plan.start().map_err(words)?;
                self.over.device().iwait(request).map_err(|error| words(error.into()))?;
                self.set_lent(false);
                self.check(&contents).map_err(|what| format!("start {round}: {what}"))?;
            }
            return Ok(());
        }
        let contents = self.fill(0);
        let plan = self.plan().map_err(words)?;
        if self.case().mode() == Mode::Blocking {
            plan.run().map_err(words)?;
        } else {
            let request = plan.start().map_err(words)?;
            self.over.device().iwait(request).map_err(|error| words(error.into()))?;
        }
        self.set_lent(false);
        self.check(&contents)
    }

    fn areas(&mut self) -> impl Iterator<Item = &mut Area> {
        self.input.iter_mut().chain(&mut self.output)
    }

    fn set_lent(&mut self, is_lent: bool) {
        self.areas().for_each(|area| area.set_lent(is_lent));
    }

    fn fill(&mut self, round: usize) -> Contents {
        let contents = self.reference.contents(round, self.rank);
        self.input.iter_mut().for_each(|area| area.fill(&contents.input));
        self.output.iter_mut().for_each(|area| area.fill(&contents.before));
        contents
    }

    fn check(&self, contents: &Contents) -> Result<(), String> {
        let Contents { input, after, front, .. } = contents;
        if let Some(area) = &self.input {
            compare("input", area, area.image(input, None))?;
        }
        match &self.output {
            Some(area) => compare("output", area, area.image(after, front.as_deref())),
            None => Ok(()),
        }
    }

    /// The input and the datatypes in its first block.
    fn sent(&mut self) -> Sent {
        self.input.as_mut().map(|area| (area.lend_input(), area.side().count()))
    }

    fn input(&mut self) -> Input {
        self.input.as_mut().map_or_else(Input::none, Area::lend_input)
    }

    fn output(&mut self) -> Output {
        self.output.as_mut().map_or_else(Output::none, Area::lend_output)
    }

    fn plan(&mut self) -> Result<Plan<'a>, Error> {
        let collective = self.case().collective();
        match collective {
            _ if collective.is_inter() => self.between(),
            _ if collective.reduces() => self.reduction(),
            _ => self.movement(),
        }
    }

    /// Calls that move data inside of a group.
    fn movement(&mut self) -> Result<Plan<'a>, Error> {
        use Collective as C;
        let (over, root) = (self.over, self.reference.root() as u32);
        let [from, into] =
            [&self.input, &self.output].map(|area| area.as_ref().map(|area| area.side().clone()));
        let nothing = Blocks::Equal { count: 0 };
        let blocks_from = from.as_ref().map(|side| side.blocks());
        let blocks_into = into.as_ref().map_or(nothing, |side| side.blocks());
        let count_from = from.as_ref().map_or(0, |side| side.count());
        let count_into = into.as_ref().map_or(0, |side| side.count());
        match self.case().collective() {
            C::Barrier => over.barrier(),
            C::Bcast => over.bcast(self.output(), count_into, root),
            C::Gather => over.gather(self.sent(), self.output(), count_into, root),
            C::Gatherv => over.gatherv(self.sent(), self.output(), blocks_into, root),
            C::Scatter => {
                let receive = into.is_some().then(|| (self.output(), count_into));
                over.scatter(self.input(), count_from, receive, root)
            }
            C::Scatterv => {
                let receive = into.is_some().then(|| (self.output(), count_into));
                over.scatterv(self.input(), blocks_from.unwrap_or(nothing), receive, root)
            }
            C::Allgather => over.allgather(self.sent(), self.output(), count_into),
            C::Allgatherv => over.allgatherv(self.sent(), self.output(), blocks_into),
            _ => {
                let send = blocks_from.map(|blocks| (self.input(), blocks));
                over.alltoall(send, self.output(), blocks_into)
            }
        }
    }

    /// Reductions inside of a group.
    fn reduction(&mut self) -> Result<Plan<'a>, Error> {
        use Collective as C;
        let (over, root) = (self.over, self.reference.root() as u32);
        let with = reduction(self.case());
        let side = self.input.as_ref().or(self.output.as_ref()).map(Area::side);
        let counts = side.map(|side| side.counts()).unwrap_or_default();
        let count = counts.first().copied().unwrap_or(0);
        let input = self.input.is_some().then(|| self.input());
        let output = self.output();
        match self.case().collective() {
            C::Reduce => over.reduce(input, output, count, with, root),
            C::Allreduce => over.allreduce(input, output, count, with),
            C::ReduceScatterBlock => over.reduce_scatter_block(input, output, count, with),
            C::ReduceScatter => over.reduce_scatter(input, output, &counts, with),
            C::Scan => over.scan(input, output, count, with),
            _ => over.exscan(input, output, count, with),
        }
    }

    /// Calls between two groups.
    fn between(&mut self) -> Result<Plan<'a>, Error> {
        use Collective as C;
        let (over, root) = (self.over, self.inter_root());
        let [from, into] =
            [&self.input, &self.output].map(|area| area.as_ref().map(|area| area.side().clone()));
        let nothing = Blocks::Equal { count: 0 };
        let blocks_from = from.as_ref().map_or(nothing, |side| side.blocks());
        let blocks_into = into.as_ref().map_or(nothing, |side| side.blocks());
        let sent = (self.input(), from.as_ref().map_or(0, |side| side.count()));
        let received = (self.output(), into.as_ref().map_or(0, |side| side.count()));
        let count = sent.1.max(received.1);
        match self.case().collective() {
            C::InterBarrier => over.inter_barrier(),
            C::InterBcast => over.inter_bcast(received.0, received.1, root),
            C::InterGather | C::InterGatherv => {
                over.inter_gather(sent, received.0, blocks_into, root)
            }
            C::InterScatter | C::InterScatterv => {
                over.inter_scatter(sent.0, blocks_from, received, root)
            }
            C::InterAllgather | C::InterAllgatherv => {
                over.inter_allgather(sent, received.0, blocks_into)
            }
            C::InterReduce => {
                over.inter_reduce(sent.0, received.0, count, reduction(self.case()), root)
            }
            C::InterAllreduce => {
                over.inter_allreduce(sent.0, received.0, count, reduction(self.case()))
            }
            _ => over.inter_alltoall((sent.0, blocks_from), (received.0, blocks_into)),
        }
    }

    /// The root as this rank of an intercommunicator sees it.
    fn inter_root(&self) -> Root {
        let root = self.reference.root();
        match (self.rank == root, is_first(self.rank)) {
            (true, _) => Root::Here,
            (false, true) => Root::Beside,
            (false, false) => {
                let group = group_of(self.case(), root);
                let place = group.iter().position(|rank| *rank == root);
                Root::Remote(place.expect("the root is in its group") as u32)
            }
        }
    }
}

/// The operation of a case, as the call gets it.
fn reduction(case: &Case) -> Reduction {
    let (op, kind, shape) = (case.op(), case.kind(), case.send());
    let known = kind.known().filter(|_| !shape.is_derived());
    let operand = match known {
        Some(kind) => Operand::Kind(kind),
        None => Operand::Described(std::sync::Arc::new("elements of the suite")),
    };
    let op: CoreOp = match op.predefined() {
        Some(op) => op.into(),
        None => users(op, kind, shape).into(),
    };
    Reduction { op, operand }
}

/// A user's function for an operation on elements of this form.
fn users(op: Op, kind: Kind, shape: Shape) -> UserOp {
    let form = Form::new(shape, kind);
    UserOp::new(op.commutes(), move |left: &[u8], right: &mut [u8], count, _: &dyn Any| {
        let (low, size) = (form.bounds(count).0, kind.size());
        for place in form.places(count, -low) {
            op.combine(kind, &left[place..place + size], &mut right[place..place + size]);
        }
    })
}

/// Checks that the memory is as it should be.
fn compare(what: &str, area: &Area, expected: Vec<u8>) -> Result<(), String> {
    if area.memory() == expected {
        return Ok(());
    }
    let pairs = || area.memory().iter().zip(&expected);
    let Some(first) = pairs().position(|(is, should)| is != should) else { return Ok(()) };
    let wrong = pairs().filter(|(is, should)| is != should).count();
    let place = first as i64 - area.side().start() as i64;
    let (is, should) = (area.memory()[first], expected[first]);
    Err(format!(
        "{what}: byte {place} of {} is {is}, not {should}; {wrong} bytes are wrong",
        area.side().len()
    ))
}
