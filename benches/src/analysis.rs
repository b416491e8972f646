//! From launches to tables: per point and runtime an estimate, per point one ratio. Pure.
//!
//! - A launch counts as one value, the median of its raw figures; several such values of one launch
//!   would not be independent.
//! - Where it matters whether the two processors were near or far ([`Face`]), there is one table for
//!   each; a figure during which that changed belongs to neither, and is left out. A face that less
//!   than a quarter of the figures saw has no table. Series over ranks are not split.
//! - A ratio compares times, also where figures are rates: below 1 means that [`principal`] is faster
//!   than the best of the others. It is made of pairs of launches that are neighbours in time
//!   (`pairing`). A pair of which a figure is zero has no ratio.
//! - *Faster* takes two things: the interval of the ratio lies wholly on one side of 1, and the
//!   intervals of the two figures, over the paired launches, do not overlap.
//! - Launches that failed count with what they measured until then.

mod pairing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use mpj_bench_programs::series::SERIES;
use mpj_bench_programs::{Better, Series, X};

use crate::model::{Face, Header, Run, RuntimeInfo, SELF, Sight};
use crate::stats;
use pairing::Moment;

/// A face has a table of its own from this part of the figures on.
const OFTEN: f64 = 0.25;

/// The figures of one series for one number of ranks and one face of the machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// What is measured.
    pub series: &'static Series,
    /// The number of ranks, `None` where that is what the series is over.
    pub ranks: Option<usize>,
    /// The face, `None` where it does not matter.
    pub face: Option<Face>,
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
    /// How the principal runtime compares with the best of the others.
    pub ratio: Option<Ratio>,
}

/// A figure with its uncertainty.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Median of the launches.
    pub median: f64,
    /// The interval that holds the true median with at least 95 %, by order statistics; `None` for
    /// less than six launches, which cannot give one.
    pub interval: Option<(f64, f64)>,
    /// How many launches.
    pub launches: usize,
}

/// The time of the principal runtime by that of another.
#[derive(Debug, Clone, PartialEq)]
pub struct Ratio {
    /// The other one, by its place in the header.
    pub peer: usize,
    /// Median over the pairs.
    pub median: f64,
    /// As [`Estimate::interval`].
    pub interval: Option<(f64, f64)>,
    /// How many pairs.
    pub pairs: usize,
    /// What may be said.
    pub verdict: Verdict,
}

/// What two figures allow to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The first is faster.
    Faster,
    /// The first is slower.
    Slower,
    /// Intervals overlap, or there is none: nothing.
    Open,
}

/// Where a figure belongs. Ordered as tables and rows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    series: usize,
    ranks: Option<usize>,
    face: Option<Face>,
    x: u64,
}

/// All figures of a place.
#[derive(Debug, Default)]
struct Point {
    /// Per runtime of the header, in the order of the launches.
    figures: Vec<Vec<Figure>>,
    oversubscribed: bool,
}

/// What one launch says of a point.
#[derive(Debug, Clone)]
struct Figure {
    launch: usize,
    moment: Moment,
    value: f64,
}

/// All tables of a run: in the order of the list of series, then by ranks, then near before far.
pub fn tables(run: &Run) -> Vec<Table> {
    let points: Vec<(Place, Point)> = points(run).into_iter().collect();
    let same_table = |(one, _): &(Place, Point), (other, _): &(Place, Point)| {
        (one.series, one.ranks, one.face) == (other.series, other.ranks, other.face)
    };
    let tables = points.chunk_by(same_table).map(|points| Table {
        series: &SERIES[points[0].0.series],
        ranks: points[0].0.ranks,
        face: points[0].0.face,
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

/// Every figure of a run at its place. Samples of a series or a runtime that nobody knows, or without
/// values, are left out.
fn points(run: &Run) -> BTreeMap<Place, Point> {
    let runtimes = &run.header.runtimes;
    let mut points = BTreeMap::<Place, Point>::new();
    // One launch follows the other.
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
            let face = match launch.sight(sample) {
                _ if over_ranks => None,
                Sight::One(face) => Some(face),
                Sight::Any => None,
                Sight::Both => continue,
            };
            let ranks = (!over_ranks).then_some(launch.ranks);
            let point = points.entry(Place { series, ranks, face, x: sample.x }).or_default();
            point.figures.resize(runtimes.len(), Vec::new());
            point.oversubscribed |= launch.oversubscribed;
            let figures = &mut point.figures[runtime];
            // A launch that measures a point twice is one launch: what it says first counts.
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
    // A share is no time, and nothing is made of a ratio of shares.
    let contest = principal(header).filter(|_| !series.unit.is_relative());
    let ratio = contest.and_then(|ours| {
        let peer = best_peer(&cells, series.better, header)?;
        point.ratio(series.better, ours, peer)
    });
    Row { x: place.x, oversubscribed: point.oversubscribed, cells, ratio }
}

fn estimate(figures: &[Figure]) -> Option<Estimate> {
    let values: Vec<f64> = figures.iter().map(|figure| figure.value).collect();
    let (interval, launches) = (stats::interval(&values), figures.len());
    Some(Estimate { median: stats::median(&values)?, interval, launches })
}

/// The one of ours that users get if they ask for nothing.
pub fn principal(header: &Header) -> Option<usize> {
    let auto = header.runtimes.iter().position(|runtime| runtime.id == "auto" && runtime.ours);
    auto.or_else(|| header.runtimes.iter().position(|runtime| runtime.ours))
}

/// Those that the principal runtime is compared with: the system MPIs; without any, itself once more;
/// without that, the other backends.
pub fn others(header: &Header) -> Vec<usize> {
    let places = |is: &dyn Fn(usize, &RuntimeInfo) -> bool| {
        let all = header.runtimes.iter().enumerate();
        all.filter(|(place, it)| is(*place, it)).map(|(place, _)| place).collect::<Vec<_>>()
    };
    let principal = principal(header);
    let sets = [
        places(&|_, it| !it.ours && it.id != SELF),
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
    /// The ratio of a pair of runtimes; `None` if no two of their launches may be compared.
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

/// The ratio of times of two figures: below 1 if `ours` is the better one. `None` if it is no number
/// that says anything, since one of the figures is zero.
pub fn ratio_of_times(better: Better, ours: f64, peer: f64) -> Option<f64> {
    let ratio = match better {
        Better::Lower => ours / peer,
        Better::Higher => peer / ours,
    };
    (ratio.is_finite() && ratio > 0.0).then_some(ratio)
}

/// What the interval of a ratio allows to say.
fn side_of_1(interval: Option<(f64, f64)>) -> Verdict {
    match interval {
        Some((_, high)) if high < 1.0 => Verdict::Faster,
        Some((low, _)) if low > 1.0 => Verdict::Slower,
        _ => Verdict::Open,
    }
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
    /// How many pairs there are, or without a ratio, how many launches of a runtime at most.
    pub fn launches(&self) -> usize {
        let most = self.cells.iter().flatten().map(|cell| cell.launches).max();
        self.ratio.as_ref().map_or(most.unwrap_or(0), |ratio| ratio.pairs)
    }
}

impl Table {
    fn figures(&self) -> usize {
        let cells = self.rows.iter().flat_map(|row| &row.cells).flatten();
        cells.map(|cell| cell.launches).sum()
    }
}
