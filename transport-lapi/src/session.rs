//! The session: a context whose lock is held. Every call that communicates is made on it.

use std::sync::Arc;
use std::time::Duration;

use crate::adapter::{Adapter, AdapterError, Doorbell, Post, TaskId, Ticket, WaitBoard};
use crate::amsend::{self, Amsend, Outgoing, Queued, Sent};
use crate::body::{Piece, Sink, Source};
use crate::completion::Due;
use crate::counter::CounterId;
use crate::engine::{Dispatcher, Engine};
use crate::error::LapiError;
use crate::fork::ProcessMark;
use crate::handler::{HeaderHandler, MAX_HANDLERS, Next, ShortHandler};
use crate::outbox::Outbox;
use crate::region::{RemoteRegion, SendRegion};
use crate::wait::{ALONE, Patience};
use crate::wire::{self, Packet, RemoteCounters};

/// Frames that one call of progress dispatches at most, so that a flood does not keep a caller.
pub(crate) const BUDGET: usize = 64;

/// How long whoever waits for a peer's last write sleeps between two looks.
pub(crate) const BETWEEN_LOOKS: Duration = Duration::from_micros(50);

/// A context whose lock is held: adapter, dispatcher and the client's state together.
pub struct Session<A: Adapter, S> {
    /// The client's state, which handlers get.
    pub state: S,
    pub(crate) adapter: A,
    pub(crate) engine: Engine<S>,
    pub(crate) bell: Arc<dyn Doorbell>,
    pub(crate) board: Option<Arc<dyn WaitBoard>>,
    /// Threads of this task that sleep in a wait.
    pub(crate) sleeping: usize,
    /// Places of published waits that are taken, a bit for each.
    pub(crate) places: u64,
    /// Those of them whose waits have failed.
    pub(crate) failed_places: u64,
    /// Inquiries that have been answered.
    pub(crate) answered: u32,
    /// See [`Session::after_rounds`].
    pub(crate) after_rounds: Option<fn(&mut S, &mut Outbox<S>)>,
    /// Losses that have been acted on.
    pub(crate) noticed: usize,
    /// The first error of the rounds since [`Session::progress`] last answered.
    pub(crate) trouble: Option<Box<LapiError>>,
    /// Turns for one task's frames alone since one has looked for all.
    pub(crate) alone: u32,
    /// How long waits poll before they sleep.
    pub(crate) patience: Patience,
    pub(crate) terminated: bool,
    pub(crate) process: ProcessMark,
}

/// Keeps an error if it is the first one.
#[cold]
#[inline(never)]
pub(crate) fn keep_first(trouble: &mut Option<Box<LapiError>>, error: LapiError) {
    trouble.get_or_insert_with(|| Box::new(error));
}

impl<A: Adapter, S> Session<A, S> {
    /// Sets the header handler of an index (LAPI_Addr_set). Every task sets the same handlers
    /// before the first message.
    ///
    /// # Errors
    /// [`LapiError::AddrHndlRange`] unless `1 <= index < MAX_HANDLERS`.
    pub fn addr_set(&mut self, index: usize, handler: HeaderHandler<S>) -> Result<(), LapiError> {
        check_index(index)?;
        self.engine.handlers[index] = Some(handler);
        Ok(())
    }

    /// Sets a handler that gets the short messages of an index, those that [`ShortHandler`] describes,
    /// in place of its header handler. Others go to that one, and are refused where there is none.
    ///
    /// # Errors
    /// As [`Session::addr_set`].
    pub fn addr_set_short(
        &mut self,
        index: usize,
        handler: ShortHandler<S>,
    ) -> Result<(), LapiError> {
        check_index(index)?;
        self.engine.short[index] = Some(handler);
        Ok(())
    }

    /// Sends an active message (LAPI_Amsend). Never blocks: frames for which the adapter has no room wait in a queue
    /// that progress empties. `udata` is not copied; it must stay unchanged until the call returns [`Sent::Now`], or
    /// the counter or handler reports that it may change.
    ///
    /// # Errors
    /// [`LapiError::DataLen`], [`LapiError::AddrHndlRange`] for handler 0,
    /// [`LapiError::OrgAddrNull`], [`LapiError::Tgt`], [`LapiError::UhdrLen`],
    /// [`LapiError::CntrNull`] for an origin counter that does not exist; what the adapter
    /// says of a lost target. After an error the buffer is the caller's again; unless the adapter
    /// failed in the middle of a long message, nothing was sent.
    pub fn amsend(&mut self, call: Amsend<'_, S>) -> Result<Sent, LapiError> {
        call.on_origin.check(&mut self.engine.outbox.counters)?;
        if self.send_whole(&call)? {
            if !matches!(call.on_origin, Next::Nothing) {
                self.end_call(call.on_origin);
            }
            return Ok(Sent::Now);
        }
        self.enqueue(call)
    }

