//! A case: the parameters of one check of a collective, as numbers that a generator chooses, as values for the check,
//! and as text that names the case in a report and runs it again.

use std::fmt;
use std::str::FromStr;

use mpjdev::BackendChoice;

use super::element::{Kind, Op};
use super::shape::Shape;
use crate::conformance::Numbers;

/// An enumeration with all its values, and a word for each.
macro_rules! choices {
    ($(#[$about:meta])* $name:ident { $($variant:ident = $word:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = $word] $variant,)+
        }

        impl $name {
            /// All of them, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];
            /// Their words, in the same order.
            pub const WORDS: &'static [&'static str] = &[$($word,)+];
        }
    };
}
pub(crate) use choices;

choices! {
    /// A collective call. Those that begin with `inter` are between the two groups of an intercommunicator.
    Collective {
        Barrier = "barrier",
        Bcast = "bcast",
        Gather = "gather",
        Gatherv = "gatherv",
        Scatter = "scatter",
        Scatterv = "scatterv",
        Allgather = "allgather",
        Allgatherv = "allgatherv",
        Alltoall = "alltoall",
        Alltoallv = "alltoallv",
        Alltoallw = "alltoallw",
        Reduce = "reduce",
        Allreduce = "allreduce",
        ReduceScatterBlock = "reduce_scatter_block",
        ReduceScatter = "reduce_scatter",
        Scan = "scan",
        Exscan = "exscan",
        InterBarrier = "inter_barrier",
        InterBcast = "inter_bcast",
        InterGather = "inter_gather",
        InterGatherv = "inter_gatherv",
        InterScatter = "inter_scatter",
        InterScatterv = "inter_scatterv",
        InterAllgather = "inter_allgather",
        InterAllgatherv = "inter_allgatherv",
        InterAlltoall = "inter_alltoall",
        InterAlltoallv = "inter_alltoallv",
        InterAlltoallw = "inter_alltoallw",
        InterReduce = "inter_reduce",
        InterAllreduce = "inter_allreduce",
    }
}

choices! {
    /// Which rank is the root.
    RootRank {
        First = "first",
        Middle = "middle",
        Last = "last",
    }
}

choices! {
    /// How much a rank sends or receives: elements of a block, or bytes of all blocks together.
    Size {
        Nothing = "0",
        One = "1",
        Few = "7",
        Some = "1003",
        Long = "65537-bytes",
        Longest = "1-MiB",
    }
}

choices! {
    /// Whether input and output are two buffers or one.
    Place {
        Apart = "no",
        Same = "yes",
    }
}

choices! {
    /// How the call is made.
    Mode {
        Blocking = "blocking",
        Started = "started",
        Persistent = "persistent",
    }
}

/// Numbers of ranks.
pub const RANKS: &[usize] = &[1, 2, 3, 4, 5, 6, 7, 8, 9, 17];
const RANK_WORDS: &[&str] = &["1", "2", "3", "4", "5", "6", "7", "8", "9", "17"];
/// Choices of protocols.
pub const BACKENDS: &[BackendChoice] =
    &[BackendChoice::Auto, BackendChoice::Eager, BackendChoice::Rendezvous];
const BACKEND_WORDS: &[&str] = &["auto", "eager", "rendezvous"];

/// How many parameters a case has.
pub const PARAMETERS: usize = 11;
/// Their names, and the words of their values.
pub const WORDS: [(&str, &[&str]); PARAMETERS] = [
    ("collective", Collective::WORDS),
    ("ranks", RANK_WORDS),
    ("root", RootRank::WORDS),
    ("size", Size::WORDS),
    ("kind", Kind::WORDS),
    ("op", Op::WORDS),
    ("in-place", Place::WORDS),
    ("send", Shape::WORDS),
    ("receive", Shape::WORDS),
    ("mode", Mode::WORDS),
    ("backend", BACKEND_WORDS),
];
/// Jobs of more ranks do not get the longest messages, which are one piece there and which plain loops compute again.
const MOST_RANKS_OF_LONGEST: usize = 3;

/// The numbers of the parameters, as they stand in [`WORDS`].
pub mod parameter {
    /// The call.
    pub const COLLECTIVE: usize = 0;
    /// How many ranks.
    pub const RANK: usize = 1;
    /// Which of them is the root.
    pub const ROOT: usize = 2;
    /// How much data.
    pub const SIZE: usize = 3;
    /// Of which kind.
    pub const KIND: usize = 4;
    /// What a reduction does.
    pub const OP: usize = 5;
    /// Whether it works in place.
    pub const PLACE: usize = 6;
    /// How what is sent lies.
    pub const SEND: usize = 7;
    /// How what is received lies.
    pub const RECEIVE: usize = 8;
    /// How the call is made.
    pub const MODE: usize = 9;
    /// Which protocols.
    pub const BACKEND: usize = 10;
}

