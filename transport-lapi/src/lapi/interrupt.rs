//! Interrupt mode, and the notification thread, which makes progress while no thread of the program does.
//!
//! The thread sleeps on the task's bell, like a waiting thread, and is woken by frames. [`Context::senv`] starts and
//! ends it; [`Context::term`] ends it too.
//!
//! - NT1: the thread never holds the lock while it sleeps, and publishes its sleep like a wait (AW1). So the launcher
//!   counts it among the threads that are blocked in calls while nothing arrives, and finds deadlocks as usual.
//! - NT2: while a thread of the program is in a wait that lasts, the notification thread is parked, not on the bell: so
//!   senders do not wake it, and it does not compete for the lock. The end of the last such wait unparks it. Both
//!   happen under the lock. A wait in polling mode begins with turns in which it is not counted; in interrupt mode it
//!   has none of these. A wait that begins while the mode changes may have them still, which costs time only. A thread
//!   that is on the bell when a wait begins parks when it next wakes, without having polled or run continuations. A
//!   wait whose thread runs continuations does not poll, so it is not counted meanwhile. Continuations are mostly
//!   short, so that unparks the notification thread only if somebody relies on it: a wait without polling that lasts or
//!   begins.
//! - NT3: a notification thread ends when its number is not the session's any more, when the context was terminated,
//!   and when nobody else has the context. It reads this under the lock before each sleep; whoever changes it rings the
//!   bell and unparks the thread afterwards. The last case is noticed at the next look of a sleeping thread, a tenth of
//!   a second later. It also ends, and leaves interrupt mode itself, when its task was declared lost.
//! - NT4: whoever ends the thread waits for it without the lock, unless it is that thread itself.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use crate::error::LapiError;
use crate::lapi::query::{Query, check_range};
use crate::progress::awaited::{Publication, Unnamed};
use crate::progress::completion::panic_text;
use crate::progress::context::{Context, LOOK_AGAIN, SessionGuard};
use crate::progress::round::{BUDGET, keep_first};
use crate::progress::session::Session;

/// The notification thread of a context.
pub(super) struct Notification {
    number: u32,
    thread: JoinHandle<()>,
}

impl Notification {
    /// Wakes the thread if it is parked.
    pub fn unpark(&self) {
        self.thread.thread().unpark();
    }

    /// Waits until the thread has ended (NT4). The caller has taken it out of the session and released the lock.
    pub fn join(self) {
        self.unpark();
        if self.thread.thread().id() != thread::current().id() {
            // The thread catches the panics of handlers, so the result contains nothing of interest.
            let _ = self.thread.join();
        }
    }
}

