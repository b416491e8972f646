//! Collectives between the two groups of an intercommunicator (MPI-4.1 section 6.2.3), as schedules.
//!
//! Peers are the ranks of the other group, the *remote* one. Numbers from the size of that group on stand for the ranks
//! of the own group, to which only [`reduce_scatter`] sends. There is no working in place here, and no scan. Rooted
//! collectives move data in one direction, between the root and the ranks of its remote group, which name the root.

use super::pieces::{self, Division, packed};
use super::place::{check_entries, check_total};
use super::schedule::Draft;
use super::steps::Steps;
use super::{Blocks, Buffer, CollectiveError, Place, Schedule, Scratch};

/// A rank of an intercommunicator, for which a schedule is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InterMember {
    rank: u32,
    size: u32,
    remote: u32,
}

/// Says where the root of a collective is, from the view of one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Root {
    /// This rank is the root: MPI_ROOT.
    Here,
    /// The root is another rank of this group, so nothing happens here: MPI_PROC_NULL.
    Beside,
    /// The root is this rank of the remote group.
    Remote(u32),
}

impl InterMember {
    /// Makes the member with this rank in a group of `size` ranks, whose remote group has `remote` ranks.
    ///
    /// # Errors
    /// [`CollectiveError::Rank`] if there is no such rank.
    pub fn new(rank: u32, size: u32, remote: u32) -> Result<Self, CollectiveError> {
        if rank >= size {
            return Err(CollectiveError::Rank { rank: rank.into(), size });
        }
        Ok(Self { rank, size, remote })
    }

    fn check_root(self, root: Root) -> Result<(), CollectiveError> {
        match root {
            Root::Remote(rank) if rank >= self.remote => {
                Err(CollectiveError::Root { root: rank.into(), size: self.remote })
            }
            _ => Ok(()),
        }
    }
}

/// Waits until every rank of both groups has called it: MPI_Barrier (MPI-4.1 section 6.3). The first rank of each group
/// collects signals from all ranks of the other group, exchanges a signal with the first rank there, and releases the
/// other ranks there.
pub fn barrier(member: InterMember) -> Schedule {
    let mut draft = Draft::new("barrier between groups by their first ranks");
    if member.rank > 0 {
        draft.send(0, Place::NOTHING);
        draft.end_round();
        draft.receive(0, Place::NOTHING);
        return draft.finish();
    }
    draft.send(0, Place::NOTHING);
    for peer in 0..member.remote {
        draft.receive(peer, Place::NOTHING);
    }
    draft.end_round();
    hand_back(&mut draft, member, Place::NOTHING, Place::NOTHING);
    draft.finish()
}

/// Copies `count` elements of the root's output to the outputs of the remote group: MPI_Bcast (MPI-4.1 section 6.4).
/// The root sends to each. The only buffer is the output.
///
/// # Errors
/// [`CollectiveError::Root`] if the root is no rank, [`CollectiveError::Count`] if `count` is more than
/// `i64::MAX`.
///
/// ```
/// use mpicore::collective::inter::{InterMember, Root, bcast};
/// let from_rank_2 = bcast(InterMember::new(0, 2, 5)?, Root::Remote(2), 10)?;
/// let to_the_other_group = bcast(InterMember::new(2, 5, 2)?, Root::Here, 10)?;
/// assert_eq!((from_rank_2.messages(), to_the_other_group.messages()), (1, 2));
/// # Ok::<(), mpicore::collective::CollectiveError>(())
/// ```
pub fn bcast(member: InterMember, root: Root, count: u64) -> Result<Schedule, CollectiveError> {
    member.check_root(root)?;
    check_total(count, 1)?;
    let all = Place::first(Buffer::Output, count);
    let mut draft = Draft::new("bcast to the remote group by messages of the root");
    match root {
        Root::Here => (0..member.remote).for_each(|peer| draft.send(peer, all)),
        Root::Beside => {}
        Root::Remote(rank) => draft.receive(rank, all),
    }
    Ok(draft.finish())
}

