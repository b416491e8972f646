//! Runs the schedules of all ranks together, in one thread and in a random order, on elements that are strings. The
//! tests of collectives use it.
//!
//! Messages between two ranks keep their order. All else is chosen at random: which rank goes on, which message
//! arrives, and whether a send ends at once or with its receive; its data are read when it ends. Any fault of the
//! schedules becomes an error: a rank that waits forever, a message that no rank receives, sizes that differ, places
//! outside their buffer, and messages of one round that interfere with each other.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use crate::collective::{Buffer, Local, Message, Part, Place, Schedule, Scratch};

/// The value of an element that was never written.
pub const UNSET: &str = "?";

/// An operation on elements: left operand, right operand.
pub type Op = fn(&str, &str) -> String;

/// One rank: its schedule and its buffers.
#[derive(Debug, Clone)]
pub struct Actor {
    schedule: Schedule,
    pub input: Vec<String>,
    pub output: Vec<String>,
    scratch: Vec<String>,
    /// How many strings an element of input and output consists of, to simulate datatypes of different sizes.
    widths: [usize; 2],
    /// The ranges of the entries of input and output.
    entries: [Vec<Range<usize>>; 2],
    round: usize,
    /// Which messages of the round have not ended.
    open: Vec<bool>,
}

/// A message under way.
struct Packet {
    /// The data that were sent, if the send has ended.
    data: Option<Vec<String>>,
    /// The index of the message in the sender's round.
    message: usize,
}

/// All ranks; in an intercommunicator those of the first group come first.
struct Job {
    actors: Vec<Actor>,
    /// Number of ranks of the first group; 0 in an intracommunicator.
    first_group: usize,
    under_way: BTreeMap<(usize, usize), VecDeque<Packet>>,
    random: u64,
    op: Op,
}

/// An event that can happen next.
#[derive(Clone, Copy)]
enum Event {
    /// The rank has ended its round and goes on.
    GoOn(usize),
    /// The first message from one rank to another arrives.
    Arrive(usize, usize),
}

impl Actor {
    pub fn new(schedule: Schedule, input: Vec<String>, output: Vec<String>) -> Self {
        let (widths, entries) = ([1, 1], [vec![], vec![]]);
        let (scratch, open) = (vec![], vec![]);
        Self { schedule, input, output, scratch, widths, entries, round: 0, open }
    }

    /// Makes elements of the input have `input` strings each, and those of the output `output`.
    pub fn widths(self, input: usize, output: usize) -> Self {
        Self { widths: [input, output], ..self }
    }

    /// Sets the ranges of strings of the entries of input and output.
    pub fn entries(self, input: Vec<Range<usize>>, output: Vec<Range<usize>>) -> Self {
        Self { entries: [input, output], ..self }
    }

    fn prepare(&mut self) {
        let len = match self.schedule.scratch() {
            Scratch::Elements { count, of } => count as usize * self.widths[index(of)],
            Scratch::Operands { count } => count as usize,
            Scratch::LargestEntry => self.entries[1].iter().map(Range::len).max().unwrap_or(0),
        };
        self.scratch = vec![UNSET.into(); len];
    }

    fn range(&self, place: Place) -> Result<Range<usize>, String> {
        let (range, len) = match (place.buffer, place.part) {
            (Buffer::Scratch, Part::Entry(rank)) => {
                (0..self.entries[1][rank as usize].len(), self.scratch.len())
            }
            (buffer, Part::Entry(rank)) => {
                (self.entries[index(buffer)][rank as usize].clone(), self.strings(buffer).len())
            }
            (buffer, Part::Elements { first, count }) => {
                let width = self.width(buffer);
                let first = usize::try_from(first).map_err(|_| format!("{place} is negative"))?;
                (first * width..(first + count as usize) * width, self.strings(buffer).len())
            }
        };
        let is_inside = range.is_empty() || range.end <= len;
        is_inside.then_some(range).ok_or(format!("{place} is outside of {len} strings"))
    }

