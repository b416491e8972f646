//! Short collectives: few contiguous bytes, moved or combined by an operation of MPI. Most calls of programs that wait
//! for each other often are such calls, and to keep schedules, buffers and requests would take more time than the
//! messages do. So a blocking call takes the steps of its algorithm at once. Its messages are those of the schedule,
//! which other ranks may use for the same call. Errors have the same effects (PL2).
//!
//! Callers with few contiguous bytes make an [`InlineRun`], and a [`BlockCollective`] only if it does not run. If they
//! always made the latter, which serves schedules too, an allreduce of 8 bytes on two ranks would take 1.05 to 1.08 of
//! the time, and a reduce 1.09 (Intel Xeon with `cldemote`).

use std::mem::MaybeUninit;

use mpjdev::{Call, Device, RecvRegion, Request, SendRegion, Status, Within, recorded};

use super::claim::Claim;
use super::{BLOCKING, Endpoint, Route, Scheduled, Tag, division, note};
use crate::collective::{Collective, Member, Place, Scratch, Steps, Used, barrier_steps};
use crate::communicator::Communicator;
use crate::error::Error;
use crate::memory::{Input, Output, Plain, Reduction, ShortMemory};
use crate::op::{ElementKind, Kernel, Predefined, kernel};

/// The most bytes of a short collective in one buffer: what an eager message carries without pieces, so that each
/// message leaves in one frame.
const MOST: usize = 8 << 10;
/// Units of scratch area that a short collective may need: a reduction that divides its results keeps three blocks.
const ROOM: usize = 3 * MOST / size_of::<u128>();

/// A blocking collective with equal blocks of contiguous elements on an intracommunicator, with all its arguments.
pub(crate) struct InlineRun<'c> {
    pub communicator: &'c Communicator,
    pub call: Call,
    pub collective: Collective,
    pub input: Plain,
    pub output: Plain,
    pub reduction: Option<(Predefined, ElementKind)>,
}

impl InlineRun<'_> {
    /// Runs the collective to its end, if it is short and nothing about it is to be refused. Otherwise the caller makes
    /// a plan.
    #[inline(never)]
    pub fn run(&self) -> Option<Result<(), Error>> {
        let communicator = self.communicator;
        if communicator.is_described() && communicator.tell_collective(self.call, self.bytes()) {
            return None;
        }
        let member = self.communicator.intra("this call").ok()?;
        let kernel = self.kernel(member)?;
        Some(self.run_at_once(member, kernel))
    }

    /// Returns the bytes of this rank's block, if it has one.
    #[cold]
    fn bytes(&self) -> Option<u64> {
        let sizes = [self.input.size(), self.output.size()];
        self.collective.significant(self.communicator.rank()).bytes(sizes)
    }

    /// Returns the loop of the operation, if there is one, if the collective is short, and if nothing about it is to be
    /// refused.
    #[inline]
    fn kernel(&self, member: Member) -> Option<Option<Kernel>> {
        let Used { input, output, between } = self.collective.used(member)?;
        let sizes = [self.input.short_size(input, MOST)?, self.output.short_size(output, MOST)?];
        let bytes = |at: usize, elements: u64| elements.saturating_mul(sizes[at] as u64);
        if between.is_some_and(|[left, right]| bytes(0, left) != bytes(1, right)) {
            return None;
        }
        let Some((op, kind)) = self.reduction else { return Some(None) };
        let are_whole =
            kind.size() == kind.extent() && sizes.iter().all(|size| size % kind.size() == 0);
        Some(Some(kernel(op, kind).filter(|_| op.reduces() && are_whole)?))
    }

    /// Takes the steps of a collective that is short.
    #[inline]
    fn run_at_once(&self, member: Member, kernel: Option<Kernel>) -> Result<(), Error> {
        let mut room = [MaybeUninit::uninit(); ROOM];
        let mut steps = AtOnce {
            messages: Messages::of(self.communicator, self.call),
            memory: ShortMemory::new(&self.input, &self.output, &mut room),
            kernel,
        };
        let taken = self.collective.steps(&mut steps, member);
        taken.expect("what is to be refused is not short");
        steps.messages.end()
    }
}

