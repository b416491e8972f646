//! Reduces, with the results for all ranks of an intracommunicator.

use super::bcast::down;
use super::hosts::{HostTree, Hosts};
use super::partial::{Free, Partial};
use super::place::check_total;
use super::steps::Steps;
use super::tree::Kin;
use super::{
    Buffer, CollectiveError, Member, Operands, Order, Place, Schedule, Scratch, doublings,
};

/// Which data pairs of ranks exchange in an allreduce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exchange {
    /// All data, with the fewest messages.
    Whole,
    /// Half of the data, until each rank has the results of one part; then the parts. This takes twice the messages,
    /// but the amount of data does not grow with the number of ranks.
    Halves,
}

/// Combines `count` elements of all ranks and gives the results to all ranks: MPI_Allreduce (MPI-4.1 section 6.9.6), by
/// recursive doubling, or by recursive halving and doubling. If the number of ranks is not a power of two, surplus
/// ranks among the first ones pass their operands to the next rank at the beginning, and get the results from it at the
/// end.
///
/// Operands are combined in the order of ranks, and associated in the same way for all elements and for each kind of
/// exchange, so all ranks get the same bits. All ranks must exchange the same data.
///
/// # Errors
/// [`CollectiveError::Count`] if `count` is more than `i64::MAX`.
///
/// ```
/// use mpicore::collective::{Exchange, Member, Operands, allreduce};
/// let schedule = allreduce(Member::new(0, 8)?, 1, Operands::Input, Exchange::Whole)?;
/// assert_eq!((schedule.rounds().count(), schedule.messages()), (3, 6));
/// let schedule = allreduce(Member::new(0, 8)?, 8000, Operands::Input, Exchange::Halves)?;
/// assert_eq!((schedule.rounds().count(), schedule.messages()), (6, 12));
/// # Ok::<(), mpicore::collective::CollectiveError>(())
/// ```
pub fn allreduce(
    member: Member,
    count: u64,
    operands: Operands,
    exchange: Exchange,
) -> Result<Schedule, CollectiveError> {
    Schedule::of(|steps| allreduce_steps(steps, member, (count, operands, Order::Ranks), exchange))
}

/// Takes the steps of [`allreduce`]. If the order is free, those of hosts whose ranks are not consecutive are combined
/// host by host.
#[inline]
pub(super) fn allreduce_steps(
    steps: &mut impl Steps,
    member: Member,
    (count, operands, order): (u64, Operands, Order),
    exchange: Exchange,
) -> Result<(), CollectiveError> {
    check_total(count, 1)?;
    let output = Place::first(Buffer::Output, count);
    let held = Place::first(operands.buffer(), count);
    let scratch = Place::first(Buffer::Scratch, count);
    let free = if held == output { Free::one(scratch) } else { Free::two(output, scratch) };
    let mut partial = Partial::new(held, free);
    let room = Scratch::Elements { count, of: operands.buffer() };
    match member.hosts_for(order) {
        None => {
            steps.name(match exchange {
                Exchange::Whole => "allreduce by recursive doubling",
                Exchange::Halves => "allreduce by recursive halving and doubling",
            });
            if Folded::of(member.size).position(member.rank).is_some() {
                steps.needs(room);
            }
            among(steps, member, |rank| rank, &mut partial, (exchange, output));
        }
        Some(hosts) => {
            by_hosts(steps, (member, hosts), (partial, room), (exchange, output));
        }
    }
    Ok(())
}

/// Takes the steps on several hosts. The first rank of each combines the operands of its host, and these ranks exchange
/// the results of the hosts. If halves are exchanged, and the numbers of hosts and ranks suit that, the ranks of a host
/// first divide the results among themselves: then all take part in the exchange between hosts, which is as long.
#[inline(never)]
fn by_hosts(
    steps: &mut impl Steps,
    (member, hosts): (Member, &Hosts),
    (mut partial, room): (Partial, Scratch),
    (exchange, output): (Exchange, Place),
) {
    if exchange == Exchange::Halves && hosts.are_equal_powers() {
        steps.name("allreduce by recursive halving and doubling, hosts last");
        steps.needs(room);
        let member = Member { rank: hosts.position(member.rank), ..member };
        return among(steps, member, |at| hosts.rank_at(at), &mut partial, (exchange, output));
    }
    steps.name(match exchange {
        Exchange::Whole => "allreduce by recursive doubling between hosts",
        Exchange::Halves => "allreduce by recursive halving and doubling between hosts",
    });
    let tree = HostTree::of_host(hosts, member.rank);
    if tree.num_below() > 0 || tree.above().is_none() {
        steps.needs(room);
    }
    for child in tree.below() {
        steps.end_round();
        steps.receive(child, partial.landing());
        partial.absorb_higher(steps);
    }
    steps.end_round();
    match tree.above() {
        Some(parent) => {
            steps.send(parent, partial.held());
            steps.end_round();
        }
        None => {
            let rank_at = |host| hosts.first_of(host);
            among(steps, hosts.between(), rank_at, &mut partial, (exchange, output));
            steps.end_round();
        }
    }
    down(steps, &tree, output.count().unwrap_or(0));
}

