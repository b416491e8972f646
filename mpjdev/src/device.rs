//! The device: sends and receives messages for one rank, matched by source, tag and context.
//!
//! A device is a context of the transport whose client state consists of the matching queues, the requests and the
//! credit ([`State`]). Posting a receive and handling an arrival both happen under the context's lock, so neither can
//! miss the other. This file contains what all calls share, and the end of a device.
//!
//! The files of this room hold the calls: `send`, `receive`, `wait` (and test), `probe`; `cancel` (and withdraw,
//! continue, detach); `client_request` (operations that a client ends); `remote_memory` (memory that others access);
//! `delivery` (messages that go to a function of the client); `members` (the ranks that a context needs) and
//! `collective_failure` (what a rank sends in a collective that has failed on it); `quiescence` (whether a context is
//! idle); `diagnostics` and `dump` (what reports say of waits and queues).
//!
//! - V1: the device reads or writes the region of an operation only until the wait that reports the operation's end,
//!   even if that end is the loss of a rank (LO2 of `backend/loss.rs`), or until the device has failed. A failure
//!   abandons the context before it is reported, and every call that finds the context abandoned waits until it has
//!   settled (`Context::settle`). So once a call has returned an error that ended the device, no buffer is in use. A
//!   wait that unwinds ends the device for the same reason.

mod cancel;
mod client_request;
mod collective_failure;
mod delivery;
mod diagnostics;
mod dump;
mod hosts;
mod members;
mod probe;
mod quiescence;
mod receive;
pub mod recorded;
mod remote_memory;
mod send;
mod wait;

pub use client_request::Ending;
pub use delivery::Delivery;
pub use members::CallMembers;
pub use probe::Message;
pub use send::Mode;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use transport_lapi::adapter::{GetKind, Losses};
use transport_lapi::bootstrap::Control;
use transport_lapi::bootstrap::waits::Within;
use transport_lapi::config::{BackendChoice, Settings, WaitMode};
use transport_lapi::{
    AnyAdapter, Context, LapiError, Processor, Session, SessionGuard, Step, Tasks,
};

use crate::backend::{self, loss};
use crate::call_names::Call;
use crate::envelope;
use crate::error::Error;
use crate::matching::Pattern;
use crate::protocol::{Protocol, Table};
use crate::request::Request;
use crate::state::{State, Stats};

/// What a device records of the calls of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Records {
    /// Nothing.
    Nothing,
    /// What the calls consist of that another library of this process records.
    Parts,
    /// The calls, as the layer above describes them.
    Calls,
}

/// The options of a device. All ranks of a job use the same.
#[derive(Debug, Clone)]
pub struct Options {
    /// The table that chooses the protocol of a message.
    pub table: Table,
    /// How many bytes of unexpected messages a rank may have at each other rank. The same on all ranks.
    pub early_limit: usize,
    /// How waiting threads spend their time.
    pub wait: WaitMode,
    /// How long an adaptive wait polls before it sleeps, where every rank has a processor.
    pub spin: Duration,
    /// Number of contexts of each rank. [`crate::wireup`] uses it; the device of one context does not.
    pub contexts: usize,
    /// Number of processors that the ranks share. The default is the number that this process may use.
    pub processors: Option<usize>,
    /// Whether the job finds mistakes between its ranks. `None` is no, unless the layer above decides: mpj's jobs of
    /// threads are checked where it was built with debug assertions.
    pub checks: Option<bool>,
    /// What is recorded of the calls of the program ([`crate::recorded`]).
    pub records: Records,
    /// Whether the program was started without a launcher and is therefore a job of one rank.
    pub is_alone: bool,
    /// The ranks that were started together with this one; `None` for all of the job.
    pub world: Option<Range<u32>>,
}

impl Options {
    /// Makes the options that settings describe.
    pub fn new(settings: &Settings) -> Self {
        Self {
            table: Table::of(settings, Processor::here()),
            early_limit: settings.early_limit,
            wait: settings.wait,
            spin: settings.spin,
            contexts: 1,
            processors: None,
            checks: settings.check,
            records: Records::Nothing,
            is_alone: false,
            world: None,
        }
    }

    /// Makes the default options with this backend.
    pub fn with_backend(backend: BackendChoice) -> Self {
        Self::new(&Settings { backend, ..Settings::default() })
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new(&Settings::default())
    }
}

