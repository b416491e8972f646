//! Non-blocking calls that borrow their buffers: all are complete when the scope ends.
//!
//! - Z1: the scope keeps its requests, not the handles of the user, so leaking a handle leaks no borrow.
//!   [`Communicator::scope`] returns only when each request has ended, or when the device has failed or was abandoned,
//!   and neither the device (V1) nor a local step of a collective call (PL3 of the core) uses a buffer any more.
//! - Z2: `'env`, the lifetime of the borrows, outlives the call of `scope`. It cannot be shortened, since it is
//!   invariant in [`Scope`].
//! - Z3: while an operation may write a buffer, the buffer is held as an address. It becomes a reference again only
//!   when [`ScopedRequest::wait`] or a test has seen the operation end (LE1, LE2 of `memory/borrowed.rs`), and never after an
//!   error.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::ops::Deref;
use std::panic::Location;

use mpicore::Steps;
use mpjdev::{CallKind, Mode, Recorded};

use crate::communicator::{Communicator, InterCommunicator, PointToPoint};
use crate::envelope::{Source, Tag};
use crate::error::Error;
use crate::memory::borrowed::{Borrow, Borrowed};
use crate::memory::{RecvBuffer, SendBuffer, sink, source};
use crate::rank_device::RankDevice;

mod request;
mod views;

pub use request::ScopedRequest;
use request::Started;

/// A scope in which non-blocking calls may borrow their buffers, for the thread that opened it. See
/// [`Communicator::scope`]. The calls are made on `C`: on the communicator that the scope was opened on, or on another
/// one by [`Scope::on`] and [`Scope::between`].
///
/// ```
/// use mpj::collective;
/// mpj::local::run(2, |world| {
///     let (mine, other, mut theirs) = ([world.rank()], 1 - world.rank(), [9]);
///     world.scope(|scope| {
///         scope.isend(&mine, other, 0)?;
///         scope.irecv(&mut theirs, other, 0)?;
///         scope.start(collective::barrier())?;
///         Ok(())
///     })
///     .unwrap();
///     assert_eq!(theirs, [other]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
pub struct Scope<'scope, 'env: 'scope, C = Communicator> {
    state: &'scope State<'scope>,
    communicator: &'scope C,
    /// Whether the communicator is of another job or context, whose requests the scope cannot wait for (Z1).
    is_foreign: bool,
    environment: PhantomData<&'env mut &'env ()>,
}

impl<C> Clone for Scope<'_, '_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Scope<'_, '_, C> {}

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

/// What the body of a [`Communicator::scope`] returns: nothing, or a `Result` with [`Error`].
#[diagnostic::on_unimplemented(
    message = "the body of a scope returns nothing or a `Result<_, mpj::Error>`, not `{Self}`",
    note = "for an error type of your own call `try_scope`"
)]
pub trait ScopeOutcome {
    /// The value of a body that ended well.
    type Value;

    /// Returns the outcome as a result.
    #[doc(hidden)]
    fn into_result(self) -> Result<Self::Value, Error>;
}

impl ScopeOutcome for () {
    type Value = ();

    fn into_result(self) -> Result<(), Error> {
        Ok(())
    }
}

impl<R> ScopeOutcome for Result<R, Error> {
    type Value = R;

    fn into_result(self) -> Self {
        self
    }
}

