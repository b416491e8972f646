//! LAPI's periphery: what LAPI offers beside messages. No message needs it, and nothing below this room names it; it
//! hangs on the hooks of `progress/hooks.rs`.
//!
//! - `query.rs`, `timeout.rs`, `interrupt.rs`: LAPI_Qenv and LAPI_Senv, with what can be set: time limits and interrupt
//!   mode.
//! - `error_handler.rs`, `message_text.rs`: asynchronous conditions and the texts of LAPI's codes.
//! - `purge.rs`: LAPI_Purge_totask and LAPI_Resume_totask.
//! - `xfer.rs`, `dgsp.rs`: LAPI_Xfer, and data descriptions by programs.
//! - `msgpoll.rs`, `nopoll.rs`: LAPI_Msgpoll, LAPI_Nopoll_wait.

pub(crate) mod dgsp;
pub(crate) mod error_handler;
mod interrupt;
pub(crate) mod message_text;
pub(crate) mod msgpoll;
mod nopoll;
mod purge;
pub(crate) mod query;
mod timeout;
pub(crate) mod xfer;

use std::any::Any;

use crate::error::LapiError;
use crate::progress::hooks::{Hooks, Positions};
use crate::progress::session::Session;

/// What LAPI_Senv has set for a context. It hangs on the session from the first such call on.
#[derive(Default)]
struct Periphery {
    environment: query::Environment,
    timer: timeout::Timer,
    /// The notification thread, in interrupt mode.
    notification: Option<interrupt::Notification>,
    /// How many notification threads have been started.
    notifications: u32,
}

impl Hooks for Periphery {
    fn waits_ended(&self) {
        self.notification.iter().for_each(interrupt::Notification::unpark);
    }

    fn may_go_on(&self, queued: usize) -> bool {
        self.environment.timeout.is_some() && queued > 0
    }

    fn round_ended(
        &mut self,
        send_queues: &mut Positions<'_>,
        has_slept: bool,
    ) -> Result<(), LapiError> {
        match self.environment.timeout {
            Some(limit) if has_slept || self.timer.is_due() => self.timer.look(send_queues, limit),
            _ => Ok(()),
        }
    }

    fn close(self: Box<Self>) {
        self.notification.into_iter().for_each(interrupt::Notification::join);
    }

    fn forget(self: Box<Self>) {
        std::mem::forget(self.notification);
    }
}

impl<S> Session<S> {
    /// What LAPI_Senv has set, if it was called.
    fn periphery(&self) -> Option<&Periphery> {
        let hooks: &dyn Any = &**self.hooks.as_ref()?;
        hooks.downcast_ref()
    }

    /// What LAPI_Senv has set; hangs it on the session first.
    fn periphery_mut(&mut self) -> &mut Periphery {
        let hooks = self.hooks.get_or_insert_with(|| Box::new(Periphery::default()));
        let hooks: &mut dyn Any = &mut **hooks;
        hooks.downcast_mut().expect("nothing else hangs on sessions")
    }
}
