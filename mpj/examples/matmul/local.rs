//! The product of two blocks on one rank, by the crate `ndarray`. The algorithms use it for their blocks, and
//! `verify.rs` for the whole product.

use mpj::Datatype;
use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, LinalgScalar};

use super::matrix::Matrix;
use super::npy::Scalar;

/// A type of values that can be multiplied here.
pub trait Element: Scalar + Datatype + LinalgScalar {
    /// The largest relative error of one rounding.
    const ROUNDOFF: f64;

    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
}

impl Element for f32 {
    const ROUNDOFF: f64 = f32::EPSILON as f64 / 2.0;

    fn from_f64(value: f64) -> Self {
        value as f32
    }

    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}

impl Element for f64 {
    const ROUNDOFF: f64 = f64::EPSILON / 2.0;

    fn from_f64(value: f64) -> Self {
        value
    }

    fn to_f64(self) -> f64 {
        self
    }
}

/// Adds the product of `a` and `b` to `c`.
///
/// # Panics
///
/// If the extents do not agree.
pub fn multiply_add<T: Element>(a: ArrayView2<'_, T>, b: ArrayView2<'_, T>, c: &mut Matrix<T>) {
    general_mat_mul(T::one(), &a, &b, T::one(), &mut c.view_mut());
}
