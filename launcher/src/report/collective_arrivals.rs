//! Arrivals at collective calls, to which all members of a space have to come, and the end, to which all ranks of the
//! job have to come. Reports who has come and who has not, and ranks that make different collective calls.
//!
//! Waits in one collective call have the same space and number. Ranks send the members of their spaces with their
//! queues; spaces without a common rank may have the same id.

use std::collections::BTreeSet;

use transport_lapi::bootstrap::control::{SpaceMembers, Vocabulary};
use transport_lapi::bootstrap::waits::{Space, goes_before};

use super::INDENT;
use super::format::{and_more, on_named_space, operation_with_peer, ranks};
use super::standing::Standing;
use super::table::gather;
use super::waiting::Waiting;

/// Most lines, and most groups of absent ranks in one.
const MAX_CALLS: usize = 4;
const MAX_GROUPS: usize = 4;

/// A call to which several ranks have to come.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Arrivals {
    /// A collective call.
    Call {
        space: Space,
        /// Its number among the calls in the space.
        number: Option<i32>,
        /// Who belongs to the space, if that is known.
        members: Option<Vec<usize>>,
        /// The space's name in the program; empty if it has none or that is not known.
        name: String,
    },
    /// The end of all ranks.
    End,
}

/// Which ranks have come to a call.
#[derive(Debug, Default)]
struct Places {
    come: Vec<usize>,
    /// They are in later calls in the space.
    gone_on: Vec<usize>,
    absent: Vec<usize>,
}

/// The collective call that a rank makes: `iallreduce` if it is started. Blocking and started ones do not match
/// (MPI-4.1 section 6.12).
fn made(wait: &Waiting<'_>) -> String {
    let is_started = wait.call != wait.operation;
    format!("{}{}", if is_started { "i" } else { "" }, wait.words.name(wait.operation))
}

impl Arrivals {
    /// The call that `wait` of `rank` belongs to, if any.
    fn of(rank: usize, wait: &Waiting<'_>, standings: &[Standing<'_>]) -> Option<Self> {
        if wait.at_end {
            return Some(Self::End);
        }
        if !wait.is_collective() {
            return None;
        }
        let space = wait.space;
        let listed = |by: &Standing| members(by, space, standings.len(), rank);
        let listed = listed(&standings[rank]).or_else(|| standings.iter().find_map(listed));
        let (members, name) = match listed {
            Some((members, name)) => (Some(members), name),
            None => {
                let are_all = space.label == Some(0);
                (are_all.then(|| (0..standings.len()).collect()), String::new())
            }
        };
        Some(Self::Call { space, number: wait.tag, members, name })
    }

    /// The first wait of a rank in this call.
    fn wait_of<'a>(&self, standing: &Standing<'a>) -> Option<Waiting<'a>> {
        standing.holding().find(|wait| match self {
            Self::End => wait.at_end,
            Self::Call { space, number, .. } => is_in(wait, *space) && wait.tag == *number,
        })
    }

    /// The first wait of a rank in a later call in the same space.
    fn later_of<'a>(&self, standing: &Standing<'a>) -> Option<Waiting<'a>> {
        let Self::Call { space, number: Some(number), .. } = self else { return None };
        let is_later = |wait: &Waiting<'_>| wait.tag.is_some_and(|tag| goes_before(*number, tag));
        standing.holding().find(|wait| is_in(wait, *space) && is_later(wait))
    }

    /// Which of its ranks have come. If its ranks are not known, none is absent.
    fn places(&self, standings: &[Standing<'_>]) -> Places {
        let mut places = Places::default();
        for (rank, standing) in standings.iter().enumerate() {
            let (belongs, has_left) = match self {
                Self::Call { members, .. } => {
                    (members.as_ref().map(|members| members.binary_search(&rank).is_ok()), false)
                }
                Self::End => (Some(true), standing.is_at_its_end()),
            };
            if belongs == Some(false) {
                continue;
            }
            if has_left || self.wait_of(standing).is_some() {
                places.come.push(rank);
            } else if self.later_of(standing).is_some() {
                places.gone_on.push(rank);
            } else if belongs.is_some() {
                places.absent.push(rank);
            }
        }
        places
    }

    /// `, call 3 on communicator 2 "rows" (ranks 0-3)`; nothing for the end.
    fn which(&self, job: usize, words: &Vocabulary) -> String {
        let Self::Call { space, number, members, name } = self else { return String::new() };
        let number = number.map_or(String::new(), |number| format!(", call {number}"));
        let members = match members {
            Some(members) if members.len() < job => format!(" ({})", ranks(members)),
            _ => String::new(),
        };
        [number, on_named_space(*space, name, words), members].concat()
    }
}