/// The device of one rank, shared by all its threads: it sends, receives and matches messages.
pub struct Device {
    pub(crate) context: Context<State>,
    pub(crate) options: Options,
    /// Why the device became unusable, if it did.
    failure: OnceLock<Error>,
    losses: Arc<dyn Losses>,
    /// The line to the launcher, if there is one that ends the job where a rank does not go on.
    pub(crate) launcher: OnceLock<Control>,
    /// Whether this rank has ended its part in the job, or has reported that it gave up.
    ended: AtomicBool,
    /// How many communicators connect this rank with each rank of another world.
    connected: Mutex<BTreeMap<u32, usize>>,
    /// All ranks that this rank has had to do with are below this number.
    known: AtomicUsize,
    /// Distinguishes the requests of this device from those of other devices in the process.
    number: NonZeroU32,
    /// The same if a wait needs nothing but the end of its request; of no device if calls are recorded.
    number_of_waits: Option<NonZeroU32>,
    /// See [`Device::is_described`].
    is_described: bool,
}

/// How many devices this process has made.
static DEVICES: AtomicU32 = AtomicU32::new(0);

impl Device {
    /// Makes a device over a connected adapter.
    ///
    /// # Errors
    /// [`Error::Transport`] if the transport refuses the device's handlers. No error depends on the arguments.
    pub fn new(adapter: impl Into<AnyAdapter>, options: Options) -> Result<Self, Error> {
        let adapter = adapter.into();
        let task = adapter.endpoint().task;
        let mut state = State::new(task, &Tasks::of(&*adapter), options.early_limit);
        state.credits.call_short(options.table.eager_below());
        if options.checks == Some(true) {
            state.check();
        }
        let number = NonZeroU32::MIN.saturating_add(DEVICES.fetch_add(1, Ordering::Relaxed));
        let records_calls = options.records == Records::Calls;
        if options.records != Records::Nothing {
            state.record(number, records_calls);
        }
        let records_rounds = options.records == Records::Parts && recorded::has_details();
        let is_described = records_calls || records_rounds || options.checks == Some(true);
        let number_of_waits = Some(number).filter(|_| !records_calls);
        let losses = adapter.parts().losses;
        let all = adapter.endpoint().num_tasks;
        let known = options.world.as_ref().map_or(all, |world| world.end as usize);
        let Options { wait, spin, processors, .. } = options;
        let transport = transport_lapi::Options { wait, spin, processors, ..Default::default() };
        let context = Context::init(adapter, state, transport);
        let mut session = context.session()?;
        backend::register(&mut session)?;
        session.on_loss(loss::lost);
        drop(session);
        Ok(Self {
            context,
            options,
            failure: OnceLock::new(),
            losses,
            launcher: OnceLock::new(),
            ended: AtomicBool::new(false),
            connected: Mutex::default(),
            known: AtomicUsize::new(known),
            number,
            number_of_waits,
            is_described,
        })
    }

    /// Returns the number of this rank.
    #[inline]
    pub fn rank(&self) -> u32 {
        self.context.task()
    }

    /// Returns whether a rank that waits may keep another rank from running: the job has more ranks than processors,
    /// and its waits poll. Always `false` with [`WaitMode::Block`], whose waits sleep.
    #[inline]
    pub fn shares_processors(&self) -> bool {
        self.context.shares_processors()
    }

    /// Returns whether waits poll before they sleep.
    pub fn polls(&self) -> bool {
        self.options.wait != WaitMode::Block
    }

    /// Returns whether the job finds mistakes between its ranks (`MPJ_CHECK`).
    #[inline(always)]
    pub fn is_checked(&self) -> bool {
        self.options.checks == Some(true)
    }

    /// Returns whether the layer above describes its calls: the job finds mistakes between its ranks, or its calls are
    /// recorded, or what those consist of that another library records.
    #[inline(always)]
    pub fn is_described(&self) -> bool {
        self.is_described
    }

    /// Returns whether this process is a fork of the rank. A fork has no part in the job, and every call that
    /// communicates fails in it.
    pub fn is_fork(&self) -> bool {
        self.context.is_fork()
    }

    /// Returns the ranks of this rank's world: those that were started together with it. In most jobs that is all of them.
    pub fn world(&self) -> Range<u32> {
        self.options.world.clone().unwrap_or(0..self.size() as u32)
    }

    /// Returns the number of ranks that the job can have: the places of its worlds, also of those that nobody has spawned.
    /// [`Device::world`] has the ranks that were started with this one.
    #[inline]
    pub fn size(&self) -> usize {
        self.context.num_tasks()
    }

