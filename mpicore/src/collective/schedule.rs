//! The schedule of one rank: rounds of messages and local steps. The algorithms in the files beside this one build it
//! with a [`Draft`]; an executor runs it.
//!
//! An executor does this in each round, in this order:
//!
//! 1. start all messages, all with the one tag of the collective; messages to the same rank are sent in their order,
//!    and messages from the same rank are received in their order. Sends are listed before receives;
//! 2. when all have ended, run the local steps in their order;
//! 3. go on to the next round.
//!
//! - No message of a round writes what another message of the same round reads or writes.
//! - A place in the input is only read. A schedule that works in place does not name the input.
//! - Nothing in the scratch area is read before it was written.

use std::fmt;
use std::sync::Arc;

use super::steps::Steps;
use super::{Buffer, CollectiveError, Part, Place};

/// A step that needs a peer. All messages of a round are under way at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Message {
    /// Sends to a peer.
    Send {
        /// The rank in the communicator; in an intercommunicator, in the remote group.
        peer: u32,
        /// The data that are sent.
        from: Place,
    },
    /// Receives from a peer.
    Receive {
        /// The rank in the communicator; in an intercommunicator, in the remote group.
        peer: u32,
        /// Where the data go. The message has as many bytes as fit here, unless the ranks' arguments disagree.
        into: Place,
    },
}

/// A step that needs no peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Local {
    /// Copies data. The datatypes may differ, but not their signatures.
    Copy {
        /// The data that are copied.
        from: Place,
        /// Where the data go.
        into: Place,
    },
    /// Combines elements: `into[i] = from[i] op into[i]`, as MPI's operations do with `in` and `inout`. If the order
    /// matters, `from` contains the operands of the lower ranks.
    Reduce {
        /// The left operands.
        from: Place,
        /// The right operands, which the results replace.
        into: Place,
    },
}

/// The steps of a rank between two waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round<'a> {
    /// All messages of the round; they start together.
    pub messages: &'a [Message],
    /// The local steps; they run one after another when all messages have ended.
    pub local: &'a [Local],
}

impl Message {
    /// Iterates over the messages of a round in the order in which to start them: receives come first, so that arriving
    /// messages find them.
    pub(crate) fn receives_first(round: &[Self]) -> impl Iterator<Item = &Self> {
        let is_receive = |message: &&Self| matches!(message, Self::Receive { .. });
        round
            .iter()
            .filter(is_receive)
            .chain(round.iter().filter(move |message| !is_receive(message)))
    }
}

/// The temporary memory that a schedule needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scratch {
    /// Room for elements of a caller's datatype.
    Elements {
        /// Number of elements.
        count: u64,
        /// The buffer whose datatype the elements have: the input or the output.
        of: Buffer,
    },
    /// Room for operands of the reduction, as its operation takes them.
    Operands {
        /// Number of operands.
        count: u64,
    },
    /// Room for any one block of an output whose blocks have datatypes of their own. A place in the scratch area that
    /// is an [entry](super::Part::Entry) is that block of the output, stored at the beginning of the area, packed or
    /// not.
    LargestEntry,
}

/// All steps of one rank in a collective. Clones share them.
///
/// ```
/// use mpicore::collective::{Member, bcast};
/// let schedule = bcast(Member::new(2, 4)?, 0, 10)?;
/// assert_eq!(schedule.to_string(), "\
/// bcast by a binomial tree, scratch for 0 elements
/// round 0
///   receive output[0..+10] from 0
/// round 1
///   send output[0..+10] to 3
/// ");
/// # Ok::<(), mpicore::collective::CollectiveError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule(Arc<Built>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Built {
    name: &'static str,
    messages: Vec<Message>,
    local: Vec<Local>,
    /// For each round, how many messages and local steps there are up to its end.
    ends: Vec<End>,
    scratch: Scratch,
    reaches: [Option<Reach>; 3],
    is_even: bool,
}

/// The range of elements of a buffer that a schedule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reach {
    /// Index of the lowest element.
    pub first: i64,
    /// Number of elements from there to the highest.
    pub count: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct End {
    messages: usize,
    local: usize,
}

impl Schedule {
    /// Builds the schedule of an algorithm, which states its steps.
    pub(super) fn of(
        algorithm: impl FnOnce(&mut Draft) -> Result<(), CollectiveError>,
    ) -> Result<Self, CollectiveError> {
        let mut draft = Draft::new("");
        algorithm(&mut draft)?;
        Ok(draft.finish())
    }

    /// Returns the name of the collective and its algorithm.
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// Iterates over the rounds, in order.
    pub fn rounds(&self) -> impl Iterator<Item = Round<'_>> {
        (0..self.0.ends.len()).filter_map(|index| self.round(index))
    }

    /// Returns the round with this number, from 0; `None` after the last one.
    pub fn round(&self, index: usize) -> Option<Round<'_>> {
        let Built { messages, local, ends, .. } = &*self.0;
        let end = ends.get(index)?;
        let start = index.checked_sub(1).map_or_else(End::default, |before| ends[before]);
        Some(Round {
            messages: &messages[start.messages..end.messages],
            local: &local[start.local..end.local],
        })
    }

    /// Returns the number of messages that all rounds send and receive.
    pub fn messages(&self) -> usize {
        self.0.messages.len()
    }

    /// Returns the range of elements of a buffer that the schedule names, if it names any.
    pub(crate) fn reach(&self, buffer: Buffer) -> Option<Reach> {
        self.0.reaches[buffer as usize]
    }

    /// Returns whether the schedule names only elements, and all local steps are between places with as many elements.
    pub(crate) fn is_even(&self) -> bool {
        self.0.is_even
    }

    /// Returns the temporary memory that the schedule needs.
    pub fn scratch(&self) -> Scratch {
        self.0.scratch
    }
}

