//! Active messages whose data is lent for the call: what the adapter takes at once is sent from where it lies, and only
//! the rest, which has to wait, is copied.
//!
//! - LT1: the lent bytes are used only inside the call. The adapter copies every body inside its call (A9), or the
//!   message has a copy from the beginning; and a message is put into its send queue only after the rest was copied.

#![expect(unsafe_code, reason = "lends a slice for one call")]

use std::sync::Arc;

use crate::adapter::TaskId;
use crate::error::LapiError;
use crate::memory::body::{Pack, Source};
use crate::memory::region::{ForeignBytes, RecvPart, SendRegion};
use crate::progress::amsend::{Message, check_handler, check_target, check_uhdr};
use crate::progress::session::Session;

/// The end of a message's data; nobody asks for the bytes before it.
struct Rest {
    bytes: Vec<u8>,
    /// Number of the bytes before it.
    before: usize,
}

impl Pack for Rest {
    fn size(&self) -> usize {
        self.before + self.bytes.len()
    }

    fn pack(&self, offset: usize, mut into: RecvPart<'_>) {
        into.store(0, ForeignBytes::from_slice(&self.bytes[offset - self.before..]));
    }
}

impl<S> Session<S> {
    /// [`Session::amsend`] without counters, of bytes that are borrowed for this call only. What cannot be sent at once
    /// is copied.
    ///
    /// # Errors
    /// As [`Session::amsend`].
    pub fn amsend_bytes(
        &mut self,
        target: TaskId,
        handler: u8,
        uhdr: &[u8],
        udata: &[u8],
    ) -> Result<(), LapiError> {
        check_handler(handler)?;
        check_target(target, self.engine.outbox.send_queues.num_tasks())?;
        check_uhdr(uhdr)?;
        let data = match self.engine.outbox.send_queues[target].copies_bodies() {
            // SAFETY: LT1.
            true => Source::Span(unsafe { SendRegion::new(udata.as_ptr(), udata.len()) }),
            false => Source::from(udata.to_vec()),
        };
        let message = Message::new(handler, uhdr, data);
        let keep_rest = |message: &mut Message<S>| {
            let (before, bytes) = (message.sent, udata[message.sent..].to_vec());
            message.data = Source::Layout(Arc::new(Rest { bytes, before }));
        };
        self.start(target, message, keep_rest).map(drop)
    }
}
