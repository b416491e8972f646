//! Non-blocking calls that borrow their buffers: all are complete when the scope ends.
//!
//! - Z1: the scope keeps its requests, not the handles of the user, so leaking a handle leaks no borrow.
//!   [`Communicator::scope`] returns only when each request has ended, or when the device has failed or was abandoned,
//!   and neither the device (V1) nor a local step of a collective call (PL3 of the core) uses a buffer any more.
//! - Z2: `'env`, the lifetime of the borrows, outlives the call of `scope`. It cannot be shortened, since it is
//!   invariant in [`ScopeOn`], the only field of a [`Scope`].
//! - Z3: while an operation may write a buffer, the buffer is held as an address. It becomes a reference again only
//!   when [`ScopedRequest::wait`] has seen the operation end (LE1, LE2 of `memory/borrowed.rs`), and never after an
//!   error.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::ops::Deref;

use mpicore::Steps;
use mpjdev::Mode;

use crate::communicator::{Communicator, PointToPoint};
use crate::envelope::{Source, Status, Tag};
use crate::error::Error;
use crate::memory::borrowed::{Borrow, Borrowed};
use crate::memory::{RecvBuffer, SendBuffer, bytes, source};
use crate::point_to_point::send_region;
use crate::rank_device::RankDevice;

mod collective;

pub use collective::ScopedCollective;

/// A scope in which non-blocking calls may borrow their buffers, for the thread that opened it. See
/// [`Communicator::scope`].
///
/// Collective calls on the communicator of the scope are methods of [`ScopeOn`].
///
/// ```
/// mpj::local::run(2, |world| {
///     let (mine, other, mut theirs) = ([world.rank()], 1 - world.rank(), [9]);
///     let outcome: Result<(), mpj::Error> = world.scope(|scope| {
///         scope.isend(&mine, other, 0)?;
///         scope.irecv(&mut theirs, other, 0)?;
///         scope.ibarrier()?;
///         Ok(())
///     });
///     outcome.unwrap();
///     assert_eq!(theirs, [other]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
pub struct Scope<'scope, 'env: 'scope> {
    on: ScopeOn<'scope, 'env>,
}

/// The requests and collective calls under way in a scope.
struct State<'a> {
    device: &'a RankDevice,
    requests: RefCell<Requests>,
    /// The local steps of all collective calls that were started.
    steps: RefCell<Vec<Steps>>,
}

/// The requests of a scope by place; `None` for a request that was waited for.
type Requests = Vec<Option<mpjdev::Request>>;

/// The longest list whose memory is kept for the next scope.
const MOST_SPARE: usize = 1 << 12;

thread_local! {
    /// The memory of the last scope's list, for the next scope.
    static SPARE: Cell<Requests> = const { Cell::new(Vec::new()) };
}

/// The operations of a scope on one of its communicators: see [`Scope::on`].
///
/// ```
/// mpj::local::run(2, |world| {
///     let (twin, mut sum) = (world.dup().unwrap(), 1);
///     world.scope(|scope| scope.on(&twin).iall_reduce(&mut sum, mpj::Op::Sum).map(drop)).unwrap();
///     assert_eq!(sum, 2);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[derive(Clone, Copy)]
pub struct ScopeOn<'scope, 'env: 'scope> {
    state: &'scope State<'scope>,
    communicator: &'scope Communicator,
    environment: PhantomData<&'env mut &'env ()>,
}

/// A send or receive under way in a scope. Waiting for it is optional: the scope waits for all.
///
/// `B` is the borrow that [`ScopedRequest::wait`] returns: a borrow of a slice if the buffer's memory is one
/// ([`SendBuffer::Memory`]).
///
/// ```
/// mpj::local::run(2, |world| {
///     let (mine, other, mut theirs) = ([world.rank()], 1 - world.rank(), [9]);
///     let outcome: Result<(), mpj::Error> = world.scope(|scope| {
///         let receive = scope.irecv(&mut theirs, other, 0)?;
///         scope.isend(&mine, other, 0)?;
///         let (theirs, _status) = receive.wait()?;
///         theirs[0] += 10;
///         Ok(())
///     });
///     outcome.unwrap();
///     assert_eq!(theirs, [other + 10]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
pub struct ScopedRequest<'scope, 'env, B: Borrow> {
    on: ScopeOn<'scope, 'env>,
    state: Started,
    buffer: B::Held,
}

/// How far an operation is when the call that starts it returns.
enum Started {
    /// Complete.
    Done(mpjdev::Request),
    /// Under way: the scope keeps the request at this place.
    UnderWay(usize),
}

