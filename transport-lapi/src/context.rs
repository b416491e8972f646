//! One task's window on the job: the lock around a session, and the calls that wait.
//!
//! - C1: adapter, dispatcher and client state are reached only through the lock; a thread that
//!   waits gives it up whenever another thread wants it, and while it yields or sleeps.
//! - C2: a thread goes to sleep only after it has announced that on the bell and has then polled
//!   once more without finding anything; both adapters wake it for everything that comes later.
//! - C3: a thread that made progress while others of the same task sleep rings the bell, since what
//!   it took in may be what they wait for.
//! - C4: a handler that calls the context of its own dispatcher is told so instead of waiting for a
//!   lock that its own thread holds: `owner` names a thread exactly while that thread holds the
//!   lock, so only that thread can ever read its own name there.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};

use crate::adapter::{Adapter, Doorbell, TaskId};
use crate::config::WaitMode;
use crate::counter::CounterId;
use crate::engine::Engine;
use crate::error::LapiError;
use crate::session::Session;
use crate::wait::{Pace, Step};

/// A poll takes longer than the pause that follows it in a spin, and a message that comes meanwhile
/// waits for both; so only some are followed by one.
const POLLS_PER_PAUSE: u32 = 4;

/// The turn of a spin, a multiple of the above, at which a thread that has woken another one yields: the
/// woken one is often put on this processor, and would wait there until the spin ends.
const HAND_OVER: u32 = POLLS_PER_PAUSE;

/// A session whose lock is held by this thread.
pub struct SessionGuard<'a, A: Adapter, S> {
    guard: MutexGuard<'a, Session<A, S>>,
    owner: &'a AtomicUsize,
}

impl<A: Adapter, S> SessionGuard<'_, A, S> {
    /// Lets another thread have the lock, if one waits for it.
    #[inline]
    fn bump(&mut self) {
        self.owner.store(0, Ordering::Relaxed);
        MutexGuard::bump(&mut self.guard);
        self.owner.store(thread_mark(), Ordering::Relaxed);
    }

    /// Runs `body` without the lock.
    fn unlocked(&mut self, body: impl FnOnce()) {
        self.owner.store(0, Ordering::Relaxed);
        MutexGuard::unlocked(&mut self.guard, body);
        self.owner.store(thread_mark(), Ordering::Relaxed);
    }
}

impl<A: Adapter, S> Deref for SessionGuard<'_, A, S> {
    type Target = Session<A, S>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.guard
    }
}

impl<A: Adapter, S> DerefMut for SessionGuard<'_, A, S> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.guard
    }
}

impl<A: Adapter, S> Drop for SessionGuard<'_, A, S> {
    #[inline]
    fn drop(&mut self) {
        self.owner.store(0, Ordering::Relaxed);
    }
}

/// A number that no two living threads share.
#[inline]
fn thread_mark() -> usize {
    thread_local!(static MARK: u8 = const { 0 });
    MARK.with(|mark| std::ptr::from_ref(mark) as usize)
}

/// How a context behaves.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// How waiting threads spend their time.
    pub wait: WaitMode,
}

/// One task's window on the job; LAPI calls it a handle. Shared by all threads of the task.
///
/// `S` is the client's state, which header and completion handlers get.
pub struct Context<A: Adapter, S> {
    session: Mutex<Session<A, S>>,
    bell: Arc<dyn Doorbell>,
    /// The thread that holds the lock, 0 when none does (C4).
    owner: AtomicUsize,
    pace: Pace,
    task: TaskId,
    num_tasks: usize,
}

impl<A: Adapter, S> Context<A, S> {
    /// Opens the window (LAPI_Init). The adapter is already connected to its peers.
    pub fn init(adapter: A, state: S, options: Options) -> Self {
        let (task, num_tasks) = (adapter.task(), adapter.num_tasks());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let bell = adapter.doorbell();
        let session = Session {
            state,
            engine: Engine::new(&adapter),
            adapter,
            bell: bell.clone(),
            sleeping: 0,
            terminated: false,
        };
        let pace = Pace::new(options.wait, num_tasks, cores);
        let owner = AtomicUsize::new(0);
        Self { session: Mutex::new(session), owner, bell, pace, task, num_tasks }
    }

