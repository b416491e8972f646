//! Running collectives: a schedule with its memory, run to its end by the caller, or by any call that makes progress,
//! once or many times.
//!
//! A blocking call runs its rounds itself and waits between them. Most rounds consist of one message, or of one in each
//! direction, which need no list of requests. A collective that was started, or that is persistent, continues whenever
//! a thread of the rank makes progress (`running.rs`). Functions of users, which are local steps, run while no lock is
//! held that another thread may wait for.
//!
//! - PL2: a failure does not end the schedule, since other ranks wait for the messages after it: if a call left
//!   messages behind, they would match those of the next call (PL4). The first error is kept and becomes the outcome.
//!   From then on this rank does not have what it was to send, so each of its sends says that the call has failed, and
//!   why ([`mpjdev::Failure`]); the receive of the peer fails with it. No local step runs any more, since what it would
//!   read may never have come. So no rank ever takes for data what was not received. All this holds for an error of a
//!   message, whether it could be started or not, for an error of a local step, and for a panic of the user's
//!   operation, which continues when the last message has ended.
//! - PL4: blocking calls of a communicator follow each other on every rank, and so do their messages between any two
//!   ranks. So all of them use one tag, and the device finds each message where it found the one before. A collective
//!   that was started runs beside other calls and has a tag of its own, the number of the call. Calls are counted
//!   modulo 2^30, but a persistent collective may outlast as many calls. So it gets a tag above all numbers of calls,
//!   which no other one gets.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use mpjdev::{CALL_NUMBERS, Call, Device, Mode, Request, Source, Status, Within, recorded};

use crate::collective::{Local, Message, Round};
use crate::communicator::{Communicator, InUse, Parts};
use crate::error::Error;
use crate::group::Group;
use crate::memory::{Memory, Reduction};

pub(crate) mod claim;
pub(crate) mod division;
mod inline;
mod running;
#[cfg(test)]
mod tests;

use claim::{Claim, Form};
pub(crate) use inline::{BlockCollective, InlineRun, meet, run_barrier};
pub use running::{Persistent, Steps};

/// The tag of blocking calls (PL4): above all others.
const BLOCKING: i32 = i32::MAX;

/// How many persistent collectives a communicator can have in its life (PL4): their tags are those between the numbers
/// of calls and the tags of claims.
const PERSISTENT: u32 = claim::CLAIMS - CALL_NUMBERS;

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
    /// The number of the call that made a persistent collective, and the collective's own tag.
    Persistent { number: i32, tag: i32 },
    /// A tag that the caller keeps distinct from others, and the number by which reports know it.
    Own { number: i32, tag: i32 },
}

/// Where the messages of a collective go.
#[derive(Clone, Copy)]
struct Endpoint<'a> {
    device: &'a Device,
    peers: &'a Group,
    context: u32,
    tag: i32,
    call: Call,
}

/// A collective that is ready to run: MPI's call with all its arguments. All members run, start or keep their plans of
/// a communicator one after another, in the same order. A plan that is dropped is a call that this rank has not made.
#[must_use = "the other ranks wait for this one"]
pub struct Plan<'c>(Path<'c>);

/// How a collective runs if the caller waits for it.
enum Path<'c> {
    /// Without a schedule, if it is short.
    Blocks(BlockCollective<'c>),
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
    /// What the ranks compare before they run it, where calls are checked.
    claim: Option<Box<Claim>>,
}

impl<'c> Plan<'c> {
    #[inline]
    pub(crate) fn blocks(blocks: BlockCollective<'c>) -> Self {
        Self(Path::Blocks(blocks))
    }

    #[inline]
    pub(crate) fn new(
        communicator: &'c Communicator,
        call: Call,
        route: Route,
        work: InUse<'c>,
    ) -> Self {
        Self(Path::Scheduled(Scheduled { communicator, call, route, work, claim: None }))
    }

    /// The same, with what the ranks compare before they run it, if anything.
    pub(crate) fn claiming(mut self, claim: Option<Claim>) -> Self {
        if let Path::Scheduled(scheduled) = &mut self.0 {
            scheduled.claim = claim.map(Box::new);
        }
        self
    }

    /// Runs the collective to its end.
    ///
    /// # Errors
    /// What is refused about the arguments; the first error of a message; the loss of a member; what made the device
    /// unusable. A panic of the user's operation passes through.
    #[inline]
    pub fn run(self) -> Result<(), Error> {
        match self.0 {
            Path::Blocks(blocks) => blocks.run(),
            Path::Scheduled(scheduled) => scheduled.run(),
        }
    }

    /// Runs the collective to its end, and returns the words that the output kept.
    pub(crate) fn run_and_keep(self) -> Result<Vec<u64>, Error> {
        self.into_scheduled()?.run_and_keep()
    }

