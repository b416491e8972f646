//! From a table to pictures: which kind suits it, over which range, with which marks.

use mpj_bench_programs::{Series, Unit, X};

use super::bars::{self, Bar, Group};
use super::looks;
use super::plot::{Axis, Line, Plot, Point};
use super::scale::{Scale, Shape, binary_ticks};
use crate::analysis::{self, Estimate, Row, Table, Verdict};
use crate::model::{Header, Threshold};
use crate::results::findings::{self, Pair};
use crate::results::wording;
use crate::views::View;

/// About as many ticks are on an axis.
const TICKS: usize = 6;
/// Times of which the largest is so many times the smallest have a logarithmic axis.
const WIDE: f64 = 6.0;

/// The figures of a table: bars if there is one point, else lines. The axis has room for those of the
/// tables `beside` it too, so that pictures can be compared.
pub fn figures(header: &Header, view: &View, beside: &[&View]) -> String {
    let table = &view.table;
    let (least, most) = reach(beside);
    if let [row] = &table.rows[..] {
        return bars::lying(&view.name(), &bars_of(header, table.series, row), most);
    }
    let points = |place: usize| -> Vec<Point> {
        let points = table.rows.iter().filter_map(|row| {
            let estimate = row.cells[place].as_ref()?;
            Some(point_of(header, table, row, place, estimate))
        });
        points.collect()
    };
    let y = figures_axis(table.series, least, most);
    plot(header, view, view.name(), y, lines(header, points)).svg()
}

/// The ratios of a table to the best peer, or of the backends to one another, with an axis as that of
/// [`figures`]. `None` where there are too few for a line.
pub fn ratios(header: &Header, view: &View, beside: &[&View]) -> Option<String> {
    let pairs = Pair::drawn(header);
    let line = |pair: &Pair| {
        let table = &view.table;
        let points = table.rows.iter().filter_map(|row| ratio_point(header, table, row, *pair));
        let (class, mark) = looks::of(header, pair.ours());
        let label = header.runtimes[pair.ours()].label.clone();
        Line { class, mark, label, points: points.collect() }
    };
    let lines = pairs.iter().map(line).filter(|line| line.points.len() > 1);
    let lines: Vec<_> = lines.collect();
    if lines.is_empty() {
        return None;
    }
    let all = beside.iter().flat_map(|view| view.table.rows.iter().map(|row| (&view.table, row)));
    let all = all.flat_map(|it| pairs.iter().map(move |pair| (it, pair)));
    let all = all.filter_map(|((table, row), pair)| pair.ratio(table, header, row));
    let (low, high) = extent(all.map(|of| (of.median, of.interval)));
    // A band that is far wider than the ratios would flatten them.
    let (low, high) = ((low * 0.95).clamp(0.02, 0.9), (high * 1.05).clamp(1.1, 50.0));
    let y = axis(Shape::Log, low, high, wording::short);
    let title = format!("{}: ratio of times", view.name());
    let plot = plot(header, view, title, y, lines);
    Some(Plot { level: Some(1.0), ..plot }.svg())
}

/// The rates of a table over ranks as multiples of that of one rank.
pub fn speedups(header: &Header, view: &View) -> Option<String> {
    let table = &view.table;
    let speedups = analysis::speedups(table, header);
    let points = |place: usize| -> Vec<Point> {
        let points = speedups.get(place).into_iter().flatten().map(|&(x, y)| Point {
            x: x as f64,
            y,
            band: None,
            class: class_at(table, x),
            title: format!("{}, {x} ranks: {}", header.runtimes[place].label, wording::figure(y)),
        });
        points.collect()
    };
    let lines = lines(header, points);
    if lines.iter().all(|line| line.points.len() < 2) {
        return None;
    }
    let most = lines.iter().flat_map(|line| &line.points).map(|point| point.y).fold(1.0, f64::max);
    let y = axis(Shape::Linear, 0.0, most * 1.1, wording::short);
    let title = format!("{}: speed-up over one rank", view.name());
    let plot = plot(header, view, title, y, lines);
    Some(Plot { level: Some(1.0), ..plot }.svg())
}

/// Shares as groups of bars, with an axis as that of [`figures`].
pub fn shares(header: &Header, view: &View, beside: &[&View]) -> String {
    let series = view.table.series;
    let (_, most) = reach(beside);
    let group = |row: &Row| {
        let star = if row.oversubscribed { "*" } else { "" };
        let label = format!("{}{star}", wording::point(series.x, row.x));
        Group { label, bars: bars_of(header, series, row) }
    };
    let groups: Vec<_> = view.table.rows.iter().map(group).collect();
    bars::standing(&view.name(), &groups, most, wording::axis(series.x))
}

fn lines(header: &Header, points: impl Fn(usize) -> Vec<Point>) -> Vec<Line> {
    let line = |place: usize| {
        let (class, mark) = looks::of(header, place);
        Line { class, mark, label: header.runtimes[place].label.clone(), points: points(place) }
    };
    // Peers first, so that ours are drawn over them.
    let mut places: Vec<_> = (0..header.runtimes.len()).collect();
    places.sort_by_key(|place| header.runtimes[*place].ours);
    places.into_iter().map(line).filter(|line| !line.points.is_empty()).collect()
}

