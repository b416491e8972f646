//! The communicators of a random program: their members, and how communicators are made from others.

use mpicore::group::Group;
use mpicore::{Communicator, Creating, Error, RemoteLeader, SplitKey};

use crate::conformance::Numbers;

/// A communicator, as every rank of the job knows it.
pub struct Node {
    /// The ranks of the job in its group, or in its two groups.
    groups: [Vec<u32>; 2],
    own: Own,
}

/// A rank's handle.
pub enum Own {
    /// The rank is no member.
    None,
    /// The communicator.
    Here(Communicator),
    /// It is being made.
    Coming(Creating),
}

impl Own {
    fn of(made: Option<Communicator>) -> Self {
        made.map_or(Self::None, Self::Here)
    }
}

impl Node {
    /// A communicator of one group.
    pub fn intra(ranks: Vec<u32>, own: Own) -> Self {
        Self { groups: [ranks, vec![]], own }
    }

    /// This rank's handle, for dropping it.
    pub fn into_own(self) -> Own {
        self.own
    }

    /// The communicator, after a wait if it is still being made; `None` on ranks that are not in it.
    ///
    /// # Errors
    /// Those of the call that makes it.
    pub fn communicator(&mut self) -> Result<Option<&Communicator>, Error> {
        self.own = match std::mem::replace(&mut self.own, Own::None) {
            Own::Coming(creating) => Own::Here(creating.wait()?),
            own => own,
        };
        match &self.own {
            Own::Here(communicator) => Ok(Some(communicator)),
            _ => Ok(None),
        }
    }

    /// The group that a rank is in, and the first one of those that it is not in.
    pub fn group(&self, rank: u32) -> &[u32] {
        &self.groups[usize::from(self.groups[1].contains(&rank))]
    }

    /// The ranks that a rank exchanges data with.
    pub fn peers(&self, rank: u32) -> &[u32] {
        match self.is_inter() {
            false => &self.groups[0],
            true => &self.groups[usize::from(self.groups[0].contains(&rank))],
        }
    }

    fn is_inter(&self) -> bool {
        !self.groups[1].is_empty()
    }
}

/// Makes communicators from one in a random way; returns all of them, also those that this rank is not in.
///
/// # Errors
/// Those of the calls.
pub fn make(from: &mut Node, common: &mut Numbers, rank: u32) -> Result<Vec<Node>, Error> {
    let (way, salt) = (common.below(8), common.below(1_000) as u32);
    let groups = from.groups.clone();
    let is_inter = from.is_inter();
    let over = from.communicator()?.cloned();
    match (way, is_inter) {
        (0, _) => {
            let own = Own::of(over.map(|over| over.dup()).transpose()?);
            Ok(vec![Node { groups, own }])
        }
        (1 | 2, _) => {
            let own = match over {
                Some(over) => Own::Coming(over.idup()?),
                None => Own::None,
            };
            Ok(vec![Node { groups, own }])
        }
        (_, true) => merged(&groups, over, salt, rank),
        (3 | 4, false) => divided(&groups[0], over, salt),
        (5, false) => created(&groups[0], over, salt, rank, false),
        (6, false) => created(&groups[0], over, salt, rank, true),
        (_, false) => between(&groups[0], over, rank),
    }
}

/// The color of a member and its key, by its place.
fn color_and_key(place: u32, salt: u32) -> (Option<u32>, i32) {
    let mixed = (place + 1).wrapping_mul(salt.wrapping_mul(2) + 1).wrapping_mul(0x9E37_79B1) >> 16;
    let color = Some(mixed % 3).filter(|_| mixed % 7 != 0);
    (color, (mixed % 11) as i32 - 5)
}

fn divided(ranks: &[u32], over: Option<Communicator>, salt: u32) -> Result<Vec<Node>, Error> {
    let mut own = None;
    let mut own_color = None;
    if let Some(over) = over {
        let (color, key) = color_and_key(over.rank(), salt);
        own = over.split(SplitKey { color, key })?;
        own_color = color;
    }
    let mut nodes = Vec::new();
    for color in 0..3 {
        let places = (0..).zip(ranks);
        let mut members: Vec<_> = places
            .map(|(place, rank)| (color_and_key(place, salt), place, *rank))
            .filter(|((one, _), ..)| *one == Some(color))
            .map(|((_, key), place, rank)| (key, place, rank))
            .collect();
        members.sort_unstable();
        let mine = own_color == Some(color);
        let own = Own::of(if mine { own.take() } else { None });
        if !members.is_empty() {
            let members = members.into_iter().map(|(.., rank)| rank).collect();
            nodes.push(Node::intra(members, own));
        }
    }
    Ok(nodes)
}

/// Some of the members in the opposite order, by themselves or together with the others.
fn created(
    ranks: &[u32],
    over: Option<Communicator>,
    salt: u32,
    rank: u32,
    is_alone: bool,
) -> Result<Vec<Node>, Error> {
    let places = (0..).zip(ranks);
    let chosen = places.filter(|(place, _)| color_and_key(*place, salt).0 != Some(0));
    let mut members: Vec<u32> = chosen.map(|(_, rank)| *rank).collect();
    members.reverse();
    if members.is_empty() {
        return Ok(vec![]);
    }
    let group = Group::of_ranks(members.iter().copied())?;
    let own = match over {
        Some(over) if !is_alone => over.create(&group)?,
        Some(over) if members.contains(&rank) => Some(over.create_group(&group, salt as i32)?),
        _ => None,
    };
    Ok(vec![Node::intra(members, Own::of(own))])
}

/// An intercommunicator of the ranks at even places and those at odd ones.
fn between(ranks: &[u32], over: Option<Communicator>, rank: u32) -> Result<Vec<Node>, Error> {
    if ranks.len() < 2 {
        return Ok(vec![]);
    }
    let half = |odd| ranks.iter().copied().skip(odd).step_by(2).collect::<Vec<_>>();
    let groups = [half(0), half(1)];
    let own = match over {
        None => None,
        Some(over) => {
            let is_odd = u32::from(groups[1].contains(&rank));
            let own = over.split(SplitKey { color: Some(is_odd), key: 0 })?;
            let own = own.expect("every rank has a color");
            let other = RemoteLeader { peers: &over, leader: 1 - is_odd, tag: 5 };
            Some(own.create_inter(0, Some(other))?)
        }
    };
    Ok(vec![Node { groups, own: Own::of(own) }])
}

/// Both groups as one, the first or the second one in front.
fn merged(
    groups: &[Vec<u32>; 2],
    over: Option<Communicator>,
    salt: u32,
    rank: u32,
) -> Result<Vec<Node>, Error> {
    let front = (salt % 2) as usize;
    let is_high = !groups[front].contains(&rank);
    let own = over.map(|over| over.merge(is_high)).transpose()?;
    let ranks = [&groups[front][..], &groups[1 - front]].concat();
    Ok(vec![Node::intra(ranks, Own::of(own))])
}