    /// Returns the number that distinguishes this device from others in the process.
    #[inline(always)]
    pub(crate) fn number(&self) -> NonZeroU32 {
        self.number
    }

    /// Returns whether calls are recorded.
    #[inline(always)]
    pub fn records(&self) -> bool {
        self.number_of_waits.is_none()
    }

    /// Returns the number whose requests a wait for one takes at once.
    #[inline(always)]
    pub(crate) fn number_of_waits(&self) -> Option<NonZeroU32> {
        self.number_of_waits
    }

    /// Returns the key of an operation of this device, or `None` if it was complete when it was started.
    pub(crate) fn key(&self, request: &Request) -> Result<Option<u64>, Error> {
        match request.pending_on(self.number) {
            None if request.completed().is_none() => Err(Error::Request),
            key => Ok(key),
        }
    }

    /// Notes one more communicator that connects this rank with these ranks of other worlds. This rank ends together with
    /// those that it is connected with ([`Device::finish`]).
    pub fn connect(&self, others: &[u32]) {
        let mut connected = self.connected();
        others.iter().for_each(|rank| *connected.entry(*rank).or_default() += 1);
        let end = others.iter().map(|rank| *rank as usize + 1).max();
        self.known.fetch_max(end.unwrap_or(0), Ordering::Relaxed);
    }

    /// Notes that such a communicator is gone.
    pub fn disconnect(&self, others: &[u32]) {
        let mut connected = self.connected();
        others.iter().for_each(|rank| {
            connected.entry(*rank).and_modify(|communicators| *communicators -= 1);
        });
        connected.retain(|_, communicators| *communicators > 0);
    }

    fn connected(&self) -> MutexGuard<'_, BTreeMap<u32, usize>> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends this rank's part in the job (collective over its world, the core of MPI_Finalize). Waits until all its messages
    /// have been delivered, and every rank of its world and those of others that it is connected with have called this.
    ///
    /// # Errors
    /// As [`Device::iwait`]; [`Error::Finished`] the second time; [`Error::Unreceived`].
    pub fn finish(&self) -> Result<(), Error> {
        self.finish_after(false, false).map(drop)
    }

    /// Like [`Device::finish`], for a rank that communicates no more afterwards. Returns whether every rank has called
    /// it. `false` means that the launcher found that the others never will, and released this rank. `alone` says that
    /// no other thread has access to this device; then the launcher can conclude this sooner.
    ///
    /// # Errors
    /// As [`Device::finish`].
    pub fn finish_unless_dismissed(&self, alone: bool) -> Result<bool, Error> {
        self.finish_after(alone, true)
    }

    /// Like [`Device::finish`], for a rank that may communicate again afterwards: the device stays usable, for operations
    /// with ranks that use theirs, too.
    ///
    /// # Errors
    /// As [`Device::iwait`]; [`Error::Unreceived`].
    pub fn rest(&self) -> Result<(), Error> {
        self.wait_for_ends(false, false)?;
        let session = self.session()?;
        let (failed, left) = (session.state.first_error.clone(), session.state.unreceived());
        drop(session);
        match failed {
            Some(first_error) => Err(self.fail(first_error)),
            None => left.map_or(Ok(()), Err),
        }
    }

    /// Waits until all that was sent is on its way, whatever other ranks do: when a rank that has called [`Device::rest`]
    /// ends its part again.
    ///
    /// # Errors
    /// As [`Device::iwait`].
    pub fn rest_again(&self) -> Result<(), Error> {
        self.context.drain().map_err(|error| self.fail(error.into()))
    }

    /// Waits until the world has come to its end, and those that are connected with this rank.
    fn wait_for_ends(&self, alone: bool, dismissible: bool) -> Result<bool, Error> {
        let _within = Within::end(Call::Finish, alone);
        let world = self.world();
        let have_come = match (world.len() == self.size(), dismissible) {
            (true, true) => self.context.gfence_unless_dismissed(),
            (true, false) => self.context.gfence().map(|()| true),
            (false, _) => {
                let connected: Vec<u32> = self.connected().keys().copied().collect();
                self.context.leave(&world, &connected, dismissible)
            }
        };
        have_come.map_err(|error| self.fail(error.into()))
    }

