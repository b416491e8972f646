//! The locked view of a context: every call that communicates is made on it.

use std::sync::Arc;
use std::time::Duration;

use crate::adapter::{Adapter, AdapterError, Doorbell, Post, TaskId};
use crate::amsend::{Amsend, Message, OnOrigin, Outgoing, Payload, Sent};
use crate::counter::CounterId;
use crate::engine::{Dispatcher, Engine};
use crate::error::LapiError;
use crate::fork::ProcessMark;
use crate::handler::{HeaderHandler, MAX_HANDLERS, ShortHandler};
use crate::outbox::Outbox;
use crate::region::{RecvRegion, RemoteRegion, SendRegion};
use crate::wire::{self, Packet};

/// Frames that one call of progress dispatches at most, so that a flood does not keep a caller.
const BUDGET: usize = 64;

/// How long whoever waits for a peer's last write sleeps between two looks.
pub(crate) const BETWEEN_LOOKS: Duration = Duration::from_micros(50);

/// A context whose lock is held: adapter, dispatcher and the client's state together.
pub struct Session<A: Adapter, S> {
    /// The client's state: what handlers get.
    pub state: S,
    pub(crate) adapter: A,
    pub(crate) engine: Engine<S>,
    pub(crate) bell: Arc<dyn Doorbell>,
    /// Threads of this task that sleep in a wait.
    pub(crate) sleeping: usize,
    /// Places of published waits that are taken, a bit for each.
    pub(crate) places: u64,
    /// Inquiries that have been answered.
    pub(crate) answered: u32,
    /// The first error of the rounds since [`Session::progress`] last answered.
    pub(crate) trouble: Option<Box<LapiError>>,
    pub(crate) terminated: bool,
    pub(crate) process: ProcessMark,
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
    /// in place of its header handler.
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

    /// Sends an active message (LAPI_Amsend). Never blocks: what the adapter has no room for waits
    /// in a queue that progress empties. `udata` is not copied; it must stay as it is until the
    /// call answered [`Sent::Now`], or the counter or handler told.
    ///
    /// # Errors
    /// [`LapiError::DataLen`], [`LapiError::AddrHndlRange`] for handler 0,
    /// [`LapiError::OrgAddrNull`], [`LapiError::Tgt`], [`LapiError::UhdrLen`],
    /// [`LapiError::CntrNull`] for an origin counter that does not exist; what the adapter
    /// says of a lost target. After an error the buffer is the caller's again; unless the adapter
    /// failed in the middle of a long message, nothing was sent.
    pub fn amsend(&mut self, call: Amsend<'_, S>) -> Result<Sent, LapiError> {
        call.on_origin.check(&mut self.engine.outbox.counters)?;
        if self.offer(&call)? {
            if let OnOrigin::Counter(_) = call.on_origin {
                call.on_origin.fire(&mut self.state, &mut self.engine.outbox);
                self.wake();
            }
            return Ok(Sent::Now);
        }
        self.enqueue(call)
    }

    /// Sends an active message with one word of user header and no counters, if that is possible at
    /// once and in one packet: nothing waits before it, it is short, and the adapter has room. Returns
    /// whether it was sent; then the buffer is reusable. `false` says nothing about the reason, which
    /// [`Session::amsend`] then finds, or has a way around.
    #[inline(always)]
    pub fn try_amsend(
        &mut self,
        target: TaskId,
        handler: u8,
        uhdr: [u8; 8],
        udata: SendRegion,
    ) -> bool {
        let Outbox { lanes, pieces, .. } = &mut self.engine.outbox;
        let Some(lane) = lanes.get_mut(target as usize) else { return false };
        let wellformed = handler != 0 && udata.len() <= pieces.whole() && !udata.is_null();
        if !wellformed || !lane.queue.is_empty() {
            return false;
        }
        let sent =
            self.adapter.try_send_short(target, wire::short_head(handler, uhdr), udata.bytes());
        lane.dirty |= sent;
        sent
    }

    /// [`Session::amsend`] without the origin's counter: whether the message went at once.
    fn offer(&mut self, call: &Amsend<'_, S>) -> Result<bool, LapiError> {
        let outbox = &mut self.engine.outbox;
        call.check(outbox.lanes.len())?;
        let lane = &mut outbox.lanes[call.target as usize];
        if !lane.queue.is_empty() || call.udata.len() > outbox.pieces.whole() {
            return Ok(false);
        }
        let (handler, counters, uhdr) = (call.handler, call.counters(), call.uhdr);
        let head = Packet::Single { handler, counters, uhdr }.encode();
        let post = self.adapter.try_send(call.target, head.bytes(), call.udata.bytes())?;
        lane.dirty |= post == Post::Taken;
        Ok(post == Post::Taken)
    }

