//! The tables as they are shown: one for each face of the machine.
//!
//! A figure over both faces says nothing about either. So a table whose ranks stay on processors of
//! their own is made once for each face that was seen often enough, from the samples that saw it;
//! samples of a face that was not are left out.

use crate::analysis::{self, Catch, Table};
use crate::model::{Face, Run};
use crate::stats;

/// A table, of all launches or of those that saw one face of the machine.
#[derive(Debug, Clone)]
pub struct View {
    /// The face, `None` for all launches.
    pub face: Option<Face>,
    /// The table.
    pub table: Table,
    /// Whether it goes without saying on how many ranks: on two, as everything of this series.
    pub usual: bool,
}

impl View {
    /// What tells it from other tables of the series: `4 ranks`, `near`.
    pub fn place(&self) -> String {
        let ranks = self.table.ranks.filter(|_| !self.usual).map(ranks);
        let face = self.face.map(|face| face.name().to_owned());
        ranks.into_iter().chain(face).collect::<Vec<_>>().join(", ")
    }

    /// Its name: `Latency, near`.
    pub fn name(&self) -> String {
        let (title, place) = (self.table.series.title, self.place());
        if place.is_empty() { title.to_owned() } else { format!("{title}, {place}") }
    }
}

fn ranks(number: usize) -> String {
    format!("{number} rank{}", if number == 1 { "" } else { "s" })
}

/// The part of the figures that a face has to have so that its pairs are waited for.
const OFTEN: f64 = 0.25;

/// For each table, by its place in [`analysis::tables`]: the faces that it is shown for. None where
/// faces do not matter; else those of which there are half of enough pairs, so that some points may
/// have enough, or the one that was caught best.
fn faces(run: &Run) -> Vec<Vec<Face>> {
    let enough = enough(run);
    let of_table = |catch: Option<Catch>| {
        let Some(Catch { pairs, .. }) = catch else { return Vec::new() };
        let most = pairs[0].max(pairs[1]);
        let shown = |count: usize| 2 * count >= enough || (count == most && count > 0);
        let counts = [Face::Near, Face::Far].into_iter().zip(pairs);
        counts.filter(|(_, count)| shown(*count)).map(|(face, _)| face).collect()
    };
    analysis::catches(run).into_iter().map(of_table).collect()
}

/// How many pairs of one face are enough: those that an interval takes, if so many rounds were planned.
fn enough(run: &Run) -> usize {
    run.header.rounds.min(stats::FEWEST)
}

/// Whether every table of `run` has enough pairs of some face, and of the other one if it was seen
/// often. It looks at counts alone, never at figures, so it may decide whether to go on measuring.
pub fn is_settled(run: &Run) -> bool {
    let enough = enough(run);
    let is_settled = |catch: Catch| {
        let Catch { pairs, figures } = catch;
        let all = (figures[0] + figures[1]) as f64;
        let is_waited_for =
            |place: usize| pairs[place] < enough && figures[place] as f64 >= OFTEN * all;
        pairs.iter().any(|count| *count >= enough) && !(0..2).any(is_waited_for)
    };
    analysis::catches(run).into_iter().flatten().all(is_settled)
}

/// The tables of `run`, of which `tables` are [`analysis::tables`], as they are shown.
pub fn of(run: &Run, tables: &[Table]) -> Vec<View> {
    let usual = |table: &Table| {
        let same = tables.iter().filter(|it| it.series == table.series);
        same.count() == 1 && table.ranks == Some(2)
    };
    let view = |face, table: &Table| View { face, table: table.clone(), usual: usual(table) };
    let of_face = |face| analysis::tables(&analysis::by_face(run, face));
    let (near, far) = (of_face(Face::Near), of_face(Face::Far));
    let split = |(table, faces): (&Table, Vec<Face>)| -> Vec<View> {
        let same = |it: &&Table| it.series == table.series && it.ranks == table.ranks;
        let of_face = |face| match face {
            Face::Near => near.iter().find(same),
            Face::Far => far.iter().find(same),
        };
        // Tables over ranks have points of all kinds.
        let faces = faces.into_iter().filter(|_| table.ranks.is_some());
        let found: Vec<_> =
            faces.filter_map(|face| Some(view(Some(face), of_face(face)?))).collect();
        if found.is_empty() { vec![view(None, table)] } else { found }
    };
    tables.iter().zip(faces(run)).flat_map(split).collect()
}
