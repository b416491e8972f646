//! The session: a context whose lock is held. All calls that communicate are methods of it.

use std::sync::Arc;
use std::time::Duration;

use crate::adapter::{
    AdapterError, Caps, Doorbell, GetKind, Losses, Post, TaskId, Ticket, WaitRecords,
};
use crate::adapters::AnyAdapter;
use crate::error::LapiError;
use crate::memory::body::{Sink, Source};
use crate::memory::region::{RecvRegion, RemoteRegion, SendRegion};
use crate::platform::fork::ProcessMark;
use crate::progress::amsend::{self, Amsend, IN_PLACE_FROM, Outgoing, Queued, Sent, check_handler};
use crate::progress::completion::Due;
use crate::progress::engine::{Dispatcher, Engine};
use crate::progress::handler::{HeaderHandler, Next, ShortHandler};
use crate::progress::hooks::Hooks;
use crate::progress::outbox::Outbox;
use crate::progress::report::ErrorHandler;
use crate::progress::wait::{ALONE, AdaptiveSpin};
use crate::wire::{self, MAX_HANDLERS, Packet, RemoteCounters};

/// Frames that one call of progress dispatches at most, so that a flood of frames does not hold up the caller. Data
/// that stays in place counts as one frame, whatever its length, as does a get of memory in a shared area.
pub(crate) const BUDGET: usize = 64;

/// Pause between two checks of whether a peer has finished its last write into this task's memory.
pub(crate) const BETWEEN_LOOKS: Duration = Duration::from_micros(50);

/// Adapter, dispatcher and client state of a context, while the lock is held.
pub struct Session<S> {
    /// The client's state, which is passed to handlers.
    pub state: S,
    pub(crate) adapter: AnyAdapter,
    pub(crate) engine: Engine<S>,
    pub(crate) bell: Arc<dyn Doorbell>,
    pub(crate) losses: Arc<dyn Losses>,
    pub(crate) wait_records: Option<Arc<dyn WaitRecords>>,
    /// Threads of this task that sleep in a wait, on the bell or on a counter.
    pub(crate) sleeping: usize,
    /// Places of published waits that are in use, one bit for each.
    pub(crate) places: u64,
    /// The places whose waits have failed.
    pub(crate) failed_places: u64,
    /// Inquiries that have been answered.
    pub(crate) answered: u32,
    /// See [`Session::after_rounds`].
    pub(crate) after_rounds: Option<fn(&mut S, &mut Outbox<S>)>,
    /// The first error since [`Session::progress`] last returned.
    pub(crate) first_error: Option<Box<LapiError>>,
    /// Turns since the last poll of all origins; each of them polled one origin only.
    pub(crate) alone: u32,
    /// How long waits poll before they sleep.
    pub(crate) patience: AdaptiveSpin,
    pub(crate) terminated: bool,
    pub(crate) error_handler: Option<ErrorHandler>,
    pub(crate) hooks: Option<Box<dyn Hooks>>,
    /// Waits of the program's threads that last.
    pub(crate) waits: usize,
    pub(crate) process: ProcessMark,
}

/// Keeps an error if it is the first one.
#[cold]
#[inline(never)]
pub(crate) fn keep_first(first_error: &mut Option<Box<LapiError>>, error: LapiError) {
    first_error.get_or_insert_with(|| Box::new(error));
}

impl<S> Session<S> {
    /// Sets the header handler with an index (LAPI_Addr_set). Every task must set the same handlers before the first
    /// message.
    ///
    /// # Errors
    /// [`LapiError::AddrHndlRange`] unless `1 <= index < MAX_HANDLERS`.
    pub fn addr_set(&mut self, index: usize, handler: HeaderHandler<S>) -> Result<(), LapiError> {
        check_index(index)?;
        self.engine.handlers[index] = Some(handler);
        Ok(())
    }

    /// Sets a handler for the short messages of an index, those that [`ShortHandler`] describes; it replaces the header
    /// handler for them. Other messages go to the header handler, and are refused if there is none.
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
    /// that progress sends. `udata` is not copied. It must stay unchanged until the call returns [`Sent::Now`], or the
    /// counter or handler reports that it may change.
    ///
    /// # Errors
    /// [`LapiError::DataLen`], [`LapiError::AddrHndlRange`] for handler 0, [`LapiError::OrgAddrNull`],
    /// [`LapiError::Tgt`], [`LapiError::UhdrLen`], [`LapiError::CntrNull`] for an origin counter that does not exist;
    /// the adapter's error if the target is lost. After an error the buffer belongs to the caller again. Nothing was
    /// sent, unless the adapter failed in the middle of a long message.
    pub fn amsend(&mut self, call: Amsend<'_, S>) -> Result<Sent, LapiError> {
        check_handler(call.handler)?;
        self.send(call)
    }

