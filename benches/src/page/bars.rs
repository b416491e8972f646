//! Pictures with bars: one figure per runtime, or groups of them.

use mpj_bench_programs::Unit;

use super::markup::{Px, Text};
use super::plot::{WIDTH, open, put, shortened, text};
use super::scale::{Scale, Shape, linear_ticks};
use crate::results::wording;

/// Bars of one point.
pub struct Group {
    /// What the point is.
    pub label: String,
    /// The bars.
    pub bars: Vec<Bar>,
}

/// One figure.
pub struct Bar {
    /// Class of its looks.
    pub class: String,
    /// Whose figure it is.
    pub label: String,
    /// The figure.
    pub value: f64,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// The figure for readers.
    pub text: String,
    /// What stands there when the pointer does.
    pub title: String,
}

const ROW: f64 = 26.0;
const NAMES: f64 = 118.0;
const FIGURES: f64 = 88.0;

/// One bar below the other, with names and figures; there is room for bars up to `high`.
pub fn lying(title: &str, bars: &[Bar], high: f64) -> String {
    let high = high.max(f64::MIN_POSITIVE);
    let scale = Scale { shape: Shape::Linear, low: 0.0, high, from: NAMES, to: WIDTH - FIGURES };
    let mut out = open(title, bars.len() as f64 * ROW + 8.0);
    for (number, bar) in bars.iter().enumerate() {
        let top = number as f64 * ROW + 6.0;
        let (middle, end) = (top + ROW / 2.0 - 2.0, scale.place(bar.value));
        put(&mut out, format_args!("<g class=\"{}\">", bar.class));
        text(&mut out, NAMES - 8.0, middle + 4.0, "end", &shortened(&bar.label, 18));
        let (width, height) = (Px((end - NAMES).max(1.0)), Px(ROW - 9.0));
        put(
            &mut out,
            format_args!("<rect class=\"bar\" x=\"{}\" y=\"{}\"", Px(NAMES), Px(top + 2.0)),
        );
        put(&mut out, format_args!(" width=\"{width}\" height=\"{height}\" rx=\"2\">"));
        put(&mut out, format_args!("<title>{}</title></rect>", Text(&bar.title)));
        let mut edge = end;
        if let Some((low, high)) = bar.interval {
            let (low, high) = (scale.place(low), scale.place(high));
            whisker(&mut out, format_args!("M{} {}H{}", Px(low), Px(middle), Px(high)));
            edge = edge.max(high);
        }
        text(&mut out, edge + 7.0, middle + 4.0, "start", &bar.text);
        out.push_str("</g>");
    }
    out.push_str("</svg>");
    out
}

const LEFT: f64 = 50.0;
const TOP: f64 = 10.0;
const FOOT: f64 = 202.0;
const HEIGHT: f64 = 240.0;

/// Groups of bars side by side, in percent, with room for bars up to `high`; `name` is below them.
pub fn standing(title: &str, groups: &[Group], high: f64, name: &str) -> String {
    let high = high.max(f64::MIN_POSITIVE);
    let scale = Scale { shape: Shape::Linear, low: 0.0, high, from: FOOT, to: TOP };
    let mut out = open(title, HEIGHT);
    out.push_str("<g class=\"axis\">");
    for tick in linear_ticks(0.0, high, 5) {
        let at = Px(scale.place(tick));
        put(
            &mut out,
            format_args!("<path class=\"rule\" d=\"M{} {at}H{}\"/>", Px(LEFT), Px(WIDTH)),
        );
        text(&mut out, LEFT - 6.0, at.0 + 4.0, "end", &wording::tick(tick, Unit::Percent));
    }
    text(&mut out, f64::midpoint(LEFT, WIDTH), HEIGHT - 4.0, "middle", name);
    out.push_str("</g>");
    let room = (WIDTH - LEFT) / groups.len().max(1) as f64;
    for (number, group) in groups.iter().enumerate() {
        group.draw(&mut out, scale, LEFT + number as f64 * room, room);
    }
    out.push_str("</svg>");
    out
}

impl Group {
    fn draw(&self, out: &mut String, scale: Scale, from: f64, room: f64) {
        let width = (room * 0.8 / self.bars.len().max(1) as f64).min(34.0);
        let start = from + (room - width * self.bars.len() as f64) / 2.0;
        for (number, bar) in self.bars.iter().enumerate() {
            let (left, top) = (start + number as f64 * width, scale.place(bar.value));
            put(
                out,
                format_args!("<g class=\"{}\"><rect class=\"bar\" x=\"{}\"", bar.class, Px(left)),
            );
            put(out, format_args!(" y=\"{}\" width=\"{}\"", Px(top), Px((width - 1.5).max(1.0))));
            put(out, format_args!(" height=\"{}\">", Px((scale.from - top).max(0.5))));
            put(out, format_args!("<title>{}</title></rect>", Text(&bar.title)));
            if let Some((low, high)) = bar.interval {
                let (low, high) = (Px(scale.place(low)), Px(scale.place(high)));
                whisker(out, format_args!("M{} {low}V{high}", Px(left + width / 2.0 - 0.7)));
            }
            out.push_str("</g>");
        }
        out.push_str("<g class=\"axis\">");
        text(out, from + room / 2.0, FOOT + 16.0, "middle", &self.label);
        out.push_str("</g>");
    }
}

fn whisker(out: &mut String, path: std::fmt::Arguments<'_>) {
    put(out, format_args!("<path class=\"whisker\" d=\"{path}\"/>"));
}
