//! A picture with lines: figures over points, with bands for intervals.

use std::fmt::Write;

use super::markup::{Px, Text, path};
use super::scale::{Scale, Shape};

/// Width of every picture in its own units.
pub const WIDTH: f64 = 476.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 122.0;
const TOP: f64 = 18.0;
const BOTTOM: f64 = 38.0;
/// From one label at the end of a line to the next.
const LABEL_GAP: f64 = 14.0;
/// As wide is a letter of a label, about.
const LETTER: f64 = 6.8;

/// A picture with lines.
pub struct Plot {
    /// What it shows, for those who do not see it.
    pub title: String,
    /// Along the bottom.
    pub x: Axis,
    /// Along the left.
    pub y: Axis,
    /// The lines; each has at least one point.
    pub lines: Vec<Line>,
    /// A line across.
    pub level: Option<f64>,
    /// Lines from top to bottom, and what they mean.
    pub marks: Vec<(f64, String)>,
    /// Small marks at the bottom, and what they mean.
    pub notches: Vec<(f64, String)>,
}

/// One side of a picture.
pub struct Axis {
    /// The mapping's domain; the picture sets the places.
    pub shape: Shape,
    /// Lowest value.
    pub low: f64,
    /// Highest value.
    pub high: f64,
    /// Where ticks are, and what stands there, ascending.
    pub ticks: Vec<(f64, String)>,
    /// What is along it; empty if the ticks say it.
    pub name: String,
}

/// The figures of one runtime.
pub struct Line {
    /// Class of its looks.
    pub class: String,
    /// Shape of its marks.
    pub mark: usize,
    /// Its name.
    pub label: String,
    /// Its points, ascending.
    pub points: Vec<Point>,
}

/// One figure.
pub struct Point {
    /// Where along the bottom.
    pub x: f64,
    /// The figure.
    pub y: f64,
    /// Its interval.
    pub band: Option<(f64, f64)>,
    /// Class of the mark; empty for a usual one.
    pub class: &'static str,
    /// What stands there when the pointer does.
    pub title: String,
}

impl Axis {
    fn scale(&self, from: f64, to: f64) -> Scale {
        Scale { shape: self.shape, low: self.low, high: self.high, from, to }
    }
}

impl Plot {
    /// The picture as SVG.
    pub fn svg(&self) -> String {
        let x = self.x.scale(LEFT, WIDTH - RIGHT);
        let y = self.y.scale(HEIGHT - BOTTOM, TOP);
        let mut out = open(&self.title, HEIGHT);
        self.axes(&mut out, x, y);
        self.marks(&mut out, x, y);
        for line in &self.lines {
            line.band(&mut out, x, y);
        }
        for line in &self.lines {
            line.draw(&mut out, x, y);
        }
        self.labels(&mut out, x, y);
        out.push_str("</svg>");
        out
    }

    fn axes(&self, out: &mut String, x: Scale, y: Scale) {
        out.push_str("<g class=\"axis\">");
        for (value, label) in &self.y.ticks {
            let at = Px(y.place(*value));
            put(
                out,
                format_args!("<path class=\"rule\" d=\"M{} {at}H{}\"/>", Px(x.from), Px(x.to)),
            );
            text(out, x.from - 7.0, at.0 + 4.0, "end", label);
        }
        for (value, label) in thinned(&self.x.ticks, x) {
            let at = Px(x.place(*value));
            put(out, format_args!("<path d=\"M{at} {}v5\"/>", Px(y.from)));
            text(out, at.0, y.from + 17.0, "middle", label);
        }
        put(out, format_args!("<path d=\"M{} {}H{}\"/>", Px(x.from), Px(y.from), Px(x.to)));
        text(out, f64::midpoint(x.from, x.to), HEIGHT - 5.0, "middle", &self.x.name);
        out.push_str("</g>");
    }