/// # Non-blocking calls that borrow their buffers
impl Communicator {
    /// Runs `body` with a scope in which non-blocking calls may borrow their buffers, then waits for all calls that
    /// `body` started (as `std::thread::scope` does for threads). `body` returns nothing or a `Result` with [`Error`];
    /// see also [`Communicator::try_scope`].
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
    ///     world.scope(|scope| {
    ///         scope.irecv(&mut got, other, 0)?;
    ///         scope.isend(&data, other, 0)?;
    ///         Ok(())
    ///     })
    ///     .unwrap();
    ///     assert_eq!(got, [other as i32; 4]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[track_caller]
    pub fn scope<'env, R: ScopeOutcome>(
        &self,
        body: impl for<'scope> FnOnce(Scope<'scope, 'env>) -> R,
    ) -> Result<R::Value, Error> {
        self.try_scope(|scope| body(scope).into_result())
    }

    /// Like [`Communicator::scope`], for a body with errors of its own.
    ///
    /// # Errors
    /// As [`Communicator::scope`].
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let mut text = [0; 2];
    ///     let outcome: Result<u8, Box<dyn std::error::Error>> = world.try_scope(|scope| {
    ///         let receive = scope.irecv(&mut text, 0, 0)?;
    ///         scope.isend(b"42", 0, 0)?;
    ///         Ok(std::str::from_utf8(receive.wait()?.0)?.parse()?)
    ///     });
    ///     assert_eq!(outcome.unwrap(), 42);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[track_caller]
    pub fn try_scope<'env, R, E: From<Error>>(
        &self,
        body: impl for<'scope> FnOnce(Scope<'scope, 'env>) -> Result<R, E>,
    ) -> Result<R, E> {
        let requests = RefCell::new(SPARE.try_with(Cell::take).unwrap_or_default());
        let state = State { device: &self.device, requests, steps: RefCell::new(Vec::new()) };
        let guard = ReleaseOnPanic(&state);
        let environment = PhantomData;
        let scope = Scope { state: &state, communicator: self, is_foreign: false, environment };
        let answer = body(scope);
        let completed = state.complete(Location::caller());
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

impl<'scope, 'env, C: Deref<Target = PointToPoint>> Scope<'scope, 'env, C> {
    /// Makes the calls of this scope on another communicator. It must belong to the same context of the rank as the
    /// communicator of the scope; otherwise all calls fail with [`Error::OtherContext`].
    ///
    /// ```
    /// use mpj::{Op, collective};
    /// mpj::local::run(4, |world| {
    ///     let pairs = world.split((world.rank() / 2) as u32, 0).unwrap();
    ///     let (mine, mut theirs, mut sum) = ([world.rank()], [0], [1.5]);
    ///     world.scope(|scope| {
    ///         scope.on(&pairs).irecv(&mut theirs, 1 - pairs.rank(), 0)?;
    ///         scope.on(&pairs).isend(&mine, 1 - pairs.rank(), 0)?;
    ///         scope.start(collective::all_reduce(&mut sum, Op::Sum))?;
    ///         Ok(())
    ///     })
    ///     .unwrap();
    ///     assert_eq!((theirs[0], sum[0]), (world.rank() ^ 1, 6.0));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn on(self, communicator: &'scope Communicator) -> Scope<'scope, 'env> {
        self.with(communicator)
    }

    /// Makes the calls of this scope between two groups; as [`Scope::on`].
    ///
    /// ```
    /// use mpj::{Op, collective};
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let (mine, mut theirs, mut got) = (world.rank(), 9, 9);
    ///     world.scope(|scope| {
    ///         let groups = scope.between(&between);
    ///         let sum = groups.start(collective::all_reduce_into(&mine, &mut theirs, Op::Sum))?;
    ///         groups.isend(&mine, 0, 0)?;
    ///         groups.irecv(&mut got, 0, 0)?;
    ///         *sum.wait()?.0 += 10;
    ///         Ok(())
    ///     })
    ///     .unwrap();
    ///     assert_eq!((theirs, got), (11 - mine, 1 - mine));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn between(
        self,
        between: &'scope InterCommunicator,
    ) -> Scope<'scope, 'env, InterCommunicator> {
        self.with(between)
    }

    fn with<D: Deref<Target = PointToPoint>>(self, on: &'scope D) -> Scope<'scope, 'env, D> {
        let Self { state, environment, .. } = self;
        let is_foreign = !on.device.is(state.device);
        Scope { state, communicator: on, is_foreign, environment }
    }

    /// Starts to send `data` (MPI_Isend).
    ///
    /// # Errors
    /// As [`PointToPoint::send`]; [`Error::OtherContext`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     world.scope(|scope| {
    ///         let send = scope.isend(&[7, 8], 1 - world.rank(), 0)?;
    ///         assert_eq!(world.recv_vec::<i32>(1 - world.rank(), 0)?.0, [7, 8]);
    ///         send.wait().map(drop)
    ///     })
    ///     .unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Isend")]
    #[inline(always)]
    #[track_caller]
    pub fn isend<B: SendBuffer + ?Sized>(
        self,
        data: &'env B,
        dest: usize,
        tag: i32,
    ) -> Result<ScopedRequest<'scope, &'env B::Memory>, Error> {
        self.start_send(data, dest, tag, Mode::Standard)
    }

    /// Starts to send `data`; the send is complete only when the receive has begun (MPI_Issend).
    ///
    /// # Errors
    /// As [`PointToPoint::send`]; [`Error::OtherContext`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     world.scope(|scope| {
    ///         let send = scope.issend(&[7, 8], 1 - world.rank(), 0)?;
    ///         assert_eq!(world.recv_vec::<i32>(1 - world.rank(), 0)?.0, [7, 8]);
    ///         send.wait().map(drop)
    ///     })
    ///     .unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Issend")]
    #[inline]
    #[track_caller]
    pub fn issend<B: SendBuffer + ?Sized>(
        self,
        data: &'env B,
        dest: usize,
        tag: i32,
    ) -> Result<ScopedRequest<'scope, &'env B::Memory>, Error> {
        self.start_send(data, dest, tag, Mode::Synchronous)
    }

    /// Starts to receive into `buffer` (MPI_Irecv).
    ///
    /// # Errors
    /// As [`PointToPoint::recv`], except for a message that is too long; [`Error::OtherContext`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut got = [9; 2];
    ///     world.scope(|scope| {
    ///         scope.irecv(&mut got, 1 - world.rank(), mpj::ANY_TAG)?;
    ///         world.send(&[7, 8], 1 - world.rank(), 0)
    ///     })
    ///     .unwrap();
    ///     assert_eq!(got, [7, 8]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Irecv")]
    #[inline(always)]
    #[track_caller]
    pub fn irecv<B: RecvBuffer + ?Sized>(
        self,
        buffer: &'env mut B,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<ScopedRequest<'scope, &'env mut B::MemoryMut>, Error> {
        let on: &PointToPoint = self.check()?;
        let mut buffer = Borrowed::new(buffer.memory_mut());
        let (source, tag) = (on.sender(source.into())?, tag.into().value());
        let into = on.step(buffer.lend(sink))?;
        let place = Location::caller();
        let describe = || on.describe::<B::Element>("irecv", place);
        let request = on.device.irecv_described(into, source, tag, on.context, describe);
        let request = self.keep(on.started(request, tag)?);
        Ok(self.request(request, buffer))
    }

    #[inline(always)]
    #[track_caller]
    fn start_send<B: SendBuffer + ?Sized>(
        self,
        data: &'env B,
        dest: usize,
        tag: i32,
        mode: Mode,
    ) -> Result<ScopedRequest<'scope, &'env B::Memory>, Error> {
        let on: &PointToPoint = self.check()?;
        let (buffer, peer) = (data.memory(), on.peer(dest)?);
        let data = on.step(source(buffer))?;
        let place = Location::caller();
        let (to, describe) =
            ((peer, tag, on.context), || on.describe::<B::Element>("isend", place));
        let request = on.device.isend_described(data, to, mode, describe);
        let request = on.started(request, Some(tag))?;
        let request = match request.completed() {
            Some(_) => Started::Done(request),
            None => self.keep(request),
        };
        Ok(self.request(request, buffer))
    }

    /// Returns the communicator, unless it is of another job or context (Z1).
    #[inline(always)]
    pub(crate) fn check(self) -> Result<&'scope C, Error> {
        if self.is_foreign {
            return self.communicator.answer(Err(Error::OtherContext));
        }
        Ok(self.communicator)
    }

    /// Keeps a request until the scope ends (Z1).
    #[inline(always)]
    fn keep(self, request: mpjdev::Request) -> Started {
        Started::UnderWay(self.state.keep(request))
    }

    /// Keeps the request of a collective call, and its local steps, until the scope ends (Z1).
    pub(crate) fn keep_collective<B: Borrow>(
        self,
        (request, steps): (mpjdev::Request, Steps),
        results: B::Held,
    ) -> ScopedRequest<'scope, B> {
        self.state.steps.borrow_mut().push(steps);
        self.request(self.keep(request), results)
    }

    #[inline(always)]
    fn request<B: Borrow>(self, request: Started, buffer: B::Held) -> ScopedRequest<'scope, B> {
        let buffer = Some(buffer);
        ScopedRequest { state: self.state, communicator: self.communicator, request, buffer }
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
    fn take(&self, place: usize) -> Option<mpjdev::Request> {
        self.requests.borrow_mut()[place].take()
    }

    /// Waits for all requests that `body` of the scope at this place has not waited for; returns their first error.
    fn complete(&self, place: &'static Location<'static>) -> Result<(), Error> {
        let device = self.device;
        let _recorded = if device.records() { self.recorded(place) } else { None };
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

    /// Begins the record of the wait at the end, if some requests may be under way.
    #[cold]
    fn recorded(&self, place: &'static Location<'static>) -> Option<Recorded> {
        let requests = self.requests.borrow();
        let is_open = |request: &mpjdev::Request| request.completed().is_none();
        let are_open = requests.iter().flatten().any(is_open);
        are_open.then(|| Recorded::begin("wait", CallKind::Wait, Some(place), None)).flatten()
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
