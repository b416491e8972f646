//! What a window does with the messages of other ranks: it carries operations out, and takes answers.

use std::sync::Arc;

use mpjdev::{Delivery, Mode, PeerError, Status};
use transport_lapi::ForeignBytes;

use super::conflicts::MOST_WORDS;
use super::head::{Head, Kind};
use super::memory::Moved;
use super::place::{Accessed, Place};
use super::{Fetch, Incoming, Inner, tag_of};
use crate::error::{Error, WindowError};

/// Ranks that have got the lock, each with the number of its message if it wants an answer.
type Granted = Vec<(u32, Option<u64>)>;

impl Inner {
    /// Receives a message that the device delivers.
    pub(super) fn arrived(self: &Arc<Self>, message: Delivery) {
        let (window, source) = (self.clone(), message.status().source);
        let take = move |received: Result<Vec<u8>, mpjdev::Error>| {
            // The message of a rank that is lost does not come, and the device tells all who need the rank.
            let Ok(message) = received else { return };
            if let Err(violation) = window.take(source, message) {
                window.communicator.device().refuse(source, violation);
            }
        };
        // If the device has failed, its calls say so.
        let _ = self.communicator.device().receive_bytes(message, take);
    }

    /// Takes a message of job rank `source`.
    fn take(self: &Arc<Self>, source: u32, message: Vec<u8>) -> Result<(), PeerError> {
        let illegal = PeerError::Window { len: message.len() };
        let rank = self.communicator.group().rank_of(source).ok_or(illegal)?;
        let (head, shape, data) = Head::read(&message).ok_or(illegal)?;
        if head.kind.is_news() {
            return self.learn(rank, head, data);
        }
        let data = message.len() - data.len();
        let incoming = Incoming { head, shape, message, data };
        let next = self.state().streams[rank as usize].pass(head.number, incoming);
        self.carry_out_all(rank, next.ok_or(illegal)?)
    }

    /// Carries out the messages of a rank whose turn has come (OW1), `next` and those behind it, then those of ranks that
    /// have got the lock.
    fn carry_out_all(
        self: &Arc<Self>,
        mut rank: u32,
        mut next: Option<Incoming>,
    ) -> Result<(), PeerError> {
        let mut locked = Vec::new();
        loop {
            while let Some(incoming) = next {
                let Some(granted) = self.carry_out(rank, incoming)? else { break };
                next = self.state().streams[rank as usize].take_next();
                for (rank, number) in granted {
                    number.into_iter().for_each(|number| self.answer(rank, number));
                    locked.push(rank);
                }
            }
            let Some(next_rank) = locked.pop() else { return Ok(()) };
            rank = next_rank;
            next = self.state().streams[rank as usize].take();
        }
    }

    /// Carries out a message of a rank. Returns the ranks that have got the lock by it; `None` if data of their own have
    /// yet to come, or if it is put off (WM2), after which the messages behind it are carried out.
    fn carry_out(
        self: &Arc<Self>,
        rank: u32,
        incoming: Incoming,
    ) -> Result<Option<Granted>, PeerError> {
        let Incoming { head: Head { kind, number, displacement, answers }, shape, message, data } =
            &incoming;
        let illegal = PeerError::Window { len: message.len() };
        let Some(shape) = shape else {
            return self.synchronize(rank, *kind, *number).map(Some).ok_or(illegal);
        };
        let (moved, mut memory) = (Moved::of(*kind, *displacement, shape), self.memory());
        if memory.is_moving(&moved) {
            memory.put_off(rank, incoming);
            return Ok(None);
        }
        if let Kind::LongPut | Kind::LongGet = *kind {
            memory.begin_move(moved);
            drop(memory);
            let begun = self.move_long(rank, incoming.head, (shape.size(), moved));
            return begun.map(|()| None).ok_or(illegal);
        }
        let place = memory.place(*displacement, shape);
        let done = place.and_then(|place| carry_out_at(place, *kind, &message[*data..]).ok());
        drop(memory);
        let failed = done.is_none();
        let fetches = !matches!(*kind, Kind::Put | Kind::Accumulate(_));
        match fetches.then(|| done.unwrap_or_default()) {
            Some(mut fetched) => {
                let refused = self.state().refused.remove(&rank);
                let head = Head::new(Kind::Data { failed, refused }, *number, 0);
                let mut answer = head.message(&[], fetched.len());
                answer.append(&mut fetched);
                // An origin that is lost needs no answer, and a device that has failed says so in its calls.
                let _ = self.post(rank, answer);
            }
            None if failed => {
                self.state().refused.insert(rank);
            }
            None => {}
        }
        if *answers {
            self.answer(rank, *number);
        }
        Ok(Some(Vec::new()))
    }