    /// [`Session::amsend`] for any handler, also the transport's own.
    pub(crate) fn send(&mut self, call: Amsend<'_, S>) -> Result<Sent, LapiError> {
        call.on_origin.check(&mut self.engine.outbox.counters)?;
        if let Some(place) = self.place_in_area(&call) {
            call.check(self.engine.outbox.send_queues.len())?;
            return self.enqueue(call, Some(place));
        }
        if self.send_whole(&call)? {
            if !matches!(call.on_origin, Next::Nothing) {
                self.end_call(call.on_origin);
            }
            return Ok(Sent::Now);
        }
        self.enqueue(call, None)
    }

    /// Sends an active message with one word of user header and no counters, if that is possible at once and in one
    /// packet: the message is short, its pointer is not null, no message is queued before it, and the adapter has room.
    /// Returns whether it was sent; if so, the buffer is reusable. On `false` nothing was sent, and [`Session::amsend`]
    /// sends the message or reports why not.
    #[inline(always)]
    pub fn try_amsend(
        &mut self,
        target: TaskId,
        handler: u8,
        uhdr: u64,
        udata: SendRegion,
    ) -> bool {
        let Some(send_queue) = self.engine.outbox.send_queues.get_mut(target as usize) else {
            return false;
        };
        let wellformed =
            handler != 0 && udata.len() < send_queue.at_once && !udata.as_ptr().is_null();
        if !wellformed || !send_queue.is_free {
            return false;
        }
        // Set beforehand, which is faster: a fence after nothing was sent does no harm.
        send_queue.dirty = true;
        let head = wire::short_head(handler, uhdr);
        self.adapter.takes(target, &head, udata)
    }

    /// [`Session::try_amsend`] of bytes that are borrowed for this call only.
    #[inline]
    #[expect(unsafe_code, reason = "lends a slice for one call")]
    pub fn try_amsend_bytes(
        &mut self,
        target: TaskId,
        handler: u8,
        uhdr: u64,
        udata: &[u8],
    ) -> bool {
        // SAFETY: G1: `try_amsend` sends only if the adapter copies every body inside the call (A9).
        let udata = unsafe { SendRegion::new(udata.as_ptr(), udata.len()) };
        self.try_amsend(target, handler, uhdr, udata)
    }

    /// Sends the message if it fits in one packet and can go at once; returns whether it did. Ignores `call.on_origin`.
    pub(crate) fn send_whole(&mut self, call: &Amsend<'_, S>) -> Result<bool, LapiError> {
        let outbox = &mut self.engine.outbox;
        call.check(outbox.send_queues.len())?;
        let send_queue = &mut outbox.send_queues[call.target as usize];
        if !send_queue.is_free || call.udata.len() >= send_queue.at_once {
            return Ok(false);
        }
        let (handler, counters, uhdr) = (call.handler, call.counters(), call.uhdr);
        let head = Packet::Single { handler, counters, uhdr }.encode();
        let body = call.udata.piece(0, call.udata.len());
        let post = amsend::post(&mut self.adapter, call.target, head.bytes(), body, Ticket(0))?;
        send_queue.dirty |= post == Post::Taken;
        Ok(post == Post::Taken)
    }

    /// Where the data lies in this task's shared area, if another task is to copy it from there.
    #[inline]
    fn place_in_area(&self, call: &Amsend<'_, S>) -> Option<u64> {
        if !call.in_place || call.target == self.engine.task {
            return None;
        }
        let span = call.udata.span().filter(|span| span.len() >= IN_PLACE_FROM)?;
        self.engine.outbox.shared.as_ref()?.direct.place_of(span)
    }

    /// Queues a message, with the place of its data if the target copies it from there.
    #[inline(never)]
    fn enqueue(&mut self, call: Amsend<'_, S>, place: Option<u64>) -> Result<Sent, LapiError> {
        self.engine.outbox.check_lost(call.target)?;
        if self.losses.is_lost(call.target) {
            return Err(AdapterError::PeerLost { task: call.target }.into());
        }
        let counters = call.counters();
        let mut message = Queued::new(call.handler, call.uhdr, call.udata);
        (message.counters, message.next, message.place) = (counters, call.on_origin, place);
        let Self { engine, adapter, .. } = self;
        let message = Outgoing::Message(engine.outbox.messages.insert(message));
        let number = engine.outbox.push(call.target, message);
        match engine.outbox.flush_send_queue(adapter, call.target) {
            Ok(0) => {}
            Ok(_) => self.end_call(Next::Nothing),
            Err(error) if engine.outbox.take_back(call.target, number) => {
                // Messages queued before it may have been sent.
                self.end_call(Next::Nothing);
                return Err(error);
            }
            // A part of the message was sent, so the buffer does not belong to the caller yet.
            Err(error) => {
                self.keep_first(error);
                self.end_call(Next::Nothing);
            }
        }
        Ok(Sent::Later)
    }

