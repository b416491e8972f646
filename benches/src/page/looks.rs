//! How a runtime looks in every picture: its class in the style sheet and the shape of its marks.
//! Ours have colours and strokes of one family, peers of another.

use super::markup::Text;
use super::plot::put;
use crate::model::Header;

/// Looks in the style sheet for ours: auto, eager, rendezvous, another.
const OURS: usize = 4;
/// And for peers.
const PEERS: usize = 4;

/// Class and mark of a runtime, by its place in the header.
pub fn of(header: &Header, place: usize) -> (String, usize) {
    let runtime = &header.runtimes[place];
    let before = || header.runtimes[..place].iter().filter(|it| it.ours == runtime.ours).count();
    match (&*runtime.id, runtime.ours) {
        ("auto", true) => ("o0".to_owned(), 0),
        ("eager", true) => ("o1".to_owned(), 1),
        ("rendezvous", true) => ("o2".to_owned(), 2),
        (_, true) => ("o3".to_owned(), OURS - 1),
        (_, false) => {
            let look = before() % PEERS;
            (format!("p{look}"), OURS + look)
        }
    }
}

/// The shapes of all marks, for pictures to refer to; itself not seen.
pub fn marks() -> String {
    let shapes = [
        "M-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0 -6.4 0z",
        "M-2.8 -2.8h5.6v5.6h-5.6z",
        "M0 -3.9L3.9 0L0 3.9L-3.9 0z",
        "M-3.6 -1.2h7.2v2.4h-7.2z",
        "M0 -3.6L3.5 2.6H-3.5z",
        "M0 3.6L3.5 -2.6H-3.5z",
        "M-1.2 -3.6h2.4v7.2h-2.4z",
        "M-2 -3.4h4l1.6 3.4l-1.6 3.4h-4l-1.6 -3.4z",
    ];
    let mut out = String::from("<svg class=\"marks\" aria-hidden=\"true\"><defs>");
    for (mark, shape) in shapes.iter().enumerate() {
        put(&mut out, format_args!("<path id=\"m{mark}\" class=\"dot\" d=\"{shape}\"/>"));
    }
    out.push_str("</defs></svg>");
    out
}

/// Which runtime looks how.
pub fn legend(header: &Header) -> String {
    let mut out = String::from("<p class=\"legend\">");
    for (place, runtime) in header.runtimes.iter().enumerate() {
        let (class, mark) = of(header, place);
        put(&mut out, format_args!("<span><svg class=\"{class}\" viewBox=\"0 0 34 12\" "));
        put(&mut out, format_args!("aria-hidden=\"true\"><path class=\"line\" d=\"M1 6H33\"/>"));
        put(&mut out, format_args!("<use href=\"#m{mark}\" x=\"17\" y=\"6\"/></svg>"));
        put(&mut out, format_args!("{}</span>", Text(&runtime.label)));
    }
    out.push_str("</p>");
    out
}
