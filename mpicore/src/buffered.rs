//! Buffered sends (MPI-4.1 section 3.6): they copy their data and are complete at once.
//!
//! A program attaches a buffer for each rank, and others for single communicators. Each limits how many bytes of copies
//! may wait to be sent. It is only a limit, not memory: copies are made one by one, and each is freed when its message
//! has left. A message counts with its length, so MPI_BSEND_OVERHEAD may have any value.
//!
//! - BY1: a copy stays here unchanged until its send has ended, or until the device has failed and uses no buffer any
//!   more (V1 of the device).

#![expect(unsafe_code, reason = "lends copies to the device")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use mpjdev::wireup::Native;
use mpjdev::{Call, Device, Ending, Mode, Request, SendRegion, Source, Status};

use crate::communicator::Communicator;
use crate::error::Error;
use crate::memory::packed;
use crate::process::{Host, Hosting};

/// A buffer that a program has attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttachedBuffer {
    /// The most bytes of copies under way at a time: the length of the buffer in bytes. `None` for as many as memory
    /// has room for: MPI_BUFFER_AUTOMATIC.
    pub len: Option<usize>,
    /// The address that the program has given, for the call that detaches the buffer. Nothing is stored there.
    pub address: usize,
}

/// The attached buffer and the copies of messages that have not left yet, of a rank or of a communicator.
#[derive(Default)]
pub(crate) struct Copies {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    attached: Option<AttachedBuffer>,
    /// How many bytes of it are in use, including those of copies that a thread has just taken to test them.
    used: usize,
    sends: Sends,
}

/// Sends under way and the copies that they send, at the same indices (BY1).
#[derive(Default)]
struct Sends {
    requests: Vec<Option<Request>>,
    copies: Vec<Vec<u8>>,
}

impl Sends {
    /// Drops the copies of sends that have ended, and returns how many bytes they had.
    fn drop_ended(&mut self) -> usize {
        let Self { requests, copies } = self;
        let mut ended = requests.iter().map(Option::is_none);
        let mut freed = 0;
        copies.retain(|copy| {
            let has_ended = ended.next().unwrap_or(false);
            freed += if has_ended { copy.len() } else { 0 };
            !has_ended
        });
        requests.retain(Option::is_some);
        freed
    }
}

impl Copies {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes the sends under way to a call of the device, without holding the lock, since callbacks may run in it.
    fn with_sends(
        &self,
        call: impl FnOnce(&mut [Option<Request>]) -> Result<(), mpjdev::Error>,
    ) -> Result<(), mpjdev::Error> {
        let taken = std::mem::take(&mut self.state().sends);
        let mut taken = Taken { copies: self, sends: taken };
        call(&mut taken.sends.requests)
    }

    /// Keeps a send under way with its copy.
    fn keep(&self, request: Request, copy: Vec<u8>) {
        let mut state = self.state();
        state.sends.requests.push(Some(request));
        state.sends.copies.push(copy);
    }

    /// Reserves `bytes` bytes of the attached buffer.
    fn reserve(&self, device: &Device<Native>, bytes: usize) -> Result<(), Error> {
        let take = |state: &mut State| {
            let attached = state.attached.map(|buffer| buffer.len.unwrap_or(usize::MAX));
            let free = attached.unwrap_or(0).saturating_sub(state.used);
            if attached.is_none() || bytes > free {
                let attached = attached.unwrap_or(0);
                return Err(Error::AttachedBuffer { bytes, free, attached });
            }
            state.used += bytes;
            Ok(())
        };
        let taken = take(&mut self.state());
        if taken.is_ok() {
            return taken;
        }
        // Some sends may have ended meanwhile.
        self.with_sends(|sends| device.itestsome(sends).map(drop))?;
        take(&mut self.state())
    }

    /// Gives the copies to the device, which frees each when its send has ended. For a communicator that is gone.
    pub(crate) fn leave(&mut self, device: &Device<Native>) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Sends { requests, copies } = std::mem::take(&mut state.sends);
        for (request, copy) in requests.into_iter().zip(copies) {
            if let Some(request) = request {
                device.detach(request, Box::new(copy));
            }
        }
    }
}

/// Sends that a thread has taken. Dropping this returns them, also when the thread panics (BY1).
struct Taken<'a> {
    copies: &'a Copies,
    sends: Sends,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let freed = self.sends.drop_ended();
        let mut state = self.copies.state();
        state.used -= freed;
        state.sends.requests.append(&mut self.sends.requests);
        state.sends.copies.append(&mut self.sends.copies);
    }
}

/// The place where a buffer for buffered sends can be attached: a rank or a communicator.
pub struct SendBuffer<'a> {
    host: &'a Host,
    copies: &'a Copies,
}

