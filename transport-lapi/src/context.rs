//! A context: one task's access to the job. It consists of a lock around a [`Session`], and the calls that wait.
//!
//! The session contains the task's adapter, its operations under way and its client's state. One thread at a time has
//! it. A call that does not wait takes the lock, does its work and releases the lock. A call that waits makes
//! progress in turns until its event has happened ([`Context::wait_from`]):
//!
//! 1. *Poll*: take in what has arrived, and look. Most waits end here.
//! 2. *Yield*: the same, and now and then give the processor to another thread, and act on tasks that were lost.
//! 3. *Sleep*: announce that on the bell, poll once more, and sleep until the bell rings.
//!
//! In each turn another thread that wants the lock gets it. How many turns each phase has is in [`crate::wait`]; how a
//! wait that lasts is published, for who asks why nothing moves, in [`crate::awaited`].
//!
//! - C1: adapter, dispatcher and client state are reached only through the lock; a thread that
//!   waits gives it up whenever another thread wants it, and while it yields or sleeps.
//! - C2: a thread goes to sleep only after it has announced that on the bell and has then polled
//!   once more without finding anything; every adapter wakes it for everything that comes later.
//! - C3: a thread that made progress while others of the same task sleep rings the bell, since what
//!   it took in may be what they wait for.
//! - C4: nobody waits with the lock held: what has to be waited for is looked at again and again, and the
//!   lock is free in between. Only the drop of a context, which nobody else has, waits.
//! - C5: a context that has failed is terminated before the error is reported. A wait that finds it terminated
//!   returns only when no peer writes into memory of this task any more; other callers that find it so call
//!   [`Context::settle`]. So the task's buffers are free.
//! - C6: continuations (H4 of [`crate::handler`]) run with the lock free, one at a time in each thread, each taken
//!   from the queue before it runs. The wait that runs one has nothing published meanwhile (AW1), and looks
//!   afterwards whether the context was terminated.
//! - C7: a handler that calls the context of its own dispatcher gets an error, instead of waiting for a lock that its
//!   own thread holds (X5 of [`crate::lock`]).

use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::adapter::{Adapter, Doorbell, Standing, TaskId};
use crate::awaited::{Awaited, Notice, Unnamed};
use crate::config::{Settings, Tuning, WaitMode};
use crate::counter::CounterId;
use crate::engine::Engine;
use crate::error::LapiError;
use crate::fork::ProcessMark;
use crate::lock::{Guard, Lock, Refusal};
use crate::session::{BETWEEN_LOOKS, Session};
use crate::wait::{Pace, Patience, Turn, Vain};

/// A message that comes during a pause waits for its end, and a poll looks at several lines anyway; so few
/// are followed by one.
const POLLS_PER_PAUSE: u32 = 64;

/// Polls of a spin between two requests for the memory of the frame that may come next. Not each: while the peer writes there, both pull
/// at the same lines, and where they are near each other that costs more than it saves.
const POLLS_PER_FETCH: u32 = 4;

/// The turn of a spin, a multiple of the above, at which a thread that has woken another one yields: the
/// woken one is often put on this processor, and would wait there until the spin ends. Late enough that
/// an answer that comes at once does not pay for the question.
const HAND_OVER: u32 = POLLS_PER_PAUSE;

/// How long a sleeper trusts its bell. Longer than any ring takes, and short beside what a person notices;
/// a look costs microseconds.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// A session whose lock is held by this thread.
pub struct SessionGuard<'a, A: Adapter, S>(Guard<'a, Session<A, S>>);

impl<A: Adapter, S> Deref for SessionGuard<'_, A, S> {
    type Target = Session<A, S>;

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<A: Adapter, S> DerefMut for SessionGuard<'_, A, S> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl<'a, A: Adapter, S> SessionGuard<'a, A, S> {
    /// The guard of a session whose context was not terminated.
    #[inline(always)]
    fn open(session: Guard<'a, Session<A, S>>) -> Result<Self, LapiError> {
        if session.terminated { Err(LapiError::HndlInvalid) } else { Ok(Self(session)) }
    }

    /// Abandons everything under way and terminates the context. After a failure, this and [`Context::settle`] make
    /// the buffers of unfinished operations safe to free (C5).
    pub fn abandon(mut self) {
        self.give_up();
    }

    /// What a call gets that finds the context terminated (C5).
    #[cold]
    #[inline(never)]
    fn refuse(&mut self) -> LapiError {
        self.settle();
        LapiError::HndlInvalid
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
    /// How many processors the tasks of the job share; those that this process may use if not given.
    pub processors: Option<usize>,
    /// How waiting threads spend their time.
    pub wait: WaitMode,
    /// How long an adaptive wait polls before it sleeps, where every task has a processor. Up to ten times as long
    /// while sleeps turn out short.
    pub spin: Duration,
    /// How long messages are cut, and how often a wait polls before it yields for the first time.
    pub tuning: Tuning,
}