    /// Starts the collective and returns its request: MPI's non-blocking collectives. A caller that may take the
    /// buffers back after a failure of the device must also keep the [`Steps`] of a [`Plan::once`].
    ///
    /// # Errors
    /// As [`Plan::once`]; what made the device unusable. Later errors are the outcome of the request.
    pub fn start(self) -> Result<Request, Error> {
        self.once()?.start()
    }

    /// Keeps the plan, to start it once, soon: MPI's non-blocking collectives.
    ///
    /// # Errors
    /// What is refused about the arguments; [`Error::Memory`].
    pub fn once(self) -> Result<Persistent, Error> {
        Ok(Persistent::new(self.into_scheduled()?.in_form(Form::Started)))
    }

    /// Keeps the plan, to run it any number of times: MPI's persistent collectives.
    ///
    /// # Errors
    /// As [`Plan::once`]; [`Error::PersistentTags`].
    pub fn persistent(self) -> Result<Persistent, Error> {
        let mut scheduled = self.into_scheduled()?.in_form(Form::Persistent);
        scheduled.check()?;
        if let Tag::OfCall(number) = scheduled.route.tag {
            let nth = scheduled.communicator.next_persistent(PERSISTENT);
            let tag = (CALL_NUMBERS + nth.ok_or(Error::PersistentTags)?) as i32;
            scheduled.route.tag = Tag::Persistent { number, tag };
        }
        Ok(Persistent::new(scheduled))
    }

    fn into_scheduled(self) -> Result<Scheduled<'c>, Error> {
        match self.0 {
            Path::Blocks(blocks) => blocks.into_scheduled(),
            Path::Scheduled(scheduled) => Ok(scheduled),
        }
    }
}

impl Scheduled<'_> {
    fn run(mut self) -> Result<(), Error> {
        self.check()?;
        self.run_rounds().map_err(|error| *error)
    }

    fn run_and_keep(mut self) -> Result<Vec<u64>, Error> {
        self.check()?;
        self.run_rounds().map_err(|error| *error)?;
        Ok(self.work.parts().memory.take_kept())
    }

    fn run_rounds(&mut self) -> Result<(), Box<Error>> {
        let Self { communicator, call, route, work, .. } = self;
        let Route { peers, context, tag } = route;
        let _within = Within::collective(*call, *context, tag.number());
        let device = communicator.device();
        let peers = peers.as_deref().unwrap_or(communicator.peers());
        let (call, tag) = (*call, tag.of_blocking());
        let endpoint = Endpoint { device, peers, context: *context, tag, call };
        let Parts { schedule, memory, reduction, requests } = work.parts();
        let (mut failure, mut panic) = (None, None);
        for index in 0.. {
            let Some(Round { messages, local }) = schedule.round(index) else { break };
            let _round = recorded::round(index);
            endpoint.exchange(messages, memory, requests, &mut failure);
            if failure.is_some() {
                continue;
            }
            let steps = AssertUnwindSafe(|| take_steps(local, memory, reduction));
            match catch_unwind(steps) {
                Ok(taken) => failure = taken.err(),
                Err(payload) => {
                    failure = Some(Error::panicked(&*payload));
                    panic = Some(payload);
                }
            }
        }
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
        failure.map_or(Ok(()), |error| Err(Box::new(error)))
    }
}

impl Tag {
    /// Makes a tag that the caller keeps distinct from others, and that reports show.
    pub fn own(tag: i32) -> Self {
        Self::Own { number: tag, tag }
    }

    /// Returns the number by which reports know the collective.
    #[inline]
    fn number(self) -> i32 {
        match self {
            Self::OfCall(number) | Self::Persistent { number, .. } | Self::Own { number, .. } => {
                number
            }
        }
    }

    /// Returns the tag for a call that was started (PL4).
    fn of_started(self) -> i32 {
        match self {
            Self::OfCall(tag) | Self::Persistent { tag, .. } | Self::Own { tag, .. } => tag,
        }
    }

    /// Returns the tag for a blocking call (PL4).
    #[inline]
    pub fn of_blocking(self) -> i32 {
        match self {
            Self::OfCall(_) | Self::Persistent { .. } => BLOCKING,
            Self::Own { tag, .. } => tag,
        }
    }
}

