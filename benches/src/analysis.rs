//! Turns launches into tables: one estimate per point and runtime, one ratio per point. Pure.
//!
//! - A launch counts as one value, the median of its raw figures, because several values of one
//!   launch would not be independent.
//! - Where the distance of the two processors matters ([`Distance`]), near and far have separate
//!   tables. Figures during which it changed are left out. A distance seen by less than a quarter
//!   of the figures has no table. Series over ranks are not split.
//! - A ratio compares times, even where figures are rates: below 1, [`principal`] is faster than
//!   the best of the others. Ratios come from pairs of launches that are neighbours in time
//!   (`pairing`). A pair with a zero figure has no ratio.
//! - *Faster* requires two things: the interval of the ratio lies wholly on one side of 1, and the
//!   intervals of the two figures, over the paired launches, do not overlap.
//! - Failed launches count with the figures they measured before the failure.

mod pairing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use mpj_bench_programs::series::SERIES;
use mpj_bench_programs::{Better, Series, X};

use crate::model::{Distance, FABRIC, Header, Run, RuntimeInfo, SELF, Sight};
use crate::stats;
use pairing::Moment;

/// The smallest share of the figures that gives a [`Distance`] its own table.
const OFTEN: f64 = 0.25;

/// The figures of one series for one number of ranks and one processor distance.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The measured series.
    pub series: &'static Series,
    /// The number of ranks; `None` if the series is over ranks.
    pub ranks: Option<usize>,
    /// The processor distance; `None` where it does not matter.
    pub distance: Option<Distance>,
    /// The points, in ascending order.
    pub rows: Vec<Row>,
}

/// One point of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The point: bytes, order or ranks.
    pub x: u64,
    /// Whether there were more ranks than processors.
    pub oversubscribed: bool,
    /// The figures in the order of the header's runtimes; `None` if not measured.
    pub cells: Vec<Option<Estimate>>,
    /// The comparison of the principal runtime with the best of the others.
    pub ratio: Option<Ratio>,
    /// The comparison of the principal runtime with libfabric alone.
    pub above_fabric: Option<Ratio>,
}

/// A figure with its uncertainty.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Median of the launches.
    pub median: f64,
    /// The interval that holds the true median with at least 95 %, by order statistics; `None` for
    /// fewer than six launches.
    pub interval: Option<(f64, f64)>,
    /// The number of launches.
    pub launches: usize,
}

/// The time of the principal runtime divided by that of another.
#[derive(Debug, Clone, PartialEq)]
pub struct Ratio {
    /// The index of the other runtime in the header.
    pub peer: usize,
    /// Median of the pairs.
    pub median: f64,
    /// Same as [`Estimate::interval`].
    pub interval: Option<(f64, f64)>,
    /// The number of pairs.
    pub pairs: usize,
    /// The conclusion.
    pub verdict: Verdict,
}

/// The conclusion from comparing two figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The first is faster.
    Faster,
    /// The first is slower.
    Slower,
    /// The intervals overlap or are missing: no conclusion.
    Open,
}

/// The table and row of a figure, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    series: usize,
    ranks: Option<usize>,
    distance: Option<Distance>,
    x: u64,
}

/// All figures of one place.
#[derive(Debug, Default)]
struct Point {
    /// The figures of each runtime of the header, in launch order.
    figures: Vec<Vec<Figure>>,
    oversubscribed: bool,
}

/// The result of one launch for one point.
#[derive(Debug, Clone)]
struct Figure {
    launch: usize,
    moment: Moment,
    value: f64,
}

/// Returns all tables of a run, ordered as the list of series, then by ranks, then near before far.
pub fn tables(run: &Run) -> Vec<Table> {
    let points: Vec<(Place, Point)> = points(run).into_iter().collect();
    let same_table = |(one, _): &(Place, Point), (other, _): &(Place, Point)| {
        (one.series, one.ranks, one.distance) == (other.series, other.ranks, other.distance)
    };
    let tables = points.chunk_by(same_table).map(|points| Table {
        series: &SERIES[points[0].0.series],
        ranks: points[0].0.ranks,
        distance: points[0].0.distance,
        rows: points.iter().map(|(place, point)| row(*place, point, &run.header)).collect(),
    });
    let tables: Vec<Table> = tables.collect();
    let is_shown = |table: &&Table| {
        let beside = |it: &&Table| it.series == table.series && it.ranks == table.ranks;
        let all: usize = tables.iter().filter(beside).map(Table::figures).sum();
        table.figures() as f64 >= OFTEN * all as f64
    };
    tables.iter().filter(is_shown).cloned().collect()
}

