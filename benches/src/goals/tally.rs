//! How far a run reached the goals. Pure.
//!
//! The ratios are those of the analysis, and so are the points that count: of message sizes 0 and powers
//! of two. Each face of the machine is judged by itself, without the figures of the other one, also
//! where tables are not split by face.

#[cfg(test)]
mod tests;

use mpj_bench_programs::{Sample, Series, X};

use super::{BEYOND_BACKENDS, Beside, GOALS, Goal, Part};
use crate::analysis::{self, Ratio, Row, Table};
use crate::model::{Face, Launch, Run, SELF, Sight};
use crate::results::findings;
use crate::stats;

/// How a run stands to a goal, on one face of the machine.
#[derive(Debug)]
pub struct Standing {
    /// The goal.
    pub goal: &'static Goal,
    /// The face; `None` where it does not matter, or if nothing was measured.
    pub face: Option<Face>,
    /// The points that were measured.
    pub points: Vec<Measured>,
}

/// One point of a goal.
#[derive(Debug)]
pub struct Measured {
    /// What was measured.
    pub series: &'static Series,
    /// As [`Row::x`].
    pub x: u64,
    /// Our time by that of the other.
    pub ratio: Ratio,
}

/// What may be said of a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// No point exceeds it, by medians.
    Reached,
    /// A point does.
    Missed,
    /// The worst point has too few pairs to give an interval.
    TooFew,
    /// There is no point.
    NotMeasured,
}

impl Standing {
    /// The point with the highest ratio.
    pub fn worst(&self) -> Option<&Measured> {
        self.points.iter().max_by(|one, other| one.ratio.median.total_cmp(&other.ratio.median))
    }

    /// The median of the ratios of the points.
    pub fn median(&self) -> Option<f64> {
        stats::median(&self.points.iter().map(|point| point.ratio.median).collect::<Vec<_>>())
    }

    /// How many pairs the point with the fewest has.
    pub fn pairs(&self) -> Option<usize> {
        self.points.iter().map(|point| point.ratio.pairs).min()
    }

    /// What may be said.
    pub fn word(&self) -> Word {
        match self.worst().map(|worst| &worst.ratio) {
            None => Word::NotMeasured,
            Some(ratio) if ratio.interval.is_none() => Word::TooFew,
            Some(ratio) if ratio.median <= self.goal.most(self.face) => Word::Reached,
            Some(_) => Word::Missed,
        }
    }
}

/// The figures that saw one face of the machine, or for which it does not matter.
struct Seen {
    face: Option<Face>,
    run: Run,
    /// With the ratios of the principal runtime to every other one.
    tables: Vec<Table>,
}

/// The figures of a run by what they saw, as far as there are any.
fn seen(run: &Run, principal: usize) -> Vec<Seen> {
    let others = (0..run.header.runtimes.len()).filter(|place| *place != principal);
    let pairs: Vec<_> = others.map(|other| (principal, other)).collect();
    let of_sight = |(face, sight)| {
        let run = analysis::by_sight(run, sight);
        let tables = analysis::tables_with(&run, &pairs);
        (!tables.is_empty()).then_some(Seen { face, run, tables })
    };
    let faces = [Face::Near, Face::Far].map(|face| (Some(face), Sight::One(face)));
    faces.into_iter().chain([(None, Sight::Any)]).filter_map(of_sight).collect()
}

/// How the principal runtime stands to every goal: for each face that was seen, or once where faces do
/// not matter or nothing was measured. Nothing without a runtime of ours.
pub fn standings(run: &Run) -> Vec<Standing> {
    let Some(principal) = analysis::principal(&run.header) else { return Vec::new() };
    let seen = seen(run, principal);
    let of_goal = |goal: &'static Goal| {
        let standing =
            |seen: &Seen| Standing { goal, face: seen.face, points: seen.points(goal, principal) };
        let mut standings: Vec<Standing> = seen.iter().map(standing).collect();
        let has = |standing: &Standing| !standing.points.is_empty();
        let has_faces = standings.iter().any(|it| it.face.is_some() && has(it));
        // On a face that was seen elsewhere, a missing figure is named as such.
        standings.retain(|it| has(it) || (has_faces && it.face.is_some()));
        if standings.is_empty() {
            standings.push(Standing { goal, face: None, points: Vec::new() });
        }
        standings
    };
    GOALS.iter().flat_map(of_goal).collect()
}

