//! Runs as text: tables in the form of the OSU benchmarks, so that their parsers read them, and the
//! facts around them as lines that begin with `# `. Pure.

#[cfg(test)]
mod tests;

use mpj_bench_programs::X;

use crate::analysis::{self, Estimate, Ratio, Row, Table, Verdict};
use crate::model::{Header, Run};
pub use crate::results::wording::{count, figure, ratio as times};
use crate::results::{facts, targets};
use crate::views::View;

/// Width of the first column, as that of OSU.
const FIRST: usize = 10;
/// Least width of the others, as that of OSU.
const WIDTH: usize = 20;

/// Remarks are about as wide as this.
const LINE: usize = 100;

/// What was measured, where, and how figures are to be read.
pub fn header(run: &Run) -> String {
    let header = &run.header;
    let mut lines = vec![header.command.clone(), format!("started {}", header.started)];
    lines.extend(header.machine.iter().map(|(name, value)| format!("{name}: {value}")));
    lines.extend(header.runtimes.iter().map(|it| format!("runtime {}: {}", it.id, it.label)));
    let thresholds = header.thresholds.iter();
    lines.extend(thresholds.map(|step| format!("above {} bytes, {}", step.bytes, step.what)));
    let begun = run.launches.iter().map(|launch| launch.round + 1).max().unwrap_or(0);
    let launches = count(run.launches.len(), "launch", "launches");
    lines.push(format!("rounds: {begun} of {}, {launches}", header.rounds));
    lines.extend(facts::method(header).into_iter().flat_map(wrapped));
    lines.push("In tables of text, ~ is open.".to_owned());
    remarks(&lines)
}

/// A paragraph in lines.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always one");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= LINE {
            *line += " ";
            *line += word;
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// Lines that parsers skip.
pub(crate) fn remarks(lines: &[String]) -> String {
    lines.iter().map(|line| format!("# {}\n", one_line(line))).collect()
}

/// Texts come from files and programs: what would break the line is a blank.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The medians of a table; and at each point how `auto`, or else the first of ours, compares with the
/// best peer; without peers, the first of the [`analysis::pairs`].
pub fn table(view: &View, header: &Header) -> String {
    let table = &view.table;
    let unit = table.series.unit;
    let mut heads: Vec<_> =
        header.runtimes.iter().map(|it| format!("{} ({unit})", one_line(&it.label))).collect();
    let contest = Contest::of(header).filter(|_| !table.series.unit.is_relative());
    if let Some(contest) = &contest {
        heads.extend([contest.head.clone(), "95 % interval".to_owned()]);
    }
    let mut grid = Grid::new(first(table.series.x), &heads);
    for row in &table.rows {
        let figures = row.cells.iter().map(|cell| cell.as_ref().map(|it| figure(it.median)));
        let mut words: Vec<_> = figures.map(|text| text.unwrap_or(NOTHING.to_owned())).collect();
        let ratio = contest.as_ref().map(|contest| contest.at(row, table, header));
        words.extend(ratio.iter().flat_map(|ratio| ratio_words(*ratio)));
        let verdict = ratio.flatten().map_or("", said);
        let best = ratio.flatten().filter(|_| contest.as_ref().is_some_and(|it| it.peers > 1));
        let best = best.map_or("", |ratio| &header.runtimes[ratio.peer].id);
        let star = if row.oversubscribed { "*" } else { "" };
        grid.row(row.x, &words, &[verdict, best, star]);
    }
    let legend = legend(table, contest.as_ref(), header);
    format!("{}{}{legend}", remarks(&[title(view)]), grid.text())
}