    /// Sends the data of a long get, or receives those of a long put (OW2), then carries out what is behind it; `None` if
    /// their place is not exposed.
    fn move_long(
        self: &Arc<Self>,
        rank: u32,
        head: Head,
        (len, moved): (usize, Moved),
    ) -> Option<()> {
        let (device, context) = (self.communicator.device(), self.transfers());
        let peer = self.communicator.group().job_rank(rank).ok()?;
        let (to, tag) = (peer as usize, tag_of(head.number, head.kind));
        let begun = match head.kind {
            Kind::LongGet => {
                let from = self.memory().readable(head.displacement, len)?;
                device.isend(from, to, tag, context, Mode::Standard)
            }
            _ => {
                let into = self.memory().region(head.displacement, len)?;
                device.irecv(into, Some(to), Some(tag), context)
            }
        };
        self.state().transfers += 1;
        let window = self.clone();
        let go_on = move |outcome: Result<Status, mpjdev::Error>| {
            window.ended_transfer(None);
            let put_off = window.memory().end_move(&moved);
            let next = match outcome {
                Ok(Status { bytes, .. }) if head.kind == Kind::LongPut && bytes != len => {
                    Err(PeerError::Window { len: bytes })
                }
                Err(mpjdev::Error::Truncate { sent, .. }) => Err(PeerError::Window { len: sent }),
                // What a lost rank ends, too, holds nothing back (OW4).
                _ => window.go_on(rank),
            };
            if let Err(violation) = next {
                window.refuse(rank, violation);
            }
            for (rank, incoming) in put_off {
                let carried_out = window.carry_out(rank, incoming).and_then(|granted| {
                    if granted.is_some() { window.go_on(rank) } else { Ok(()) }
                });
                if let Err(violation) = carried_out {
                    window.refuse(rank, violation);
                }
            }
        };
        match begun {
            // If the device has failed, its calls say so.
            Ok(begun) => drop(device.then(begun, go_on)),
            Err(error) => go_on(Err(error)),
        }
        Some(())
    }

    /// Carries out what is behind a message that has been carried out.
    fn go_on(self: &Arc<Self>, rank: u32) -> Result<(), PeerError> {
        let next = self.state().streams[rank as usize].take_next();
        self.carry_out_all(rank, next)
    }

    /// Fails the device, since a rank has broken a rule.
    fn refuse(&self, rank: u32, violation: PeerError) {
        if let Ok(peer) = self.communicator.group().job_rank(rank) {
            self.communicator.device().refuse(peer, violation);
        }
    }

    /// Notes the end of a transfer of long data; at the origin, with the target and the number of the operation.
    pub(super) fn ended_transfer(&self, operation: Option<(u32, u64)>) {
        let mut state = self.state();
        state.transfers -= 1;
        if let Some((rank, number)) = operation {
            state.peers[rank as usize].open.remove(&number);
        }
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        self.wake(waiting);
    }

