//! Line plots with two logarithmic axes, as SVG.

use std::collections::BTreeSet;

use maud::{Markup, PreEscaped, html};
use mpj_bench_programs::{Unit, X};

use super::words;
use crate::analysis::{Row, Table};
use crate::model::Header;

/// The style of lines and axes, for pages and for stand-alone pictures.
pub const STYLE: &str = include_str!("plot.css");
/// The number of distinct line styles.
pub const LOOKS: usize = 8;

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 290.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 428.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 246.0;
/// Room for one label along the horizontal axis, and for one along the vertical axis.
const LABEL: [f64; 2] = [38.0, 22.0];
/// Height of a line of names above a stand-alone picture.
const NAMES: f64 = 18.0;

/// A plot.
pub struct Plot {
    /// The quantity on the horizontal axis.
    pub x: X,
    /// The unit of the figures; `None` for ratios.
    pub unit: Option<Unit>,
    /// The lines, one for each runtime.
    pub lines: Vec<Line>,
}

/// The figures of one runtime.
pub struct Line {
    /// Its colour and stroke, in `0..LOOKS`.
    pub look: usize,
    /// The runtime whose checkbox hides it, by its index in the header.
    pub switch: Option<usize>,
    /// Its name.
    pub label: String,
    /// Its points, in ascending order.
    pub points: Vec<Point>,
}

/// One figure.
pub struct Point {
    /// The position on the horizontal axis.
    pub x: u64,
    /// The figure. Figures that are not above zero are left out.
    pub y: f64,
    /// Its interval.
    pub band: Option<(f64, f64)>,
    /// The tooltip text.
    pub title: String,
}

/// A logarithmic scale from values to coordinates.
struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    fn place(&self, value: f64) -> f64 {
        let part = (value.clamp(self.low, self.high) / self.low).ln() / (self.high / self.low).ln();
        // One decimal is precise enough, and short.
        ((self.from + part * (self.to - self.from)) * 10.0).round() / 10.0
    }
}

impl Plot {
    /// Returns the picture for a page, which provides [`STYLE`] and the names of the lines.
    pub fn svg(&self, title: &str) -> Markup {
        html! {
            svg class="plot" viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(title) {
                (self.contents())
            }
        }
    }

    /// Returns the picture as a stand-alone file.
    pub fn file(&self, title: &str) -> String {
        let names = NAMES * (self.lines.len() + 1) as f64;
        let picture = html! {
            svg xmlns="http://www.w3.org/2000/svg" class="plot"
                viewBox={ "0 0 " (WIDTH) " " (HEIGHT + names) } width=(WIDTH * 1.5) role="img" {
                style { (PreEscaped(STYLE)) }
                rect class="paper" width=(WIDTH) height=(HEIGHT + names) {}
                text class="title" x=(LEFT) y=(NAMES) { (title) }
                @for (line, place) in self.lines.iter().zip(2..) {
                    g class={ "r" (line.look) } {
                        path class="line" d={ "M" (LEFT) " " (NAMES * f64::from(place) - 4.0) "h26" } {}
                        text x=(LEFT + 34.0) y=(NAMES * f64::from(place)) { (line.label) }
                    }
                }
                g transform={ "translate(0 " (names) ")" } { (self.contents()) }
            }
        };
        picture.into_string() + "\n"
    }

    fn contents(&self) -> Markup {
        let (x, y) = (self.across(), self.upward());
        let x_labels = thinned(self.x_ticks(), &x, LABEL[0]);
        let y_labels = thinned(ticks(&y), &y, LABEL[1]);
        html! {
            g class="axis" {
                @for tick in y_labels {
                    path class=(if self.unit.is_none() && tick == 1.0 { "level" } else { "rule" })
                        d={ "M" (LEFT) " " (y.place(tick)) "H" (RIGHT) } {}
                    text x=(LEFT - 6.0) y=(y.place(tick) + 4.0) text-anchor="end" {
                        (words::tick(tick, self.unit.unwrap_or(Unit::Times)))
                    }
                }
                @for tick in x_labels {
                    path d={ "M" (x.place(tick)) " " (BOTTOM) "v4" } {}
                    text x=(x.place(tick)) y=(BOTTOM + 17.0) text-anchor="middle" {
                        (words::point(self.x, if tick < 1.0 { 0 } else { tick as u64 }))
                    }
                }
                path d={ "M" (LEFT) " " (BOTTOM) "H" (RIGHT) } {}
                text x=(f64::midpoint(LEFT, RIGHT)) y=(BOTTOM + 36.0) text-anchor="middle" { (axis(self.x)) }
            }
            @for line in &self.lines { (line.markup(&x, &y)) }
        }
    }

    fn across(&self) -> Scale {
        let all = || self.lines.iter().flat_map(|line| &line.points).map(|point| position(point.x));
        let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
        let high = if high > low { high } else { low * 2.0 };
        Scale { low, high, from: LEFT + 8.0, to: RIGHT - 8.0 }
    }

