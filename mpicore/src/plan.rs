//! Collectives on their way: a schedule with its memory, run to its end by the caller, by whoever makes progress, or
//! again and again.
//!
//! A blocking call runs its rounds itself and waits between them. A non-blocking one starts a round and leaves
//! word with the device what follows each message ([`mpjdev::Device::then`]); who ends the last message of a round
//! takes its local steps and starts the next one, in whatever call it is. So schedules go on whenever a thread of
//! the rank makes progress, and functions of users, which are local steps, run with no lock held.
//!
//! - PL1: `open` counts the messages of the round that have not ended, and one for the thread that starts them.
//!   Who brings it to zero has the schedule for itself, until it has started the next round.
//! - PL2: a message that fails does not end the schedule, since other ranks wait for what comes after: its error is
//!   kept, and the first one is the outcome. A message that cannot be started does: the device has failed,
//!   or a member is lost, and then the device ends the messages of all members (`loss.rs` there).
//! - PL3: local steps use the buffers beside the device, in any thread, also while another one makes the device
//!   fail. So who takes buffers back of a collective that was started waits for [`Steps::settle`], too, and who gives
//!   them up leaves them to [`Steps::keep`].
//! - PL4: in calls where some ranks only send, these could run ahead of the others without end, whose early messages
//!   would be many and no more in any cache. So in one of [`MOST_AHEAD`] calls messages are sent in synchronous mode.
//!   Schedules do not rely on sends that end before they are received: long messages never do.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use mpjdev::{Call, Device, Mode, Request, Status, Within, wireup::Native};

use crate::collective::{Local, Message, Round, Schedule};
use crate::communicator::Communicator;
use crate::error::Error;
use crate::group::Group;
use crate::memory::{Input, Memory, Output, Reduction};

/// Requests of a round that take no memory of their own.
const FEW: usize = 4;

/// After so many calls, to which their receivers may not have come yet, a rank waits for them (PL4).
const MOST_AHEAD: i32 = 16;

/// How the messages of a collective find their peers.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    /// Job ranks of the ranks that the schedule names.
    pub peers: Group,
    /// The device's context.
    pub context: u32,
    /// Their tag: the number of the call.
    pub tag: i32,
}

/// A collective that is ready to run: MPI's call with all its arguments. Its tag is taken, so all members have to
/// run it, in the order in which they have made theirs.
#[must_use = "the other ranks wait for this one"]
pub struct Plan(Box<Planned>);

/// In memory of its own, since plans pass through several hands, and are not small.
struct Planned {
    /// Keeps its id for as long as there are messages.
    communicator: Communicator,
    call: Call,
    route: Route,
    work: Work,
}

/// What is done in the rounds.
pub(crate) struct Work {
    schedule: Schedule,
    memory: Memory,
    reduction: Option<Reduction>,
    /// How messages are sent (PL4).
    mode: Mode,
}

impl Plan {
    pub(crate) fn new(communicator: &Communicator, call: Call, route: Route, work: Work) -> Self {
        let mode = mode_of(call, route.tag);
        let (communicator, work) = (communicator.clone(), Work { mode, ..work });
        Self(Box::new(Planned { communicator, call, route, work }))
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// The first error of a message; the loss of a member; what made the device unusable. A panic of the user's
    /// operation passes through.
    pub fn run(self) -> Result<(), Error> {
        self.run_and_keep().map(drop)
    }

    /// Runs to the end, and gives back the words that the output kept.
    pub(crate) fn run_and_keep(mut self) -> Result<Vec<u64>, Error> {
        let Planned { communicator, call, route, work } = &mut *self.0;
        let _within = Within::call(*call);
        let device = communicator.device();
        let (mut few, mut many) = ([const { None }; FEW], Vec::new());
        let mut failure = None;
        for index in 0.. {
            let Some(Round { messages, .. }) = work.schedule.round(index) else { break };
            let requests = match few.get_mut(..messages.len()) {
                Some(few) => few,
                None => {
                    many.resize_with(messages.len(), || None);
                    &mut many[..messages.len()]
                }
            };
            let mut places = messages.iter().zip(&mut *requests);
            let started = places.try_for_each(|(message, request)| {
                *request = Some(start(device, route, work, message)?);
                Ok::<(), Error>(())
            });
            let mut ended = messages.iter();
            device.iwaiteach(requests, |outcome| {
                let expected = ended.next().and_then(|message| work.memory.expected(message));
                note(&mut failure, outcome, expected);
            })?;
            started?;
            if let Err(error) = work.take_steps(index) {
                failure.get_or_insert(error);
            }
        }
        failure.map_or(Ok(()), Err)?;
        Ok(work.memory.take_kept())
    }

    /// Starts, and returns the request of it: MPI's non-blocking collectives. Who may take the buffers back after a
    /// failure of the device keeps the [`Steps`] of a [`Plan::persistent`], too.
    ///
    /// # Errors
    /// What made the device unusable. What comes later is the outcome of the request.
    pub fn start(self) -> Result<Request, Error> {
        Persistent::new(self).start()
    }

    /// Starts; `done` gets the outcome, and the words that the output kept. It runs in some call that makes
    /// progress, with no lock held.
    pub(crate) fn start_then(self, done: impl FnOnce(Result<Vec<u64>, Error>) + Send + 'static) {
        let running = Running::new(self);
        running.begin(Box::new(done));
    }

    /// Keeps the plan, to run it as often as is wanted: MPI's persistent collectives.
    pub fn persistent(self) -> Persistent {
        Persistent::new(self)
    }
}

/// A collective that can be started again and again (MPI-4.1 section 6.13).
pub struct Persistent {
    running: Arc<Running>,
}

impl Persistent {
    fn new(plan: Plan) -> Self {
        Self { running: Running::new(plan) }
    }

