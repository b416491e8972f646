//! Buffered sends (MPI-4.1 section 3.6): they copy their data and are complete at once.
//!
//! A program attaches a buffer for each rank, and others for sessions and for single communicators. Each limits how
//! many bytes of copies may wait to be sent. It is only a limit, not memory: copies are made one by one, and each is
//! freed when its message has left. A message counts with its length, so MPI_BSEND_OVERHEAD may have any value. It
//! counts until the device knows that its send has ended.
//!
//! Several threads may send, flush and detach at once:
//!
//! - BY1: a copy stays here unchanged until its send has ended, or until the device has failed and uses no buffer any
//!   more (V1 of the device).
//! - BY2: one lock guards the buffer, the sends under way and their copies. A send starts and is noted without the lock
//!   being free in between, and nobody takes sends out before they have ended. So whoever has the lock sees each
//!   message that is under way: a flush misses none, and no thread finds less room than there is.
//! - BY3: no thread waits or makes progress while it has the lock, since progress runs functions of the program, which
//!   may send, too. A flush joins the sends under way to one operation of the device, and waits for that without the
//!   lock. Threads take the lock before that of the device, never after it.

#![expect(unsafe_code, reason = "lends copies to the device")]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mpjdev::{Device, Mode, Request, SendRegion, Source, Status};

use crate::error::Error;
use crate::memory::packed;
use crate::process::Process;

/// A buffer that a program has attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttachedBuffer {
    /// The most bytes of copies under way at a time: the length of the buffer in bytes. `None` for as many as memory
    /// has room for: MPI_BUFFER_AUTOMATIC.
    pub len: Option<usize>,
    /// The address that the program has given, for the call that detaches the buffer. Nothing is stored there.
    pub address: usize,
}

/// The attached buffer and the copies of messages that have not left yet, of a rank, a session or a communicator.
#[derive(Default)]
pub(crate) struct Copies {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    attached: Option<AttachedBuffer>,
    /// Whether a thread waits to detach the buffer, so that no further message may use it.
    is_leaving: bool,
    /// Sends under way and the copies that they send, at the same indices (BY1).
    requests: Vec<Option<Request>>,
    copies: Vec<Vec<u8>>,
    /// How many bytes the copies have together.
    used: usize,
    /// The number of copies at which those of ended sends are dropped, even if there is room.
    most: usize,
}

/// The least number of copies at which those of ended sends are dropped.
const FEW: usize = 16;

impl State {
    /// Checks that there is a buffer, and room for a message in it.
    fn check(&self, bytes: usize) -> Result<(), Error> {
        let attached = self.attached.filter(|_| !self.is_leaving);
        let attached = attached.map(|buffer| buffer.len.unwrap_or(usize::MAX));
        let free = attached.unwrap_or(0).saturating_sub(self.used);
        match attached {
            Some(_) if bytes <= free => Ok(()),
            _ => Err(Error::AttachedBuffer { bytes, free, attached: attached.unwrap_or(0) }),
        }
    }

    /// Drops the copies of sends that have ended as far as the device knows.
    fn drop_ended(&mut self, device: &Device) -> Result<(), Error> {
        let Self { requests, copies, used, .. } = self;
        if requests.is_empty() {
            return Ok(());
        }
        device.drop_ended(requests)?;
        let mut under_way = requests.iter().map(Option::is_some);
        copies.retain(|copy| {
            let stays = under_way.next().unwrap_or(true);
            *used -= if stays { 0 } else { copy.len() };
            stays
        });
        requests.retain(Option::is_some);
        Ok(())
    }

    /// Keeps a send under way with its copy.
    fn keep(&mut self, device: &Device, request: Request, copy: Vec<u8>) {
        self.used += copy.len();
        self.requests.push(Some(request));
        self.copies.push(copy);
        // In a buffer without a limit there is always room. To look when the number has doubled costs little.
        if self.copies.len() >= self.most.max(FEW) {
            // A device that has failed uses no copy, and says so in the next call.
            let _ = self.drop_ended(device);
            self.most = 2 * self.copies.len();
        }
    }
}

impl Copies {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_if_attached(&self) -> Option<MutexGuard<'_, State>> {
        Some(self.state()).filter(|state| state.attached.is_some())
    }

    /// Returns how many copies there are.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        self.state().copies.len()
    }

    /// Gives the copies to the device, which frees each when its send has ended. For a communicator or session that is
    /// gone.
    pub(crate) fn leave(&mut self, device: &Device) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let (requests, copies) =
            (std::mem::take(&mut state.requests), std::mem::take(&mut state.copies));
        for (request, copy) in requests.into_iter().zip(copies) {
            if let Some(request) = request {
                device.detach(request, Box::new(copy));
            }
        }
    }
}

/// The place of the buffer of a session. The communicators that come from the session share it.
pub struct SessionBuffer {
    process: Arc<Process>,
    copies: Copies,
}

