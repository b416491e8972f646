//! Collectives for which no thread waits: their rounds follow each other in any call that makes progress.
//!
//! A thread starts a round, and tells the device what follows each message ([`mpjdev::Device::then`]). The thread that
//! ends the last message of a round runs its local steps and starts the next round.
//!
//! - PL1: `open` counts the messages of the round that have not ended, plus one for the thread that starts them. The
//!   thread that brings it to zero has the schedule for itself until it has started the next round.
//! - PL3: local steps use the buffers independently of the device, in any thread, even while another thread makes the
//!   device fail. So a caller that takes back the buffers of a started collective must also wait for [`Steps::settle`],
//!   and a caller that gives them up leaves them to [`Steps::keep`].

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use mpjdev::{Call, Device, Request, Status};

use super::claim::{self, Claim};
use super::{Endpoint, Route, Scheduled, note, take_steps};
use crate::collective::{Message, Schedule};
use crate::communicator::Communicator;
use crate::error::Error;
use crate::group::Group;
use crate::memory::{Memory, Reduction};

/// A collective that can be started any number of times (MPI-4.1 section 6.13).
pub struct Persistent {
    running: Arc<Running>,
}

impl Persistent {
    pub(super) fn new(plan: Scheduled<'_>) -> Self {
        Self { running: Running::new(plan) }
    }

    /// Starts the collective (MPI_Start).
    ///
    /// # Errors
    /// [`mpjdev::Error::Request`] if its last run has not ended; what made the device unusable.
    pub fn start(&mut self) -> Result<Request, Error> {
        let Running { communicator, call, context, number, .. } = &*self.running;
        if self.running.is_active() {
            return Err(mpjdev::Error::Request.into());
        }
        let (request, ending) = communicator.device().begin(*call, *context, *number)?;
        let process = communicator.process().clone();
        self.running.begin(Box::new(move |outcome| {
            let outcome = outcome.map(|_| Status::new(0, 0, 0)).map_err(Error::into_device);
            process.device().end(ending, outcome);
        }));
        Ok(request)
    }

    /// Starts the collective for the only time. `done` gets the outcome and the words that the output kept. It runs in
    /// some call that makes progress, while no lock is held.
    pub(crate) fn start_then(self, done: impl FnOnce(Result<Vec<u64>, Error>) + Send + 'static) {
        self.running.begin(Box::new(done));
    }

    /// Returns the local steps of all runs of the collective.
    pub fn steps(&self) -> Steps {
        Steps(self.running.clone())
    }
}

/// The local steps of a collective that was started, which use its buffers independently of the device (PL3).
#[derive(Clone)]
pub struct Steps(Arc<Running>);

