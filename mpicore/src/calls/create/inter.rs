//! Makes intercommunicators (MPI-4.1 sections 7.4.2 and 7.6): of two groups whose leaders can exchange messages, or of
//! parts of both groups of an intercommunicator.

use std::sync::Arc;

use mpjdev::Call;

use super::{SplitKey, alike, highest_of_both};
use crate::collective::inter::{self, InterMember};
use crate::collective::{self, Blocks};
use crate::communicator::{Communicator, Origin};
use crate::error::Error;
use crate::group::Group;
use crate::memory::{Input, Output};
use crate::plan::{Plan, Route, Tag};
use crate::process::{Process, fingerprint};

/// Tells [`Communicator::create_inter`] where the leader of the other group is.
#[derive(Debug, Clone, Copy)]
pub struct RemoteLeader<'a> {
    /// A communicator that contains both leaders.
    pub peers: &'a Communicator,
    /// The rank of the other leader in `peers`.
    pub leader: u32,
    /// The tag of the messages that the leaders exchange in `peers`.
    pub tag: i32,
}

impl Communicator {
    /// Makes an intercommunicator of this communicator's group and another one: MPI_Intercomm_create. Collective over
    /// this one; only the rank `leader` uses `other`.
    ///
    /// # Errors
    /// [`Error::Overlap`] on all ranks of both groups if they are not disjoint; [`Error::Leader`] if the leader has
    /// failed or has passed no other group; as [`Communicator::dup`].
    pub fn create_inter(
        &self,
        leader: u32,
        other: Option<RemoteLeader<'_>>,
    ) -> Result<Self, Error> {
        let other = other.filter(|_| self.rank() == leader);
        let ranks: Vec<u64> = self.group().iter().map(u64::from).collect();
        let there = self.exchange(leader, other, ranks)?;
        let remote = Group::of_ranks(there.into_iter().map(|rank| rank as u32))?;
        if let Some(rank) = self.group().intersection(&remote).iter().next() {
            return Err(Error::Overlap { rank });
        }
        let salt = self.group().iter().chain(remote.iter()).fold(0, |salt: u32, rank| salt ^ rank);
        let id = self.agree(salt, |words| {
            let here = self.highest(Call::IntercommCreate, words)?;
            let there = self.exchange(leader, other, here.clone())?;
            Ok(highest_of_both(here, &there))
        })?;
        let origin = Origin::of(self.group().clone(), self.rank());
        self.child(id, Origin { remote: Some(remote), ..origin })
    }

    /// Makes one communicator of both groups of an intercommunicator: MPI_Intercomm_merge. The group with `high`
    /// comes after the other one; if both give the same, the one with the lower first job rank comes first.
    /// Collective.
    ///
    /// # Errors
    /// [`Error::Kind`] on an intracommunicator; as [`Communicator::dup`].
    pub fn merge(&self, high: bool) -> Result<Self, Error> {
        let call = Call::IntercommMerge;
        let Some(remote) = self.remote_group() else {
            return Err(Error::Kind { call: "a merge", kind: "intracommunicator" });
        };
        let there =
            self.highest_there(call, vec![high.into()], self.next_number())?.run_and_keep()?;
        let first = |group: &Group| group.iter().next();
        let is_behind = match (high, there == [1]) {
            (high, there) if high != there => high,
            _ => first(self.group()) > first(remote),
        };
        let (low, high) = if is_behind { (remote, self.group()) } else { (self.group(), remote) };
        let group = low.union(high);
        let id = self.agree(self.salt(), |words| self.highest(call, words))?;
        let rank = group.rank_of(self.job_rank());
        let rank = rank.ok_or(Error::NotMember { rank: self.job_rank() })?;
        self.child(id, Origin::of(group, rank))
    }

    /// Returns the words of the other group, on all ranks of this one: the leaders exchange them.
    fn exchange(
        &self,
        leader: u32,
        other: Option<RemoteLeader<'_>>,
        words: Vec<u64>,
    ) -> Result<Vec<u64>, Error> {
        let call = Call::IntercommCreate;
        let told = match other {
            Some(other) => other.tell(words),
            None => Err(Error::Leader { leader }),
        };
        let len = told.as_ref().map_or(u64::MAX, |words| words.len() as u64);
        let len = self.bcast_words(call, vec![len], leader)?[0];
        if len == u64::MAX {
            return Err(told.err().unwrap_or(Error::Leader { leader }));
        }
        let words = told.unwrap_or_else(|_| vec![0; len as usize]);
        self.bcast_words(call, words, leader)
    }

    /// Makes an intercommunicator of two groups without common members, which need no communicators:
    /// MPI_Intercomm_create_from_groups. `leader` is a rank of the group `here`; only that rank uses `there`, the other
    /// group with the rank of its leader. Calls that are made at the same time have different texts.
    ///
    /// # Errors
    /// As [`Communicator::create_from_group`] and [`Communicator::create_inter`].
    pub fn create_inter_from_groups(
        process: &Arc<Process>,
        (here, leader): (&Group, u32),
        there: Option<(&Group, u32)>,
        text: &[u8],
    ) -> Result<Self, Error> {
        let own = Self::create_from_group(process, here, text)?;
        let there = there.filter(|_| own.rank() == leader);
        let leaders = there.map(|(there, other)| {
            let mut both = [here.job_rank(leader)?, there.job_rank(other)?];
            let is_first = both[0] < both[1];
            both.sort_unstable();
            let text = [b"leaders ", text].concat();
            let peers = Self::create_by_text(process, &Group::of_ranks(both)?, &text)?;
            Ok::<_, Error>((peers, u32::from(is_first)))
        });
        let leaders = leaders.transpose();
        let other = leaders.as_ref().ok().and_then(Option::as_ref);
        let other = other.map(|(peers, leader)| RemoteLeader { peers, leader: *leader, tag: 0 });
        // A leader that has failed takes part, so that the ranks of its group learn of it.
        let made = own.create_inter(leader, other);
        leaders.and(made)
    }

