//! The protocol of a message: a table that is made when the job starts, and one function that reads it.
//!
//! The first row of the table that applies decides: by the length of the message, by [`Facts`] that are known when it
//! is sent, and by whether there is credit for it. Some facts are of the target ([`Facts::of_target`]): what reads the
//! data decides where they may stay. So length alone decides where circumstances are the same: the table keeps
//! [`Ranges`] of lengths for each set of circumstances, and a choice reads those. No time is measured and nothing is
//! learned. The rows for kinds of processors rest on the tables in `benches/NOTES.md`.

pub(crate) mod huge;

use std::collections::BTreeSet;

pub use huge::HugeRange;
pub use transport_lapi::Processor;
use transport_lapi::Ranges;
use transport_lapi::adapter::{Caps, GetKind};
use transport_lapi::config::{BackendChoice, Settings};

/// The two ways to carry a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// One active message carries envelope and data.
    Eager,
    /// An active message carries the envelope, and the receiver fetches the data.
    Rendezvous,
}

/// What is known of a message, besides its length, when it is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Facts {
    /// The receiver can read the data where they are: they are one span of memory, go to another rank, and a get reads
    /// memory. Reads by software of a network do not count: they copy as often as eager messages.
    pub readable: bool,
    /// It is a network that reads them, and no processor of the receiver. Then the next two do not matter, and are `false`.
    pub by_network: bool,
    /// The data are in huge pages.
    pub huge_pages: bool,
    /// There is a processor for each rank.
    pub own_processor: bool,
}

impl Facts {
    /// Returns what is known of a message by what the adapter can do with its target, if its data are one span.
    pub fn of_target(caps: &Caps) -> Self {
        let by_network = caps.gets == Some(GetKind::RemoteDirect);
        let readable = caps.gets.is_some_and(|kind| kind != GetKind::RemoteSoftware);
        Self { readable, by_network, ..Self::default() }
    }

    /// The conditions that hold: a bit for each.
    fn conditions(self, has_credit: bool) -> usize {
        let Self { readable, by_network, huge_pages, own_processor } = self;
        When::NoCredit.bit(!has_credit)
            | When::ByNetwork.bit(readable && by_network)
            | When::HugePages.bit(readable && huge_pages)
            | When::OwnProcessor.bit(readable && own_processor)
    }
}

/// The messages that a row is for. All but the first two need data that the receiver can read ([`Facts::readable`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// All.
    Always = 0,
    /// Those for which there is no credit, since they or earlier ones fill the receiver's memory for unexpected
    /// messages.
    NoCredit,
    /// Those whose data a network reads.
    ByNetwork,
    /// Those whose data are in huge pages.
    HugePages,
    /// Those of ranks that have a processor each.
    OwnProcessor,
}

/// Sets of conditions, of which each but the first of [`When`] is one.
const CONDITIONS: usize = 1 << When::OwnProcessor as usize;

impl When {
    /// Its bit in a set of conditions, if it `holds`.
    fn bit(self, holds: bool) -> usize {
        (usize::from(holds) << self as usize) >> 1
    }
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The shortest messages that it is for, in bytes.
    pub from: usize,
    /// Which of these messages it is for.
    pub when: When,
    /// How they travel.
    pub protocol: Protocol,
    /// Why they travel so.
    pub because: &'static str,
}

impl Row {
    const fn rendezvous(from: usize, when: When, because: &'static str) -> Self {
        Self { from, when, protocol: Protocol::Rendezvous, because }
    }

    /// Whether it is for messages of so many bytes under these conditions.
    fn applies(&self, len: usize, conditions: usize) -> bool {
        let holds = self.when == When::Always || conditions & self.when.bit(true) != 0;
        holds && len >= self.from
    }
}

/// The longest eager message, where nothing else decides.
const EAGER_UP_TO: usize = 16 << 20;

/// The shortest message that a network reads, where nothing else decides.
const BY_NETWORK_FROM: usize = 256 << 10;

const NO_CREDIT: Row = Row::rendezvous(
    0,
    When::NoCredit,
    "the receiver's memory for unexpected messages is limited (MPJ_EARLY_LIMIT)",
);
const BY_NETWORK: Row = Row::rendezvous(
    BY_NETWORK_FROM,
    When::ByNetwork,
    "the network reads it without copies at either end",
);
const HUGE_PAGES: Row = Row::rendezvous(
    128 << 10,
    When::HugePages,
    "huge pages are read several times faster than others",
);
const LONG: Row = Row::rendezvous(
    EAGER_UP_TO + 1,
    When::Always,
    "without a posted receive it would take too much memory of the receiver",
);

/// What was measured to be faster on Intel's processors.
const INTEL: [Row; 1] = [Row::rendezvous(
    256 << 10,
    When::OwnProcessor,
    "one copy is faster on Intel without cldemote",
)];
const INTEL_WITH_DEMOTE: [Row; 1] =
    [Row::rendezvous(1 << 20, When::OwnProcessor, "one copy is faster on Intel with cldemote")];

/// The table by which a rank chooses the protocols of its messages. The first row that applies decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    rows: Vec<Row>,
    /// The protocols by length, for each set of conditions.
    ranges: [Ranges<Protocol>; CONDITIONS],
}

/// Returns whether puts and gets of windows go by hardware of a network, which reads and writes the memory of a
/// target with which the adapter can do this.
pub fn by_hardware(caps: &Caps) -> bool {
    caps.gets == Some(GetKind::RemoteDirect) && caps.puts
}

