//! From launches to tables: per point and runtime an estimate, per point and pair a ratio. Pure.
//!
//! - A launch counts as one value, the median of its raw figures; several such values of one launch
//!   would not be independent. Estimates are made of these values, over all launches.
//! - A ratio is made of two launches that are neighbours in time and saw the same face of the machine
//!   (`pairing`), and is one of times: below 1 means that the first one is faster, also where the
//!   figures are rates. Launches without such a neighbour are left out and counted. A pair of which a
//!   figure is zero has no ratio.
//! - To say *faster* takes two things: the interval of the ratio lies wholly on one side of 1, and the
//!   intervals of the two figures do not overlap. For the latter only the launches that are part of
//!   pairs count, so that both saw the same faces equally often.
//! - Launches that failed count with what they measured until then.

mod pairing;
mod points;
#[cfg(test)]
mod tests;

use mpj_bench_programs::{Better, Series, X};

use crate::model::{Face, Header, Launch, Run, RuntimeInfo, SELF, Sight};
use crate::stats;
use points::Point;

/// The figures of one series for one number of ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// What is measured.
    pub series: &'static Series,
    /// The number of ranks, `None` where that is what the series is over.
    pub ranks: Option<usize>,
    /// The points, ascending.
    pub rows: Vec<Row>,
}

/// One point of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Bytes, depth, order or ranks.
    pub x: u64,
    /// Whether there were more ranks than processors.
    pub oversubscribed: bool,
    /// The figures, in the order of the header's runtimes; `None` for one that was not measured.
    pub cells: Vec<Option<Estimate>>,
    /// The [`pairs`] that were measured together.
    pub ratios: Vec<Ratio>,
}

/// A figure with its uncertainty.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Median of the launches.
    pub median: f64,
    /// The interval that holds the true median with at least 95 %, by order statistics; `None` for
    /// less than six launches, which cannot give one.
    pub interval: Option<(f64, f64)>,
    /// Smallest raw figure.
    pub min: f64,
    /// The raw figure that 99 % are not above.
    pub p99: f64,
    /// Mean of all raw figures.
    pub mean: f64,
    /// How many raw figures.
    pub n: usize,
    /// How many launches.
    pub launches: usize,
}

/// The time of one runtime by that of another.
#[derive(Debug, Clone, PartialEq)]
pub struct Ratio {
    /// The first one, by its place in the header.
    pub ours: usize,
    /// The second one.
    pub peer: usize,
    /// Median over the pairs.
    pub median: f64,
    /// As [`Estimate::interval`].
    pub interval: Option<(f64, f64)>,
    /// How many pairs.
    pub pairs: usize,
    /// How many launches of the first one were left out, since the other has none that was close in
    /// time and saw the same face of the machine.
    pub alone: usize,
    /// What may be said.
    pub verdict: Verdict,
}

/// What a ratio allows to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The first is faster.
    Faster,
    /// The first is slower.
    Slower,
    /// Intervals overlap, or there is none: nothing.
    Open,
}

/// All tables of a run: in the order of the list of series, then by ranks.
pub fn tables(run: &Run) -> Vec<Table> {
    tables_with(run, &pairs(&run.header))
}

/// As [`tables`], with the ratios of these pairs, each by place in the header.
pub fn tables_with(run: &Run, all_pairs: &[(usize, usize)]) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for (place, point) in points::of(run, |_| true) {
        // A share is no time, and nothing is made of a ratio of shares.
        let is_relative = place.series().unit.is_relative();
        let row = row(&place, &point, if is_relative { &[] } else { all_pairs });
        match tables.last_mut() {
            Some(table) if place.is_in(table) => table.rows.push(row),
            _ => {
                let (series, ranks) = (place.series(), place.ranks);
                tables.push(Table { series, ranks, rows: vec![row] });
            }
        }
    }
    tables
}

fn row(place: &points::Place, point: &Point<'_>, pairs: &[(usize, usize)]) -> Row {
    let better = place.series().better;
    let ratio = |&(ours, peer): &(usize, usize)| point.ratio(better, ours, peer);
    Row {
        x: place.x,
        oversubscribed: point.oversubscribed,
        cells: point.figures.iter().map(|figures| points::estimate(figures)).collect(),
        ratios: pairs.iter().filter_map(ratio).collect(),
    }
}

