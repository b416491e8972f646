//! Running collectives: a schedule with its memory, run to its end by the caller, or by any call that makes progress,
//! once or many times.
//!
//! A blocking call runs its rounds itself and waits between them. Most rounds consist of one message, or of one in each
//! direction, which need no list of requests. A collective that was started, or that is persistent, continues whenever
//! a thread of the rank makes progress (`running.rs`). Functions of users, which are local steps, run while no lock is
//! held that another thread may wait for.
//!
//! - PL2: a message that fails does not end the schedule, since other ranks wait for the messages after it. The first
//!   error is kept and becomes the outcome. A panic of the user's operation does not end the schedule either; it
//!   continues when the last message has ended. If a call left messages behind, they would match those of the next call
//!   (PL4). A message that cannot be started does end the schedule: the device has failed, or a member is lost, and
//!   then the device ends the messages of all members (`loss.rs` of the device).
//! - PL4: blocking calls of a communicator follow each other on every rank, and so do their messages between any two
//!   ranks. So all of them use one tag, and the device finds each message where it found the one before. A collective
//!   that was started runs beside other calls and has a tag of its own, the number of the call.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use mpjdev::{Call, Device, Mode, Request, Status, Within, wireup::Native};

use crate::collective::{Local, Message, Round};
use crate::communicator::{Communicator, InUse, Parts};
use crate::error::Error;
use crate::group::Group;
use crate::memory::{Memory, Reduction};

mod running;
mod short;

pub use running::{Persistent, Steps};
pub(crate) use short::{Equal, Short, run_barrier};

/// The tag of blocking calls (PL4): above the numbers of calls and the tags of [`Communicator::create_group`].
const BLOCKING: i32 = i32::MAX;

/// If each rank has a processor and a round has several messages, they are received one after another if none has more
/// than this many bytes.
const SHORT: usize = 1024;

/// How the messages of a collective find their peers.
pub(crate) struct Route {
    /// Job ranks of the ranks that the schedule names, unless these are the communicator's peers.
    pub peers: Option<Box<Group>>,
    /// The device's context.
    pub context: u32,
    /// Distinguishes its messages from others in the context.
    pub tag: Tag,
}

/// Distinguishes the messages of a collective from those of others.
#[derive(Clone, Copy)]
pub(crate) enum Tag {
    /// The number of the call on its communicator, below [`mpjdev::CALL_NUMBERS`].
    OfCall(i32),
    /// A tag that the caller keeps distinct from others.
    Own(i32),
}

/// Where the messages of a collective go.
#[derive(Clone, Copy)]
struct Line<'a> {
    device: &'a Device<Native>,
    peers: &'a Group,
    context: u32,
    tag: i32,
}

/// A collective that is ready to run: MPI's call with all its arguments. All members run, start or keep their plans of a
/// communicator one after another, in the same order. A plan that is dropped is a call that this rank has not made.
#[must_use = "the other ranks wait for this one"]
pub struct Plan<'c>(Way<'c>);

/// How a collective runs if the caller waits for it.
enum Way<'c> {
    /// Without a schedule, if it is short.
    Equal(Equal<'c>),
    /// By a schedule that was made when the arguments were checked.
    Scheduled(Scheduled<'c>),
}

/// A collective with its schedule and its memory.
struct Scheduled<'c> {
    /// Keeps the communicator's id in use as long as there are messages.
    communicator: &'c Communicator,
    call: Call,
    route: Route,
    work: InUse<'c>,
}

impl<'c> Plan<'c> {
    #[inline]
    pub(crate) fn equal(equal: Equal<'c>) -> Self {
        Self(Way::Equal(equal))
    }

    #[inline]
    pub(crate) fn new(
        communicator: &'c Communicator,
        call: Call,
        route: Route,
        work: InUse<'c>,
    ) -> Self {
        Self(Way::Scheduled(Scheduled { communicator, call, route, work }))
    }

    /// Runs the collective to its end.
    ///
    /// # Errors
    /// What is refused about the arguments; the first error of a message; the loss of a member; what made the device
    /// unusable. A panic of the user's operation passes through.
    #[inline]
    pub fn run(self) -> Result<(), Error> {
        match self.0 {
            Way::Equal(equal) => equal.run(),
            Way::Scheduled(mut scheduled) => scheduled.run_rounds().map_err(|error| *error),
        }
    }

    /// Runs the collective to its end, and returns the words that the output kept.
    pub(crate) fn run_and_keep(self) -> Result<Vec<u64>, Error> {
        let mut scheduled = self.into_scheduled()?;
        scheduled.run_rounds().map_err(|error| *error)?;
        Ok(scheduled.work.parts().memory.take_kept())
    }

    /// Starts the collective and returns its request: MPI's non-blocking collectives. A caller that may take the
    /// buffers back after a failure of the device must also keep the [`Steps`] of a [`Plan::persistent`].
    ///
    /// # Errors
    /// As [`Plan::persistent`]; what made the device unusable. Later errors are the outcome of the request.
    pub fn start(self) -> Result<Request, Error> {
        self.persistent()?.start()
    }

    /// Keeps the plan, to run it any number of times: MPI's persistent collectives.
    ///
    /// # Errors
    /// What is refused about the arguments; [`Error::Memory`].
    pub fn persistent(self) -> Result<Persistent, Error> {
        Ok(Persistent::new(self.into_scheduled()?))
    }

    fn into_scheduled(self) -> Result<Scheduled<'c>, Error> {
        match self.0 {
            Way::Equal(equal) => equal.into_scheduled(),
            Way::Scheduled(scheduled) => Ok(scheduled),
        }
    }
}