    fn finish_after(&self, alone: bool, dismissible: bool) -> Result<bool, Error> {
        let have_come = self.wait_for_ends(alone, dismissible)?;
        let mut session = self.session()?;
        if let Some(first_error) = session.state.first_error.clone() {
            drop(session);
            return Err(self.fail(first_error));
        }
        let (state, outbox) = session.parts();
        state.follow_up(outbox);
        let never_run = (session.state.requests.take_followed(), session.take_continuations());
        let unreceived = session.state.unreceived().filter(|_| have_come);
        session.abandon();
        self.context.settle();
        // No operation ends any more. What was to follow one may own this device.
        drop(never_run);
        self.ended.store(true, Ordering::Relaxed);
        unreceived.map_or(Ok(have_come), Err)
    }

    /// Reports that this rank gives up. If the device reports to a launcher ([`Device::report_to`]), the launcher ends
    /// the job. Otherwise the other ranks learn of it, and operations that wait for this rank fail with an error that
    /// names it. Does not wait for other ranks. Does nothing in a fork of the process.
    pub fn abort(&self) {
        let session = self.context.session();
        let met = session.ok().and_then(|session| session.state.losses.first_loss);
        met.into_iter().for_each(|lost| self.met_loss(lost));
        self.end_part();
    }

    /// Reports that this rank gives up, unless it has ended regularly or reported this before.
    fn end_part(&self) {
        if self.is_fork() || self.ended.swap(true, Ordering::Relaxed) {
            return;
        }
        if !self.launcher.get().is_some_and(Control::gave_up) {
            self.losses.declare();
        }
    }

    /// Tells the launcher, if there is one, that a call fails because rank `lost` is gone. It must be called before the
    /// program learns of the loss, so that the launcher does not mistake the program's reaction for the cause.
    pub fn met_loss(&self, lost: u32) {
        if let Some(launcher) = self.launcher.get() {
            launcher.met_loss(lost);
        }
    }

    /// Makes the device unusable without waiting for other ranks. Every later call, in any thread, fails with
    /// [`Error::Finished`], and the device uses no buffer any more. The other ranks see this rank as lost, since it can
    /// no longer take part in [`Device::finish`].
    pub fn give_up(&self) {
        self.fail(Error::Finished);
    }

    /// Returns the counts of messages, bytes and copies of this rank so far.
    ///
    /// # Errors
    /// [`Error::Finished`], what made the device unusable.
    pub fn stats(&self) -> Result<Stats, Error> {
        let session = self.session()?;
        let dropped = session.statistics().map_or(0, |statistics| statistics.dropped);
        Ok(Stats { contended: self.context.contended(), dropped, ..session.state.stats })
    }

    /// Publishes where the counts of [`Device::stats`] are, for the launcher, which reads them there while the job runs.
    /// Call it when the device is where it stays: otherwise the launcher reads something else.
    pub fn publish_stats(&self) {
        if let Ok(session) = self.session() {
            session.publish_counters(std::ptr::from_ref(&session.state.stats).addr());
        }
    }

    /// Returns how Get reads memory of ranks on this host. `None` means that active messages carry the data.
    ///
    /// # Errors
    /// [`Error::Finished`], what made the device unusable.
    pub fn get_kind(&self) -> Result<Option<GetKind>, Error> {
        Ok(self.session()?.get_kind())
    }

    /// Returns the table that chooses the protocol of a message.
    pub fn table(&self) -> &Table {
        &self.options.table
    }

    /// Returns the message sizes, ascending, above which messages travel in another way: the steps of the table and,
    /// within the eager range, those of the transport. Rows that depend on facts are not included.
    ///
    /// # Errors
    /// [`Error::Finished`], what made the device unusable.
    pub fn thresholds(&self) -> Result<Vec<Step>, Error> {
        let mut steps = self.session()?.steps(self.rank(), size_of_val(&envelope::eager(0, 0)));
        steps.retain(|step| self.table().protocol(step.bytes + 1) == Protocol::Eager);
        steps.extend(self.table().steps().map(|from| {
            let above = match self.table().protocol(from) {
                Protocol::Eager => "eager",
                Protocol::Rendezvous => "rendezvous",
            };
            Step { bytes: from - 1, above }
        }));
        steps.sort_by_key(|step| step.bytes);
        Ok(steps)
    }