    /// Starts it (MPI_Start).
    ///
    /// # Errors
    /// [`mpjdev::Error::Request`] if it has not ended since it was started before; what made the device unusable.
    pub fn start(&mut self) -> Result<Request, Error> {
        let Running { communicator, call, route, .. } = &*self.running;
        if self.running.is_active() {
            return Err(mpjdev::Error::Request.into());
        }
        let (request, ending) = communicator.device().begin(*call, route.context, route.tag)?;
        let host = communicator.host().clone();
        self.running.begin(Box::new(move |outcome| {
            let outcome = outcome.map(|_| Status::new(0, 0, 0)).map_err(Error::into_device);
            (*host).as_ref().device().end(ending, outcome);
        }));
        Ok(request)
    }

    /// Its local steps, of all runs.
    pub fn steps(&self) -> Steps {
        Steps(self.running.clone())
    }
}

/// The local steps of a collective that was started, which use its buffers beside the device (PL3).
#[derive(Clone)]
pub struct Steps(Arc<Running>);

impl Steps {
    /// Waits until no thread is in a local step; none is taken any more before the collective is started again. To be
    /// called before the buffers are used for anything else where the wait for the request has failed, since then the
    /// device may have failed and the collective may not have ended. Not to be called by the collective's own
    /// operation.
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

/// What runs when a collective has ended.
type Done = Box<dyn FnOnce(Result<Vec<u64>, Error>) + Send>;

/// A collective that nobody waits in.
struct Running {
    communicator: Communicator,
    call: Call,
    route: Route,
    /// See PL1.
    open: AtomicUsize,
    state: Mutex<State>,
    /// Rung at the end of local steps for which somebody may wait (PL3).
    stepped: Condvar,
}

struct State {
    /// Taken out by who has the schedule for itself.
    work: Option<Work>,
    /// The number of the round.
    round: usize,
    failure: Option<Error>,
    /// Whether a message could not be started (PL2), or the buffers are wanted back (PL3).
    is_stopped: bool,
    /// Whether a thread is in a local step.
    is_stepping: bool,
    /// Buffers that belong to nobody else any more.
    buffers: Option<Box<dyn Any + Send>>,
    /// Until it has ended.
    done: Option<Done>,
}

impl Running {
    fn new(plan: Plan) -> Arc<Self> {
        let Planned { communicator, call, route, work } = *plan.0;
        let state = State {
            work: Some(work),
            round: 0,
            failure: None,
            is_stopped: false,
            is_stepping: false,
            buffers: None,
            done: None,
        };
        let (open, state, stepped) = (AtomicUsize::new(0), Mutex::new(state), Condvar::new());
        Arc::new(Self { communicator, call, route, open, state, stepped })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_active(&self) -> bool {
        self.lock().done.is_some()
    }

    fn begin(self: &Arc<Self>, done: Done) {
        let mut state = self.lock();
        (state.round, state.failure, state.is_stopped) = (0, None, false);
        state.done = Some(done);
        drop(state);
        self.go_on();
    }

    /// Starts rounds until one has to wait for its messages, or the schedule ends. The caller has the schedule for
    /// itself (PL1).
    fn go_on(self: &Arc<Self>) {
        loop {
            let mut state = self.lock();
            let round = state.round;
            let work = state.work.take().expect("PL1: the schedule is this thread's");
            let is_stopped = state.is_stopped;
            drop(state);
            let Some(messages) = work.schedule.round(round).filter(|_| !is_stopped) else {
                return self.finish(work);
            };
            // Relaxed: nothing of the round is under way yet.
            self.open.store(messages.messages.len() + 1, Ordering::Relaxed); // SYNC: round
            let device = self.communicator.device();
            let start = |message| {
                let request = start(device, &self.route, &work, message)?;
                Ok((request, work.memory.expected(message)))
            };
            let started: Vec<_> = messages.messages.iter().map(start).collect();
            self.lock().work = Some(work);
            started.into_iter().for_each(|request| self.attend(device, request));
            if !self.is_last() {
                return;
            }
            self.end_round();
        }
    }

    /// What follows the message of a request.
    fn attend(
        self: &Arc<Self>,
        device: &Device<Native>,
        started: Result<(Request, Option<usize>), Error>,
    ) {
        let this = self.clone();
        let followed = started.and_then(|(request, len)| match request.completed() {
            Some(_) => Ok(false),
            None => {
                device.then(request, move |outcome| this.message_ended(outcome, len))?;
                Ok(true)
            }
        });
        match followed {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => {
                let mut state = self.lock();
                state.failure.get_or_insert(error);
                state.is_stopped = true;
            }
        }
        self.is_last();
    }

    fn message_ended(
        self: Arc<Self>,
        outcome: Result<Status, mpjdev::Error>,
        expected: Option<usize>,
    ) {
        note(&mut self.lock().failure, outcome, expected);
        if self.is_last() {
            self.end_round();
            self.go_on();
        }
    }

    /// One of what `open` counts is there no more; whether that was the last.
    fn is_last(&self) -> bool {
        // Who goes on sees what the others have done in the round.
        self.open.fetch_sub(1, Ordering::AcqRel) == 1 // SYNC: round
    }

    /// The local steps of the round. Nobody waits here who could be given a panic of the user's operation, so it
    /// becomes the outcome.
    fn end_round(&self) {
        let mut state = self.lock();
        let (round, is_stopped) = (state.round, state.is_stopped);
        let mut work = state.work.take().expect("PL1: the schedule is this thread's");
        state.is_stepping = !is_stopped;
        drop(state);
        let mut steps = Ok(());
        if !is_stopped {
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

    fn finish(&self, mut work: Work) {
        let kept = work.memory.take_kept();
        let mut state = self.lock();
        state.work = Some(work);
        let outcome = state.failure.take().map_or(Ok(kept), Err);
        let done = state.done.take();
        drop(state);
        if let Some(done) = done {
            done(outcome);
        }
    }
}

impl Work {
    /// Refuses buffers that are too short for the schedule.
    pub fn new(
        schedule: Schedule,
        (input, output): (Input, Output),
        reduction: Option<Reduction>,
    ) -> Result<Self, Error> {
        let memory = Memory::new(input, output, &schedule)?;
        Ok(Self { schedule, memory, reduction, mode: Mode::Standard })
    }

    /// The local steps of a round.
    fn take_steps(&mut self, round: usize) -> Result<(), Error> {
        let Self { schedule, memory, reduction, .. } = self;
        let steps = schedule.round(round).map_or(&[][..], |round| round.local);
        for step in steps {
            match (*step, &reduction) {
                (Local::Copy { from, into }, _) => memory.copy(from, into)?,
                (Local::Reduce { from, into }, Some(reduction)) => {
                    memory.reduce(reduction, from, into)?;
                }
                (Local::Reduce { .. }, None) => {
                    unreachable!("plans of reductions have an operation")
                }
            }
        }
        Ok(())
    }
}

/// How the messages of a call with this number are sent (PL4).
fn mode_of(call: Call, tag: i32) -> Mode {
    let is_one_way = matches!(
        call,
        Call::Bcast
            | Call::Gather
            | Call::Gatherv
            | Call::Scatter
            | Call::Scatterv
            | Call::Reduce
            | Call::Scan
            | Call::Exscan
    );
    let waits = is_one_way && tag % MOST_AHEAD == MOST_AHEAD - 1;
    if waits { Mode::Synchronous } else { Mode::Standard }
}

/// Starts a message.
#[inline]
fn start(
    device: &Device<Native>,
    route: &Route,
    work: &Work,
    message: &Message,
) -> Result<Request, Error> {
    let Route { peers, context, tag } = route;
    match *message {
        Message::Send { peer, from } => {
            let (data, peer) = (work.memory.source(from)?, peers.job_rank(peer)? as usize);
            Ok(device.isend(data, peer, *tag, *context, work.mode)?)
        }
        Message::Receive { peer, into } => {
            let (into, peer) = (work.memory.sink(into)?, peers.job_rank(peer)? as usize);
            Ok(device.irecv(into, Some(peer), Some(*tag), *context)?)
        }
    }
}

/// Keeps the first error. A message that is shorter than it has to be is one, too.
fn note(
    failure: &mut Option<Error>,
    outcome: Result<Status, mpjdev::Error>,
    expected: Option<usize>,
) {
    match (outcome, expected) {
        (Err(error), _) => {
            failure.get_or_insert(error.into());
        }
        (Ok(Status { source: rank, bytes, .. }), Some(expected)) if bytes != expected => {
            failure.get_or_insert(Error::Short { rank, bytes, expected });
        }
        (Ok(_), _) => {}
    }
}