    fn width(&self, buffer: Buffer) -> usize {
        match (buffer, self.schedule.scratch()) {
            (Buffer::Scratch, Scratch::Elements { of, .. }) => self.widths[index(of)],
            (Buffer::Scratch, Scratch::Operands { .. } | Scratch::LargestEntry) => 1,
            _ => self.widths[index(buffer)],
        }
    }

    fn strings(&self, buffer: Buffer) -> &[String] {
        match buffer {
            Buffer::Input => &self.input,
            Buffer::Output => &self.output,
            Buffer::Scratch => &self.scratch,
        }
    }

    fn read(&self, place: Place) -> Result<Vec<String>, String> {
        let range = self.range(place)?;
        Ok(self.strings(place.buffer).get(range).unwrap_or_default().to_vec())
    }

    fn write(&mut self, place: Place, data: &[String]) -> Result<(), String> {
        let range = self.range(place)?;
        if range.len() != data.len() {
            return Err(format!("{} strings for {place}, {}", data.len(), range.len()));
        }
        let strings = match place.buffer {
            Buffer::Input => return Err(format!("{place} is written")),
            Buffer::Output => &mut self.output,
            Buffer::Scratch => &mut self.scratch,
        };
        if !range.is_empty() {
            strings[range].clone_from_slice(data);
        }
        Ok(())
    }

    fn run_local(&mut self, step: Local, op: Op) -> Result<(), String> {
        let (from, into) = match step {
            Local::Copy { from, into } | Local::Reduce { from, into } => (from, into),
        };
        let mut data = self.read(from)?;
        if let Local::Reduce { .. } = step {
            let right = self.read(into)?;
            data = data.iter().zip(&right).map(|(left, right)| op(left, right)).collect();
        }
        self.write(into, &data).map_err(|why| format!("{step}: {why}"))
    }

    fn messages(&self) -> Vec<Message> {
        self.schedule.round(self.round).map_or(vec![], |round| round.messages.to_vec())
    }

    fn has_ended(&self) -> bool {
        self.schedule.round(self.round).is_none()
    }

    /// Checks that no message of a round writes what another one reads or writes.
    fn check_round(&self) -> Result<(), String> {
        let messages = self.messages();
        for (index, message) in messages.iter().enumerate() {
            let Message::Receive { into, .. } = *message else { continue };
            for (other, message) in messages.iter().enumerate().filter(|(at, _)| *at != index) {
                let (Message::Send { from: place, .. } | Message::Receive { into: place, .. }) =
                    *message;
                let (own, others) = (self.range(into)?, self.range(place)?);
                let overlap = own.start.max(others.start) < own.end.min(others.end);
                if place.buffer == into.buffer && overlap {
                    return Err(format!("messages {index} and {other} of a round overlap"));
                }
            }
        }
        Ok(())
    }
}

impl Job {
    /// Returns the number of a rank's peer among all ranks.
    fn peer(&self, rank: usize, peer: u32) -> usize {
        if rank < self.first_group { self.first_group + peer as usize } else { peer as usize }
    }

    fn chance(&mut self, below: usize) -> usize {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        ((mixed ^ (mixed >> 27)) >> 11) as usize % below
    }

    fn start_round(&mut self, rank: usize) -> Result<(), String> {
        self.actors[rank].check_round()?;
        let messages = self.actors[rank].messages();
        self.actors[rank].open = vec![true; messages.len()];
        for (message, step) in messages.iter().enumerate() {
            let Message::Send { peer, from } = *step else { continue };
            let ends_at_once = self.chance(2) == 0;
            let data = ends_at_once.then(|| self.actors[rank].read(from)).transpose()?;
            self.actors[rank].open[message] = !ends_at_once;
            let pair = (rank, self.peer(rank, peer));
            self.under_way.entry(pair).or_default().push_back(Packet { data, message });
        }
        Ok(())
    }

