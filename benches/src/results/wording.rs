//! How sizes, figures and verdicts are written. Used by the text, the page and the results document,
//! so that all read alike.

use mpj_bench_programs::{Series, Unit, X};

use crate::analysis::{Ratio, Verdict};

/// A point of a series: `64K` for bytes, `4 ms` for times, the number itself for all else.
pub fn point(x: X, value: u64) -> String {
    match x {
        X::Bytes => size(value),
        X::Blocked => blocked(value),
        _ => value.to_string(),
    }
}

/// A time of being blocked: `30 µs`, `1 s`.
fn blocked(microseconds: u64) -> String {
    let (value, unit) = time(microseconds as f64);
    format!("{} {unit}", short(value))
}

/// A number of bytes: `1`, `64K`, `4M`; what is no multiple of 1024 stays as it is.
pub fn size(bytes: u64) -> String {
    let units = [(30, "G"), (20, "M"), (10, "K")];
    let whole = |&&(shift, _): &&(u32, _)| bytes > 0 && bytes % (1 << shift) == 0;
    match units.iter().find(whole) {
        Some((shift, unit)) => format!("{}{unit}", bytes >> shift),
        None => bytes.to_string(),
    }
}

/// A number with three significant digits, and all digits before the point.
pub fn figure(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    // A value that rounds up to the next power of ten needs one digit less.
    let magnitude = (size * 1.0005).log10().floor();
    let decimals = (2.0 - magnitude).clamp(0.0, 9.0) as usize;
    format!("{value:.decimals$}")
}

/// As [`figure`], without zeros at the end of a fraction.
pub fn short(value: f64) -> String {
    let text = figure(value);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A figure with a unit that suits it: `430 ns`, `1.20 ms`, `12.4 GB/s`.
pub fn quantity(value: f64, unit: Unit) -> String {
    let (value, unit) = scaled(value, unit);
    format!("{} {unit}", figure(value))
}

/// As [`quantity`], for round numbers at an axis; a unit that is long and always the same is left out.
pub fn tick(value: f64, unit: Unit) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    match scaled(value, unit) {
        (value, _) if unit == Unit::Gflops => short(value),
        (value, unit) => format!("{} {unit}", short(value)),
    }
}

fn scaled(value: f64, unit: Unit) -> (f64, &'static str) {
    match unit {
        Unit::Microseconds => time(value),
        Unit::Milliseconds => time(value * 1e3),
        Unit::MegabytesPerSecond if value >= 999.5 => (value / 1e3, "GB/s"),
        Unit::MegabytesPerSecond => (value, "MB/s"),
        Unit::MillionPerSecond => (value, "M/s"),
        Unit::Gflops => (value, "GFLOP/s"),
        Unit::Percent => (value, "%"),
        Unit::Times => (value, "times"),
    }
}

fn time(microseconds: f64) -> (f64, &'static str) {
    match microseconds {
        0.0 => (0.0, "µs"),
        few if few < 0.9995 => (few * 1e3, "ns"),
        some if some < 999.5 => (some, "µs"),
        many if many < 999.5e3 => (many / 1e3, "ms"),
        most => (most / 1e6, "s"),
    }
}

/// The unit as readers write it.
pub fn unit(unit: Unit) -> String {
    if unit == Unit::Microseconds { "µs".to_owned() } else { unit.to_string() }
}

/// An interval: `[1.20, 1.31]`, or nothing.
pub fn interval(interval: Option<(f64, f64)>) -> String {
    interval.map_or_else(String::new, |(low, high)| format!("[{}, {}]", figure(low), figure(high)))
}

/// A ratio: thousandths, so that one beside 1 is told from 1; three digits far from it.
pub fn ratio(value: f64) -> String {
    if (0.1..10.0).contains(&value) { format!("{value:.3}") } else { figure(value) }
}

/// The ratios from the smallest to the largest: `0.350–0.610`. Nothing if there are none.
pub fn ratios(of: &[f64]) -> Option<String> {
    let low = ratio(of.iter().copied().reduce(f64::min)?);
    let high = ratio(of.iter().copied().reduce(f64::max)?);
    Some(if low == high { low } else { format!("{low}–{high}") })
}

/// A number of things in words.
pub fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// A ratio with its interval: `0.810 [0.790, 0.840]`.
pub fn ratio_with_interval(of: &Ratio) -> String {
    match of.interval {
        Some((low, high)) => format!("{} [{}, {}]", ratio(of.median), ratio(low), ratio(high)),
        None => ratio(of.median),
    }
}

