//! Connections that the program closes, and opens again.
//!
//! To close a connection is a local act: the operations to and from its task end as those of a lost task do, frames
//! from it are discarded, and calls that name it fail. Others that wait for different tasks go on. A task that is lost
//! besides is not reported: the program has given it up already. If its connection is opened nevertheless (PU2), its
//! loss is noticed then. Called by LAPI_Purge_totask and LAPI_Resume_totask.
//!
//! - PU1: frames of the task of a closed connection are discarded up to its packet *resume*, which it sends after it
//!   has closed its own connection and opened it again. Between its opening and ours it sends nothing, so no message
//!   that began before a connection was closed goes on after it. Only what the adapter is storing for a put may still
//!   be stored.
//! - PU2: a connection is open again when it has been reopened here and the other task's packet *resume* has arrived,
//!   in either order. This side then sends nothing before its packet either, since operations wait in a queue.

use crate::adapter::TaskId;
use crate::progress::amsend::Outgoing;
use crate::progress::engine::Engine;
use crate::wire::Packet;

/// Whether a connection was closed, and how far it has been reopened.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Closing {
    /// The program has closed the connection, and it is not open again.
    pub is_closed: bool,
    /// It was reopened here.
    has_reopened: bool,
    /// The other task has reopened its connection.
    peer_has_reopened: bool,
}

impl<S> Engine<S> {
    /// Ends all operations to and from `target`, and discards its frames from now on.
    pub fn close(&mut self, state: &mut S, target: TaskId) {
        let send_queue = &mut self.outbox.send_queues[target as usize];
        (send_queue.closing.is_closed, send_queue.closing.has_reopened) = (true, false);
        (send_queue.dirty, send_queue.unflushed) = (false, false);
        (send_queue.fences, send_queue.flushes) = (0, 0);
        send_queue.closed = send_queue.closed.wrapping_add(1);
        self.outbox.counters.closed(target);
        self.disconnect(state, target);
        self.find_first_lost();
    }

    /// Reopens a closed connection (PU2).
    pub fn reopen(&mut self, target: TaskId) {
        let send_queue = &mut self.outbox.send_queues[target as usize];
        if send_queue.closing.is_closed && !send_queue.closing.has_reopened {
            send_queue.closing.has_reopened = true;
            send_queue.waiting.push_back(Outgoing::Control(Packet::Resume));
            self.outbox.queued += 1;
            self.open_if_both(target);
        }
    }

    /// Takes note that `origin` has reopened its connection to this task.
    pub fn reopened_by(&mut self, origin: TaskId) {
        self.outbox.send_queues[origin as usize].closing.peer_has_reopened = true;
        self.open_if_both(origin);
    }

    /// Opens a closed connection if both ends have reopened theirs (PU2).
    fn open_if_both(&mut self, task: TaskId) {
        let send_queue = &mut self.outbox.send_queues[task as usize];
        if let Closing { is_closed: true, has_reopened: true, peer_has_reopened: true } =
            send_queue.closing
        {
            send_queue.closing = Closing::default();
            (send_queue.is_lost, send_queue.is_free) = (false, send_queue.waiting.is_empty());
            self.noticed = None;
            self.find_first_lost();
        }
    }

    /// Recomputes what the engine knows about all connections.
    fn find_first_lost(&mut self) {
        let send_queues = &self.outbox.send_queues;
        self.discards = send_queues.iter().any(|send_queue| send_queue.is_lost);
        let is_lost = |task: &TaskId| {
            let send_queue = &send_queues[*task as usize];
            send_queue.is_lost && !send_queue.closing.is_closed
        };
        self.first_lost = self
            .first_lost
            .filter(is_lost)
            .or_else(|| (0..send_queues.len() as TaskId).find(is_lost));
    }
}