/// Groups the figures of a run by place. Skips samples without values and those of unknown series
/// or runtimes.
fn points(run: &Run) -> BTreeMap<Place, Point> {
    let runtimes = &run.header.runtimes;
    let mut points = BTreeMap::<Place, Point>::new();
    // Launches follow one another.
    let mut next = 0.0;
    for (number, launch) in run.launches.iter().enumerate() {
        let moment = Moment { round: launch.round, at: next };
        next += launch.seconds;
        let Some(runtime) = runtimes.iter().position(|it| it.id == launch.runtime) else {
            continue;
        };
        for sample in &launch.samples {
            let Some(series) = SERIES.iter().position(|it| it.id == sample.series) else {
                continue;
            };
            let Some(value) = stats::median(&sample.values) else { continue };
            let over_ranks = SERIES[series].x == X::Ranks;
            let distance = match launch.sight(sample) {
                _ if over_ranks => None,
                Sight::One(distance) => Some(distance),
                Sight::Any => None,
                Sight::Both => continue,
            };
            let ranks = (!over_ranks).then_some(launch.ranks);
            let point = points.entry(Place { series, ranks, distance, x: sample.x }).or_default();
            point.figures.resize(runtimes.len(), Vec::new());
            point.oversubscribed |= launch.oversubscribed;
            let figures = &mut point.figures[runtime];
            // If a launch measures a point twice, only its first figure counts.
            if figures.last().is_none_or(|last| last.launch != number) {
                figures.push(Figure { launch: number, moment, value });
            }
        }
    }
    points
}

fn row(place: Place, point: &Point, header: &Header) -> Row {
    let series = &SERIES[place.series];
    let cells: Vec<_> = point.figures.iter().map(|figures| estimate(figures)).collect();
    // Relative units are not compared: a ratio of shares has no meaning.
    let contest = principal(header).filter(|_| !series.unit.is_relative());
    let ratio = contest.and_then(|ours| {
        let peer = best_peer(&cells, series.better, header)?;
        point.ratio(series.better, ours, peer)
    });
    let fabric = header.runtimes.iter().position(|it| it.id == FABRIC);
    let fabric = contest.zip(fabric);
    let above_fabric = fabric.and_then(|(ours, it)| point.ratio(series.better, ours, it));
    Row { x: place.x, oversubscribed: point.oversubscribed, cells, ratio, above_fabric }
}

fn estimate(figures: &[Figure]) -> Option<Estimate> {
    let values: Vec<f64> = figures.iter().map(|figure| figure.value).collect();
    let (interval, launches) = (stats::interval(&values), figures.len());
    Some(Estimate { median: stats::median(&values)?, interval, launches })
}

/// Returns our runtime that users get by default.
pub fn principal(header: &Header) -> Option<usize> {
    let auto = header.runtimes.iter().position(|runtime| runtime.id == "auto" && runtime.ours);
    auto.or_else(|| header.runtimes.iter().position(|runtime| runtime.ours))
}

/// Returns the runtimes that the principal is compared with: the system MPIs; without any, the
/// principal measured again and libfabric alone; otherwise the other backends.
pub fn others(header: &Header) -> Vec<usize> {
    let places = |is: &dyn Fn(usize, &RuntimeInfo) -> bool| {
        let all = header.runtimes.iter().enumerate();
        all.filter(|(place, it)| is(*place, it)).map(|(place, _)| place).collect::<Vec<_>>()
    };
    let principal = principal(header);
    let sets = [
        places(&|_, it| !it.ours && it.id != SELF && it.id != FABRIC),
        places(&|_, it| !it.ours),
        places(&|place, _| Some(place) != principal),
    ];
    sets.into_iter().find(|set| !set.is_empty()).unwrap_or_default()
}

