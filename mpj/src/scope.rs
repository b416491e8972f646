//! Non-blocking calls that borrow their buffer: everything is complete when the scope ends.
//!
//! - Z1: the requests of a scope are kept by the scope, never by what the user holds, so leaking a
//!   handle leaks no borrow. [`Communicator::scope`] returns only when each has ended, or the device
//!   has failed or was given up and uses no buffer any more (V1 of the device).
//! - Z2: `'env`, the lifetime of the borrows, outlives the call of `scope`, and it cannot be
//!   shortened since it stands invariantly in [`Scope`].
//! - Z3: a buffer that is written is held as an address until [`ScopedRequest::wait`] has seen its operation
//!   end, and a reference again only then (LE1, LE2 of `lent.rs`); after an error it is none any more.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

use mpjdev::Mode;

use crate::communicator::Communicator;
use crate::error::Error;
use crate::lent::{Borrow, Lent};
use crate::memory::{RecvBuffer, SendBuffer, bytes, source};
use crate::point_to_point::send_region;
use crate::selector::{Source, Tag};
use crate::status::Status;

/// Where borrowing requests live, for the thread that opened it. See [`Communicator::scope`].
pub struct Scope<'scope, 'env: 'scope> {
    communicator: &'scope Communicator,
    requests: RefCell<Requests>,
    environment: PhantomData<&'env mut &'env ()>,
}

/// The requests of a scope, by place; those that were waited for have left it.
type Requests = Vec<Option<mpjdev::Request>>;

/// Longest list whose memory is kept.
const MOST_SPARE: usize = 1 << 12;

thread_local! {
    /// The memory of the last scope's list, for the next one.
    static SPARE: Cell<Requests> = const { Cell::new(Vec::new()) };
}

/// A send or receive under way in a scope. It may be waited for, and need not be: the scope does.
///
/// `B` is the borrow that [`ScopedRequest::wait`] gives back: of a slice, for all buffers that are one
/// ([`SendBuffer::Memory`]).
pub struct ScopedRequest<'scope, 'env, B: Borrow> {
    scope: &'scope Scope<'scope, 'env>,
    state: Started,
    buffer: B::Held,
}

/// How far an operation was when the call that started it returned.
enum Started {
    /// Complete.
    Done(Status),
    /// Under way: the scope keeps its request at this place.
    Kept(usize),
}

impl<B: Borrow> ScopedRequest<'_, '_, B> {
    /// Waits until the operation is complete and gives the borrow back (MPI_Wait).
    ///
    /// # Errors
    /// A message longer than the buffer; the device has failed.
    pub fn wait(self) -> Result<(B, Status), Error> {
        let device = &self.scope.communicator.device;
        let status = match self.state {
            Started::Done(status) => status,
            Started::Kept(place) => {
                let request = self.scope.requests.borrow_mut()[place].take();
                let request = request.ok_or(mpjdev::Error::Request)?;
                device.answer(device.iwait(request))?.into()
            }
        };
        Ok((B::take_back(self.buffer), status))
    }
}

impl Communicator {
    /// Runs `body` with a scope in which non-blocking calls may borrow (as `std::thread::scope`
    /// does for threads), then waits for all that it started.
    ///
    /// A scope is for the thread that opened it; threads that share a communicator each open their
    /// own. A panic of `body` does not wait: what is still under way then makes the whole device
    /// unusable.
    ///
    /// # Errors
    /// The first error of a request that `body` did not wait for itself.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let (data, mut got) = ([world.rank() as i32; 4], [0; 4]);
    ///     let other = 1 - world.rank();
    ///     world.scope(|scope| {
    ///         scope.irecv(&mut got, other, 0)?;
    ///         scope.isend(&data, other, 0)?;
    ///         Ok::<(), mpj::Error>(())
    ///     }).unwrap().unwrap();
    ///     assert_eq!(got, [other as i32; 4]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn scope<'env, R>(
        &self,
        body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    ) -> Result<R, Error> {
        let requests = RefCell::new(SPARE.try_with(Cell::take).unwrap_or_default());
        let scope = Scope { communicator: self, requests, environment: PhantomData };
        let guard = ReleaseOnPanic(&scope);
        let answer = body(&scope);
        let completed = scope.complete();
        std::mem::forget(guard);
        let mut spare = scope.requests.into_inner();
        spare.clear();
        if spare.capacity() <= MOST_SPARE {
            // Where the thread ends there is no next scope.
            let _ = SPARE.try_with(|place| place.set(spare));
        }
        completed.map(|()| answer)
    }
}