impl Seen {
    fn points(&self, goal: &Goal, principal: usize) -> Vec<Measured> {
        match goal.beside {
            Beside::CacheLine => self.of_launches(goal, principal, |sample| {
                let (before, after) = sample.raw?;
                Some(stats::median(&sample.values)? * 1e3 / ((before + after) / 2.0))
            }),
            Beside::Nothing => {
                self.of_launches(goal, principal, |sample| stats::median(&sample.values))
            }
            Beside::BestPeer => self.by_best_peer(goal, principal),
        }
    }

    fn by_best_peer(&self, goal: &Goal, principal: usize) -> Vec<Measured> {
        let header = &self.run.header;
        let of_row = |table: &Table, row: &Row| {
            let peer = row.best_peer(table.series.better, header)?;
            // What we are beside ourselves is no goal.
            let is_peer = header.runtimes[peer].id != SELF;
            let ratio = row.ratio(principal, peer).filter(|_| is_peer)?.clone();
            Some(Measured { series: table.series, x: row.x, ratio })
        };
        let tables = self.tables.iter().map(findings::counted_of);
        let of_table = |table: Table| {
            let is_wanted = |row: &&Row| goal.parts.iter().any(|part| part.has(&table, row));
            let rows = table.rows.iter().filter(is_wanted);
            rows.filter_map(|row| of_row(&table, row)).collect::<Vec<_>>()
        };
        tables.flat_map(of_table).collect()
    }

    /// What `ratio` makes of the figures of each launch.
    fn of_launches(
        &self,
        goal: &Goal,
        principal: usize,
        ratio: impl Fn(&Sample) -> Option<f64>,
    ) -> Vec<Measured> {
        let id = &self.run.header.runtimes[principal].id;
        let own = self.run.launches.iter().filter(|launch| launch.runtime == *id);
        let of_part = |part: &Part| {
            let is_wanted =
                |launch: &Launch| !launch.oversubscribed && launch.ranks as u64 == part.ranks;
            let samples = own.clone().filter(|it| is_wanted(it)).flat_map(|it| &it.samples);
            let samples = samples.filter(|it| it.series == part.series && it.x == part.from);
            let ratios: Vec<f64> = samples.filter_map(&ratio).collect();
            let interval = stats::interval(&ratios);
            let (median, pairs) = (stats::median(&ratios)?, ratios.len());
            let verdict = analysis::side_of_1(interval);
            let (ours, peer, alone) = (principal, principal, 0);
            let ratio = Ratio { ours, peer, median, interval, pairs, alone, verdict };
            Some(Measured { series: Series::named(part.series)?, x: part.from, ratio })
        };
        goal.parts.iter().filter_map(of_part).collect()
    }
}

impl Part {
    /// Whether a row of a table belongs to it.
    fn has(&self, table: &Table, row: &Row) -> bool {
        let ranks = table.ranks.map_or(row.x, |ranks| ranks as u64);
        table.series.id == self.series
            && ranks == self.ranks
            && (self.from..=self.to).contains(&row.x)
    }
}

/// A point at which auto takes longer than the better one of the two backends, by more than it may.
#[derive(Debug)]
pub struct Excess {
    /// The face, as [`Standing::face`].
    pub face: Option<Face>,
    /// As [`Table::ranks`].
    pub ranks: Option<usize>,
    /// Which point; the ratio is that to the better backend.
    pub point: Measured,
}

/// Where auto takes more than [`BEYOND_BACKENDS`] times as long as the backend with the better median:
/// messages of all sizes, also the neighbours of thresholds. `None` if the three of them have no point
/// in common.
pub fn beyond_backends(run: &Run) -> Option<Vec<Excess>> {
    let place = |id| analysis::place_of(&run.header, id);
    let (auto, backends) = (place("auto")?, [place("eager")?, place("rendezvous")?]);
    let (mut excesses, mut is_measured) = (Vec::new(), false);
    for Seen { face, tables, .. } in seen(run, auto) {
        let tables = tables.iter().filter(|table| table.series.x == X::Bytes);
        let tables = tables.filter(|table| findings::KEY.contains(&table.series.id));
        let rows = tables.flat_map(|table| table.rows.iter().map(move |row| (table, row)));
        for (table, row) in rows {
            let Some(better) = row.better(table.series.better, backends) else { continue };
            let Some(ratio) = row.ratio(auto, better) else { continue };
            is_measured = true;
            if ratio.median > BEYOND_BACKENDS {
                let point = Measured { series: table.series, x: row.x, ratio: ratio.clone() };
                excesses.push(Excess { face, ranks: table.ranks, point });
            }
        }
    }
    is_measured.then_some(excesses)
}