impl Table {
    /// Makes the table that settings and the kind of the processors describe.
    ///
    /// ```
    /// use mpjdev::{Facts, Processor, Protocol, Settings, Table};
    /// let table = Table::of(&Settings::default(), Processor::Other);
    /// assert_eq!(table.choose(1 << 20, Facts::default(), true), Protocol::Eager);
    /// assert_eq!(table.choose(1 << 20, Facts::default(), false), Protocol::Rendezvous);
    /// ```
    pub fn of(settings: &Settings, processor: Processor) -> Self {
        let eager =
            |because| Row { from: 0, when: When::Always, protocol: Protocol::Eager, because };
        let copied = eager("both ends copy at the same time");
        let rows = match (settings.backend, settings.eager_up_to) {
            (BackendChoice::Eager, _) => vec![NO_CREDIT, eager("MPJ_BACKEND")],
            (BackendChoice::Rendezvous, _) => vec![Row::rendezvous(0, When::Always, "MPJ_BACKEND")],
            (BackendChoice::Auto, Some(longest)) => {
                let above = longest.saturating_add(1);
                vec![NO_CREDIT, Row::rendezvous(above, When::Always, "MPJ_EAGER_UP_TO"), copied]
            }
            (BackendChoice::Auto, None) => {
                let measured: &[Row] = match processor {
                    Processor::Intel => &INTEL,
                    Processor::IntelWithDemote => &INTEL_WITH_DEMOTE,
                    Processor::Other => &[],
                };
                [&[NO_CREDIT, BY_NETWORK, HUGE_PAGES], measured, &[LONG, copied]].concat()
            }
        };
        Self::of_rows(rows)
    }

    fn of_rows(rows: Vec<Row>) -> Self {
        let starts = rows.iter().filter_map(|row| row.from.checked_sub(1));
        let bounds: BTreeSet<usize> = starts.chain([usize::MAX]).collect();
        let ranges = std::array::from_fn(|conditions| {
            let protocol = |len: usize| {
                let row = rows.iter().find(|row| row.applies(len, conditions));
                row.map_or(Protocol::Eager, |row| row.protocol)
            };
            let all: Vec<_> = bounds.iter().map(|&bound| (bound as u64, protocol(bound))).collect();
            // The last range of each run of equal protocols stands for the run.
            let runs = all.chunk_by(|one, next| one.1 == next.1);
            Ranges::new(runs.map(|run| run[run.len() - 1])).expect("a set ascends")
        });
        Self { rows, ranges }
    }

    /// Makes a table by length alone. `steps` are lengths, ascending, and the protocol of messages from there on;
    /// shorter messages go eagerly.
    ///
    /// ```
    /// use mpjdev::{Protocol::{Eager, Rendezvous}, Table};
    /// let table = Table::by_length(&[(0, Eager), (101, Rendezvous)]);
    /// assert_eq!((table.protocol(100), table.protocol(101)), (Eager, Rendezvous));
    /// ```
    pub fn by_length(steps: &[(usize, Protocol)]) -> Self {
        let row =
            |&(from, protocol)| Row { from, when: When::Always, protocol, because: "its length" };
        Self::of_rows(std::iter::once(NO_CREDIT).chain(steps.iter().rev().map(row)).collect())
    }

    /// Returns the rows, in the order in which they are tried.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Iterates over the rows that may apply to messages for a target with which the adapter can do this.
    pub fn rows_for(&self, caps: &Caps) -> impl Iterator<Item = &Row> {
        let Facts { readable, by_network, .. } = Facts::of_target(caps);
        self.rows.iter().filter(move |row| match row.when {
            When::Always | When::NoCredit => true,
            When::ByNetwork => by_network,
            When::HugePages | When::OwnProcessor => readable && !by_network,
        })
    }

    /// Chooses the protocol of a message of `len` bytes.
    pub fn choose(&self, len: usize, facts: Facts, has_credit: bool) -> Protocol {
        *self.ranges[facts.conditions(has_credit)].choose_or_last(len as u64)
    }

    /// Returns the protocol of messages of `len` bytes of which no fact holds, while there is credit.
    pub fn protocol(&self, len: usize) -> Protocol {
        self.choose(len, Facts::default(), true)
    }

    /// Returns the shortest messages, ascending, that go by another protocol than shorter ones, for messages of which
    /// no fact holds.
    pub fn steps(&self) -> impl Iterator<Item = usize> {
        let rows = self.ranges[Facts::default().conditions(true)].rows();
        rows[..rows.len() - 1].iter().map(|(bound, _)| *bound as usize + 1)
    }

    /// Returns the length below which no fact matters; `usize::MAX` if none ever does.
    pub fn facts_from(&self) -> usize {
        let on_facts = |row: &&Row| !matches!(row.when, When::Always | When::NoCredit);
        self.rows.iter().filter(on_facts).map(|row| row.from).min().unwrap_or(usize::MAX)
    }

    /// Returns the length below which messages go eagerly whatever the facts are, while there is credit.
    pub fn eager_below(&self) -> usize {
        let with_credit = (0..CONDITIONS).filter(|set| set & When::NoCredit.bit(true) == 0);
        let below = with_credit.map(|set| match self.ranges[set].rows() {
            [(_, Protocol::Rendezvous), ..] => 0,
            [_] => usize::MAX,
            [(bound, _), ..] => *bound as usize + 1,
            [] => unreachable!("ranges are not empty"),
        });
        below.min().expect("there are sets of conditions")
    }
}

#[cfg(test)]
mod tests;
