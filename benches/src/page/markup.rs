//! Texts and numbers in HTML and SVG.

use std::fmt;

/// A text, escaped: right between tags and in quoted attributes.
pub struct Text<'a>(pub &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(['<', '>', '&', '"', '\'']) {
            f.write_str(&rest[..at])?;
            f.write_str(match rest.as_bytes()[at] {
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'&' => "&amp;",
                b'"' => "&quot;",
                _ => "&#39;",
            })?;
            rest = &rest[at + 1..];
        }
        f.write_str(rest)
    }
}

/// A length in a picture, rounded to a tenth to keep the file small.
#[derive(Clone, Copy)]
pub struct Px(pub f64);

impl fmt::Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round();
        // Adding zero turns -0 into 0.
        write!(f, "{}", tenths / 10.0 + 0.0)
    }
}

/// The data of a path along these places: the first one, then steps, which are shorter than places.
pub fn path(places: impl IntoIterator<Item = (f64, f64)>) -> String {
    let tenths = |length: f64| (length * 10.0).round();
    let mut out = String::new();
    let mut last = None;
    for (x, y) in places {
        let (x, y) = (tenths(x), tenths(y));
        let (from_x, from_y) = last.unwrap_or_default();
        let start = match last {
            None => "M",
            Some(_) if out.contains('l') => " ",
            Some(_) => "l",
        };
        let (step_x, step_y) = (Px((x - from_x) / 10.0), Px((y - from_y) / 10.0));
        out.push_str(&format!("{start}{step_x} {step_y}"));
        last = Some((x, y));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_markup() {
        assert_eq!(
            Text("a<b & \"c\" 'd'>µ").to_string(),
            "a&lt;b &amp; &quot;c&quot; &#39;d&#39;&gt;µ"
        );
    }

    #[test]
    fn lengths_have_one_decimal() {
        let texts = [1.0, 2.345, -0.01].map(|length| Px(length).to_string());
        assert_eq!(texts, ["1", "2.3", "0"]);
    }

    #[test]
    fn paths_do_not_drift() {
        let places = (0..4).map(|number| (f64::from(number) * 0.26, 1.0));
        assert_eq!(path(places), "M0 1l0.3 0 0.2 0 0.3 0");
        assert_eq!(path([]), "");
    }
}
