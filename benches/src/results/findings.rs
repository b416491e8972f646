//! What the tables allow to say, in sentences. Used by the page and the results document.
//!
//! Every claim is a [`Verdict`] of the analysis; medians alone are called medians.

use mpj_bench_programs::Unit;

use super::wording;
use crate::analysis::{self, Estimate, Ratio, Row, Table, Verdict};
use crate::model::Header;
use crate::stats;
use crate::views::View;

/// The series that the answers are about; all others are in the overview.
pub const KEY: &[&str] = &["latency", "bandwidth", "bibw", "rate"];

/// The pair that a row is judged by.
#[derive(Clone, Copy)]
pub enum Pair {
    /// One of ours and, at each point, the best peer there.
    Best(usize),
    /// Two runtimes.
    Of(usize, usize),
}

impl Pair {
    /// The pairs of a page: each of ours with the best peer, or the backends with one another.
    pub fn shown(header: &Header) -> Vec<Self> {
        let ours = |place: &usize| header.runtimes[*place].ours;
        if header.runtimes.iter().any(|runtime| !runtime.ours) {
            return (0..header.runtimes.len()).filter(ours).map(Self::Best).collect();
        }
        analysis::pairs(header).into_iter().map(|(one, other)| Self::Of(one, other)).collect()
    }

    /// The pairs that have a line each in a chart of ratios: those of [`Pair::shown`] that are over the
    /// same other one.
    pub fn drawn(header: &Header) -> Vec<Self> {
        let mut pairs = Self::shown(header);
        let other = pairs.first().map(|pair| pair.other());
        pairs.retain(|pair| Some(pair.other()) == other);
        pairs
    }

    /// What the pairs of [`Pair::drawn`] are over.
    pub fn baseline(header: &Header) -> Option<&str> {
        let other = Self::shown(header).first()?.other();
        Some(other.map_or("the best peer", |place| &*header.runtimes[place].label))
    }

    /// The second one, if it is the same everywhere.
    fn other(self) -> Option<usize> {
        match self {
            Self::Best(_) => None,
            Self::Of(_, other) => Some(other),
        }
    }

    /// The one of ours.
    pub fn ours(self) -> usize {
        let (Self::Best(ours) | Self::Of(ours, _)) = self;
        ours
    }

    /// Its name: `mpj auto against the best peer`.
    pub fn name(self, header: &Header, between: &str) -> String {
        let label = |place: usize| &*header.runtimes[place].label;
        match self {
            Self::Best(ours) => format!("{} {between} best peer", label(ours)),
            Self::Of(ours, peer) => format!("{} {between} {}", label(ours), label(peer)),
        }
    }

    /// The ratio of the pair in a row.
    pub fn ratio<'row>(
        self,
        table: &Table,
        header: &Header,
        row: &'row Row,
    ) -> Option<&'row Ratio> {
        match self {
            Self::Best(ours) => row.ratio(ours, row.best_peer(table.series.better, header)?),
            Self::Of(ours, peer) => row.ratio(ours, peer),
        }
    }
}

/// How a pair stands over all points of a table.
#[derive(Debug, Default, PartialEq)]
pub struct Standing {
    /// Points at which the first is faster.
    pub faster: Vec<u64>,
    /// Points at which nothing can be said.
    pub open: Vec<u64>,
    /// Points at which the first is slower.
    pub slower: Vec<u64>,
    /// The ratios, point by point.
    pub ratios: Vec<f64>,
}

impl Standing {
    /// The standing of a pair.
    pub fn of(table: &Table, header: &Header, pair: Pair) -> Self {
        let mut standing = Self::default();
        for row in &table.rows {
            if let Some(ratio) = pair.ratio(table, header, row) {
                standing.add(row.x, ratio.verdict);
                standing.ratios.push(ratio.median);
            }
        }
        standing
    }

    fn add(&mut self, x: u64, verdict: Verdict) {
        match verdict {
            Verdict::Faster => self.faster.push(x),
            Verdict::Open => self.open.push(x),
            Verdict::Slower => self.slower.push(x),
        }
    }

    /// How many points have a verdict, be it an open one.
    pub fn points(&self) -> usize {
        self.faster.len() + self.open.len() + self.slower.len()
    }

    /// The geometric mean of the ratios.
    pub fn mean(&self) -> Option<f64> {
        stats::geometric_mean(&self.ratios)
    }

    /// In words: `faster at 2 of 3 sizes (1, 2), open at 1 (4)`.
    pub fn text(&self, table: &Table) -> String {
        let (series, all) = (table.series, self.points());
        let kinds = [
            (Verdict::Faster, &self.faster),
            (Verdict::Open, &self.open),
            (Verdict::Slower, &self.slower),
        ];
        let xs: Vec<u64> = table.rows.iter().map(|row| row.x).collect();
        let kinds = kinds.iter().filter(|(_, points)| !points.is_empty()).enumerate();
        let words = kinds.map(|(place, (verdict, points))| {
            let word = wording::verdict(series, *verdict);
            let ranges = wording::ranges(series.x, &xs, points);
            match points.len() {
                _ if all == 1 => word.to_owned(),
                many if many == all => format!("{word} at all {all} {}", wording::points(series.x)),
                many if place == 0 => {
                    format!("{word} at {many} of {all} {} ({ranges})", wording::points(series.x))
                }
                many => format!("{word} at {many} ({ranges})"),
            }
        });
        words.collect::<Vec<_>>().join(", ")
    }
}

