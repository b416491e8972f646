//! What a reader has to know of a run before the figures. Used by the page and the results document.

use crate::model::{Face, Run};
use crate::stats;
use crate::views;

/// How figures are made.
pub const METHOD: &[&str] = &[
    "Every round starts each runtime once per configuration, in random order. A launch is the unit: \
     it counts as one value, the median of its raw figures.",
    "A figure is the median of the launches. Its interval holds the true median with at least 95 % \
     (order statistics; it takes six launches). Minimum and p99 are of all raw figures.",
    "A ratio is one of times, also where figures are rates: below 1 means that the first one is \
     faster. It is made of two launches of the same round that saw the same face of the machine.",
    "Faster or slower is said only if the interval of the ratio does not hold 1 and those of the two \
     figures do not overlap. All else is open.",
    "Beside peers, eager and rendezvous are told apart by the intervals of their figures alone.",
];

/// How often each face of the machine was seen.
pub fn faces(run: &Run) -> String {
    let raw: Vec<_> = run.launches.iter().filter_map(|launch| launch.raw).collect();
    let Some(median) = stats::median(&raw.iter().map(|raw| raw.0).collect::<Vec<_>>()) else {
        return "The machine has one processor, so that there is no way between processors."
            .to_owned();
    };
    let count = |face| run.launches.iter().filter(|launch| launch.face() == Some(face)).count();
    let (near, far) = (count(Face::Near), count(Face::Far));
    let mixed = raw.len() - near - far;
    let shown = match *views::faces(run) {
        [] => "All launches are shown together.".to_owned(),
        [face] => format!(
            "Figures between two ranks are those of the launches that were {}.",
            face.name()
        ),
        _ => "Figures between two ranks are shown for each face.".to_owned(),
    };
    format!(
        "The two processors were near in {near} launches, far in {far}, and changed during {mixed}; a \
         cache line took {median:.0} ns one way in the median. {shown}"
    )
}

/// One line for each launch that did not come to its end.
pub fn failures(run: &Run) -> Vec<String> {
    let failed = run.launches.iter().filter_map(|launch| {
        let (why, runtime, benchmark) =
            (launch.failure.as_ref()?, &launch.runtime, &launch.benchmark);
        let (round, ranks) = (launch.round + 1, launch.ranks);
        Some(format!("round {round}, {runtime}, {benchmark} on {ranks} ranks: {why}"))
    });
    failed.collect()
}
