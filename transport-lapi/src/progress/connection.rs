//! Connections to the other tasks: which are open, which tasks are lost, which the program has closed.
//!
//! If a task is lost, or its connection is closed, the operations to and from it end, its frames are discarded, and
//! calls that name it fail. Waits for other tasks go on. The loss of a task is reported; that of a task whose connection
//! the program has closed is not, since the program has given it up already. To close a connection is a local act
//! (LAPI_Purge_totask), and so is to reopen it (LAPI_Resume_totask).
//!
//! - PU1: frames of the task of a closed connection are discarded up to its packet *resume*, which it sends after it
//!   has closed its own connection and opened it again. Between its opening and ours it sends nothing, so no message
//!   that began before a connection was closed goes on after it. Only what the adapter is storing for a put may still
//!   be stored.
//! - PU2: a connection is open again when it has been reopened here and the other task's packet *resume* has arrived,
//!   in either order. This side then sends nothing before its packet either, since operations wait in a queue. If the
//!   other task is lost, its loss is noticed then.

use std::ops::Range;

use crate::adapter::{AdapterError, TaskId};
use crate::error::LapiError;
use crate::progress::amsend::Outgoing;
use crate::progress::engine::Engine;
use crate::progress::handler::Next;
use crate::progress::outbox::{Outbox, SendQueue};
use crate::progress::session::Session;
use crate::wire::Packet;

/// The connection to one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Connection {
    /// Operations may use it.
    #[default]
    Open,
    /// The task is lost, and that was acted on.
    Lost,
    /// The program has closed it, and it is not open again.
    Closed {
        /// It was reopened here (PU2).
        has_reopened: bool,
    },
}

/// What is known about all connections of a task.
pub(crate) struct Connections<S> {
    /// Whether one is not open, so that its task's frames are discarded.
    pub some_not_open: bool,
    /// The task whose loss was noticed first, unless the program has closed its connection.
    first_lost: Option<TaskId>,
    /// How many losses of tasks have been acted on; `None` after a connection was opened again, as its task may be lost.
    noticed: Option<usize>,
    on_loss: Option<LossHook<S>>,
}

/// A client's hook that runs when a task is lost.
type LossHook<S> = fn(&mut S, &mut Outbox<S>, TaskId);

impl<S> Default for Connections<S> {
    fn default() -> Self {
        Self { some_not_open: false, first_lost: None, noticed: Some(0), on_loss: None }
    }
}

impl SendQueue {
    /// Whether operations may use the connection.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        self.connection == Connection::Open
    }

    /// Whether the program has closed the connection.
    pub fn is_closed(&self) -> bool {
        matches!(self.connection, Connection::Closed { .. })
    }
}

impl<S> Session<S> {
    /// Acts on the loss of tasks: operations to and from a lost task, and gets of its memory, end with an error that
    /// names it. Later calls that name the task fail. Waits do this themselves. Callers that poll with
    /// [`Session::progress`] do it when no frames arrive, since frames that arrived before the loss still count. If
    /// this returns `true` something was done, and the caller checks its condition again.
    ///
    /// # Errors
    /// [`AdapterError::PeerLost`] when this task itself was declared lost: the others go on without it.
    #[inline]
    pub fn notice_losses(&mut self) -> Result<bool, LapiError> {
        let losses = self.losses.count();
        match self.engine.connections.noticed == Some(losses) {
            true => Ok(false),
            false => self.lose(losses),
        }
    }

    #[cold]
    fn lose(&mut self, losses: usize) -> Result<bool, LapiError> {
        self.check_own()?;
        let send_queues = &self.engine.outbox.send_queues;
        let is_news = |task: &TaskId| self.losses.is_lost(*task) && send_queues[*task].is_open();
        // Collected before the round: a task that is lost during the round may have sent frames that the round does not
        // reach.
        let tasks = 0..send_queues.num_tasks() as TaskId;
        let lost: Vec<TaskId> = tasks.filter(is_news).collect();
        if self.round() > 0 {
            return Ok(true);
        }
        for task in lost {
            let Self { state, engine, .. } = self;
            engine.connections.first_lost.get_or_insert(task);
            engine.disconnect(state, task, Connection::Lost);
            // Without an error handler, the calls that need the task report its loss.
            let _ = self.report(AdapterError::PeerLost { task }.into());
        }
        // If a hook has panicked, the next look acts on the other losses.
        self.engine.connections.noticed = Some(losses);
        self.end_call(Next::Nothing);
        Ok(true)
    }

    /// Sets a hook that runs in the dispatcher once for each lost task, after the operations to and from that task have
    /// ended. A client uses it to end its own operations that need the task. There is one hook at a time.
    pub fn on_loss(&mut self, hook: fn(&mut S, &mut Outbox<S>, TaskId)) {
        self.engine.connections.on_loss = Some(hook);
    }

    /// Fails if this task itself was declared lost: the others go on without it.
    pub(crate) fn check_own(&self) -> Result<(), LapiError> {
        match self.engine.task {
            task if self.losses.is_lost(task) => Err(AdapterError::PeerLost { task }.into()),
            _ => Ok(()),
        }
    }

