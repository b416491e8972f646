//! Errors inside of collectives: a rank whose buffers are too short, and a rank that is lost.

use mpicore::collective::Blocks;
use mpicore::collective::inter::Root;
use mpicore::op::{ElementKind, Predefined};
use mpicore::{Communicator, Error, ErrorClass, Input, Operand, Output, Plan, Reduction, SplitKey};
use mpj_tests::conformance::collective::area::Area;
use mpj_tests::conformance::collective::element::Kind;
use mpj_tests::conformance::collective::job;
use mpj_tests::conformance::collective::play::halves;
use mpj_tests::conformance::collective::shape::{Form, Shape, Side};
use mpjdev::{Mode, RecvRegion, SendRegion};

use super::BACKENDS;

/// A collective with `count` words in each block.
type Call = for<'c> fn(&'c Communicator, Input, Output, &Lengths) -> Result<Plan<'c>, Error>;

/// The lengths of one rank's blocks.
struct Lengths {
    count: u64,
    counts: Vec<u64>,
    displacements: Vec<i64>,
}

impl Lengths {
    fn new(count: u64, ranks: usize) -> Self {
        let displacements = (0..ranks as i64).map(|rank| rank * count as i64).collect();
        Self { count, counts: vec![count; ranks], displacements }
    }

    fn listed(&self) -> Blocks<'_> {
        Blocks::Listed { counts: &self.counts, displacements: &self.displacements }
    }

    fn equal(&self) -> Blocks<'static> {
        Blocks::Equal { count: self.count }
    }
}

fn sum() -> Reduction {
    Reduction { op: Predefined::Sum.into(), operand: Operand::Kind(ElementKind::I64) }
}

/// Collectives inside of a group; where there is a root, it is rank 0.
const INTRA: [(&str, Call); 16] = [
    ("bcast", |over, _, output, len| over.bcast(output, len.count, 0)),
    ("gather", |over, input, output, len| {
        over.gather(Some((input, len.count)), output, len.count, 0)
    }),
    ("gatherv", |over, input, output, len| {
        over.gatherv(Some((input, len.count)), output, len.listed(), 0)
    }),
    ("scatter", |over, input, output, len| {
        over.scatter(input, len.count, Some((output, len.count)), 0)
    }),
    ("scatterv", |over, input, output, len| {
        over.scatterv(input, len.listed(), Some((output, len.count)), 0)
    }),
    ("allgather", |over, input, output, len| {
        over.allgather(Some((input, len.count)), output, len.count)
    }),
    ("allgatherv", |over, input, output, len| {
        over.allgatherv(Some((input, len.count)), output, len.listed())
    }),
    ("alltoall", |over, input, output, len| {
        over.alltoall(Some((input, len.equal())), output, len.equal())
    }),
    ("alltoallv", |over, input, output, len| {
        over.alltoall(Some((input, len.listed())), output, len.listed())
    }),
    ("reduce", |over, input, output, len| over.reduce(Some(input), output, len.count, sum(), 0)),
    ("allreduce", |over, input, output, len| over.allreduce(Some(input), output, len.count, sum())),
    ("reduce_scatter_block", |over, input, output, len| {
        over.reduce_scatter_block(Some(input), output, len.count, sum())
    }),
    ("reduce_scatter", |over, input, output, len| {
        over.reduce_scatter(Some(input), output, &len.counts, sum())
    }),
    ("scan", |over, input, output, len| over.scan(Some(input), output, len.count, sum())),
    ("exscan", |over, input, output, len| over.exscan(Some(input), output, len.count, sum())),
    ("barrier", |over, _, _, _| over.barrier()),
];

/// Collectives between two groups; where there is a root, it is the first rank of the first one.
const INTER: [(&str, Call); 9] = [
    ("bcast", |over, _, output, len| over.inter_bcast(output, len.count, root(over))),
    ("gather", |over, input, output, len| {
        over.inter_gather((input, len.count), output, len.equal(), root(over))
    }),
    ("scatter", |over, input, output, len| {
        over.inter_scatter(input, len.equal(), (output, len.count), root(over))
    }),
    ("allgather", |over, input, output, len| {
        over.inter_allgather((input, len.count), output, len.equal())
    }),
    ("allgatherv", |over, input, output, len| {
        over.inter_allgather((input, len.count), output, len.listed())
    }),
    ("alltoall", |over, input, output, len| {
        over.inter_alltoall((input, len.equal()), (output, len.equal()))
    }),
    ("reduce", |over, input, output, len| {
        over.inter_reduce(input, output, len.count, sum(), root(over))
    }),
    ("allreduce", |over, input, output, len| over.inter_allreduce(input, output, len.count, sum())),
    ("barrier", |over, _, _, _| over.inter_barrier()),
];

fn root(over: &Communicator) -> Root {
    let is_first = over.group().rank_of(0).is_some();
    match (is_first, over.rank()) {
        (true, 0) => Root::Here,
        (true, _) => Root::Beside,
        (false, _) => Root::Remote(0),
    }
}

/// Runs a collective with blocks of `count` words, blocking or started.
fn run(over: &Communicator, call: Call, count: u64, blocking: bool) -> Result<(), Error> {
    let blocks = over.peers().size() as usize;
    let form = Form::new(Shape::Plain, Kind::I64);
    // Room for the blocks of either group, since reductions use those of the own group.
    let room = vec![count as usize; blocks.max(over.size() as usize)];
    let area = || Area::new(Side::consecutive(&form, &room));
    let (mut input, mut output) = (area(), area());
    let len = Lengths::new(count, blocks);
    let plan = call(over, input.lend_input(), output.lend_output(), &len)?;
    let outcome = if blocking {
        plan.run()
    } else {
        plan.start().and_then(|request| Ok(over.device().iwait(request).map(drop)?))
    };
    // A device that works ends the call, whatever its outcome.
    for area in [&mut input, &mut output] {
        area.set_lent(false);
    }
    outcome
}