/// The pairs that are compared, by place in the header: each of ours with each peer; without peers the
/// backends with one another, as far as they take part.
pub fn pairs(header: &Header) -> Vec<(usize, usize)> {
    let places = |ours: bool| {
        let all = header.runtimes.iter().enumerate();
        all.filter(move |(_, runtime)| runtime.ours == ours).map(|(place, _)| place)
    };
    if places(false).next().is_some() {
        return places(true).flat_map(|one| places(false).map(move |peer| (one, peer))).collect();
    }
    let backends = [("eager", "rendezvous"), ("auto", "rendezvous"), ("auto", "eager")];
    let place = |(one, other)| Some((place_of(header, one)?, place_of(header, other)?));
    backends.into_iter().filter_map(place).collect()
}

/// The place of the runtime of this id in the header.
pub fn place_of(header: &Header, id: &str) -> Option<usize> {
    header.runtimes.iter().position(|runtime| runtime.id == id)
}

/// The one of ours that users get if they ask for nothing.
pub fn principal(header: &Header) -> Option<usize> {
    let first = || header.runtimes.iter().position(|runtime| runtime.ours);
    place_of(header, "auto").or_else(first)
}

/// The ratio of times of two figures: below 1 if `ours` is the better one. `None` if it is no number
/// that says anything, since one of the figures is zero.
pub fn ratio_of_times(better: Better, ours: f64, peer: f64) -> Option<f64> {
    let ratio = match better {
        Better::Lower => ours / peer,
        Better::Higher => peer / ours,
    };
    (ratio.is_finite() && ratio > 0.0).then_some(ratio)
}

/// What two figures allow to say of the first one: something only if both have intervals that do not
/// overlap.
pub fn apart(better: Better, ours: Option<(f64, f64)>, peer: Option<(f64, f64)>) -> Verdict {
    let Some((ours, peer)) = ours.zip(peer) else { return Verdict::Open };
    match (better, ours.1 < peer.0, peer.1 < ours.0) {
        (Better::Lower, true, _) | (Better::Higher, _, true) => Verdict::Faster,
        (Better::Lower, _, true) | (Better::Higher, true, _) => Verdict::Slower,
        _ => Verdict::Open,
    }
}

impl Row {
    /// The peer with the best median at this point, if there is one; `better` is that of the series.
    pub fn best_peer(&self, better: Better, header: &Header) -> Option<usize> {
        // Our own second self is a peer only where there is no other.
        let others = header.runtimes.iter().any(|it| !it.ours && it.id != SELF);
        let is_peer = |it: &RuntimeInfo| !it.ours && (!others || it.id != SELF);
        let runtimes = header.runtimes.iter().enumerate();
        let peers = runtimes.filter(|(_, runtime)| is_peer(runtime)).map(|(place, _)| place);
        let medians = peers.filter_map(|place| Some((place, self.median(place)?)));
        let best =
            medians.reduce(|best, next| if beats(better, next.1, best.1) { next } else { best });
        best.map(|(place, _)| place)
    }

    /// The one of two runtimes with the better median at this point; `None` if one was not measured.
    pub fn better(&self, better: Better, [one, other]: [usize; 2]) -> Option<usize> {
        let other_wins = beats(better, self.median(other)?, self.median(one)?);
        Some(if other_wins { other } else { one })
    }

    /// The ratio of this pair, if it was measured.
    pub fn ratio(&self, ours: usize, peer: usize) -> Option<&Ratio> {
        self.ratios.iter().find(|ratio| ratio.ours == ours && ratio.peer == peer)
    }

    fn median(&self, place: usize) -> Option<f64> {
        Some(self.cells.get(place)?.as_ref()?.median)
    }
}

fn beats(better: Better, one: f64, other: f64) -> bool {
    match better {
        Better::Lower => one < other,
        Better::Higher => one > other,
    }
}

/// The smallest point from which on the median of rendezvous is at least as good as that of eager, at
/// it and at all larger ones; `None` if there is none. Points that lack one of the two do not count.
pub fn crossover(table: &Table, header: &Header) -> Option<u64> {
    let (eager, rendezvous) = (place_of(header, "eager")?, place_of(header, "rendezvous")?);
    let both = |row: &Row| Some((row.x, row.median(eager)?, row.median(rendezvous)?));
    let points = table.rows.iter().rev().filter_map(both);
    let good = points.take_while(|&(_, eager, other)| !beats(table.series.better, eager, other));
    good.last().map(|(x, ..)| x)
}