/// Collects one block of each rank of the remote group at the root: MPI_Gather or MPI_Gatherv (MPI-4.1 section 6.5).
/// `send` is the number of elements of those ranks' input; `receive` describes the blocks of the root's output. Each
/// is used only where that buffer exists.
///
/// # Errors
/// [`CollectiveError::Root`] if the root is no rank, [`CollectiveError::Entries`] unless there is one block
/// for each rank of the remote group, [`CollectiveError::Block`] or [`CollectiveError::Count`] if blocks end beyond
/// `i64::MAX`.
pub fn gather(
    member: InterMember,
    root: Root,
    send: u64,
    receive: Blocks<'_>,
) -> Result<Schedule, CollectiveError> {
    member.check_root(root)?;
    let mut draft = Draft::new("gather from the remote group by messages to the root");
    match root {
        Root::Here => {
            receive.check(member.remote)?;
            let peers = 0..member.remote;
            peers.for_each(|peer| draft.receive(peer, receive.of(Buffer::Output, peer)));
        }
        Root::Beside => {}
        Root::Remote(rank) => {
            check_total(send, 1)?;
            draft.send(rank, Place::first(Buffer::Input, send));
        }
    }
    Ok(draft.finish())
}

/// Sends one block of the root's input to each rank of the remote group: MPI_Scatter or MPI_Scatterv (MPI-4.1 section
/// 6.6). `send` describes the blocks of the root's input; `receive` is the number of elements of the others' output.
/// Each is used only where that buffer exists.
///
/// # Errors
/// As [`gather`].
pub fn scatter(
    member: InterMember,
    root: Root,
    send: Blocks<'_>,
    receive: u64,
) -> Result<Schedule, CollectiveError> {
    member.check_root(root)?;
    let mut draft = Draft::new("scatter to the remote group by messages of the root");
    match root {
        Root::Here => {
            send.check(member.remote)?;
            (0..member.remote).for_each(|peer| draft.send(peer, send.of(Buffer::Input, peer)));
        }
        Root::Beside => {}
        Root::Remote(rank) => {
            check_total(receive, 1)?;
            draft.receive(rank, Place::first(Buffer::Output, receive));
        }
    }
    Ok(draft.finish())
}

/// Sends one block of each rank to all ranks of the remote group: MPI_Allgather or MPI_Allgatherv (MPI-4.1 section
/// 6.7). `send` is the number of elements of the input; `receive` describes the blocks of the output, one for each
/// rank of the remote group. Ranks exchange in pairs as in [`alltoall`].
///
/// # Errors
/// [`CollectiveError::Entries`] unless there is one block for each rank of the remote group,
/// [`CollectiveError::Block`] or [`CollectiveError::Count`] if blocks end beyond `i64::MAX`.
pub fn allgather(
    member: InterMember,
    send: u64,
    receive: Blocks<'_>,
) -> Result<Schedule, CollectiveError> {
    receive.check(member.remote)?;
    check_total(send, 1)?;
    let draft = Draft::new("allgather between groups by exchange in pairs");
    Ok(exchange(draft, member, receive, |_| Place::first(Buffer::Input, send)))
}

/// Sends one block of each rank's input to each rank of the remote group: MPI_Alltoall, MPI_Alltoallv or
/// MPI_Alltoallw (MPI-4.1 section 6.8) for equal, listed or typed blocks. Ranks exchange in pairs, many at a time.
///
/// # Errors
/// [`CollectiveError::Entries`] unless there are blocks for each rank of the remote group,
/// [`CollectiveError::Block`] or [`CollectiveError::Count`] if blocks end beyond `i64::MAX`.
pub fn alltoall(
    member: InterMember,
    send: Blocks<'_>,
    receive: Blocks<'_>,
) -> Result<Schedule, CollectiveError> {
    receive.check(member.remote)?;
    send.check(member.remote)?;
    let draft = Draft::new("alltoall between groups by exchange in pairs");
    Ok(exchange(draft, member, receive, |peer| send.of(Buffer::Input, peer)))
}

/// Sends `from(peer)` to each peer and receives a block from it.
fn exchange(
    mut draft: Draft,
    member: InterMember,
    receive: Blocks<'_>,
    from: impl Fn(u32) -> Place,
) -> Schedule {
    let turns = member.size.max(member.remote);
    super::alltoall::exchange(&mut draft, member.rank, turns, |peer| {
        (peer < member.remote).then(|| (from(peer), receive.of(Buffer::Output, peer)))
    });
    draft.finish()
}

