//! A task's access to the segment of one context: the rings that it fills, the rings that it polls, and the bells.
//!
//! It moves the frames of [`crate::adapters::local`]. The rings from and to tasks of later worlds cost nothing until a
//! frame comes that way: only the ends of rings that were used exist, and a task looks for marks of such frames only
//! when its bell says that there may be some (D6 of [`crate::adapters::local::doorbell`]).
//!
//! - P1: the rings and bells inside a `Port` live as long as its segment, which the port holds. They are declared
//!   `'static`, but none leaves the `Port`. All of them are behind a `Vec` or a `Box`: a reference passed to a
//!   function, even inside a field, must stay valid until that function returns, and a function may drop a port that it
//!   was passed.
//! - P2: a port is made once for each task and context, because each end of a ring has one owner.

#![expect(unsafe_code, reason = "a port holds both the segment and views into it")]

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use crate::adapter::waits::Wait;
use crate::adapter::{
    AdapterError, Doorbell, Endpoint, Events, Losses, Post, Stats, TaskId, ThreadState, WaitRecords,
};
use crate::adapters::local::arrivals::{MOST_POLLED, Visits};
use crate::adapters::local::doorbell::{Bell, Fences, has_woken};
use crate::adapters::local::recycled::RecycledBuffers;
use crate::adapters::local::ring::{CachePolicy, Consumer, Producer, RingDamage};
use crate::adapters::local::segment::Segment;
use crate::adapters::local::wait_table::{Entry, WaitTable};
use crate::memory::body::Piece;

/// What connects this task with another one, or with itself.
struct Peer {
    to: Producer<'static>,
    from: Consumer<'static>,
    /// The peer's bell.
    bell: &'static Bell,
    /// The task's own wait table, stored beside each ring because every delivery is counted there.
    wait_table: &'static WaitTable,
}

/// One context's ends of all its rings.
pub(crate) struct Port {
    task: TaskId,
    fences: Fences,
    /// How many tasks there are, with those that may be started later.
    tasks: usize,
    /// By task, up to the last one that this task has had to do with.
    peers: Vec<Peer>,
    policy: CachePolicy,
    /// The tasks whose rings are polled in turn: those of this task's world, or none if it is large. Marks tell which of
    /// the other rings to poll.
    in_turn: Range<usize>,
    /// Whether the marks were first in the last turn that this task's own ring shared with them.
    marks_are_first: bool,
    /// The target of the last frame that was sent.
    latest: usize,
    /// The origin that the next poll begins with, so that none starves.
    first: usize,
    visits: Box<Visits<'static>>,
    segment: Arc<Segment>,
}

impl Port {
    /// Makes the port of `task` in `segment`. Called once for each task and context (P2).
    pub(crate) fn new(segment: Arc<Segment>, task: TaskId, fences: Fences) -> Self {
        let tasks = segment.layout().tasks();
        Self::among(segment, task, fences, tasks, 0..tasks)
    }

    /// [`Port::new`] with rings to and from the first `tasks` tasks only, of which those of `world` were started together
    /// with this one.
    pub(crate) fn among(
        segment: Arc<Segment>,
        task: TaskId,
        fences: Fences,
        tasks: usize,
        world: Range<usize>,
    ) -> Self {
        Self::with_policy(segment, task, fences, (tasks, world), CachePolicy::here())
    }

    /// [`Port::among`] with a policy, which must be that of the port of each task.
    fn with_policy(
        segment: Arc<Segment>,
        task: TaskId,
        fences: Fences,
        (tasks, world): (usize, Range<usize>),
        policy: CachePolicy,
    ) -> Self {
        let me = task as usize;
        let in_turn = if world.len() <= MOST_POLLED { world.clone() } else { 0..0 };
        // SAFETY: P1.
        let bell: &'static Bell = unsafe { &(*Arc::as_ptr(&segment)).task(me).bell.0 };
        let mut port = Self {
            task,
            fences,
            tasks,
            peers: Vec::with_capacity(world.end),
            policy,
            first: in_turn.start,
            in_turn,
            marks_are_first: false,
            latest: me,
            visits: Box::new(Visits::new(&bell.arrivals, tasks)),
            segment,
        };
        port.meet(world.end);
        port
    }

