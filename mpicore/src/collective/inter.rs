//! Collectives between the two groups of an intercommunicator (MPI-4.1 section 6.2.3), as schedules.
//!
//! Peers are the ranks of the other group, the *remote* one. Numbers from the size of that group on stand for the ranks
//! of the own group, to which only [`reduce_scatter`] sends. There is no working in place here, and no scan. Rooted
//! collectives move data in one direction, between the root and the ranks of its remote group, which name the root.

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
    member.check_root(root)?;
    check_total(count, 1)?;
    let mut draft = Draft::new("reduce from the remote group by messages to the root");
    match root {
        Root::Here => collect(&mut draft, member, count, None),
        Root::Beside => {}
        Root::Remote(rank) => draft.send(rank, Place::first(Buffer::Input, count)),
    }
    Ok(draft.finish())
}

/// Combines `count` elements of all ranks of each group and gives the results to all ranks of the other:
/// MPI_Allreduce (MPI-4.1 section 6.9.6). The first rank of each group combines the operands of the other group in
/// the order of ranks and sends the results to the first rank there, which passes them on; so all ranks of a group
/// get the same bits.
///
/// # Errors
/// [`CollectiveError::Count`] if `count` is more than `i64::MAX`.
pub fn allreduce(member: InterMember, count: u64) -> Result<Schedule, CollectiveError> {
    check_total(count, 1)?;
    let mut draft = Draft::new("allreduce between groups by their first ranks");
    let (input, output) = (Place::first(Buffer::Input, count), Place::first(Buffer::Output, count));
    if member.rank > 0 {
        draft.send(0, input);
        draft.end_round();
        draft.receive(0, output);
        return Ok(draft.finish());
    }
    collect(&mut draft, member, count, Some(input));
    hand_back(&mut draft, member, output, Place::first(Buffer::Scratch, count));
    Ok(draft.finish())
}

/// Combines the operands of the remote group in the output, from its last rank down. The first rank of that group needs
/// `for_first` to do the same; it receives it in its own last round.
fn collect(draft: &mut Draft, member: InterMember, count: u64, for_first: Option<Place>) {
    draft.needs(Scratch::Elements { count, of: Buffer::Output });
    let (output, scratch) =
        (Place::first(Buffer::Output, count), Place::first(Buffer::Scratch, count));
    for peer in (0..member.remote).rev() {
        let is_first = peer + 1 == member.remote;
        if let Some(place) = for_first.filter(|_| peer == 0) {
            draft.send(0, place);
        }
        draft.receive(peer, if is_first { output } else { scratch });
        if !is_first {
            draft.reduce(scratch, output);
        }
        draft.end_round();
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
    check_entries(counts.len(), member.size)?;
    let total = counts.iter().fold(0_u64, |total, &count| total.saturating_add(count));
    check_total(total, 2)?;
    let mut draft = Draft::new("reduce_scatter between groups by their first ranks");
    let own = |rank| member.remote + rank;
    let input = Place::first(Buffer::Input, total);
    let output = Place::first(Buffer::Output, counts[member.rank as usize]);
    if member.rank > 0 {
        draft.send(0, input);
        draft.end_round();
        draft.receive(own(0), output);
        return Ok(draft.finish());
    }
    draft.needs(Scratch::Elements { count: 2 * total, of: Buffer::Input });
    let held = Place::first(Buffer::Scratch, total);
    let landing = Place::elements(Buffer::Scratch, total, total);
    for peer in (0..member.remote).rev() {
        let is_first = peer + 1 == member.remote;
        if peer == 0 {
            draft.send(0, input);
        }
        draft.receive(peer, if is_first { held } else { landing });
        if !is_first {
            draft.reduce(landing, held);
        }
        draft.end_round();
    }
    let mut start = 0;
    for (rank, &count) in (0..).zip(counts) {
        let block = Place::elements(Buffer::Scratch, start, count);
        if rank > 0 {
            draft.send(own(rank), block);
        } else {
            draft.copy(block, output);
            draft.end_round();
        }
        start += count;
    }
    Ok(draft.finish())
}

/// The steps of the first rank of a group after it has received from all of the remote group: it exchanges
/// `from_remote` for what the first rank there has received from this group, and passes that on to the other ranks
/// there.
fn hand_back(draft: &mut Draft, member: InterMember, from_remote: Place, from_group: Place) {
    draft.send(0, from_remote);
    draft.receive(0, from_group);
    draft.end_round();
    for peer in 1..member.remote {
        draft.send(peer, from_group);
    }
}