/// A point in words: `at 8 bytes`, `at N 64`.
pub fn at(x: X, value: u64) -> String {
    match x {
        X::Bytes => format!("at {} bytes", size(value)),
        X::Blocked => format!("after {}", blocked(value)),
        _ => format!("at {} {value}", x.head()),
    }
}

/// What points are called, many of them.
pub fn points(x: X) -> &'static str {
    match x {
        X::Bytes => "sizes",
        X::Depth => "depths",
        X::Order => "orders",
        X::Ranks => "numbers of ranks",
        X::Blocked => "times",
    }
}

/// What the axis of the points is called.
pub fn axis(x: X) -> &'static str {
    match x {
        X::Bytes => "message size, bytes",
        X::Depth => "depth of the queue",
        X::Order => "order N",
        X::Ranks => "ranks",
        X::Blocked => "blocked for",
    }
}

/// A verdict in a word that fits the series: shares are not faster, but better.
pub fn verdict(series: &Series, verdict: Verdict) -> &'static str {
    let share = series.unit.is_relative();
    match verdict {
        Verdict::Faster if share => "better",
        Verdict::Slower if share => "worse",
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::Open => "open",
    }
}

/// What a ratio allows to say, in a word: without an interval, that there is none.
pub fn said(series: &Series, of: &Ratio) -> &'static str {
    if of.interval.is_some() { verdict(series, of.verdict) } else { "no interval" }
}

/// The chosen ones of `all`, neighbours drawn together: `0 to 64K, 1M`.
pub fn ranges(x: X, all: &[u64], chosen: &[u64]) -> String {
    let is_chosen = |value: &&u64| chosen.contains(value);
    let mut runs: Vec<(u64, u64)> = Vec::new();
    let mut in_run = false;
    for value in all {
        match runs.last_mut() {
            _ if !is_chosen(&value) => in_run = false,
            Some(run) if in_run => run.1 = *value,
            _ => {
                runs.push((*value, *value));
                in_run = true;
            }
        }
    }
    let text = |&(first, last): &(u64, u64)| {
        if first == last {
            point(x, first)
        } else {
            format!("{} to {}", point(x, first), point(x, last))
        }
    };
    runs.iter().map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short_where_they_can_be() {
        let texts = [0, 1, 1023, 1024, 65536, 65537, 1 << 20, 3 << 30].map(size);
        assert_eq!(texts, ["0", "1", "1023", "1K", "64K", "65537", "1M", "3G"]);
    }

    #[test]
    fn figures_have_three_digits() {
        let texts = [0.0, 1.5e-6, 0.01234, 0.9999, 1.0, 9.999, 12.34, 123.4, 12345.6].map(figure);
        let expected =
            ["0", "0.00000150", "0.0123", "1.00", "1.00", "10.0", "12.3", "123", "12346"];
        assert_eq!(texts, expected);
        assert_eq!([0.5, 20.0, 100.0].map(short), ["0.5", "20", "100"]);
    }

    #[test]
    fn units_suit_the_figure() {
        let time = |value| quantity(value, Unit::Microseconds);
        assert_eq!([0.43, 1.0, 1200.0].map(time), ["430 ns", "1.00 µs", "1.20 ms"]);
        assert_eq!(tick(2.0, Unit::Milliseconds), "2 ms");
        assert_eq!(quantity(12_400.0, Unit::MegabytesPerSecond), "12.4 GB/s");
    }

    #[test]
    fn ratios_have_thousandths_near_1_and_three_digits_else() {
        let texts = [0.01234, 0.0999, 0.1, 1.0012, 9.87654, 12.34].map(ratio);
        assert_eq!(texts, ["0.0123", "0.0999", "0.100", "1.001", "9.877", "12.3"]);
        assert_eq!(ratios(&[0.61, 0.35, 0.5]).as_deref(), Some("0.350–0.610"));
        assert_eq!(ratios(&[0.5, 0.5]).as_deref(), Some("0.500"));
        assert_eq!(ratios(&[]), None);
    }

    #[test]
    fn neighbours_are_drawn_together() {
        let all = [0, 1, 2, 4, 1024];
        assert_eq!(ranges(X::Bytes, &all, &[0, 1, 4, 1024]), "0 to 1, 4 to 1K");
        assert_eq!(ranges(X::Depth, &all, &[2, 1024]), "2, 1024");
        assert_eq!(ranges(X::Bytes, &all, &[]), "");
    }
}