    /// Sends an active message with one word of user header and no counters, if that is possible at once and in one
    /// packet: no message waits before it, it is short, its pointer is not null, and the adapter has room. Returns
    /// whether it was sent; then the buffer is reusable. On `false` nothing has happened, and [`Session::amsend`]
    /// sends the message or reports why not.
    #[inline(always)]
    pub fn try_amsend(
        &mut self,
        target: TaskId,
        handler: u8,
        uhdr: u64,
        udata: SendRegion,
    ) -> bool {
        let Engine { outbox: Outbox { lanes, .. }, at_once, .. } = &mut self.engine;
        let Some(lane) = lanes.get_mut(target as usize) else { return false };
        let wellformed = handler != 0 && udata.len() < *at_once && !udata.as_ptr().is_null();
        if !wellformed || !lane.is_free {
            return false;
        }
        let head = wire::short_head(handler, uhdr);
        let post = self.adapter.try_send(target, &head, Piece::Span(udata), Ticket(0));
        let sent = matches!(post, Ok(Post::Taken));
        lane.dirty |= sent;
        sent
    }

    /// [`Session::amsend`] without the origin's counter: whether the message went at once.
    fn send_whole(&mut self, call: &Amsend<'_, S>) -> Result<bool, LapiError> {
        let Engine { outbox, at_once, .. } = &mut self.engine;
        call.check(outbox.lanes.len())?;
        let lane = &mut outbox.lanes[call.target as usize];
        if !lane.is_free || call.udata.len() >= *at_once {
            return Ok(false);
        }
        let (handler, counters, uhdr) = (call.handler, call.counters(), call.uhdr);
        let head = Packet::Single { handler, counters, uhdr }.encode();
        let body = call.udata.piece(0, call.udata.len());
        let post = amsend::post(&mut self.adapter, call.target, head.bytes(), body, Ticket(0))?;
        lane.dirty |= post == Post::Taken;
        Ok(post == Post::Taken)
    }

    #[cold]
    fn enqueue(&mut self, call: Amsend<'_, S>) -> Result<Sent, LapiError> {
        let lane = &self.engine.outbox.lanes[call.target as usize];
        if lane.is_lost || self.adapter.is_lost(call.target) {
            return Err(AdapterError::PeerLost { task: call.target }.into());
        }
        let counters = call.counters();
        let mut message = Queued::new(call.handler, call.uhdr, call.udata);
        (message.counters, message.next) = (counters, call.on_origin);
        let Self { engine, adapter, .. } = self;
        let message = Outgoing::Message(engine.outbox.messages.insert(message));
        let number = engine.outbox.push(call.target, message);
        match engine.outbox.flush_lane(adapter, call.target) {
            Ok(0) => {}
            Ok(_) => self.end_call(Next::Nothing),
            Err(error) if engine.outbox.take_back(call.target, number) => {
                // Others before it may have gone.
                self.end_call(Next::Nothing);
                return Err(error);
            }
            // A part of it is on its way, so the buffer is not the caller's yet.
            Err(error) => {
                self.keep_first(error);
                self.end_call(Next::Nothing);
            }
        }
        Ok(Sent::Later)
    }

    /// Ends a call in which operations have ended: does what follows them, `next` first, and sends what that has
    /// queued.
    fn end_call(&mut self, next: Next<S>) {
        let Self { state, engine, adapter, trouble, .. } = self;
        let due = Due { origin: engine.task, counters: RemoteCounters::default() };
        let mut note = |step: Result<(), LapiError>| {
            step.unwrap_or_else(|error| keep_first(trouble, error));
        };
        note(engine.complete(state, next, due));
        note(engine.run_ready(state).map(drop));
        note(engine.outbox.flush(adapter).map(drop));
        self.end_round();
    }

    /// Starts a one-sided read (LAPI_Get); see [`Outbox::get`] for parameters and errors. When `next` happens, the
    /// bytes have arrived.
    ///
    /// # Errors
    /// As [`Outbox::get`].
    pub fn get(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: impl Into<Sink>,
        next: Next<S>,
    ) -> Result<(), LapiError> {
        self.engine.outbox.get(target, remote, offset, into, next)?;
        self.wake();
        Ok(())
    }

    /// Makes memory of this task readable for the others' gets, until [`Session::deregister`]. The
    /// result describes it and may be sent to them.
    ///
    /// # Errors
    /// [`LapiError::OrgAddrNull`] for a null address with a length.
    pub fn register(&mut self, source: impl Into<Source>) -> Result<RemoteRegion, LapiError> {
        let source = source.into();
        if source.is_null() {
            return Err(LapiError::OrgAddrNull { len: source.len() });
        }
        Ok(self.engine.outbox.register(&mut self.adapter, source))
    }