/// Whether a wait belongs to a collective operation in this space.
fn is_in(wait: &Waiting<'_>, space: Space) -> bool {
    wait.is_collective() && !wait.at_end && wait.space == space
}

/// The members and the name of a space that `by` has sent, in a job of `job` ranks; `None` if `rank` is not a
/// member.
fn members(
    by: &Standing<'_>,
    space: Space,
    job: usize,
    rank: usize,
) -> Option<(Vec<usize>, String)> {
    let found = by.members_of(space)?;
    let ranges = &found.members[..found.members.len().min(SpaceMembers::MAX_RANGES)];
    let belongs = |rank: &usize| {
        ranges.iter().any(|range| (range.first as usize..=range.last as usize).contains(rank))
    };
    let name = SpaceMembers::new(space, &found.name, Vec::new()).name;
    belongs(&rank).then(|| ((0..job).filter(belongs).collect(), name))
}

/// The ranks that have not come to the call of `wait` of `rank`; `None` if there is none.
pub(super) fn absent(
    rank: usize,
    wait: &Waiting<'_>,
    standings: &[Standing<'_>],
) -> Option<Vec<usize>> {
    Arrivals::of(rank, wait, standings).map(|arrivals| arrivals.places(standings).absent)
}

/// One line for each call that is not complete. `paths` are the cycles and chains that the report lists.
pub(super) fn text(standings: &[Standing<'_>], paths: &[Vec<usize>]) -> String {
    let ranks = standings.iter().enumerate();
    let incomplete: BTreeSet<Arrivals> = ranks
        .flat_map(|(rank, standing)| {
            standing.holding().filter_map(move |wait| Arrivals::of(rank, &wait, standings))
        })
        .collect();
    let lines: Vec<String> =
        incomplete.iter().filter_map(|arrivals| line(arrivals, standings, paths)).collect();
    let text: String = lines.iter().take(MAX_CALLS).map(String::as_str).collect();
    text + &and_more(lines.len(), MAX_CALLS, "collective calls that are not complete")
}

fn line(arrivals: &Arrivals, standings: &[Standing<'_>], paths: &[Vec<usize>]) -> Option<String> {
    let places = arrivals.places(standings);
    let come = || places.come.iter().map(|&rank| (rank, arrivals.wait_of(&standings[rank])));
    let first = come().find_map(|(_, wait)| wait)?;
    let which = arrivals.which(standings.len(), first.words);
    let mut calls: Vec<(String, Vec<usize>)> = Vec::new();
    for (rank, wait) in come().filter_map(|(rank, wait)| Some((rank, wait?))) {
        gather(&mut calls, made(&wait), rank);
    }
    if let (Arrivals::Call { .. }, 2..) = (arrivals, calls.len()) {
        return Some(mismatch(&which, &calls, &places, first.words));
    }
    let is_known = !matches!(arrivals, Arrivals::Call { members: None, .. });
    if is_known && places.absent.is_empty() && places.gone_on.is_empty() {
        return None;
    }
    let is_open = |rank: &usize| !standings[*rank].ended_well;
    let hint = match arrivals {
        Arrivals::End if places.come.iter().any(is_open) => Some(
            " (at the end of main, or out of it by an error, which is printed only after the World is dropped)",
        ),
        Arrivals::End => Some(" (at the end of main)"),
        Arrivals::Call { .. } => None,
    };
    // A cycle or chain says all about two ranks.
    let is_step = |pair: &[usize]| {
        places.come == pair[..1] && places.absent == pair[1..] && places.gone_on.is_empty()
    };
    let is_known_step = paths.iter().any(|path| path.windows(2).any(is_step));
    if is_known_step && hint.is_none() {
        return None;
    }
    let call = if first.at_end { first.name() } else { first.words.name(first.operation) };
    let (come, hint) = (&places.come, hint.unwrap_or_default());
    let mut line = format!("{INDENT}{call}{which}: {} {} come{hint}", ranks(come), has(come));
    for (words, of) in groups(&places.gone_on, |rank| later_words(arrivals, &standings[rank])) {
        line += &format!("; {} {} gone on{words}", ranks(&of), has(&of));
    }
    if !is_known_step {
        line += &absent_words(&places.absent, standings, paths);
    }
    if !is_known {
        line += "; who else belongs to it is not known";
    }
    Some(line + "\n")
}

/// The line about ranks that make different calls in place of the same one.
fn mismatch(
    which: &str,
    calls: &[(String, Vec<usize>)],
    places: &Places,
    words: &Vocabulary,
) -> String {
    let more = calls.len().saturating_sub(MAX_GROUPS);
    let calls = calls.iter().take(MAX_GROUPS);
    let calls: Vec<String> = calls.map(|(made, of)| format!("{} {made}", ranks(of))).collect();
    let mut others = match more {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let elsewhere = [(&places.gone_on, "gone on"), (&places.absent, "not come")];
    let elsewhere = elsewhere.iter().filter(|(of, _)| !of.is_empty());
    others.extend(elsewhere.map(|(of, what)| format!("; {} {} {what}", ranks(of), has(of))));
    format!(
        "{INDENT}ranks call different collectives{which}: {}{others}: all ranks of a {} must make the same collective \
         calls in the same order\n",
        calls.join(", "),
        words.space()
    )
}

/// ` to call 4 (reduce)`.
fn later_words(arrivals: &Arrivals, standing: &Standing<'_>) -> String {
    let later = arrivals.later_of(standing);
    let words = later.and_then(|wait| Some((wait.tag?, wait.words.name(wait.operation))));
    words.map_or(String::new(), |(number, name)| format!(" to call {number} ({name})"))
}

/// Groups ranks by their `words`, in the order of the first ranks. Ranks beyond [`MAX_GROUPS`] have no words.
fn groups(of: &[usize], words: impl Fn(usize) -> String) -> Vec<(String, Vec<usize>)> {
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    for &rank in of {
        let is_known = |words: &String| groups.iter().any(|(known, _)| known == words);
        let has_room = |words: &String| groups.len() < MAX_GROUPS || is_known(words);
        let words = Some(words(rank)).filter(has_room).unwrap_or_default();
        gather(&mut groups, words, rank);
    }
    groups
}

/// `; rank 2 has not (recv tag 7 from rank 0)`, without the details of ranks in the paths.
fn absent_words(absent: &[usize], standings: &[Standing<'_>], paths: &[Vec<usize>]) -> String {
    let words = |rank: usize| match paths.iter().any(|path| path.contains(&rank)) {
        true => String::new(),
        false => format!(" ({})", doing(&standings[rank])),
    };
    let groups = groups(absent, words).into_iter();
    groups.map(|(words, of)| format!("; {} {} not{words}", ranks(&of), has(&of))).collect()
}

/// What an absent rank does.
fn doing(standing: &Standing<'_>) -> String {
    let wait = standing.holding().next().filter(|_| !standing.is_halted());
    wait.map_or_else(|| standing.brief(), |wait| operation_with_peer(&wait))
}

fn has(ranks: &[usize]) -> &'static str {
    if ranks.len() == 1 { "has" } else { "have" }
}
