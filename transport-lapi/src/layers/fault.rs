//! An adapter around an adapter that makes things go wrong, from a seed.
//!
//! Frames can be refused as if there were no room, held back (the order per pair is kept), cut
//! short, or have a bit turned over; a task can be declared lost. The same seed, plan and sequence of
//! calls give the same faults. Held-back frames go on when the sender polls, so contract A4 of
//! [`crate::adapter`] holds only for senders that poll.

#![allow(unsafe_code, reason = "an adapter is made of another one")]

use std::collections::VecDeque;
use std::sync::Arc;

use crate::adapter::{
    Adapter, AdapterError, Advance, Caps, Doorbell, Frame, Post, SHORT_HEAD, Sink, TaskId,
};
use crate::region::{RecvPart, RecvRegion, RemoteRegion, SendRegion};

/// How often each fault happens, in frames of a thousand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// `try_send` says full.
    pub full: u16,
    /// A frame is held back for some polls.
    pub delay: u16,
    /// The head or the body of an arriving frame is cut short.
    pub truncate: u16,
    /// A bit of an arriving frame's head is turned over.
    pub corrupt: u16,
    /// This task is declared lost after so many frames were offered.
    pub lose: Option<(TaskId, u64)>,
}

/// What was done, to be compared with what was noticed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FaultCount {
    /// Frames refused.
    pub full: u64,
    /// Frames held back.
    pub delayed: u64,
    /// Frames cut short.
    pub truncated: u64,
    /// Frames with a bit turned over.
    pub corrupted: u64,
}

/// An adapter that misbehaves according to a plan.
pub struct FaultAdapter<A> {
    inner: A,
    plan: FaultPlan,
    dice: Dice,
    offered: u64,
    /// Held-back frames by target.
    held: Vec<VecDeque<Held>>,
    count: FaultCount,
}

/// A frame that is held back.
struct Held {
    /// Polls it still has to wait.
    wait: u64,
    head: Vec<u8>,
    body: Vec<u8>,
}

impl<A: Adapter> FaultAdapter<A> {
    /// Wraps `inner`.
    pub fn new(inner: A, seed: u64, plan: FaultPlan) -> Self {
        let held = std::iter::repeat_with(VecDeque::new).take(inner.num_tasks()).collect();
        let (dice, count) = (Dice(seed), FaultCount::default());
        Self { inner, plan, dice, offered: 0, held, count }
    }

    /// What was done so far.
    pub fn count(&self) -> FaultCount {
        self.count
    }

    fn gone(&self) -> Option<TaskId> {
        self.plan.lose.filter(|&(_, after)| self.offered >= after).map(|(task, _)| task)
    }

    /// Sends the held-back frames whose time has come.
    fn release(&mut self) -> Result<(), AdapterError> {
        for target in 0..self.held.len() {
            while let Some(Held { wait, head, body }) = self.held[target].front_mut() {
                *wait = wait.saturating_sub(1);
                if *wait > 0 || self.inner.try_send(target as TaskId, head, body)? == Post::Full {
                    break;
                }
                self.held[target].pop_front();
            }
        }
        Ok(())
    }
}

// SAFETY: frames are copied where they are held back; all that touches regions is passed on to the adapter
// inside, or refused.
unsafe impl<A: Adapter> Adapter for FaultAdapter<A> {
    fn caps(&self) -> Caps {
        self.inner.caps()
    }

    fn task(&self) -> TaskId {
        self.inner.task()
    }

    fn num_tasks(&self) -> usize {
        self.inner.num_tasks()
    }

    fn try_send(&mut self, target: TaskId, head: &[u8], body: &[u8]) -> Result<Post, AdapterError> {
        self.offered += 1;
        if self.gone() == Some(target) {
            return Err(AdapterError::PeerLost { task: target });
        }
        if self.dice.falls(self.plan.full) {
            self.count.full += 1;
            return Ok(Post::Full);
        }
        let behind = !self.held[target as usize].is_empty();
        if behind || self.dice.falls(self.plan.delay) {
            let wait = 1 + self.dice.roll() % 8;
            self.count.delayed += 1;
            let (head, body) = (head.to_vec(), body.to_vec());
            self.held[target as usize].push_back(Held { wait, head, body });
            return Ok(Post::Taken);
        }
        self.inner.try_send(target, head, body)
    }

    fn try_send_short(&mut self, target: TaskId, head: [u8; SHORT_HEAD], body: &[u8]) -> bool {
        matches!(self.try_send(target, &head, body), Ok(Post::Taken))
    }

    fn poll<K: Sink>(&mut self, budget: usize, sink: &mut K) -> Result<usize, AdapterError> {
        self.release()?;
        let Self { inner, plan, dice, count, .. } = self;
        inner.poll(budget, &mut |frame: Frame<'_>| {
            let mut head = frame.head.to_vec();
            let mut body = frame.body;
            if dice.falls(plan.corrupt) && !head.is_empty() {
                let bit = dice.roll() as usize % (head.len() * 8);
                head[bit / 8] ^= 1 << (bit % 8);
                count.corrupted += 1;
            }
            if dice.falls(plan.truncate) {
                if body.is_empty() {
                    head.truncate(dice.roll() as usize % (head.len() + 1));
                } else {
                    body = body.part(0, dice.roll() as usize % body.len());
                }
                count.truncated += 1;
            }
            match head[..].try_into() {
                Ok(short) => sink.short(frame.origin, short, body),
                Err(_) => sink.frame(Frame { origin: frame.origin, head: &head, body }),
            }
        })
    }

    fn is_far(&mut self, target: TaskId) -> bool {
        self.inner.is_far(target)
    }

    fn expose(&mut self, key: u64, region: SendRegion) {
        self.inner.expose(key, region);
    }

    fn conceal(&mut self, key: u64) {
        self.inner.conceal(key);
    }

    fn withdraw(&mut self) {
        self.inner.withdraw();
    }

    fn get(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: RecvPart<'_>,
    ) -> Result<(), AdapterError> {
        if self.gone() == Some(target) {
            return Err(AdapterError::PeerLost { task: target });
        }
        self.inner.get(target, remote, offset, into)
    }

    fn share(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: RecvRegion,
    ) -> Result<u32, RecvRegion> {
        self.inner.share(target, remote, offset, into)
    }

    fn advance(&mut self, target: TaskId) -> Result<Advance, AdapterError> {
        if self.gone() != Some(target) {
            return self.inner.advance(target);
        }
        if !self.inner.unshare(target) {
            return Ok(Advance::Waiting);
        }
        Err(AdapterError::PeerLost { task: target })
    }

    fn unshare(&mut self, target: TaskId) -> bool {
        self.inner.unshare(target)
    }

    fn help(&mut self, origin: TaskId, number: u32, from: SendRegion) -> bool {
        self.inner.help(origin, number, from)
    }

    fn doorbell(&self) -> Arc<dyn Doorbell> {
        self.inner.doorbell()
    }

    fn lost(&self) -> Option<TaskId> {
        self.gone().or_else(|| self.inner.lost())
    }
}

/// SplitMix64: every seed gives its own sequence.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn falls(&mut self, per_mille: u16) -> bool {
        per_mille > 0 && self.roll() % 1000 < u64::from(per_mille)
    }
}
