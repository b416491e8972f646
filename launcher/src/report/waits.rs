//! Who waits for whom: the shortest cycle, or if there is none, chains and the ranks at their ends.
//!
//! A rank waits for the peers of the first open operations of its threads. At its end, and in a collective operation
//! that needs all ranks, it waits for those that have not come. A receive from any rank names no peer, and neither does
//! any other collective operation: such a wait counts only if no rank names a peer, and then it is for all. A rank
//! whose process is stopped waits for nobody: its message may have come.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::INDENT;
use super::collective_arrivals;
use super::format::{and_more, operation, source};
use super::graph::{longest_chains, shortest_cycle};
use super::standing::Standing;
use super::waiting::Waiting;

/// Most steps of a cycle or chain.
const MAX_STEPS: usize = 16;
/// Most chains.
const MAX_CHAINS: usize = 4;

/// The advice about a cycle with a send: a program that works with short messages may hang with long ones.
const SENDS: &str = "mpjrun:   a send in the cycle waits for its receive, as long and synchronous ones do: use \
                     sendrecv or isend, or receive first\n";

/// For each rank, the ranks that it waits for, each with the first wait for it.
type Targets<'a> = Vec<BTreeMap<usize, Waiting<'a>>>;

/// The lines about the waits of the ranks; empty if nobody waits.
pub(super) fn text(standings: &[Standing<'_>]) -> String {
    let mut targets = targets(standings, named);
    if targets.iter().all(BTreeMap::is_empty) {
        targets = self::targets(standings, anybody);
    }
    let edges: Vec<Vec<usize>> = targets.iter().map(|to| to.keys().copied().collect()).collect();
    let (text, mut paths) = match shortest_cycle(&edges) {
        Some(cycle) => {
            let line = cycle_line(&cycle, &targets, standings);
            (line, vec![[&cycle[..], &cycle[..1]].concat()])
        }
        None => {
            let mut chains = longest_chains(&edges);
            chains.retain(|chain| !is_gathering_alone(chain, &targets));
            (chain_lines(&chains, &targets, standings), chains)
        }
    };
    paths.truncate(MAX_CHAINS);
    text + &collective_arrivals::text(standings, &paths)
}

/// Whether the line about a gathering says as much as the chain does.
fn is_gathering_alone(chain: &[usize], targets: &Targets<'_>) -> bool {
    let [first, last] = chain else { return false };
    targets[*first].get(last).is_some_and(Waiting::is_of_all)
}

fn targets<'a>(
    standings: &[Standing<'a>],
    peers: fn(usize, &Waiting<'_>, &[Standing<'_>]) -> Vec<usize>,
) -> Targets<'a> {
    let mut targets = vec![BTreeMap::new(); standings.len()];
    let moving = standings.iter().enumerate().filter(|(_, standing)| !standing.is_halted());
    for (rank, standing) in moving {
        for wait in standing.holding() {
            for peer in peers(rank, &wait, standings) {
                targets[rank].entry(peer).or_insert(wait);
            }
        }
    }
    targets
}

/// The ranks that a wait names. Nobody waits for a rank that does not exist (RE1).
fn named(rank: usize, wait: &Waiting<'_>, standings: &[Standing<'_>]) -> Vec<usize> {
    let absent =
        wait.is_of_all().then(|| collective_arrivals::absent(rank, wait, standings)).flatten();
    match (absent, wait.peer) {
        (Some(absent), _) if !absent.is_empty() => absent,
        (_, Some(peer)) if (peer as usize) < standings.len() => vec![peer as usize],
        _ => Vec::new(),
    }
}

/// All other ranks, for a wait that names none.
fn anybody(rank: usize, wait: &Waiting<'_>, standings: &[Standing<'_>]) -> Vec<usize> {
    match wait.peer {
        _ if wait.at_end => Vec::new(),
        Some(_) => Vec::new(),
        None if wait.is_collective() => {
            collective_arrivals::absent(rank, wait, standings).unwrap_or_default()
        }
        None => (0..standings.len()).filter(|&other| other != rank).collect(),
    }
}

fn cycle_line(cycle: &[usize], targets: &Targets<'_>, standings: &[Standing<'_>]) -> String {
    let pairs = || cycle.iter().zip(cycle.iter().cycle().skip(1));
    let mut steps: Vec<String> =
        pairs().map(|(&rank, &next)| step(rank, next, targets, standings)).collect();
    steps.push(name(cycle[0], standings));
    let sends = |(&rank, next): (&usize, &usize)| {
        let wait = targets[rank].get(next);
        wait.is_some_and(|wait| wait.sends && !wait.space.is_collective)
    };
    let advice = if pairs().any(sends) { SENDS } else { "" };
    format!("{INDENT}cycle: {}\n{advice}", joined(steps))
}

fn chain_lines(chains: &[Vec<usize>], targets: &Targets<'_>, standings: &[Standing<'_>]) -> String {
    let mut text = String::new();
    for chain in chains.iter().take(MAX_CHAINS) {
        let pairs = chain.windows(2);
        let mut steps: Vec<String> =
            pairs.map(|pair| step(pair[0], pair[1], targets, standings)).collect();
        steps.extend(chain.last().map(|&end| chain_end(end, standings)));
        // Writing to a string does not fail.
        let _ = writeln!(text, "{INDENT}chain: {}", joined(steps));
    }
    text + &and_more(chains.len(), MAX_CHAINS, "chains")
}

/// A rank, with its host in a job of several: `0 on node1`.
fn name(rank: usize, standings: &[Standing<'_>]) -> String {
    standings[rank].host.map_or(rank.to_string(), |host| format!("{rank} on {host}"))
}

/// `0 waits for 1 (recv tag 7)`.
fn step(rank: usize, next: usize, targets: &Targets<'_>, standings: &[Standing<'_>]) -> String {
    let name = name(rank, standings);
    match targets[rank].get(&next) {
        Some(wait) if wait.peer.is_none() && !wait.is_for_others() => {
            format!("{name} waits for {} ({})", source(wait.peer), operation(wait))
        }
        Some(wait) => format!("{name} waits for {next} ({})", operation(wait)),
        None => name,
    }
}

fn chain_end(rank: usize, standings: &[Standing<'_>]) -> String {
    let (standing, rank) = (&standings[rank], name(rank, standings));
    match standing.holding().next().filter(|_| !standing.is_halted()) {
        Some(wait) if wait.peer.is_none() && wait.is_for_others() => {
            format!("{rank} waits for others ({})", operation(&wait))
        }
        Some(wait) => format!("{rank} waits for {} ({})", source(wait.peer), operation(&wait)),
        None => format!("{rank} ({})", standing.brief()),
    }
}

/// The steps joined by arrows, without those in the middle if there are too many.
fn joined(mut steps: Vec<String>) -> String {
    if let Some(gap @ 1..) = steps.len().checked_sub(MAX_STEPS) {
        let more = format!("... ({} more) ...", gap + 1);
        steps.splice(MAX_STEPS / 2..=MAX_STEPS / 2 + gap, [more]);
    }
    steps.join(" -> ")
}