    /// Ends what [`Session::register`] began. No get of this job's protocols reads it any more when `next` happens;
    /// for a region that is not registered, or not any more, it does not happen.
    pub fn deregister(&mut self, region: RemoteRegion, next: Next<S>) {
        let due = self.engine.outbox.deregister(region, next);
        self.end_call(due.unwrap_or(Next::Nothing));
    }

    /// Makes one round of progress (LAPI_Probe): dispatches arrived frames, sends waiting ones, and carries out gets.
    /// Never blocks. Returns the number of things done.
    ///
    /// # Errors
    /// Asynchronous conditions, the first that was met since the last call: [`LapiError::Peer`],
    /// [`LapiError::HdrHndlrNull`], [`LapiError::CompletionPanicked`], and what the adapter says.
    /// The packet concerned is dropped; later calls go on behind it.
    #[inline(always)]
    pub fn progress(&mut self) -> Result<usize, LapiError> {
        self.progress_within(BUDGET, None)
    }

    /// [`Session::progress`] that takes at most `frames` frames, those of `origin` alone if that is given, but in one of
    /// [`ALONE`] turns.
    #[inline]
    pub(crate) fn progress_within(
        &mut self,
        frames: usize,
        origin: Option<TaskId>,
    ) -> Result<usize, LapiError> {
        let done = self.turn(frames, origin);
        match self.trouble.take() {
            None => Ok(done),
            Some(trouble) => Err(*trouble),
        }
    }

    /// One round of the dispatcher for a caller that does something else with it than to wait: all that a
    /// round does, whatever goes wrong in between. The first error is kept for the next call of
    /// [`Session::progress`]. Returns how many things were done.
    #[inline(never)]
    pub fn round(&mut self) -> usize {
        self.turn(BUDGET, None)
    }

    /// [`Session::round`] inlined: each turn of a spin is one, so this is on the path of every message, and mostly
    /// there is nothing but arrivals.
    #[inline(always)]
    pub(crate) fn turn(&mut self, frames: usize, origin: Option<TaskId>) -> usize {
        let budget = frames.clamp(1, BUDGET);
        let Self { state, adapter, engine, trouble, alone, .. } = self;
        // Nothing is stored where no origin is given: a store in every turn of a spin makes short messages slower.
        let origin = match origin {
            Some(_) if *alone == ALONE => {
                *alone = 0;
                None
            }
            Some(_) => {
                *alone += 1;
                origin
            }
            None => None,
        };
        let mut done =
            match adapter.poll(origin, budget, &mut Dispatcher { state, engine, trouble }) {
                Ok(arrived) => arrived,
                Err(error) => self.keep_first(error.into()),
            };
        if !self.engine.is_idle() {
            done += self.rest_of_round();
        }
        if done > 0 || self.trouble.is_some() {
            self.end_round();
        }
        done
    }

    /// From now on `hook` runs in the dispatcher at the end of each round in which something was done: where a
    /// client looks what its handlers have left to do. One hook at a time.
    pub fn after_rounds(&mut self, hook: fn(&mut S, &mut Outbox<S>)) {
        self.after_rounds = Some(hook);
    }

    /// Whatever the round met: regions that ended are withdrawn before anybody can free them, and the
    /// threads that sleep may have got what they wait for.
    #[inline(always)]
    fn end_round(&mut self) {
        if let Some(hook) = self.after_rounds {
            hook(&mut self.state, &mut self.engine.outbox);
        }
        if !self.engine.outbox.concealed.is_empty() {
            self.engine.outbox.conceal(&mut self.adapter);
        }
        self.wake();
    }

    /// What is under way besides arrivals.
    #[inline(never)]
    fn rest_of_round(&mut self) -> usize {
        let Self { state, adapter, engine, trouble, .. } = self;
        let mut done = engine.outbox.advance_gets(adapter);
        let mut count = |step: Result<usize, LapiError>| match step {
            Ok(more) => done += more,
            Err(error) => keep_first(trouble, error),
        };
        count(engine.collect());
        // What it sends goes out in this round.
        count(engine.run_ready(state));
        count(engine.outbox.flush(adapter));
        count(engine.run_ready(state));
        done
    }

    /// Keeps an error if it is the first one of its round. It counts as nothing done.
    fn keep_first(&mut self, error: LapiError) -> usize {
        keep_first(&mut self.trouble, error);
        0
    }

    /// See [`crate::SessionGuard::abandon`].
    pub(crate) fn give_up(&mut self) {
        self.engine.abandon(&mut self.adapter);
        self.terminated = true;
        self.wake();
    }