    /// Ends a call in which operations may have ended: performs `next`, then what follows the ended operations, and
    /// sends the frames that they queue.
    pub(crate) fn end_call(&mut self, next: Next<S>) {
        let Self { state, engine, adapter, first_error, .. } = self;
        let due = Due { origin: engine.task, counters: RemoteCounters::default() };
        let mut note = |step: Result<(), LapiError>| {
            step.unwrap_or_else(|error| keep_first(first_error, error));
        };
        note(engine.complete(state, next, due));
        note(engine.run_ready(state).map(drop));
        note(engine.outbox.flush(adapter).map(drop));
        self.end_round();
    }

    /// Starts a one-sided read (LAPI_Get); see [`Outbox::get`] for parameters and errors. `next` is performed when the
    /// bytes have arrived. If the memory is in a shared area, the bytes are there when the call returns.
    ///
    /// # Errors
    /// As [`Outbox::get`].
    #[inline]
    pub fn get(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: impl Into<Sink>,
        next: Next<S>,
    ) -> Result<(), LapiError> {
        let mut into = into.into();
        if let (Sink::Span(into), Next::Nothing) = (&mut into, &next) {
            let direct = self.direct(target);
            if direct.is_some_and(|direct| direct.load(target, remote, offset, into)) {
                return Ok(());
            }
        }
        self.get_any(target, remote, offset, into, next)
    }

    /// [`Session::get`] of whatever the short path does not do.
    #[inline(never)]
    fn get_any(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: Sink,
        next: Next<S>,
    ) -> Result<(), LapiError> {
        self.engine.outbox.get(target, remote, offset, into, next)?;
        self.wake();
        Ok(())
    }

    /// Makes memory of this task readable by the other tasks' gets, until [`Session::deregister`]. Send the result to
    /// the tasks that need to read it.
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

    /// Makes memory of this task readable and writable by the other tasks' puts, gets and read-modify-writes, until
    /// [`Session::deregister`]. The task may read the memory, in other threads too, only while it knows that no such
    /// operation is under way. Unless the adapter carries them out ([`crate::adapter::OneSided`]), they need this
    /// task's progress, and a task that computes instead delays them.
    ///
    /// # Errors
    /// [`LapiError::OrgAddrNull`] for a null address with a length.
    pub fn register_writable(&mut self, memory: RecvRegion) -> Result<RemoteRegion, LapiError> {
        if memory.is_null() {
            return Err(LapiError::OrgAddrNull { len: memory.len() });
        }
        Ok(self.engine.outbox.register_writable(&mut self.adapter, memory))
    }

    /// Ends a registration made by [`Session::register`] or [`Session::register_writable`]. When `next` is performed,
    /// no operation of this job's protocols uses the region any more. A task that ignores the protocols could still
    /// read memory of a task on the same host. For a region that is not registered `next` is never performed.
    pub fn deregister(&mut self, region: RemoteRegion, next: Next<S>) {
        let due = self.engine.outbox.deregister(region, next);
        self.engine.outbox.deregister_directly(&mut self.adapter);
        self.end_call(due.unwrap_or(Next::Nothing));
    }

    /// Makes one round of progress (LAPI_Probe): dispatches arrived frames, sends queued ones, and advances gets. Never
    /// blocks. Returns the number of things done.
    ///
    /// # Errors
    /// The first asynchronous error since the last call: [`LapiError::Peer`], [`LapiError::HdrHndlrNull`],
    /// [`LapiError::CompletionPanicked`], [`LapiError::Timeout`], or an error of the adapter. The packet concerned is
    /// dropped; later calls continue with the packets behind it. With an error handler there is no error: the handler
    /// gets it ([`ErrorHandler`]).
    #[inline(always)]
    pub fn progress(&mut self) -> Result<usize, LapiError> {
        self.progress_within(BUDGET, None)
    }

