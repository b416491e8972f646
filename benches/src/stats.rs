//! Order statistics of slices of figures. Pure.
//!
//! Figures are finite numbers in any order. Other values cause no panic, but make the results
//! meaningless.

#[cfg(test)]
mod tests;

/// The least coverage of an [`interval`].
pub const CONFIDENCE: f64 = 0.95;
/// The fewest values that have an interval.
pub const FEWEST: usize = 6;

/// Returns the middle value, or the mean of the two middle ones; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some(lower + (upper - lower) / 2.0)
}

/// Returns the narrowest symmetric pair of order statistics that encloses the true median with a
/// probability of at least [`CONFIDENCE`], whatever the distribution. `None` for fewer than six
/// values: even the extremes of five enclose it with only 93.75 %.
pub fn interval(values: &[f64]) -> Option<(f64, f64)> {
    let outside = cut(values.len())?;
    let sorted = sorted(values);
    Some((sorted[outside], sorted[sorted.len() - 1 - outside]))
}

/// Returns how many of `n` values to leave out at either end.
///
/// The true median lies below the (k+1)-th smallest value if at most k values are below it. Each
/// value is below it with probability 1/2, so the probability is a sum of binomial ones; the same
/// holds at the other end.
fn cut(n: usize) -> Option<usize> {
    let n = n as f64;
    // Logarithms are needed because 2^-n underflows to zero from n = 1075 on.
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

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}