    fn marks(&self, out: &mut String, x: Scale, y: Scale) {
        if let Some(value) = &self.level {
            let at = Px(y.place(*value));
            put(
                out,
                format_args!("<path class=\"level\" d=\"M{} {at}H{}\"/>", Px(x.from), Px(x.to)),
            );
        }
        for (value, meaning) in &self.notches {
            let (at, foot) = (Px(x.place(*value)), Px(y.from));
            put(out, format_args!("<path class=\"notch\" d=\"M{at} {foot}l-3.5 -6h7z\">"));
            put(out, format_args!("<title>{}</title></path>", Text(meaning)));
        }
        for (value, meaning) in &self.marks {
            let at = Px(x.place(*value));
            put(out, format_args!("<path class=\"mark\" d=\"M{at} {}V{}\"/>", Px(TOP), Px(y.from)));
            // A label keeps inside: it ends at its line in the right half.
            let right = at.0 > f64::midpoint(x.from, x.to);
            let (shift, anchor) = if right { (-4.0, "end") } else { (4.0, "start") };
            text(out, at.0 + shift, TOP - 6.0, anchor, meaning);
        }
    }

    /// Names at the ends of the lines, moved apart where they would cover one another.
    fn labels(&self, out: &mut String, x: Scale, y: Scale) {
        let end =
            |line: &Line| line.points.last().map(|point| (x.place(point.x), y.place(point.y)));
        let mut ends: Vec<_> =
            self.lines.iter().filter_map(|line| Some((line, end(line)?))).collect();
        ends.sort_by(|one, other| one.1.1.total_cmp(&other.1.1));
        let wanted: Vec<f64> = ends.iter().map(|(_, (_, at))| *at).collect();
        let places = spread(&wanted, LABEL_GAP, y.to, y.from);
        for ((line, (from, at)), place) in ends.into_iter().zip(places) {
            let start = x.to + 16.0;
            put(out, format_args!("<g class=\"{}\"><path class=\"leader\" ", line.class));
            put(out, format_args!("d=\"M{} {}L{} {}\"/>", Px(from), Px(at), Px(start), Px(place)));
            let room = ((WIDTH - start - 3.0) / LETTER) as usize;
            let label = shortened(&line.label, room);
            put(out, format_args!("<text x=\"{}\" y=\"{}\"", Px(start + 3.0), Px(place + 4.0)));
            put(out, format_args!(" class=\"name\">{}</text></g>", Text(&label)));
        }
    }
}

impl Line {
    /// Areas between the ends of intervals, over each run of points that have one.
    fn band(&self, out: &mut String, x: Scale, y: Scale) {
        for run in self.points.split(|point| point.band.is_none()).filter(|run| run.len() > 1) {
            let corner = |point: &Point, value: f64| (x.place(point.x), y.place(value));
            let upper = run.iter().filter_map(|point| Some(corner(point, point.band?.1)));
            let lower = run.iter().rev().filter_map(|point| Some(corner(point, point.band?.0)));
            let path = path(upper.chain(lower));
            put(out, format_args!("<path class=\"band {}\" d=\"{path}z\"/>", self.class));
        }
    }

    fn draw(&self, out: &mut String, x: Scale, y: Scale) {
        let place = |point: &Point| (x.place(point.x), y.place(point.y));
        let along = path(self.points.iter().map(place));
        put(out, format_args!("<g class=\"{}\"><path class=\"line\" d=\"{along}\"/>", self.class));
        for point in &self.points {
            let (left, top) = place(point);
            let (left, top) = (Px(left), Px(top));
            if let (1, Some((low, high))) = (self.points.len(), point.band) {
                let (low, high) = (Px(y.place(low)), Px(y.place(high)));
                put(out, format_args!("<path class=\"whisker\" d=\"M{left} {low}V{high}\"/>"));
            }
            put(out, format_args!("<use href=\"#m{}\" x=\"{left}\" y=\"{top}\"", self.mark));
            if !point.class.is_empty() {
                put(out, format_args!(" class=\"{}\"", point.class));
            }
            put(out, format_args!("><title>{}</title></use>", Text(&point.title)));
        }
        out.push_str("</g>");
    }
}

