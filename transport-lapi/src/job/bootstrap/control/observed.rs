//! What an agent has seen of a rank of its host, as it tells `mpjrun`. All of it is untrusted.

use bincode::de::Decoder;
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};

use super::MessageTotals;
use crate::adapter::waits::{Blocked, CallCode, Phase, TaskState, Wait};

/// What the threads of a rank's process did, as the kernel reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Activity {
    /// It was stopped by a signal.
    Stopped,
    /// It was stopped by a debugger.
    Traced,
    /// A thread ran, or could have.
    Computing,
    /// A thread was in a system call that cannot be interrupted.
    InKernel,
    /// All threads slept.
    Sleeping,
}

/// Why a rank may go on although its threads that are in calls wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Doubt {
    /// A thread polls while it waits, or has been woken.
    Awake,
    /// More threads are in calls than are listed.
    Crowded,
    /// Its threads cannot be listed: it is in another PID namespace.
    Elsewhere,
    /// It has threads that are in no call, and not idle.
    OtherThread,
}

/// What a rank uses, and what it has sent and received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Encode, Decode)]
pub struct Usage {
    /// Memory of its process that is not swapped out, in bytes, with what it shares; `None` if that is not known.
    pub memory: Option<u64>,
    /// Its messages; `None` if its memory cannot be read, or if it has published no counters.
    pub totals: Option<MessageTotals>,
}

/// A look at a rank.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Observed {
    /// What it had published; `None` if that changed during every attempt to read it.
    pub state: Option<TaskState>,
    /// What its process did; `None` if that is not known.
    pub activity: Option<Activity>,
    /// Why it may go on; `None` if there is no reason.
    pub doubt: Option<Doubt>,
    /// What it uses.
    pub usage: Usage,
    /// The threads among those asked for that its process does not have any more.
    pub gone: Vec<i32>,
}

impl Observed {
    /// Returns the same with the times of the clock that showed `now` when its own clock showed `then`.
    #[must_use]
    pub fn dated(mut self, then: u64, now: u64) -> Self {
        for blocked in self.state.iter_mut().flat_map(|state| &mut state.blocked) {
            let lasted = then.saturating_sub(blocked.wait.since);
            blocked.wait.since = now.saturating_sub(lasted);
        }
        self
    }
}

impl Encode for Wait {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        let Self { call, operation, open, sends, peer, tag, space, bytes, phase, .. } = *self;
        let Self { at_end, alone, unwinding, since, thread, .. } = *self;
        (call.0, operation.0, open, sends, peer, tag, space, bytes, phase as u32)
            .encode(encoder)?;
        (at_end, alone, unwinding, since, thread).encode(encoder)
    }
}

impl<C> Decode<C> for Wait {
    fn decode<D: Decoder<Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let (call, operation, open, sends, peer, tag, space, bytes, phase) =
            Decode::decode(decoder)?;
        let (at_end, alone, unwinding, since, thread) = Decode::decode(decoder)?;
        let phase: u32 = phase;
        let phase = Phase::ALL.get(phase as usize).copied().unwrap_or_default();
        let (call, operation) = (CallCode(call), CallCode(operation));
        Ok(Self {
            call,
            operation,
            open,
            sends,
            peer,
            tag,
            space,
            bytes,
            phase,
            at_end,
            alone,
            unwinding,
            since,
            thread,
        })
    }
}

impl Encode for Blocked {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        (self.wait, self.undisturbed, self.failed, self.looks).encode(encoder)
    }
}

impl<C> Decode<C> for Blocked {
    fn decode<D: Decoder<Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let (wait, undisturbed, failed, looks) = Decode::decode(decoder)?;
        Ok(Self { wait, undisturbed, failed, looks })
    }
}

impl Encode for TaskState {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        let Self { pid, is_here, epoch, moves, blocked, unlisted, sent, received, contexts } = self;
        (pid, is_here, epoch, moves, blocked, unlisted, sent, received).encode(encoder)?;
        (*contexts as u64).encode(encoder)
    }
}

impl<C> Decode<C> for TaskState {
    fn decode<D: Decoder<Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let (pid, is_here, epoch, moves, blocked, unlisted, sent, received) =
            Decode::decode(decoder)?;
        let contexts = u64::decode(decoder)? as usize;
        Ok(Self { pid, is_here, epoch, moves, blocked, unlisted, sent, received, contexts })
    }
}

bincode::impl_borrow_decode!(Wait);
bincode::impl_borrow_decode!(Blocked);
bincode::impl_borrow_decode!(TaskState);

#[cfg(test)]
mod tests {
    use super::super::agents::News;
    use super::super::line::{decode, encode};
    use super::*;
    use crate::adapter::waits::Space;

    fn seen() -> News {
        let space = Space { context: 1, id: 9, label: None, is_collective: true };
        let wait = Wait {
            call: CallCode(3),
            operation: CallCode(4),
            open: 5,
            sends: true,
            peer: Some(6),
            tag: Some(-7),
            space,
            bytes: 1 << 40,
            phase: Phase::Offered,
            at_end: true,
            alone: false,
            unwinding: true,
            since: 10_000,
            thread: 77,
        };
        let blocked = vec![Blocked { wait, undisturbed: true, failed: false, looks: 8 }];
        let state = TaskState {
            pid: 70,
            is_here: true,
            epoch: 12,
            moves: 13,
            blocked,
            unlisted: 2,
            sent: 14,
            received: 15,
            contexts: 3,
        };
        let (activity, doubt) = (Some(Activity::Sleeping), Some(Doubt::Crowded));
        let totals = Some(MessageTotals { sent: 16, bytes: 17, received: 18 });
        let usage = Usage { memory: Some(1 << 33), totals };
        let seen =
            Box::new(Observed { state: Some(state), activity, doubt, usage, gone: vec![71] });
        News::Seen { task: 2, number: 4, at_nanos: 12_000, seen }
    }

    #[test]
    fn a_look_travels_whole() {
        let news = seen();
        assert_eq!(decode::<News>(&encode(&news)).unwrap(), news);
    }

    #[test]
    fn waits_last_as_long_by_any_clock() {
        let News::Seen { seen, at_nanos, .. } = seen() else { unreachable!() };
        let since = |now| {
            let dated = seen.clone().dated(at_nanos, now);
            dated.state.unwrap().blocked[0].wait.since
        };
        assert_eq!((since(5_000), since(1_000)), (3_000, 0));
    }
}