impl Steps {
    /// Waits until no thread is in a local step. No further step runs before the collective is started again. Call this
    /// before the buffers are used for anything else if the wait for the request has failed, since then the device may
    /// have failed before the collective ended. The collective's own operation must not call it.
    pub fn settle(&self) {
        let mut state = self.0.lock();
        state.is_stopped = true;
        while state.is_stepping {
            state = self.0.stepped.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Keeps the buffers of a collective whose request nobody waits for any more, until nothing uses them.
    pub fn keep(&self, buffers: Box<dyn Any + Send>) {
        self.0.lock().buffers = Some(buffers);
    }
}

/// The function that runs when a collective has ended.
type Done = Box<dyn FnOnce(Result<Vec<u64>, Error>) + Send>;

/// A collective that runs without a thread that waits for it.
pub(super) struct Running {
    communicator: Communicator,
    call: Call,
    peers: Group,
    context: u32,
    /// The number of the call, by which reports know it.
    number: i32,
    tag: i32,
    /// See PL1.
    open: AtomicUsize,
    state: Mutex<State>,
    /// Signalled at the end of local steps for which a thread may wait (PL3).
    stepped: Condvar,
}

struct State {
    /// `None` while a thread has the schedule for itself.
    work: Option<Work>,
    /// The number of the round.
    round: usize,
    failure: Option<Error>,
    /// Whether the buffers are wanted back (PL3).
    is_stopped: bool,
    /// Whether a thread is in a local step.
    is_stepping: bool,
    /// Buffers that nobody else owns any more.
    buffers: Option<Box<dyn Any + Send>>,
    /// The function to call at the end; `None` if the collective is not under way.
    done: Option<Done>,
    /// What the ranks compare before the first round, where calls are checked.
    claim: Option<Box<Claim>>,
}

impl Running {
    pub fn new(plan: Scheduled<'_>) -> Arc<Self> {
        let Scheduled { communicator, call, route, mut work, claim } = plan;
        let (schedule, memory, reduction) = work.take_parts();
        let (communicator, work) = (communicator.clone(), Work { schedule, memory, reduction });
        let Route { peers, context, tag } = route;
        let peers = peers.map_or_else(|| communicator.peers().clone(), |peers| *peers);
        let (number, tag) = (tag.number(), tag.of_started());
        let state = State {
            work: Some(work),
            round: 0,
            failure: None,
            is_stopped: false,
            is_stepping: false,
            buffers: None,
            done: None,
            claim,
        };
        let (open, state, stepped) = (AtomicUsize::new(0), Mutex::new(state), Condvar::new());
        Arc::new(Self { communicator, call, peers, context, number, tag, open, state, stepped })
    }

    fn endpoint(&self) -> Endpoint<'_> {
        let &Self { ref communicator, ref peers, context, tag, call, .. } = self;
        Endpoint { device: communicator.device(), peers, context, tag, call }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_active(&self) -> bool {
        self.lock().done.is_some()
    }

    pub fn begin(self: &Arc<Self>, done: Done) {
        let mut state = self.lock();
        (state.round, state.failure, state.is_stopped) = (0, None, false);
        state.done = Some(done);
        let claim = state.claim.take();
        drop(state);
        let Some(claim) = claim else { return self.go_on() };
        let this = self.clone();
        claim::start(claim, &self.communicator, self.call, self.number, move |fit| match fit {
            Ok(()) => this.go_on(),
            Err(error) => this.refuse(error),
        });
    }

    /// Ends the collective before it has sent anything. The caller has the schedule for itself (PL1).
    #[cold]
    fn refuse(&self, error: Error) {
        let work = self.lock().work.take().expect("PL1: the schedule is this thread's");
        self.finish(work, Some(error));
    }

    /// Starts rounds until one has to wait for its messages, or the schedule ends. The caller has the schedule for
    /// itself (PL1).
    fn go_on(self: &Arc<Self>) {
        loop {
            let mut state = self.lock();
            let round = state.round;
            let work = state.work.take().expect("PL1: the schedule is this thread's");
            let (is_stopped, mut failure) = (state.is_stopped, state.failure.take());
            drop(state);
            let Some(messages) = work.schedule.round(round).filter(|_| !is_stopped) else {
                return self.finish(work, failure);
            };
            // Relaxed: nothing of the round is under way yet.
            self.open.store(messages.messages.len() + 1, Ordering::Relaxed); // SYNC: round
            let endpoint = self.endpoint();
            let start = |message| {
                let request = endpoint.start(message, &work.memory, &mut failure)?;
                Some((request, work.memory.expected(message)))
            };
            let started: Vec<_> = Message::receives_first(messages.messages).map(start).collect();
            let mut state = self.lock();
            (state.work, state.failure) = (Some(work), failure);
            drop(state);
            started.into_iter().for_each(|request| self.attend(endpoint.device, request));
            if !self.is_last() {
                return;
            }
            self.end_round();
        }
    }

    /// Registers what follows a message, if it was started and has not ended yet. Otherwise counts it.
    fn attend(self: &Arc<Self>, device: &Device, started: Option<(Request, Option<usize>)>) {
        let pending = started.filter(|(request, _)| request.completed().is_none());
        if let Some((request, expected)) = pending {
            let this = self.clone();
            match device.then(request, move |outcome| this.message_ended(outcome, expected)) {
                Ok(()) => return,
                Err(error) => {
                    self.lock().failure.get_or_insert(error.into());
                }
            }
        }
        self.is_last();
    }

    fn message_ended(
        self: Arc<Self>,
        outcome: Result<Status, mpjdev::Error>,
        expected: Option<usize>,
    ) {
        note(self.call, &mut self.lock().failure, outcome, expected);
        if self.is_last() {
            self.end_round();
            self.go_on();
        }
    }

    /// Counts `open` down, and returns whether it is now zero.
    fn is_last(&self) -> bool {
        // The thread that continues sees what the others have done in the round.
        self.open.fetch_sub(1, Ordering::AcqRel) == 1 // SYNC: round
    }

    /// Runs the local steps of the round. No caller waits here to whom a panic of the user's operation could pass, so
    /// the panic becomes the outcome.
    fn end_round(&self) {
        let mut state = self.lock();
        let (round, takes_steps) = (state.round, !state.is_stopped && state.failure.is_none());
        let mut work = state.work.take().expect("PL1: the schedule is this thread's");
        state.is_stepping = takes_steps;
        drop(state);
        let mut steps = Ok(());
        if takes_steps {
            let taken = catch_unwind(AssertUnwindSafe(|| work.take_steps(round)));
            steps = taken.unwrap_or_else(|panic| Err(Error::panicked(&*panic)));
        }
        let mut state = self.lock();
        state.work = Some(work);
        state.round += 1;
        state.is_stepping = false;
        if state.is_stopped {
            self.stepped.notify_all();
        }
        if let Err(error) = steps {
            state.failure.get_or_insert(error);
        }
    }

    fn finish(&self, mut work: Work, failure: Option<Error>) {
        let kept = work.memory.take_kept();
        let outcome = failure.map_or(Ok(kept), Err);
        let mut state = self.lock();
        state.work = Some(work);
        let done = state.done.take();
        drop(state);
        if let Some(done) = done {
            done(outcome);
        }
    }
}

/// What the rounds work on.
struct Work {
    schedule: Schedule,
    memory: Memory,
    reduction: Option<Reduction>,
}

impl Work {
    /// Runs the local steps of a round.
    fn take_steps(&mut self, round: usize) -> Result<(), Error> {
        let Self { schedule, memory, reduction } = self;
        let steps = schedule.round(round).map_or(&[][..], |round| round.local);
        take_steps(steps, memory, reduction)
    }
}
