//! The check of a distributed product against the product of one rank.
//!
//! With roundoff u and any order of the sums, a computed product differs from the exact one by at most `g * |A| * |B|`
//! in the Frobenius norm, where `g = k u / (1 - k u)` (Higham, Accuracy and Stability of Numerical Algorithms, section
//! 3.5). So two computed products are at most `2 g` apart, relative to the norms of the factors; this is the limit
//! here.

use super::local::{Element, multiply_add};
use super::matrix::Matrix;

/// The distance of a product from the reference, and its limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Residual {
    /// Frobenius norm of the difference, relative to those of the factors.
    pub relative: f64,
    pub limit: f64,
}

impl Residual {
    pub fn verified(self) -> bool {
        self.relative <= self.limit
    }
}

/// Computes the product on this rank alone.
pub fn reference<T: Element>(a: &Matrix<T>, b: &Matrix<T>) -> Matrix<T> {
    let mut c = Matrix::zeros(a.rows(), b.cols());
    multiply_add(a.view(), b.view(), &mut c);
    c
}

/// Compares `c` with the `reference` product of `a` and `b`.
pub fn residual<T: Element>(
    a: &Matrix<T>,
    b: &Matrix<T>,
    c: &Matrix<T>,
    reference: &Matrix<T>,
) -> Residual {
    let pairs = c.values().iter().zip(reference.values());
    let apart = norm(pairs.map(|(left, right)| distance(left.to_f64(), right.to_f64())));
    let norm_of = |factor: &Matrix<T>| {
        norm(factor.values().iter().map(|value| value.to_f64()).filter(|value| value.is_finite()))
    };
    // Dividing twice keeps the product of two large norms from overflowing.
    let relative = if apart == 0.0 { 0.0 } else { apart / norm_of(a) / norm_of(b) };
    let spread = a.cols() as f64 * T::ROUNDOFF;
    Residual { relative, limit: 2.0 * spread / (1.0 - spread).max(T::ROUNDOFF) }
}

/// Returns the difference of two values. If both have overflowed, the order of the sums decides between infinity and
/// NaN, so they count as equal.
fn distance(left: f64, right: f64) -> f64 {
    if !left.is_finite() && !right.is_finite() { 0.0 } else { left - right }
}

/// Returns the Frobenius norm, scaled so that no square overflows; infinity if a value is not finite.
fn norm(values: impl Iterator<Item = f64>) -> f64 {
    let (mut scale, mut sum) = (0.0, 1.0);
    for value in values.map(f64::abs).filter(|value| *value != 0.0) {
        if !value.is_finite() {
            return f64::INFINITY;
        }
        if value > scale {
            sum = 1.0 + sum * (scale / value) * (scale / value);
            scale = value;
        } else {
            sum += (value / scale) * (value / scale);
        }
    }
    scale * f64::sqrt(sum)
}
