//! LAPI_Msgpoll: progress until a message has been sent or has arrived.

use crate::error::LapiError;
use crate::progress::session::Session;

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

impl<S> Session<S> {
    /// Makes rounds of progress, at most `rounds`, until a message has been sent or has arrived completely
    /// (LAPI_Msgpoll). Never blocks. POLLING_NET does not exist: the caller has the session, so nobody else polls.
    ///
    /// # Errors
    /// As [`Session::progress`].
    pub fn msgpoll(&mut self, rounds: u32) -> Result<MsgInfo, LapiError> {
        for _ in 0..rounds {
            let before = self.counts();
            let done = self.round() as u64;
            self.report_first_error()?;
            let [partial, rest, closed] = self.counts();
            let recv_complete = done > (partial - before[0]) + (rest - before[1]);
            let send_complete = closed > before[2];
            let info = MsgInfo { send_complete, recv_complete, disp_cntr: false };
            if info != MsgInfo::default() {
                return Ok(info);
            }
        }
        Ok(MsgInfo { disp_cntr: true, ..MsgInfo::default() })
    }

    /// How many frames have arrived that did not complete a message, how many other things rounds have done, and how
    /// many messages have left the queues.
    fn counts(&self) -> [u64; 3] {
        [self.engine.partial, self.engine.rest, self.engine.outbox.closed]
    }
}
