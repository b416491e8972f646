//! A context: one task's access to the job. It consists of a lock around a [`Session`], and the calls that wait.
//!
//! The session contains the task's adapter, its unfinished operations and its client's state. One thread at a time
//! holds it. A call that does not wait takes the lock, does its work and releases the lock. A call that waits makes
//! progress in turns until its event has happened ([`Context::wait_from`]):
//!
//! 1. *Poll*: handle the frames that have arrived, then check for the event. Most waits end here.
//! 2. *Yield*: the same, but now and then yield the processor to another thread, and act on lost tasks.
//! 3. *Sleep*: announce the sleep on the bell, poll once more, and sleep until the bell rings.
//!
//! In each turn the thread passes the lock to any other thread that wants it. [`crate::progress::spin`] defines how
//! many turns each phase has. [`crate::progress::awaited`] publishes a wait that lasts, so that an observer can see why
//! nothing moves.
//!
//! - C1: adapter, dispatcher and client state are reached only through the lock. A waiting thread releases it whenever
//!   another thread wants it, and while it yields or sleeps.
//! - C2: a thread goes to sleep only after it has announced that on the bell and then polled once more without finding
//!   anything. Every adapter wakes it for everything that arrives later.
//! - C3: a thread that made progress rings the bell if other threads of the same task sleep, since they may wait for
//!   what it handled.
//! - C4: no thread waits while it holds the lock: a waiting thread checks its condition repeatedly, and the lock is
//!   free in between. The drop of a context may wait, since no other thread can use that context.
//! - C5: a context that has failed is terminated before the error is reported. A wait that finds it terminated returns
//!   only when no peer can write into this task's memory any more. Other callers that find it terminated call
//!   [`Context::settle`]. After that the task's buffers may be freed.
//! - C6: continuations (H4 of [`crate::progress::handler`]) run with the lock free, each thread one at a time, and each
//!   is taken from the queue before it runs. While a wait runs one it has nothing published (AW1); afterwards it checks
//!   whether the context was terminated.
//! - C7: a handler that calls the context of its own dispatcher gets an error. It would otherwise wait for a lock that
//!   its own thread holds (X5 of [`crate::progress::lock`]).

mod places;

use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::adapter::{Doorbell, Endpoint, Hosts, PeerMemory, TaskId, ThreadState};
use crate::adapters::AnyAdapter;
use crate::error::LapiError;
use crate::job::config::{Settings, WaitMode};
use crate::platform::fork::ProcessMark;
use crate::platform::home;
use crate::progress::awaited::{Awaited, Publication, Unnamed};
use crate::progress::engine::Engine;
use crate::progress::hooks::{Hooks, Paused, Waiting};
use crate::progress::lock::{Guard, Lock, Refusal};
use crate::progress::report::ErrorHandler;
use crate::progress::session::{BETWEEN_LOOKS, Session};
use crate::progress::spin::{AdaptiveSpin, SpinBudget, SpinPolicy, Turn};

/// Polls of a spin between two pauses. A message that arrives during a pause is seen only after it, so pauses are rare;
/// the polls themselves touch several cache lines, which slows the loop enough.
const POLLS_PER_PAUSE: u32 = 64;

/// The turn of a spin, a multiple of [`POLLS_PER_PAUSE`], at which a thread that has woken another one yields: the
/// scheduler often puts the woken thread on this processor, where it would wait until the spin ends. It is so late that
/// a wait whose answer arrives at once never asks whether it has woken somebody.
const HAND_OVER: u32 = POLLS_PER_PAUSE;

/// How long a sleeper relies on its bell before it polls again. Longer than any ring takes, and short for a person; the
/// poll itself takes microseconds.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// A session whose lock is held by this thread.
pub struct SessionGuard<'a, S>(Guard<'a, Session<S>>);