/// A collective with equal blocks on an intracommunicator, with all its arguments. Nothing is checked before it runs,
/// so that calls store the arguments once, where this reads them.
pub(crate) struct BlockCollective<'c> {
    pub communicator: &'c Communicator,
    pub call: Call,
    pub collective: Collective,
    pub input: Input,
    pub output: Output,
    pub reduction: Option<Reduction>,
}

impl<'c> BlockCollective<'c> {
    /// Runs the collective to its end.
    #[inline(never)]
    pub fn run(self) -> Result<(), Error> {
        match self.short().and_then(|short| short.run()) {
            Some(outcome) => outcome,
            None => self.into_scheduled()?.run(),
        }
    }

    /// Finds the schedule of the collective, or builds it.
    #[inline(never)]
    pub(super) fn into_scheduled(self) -> Result<Scheduled<'c>, Error> {
        let Self { communicator, call, collective, input, output, reduction } = self;
        reduction.as_ref().map_or(Ok(()), Reduction::check)?;
        communicator.intra("this call")?;
        let claim = communicator.is_checked().then(|| {
            let buffers = (&input, &output);
            let (rank, reduction) = (communicator.rank(), reduction.as_ref());
            Box::new(Claim::of_blocks(call, &collective, rank, buffers, reduction))
        });
        if communicator.is_described() {
            let sizes = [input.data_size(), output.data_size()];
            let bytes = collective.significant(communicator.rank()).bytes(sizes);
            bytes.into_iter().for_each(recorded::collective_bytes);
        }
        let work = division::begin(communicator, collective, (input, output), reduction)?;
        let tag = Tag::OfCall(communicator.next_number());
        let route = Route { peers: None, context: communicator.collective_context(), tag };
        Ok(Scheduled { communicator, call, route, work, claim })
    }

    /// Returns the collective as one that may be short, if its elements are contiguous and MPI defines its operation.
    #[inline]
    fn short(&self) -> Option<InlineRun<'c>> {
        let Self { communicator, call, collective, .. } = *self;
        let (input, output) = (self.input.plain()?, self.output.plain()?);
        let reduction = match &self.reduction {
            Some(reduction) => Some(reduction.predefined()?),
            None => None,
        };
        Some(InlineRun { communicator, call, collective, input, output, reduction })
    }
}

/// Runs a barrier of an intracommunicator to its end. It has no data, so it needs none of what other calls prepare.
///
/// # Errors
/// [`Error::Kind`] for an intercommunicator; those of [`Plan::run`](super::Plan::run).
pub(crate) fn run_barrier(communicator: &Communicator) -> Result<(), Error> {
    if communicator.is_described() && communicator.tell_collective(Call::Barrier, None) {
        return communicator.barrier()?.run();
    }
    meet(communicator, Call::Barrier)
}

/// Waits until all ranks of a communicator are in this call, without checks.
///
/// # Errors
/// As [`run_barrier`].
#[inline(always)]
pub(crate) fn meet(communicator: &Communicator, call: Call) -> Result<(), Error> {
    let member = communicator.intra("this barrier")?;
    let mut signals = Signals(Messages::of(communicator, call));
    barrier_steps(&mut signals, member);
    signals.0.end()
}

/// The messages of a collective call whose steps are taken at once. Its functions are inlined and its fields are few,
/// since a barrier of two ranks takes hardly longer than a message.
struct Messages<'a> {
    endpoint: Endpoint<'a>,
    /// Has waits published as those of the call.
    _within: Within,
    /// `None` in most calls.
    unsettled: Option<Box<Unsettled>>,
}

/// The sends of a round that have not ended, and what has failed.
#[derive(Default)]
struct Unsettled {
    sending: Vec<Request>,
    /// The first error (PL2).
    failure: Option<Error>,
}

impl<'a> Messages<'a> {
    /// Begins the next collective call of a communicator.
    #[inline(always)]
    fn of(communicator: &'a Communicator, call: Call) -> Self {
        let (device, peers) = (communicator.device(), communicator.group());
        let context = communicator.collective_context();
        let endpoint = Endpoint { device, peers, context, tag: BLOCKING, call };
        let _within = Within::collective(call, context, communicator.next_number());
        Self { endpoint, _within, unsettled: None }
    }

    #[inline(always)]
    fn send(&mut self, peer: u32, data: SendRegion) {
        let Endpoint { device, context, tag, .. } = self.endpoint;
        if self.has_failed() || !device.try_send(data, self.job_rank(peer), tag, context) {
            self.send_otherwise(peer, data);
        }
    }