    /// Divides an intercommunicator: the ranks of both groups that have the same color get one.
    pub(super) fn divide_inter(&self, to: SplitKey) -> Result<Option<Self>, Error> {
        let color = to.color.map_or(u64::MAX, u64::from);
        let words = vec![color, u64::from(to.key as u32)];
        let (here, there) = self.gather_both(Call::Split, words)?;
        let remote = self.remote_group().ok_or_else(not_inter)?;
        let (here, there) = (alike(self.group(), &here, color)?, alike(remote, &there, color)?);
        let is_part = to.color.is_some() && !there.is_empty();
        let remote = Some(there);
        self.part_of(Call::Split, is_part.then_some(here), |origin| Origin { remote, ..origin })
    }

    /// Makes an intercommunicator of parts of both groups; each rank gives the part of its own group.
    pub(super) fn create_inter_part(&self, part: &Group) -> Result<Option<Self>, Error> {
        let member = |place: Option<u32>| place.map_or(u64::MAX, u64::from);
        // Each rank tells the other group its place in the part, and its own group a hash of the part.
        let hash = fingerprint(part.iter());
        let words = vec![member(part.rank_of(self.job_rank())), hash];
        let (here, there) = self.gather_both(Call::Create, words)?;
        let remote = self.remote_group().ok_or_else(not_inter)?;
        let mut places: Vec<_> = there.chunks_exact(2).map(|words| words[0]).zip(0..).collect();
        places.retain(|(place, _)| *place != u64::MAX);
        places.sort_unstable();
        let ranks: Vec<u32> = places.into_iter().map(|(_, rank)| rank).collect();
        let there = remote.incl(&ranks)?;
        let differing = here.chunks_exact(2).position(|words| words[1] != hash);
        let is_member = part.rank_of(self.job_rank()).is_some();
        let takes_part = is_member && !there.is_empty() && differing.is_none();
        let remote = Some(there);
        let group = takes_part.then(|| part.clone());
        let made = self.part_of(Call::Create, group, |origin| Origin { remote, ..origin })?;
        differing.map_or(Ok(made), |rank| Err(Error::GroupsDiffer { rank: rank as u32 }))
    }

    /// Returns the words of all ranks of this group, and those of the other group, each in the order of ranks.
    fn gather_both(&self, call: Call, words: Vec<u64>) -> Result<(Vec<u64>, Vec<u64>), Error> {
        let len = words.len() as u64;
        let schedule = collective::allgather(self.member()?, Some(len), len)?;
        let output = Output::keeping(vec![0; words.len() * self.size() as usize]);
        let own = Some(Box::new(self.group().clone()));
        let mut work = self.workspace().with(schedule);
        work.fill((Input::keeping(words.clone()), output), None)?;
        let (context, tag) = (self.collective_context(), Tag::OfCall(self.next_number()));
        let here =
            Plan::new(self, call, Route { peers: own, context, tag }, work).run_and_keep()?;
        let blocks = Blocks::Equal { count: len };
        let schedule = inter::allgather(self.inter_member()?, len, blocks)?;
        let output = Output::keeping(vec![0; words.len() * self.peers().size() as usize]);
        let there = self.plan_once(call, schedule, (Input::keeping(words), output), None)?;
        Ok((here, there.run_and_keep()?))
    }
}

fn not_inter() -> Error {
    Error::Kind { call: "a call between groups", kind: "intracommunicator" }
}

impl RemoteLeader<'_> {
    /// Sends these words to the other leader, and returns its words.
    fn tell(&self, words: Vec<u64>) -> Result<Vec<u64>, Error> {
        let len = self.swap(vec![words.len() as u64], 1)?[0];
        let len = usize::try_from(len).ok().filter(|len| *len <= self.peers.device().size());
        let Some(len) = len else { return Err(Error::Leader { leader: self.leader }) };
        self.swap(words, len)
    }

    /// Exchanges words with the other leader, whose number of words is known.
    fn swap(&self, words: Vec<u64>, expected: usize) -> Result<Vec<u64>, Error> {
        let job_rank = self.peers.peers().job_rank(self.leader)?;
        let (peers, context) = (Some(Box::new(Group::of_ranks([job_rank])?)), self.peers.context());
        let route = Route { peers, context, tag: Tag::own(self.tag) };
        swap(self.peers, Call::IntercommCreate, route, words, expected)
    }
}

/// Exchanges words with the one rank of a route, whose number of words is known.
pub(super) fn swap(
    own: &Communicator,
    call: Call,
    route: Route,
    words: Vec<u64>,
    expected: usize,
) -> Result<Vec<u64>, Error> {
    let blocks = [words.len() as u64, expected as u64].map(|count| Blocks::Equal { count });
    let schedule = inter::alltoall(InterMember::new(0, 1, 1)?, blocks[0], blocks[1])?;
    let buffers = (Input::keeping(words), Output::keeping(vec![0; expected]));
    let mut work = own.workspace().with(schedule);
    work.fill(buffers, None)?;
    Plan::new(own, call, route, work).run_and_keep()
}
