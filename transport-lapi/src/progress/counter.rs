//! The counters of one task: LAPI_Setcntr, LAPI_Getcntr, LAPI_Setcntr_wstatus, and the arithmetic of LAPI_Waitcntr and
//! LAPI_Nopoll_wait.
//!
//! A counter is identified by its index in the task's table. Tasks that make their counters in the same order know each
//! other's indices. A counter may have a list of destinations, whose statuses tell which of them the counted events
//! came from; and one thread may sleep on it without polling ([`crate::Context::nopoll_wait`]). Both are rare, so they
//! lie beside the values.

use std::thread::Thread;

use crate::adapter::TaskId;
use crate::error::LapiError;
use crate::progress::context::Context;
use crate::progress::session::Session;

/// Identifies a counter of one task: its index in the task's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CounterId(pub u32);

impl CounterId {
    /// How the counter is written in a packet: its index plus one.
    pub(crate) fn on_wire(counter: Option<Self>) -> u32 {
        counter.map_or(0, |counter| counter.0.saturating_add(1))
    }
}

/// What is known about one destination of a counter ([`Session::setcntr_wstatus`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DestStatus {
    /// INITIAL: no event of this destination has been counted.
    Initial = 0,
    /// RECVD: an event of this destination has been counted.
    Received = 1,
    /// PURGED: the destination was purged, and no event of it had been counted.
    Purged = 2,
    /// PURGED_RCVD: an event of the destination had been counted when it was purged.
    PurgedReceived = 3,
    /// INVALID: the job has no such task.
    Invalid = 4,
}

/// A destination of a counter.
#[derive(Debug)]
struct Listed {
    counter: u32,
    task: TaskId,
    status: DestStatus,
}

/// A thread that sleeps until a counter has reached a value.
#[derive(Debug)]
struct Waiter {
    counter: u32,
    value: i64,
    thread: Thread,
}

/// The table of counters.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    values: Vec<i64>,
    /// The destinations of all counters, in the order of their lists.
    listed: Vec<Listed>,
    /// At most one for each counter.
    waiters: Vec<Waiter>,
}

impl Counters {
    /// Adds a counter with value 0.
    pub fn add(&mut self) -> CounterId {
        self.values.push(0);
        CounterId(self.values.len() as u32 - 1)
    }

    /// The value, to read or to set.
    pub fn value(&mut self, id: CounterId) -> Result<&mut i64, LapiError> {
        let count = self.values.len();
        let unknown = LapiError::CntrNull { index: id.0, count };
        self.values.get_mut(id.0 as usize).ok_or(unknown)
    }

    /// Sets the value, and forgets the counter's destinations.
    pub fn set(&mut self, id: CounterId, value: i64) -> Result<(), LapiError> {
        *self.value(id)? = value;
        self.listed.retain(|listed| listed.counter != id.0);
        Ok(())
    }

    /// Adds one to the counter with this number in a packet (its index plus one; 0 stands for none). Returns whether it
    /// exists.
    pub fn count_on_wire(&mut self, on_wire: u32) -> bool {
        let Some(index) = on_wire.checked_sub(1) else {
            return true;
        };
        match self.values.get_mut(index as usize) {
            Some(value) => *value = value.saturating_add(1),
            None => return false,
        }
        true
    }

    /// [`Counters::count_on_wire`] for an event of `peer`.
    pub fn count_from(&mut self, on_wire: u32, peer: TaskId) -> bool {
        self.mark(on_wire, peer);
        self.count_on_wire(on_wire)
    }

    /// Marks `peer` for an event that is counted by the counter with this number in a packet, if it is a destination of
    /// that counter.
    pub fn mark(&mut self, on_wire: u32, peer: TaskId) {
        let mut listed = self.listed.iter_mut();
        let is_due = |listed: &&mut Listed| {
            Some(listed.counter) == on_wire.checked_sub(1)
                && listed.task == peer
                && listed.status == DestStatus::Initial
        };
        if let Some(listed) = listed.find(is_due) {
            listed.status = DestStatus::Received;
        }
    }