    /// Starts a send that is not complete at once, or says that this rank has failed (PL2).
    #[cold]
    fn send_otherwise(&mut self, peer: u32, data: SendRegion) {
        let Unsettled { sending, failure } = &mut **self.unsettled.get_or_insert_default();
        sending.extend(self.endpoint.send(peer, || Ok(data), failure));
    }

    #[inline(always)]
    fn receive(&mut self, peer: u32, room: RecvRegion) {
        let (peer, Endpoint { device, context, tag, .. }) = (self.job_rank(peer), self.endpoint);
        let expected = room.len();
        match device.recv(room, Some(peer), Some(tag), context) {
            Ok(status) if status.bytes == expected => {}
            received => self.note_receive(received, expected),
        }
    }

    #[cold]
    fn note_receive(&mut self, received: Result<Status, mpjdev::Error>, expected: usize) {
        let unsettled = self.unsettled.get_or_insert_default();
        note(self.endpoint.call, &mut unsettled.failure, received, Some(expected));
    }

    /// Waits for the messages that are being sent.
    #[inline(always)]
    fn settle(&mut self) {
        if let Some(unsettled) = &mut self.unsettled {
            unsettled.wait(self.endpoint.call, self.endpoint.device);
        }
    }

    /// Waits for the last messages, and returns the outcome.
    #[inline(always)]
    fn end(&mut self) -> Result<(), Error> {
        self.settle();
        match self.unsettled.take().and_then(|unsettled| unsettled.failure) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    #[inline(always)]
    fn has_failed(&self) -> bool {
        self.unsettled.as_ref().is_some_and(|unsettled| unsettled.failure.is_some())
    }

    #[inline(always)]
    fn job_rank(&self, peer: u32) -> usize {
        self.endpoint.peers.job_rank(peer).expect("algorithms name ranks of the communicator")
            as usize
    }
}

impl Unsettled {
    #[cold]
    fn wait(&mut self, call: Call, device: &Device) {
        for request in std::mem::take(&mut self.sending) {
            note(call, &mut self.failure, device.iwait(request), None);
        }
    }
}

/// Takes the steps of a barrier.
struct Signals<'a>(Messages<'a>);

impl Steps for Signals<'_> {
    #[inline]
    fn name(&mut self, _: &'static str) {}

    #[inline]
    fn send(&mut self, peer: u32, _: Place) {
        self.0.send(peer, SendRegion::EMPTY);
    }

    #[inline]
    fn receive(&mut self, peer: u32, _: Place) {
        self.0.receive(peer, RecvRegion::EMPTY);
    }

    #[inline]
    fn end_round(&mut self) {
        self.0.settle();
    }

    fn needs(&mut self, _: Scratch) {
        unreachable!("a barrier has no data");
    }

    fn copy(&mut self, _: Place, _: Place) {
        unreachable!("a barrier has no data");
    }

    fn reduce(&mut self, _: Place, _: Place) {
        unreachable!("a barrier has no data");
    }
}

/// Takes the steps of a short collective.
struct AtOnce<'a, 'r> {
    messages: Messages<'a>,
    memory: ShortMemory<'r>,
    kernel: Option<Kernel>,
}

impl Steps for AtOnce<'_, '_> {
    #[inline]
    fn name(&mut self, _: &'static str) {}

    #[inline]
    fn needs(&mut self, scratch: Scratch) {
        self.memory.make_scratch(scratch);
    }

    #[inline(always)]
    fn send(&mut self, peer: u32, from: Place) {
        self.messages.send(peer, self.memory.source(&from));
    }

    #[inline(always)]
    fn receive(&mut self, peer: u32, into: Place) {
        self.messages.receive(peer, self.memory.sink(&into));
    }

    #[inline]
    fn copy(&mut self, from: Place, into: Place) {
        self.messages.settle();
        if !self.messages.has_failed() {
            self.memory.copy(&from, &into);
        }
    }

    #[inline]
    fn reduce(&mut self, from: Place, into: Place) {
        self.messages.settle();
        if !self.messages.has_failed() {
            let (left, right) = self.memory.operands(&from, &into);
            self.kernel.expect("a reduction has an operation")(left, right);
        }
    }

    #[inline]
    fn end_round(&mut self) {
        self.messages.settle();
    }
}
