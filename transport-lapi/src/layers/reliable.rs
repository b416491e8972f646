//! An adapter around one that drops, duplicates, delays and reorders frames: it makes that one reliable and ordered.
//!
//! LAPI did this above the switch of its machine, and an adapter for datagrams needs it. Each frame gets a number and
//! is kept until the target has sent a receipt for it (`head.rs` has the format). A frame without a receipt is repeated
//! after some time. The target drops what it has got before, and stores what comes too early (`link.rs` has the rules).
//! A receipt travels with every frame to the same task. One is sent alone after LAPI's ACK_THRESHOLD of frames, when a
//! poll finds nothing, and when one is owed for long.
//!
//! - RL1: a body is copied when its frame is taken, so it is repeated from memory of the layer. The contract would let
//!   the layer borrow it until the receipt, but then no send would end before its target makes a call. With copies, a
//!   send ends as it does over rings. At most 64 frames to each target are kept; then there is no room. A frame for
//!   which the adapter inside has no room is kept, too, and leaves in a later poll of RL2: its sender may make no call
//!   any more in which it could offer the frame again.
//! - RL2: contract A4 of [`crate::adapter`] holds only for senders that poll, since the layer has no thread: a frame
//!   that was dropped is repeated by its sender's polls. A sleep of the sender on its bell ends when that is due. A
//!   poll with a budget of 0 repeats frames, sends receipts, and stores what has arrived, but hands nothing over. A
//!   client whose tasks are outside of all calls for long makes such polls from a timer, as LAPI's retransmission
//!   thread did; then A4 holds as it stands.
//! - RL3: a poll goes on until it has handed over a frame, or the adapter inside has none left. If it stopped at a
//!   receipt and reported nothing, its caller might go to sleep although a frame had arrived behind the receipt, and
//!   no bell would ring for that frame any more (A5).
//! - RL4: a task that withdraws first waits until its frames have receipts, for a limited time, and answers the frames
//!   of the others meanwhile. Then it tells each task several times that it leaves. A task that hears this expects no
//!   more receipts from there. If every copy of the farewell is dropped, the other task repeats its last frames until
//!   its own time at the end is over, or until the one that has left counts as lost.
//! - RL5: a task that is silent for LAPI's TIMEOUT counts as lost, on the task that waits for its receipts. Silence is
//!   judged only by a poll of all origins that has left no frame in the adapter inside, since a receipt may lie among
//!   such frames. If the adapter inside learns of a loss in another way than by frames, the last frames of the lost
//!   task may be lost with it, even if they were taken before (A10).
//!
//! The layer has no capability, whatever the adapter inside has. Gets are built from frames. A shared area would let an
//! origin reach its target's memory past the network for which the layer stands, and overtake the frames that are still
//! to be repeated. A board would show waits to an observer who does not know which frames those are. The frames of the
//! adapter inside are whole: damage is not detected.

#![expect(unsafe_code, reason = "an adapter is made of another one")]

use std::sync::Arc;
use std::time::Instant;

use crate::adapter::{
    Adapter, AdapterError, Caps, Doorbell, Events, Frame, Post, SHORT_HEAD, TaskId, Ticket,
};
use crate::body::{Pack, Piece};
use crate::region::ForeignBytes;

use bell::{Alarm, PunctualBell};
use head::{HEAD, Kind, Receipt};
use link::{Fate, Link};

pub use head::FrameError;
pub(crate) use head::fuzz_frame;
pub use options::{OptionsError, ReliableOptions, Statistics};

mod bell;
mod head;
mod link;
mod options;

/// How often a task says that it leaves (RL4).
const FAREWELLS: u32 = 4;

/// Most polls of the adapter inside in one poll, so that a task that sends nothing but receipts cannot hold up another
/// one (A2). A sleeper looks again after some time.
const MOST_POLLS: usize = 64;

/// Most frames that one call of a task that leaves takes.
const WHILE_LEAVING: usize = 64;

/// A frame of the caller: sent and without a receipt, or arrived and not handed over.
struct Parcel {
    head: Vec<u8>,
    body: Arc<Vec<u8>>,
}

