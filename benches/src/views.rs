//! The tables as they are shown: between two ranks, one for each face of the machine.
//!
//! A figure over launches of both faces says nothing about either. So a table of two ranks is made
//! once for each face that was seen often enough, from the launches that saw it; launches of a face
//! that was not are left out, which the notes on the run say.

use std::collections::BTreeSet;

use crate::analysis::{self, Table};
use crate::model::{Face, Run};

/// Rounds in which every runtime must have seen a face for the face to be shown.
const ROUNDS_OF_FACE: usize = 3;

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

/// In how many rounds every runtime saw this face.
pub fn rounds_of(run: &Run, face: Face) -> usize {
    let rounds = |id: &str| {
        let seen = run.launches.iter().filter(|it| it.runtime == id && it.face() == Some(face));
        seen.map(|launch| launch.round).collect::<BTreeSet<_>>().len()
    };
    run.header.runtimes.iter().map(|runtime| rounds(&runtime.id)).min().unwrap_or(0)
}

/// The faces that were seen often enough to be shown.
pub fn faces(run: &Run) -> Vec<Face> {
    let enough = |face: &Face| rounds_of(run, *face) >= ROUNDS_OF_FACE;
    [Face::Near, Face::Far].into_iter().filter(enough).collect()
}

/// The tables of `run`, of which `tables` are [`analysis::tables`], as they are shown.
pub fn of(run: &Run, tables: &[Table]) -> Vec<View> {
    let usual = |table: &Table| {
        let same = tables.iter().filter(|it| it.series == table.series);
        same.count() == 1 && table.ranks == Some(2)
    };
    let view = |face, table: &Table| View { face, table: table.clone(), usual: usual(table) };
    let of_face = |face| (face, analysis::tables(&analysis::by_face(run, face)));
    let faces: Vec<_> = faces(run).into_iter().map(of_face).collect();
    let split = |table: &Table| -> Vec<View> {
        let same = |it: &&Table| it.series == table.series && it.ranks == table.ranks;
        let found = faces
            .iter()
            .filter(|_| table.ranks == Some(2))
            .filter_map(|(face, tables)| Some(view(Some(*face), tables.iter().find(same)?)));
        let found: Vec<_> = found.collect();
        if found.is_empty() { vec![view(None, table)] } else { found }
    };
    tables.iter().flat_map(split).collect()
}