impl<B: Borrow> ScopedRequest<'_, '_, B> {
    /// Waits until the operation is complete and returns the borrow (MPI_Wait).
    ///
    /// # Errors
    /// A message longer than the buffer; the device has failed.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let mut got = [9; 2];
    ///     let outcome: Result<_, mpj::Error> = world.scope(|scope| {
    ///         let receive = scope.irecv(&mut got, 0, 0)?;
    ///         scope.isend(&[7], 0, 0)?;
    ///         receive.wait()
    ///     });
    ///     let (got, status) = outcome.unwrap();
    ///     assert_eq!((&got[..], status.bytes), (&[7, 9][..], 4));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn wait(self) -> Result<(B, Status), Error> {
        let ScopeOn { state, communicator, .. } = self.on;
        let request = match self.state {
            Started::Done(request) => request,
            Started::UnderWay(place) => state.take(place)?,
        };
        // The status is taken apart, not moved: see `PointToPoint::completed`.
        let status = match communicator.device.iwait(request) {
            Ok(status) => communicator.answer(Ok::<_, Error>(())).map(|()| status)?,
            Err(error) => communicator.answer(Err(error))?,
        };
        Ok((B::take_back(self.buffer), communicator.status(status)))
    }
}

impl Communicator {
    /// Runs `body` with a scope in which non-blocking calls may borrow their buffers, then waits for all calls that
    /// `body` started (as `std::thread::scope` does for threads). The scope makes calls on this communicator;
    /// [`Scope::on`] and [`Scope::between`] make them on others.
    ///
    /// A scope is for the thread that opened it; threads that share a communicator each open their own. If `body`
    /// panics, the scope does not wait; operations that are still under way then make the whole device unusable.
    ///
    /// # Errors
    /// The error of `body`; otherwise the first error of a request that `body` did not wait for itself, which names
    /// ranks of the world. The scope waits for everything that `body` has started in either case.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let (data, mut got) = ([world.rank() as i32; 4], [0; 4]);
    ///     let other = 1 - world.rank();
    ///     let outcome: Result<(), mpj::Error> = world.scope(|scope| {
    ///         scope.irecv(&mut got, other, 0)?;
    ///         scope.isend(&data, other, 0)?;
    ///         Ok(())
    ///     });
    ///     outcome.unwrap();
    ///     assert_eq!(got, [other as i32; 4]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn scope<'env, R, E: From<Error>>(
        &self,
        body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> Result<R, E>,
    ) -> Result<R, E> {
        let requests = RefCell::new(SPARE.try_with(Cell::take).unwrap_or_default());
        let state = State { device: &self.device, requests, steps: RefCell::new(Vec::new()) };
        let guard = ReleaseOnPanic(&state);
        let on = ScopeOn { state: &state, communicator: self, environment: PhantomData };
        let answer = body(&Scope { on });
        let completed = state.complete();
        std::mem::forget(guard);
        let mut spare = state.requests.into_inner();
        spare.clear();
        if spare.capacity() <= MOST_SPARE {
            // A thread that is ending opens no further scope.
            let _ = SPARE.try_with(|place| place.set(spare));
        }
        // The error of the body is the last that the program has seen, so the success of other requests does not settle
        // it.
        let answer = answer?;
        completed.or_else(|error| self.fail(error))?;
        self.answer(Ok::<_, Error>(answer)).map_err(E::from)
    }
}

/// Frees the buffers of a scope when `body`, or the wait for them, panics (Z1).
struct ReleaseOnPanic<'a>(&'a State<'a>);

