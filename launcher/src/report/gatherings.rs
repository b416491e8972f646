//! Calls to which all ranks have to come, barriers and the end: who is there, and who is not; and ranks
//! that are in different collective calls of one communicator.

use std::collections::BTreeMap;
use std::fmt::Write;

use transport_lapi::bootstrap::board::{Call, Wait};

use super::INDENT;
use super::standing::Standing;
use super::words::{on_named_communicator, operation_with_peer, ranks};

/// Most gatherings that are told, and most groups of absent ranks of one.
const MAX_GATHERINGS: usize = 4;
const MAX_GROUPS: usize = 4;

/// What a rank comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gathering {
    /// The barrier of a communicator, named by its context.
    Barrier(u64),
    /// The end of all ranks.
    Finish,
}

impl Gathering {
    /// That of a wait, if it is for all.
    fn of(wait: &Wait) -> Option<Self> {
        match wait.call {
            Call::Barrier => Some(Self::Barrier(wait.context)),
            Call::Finish => Some(Self::Finish),
            _ => None,
        }
    }

    fn has(self, standing: &Standing) -> bool {
        match self {
            Self::Finish => standing.is_at_its_end(),
            Self::Barrier(_) => standing.holding().any(|wait| Self::of(wait) == Some(self)),
        }
    }

    /// Those that have come, and those that have not.
    fn split(self, standings: &[Standing]) -> (Vec<usize>, Vec<usize>) {
        (0..standings.len()).partition(|rank| self.has(&standings[*rank]))
    }

    fn name(self) -> String {
        match self {
            Self::Barrier(context) => format!("barrier{}", on_named_communicator(context)),
            Self::Finish => "finish".to_owned(),
        }
    }
}

/// The ranks for which a wait for all waits; `None` where it is no such wait.
pub(super) fn absent(wait: &Wait, standings: &[Standing]) -> Option<Vec<usize>> {
    Gathering::of(wait).map(|gathering| gathering.split(standings).1)
}

/// One line for each gathering that is not complete, beside the `paths`, of cycles and chains, that are
/// told.
pub(super) fn text(standings: &[Standing], paths: &[Vec<usize>]) -> String {
    let waits = standings.iter().flat_map(Standing::holding);
    let mut gatherings: Vec<Gathering> = waits.filter_map(Gathering::of).collect();
    gatherings.sort_unstable();
    gatherings.dedup();
    let told = |gathering: &&Gathering| !gathering.split(standings).1.is_empty();
    let lines: Vec<String> = gatherings
        .iter()
        .filter(told)
        .filter_map(|gathering| {
            let mismatch = mismatch(*gathering, standings);
            mismatch.or_else(|| line(*gathering, standings, paths))
        })
        .collect();
    let mut text: String = lines.iter().take(MAX_GATHERINGS).map(String::as_str).collect();
    if let Some(more @ 1..) = lines.len().checked_sub(MAX_GATHERINGS) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{INDENT}and {more} more barriers");
    }
    text
}

/// Ranks that are in a barrier while others duplicate its communicator.
fn mismatch(gathering: Gathering, standings: &[Standing]) -> Option<String> {
    let Gathering::Barrier(context) = gathering else { return None };
    let duplicates = |rank: &usize| {
        let is_dup = |wait: &Wait| wait.call == Call::Dup && wait.context == context;
        standings[*rank].holding().any(is_dup)
    };
    let (come, absent) = gathering.split(standings);
    let (dup, elsewhere): (Vec<usize>, Vec<usize>) = absent.into_iter().partition(duplicates);
    let mut sides = [(dup.first()?, &dup, "dup"), (come.first()?, &come, "barrier")];
    sides.sort_unstable();
    let [(_, first, first_call), (_, second, second_call)] = sides;
    let (are, first, second) = (are(first), ranks(first), ranks(second));
    let on = on_named_communicator(context);
    let others = match elsewhere.is_empty() {
        true => String::new(),
        false => format!(", {} in neither", ranks(&elsewhere)),
    };
    Some(format!(
        "{INDENT}{first} {are} in {first_call}, {second} in {second_call}{on}{others}: all ranks of a communicator \
         must make the same collective calls in the same order\n"
    ))
}

fn line(gathering: Gathering, standings: &[Standing], paths: &[Vec<usize>]) -> Option<String> {
    let (come, absent) = gathering.split(standings);
    let is_open = |rank: &usize| !standings[*rank].ended_well;
    let hint = match gathering {
        Gathering::Finish if come.iter().any(is_open) => Some(
            " (at the end of main, or out of it by an error, which is printed only after the World is dropped)",
        ),
        Gathering::Finish => Some(" (at the end of main)"),
        _ => None,
    };
    // Of two ranks a cycle or chain has told all.
    let is_step = |pair: &[usize]| come == pair[..1] && absent == pair[1..];
    let is_told = paths.iter().any(|path| path.windows(2).any(is_step));
    if is_told && hint.is_none() {
        return None;
    }
    let (name, hint) = (gathering.name(), hint.unwrap_or_default());
    let mut line = format!("{INDENT}{name}: {} {} come{hint}", ranks(&come), has(&come));
    if !is_told {
        line += &absent_words(&absent, standings, paths);
    }
    Some(line + "\n")
}

/// `; rank 2 has not (recv tag 7 from rank 0)`, without what the paths tell.
fn absent_words(absent: &[usize], standings: &[Standing], paths: &[Vec<usize>]) -> String {
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for &rank in absent {
        let is_on_path = paths.iter().any(|path| path.contains(&rank));
        let has_room = |words: &String| groups.len() < MAX_GROUPS || groups.contains_key(words);
        let words = Some(doing(&standings[rank])).filter(|words| !is_on_path && has_room(words));
        groups.entry(words.unwrap_or_default()).or_default().push(rank);
    }
    let mut groups: Vec<(String, Vec<usize>)> = groups.into_iter().collect();
    groups.sort_by_key(|(_, ranks)| ranks[0]);
    let words = groups.iter().map(|(words, of)| {
        let why = if words.is_empty() { String::new() } else { format!(" ({words})") };
        format!("; {} {} not{why}", ranks(of), has(of))
    });
    words.collect()
}

/// What a rank does instead.
fn doing(standing: &Standing) -> String {
    let wait = standing.holding().next().filter(|_| !standing.is_halted());
    wait.map_or_else(|| standing.brief(), operation_with_peer)
}

fn are(ranks: &[usize]) -> &'static str {
    if ranks.len() == 1 { "is" } else { "are" }
}

fn has(ranks: &[usize]) -> &'static str {
    if ranks.len() == 1 { "has" } else { "have" }
}
