//! Makes communicators (MPI-4.1 sections 7.4 and 7.6): their members agree on an id.
//!
//! The ranks exchange words by collective calls on an existing communicator or, if only some of its members make the
//! call, by schedules on their group. Between two groups without a common communicator, the leaders exchange words for
//! their groups. Reports show all of this under the name of the call that the user made.
//!
//! - `cartesian.rs`, `graph.rs`: communicators with a grid or a graph.
//! - `creating.rs`: duplication without waiting.
//! - `inter.rs`: intercommunicators, and communicators from them.
//! - `worlds.rs`: intercommunicators with ranks that were spawned, or met at a port.

use std::sync::Arc;

use mpjdev::Call;

use crate::collective::{self, Exchange, Member, Operands, Schedule};
use crate::communicator::{Communicator, Copied, Origin, members_of};
use crate::error::Error;
use crate::group::Group;
use crate::memory::{Input, Output, Reduction};
use crate::plan::claim::Claim;
use crate::plan::{Plan, Route, Tag};
use crate::process::context_ids::{Agreement, Round};
use crate::process::{Process, fingerprint, place_of_text};
use crate::topology::Topology;

mod cartesian;
mod creating;
mod graph;
mod inter;
pub mod worlds;

pub use creating::{Created, Creating};
pub use inter::RemoteLeader;

/// Determines which communicator a rank gets from [`Communicator::split`], and its order there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitKey {
    /// Ranks of the same color share a communicator; ranks without a color get none: MPI_UNDEFINED.
    pub color: Option<u32>,
    /// The rank's order in its communicator; ranks with equal keys keep their order.
    pub key: i32,
}

impl Communicator {
    /// Makes a communicator with the same groups, topology and error handler, and with the attributes that their keys
    /// copy: MPI_Comm_dup. Collective.
    ///
    /// A copy callback that fails concerns only its rank: the other ranks get their duplicate, in which this rank does
    /// not take part, so calls there that need it do not end. A program whose callback may fail must inform the other
    /// ranks.
    ///
    /// # Errors
    /// [`Error::Contexts`], on all members; [`Error::Callback`] if a copy callback of an attribute fails, after all
    /// members have agreed; the loss of a member; what made the device unusable.
    pub fn dup(&self) -> Result<Self, Error> {
        let copied = self.copy_attributes();
        let id = self.agree(self.salt(), |words| self.highest(Call::Dup, words))?;
        self.twin(id, copied)
    }

    /// Makes a communicator of the same ranks with nothing attached, for the messages of something else. Collective on
    /// an intracommunicator; reports name `call`.
    ///
    /// # Errors
    /// [`Error::Contexts`], on all members; the loss of a member; what made the device unusable.
    pub(crate) fn apart(&self, call: Call) -> Result<Self, Error> {
        let id = self.agree(self.salt(), |words| self.highest(call, words))?;
        self.child(id, Origin::of(self.group().clone(), self.rank()))
    }

    /// Makes a communicator with the same groups under another id.
    pub(super) fn twin(&self, id: u32, copied: Copied) -> Result<Self, Error> {
        let (attributes, failure) = copied.take();
        let (remote, topology) = (self.remote_group().cloned(), self.topology().cloned());
        let group = self.group().clone();
        let origin = Origin { remote, topology, attributes, ..Origin::of(group, self.rank()) };
        // The twin is made in any case: dropping it deletes what was copied before a callback failed.
        let twin = self.child(id, origin)?;
        failure.map_or(Ok(twin), Err)
    }

    /// Divides a communicator: MPI_Comm_split. Collective. On an intercommunicator, the ranks of both groups that have
    /// the same color get an intercommunicator, and ranks whose color nobody in the other group has get `None`.
    ///
    /// # Errors
    /// As [`Communicator::dup`].
    pub fn split(&self, to: SplitKey) -> Result<Option<Self>, Error> {
        if self.is_inter() { self.divide_inter(to) } else { self.divide(to, None) }
    }

    /// Divides an intracommunicator; the part of this rank has this topology.
    pub(super) fn divide(
        &self,
        to: SplitKey,
        topology: Option<Topology>,
    ) -> Result<Option<Self>, Error> {
        let color = to.color.map_or(u64::MAX, u64::from);
        let all = self.gather_words(Call::Split, vec![color, u64::from(to.key as u32)])?;
        let group = to.color.map(|_| alike(self.group(), &all, color)).transpose()?;
        self.part(Call::Split, group, topology)
    }