    /// If the counter has reached `value`, subtracts it and returns the remainder. Fails if that cannot happen any more
    /// because a destination was purged.
    pub fn take(&mut self, id: CounterId, value: i64) -> Result<Option<i64>, LapiError> {
        let current = self.value(id)?;
        if *current >= value {
            *current -= value;
            return Ok(Some(*current));
        }
        let is_missing =
            |listed: &&Listed| listed.counter == id.0 && listed.status == DestStatus::Purged;
        match self.listed.iter().find(is_missing) {
            Some(listed) => Err(LapiError::TgtPurged { target: listed.task }),
            None => Ok(None),
        }
    }

    /// Sets the counter to 0 and lists its destinations with their first statuses.
    fn list(
        &mut self,
        id: CounterId,
        destinations: impl Iterator<Item = (TaskId, DestStatus)>,
    ) -> Result<(), LapiError> {
        self.set(id, 0)?;
        let listed = |(task, status)| Listed { counter: id.0, task, status };
        self.listed.extend(destinations.map(listed));
        Ok(())
    }

    /// Records that the connection to `task` was closed.
    pub fn closed(&mut self, task: TaskId) {
        for listed in self.listed.iter_mut().filter(|listed| listed.task == task) {
            listed.status = match listed.status {
                DestStatus::Initial => DestStatus::Purged,
                DestStatus::Received => DestStatus::PurgedReceived,
                other => other,
            };
        }
    }

    /// Records that `thread` sleeps until the counter has reached `value`.
    pub fn begin_waiting(
        &mut self,
        id: CounterId,
        value: i64,
        thread: Thread,
    ) -> Result<(), LapiError> {
        self.value(id)?;
        if self.waiters.iter().any(|waiter| waiter.counter == id.0) {
            return Err(LapiError::MultipleWaiters { index: id.0 });
        }
        self.waiters.push(Waiter { counter: id.0, value, thread });
        Ok(())
    }

    /// Ends what [`Counters::begin_waiting`] began.
    pub fn end_waiting(&mut self, id: CounterId) {
        self.waiters.retain(|waiter| waiter.counter != id.0);
    }

    /// Whether threads sleep on counters.
    pub fn has_waiters(&self) -> bool {
        !self.waiters.is_empty()
    }

    /// Wakes the threads that sleep on counters: `all`, or those whose counter has reached its value.
    pub fn wake_waiters(&self, all: bool) {
        let is_due = |waiter: &&Waiter| all || self.values[waiter.counter as usize] >= waiter.value;
        self.waiters.iter().filter(is_due).for_each(|waiter| waiter.thread.unpark());
    }
}

impl<S> Session<S> {
    /// Makes a counter with value 0. Tasks that make their counters in the same order know each other's.
    pub fn counter(&mut self) -> CounterId {
        self.engine.outbox.counters.add()
    }

    /// Sets a counter, and forgets its destinations (LAPI_Setcntr).
    ///
    /// # Errors
    /// [`LapiError::CntrNull`] if there is no such counter.
    pub fn setcntr(&mut self, counter: CounterId, value: i64) -> Result<(), LapiError> {
        self.engine.outbox.counters.set(counter, value)?;
        self.wake();
        Ok(())
    }

    /// Reads a counter without progress (LAPI_Getcntr).
    ///
    /// # Errors
    /// [`LapiError::CntrNull`] if there is no such counter.
    pub fn getcntr(&mut self, counter: CounterId) -> Result<i64, LapiError> {
        Ok(*self.engine.outbox.counters.value(counter)?)
    }