    /// [`Session::progress`] with at most `frames` frames. If `origin` is given, only its frames are taken, but after
    /// [`ALONE`] such turns one turn takes all.
    #[inline]
    pub(crate) fn progress_within(
        &mut self,
        frames: usize,
        origin: Option<TaskId>,
    ) -> Result<usize, LapiError> {
        let done = self.turn(frames, origin);
        self.report_first_error().map(|()| done)
    }

    /// Makes one round of progress for a caller that is not waiting. An error does not cut the round short: the first
    /// one is kept for the next call of [`Session::progress`]. Returns how many things were done.
    #[inline(never)]
    pub fn round(&mut self) -> usize {
        self.turn(BUDGET, None)
    }

    /// The inlined body of [`Session::round`]. Each turn of a spin is one such round, so this is on the path of every
    /// message; mostly there is nothing to do except for arrivals.
    #[inline(always)]
    pub(crate) fn turn(&mut self, frames: usize, origin: Option<TaskId>) -> usize {
        let budget = frames.clamp(1, BUDGET);
        let Self { state, adapter, engine, first_error, alone, .. } = self;
        // Nothing is stored if no origin is given: a store in every turn of a spin makes short messages slower.
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
            match adapter.poll_into(origin, budget, &mut Dispatcher { state, engine, first_error })
            {
                Ok(arrived) => arrived,
                Err(error) => self.keep_first((*error).into()),
            };
        if !self.engine.is_idle() {
            done += self.rest_of_round();
        }
        if done > 0 || self.first_error.is_some() {
            self.end_round();
        }
        done
    }

    /// Sets a hook that runs in the dispatcher at the end of each round that did something. A client uses it for work
    /// that its handlers have left. There is one hook at a time.
    pub fn after_rounds(&mut self, hook: fn(&mut S, &mut Outbox<S>)) {
        self.after_rounds = Some(hook);
    }

    /// Ends a round, whether or not it failed: ends the registrations of regions whose registration ended before their
    /// memory can be freed, and wakes sleeping threads, whose events may have happened.
    #[inline(always)]
    fn end_round(&mut self) {
        if let Some(hook) = self.after_rounds {
            hook(&mut self.state, &mut self.engine.outbox);
        }
        if !self.engine.outbox.deregistered.is_empty() {
            self.engine.outbox.deregister_directly(&mut self.adapter);
        }
        self.wake();
    }

    /// The parts of a round other than arrivals.
    #[inline(never)]
    fn rest_of_round(&mut self) -> usize {
        let Self { state, adapter, engine, first_error, .. } = self;
        let mut done = engine.outbox.advance_gets(adapter);
        let mut count = |step: Result<usize, LapiError>| match step {
            Ok(more) => done += more,
            Err(error) => keep_first(first_error, error),
        };
        count(engine.collect());
        // What follows the end of a registration may release its memory.
        engine.outbox.deregister_directly(adapter);
        // Frames queued here are sent in this round.
        count(engine.run_ready(state));
        count(engine.outbox.flush(adapter));
        engine.outbox.deregister_directly(adapter);
        count(engine.run_ready(state));
        engine.rest += done as u64;
        if self.hooks.is_some() {
            self.round_ended(false);
        }
        done
    }

    /// Keeps an error if it is the first one of its round. Returns 0, the number of things done.
    fn keep_first(&mut self, error: LapiError) -> usize {
        keep_first(&mut self.first_error, error);
        0
    }

    /// See [`crate::SessionGuard::abandon`].
    pub(crate) fn give_up(&mut self) {
        self.engine.abandon(&mut self.adapter);
        self.terminated = true;
        self.wake();
    }

    /// Ends unfinished operations in the adapter, after the context was terminated. Returns whether nobody uses memory
    /// of this task any more.
    pub(crate) fn try_settle(&mut self) -> bool {
        self.adapter.detach()
    }

    /// Acts on the loss of tasks: operations to and from a lost task, and gets of its memory, end with an error that
    /// names it. Later calls that name the task fail. Waits do this themselves. Callers that poll with
    /// [`Session::progress`] do it when no frames arrive, since frames that arrived before the loss still count. If
    /// this returns `true` something was done, and the caller checks its condition again.
    ///
    /// # Errors
    /// [`AdapterError::PeerLost`] when this task itself was declared lost: the others go on without it.
    #[inline]
    pub fn notice_losses(&mut self) -> Result<bool, LapiError> {
        let losses = self.losses.count();
        if self.engine.noticed == Some(losses) { Ok(false) } else { self.lose(losses) }
    }

