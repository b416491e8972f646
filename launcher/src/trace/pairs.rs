//! Finds which receive got which send. No message carries a number for this: MPI delivers those of a rank to another one in
//! the order in which they were sent, so that of those with the same communicator and tag the first send and the first
//! receive belong together, and so on. Receives count in the order in which they were started, by the source and tag that
//! the message turned out to have. Pure.

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

/// The ends of messages.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    sends: Vec<(Key, u64, Side)>,
    receives: Vec<(Key, u64, Side)>,
    /// The waits that have ended one receive.
    single: Vec<CallAt>,
}

impl Pairs {
    /// Takes one end of a message of a rank, unless too little is known of it.
    pub(super) fn add(&mut self, task: TaskId, side: Side) {
        let (Some(peer), Some(tag), Some(communicator)) = (side.peer, side.tag, side.communicator)
        else {
            return;
        };
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
        let mut receives = self.receives.iter().peekable();
        for (key, _, send) in &self.sends {
            while receives.next_if(|(other, ..)| other < key).is_some() {}
            let Some((_, _, receive)) = receives.next_if(|(other, ..)| other == key) else {
                continue;
            };
            let Some(to) = receive.ended else { continue };
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
}
