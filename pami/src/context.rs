//! Contexts, the lock of each, and progress.
//!
//! Everything that communicates is a method of [`Section`], which exists only while its thread holds the context: a
//! [`Guard`] is one that may advance, and callbacks get one that may not. So a context is used by one thread at a time,
//! and an advance is never entered again from inside, because neither can be written down.
//!
//! The lock is that of the transport's session. A callback must not wait for another context, since two threads could
//! wait for each other; a count of the thread refuses that.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use transport_lapi::{LapiError, SessionGuard, TaskId};

use crate::error::Error;
use crate::geometry::Geometries;
use crate::posted::Posted;
use crate::state::{End, Operation, State};
use crate::types::Endpoint;

/// PAMI_SUCCESS or PAMI_EAGAIN, where both are answers and no errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// PAMI_SUCCESS.
    Done,
    /// PAMI_EAGAIN: there was nothing to do, or it is to be done again.
    Again,
}

/// What is called when an operation has ended (pami_event_function): by the thread that advances the context, which it
/// holds.
pub type Callback = CallbackOf<()>;

/// The same for an operation that has a result.
pub type CallbackOf<T> = Box<dyn FnOnce(&mut Section<'_>, Result<T, Error>) + Send>;

/// Work that is posted (pami_work_function). It is dropped when it has answered [`Outcome::Done`].
type Work = Box<dyn FnMut(&mut Section<'_>) -> Outcome + Send>;

thread_local! {
    /// How many callbacks of the program this thread is in.
    static INSIDE: Cell<usize> = const { Cell::new(0) };
}

/// What a context consists of.
pub(crate) struct Core {
    pub context: transport_lapi::Context<State>,
    /// Its place among the contexts of its client.
    pub offset: usize,
    /// The posted work of all contexts of the client.
    pub posted: Arc<[Posted<Work>]>,
    /// The geometries of the client on this task.
    pub geometries: Arc<Geometries>,
}

impl Core {
    /// Checks that the client has an endpoint.
    #[inline]
    pub fn check_endpoint(&self, endpoint: Endpoint) -> Result<(), Error> {
        let (num_tasks, contexts) = (self.context.num_tasks(), self.posted.len());
        match (endpoint.task() as usize) < num_tasks && endpoint.offset() < contexts {
            true => Ok(()),
            false => Err(Error::NoEndpoint { endpoint, num_tasks, contexts }),
        }
    }

    #[cold]
    pub fn failed(&self, cause: LapiError) -> Error {
        match cause {
            LapiError::InHandler => Error::Held { task: self.context.task(), offset: self.offset },
            cause => Error::of(self.context.task(), cause),
        }
    }
}

/// A partition of a client's means of communication, with progress of its own (pami_context_t). Threads share it by
/// reference. Dropping it is PAMI_Context_destroyv.
pub struct Context(pub(crate) Arc<Core>);

impl Drop for Context {
    fn drop(&mut self) {
        self.0.posted[self.0.offset].set_open(false);
    }
}

impl Context {
    /// Returns the endpoint of this context.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::new(self.0.context.task(), self.0.offset)
    }

    /// Posts work for whoever advances the context (PAMI_Context_post). Any thread may do so, without the lock, also in
    /// callbacks. The work runs at each advance until it answers [`Outcome::Done`]. Nobody is told when it has ended.
    pub fn post(&self, work: impl FnMut(&mut Section<'_>) -> Outcome + Send + 'static) {
        self.0.posted[self.0.offset].push(Box::new(work));
    }

    /// Waits until no other thread holds the context, and takes it (PAMI_Context_lock).
    ///
    /// # Errors
    /// [`Error::LockInCallback`]; [`Error::Held`] if this thread holds it already; [`Error::Transport`] after a failure
    /// that ended the context.
    #[inline(always)]
    pub fn lock(&self) -> Result<Guard<'_>, Error> {
        if INSIDE.get() > 0 {
            return Err(self.in_callback());
        }
        match self.0.context.session() {
            Ok(session) => Ok(self.guard(session)),
            Err(cause) => Err(self.0.failed(cause)),
        }
    }

    /// Takes the context unless a thread holds it (PAMI_Context_trylock); `None` is PAMI_EAGAIN.
    ///
    /// # Errors
    /// Those of [`Context::lock`] but the first.
    pub fn trylock(&self) -> Result<Option<Guard<'_>>, Error> {
        let session = self.0.context.try_session().map_err(|cause| self.0.failed(cause))?;
        Ok(session.map(|session| self.guard(session)))
    }

    #[inline(always)]
    fn guard<'a>(&'a self, session: SessionGuard<'a, State>) -> Guard<'a> {
        Guard(Section { core: &self.0, session })
    }

    #[cold]
    #[inline(never)]
    fn in_callback(&self) -> Error {
        let (task, offset) = (self.0.context.task(), self.0.offset);
        // In a callback of this context the thread holds it, and nothing else would help.
        match self.0.context.try_session() {
            Err(LapiError::InHandler) => Error::Held { task, offset },
            _ => Error::LockInCallback { task, offset },
        }
    }

    /// Advances each context that no other thread holds, until one of them has done something, at most `max` times
    /// each (PAMI_Context_trylock_advancev).
    ///
    /// # Errors
    /// Those of [`Context::trylock`] and [`Guard::advance`].
    pub fn trylock_advancev(contexts: &[Self], max: usize) -> Result<Outcome, Error> {
        repeat(max, || {
            contexts.iter().try_fold(Outcome::Again, |outcome, context| {
                let guard = context.trylock()?;
                guard.map_or(Ok(outcome), |mut guard| Ok(outcome.or(guard.advance(1)?)))
            })
        })
    }
}