fn best_peer(cells: &[Option<Estimate>], better: Better, header: &Header) -> Option<usize> {
    let medians = others(header).into_iter();
    let medians = medians.filter_map(|place| Some((place, cells[place].as_ref()?.median)));
    let beats = |one: f64, other: f64| match better {
        Better::Lower => one < other,
        Better::Higher => one > other,
    };
    let best = medians.reduce(|best, next| if beats(next.1, best.1) { next } else { best });
    best.map(|(place, _)| place)
}

impl Point {
    /// The ratio of two runtimes; `None` if none of their launches can be paired.
    fn ratio(&self, better: Better, ours: usize, peer: usize) -> Option<Ratio> {
        let moments = |place: usize| self.figures[place].iter().map(|figure| figure.moment);
        let [own, other] = [ours, peer].map(|place| moments(place).collect::<Vec<_>>());
        let (mut ratios, mut figures) = (Vec::new(), [Vec::new(), Vec::new()]);
        for (one, mate) in pairing::pairs(&own, &other) {
            let (one, mate) = (self.figures[ours][one].value, self.figures[peer][mate].value);
            if let Some(ratio) = ratio_of_times(better, one, mate) {
                ratios.push(ratio);
                figures[0].push(one);
                figures[1].push(mate);
            }
        }
        let interval = stats::interval(&ratios);
        let [own, other] = figures.map(|values| stats::interval(&values));
        let (side, figures) = (side_of_1(interval), apart(better, own, other));
        let verdict = if side == figures { side } else { Verdict::Open };
        Some(Ratio {
            peer,
            median: stats::median(&ratios)?,
            interval,
            pairs: ratios.len(),
            verdict,
        })
    }
}

/// Returns the ratio of times of two figures, below 1 if `ours` is better; `None` if a figure is
/// zero.
pub fn ratio_of_times(better: Better, ours: f64, peer: f64) -> Option<f64> {
    let ratio = match better {
        Better::Lower => ours / peer,
        Better::Higher => peer / ours,
    };
    (ratio.is_finite() && ratio > 0.0).then_some(ratio)
}

/// The conclusion that the interval of a ratio allows.
fn side_of_1(interval: Option<(f64, f64)>) -> Verdict {
    match interval {
        Some((_, high)) if high < 1.0 => Verdict::Faster,
        Some((low, _)) if low > 1.0 => Verdict::Slower,
        _ => Verdict::Open,
    }
}

/// Compares two figures by their intervals; [`Verdict::Open`] if these overlap or one is missing.
pub fn apart(better: Better, ours: Option<(f64, f64)>, peer: Option<(f64, f64)>) -> Verdict {
    let Some((ours, peer)) = ours.zip(peer) else { return Verdict::Open };
    match (better, ours.1 < peer.0, peer.1 < ours.0) {
        (Better::Lower, true, _) | (Better::Higher, _, true) => Verdict::Faster,
        (Better::Lower, _, true) | (Better::Higher, true, _) => Verdict::Slower,
        _ => Verdict::Open,
    }
}

impl Row {
    /// Returns the number of pairs or, without a ratio, the largest number of launches of a
    /// runtime.
    pub fn launches(&self) -> usize {
        let most = self.cells.iter().flatten().map(|cell| cell.launches).max();
        self.ratio.as_ref().map_or(most.unwrap_or(0), |ratio| ratio.pairs)
    }
}

impl Table {
    /// Returns whether it has times of single messages over their lengths.
    pub fn is_latency(&self) -> bool {
        self.series.id.split('-').next() == Some("latency")
    }

    /// Returns the point from which on the runtime `one` has the better median than `other` to the last point; `None` if
    /// it has not at the last one.
    pub fn better_from(&self, one: usize, other: usize) -> Option<u64> {
        let better = |row: &&Row| {
            let (one, other) = (row.cells[one].as_ref(), row.cells[other].as_ref());
            let medians = one.zip(other).map(|(one, other)| (one.median, other.median));
            let ratio =
                medians.and_then(|(one, other)| ratio_of_times(self.series.better, one, other));
            ratio.is_some_and(|ratio| ratio < 1.0)
        };
        self.rows.iter().rev().take_while(better).last().map(|row| row.x)
    }

    fn figures(&self) -> usize {
        let cells = self.rows.iter().flat_map(|row| &row.cells).flatten();
        cells.map(|cell| cell.launches).sum()
    }
}
