//! Buffered sends (MPI-4.1 section 3.6): they copy their data and are complete at once.
//!
//! The program attaches one buffer for each context of the rank. It limits how many bytes of copies may wait to be
//! sent. It is only a limit, not memory: copies are made one by one, and each is freed when its message has left.
//!
//! - BY1: a copy stays here unchanged until its send has ended, or until the device has failed and uses no buffer any
//!   more (V1 of the device).

use std::sync::{Mutex, MutexGuard, PoisonError};

use mpjdev::Mode;

use crate::communicator::{Communicator, PointToPoint};
use crate::datatype::Datatype;
use crate::error::Error;
use crate::memory::SendBuffer;
use crate::peer::PROC_NULL;
use crate::point_to_point::{packed, send_region};
use crate::rank_device::RankDevice;
use crate::request::Request;

/// The copies of messages that have not left yet, for one context of a rank.
#[derive(Default)]
pub(crate) struct Copies {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Length of the attached buffer in bytes; `None` if none is attached.
    attached: Option<usize>,
    /// How many bytes of it are in use, including those of copies that a thread has just taken to test them.
    used: usize,
    sends: Sends,
}

/// Sends under way and the copies that they send, at the same indices (BY1).
#[derive(Default)]
struct Sends {
    requests: Vec<Option<mpjdev::Request>>,
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
        call: impl FnOnce(&mut [Option<mpjdev::Request>]) -> Result<(), mpjdev::Error>,
    ) -> Result<(), mpjdev::Error> {
        let taken = std::mem::take(&mut self.state().sends);
        let mut taken = Taken { copies: self, sends: taken };
        call(&mut taken.sends.requests)
    }

    /// Keeps a send under way with its copy.
    fn keep(&self, request: mpjdev::Request, copy: Vec<u8>) {
        let mut state = self.state();
        state.sends.requests.push(Some(request));
        state.sends.copies.push(copy);
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

impl RankDevice {
    /// Reserves `bytes` bytes of the attached buffer.
    fn reserve(&self, bytes: usize) -> Result<(), Error> {
        let take = |state: &mut State| {
            let attached = state.attached.unwrap_or(0);
            let free = attached.saturating_sub(state.used);
            if state.attached.is_none() || bytes > free {
                return Err(Error::AttachedBuffer { bytes, free, attached });
            }
            state.used += bytes;
            Ok(())
        };
        let taken = take(&mut self.copies.state());
        if taken.is_ok() {
            return taken;
        }
        // Some sends may have ended meanwhile.
        self.copies.with_sends(|sends| self.itestsome(sends).map(drop))?;
        take(&mut self.copies.state())
    }
}

impl PointToPoint {
    /// Sends like [`PointToPoint::send`], but copies the data first and never waits for the receiver (MPI_Bsend). The
    /// copy uses as many bytes of the attached buffer as the message has: see [`Communicator::attach_buffer`]. It is
    /// sent whenever the rank is in a call that makes progress.
    ///
    /// # Errors
    /// [`Error::AttachedBuffer`] if there is not enough room, or no buffer; as [`PointToPoint::send`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let (other, mut got) = (1 - world.rank(), vec![0; 100_000]);
    ///     world.attach_buffer(1 << 20).unwrap();
    ///     world.bsend(&vec![world.rank(); 100_000], other, 0).unwrap();
    ///     world.recv(&mut got, other, 0).unwrap();
    ///     assert_eq!(got[99_999], other);
    ///     assert_eq!(world.detach_buffer().unwrap(), 1 << 20);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn bsend<B: SendBuffer + ?Sized>(
        &self,
        data: &B,
        dest: usize,
        tag: i32,
    ) -> Result<(), Error> {
        let peer = self.peer(dest)?;
        self.sent(self.device.check_send(peer, tag), tag)?;
        if peer == PROC_NULL {
            return Ok(());
        }
        let copy = self.answer(packed(data))?;
        let len = copy.len();
        self.answer(self.device.reserve(len))?;
        let region = send_region(&copy);
        let started = self.device.isend(region, peer, tag, self.context, Mode::Standard);
        match started {
            Ok(request) if request.completed().is_none() => self.device.copies.keep(request, copy),
            outcome => {
                self.device.copies.state().used -= len;
                return self.sent(outcome.map(drop), tag);
            }
        }
        Ok(())
    }

    /// Starts a [`PointToPoint::bsend`] (MPI_Ibsend). The request is complete at once; [`Request::wait`],
    /// [`Request::test`] and the calls for lists return its buffer.
    ///
    /// # Errors
    /// As [`PointToPoint::bsend`]; `data` is then dropped.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let other = 1 - world.rank();
    ///     world.attach_buffer(1 << 10).unwrap();
    ///     let send = world.ibsend(vec![world.rank(); 3], other, 7).unwrap();
    ///     let status = send.status().unwrap().expect("it is complete");
    ///     assert_eq!((status.source, status.tag, status.bytes), (other, 7, 24));
    ///     assert_eq!(world.recv_vec::<usize>(other, 7).unwrap().0, [other; 3]);
    ///     assert_eq!(send.wait().unwrap().0, [world.rank(); 3]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn ibsend<T: Datatype>(
        &self,
        data: Vec<T>,
        dest: usize,
        tag: i32,
    ) -> Result<Request<T>, Error> {
        let request = self.start_buffered(&data, dest, tag)?;
        Ok(Request::new(self.clone(), request, data))
    }

    /// Makes a buffered send, and a request that is complete.
    pub(crate) fn start_buffered<T: Datatype>(
        &self,
        data: &[T],
        dest: usize,
        tag: i32,
    ) -> Result<mpjdev::Request, Error> {
        self.bsend(data, dest, tag)?;
        match self.peer(dest)? {
            PROC_NULL => self.started_for_nobody(),
            peer => self.complete(mpjdev::Status::new(peer as u32, tag, data.len() * T::SIZE)),
        }
    }
}

