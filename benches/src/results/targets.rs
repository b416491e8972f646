//! How far the goals of this project are reached, in words. Used by the text, the page and the results
//! document.

use mpj_bench_programs::Series;
use mpj_bench_programs::series::SERIES;

use super::{facts, wording};
use crate::analysis;
use crate::goals::{self, BEYOND_BACKENDS, Beside, Excess, Standing, Word};
use crate::model::{Header, Run, SELF};

/// The heading of the goals.
pub fn heading(header: &Header) -> &'static str {
    if has_peers(header) { "Against the best peer" } else { "Goals" }
}

fn has_peers(header: &Header) -> bool {
    header.runtimes.iter().any(|runtime| !runtime.ours && runtime.id != SELF)
}

/// How the rows are to be read.
pub fn note(header: &Header) -> &'static str {
    if has_peers(header) { BESIDE_PEERS } else { ALONE }
}

const BESIDE_PEERS: &str = "Goals of this project, and how far this run reached them: the time of mpj auto \
                            by that of the peer with the best median at the same point, each face of the \
                            machine by itself; of message sizes, powers of two count. Reached or missed is \
                            said of the median at the worst point; its interval says how sure that is. \
                            Pairs are those of the point that has the fewest.";
const ALONE: &str = "Goals of this project that take nothing to compare with, and how far this run reached \
                     them, each face of the machine by itself.";

/// The columns of [`rows`].
pub const HEADS: [&str; 8] =
    ["Goal", "Face", "At most", "Worst ratio", "Where", "Median ratio", "Pairs", "So"];

/// One row for each goal and face.
pub fn rows(run: &Run) -> Vec<[String; 8]> {
    let has_peers = has_peers(&run.header);
    let standings = goals::standings(run).into_iter();
    let standings = standings.filter(|it| has_peers || it.goal.beside != Beside::BestPeer);
    standings.map(|standing| row(&standing, &run.header)).collect()
}

/// The goals in sentences, those that were measured: `Message rate, near: 0.301 [0.29, 0.31] at ...`.
pub fn sentences(run: &Run) -> Vec<String> {
    let rows = rows(run).into_iter().filter(|row| row[3] != NOTHING);
    let sentence = |[goal, face, most, worst, place, median, pairs, so]: [String; 8]| {
        let face = if face == NOTHING { String::new() } else { format!(", {face}") };
        format!(
            "{goal}{face}: worst {worst} ({place}), median {median}, pairs {pairs}, at most {most}: {so}"
        )
    };
    rows.map(sentence).collect()
}

/// What stands where there is nothing to say.
const NOTHING: &str = "-";

fn row(standing: &Standing, header: &Header) -> [String; 8] {
    let text = |text: Option<String>| text.unwrap_or_else(|| NOTHING.to_owned());
    let Standing { goal, face, .. } = standing;
    let worst = standing.worst();
    let place = worst.map(|worst| {
        let point = point(worst.series, worst.x);
        match goal.beside {
            Beside::BestPeer => format!("{point}, {}", header.runtimes[worst.ratio.peer].label),
            Beside::CacheLine | Beside::Nothing => point,
        }
    });
    [
        goal.name.to_owned(),
        text(face.map(|face| face.name().to_owned())),
        wording::short(goal.most(*face)),
        text(worst.map(|worst| wording::ratio_with_interval(&worst.ratio))),
        text(place),
        text(standing.median().map(wording::ratio)),
        text(standing.pairs().map(|pairs| pairs.to_string())),
        word(standing.word()).to_owned(),
    ]
}

fn point(series: &Series, x: u64) -> String {
    format!("{} {}", series.title.to_lowercase(), wording::at(series.x, x))
}

fn word(word: Word) -> &'static str {
    match word {
        Word::Reached => "reached",
        Word::Missed => "missed",
        Word::TooFew => "too few pairs",
        Word::NotMeasured => "not measured",
    }
}

/// Where auto is not as good as the better backend, in a sentence; `None` if that was not measured.
pub fn beyond_backends(run: &Run) -> Option<String> {
    let excesses = goals::beyond_backends(run)?;
    let percent = wording::short((BEYOND_BACKENDS - 1.0) * 100.0);
    let clause = |excesses: &[Excess]| {
        let (first, points) = (&excesses[0], excesses.iter().map(|excess| &excess.point));
        let face = first.face.map(|face| format!(", {}", face.name())).unwrap_or_default();
        let points = points.map(|it| {
            let size = wording::size(it.x);
            format!("{size} {}", wording::ratio_with_interval(&it.ratio))
        });
        let points: Vec<_> = points.collect();
        format!("{}{face}: {}", first.point.series.title, points.join(", "))
    };
    let same = |one: &Excess, other: &Excess| {
        (one.face, one.ranks) == (other.face, other.ranks) && one.point.series == other.point.series
    };
    let clauses: Vec<_> = excesses.chunk_by(same).map(clause).collect();
    let clauses = if clauses.is_empty() { "nowhere".to_owned() } else { clauses.join("; ") };
    Some(format!(
        "Auto takes over {percent} % longer than the better one of eager and rendezvous, by medians \
         (interval in brackets; one that holds 1 may be chance): {clauses}."
    ))
}

/// Which series have no figure of ours, or none of any peer though there are some; `None` if all have.
pub fn missing(run: &Run) -> Option<String> {
    let principal = analysis::principal(&run.header)?;
    let peers = (0..run.header.runtimes.len()).filter(|place| !run.header.runtimes[*place].ours);
    let peers: Vec<usize> = peers.collect();
    let tables = analysis::tables_with(run, &[]);
    let has = |series: &Series, place: usize| {
        let rows = tables.iter().filter(|table| table.series == series).flat_map(|it| &it.rows);
        rows.into_iter().any(|row| row.cells[place].is_some())
    };
    let titles = |is_missing: &dyn Fn(&Series) -> bool| {
        let series = SERIES.iter().filter(|series| series.share_of().is_none());
        let series = series.filter(|series| series.id != facts::BLOCKED[1] && is_missing(series));
        series.map(|series| series.title).collect::<Vec<_>>().join("; ")
    };
    let nobody =
        titles(&|series| !has(series, principal) && !peers.iter().any(|it| has(series, *it)));
    let not_ours =
        titles(&|series| !has(series, principal) && peers.iter().any(|it| has(series, *it)));
    let ours = &run.header.runtimes[principal].label;
    let clauses =
        [(nobody, "Not measured".to_owned()), (not_ours, format!("Not measured of {ours}"))];
    let clauses = clauses.into_iter().filter(|(titles, _)| !titles.is_empty());
    let clauses: Vec<_> = clauses.map(|(titles, what)| format!("{what}: {titles}.")).collect();
    (!clauses.is_empty()).then(|| clauses.join(" "))
}