    /// Takes the lock of the context.
    #[inline(always)]
    pub(crate) fn session(&self) -> Result<SessionGuard<'_, State>, Error> {
        self.context.session().map_err(|error| self.unusable(error))
    }

    /// Returns the reason why the device is unusable, if the context was abandoned.
    #[cold]
    fn unusable(&self, error: LapiError) -> Error {
        match error {
            LapiError::HndlInvalid => {
                // V1.
                self.context.settle();
                self.failure.get().cloned().unwrap_or(Error::Finished)
            }
            other => other.into(),
        }
    }

    /// Makes the device unusable and returns the reason; if it failed before, the first reason (V1). Tells the launcher
    /// or the other ranks that this rank gives up.
    #[cold]
    pub(crate) fn fail(&self, error: Error) -> Error {
        if matches!(&error, Error::Transport(cause) if matches!(**cause, LapiError::HndlInvalid)) {
            return self.unusable(LapiError::HndlInvalid);
        }
        let error = self.failure.get_or_init(|| error).clone();
        if let Ok(session) = self.context.session() {
            // Before the other ranks can notice that this rank is gone.
            session.state.losses.first_loss.into_iter().for_each(|lost| self.met_loss(lost));
            session.abandon();
            // Before the wait, since that may last until the job ends.
            self.end_part();
        }
        self.context.settle();
        error
    }

    /// Returns one more request of the operation with this [`Request::number`], for a caller that keeps requests where
    /// several threads see them. The first wait or test that finds the operation complete gets the outcome; to the
    /// others it is then unknown. That of a send that was complete when it was started has an empty status.
    #[inline(always)]
    pub fn request_of(&self, number: u64) -> Request {
        Request::of_send(number, self.number(), 0, 0, 0)
    }

    /// Carries out what has arrived from each rank so far; of a rank that has sent more than some sixty packets, some of it.
    ///
    /// # Errors
    /// As [`Device::iwait`].
    pub fn progress(&self) -> Result<(), Error> {
        self.poll_for(|_| None::<()>).map(drop)
    }

    /// Makes rounds of progress until `look` finds something, or a round brings nothing. One round may carry out what
    /// one rank has sent, and no other, so there are as many as there are ranks known to this one, and one more: a
    /// program that has learnt from one rank what another has sent finds it by a single call. Losses are noticed only in
    /// a round that brought nothing, since what a rank sent before it was lost still counts.
    ///
    /// If ranks share processors, calls that find nothing yield the processor now and then: programs poll in loops, and
    /// the rank that they wait for may need it.
    pub(crate) fn poll_for<R>(
        &self,
        mut look: impl FnMut(&mut Session<State>) -> Option<R>,
    ) -> Result<Option<R>, Error> {
        let mut session = self.session()?;
        let mut rounds = self.known.load(Ordering::Relaxed) + 1;
        let outcome = loop {
            rounds -= 1;
            let more = session.progress().and_then(|done| match done {
                0 => session.notice_losses(),
                _ => Ok(true),
            });
            let more = match (more, session.state.first_error.clone()) {
                (Err(error), _) => break Err(error.into()),
                (Ok(_), Some(first_error)) => break Err(first_error),
                (Ok(more), None) => more && rounds > 0,
            };
            let found = look(&mut session);
            if found.is_some() || !more {
                break Ok(found);
            }
        };
        let gives_way = self.shares_processors()
            && session.state.vain_polls.gives_way(matches!(outcome, Ok(None)));
        self.context.attend(session);
        if gives_way {
            std::thread::yield_now();
        }
        outcome.map_err(|error| self.fail(error))
    }

    /// Checks the arguments of a send, without sending.
    ///
    /// # Errors
    /// [`Error::Rank`], [`Error::Tag`].
    pub fn check_send(&self, dest: usize, tag: i32) -> Result<(), Error> {
        self.check_rank(dest)?;
        check_tag(tag).map(drop)
    }

    #[inline]
    pub(crate) fn check_rank(&self, rank: usize) -> Result<u32, Error> {
        let size = self.size();
        if rank >= size {
            return Err(Error::Rank { rank, size, is_alone: self.options.is_alone });
        }
        Ok(rank as u32)
    }

    /// Checks what a receive or probe asks for, and returns it as a pattern.
    #[inline]
    pub(crate) fn pattern(
        &self,
        source: Option<usize>,
        tag: Option<i32>,
        context: u32,
    ) -> Result<Pattern, Error> {
        let source = source.map(|rank| self.check_rank(rank)).transpose()?;
        let tag = tag.map(check_tag).transpose()?;
        Ok(Pattern { context, source, tag })
    }
}

#[inline]
pub(crate) fn check_tag(tag: i32) -> Result<i32, Error> {
    if tag < 0 { Err(Error::Tag { tag }) } else { Ok(tag) }
}

impl Drop for Device {
    /// A device that is dropped before [`Device::finish`] gives up.
    fn drop(&mut self) {
        self.abort();
    }
}
