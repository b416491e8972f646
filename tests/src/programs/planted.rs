//! Programs with one planted mistake, of each kind that jobs which find mistakes between ranks must find.

use super::{Action, Calls, Collective, Op, Program, TAGS, Together};
use crate::conformance::Numbers;

/// A kind of mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// One end of a message has elements of another type.
    Types,
    /// A message that nobody receives.
    Unreceived,
    /// A receive that was started is dropped.
    Dropped,
    /// One rank makes another collective call than the others.
    Call,
    /// With another root.
    Root,
    /// With another operation.
    Operation,
    /// With another number of elements.
    Length,
    /// With elements of another type.
    Elements,
    /// Blocking where the others start it, or the other way round.
    Form,
    /// One rank leaves a collective call out.
    Omitted,
}

impl Mistake {
    /// All kinds.
    pub const ALL: [Self; 10] = [
        Self::Types,
        Self::Unreceived,
        Self::Dropped,
        Self::Call,
        Self::Root,
        Self::Operation,
        Self::Length,
        Self::Elements,
        Self::Form,
        Self::Omitted,
    ];

    /// Returns the words of which a report of it has one. The ranks may be found to be deadlocked if one waits for a message
    /// that nobody receives to be received, or for a rank that leaves a call out.
    pub fn words(self) -> &'static [&'static str] {
        match self {
            Self::Types => &["send and receive elements of the same types"],
            Self::Unreceived | Self::Dropped => &["never received", "deadlock"],
            Self::Call => &["all ranks of a communicator make the same calls in the same order"],
            Self::Root => &["give the same root on all ranks"],
            Self::Operation => &["give the same operation on all ranks"],
            Self::Length => &["give the same number of elements on all ranks"],
            Self::Elements => &["give elements of the same types on all ranks"],
            Self::Form => &["all ranks of a communicator make the same calls in the same order"],
            Self::Omitted => &[" where rank 0 calls ", "deadlock"],
        }
    }

    /// Makes it at this operation, if it is possible there.
    fn spoil(self, action: &Action, ranks: usize) -> Option<Action> {
        match (self, action) {
            (Self::Types, Action::Send { bytes, .. } | Action::Start { bytes, .. })
            | (Self::Types, Action::Post { bytes, .. } | Action::Recv { bytes, .. })
            | (Self::Types, Action::QuietSend { bytes, .. } | Action::QuietRecv { bytes, .. })
                if *bytes > 0 =>
            {
                Some(Action::Strangely(Box::new(action.clone())))
            }
            (Self::Dropped, &Action::Post { from, tag, bytes, .. }) => {
                Some(Action::Drop { from, tag, bytes })
            }
            (_, Action::Together(together)) => {
                let other = self.spoil_together(*together, ranks);
                (other != *together).then_some(Action::Together(other))
            }
            _ => None,
        }
    }

    fn spoil_together(self, together: Together, ranks: usize) -> Together {
        use Collective::{AllReduce, Barrier, Broadcast, Reduce, Scan};
        let Together { call, root, multiplies, elements, floats, starts } = together;
        match (self, call) {
            (Self::Call, Barrier) => Together { call: AllReduce, ..together },
            (Self::Call, _) => Together { call: Barrier, ..together },
            (Self::Root, Broadcast | Reduce) => Together { root: (root + 1) % ranks, ..together },
            (Self::Operation, Reduce | AllReduce | Scan) => {
                Together { multiplies: !multiplies, ..together }
            }
            (Self::Length, call) if call != Barrier => {
                Together { elements: elements + 1, ..together }
            }
            (Self::Elements, call) if call != Barrier && elements > 0 => {
                Together { floats: !floats, ..together }
            }
            (Self::Form, _) => Together { starts: !starts, ..together },
            _ => together,
        }
    }
}

impl Program {
    /// The correct program of a seed, in which one mistake was planted then. Returns which one.
    pub fn planted(seed: u64, ranks: usize) -> (Self, Mistake) {
        let Self(mut ops) = Self::correct(seed, ranks, Calls::Blocking);
        let mut numbers = Numbers(!seed);
        let wanted = Mistake::ALL[seed as usize % Mistake::ALL.len()];
        let is_together = |op: &Op| matches!(op.action, Action::Together(_));
        let places: Vec<usize> = (0..ops.len())
            .filter(|&place| match wanted {
                Mistake::Omitted => is_together(&ops[place]),
                _ => wanted.spoil(&ops[place].action, ranks).is_some(),
            })
            .collect();
        let Some(&place) = places.get(numbers.below(places.len().max(1))) else {
            // A message that nobody receives is possible everywhere.
            let (rank, to) = (numbers.below(ranks), numbers.below(ranks));
            let action = Action::Send { to, tag: TAGS as i32 - 1, bytes: 40, sync: false };
            ops.insert(numbers.below(ops.len() + 1), Op { rank, action });
            return (Self(ops), Mistake::Unreceived);
        };
        match wanted.spoil(&ops[place].action, ranks) {
            Some(spoilt) => {
                let before = std::mem::replace(&mut ops[place].action, spoilt);
                if let (Mistake::Dropped, Action::Post { slot, .. }) = (wanted, before) {
                    ops.iter_mut().for_each(|op| op.forget(slot));
                }
            }
            None => drop(ops.remove(place)),
        }
        (Self(ops), wanted)
    }
}