impl Parcel {
    fn bytes(&self) -> u64 {
        (self.head.len() + self.body.len()) as u64
    }
}

/// What one call has taken from the adapter inside.
struct Received {
    /// How many frames were handed over.
    handed_over: usize,
    /// Whether the frames of all origins were read, and none is left.
    is_complete: bool,
    /// The first error.
    trouble: Option<AdapterError>,
}

/// The other end of a link.
struct Peer {
    link: Link<Parcel>,
    presence: Presence,
    /// How often it was told that this task leaves.
    farewells: u32,
}

/// Whether a task takes frames.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Here,
    /// It has left, or this task has told it that it leaves itself.
    Left,
    Lost,
}

/// A reliable adapter made of an unreliable one; see the head of this module.
pub struct ReliableAdapter<A> {
    inner: A,
    options: ReliableOptions,
    alarm: Arc<Alarm>,
    /// By task.
    peers: Vec<Peer>,
    statistics: Statistics,
    /// How many frames are stored, since they came early or a poll's budget was used up.
    stored: usize,
    /// Whether a receipt may be owed.
    owes: bool,
    /// How many tasks were lost by silence (RL5).
    silent: usize,
    /// The losses of the adapter inside that were acted on.
    noticed: usize,
    /// When a task that leaves stops waiting for receipts.
    leaving: Option<Instant>,
    /// Whether the wait for receipts is over.
    has_left: bool,
}

impl<A: Adapter> ReliableAdapter<A> {
    /// Wraps `inner`. All tasks of the job must do so.
    ///
    /// # Errors
    /// [`OptionsError`]: a value is not legal.
    pub fn new(inner: A, options: ReliableOptions) -> Result<Self, OptionsError> {
        Self::with_clock(inner, options, Instant::now)
    }

    /// [`ReliableAdapter::new`] with another clock, for simulations. Its time must not go back, and must pass while
    /// the adapter is used.
    ///
    /// # Errors
    /// As [`ReliableAdapter::new`].
    pub fn with_clock(
        inner: A,
        options: ReliableOptions,
        clock: impl Fn() -> Instant + Send + Sync + 'static,
    ) -> Result<Self, OptionsError> {
        options.check()?;
        let peer = || Peer { link: Link::new(), presence: Presence::Here, farewells: 0 };
        let peers = std::iter::repeat_with(peer).take(inner.num_tasks()).collect();
        Ok(Self {
            inner,
            options,
            alarm: Arc::new(Alarm::new(Box::new(clock))),
            peers,
            statistics: Statistics::default(),
            stored: 0,
            owes: false,
            silent: 0,
            noticed: 0,
            leaving: None,
            has_left: false,
        })
    }

    /// Returns what was sent and received so far (LAPI_Qenv with QUERY_STATISTICS).
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Takes frames from the adapter inside and hands over at most `budget` (RL3).
    fn receive(
        &mut self,
        origin: Option<TaskId>,
        budget: usize,
        events: &mut impl Events,
    ) -> Received {
        let Self { inner, options, alarm, peers, statistics, stored, owes, .. } = self;
        let (left, trouble) = (budget, None);
        let mut intake =
            Intake { options, alarm, peers, statistics, stored, owes, left, events, trouble };
        intake.hand_over_stored();
        let mut is_empty = false;
        for _ in 0..MOST_POLLS {
            let polled = inner.poll(origin, intake.left.max(1), &mut intake);
            is_empty = matches!(polled, Ok(0));
            if let Err(error) = polled {
                intake.trouble.get_or_insert(error);
            }
            if is_empty || intake.left < budget || intake.trouble.is_some() {
                break;
            }
        }
        let is_complete = is_empty && origin.is_none();
        Received { handed_over: budget - intake.left, is_complete, trouble: intake.trouble }
    }

