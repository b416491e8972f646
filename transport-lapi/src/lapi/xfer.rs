//! LAPI_Xfer: every transfer as a value of one type.

use crate::adapter::TaskId;
use crate::error::LapiError;
use crate::memory::body::Sink;
use crate::memory::region::RemoteRegion;
use crate::one_sided::{Getv, Put, Putv};
use crate::progress::amsend::{Amsend, Sent};
use crate::progress::counter::CounterId;
use crate::progress::handler::Next;
use crate::progress::rmw::Rmw;
use crate::progress::session::Session;

/// A transfer: `lapi_xfer_t`. The action in each of them takes the place of LAPI's origin counter, send completion
/// handler or get completion handler.
pub enum Xfer<'a, S> {
    /// LAPI_GET_XFER.
    Get {
        /// The task that owns the memory; may be the caller.
        target: TaskId,
        /// The target's memory.
        remote: RemoteRegion,
        /// Offset in that memory, in bytes.
        offset: u64,
        /// Where the bytes go; its length is that of the get.
        into: Sink,
        /// The action when all data is stored at the origin.
        next: Next<S>,
        /// Counter *of the target* that is incremented when its memory has been read.
        tgt_cntr: Option<CounterId>,
    },
    /// LAPI_AM_XFER; LAPI_AMV_XFER and LAPI_DGSP_XFER if the data is a layout.
    Am(Amsend<'a, S>),
    /// LAPI_PUT_XFER.
    Put(Put<S>),
    /// LAPI_GETV_XFER.
    Getv(Getv<'a, S>),
    /// LAPI_PUTV_XFER.
    Putv(Putv<'a, S>),
    /// LAPI_RMW_XFER.
    Rmw(Rmw<S>),
}

impl<S> Session<S> {
    /// Starts a transfer (LAPI_Xfer). Gets and read-modify-writes return [`Sent::Later`], even if they end at once
    /// because their memory is in a shared area.
    ///
    /// # Errors
    /// Those of the call for this kind of transfer.
    pub fn xfer(&mut self, transfer: Xfer<'_, S>) -> Result<Sent, LapiError> {
        match transfer {
            Xfer::Get { target, remote, offset, into, next, tgt_cntr } => {
                self.engine.outbox.get_counted(target, remote, offset, into, next, tgt_cntr)?;
                // The target's counter may wait in the send queue.
                self.end_call(Next::Nothing);
                Ok(Sent::Later)
            }
            Xfer::Am(call) => self.amsend(call),
            Xfer::Put(call) => self.put(call),
            Xfer::Getv(call) => self.getv(call).map(|()| Sent::Later),
            Xfer::Putv(call) => self.putv(call),
            Xfer::Rmw(call) => self.rmw(call).map(|_| Sent::Later),
        }
    }
}