impl Scheduled<'_> {
    fn run_rounds(&mut self) -> Result<(), Box<Error>> {
        let Self { communicator, call, route, work } = self;
        let Route { peers, context, tag } = route;
        let _within = Within::collective(*call, *context, tag.number());
        let device = communicator.device();
        let peers = peers.as_deref().unwrap_or(communicator.peers());
        let line = Line { device, peers, context: *context, tag: tag.of_blocking() };
        let Parts { schedule, memory, reduction, requests } = work.parts();
        let (mut failure, mut panic) = (None, None);
        for index in 0.. {
            let Some(Round { messages, local }) = schedule.round(index) else { break };
            if let Err(error) = line.exchange(messages, memory, requests, &mut failure) {
                failure.get_or_insert(error);
                break;
            }
            if panic.is_some() {
                continue;
            }
            let steps = AssertUnwindSafe(|| take_steps(local, memory, reduction));
            match catch_unwind(steps) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    failure.get_or_insert(error);
                }
                Err(payload) => panic = Some(payload),
            }
        }
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
        failure.map_or(Ok(()), |error| Err(Box::new(error)))
    }
}

impl Tag {
    /// Returns the number by which reports know the collective.
    #[inline]
    fn number(self) -> i32 {
        match self {
            Self::OfCall(number) | Self::Own(number) => number,
        }
    }

    /// Returns the tag for a blocking call (PL4).
    #[inline]
    fn of_blocking(self) -> i32 {
        match self {
            Self::OfCall(_) => BLOCKING,
            Self::Own(tag) => tag,
        }
    }
}

impl Line<'_> {
    /// Starts a message.
    #[inline]
    fn start(&self, message: &Message, memory: &Memory) -> Result<Request, Error> {
        let Self { device, peers, context, tag } = *self;
        match message {
            Message::Send { peer, from } => {
                let (data, peer) = (memory.source(from)?, peers.job_rank(*peer)? as usize);
                Ok(device.isend(data, peer, tag, context, Mode::Standard)?)
            }
            Message::Receive { peer, into } => {
                let (into, peer) = (memory.sink(into)?, peers.job_rank(*peer)? as usize);
                Ok(device.irecv(into, Some(peer), Some(tag), context)?)
            }
        }
    }

    /// Sends and receives the messages of a round, and waits for their ends. Errors of messages are noted (PL2).
    #[inline]
    fn exchange(
        &self,
        messages: &[Message],
        memory: &Memory,
        requests: &mut Vec<Option<Request>>,
        failure: &mut Option<Error>,
    ) -> Result<(), Error> {
        match messages {
            [] => {}
            [receive @ Message::Receive { .. }] => self.receive(receive, memory, failure)?,
            [send @ Message::Send { .. }] => {
                let sending = self.start(send, memory)?;
                note(failure, self.device.iwait(sending), None);
            }
            [send @ Message::Send { .. }, receive @ Message::Receive { .. }]
            | [receive @ Message::Receive { .. }, send @ Message::Send { .. }] => {
                let sending = self.start(send, memory)?;
                let received = self.receive(receive, memory, failure);
                note(failure, self.device.iwait(sending), None);
                received?;
            }
            _ => {
                // Short messages are received one after another, since that takes less time than to post receives for
                // all. So are all messages if ranks share processors, since a rank that waits for all keeps those ranks
                // from running whose messages it needs.
                let is_short = |message| memory.expected(message).is_none_or(|len| len <= SHORT);
                let in_turn = self.device.shares_processors() || messages.iter().all(is_short);
                let is_started =
                    |message: &&Message| !in_turn || matches!(message, Message::Send { .. });
                // An earlier round, perhaps of another call, has left empty places, or requests of a device that has
                // failed.
                requests.clear();
                let ordered = || Message::receives_first(messages);
                let started = ordered().filter(is_started).try_for_each(|message| {
                    requests.push(Some(self.start(message, memory)?));
                    Ok::<(), Error>(())
                });
                let mut others = ordered().filter(|message| !is_started(message));
                let received = started.and_then(|()| {
                    others.try_for_each(|receive| self.receive(receive, memory, failure))
                });
                let mut ended = ordered().filter(is_started);
                self.device.iwaiteach(requests, |outcome| {
                    let expected = ended.next().and_then(|message| memory.expected(message));
                    note(failure, outcome, expected);
                })?;
                received?;
            }
        }
        Ok(())
    }

    /// Receives one message. A receive that cannot be posted is noted like one that fails, since the following messages
    /// then fail too: the device has failed, or a member is lost.
    #[inline]
    fn receive(
        &self,
        message: &Message,
        memory: &Memory,
        failure: &mut Option<Error>,
    ) -> Result<(), Error> {
        let Message::Receive { peer, into } = message else { return Ok(()) };
        let (room, peer) = (memory.sink(into)?, self.peers.job_rank(*peer)? as usize);
        let received = self.device.recv(room, Some(peer), Some(self.tag), self.context);
        note(failure, received, memory.expected(message));
        Ok(())
    }
}

/// Runs the local steps of a round.
#[inline]
fn take_steps(
    steps: &[Local],
    memory: &mut Memory,
    reduction: &Option<Reduction>,
) -> Result<(), Error> {
    for step in steps {
        match (step, reduction) {
            (Local::Copy { from, into }, _) => memory.copy(from, into)?,
            (Local::Reduce { from, into }, Some(reduction)) => {
                memory.reduce(reduction, from, into)?;
            }
            (Local::Reduce { .. }, None) => unreachable!("plans of reductions have an operation"),
        }
    }
    Ok(())
}

/// Keeps the first error. A message that is shorter than expected is an error, too.
#[inline]
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