    /// Divides a communicator into the ranks of each host: MPI_Comm_split_type with MPI_COMM_TYPE_SHARED.
    /// Collective.
    ///
    /// # Errors
    /// As [`Communicator::split`].
    pub fn split_by_host(&self, key: i32) -> Result<Option<Self>, Error> {
        self.split(SplitKey { color: Some(self.device().host()), key })
    }

    /// Makes a communicator of the members of `group`: MPI_Comm_create. Collective over this communicator; the groups
    /// that different ranks give must be equal or disjoint. Ranks outside their group get `None`. On an
    /// intercommunicator, all ranks of a group give the same part of that group, and the members of both parts get an
    /// intercommunicator, unless one of the parts is empty.
    ///
    /// # Errors
    /// As [`Communicator::split`]; [`Error::NotMember`] if the group has a rank that is not in this communicator;
    /// [`Error::GroupsDiffer`] on all ranks that give a group, if not all members of that group give the same.
    pub fn create(&self, group: &Group) -> Result<Option<Self>, Error> {
        self.check_members(group)?;
        if self.is_inter() {
            return self.create_inter_part(group);
        }
        let is_member = group.rank_of(self.job_rank()).is_some();
        let own = fingerprint(group.iter());
        let all = self.gather_words(Call::Create, vec![own])?;
        let members = self.group().iter().zip(all).zip(0..);
        let mut others = members.filter(|((member, given), _)| {
            is_member && *given != own && group.rank_of(*member).is_some()
        });
        let differing = others.next().map(|(_, rank)| rank);
        // The other ranks agree on an id in any case, so this rank must take part.
        let takes_part = is_member && differing.is_none();
        let part = self.part(Call::Create, takes_part.then(|| group.clone()), None)?;
        differing.map_or(Ok(part), |rank| Err(Error::GroupsDiffer { rank }))
    }

    /// Lets all ranks of an intracommunicator agree on an id. Ranks with a `group` get its communicator.
    pub(super) fn part(
        &self,
        call: Call,
        group: Option<Group>,
        topology: Option<Topology>,
    ) -> Result<Option<Self>, Error> {
        self.part_of(call, group, |origin| Origin { topology, ..origin })
    }

    /// Lets all ranks agree on an id. Ranks with a `group` get its communicator, to which `more` adds properties.
    pub(super) fn part_of(
        &self,
        call: Call,
        group: Option<Group>,
        more: impl FnOnce(Origin) -> Origin,
    ) -> Result<Option<Self>, Error> {
        let id = self.agree(self.salt(), |words| self.highest(call, words))?;
        let Some(group) = group else {
            self.process().leave(id);
            return Ok(None);
        };
        let rank = group.rank_of(self.job_rank());
        let rank = rank.ok_or(Error::NotMember { rank: self.job_rank() })?;
        self.child(id, more(Origin::of(group, rank))).map(Some)
    }

    /// Makes a communicator of the members of `group`; only they call it: MPI_Comm_create_group. Threads that call it
    /// at the same time give different tags.
    ///
    /// # Errors
    /// As [`Communicator::create`]; [`Error::NotMember`] also if this rank is not in the group; [`mpjdev::Error::Tag`] for
    /// a negative tag.
    pub fn create_group(&self, group: &Group, tag: i32) -> Result<Self, Error> {
        self.check_members(group)?;
        if tag < 0 {
            return Err(mpjdev::Error::Tag { tag }.into());
        }
        // A call that fails since a member is lost may leave messages behind, and the program repeats it with a smaller
        // group. So the tag of the messages depends on the group, too.
        let hash = fingerprint(group.iter());
        let of_group = tag ^ (hash as i32 & i32::MAX);
        let text = [&tag.to_le_bytes()[..], &hash.to_le_bytes()].concat();
        let tags = Tag::Own { number: tag, tag: of_group };
        self.agree_among(group, (self.group_context(), tags), &text)
    }

    /// Makes a communicator of the members of `group`, which need no common communicator; only they call it:
    /// MPI_Comm_create_from_group. Threads that call it at the same time give different texts.
    ///
    /// # Errors
    /// As [`Communicator::create_group`]; [`Error::Texts`].
    pub fn create_from_group(
        process: &Arc<Process>,
        group: &Group,
        text: &[u8],
    ) -> Result<Self, Error> {
        Self::create_by_text(process, group, &[b"group ", text].concat())
    }