    #[cold]
    fn enqueue(&mut self, call: Amsend<'_, S>) -> Result<Sent, LapiError> {
        let mut message = Message::new(call.handler, call.uhdr, Payload::Region(call.udata));
        message.counters = call.counters();
        message.on_origin = call.on_origin;
        let Self { engine, adapter, state, .. } = self;
        let number = engine.outbox.push(call.target, Outgoing::Message(message));
        match engine.outbox.flush_lane(adapter, state, call.target) {
            Ok(0) => {}
            // What was sent may be what a sleeping thread of this task waits for.
            Ok(_) => self.wake(),
            Err(error) if engine.outbox.take_back(call.target, number) => return Err(error),
            // It has gone. What failed is what a handler has queued behind it.
            Err(error) => {
                self.keep_first(error);
                self.wake();
            }
        }
        Ok(Sent::Later)
    }

    /// Starts a one-sided read (LAPI_Get); see [`Outbox::get`] for parameters and errors. The bytes
    /// are there when `on_origin` tells.
    ///
    /// # Errors
    /// As [`Outbox::get`].
    pub fn get(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: RecvRegion,
        on_origin: OnOrigin<S>,
    ) -> Result<(), LapiError> {
        self.engine.outbox.get(target, remote, offset, into, on_origin)?;
        self.wake();
        Ok(())
    }

    /// Makes memory of this task readable for the others' gets, until [`Session::deregister`]. The
    /// result describes it and may be sent to them.
    ///
    /// # Errors
    /// [`LapiError::OrgAddrNull`] for a null address with a length.
    pub fn register(&mut self, region: SendRegion) -> Result<RemoteRegion, LapiError> {
        if region.is_null() {
            return Err(LapiError::OrgAddrNull { len: region.len() });
        }
        Ok(self.engine.outbox.register(&mut self.adapter, region))
    }

    /// Ends what [`Session::register`] began. No get of this job's protocols reads it afterwards.
    pub fn deregister(&mut self, region: RemoteRegion) {
        self.engine.outbox.deregister(region);
        self.engine.outbox.conceal(&mut self.adapter);
    }

    /// One round of the dispatcher (LAPI_Probe): takes in what has arrived, sends what waits,
    /// carries out gets. Never blocks. Returns how many things were done.
    ///
    /// # Errors
    /// Asynchronous conditions, the first that was met since the last call: [`LapiError::Peer`],
    /// [`LapiError::HdrHndlrNull`], [`LapiError::CompletionPanicked`], and what the adapter says.
    /// The packet concerned is dropped; later calls go on behind it.
    #[inline(always)]
    pub fn progress(&mut self) -> Result<usize, LapiError> {
        let done = self.round();
        match self.trouble.take() {
            None => Ok(done),
            Some(trouble) => Err(*trouble),
        }
    }

    /// One round of the dispatcher for a caller that does something else with it than to wait: all that a
    /// round does, whatever goes wrong in between. The first error is kept for the next call of
    /// [`Session::progress`]. Returns how many things were done.
    // Mostly there is nothing but arrivals, and this is on the path of every message.
    #[inline(never)]
    pub fn round(&mut self) -> usize {
        let Self { state, adapter, engine, trouble, .. } = self;
        let mut done = match adapter.poll(BUDGET, &mut Dispatcher { state, engine, trouble }) {
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

    /// Whatever the round met: regions that ended are withdrawn before anybody can free them, and the
    /// threads that sleep may have got what they wait for.
    #[inline(always)]
    fn end_round(&mut self) {
        if !self.engine.outbox.concealed.is_empty() {
            self.engine.outbox.conceal(&mut self.adapter);
        }
        self.wake();
    }

    /// What is under way besides arrivals.
    #[inline(never)]
    fn rest_of_round(&mut self) -> usize {
        let Self { state, adapter, engine, .. } = self;
        let steps = [
            engine.outbox.advance_gets(adapter, state),
            engine.outbox.flush(adapter, state),
            engine.collect(),
        ];
        steps.into_iter().map(|step| step.unwrap_or_else(|error| self.keep_first(error))).sum()
    }

    /// Keeps an error if it is the first one of its round. It counts as nothing done.
    #[cold]
    #[inline(never)]
    fn keep_first(&mut self, error: LapiError) -> usize {
        self.trouble.get_or_insert_with(|| Box::new(error));
        0
    }

    /// See [`crate::SessionGuard::abandon`].
    pub(crate) fn give_up(&mut self) {
        self.engine.abandon(&mut self.adapter);
        self.terminated = true;
        self.wake();
    }

    /// Ends this task's part in shared gets, after the context was terminated. Answers whether no peer writes
    /// into memory of this task any more.
    pub(crate) fn try_settle(&mut self) -> bool {
        self.engine.outbox.end_shared(&mut self.adapter)
    }

    /// Whether every task of the job is still there. Waits look themselves; callers that poll with
    /// [`Session::progress`] ask when nothing comes.
    ///
    /// # Errors
    /// [`AdapterError::PeerLost`] when a task was declared lost.
    pub fn check_lost(&self) -> Result<(), LapiError> {
        match self.adapter.lost() {
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

    /// State and outbox together, for clients that run handler code outside the dispatcher.
    pub fn parts(&mut self) -> (&mut S, &mut Outbox<S>) {
        (&mut self.state, &mut self.engine.outbox)
    }

    /// A new counter, at 0. Tasks that make their counters in the same order know each other's.
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