/// For a rate over ranks: per runtime the points (ranks, how many times the rate of one rank). Nothing
/// for other series; no points for a runtime that was not measured on one rank.
pub fn speedups(table: &Table, header: &Header) -> Vec<Vec<(u64, f64)>> {
    if table.series.x != X::Ranks || table.series.better != Better::Higher {
        return Vec::new();
    }
    let of_runtime = |place: usize| {
        let points = table.rows.iter().filter_map(move |row| Some((row.x, row.median(place)?)));
        let one = points.clone().find(|&(x, rate)| x == 1 && rate > 0.0);
        let speedup = |one: (u64, f64)| points.map(|(x, rate)| (x, rate / one.1)).collect();
        one.map(speedup).unwrap_or_default()
    };
    (0..header.runtimes.len()).map(of_runtime).collect()
}

/// The launches with those of their samples that saw this face of the machine, before and after.
pub fn by_face(run: &Run, face: Face) -> Run {
    by_sight(run, Sight::One(face))
}

/// The launches with those of their samples that saw this of the machine. Launches without any stay,
/// since they took their time.
pub fn by_sight(run: &Run, sight: Sight) -> Run {
    let of_sight = |launch: &Launch| {
        let seen = launch.samples.iter().filter(|it| launch.sight(it) == sight);
        let samples = seen.cloned().collect();
        let (runtime, benchmark) = (launch.runtime.clone(), launch.benchmark.clone());
        let (failure, unclear) = (None, Vec::new());
        Launch { runtime, benchmark, samples, failure, unclear, ..*launch }
    };
    Run { header: run.header.clone(), launches: run.launches.iter().map(of_sight).collect() }
}

/// How well the machine's faces were caught by the launches of a table, each near, then far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Catch {
    /// How many pairs the principal runtime has with every other one, in the median of the points.
    pub pairs: [usize; 2],
    /// How many figures there are.
    pub figures: [usize; 2],
}

/// For each table, by its place in [`tables`], what was caught of either face; `None` where faces do
/// not matter.
pub fn catches(run: &Run) -> Vec<Option<Catch>> {
    const FACES: [Face; 2] = [Face::Near, Face::Far];
    let principal = principal(&run.header).unwrap_or(0);
    let points: Vec<_> = points::of(run, |_| true).into_iter().collect();
    let of_table = |points: &[(points::Place, Point<'_>)]| {
        let median = |face| {
            let counts = points.iter().map(|(_, point)| point.pairs_of(face, principal));
            let mut counts: Vec<usize> = counts.collect();
            counts.sort_unstable();
            counts[counts.len() / 2]
        };
        let figures = |face| points.iter().map(|(_, point)| point.seen(face)).sum();
        let has_faces = points.iter().any(|(_, point)| point.has_faces());
        has_faces.then(|| Catch { pairs: FACES.map(median), figures: FACES.map(figures) })
    };
    points.chunk_by(|one, other| one.0.is_beside(&other.0)).map(of_table).collect()
}

/// One ratio for all points of a table: per round the geometric mean of the ratios of the points, of
/// those the median and its interval; [`Ratio::pairs`] counts rounds. `None` without any pair.
///
/// The verdict rests on this interval alone, as there is no figure over all points to compare.
pub fn overall(run: &Run, table: &Table, ours: usize, peer: usize) -> Option<Ratio> {
    let mut rounds = std::collections::BTreeMap::<usize, Vec<f64>>::new();
    let mut alone = 0;
    for (place, point) in points::of(run, |place| place.is_in(table)) {
        let paired = point.paired(place.series().better, ours, peer);
        alone += paired.alone;
        for pair in paired.pairs {
            rounds.entry(pair.round).or_default().push(pair.ratio);
        }
    }
    let means: Vec<f64> = rounds.values().filter_map(|it| stats::geometric_mean(it)).collect();
    let interval = stats::interval(&means);
    let verdict = side_of_1(interval);
    let (median, pairs) = (stats::median(&means)?, means.len());
    Some(Ratio { ours, peer, median, interval, pairs, alone, verdict })
}

/// What the interval of a ratio allows to say.
pub fn side_of_1(interval: Option<(f64, f64)>) -> Verdict {
    match interval {
        Some((_, high)) if high < 1.0 => Verdict::Faster,
        Some((low, _)) if low > 1.0 => Verdict::Slower,
        _ => Verdict::Open,
    }
}