    /// [`Communicator::create_from_group`] with a text of the library, which contains that of the program.
    pub(super) fn create_by_text(
        process: &Arc<Process>,
        group: &Group,
        text: &[u8],
    ) -> Result<Self, Error> {
        // The group is part of the text for the same reason as in `create_group`.
        let text = [&fingerprint(group.iter()).to_le_bytes()[..], text].concat();
        let (context, tag) = place_of_text(&text);
        Self::self_comm(process.clone())?.agree_among(group, (context, Tag::own(tag)), &text)
    }

    /// Lets the members of a group agree on an id by messages of their own, in this context and with this tag. They all
    /// give the same `text`.
    pub(crate) fn agree_among(
        &self,
        group: &Group,
        (context, tag): (u32, Tag),
        text: &[u8],
    ) -> Result<Self, Error> {
        let rank = group.rank_of(self.job_rank());
        let rank = rank.ok_or(Error::NotMember { rank: self.job_rank() })?;
        let member = Member::new(rank, group.size())?;
        // The ranks outside of the group have no part in the call.
        let members = members_of(group.clone());
        let of_messages = tag.of_blocking();
        let _members = self.device().call_members(context, of_messages, members)?;
        let call = Call::CreateGroup;
        let salt = context ^ (of_messages as u32).rotate_left(16);
        // The highest of each word and of its complement among all members are those of this rank if all words are equal.
        let words_of_text = text.chunks(7).flat_map(|bytes| {
            let word = bytes.iter().fold(1, |word, byte| word << 8 | u64::from(*byte));
            [word, !word]
        });
        let id = self.agree(salt, |mut words| {
            words.extend(words_of_text.clone());
            let route = Route { peers: Some(Box::new(group.clone())), context, tag };
            let highest = self.highest_of(call, route, member, words)?.run_and_keep()?;
            let is_same = highest[Agreement::WORDS..].iter().copied().eq(words_of_text.clone());
            if is_same { Ok(highest) } else { Err(Error::Texts) }
        })?;
        self.child(id, Origin::of(group.clone(), rank))
    }

    /// Agrees on an id. `tell` returns on each member the highest value of each word among all members.
    pub(super) fn agree(
        &self,
        salt: u32,
        mut tell: impl FnMut(Vec<u64>) -> Result<Vec<u64>, Error>,
    ) -> Result<u32, Error> {
        let process = self.process();
        let mut agreement = process.with_free_ids(|ids| Agreement::new(ids, salt));
        loop {
            match tell(agreement.words().map(u64::from).to_vec()) {
                Ok(words) => {
                    if let Some(id) = self.learn(&mut agreement, &words)? {
                        return Ok(id);
                    }
                }
                Err(error) => {
                    process.with_free_ids(|ids| agreement.give_up(ids));
                    return Err(error);
                }
            }
        }
    }

    /// Ends a round of an agreement. Returns the id if it was the last round.
    pub(super) fn learn(
        &self,
        agreement: &mut Agreement,
        words: &[u64],
    ) -> Result<Option<u32>, Error> {
        let words = [words[0] as u32, words[1] as u32];
        self.process().with_free_ids(|ids| match agreement.learn(ids, words) {
            Round::Agreed(id) => Ok(Some(id)),
            Round::Again => Ok(None),
            Round::Exhausted => Err(Error::Contexts { most: ids.most() }),
        })
    }

    /// Returns the highest value of each word among all ranks, of both groups.
    pub(super) fn highest(&self, call: Call, words: Vec<u64>) -> Result<Vec<u64>, Error> {
        let here = self.highest_here(call, words, self.next_number())?.run_and_keep()?;
        if !self.is_inter() {
            return Ok(here);
        }
        let there = self.highest_there(call, here.clone(), self.next_number())?.run_and_keep()?;
        Ok(highest_of_both(here, &there))
    }