/// Repeats a step until it has done something, at most `max` times.
#[inline(always)]
fn repeat(max: usize, mut step: impl FnMut() -> Result<Outcome, Error>) -> Result<Outcome, Error> {
    for _ in 0..max {
        if step()? == Outcome::Done {
            return Ok(Outcome::Done);
        }
    }
    Ok(Outcome::Again)
}

impl Outcome {
    /// Done, if one of both is.
    pub(crate) fn or(self, other: Self) -> Self {
        if self == Self::Done { self } else { other }
    }
}

/// A context that this thread holds, and may advance. Dropping it is PAMI_Context_unlock.
///
/// A callback cannot advance, since it gets a [`Section`]:
///
/// ```compile_fail,E0599
/// fn callback(section: &mut pami::Section<'_>) {
///     section.advance(1);
/// }
/// ```
///
/// A guard stays in its thread:
///
/// ```compile_fail,E0277
/// fn send_away(guard: pami::Guard<'static>) {
///     std::thread::spawn(move || drop(guard));
/// }
/// ```
pub struct Guard<'a>(Section<'a>);

impl<'a> Deref for Guard<'a> {
    type Target = Section<'a>;

    fn deref(&self) -> &Section<'a> {
        &self.0
    }
}

impl<'a> DerefMut for Guard<'a> {
    fn deref_mut(&mut self) -> &mut Section<'a> {
        &mut self.0
    }
}

impl Guard<'_> {
    /// Makes progress: runs posted work, takes what has arrived, and calls dispatch functions and callbacks, until
    /// something was done, at most `max` times (PAMI_Context_advance). Never blocks. Programs that wait give a `max` of some
    /// dozens, with which messages come sooner.
    ///
    /// # Errors
    /// [`Error::Peer`], [`Error::Lost`] and [`Error::Transport`] for what went wrong since the last call; the next one
    /// goes on behind it.
    #[inline(always)]
    pub fn advance(&mut self, max: usize) -> Result<Outcome, Error> {
        for turn in 0..max {
            if self.0.poll(turn as u32) {
                return self.0.handle();
            }
        }
        Ok(Outcome::Again)
    }

    /// [`Guard::advance`] of several contexts in turn (PAMI_Context_advancev).
    ///
    /// # Errors
    /// Those of [`Guard::advance`].
    pub fn advancev(guards: &mut [Self], max: usize) -> Result<Outcome, Error> {
        repeat(max, || {
            let mut guards = guards.iter_mut();
            guards.try_fold(Outcome::Again, |outcome, guard| Ok(outcome.or(guard.advance(1)?)))
        })
    }
}