    /// Carries out a message that names no place; `None` if it is illegal.
    fn synchronize(&self, rank: u32, kind: Kind, number: u64) -> Option<Granted> {
        let mut state = self.state();
        match kind {
            Kind::Flush => {
                drop(state);
                self.answer(rank, number);
            }
            Kind::Lock { exclusive, answers } => {
                let granted = state.locks.ask(rank, exclusive, answers.then_some(number))?;
                if granted.is_empty() {
                    state.streams[rank as usize].hold(true);
                }
                return Some(granted);
            }
            Kind::Unlock => {
                let granted = state.locks.give_back(rank)?;
                granted.iter().for_each(|(rank, _)| state.streams[*rank as usize].hold(false));
                drop(state);
                self.answer(rank, number);
                return Some(granted);
            }
            Kind::Complete => {
                state.peers[rank as usize].completes += 1;
                let waiting = std::mem::take(&mut state.waiting);
                drop(state);
                self.wake(waiting);
            }
            _ => return None,
        }
        Some(Vec::new())
    }

    /// Tells a rank that its messages up to this one were carried out.
    fn answer(&self, rank: u32, number: u64) {
        let failed = self.state().refused.remove(&rank);
        // As for data.
        let _ = self.post(rank, Head::alone(Kind::Done { failed }, number));
    }

    /// Takes an answer of a rank, or that it has exposed its window.
    fn learn(&self, rank: u32, head: Head, data: &[u8]) -> Result<(), PeerError> {
        let Head { kind, number, .. } = head;
        let mut state = self.state();
        let mut ended = None;
        match kind {
            Kind::Data { failed, refused } => {
                let found =
                    state.gets.remove(&(rank, number)).ok_or(PeerError::StrayWindowAnswer)?;
                let Fetch { into, ending } = found;
                if let Some(mut into) = into.filter(|_| !failed) {
                    if into.len() != data.len() {
                        return Err(PeerError::StrayWindowAnswer);
                    }
                    into.store(0, ForeignBytes::from_slice(data));
                }
                let peer = &mut state.peers[rank as usize];
                peer.open.remove(&number);
                peer.carried_out(number);
                peer.is_refused |= refused || failed && ending.is_none();
                let refused = || Error::from(WindowError::Refused { rank }).into_device();
                ended = ending.map(|ending| {
                    (ending, if failed { Err(refused()) } else { Ok(Status::new(0, 0, 0)) })
                });
            }
            Kind::Done { failed } => {
                let peer = &mut state.peers[rank as usize];
                if number > peer.sent {
                    return Err(PeerError::StrayWindowAnswer);
                }
                peer.carried_out(number);
                peer.awaited.retain(|awaited| *awaited != number);
                peer.is_refused |= failed;
            }
            Kind::Post => state.peers[rank as usize].posts += 1,
            Kind::Accesses if self.log.is_none() => return Err(PeerError::StrayWindowAnswer),
            Kind::Accesses => {
                let words = data.chunks_exact(size_of::<u64>());
                if words.len() > MOST_WORDS {
                    return Err(PeerError::StrayWindowAnswer);
                }
                let words = words.map(|word| word.try_into().map_or(0, u64::from_le_bytes));
                state.peers[rank as usize].accesses.push_back(words.collect());
            }
            _ => state.told += 1,
        }
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        if let Some((ending, outcome)) = ended {
            self.communicator.device().end(ending, outcome);
        }
        self.wake(waiting);
        Ok(())
    }
}

/// Carries out an operation on a place. Returns what it fetches.
fn carry_out_at(mut place: Place<'_>, kind: Kind, data: &[u8]) -> Accessed<Vec<u8>> {
    let nothing = |()| Vec::new();
    match kind {
        Kind::Put => return place.write(data).map(nothing),
        Kind::Accumulate(update) => return place.update(update, data).map(nothing),
        _ => {}
    }
    let before = place.read()?;
    match kind {
        Kind::GetAccumulate(update) => place.update(update, data)?,
        Kind::CompareAndSwap => {
            let (compare, new) = data.split_at(data.len() / 2);
            if before == compare {
                place.write(new)?;
            }
        }
        _ => {}
    }
    Ok(before)
}
