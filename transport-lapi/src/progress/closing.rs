//! Lanes that the program closes, and opens again.
//!
//! To close a lane is a local act: the operations to and from its task end as those of a lost task do, frames from it
//! are discarded, and calls that name it fail. Others that wait for different tasks go on. A task that is lost besides
//! is not reported: the program has given it up already. If its lane is opened nevertheless (PU2), its loss is noticed
//! then. Called by LAPI_Purge_totask and LAPI_Resume_totask.
//!
//! - PU1: frames of the task of a closed lane are discarded up to its packet *resume*, which it sends after it has
//!   closed its own lane and opened it again. Between its opening and ours it sends nothing, so no message that began
//!   before a lane was closed goes on after it.
//! - PU2: a lane is open again when it has been reopened here and the other task's packet *resume* has arrived, in
//!   either order. This side then sends nothing before its packet either, since a lane is a queue.

use crate::adapter::TaskId;
use crate::progress::amsend::Outgoing;
use crate::progress::engine::Engine;
use crate::wire::Packet;

/// Whether a lane was closed, and how far it has been reopened.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Closing {
    /// The program has closed the lane, and it is not open again.
    pub is_closed: bool,
    /// It was reopened here.
    has_reopened: bool,
    /// The other task has reopened its lane.
    peer_has_reopened: bool,
}

impl<S> Engine<S> {
    /// Ends all operations to and from `target`, and discards its frames from now on.
    pub fn close(&mut self, state: &mut S, target: TaskId) {
        let lane = &mut self.outbox.lanes[target as usize];
        (lane.closing.is_closed, lane.closing.has_reopened) = (true, false);
        (lane.dirty, lane.unflushed, lane.fences) = (false, false, 0);
        self.outbox.counters.closed(target);
        self.disconnect(state, target);
        self.find_first_lost();
    }

    /// Reopens a closed lane (PU2).
    pub fn reopen(&mut self, target: TaskId) {
        let lane = &mut self.outbox.lanes[target as usize];
        if lane.closing.is_closed && !lane.closing.has_reopened {
            lane.closing.has_reopened = true;
            lane.queue.push_back(Outgoing::Control(Packet::Resume));
            self.outbox.queued += 1;
            self.open_if_both(target);
        }
    }

    /// Takes note that `origin` has reopened its lane to this task.
    pub fn reopened_by(&mut self, origin: TaskId) {
        self.outbox.lanes[origin as usize].closing.peer_has_reopened = true;
        self.open_if_both(origin);
    }

    /// Opens a closed lane if both ends have reopened theirs (PU2).
    fn open_if_both(&mut self, task: TaskId) {
        let lane = &mut self.outbox.lanes[task as usize];
        if let Closing { is_closed: true, has_reopened: true, peer_has_reopened: true } =
            lane.closing
        {
            lane.closing = Closing::default();
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
            lane.is_lost && !lane.closing.is_closed
        };
        self.first_lost =
            self.first_lost.filter(is_lost).or_else(|| (0..lanes.len() as TaskId).find(is_lost));
    }
}
