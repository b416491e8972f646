//! LAPI_Msgpoll: progress until a message has been sent or has arrived.

use crate::adapter::Adapter;
use crate::engine::Dispatcher;
use crate::error::LapiError;
use crate::session::{BUDGET, Session};

/// Why [`Session::msgpoll`] has returned: the bits of `lapi_msg_info_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MsgInfo {
    /// SEND_COMPLETE: a message that had been queued has been sent.
    pub send_complete: bool,
    /// RECV_COMPLETE: a message has arrived completely.
    pub recv_complete: bool,
    /// DISP_CNTR: all rounds were made, and neither has happened.
    pub disp_cntr: bool,
}

impl<A: Adapter, S> Session<A, S> {
    /// Makes rounds of progress, at most `rounds`, until a message has been sent or has arrived completely
    /// (LAPI_Msgpoll). Never blocks. POLLING_NET does not exist: the caller has the session, so nobody else polls.
    ///
    /// # Errors
    /// As [`Session::progress`].
    pub fn msgpoll(&mut self, rounds: u32) -> Result<MsgInfo, LapiError> {
        for _ in 0..rounds {
            let (partial, closed) = (self.engine.partial, self.engine.outbox.closed);
            let Self { state, adapter, engine, trouble, .. } = self;
            let events = &mut Dispatcher { state, engine, trouble };
            let arrived = match adapter.poll(None, BUDGET, events) {
                Ok(arrived) => arrived as u64,
                Err(error) => self.keep_first(error.into()) as u64,
            };
            let partial = self.engine.partial.wrapping_sub(partial);
            self.after_arrivals(arrived > 0);
            self.report_trouble()?;
            let info = MsgInfo {
                send_complete: self.engine.outbox.closed != closed,
                recv_complete: arrived > partial,
                disp_cntr: false,
            };
            if info != MsgInfo::default() {
                return Ok(info);
            }
        }
        Ok(MsgInfo { disp_cntr: true, ..MsgInfo::default() })
    }
}