impl Built {
    /// Iterates over the places of all steps.
    fn places(&self) -> impl Iterator<Item = Place> {
        let of_messages = self.messages.iter().map(|message| match *message {
            Message::Send { from: place, .. } | Message::Receive { into: place, .. } => place,
        });
        let of_steps = self.local.iter().flat_map(|step| match *step {
            Local::Copy { from, into } | Local::Reduce { from, into } => [from, into],
        });
        of_messages.chain(of_steps)
    }

    fn find_reaches(&mut self) {
        let mut reaches = [None; 3];
        for Place { buffer, part } in self.places() {
            let Part::Elements { first, count: count @ 1.. } = part else { continue };
            let reach: &mut Option<Reach> = &mut reaches[buffer as usize];
            let known = reach.unwrap_or(Reach { first, count });
            // The builders have checked that all indices fit.
            let end = known.first.saturating_add_unsigned(known.count);
            let end = end.max(first.saturating_add_unsigned(count));
            let first = known.first.min(first);
            *reach = Some(Reach { first, count: end.abs_diff(first) });
        }
        self.reaches = reaches;
        self.is_even = self.places().all(|place| place.count().is_some())
            && self.local.iter().all(|step| match step {
                Local::Copy { from, into } | Local::Reduce { from, into } => {
                    from.count() == into.count()
                }
            });
    }
}

/// A schedule that is being built of the steps that an algorithm takes. A round ends where the algorithm ends it, and at
/// the end of the schedule.
#[derive(Debug)]
pub(super) struct Draft {
    schedule: Built,
}

impl Draft {
    pub(super) fn new(name: &'static str) -> Self {
        let scratch = Scratch::Elements { count: 0, of: Buffer::Output };
        let (messages, local, ends) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            schedule: Built {
                name,
                messages,
                local,
                ends,
                scratch,
                reaches: [None; 3],
                is_even: false,
            },
        }
    }

    fn message(&mut self, message: Message) {
        debug_assert_eq!(self.end().local, self.schedule.local.len(), "messages come first");
        self.schedule.messages.push(message);
    }

    pub(super) fn finish(mut self) -> Schedule {
        self.end_round();
        self.schedule.find_reaches();
        Schedule(Arc::new(self.schedule))
    }

    /// Returns the messages of the round that has not ended.
    fn round(&self) -> &[Message] {
        &self.schedule.messages[self.end().messages..]
    }

    /// Returns the end of the last round.
    fn end(&self) -> End {
        self.schedule.ends.last().copied().unwrap_or_default()
    }
}

impl Steps for Draft {
    fn name(&mut self, name: &'static str) {
        self.schedule.name = name;
    }

    fn needs(&mut self, scratch: Scratch) {
        self.schedule.scratch = scratch;
    }

    fn send(&mut self, peer: u32, from: Place) {
        debug_assert!(
            !matches!(self.round().last(), Some(Message::Receive { .. })),
            "the sends of a round come first"
        );
        self.message(Message::Send { peer, from });
    }

    fn receive(&mut self, peer: u32, into: Place) {
        self.message(Message::Receive { peer, into });
    }

    fn copy(&mut self, from: Place, into: Place) {
        self.schedule.local.push(Local::Copy { from, into });
    }

    fn reduce(&mut self, from: Place, into: Place) {
        self.schedule.local.push(Local::Reduce { from, into });
    }

    fn end_round(&mut self) {
        let schedule = &self.schedule;
        let end = End { messages: schedule.messages.len(), local: schedule.local.len() };
        if end != self.end() {
            self.schedule.ends.push(end);
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send { peer, from } => write!(f, "send {from} to {peer}"),
            Self::Receive { peer, into } => write!(f, "receive {into} from {peer}"),
        }
    }
}

impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Copy { from, into } => write!(f, "copy {from} into {into}"),
            Self::Reduce { from, into } => write!(f, "reduce {from} into {into}"),
        }
    }
}

impl fmt::Display for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elements { count: 0, .. } => f.write_str("scratch for 0 elements"),
            Self::Elements { count, of } => write!(f, "scratch for {count} elements as in {of}"),
            Self::Operands { count } => write!(f, "scratch for {count} operands"),
            Self::LargestEntry => f.write_str("scratch for the largest entry of output"),
        }
    }
}

/// Writes one line for each step, under the number of its round.
impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, {}", self.name(), self.scratch())?;
        for (index, round) in self.rounds().enumerate() {
            writeln!(f, "round {index}")?;
            round.messages.iter().try_for_each(|step| writeln!(f, "  {step}"))?;
            round.local.iter().try_for_each(|step| writeln!(f, "  {step}"))?;
        }
        Ok(())
    }
}
