//! LAPI_Address_init, by which the tasks tell each other a value each, and LAPI_Addr_get. (Its partner LAPI_Addr_set is
//! [`Session::addr_set`].)
//!
//! Each task sends its value to all others and waits for theirs. A task may be one call ahead of another one, but not
//! two, since it ends a call only with the values of all. So there are at most two values of an origin; a third is a
//! violation.

use std::collections::VecDeque;

use crate::adapter::TaskId;
use crate::error::{LapiError, Violation};
use crate::progress::amsend::Outgoing;
use crate::progress::context::Context;
use crate::progress::engine::Engine;
use crate::progress::handler::HeaderHandler;
use crate::progress::per_task::{PerTask, Tasks};
use crate::progress::session::{Session, check_index};
use crate::wire::Packet;

/// Values that an origin may have sent and that no call has taken yet.
const MOST_EARLY: usize = 2;

/// The values that have arrived, and how far this task has come.
#[derive(Debug)]
pub(crate) struct Addresses {
    /// By origin.
    values: PerTask<VecDeque<u64>>,
    /// Whether this task has sent its value for an exchange that it has not ended.
    has_begun: bool,
}

impl Addresses {
    pub fn new(tasks: &Tasks) -> Self {
        Self { values: PerTask::new(tasks, VecDeque::new(), Clone::clone), has_begun: false }
    }

    /// Keeps a value that has arrived.
    pub fn arrived(&mut self, origin: TaskId, value: u64) -> Result<(), Violation> {
        let values = &mut self.values[origin];
        if values.len() == MOST_EARLY {
            return Err(Violation::EarlyAddress);
        }
        values.push_back(value);
        Ok(())
    }

    /// Takes one value of each task, once all have arrived, which ends an exchange.
    fn take(&mut self) -> Option<Vec<u64>> {
        let tasks = 0..self.values.num_tasks() as TaskId;
        if tasks.clone().any(|task| self.values[task].is_empty()) {
            return None;
        }
        self.has_begun = false;
        tasks.map(|task| self.values[task].pop_front()).collect()
    }
}

impl<S> Context<S> {
    /// Tells all tasks a value, and returns those of all, by task (LAPI_Address_init, LAPI_Address_init64). The call is
    /// collective: all tasks make it, in the same order as their other collective calls, and it blocks until they have.
    /// The transport gives the values no meaning; a task without an address passes 0.
    ///
    /// After an error the next call of this task continues the same exchange, with the value that was sent already.
    ///
    /// # Errors
    /// [`LapiError::TgtPurged`] if a task is purged; those of [`Context::wait`].
    pub fn address_init(&self, mine: u64) -> Result<Vec<u64>, LapiError> {
        let mut session = self.session_to_wait()?;
        session.check_closed()?;
        session.engine.begin_addresses(mine);
        drop(session);
        self.wait(|session| {
            // The others wait for what is still queued here.
            if session.engine.outbox.queued == 0 { session.engine.addresses.take() } else { None }
        })
    }
}

impl<S> Engine<S> {
    /// Sends this task's value to all, unless a call that failed has done that.
    fn begin_addresses(&mut self, mine: u64) {
        let Self { task, outbox, addresses, .. } = self;
        if !std::mem::replace(&mut addresses.has_begun, true) {
            for target in
                (0..outbox.send_queues.num_tasks() as TaskId).filter(|target| target != task)
            {
                outbox.push(target, Outgoing::Control(Packet::Address { value: mine }));
            }
            addresses.values[*task].push_back(mine);
        }
    }
}

impl<S> Session<S> {
    /// Returns the header handler with an index, if one is set (LAPI_Addr_get).
    ///
    /// # Errors
    /// [`LapiError::AddrHndlRange`] unless `1 <= index < MAX_HANDLERS`.
    pub fn addr_get(&self, index: usize) -> Result<Option<HeaderHandler<S>>, LapiError> {
        check_index(index)?;
        Ok(self.engine.handlers[index])
    }
}
