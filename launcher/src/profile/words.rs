//! Words for times, amounts and calls, the same in every form of a profile.

use super::sites::SiteKey;
pub(super) use crate::report::time;
use crate::report::{printable_line, three_digits};

/// An amount of bytes with three digits: `12 B`, `1.50 KiB`.
pub(super) fn bytes(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.iter().find(|(shift, _)| bytes >= 1 << shift) {
        Some((shift, name)) => {
            format!("{} {name}", three_digits(bytes as f64 / (1_u64 << shift) as f64))
        }
        None => format!("{bytes} B"),
    }
}

/// A share of 1: `38 %`.
pub(super) fn percent(share: f64) -> String {
    match share * 100.0 {
        little if little > 0.0 && little < 0.5 => "<1 %".to_owned(),
        percent => format!("{percent:.0} %"),
    }
}

/// A name with the line of the call, if that is known: `all_reduce at src/main.rs:40`. Programs make up names, so no
/// control character remains.
pub(super) fn site(key: &SiteKey) -> String {
    let name = printable_line(&key.name);
    match &key.place {
        Some(place) => format!("{name} at {}", printable_line(place)),
        None => name,
    }
}

/// The text, with its middle left out if it has more characters than `most`.
pub(super) fn fitted(text: &str, most: usize) -> String {
    let len = text.chars().count();
    if len <= most {
        return text.to_owned();
    }
    let head = (most - 1) / 2;
    let tail = most - 1 - head;
    text.chars().take(head).chain(['…']).chain(text.chars().skip(len - tail)).collect()
}

/// The lines of a text, each of at most `most` characters. Longer words lose their middle.
pub(super) fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').map(|word| fitted(word, most)) {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                *line = format!("{line} {word}");
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// A number of things: one form for 1, another for all other numbers.
pub(super) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        let told = [0, 999, 1_000, 12_345, 999_400, 999_600, 3_104_000_000, 5_000_000_000_000];
        let expected =
            ["0 ns", "999 ns", "1.00 µs", "12.3 µs", "999 µs", "1.00 ms", "3.10 s", "5000 s"];
        assert_eq!(told.map(time), expected);
    }

    #[test]
    fn amounts_have_three_digits() {
        let told = [0, 1023, 1024, 1536, 100 << 20, u64::MAX];
        let expected = ["0 B", "1023 B", "1.00 KiB", "1.50 KiB", "100 MiB", "16777216 TiB"];
        assert_eq!(told.map(bytes), expected);
    }

    #[test]
    fn little_is_more_than_nothing() {
        assert_eq!(
            [0.0, 0.001, 0.01, 0.376, 1.0].map(percent),
            ["0 %", "<1 %", "1 %", "38 %", "100 %"]
        );
    }

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(fitted("all_reduce at src/main.rs:40", 28), "all_reduce at src/main.rs:40");
        assert_eq!(fitted("all_reduce at src/main.rs:40", 13), "all_re….rs:40");
        assert_eq!(fitted("é".repeat(30).as_str(), 5), "éé…éé");
    }

    #[test]
    fn lines_end_between_words() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("a-long-word b", 4), ["a…rd", "b"]);
    }

    #[test]
    fn what_programs_call_things_is_tame() {
        let key = SiteKey { name: "\u{1b}[2J".into(), place: Some("a\nb:1".into()) };
        assert_eq!(site(&key), "\\u{1b}[2J at a\\nb:1");
    }
}