impl Drop for ReleaseOnPanic<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Returns the calls of this scope on another communicator. It must belong to the same context of the rank as the
    /// communicator of the scope; otherwise all calls fail with [`Error::OtherContext`].
    ///
    /// ```
    /// mpj::local::run(4, |world| {
    ///     let pairs = world.split((world.rank() / 2) as u32, 0).unwrap();
    ///     let (mine, mut theirs, mut sum) = ([world.rank()], [0], [1.5]);
    ///     let outcome: Result<(), mpj::Error> = world.scope(|scope| {
    ///         scope.on(&pairs).irecv(&mut theirs, 1 - pairs.rank(), 0)?;
    ///         scope.on(&pairs).isend(&mine, 1 - pairs.rank(), 0)?;
    ///         scope.iall_reduce(&mut sum, mpj::Op::Sum)?;
    ///         Ok(())
    ///     });
    ///     outcome.unwrap();
    ///     assert_eq!((theirs[0], sum[0]), (world.rank() ^ 1, 6.0));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn on(&'scope self, communicator: &'scope Communicator) -> ScopeOn<'scope, 'env> {
        ScopeOn { communicator, ..self.on }
    }

    /// Starts to send `data` (MPI_Isend).
    ///
    /// # Errors
    /// As [`PointToPoint::send`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let outcome: Result<(), mpj::Error> = world.scope(|scope| {
    ///         let send = scope.isend(&[7, 8], 1 - world.rank(), 0)?;
    ///         assert_eq!(world.recv_vec::<i32>(1 - world.rank(), 0)?.0, [7, 8]);
    ///         send.wait().map(drop)
    ///     });
    ///     outcome.unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[inline(always)]
    pub fn isend<B: SendBuffer + ?Sized>(
        &'scope self,
        data: &'env B,
        dest: usize,
        tag: i32,
    ) -> Result<ScopedRequest<'scope, 'env, &'env B::Memory>, Error> {
        self.on.start_send(data, dest, tag, Mode::Standard)
    }

    /// Starts to send `data`; the send is complete only when the receive has begun (MPI_Issend).
    ///
    /// # Errors
    /// As [`PointToPoint::send`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let outcome: Result<(), mpj::Error> = world.scope(|scope| {
    ///         let send = scope.issend(&[7, 8], 1 - world.rank(), 0)?;
    ///         assert_eq!(world.recv_vec::<i32>(1 - world.rank(), 0)?.0, [7, 8]);
    ///         send.wait().map(drop)
    ///     });
    ///     outcome.unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[inline]
    pub fn issend<B: SendBuffer + ?Sized>(
        &'scope self,
        data: &'env B,
        dest: usize,
        tag: i32,
    ) -> Result<ScopedRequest<'scope, 'env, &'env B::Memory>, Error> {
        self.on.start_send(data, dest, tag, Mode::Synchronous)
    }

    /// Starts to receive into `buffer` (MPI_Irecv).
    ///
    /// # Errors
    /// As [`PointToPoint::recv`], but for the length.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut got = [9; 2];
    ///     let outcome: Result<(), mpj::Error> = world.scope(|scope| {
    ///         scope.irecv(&mut got, 1 - world.rank(), mpj::ANY_TAG)?;
    ///         world.send(&[7, 8], 1 - world.rank(), 0)
    ///     });
    ///     outcome.unwrap();
    ///     assert_eq!(got, [7, 8]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[inline(always)]
    pub fn irecv<B: RecvBuffer + ?Sized>(
        &'scope self,
        buffer: &'env mut B,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<ScopedRequest<'scope, 'env, &'env mut B::MemoryMut>, Error> {
        self.on.start_receive(buffer, source.into(), tag.into())
    }
}

impl<'scope, 'env> Deref for Scope<'scope, 'env> {
    type Target = ScopeOn<'scope, 'env>;

    /// The calls of this scope on the communicator that it was opened on.
    fn deref(&self) -> &Self::Target {
        &self.on
    }
}

impl State<'_> {
    #[inline]
    fn keep(&self, request: mpjdev::Request) -> usize {
        let mut requests = self.requests.borrow_mut();
        requests.push(Some(request));
        requests.len() - 1
    }

    /// Takes the request out of a place, to wait for it.
    fn take(&self, place: usize) -> Result<mpjdev::Request, Error> {
        self.requests.borrow_mut()[place].take().ok_or_else(|| mpjdev::Error::Request.into())
    }

    /// Waits for all requests that `body` has not waited for; returns their first error.
    fn complete(&self) -> Result<(), Error> {
        let device = self.device;
        let mut first = Ok(());
        let waited = device.iwaiteach(&mut self.requests.borrow_mut(), |outcome| {
            if let (Err(error), Ok(())) = (outcome, &first) {
                first = Err(error);
            }
        });
        self.settle();
        // Errors of collective calls contain an error of the core.
        waited.and(first).map_err(|error| mpicore::Error::from(error).into())
    }

    /// Frees the buffers without waiting: cancels receives, and makes the device fail if another operation is still
    /// under way.
    fn release(&self) {
        let device = self.device;
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
        self.settle();
    }

    /// Waits until no thread runs a local step of a collective call of this scope.
    fn settle(&self) {
        self.steps.borrow().iter().for_each(Steps::settle);
    }
}