/// Everything about each figure of a table, and every ratio.
pub fn details(view: &View, header: &Header) -> String {
    let table = &view.table;
    let title = format!("{}, figures in {}", title(view), table.series.unit);
    let blocks = header.runtimes.iter().enumerate().map(|(place, runtime)| {
        let heads = [
            "median",
            "95 % interval",
            "min of batches",
            "p99 of batches",
            "mean",
            "batches",
            "launches",
        ];
        let mut grid = Grid::new(first(table.series.x), &heads.map(str::to_owned));
        for row in &table.rows {
            let words = row.cells[place].as_ref().map(estimate_words);
            words.iter().for_each(|words| grid.row(row.x, words, &[]));
        }
        grid.under(&runtime.label)
    });
    let pairs = analysis::pairs(header).into_iter().map(|(ours, peer)| {
        let heads = ["ratio", "95 % interval", "pairs", "left out"];
        let mut grid = Grid::new(first(table.series.x), &heads.map(str::to_owned));
        let ratios = table.rows.iter().filter_map(|row| Some((row.x, row.ratio(ours, peer)?)));
        for (x, ratio) in ratios {
            let [median, interval] = ratio_words(Some(ratio));
            let words = [median, interval, ratio.pairs.to_string(), ratio.alone.to_string()];
            grid.row(x, &words, &[said(ratio)]);
        }
        grid.under(&pair_name(header, ours, peer))
    });
    let blocks: String = blocks.chain(pairs).collect();
    format!("{}{blocks}{}", remarks(&[title]), star(table))
}

/// How far the goals are reached that were measured; nothing if none was.
pub fn goals(run: &Run) -> String {
    let sentences = targets::sentences(run);
    if sentences.is_empty() {
        return String::new();
    }
    let heading = format!("{}.", targets::heading(&run.header));
    let others = targets::beyond_backends(run);
    let rest =
        std::iter::once(targets::note(&run.header)).chain(others.as_deref()).flat_map(wrapped);
    remarks(&std::iter::once(heading).chain(sentences).chain(rest).collect::<Vec<_>>()) + "\n"
}

/// What the machine did during the launches, and which launches failed.
pub fn launches_note(run: &Run) -> String {
    let faces = facts::faces(run);
    let mut lines: Vec<_> = faces.iter().flat_map(|faces| wrapped(faces)).collect();
    lines.extend(facts::failures(run).iter().map(|failure| format!("failed: {failure}")));
    remarks(&lines)
}

fn title(view: &View) -> String {
    let table = &view.table;
    let cells = table.rows.iter().flat_map(|row| &row.cells).flatten();
    let least = cells.clone().map(|cell| cell.launches).min().unwrap_or(0);
    let most = cells.map(|cell| cell.launches).max().unwrap_or(0);
    let from = if least < most { format!("{least} to ") } else { String::new() };
    let launches = count(most, "launch", "launches");
    let ranks = table.ranks.map(|ranks| format!(", {}", count(ranks, "rank", "ranks")));
    let face = view.face.map(|face| format!(", {}", face.name())).unwrap_or_default();
    let ranks = ranks.unwrap_or_default();
    format!("MPJ {} Test{ranks}{face}, {from}{launches}", table.series.title)
}

/// The head of the points, with their unit if it is not plain.
pub(crate) fn first(x: X) -> &'static str {
    if x == X::Blocked { "After us" } else { x.head() }
}

/// What has to be said below a table.
fn legend(table: &Table, contest: Option<&Contest>, header: &Header) -> String {
    let ratios = table.rows.iter().filter_map(|row| contest?.at(row, table, header));
    let ratios: Vec<_> = ratios.collect();
    let mut lines = Vec::new();
    if ratios.iter().all(|ratio| ratio.interval.is_none()) {
        let most = ratios.iter().map(|ratio| ratio.pairs).max();
        let launches = most.map(|most| count(most, "launch of each", "launches of each"));
        lines.extend(launches.map(|launches| format!("no intervals: {launches}")));
    }
    if facts::BLOCKED.contains(&table.series.id) {
        lines.extend(wrapped(facts::WAKEUP));
    }
    remarks(&lines) + &star(table)
}

/// What the star means, if there is one.
fn star(table: &Table) -> String {
    let has_star = table.rows.iter().any(|row| row.oversubscribed);
    let line = "# * more ranks than processors: not to be compared with other rows\n";
    if has_star { line.to_owned() } else { String::new() }
}

/// Which ratio stands beside the medians.
struct Contest {
    head: String,
    ours: usize,
    /// The one that is always compared with; without it the best peer of the row.
    fixed: Option<usize>,
    /// How many peers there are.
    peers: usize,
}