    fn end_round(&mut self, rank: usize) -> Result<(), String> {
        let actor = &mut self.actors[rank];
        let round = actor.schedule.round(actor.round).expect("a round was under way");
        let steps = round.local.to_vec();
        steps.into_iter().try_for_each(|step| actor.run_local(step, self.op))?;
        actor.round += 1;
        self.start_round(rank)
    }

    /// Returns the first receive of `to` that waits for a message from `from`.
    fn waiting(&self, from: usize, to: usize) -> Option<(usize, Place)> {
        let messages = self.actors[to].messages();
        messages.iter().enumerate().find_map(|(index, message)| match *message {
            Message::Receive { peer, into }
                if self.actors[to].open[index] && self.peer(to, peer) == from =>
            {
                Some((index, into))
            }
            _ => None,
        })
    }

    fn arrive(&mut self, from: usize, to: usize) -> Result<(), String> {
        let (receive, into) = self.waiting(from, to).expect("the event was possible");
        let packets = self.under_way.get_mut(&(from, to)).expect("the event was possible");
        let packet = packets.pop_front().expect("the event was possible");
        let sent = self.actors[from].messages();
        let data = match (packet.data, sent.get(packet.message)) {
            (Some(data), _) => data,
            (None, Some(&Message::Send { from: place, .. })) => {
                self.actors[from].open[packet.message] = false;
                self.actors[from].read(place)?
            }
            _ => return Err(format!("rank {from} left the round of a send that has not ended")),
        };
        self.actors[to].open[receive] = false;
        self.actors[to].write(into, &data).map_err(|why| format!("from {from} to {to}: {why}"))
    }

    fn events(&self) -> Vec<Event> {
        let can_go_on = |actor: &Actor| !actor.has_ended() && !actor.open.contains(&true);
        let ready = self.actors.iter().enumerate().filter(|(_, actor)| can_go_on(actor));
        let arriving = self.under_way.iter().filter(|((from, to), packets)| {
            !packets.is_empty() && self.waiting(*from, *to).is_some()
        });
        let arriving = arriving.map(|(&(from, to), _)| Event::Arrive(from, to));
        ready.map(|(rank, _)| Event::GoOn(rank)).chain(arriving).collect()
    }

    /// Returns which rank waits for what, when nothing more can happen.
    fn diagnosis(&self) -> Option<String> {
        let waiting = self.actors.iter().enumerate().filter(|(_, actor)| !actor.has_ended());
        let mut lines: Vec<_> = waiting
            .map(|(rank, actor)| {
                let open = actor.messages().into_iter().zip(&actor.open);
                let open = open.filter(|(_, open)| **open).map(|(message, _)| message.to_string());
                let open: Vec<_> = open.collect();
                format!("rank {rank} waits in round {}: {}", actor.round, open.join(", "))
            })
            .collect();
        let unwanted = self.under_way.iter().filter(|(_, packets)| !packets.is_empty());
        lines.extend(unwanted.map(|((from, to), packets)| {
            format!("{} messages from {from} to {to} were not received", packets.len())
        }));
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// Runs the schedules to their end in an order that `seed` chooses. Returns the ranks with the final contents of their
/// buffers. `first_group` is the size of the first group of an intercommunicator, or 0.
pub fn run(
    mut actors: Vec<Actor>,
    first_group: usize,
    op: Op,
    seed: u64,
) -> Result<Vec<Actor>, String> {
    actors.iter_mut().for_each(Actor::prepare);
    let ranks = actors.len();
    let mut job = Job { actors, first_group, under_way: BTreeMap::new(), random: seed, op };
    (0..ranks).try_for_each(|rank| job.start_round(rank))?;
    loop {
        let events = job.events();
        if events.is_empty() {
            return job.diagnosis().map_or(Ok(job.actors), Err);
        }
        match events[job.chance(events.len())] {
            Event::GoOn(rank) => job.end_round(rank)?,
            Event::Arrive(from, to) => job.arrive(from, to)?,
        }
    }
}

fn index(buffer: Buffer) -> usize {
    usize::from(buffer == Buffer::Output)
}