/// A context that this thread holds. All communication is by its methods.
pub struct Section<'a> {
    pub(crate) core: &'a Arc<Core>,
    pub(crate) session: SessionGuard<'a, State>,
}

/// Iterations of an advance that find nothing, between two looks for lost tasks.
const POLLS_PER_LOOK: u32 = 64;

/// Frames that one look takes at most when the look before has found something. Otherwise it takes a single one: a lone
/// message is handled before there is a look at what is behind it, which may have to wait for the origin.
const MOST_FRAMES: usize = 64;

impl Section<'_> {
    /// Returns the endpoint of this context.
    #[inline]
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::new(self.task(), self.core.offset)
    }

    #[inline]
    pub(crate) fn task(&self) -> TaskId {
        self.core.context.task()
    }

    pub(crate) fn failed(&self, cause: LapiError) -> Error {
        self.core.failed(cause)
    }

    /// Whether an endpoint is one of those that this context reaches.
    #[inline]
    pub(crate) fn is_here(&self, endpoint: Endpoint) -> bool {
        endpoint.offset() == self.core.offset
    }

    /// Lets the context of this task that reaches `dest` do something, when it is advanced. A context of the transport
    /// reaches those of its own number.
    pub(crate) fn post_toward(
        &self,
        dest: Endpoint,
        work: impl FnOnce(&mut Section<'_>) -> Result<(), Error> + Send + 'static,
    ) -> Result<(), Error> {
        let (task, offset) = (self.task(), dest.offset());
        let posted = &self.core.posted[offset];
        if !posted.is_open() {
            return Err(Error::NoContext { task, offset });
        }
        let mut work = Some(work);
        posted.push(Box::new(move |section| {
            if let Some(Err(error)) = work.take().map(|work| work(section)) {
                section.session.state.note(error);
            }
            Outcome::Done
        }));
        Ok(())
    }

    /// A callback that runs in this context, wherever its operation ends.
    pub(crate) fn at_home<T: Send + 'static>(&self, callback: CallbackOf<T>) -> CallbackOf<T> {
        let home = self.endpoint();
        Box::new(move |section, result| {
            // If the context is gone, so is whoever wanted to know.
            let _ = section.post_toward(home, move |section| {
                callback(section, result);
                Ok(())
            });
        })
    }

    /// Notes an operation whose end is to be reported, if it is. It may end only when the target has done something.
    pub(crate) fn begin(
        &mut self,
        target: TaskId,
        awaits_target: bool,
        on_end: Option<Callback>,
    ) -> Option<u64> {
        let operation = Operation { target, awaits_target, on_end: End::Plain(on_end?) };
        Some(self.session.state.begin(operation))
    }

    /// Ends operations that could not begin after all. Their callbacks are told; if there are none, the call fails.
    pub(crate) fn fail<const N: usize>(
        &mut self,
        numbers: [Option<u64>; N],
        cause: LapiError,
    ) -> Result<(), Error> {
        let error = self.failed(cause);
        for number in numbers.into_iter().flatten() {
            self.session.state.end(number, Err(error.clone()));
        }
        if numbers.iter().any(Option::is_some) { Ok(()) } else { Err(error) }
    }

    /// Looks once for something to do, after `turn` looks that have found nothing. Returns whether there was something, of
    /// which [`Section::handle`] does the rest. It stores nothing otherwise: a store would make the next message come later.
    #[inline(always)]
    fn poll(&mut self, turn: u32) -> bool {
        let posted = self.core.posted[self.core.offset].len();
        let posted = posted > 0 && self.run_posted(posted);
        let frames = self.session.state.frames;
        let progress = self.session.progress_up_to(frames);
        let progress = progress.unwrap_or_else(|cause| self.note(cause));
        if (progress == 0) != (frames == 1) {
            self.session.state.frames = if progress == 0 { 1 } else { MOST_FRAMES };
        }
        if progress == 0 && turn % POLLS_PER_LOOK == 0 {
            let looked = self.session.notice_losses().map(usize::from);
            looked.unwrap_or_else(|cause| self.note(cause));
        }
        if !self.session.state.fences.is_empty() || !self.session.state.counted.is_empty() {
            self.look_for_ends();
        }
        let State { arrived, released, due, first_error, .. } = &self.session.state;
        let is_left = !arrived.is_empty() || !released.is_empty() || !due.is_empty();
        if posted || progress > 0 || is_left || first_error.is_some() {
            return true;
        }
        self.session.polled_in_vain(turn.wrapping_add(1));
        false
    }

    /// Keeps an error, if it is the first one: what was done before it is handled first.
    #[cold]
    fn note(&mut self, cause: LapiError) -> usize {
        let error = self.failed(cause);
        self.session.state.note(error);
        0
    }

    /// Runs so many items of posted work once, and returns whether there was one. What is posted meanwhile is for the next
    /// iteration.
    #[inline(never)]
    fn run_posted(&mut self, count: usize) -> bool {
        let posted = &self.core.posted[self.core.offset];
        let mut any = false;
        for _ in 0..count {
            let Some(mut work) = posted.pop() else { break };
            any = true;
            let worked = self.calling(|section| work(section));
            if worked.unwrap_or_else(|panic| resume_unwind(panic)) == Outcome::Again {
                posted.push(work);
            }
        }
        any
    }

    /// Runs code of the program.
    #[inline]
    pub(crate) fn calling<R>(
        &mut self,
        run: impl FnOnce(&mut Self) -> R,
    ) -> std::thread::Result<R> {
        INSIDE.set(INSIDE.get() + 1);
        let called = catch_unwind(AssertUnwindSafe(|| run(self)));
        INSIDE.set(INSIDE.get() - 1);
        called
    }

    /// Deals with what a look has found: calls the dispatch functions of what has arrived, and the callbacks of what has
    /// ended. Fails if something went wrong.
    #[inline(never)]
    fn handle(&mut self) -> Result<Outcome, Error> {
        let State { arrived, released, .. } = &self.session.state;
        if !arrived.is_empty() || !released.is_empty() {
            self.take_packets();
        }
        // Callbacks may end further operations: these are for the next iteration, so that it comes.
        for _ in 0..self.session.state.due.len() {
            let Some((end, result)) = self.session.state.due.pop_front() else { break };
            let called = self.calling(|section| end.call(section, result));
            called.unwrap_or_else(|panic| resume_unwind(panic));
        }
        self.session.state.first_error.take().map_or(Ok(Outcome::Done), Err)
    }

    /// What is called where the program gives no callback.
    pub(crate) fn note_failure(&mut self, result: Result<(), Error>) {
        if let Err(error) = result {
            self.session.state.note(error);
        }
    }

    /// Looks which fences, and which puts at their targets, have ended.
    pub(crate) fn look_for_ends(&mut self) {
        for (counter, number) in std::mem::take(&mut self.session.state.counted) {
            if self.session.getcntr(counter).is_ok_and(|count| count > 0) {
                self.session.setcntr(counter, 0).expect("the counter exists");
                self.session.state.free_counters.push(counter);
                self.session.state.end(number, Ok(()));
            } else {
                self.session.state.counted.push((counter, number));
            }
        }
        for mut fence in std::mem::take(&mut self.session.state.fences) {
            let fenced = self.session.is_fenced(fence.target).map_err(|cause| self.failed(cause));
            let State { operations, fences, due, .. } = &mut self.session.state;
            // What ends an operation has callbacks of its own, which run before those of the fence.
            let was_awaiting = !fence.awaited.is_empty();
            fence.awaited.retain(|number| operations.contains_key(number));
            match fenced {
                Ok(is_over) if !is_over || was_awaiting => fences.push(fence),
                fenced => due.push_back((End::Plain(fence.on_done), fenced.map(|_| ()))),
            }
        }
    }
}

/// One callback for two.
pub(crate) fn both(first: Option<Callback>, second: Option<Callback>) -> Option<Callback> {
    match (first, second) {
        (Some(first), Some(second)) => Some(Box::new(move |section, result| {
            first(section, result.clone());
            second(section, result);
        })),
        (first, second) => first.or(second),
    }
}
