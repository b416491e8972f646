//! Active messages whose data is lent for the call: what the adapter takes at once is sent from where it lies, and only
//! the rest, which has to wait, is copied.
//!
//! - LT1: the lent bytes are used only inside the call. The adapter copies every body inside its call (A9), or nothing
//!   is sent from the lent bytes; and a message is put into its send queue only after the rest was copied.

#![expect(unsafe_code, reason = "lends a slice for one call")]

use std::sync::Arc;

use crate::adapter::{AdapterError, TaskId};
use crate::adapters::AnyAdapter;
use crate::error::LapiError;
use crate::memory::body::{Pack, Source};
use crate::memory::region::{ForeignBytes, RecvPart, SendRegion};
use crate::progress::amsend::{Amsend, FrameSent, Outgoing, Queued, check_handler};
use crate::progress::outbox::{Outbox, SendQueue};
use crate::progress::session::{Session, keep_first};

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
        // SAFETY: LT1: `send_whole` sends only if the adapter copies every body inside the call (A9).
        let lent = unsafe { SendRegion::new(udata.as_ptr(), udata.len()) };
        if self.send_whole(&Amsend::new(target, handler, uhdr, lent))? {
            return Ok(());
        }
        self.engine.outbox.check_lost(target)?;
        if self.losses.is_lost(target) {
            return Err(AdapterError::PeerLost { task: target }.into());
        }
        let outbox = &mut self.engine.outbox;
        let mut message = Queued::new(handler, uhdr, Source::Span(lent));
        match outbox.send_lent(&mut self.adapter, target, &mut message) {
            Ok(FrameSent::Last) => return Ok(()),
            Err(error) if message.sent == 0 => return Err(error),
            // The target gets the rest, or learns of the failure in another way.
            Err(error) => keep_first(&mut self.first_error, error),
            Ok(_) => {}
        }
        let (before, bytes) = (message.sent, udata[message.sent..].to_vec());
        message.data = Source::Layout(Arc::new(Rest { bytes, before }));
        let number = outbox.messages.insert(message);
        outbox.push(target, Outgoing::Message(number));
        Ok(())
    }
}

impl<S> Outbox<S> {
    /// Offers the frames of a message that is in no send queue, if nothing is queued before it and bodies are copied.
    fn send_lent(
        &mut self,
        adapter: &mut AnyAdapter,
        target: TaskId,
        message: &mut Queued<S>,
    ) -> Result<FrameSent, LapiError> {
        let Self { send_queues, in_flight, closed, .. } = self;
        let send_queue = &mut send_queues[target as usize];
        if !send_queue.is_free || !send_queue.copies_bodies() {
            return Ok(FrameSent::Full);
        }
        send_queue.dirty = true;
        loop {
            let SendQueue { next_msg, pieces, .. } = &mut *send_queue;
            match message.send_frame(adapter, target, next_msg, *pieces, in_flight)? {
                FrameSent::Part => {}
                end => {
                    *closed += u64::from(matches!(end, FrameSent::Last));
                    return Ok(end);
                }
            }
        }
    }
}
