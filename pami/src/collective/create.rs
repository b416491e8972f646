//! Geometries come and go, when all tasks that take part agree: see `geometry/agreement.rs`.

use std::sync::Arc;

use crate::COLLECTIVES;
use crate::context::{Callback, CallbackOf, Section};
use crate::error::{Error, Violation};
use crate::geometry::agreement::{Ready, Waiting};
use crate::geometry::{Geometry, Matter, Members};
use crate::send::SendCall;
use crate::state::State;
use crate::types::Endpoint;

/// What is called when a geometry was created: with nothing on tasks that have no member.
pub type GeometryCallback = CallbackOf<Option<Geometry>>;

impl Section<'_> {
    /// Creates a geometry (PAMI_Geometry_create_taskrange, _tasklist, _endpointlist). Each task of the parent calls it once
    /// with the same id, or without a parent each task that has a member. The callback comes when all have. Geometries with a
    /// task in common have different ids, above 0; others may have the same, and be created together. A task repeats a creation
    /// that has failed before it takes part in the next one with the same id.
    ///
    /// # Errors
    /// [`Error::GeometryId`], [`Error::Members`], [`Error::NoEndpoint`], [`Error::Parent`]; [`Error::NoGeometry`] if the
    /// parent is gone; [`Error::NoMember`] if this task takes no part; [`Error::NoContext`] if it has not created the context
    /// of its first member. A lost task is told to the callback.
    pub fn geometry_create(
        &mut self,
        id: u32,
        members: Members,
        parent: Option<&Geometry>,
        on_done: GeometryCallback,
    ) -> Result<(), Error> {
        if id == 0 {
            return Err(Error::GeometryId { id });
        }
        let are_all = members.are_all_contexts();
        let context = &self.core.context;
        let members = members.list(context.num_tasks(), self.core.posted.len());
        members.iter().try_for_each(|member| self.core.check_endpoint(*member))?;
        let floor = self.core.geometries.newest();
        let of_parent = parent.and_then(Geometry::agreed).unwrap_or(0);
        let of_group = parent.map_or(&members[..], Geometry::members);
        let matter = Matter::creation(id, of_group, of_parent);
        let new = Geometry::new((id, floor), members, |task| context.host_of(task))?;
        let group = parent.unwrap_or(&new);
        if let Some(parent) = parent {
            let mut tasks = new.0.leaders.iter().map(|leader| leader.task());
            let why = match are_all {
                true => Some("it has all contexts of its tasks"),
                false if tasks.all(|task| parent.leader_of(task).is_some()) => None,
                false => Some("a task is none of the parent"),
            };
            why.map_or(Ok(()), |why| Err(Error::Parent { id, parent: parent.id(), why }))?;
            self.check_geometry(parent)?;
        }
        let (leader, geometries) = (self.leader_in(group)?, Arc::clone(&self.core.geometries));
        let own = new.leader_of(self.task()).map(|_| new.clone());
        own.iter().try_for_each(|new| geometries.insert(new))?;
        let (group, geometry) = (Arc::clone(&group.0.leaders), own.clone());
        let tell =
            self.at_home(Box::new(move |section: &mut Section<'_>, result: Result<_, _>| {
                on_done(section, result.map(|()| own));
            }));
        let waiting = Waiting { group, attempt: 0, geometry, geometries, tell };
        self.agree(matter, leader, floor, waiting).inspect_err(|_| {
            if new.leader_of(self.task()).is_some() {
                self.core.geometries.remove(id);
            }
        })
    }

    /// Destroys a geometry (PAMI_Geometry_destroy). Each of its tasks calls it once, when its collectives have ended, and the
    /// functions of its active-message collectives have run on all members: messages that come later are violations. When the
    /// callback comes, the id may be used again.
    ///
    /// # Errors
    /// [`Error::Undying`] for the world, and while a collective of this task has not ended; [`Error::NoGeometry`];
    /// [`Error::NoContext`]. A lost task is told to the callback; the geometry is gone nevertheless.
    pub fn geometry_destroy(
        &mut self,
        geometry: &Geometry,
        on_done: Option<Callback>,
    ) -> Result<(), Error> {
        let id = geometry.id();
        self.check_geometry(geometry)?;
        let why = match id {
            0 => Some("it is the world"),
            _ if Arc::strong_count(&geometry.0.uses) > 1 => {
                Some("a collective has not ended; wait for its callback")
            }
            _ => None,
        };
        why.map_or(Ok(()), |why| Err(Error::Undying { id, why }))?;
        let (leader, group) = (self.leader_in(geometry)?, Arc::clone(&geometry.0.leaders));
        let (which, geometries) = (geometry.generation(), Arc::clone(&self.core.geometries));
        let tell =
            on_done.unwrap_or_else(|| Box::new(|section, result| section.note_failure(result)));
        let (geometry, tell) = (Some(geometry.clone()), self.at_home(tell));
        let waiting = Waiting { group, attempt: 0, geometry, geometries, tell };
        self.agree(Matter { geometry: id, which }, leader, which, waiting)
    }

    /// The first endpoint of this task in a geometry.
    fn leader_in(&self, geometry: &Geometry) -> Result<Endpoint, Error> {
        let missing = Error::NoMember { endpoint: self.endpoint(), id: geometry.id() };
        geometry.leader_of(self.task()).ok_or(missing)
    }

    /// Waits until all tasks of a group have called this for a matter. The leader of this task speaks for it.
    fn agree(
        &mut self,
        matter: Matter,
        leader: Endpoint,
        generation: u32,
        mut waiting: Waiting,
    ) -> Result<(), Error> {
        self.post_toward(leader, move |section| {
            let state = &mut section.session.state;
            if state.agreements.waiting.contains_key(&matter) {
                let error = Error::NoGeometry { id: matter.geometry };
                state.tell(waiting.tell, Err(error));
                return Ok(());
            }
            let State { agreements, collectives, .. } = state;
            agreements.attempts = agreements.attempts.wrapping_add(1);
            let (attempt, keeper) = (agreements.attempts, waiting.group[0]);
            waiting.attempt = attempt;
            let mut tasks = waiting.group.iter().map(|one| one.task());
            let lost = tasks.find(|task| collectives.lost.contains(task));
            agreements.waiting.insert(matter, waiting);
            let begun = match lost {
                Some(task) => Err(Error::Lost { task }),
                None => {
                    section.say(keeper, Ready { matter, is_answer: false, attempt, generation })
                }
            };
            if let Err(error) = begun {
                section.end_agreement(matter, Err(error));
            }
            Ok(())
        })
    }

    fn say(&mut self, to: Endpoint, ready: Ready) -> Result<(), Error> {
        let header = &ready.to_bytes();
        self.send_internal(SendCall { header, ..SendCall::new(to, COLLECTIVES) })
    }

    fn end_agreement(&mut self, matter: Matter, result: Result<u32, Error>) {
        let state = &mut self.session.state;
        let tell = state.agreements.end(matter, result.as_ref().ok().copied());
        tell.into_iter().for_each(|tell| state.tell(tell, result.clone().map(drop)));
    }

    /// Takes what another task, or the keeper, has said.
    pub(super) fn take_ready(&mut self, from: Endpoint, ready: Ready) {
        let Ready { matter, attempt, generation, .. } = ready;
        let agreements = &self.session.state.agreements;
        if ready.is_answer {
            let waiting = agreements.waiting.get(&matter).filter(|one| one.attempt == attempt);
            return match waiting {
                Some(waiting) if waiting.group[0] == from => {
                    self.end_agreement(matter, Ok(generation))
                }
                _ if attempt <= agreements.attempts => {}
                _ => self.blame_collective(from, Ready::BYTES),
            };
        }
        if let Some(generation) = agreements.created(ready) {
            let _ = self.say(from, Ready { is_answer: true, generation, ..ready });
            return;
        }
        let own = self.core.geometries.get(matter.geometry);
        let own = own.as_ref().and_then(Geometry::agreed);
        if !matter.is_creation() && own != Some(matter.which) {
            // The keeper has seen its end before.
            if matter.which > self.core.geometries.newest() {
                self.blame_collective(from, Ready::BYTES);
            }
            return;
        }
        let state = &mut self.session.state;
        if !state.agreements.enter(from, ready) {
            let violation = Violation::EarlyCollective { geometry: matter.geometry };
            return state.blame(from.task(), violation);
        }
        let Some(answers) = state.agreements.answers(matter) else { return };
        for (to, answer) in answers {
            if to == self.endpoint() {
                self.end_agreement(matter, Ok(answer.generation));
            } else if let Err(error) = self.say(to, answer) {
                self.session.state.note(error);
            }
        }
    }
}