/// Makes the buffers of a scope free when `body`, or the wait for them, panics (Z1).
struct ReleaseOnPanic<'a, 'scope, 'env>(&'a Scope<'scope, 'env>);

impl Drop for ReleaseOnPanic<'_, '_, '_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Starts to send `data` (MPI_Isend).
    ///
    /// # Errors
    /// As [`Communicator::send`].
    #[inline(always)]
    pub fn isend<B: SendBuffer + ?Sized>(
        &'scope self,
        data: &'env B,
        dest: usize,
        tag: i32,
    ) -> Result<ScopedRequest<'scope, 'env, &'env B::Memory>, Error> {
        let buffer = data.memory();
        let state = self.start_send(buffer, dest, tag, Mode::Standard)?;
        Ok(ScopedRequest { scope: self, state, buffer })
    }

    /// Starts to send `data`; complete only when the receive has begun (MPI_Issend).
    ///
    /// # Errors
    /// As [`Communicator::send`].
    #[inline]
    pub fn issend<B: SendBuffer + ?Sized>(
        &'scope self,
        data: &'env B,
        dest: usize,
        tag: i32,
    ) -> Result<ScopedRequest<'scope, 'env, &'env B::Memory>, Error> {
        let buffer = data.memory();
        let state = self.start_send(buffer, dest, tag, Mode::Synchronous)?;
        Ok(ScopedRequest { scope: self, state, buffer })
    }

    #[inline(always)]
    fn start_send<B: SendBuffer + ?Sized>(
        &self,
        data: &'env B,
        dest: usize,
        tag: i32,
        mode: Mode,
    ) -> Result<Started, Error> {
        let Communicator { device, context, .. } = self.communicator;
        let request = match bytes(data) {
            Some(data) => device.isend(send_region(data), dest, tag, *context, mode),
            None => device.isend(device.answer(source(data))?, dest, tag, *context, mode),
        };
        device.answer(request).map(|request| self.started(request))
    }

    /// Starts to receive into `buffer` (MPI_Irecv).
    ///
    /// # Errors
    /// As [`Communicator::recv`], but for the length.
    #[inline(always)]
    pub fn irecv<B: RecvBuffer + ?Sized>(
        &'scope self,
        buffer: &'env mut B,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<ScopedRequest<'scope, 'env, &'env mut B::MemoryMut>, Error> {
        let mut buffer = Lent::new(buffer.memory_mut());
        let (source, tag) = (source.into().rank(), tag.into().value());
        let Communicator { device, context, .. } = self.communicator;
        let request = match buffer.region() {
            Some(region) => device.irecv(region, source, tag, *context),
            None => device.irecv(device.answer(buffer.sink())?, source, tag, *context),
        };
        let state = self.started(device.answer(request)?);
        Ok(ScopedRequest { scope: self, state, buffer })
    }

    /// Keeps the request of an operation, unless it is complete.
    #[inline(always)]
    fn started(&self, request: mpjdev::Request) -> Started {
        match request.completed() {
            Some(status) => Started::Done(status.into()),
            None => self.keep(request),
        }
    }

    #[inline]
    fn keep(&self, request: mpjdev::Request) -> Started {
        let mut requests = self.requests.borrow_mut();
        requests.push(Some(request));
        Started::Kept(requests.len() - 1)
    }

    /// Waits for what `body` has not waited for; the first error is kept.
    fn complete(&self) -> Result<(), Error> {
        let device = &self.communicator.device;
        let mut first = Ok(());
        let waited = device.iwaiteach(&mut self.requests.borrow_mut(), |outcome| {
            if let (Err(error), Ok(())) = (outcome, &first) {
                first = Err(error);
            }
        });
        device.answer(waited.and(first))
    }

    /// Frees the buffers without waiting: cancels receives, and gives the device up if anything else
    /// is still under way.
    fn release(&self) {
        let device = &self.communicator.device;
        let mut open = false;
        for request in self.requests.borrow_mut().iter_mut() {
            if let Some(pending) = request {
                let cancelled = device.cancel(pending).unwrap_or(true);
                let ended = matches!(device.itest(request), Ok(Some(_)) | Err(_));
                open |= !cancelled && !ended;
            }
        }
        if open {
            device.give_up();
        }
    }
}