    /// Sends the receipts that are owed, repeats frames and notices losses, as far as it is time for that. `is_complete`
    /// as in [`Received`].
    ///
    /// # Errors
    /// The first one of the adapter inside.
    fn attend(&mut self, is_idle: bool, is_complete: bool) -> Result<(), AdapterError> {
        let Some(due) = self.alarm.due() else { return Ok(()) };
        let now = self.alarm.now();
        if now < due && !(is_idle && self.owes) {
            return Ok(());
        }
        self.notice_losses();
        if is_complete {
            self.notice_silence(now);
        }
        let (mut next, mut outcome) = (None, Ok(()));
        self.owes = false;
        for target in 0..self.peers.len() {
            outcome = outcome.and(self.attend_to(target as TaskId, is_idle, now));
            let link = &self.peers[target].link;
            self.owes |= link.receipt_due().is_some();
            next = next.into_iter().chain(link.due()).min();
        }
        self.alarm.set(next);
        outcome
    }

    /// [`Self::attend`] for one task.
    fn attend_to(
        &mut self,
        target: TaskId,
        is_idle: bool,
        now: Instant,
    ) -> Result<(), AdapterError> {
        let Self { inner, options, peers, statistics, .. } = self;
        let Peer { link, presence, .. } = &mut peers[target as usize];
        if *presence != Presence::Here {
            // Nobody waits for receipts there.
            link.receipt_sent();
            return Ok(());
        }
        while let Some((number, parcel)) = link.overdue(now) {
            if offer(inner, target, Kind::Data(number), link.receipt(), parcel)? {
                link.repeated(number, now, options);
                link.receipt_sent();
                statistics.retransmitted += 1;
            } else {
                link.postpone(number, now, options);
            }
        }
        if link.receipt_due().is_some_and(|due| is_idle || due <= now) {
            if announce(inner, target, Kind::Receipt, link.receipt())? {
                link.receipt_sent();
                statistics.acks_sent += 1;
            } else {
                link.postpone_receipt(now, options);
            }
        }
        Ok(())
    }

    /// Gives up the links to tasks that the adapter inside has lost.
    fn notice_losses(&mut self) {
        let losses = self.inner.losses();
        if losses == self.noticed {
            return;
        }
        self.noticed = losses;
        for (task, peer) in (0..).zip(&mut self.peers) {
            if peer.presence == Presence::Here && self.inner.is_lost(task) {
                peer.presence = Presence::Lost;
                peer.link.give_up();
            }
        }
    }

    /// Gives up the links to tasks that were silent for too long (RL5).
    fn notice_silence(&mut self, now: Instant) {
        for peer in &mut self.peers {
            if peer.presence == Presence::Here && peer.link.has_timed_out(now, &self.options) {
                peer.presence = Presence::Lost;
                peer.link.give_up();
                self.silent += 1;
                self.inner.doorbell().ring();
            }
        }
    }

    /// Tells `target` that this task leaves, if its frames have receipts there or the time is over (RL4).
    fn bid_farewell(&mut self, target: TaskId, is_over: bool) {
        let own = self.inner.task();
        let Peer { link, presence, farewells } = &mut self.peers[target as usize];
        let nobody_waits = target == own || !link.was_used();
        if *presence != Presence::Here || !(nobody_waits || link.is_settled() || is_over) {
            return;
        }
        while !nobody_waits && *farewells < FAREWELLS {
            if !matches!(
                announce(&mut self.inner, target, Kind::Farewell, link.receipt()),
                Ok(true)
            ) {
                return;
            }
            *farewells += 1;
        }
        *presence = Presence::Left;
        link.give_up();
    }
}

/// Offers a frame of the caller to the adapter inside. Returns whether it was taken.
fn offer<A: Adapter>(
    inner: &mut A,
    target: TaskId,
    kind: Kind,
    receipt: Receipt,
    parcel: &Parcel,
) -> Result<bool, AdapterError> {
    let head = [&head::encode(kind, receipt)[..], &parcel.head].concat();
    let layout: Arc<dyn Pack> = parcel.body.clone();
    let body = match parcel.body.len() {
        0 => Piece::EMPTY,
        len => Piece::Layout { layout: &layout, offset: 0, len },
    };
    // An adapter that reads bodies later shares this one, so nobody needs to know when it has left.
    Ok(inner.try_send(target, &head, body, Ticket(0))? != Post::Full)
}