/// The start of a picture of this height.
pub fn open(title: &str, height: f64) -> String {
    let (width, height) = (Px(WIDTH), Px(height));
    let title = Text(title);
    format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\">")
}

/// Writes to a text, which never fails.
pub fn put(out: &mut String, what: std::fmt::Arguments<'_>) {
    out.write_fmt(what).expect("a String takes everything");
}

/// A text in a picture.
pub fn text(out: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    if text.is_empty() {
        return;
    }
    let (x, y) = (Px(x), Px(y));
    put(
        out,
        format_args!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{}</text>", Text(text)),
    );
}

/// The ticks whose labels do not touch the one before.
fn thinned(ticks: &[(f64, String)], scale: Scale) -> Vec<&(f64, String)> {
    let mut free = f64::NEG_INFINITY;
    let fits = |tick: &&(f64, String)| {
        let (at, half) = (scale.place(tick.0), tick.1.chars().count() as f64 * LETTER / 2.0 + 3.0);
        let fits = at - half >= free;
        if fits {
            free = at + half;
        }
        fits
    };
    ticks.iter().filter(fits).collect()
}

/// A text of at most `room` letters.
pub fn shortened(label: &str, room: usize) -> String {
    if label.chars().count() <= room {
        return label.to_owned();
    }
    let kept: String = label.chars().take(room.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Places as near to the wanted ones, which ascend, as a `gap` between neighbours allows, all within
/// `top..=bottom`.
fn spread(wanted: &[f64], gap: f64, top: f64, bottom: f64) -> Vec<f64> {
    // Neighbours that are too close become a block, which sits at the mean of what its members want.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (number, place) in wanted.iter().enumerate() {
        let mut block = (place - number as f64 * gap, 1);
        while let Some(&before) = blocks.last().filter(|before| before.0 >= block.0) {
            blocks.pop();
            let size = before.1 + block.1;
            let sum = before.0 * before.1 as f64 + block.0 * block.1 as f64;
            block = (sum / size as f64, size);
        }
        blocks.push(block);
    }
    let last = bottom - wanted.len().saturating_sub(1) as f64 * gap;
    let places = blocks.iter().flat_map(|&(place, size)| std::iter::repeat_n(place, size));
    let inside = places.map(|place| place.min(last).max(top));
    inside.enumerate().map(|(number, place)| place + number as f64 * gap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_their_distance_and_stay_inside() {
        let places = spread(&[10.0, 11.0, 12.0, 90.0, 99.0], 10.0, 0.0, 100.0);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= 10.0 - 1e-9), "{places:?}");
        assert!(places.iter().all(|place| (0.0..=100.0).contains(place)), "{places:?}");
        assert_eq!(places[..3], [1.0, 11.0, 21.0]);
    }

    #[test]
    fn labels_that_are_far_apart_stay_where_they_are() {
        assert_eq!(spread(&[10.0, 40.0, 80.0], 10.0, 0.0, 100.0), [10.0, 40.0, 80.0]);
    }

    #[test]
    fn ticks_do_not_touch() {
        let scale = Scale { shape: Shape::Linear, low: 0.0, high: 10.0, from: 0.0, to: 100.0 };
        let ticks: Vec<_> = (0..=10).map(|it| (f64::from(it), "1234".to_owned())).collect();
        let kept: Vec<_> = thinned(&ticks, scale).into_iter().map(|tick| tick.0).collect();
        assert_eq!(kept, [0.0, 4.0, 8.0]);
    }

    #[test]
    fn long_labels_are_cut() {
        assert_eq!(shortened("Open MPI 4.1.4", 20), "Open MPI 4.1.4");
        assert_eq!(shortened("Intel MPI 2021.16", 11), "Intel MPI…");
    }
}