/// Combines what ranks hold, and gives the results to all of them. The algorithm numbers them by `member`.
#[inline]
fn among(
    steps: &mut impl Steps,
    member: Member,
    rank_at: impl Fn(u32) -> u32,
    partial: &mut Partial,
    (exchange, output): (Exchange, Place),
) {
    let folded = Folded::of(member.size);
    let Some(position) = folded.position(member.rank) else {
        let next = rank_at(member.rank + 1);
        steps.send(next, partial.held());
        steps.end_round();
        steps.receive(next, output);
        return;
    };
    let handed_over = folded.handed_over(position, member.rank).map(&rank_at);
    if let Some(lower) = handed_over {
        steps.receive(lower, partial.landing());
        partial.absorb_lower(steps);
    }
    let partners = doublings(folded.positions).map(|distance| {
        let partner = position ^ distance;
        Partner { rank: rank_at(folded.rank_at(partner)), is_lower: partner < position }
    });
    match exchange {
        Exchange::Whole => exchange_whole(steps, partial, partners, output),
        Exchange::Halves => exchange_halves(steps, partial, partners, output),
    }
    if let Some(lower) = handed_over {
        steps.end_round();
        steps.send(lower, output);
    }
}

/// A rank to exchange data with.
struct Partner {
    rank: u32,
    /// Whether its data come from lower ranks.
    is_lower: bool,
}

fn exchange_whole(
    steps: &mut impl Steps,
    partial: &mut Partial,
    partners: impl Iterator<Item = Partner>,
    result: Place,
) {
    for Partner { rank, is_lower } in partners {
        steps.end_round();
        steps.send(rank, partial.held());
        steps.receive(rank, partial.landing());
        partial.absorb(steps, is_lower);
    }
    partial.settle(steps, result);
}

fn exchange_halves(
    steps: &mut impl Steps,
    partial: &mut Partial,
    partners: impl Iterator<Item = Partner>,
    result: Place,
) {
    // `kept` are the results that this rank goes on with; `theirs` are the results that each partner has taken over.
    let (mut kept, mut theirs) = (result, Vec::new());
    for Partner { rank, is_lower } in partners {
        let (keep, give) = kept.halves(is_lower);
        steps.end_round();
        steps.send(rank, partial.give_half(is_lower));
        steps.receive(rank, partial.landing());
        partial.absorb(steps, is_lower);
        theirs.push((rank, kept, give));
        kept = keep;
    }
    partial.settle(steps, kept);
    for (rank, both, taken) in theirs.into_iter().rev() {
        steps.end_round();
        steps.send(rank, kept);
        steps.receive(rank, taken);
        kept = both;
    }
}

/// The ranks that take part in recursive doubling. If there are too many ranks by `n`, only the odd ones of the first
/// `2 * n` ranks take part.
#[derive(Debug, Clone, Copy)]
struct Folded {
    /// Number of ranks that take part: a power of two.
    positions: u32,
    /// Number of ranks that do not.
    extra: u32,
}

impl Folded {
    fn of(size: u32) -> Self {
        let positions = 1 << size.ilog2();
        Self { positions, extra: size - positions }
    }

    /// Returns the position of a rank among those that take part, if it does.
    fn position(&self, rank: u32) -> Option<u32> {
        let is_beyond = rank >= 2 * self.extra;
        let among_pairs = (rank % 2 == 1).then_some(rank / 2);
        if is_beyond { Some(rank - self.extra) } else { among_pairs }
    }

    fn rank_at(&self, position: u32) -> u32 {
        if position < self.extra { 2 * position + 1 } else { position + self.extra }
    }

    /// Returns the rank that passes its operands to the rank at `position`, if there is one.
    fn handed_over(&self, position: u32, rank: u32) -> Option<u32> {
        (position < self.extra).then(|| rank - 1)
    }
}
