//! What single cache lines took around every launch: the faces of the machine, in order of time.

use super::markup::Px;
use super::plot::{put, text};
use super::scale::{Scale, Shape};
use crate::model::{Face, NEAR_BELOW, Run};
use crate::results::wording;

const WIDTH: f64 = 980.0;
const HEIGHT: f64 = 130.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 10.0;
const FOOT: f64 = 108.0;

/// A dot for every launch, between what was measured before and after it. `None` if nothing was.
pub fn svg(run: &Run) -> Option<String> {
    let dots = run.launches.iter().enumerate().filter_map(|(number, launch)| {
        let (before, after) = launch.raw?;
        Some((number as f64, (before * after).sqrt(), launch.face()))
    });
    let dots: Vec<(f64, f64, Option<Face>)> = dots.collect();
    let (low, high) = dots
        .iter()
        .fold((NEAR_BELOW, NEAR_BELOW), |(low, high), dot| (low.min(dot.1), high.max(dot.1)));
    if dots.is_empty() || low <= 0.0 {
        return None;
    }
    let y = Scale { shape: Shape::Log, low: low * 0.8, high: high * 1.25, from: FOOT, to: TOP };
    let last = run.launches.len() as f64;
    let x = Scale { shape: Shape::Linear, low: 0.0, high: last, from: LEFT + 8.0, to: WIDTH - 8.0 };
    let title = "raw cache-line times over the launches";
    let mut out =
        format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">");
    axis(&mut out, y);
    for (class, face) in [("near", Some(Face::Near)), ("far", Some(Face::Far)), ("mixed", None)] {
        put(&mut out, format_args!("<path class=\"dots {class}\" d=\""));
        for (at, time, _) in dots.iter().filter(|dot| dot.2 == face) {
            put(&mut out, format_args!("M{} {}h0", Px(x.place(*at)), Px(y.place(*time))));
        }
        out.push_str("\"/>");
    }
    out.push_str("</svg>");
    Some(out)
}

fn axis(out: &mut String, y: Scale) {
    out.push_str("<g class=\"axis\">");
    for tick in y.ticks(4) {
        let at = Px(y.place(tick));
        put(out, format_args!("<path class=\"rule\" d=\"M{} {at}H{}\"/>", Px(LEFT), Px(WIDTH)));
        text(out, LEFT - 7.0, at.0 + 4.0, "end", &format!("{} ns", wording::short(tick)));
    }
    text(out, f64::midpoint(LEFT, WIDTH), HEIGHT - 5.0, "middle", "launches in order");
    let at = Px(y.place(NEAR_BELOW));
    put(out, format_args!("<path class=\"level\" d=\"M{} {at}H{}\"/></g>", Px(LEFT), Px(WIDTH)));
}
