//! What the tables allow to say, in sentences. Used by the page and the results document.
//!
//! Every claim is a [`Verdict`] of the analysis; medians alone are called medians.

use mpj_bench_programs::{Unit, X};

use super::{facts, wording};
use crate::analysis::{self, Estimate, Ratio, Row, Table, Verdict};
use crate::model::Header;
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
    /// The pairs of a page: each of ours with the best of several peers; else those of the analysis.
    pub fn shown(header: &Header) -> Vec<Self> {
        let ours = |place: &usize| header.runtimes[*place].ours;
        if header.runtimes.iter().filter(|runtime| !runtime.ours).count() > 1 {
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

/// The tables with only those points that are counted: of message sizes 0 and powers of two, if there
/// are any, since the neighbours of our thresholds would weigh our steps; and those with more ranks
/// than processors apart from the others.
pub fn counted(views: &[View]) -> Vec<View> {
    let split = |view: &View| {
        let table = counted_of(&view.table);
        let part = |crowded: bool| {
            let mut part = View { table: table.clone(), ..view.clone() };
            part.table.rows.retain(|row| row.oversubscribed == crowded);
            part
        };
        [part(false), part(true)]
    };
    let parts = views.iter().flat_map(split);
    parts.filter(|part| !part.table.rows.is_empty()).collect()
}

/// A table with only those of its sizes that are counted.
pub fn counted_of(table: &Table) -> Table {
    let counts = |row: &Row| row.x == 0 || row.x.is_power_of_two();
    let mut table = table.clone();
    if table.series.x == X::Bytes && table.rows.iter().any(counts) {
        table.rows.retain(counts);
    }
    table
}

/// The name of a table of [`counted`], with the star that its points have.
pub fn name(counted: &View) -> String {
    let star = if counted.table.rows.iter().any(|row| row.oversubscribed) { " *" } else { "" };
    format!("{}{star}", counted.name())
}

/// Where the backends cross over by medians, among the points that are counted.
pub fn crossover(table: &Table, header: &Header) -> Option<u64> {
    analysis::crossover(&counted_of(table), header)
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
    /// The ratios where it is faster.
    gains: Vec<f64>,
    /// The ratios where it is slower.
    losses: Vec<f64>,
    /// Whether there is an interval at any point.
    has_intervals: bool,
    /// How many launches of each are compared at a point, at most.
    launches: usize,
}

impl Standing {
    /// The standing of a pair.
    pub fn of(table: &Table, header: &Header, pair: Pair) -> Self {
        let mut standing = Self::default();
        for row in &table.rows {
            if let Some(ratio) = pair.ratio(table, header, row) {
                standing.add_ratio(row.x, ratio);
            }
        }
        standing
    }

    fn add_ratio(&mut self, x: u64, ratio: &Ratio) {
        self.add(x, ratio.verdict);
        self.has_intervals |= ratio.interval.is_some();
        self.launches = self.launches.max(ratio.pairs);
        match ratio.verdict {
            Verdict::Faster => self.gains.push(ratio.median),
            Verdict::Slower => self.losses.push(ratio.median),
            Verdict::Open => {}
        }
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

    /// Why nothing can be said of any point, if it is for want of launches.
    pub fn without_intervals(&self) -> Option<String> {
        let launches = wording::count(self.launches, "launch of each", "launches of each");
        (!self.has_intervals && self.points() > 0).then(|| format!("no intervals: {launches}"))
    }

    /// The ratios of the points that are decided: `0.350–0.610 where faster`. Empty if none is.
    pub fn ratios(&self) -> String {
        let kinds = [("faster", &self.gains), ("slower", &self.losses)];
        let texts = kinds.into_iter().filter_map(|(word, ratios)| {
            Some(format!("{} where {word}", wording::ratios(ratios)?))
        });
        texts.collect::<Vec<_>>().join(", ")
    }

    /// In words: `faster at 2 of 3 sizes (1, 2), open at 1 (4)`.
    pub fn text(&self, table: &Table) -> String {
        if let Some(why) = self.without_intervals() {
            return why;
        }
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
    let mut key = counted(views);
    key.retain(|view| KEY.contains(&view.table.series.id));
    let backends = key.iter().filter_map(|view| backends(header, view));
    let mut answers = vec![answer("Eager or rendezvous".to_owned(), backends)];
    for peer in (0..header.runtimes.len()).filter(|place| !header.runtimes[*place].ours) {
        let Some(ours) = analysis::principal(header) else { continue };
        let pair = Pair::Of(ours, peer);
        let sentences = key.iter().filter_map(|view| against(header, view, pair));
        answers.push(answer(pair.name(header, "against"), sentences));
    }
    answers.retain(|answer| !answer.sentences.is_empty());
    answers
}

fn against(header: &Header, view: &View, pair: Pair) -> Option<String> {
    let standing = Standing::of(&view.table, header, pair);
    if standing.points() == 0 {
        return None;
    }
    let (text, ratios) = (standing.text(&view.table), standing.ratios());
    let ratios =
        if ratios.is_empty() { ratios } else { format!(" Medians of the ratios: {ratios}.") };
    Some(format!("{}: {text}.{ratios}", name(view)))
}

fn answer(heading: String, sentences: impl Iterator<Item = String>) -> Answer {
    Answer { heading, sentences: sentences.collect() }
}

/// One median of every runtime.
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
        let star = if row.oversubscribed { " *" } else { "" };
        let name = format!("{}, {}{star}", view.name(), wording::at(series.x, row.x));
        Some(Headline { name, figures })
    };
    key.filter_map(headline).collect()
}

/// Which backend is faster where.
fn backends(header: &Header, view: &View) -> Option<String> {
    let table = &view.table;
    let places = ["eager", "rendezvous"].map(|id| analysis::place_of(header, id));
    let [Some(eager), Some(rendezvous)] = places else { return None };
    let standing = of_backends(table, eager, rendezvous);
    let xs: Vec<u64> = table.rows.iter().map(|row| row.x).collect();
    let clause = |who: &str, points: &[u64]| {
        let ranges = wording::ranges(table.series.x, &xs, points);
        let at = if xs.len() > 1 { format!(" at {ranges}") } else { String::new() };
        (!points.is_empty()).then(|| format!("{who}{at}"))
    };
    let clauses = [
        clause("eager is faster", &standing.faster),
        clause("rendezvous is faster", &standing.slower),
        clause("open", &standing.open),
    ];
    let clauses: Vec<_> = clauses.into_iter().flatten().collect();
    if clauses.is_empty() {
        return None;
    }
    let verdicts = standing.without_intervals().unwrap_or_else(|| clauses.join("; "));
    let by_medians = by_medians(table, header, &xs).unwrap_or_default();
    Some(format!("{}: {verdicts}.{by_medians}", name(view)))
}

/// The standing of the backends: by their ratio, or by their figures where peers have the ratios.
fn of_backends(table: &Table, eager: usize, rendezvous: usize) -> Standing {
    let mut standing = Standing::default();
    for row in &table.rows {
        if let Some(ratio) = row.ratio(eager, rendezvous) {
            standing.add_ratio(row.x, ratio);
            continue;
        }
        let both = row.cells[eager].as_ref().zip(row.cells[rendezvous].as_ref());
        let Some((one, other)) = both else { continue };
        standing.add(row.x, analysis::apart(table.series.better, one.interval, other.interval));
        standing.has_intervals |= one.interval.is_some() && other.interval.is_some();
        standing.launches = standing.launches.max(one.launches.min(other.launches));
    }
    standing
}

/// The crossover in a sentence; none for a single point.
fn by_medians(table: &Table, header: &Header, xs: &[u64]) -> Option<String> {
    let [first, .., last] = xs else { return None };
    let point = |x: &u64| wording::point(table.series.x, *x);
    Some(match analysis::crossover(table, header) {
        Some(from) if from == *first => {
            " No crossover by medians: rendezvous is never behind.".to_owned()
        }
        Some(from) => {
            format!(" Crossover by medians: rendezvous is not behind from {} on.", point(&from))
        }
        None => {
            let last = point(last);
            format!(" No crossover by medians: eager is ahead at the largest, {last}.")
        }
    })
}

/// For a table of sends to a blocked rank: what the wait took of each runtime, in the table of `views`
/// that belongs to it, from the least to the most. `Processor time while blocked: mpj auto 0.500 % to
/// 41.0 %, MPICH 100 %`.
pub fn while_blocked(header: &Header, views: &[View], wakeup: &View) -> Option<String> {
    let [one, other] = facts::BLOCKED;
    let belongs = |view: &&View| {
        view.table.series.id == other
            && (view.face, view.table.ranks) == (wakeup.face, wakeup.table.ranks)
    };
    if wakeup.table.series.id != one {
        return None;
    }
    let table = &views.iter().find(belongs)?.table;
    let texts = header.runtimes.iter().enumerate().filter_map(|(place, runtime)| {
        let medians = table.rows.iter().filter_map(|row| Some(row.cells[place].as_ref()?.median));
        let quantity = |median| wording::quantity(median, table.series.unit);
        let least = quantity(medians.clone().reduce(f64::min)?);
        let most = quantity(medians.reduce(f64::max)?);
        let range = if least == most { least } else { format!("{least} to {most}") };
        Some(format!("{} {range}", runtime.label))
    });
    let texts: Vec<_> = texts.collect();
    Some(format!("{}: {}", table.series.title, texts.join(", ")))
}
