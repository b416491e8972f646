//! Finds which receive got which send. No message carries a number for this: MPI delivers those of a rank to another one in
//! the order in which they were sent, so that of those with the same communicator and tag the first send and the first
//! receive belong together, and so on. Receives count in the order in which they were started, by the source and tag that
//! the message turned out to have. Pure.
//!
//! Where calls were overwritten, the first ones are missing, so the last send and the last receive belong together, and so on
//! backwards, from the last one that has ended. Some of the last messages may not have been received when the job ended: as
//! few as possible, such that no receive ends before its send begins, as far as times can be compared. Calls are left out that began before all of their rank
//! are there.

use transport_lapi::TaskId;

use super::{CallAt, Collected, Flow, Kind};

/// One end of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Side {
    pub(super) is_receive: bool,
    pub(super) communicator: Option<u32>,
    /// The other rank.
    pub(super) peer: Option<u32>,
    pub(super) tag: Option<i32>,
    /// The call that began it, and when.
    pub(super) call: CallAt,
    pub(super) start: u64,
    /// The call at whose end the message was received.
    pub(super) ended: Option<CallAt>,
}

/// Source, destination, communicator and tag.
type Key = (u32, u32, u32, i32);

/// The ends of messages with one key, in the order in which they began.
type Sides = [(Key, u64, Side)];

/// The ends of messages.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    sends: Vec<(Key, u64, Side)>,
    receives: Vec<(Key, u64, Side)>,
    /// The waits that have ended one receive.
    single: Vec<CallAt>,
    /// When the last call began that was overwritten of the rank whose calls are taken.
    overwritten_until: Option<u64>,
    /// Whether calls were overwritten of any rank.
    are_overwritten: bool,
}

impl Pairs {
    /// Begins with a rank: when the last of its calls began that was overwritten, if one was.
    pub(super) fn follow(&mut self, overwritten_until: Option<u64>) {
        self.overwritten_until = overwritten_until;
        self.are_overwritten |= overwritten_until.is_some();
    }

    /// Takes one end of a message of a rank, unless too little is known of it.
    pub(super) fn add(&mut self, task: TaskId, side: Side) {
        let (Some(peer), Some(tag), Some(communicator)) = (side.peer, side.tag, side.communicator)
        else {
            return;
        };
        if self.overwritten_until.is_some_and(|until| side.start <= until) {
            return;
        }
        match side.is_receive {
            true => self.receives.push(((peer, task, communicator, tag), side.start, side)),
            false => self.sends.push(((task, peer, communicator, tag), side.start, side)),
        }
    }

    /// Takes the waits that have ended one receive.
    pub(super) fn note_single(&mut self, waits: impl Iterator<Item = (CallAt, u32)>) {
        self.single.extend(waits.map(|(call, _)| call));
    }

    /// Numbers the messages of which both ends are known.
    pub(super) fn join(mut self, collected: &mut Collected) {
        for list in [&mut self.sends, &mut self.receives] {
            // The sort is stable: of ends that began at the same time, those that were added first come first.
            list.sort_by_key(|(key, start, _)| (*key, *start));
        }
        self.single.sort_unstable();
        let mut receives = &self.receives[..];
        for mut sends in self.sends.chunk_by(|one, other| one.0 == other.0) {
            let key = sends[0].0;
            receives = &receives[receives.partition_point(|(other, ..)| *other < key)..];
            let count = receives.partition_point(|(other, ..)| *other == key);
            let mut received = &receives[..count];
            if self.are_overwritten {
                (sends, received) = from_the_end(sends, received, collected);
            }
            for ((_, _, send), (_, _, receive)) in sends.iter().zip(received) {
                self.meet(send, receive, collected);
            }
        }
    }

    /// Numbers a message, if it was received.
    fn meet(&self, send: &Side, receive: &Side, collected: &mut Collected) {
        let Some(to) = receive.ended else { return };
        let number = collected.flows.len() as u64 + 1;
        collected.flows.push(Flow { number, from: send.call, to });
        let is_exchange = collected.call(send.call).kind == Kind::Exchange;
        let mut tell = |at| collected.call(at).message = Some(number);
        // A call that sends and receives keeps the number of what it received.
        if !is_exchange {
            tell(send.call);
        }
        tell(receive.call);
        if to != receive.call && self.single.binary_search(&to).is_ok() {
            tell(to);
        }
    }
}

/// Returns the sends and receives with one key that belong together, each with the one at its place.
fn from_the_end<'a>(
    sends: &'a Sides,
    receives: &'a Sides,
    collected: &Collected,
) -> (&'a Sides, &'a Sides) {
    // What was not received in the end is no message of these.
    let last = receives.iter().rposition(|(.., receive)| receive.ended.is_some());
    let receives = &receives[..last.map_or(0, |last| last + 1)];
    let end = |receive: &Side| {
        let CallAt { rank, thread, call } = receive.ended?;
        collected.trace.ranks[rank].threads[thread].calls[call].end
    };
    let unreceived = receives.iter().rev().enumerate().filter_map(|(before, (.., receive))| {
        let end = end(receive)?.saturating_add(collected.error_between_hosts.unwrap_or(0));
        let begun = sends.partition_point(|(_, start, _)| *start <= end);
        Some((sends.len() - begun).saturating_sub(before))
    });
    let sends = &sends[..sends.len() - unreceived.max().unwrap_or(0)];
    let count = sends.len().min(receives.len());
    (&sends[sends.len() - count..], &receives[receives.len() - count..])
}