impl Default for Options {
    fn default() -> Self {
        let Settings { wait, spin, .. } = Settings::default();
        Self { processors: None, wait, spin, tuning: Tuning::default() }
    }
}

/// One task's access to the job, shared by all its threads; LAPI calls it a handle.
///
/// `S` is the client's state, which header and completion handlers get.
pub struct Context<A: Adapter, S> {
    session: Lock<Session<A, S>>,
    bell: Arc<dyn Doorbell>,
    pace: Pace,
    task: TaskId,
    number: usize,
    num_tasks: usize,
    inquiry: OnceLock<Answer<A, S>>,
}

/// How the client answers an inquiry: what it sees under the lock, and how it tells that without the lock.
type Answer<A, S> = Box<dyn Fn(&Session<A, S>) -> Box<dyn FnOnce()> + Send + Sync>;

impl<A: Adapter, S> Context<A, S> {
    /// Makes a context over an adapter that is already connected to its peers (LAPI_Init).
    pub fn init(mut adapter: A, state: S, options: Options) -> Self {
        let (task, number, num_tasks) = (adapter.task(), adapter.context(), adapter.num_tasks());
        let (bell, board) = (adapter.doorbell(), adapter.wait_board());
        let session = Session {
            state,
            engine: Engine::new(&mut adapter, options.tuning.pieces()),
            adapter,
            bell: bell.clone(),
            board,
            sleeping: 0,
            places: 0,
            failed_places: 0,
            answered: 0,
            after_rounds: None,
            noticed: 0,
            trouble: None,
            alone: 0,
            patience: Patience::new(options.spin),
            terminated: false,
            process: ProcessMark::new(),
        };
        let own = || std::thread::available_parallelism().map_or(1, usize::from);
        let cores = options.processors.unwrap_or_else(own);
        let pace = Pace::new(options.wait, options.tuning.spin(), num_tasks, cores);
        let (session, inquiry) = (Lock::new(session), OnceLock::new());
        Self { session, bell, pace, task, number, num_tasks, inquiry }
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

    /// Returns whether the job has more tasks than processors and its waits poll, so that a task that waits keeps another
    /// one from running. With [`WaitMode::Block`] they do not.
    #[inline]
    pub fn shares_processors(&self) -> bool {
        self.pace.shares()
    }

    /// Returns how often a thread has waited for the session while another thread had it.
    pub fn contended(&self) -> u64 {
        self.session.contended()
    }

    /// Returns whether this process is a fork of the one that made the context. In a fork every call that
    /// communicates fails with [`LapiError::Forked`], and dropping the context touches nothing of the job.
    #[inline]
    pub fn is_fork(&self) -> bool {
        self.session.is_fork()
    }

    /// Takes the lock. Calls on the session never block, so it is held only briefly. A thread that uses the context
    /// alone pays hardly anything for the lock.
    ///
    /// # Errors
    /// [`LapiError::HndlInvalid`] after [`Context::term`]; [`LapiError::InHandler`] from inside a
    /// handler of this context, or while this thread holds the session (C7); [`LapiError::Forked`].
    #[inline(always)]
    pub fn session(&self) -> Result<SessionGuard<'_, A, S>, LapiError> {
        self.session.lock().map_err(|refusal| self.refused(refusal)).and_then(SessionGuard::open)
    }

