//! The values that can be tuned to a machine: which protocol carries which size, how long messages are cut, how long a
//! wait spins.
//!
//! The launcher reads them from a file, once per job, and passes them to the ranks as one word ([`Tuning::to_string`]),
//! which they parse and check again: all ranks of a job have the same values.
//!
//! - TV1: a [`Tuning`] is within the limits below, however it was made.

use std::fmt;
use std::str::FromStr;

use super::{Keyword, Ranges, RangesError};

/// The two ways to carry a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// One Amsend carries envelope and data.
    Eager,
    /// Amsend carries the envelope, the receiver fetches the data with Get.
    Rendezvous,
}

impl Keyword for Protocol {
    const WORDS: &'static [(&'static str, Self)] =
        &[("eager", Self::Eager), ("rendezvous", Self::Rendezvous)];
}

/// A circumstance, other than the length of a message, that favours rendezvous.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Circumstance {
    /// The data are in huge pages: the kernel walks their page tables so much faster that one copy beats the pipeline's
    /// two.
    HugePages,
    /// Messages of this length to this rank were measured to take less time by rendezvous. With more ranks than
    /// processors nothing is measured; then: the message is long and alone on its way, and the processor is near.
    Cheaper,
}

/// The length from which on the cheaper protocol is measured.
pub const CHEAPER_FROM: usize = 32 << 10;

/// The length from which on each circumstance selects rendezvous, if the protocol is chosen by size and Get reads
/// memory directly.
pub const RENDEZVOUS_FROM: [(usize, Circumstance); 2] =
    [(128 << 10, Circumstance::HugePages), (CHEAPER_FROM, Circumstance::Cheaper)];

/// Bounds of the protocol table, in bytes.
const BOUND: Legal = Legal { least: 256, most: 1 << 30, step: 256 };
/// Sizes of frames, and bounds of the ranges that select them, in bytes.
const FRAME: Legal = Legal { least: 4 << 10, most: 1 << 20, step: 4 << 10 };
const FRAME_BOUND: Legal = Legal { least: 4 << 10, most: 1 << 30, step: 4 << 10 };
/// Turns of polling in a spin.
const SPIN: Legal = Legal { least: 20, most: 1_000_000, step: 1 };

/// The legal numbers of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Legal {
    least: usize,
    most: usize,
    step: usize,
}

impl Legal {
    fn check(self, field: &'static str, value: usize) -> Result<(), TuningError> {
        let holds = (self.least..=self.most).contains(&value) && value % self.step == 0;
        if holds { Ok(()) } else { Err(TuningError::Value { field, value, legal: self }) }
    }
}

impl fmt::Display for Legal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { least, most, step } = self;
        match step {
            1 => write!(f, "a number from {least} to {most}"),
            _ => write!(f, "a multiple of {step} from {least} to {most}"),
        }
    }
}

/// Why values were refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TuningError {
    /// A table of size ranges is not valid.
    #[error("{field}: {source}")]
    Ranges {
        /// The name of the value.
        field: &'static str,
        /// What is wrong with it.
        source: RangesError,
    },
    /// A number is outside its limits.
    #[error("{field} is {value}; it has to be {legal}")]
    Value {
        /// The name of the value.
        field: &'static str,
        /// The value.
        value: usize,
        /// The legal values.
        legal: Legal,
    },
}

/// The pieces of long messages: messages of up to [`Pieces::whole`] bytes travel as one frame, longer ones in pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pieces {
    whole: usize,
    sizes: Ranges<usize>,
}

impl Pieces {
    /// Makes the pieces for messages that are cut if longer than `whole` bytes. `sizes` determines the length of their
    /// pieces by the length of the message, both in bytes.
    ///
    /// # Errors
    /// [`TuningError::Value`] for a number that is not a multiple of 4096 within the limits, or a bound that is not
    /// above `whole`.
    pub fn new(whole: usize, sizes: Ranges<usize>) -> Result<Self, TuningError> {
        FRAME.check("pieces.whole_up_to", whole)?;
        sizes.values().iter().try_for_each(|&size| FRAME.check("pieces.bytes", size))?;
        let above = Legal { least: whole + FRAME.step, ..FRAME_BOUND };
        sizes.bounds().iter().try_for_each(|&bound| above.check("pieces.bounds", bound))?;
        Ok(Self { whole, sizes })
    }

    /// Returns the longest message that travels as one frame, in bytes.
    #[inline]
    pub fn whole(&self) -> usize {
        self.whole
    }

    /// Returns the size of the pieces of a message of `len` bytes.
    pub fn size(&self, len: usize) -> usize {
        self.sizes.of(len)
    }

    /// Returns the sizes of pieces by the length of the message.
    pub fn sizes(&self) -> &Ranges<usize> {
        &self.sizes
    }

