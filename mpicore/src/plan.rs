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

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mpjdev::{Call, Device, Mode, Request, Status, Within, wireup::Native};

use crate::collective::{Local, Message, Schedule};
use crate::communicator::Communicator;
use crate::error::Error;
use crate::group::Group;
use crate::memory::{Input, Memory, Output, Reduction};

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
pub struct Plan {
    /// Keeps its id for as long as there are messages.
    communicator: Communicator,
    call: Call,
    route: Route,
    work: Work,
}

/// What is done in the rounds.
struct Work {
    schedule: Schedule,
    memory: Memory,
    reduction: Option<Reduction>,
}

impl Plan {
    pub(crate) fn new(
        communicator: &Communicator,
        call: Call,
        route: Route,
        schedule: Schedule,
        (input, output): (Input, Output),
        reduction: Option<Reduction>,
    ) -> Result<Self, Error> {
        let memory = Memory::new(input, output, &schedule)?;
        let work = Work { schedule, memory, reduction };
        Ok(Self { communicator: communicator.clone(), call, route, work })
    }

    /// The number of the call.
    pub(crate) fn set_tag(&mut self, tag: i32) {
        self.route.tag = tag;
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
    pub(crate) fn run_and_keep(self) -> Result<Vec<u64>, Error> {
        let _within = Within::call(self.call);
        let Self { communicator, route, mut work, .. } = self;
        let device = communicator.device();
        let most = work.schedule.most_at_once();
        let (mut requests, mut expected) = (Vec::with_capacity(most), Vec::with_capacity(most));
        let mut failure = None;
        for index in 0.. {
            let Some(round) = work.schedule.round(index) else { break };
            let mut messages = round.messages.iter();
            let started = messages.try_for_each(|message| {
                let (request, len) = start(device, &route, &work.memory, message)?;
                requests.push(Some(request));
                expected.push(len);
                Ok::<(), Error>(())
            });
            let mut lens = expected.drain(..);
            device.iwaiteach(&mut requests, |outcome| {
                note(&mut failure, outcome, lens.next().flatten());
            })?;
            drop(lens);
            started?;
            requests.clear();
            work.take_steps(index)?;
        }
        failure.map_or(Ok(()), Err)?;
        Ok(work.memory.take_kept())
    }

    /// Starts, and returns the request of it: MPI's non-blocking collectives.
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
    pub fn start(&self) -> Result<Request, Error> {
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
}

struct State {
    /// Taken out by who has the schedule for itself.
    work: Option<Work>,
    /// The number of the round.
    round: usize,
    failure: Option<Error>,
    /// Whether a message could not be started (PL2).
    is_stopped: bool,
    /// Until it has ended.
    done: Option<Done>,
}

impl Running {
    fn new(plan: Plan) -> Arc<Self> {
        let Plan { communicator, call, route, work } = plan;
        let state =
            State { work: Some(work), round: 0, failure: None, is_stopped: false, done: None };
        let (open, state) = (AtomicUsize::new(0), Mutex::new(state));
        Arc::new(Self { communicator, call, route, open, state })
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
            let started: Vec<_> = messages
                .messages
                .iter()
                .map(|message| start(device, &self.route, &work.memory, message))
                .collect();
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
        drop(state);
        let mut steps = Ok(());
        if !is_stopped {
            let taken = catch_unwind(AssertUnwindSafe(|| work.take_steps(round)));
            steps = taken.unwrap_or_else(|panic| Err(Error::panicked(&*panic)));
        }
        let mut state = self.lock();
        state.work = Some(work);
        state.round += 1;
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
    /// The local steps of a round.
    fn take_steps(&mut self, round: usize) -> Result<(), Error> {
        let Self { schedule, memory, reduction } = self;
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

/// Starts a message; of one that is received, says how long it has to be.
#[inline]
fn start(
    device: &Device<Native>,
    route: &Route,
    memory: &Memory,
    message: &Message,
) -> Result<(Request, Option<usize>), Error> {
    let Route { peers, context, tag } = route;
    match *message {
        Message::Send { peer, from } => {
            let (data, peer) = (memory.source(from)?, peers.job_rank(peer)? as usize);
            Ok((device.isend(data, peer, *tag, *context, Mode::Standard)?, None))
        }
        Message::Receive { peer, into } => {
            let (into, peer) = (memory.sink(into)?, peers.job_rank(peer)? as usize);
            let len = into.len();
            Ok((device.irecv(into, Some(peer), Some(*tag), *context)?, Some(len)))
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