    /// Ends what is under way in the adapter, after the context was terminated. Answers whether no memory of this
    /// task is used any more.
    pub(crate) fn try_settle(&mut self) -> bool {
        self.adapter.withdraw()
    }

    /// Acts on the loss of tasks: operations to and from a lost task end, and so do gets of its memory, with an error
    /// that names it. Calls that name it fail from then on. Waits do this themselves. Callers that poll with
    /// [`Session::progress`] do it when no frames come, since frames that arrived before the loss still count.
    /// Returns whether anything was done; then the caller looks again.
    ///
    /// # Errors
    /// [`AdapterError::PeerLost`] when this task itself was declared lost: the others go on without it.
    #[inline]
    pub fn notice_losses(&mut self) -> Result<bool, LapiError> {
        let losses = self.adapter.losses();
        if losses == self.noticed { Ok(false) } else { self.lose(losses) }
    }

    #[cold]
    fn lose(&mut self, losses: usize) -> Result<bool, LapiError> {
        let task = self.engine.task;
        if self.adapter.is_lost(task) {
            return Err(AdapterError::PeerLost { task }.into());
        }
        let is_news = |task: &TaskId| {
            self.adapter.is_lost(*task) && !self.engine.outbox.lanes[*task as usize].is_lost
        };
        // Those alone: what others had sent by the time of the round is not all taken in by it.
        let lost: Vec<TaskId> = (0..self.adapter.num_tasks() as TaskId).filter(is_news).collect();
        if self.round() > 0 {
            return Ok(true);
        }
        self.noticed = losses;
        let Self { state, engine, .. } = self;
        for task in lost {
            engine.lose(state, task);
        }
        self.end_call(Next::Nothing);
        Ok(true)
    }

    /// From now on `hook` runs in the dispatcher once for each task that is lost, after what was under way to it
    /// and from it has ended: where a client ends its operations that need the task. One hook at a time.
    pub fn on_loss(&mut self, hook: fn(&mut S, &mut Outbox<S>, TaskId)) {
        self.engine.on_loss = Some(hook);
    }

    /// Fails if the loss of a task of the job has been noticed.
    ///
    /// # Errors
    /// [`AdapterError::PeerLost`] for the task whose loss was noticed first.
    pub fn check_lost(&self) -> Result<(), LapiError> {
        match self.engine.first_lost {
            Some(task) => Err(AdapterError::PeerLost { task }.into()),
            None => Ok(()),
        }
    }

    /// Wakes the threads of this task that sleep in a wait: the caller has changed the state that
    /// they wait for.
    pub fn wake(&self) {
        if self.sleeping != 0 {
            self.bell.ring();
        }
    }

    /// How often somebody outside has asked for this task's queues.
    pub(crate) fn inquiries(&self) -> u32 {
        self.board.as_ref().map_or(0, |board| board.inquiries())
    }

    /// Whether something is to run when the lock is free.
    #[inline(always)]
    pub(crate) fn has_continuations(&self) -> bool {
        !self.engine.outbox.continuations.is_empty()
    }

    /// Returns state and outbox together, for clients that run handler code outside the dispatcher.
    pub fn parts(&mut self) -> (&mut S, &mut Outbox<S>) {
        (&mut self.state, &mut self.engine.outbox)
    }

    /// Makes a counter, at 0. Tasks that make their counters in the same order know each other's.
    pub fn counter(&mut self) -> CounterId {
        self.engine.outbox.counters.add()
    }

    /// Sets a counter (LAPI_Setcntr).
    ///
    /// # Errors
    /// [`LapiError::CntrNull`] if there is no such counter.
    pub fn setcntr(&mut self, counter: CounterId, value: i64) -> Result<(), LapiError> {
        *self.engine.outbox.counters.value(counter)? = value;
        self.wake();
        Ok(())
    }

    /// Reads a counter without progress (LAPI_Getcntr).
    ///
    /// # Errors
    /// [`LapiError::CntrNull`] if there is no such counter.
    pub fn getcntr(&mut self, counter: CounterId) -> Result<i64, LapiError> {
        Ok(*self.engine.outbox.counters.value(counter)?)
    }
}

/// Whether the handler table has this place for a client.
fn check_index(index: usize) -> Result<(), LapiError> {
    if (1..MAX_HANDLERS).contains(&index) {
        Ok(())
    } else {
        Err(LapiError::AddrHndlRange { index })
    }
}

impl<A: Adapter, S> Drop for Session<A, S> {
    /// Lets completion handlers end, and ends all registrations, before the client's state goes, and
    /// with it perhaps the buffers. A fork has neither the thread nor the job's memory.
    fn drop(&mut self) {
        if self.process.is_fork() {
            return self.engine.forget_thread();
        }
        self.engine.join_thread();
        self.engine.abandon(&mut self.adapter);
        while !self.try_settle() {
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }
}