impl SessionBuffer {
    /// Makes the place for a session of this process.
    pub fn new(process: Arc<Process>) -> Self {
        Self { process, copies: Copies::default() }
    }

    /// Returns the place as the argument of MPI_Session_attach_buffer and so on.
    pub fn place(&self) -> SendBuffer<'_> {
        SendBuffer::new(self.process.device(), &self.copies)
    }

    pub(crate) fn copies(&self) -> &Copies {
        &self.copies
    }
}

impl Drop for SessionBuffer {
    fn drop(&mut self) {
        self.copies.leave(self.process.device());
    }
}

/// The place where a buffer for buffered sends can be attached: a rank, a session or a communicator.
pub struct SendBuffer<'a> {
    device: &'a Device,
    copies: &'a Copies,
}

/// Sends a copy of `data`, which stays in the first of these places that has a buffer, otherwise in the last one.
/// [`Communicator::bsend`](crate::Communicator::bsend) states the errors.
pub(crate) fn send(
    device: &Device,
    places: [&Copies; 3],
    data: &Source,
    (dest, tag, context): (usize, i32, u32),
) -> Result<Status, Error> {
    device.check_send(dest, tag)?;
    let len = data.len();
    // Other threads do not wait for the copy.
    let copy = packed(data)?;
    let mut state = room(device, places, len)?;
    // SAFETY: BY1: if the send is under way, `copy` is kept until it has ended.
    let region = unsafe { SendRegion::new(copy.as_ptr(), len) };
    let request = device.isend(region, dest, tag, context, Mode::Standard)?;
    if request.completed().is_none() {
        state.keep(device, request, copy);
    }
    Ok(Status::new(dest as u32, tag, len))
}

/// Locks the buffer that a message uses, which has room for it.
fn room<'a>(
    device: &Device,
    places: [&'a Copies; 3],
    bytes: usize,
) -> Result<MutexGuard<'a, State>, Error> {
    let mut state = used_buffer(places);
    if state.check(bytes).is_err() {
        state.drop_ended(device)?;
    }
    if state.check(bytes).is_err() {
        // Some sends may end now (BY3).
        drop(state);
        device.progress()?;
        state = used_buffer(places);
        state.drop_ended(device)?;
    }
    state.check(bytes)?;
    Ok(state)
}

/// Locks the first place at which a buffer is attached, otherwise the last one.
fn used_buffer([first @ .., last]: [&Copies; 3]) -> MutexGuard<'_, State> {
    first.into_iter().find_map(Copies::state_if_attached).unwrap_or_else(|| last.state())
}

impl<'a> SendBuffer<'a> {
    pub(crate) fn new(device: &'a Device, copies: &'a Copies) -> Self {
        Self { device, copies }
    }

    /// Attaches a buffer, and so allows buffered sends: MPI_Buffer_attach, MPI_Comm_attach_buffer,
    /// MPI_Session_attach_buffer.
    ///
    /// # Errors
    /// [`Error::Attached`] if there is a buffer already, also one that another thread waits to detach.
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
    /// MPI_Comm_detach_buffer. Returns the buffer, if one was attached; only one of several threads gets it.
    ///
    /// # Errors
    /// The device has failed. It is no error if a message could not be sent because its receiver is gone.
    pub fn detach(&self) -> Result<Option<AttachedBuffer>, Error> {
        let mut state = self.copies.state();
        let attached = state.attached.filter(|_| !state.is_leaving);
        state.is_leaving |= attached.is_some();
        let flushed = self.flush_from(state);
        if attached.is_some() {
            let mut state = self.copies.state();
            (state.attached, state.is_leaving) = (None, false);
        }
        flushed.map(|()| attached)
    }

    /// Waits until all sends that use the buffer have left: MPI_Buffer_flush, MPI_Comm_flush_buffer.
    ///
    /// # Errors
    /// As [`SendBuffer::detach`].
    pub fn flush(&self) -> Result<(), Error> {
        self.flush_from(self.copies.state())
    }

    /// [`SendBuffer::flush`] for a caller that has the lock.
    fn flush_from(&self, mut state: MutexGuard<'_, State>) -> Result<(), Error> {
        let device = self.device;
        state.drop_ended(device)?;
        if state.requests.is_empty() {
            return Ok(());
        }
        let flushed = device.join(state.requests.iter().flatten())?;
        drop(state);
        device.iwait(flushed)?;
        self.copies.state().drop_ended(device)
    }

    /// Returns a request that is complete when all sends that use the buffer at present have left: MPI_Buffer_iflush,
    /// MPI_Comm_iflush_buffer.
    ///
    /// # Errors
    /// The device has failed.
    pub fn start_flush(&self) -> Result<Request, Error> {
        let state = self.copies.state();
        Ok(self.device.join(state.requests.iter().flatten())?)
    }
}
