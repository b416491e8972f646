//! Half of the time of a round trip of an N x N matrix between ranks 0 and 1: messages of the shape
//! that programs send, whose lengths are no powers of two.

use bytemuck::Pod;

use crate::order::Order;
use crate::pace;
use crate::payload::Buffer;
use crate::programs::latency;
use crate::runtime::{Failure, Runtime};
use crate::worker::{Sink, needs_two};

/// Elements are whole numbers below this, which are exact in `f32` as well.
const ELEMENTS: usize = 65_521;

/// Measures every order of `orders`, with `f32` and with `f64`.
///
/// # Errors
/// A job of one rank, a wrong matrix, the library's.
pub fn run<R: Runtime>(runtime: &R, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    needs_two(runtime, "matrix-pingpong")?;
    for &n in &order.orders {
        let halves = measure(runtime, order, n, |element| element as f32)?;
        sink.sample("matrix-f32", n, halves);
        let halves = measure(runtime, order, n, f64::from)?;
        sink.sample("matrix-f64", n, halves);
    }
    Ok(())
}

/// Microseconds of half a round trip of matrices whose elements `element` makes of numbers.
fn measure<R: Runtime, T: Pod + PartialEq>(
    runtime: &R,
    order: &Order,
    n: usize,
    element: impl Fn(u16) -> T,
) -> Result<Vec<f64>, Failure> {
    let matrix = |rank| {
        let number = move |place| ((place + rank * n) % ELEMENTS) as u16;
        (1..=n * n).map(number).map(&element).collect::<Vec<T>>()
    };
    let (mut out, mut back) = (Buffer::zeroed(n * n), Buffer::zeroed(n * n));
    out.copy_from_slice(&matrix(runtime.rank()));
    let seconds = pace::measure(runtime, &order.effort, || round_trip(runtime, &out, &mut back))?;
    back.fill(T::zeroed());
    round_trip(runtime, &out, &mut back)?;
    if runtime.rank() < 2 && *back != matrix(1 - runtime.rank())[..] {
        let bytes = size_of::<T>();
        return Err(Failure::new(format_args!(
            "wrong matrix of N = {n} with elements of {bytes} bytes"
        )));
    }
    Ok(seconds.iter().map(|seconds| seconds * 1e6 / 2.0).collect())
}

fn round_trip<R: Runtime, T: Pod>(runtime: &R, out: &[T], back: &mut [T]) -> Result<(), Failure> {
    latency::round_trip(runtime, bytemuck::cast_slice(out), bytemuck::cast_slice_mut(back))
}