impl<S> Deref for SessionGuard<'_, S> {
    type Target = Session<S>;

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<S> DerefMut for SessionGuard<'_, S> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl<'a, S> SessionGuard<'a, S> {
    /// Opens a session whose lock is held, unless its context was terminated.
    #[inline(always)]
    fn open(session: Guard<'a, Session<S>>) -> Result<Self, LapiError> {
        if session.terminated { Err(LapiError::HndlInvalid) } else { Ok(Self(session)) }
    }

    /// Abandons all unfinished operations and terminates the context. Call it after a failure; once [`Context::settle`]
    /// has returned too, the buffers of these operations may be freed (C5).
    pub fn abandon(mut self) {
        self.give_up();
    }

    /// Waits as C5 demands, and returns the error for a call that finds the context terminated.
    #[cold]
    #[inline(never)]
    pub(crate) fn refuse(&mut self) -> LapiError {
        self.settle();
        LapiError::HndlInvalid
    }

    /// Runs `body` with the lock free.
    pub(crate) fn unlocked(&mut self, body: impl FnOnce()) {
        self.0.unlocked(body);
    }

    fn settle(&mut self) {
        while !self.try_settle() {
            self.0.unlocked(|| std::thread::sleep(BETWEEN_LOOKS));
        }
    }
}

/// Options of a context.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many processors the tasks of the job share; by default those that this process may use.
    pub processors: Option<usize>,
    /// How waiting threads spend their time.
    pub wait: WaitMode,
    /// How long an adaptive wait polls before it sleeps, where every task has a processor. Up to ten times as long
    /// while sleeps turn out short.
    pub spin: Duration,
    /// The most bytes of a message in one frame, if the adapter allows as many. Fewer than 4096 count as 4096.
    pub max_body: usize,
    /// What gets the errors that no call has caused; without it the next call of progress returns them.
    pub error_handler: Option<ErrorHandler>,
}

impl Default for Options {
    fn default() -> Self {
        let Settings { wait, spin, .. } = Settings::default();
        Self { processors: None, wait, spin, max_body: usize::MAX, error_handler: None }
    }
}

/// One task's access to the job, shared by all threads of the task; LAPI calls it a handle.
///
/// `S` is the client's state, which is passed to header and completion handlers.
pub struct Context<S> {
    session: Lock<Session<S>>,
    pub(crate) bell: Arc<dyn Doorbell>,
    pub(crate) pace: SpinPolicy,
    /// Turns of polling with which a wait begins before it is counted; 0 if the hooks of the session need to know of
    /// every wait.
    pub(crate) quick_spins: AtomicU32,
    task: TaskId,
    number: usize,
    num_tasks: usize,
    hosts: Option<Arc<dyn Hosts>>,
    peer_memory: Option<Arc<dyn PeerMemory>>,
    inquiry: OnceLock<Answer<S>>,
}

/// The client's answer to an inquiry: reads the session under the lock, and returns a function that replies without it.
type Answer<S> = Box<dyn Fn(&Session<S>) -> Box<dyn FnOnce()> + Send + Sync>;

impl<S> Context<S> {
    /// Makes a context over an adapter that is already connected to its peers (LAPI_Init).
    pub fn init(adapter: impl Into<AnyAdapter>, state: S, options: Options) -> Self {
        let adapter = adapter.into();
        let Endpoint { task, num_tasks, context: number } = adapter.endpoint();
        let parts = adapter.parts();
        let session = Session {
            state,
            engine: Engine::new(&adapter, &parts, options.max_body.max(4096)),
            adapter,
            bell: parts.bell.clone(),
            losses: parts.losses,
            wait_records: parts.wait_records,
            sleeping: 0,
            places: 0,
            failed_places: 0,
            answered: 0,
            after_rounds: None,
            first_error: None,
            alone: 0,
            patience: AdaptiveSpin::new(options.spin),
            terminated: false,
            error_handler: options.error_handler,
            hooks: None,
            waits: 0,
            process: ProcessMark::new(),
        };
        let own = || std::thread::available_parallelism().map_or(1, usize::from);
        let cores = options.processors.unwrap_or_else(own);
        let pace = SpinPolicy::new(options.wait, parts.neighbours, cores);
        let (session, inquiry) = (Lock::new(session), OnceLock::new());
        let quick_spins = AtomicU32::new(pace.spins());
        let (bell, hosts, peer_memory) = (parts.bell, parts.hosts, parts.peer_memory);
        Self {
            session,
            bell,
            pace,
            quick_spins,
            task,
            number,
            num_tasks,
            hosts,
            peer_memory,
            inquiry,
        }
    }

    /// Returns this task's number.
    #[inline]
    pub fn task(&self) -> TaskId {
        self.task
    }

    /// Returns the number of this context; it communicates with contexts of the same number.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns the number of tasks of the job.
    #[inline]
    pub fn num_tasks(&self) -> usize {
        self.num_tasks
    }

