//! LAPI_Nopoll_wait: a wait for a counter that sleeps and makes no progress itself.
//!
//! The thread parks, and another one must make progress: the notification thread ([`crate::lapi::interrupt`]), or a
//! thread of the program that waits or polls. Whoever ends a round of progress wakes the thread when its counter has
//! reached its value, and when the wait must fail. A wake-up between the check of the counter and the sleep is not
//! lost, since a thread that was unparked before it parks does not sleep. A continuation may wait in this way too: the
//! wait whose thread runs it is not counted meanwhile, and the notification thread is unparked (NT2 of
//! [`crate::lapi::interrupt`]).

use std::thread;

use crate::error::LapiError;
use crate::platform::sys;
use crate::progress::context::{Context, SessionGuard};
use crate::progress::counter::CounterId;

impl<S> Context<S> {
    /// Waits until the counter has reached `value`, subtracts `value`, and returns the remainder, like
    /// [`Context::waitcntr`], but sleeps without making progress (LAPI_Nopoll_wait). So it needs interrupt mode
    /// ([`Context::senv`]), or another thread that waits or polls in this context; without either it sleeps until
    /// another thread begins to.
    ///
    /// # Errors
    /// [`LapiError::CntrVal`] if `value < 1`; [`LapiError::CntrNull`] if there is no such counter;
    /// [`LapiError::MultipleWaiters`] if another thread waits for it in this way; [`LapiError::TgtPurged`] if one of
    /// its destinations was purged ([`crate::Session::setcntr_wstatus`]); [`LapiError::NobodyPolls`] if the process has
    /// no other thread, so that the wait could never end; those of [`Context::wait`] that other threads' progress has
    /// found.
    pub fn nopoll_wait(&self, counter: CounterId, value: i64) -> Result<i64, LapiError> {
        if value < 1 {
            return Err(LapiError::CntrVal { value });
        }
        let mut session = self.session_to_wait()?;
        session.engine.outbox.counters.begin_waiting(counter, value, thread::current())?;
        session.waits_ended();
        session.sleeping += 1;
        let outcome = sleep_on(&mut session, counter, value);
        session.sleeping -= 1;
        session.engine.outbox.counters.end_waiting(counter);
        outcome
    }
}

/// Sleeps until the wait is over. The context may be terminated whenever the lock is free.
fn sleep_on<S>(
    session: &mut SessionGuard<'_, S>,
    counter: CounterId,
    value: i64,
) -> Result<i64, LapiError> {
    loop {
        if session.terminated {
            return Err(session.refuse());
        }
        if let Some(rest) = session.engine.outbox.counters.take(counter, value)? {
            return Ok(rest);
        }
        if let Some(first_error) = session.first_error.take() {
            return Err(*first_error);
        }
        session.check_own()?;
        session.check_lost()?;
        if !session.is_notified() && sys::is_only_thread() {
            return Err(LapiError::NobodyPolls);
        }
        session.unlocked(thread::park);
    }
}
