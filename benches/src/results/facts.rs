//! What a reader has to know of a run before the figures. Used by the text, the page and the results
//! document.

use std::collections::BTreeMap;

use super::wording;
use crate::analysis;
use crate::model::{Face, Header, NEAR_BELOW, Run};
use crate::stats;

/// What to know of a message to a blocked rank; shown wherever its figures are.
pub const WAKEUP: &str = "A rank that spins while it waits is awake at once, and costs a whole \
                          processor: read the send to a blocked rank together with the processor \
                          time while blocked.";

/// The series that [`WAKEUP`] is about, and the one to read together with it.
pub const BLOCKED: [&str; 2] = ["wakeup", "wakeup-cpu"];

/// How figures are made.
const METHOD: &[&str] = &[
    "Every round starts each runtime once per configuration, in random order.",
    "A raw figure is the mean of one timed batch of operations (about 1 ms long, or one operation if \
     that takes longer). So minimum and p99 are of batches, not of single operations.",
    "Buffers are rewritten unless a table says otherwise: the sender stores every word before each send, \
     the receiver reads every word after it, and what storing and reading take alone, measured in the same \
     launch at the same size, is subtracted. Lines that have to be fetched from another processor's cache \
     for it are not: they are the library's doing. Where a batch took no longer than that, the launch has \
     no figure. Goals and claims rest on rewritten buffers. Unchanged ones are sent again and again, so \
     that a receiver may find them in its own cache; cold ones are out of a pool that no cache holds.",
    "A launch is the unit: it counts as one value, the median of its raw figures. A figure is the \
     median of the launches. Its interval holds the true median with at least 95 % (order \
     statistics; it takes six launches).",
    "A ratio is one of times, also where figures are rates: below 1 means that the first one is \
     faster. It is made of pairs of launches, one of each, that are neighbours in \
     time (those of one round first, then the closest, at most two rounds apart) and saw the same \
     face of the machine; no launch is in two pairs.",
    "Faster or slower is said only if the interval of the ratio does not hold 1 and those of the two \
     figures do not overlap. All else is open.",
    "Of message sizes, only 0 and powers of two are counted and named in sentences; tables have the \
     neighbours of thresholds too.",
    "A * marks more ranks than processors: not to be compared with other rows, and counted apart.",
];
/// And where there are peers.
const METHOD_OF_BACKENDS: &str =
    "Beside peers, eager and rendezvous are told apart by the intervals of their figures alone.";

/// How the figures of a run are made, in paragraphs.
pub fn method(header: &Header) -> Vec<&'static str> {
    let has = |id: &str| analysis::place_of(header, id).is_some();
    let has_peers = header.runtimes.iter().any(|runtime| !runtime.ours);
    let of_backends =
        (has_peers && has("eager") && has("rendezvous")).then_some(METHOD_OF_BACKENDS);
    METHOD.iter().copied().chain(of_backends).collect()
}

/// How often each face of the machine was seen; `None` of a run without launches.
pub fn faces(run: &Run) -> Option<String> {
    let raw: Vec<_> = run.launches.iter().filter_map(|launch| launch.raw).collect();
    let before = stats::median(&raw.iter().map(|raw| raw.0).collect::<Vec<_>>());
    let after = stats::median(&raw.iter().map(|raw| raw.1).collect::<Vec<_>>());
    let Some((before, after)) = before.zip(after) else {
        let alone = "No launch saw two processors, so that there is no way between them.";
        return (!run.launches.is_empty()).then(|| alone.to_owned());
    };
    let count = |face| run.launches.iter().filter(|launch| launch.face() == Some(face)).count();
    let (near, far) = (count(Face::Near), count(Face::Far));
    let mixed = raw.len() - near - far;
    let limit = wording::short(NEAR_BELOW);
    let near = wording::count(near, "launch", "launches");
    let [before, after] = [before, after].map(wording::figure);
    Some(format!(
        "The processors of ranks 0 and 1 were near in {near} (a cache line takes less than \
         {limit} ns one way), far in {far}, and changed during {mixed}; in the median a cache line \
         took {before} ns before a launch and {after} ns after it. Figures between ranks stand apart \
         for each face that was seen often enough."
    ))
}

/// One line for each launch that did not come to its end, and one for each point that launches of a
/// runtime have no figures for, since storing and reading took as long as all together.
pub fn failures(run: &Run) -> Vec<String> {
    let failed = run.launches.iter().filter_map(|launch| {
        let (why, runtime, benchmark) =
            (launch.failure.as_ref()?, &launch.runtime, &launch.benchmark);
        let ranks = wording::count(launch.ranks, "rank", "ranks");
        let round = launch.round + 1;
        Some(format!("round {round}, {runtime}, {benchmark} on {ranks}: {why}"))
    });
    let mut unclear = BTreeMap::<_, usize>::new();
    for launch in &run.launches {
        for (series, x) in &launch.unclear {
            *unclear.entry((series, *x, &launch.runtime)).or_default() += 1;
        }
    }
    let unclear = unclear.into_iter().map(|((series, x, runtime), launches)| {
        let launches = wording::count(launches, "launch", "launches");
        format!("{runtime}, {series} at {x}, {launches}: too noisy to subtract storing and reading")
    });
    failed.chain(unclear).collect()
}
