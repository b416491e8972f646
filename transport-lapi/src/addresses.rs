//! LAPI_Address_init, by which the tasks tell each other a value each, and LAPI_Addr_get. (Its partner LAPI_Addr_set is
//! [`Session::addr_set`].)
//!
//! Each task sends its value to all others and waits for theirs. A task may be one call ahead of another one, but not
//! two, since it ends a call only with the values of all. So there are at most two values of an origin; a third is a
//! violation.

use std::collections::VecDeque;

use crate::adapter::{Adapter, TaskId};
use crate::amsend::Outgoing;
use crate::context::Context;
use crate::error::{LapiError, Violation};
use crate::handler::HeaderHandler;
use crate::session::{Session, check_index};
use crate::wire::Packet;

/// Values that an origin may have sent and that no call has taken yet.
const MOST_EARLY: usize = 2;

/// The values that have arrived, by origin.
#[derive(Debug)]
pub(crate) struct Addresses(Vec<VecDeque<u64>>);

impl Addresses {
    pub fn new(num_tasks: usize) -> Self {
        Self(vec![VecDeque::new(); num_tasks])
    }

    /// Keeps a value that has arrived.
    pub fn arrived(&mut self, origin: TaskId, value: u64) -> Result<(), Violation> {
        let values = &mut self.0[origin as usize];
        if values.len() == MOST_EARLY {
            return Err(Violation::EarlyAddress);
        }
        values.push_back(value);
        Ok(())
    }

    /// Takes one value of each task, once all have arrived.
    fn take(&mut self) -> Option<Vec<u64>> {
        if self.0.iter().any(VecDeque::is_empty) {
            return None;
        }
        self.0.iter_mut().map(VecDeque::pop_front).collect()
    }
}

impl<A: Adapter, S> Context<A, S> {
    /// Tells all tasks a value, and returns those of all, by task (LAPI_Address_init, LAPI_Address_init64). The call is
    /// collective: all tasks make it, in the same order as their other collective calls, and it blocks until they have.
    /// The transport gives the values no meaning; a task without an address passes 0.
    ///
    /// # Errors
    /// [`LapiError::TgtPurged`] if a task is purged; those of [`Context::wait`].
    pub fn address_init(&self, mine: u64) -> Result<Vec<u64>, LapiError> {
        let mut session = self.session_to_wait()?;
        session.check_purged()?;
        let engine = &mut session.engine;
        for target in (0..self.num_tasks() as TaskId).filter(|target| *target != engine.task) {
            engine.outbox.push(target, Outgoing::Control(Packet::Address { value: mine }));
        }
        engine.addresses.0[engine.task as usize].push_back(mine);
        drop(session);
        let mut table = None;
        self.wait(|session| {
            table = table.take().or_else(|| session.engine.addresses.take());
            // The others wait for what is still queued here.
            if session.engine.outbox.queued == 0 { table.take() } else { None }
        })
    }
}

impl<A: Adapter, S> Session<A, S> {
    /// Returns the header handler with an index, if one is set (LAPI_Addr_get).
    ///
    /// # Errors
    /// [`LapiError::AddrHndlRange`] unless `1 <= index < MAX_HANDLERS`.
    pub fn addr_get(&self, index: usize) -> Result<Option<HeaderHandler<S>>, LapiError> {
        check_index(index)?;
        Ok(self.engine.handlers[index])
    }
}
