//! LAPI_Purge_totask and LAPI_Resume_totask: gives up a task, and takes it back later.
//!
//! To purge a task is a local act: its operations end as those of a lost task do, frames from it are discarded, and calls
//! that name it fail. Others that wait for different tasks go on. A purged task that is lost besides is not reported:
//! the program has given it up already. If it is taken back nevertheless (PU2), its loss is noticed then.
//!
//! - PU1: frames of a purged task are discarded up to its packet *resume*, which it sends after it has purged this task
//!   and resumed it. Between its resumption and ours it sends nothing, so no message that began before a purge goes on
//!   after it.
//! - PU2: a task is taken back when it has been resumed here and its own packet *resume* has arrived, in either order.
//!   This side then sends nothing before its packet either, since a lane is a queue.

use crate::adapter::{Adapter, TaskId};
use crate::amsend::{Outgoing, check_target};
use crate::engine::Engine;
use crate::error::LapiError;
use crate::handler::Next;
use crate::session::Session;
use crate::wire::Packet;

/// How far the recovery of one task has come.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Recovery {
    /// The task was purged, and has not been taken back.
    pub is_purged: bool,
    /// It was resumed here.
    has_resumed: bool,
    /// It has resumed this task.
    peer_has_resumed: bool,
}

impl<S> Engine<S> {
    /// Ends all operations to and from `target`, and discards its frames from now on.
    fn purge(&mut self, state: &mut S, target: TaskId) {
        let lane = &mut self.outbox.lanes[target as usize];
        (lane.recovery.is_purged, lane.recovery.has_resumed) = (true, false);
        (lane.dirty, lane.fences) = (false, 0);
        self.outbox.counters.purge(target);
        self.shun(state, target);
        self.find_first_lost();
    }

    /// Resumes a purged task (PU2).
    fn resume(&mut self, target: TaskId) {
        let lane = &mut self.outbox.lanes[target as usize];
        if lane.recovery.is_purged && !lane.recovery.has_resumed {
            lane.recovery.has_resumed = true;
            lane.queue.push_back(Outgoing::Control(Packet::Resume));
            self.outbox.queued += 1;
            self.reopen(target);
        }
    }

    /// Takes note that `origin` has resumed this task.
    pub fn resumed_by(&mut self, origin: TaskId) {
        self.outbox.lanes[origin as usize].recovery.peer_has_resumed = true;
        self.reopen(origin);
    }

    /// Takes a purged task back if both ends have resumed (PU2).
    fn reopen(&mut self, task: TaskId) {
        let lane = &mut self.outbox.lanes[task as usize];
        if let Recovery { is_purged: true, has_resumed: true, peer_has_resumed: true } =
            lane.recovery
        {
            lane.recovery = Recovery::default();
            (lane.is_lost, lane.is_free) = (false, lane.queue.is_empty());
            self.noticed = None;
            self.find_first_lost();
        }
    }

    /// Recomputes what the engine knows about all lanes.
    fn find_first_lost(&mut self) {
        let lanes = &self.outbox.lanes;
        self.discards = lanes.iter().any(|lane| lane.is_lost);
        let is_lost = |task: &TaskId| {
            let lane = &lanes[*task as usize];
            lane.is_lost && !lane.recovery.is_purged
        };
        self.first_lost =
            self.first_lost.filter(is_lost).or_else(|| (0..lanes.len() as TaskId).find(is_lost));
    }
}

impl<A: Adapter, S> Session<A, S> {
    /// Gives up a task (LAPI_Purge_totask), without telling it. Messages to it that are queued end, as if they had been
    /// sent, so their buffers are reusable; gets of its memory fail with [`LapiError::TgtPurged`], and so do later calls
    /// that name it, and waits for counters that need it ([`Session::setcntr_wstatus`]). What it sends is discarded. Use
    /// no collective call while a task is purged.
    ///
    /// # Errors
    /// [`LapiError::Tgt`].
    pub fn purge_totask(&mut self, target: TaskId) -> Result<(), LapiError> {
        let Self { state, engine, .. } = self;
        check_target(target, engine.outbox.lanes.len())?;
        engine.purge(state, target);
        self.end_call(Next::Nothing);
        Ok(())
    }

    /// Resumes a purged task (LAPI_Resume_totask). Both tasks must have purged each other, and must resume each other.
    /// The call does not block: communication is possible again as soon as the other task has resumed this one too,
    /// which [`Session::is_purged`] tells. For a task that is not purged the call does nothing.
    ///
    /// # Errors
    /// [`LapiError::Tgt`].
    pub fn resume_totask(&mut self, target: TaskId) -> Result<(), LapiError> {
        check_target(target, self.engine.outbox.lanes.len())?;
        self.engine.resume(target);
        self.end_call(Next::Nothing);
        Ok(())
    }

    /// Returns whether a task was purged and has not been taken back. Progress changes that once the other task has
    /// resumed this one.
    ///
    /// # Errors
    /// [`LapiError::Tgt`].
    pub fn is_purged(&self, task: TaskId) -> Result<bool, LapiError> {
        let lanes = &self.engine.outbox.lanes;
        check_target(task, lanes.len())?;
        Ok(lanes[task as usize].recovery.is_purged)
    }

    /// Fails if a task is purged.
    pub(crate) fn check_purged(&self) -> Result<(), LapiError> {
        let lanes = &self.engine.outbox.lanes;
        match lanes.iter().position(|lane| lane.recovery.is_purged) {
            Some(task) => Err(LapiError::TgtPurged { target: task as TaskId }),
            None => Ok(()),
        }
    }
}