/// Combines `count` elements of all ranks of the remote group and gives the results to the root: MPI_Reduce (MPI-4.1
/// section 6.9.1). The root receives from one after the other, the last rank first, so the order of ranks is kept.
///
/// # Errors
/// [`CollectiveError::Root`] if the root is no rank, [`CollectiveError::Count`] if `count` is more than
/// `i64::MAX`.
pub fn reduce(member: InterMember, root: Root, count: u64) -> Result<Schedule, CollectiveError> {
    divided_reduce(member, root, count, Division::NONE)
}

/// Builds the schedule of [`reduce`], divided.
pub(crate) fn divided_reduce(
    member: InterMember,
    root: Root,
    count: u64,
    division: Division,
) -> Result<Schedule, CollectiveError> {
    member.check_root(root)?;
    let used = match root {
        Root::Here => [0, count],
        Root::Beside => [0, 0],
        Root::Remote(_) => [count, 0],
    };
    in_pieces(division, count, used, |steps, count| {
        steps.name("reduce from the remote group by messages to the root");
        match root {
            Root::Here => collect(steps, member, count, None),
            Root::Beside => {}
            Root::Remote(rank) => steps.send(rank, Place::first(Buffer::Input, count)),
        }
    })
}

/// Combines `count` elements of all ranks of each group and gives the results to all ranks of the other:
/// MPI_Allreduce (MPI-4.1 section 6.9.6). The first rank of each group combines the operands of the other group in
/// the order of ranks and sends the results to the first rank there, which passes them on; so all ranks of a group
/// get the same bits.
///
/// # Errors
/// [`CollectiveError::Count`] if `count` is more than `i64::MAX`.
pub fn allreduce(member: InterMember, count: u64) -> Result<Schedule, CollectiveError> {
    divided_allreduce(member, count, Division::NONE)
}

/// Builds the schedule of [`allreduce`], divided.
pub(crate) fn divided_allreduce(
    member: InterMember,
    count: u64,
    division: Division,
) -> Result<Schedule, CollectiveError> {
    in_pieces(division, count, [count, count], |steps, count| {
        steps.name("allreduce between groups by their first ranks");
        let input = Place::first(Buffer::Input, count);
        let output = Place::first(Buffer::Output, count);
        if member.rank > 0 {
            steps.send(0, input);
            steps.end_round();
            steps.receive(0, output);
            return;
        }
        collect(steps, member, count, Some(input));
        hand_back(steps, member, output, Place::first(Buffer::Scratch, count));
    })
}

/// Builds a schedule of the steps of an algorithm for each piece of `count` elements. `used` is how many elements of
/// input and output the rank uses.
fn in_pieces(
    Division { most, packing }: Division,
    count: u64,
    used: [u64; 2],
    algorithm: impl Fn(&mut dyn Steps, u64),
) -> Result<Schedule, CollectiveError> {
    check_total(count, 1)?;
    let all = |steps: &mut dyn Steps, count| -> Result<(), CollectiveError> {
        if count <= most {
            algorithm(steps, count);
            return Ok(());
        }
        pieces::in_pieces(steps, (count, most), |piece, len| {
            algorithm(piece, len);
            Ok(())
        })
    };
    Schedule::of(|draft| match packing {
        Some(packing) => {
            let operands = count.saturating_mul(packing.operands);
            packed(draft, packing, used, |copies| all(copies, operands))
        }
        None => all(draft, count),
    })
}

/// Combines the operands of the remote group in the output, from its last rank down. The first rank of that group needs
/// `for_first` to do the same; it receives it in its own last round.
fn collect(steps: &mut dyn Steps, member: InterMember, count: u64, for_first: Option<Place>) {
    steps.needs(Scratch::Elements { count, of: Buffer::Output });
    let (output, scratch) =
        (Place::first(Buffer::Output, count), Place::first(Buffer::Scratch, count));
    for peer in (0..member.remote).rev() {
        let is_first = peer + 1 == member.remote;
        if let Some(place) = for_first.filter(|_| peer == 0) {
            steps.send(0, place);
        }
        steps.receive(peer, if is_first { output } else { scratch });
        if !is_first {
            steps.reduce(scratch, output);
        }
        steps.end_round();
    }
}