/// The sum of the ranks of a communicator, which shows that it works.
fn works(over: &Communicator) -> Result<(), String> {
    let form = Form::new(Shape::Plain, Kind::I64);
    let mut area = Area::new(Side::consecutive(&form, &[1]));
    area.fill(&[Some(i64::from(over.rank()).to_le_bytes().to_vec())]);
    let plan = over.allreduce(None, area.lend_output(), 1, sum());
    plan.and_then(|plan| plan.run()).map_err(|error| format!("it works no more: {error}"))?;
    area.set_lent(false);
    let sum: i64 = (0..i64::from(over.size())).sum();
    let expected = area.image(&[Some(sum.to_le_bytes().to_vec())], None);
    if area.memory() == expected { Ok(()) } else { Err("a sum is wrong".to_owned()) }
}

/// One rank has shorter blocks than all others: it gets an error, or those do that get less from it than they expect;
/// nobody hangs, and the communicator still works.
fn shorten(name: &'static str, call: Call, between: bool, short: u32, count: u64, number: usize) {
    let backend = BACKENDS[number % BACKENDS.len()];
    job::run(5, backend, move |world| {
        let over =
            if between { halves(world).map_err(|error| error.to_string())? } else { world.clone() };
        let is_short = world.rank() == short;
        for blocking in [true, false] {
            let outcome = run(&over, call, if is_short { count - 1 } else { count }, blocking);
            let class = outcome.as_ref().map_err(Error::class);
            let is_right = match class {
                Err(ErrorClass::Truncate | ErrorClass::Count) => true,
                Ok(()) => !is_short,
                Err(_) => false,
            };
            if !is_right {
                return Err(format!("{name} of {count} words, rank {}: {outcome:?}", world.rank()));
            }
            works(world)?;
        }
        Ok(())
    });
}

#[test]
fn a_rank_with_shorter_blocks_is_told_and_the_others_go_on() {
    for (number, (name, call)) in INTRA.into_iter().enumerate() {
        // The root receives in these; in the others the last rank does.
        let short = if ["gather", "gatherv", "reduce"].contains(&name) { 0 } else { 4 };
        for count in [1, 2, 5_000].into_iter().filter(|_| name != "barrier") {
            shorten(name, call, false, short, count, number + count as usize);
        }
    }
}

#[test]
fn between_groups_a_rank_with_shorter_blocks_is_told_too() {
    for (number, (name, call)) in INTER.into_iter().enumerate() {
        let short = if ["gather", "reduce"].contains(&name) { 0 } else { 4 };
        for count in [1, 5_000].into_iter().filter(|_| name != "barrier") {
            shorten(name, call, true, short, count, number);
        }
    }
}

/// Rank 2 is lost: every collective on a communicator with it fails sooner or later, and communicators without it still
/// work.
fn lose(name: &'static str, call: Call, between: bool, blocking: bool, number: usize) {
    let backend = BACKENDS[number % BACKENDS.len()];
    job::run_open(4, backend, move |world| {
        let words = |error: Error| error.to_string();
        let over = if between { halves(world).map_err(words)? } else { world.clone() };
        let is_lost = world.rank() == 2;
        let without = SplitKey { color: Some(is_lost.into()), key: 0 };
        let without = world.split(without).map_err(words)?.ok_or("every rank has a color")?;
        world.barrier().and_then(Plan::run).map_err(words)?;
        // Rank 2 goes when all others are through the barrier.
        let (device, context) = (world.device(), world.context());
        if is_lost {
            for _ in 1..world.size() {
                let heard = device.recv(RecvRegion::EMPTY, None, Some(0), context);
                heard.map_err(|error| error.to_string())?;
            }
            world.device().abort();
            return Ok(());
        }
        let told = device.send(SendRegion::EMPTY, 2, 0, context, Mode::Standard);
        told.map_err(|error| error.to_string())?;
        // Ranks beside the root take no part, and meet no error.
        let is_rooted = ["bcast", "gather", "scatter", "reduce"].contains(&name);
        if between && is_rooted && matches!(root(&over), Root::Beside) {
            run(&over, call, 5, blocking).map_err(words)?;
            return works(&without);
        }
        // A rank that needs nothing of the lost one may succeed before the loss is noticed.
        let error = loop {
            if let Err(error) = run(&over, call, 5, blocking) {
                break error;
            }
            world.device().progress().map_err(|error| error.to_string())?;
        };
        if error.lost_rank() != Some(2) {
            return Err(format!("{name}: rank {} is told {error}", world.rank()));
        }
        works(&without)
    });
}

#[test]
fn a_lost_member_fails_every_collective_for_all_others() {
    for (number, (name, call)) in INTRA.into_iter().enumerate() {
        lose(name, call, false, number % 2 == 0, number);
        lose(name, call, false, number % 2 == 1, number + 1);
    }
}

#[test]
fn a_lost_member_of_either_group_fails_every_collective_between_them() {
    for (number, (name, call)) in INTER.into_iter().enumerate() {
        lose(name, call, true, number % 2 == 0, number);
        lose(name, call, true, number % 2 == 1, number + 1);
    }
}
