//! The session: a context whose lock is held. All calls that communicate are methods of it.

use std::sync::Arc;
use std::time::Duration;

use crate::adapter::{Caps, Doorbell, GetKind, Losses, TaskId, WaitRecords};
use crate::adapters::AnyAdapter;
use crate::error::LapiError;
use crate::memory::body::{Sink, Source};
use crate::memory::region::{RecvRegion, RemoteRegion, SendRegion};
use crate::platform::fork::ProcessMark;
use crate::progress::amsend::{Amsend, Sent, check_handler};
use crate::progress::engine::Engine;
use crate::progress::handler::{HeaderHandler, Next, ShortHandler};
use crate::progress::hooks::Hooks;
use crate::progress::outbox::Outbox;
use crate::progress::report::ErrorHandler;
use crate::progress::spin::{AdaptiveSpin, fetches};
use crate::wire::{self, MAX_HANDLERS};

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
    /// sent, unless the adapter failed in the middle of a long message. Errors of messages that were queued before are
    /// reported by the next call that makes progress.
    pub fn amsend(&mut self, call: Amsend<'_, S>) -> Result<Sent, LapiError> {
        check_handler(call.handler)?;
        self.send(call)
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

    /// Does what helps the frames that are expected next. For callers that poll by [`Session::progress`] and find nothing,
    /// `turn` times in a row; waits do this themselves.
    #[inline(always)]
    pub fn polled_in_vain(&mut self, turn: u32) {
        if fetches(turn) {
            self.adapter.while_waiting();
        }
    }

    /// Makes memory of this task readable by the other tasks' gets, until [`Session::deregister`]. Send the result to
    /// the tasks that need to read it.
    ///
    /// # Errors
    /// [`LapiError::OrgAddrNull`] for a null address with a length.
    pub fn register(&mut self, source: impl Into<Source>) -> Result<RemoteRegion, LapiError> {
        self.register_for(None, source)
    }

    /// [`Session::register`] of memory that only `reader` reads, if one is given. Where tasks are reached in different
    /// ways, the memory is then prepared for one of them.
    ///
    /// # Errors
    /// [`LapiError::OrgAddrNull`] for a null address with a length.
    pub fn register_for(
        &mut self,
        reader: impl Into<Option<TaskId>>,
        source: impl Into<Source>,
    ) -> Result<RemoteRegion, LapiError> {
        let (reader, source) = (reader.into(), source.into());
        if source.is_null() {
            return Err(LapiError::OrgAddrNull { len: source.len() });
        }
        Ok(self.engine.outbox.register(&mut self.adapter, source, reader))
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

    /// Publishes where the client's counters are in this process, for the launcher, which reads them there while the job
    /// runs: they begin with the words of [`MessageTotals`](crate::bootstrap::control::MessageTotals). They stay there as
    /// long as the context.
    pub fn publish_counters(&self, address: usize) {
        self.wait_records.iter().for_each(|records| records.count_at(address as u64));
    }

    /// How often a process outside the job has asked for this task's queues.
    pub(crate) fn inquiries(&self) -> u32 {
        self.wait_records.as_ref().map_or(0, |records| records.inquiries())
    }

    /// Returns whether the watcher of the job has found that this task waits in vain at its end, and has dismissed it
    /// ([`crate::bootstrap::waits::JobView::dismiss`]).
    pub fn is_dismissed(&self) -> bool {
        self.wait_records.as_deref().is_some_and(WaitRecords::is_dismissed)
    }

    /// Whether continuations are due, which run when the lock is free.
    #[inline(always)]
    pub(crate) fn has_continuations(&self) -> bool {
        !self.engine.outbox.continuations.is_empty()
    }

    /// Takes the continuations that are due, for a client that ends its context and does not want them to run. They may own
    /// memory of operations, so the caller keeps them until no operation uses any.
    pub fn take_continuations(&mut self) -> impl Sized + use<S> {
        std::mem::take(&mut self.engine.outbox.continuations)
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
            .is_some_and(|send_queue| send_queue.reads > 0)
    }

    /// Returns whether the adapter reads and writes memory of `target`, as it describes it, without its help.
    pub fn accesses(&self, target: TaskId, remote: &RemoteRegion) -> [bool; 2] {
        let queue = self.engine.outbox.send_queues.get(target as usize);
        let queue = queue.filter(|_| !remote.direct.is_none());
        queue.map_or([false; 2], |queue| [queue.reads > 0, queue.puts])
    }

    /// Returns what the adapter can do with `target`; `None` if there is no such task.
    pub fn caps(&self, target: TaskId) -> Option<Caps> {
        let exists = (target as usize) < self.engine.outbox.send_queues.num_tasks();
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
        self.publish_counters(0);
        self.engine.join_thread();
        self.engine.abandon(&mut self.adapter);
        while !self.try_settle() {
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }
}