    #[cold]
    fn lose(&mut self, losses: usize) -> Result<bool, LapiError> {
        self.check_own()?;
        let is_news = |task: &TaskId| {
            self.losses.is_lost(*task) && !self.engine.outbox.send_queues[*task as usize].is_lost
        };
        // Collected before the round: a task that is lost during the round may have sent frames that the round does not
        // reach.
        let lost: Vec<TaskId> =
            (0..self.engine.outbox.send_queues.len() as TaskId).filter(is_news).collect();
        if self.round() > 0 {
            return Ok(true);
        }
        for task in lost {
            let Self { state, engine, .. } = self;
            engine.lose(state, task);
            // Without an error handler, the calls that need the task report its loss.
            let _ = self.report(AdapterError::PeerLost { task }.into());
        }
        // If a hook has panicked, the next look acts on the other losses.
        self.engine.noticed = Some(losses);
        self.end_call(Next::Nothing);
        Ok(true)
    }

    /// Fails if this task itself was declared lost: the others go on without it.
    pub(crate) fn check_own(&self) -> Result<(), LapiError> {
        match self.engine.task {
            task if self.losses.is_lost(task) => Err(AdapterError::PeerLost { task }.into()),
            _ => Ok(()),
        }
    }

    /// Sets a hook that runs in the dispatcher once for each lost task, after the operations to and from that task have
    /// ended. A client uses it to end its own operations that need the task. There is one hook at a time.
    pub fn on_loss(&mut self, hook: fn(&mut S, &mut Outbox<S>, TaskId)) {
        self.engine.on_loss = Some(hook);
    }

    /// Fails if the program has closed a connection.
    pub(crate) fn check_closed(&self) -> Result<(), LapiError> {
        let send_queues = &self.engine.outbox.send_queues;
        match send_queues.iter().position(|send_queue| send_queue.closing.is_closed) {
            Some(task) => Err(LapiError::TgtPurged { target: task as TaskId }),
            None => Ok(()),
        }
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

    /// Wakes the threads of this task that sleep in a wait. Call it after changing state that they wait for.
    pub fn wake(&self) {
        if self.sleeping != 0 {
            self.wake_sleepers();
        }
    }

    #[cold]
    fn wake_sleepers(&self) {
        self.bell.ring();
        let all = self.terminated || self.engine.discards || self.first_error.is_some();
        self.engine.outbox.counters.wake_waiters(all);
    }

    /// How often a process outside the job has asked for this task's queues.
    pub(crate) fn inquiries(&self) -> u32 {
        self.wait_records.as_ref().map_or(0, |records| records.inquiries())
    }

    /// Whether continuations are due, which run when the lock is free.
    #[inline(always)]
    pub(crate) fn has_continuations(&self) -> bool {
        !self.engine.outbox.continuations.is_empty()
    }

    /// Returns how gets read memory of tasks on this host; `None` means over active messages.
    pub fn get_kind(&self) -> Option<GetKind> {
        self.adapter.caps(self.engine.task).gets
    }

    /// Returns whether gets read the memory of `target` without its help.
    pub fn reads(&self, target: TaskId) -> bool {
        self.engine
            .outbox
            .send_queues
            .get(target as usize)
            .is_some_and(|send_queue| send_queue.reads)
    }

    /// Returns what the adapter can do with `target`; `None` if there is no such task.
    pub fn caps(&self, target: TaskId) -> Option<Caps> {
        let exists = (target as usize) < self.engine.outbox.send_queues.len();
        exists.then(|| self.adapter.caps(target))
    }

    /// Returns the adapter, for what it or a layer reports about itself (LAPI_Qenv with QUERY_STATISTICS).
    pub fn adapter(&self) -> &AnyAdapter {
        &self.adapter
    }

    /// Returns state and outbox together, for clients that run handler code outside the dispatcher.
    pub fn parts(&mut self) -> (&mut S, &mut Outbox<S>) {
        (&mut self.state, &mut self.engine.outbox)
    }
}

/// Whether clients may use this index of the handler table.
pub(crate) fn check_index(index: usize) -> Result<(), LapiError> {
    if (1..MAX_HANDLERS).contains(&index) {
        Ok(())
    } else {
        Err(LapiError::AddrHndlRange { index })
    }
}

impl<S> Drop for Session<S> {
    /// Waits for completion handlers and ends all registrations before the client's state is dropped, which may own the
    /// buffers. A fork has neither the threads nor the job's memory.
    fn drop(&mut self) {
        if self.process.is_fork() {
            self.hooks.take().into_iter().for_each(Hooks::forget);
            return self.engine.forget_thread();
        }
        self.engine.join_thread();
        self.engine.abandon(&mut self.adapter);
        while !self.try_settle() {
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }
}
