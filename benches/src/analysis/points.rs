//! Launches sorted by point: every figure of a run with the launch that it is of, and the estimates
//! and pairs that are made of the figures of one point. Called by `analysis` alone.

use std::collections::{BTreeMap, HashMap};

use mpj_bench_programs::series::SERIES;
use mpj_bench_programs::{Better, Series, X};

use super::pairing::{self, Moment};
use super::{Estimate, Ratio, Table, Verdict, apart, ratio_of_times, side_of_1};
use crate::model::{Face, Launch, Run, Sight};
use crate::stats;

/// Where a figure belongs. Ordered as tables and rows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    series: usize,
    /// As [`Table::ranks`].
    pub ranks: Option<usize>,
    /// As [`super::Row::x`].
    pub x: u64,
}

impl Place {
    /// What is measured.
    pub fn series(&self) -> &'static Series {
        &SERIES[self.series]
    }

    /// Whether both are points of one table.
    pub fn is_beside(&self, other: &Self) -> bool {
        (self.series, self.ranks) == (other.series, other.ranks)
    }

    /// Whether it is a point of `table`.
    pub fn is_in(&self, table: &Table) -> bool {
        self.series() == table.series && self.ranks == table.ranks
    }
}

/// All figures of a place.
#[derive(Debug, Clone, Default)]
pub struct Point<'a> {
    /// Per runtime of the header, in the order of the launches.
    pub figures: Vec<Vec<Figure<'a>>>,
    /// Whether one of the launches had more ranks than processors.
    pub oversubscribed: bool,
}

/// What one launch says of a point.
#[derive(Debug, Clone)]
pub struct Figure<'a> {
    launch: &'a Launch,
    moment: Moment,
    /// The median of `raw`.
    value: f64,
    raw: &'a [f64],
}

/// The points at the places that are `wanted`. Samples without a series of ours, without a runtime of
/// the header or without values are left out.
pub fn of(run: &Run, wanted: impl Fn(&Place) -> bool) -> BTreeMap<Place, Point<'_>> {
    let series = SERIES.iter().enumerate().map(|(place, series)| (series.id, place));
    let series: HashMap<&str, usize> = series.collect();
    let runtimes = run.header.runtimes.iter().enumerate().map(|(place, it)| (&*it.id, place));
    let runtimes: HashMap<&str, usize> = runtimes.collect();
    let mut points = BTreeMap::<Place, Point<'_>>::new();
    // One launch follows the other.
    let mut next = 0.0;
    for launch in &run.launches {
        let at = next;
        next += launch.seconds;
        let Some(&runtime) = runtimes.get(&*launch.runtime) else { continue };
        for sample in &launch.samples {
            let Some(&series) = series.get(&*sample.series) else { continue };
            let ranks = (SERIES[series].x != X::Ranks).then_some(launch.ranks);
            let place = Place { series, ranks, x: sample.x };
            let Some(value) = stats::median(&sample.values).filter(|_| wanted(&place)) else {
                continue;
            };
            let point = points.entry(place).or_default();
            point.figures.resize(run.header.runtimes.len(), Vec::new());
            let figures = &mut point.figures[runtime];
            // A launch that measures a point twice is one launch: what it says first counts.
            if figures.last().is_none_or(|last| !std::ptr::eq(last.launch, launch)) {
                let moment = Moment { round: launch.round, at, sight: launch.sight(sample) };
                figures.push(Figure { launch, moment, value, raw: &sample.values });
            }
            point.oversubscribed |= launch.oversubscribed;
        }
    }
    points
}