/// Offers a frame of the layer itself.
fn announce<A: Adapter>(
    inner: &mut A,
    target: TaskId,
    kind: Kind,
    receipt: Receipt,
) -> Result<bool, AdapterError> {
    let head = head::encode(kind, receipt);
    Ok(inner.try_send(target, &head, Piece::EMPTY, Ticket(0))? != Post::Full)
}

// SAFETY: A9: bodies are copied inside the call (RL1), and the layer has no other access to memory of users. A7 and A8
// are about capabilities, which the layer does not have.
unsafe impl<A: Adapter> Adapter for ReliableAdapter<A> {
    fn caps(&self) -> Caps {
        let Caps { name, max_head, max_inline, max_body, .. } = self.inner.caps();
        let [max_head, max_inline] = [max_head, max_inline].map(|most| most.saturating_sub(HEAD));
        Caps { name, max_head, max_inline, max_body, copies_bodies: true }
    }

    fn task(&self) -> TaskId {
        self.inner.task()
    }

    fn context(&self) -> usize {
        self.inner.context()
    }

    fn num_tasks(&self) -> usize {
        self.inner.num_tasks()
    }

    fn try_send(
        &mut self,
        target: TaskId,
        head: &[u8],
        body: Piece<'_>,
        _: Ticket,
    ) -> Result<Post, AdapterError> {
        let Peer { link, presence, .. } = &mut self.peers[target as usize];
        match presence {
            Presence::Here if self.leaving.is_none() && link.has_room() => {}
            // The transport ends operations towards a task that is lost (A10).
            Presence::Here | Presence::Lost => return Ok(Post::Full),
            // A task that gives up says farewell too.
            Presence::Left if self.inner.is_lost(target) => return Ok(Post::Full),
            // Nobody will receive there.
            Presence::Left => return Ok(Post::Taken),
        }
        let parcel = Parcel { head: head.to_vec(), body: Arc::new(body.to_vec()) };
        let number = link.next();
        let has_left = offer(&mut self.inner, target, Kind::Data(number), link.receipt(), &parcel)?;
        self.statistics.packets_sent += 1;
        self.statistics.bytes_sent += parcel.bytes();
        let now = self.alarm.now();
        link.sent(parcel, now, &self.options);
        if has_left {
            link.receipt_sent();
            self.alarm.set_at_latest(now + self.options.resend);
        } else {
            link.postpone(number, now, &self.options);
            self.alarm.set_at_latest(now + self.options.short_delay());
        }
        Ok(Post::Taken)
    }

    fn poll<E: Events>(
        &mut self,
        origin: Option<TaskId>,
        budget: usize,
        events: &mut E,
    ) -> Result<usize, AdapterError> {
        let Received { handed_over, is_complete, trouble } = self.receive(origin, budget, events);
        let attended = self.attend(handed_over == 0, is_complete);
        match trouble {
            Some(error) => Err(error),
            None => attended.map(|()| handed_over),
        }
    }

    fn prefetch_expected(&mut self) {
        self.inner.prefetch_expected();
    }

    fn withdraw(&mut self) -> bool {
        let now = self.alarm.now();
        let until = *self.leaving.get_or_insert(now + self.options.linger);
        if !self.has_left {
            // Errors have nobody to go to any more, and the time is limited.
            let received = self.receive(None, WHILE_LEAVING, &mut |_: Frame<'_>| {});
            let _ = self.attend(true, received.is_complete);
            self.notice_losses();
            (0..self.peers.len()).for_each(|task| self.bid_farewell(task as TaskId, now >= until));
            let is_awaited = |peer: &Peer| peer.presence == Presence::Here;
            self.has_left = now >= until || !self.peers.iter().any(is_awaited);
        }
        self.has_left && self.inner.withdraw()
    }

    fn doorbell(&self) -> Arc<dyn Doorbell> {
        let (inner, alarm) = (self.inner.doorbell(), self.alarm.clone());
        Arc::new(PunctualBell { inner, alarm })
    }

    fn losses(&self) -> usize {
        self.inner.losses() + self.silent
    }

    fn is_lost(&self, task: TaskId) -> bool {
        self.peers[task as usize].presence == Presence::Lost || self.inner.is_lost(task)
    }

    fn packets(&self) -> Option<(u64, u64)> {
        let Statistics { packets_sent, packets_received, .. } = self.statistics;
        Some((packets_sent, packets_received))
    }

    fn bytes(&self) -> Option<(u64, u64)> {
        let Statistics { bytes_sent, bytes_received, .. } = self.statistics;
        Some((bytes_sent, bytes_received))
    }
}

/// Takes the frames that the adapter inside delivers.
struct Intake<'a, E> {
    options: &'a ReliableOptions,
    alarm: &'a Alarm,
    peers: &'a mut [Peer],
    statistics: &'a mut Statistics,
    stored: &'a mut usize,
    owes: &'a mut bool,
    /// How many more frames may be handed over.
    left: usize,
    events: &'a mut E,
    trouble: Option<AdapterError>,
}

