//! Requests as futures, for any executor. A future that is polled before its operation has ended starts the progress
//! thread of the context, which wakes the task.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mpicore::Alarm;

use super::operation::{Internal, Listed};
use crate::error::Error;

/// A request that can be awaited.
pub trait Await: Listed {
    /// What the request's wait returns.
    type Output;

    /// Returns what came of the operation, if it has ended.
    #[doc(hidden)]
    fn look(&mut self) -> Result<Option<Self::Output>, Error>;
}

/// The future that a request is turned into ([`IntoFuture`]): `request.await` returns what the request's `wait` would
/// return, without blocking the thread.
///
/// It needs no particular executor. The first future that has to wait starts the progress thread of the rank's context,
/// which wakes it: see [`World::progress_thread`](crate::World::progress_thread). Dropping the future drops the request.
/// Futures that are pending when the rank leaves the job end with an error.
///
/// ```
/// use mpj::{Op, collective};
/// mpj::local::run(2, |world| {
///     let other = 1 - world.rank();
///     let both = async {
///         let sum = world.start(collective::all_reduce(vec![world.rank()], Op::Sum))?;
///         let word = world.irecv(vec![0u8; 5], other, 0)?;
///         world.isend(b"hello".to_vec(), other, 0)?.await?;
///         Ok::<_, mpj::Error>((word.await?.0, sum.await?.0))
///     };
///     assert_eq!(pollster::block_on(both).unwrap(), (b"hello".to_vec(), vec![1]));
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[must_use = "a future does nothing until it is awaited"]
pub struct Completion<R: Await> {
    request: R,
    /// Wakes the task, once it had to wait.
    alarm: Option<Arc<Alarm>>,
}

impl<R: Await> Completion<R> {
    pub(crate) fn new(request: R) -> Self {
        Self { request, alarm: None }
    }

    /// Sets an alarm on the operation, which was under way just now.
    fn set_alarm(&mut self, task: &mut Context<'_>) -> Result<Arc<Alarm>, Error> {
        let Self { request, .. } = self;
        // Nothing of the program, which may panic, runs while the open operation is not in its place: neither the waker
        // nor an error handler.
        let waker = task.waker().clone();
        let open = request.take_open(Internal(())).ok_or(mpjdev::Error::Request)?;
        let alarm = request.communicator(Internal(())).device.alarm(&open, waker);
        request.put_back(open, Internal(()));
        request.communicator(Internal(())).step(alarm.map_err(Error::from))
    }
}

/// The request is never pinned.
impl<R: Await> Unpin for Completion<R> {}

impl<R: Await> Future for Completion<R> {
    type Output = Result<R::Output, Error>;

    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Some(ended) = this.request.look().transpose() {
            return Poll::Ready(ended);
        }
        // An alarm that has rung just now says that the operation has ended; the new one then rings at once.
        if !this.alarm.as_ref().is_some_and(|alarm| alarm.set(task.waker())) {
            match this.set_alarm(task) {
                Ok(alarm) => this.alarm = Some(alarm),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Pending
    }
}
