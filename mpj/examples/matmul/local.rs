//! The product on one rank, by the kernels of the crate `matrixmultiply`.
//!
//! Called by the algorithms for their blocks and by `verify.rs` for the whole. The only file of
//! this program with unsafe code: the kernels take raw pointers.
//!
//! - ML1: in a [`View`] with rows and columns, value (i, j) lies at `i * stride + j`, which is below
//!   the length of the slice for every row i and column j. All extents of a slice fit `isize`.
//! - ML2: the product is dense, exclusively borrowed for the call, and so overlaps neither factor.
//! - ML3: the extents of the factors and of the product agree.
//! - ML4: a [`Kernel`] here is `sgemm` or `dgemm`, which read and write exactly the values that the
//!   extents and strides describe.

use mpj::Datatype;

use super::matrix::Matrix;
use super::npy::Scalar;

/// `c = alpha * a * b + beta * c`, with the extents m, k, n, and the row and column stride behind
/// each pointer.
type Kernel<T> = unsafe fn(
    usize,
    usize,
    usize,
    T,
    *const T,
    isize,
    isize,
    *const T,
    isize,
    isize,
    T,
    *mut T,
    isize,
    isize,
);

/// A type of values that can be multiplied here.
pub trait Element: Scalar + Datatype {
    /// Largest relative error of one rounding.
    const ROUNDOFF: f64;
    const ONE: Self;
    /// ML4.
    const KERNEL: Kernel<Self>;

    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
}

impl Element for f32 {
    const ROUNDOFF: f64 = f32::EPSILON as f64 / 2.0;
    const ONE: Self = 1.0;
    const KERNEL: Kernel<Self> = matrixmultiply::sgemm;

    fn from_f64(value: f64) -> Self {
        value as f32
    }

    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}

impl Element for f64 {
    const ROUNDOFF: f64 = f64::EPSILON / 2.0;
    const ONE: Self = 1.0;
    const KERNEL: Kernel<Self> = matrixmultiply::dgemm;

    fn from_f64(value: f64) -> Self {
        value
    }

    fn to_f64(self) -> f64 {
        self
    }
}

/// A factor: rows of `cols` values, each row `stride` values behind the one before.
#[derive(Debug, Clone, Copy)]
pub struct View<'a, T> {
    values: &'a [T],
    rows: usize,
    cols: usize,
    stride: usize,
}

impl<'a, T> View<'a, T> {
    /// Checks ML1.
    ///
    /// # Panics
    ///
    /// When the rows overlap or reach beyond the slice.
    pub fn new(values: &'a [T], rows: usize, cols: usize, stride: usize) -> Self {
        assert!(cols <= stride, "rows of {cols} values overlap at a stride of {stride}");
        if rows > 0 && cols > 0 {
            let end = (rows - 1).checked_mul(stride).and_then(|start| start.checked_add(cols));
            assert!(end.is_some_and(|end| end <= values.len()), "L1");
        }
        Self { values, rows, cols, stride }
    }
}

/// Adds the product of `a` and `b` to `c`.
///
/// # Panics
///
/// When the extents do not agree (ML3).
pub fn multiply_add<T: Element>(a: View<'_, T>, b: View<'_, T>, c: &mut Matrix<T>) {
    let (m, k, n) = (a.rows, a.cols, b.cols);
    assert_eq!((b.rows, c.rows(), c.cols()), (k, m, n), "L3");
    if m == 0 || k == 0 || n == 0 {
        return;
    }
    let stride = |values: usize| isize::try_from(values).expect("L1: a stride fits isize");
    let (row_a, row_b, row_c) = (stride(a.stride), stride(b.stride), stride(n));
    let target = c.values_mut().as_mut_ptr();
    let (left, right) = (a.values.as_ptr(), b.values.as_ptr());
    // SAFETY: by ML3 and ML4 the kernel reads m x k values of `a` and k x n of `b`, which ML1 puts
    // inside their slices, and writes m x n dense values of `c`, which are all there (MX1 in
    // `matrix.rs`) and are ours alone (ML2).
    unsafe {
        T::KERNEL(m, k, n, T::ONE, left, row_a, 1, right, row_b, 1, T::ONE, target, row_c, 1);
    }
}