    /// Fails if the loss of a task of the job has been noticed.
    ///
    /// # Errors
    /// [`AdapterError::PeerLost`] for the task whose loss was noticed first.
    pub fn check_lost(&self) -> Result<(), LapiError> {
        match self.engine.connections.first_lost {
            Some(task) => Err(AdapterError::PeerLost { task }.into()),
            None => Ok(()),
        }
    }

    /// [`Session::check_lost`] for these tasks.
    pub(crate) fn check_lost_of(&self, tasks: &Range<TaskId>) -> Result<(), LapiError> {
        match self.engine.connections.first_lost {
            Some(first) if !tasks.contains(&first) => {
                tasks.clone().try_for_each(|task| self.engine.outbox.check_lost(task))
            }
            _ => self.check_lost(),
        }
    }

    /// Fails if the program has closed a connection.
    pub(crate) fn check_closed(&self) -> Result<(), LapiError> {
        let mut send_queues = self.engine.outbox.send_queues.iter();
        match send_queues.find(|(_, send_queue)| send_queue.is_closed()) {
            Some((target, _)) => Err(LapiError::TgtPurged { target }),
            None => Ok(()),
        }
    }
}

impl<S> Engine<S> {
    /// Whether frames of `origin` are discarded, since the operations to and from it have ended already.
    #[inline(always)]
    pub fn comes_too_late(&self, origin: TaskId) -> bool {
        self.connections.some_not_open && !self.outbox.send_queues[origin].is_open()
    }

    /// Closes the connection to `target` for the program.
    pub fn close(&mut self, state: &mut S, target: TaskId) {
        let send_queue = &mut self.outbox.send_queues[target];
        (send_queue.dirty, send_queue.unflushed) = (false, false);
        (send_queue.fences, send_queue.flushes) = (0, 0);
        send_queue.closed = send_queue.closed.wrapping_add(1);
        self.outbox.counters.closed(target);
        self.disconnect(state, target, Connection::Closed { has_reopened: false });
        self.look_at_all();
    }

    /// Ends all operations to and from a task, calls the client's hook, and discards that task's frames from now on.
    fn disconnect(&mut self, state: &mut S, task: TaskId, connection: Connection) {
        self.connections.some_not_open = true;
        self.break_off(task);
        self.ahead.forget(task);
        self.outbox.disconnect(task, connection);
        if let Some(hook) = self.connections.on_loss {
            hook(state, &mut self.outbox, task);
        }
    }

    /// Reopens a connection that the program has closed (PU2).
    pub fn reopen(&mut self, target: TaskId) {
        let send_queue = &mut self.outbox.send_queues[target];
        if send_queue.connection == (Connection::Closed { has_reopened: false }) {
            send_queue.connection = Connection::Closed { has_reopened: true };
            send_queue.waiting.push_back(Outgoing::Control(Packet::Resume));
            self.outbox.queued += 1;
            self.open_if_both(target);
        }
    }

    /// Takes note that `origin` has reopened its connection to this task.
    pub fn reopened_by(&mut self, origin: TaskId) {
        self.outbox.send_queues[origin].peer_has_reopened = true;
        self.open_if_both(origin);
    }

    /// Opens a closed connection if both ends have reopened theirs (PU2).
    fn open_if_both(&mut self, task: TaskId) {
        let send_queue = &mut self.outbox.send_queues[task];
        let has_reopened = send_queue.connection == Connection::Closed { has_reopened: true };
        if has_reopened && send_queue.peer_has_reopened {
            (send_queue.connection, send_queue.peer_has_reopened) = (Connection::Open, false);
            send_queue.is_free = send_queue.waiting.is_empty();
            self.connections.noticed = None;
            self.look_at_all();
        }
    }

    /// Computes anew what is known about all connections.
    fn look_at_all(&mut self) {
        let Self { connections, outbox, .. } = self;
        let send_queues = &outbox.send_queues;
        let is_lost = |task: &TaskId| send_queues[*task].connection == Connection::Lost;
        connections.some_not_open = !send_queues.iter().all(|(_, queue)| queue.is_open());
        let first = connections.first_lost.filter(is_lost);
        connections.first_lost =
            first.or_else(|| send_queues.iter().map(|(task, _)| task).find(is_lost));
    }
}

impl<S> Outbox<S> {
    /// Fails if the loss of `target` has been noticed, or the program has closed the connection to it.
    pub(crate) fn check_lost(&self, target: TaskId) -> Result<(), LapiError> {
        match self.send_queues[target].connection {
            Connection::Open => Ok(()),
            Connection::Lost => Err(AdapterError::PeerLost { task: target }.into()),
            Connection::Closed { .. } => Err(LapiError::TgtPurged { target }),
        }
    }

    /// Ends the operations to and from a task. A message whose body the adapter still reads ends when that body has
    /// left.
    #[cold]
    fn disconnect(&mut self, task: TaskId, connection: Connection) {
        let send_queue = &mut self.send_queues[task];
        (send_queue.connection, send_queue.is_free) = (connection, false);
        let queue = std::mem::take(&mut send_queue.waiting);
        self.queued -= queue.len();
        for operation in queue {
            self.end_outgoing(operation);
        }
        self.lose_in_flight(task);
        self.lose_gets(task);
        self.lose_accesses(task);
    }
}