use parameter::*;

impl Collective {
    /// Whether it is between two groups.
    pub fn is_inter(self) -> bool {
        self as usize >= Self::InterBarrier as usize
    }

    /// Whether it combines operands.
    pub fn reduces(self) -> bool {
        use Collective as C;
        let all = [C::Reduce, C::Allreduce, C::ReduceScatterBlock, C::ReduceScatter, C::Scan];
        all.contains(&self) || [C::Exscan, C::InterReduce, C::InterAllreduce].contains(&self)
    }

    /// Whether it moves a block for each rank of a group.
    pub fn has_blocks(self) -> bool {
        use Collective as C;
        let one = [C::Barrier, C::Bcast, C::Reduce, C::Allreduce, C::Scan, C::Exscan];
        let inter = [C::InterBarrier, C::InterBcast, C::InterReduce, C::InterAllreduce];
        !one.contains(&self) && !inter.contains(&self)
    }

    /// Whether its blocks have lengths of their own.
    pub fn lists(self) -> bool {
        use Collective as C;
        let of_one = [C::Gatherv, C::Scatterv, C::Allgatherv, C::Alltoallv, C::ReduceScatter];
        let inter = [C::InterGatherv, C::InterScatterv, C::InterAllgatherv, C::InterAlltoallv];
        of_one.contains(&self) || inter.contains(&self) || self.is_typed()
    }

    /// Whether its blocks have datatypes of their own.
    pub fn is_typed(self) -> bool {
        matches!(self, Self::Alltoallw | Self::InterAlltoallw)
    }

    /// Whether one rank is the root.
    pub fn is_rooted(self) -> bool {
        use Collective as C;
        let of_one = [C::Bcast, C::Gather, C::Gatherv, C::Scatter, C::Scatterv, C::Reduce];
        let inter = [C::InterBcast, C::InterGather, C::InterGatherv, C::InterScatter];
        of_one.contains(&self)
            || inter.contains(&self)
            || [C::InterScatterv, C::InterReduce].contains(&self)
    }

    fn is_barrier(self) -> bool {
        matches!(self, Self::Barrier | Self::InterBarrier)
    }

    fn can_be_in_place(self) -> bool {
        !self.is_inter() && !matches!(self, Self::Barrier | Self::Bcast)
    }
}

/// One call of a collective with all its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Case {
    choices: [usize; PARAMETERS],
    /// The seed of the data.
    pub seed: u64,
}

impl Case {
    /// The case with these values, by their numbers; those that do not go together are [settled](Self::settle).
    pub fn new(mut choices: [usize; PARAMETERS], seed: u64) -> Self {
        Self::settle(&mut choices);
        Self { choices, seed }
    }

    /// A random case.
    pub fn random(numbers: &mut Numbers) -> Self {
        let choices = WORDS.map(|(_, words)| numbers.below(words.len()));
        Self::new(choices, numbers.next_number() % 1_000)
    }

    /// How many values each parameter has.
    pub fn values() -> [usize; PARAMETERS] {
        WORDS.map(|(_, words)| words.len())
    }

    /// The numbers of its values.
    pub fn choices(&self) -> [usize; PARAMETERS] {
        self.choices
    }

    /// Replaces values that the call cannot have, that have no effect on it, or that together take too long.
    pub fn settle(choices: &mut [usize; PARAMETERS]) {
        let collective = Collective::ALL[choices[COLLECTIVE]];
        if collective.is_inter() && choices[RANK] == 0 {
            choices[RANK] = 1;
        }
        if RANKS[choices[RANK]] > MOST_RANKS_OF_LONGEST && Size::ALL[choices[SIZE]] == Size::Longest
        {
            choices[SIZE] = Size::Long as usize;
        }
        if !collective.is_rooted() {
            choices[ROOT] = 0;
        }
        if collective.is_barrier() {
            for unused in [SIZE, KIND, SEND, RECEIVE] {
                choices[unused] = 0;
            }
        }
        if !collective.can_be_in_place() {
            choices[PLACE] = 0;
        }
        let kind = Kind::ALL[choices[KIND]];
        if collective.reduces() {
            let ops = kind.ops();
            if !ops.contains(&Op::ALL[choices[OP]]) {
                choices[OP] = ops[choices[OP] % ops.len()] as usize;
            }
        } else {
            choices[OP] = 0;
        }
        for side in [SEND, RECEIVE] {
            let derived = Shape::ALL[choices[side]].is_derived();
            if collective.reduces() && Op::ALL[choices[OP]].is_predefined() && derived {
                choices[side] %= 2;
            }
            if kind.has_padding() && Shape::ALL[choices[side]] == Shape::Plain {
                choices[side] = Shape::Typed as usize;
            }
        }
        let is_one_buffer = choices[PLACE] > 0 && !collective.is_rooted();
        if collective.reduces() || is_one_buffer {
            choices[RECEIVE] = choices[SEND];
        }
    }