impl<'scope, 'env> ScopeOn<'scope, 'env> {
    /// Starts a send as [`Scope::isend`] does, on this communicator.
    ///
    /// # Errors
    /// As [`PointToPoint::send`]; [`Error::OtherContext`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let twin = world.dup().unwrap();
    ///     let outcome: Result<(), mpj::Error> = world.scope(|scope| {
    ///         let send = scope.on(&twin).isend(&[7, 8], 1 - world.rank(), 0)?;
    ///         assert_eq!(twin.recv_vec::<i32>(1 - world.rank(), 0)?.0, [7, 8]);
    ///         send.wait().map(drop)
    ///     });
    ///     outcome.unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn isend<B: SendBuffer + ?Sized>(
        self,
        data: &'env B,
        dest: usize,
        tag: i32,
    ) -> Result<ScopedRequest<'scope, 'env, &'env B::Memory>, Error> {
        self.check()?.start_send(data, dest, tag, Mode::Standard)
    }

    /// Starts a synchronous send as [`Scope::issend`] does, on this communicator.
    ///
    /// # Errors
    /// As [`PointToPoint::send`]; [`Error::OtherContext`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let twin = world.dup().unwrap();
    ///     let outcome: Result<(), mpj::Error> = world.scope(|scope| {
    ///         let send = scope.on(&twin).issend(&[7, 8], 1 - world.rank(), 0)?;
    ///         assert_eq!(twin.recv_vec::<i32>(1 - world.rank(), 0)?.0, [7, 8]);
    ///         send.wait().map(drop)
    ///     });
    ///     outcome.unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn issend<B: SendBuffer + ?Sized>(
        self,
        data: &'env B,
        dest: usize,
        tag: i32,
    ) -> Result<ScopedRequest<'scope, 'env, &'env B::Memory>, Error> {
        self.check()?.start_send(data, dest, tag, Mode::Synchronous)
    }

    /// Starts a receive as [`Scope::irecv`] does, on this communicator.
    ///
    /// # Errors
    /// As [`PointToPoint::recv`], except for a message that is too long; [`Error::OtherContext`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let twin = world.dup().unwrap();
    ///     let mut got = [9; 2];
    ///     let outcome: Result<(), mpj::Error> = world.scope(|scope| {
    ///         scope.on(&twin).irecv(&mut got, 1 - world.rank(), mpj::ANY_TAG)?;
    ///         twin.send(&[7, 8], 1 - world.rank(), 0)
    ///     });
    ///     outcome.unwrap();
    ///     assert_eq!(got, [7, 8]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn irecv<B: RecvBuffer + ?Sized>(
        self,
        buffer: &'env mut B,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<ScopedRequest<'scope, 'env, &'env mut B::MemoryMut>, Error> {
        self.check()?.start_receive(buffer, source.into(), tag.into())
    }

    /// Refuses a communicator of another job or context, whose requests the scope cannot wait for with its own (Z1).
    fn check(self) -> Result<Self, Error> {
        if self.communicator.device.is(self.state.device) {
            return Ok(self);
        }
        self.communicator.answer(Err(Error::OtherContext))
    }

    #[inline(always)]
    fn start_send<B: SendBuffer + ?Sized>(
        self,
        data: &'env B,
        dest: usize,
        tag: i32,
        mode: Mode,
    ) -> Result<ScopedRequest<'scope, 'env, &'env B::Memory>, Error> {
        let PointToPoint { device, context, .. } = &**self.communicator;
        let (buffer, peer) = (data.memory(), self.communicator.peer(dest)?);
        let request = match bytes(buffer) {
            Some(data) => device.isend(send_region(data), peer, tag, *context, mode),
            None => {
                let described = self.communicator.answer(source(buffer))?;
                device.isend(described, peer, tag, *context, mode)
            }
        };
        let request = self.communicator.started(request, Some(tag))?;
        let state = match request.completed() {
            Some(_) => Started::Done(request),
            None => Started::UnderWay(self.state.keep(request)),
        };
        Ok(ScopedRequest { on: self, state, buffer })
    }

    #[inline(always)]
    fn start_receive<B: RecvBuffer + ?Sized>(
        self,
        buffer: &'env mut B,
        source: Source,
        tag: Tag,
    ) -> Result<ScopedRequest<'scope, 'env, &'env mut B::MemoryMut>, Error> {
        let mut buffer = Borrowed::new(buffer.memory_mut());
        let (source, tag) = (self.communicator.sender(source)?, tag.value());
        let PointToPoint { device, context, .. } = &**self.communicator;
        let request = match buffer.region() {
            Some(region) => device.irecv(region, source, tag, *context),
            None => {
                let described = self.communicator.answer(buffer.sink())?;
                device.irecv(described, source, tag, *context)
            }
        };
        let state = Started::UnderWay(self.state.keep(self.communicator.started(request, tag)?));
        Ok(ScopedRequest { on: self, state, buffer })
    }
}
