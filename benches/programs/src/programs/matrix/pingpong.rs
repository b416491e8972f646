//! Half the time of a round trip of an N x N matrix between ranks 0 and 1: typical messages of
//! programs, whose lengths are not powers of two. Measured like latency.

use bytemuck::Pod;

use crate::order::Order;
use crate::programs::latency::PingPong;
use crate::runtime::{Failure, Runtime};
use crate::worker::Sink;

/// Elements are integers below this, which are exact in `f32` as well.
const ELEMENTS: usize = 65_521;

/// Measures every order of `orders`, with `f32` and with `f64`.
///
/// # Errors
/// A wrong matrix, or an error of the library.
pub fn run<R: Runtime>(runtime: &R, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    let mut pair = PingPong::new(runtime, order);
    for &n in &order.orders {
        let halves = measure(&mut pair, n, |element| element as f32)?;
        sink.sample_if_clear(&order.buffers.series("matrix-f32"), n, halves);
        let halves = measure(&mut pair, n, f64::from)?;
        sink.sample_if_clear(&order.buffers.series("matrix-f64"), n, halves);
    }
    Ok(())
}

/// Measures microseconds of half a round trip of matrices whose elements `element` makes from
/// numbers.
fn measure<R: Runtime, T: Pod>(
    pair: &mut PingPong<'_, R>,
    n: usize,
    element: impl Fn(u16) -> T,
) -> Result<Option<Vec<f64>>, Failure> {
    let matrix = |rank: usize| {
        let number = move |place| ((place + rank * n) % ELEMENTS) as u16;
        (1..=n * n).map(number).map(&element).collect::<Vec<T>>()
    };
    let bytes = size_of::<T>();
    let check = |received: &[u8], rank| {
        if *received == *bytemuck::cast_slice::<T, u8>(&matrix(rank)) {
            return Ok(());
        }
        Err(Failure::new(format_args!("wrong matrix of N = {n} with elements of {bytes} bytes")))
    };
    let fill =
        |buffer: &mut [u8], rank| buffer.copy_from_slice(bytemuck::cast_slice(&matrix(rank)));
    pair.measure(n * n * bytes, fill, check)
}