impl<S: Send + 'static> Context<S> {
    /// Sets a property of the context: ACK_THRESHOLD, ERROR_CHK, INTERRUPT_SET or TIMEOUT (LAPI_Senv); [`Query`] says
    /// which values are legal and what they do.
    ///
    /// With INTERRUPT_SET a context changes between polling mode and interrupt mode. In interrupt mode a thread of the
    /// transport makes progress while no thread of the program waits in a call, so handlers and continuations may run
    /// on that thread, at any time at which no other thread holds the session. A context begins in polling mode, while
    /// LAPI's begin in interrupt mode. After a change to polling mode that thread has ended. A context in interrupt
    /// mode lives until it is terminated, or for a moment after its last owner has dropped it. A handler or
    /// continuation that blocks keeps that thread from its work, as it does a thread of the program: what may block
    /// belongs into [`crate::Next::Thread`].
    ///
    /// # Errors
    /// [`LapiError::QueryType`] for any other key; [`LapiError::SetVal`]; [`LapiError::NotificationThread`] if the
    /// system refuses the thread; those of [`Context::session`].
    pub fn senv(self: &Arc<Self>, query: Query, value: i64) -> Result<(), LapiError> {
        let mut session = self.session()?;
        if query != Query::InterruptSet {
            return session.set_environment(query, value);
        }
        let is_on = check_range(query, value, 0, 1)? == 1;
        if is_on && !session.is_notified() {
            let number = session.periphery_mut().notifications.wrapping_add(1);
            let notification = self.start(number)?;
            let periphery = session.periphery_mut();
            (periphery.notification, periphery.notifications) = (Some(notification), number);
            self.quick_spins.store(0, Ordering::Relaxed);
        } else if !is_on {
            self.quick_spins.store(self.pace.spins(), Ordering::Relaxed);
            let ended = session.periphery_mut().notification.take();
            session.wake();
            drop(session);
            ended.into_iter().for_each(Notification::join);
        }
        Ok(())
    }

    /// Starts the notification thread with this number.
    fn start(self: &Arc<Self>, number: u32) -> Result<Notification, LapiError> {
        let context = Arc::clone(self);
        let thread = thread::Builder::new().name(format!("lapi-notify-{}", self.task()));
        let thread = thread.spawn(move || context.notify(number));
        Ok(Notification { number, thread: thread.map_err(LapiError::NotificationThread)? })
    }

    /// The notification thread.
    fn notify(self: Arc<Self>, number: u32) {
        let Ok(mut session) = self.session() else { return };
        let mut publication = Publication::default();
        while self.is_notified_by(&session, number) {
            if session.waits > 0 {
                session.unlocked(thread::park);
                continue;
            }
            if let Err(error) = self.stand_by(&mut session, number, &mut publication) {
                // There is nothing left to notify anybody of, so the context is in polling mode from now on.
                keep_first(&mut session.first_error, error);
                session.periphery_mut().notification = None;
                self.quick_spins.store(self.pace.spins(), Ordering::Relaxed);
                session.wake();
                break;
            }
            if session.waits > 0 {
                continue;
            }
            let work = AssertUnwindSafe(|| self.work_unlocked(&mut session));
            if let Err(panic) = catch_unwind(work) {
                session.keep_panic(&*panic);
                session.wake();
            }
        }
        publication.unpublish(&mut session);
    }

    /// Whether the notification thread with this number goes on (NT3).
    fn is_notified_by(self: &Arc<Self>, session: &Session<S>, number: u32) -> bool {
        let current = session.periphery().and_then(|periphery| periphery.notification.as_ref());
        let current = current.map(|notification| notification.number);
        current == Some(number) && !session.terminated && Arc::strong_count(self) > 1
    }

    /// Sleeps until there is something to do, and does it. Announces each sleep, and polls once more before it (C2).
    ///
    /// # Errors
    /// This task itself was declared lost.
    fn stand_by(
        self: &Arc<Self>,
        session: &mut SessionGuard<'_, S>,
        number: u32,
        publication: &mut Publication,
    ) -> Result<(), LapiError> {
        let mut first_ticket = None;
        loop {
            let ticket = self.bell.announce();
            let has_rung = first_ticket.is_some_and(|first| first != ticket);
            let has_work = has_rung
                || session.inquiries() != session.answered
                || session.take_in().inspect_err(|_| self.bell.retract())?
                || session.has_continuations();
            if has_work {
                self.bell.retract();
                break;
            }
            let never = Unnamed::new(|_: &mut Session<S>| None::<()>);
            let state = session.thread_state(ticket);
            match first_ticket {
                None => publication.post(session, &never, state),
                Some(_) => publication.looked_again(session),
            }
            first_ticket = Some(ticket);
            session.sleeping += 1;
            let mut rung = false;
            session.unlocked(|| rung = self.bell.sleep(ticket, Some(LOOK_AGAIN)));
            session.sleeping -= 1;
            if rung || session.waits > 0 || !self.is_notified_by(session, number) {
                break;
            }
        }
        publication.unpublish(session);
        Ok(())
    }
}

impl<S> Session<S> {
    /// Makes a round of progress for the notification thread, and acts on lost tasks. Returns whether there was
    /// anything to do. An error is reported to the error handler; without one it is kept for the next call of progress.
    /// So is the panic of a handler or hook, which has no caller here.
    ///
    /// # Errors
    /// This task itself was declared lost.
    fn take_in(&mut self) -> Result<bool, LapiError> {
        let older = self.first_error.take();
        let round = catch_unwind(AssertUnwindSafe(|| match self.turn(BUDGET, None) {
            0 if self.first_error.is_none() => self.notice_losses(),
            _ => Ok(true),
        }));
        let done = round.unwrap_or_else(|panic| {
            self.keep_panic(&*panic);
            Ok(true)
        });
        self.round_ended(true);
        let has_failed = self.first_error.is_some();
        if let Err(error) = self.report_first_error() {
            keep_first(&mut self.first_error, error);
        }
        self.first_error = older.or(self.first_error.take());
        if has_failed {
            self.wake();
        }
        Ok(done? || has_failed)
    }

    /// Whether the context is in interrupt mode.
    pub(super) fn is_notified(&self) -> bool {
        self.periphery().is_some_and(|periphery| periphery.notification.is_some())
    }

    /// Keeps the panic of a handler as an error.
    fn keep_panic(&mut self, panic: &(dyn Any + Send)) {
        let message = panic_text(panic);
        keep_first(&mut self.first_error, LapiError::CompletionPanicked { message });
    }
}