    /// Sets a counter to 0 and gives it destinations, each with a status (LAPI_Setcntr_wstatus). Each event that names
    /// its other task marks one entry of that task: the end of a message at its target or at its origin, and the end of
    /// a get. That an origin's buffer is reusable says nothing about a destination, and marks none. A wait for a
    /// counter fails with [`LapiError::TgtPurged`] if its value is not reached and a destination was purged before its
    /// event.
    ///
    /// # Errors
    /// [`LapiError::CntrNull`] if there is no such counter. A destination that is no task of the job is no error: it
    /// has the status [`DestStatus::Invalid`].
    pub fn setcntr_wstatus(
        &mut self,
        counter: CounterId,
        destinations: &[TaskId],
    ) -> Result<(), LapiError> {
        let outbox = &mut self.engine.outbox;
        let send_queues = &outbox.send_queues;
        let first = |&task: &TaskId| match send_queues.get(task as usize) {
            None => (task, DestStatus::Invalid),
            Some(send_queue) if send_queue.is_closed() => (task, DestStatus::Purged),
            Some(_) => (task, DestStatus::Initial),
        };
        outbox.counters.list(counter, destinations.iter().map(first))?;
        // A wait for this counter fails if a destination was purged before.
        self.wake();
        Ok(())
    }

    /// Returns the statuses of a counter's destinations, in the order of the list; none if it has no list.
    ///
    /// # Errors
    /// [`LapiError::CntrNull`] if there is no such counter.
    pub fn cntr_status(&mut self, counter: CounterId) -> Result<Vec<DestStatus>, LapiError> {
        let counters = &mut self.engine.outbox.counters;
        counters.value(counter)?;
        let listed = counters.listed.iter().filter(|listed| listed.counter == counter.0);
        Ok(listed.map(|listed| listed.status).collect())
    }
}

impl<S> Context<S> {
    /// Waits until the counter has reached `value`, subtracts `value`, and returns the remainder (LAPI_Waitcntr).
    ///
    /// # Errors
    /// [`LapiError::CntrVal`] if `value < 1`; [`LapiError::CntrNull`] if there is no such counter;
    /// those of [`Context::wait`].
    pub fn waitcntr(&self, counter: CounterId, value: i64) -> Result<i64, LapiError> {
        if value < 1 {
            return Err(LapiError::CntrVal { value });
        }
        self.wait(|session| session.engine.outbox.counters.take(counter, value).transpose())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_subtracts_and_keeps_the_surplus() {
        let mut counters = Counters::default();
        let id = counters.add();
        *counters.value(id).unwrap() = 5;
        assert_eq!(counters.take(id, 3).unwrap(), Some(2));
        assert_eq!(counters.take(id, 3).unwrap(), None);
        assert_eq!(*counters.value(id).unwrap(), 2);
    }

    #[test]
    fn unknown_counters_are_named() {
        let mut counters = Counters::default();
        let error = counters.take(CounterId(3), 1).unwrap_err();
        assert!(matches!(error, LapiError::CntrNull { index: 3, count: 0 }));
        assert!(!counters.count_on_wire(1));
        assert!(counters.count_on_wire(0));
    }

    #[test]
    fn each_event_marks_one_entry_of_its_task() {
        use DestStatus::{Initial, Purged, PurgedReceived, Received};
        let mut counters = Counters::default();
        let (id, other) = (counters.add(), counters.add());
        for counter in [id, other] {
            counters.list(counter, [7, 8, 7].map(|task| (task, Initial)).into_iter()).unwrap();
        }
        assert!(counters.count_from(CounterId::on_wire(Some(id)), 7));
        assert!(counters.count_from(0, 8), "no counter");
        counters.closed(7);
        let statuses = |counters: &Counters, id: CounterId| {
            let listed = counters.listed.iter().filter(|listed| listed.counter == id.0);
            listed.map(|listed| listed.status).collect::<Vec<_>>()
        };
        assert_eq!(statuses(&counters, id), [PurgedReceived, Initial, Purged]);
        assert_eq!(statuses(&counters, other), [Purged, Initial, Purged]);
        assert!(counters.count_from(CounterId::on_wire(Some(id)), 8));
        assert_eq!(statuses(&counters, id), [PurgedReceived, Received, Purged]);
        assert_eq!(counters.take(id, 2).unwrap(), Some(0), "enough events came");
        assert!(matches!(counters.take(id, 1), Err(LapiError::TgtPurged { target: 7 })));
    }
}