    /// The same pieces, limited to frames whose bodies have at most `max_body` bytes.
    pub(crate) fn within(&self, max_body: usize) -> Self {
        let values = self.sizes.values().iter().map(|&size| size.min(max_body)).collect();
        let sizes = Ranges::new(self.sizes.bounds().to_vec(), values);
        Self { whole: self.whole.min(max_body), sizes: sizes.expect("the bounds are as before") }
    }
}

/// Small enough that both ends work at once, and large enough that the cost per piece does not matter.
impl Default for Pieces {
    fn default() -> Self {
        let sizes = Ranges::new(vec![128 << 10, 512 << 10], vec![16 << 10, 32 << 10, 64 << 10]);
        Self { whole: 16 << 10, sizes: sizes.expect("ascending") }
    }
}

/// The tuned values of a job (TV1). The default values are built in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tuning {
    protocols: Ranges<Protocol>,
    pieces: Pieces,
    spin: u32,
}

impl Tuning {
    /// Makes tuned values. `protocols` selects the protocol by size if the backend leaves that open, `pieces` cuts
    /// eager messages, and `spin` is how many turns a waiting rank with a processor of its own polls before its first
    /// yield.
    ///
    /// # Errors
    /// [`TuningError::Value`] for bounds of protocols that are not multiples of 256 from 256 bytes
    /// to 1 GiB, or a spin that is not from 20 to 1,000,000.
    pub fn new(
        protocols: Ranges<Protocol>,
        pieces: Pieces,
        spin: u32,
    ) -> Result<Self, TuningError> {
        let mut bounds = protocols.bounds().iter();
        bounds.try_for_each(|&bound| BOUND.check("protocols.bounds", bound))?;
        SPIN.check("wait.spin", spin as usize)?;
        Ok(Self { protocols, pieces, spin })
    }

    /// Returns the protocols by message size.
    pub fn protocols(&self) -> &Ranges<Protocol> {
        &self.protocols
    }

    /// Returns how eager messages are cut.
    pub fn pieces(&self) -> &Pieces {
        &self.pieces
    }

    /// Returns the turns of polling before the first yield.
    pub fn spin(&self) -> u32 {
        self.spin
    }
}

impl Default for Tuning {
    /// Up to 16 MiB the copying pipeline keeps both processors busy and beats the one-copy Get on ordinary pages. Above
    /// it, a message without a posted receive would take an unreasonable amount of early memory. The spin takes about
    /// as long as a wake-up across processors.
    fn default() -> Self {
        let protocols = vec![Protocol::Eager, Protocol::Rendezvous];
        let protocols = Ranges::new(vec![16 << 20], protocols).expect("ascending");
        Self { protocols, pieces: Pieces::default(), spin: 4_000 }
    }
}

/// `eager<=16777216,rendezvous;8192;8192<=32768,65536;4000`: protocols, whole messages, pieces, spin.
impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocols = listed(&self.protocols, |protocol| protocol.word().to_owned());
        let pieces = listed(&self.pieces.sizes, |size| size.to_string());
        write!(f, "{protocols};{};{pieces};{}", self.pieces.whole, self.spin)
    }
}

fn listed<T: Copy>(ranges: &Ranges<T>, word: impl Fn(T) -> String) -> String {
    let entries = ranges.iter().map(|(bound, value)| match bound {
        Some(bound) => format!("{}<={bound}", word(value)),
        None => word(value),
    });
    entries.collect::<Vec<_>>().join(",")
}

/// The text was not written by [`Tuning`], or is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the tuning of a job")]
pub struct NotATuning;

impl FromStr for Tuning {
    type Err = NotATuning;

    fn from_str(text: &str) -> Result<Self, NotATuning> {
        let fields: Vec<&str> = text.split(';').collect();
        let &[protocols, whole, pieces, spin] = &fields[..] else { return Err(NotATuning) };
        let sizes = unlisted(pieces, |word| word.parse().ok())?;
        let whole = whole.parse().map_err(|_| NotATuning)?;
        let pieces = Pieces::new(whole, sizes).map_err(|_| NotATuning)?;
        let spin = spin.parse().map_err(|_| NotATuning)?;
        Self::new(unlisted(protocols, Protocol::from_word)?, pieces, spin).map_err(|_| NotATuning)
    }
}

fn unlisted<T: Copy>(text: &str, value: fn(&str) -> Option<T>) -> Result<Ranges<T>, NotATuning> {
    let (mut bounds, mut values) = (Vec::new(), Vec::new());
    for entry in text.split(',') {
        let (word, bound) = entry.split_once("<=").map_or((entry, None), |(w, b)| (w, Some(b)));
        values.push(value(word).ok_or(NotATuning)?);
        let bound = bound.map(str::parse::<usize>).transpose().map_err(|_| NotATuning)?;
        bounds.extend(bound);
    }
    Ranges::new(bounds, values).map_err(|_| NotATuning)
}

#[cfg(test)]
mod tests;