    /// Returns whether the job has more tasks than processors and its waits poll, so that a waiting task takes
    /// processor time from another one. With [`WaitMode::Block`] waits do not poll, and this is false.
    #[inline]
    pub fn shares_processors(&self) -> bool {
        self.pace.shares()
    }

    /// Returns how often a thread has had to wait for the session because another thread held it.
    pub fn contended(&self) -> u64 {
        self.session.contended()
    }

    /// Returns whether this process is a fork of the one that made the context. In a fork every call that communicates
    /// fails with [`LapiError::Forked`], and dropping the context leaves the job untouched.
    #[inline]
    pub fn is_fork(&self) -> bool {
        self.session.is_fork()
    }

    /// Takes the lock and returns the session. Calls on the session never block, so the lock is held only briefly. A
    /// thread that uses the context alone pays hardly anything for it.
    ///
    /// # Errors
    /// [`LapiError::HndlInvalid`] after [`Context::term`]; [`LapiError::InHandler`] from inside a
    /// handler of this context, or while this thread holds the session (C7); [`LapiError::Forked`].
    #[inline(always)]
    pub fn session(&self) -> Result<SessionGuard<'_, S>, LapiError> {
        self.session.lock().map_err(|refusal| self.refused(refusal)).and_then(SessionGuard::open)
    }

    /// [`Context::session`] for a thread that does not wait: `None` if another thread holds the session.
    ///
    /// # Errors
    /// Those of [`Context::session`].
    pub fn try_session(&self) -> Result<Option<SessionGuard<'_, S>>, LapiError> {
        let session = self.session.try_lock().map_err(|refusal| self.refused(refusal))?;
        session.map(SessionGuard::open).transpose()
    }

    /// [`Context::session`] for a wait (C5).
    pub(crate) fn session_to_wait(&self) -> Result<SessionGuard<'_, S>, LapiError> {
        self.session().inspect_err(|_| self.settle())
    }

    /// The error for a refused lock.
    #[cold]
    #[inline(never)]
    fn refused(&self, refusal: Refusal) -> LapiError {
        match refusal {
            Refusal::Inside => LapiError::InHandler,
            Refusal::Fork => LapiError::Forked { task: self.task },
        }
    }

    /// Waits until no peer can write into this task's memory any more. It returns at once unless the context was
    /// terminated, by [`SessionGuard::abandon`] or [`Context::term`].
    ///
    /// If [`Context::session`] has refused a call, call this before you free buffers of unfinished operations; waits do
    /// it themselves (C5). If a peer was stopped while it writes a slice of a get, this waits until the peer continues
    /// or is gone; the lock is free meanwhile (C4).
    pub fn settle(&self) {
        // A thread that holds the lock already, or runs in a fork, has nothing to wait for.
        if let Ok(session) = self.session.lock() {
            if session.terminated {
                SessionGuard(session).settle();
            }
        }
    }

    /// Ends the use of this context (LAPI_Term). This is a local call: synchronise with [`Context::gfence`] first.
    /// Later calls, and waits in progress in other threads, fail with [`LapiError::HndlInvalid`]. The notification
    /// thread has ended when this returns.
    ///
    /// # Errors
    /// [`LapiError::HndlInvalid`] the second time.
    pub fn term(&self) -> Result<(), LapiError> {
        let mut session = self.session()?;
        session.terminated = true;
        let hooks = session.hooks.take();
        session.wake();
        drop(session);
        hooks.into_iter().for_each(Hooks::close);
        Ok(())
    }

    /// Makes progress until `ready` returns `Some`, and returns its value. `ready` is called with the lock held after
    /// every round of progress; it must not call this context.
    ///
    /// # Errors
    /// Those of [`Session::progress`]; [`crate::adapter::AdapterError::PeerLost`] when a task of the job was
    /// declared lost while waiting; [`LapiError::HndlInvalid`] when the context was terminated.
    pub fn wait<R>(&self, ready: impl FnMut(&mut Session<S>) -> Option<R>) -> Result<R, LapiError> {
        self.wait_from(self.session_to_wait()?, &mut Unnamed::new(ready))
    }

    /// [`Context::wait`] for a caller that already holds the session, for example because it has started the operation
    /// there.
    ///
    /// # Errors
    /// Those of [`Context::wait`].
    #[inline(always)]
    pub fn wait_from<W: Awaited<S>>(
        &self,
        mut session: SessionGuard<'_, S>,
        awaited: &mut W,
    ) -> Result<W::Answer, LapiError> {
        // Most waits end in this loop, which only polls.
        let (mut idle, spins) = (0, self.quick_spins.load(Ordering::Relaxed));
        while idle < spins {
            session.turn(awaited.frames(), self.pace.alone(awaited.origin(), idle));
            if session.first_error.is_some() {
                break;
            }
            if session.has_continuations() {
                self.run_continuations(&mut session);
                if session.terminated {
                    break;
                }
            }
            if let Some(answer) = awaited.look(&mut session) {
                return Ok(answer);
            }
            idle += 1;
            self.spin(&mut session, idle);
            if session.terminated {
                break;
            }
        }
        self.wait_on(idle, session, awaited)
    }

    /// Sets the reply to an inquiry, which is a request from outside the job to describe this task's queues. `answer`
    /// reads the session under the lock, in a thread that waits or polls; it must neither call this context nor wait.
    /// The function that it returns replies without the lock, and may wait (C4). Only the first call has an effect.
    pub fn on_inquiry<T: FnOnce() + 'static>(
        &self,
        answer: impl Fn(&Session<S>) -> T + Send + Sync + 'static,
    ) {
        let _ = self.inquiry.set(Box::new(move |session| Box::new(answer(session))));
    }

    /// Does the work that needs the lock to be free: replies to an inquiry made since the last reply, and runs
    /// continuations. Waits do this themselves. Callers that poll with [`Session::progress`] call this after each poll.
    pub fn attend(&self, mut session: SessionGuard<'_, S>) {
        self.work_unlocked(&mut session);
    }

    /// [`Context::attend`] for a thread that goes on with the session.
    pub(crate) fn work_unlocked(&self, session: &mut SessionGuard<'_, S>) {
        self.answer(session);
        self.run_continuations(session);
    }

    /// Runs the continuations that are due (C6). The lock is free meanwhile, so the context may be terminated
    /// afterwards.
    #[inline(never)]
    fn run_continuations(&self, session: &mut SessionGuard<'_, S>) {
        // Continuations that these add are left for later, so that a wait checks its condition in between.
        for _ in 0..session.engine.outbox.continuations.len() {
            let next = session.engine.outbox.continuations.pop_front();
            let Some(continuation) = next.filter(|_| !session.terminated) else { break };
            let mut outcome = Ok(());
            let run = || outcome = catch_unwind(AssertUnwindSafe(continuation));
            session.0.unlocked(run);
            if let Err(panic) = outcome {
                resume_unwind(panic);
            }
        }
    }

    /// Replies to an inquiry, if there is one. The lock is free meanwhile, so the context may be terminated afterwards.
    fn answer(&self, session: &mut SessionGuard<'_, S>) {
        let asked = session.inquiries();
        if asked != session.answered {
            session.answered = asked;
            if let Some(answer) = self.inquiry.get() {
                let tell = answer(session);
                session.0.unlocked(tell);
            }
        }
    }

    /// Continues a wait after `idle` turns of polling in which nothing arrived, or in which something else has to be
    /// done.
    #[inline(never)]
    fn wait_on<W: Awaited<S>>(
        &self,
        idle: u32,
        mut session: SessionGuard<'_, S>,
        awaited: &mut W,
    ) -> Result<W::Answer, LapiError> {
        let mut publication = Publication::default();
        let waiting = Waiting::begin(&mut session);
        let session = &mut *waiting.0;
        let outcome = match session.terminated {
            true => Err(session.refuse()),
            false => self.wait_published(idle, session, awaited, &mut publication),
        };
        if publication.has_lasted() {
            match &outcome {
                Ok(answer) if !awaited.is_failure(session, answer) => {
                    publication.unpublish(session)
                }
                _ => publication.fail(session),
            }
        }
        outcome
    }

    /// The loop of a wait, with `publication` for what it publishes. The context may be terminated whenever the lock is
    /// free. A terminated context's posted operations must not be touched, so each round is preceded by a check.
    fn wait_published<W: Awaited<S>>(
        &self,
        mut idle: u32,
        session: &mut SessionGuard<'_, S>,
        awaited: &mut W,
        publication: &mut Publication,
    ) -> Result<W::Answer, LapiError> {
        let mut turn: u32 = 0;
        let mut vain = SpinBudget::default();
        loop {
            let origin = self.pace.alone(awaited.origin(), turn);
            let done = session.progress_within(awaited.frames(), origin)?;
            turn = turn.wrapping_add(1);
            if session.has_continuations() {
                publication.unpublish(session);
                self.run_continuations(Paused::begin(session).0);
                if session.terminated {
                    return Err(session.refuse());
                }
            }
            if let Some(answer) = awaited.look(session) {
                return Ok(answer);
            }
            idle = u32::wrapping_add(idle, 1);
            if done > 0 {
                (idle, vain) = (0, SpinBudget::default());
            }
            match self.pace.step(idle) {
                Turn::Spin => self.spin(session, idle),
                Turn::Yield => {
                    if notice_losses(session, awaited)? {
                        continue;
                    }
                    if self.pace.is_long(idle) {
                        publication.post(session, awaited, ThreadState::Awake);
                        self.answer(session);
                    }
                    let before = self.pace.looks_at_clock().then(Instant::now);
                    session.0.unlocked(give_way);
                    let limit = session.patience.limit();
                    if before.is_some_and(|before| vain.polls_on(before, Instant::now(), limit)) {
                        idle = self.pace.polls_on();
                    }
                }
                Turn::Sleep => {
                    let start = Instant::now();
                    let answer = self.sleep(session, awaited, publication)?;
                    session.patience.learn(start.elapsed());
                    if let Some(answer) = answer {
                        return Ok(answer);
                    }
                    (idle, vain) = (0, SpinBudget::default());
                }
            }
            if session.terminated {
                return Err(session.refuse());
            }
        }
    }

    /// One turn of a spin.
    #[inline(always)]
    fn spin(&self, session: &mut SessionGuard<'_, S>, turn: u32) {
        session.polled_in_vain(turn);
        if turn % POLLS_PER_PAUSE == 0 {
            std::hint::spin_loop();
            if turn == HAND_OVER && self.bell.has_woken() {
                session.0.unlocked(std::thread::yield_now);
            }
        }
        session.0.bump();
    }

    /// Announces the sleep, polls once more, and sleeps (C2); wakes to poll again every [`LOOK_AGAIN`] (D7 of the
    /// doorbell).
    #[cold]
    fn sleep<W: Awaited<S>>(
        &self,
        session: &mut SessionGuard<'_, S>,
        awaited: &mut W,
        publication: &mut Publication,
    ) -> Result<Option<W::Answer>, LapiError> {
        let mut first_ticket = None;
        loop {
            let ticket = self.bell.announce();
            let has_rung = first_ticket.is_some_and(|first| first != ticket);
            if has_rung || session.inquiries() != session.answered {
                // An inquirer that saw no sleeper has not rung the bell.
                self.bell.retract();
                break;
            }
            let polled = session.progress_within(awaited.frames(), None);
            let looked = polled.and_then(|done| match awaited.look(session) {
                None if notice_losses(session, awaited)? => Ok((1, awaited.look(session))),
                answer => Ok((done, answer)),
            });
            if !matches!(looked, Ok((0, None))) || session.has_continuations() {
                self.bell.retract();
                if looked.is_ok() {
                    publication.unpublish(session);
                }
                return looked.map(|(_, answer)| answer);
            }
            let state = session.thread_state(ticket);
            match first_ticket {
                None => publication.post(session, awaited, state),
                Some(_) => publication.looked_again(session),
            }
            first_ticket = Some(ticket);
            session.sleeping += 1;
            let mut rung = false;
            session.0.unlocked(|| {
                rung = self.bell.sleep(ticket, Some(LOOK_AGAIN));
                home::go();
            });
            session.sleeping -= 1;
            session.round_ended(true);
            if rung || session.terminated {
                break;
            }
        }
        if session.terminated {
            return Err(session.refuse());
        }
        publication.unpublish(session);
        self.answer(session);
        Ok(None)
    }
}

/// Lets other threads run, and comes back to the processor of this one.
fn give_way() {
    std::thread::yield_now();
    home::go();
}

/// Acts on lost tasks. Returns whether that did anything.
///
/// # Errors
/// The wait cannot succeed any more, or this task itself was declared lost.
fn notice_losses<S, W: Awaited<S>>(
    session: &mut Session<S>,
    awaited: &W,
) -> Result<bool, LapiError> {
    if session.notice_losses()? {
        return Ok(true);
    }
    match session.engine.connections.some_not_open {
        false => Ok(false),
        true => awaited.in_vain(session).map_or(Ok(false), Err),
    }
}

#[cfg(test)]
#[expect(unsafe_code, reason = "the tests describe buffers of their own as regions")]
mod tests;