/// A heading and its sentences.
pub struct Answer {
    /// The heading.
    pub heading: String,
    /// The sentences, each a paragraph or an item.
    pub sentences: Vec<String>,
}

/// The short answers: eager or rendezvous, and how ours stands with every peer.
pub fn answers(header: &Header, views: &[View]) -> Vec<Answer> {
    let key: Vec<&View> = views.iter().filter(|view| KEY.contains(&view.table.series.id)).collect();
    let backends = key.iter().filter_map(|view| backends(header, view));
    let mut answers = vec![answer("Eager or rendezvous".to_owned(), backends)];
    for peer in (0..header.runtimes.len()).filter(|place| !header.runtimes[*place].ours) {
        let Some(ours) = principal(header) else { continue };
        let pair = Pair::Of(ours, peer);
        let sentences = key.iter().filter_map(|view| {
            let standing = Standing::of(&view.table, header, pair);
            let text = standing.text(&view.table);
            let mean = wording::ratio(standing.mean()?);
            Some(format!("{}: {text}. Mean ratio of times {mean}.", view.name()))
        });
        answers.push(answer(pair.name(header, "against"), sentences));
    }
    answers.retain(|answer| !answer.sentences.is_empty());
    answers
}

fn answer(heading: String, sentences: impl Iterator<Item = String>) -> Answer {
    Answer { heading, sentences: sentences.collect() }
}

/// The one of ours that users get if they ask for nothing.
pub fn principal(header: &Header) -> Option<usize> {
    let first = || header.runtimes.iter().position(|runtime| runtime.ours);
    analysis::place_of(header, "auto").or_else(first)
}

/// One figure of every runtime.
pub struct Headline {
    /// Which: `Latency, near, at 8 bytes`.
    pub name: String,
    /// The figures, in the order of the header's runtimes.
    pub figures: Vec<String>,
}

/// The figures that are asked for most: at 8 bytes where time counts, of the longest message where
/// bandwidth does.
pub fn headlines(header: &Header, views: &[View]) -> Vec<Headline> {
    let key = views.iter().filter(|view| KEY.contains(&view.table.series.id));
    let headline = |view: &View| {
        let (rows, series) = (&view.table.rows, view.table.series);
        let of_8 = || rows.iter().find(|row| row.x == 8).or(rows.first());
        let longest = series.unit == Unit::MegabytesPerSecond;
        let row = if longest { rows.last() } else { of_8() }?;
        let figure = |cell: &Option<Estimate>| {
            let cell = cell.as_ref();
            cell.map_or("-".to_owned(), |it| wording::quantity(it.median, series.unit))
        };
        let figures = row.cells.iter().take(header.runtimes.len()).map(figure).collect();
        let name = format!("{}, {}", view.name(), wording::at(series.x, row.x));
        Some(Headline { name, figures })
    };
    key.filter_map(headline).collect()
}

/// Which backend is faster where.
fn backends(header: &Header, view: &View) -> Option<String> {
    let table = &view.table;
    let places = ["eager", "rendezvous"].map(|id| analysis::place_of(header, id));
    let [Some(eager), Some(rendezvous)] = places else { return None };
    let mut standing = Standing::default();
    for row in &table.rows {
        let Some((one, other)) = row.cells[eager].as_ref().zip(row.cells[rendezvous].as_ref())
        else {
            continue;
        };
        let paired = row.ratio(eager, rendezvous).map(|ratio| ratio.verdict);
        let apart = || analysis::apart(table.series.better, one.interval, other.interval);
        standing.add(row.x, paired.unwrap_or_else(apart));
    }
    let xs: Vec<u64> = table.rows.iter().map(|row| row.x).collect();
    let clause = |who: &str, points: &[u64]| {
        let ranges = wording::ranges(table.series.x, &xs, points);
        (!points.is_empty()).then(|| format!("{who} at {ranges}"))
    };
    let clauses = [
        clause("eager is faster", &standing.faster),
        clause("rendezvous is faster", &standing.slower),
        clause("open", &standing.open),
    ];
    let clauses: Vec<_> = clauses.into_iter().flatten().collect();
    if let [_] = table.rows[..] {
        let clause = clauses.first()?.split(" at ").next()?;
        return Some(format!("{}: {clause}.", view.name()));
    }
    let (first, last) = (xs.first()?, xs.last()?);
    let point = |x| wording::point(table.series.x, x);
    let medians = match analysis::crossover(table, header) {
        Some(from) if from == *first => "rendezvous is never behind".to_owned(),
        Some(from) => format!("rendezvous is not behind from {} on", point(from)),
        None => format!("eager is ahead at the largest, {}", point(*last)),
    };
    if clauses.is_empty() {
        return None;
    }
    Some(format!("{}: {}. By medians, {medians}.", view.name(), clauses.join("; ")))
}