    /// Plans a call that finds the highest value of each word in this rank's group.
    pub(super) fn highest_here(
        &self,
        call: Call,
        words: Vec<u64>,
        number: i32,
    ) -> Result<Plan<'_>, Error> {
        let (peers, context) = (Some(Box::new(self.group().clone())), self.collective_context());
        let tag = Tag::OfCall(number);
        let plan = self.highest_of(call, Route { peers, context, tag }, self.member()?, words)?;
        let is_checked = self.is_checked() && !self.is_inter();
        Ok(plan.claiming(is_checked.then(|| Claim::of_call(call, self.rank(), None, None))))
    }

    /// Plans a call that finds the highest value of each word in the remote group.
    pub(super) fn highest_there(
        &self,
        call: Call,
        words: Vec<u64>,
        number: i32,
    ) -> Result<Plan<'_>, Error> {
        let schedule = collective::inter::allreduce(self.inter_member()?, words.len() as u64)?;
        let (peers, context) = (None, self.collective_context());
        let output = Output::keeping(vec![0; words.len()]);
        let buffers = (Input::keeping(words), output);
        let route = Route { peers, context, tag: Tag::OfCall(number) };
        let mut work = self.workspace().with(schedule);
        work.fill(buffers, Some(Reduction::highest()))?;
        Ok(Plan::new(self, call, route, work))
    }

    fn highest_of(
        &self,
        call: Call,
        route: Route,
        member: Member,
        words: Vec<u64>,
    ) -> Result<Plan<'_>, Error> {
        let (count, whole) = (words.len() as u64, Exchange::Whole);
        let schedule = collective::allreduce(member, count, Operands::InPlace, whole)?;
        let buffers = (Input::none(), Output::keeping(words));
        let mut work = self.workspace().with(schedule);
        work.fill(buffers, Some(Reduction::highest()))?;
        Ok(Plan::new(self, call, route, work))
    }

    /// Returns the words of all ranks of an intracommunicator, in the order of ranks.
    pub(crate) fn gather_words(&self, call: Call, words: Vec<u64>) -> Result<Vec<u64>, Error> {
        let (schedule, buffers) = self.gathering(words)?;
        self.plan_once(call, schedule, buffers, None)?.run_and_keep()
    }

    /// Starts [`Communicator::gather_words`]. `done` gets the outcome, in some call that makes progress.
    pub(crate) fn gather_words_then(
        &self,
        call: Call,
        words: Vec<u64>,
        done: impl FnOnce(Result<Vec<u64>, Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let (schedule, buffers) = self.gathering(words)?;
        self.plan_once(call, schedule, buffers, None)?.once()?.start_then(done);
        Ok(())
    }

    /// Returns the schedule and the buffers by which all ranks of an intracommunicator get the words of all.
    pub(crate) fn gathering(&self, words: Vec<u64>) -> Result<(Schedule, (Input, Output)), Error> {
        let len = words.len() as u64;
        let schedule = collective::allgather(self.intra("this call")?, Some(len), len)?;
        let all = Output::keeping(vec![0; words.len() * self.size() as usize]);
        Ok((schedule, (Input::keeping(words), all)))
    }

    /// Returns the words of `root` on all ranks of an intracommunicator.
    pub(crate) fn bcast_words(
        &self,
        call: Call,
        words: Vec<u64>,
        root: u32,
    ) -> Result<Vec<u64>, Error> {
        let schedule = collective::bcast(self.intra("this call")?, root, words.len() as u64)?;
        self.plan_once(call, schedule, (Input::none(), Output::keeping(words)), None)?
            .run_and_keep()
    }

    /// Refuses groups with ranks that are not in this communicator.
    fn check_members(&self, group: &Group) -> Result<(), Error> {
        match group.difference(self.group()).iter().next() {
            Some(rank) => Err(Error::NotMember { rank }),
            None => Ok(()),
        }
    }
}

/// Returns the ranks of a group that have given this color, in the order of their keys. The words are the color and the
/// key of each rank.
pub(super) fn alike(group: &Group, words: &[u64], color: u64) -> Result<Group, Error> {
    let ranks = (0..).zip(words.chunks_exact(2));
    let alike = ranks.filter(|(_, words)| words[0] == color);
    let mut members: Vec<_> = alike.map(|(rank, words)| (words[1] as u32 as i32, rank)).collect();
    members.sort_unstable();
    let ranks: Vec<u32> = members.into_iter().map(|(_, rank)| rank).collect();
    Ok(group.incl(&ranks)?)
}

/// Returns the higher one of each pair of words.
pub(super) fn highest_of_both(mut here: Vec<u64>, there: &[u64]) -> Vec<u64> {
    here.iter_mut().zip(there).for_each(|(here, there)| *here = (*here).max(*there));
    here
}
