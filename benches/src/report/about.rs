//! The facts about a run that readers need besides its figures.

use std::collections::BTreeMap;

use super::summary::POINTS;
use super::{table, words};
use crate::analysis::{self, Table};
use crate::model::{Distance, Header, NEAR_BELOW, Run, Sight};

/// The method of measurement, in paragraphs.
pub const METHOD: &[&str] = &[
    "Every round starts each runtime once per configuration, in random order. A launch counts as one \
     value: the median of its batches, each about 1 ms of operations. A figure is the median of the \
     launches, its interval holds the true median with at least 95 % (order statistics; it takes six \
     launches).",
    "A ratio compares times, also where figures are rates: below 1 is faster. It is made of pairs of \
     launches that are neighbours in time. Faster or slower is said only if the interval of the ratio \
     does not hold 1 and those of the two figures do not overlap; ~ is open.",
    "Rewritten: the sender stores every word of a message before each send, the receiver reads every word \
     after it, and what storing and reading take alone is subtracted. Unchanged: one buffer is sent again \
     and again. Cold: every message has another buffer, out of a pool that no cache holds.",
    "Near and far: a cache line goes from one processor to the other in less than 120 ns, or not. Where \
     both were seen there is a table for each.",
    "A * marks more ranks than processors. A rank that spins while it waits is awake at once, and costs a \
     whole processor: read the send to a blocked rank together with the processor time while blocked.",
];

/// Returns machine, libraries and thresholds as pairs of name and value.
pub fn facts(header: &Header) -> Vec<(String, String)> {
    let mut facts = header.machine.clone();
    facts.push(("rounds".to_owned(), header.rounds.to_string()));
    for step in &header.thresholds {
        let above = format!("above {}", words::size(step.bytes as u64));
        match facts.last_mut().filter(|(name, _)| *name == above) {
            Some((_, what)) => *what += &format!("; {}", step.what),
            None => facts.push((above, step.what.clone())),
        }
    }
    facts
}

/// Returns how often each processor distance was seen, and how many figures are in no table because
/// it changed; `None` if no launch saw two processors.
pub fn distances(run: &Run) -> Option<String> {
    let count = |sight| run.launches.iter().filter(|it| Sight::of(it.raw) == sight).count();
    let sights = [Sight::One(Distance::Near), Sight::One(Distance::Far), Sight::Both];
    let [near, far, changed] = sights.map(count);
    let launches = words::count(near, "launch", "launches");
    (near + far + changed > 0).then(|| {
        let mut said = format!(
            "The processors of ranks 0 and 1 were near in {launches} (a cache line takes less than \
             {NEAR_BELOW} ns one way), far in {far}, and changed during {changed}."
        );
        let figures = run.launches.iter().flat_map(|it| it.samples.iter().map(|own| it.sight(own)));
        let lost = figures.filter(|&sight| sight == Sight::Both).count();
        if lost > 0 {
            let figures = words::count(lost, "figure is", "figures are");
            said +=
                &format!(" {figures} in no table: the distance changed during the measurement.");
        }
        said
    })
}

/// Returns what the tables show besides the comparison with peers, a line each: the length of messages from which on
/// the rendezvous protocol is the faster one, and what mpj takes above libfabric alone.
pub fn findings(header: &Header, tables: &[Table]) -> Vec<String> {
    let place = |id: &str| header.runtimes.iter().position(|it| it.id == id && it.ours);
    let protocols = place("rendezvous").zip(place("eager"));
    let mut lines = Vec::new();
    for table in tables {
        let name = table::name(table);
        if let Some((rendezvous, eager)) = protocols.filter(|_| table.is_latency()) {
            lines.push(match table.better_from(rendezvous, eager) {
                Some(x) => {
                    format!("{name}: rendezvous is faster than eager from {} on", words::size(x))
                }
                None => format!("{name}: eager is the faster protocol up to the longest message"),
            });
        }
        let rows = table.rows.iter().filter(|row| POINTS.contains(&row.x));
        let above = rows.filter_map(|row| {
            let ratio = row.above_fabric.as_ref()?;
            let interval = words::interval(ratio.interval, words::ratio);
            let at = table::point(table, row);
            Some(format!(
                "{} at {at}",
                format!("{} {interval}", words::ratio(ratio.median)).trim_end()
            ))
        });
        let above: Vec<_> = above.collect();
        if let Some(ours) = analysis::principal(header).filter(|_| !above.is_empty()) {
            let ours = &header.runtimes[ours].label;
            lines.push(format!(
                "{name}: time of {ours} divided by that of libfabric alone: {}",
                above.join(", ")
            ));
        }
    }
    lines
}

/// Returns one line for each failed launch, and one for each point without figures.
pub fn failures(run: &Run) -> Vec<String> {
    let mut unclear = BTreeMap::<_, usize>::new();
    let mut lines = Vec::new();
    for launch in &run.launches {
        if let Some(why) = &launch.failure {
            let ranks = words::count(launch.ranks, "rank", "ranks");
            let (round, runtime, benchmark) =
                (launch.round + 1, &launch.runtime, &launch.benchmark);
            lines.push(format!("round {round}, {runtime}, {benchmark} on {ranks}: {why}"));
        }
        for (series, x) in &launch.unclear {
            *unclear.entry((series, *x, &launch.runtime)).or_default() += 1;
        }
    }
    lines.extend(unclear.into_iter().map(|((series, x, runtime), launches)| {
        let launches = words::count(launches, "launch", "launches");
        format!("{runtime}, {series} at {x}, {launches}: too noisy to subtract storing and reading")
    }));
    lines
}