impl<E: Events> Events for Intake<'_, E> {
    fn frame(&mut self, frame: Frame<'_>) {
        let origin = frame.origin;
        if let Err(violation) = self.take(frame) {
            self.statistics.refused += 1;
            self.trouble.get_or_insert(AdapterError::Refused { origin, violation });
        }
    }
}

impl<E: Events> Intake<'_, E> {
    fn take(&mut self, frame: Frame<'_>) -> Result<(), FrameError> {
        let Frame { origin, head, body } = frame;
        let (kind, receipt, head) = head::decode(head, body.len())?;
        let now = self.alarm.now();
        let Peer { link, presence, .. } = &mut self.peers[origin as usize];
        link.take_receipt(receipt, now)?;
        let number = match kind {
            Kind::Data(number) => number,
            Kind::Receipt => {
                self.statistics.acks_received += 1;
                return Ok(());
            }
            Kind::Farewell => {
                if *presence == Presence::Here {
                    *presence = Presence::Left;
                }
                link.give_up();
                return Ok(());
            }
        };
        match link.arrived(number, now, self.options)? {
            Fate::Duplicate => self.statistics.duplicates += 1,
            Fate::New(place) => {
                self.statistics.packets_received += 1;
                self.statistics.bytes_received += (head.len() + body.len()) as u64;
                if place == 0 && self.left > 0 {
                    link.hand_over();
                    self.hand_over(origin, head, body);
                    self.hand_over_from(origin, now);
                } else {
                    let body = Arc::new(body.to_vec());
                    link.store(place, Parcel { head: head.to_vec(), body });
                    *self.stored += 1;
                }
            }
        }
        self.expect_receipt(origin);
        Ok(())
    }

    /// Hands over what is stored and in order.
    fn hand_over_stored(&mut self) {
        if *self.stored == 0 || self.left == 0 {
            return;
        }
        let now = self.alarm.now();
        for origin in 0..self.peers.len() as TaskId {
            self.hand_over_from(origin, now);
            self.expect_receipt(origin);
        }
    }

    /// [`Self::hand_over_stored`] for one origin.
    fn hand_over_from(&mut self, origin: TaskId, now: Instant) {
        while self.left > 0 {
            let link = &mut self.peers[origin as usize].link;
            let Some(parcel) = link.take_next(now, self.options) else { return };
            *self.stored -= 1;
            self.hand_over(origin, &parcel.head, ForeignBytes::from_slice(&parcel.body));
        }
    }

    fn hand_over(&mut self, origin: TaskId, head: &[u8], body: ForeignBytes<'_>) {
        self.left -= 1;
        match <[u8; SHORT_HEAD]>::try_from(head) {
            Ok(short) => self.events.short(origin, short, body),
            Err(_) => self.events.frame(Frame { origin, head, body }),
        }
    }

    /// Notes when the receipt that is owed to `origin` is due.
    fn expect_receipt(&mut self, origin: TaskId) {
        if let Some(due) = self.peers[origin as usize].link.receipt_due() {
            *self.owes = true;
            self.alarm.set_at_latest(due);
        }
    }
}

#[cfg(test)]
mod tests;