    fn upward(&self) -> Scale {
        let points = self.lines.iter().flat_map(|line| &line.points).filter(|point| point.y > 0.0);
        let values = points.flat_map(|point| {
            let (low, high) = point.band.unwrap_or((point.y, point.y));
            [point.y, low, high]
        });
        let values: Vec<f64> = values.filter(|value| *value > 0.0).collect();
        // The range of ratios includes 1 and has a minimum height, so that small differences look
        // small.
        let mut low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let mut high = values.iter().copied().fold(0.0, f64::max);
        if self.unit.is_none() {
            (low, high) = (low.min(0.5), high.max(2.0));
        } else if high < 4.0 * low {
            (low, high) = (low / 2.0, high * 2.0);
        }
        Scale { low: low / 1.1, high: high * 1.1, from: BOTTOM, to: TOP }
    }

    /// The ticks of the horizontal axis: its points; of sizes, 0 and powers of two.
    fn x_ticks(&self) -> Vec<f64> {
        let points = self.lines.iter().flat_map(|line| &line.points).map(|point| point.x);
        let is_round = |x: &u64| self.x != X::Bytes || *x == 0 || x.is_power_of_two();
        let points: BTreeSet<u64> = points.filter(is_round).collect();
        points.into_iter().map(position).collect()
    }
}

/// Maps zero, which has no place on a logarithmic axis, to half a step before 1.
fn position(x: u64) -> f64 {
    if x == 0 { 0.5 } else { x as f64 }
}

fn axis(x: X) -> &'static str {
    match x {
        X::Bytes => "message size, bytes",
        X::Order => "order N",
        X::Ranks => "ranks",
        X::Blocked => "blocked for",
        X::Contexts => "contexts",
    }
}

impl Line {
    /// Creates the line of the ratios of a table.
    pub fn of_ratios(table: &Table, header: &Header, look: usize, label: String) -> Self {
        let point = |row: &Row| {
            let ratio = row.ratio.as_ref()?;
            let (at, peer) =
                (words::point(table.series.x, row.x), &header.runtimes[ratio.peer].label);
            let interval = words::interval(ratio.interval, words::ratio);
            let title = format!("{at}: {} {interval} of {peer}", words::ratio(ratio.median));
            Some(Point { x: row.x, y: ratio.median, band: ratio.interval, title })
        };
        let points = table.rows.iter().filter_map(point).collect();
        Self { look, switch: None, label, points }
    }

    fn markup(&self, x: &Scale, y: &Scale) -> Markup {
        let points: Vec<&Point> = self.points.iter().filter(|point| point.y > 0.0).collect();
        let path = |corners: &mut dyn Iterator<Item = (u64, f64)>| {
            let corners =
                corners.map(|(at, value)| format!("{} {}", x.place(position(at)), y.place(value)));
            corners.collect::<Vec<_>>().join("L")
        };
        let along = path(&mut points.iter().map(|point| (point.x, point.y)));
        let banded = || points.iter().filter_map(|point| Some((point.x, point.band?)));
        let upper = banded().map(|(at, band)| (at, band.1));
        let band = path(&mut upper.chain(banded().rev().map(|(at, band)| (at, band.0))));
        html! {
            @if !points.is_empty() {
                g class={ "r" (self.look) @if let Some(place) = self.switch { " s" (place) } } {
                    @if !band.is_empty() { path class="band" d={ "M" (band) "z" } {} }
                    path class="line" d={ "M" (along) } {}
                    @for point in &points {
                        circle cx=(x.place(position(point.x))) cy=(y.place(point.y)) r="2.6" {
                            title { (self.label) ", " (point.title) }
                        }
                    }
                }
            }
        }
    }
}

/// Round numbers on a logarithmic scale: as many digits of each decade as there is room for.
fn ticks(scale: &Scale) -> Vec<f64> {
    let room = ((scale.from - scale.to).abs() / LABEL[1]) as usize;
    let sets: [&[f64]; 4] =
        [&[1.0, 1.5, 2.0, 3.0, 5.0, 7.0], &[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]];
    let decades = scale.low.log10().floor() as i32..=scale.high.log10().ceil() as i32;
    let of_set = |digits: &&[f64]| {
        let all = decades
            .clone()
            .flat_map(|decade| digits.iter().map(move |digit| digit * 10f64.powi(decade)));
        all.filter(|tick| (scale.low..=scale.high).contains(tick)).collect::<Vec<_>>()
    };
    let mut found = sets.iter().map(of_set);
    found.find(|ticks| ticks.len() <= room).unwrap_or_else(|| of_set(&sets[3]))
}

/// The ticks whose labels do not touch the one before.
fn thinned(ticks: Vec<f64>, scale: &Scale, gap: f64) -> Vec<f64> {
    let mut last: Option<f64> = None;
    let mut kept = ticks;
    kept.retain(|tick| {
        let at = scale.place(*tick);
        let fits = last.is_none_or(|last| (at - last).abs() >= gap);
        if fits {
            last = Some(at);
        }
        fits
    });
    kept
}
