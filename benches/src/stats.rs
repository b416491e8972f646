//! The statistics: order statistics of plain slices of figures. Pure.
//!
//! Figures are finite numbers in any order. None of the functions panics for others; what they return
//! then means nothing.

#[cfg(test)]
mod tests;

/// The least coverage of an [`interval`].
pub const CONFIDENCE: f64 = 0.95;
/// The fewest values that have an interval.
pub const FEWEST: usize = 6;

/// The middle value, or the mean of the two middle ones; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some(lower + (upper - lower) / 2.0)
}

/// The narrowest pair of values, equally many from either end, that encloses the true median with a
/// probability of at least [`CONFIDENCE`], whatever the distribution. `None` for less than six values:
/// even the smallest and the largest of five enclose it with 93.75 % only.
pub fn interval(values: &[f64]) -> Option<(f64, f64)> {
    let outside = cut(values.len())?;
    let sorted = sorted(values);
    Some((sorted[outside], sorted[sorted.len() - 1 - outside]))
}

/// How many of `n` values may be left out at either end.
///
/// The true median lies below the (k+1)-th smallest value if at most k values are below it. Each value is
/// with probability 1/2, so that is a sum of binomial probabilities; the same holds at the other end.
fn cut(n: usize) -> Option<usize> {
    let n = n as f64;
    // Logarithms, since 2^-n is zero as a number from n = 1075 on.
    let mut logarithm = -n * std::f64::consts::LN_2;
    let mut tail = 0.0;
    let mut enough = None;
    for below in 0..(n / 2.0).ceil() as usize {
        tail += logarithm.exp();
        if 2.0 * tail > 1.0 - CONFIDENCE {
            break;
        }
        enough = Some(below);
        logarithm += ((n - below as f64) / (below as f64 + 1.0)).ln();
    }
    enough
}

/// The n-th root of the product of n positive values; `None` without values.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().map(|value| value.ln()).sum();
    (!values.is_empty()).then(|| (sum / values.len() as f64).exp())
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}