    /// Makes the ends of the rings to and from all tasks below `end` that there are none for.
    #[cold]
    #[inline(never)]
    fn meet(&mut self, end: usize) {
        assert!(end <= self.tasks, "tasks of a job are numbered below its size");
        // SAFETY: P1: the views are stored beside the `Arc` that keeps the segment, and dropping
        // them touches no segment memory, so the order of the fields does not matter.
        let lasting: &'static Segment = unsafe { &*Arc::as_ptr(&self.segment) };
        let (me, policy) = (self.task as usize, self.policy);
        for peer in self.peers.len()..end {
            // The task with the lower number has all recycled buffers of a pair at first.
            let recycled = RecycledBuffers::new(lasting.recycled(me, peer), me < peer);
            self.peers.push(Peer {
                to: Producer::new(lasting.ring(me, peer), recycled, policy),
                from: Consumer::new(lasting.ring(peer, me)),
                bell: &lasting.task(peer).bell.0,
                wait_table: lasting.wait_table(me),
            });
        }
    }

    /// Makes this task look once for frames of `origin`, which may have sent some before this task's bell asked for marks
    /// (D6).
    pub(crate) fn expect(&mut self, origin: TaskId) {
        if self.fences.heavy().is_err() {
            fence(Ordering::SeqCst);
        }
        self.visits.expect(origin as usize);
    }

    /// The segment of this context.
    pub(crate) fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// See [`crate::adapter::Adapter::endpoint`].
    pub(crate) fn endpoint(&self) -> Endpoint {
        let (num_tasks, context) = (self.tasks, self.segment.context());
        Endpoint { task: self.task, num_tasks, context }
    }

    /// See [`crate::adapter::Adapter::try_send`].
    #[inline(always)]
    pub(crate) fn try_send(
        &mut self,
        target: TaskId,
        head: &[u8],
        body: Piece<'_>,
    ) -> Result<Post, AdapterError> {
        if target as usize >= self.peers.len() {
            self.meet(target as usize + 1);
        }
        let peer = &mut self.peers[target as usize];
        let post = peer.to.offer(head, body).map_err(|damage| corrupt(target, damage))?;
        if post == Post::Taken {
            self.latest = target as usize;
            // The target polls in turn what this task does.
            let needs_mark = || !self.in_turn.contains(&(target as usize));
            peer.bell.ring_for(self.task, needs_mark, self.fences);
        }
        Ok(post)
    }

    /// See [`crate::adapter::Adapter::poll`].
    #[inline(always)]
    pub(crate) fn poll<E: Events + ?Sized>(
        &mut self,
        origin: Option<TaskId>,
        budget: usize,
        events: &mut E,
    ) -> Result<usize, AdapterError> {
        if let Some(origin) = origin {
            if origin as usize >= self.peers.len() {
                self.meet(origin as usize + 1);
            }
            return self.poll_origin(origin as usize, budget, events);
        }
        let me = self.task as usize;
        let Range { start, end } = self.in_turn;
        let mut next = self.first;
        for _ in start..end {
            let from = next;
            next = if from + 1 == end { start } else { from + 1 };
            if from == me {
                let own = &self.peers[me];
                if own.bell.wants_marks() {
                    return self.poll_among_worlds(budget, events);
                }
                // Equal positions show that this task has received all it sent to itself, without a load from that ring.
                if own.to.position() == own.from.position() {
                    continue;
                }
            }
            let polled = self.poll_origin(from, budget, events);
            if !matches!(polled, Ok(0)) {
                // The frames are handled at once; the next poll begins with the other origins.
                self.first = next;
                return polled;
            }
        }
        if start == end { self.poll_marked(budget, events) } else { Ok(0) }
    }

    /// [`Port::poll`] from the turn of this task on, where other worlds leave marks. Their rings and this task's own one share
    /// a turn, in which each of both is first every other time, so that none starves.
    #[cold]
    #[inline(never)]
    fn poll_among_worlds<E: Events + ?Sized>(
        &mut self,
        budget: usize,
        events: &mut E,
    ) -> Result<usize, AdapterError> {
        let (me, in_turn) = (self.task as usize, self.in_turn.clone());
        self.marks_are_first = !self.marks_are_first;
        let mut polled = match self.marks_are_first {
            true => self.poll_marked(budget, events),
            false => self.poll_origin(me, budget, events),
        };
        if matches!(polled, Ok(0)) {
            polled = match self.marks_are_first {
                true => self.poll_origin(me, budget, events),
                false => self.poll_marked(budget, events),
            };
        }
        let mut next = me + 1;
        for from in (next..in_turn.end).chain(in_turn.start..me) {
            if !matches!(polled, Ok(0)) {
                break;
            }
            polled = self.poll_origin(from, budget, events);
            next = from + 1;
        }
        self.first = if next == in_turn.end { in_turn.start } else { next };
        polled
    }