    /// [`Context::session`] for a wait (C5).
    pub(crate) fn session_to_wait(&self) -> Result<SessionGuard<'_, A, S>, LapiError> {
        self.session().inspect_err(|_| self.settle())
    }

    /// What a refusal of the lock means.
    #[cold]
    #[inline(never)]
    fn refused(&self, refusal: Refusal) -> LapiError {
        match refusal {
            Refusal::Inside => LapiError::InHandler,
            Refusal::Fork => LapiError::Forked { task: self.task },
        }
    }

    /// Waits until no peer writes into memory of this task any more, after [`SessionGuard::abandon`] or
    /// [`Context::term`]; does nothing before. Whoever frees buffers of operations that were under way when
    /// [`Context::session`] has refused calls this first; waits do it themselves (C5). A peer that is
    /// stopped while it writes a slice of a get is waited for until it goes on or is gone; the lock is
    /// free meanwhile (C4).
    pub fn settle(&self) {
        // A thread that is inside, or in a fork, has nothing to wait for.
        if let Ok(session) = self.session.lock() {
            if session.terminated {
                SessionGuard(session).settle();
            }
        }
    }

    /// Ends the use of this context (LAPI_Term). Local: synchronise with [`Context::gfence`] first.
    /// Later calls, also those of threads that wait just now, fail with [`LapiError::HndlInvalid`].
    ///
    /// # Errors
    /// [`LapiError::HndlInvalid`] the second time.
    pub fn term(&self) -> Result<(), LapiError> {
        let mut session = self.session()?;
        session.terminated = true;
        session.wake();
        Ok(())
    }

    /// Makes progress until `ready` answers, and returns what it answered. `ready` is called with
    /// the lock held after every round of progress; it must not call this context.
    ///
    /// # Errors
    /// Those of [`Session::progress`]; [`crate::adapter::AdapterError::PeerLost`] when a task of the job was
    /// declared lost while waiting; [`LapiError::HndlInvalid`] when the context was terminated.
    pub fn wait<R>(
        &self,
        ready: impl FnMut(&mut Session<A, S>) -> Option<R>,
    ) -> Result<R, LapiError> {
        self.wait_from(self.session_to_wait()?, &mut Unnamed::new(ready))
    }

    /// [`Context::wait`] for a caller that holds the session already, and may have started there what
    /// it waits for.
    ///
    /// # Errors
    /// Those of [`Context::wait`].
    #[inline(always)]
    pub fn wait_from<W: Awaited<A, S>>(
        &self,
        mut session: SessionGuard<'_, A, S>,
        awaited: &mut W,
    ) -> Result<W::Answer, LapiError> {
        // Most answers come while a thread does nothing but poll.
        let mut idle = 0;
        while idle < self.pace.spins() {
            session.turn(awaited.frames(), self.pace.alone(awaited.origin(), idle));
            if session.trouble.is_some() || session.has_continuations() {
                break;
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

    /// Sets what answers when somebody outside of the job asks for this task's queues: `answer` looks at them
    /// under the lock, in a thread that waits or polls, so it must not call this context, nor wait. What it
    /// returns tells them, and may wait (C4). Later calls change nothing.
    pub fn on_inquiry<T: FnOnce() + 'static>(
        &self,
        answer: impl Fn(&Session<A, S>) -> T + Send + Sync + 'static,
    ) {
        let _ = self.inquiry.set(Box::new(move |session| Box::new(answer(session))));
    }

    /// Does what has to be done without the lock: runs continuations, and answers if somebody has asked since the
    /// last time. Waits do that themselves; callers that poll with [`Session::progress`] do it after each look.
    pub fn attend(&self, mut session: SessionGuard<'_, A, S>) {
        self.answer(&mut session);
        self.run_continuations(&mut session);
    }

    /// Runs the continuations that are due (C6). It releases the lock meanwhile, so the context may be terminated
    /// afterwards.
    fn run_continuations(&self, session: &mut SessionGuard<'_, A, S>) {
        // Not those that these add, so that a wait looks in between whether what it waits for is there.
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

    /// Answers if somebody has asked. It releases the lock meanwhile, so the context may be terminated afterwards.
    fn answer(&self, session: &mut SessionGuard<'_, A, S>) {
        let asked = session.inquiries();
        if asked != session.answered {
            session.answered = asked;
            if let Some(answer) = self.inquiry.get() {
                let tell = answer(session);
                session.0.unlocked(tell);
            }
        }
    }

    /// Goes on with a wait that has polled for `idle` turns without finding anything, or has something else to do.
    #[inline(never)]
    fn wait_on<W: Awaited<A, S>>(
        &self,
        idle: u32,
        mut session: SessionGuard<'_, A, S>,
        awaited: &mut W,
    ) -> Result<W::Answer, LapiError> {
        let mut notice = Notice::default();
        let outcome = match session.terminated {
            true => Err(session.refuse()),
            false => self.wait_noticed(idle, &mut session, awaited, &mut notice),
        };
        if notice.has_lasted() {
            match &outcome {
                Ok(answer) if !awaited.is_failure(&session, answer) => {
                    notice.withdraw(&mut session);
                }
                _ => notice.fail(&mut session),
            }
        }
        outcome
    }

    /// The context may be terminated whenever the lock was released. Posted waits must not be touched then, so this
    /// is checked before each round.
    fn wait_noticed<W: Awaited<A, S>>(
        &self,
        mut idle: u32,
        session: &mut SessionGuard<'_, A, S>,
        awaited: &mut W,
        notice: &mut Notice,
    ) -> Result<W::Answer, LapiError> {
        let mut turn: u32 = 0;
        let mut vain = Vain::default();
        loop {
            let origin = self.pace.alone(awaited.origin(), turn);
            let done = session.progress_within(awaited.frames(), origin)?;
            turn = turn.wrapping_add(1);
            if session.has_continuations() {
                notice.withdraw(session);
                self.run_continuations(session);
                if session.terminated {
                    return Err(session.refuse());
                }
            }
            if let Some(answer) = awaited.look(session) {
                return Ok(answer);
            }
            idle = u32::wrapping_add(idle, 1);
            if done > 0 {
                (idle, vain) = (0, Vain::default());
            }
            match self.pace.step(idle) {
                Turn::Spin => self.spin(session, idle),
                Turn::Yield => {
                    if notice_losses(session, awaited)? {
                        continue;
                    }
                    if self.pace.is_long(idle) {
                        notice.post(session, awaited, Standing::Awake);
                        self.answer(session);
                    }
                    let before = Instant::now();
                    session.0.unlocked(std::thread::yield_now);
                    if vain.polls_on(before, Instant::now(), session.patience.limit()) {
                        idle = self.pace.polls_on(idle);
                    }
                }
                Turn::Sleep => {
                    let start = Instant::now();
                    let answer = self.sleep(session, awaited, notice)?;
                    session.patience.learn(start.elapsed());
                    if let Some(answer) = answer {
                        return Ok(answer);
                    }
                    (idle, vain) = (0, Vain::default());
                }
            }
            if session.terminated {
                return Err(session.refuse());
            }
        }
    }

    /// One turn of a spin, after a poll that found nothing.
    #[inline(always)]
    fn spin(&self, session: &mut SessionGuard<'_, A, S>, turn: u32) {
        if turn % POLLS_PER_FETCH == 0 {
            session.adapter.fetch_awaited();
        }
        if turn % POLLS_PER_PAUSE == 0 {
            std::hint::spin_loop();
            if turn == HAND_OVER && self.bell.has_woken() {
                session.0.unlocked(std::thread::yield_now);
            }
        }
        session.0.bump();
    }

    /// Announces, looks once more, sleeps (C2); and looks again now and then (D7 of the doorbell).
    #[cold]
    fn sleep<W: Awaited<A, S>>(
        &self,
        session: &mut SessionGuard<'_, A, S>,
        awaited: &mut W,
        notice: &mut Notice,
    ) -> Result<Option<W::Answer>, LapiError> {
        let mut first_ticket = None;
        loop {
            let ticket = self.bell.announce();
            let has_rung = first_ticket.is_some_and(|first| first != ticket);
            if has_rung || session.inquiries() != session.answered {
                // Whoever asks may have seen no sleeper, and rung no bell.
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
                    notice.withdraw(session);
                }
                return looked.map(|(_, answer)| answer);
            }
            match first_ticket {
                None => notice.post(session, awaited, Standing::Asleep { ticket }),
                Some(_) => notice.looked_again(session),
            }
            first_ticket = Some(ticket);
            session.sleeping += 1;
            let mut rung = false;
            session.0.unlocked(|| rung = self.bell.sleep(ticket, Some(LOOK_AGAIN)));
            session.sleeping -= 1;
            if rung || session.terminated {
                break;
            }
        }
        if session.terminated {
            return Err(session.refuse());
        }
        notice.withdraw(session);
        self.answer(session);
        Ok(None)
    }

    /// Waits until the counter has reached `value`, subtracts `value`, and returns what is left
    /// (LAPI_Waitcntr).
    ///
    /// # Errors
    /// [`LapiError::CntrVal`] if `value < 1`; [`LapiError::CntrNull`] if there is no such counter;
    /// those of [`Context::wait`].
    pub fn waitcntr(&self, counter: CounterId, value: i64) -> Result<i64, LapiError> {
        if value < 1 {
            return Err(LapiError::CntrVal { value });
        }
        self.wait(|session| session.engine.outbox.counters.take(counter, value).transpose())?
    }
}

/// Acts on losses. Answers whether something was done by that.
///
/// # Errors
/// The wait cannot succeed.
fn notice_losses<A: Adapter, S, W: Awaited<A, S>>(
    session: &mut Session<A, S>,
    awaited: &W,
) -> Result<bool, LapiError> {
    if session.notice_losses()? {
        return Ok(true);
    }
    match session.engine.first_lost {
        None => Ok(false),
        Some(_) => awaited.in_vain(session).map_or(Ok(false), Err),
    }
}

#[cfg(test)]
#[expect(unsafe_code, reason = "the tests describe buffers of their own as regions")]
mod tests;