impl Communicator {
    /// Returns the place of the rank's buffer, which all communicators of the same context use: the argument of
    /// MPI_Buffer_attach, MPI_Buffer_flush and so on.
    pub fn rank_buffer(&self) -> SendBuffer<'_> {
        SendBuffer { host: self.host(), copies: &self.process().copies }
    }

    /// Returns the place of the communicator's own buffer: the argument of MPI_Comm_attach_buffer and so on. If one is
    /// attached, buffered sends on the communicator use it instead of the rank's.
    pub fn own_buffer(&self) -> SendBuffer<'_> {
        SendBuffer { host: self.host(), copies: self.copies() }
    }

    /// Sends a copy of `data` to the job rank `dest`, and never waits for the receiver: MPI_Bsend, and each start of
    /// MPI_Bsend_init. The message is sent whenever the rank is in a call that makes progress. Returns the status of a
    /// request that is complete, for MPI_Ibsend.
    ///
    /// # Errors
    /// [`Error::AttachedBuffer`] if there is not enough room, or no buffer; [`Error::Memory`] if memory is exhausted;
    /// those of `isend` of the device. Nothing was sent then.
    pub fn bsend(&self, data: &Source, dest: usize, tag: i32) -> Result<Status, Error> {
        let device = self.device();
        device.check_send(dest, tag)?;
        let has_own = self.copies().state().attached.is_some();
        let copies = if has_own { self.copies() } else { &self.process().copies };
        let len = data.len();
        copies.reserve(device, len)?;
        let started = packed(data).and_then(|copy| {
            // SAFETY: BY1: if the send is under way, `copy` is kept until it has ended.
            let region = unsafe { SendRegion::new(copy.as_ptr(), len) };
            Ok((device.isend(region, dest, tag, self.context(), Mode::Standard)?, copy))
        });
        match started {
            Ok((request, copy)) if request.completed().is_none() => copies.keep(request, copy),
            outcome => {
                copies.state().used -= len;
                outcome.map(drop)?;
            }
        }
        Ok(Status::new(dest as u32, tag, len))
    }
}

impl SendBuffer<'_> {
    fn device(&self) -> &Device<Native> {
        (**self.host).as_ref().device()
    }

    /// Attaches a buffer, and so allows buffered sends: MPI_Buffer_attach, MPI_Comm_attach_buffer.
    ///
    /// # Errors
    /// [`Error::Attached`] if there is a buffer already.
    pub fn attach(&self, buffer: AttachedBuffer) -> Result<(), Error> {
        let mut state = self.copies.state();
        match state.attached {
            Some(AttachedBuffer { len, .. }) => Err(Error::Attached { attached: len }),
            None => {
                state.attached = Some(buffer);
                Ok(())
            }
        }
    }

    /// Waits until all sends that use the buffer have left, and allows no further ones: MPI_Buffer_detach,
    /// MPI_Comm_detach_buffer. Returns the buffer, if one was attached.
    ///
    /// # Errors
    /// The device has failed. It is no error if a message could not be sent because its receiver is gone.
    pub fn detach(&self) -> Result<Option<AttachedBuffer>, Error> {
        let attached = self.copies.state().attached.take();
        self.flush()?;
        Ok(attached)
    }

    /// Waits until all sends that use the buffer have left: MPI_Buffer_flush, MPI_Comm_flush_buffer.
    ///
    /// # Errors
    /// As [`SendBuffer::detach`].
    pub fn flush(&self) -> Result<(), Error> {
        Ok(self.copies.with_sends(|sends| self.device().iwaiteach(sends, |_outcome| {}))?)
    }

    /// Returns a request that is complete when all sends that use the buffer at present have left: MPI_Buffer_iflush,
    /// MPI_Comm_iflush_buffer.
    ///
    /// # Errors
    /// The device has failed.
    pub fn start_flush(&self) -> Result<Request, Error> {
        let device = self.device();
        let (flushed, ending) = device.begin(Call::Other, 0, 0)?;
        let flush = Arc::new(Flush {
            host: Arc::downgrade(self.host),
            under_way: AtomicUsize::new(1),
            ending: Mutex::new(Some(ending)),
        });
        // Each send gets another request in its place, which ends after it.
        let followed = self.copies.with_sends(|sends| {
            for place in sends.iter_mut().filter(|place| place.is_some()) {
                let (instead, ending) = device.begin(Call::Other, 0, 0)?;
                if let Some(send) = place.replace(instead) {
                    flush.under_way.fetch_add(1, Ordering::Relaxed);
                    let flush = flush.clone();
                    device.then(send, move |outcome| flush.sent(Some((ending, outcome))))?;
                }
            }
            Ok(())
        });
        flush.sent(None);
        followed?;
        Ok(flushed)
    }
}

/// A flush that was started.
struct Flush {
    host: Weak<dyn Hosting>,
    /// How many sends are under way, and one until all are counted.
    under_way: AtomicUsize,
    ending: Mutex<Option<Ending>>,
}

impl Flush {
    /// Ends the request in the place of a send, and the flush after the last one.
    fn sent(&self, send: Option<(Ending, Result<Status, mpjdev::Error>)>) {
        let Some(host) = self.host.upgrade() else { return };
        let device = (*host).as_ref().device();
        if let Some((ending, outcome)) = send {
            device.end(ending, outcome);
        }
        if self.under_way.fetch_sub(1, Ordering::AcqRel) == 1 {
            let ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(ending) = ending {
                device.end(ending, Ok(Status::new(0, 0, 0)));
            }
        }
    }
}