    /// [`Port::poll`] where marks tell which rings to poll.
    #[cold]
    #[inline(never)]
    fn poll_marked<E: Events + ?Sized>(
        &mut self,
        budget: usize,
        events: &mut E,
    ) -> Result<usize, AdapterError> {
        let mut collected = false;
        loop {
            let Some(from) = self.visits.next() else {
                if collected {
                    return Ok(0);
                }
                self.visits.collect();
                collected = true;
                continue;
            };
            if from >= self.peers.len() {
                // It shares its mark with another task, if it has not been set up: its ring takes no memory then.
                if !self.segment.task(from).bell.0.wants_marks() {
                    self.visits.done(from);
                    continue;
                }
                self.meet(from + 1);
            }
            let delivered = self.poll_origin(from, budget, events)?;
            if delivered < budget {
                self.visits.done(from);
            }
            if delivered > 0 {
                return Ok(delivered);
            }
        }
    }

    /// Delivers at most `budget` frames of one origin, whose ring this task has an end of.
    #[inline(always)]
    fn poll_origin<E: Events + ?Sized>(
        &mut self,
        from: usize,
        budget: usize,
        events: &mut E,
    ) -> Result<usize, AdapterError> {
        let origin = from as TaskId;
        let Peer { to, from, bell, wait_table } = &mut self.peers[from];
        let mut delivered = 0;
        let polled = loop {
            if delivered == budget {
                break Ok(());
            }
            match from.take(origin, &mut to.recycled, events) {
                Ok(true) => {
                    delivered += 1;
                    if to.next_is_lone() {
                        from.fetch_ahead();
                    }
                    to.on_receive();
                }
                Ok(false) if delivered == 0 => return Ok(0),
                Ok(false) => break Ok(()),
                Err(damage) => break Err(corrupt(origin, damage)),
            }
        };
        wait_table.moved();
        if from.gave_back() {
            // The origin may be asleep until there is room (A6).
            bell.ring(self.fences);
        }
        polled.map(|()| delivered)
    }

    /// See [`crate::adapter::Adapter::while_waiting`].
    #[inline]
    pub(crate) fn prefetch_expected(&mut self) {
        let Self { peers, in_turn, latest, .. } = self;
        match self.policy {
            CachePolicy::Pull => {
                peers[in_turn.clone()].iter().for_each(|peer| peer.from.fetch_awaited());
            }
            CachePolicy::Demote => peers[*latest].to.prefetch_more(),
        }
    }

    /// See [`crate::adapter::Adapter::stats`]. The positions of the rings are these counts.
    pub(crate) fn stats(&self) -> Stats {
        let sent = self.peers.iter().map(|peer| u64::from(peer.to.position()));
        let received = self.peers.iter().map(|peer| u64::from(peer.from.position()));
        Stats { frames_sent: sent.sum(), frames_received: received.sum(), dropped: 0 }
    }

    /// Counts a piece of a long message that this task has copied itself: that is progress, too.
    pub(crate) fn moved(&self) {
        // Every task has a ring from itself at least.
        self.peers[0].wait_table.moved();
    }

    /// See [`crate::adapter::Adapter::detach`].
    pub(crate) fn detach(&self) {
        self.segment.task(self.task as usize).wireup.detachment.set();
    }

    /// The outcome of a completed read from `target`. The read is void if the target has detached (A8), or if this
    /// task is lost itself, since the target may then have reused its memory.
    pub(crate) fn unless_detached(
        &self,
        target: TaskId,
        read: Result<(), AdapterError>,
    ) -> Result<(), AdapterError> {
        let has_detached = self.segment.task(target as usize).wireup.detachment.is_set();
        let gone = if has_detached { target } else { self.task };
        match has_detached || is_lost(&self.segment, self.task) {
            true => Err(AdapterError::PeerLost { task: gone }),
            false => read,
        }
    }