impl Communicator {
    /// Allows buffered sends of this rank, with at most `bytes` bytes of copies under way at a time
    /// (MPI_Buffer_attach). All communicators of the same context share the limit. A message counts with its length and
    /// nothing more.
    ///
    /// # Errors
    /// [`Error::Attached`] if there is a buffer already.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let class = world.bsend(&[0u8; 9], 0, 0).unwrap_err().class();
    ///     assert_eq!(class, mpj::ErrorClass::Buffer);
    ///     world.attach_buffer(8).unwrap();
    ///     let error = world.bsend(&[0u8; 9], 0, 0).unwrap_err();
    ///     assert!(error.to_string().contains("a buffered send of 9 bytes finds 8 bytes free"));
    ///     assert!(world.attach_buffer(9).is_err());
    ///     assert_eq!(world.detach_buffer().unwrap(), 8);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn attach_buffer(&self, bytes: usize) -> Result<(), Error> {
        let mut state = self.device.copies.state();
        let outcome = match state.attached {
            Some(attached) => Err(Error::Attached { attached }),
            None => {
                state.attached = Some(bytes);
                Ok(())
            }
        };
        drop(state);
        self.answer(outcome)
    }

    /// Waits until all buffered sends have left, and allows no further ones (MPI_Buffer_detach). Returns the length of
    /// the buffer that was attached, or 0 if there was none.
    ///
    /// # Errors
    /// The device has failed. It is no error if a message could not be sent because its receiver is gone.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     if world.rank() == 1 {
    ///         return assert_eq!(world.recv_vec::<u8>(0, 0).unwrap().0, [7; 100]);
    ///     }
    ///     world.attach_buffer(100).unwrap();
    ///     world.bsend(&[7u8; 100], 1, 0).unwrap();
    ///     assert_eq!(world.detach_buffer().unwrap(), 100, "the message has left");
    ///     assert_eq!(world.detach_buffer().unwrap(), 0);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn detach_buffer(&self) -> Result<usize, Error> {
        let attached = self.device.copies.state().attached.take();
        let left =
            self.device.copies.with_sends(|sends| self.device.iwaiteach(sends, |_outcome| {}));
        self.answer(left)?;
        Ok(attached.unwrap_or(0))
    }
}