impl Endpoint<'_> {
    /// Starts a message, unless that fails, which is noted (PL2).
    #[inline]
    fn start(
        &self,
        message: &Message,
        memory: &Memory,
        failure: &mut Option<Error>,
    ) -> Option<Request> {
        match message {
            Message::Send { peer, from } => self.send(*peer, || memory.source(from), failure),
            Message::Receive { peer, into } => {
                let posted = memory.sink(into).and_then(|into| {
                    let peer = self.peers.job_rank(*peer)? as usize;
                    Ok(self.device.irecv(into, Some(peer), Some(self.tag), self.context)?)
                });
                posted.map_err(|error| failure.get_or_insert(error)).ok()
            }
        }
    }

    /// Starts a send, unless that fails, which is noted. After a failure it only says so (PL2), and there is nothing to
    /// wait for.
    #[inline]
    fn send<S: Into<Source>>(
        &self,
        peer: u32,
        data: impl FnOnce() -> Result<S, Error>,
        failure: &mut Option<Error>,
    ) -> Option<Request> {
        let Self { device, peers, context, tag, .. } = *self;
        if failure.is_none() {
            let sent = data().and_then(|data| {
                let peer = peers.job_rank(peer)? as usize;
                Ok(device.isend(data, peer, tag, context, Mode::Standard)?)
            });
            match sent {
                Ok(request) => return Some(request),
                Err(error) => *failure = Some(error),
            }
        }
        failure.iter().for_each(|error| self.tell(peer, error));
        None
    }

    /// Tells a peer, instead of the message that it waits for, that this rank has failed (PL2).
    #[cold]
    fn tell(&self, peer: u32, error: &Error) {
        let Self { device, peers, context, tag, .. } = *self;
        let failure = error.failure(device.rank());
        // A peer that cannot be told is lost, or it learns of the loss that keeps this rank from telling it.
        if let Ok(peer) = peers.job_rank(peer) {
            let _ = device.send_failure(&failure, peer as usize, tag, context);
        }
    }

    /// Sends and receives the messages of a round, and waits for their ends. Errors are noted (PL2).
    #[inline]
    fn exchange(
        &self,
        messages: &[Message],
        memory: &Memory,
        requests: &mut Vec<Option<Request>>,
        failure: &mut Option<Error>,
    ) {
        match messages {
            [] => {}
            [receive @ Message::Receive { .. }] => self.receive(receive, memory, failure),
            [send @ Message::Send { .. }] => {
                let sending = self.start(send, memory, failure);
                self.wait(sending, failure);
            }
            [send @ Message::Send { .. }, receive @ Message::Receive { .. }]
            | [receive @ Message::Receive { .. }, send @ Message::Send { .. }] => {
                let sending = self.start(send, memory, failure);
                self.receive(receive, memory, failure);
                self.wait(sending, failure);
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
                let started = ordered().filter(is_started);
                requests.extend(started.map(|message| self.start(message, memory, failure)));
                let others = ordered().filter(|message| !is_started(message));
                others.for_each(|receive| self.receive(receive, memory, failure));
                // If a message has not been started, the outcomes do not fit the messages; but then there is a failure,
                // and no further one counts.
                let mut ended = ordered().filter(is_started);
                let waited = self.device.iwaiteach(requests, |outcome| {
                    let expected = ended.next().and_then(|message| memory.expected(message));
                    note(self.call, failure, outcome, expected);
                });
                if let Err(error) = waited {
                    failure.get_or_insert(error.into());
                }
            }
        }
    }

    /// Waits for a send, if it was started.
    #[inline]
    fn wait(&self, sending: Option<Request>, failure: &mut Option<Error>) {
        if let Some(sending) = sending {
            note(self.call, failure, self.device.iwait(sending), None);
        }
    }

    /// Receives one message.
    #[inline]
    fn receive(&self, message: &Message, memory: &Memory, failure: &mut Option<Error>) {
        let Message::Receive { peer, into } = message else { return };
        let received = memory.sink(into).and_then(|room| {
            let peer = self.peers.job_rank(*peer)? as usize;
            Ok(self.device.recv(room, Some(peer), Some(self.tag), self.context))
        });
        match received {
            Ok(received) => note(self.call, failure, received, memory.expected(message)),
            Err(error) => {
                failure.get_or_insert(error);
            }
        }
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
    call: Call,
    failure: &mut Option<Error>,
    outcome: Result<Status, mpjdev::Error>,
    expected: Option<usize>,
) {
    match (outcome, expected) {
        // What the device advises would help in a receive of the program.
        (
            Err(mpjdev::Error::Truncate { source_rank: rank, sent: bytes, capacity: room, .. }),
            _,
        ) => {
            failure.get_or_insert(Error::Long { call: call.name(), rank, bytes, room });
        }
        (Err(error), _) => {
            failure.get_or_insert(error.into());
        }
        (Ok(Status { source: rank, bytes, .. }), Some(expected)) if bytes != expected => {
            failure.get_or_insert(Error::Short { call: call.name(), rank, bytes, expected });
        }
        (Ok(_), _) => {}
    }
}