    /// Returns a handle on this task's bell and wait table.
    pub(crate) fn handle(&self) -> Arc<BellAndTable> {
        let segment = Arc::clone(&self.segment);
        Arc::new(BellAndTable { segment, task: self.task, fences: self.fences })
    }
}

#[cold]
fn corrupt(origin: TaskId, damage: RingDamage) -> AdapterError {
    AdapterError::Corrupt { origin, what: damage.what() }
}

/// How many times tasks of the segment's job were declared lost.
pub(crate) fn losses(segment: &Segment) -> usize {
    segment.job().losses.load(Ordering::Acquire) as usize // SYNC: losses
}

/// Whether `task` was declared lost.
pub(crate) fn is_lost(segment: &Segment, task: TaskId) -> bool {
    segment.wireup(task as usize).is_lost.load(Ordering::Acquire) != 0 // SYNC: loss of a task
}

/// Declares `task` lost and wakes every task, in all contexts. A task that sees the mark sees all frames sent before.
pub(crate) fn declare_lost(segment: &Segment, task: TaskId) {
    segment.wireup(task as usize).is_lost.store(1, Ordering::Release); // SYNC: loss of a task
    // Counted even if the task was declared lost before: that caller may have ended before it counted.
    segment.job().losses.fetch_add(1, Ordering::Release); // SYNC: losses
    for context in segment.contexts() {
        context.tasks().for_each(|block| block.bell.0.ring(Fences::Symmetric));
    }
}

/// A context's bell and wait table, for threads that do not hold its port: they sleep, ring and publish here.
pub(crate) struct BellAndTable {
    segment: Arc<Segment>,
    task: TaskId,
    fences: Fences,
}

impl BellAndTable {
    fn bell(&self) -> &Bell {
        &self.segment.task(self.task as usize).bell.0
    }

    fn wait_table(&self) -> &WaitTable {
        self.segment.wait_table(self.task as usize)
    }
}

impl Doorbell for BellAndTable {
    fn announce(&self) -> u32 {
        self.bell().announce(self.fences)
    }

    fn sleep(&self, ticket: u32, timeout: Option<Duration>) -> bool {
        self.bell().sleep(ticket, timeout)
    }

    fn retract(&self) {
        self.bell().retract();
    }

    fn ring(&self) {
        // Rare; and a compiler fence may not order what the caller has published.
        self.bell().ring(Fences::Symmetric);
    }

    fn has_woken(&self) -> bool {
        has_woken()
    }
}

impl Losses for BellAndTable {
    fn count(&self) -> usize {
        losses(&self.segment)
    }

    fn is_lost(&self, task: TaskId) -> bool {
        is_lost(&self.segment, task)
    }

    fn declare(&self) {
        declare_lost(&self.segment, self.task);
    }

    fn declare_end(&self) {
        let word = &self.segment.task(self.task as usize).wireup.is_at_end;
        word.store(1, Ordering::Release); // SYNC: end of a task
        // Only tasks of other worlds wait for it. Where there are some, marks are wanted here (D6), and by the first of them.
        let (tasks, first) = (self.segment.layout().tasks(), self.segment.layout().first_tasks());
        let has_others = first < tasks && self.segment.task(first).bell.0.wants_marks();
        if has_others {
            self.segment.tasks().for_each(|block| block.bell.0.ring(Fences::Symmetric));
        }
    }

    fn is_at_end(&self, task: TaskId) -> bool {
        let word = &self.segment.task(task as usize).wireup.is_at_end;
        word.load(Ordering::Acquire) != 0 // SYNC: end of a task
    }
}

impl WaitRecords for BellAndTable {
    fn publish(&self, place: usize, wait: &Wait, state: ThreadState) {
        self.wait_table().put(place, &Entry { wait: *wait, state, looks: 0 });
    }

    fn looked_again(&self, place: usize) {
        self.wait_table().looked_again(place);
    }

    fn unpublish(&self, place: usize) {
        self.wait_table().clear(place);
    }

    fn count_at(&self, address: u64) {
        self.wait_table().count_at(address);
    }

    fn inquiries(&self) -> u32 {
        self.wait_table().asked()
    }

    fn is_dismissed(&self) -> bool {
        self.wait_table().is_dismissed()
    }
}

#[cfg(test)]
mod tests;