impl Contest {
    /// `auto`, or else the first of ours, with the best peer; or the first pair of backends.
    fn of(header: &Header) -> Option<Self> {
        let pairs = analysis::pairs(header);
        let &(first, peer) = pairs.first()?;
        let peers = header.runtimes.iter().filter(|runtime| !runtime.ours).count();
        let auto = analysis::place_of(header, "auto").filter(|&auto| header.runtimes[auto].ours);
        let (ours, fixed) = match peers {
            0 => (first, Some(peer)),
            1 => (auto.unwrap_or(first), Some(peer)),
            _ => (auto.unwrap_or(first), None),
        };
        let best = || format!("{}/best peer", header.runtimes[ours].id);
        let head = fixed.map_or_else(best, |peer| pair_name(header, ours, peer));
        Some(Self { head, ours, fixed, peers })
    }

    fn at<'a>(&self, row: &'a Row, table: &Table, header: &Header) -> Option<&'a Ratio> {
        let peer = self.fixed.or_else(|| row.best_peer(table.series.better, header))?;
        row.ratio(self.ours, peer)
    }
}

fn pair_name(header: &Header, ours: usize, peer: usize) -> String {
    format!("{}/{}", header.runtimes[ours].id, header.runtimes[peer].id)
}

/// What stands where there is no figure.
pub(crate) const NOTHING: &str = "-";

/// An interval in brackets.
fn interval(interval: Option<(f64, f64)>, form: fn(f64) -> String) -> String {
    interval.map_or(NOTHING.to_owned(), |(low, high)| format!("[{}, {}]", form(low), form(high)))
}

/// The word for a verdict in a table.
pub fn mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::Open => "~",
    }
}

/// The word for what a ratio allows to say; none without an interval.
pub(crate) fn said(ratio: &Ratio) -> &'static str {
    if ratio.interval.is_some() { mark(ratio.verdict) } else { "" }
}

fn ratio_words(ratio: Option<&Ratio>) -> [String; 2] {
    let median = ratio.map_or(NOTHING.to_owned(), |ratio| times(ratio.median));
    [median, interval(ratio.and_then(|ratio| ratio.interval), times)]
}

fn estimate_words(estimate: &Estimate) -> [String; 7] {
    let Estimate { median, min, p99, mean, n, launches, .. } = *estimate;
    let [median, min, p99, mean] = [median, min, p99, mean].map(figure);
    let interval = interval(estimate.interval, figure);
    [median, interval, min, p99, mean, n.to_string(), launches.to_string()]
}

/// Lines of columns: the first to the left, the others to the right, remarks behind.
pub(crate) struct Grid {
    lines: Vec<Line>,
}

struct Line {
    first: String,
    words: Vec<String>,
    remarks: String,
}

impl Grid {
    /// Begins with the line of the heads.
    pub(crate) fn new(first: &str, heads: &[String]) -> Self {
        let (first, words) = (format!("# {first}"), heads.to_vec());
        Self { lines: vec![Line { first, words, remarks: String::new() }] }
    }

    /// Adds a line.
    pub(crate) fn row(&mut self, x: u64, words: &[String], remarks: &[&str]) {
        let remarks = remarks.iter().filter(|it| !it.is_empty());
        let remarks = remarks.map(|it| format!("  {it}")).collect();
        self.lines.push(Line { first: x.to_string(), words: words.to_vec(), remarks });
    }

    /// The lines under a title; nothing if there is nothing but heads.
    fn under(&self, title: &str) -> String {
        if self.lines.len() == 1 {
            return String::new();
        }
        remarks(&[title.to_owned()]) + &self.text()
    }

    /// The lines; columns are as wide as their longest word needs.
    pub(crate) fn text(&self) -> String {
        let length =
            |line: &Line, column: usize| line.words.get(column).map(|it| it.chars().count());
        let width = |column| self.lines.iter().filter_map(|line| length(line, column)).max();
        let widths: Vec<_> = (0..).map_while(width).map(|it| WIDTH.max(it + 2)).collect();
        let mut text = String::new();
        for Line { first, words, remarks } in &self.lines {
            text += &format!("{first:<FIRST$}");
            let words = words.iter().zip(&widths);
            words.for_each(|(word, width)| text += &format!("{word:>width$}"));
            text += &format!("{remarks}\n");
        }
        text
    }
}
