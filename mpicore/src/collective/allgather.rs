//! Gathers blocks at all ranks of an intracommunicator.

use super::bcast::down;
use super::hosts::{HostTree, Hosts};
use super::place::check_total;
use super::steps::Steps;
use super::{Blocks, Buffer, CollectiveError, Member, Place, Schedule, doublings};

/// Collects one block of each rank at all ranks, in the order of ranks: MPI_Allgather (MPI-4.1 section 6.7). If the
/// number of ranks is a power of two, each rank exchanges all blocks that it has with the rank at distance 1, 2, 4 and
/// so on; otherwise blocks go around a ring. On several hosts, if each has consecutive ranks, the first rank of each
/// collects the blocks of its host, these ranks exchange those of hosts, and pass on all blocks.
///
/// `send` is the number of elements of the input. `None` is MPI_IN_PLACE: each rank's own block is already in its place
/// in the output. `receive` is the number of elements in each block of the output.
///
/// # Errors
/// [`CollectiveError::Count`] if the blocks together have more than `i64::MAX` elements.
pub fn allgather(
    member: Member,
    send: Option<u64>,
    receive: u64,
) -> Result<Schedule, CollectiveError> {
    Schedule::of(|steps| allgather_steps(steps, member, (send, receive), false))
}

/// Takes the steps of [`allgather`]. If blocks are long, those of ranks on several hosts go around a ring, so that each
/// host gets each block once, and ranks get blocks while others are under way.
#[inline]
pub(super) fn allgather_steps(
    steps: &mut impl Steps,
    member: Member,
    (send, receive): (Option<u64>, u64),
    are_long: bool,
) -> Result<(), CollectiveError> {
    if let Some(hosts) = member.hosts_of_blocks().filter(|_| !are_long) {
        return by_hosts(steps, (member, hosts), send, receive);
    }
    if !member.size.is_power_of_two() || member.hosts.is_some() && are_long {
        steps.name("allgather by a ring");
        return ring(steps, member, send, Blocks::Equal { count: receive });
    }
    check_total(receive, member.size)?;
    steps.name("allgather by recursive doubling");
    let own = Place::blocks(Buffer::Output, member.rank, 1, receive);
    own_block(steps, send, own)?;
    for distance in doublings(member.size) {
        let peer = member.rank ^ distance;
        let half = |rank| Place::blocks(Buffer::Output, rank & !(distance - 1), distance, receive);
        steps.send(peer, half(member.rank));
        steps.receive(peer, half(peer));
        steps.end_round();
    }
    Ok(())
}

/// Takes the steps on several hosts, each of which has consecutive ranks. Between them, a host sends what it has to the
/// one at distance 1, 2, 4 and so on before it.
#[inline(never)]
fn by_hosts(
    steps: &mut impl Steps,
    (member, hosts): (Member, &Hosts),
    send: Option<u64>,
    receive: u64,
) -> Result<(), CollectiveError> {
    steps.name("allgather by hosts");
    check_total(receive, member.size)?;
    check_total(send.unwrap_or(0), 1)?;
    let own = Place::blocks(Buffer::Output, member.rank, 1, receive);
    let held = send.map_or(own, |count| Place::first(Buffer::Input, count));
    let (here, first) = (hosts.positions(hosts.own()), hosts.first_of(hosts.own()));
    if member.rank != first {
        steps.send(first, held);
    } else {
        for peer in here.skip(1) {
            steps.receive(peer, Place::blocks(Buffer::Output, peer, 1, receive));
        }
        own_block(steps, send, own)?;
        let host = hosts.between();
        for distance in doublings(host.size) {
            steps.end_round();
            let some = distance.min(host.size - distance);
            let (target, source) = (host.behind(distance), host.ahead(distance));
            for from in blocks_of_hosts(hosts, host.rank, some, receive) {
                steps.send(hosts.first_of(target), from);
            }
            for into in blocks_of_hosts(hosts, source, some, receive) {
                steps.receive(hosts.first_of(source), into);
            }
        }
    }
    steps.end_round();
    down(steps, &HostTree::of_host(hosts, member.rank), receive * u64::from(member.size));
    Ok(())
}

/// Returns the places of the blocks of `some` hosts from `first` on, where the first host follows the last one: one
/// place, or two.
fn blocks_of_hosts(
    hosts: &Hosts,
    first: u32,
    some: u32,
    count: u64,
) -> impl Iterator<Item = Place> {
    let end = first + some;
    let runs = [first..end.min(hosts.count()), 0..end.saturating_sub(hosts.count())];
    runs.into_iter().filter(|run| !run.is_empty()).map(move |run| {
        let (start, end) = (hosts.positions(run.start).start, hosts.positions(run.end - 1).end);
        Place::blocks(Buffer::Output, start, end - start, count)
    })
}

/// Collects one block of each rank at all ranks, each at its own place: MPI_Allgatherv (MPI-4.1 section 6.7). The
/// blocks go around a ring, host by host. `send` is as for [`allgather`]; `receive` describes the blocks of the output.
/// If blocks of a rank have elements in common, these get the data of any of them, on the ranks to which it passes the blocks on, too.
///
/// # Errors
/// [`CollectiveError::Entries`] unless there is one block for each rank, [`CollectiveError::Block`] or
/// [`CollectiveError::Count`] if blocks end beyond `i64::MAX`.
pub fn allgatherv(
    member: Member,
    send: Option<u64>,
    receive: Blocks<'_>,
) -> Result<Schedule, CollectiveError> {
    Schedule::of(|steps| {
        steps.name("allgatherv by a ring");
        ring(steps, member, send, receive)
    })
}

/// Each rank passes on the block that it got in the round before, so that the ranks of a host come one after another.
pub(super) fn ring(
    steps: &mut impl Steps,
    member: Member,
    send: Option<u64>,
    receive: Blocks<'_>,
) -> Result<(), CollectiveError> {
    receive.check(member.size)?;
    own_block(steps, send, receive.of(Buffer::Output, member.rank))?;
    let hosts = member.hosts;
    let rank_at = |position| hosts.map_or(position, |hosts| hosts.rank_at(position));
    let position = hosts.map_or(member.rank, |hosts| hosts.position(member.rank));
    let place = Member { rank: position, ..member };
    let (next, last) = (rank_at(place.ahead(1)), rank_at(place.behind(1)));
    for distance in 1..member.size {
        let (has, gets) = (rank_at(place.behind(distance - 1)), rank_at(place.behind(distance)));
        steps.send(next, receive.of(Buffer::Output, has));
        steps.receive(last, receive.of(Buffer::Output, gets));
        steps.end_round();
    }
    Ok(())
}

/// Copies a rank's own block to its place.
fn own_block(steps: &mut impl Steps, send: Option<u64>, own: Place) -> Result<(), CollectiveError> {
    if let Some(count) = send {
        check_total(count, 1)?;
        steps.copy(Place::first(Buffer::Input, count), own);
        steps.end_round();
    }
    Ok(())
}