/// The estimate from the figures of one runtime; `None` without any.
pub fn estimate(figures: &[Figure<'_>]) -> Option<Estimate> {
    let values: Vec<f64> = figures.iter().map(|figure| figure.value).collect();
    let raw: Vec<f64> = figures.iter().flat_map(|figure| figure.raw).copied().collect();
    Some(Estimate {
        median: stats::median(&values)?,
        interval: stats::interval(&values),
        min: raw.iter().copied().reduce(f64::min)?,
        p99: stats::quantile(&raw, 0.99)?,
        mean: stats::mean(&raw)?,
        n: raw.len(),
        launches: figures.len(),
    })
}

/// The figures of two runtimes at one point, launch by launch.
#[derive(Debug, Default)]
pub struct Paired {
    /// Those that are compared.
    pub pairs: Vec<Pair>,
    /// How many of the first one found no partner.
    pub alone: usize,
}

/// Two figures that were measured close together.
#[derive(Debug)]
pub struct Pair {
    /// When, by that of the first one.
    pub round: usize,
    /// As [`Ratio::median`].
    pub ratio: f64,
    ours: f64,
    peer: f64,
}

impl Point<'_> {
    /// The places of the figures of `ours` and of `peer` that belong together.
    fn partners(&self, ours: usize, peer: usize) -> Vec<(usize, usize)> {
        let moments = |place: usize| self.figures[place].iter().map(|figure| figure.moment);
        let [ours, peer] = [ours, peer].map(|place| moments(place).collect::<Vec<_>>());
        pairing::pairs(&ours, &peer)
    }

    /// Pairs the launches of `ours` with those of `peer`.
    pub fn paired(&self, better: Better, ours: usize, peer: usize) -> Paired {
        let partners = self.partners(ours, peer);
        let alone = self.figures[ours].len() - partners.len();
        let pair = |(one, other): (usize, usize)| {
            let (ours, peer) = (&self.figures[ours][one], &self.figures[peer][other]);
            let (round, ours, peer) = (ours.moment.round, ours.value, peer.value);
            let ratio = ratio_of_times(better, ours, peer)?;
            Some(Pair { round, ratio, ours, peer })
        };
        Paired { pairs: partners.into_iter().filter_map(pair).collect(), alone }
    }

    /// How many figures of all runtimes saw this face.
    pub fn seen(&self, face: Face) -> usize {
        self.figures.iter().flatten().filter(|it| it.moment.sight == Sight::One(face)).count()
    }

    /// How many pairs that saw this face every other runtime has with the principal one, at least. A
    /// runtime that gave up early does not count; without any other, or without the principal one, it
    /// is the figures that are counted.
    pub fn pairs_of(&self, face: Face, principal: usize) -> usize {
        let most = self.figures.iter().map(Vec::len).max().unwrap_or(0);
        let is_steady = |place: &usize| 2 * self.figures[*place].len() >= most;
        let saw = |figure: &Figure<'_>| figure.moment.sight == Sight::One(face);
        let steady: Vec<usize> = (0..self.figures.len()).filter(is_steady).collect();
        let pairs = |other: &usize| {
            let partners = self.partners(principal, *other).into_iter();
            partners.filter(|(place, _)| saw(&self.figures[principal][*place])).count()
        };
        let figures = |place: &usize| self.figures[*place].iter().filter(|it| saw(it)).count();
        let has_pairs = steady.contains(&principal) && steady.len() > 1;
        let least = if has_pairs {
            steady.iter().filter(|place| **place != principal).map(pairs).min()
        } else {
            steady.iter().map(figures).min()
        };
        least.unwrap_or(0)
    }

    /// Whether faces matter here.
    pub fn has_faces(&self) -> bool {
        self.figures.iter().flatten().any(|figure| figure.moment.sight != Sight::Any)
    }

    /// The ratio of a pair of runtimes; `None` if no two of their launches may be compared.
    pub fn ratio(&self, better: Better, ours: usize, peer: usize) -> Option<Ratio> {
        let Paired { pairs, alone } = self.paired(better, ours, peer);
        let values = |of: fn(&Pair) -> f64| pairs.iter().map(of).collect::<Vec<_>>();
        let ratios = values(|pair| pair.ratio);
        let interval = stats::interval(&ratios);
        let figures = [values(|pair| pair.ours), values(|pair| pair.peer)];
        let [ours_interval, peer_interval] = figures.map(|values| stats::interval(&values));
        let (side, figures) = (side_of_1(interval), apart(better, ours_interval, peer_interval));
        let verdict = if side == figures { side } else { Verdict::Open };
        let (median, pairs) = (stats::median(&ratios)?, pairs.len());
        Some(Ratio { ours, peer, median, interval, pairs, alone, verdict })
    }
}
