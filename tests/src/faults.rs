//! Faults of ranks: what happens to a rank, when, and what the launcher has to say about it.
//!
//! The fault campaign (`tests/tests/faults.rs`) draws a [`Fault`] from a seed, the rank program
//! (`src/bin/victim.rs`) gets it as arguments and carries it out.

use rustix::process::Signal;
use transport_lapi::config::inherited;

use crate::conformance::Numbers;

/// The first seed of a campaign, unless another one is given: even with so few [`ROUNDS`], every stage meets every way
/// to fail.
pub const FIRST_SEED: u64 = 39_923;
/// Rounds of a campaign, unless another number is given.
pub const ROUNDS: u64 = 120;

/// What the job does when a rank fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The ranks join.
    Init,
    /// Short messages go around.
    Eager,
    /// Envelopes of long messages have come, and no data have been fetched.
    BeforeGet,
    /// Long messages are being fetched.
    DuringGet,
    /// A message has just been fetched.
    AfterGet,
    /// The ranks meet in barriers.
    Barrier,
    /// The ranks leave.
    Exit,
}

/// How a rank fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// A signal of this number ends it.
    Signal(i32),
    /// It exits with this code in the middle of the program.
    Code(i32),
    /// It panics.
    Panic,
    /// It calls `std::process::abort`.
    Abort,
    /// It calls `mpj::abort` with this code.
    Call(i32),
    /// Nothing fails: its neighbour stops it (SIGSTOP) and lets it go on, several times.
    Pause,
    /// It kills the launcher (SIGKILL).
    Orphan,
}

/// One fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Ranks of the job.
    pub ranks: usize,
    /// The one that fails.
    pub rank: usize,
    /// What they do.
    pub stage: Stage,
    /// What happens.
    pub how: How,
    /// When, in microseconds after the stage has begun.
    pub micros: u64,
}

/// Every stage with its word.
const STAGES: [(&str, Stage); 7] = [
    ("init", Stage::Init),
    ("eager", Stage::Eager),
    ("before-get", Stage::BeforeGet),
    ("during-get", Stage::DuringGet),
    ("after-get", Stage::AfterGet),
    ("barrier", Stage::Barrier),
    ("exit", Stage::Exit),
];

/// Signals that end a process, whatever its language's runtime does about faults.
const SIGNALS: [Signal; 4] = [Signal::KILL, Signal::TERM, Signal::ILL, Signal::USR1];

impl Stage {
    fn word(self) -> &'static str {
        let row = STAGES.iter().find(|(_, stage)| *stage == self);
        row.expect("every stage has a row").0
    }

    /// Whether messages have to go by rendezvous.
    pub fn is_rendezvous(self) -> bool {
        matches!(self, Self::BeforeGet | Self::DuringGet | Self::AfterGet)
    }
}

impl How {
    fn of_seed(numbers: &mut Numbers) -> Self {
        match numbers.below(14) {
            0..=3 => Self::Signal(SIGNALS[numbers.below(SIGNALS.len())].as_raw()),
            4 | 5 => Self::Code(1 + numbers.below(100) as i32),
            6 | 7 => Self::Panic,
            8 | 9 => Self::Abort,
            10 => Self::Pause,
            11 | 12 => Self::Call(numbers.below(256) as i32),
            _ => Self::Orphan,
        }
    }

    fn words(self) -> [String; 2] {
        let (word, number) = match self {
            Self::Signal(signal) => ("signal", signal),
            Self::Code(code) => ("code", code),
            Self::Panic => ("panic", 0),
            Self::Abort => ("abort", 0),
            Self::Call(code) => ("call", code),
            Self::Pause => ("pause", 0),
            Self::Orphan => ("orphan", 0),
        };
        [word.to_owned(), number.to_string()]
    }

    fn from_words(word: &str, number: i32) -> Option<Self> {
        Some(match word {
            "signal" => Self::Signal(number),
            "code" => Self::Code(number),
            "panic" => Self::Panic,
            "abort" => Self::Abort,
            "call" => Self::Call(number),
            "pause" => Self::Pause,
            "orphan" => Self::Orphan,
            _ => return None,
        })
    }

    /// The launcher's exit code; `None` if the launcher is killed.
    pub fn exit_code(self) -> Option<i32> {
        match self {
            Self::Signal(signal) => Some(128 + signal),
            Self::Code(code) => Some(code),
            // An aborted job has not succeeded.
            Self::Call(code) => Some(code.max(1)),
            Self::Panic => Some(101),
            Self::Abort => Some(128 + Signal::ABORT.as_raw()),
            Self::Pause => Some(0),
            Self::Orphan => None,
        }
    }

    /// What the launcher must say about it.
    pub fn cause(self) -> String {
        match self {
            Self::Signal(signal) => format!("signal {signal} (SIG"),
            Self::Code(code) | Self::Call(code) => format!("code {code}"),
            Self::Panic => "goes overboard".to_owned(),
            Self::Abort => "(SIGABRT)".to_owned(),
            Self::Pause | Self::Orphan => String::new(),
        }
    }
}

impl Fault {
    /// The fault that a seed stands for.
    pub fn of_seed(seed: u64) -> Self {
        let mut numbers = Numbers(seed);
        let ranks = 2 + numbers.below(4);
        let rank = numbers.below(ranks);
        let (_, stage) = STAGES[numbers.below(STAGES.len())];
        let how = How::of_seed(&mut numbers);
        // Most failures come soon, since most of what can go wrong happens at the beginning of a stage.
        let micros = [200, 2_000, 10_000][numbers.below(3)];
        Self { ranks, rank, stage, how, micros: numbers.below(micros) as u64 }
    }

    /// The arguments that describe it to a rank.
    pub fn words(&self) -> Vec<String> {
        let [how, number] = self.how.words();
        let (rank, micros) = (self.rank.to_string(), self.micros.to_string());
        vec![self.stage.word().to_owned(), how, number, rank, micros]
    }

    /// The fault that the arguments of a rank describe; the number of ranks is not among them.
    pub fn from_words(words: &[String]) -> Option<Self> {
        let [stage, how, number, rank, micros] = words else { return None };
        let (_, stage) = *STAGES.iter().find(|(word, _)| word == stage)?;
        let how = How::from_words(how, number.parse().ok()?)?;
        let (rank, micros) = (rank.parse().ok()?, micros.parse().ok()?);
        Some(Self { ranks: 0, rank, stage, how, micros })
    }
}

/// A number from the environment of the tests, for longer runs and other seeds.
///
/// # Panics
/// When the variable is set to something else than a number.
pub fn asked(variable: &str, otherwise: u64) -> u64 {
    let Some(text) = inherited(variable) else { return otherwise };
    let number = text.to_str().and_then(|text| text.parse().ok());
    number.unwrap_or_else(|| panic!("{variable} is not a number: {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_told_all_of_a_fault() {
        for seed in 0..1_000 {
            let fault = Fault::of_seed(seed);
            assert_eq!(Fault::from_words(&fault.words()), Some(Fault { ranks: 0, ..fault }));
        }
    }

    #[test]
    fn every_stage_meets_every_way_to_fail_in_the_usual_rounds() {
        let met = |stage, how: &str| {
            let mut faults = (FIRST_SEED..FIRST_SEED + ROUNDS).map(Fault::of_seed);
            faults.any(|fault| fault.stage == stage && fault.how.words()[0] == how)
        };
        for (word, stage) in STAGES {
            for how in ["signal", "code", "panic", "abort", "call", "pause", "orphan"] {
                assert!(met(stage, how), "{word} {how}");
            }
        }
    }
}
