//! How tasks agree that a geometry is created or destroyed: state and messages. `collective/create.rs` has the calls.
//!
//! Each task that takes part tells the first one, the *keeper*, that it is ready; when all are, the keeper answers each.
//! They do so by their first endpoints in the group that takes part.
//!
//! - GY1: what a task says has a number which it never gives again, and the answer repeats it. So a task that has failed and
//!   tries again takes no answer to what it said before.
//! - GY2: a task that says again that it is ready for a creation which the keeper has ended gets the answer at once. So
//!   it does not matter which of its attempts the keeper has counted.

use std::collections::HashMap;
use std::sync::Arc;

use transport_lapi::TaskId;

use super::{Geometries, Geometry, Matter};
use crate::context::Callback;
use crate::packet::{bytes_of, words_of};
use crate::types::Endpoint;

/// What a task tells the keeper, and what that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ready {
    pub matter: Matter,
    pub is_answer: bool,
    /// See GY1.
    pub attempt: u32,
    /// The greatest generation that the task knows; in an answer, that of the geometry.
    pub generation: u32,
}

impl Ready {
    /// Its length in bytes.
    pub const BYTES: usize = 20;

    pub fn to_bytes(self) -> Vec<u8> {
        let Self { matter: Matter { geometry, which }, is_answer, attempt, generation } = self;
        bytes_of(&[is_answer.into(), geometry, which, attempt, generation])
    }

    /// Decodes what a peer has sent.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let [is_answer, geometry, which, attempt, generation] = words_of(bytes)?;
        let matter = Matter { geometry, which };
        Some(Self { matter, is_answer: is_answer != 0, attempt, generation })
    }
}

/// A task that waits for the others.
pub(crate) struct Waiting {
    /// The first endpoint of each task that takes part, that of the keeper first.
    pub group: Arc<[Endpoint]>,
    pub attempt: u32,
    /// The geometry, if this task has members.
    pub geometry: Option<Geometry>,
    /// Where it is, or is entered no more.
    pub geometries: Arc<Geometries>,
    pub tell: Callback,
}

/// The agreements of a context.
#[derive(Default)]
pub(crate) struct Agreements {
    pub waiting: HashMap<Matter, Waiting>,
    /// At the keeper: which attempt of whom is ready, and the greatest generation that it knows.
    ready: HashMap<(Matter, Endpoint), (u32, u32)>,
    /// At the keeper: the generations of geometries that were created.
    created: HashMap<Matter, u32>,
    /// The number of the last attempt of this task.
    pub attempts: u32,
}

/// How many endpoints may be ready before the keeper is.
const MOST_READY: usize = 4096;
/// How many creations the keeper remembers.
const MOST_CREATED: usize = 4096;

impl Agreements {
    /// Notes that an endpoint is ready. Returns whether there was room for that.
    pub fn enter(&mut self, from: Endpoint, ready: Ready) -> bool {
        let has_room = self.ready.len() < MOST_READY;
        if has_room {
            self.ready.insert((ready.matter, from), (ready.attempt, ready.generation));
        }
        has_room
    }

    /// Returns the generation of a geometry that was created (GY2). Whoever knows a newer one has seen it destroyed, and
    /// waits for the next creation.
    pub fn created(&self, ready: Ready) -> Option<u32> {
        self.created.get(&ready.matter).copied().filter(|created| *created > ready.generation)
    }

    /// Returns what the keeper answers to each, if it and all others are ready.
    pub fn answers(&mut self, matter: Matter) -> Option<Vec<(Endpoint, Ready)>> {
        let group = Arc::clone(&self.waiting.get(&matter)?.group);
        let of = |one: &Endpoint| self.ready.get(&(matter, *one)).copied();
        let known: Vec<_> = group.iter().map(of).collect::<Option<_>>()?;
        let newest = known.iter().map(|(_, generation)| *generation).max().unwrap_or(0);
        let generation = newest.min(Matter::LAST - 1) + 1;
        self.ready.retain(|(other, _), _| *other != matter);
        if self.created.len() == MOST_CREATED {
            self.created.clear();
        }
        if matter.is_creation() {
            self.created.insert(matter, generation);
        }
        let answer = |(attempt, _)| Ready { matter, is_answer: true, attempt, generation };
        Some(group.iter().copied().zip(known.into_iter().map(answer)).collect())
    }

    /// Ends what needs a task that is lost or purged. Returns whom to tell.
    pub fn lose(&mut self, lost: TaskId) -> Vec<Callback> {
        self.ready.retain(|(_, from), _| from.task() != lost);
        let needs = |waiting: &Waiting| waiting.group.iter().any(|one| one.task() == lost);
        let ended = self.waiting.iter().filter(|(_, waiting)| needs(waiting));
        let ended: Vec<_> = ended.map(|(matter, _)| *matter).collect();
        ended.into_iter().filter_map(|matter| self.end(matter, None)).collect()
    }

    /// Ends the wait of this task, if it waits, before any other message is taken. Returns whom to tell.
    pub fn end(&mut self, matter: Matter, generation: Option<u32>) -> Option<Callback> {
        let Waiting { geometry, geometries, tell, .. } = self.waiting.remove(&matter)?;
        match generation.filter(|_| matter.is_creation()) {
            Some(generation) => {
                geometries.agree(generation);
                geometry.iter().for_each(|new| new.agree(generation));
            }
            None => geometry.iter().for_each(|gone| geometries.remove(gone.id())),
        }
        Some(tell)
    }
}