/// All but the lines and the axis of the figures.
fn plot(header: &Header, view: &View, title: String, y: Axis, lines: Vec<Line>) -> Plot {
    let table = &view.table;
    let messages = table.series.x == X::Bytes && table.ranks == Some(2);
    let (first, last) = (table.rows[0].x, table.rows[table.rows.len() - 1].x);
    let crossing = findings::crossover(table, header).filter(|at| messages && *at > first);
    let mark = |at: u64| {
        let at_text = wording::point(table.series.x, at);
        (at as f64, format!("crossover by medians: {at_text}"))
    };
    let inside = |it: &&Threshold| messages && (first..last).contains(&(it.bytes as u64));
    let notch = |it: &Threshold| {
        (it.bytes as f64, format!("{} and above: {}", wording::size(it.bytes as u64 + 1), it.what))
    };
    let notches = header.thresholds.iter().filter(inside).map(notch).collect();
    let marks = crossing.map(mark).into_iter().collect();
    Plot { title, x: x_axis(table), y, lines, level: None, marks, notches }
}

fn x_axis(table: &Table) -> Axis {
    let x = table.series.x;
    let points: Vec<f64> = table.rows.iter().map(|row| row.x as f64).collect();
    let least = points.iter().copied().find(|point| *point > 0.0).unwrap_or(1.0);
    let high = points.last().copied().unwrap_or(1.0).max(least * 2.0);
    // Zero has a place of its own, one step below the smallest.
    let has_zero = points.first() == Some(&0.0);
    let low = if has_zero { least / 2.0 } else { least };
    let ticks = match x {
        X::Bytes => binary_ticks(least, high, TICKS + 1),
        _ => points.iter().copied().filter(|point| *point > 0.0).collect(),
    };
    let mut ticks = labelled(ticks, |tick| wording::point(x, tick as u64));
    if has_zero {
        ticks.insert(0, (0.0, "0".to_owned()));
    }
    Axis { shape: Shape::Log, low, high, ticks, name: wording::axis(x).to_owned() }
}

/// The axis of figures between `least` and `most`.
fn figures_axis(series: &Series, least: f64, most: f64) -> Axis {
    let is_time = matches!(series.unit, Unit::Microseconds | Unit::Milliseconds);
    let label = |tick| wording::tick(tick, series.unit);
    if is_time && least > 0.0 && most / least > WIDE {
        axis(Shape::Log, least * 0.85, most * 1.15, label)
    } else if series.unit == Unit::Percent {
        axis(Shape::Linear, 0.0, most.max(100.0), label)
    } else {
        axis(Shape::Linear, 0.0, (most * 1.06).max(f64::MIN_POSITIVE), label)
    }
}

/// An axis without a name, whose ticks say what it is.
fn axis(shape: Shape, low: f64, high: f64, label: impl Fn(f64) -> String) -> Axis {
    let scale = Scale { shape, low, high, from: 0.0, to: 1.0 };
    Axis { shape, low, high, ticks: labelled(scale.ticks(TICKS), label), name: String::new() }
}

/// The smallest and the largest figure of all these tables.
fn reach(views: &[&View]) -> (f64, f64) {
    let estimates = views.iter().flat_map(|view| &view.table.rows).flat_map(|row| &row.cells);
    extent(estimates.flatten().map(|of| (of.median, of.interval)))
}

/// The smallest and the largest of figures and their intervals.
fn extent(figures: impl Iterator<Item = (f64, Option<(f64, f64)>)>) -> (f64, f64) {
    figures.fold((f64::INFINITY, 0.0), |(low, high), (median, interval)| {
        let (least, most) = interval.unwrap_or((median, median));
        (low.min(least).min(median), high.max(most).max(median))
    })
}

fn labelled(ticks: Vec<f64>, label: impl Fn(f64) -> String) -> Vec<(f64, String)> {
    ticks.into_iter().map(|tick| (tick, label(tick))).collect()
}

fn point_of(header: &Header, table: &Table, row: &Row, place: usize, of: &Estimate) -> Point {
    let class = if row.oversubscribed { "over" } else { "" };
    let title = title(header, table.series, row, place, of);
    Point { x: row.x as f64, y: of.median, band: of.interval, class, title }
}

fn ratio_point(header: &Header, table: &Table, row: &Row, pair: Pair) -> Option<Point> {
    let ratio = pair.ratio(table, header, row)?;
    let class = match (row.oversubscribed, ratio.verdict) {
        (true, _) => "over",
        (_, Verdict::Open) => "open",
        _ => "",
    };
    let [ours, peer] = [ratio.ours, ratio.peer].map(|place| &header.runtimes[place].id);
    let (at, text) = (wording::point(table.series.x, row.x), wording::ratio_with_interval(ratio));
    let said = wording::said(table.series, ratio);
    let title = format!("{at}: {ours}/{peer} {text}, {said}");
    Some(Point { x: row.x as f64, y: ratio.median, band: ratio.interval, class, title })
}

fn class_at(table: &Table, x: u64) -> &'static str {
    let is_over = table.rows.iter().any(|row| row.x == x && row.oversubscribed);
    if is_over { "over" } else { "" }
}

fn bars_of(header: &Header, series: &Series, row: &Row) -> Vec<Bar> {
    let bars = row.cells.iter().enumerate().filter_map(|(place, cell)| {
        let of = cell.as_ref()?;
        let class = looks::of(header, place).0;
        let class = if row.oversubscribed { format!("{class} over") } else { class };
        Some(Bar {
            class,
            label: header.runtimes[place].label.clone(),
            value: of.median,
            interval: of.interval,
            text: wording::quantity(of.median, series.unit),
            title: title(header, series, row, place, of),
        })
    });
    bars.collect()
}

fn title(header: &Header, series: &Series, row: &Row, place: usize, of: &Estimate) -> String {
    let (at, id) = (wording::point(series.x, row.x), &header.runtimes[place].id);
    let (figure, interval) = (wording::figure(of.median), wording::interval(of.interval));
    let text = format!("{at}: {id} {figure} {} {interval}", wording::unit(series.unit));
    text.trim_end().to_owned()
}