    /// This task's number.
    #[inline]
    pub fn task(&self) -> TaskId {
        self.task
    }

    /// How many tasks the job has.
    #[inline]
    pub fn num_tasks(&self) -> usize {
        self.num_tasks
    }

    /// Takes the lock. Calls on the session never block, so it is held shortly.
    ///
    /// # Errors
    /// [`LapiError::HndlInvalid`] after [`Context::term`]; [`LapiError::InHandler`] from inside a
    /// handler of this context, or while this thread holds the session (C4).
    #[inline]
    pub fn session(&self) -> Result<SessionGuard<'_, A, S>, LapiError> {
        let guard = match self.session.try_lock() {
            Some(guard) => guard,
            None => self.contended()?,
        };
        if guard.terminated {
            return Err(LapiError::HndlInvalid);
        }
        self.owner.store(thread_mark(), Ordering::Relaxed);
        Ok(SessionGuard { guard, owner: &self.owner })
    }

    #[cold]
    fn contended(&self) -> Result<MutexGuard<'_, Session<A, S>>, LapiError> {
        if self.owner.load(Ordering::Relaxed) == thread_mark() {
            return Err(LapiError::InHandler);
        }
        Ok(self.session.lock())
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
    #[inline]
    pub fn wait<R>(
        &self,
        ready: impl FnMut(&mut Session<A, S>) -> Option<R>,
    ) -> Result<R, LapiError> {
        self.wait_from(self.session()?, ready)
    }

    /// [`Context::wait`] for a caller that holds the session already, and has started there what it
    /// waits for.
    ///
    /// # Errors
    /// Those of [`Context::wait`].
    #[inline]
    pub fn wait_from<R>(
        &self,
        mut session: SessionGuard<'_, A, S>,
        mut ready: impl FnMut(&mut Session<A, S>) -> Option<R>,
    ) -> Result<R, LapiError> {
        let mut idle = 0;
        loop {
            let done = session.progress()?;
            if let Some(answer) = ready(&mut session) {
                return Ok(answer);
            }
            idle = if done > 0 { 0 } else { u32::wrapping_add(idle, 1) };
            match self.pace.step(idle) {
                Step::Spin => {
                    if idle % POLLS_PER_PAUSE == 0 {
                        std::hint::spin_loop();
                        if idle == HAND_OVER && self.bell.has_woken() {
                            session.unlocked(std::thread::yield_now);
                        }
                    }
                    session.bump();
                }
                Step::Yield => {
                    session.check_lost()?;
                    session.unlocked(std::thread::yield_now);
                }
                Step::Sleep => {
                    session.check_lost()?;
                    if let Some(answer) = self.sleep(&mut session, &mut ready)? {
                        return Ok(answer);
                    }
                    idle = 0;
                }
            }
            if session.terminated {
                return Err(LapiError::HndlInvalid);
            }
        }
    }

    /// Announces, looks once more, sleeps (C2).
    #[cold]
    fn sleep<R>(
        &self,
        session: &mut SessionGuard<'_, A, S>,
        ready: &mut impl FnMut(&mut Session<A, S>) -> Option<R>,
    ) -> Result<Option<R>, LapiError> {
        let ticket = self.bell.announce();
        let looked = session.progress().and_then(|done| {
            session.check_lost()?;
            Ok((done, ready(session)))
        });
        match looked {
            Ok((0, None)) => {}
            Ok((_, answer)) => {
                self.bell.retract();
                return Ok(answer);
            }
            Err(error) => {
                self.bell.retract();
                return Err(error);
            }
        }
        session.sleeping += 1;
        session.unlocked(|| self.bell.sleep(ticket, None));
        session.sleeping -= 1;
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
