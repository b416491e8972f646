//! Formats sizes, figures and ratios, the same way in every report.

use mpj_bench_programs::{Unit, X};

/// The text for a missing figure.
pub const NOTHING: &str = "-";

/// Formats a point of a series: `64K` for bytes, `4 ms` for times, otherwise the number itself.
pub fn point(x: X, value: u64) -> String {
    match x {
        X::Bytes => size(value),
        X::Blocked => tick(value as f64, Unit::Microseconds),
        _ => value.to_string(),
    }
}

/// Formats a number of bytes: `1`, `64K`, `4M`; numbers that are no multiple of 1024 in full.
pub fn size(bytes: u64) -> String {
    let units = [(30, "G"), (20, "M"), (10, "K")];
    let whole = |&&(shift, _): &&(u32, _)| bytes > 0 && bytes % (1 << shift) == 0;
    match units.iter().find(whole) {
        Some((shift, unit)) => format!("{}{unit}", bytes >> shift),
        None => bytes.to_string(),
    }
}

/// Formats a number with three significant digits, and all digits before the point.
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

/// Formats a round number at an axis with a suitable unit: `500 ns`, `2 GB/s`.
pub fn tick(value: f64, unit: Unit) -> String {
    let (value, unit) = match (unit, value) {
        (Unit::Milliseconds, _) => return tick(value * 1e3, Unit::Microseconds),
        (Unit::Microseconds, few) if few < 0.9995 => (few * 1e3, "ns"),
        (Unit::Microseconds, some) if some < 999.5 => (some, "µs"),
        (Unit::Microseconds, many) if many < 999.5e3 => (many / 1e3, "ms"),
        (Unit::Microseconds, most) => (most / 1e6, "s"),
        (Unit::MegabytesPerSecond, many) if many >= 999.5 => (many / 1e3, "GB/s"),
        (Unit::MegabytesPerSecond, few) => (few, "MB/s"),
        (Unit::Percent, share) => (share, "%"),
        (Unit::MillionPerSecond | Unit::Gflops | Unit::Times, plain) => (plain, ""),
    };
    let text = figure(value);
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {unit}").trim_end().to_owned()
}

/// Formats a ratio: in thousandths near 1, with three digits far from it.
pub fn ratio(value: f64) -> String {
    if (0.1..10.0).contains(&value) { format!("{value:.3}") } else { figure(value) }
}

/// Formats an interval in brackets; empty without one.
pub fn interval(interval: Option<(f64, f64)>, form: fn(f64) -> String) -> String {
    interval.map_or_else(String::new, |(low, high)| format!("[{}, {}]", form(low), form(high)))
}

/// Formats a number of things: one form for 1, another for all other numbers.
pub fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Joins names: `a, b and c`.
pub fn list(names: &[&str]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => names.concat(),
    }
}