    /// The call.
    pub fn collective(&self) -> Collective {
        Collective::ALL[self.choices[COLLECTIVE]]
    }

    /// How many ranks the job has.
    pub fn ranks(&self) -> usize {
        RANKS[self.choices[RANK]]
    }

    /// The root in a group of this number of ranks.
    pub fn root(&self, ranks: usize) -> usize {
        match RootRank::ALL[self.choices[ROOT]] {
            RootRank::First => 0,
            RootRank::Middle => ranks / 2,
            RootRank::Last => ranks - 1,
        }
    }

    /// How much is moved.
    pub fn size(&self) -> Size {
        Size::ALL[self.choices[SIZE]]
    }

    /// What the elements are.
    pub fn kind(&self) -> Kind {
        Kind::ALL[self.choices[KIND]]
    }

    /// The operation, where there is one.
    pub fn op(&self) -> Op {
        Op::ALL[self.choices[OP]]
    }

    /// Whether ranks work in place where they can.
    pub fn is_in_place(&self) -> bool {
        Place::ALL[self.choices[PLACE]] == Place::Same
    }

    /// How the elements of the input lie, or, in a broadcast, those of the root.
    pub fn send(&self) -> Shape {
        Shape::ALL[self.choices[SEND]]
    }

    /// How the elements of the output lie.
    pub fn receive(&self) -> Shape {
        Shape::ALL[self.choices[RECEIVE]]
    }

    /// How the call is made.
    pub fn mode(&self) -> Mode {
        Mode::ALL[self.choices[MODE]]
    }

    /// The protocols.
    pub fn backend(&self) -> BackendChoice {
        BACKENDS[self.choices[BACKEND]]
    }

    /// The same with as many ranks as a job has, if that is a number of [`RANKS`], and its protocols.
    pub fn moved_to(mut self, ranks: usize, backend: BackendChoice) -> Self {
        self.choices[RANK] = RANKS.iter().position(|one| *one == ranks).unwrap_or(0);
        self.choices[BACKEND] = BACKENDS.iter().position(|one| *one == backend).unwrap_or(0);
        Self::new(self.choices, self.seed)
    }
}

/// As `collective=scan ranks=3 ... seed=5`.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((name, words), choice) in WORDS.iter().zip(self.choices) {
            write!(f, "{name}={} ", words[choice])?;
        }
        write!(f, "seed={}", self.seed)
    }
}

/// Parameters that are not named have their first values.
impl FromStr for Case {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut choices, mut seed) = ([0; PARAMETERS], 0);
        for part in text.split_whitespace() {
            let (name, word) = part.split_once('=').ok_or(format!("{part:?} is no name=value"))?;
            if name == "seed" {
                seed = word.parse().map_err(|_| format!("{word:?} is no seed"))?;
                continue;
            }
            let parameter = WORDS.iter().position(|(known, _)| *known == name);
            let parameter = parameter.ok_or(format!("{name:?} is no parameter"))?;
            let words = WORDS[parameter].1;
            let choice = words.iter().position(|known| *known == word);
            choices[parameter] = choice.ok_or(format!("{name} is one of {words:?}"))?;
        }
        Ok(Self::new(choices, seed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_read_as_they_are_written() {
        let mut numbers = Numbers(1);
        for _ in 0..2_000 {
            let case = Case::random(&mut numbers);
            assert_eq!(case.to_string().parse(), Ok(case), "{case}");
            assert_eq!(Case::new(case.choices(), case.seed), case, "{case} is settled");
        }
        assert_eq!("ranks=10".parse::<Case>().unwrap_err().split(' ').next(), Some("ranks"));
        assert!("rank=1".parse::<Case>().is_err() && "ranks".parse::<Case>().is_err());
    }
}