/// Combines the elements of all ranks of each group and divides the results among the ranks of the other:
/// MPI_Reduce_scatter and MPI_Reduce_scatter_block (MPI-4.1 sections 6.10.1 and 6.10.2). `counts` is the number of
/// results for each rank of this group; both groups give the same sum, which is the number of elements of each input.
/// The first rank of each group combines the operands of the other group in the order of ranks, and divides the results
/// in its own group.
///
/// # Errors
/// [`CollectiveError::Entries`] unless there is a count for each rank of this group, [`CollectiveError::Count`] if
/// twice their sum is more than `i64::MAX`.
pub fn reduce_scatter(member: InterMember, counts: &[u64]) -> Result<Schedule, CollectiveError> {
    divided_reduce_scatter(member, counts, Division::NONE)
}

/// Builds the schedule of [`reduce_scatter`], divided.
pub(crate) fn divided_reduce_scatter(
    member: InterMember,
    counts: &[u64],
    Division { most, packing }: Division,
) -> Result<Schedule, CollectiveError> {
    check_entries(counts.len(), member.size)?;
    let sum = |counts: &[u64]| counts.iter().fold(0_u64, |sum, &count| sum.saturating_add(count));
    let total = sum(counts);
    check_total(total, 2)?;
    Schedule::of(|draft| {
        let Some(packing) = packing else {
            reduce_scatter_steps(draft, member, counts, (total, most));
            return Ok(());
        };
        let of_operands = counts.iter().map(|count| count.saturating_mul(packing.operands));
        let of_operands: Vec<_> = of_operands.collect();
        packed(draft, packing, [total, counts[member.rank as usize]], |copies| {
            reduce_scatter_steps(copies, member, &of_operands, (sum(&of_operands), most));
            Ok(())
        })
    })
}

/// Takes the steps of [`reduce_scatter`] for at most `most` of all `total` elements at a time.
fn reduce_scatter_steps(
    steps: &mut dyn Steps,
    member: InterMember,
    counts: &[u64],
    (total, most): (u64, u64),
) {
    steps.name("reduce_scatter between groups by their first ranks");
    if member.rank == 0 {
        steps.needs(Scratch::Elements { count: 2 * total.min(most), of: Buffer::Input });
    }
    let own = |rank| member.remote + rank;
    for piece in 0..total.div_ceil(most).max(1) {
        let first = piece * most;
        let len = most.min(total - first);
        // The results of the piece for each rank of the group: where they are in the piece and in the rank's output.
        let mut start = 0;
        let parts = (0..).zip(counts).filter_map(|(rank, &count)| {
            let (begin, end) = (first.max(start), (first + len).min(start + count));
            let (in_piece, in_output) = (begin - first, begin - start);
            start += count;
            let part = |buffer, at| Place::elements(buffer, at, end.saturating_sub(begin));
            // All ranks have a part of the first piece, also those without results.
            (piece == 0 || begin < end)
                .then(|| (rank, part(Buffer::Scratch, in_piece), part(Buffer::Output, in_output)))
        });
        let input = Place::elements(Buffer::Input, first, len);
        if member.rank > 0 {
            steps.send(0, input);
            steps.end_round();
            let own_part = parts.filter(|(rank, ..)| *rank == member.rank);
            own_part.for_each(|(_, _, output)| steps.receive(own(0), output));
            steps.end_round();
            continue;
        }
        let held = Place::first(Buffer::Scratch, len);
        let landing = Place::elements(Buffer::Scratch, len, len);
        for peer in (0..member.remote).rev() {
            let is_first = peer + 1 == member.remote;
            if peer == 0 {
                steps.send(0, input);
            }
            steps.receive(peer, if is_first { held } else { landing });
            if !is_first {
                steps.reduce(landing, held);
            }
            steps.end_round();
        }
        for (rank, part, output) in parts {
            if rank > 0 {
                steps.send(own(rank), part);
            } else {
                steps.copy(part, output);
                steps.end_round();
            }
        }
        steps.end_round();
    }
}

/// The steps of the first rank of a group after it has received from all of the remote group: it exchanges
/// `from_remote` for what the first rank there has received from this group, and passes that on to the other ranks
/// there.
fn hand_back(steps: &mut dyn Steps, member: InterMember, from_remote: Place, from_group: Place) {
    steps.send(0, from_remote);
    steps.receive(0, from_group);
    steps.end_round();
    for peer in 1..member.remote {
        steps.send(peer, from_group);
    }
}
