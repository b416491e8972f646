//! Collective calls: microseconds per call, until the last rank is done, calls following one another.
//!
//! A library that has no such call of its own is measured in the barrier only.

use crate::order::Order;
use crate::pace;
use crate::payload::{self, Buffer};
use crate::runtime::{Failure, Runtime};
use crate::worker::Sink;

/// Measures the barrier, then the other calls over the sizes of the order, which are bytes per rank.
///
/// # Errors
/// A wrong result, the library's.
pub fn run<R: Runtime>(runtime: &R, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    let seconds = measure(runtime, order, || runtime.barrier())?;
    sink.sample("barrier", runtime.size(), microseconds(&seconds));
    if !runtime.has_collectives() {
        return Ok(());
    }
    for &size in order.sizes.iter().filter(|&&size| size > 0) {
        let seconds = broadcast(runtime, order, size)?;
        sink.sample("bcast", size, microseconds(&seconds));
        if size % size_of::<f64>() == 0 {
            let seconds = allreduce(runtime, order, size / size_of::<f64>())?;
            sink.sample("allreduce", size, microseconds(&seconds));
        }
        let seconds = alltoall(runtime, order, size)?;
        sink.sample("alltoall", size, microseconds(&seconds));
    }
    Ok(())
}

/// Seconds per call, batch by batch.
fn measure<R: Runtime>(
    runtime: &R,
    order: &Order,
    mut call: impl FnMut() -> Result<(), Failure>,
) -> Result<Vec<f64>, Failure> {
    let batches = pace::measure_together(runtime, &order.effort, || call().map(|()| 0.0))?;
    Ok(batches.iter().map(|batch| batch.seconds).collect())
}

fn microseconds(seconds: &[f64]) -> Vec<f64> {
    seconds.iter().map(|seconds| seconds * 1e6).collect()
}

fn broadcast<R: Runtime>(runtime: &R, order: &Order, size: usize) -> Result<Vec<f64>, Failure> {
    let mut buffer = Buffer::zeroed(size);
    payload::fill(&mut buffer, if runtime.rank() == 0 { 3 } else { 0 });
    let seconds = measure(runtime, order, || runtime.broadcast(&mut buffer, 0))?;
    payload::check(&buffer, 3)?;
    Ok(seconds)
}

fn allreduce<R: Runtime>(runtime: &R, order: &Order, count: usize) -> Result<Vec<f64>, Failure> {
    let mut values = Buffer::<f64>::zeroed(count);
    let seconds = measure(runtime, order, || runtime.allreduce(&mut values))?;
    let rank = runtime.rank() as f64;
    values.iter_mut().zip(0..).for_each(|(value, place)| *value = rank + f64::from(place));
    runtime.allreduce(&mut values)?;
    let ranks = runtime.size() as f64;
    let of_ranks = ranks * (ranks - 1.0) / 2.0;
    let right = |(value, place): (&f64, i32)| *value == of_ranks + ranks * f64::from(place);
    if values.iter().zip(0..).all(right) {
        return Ok(seconds);
    }
    Err(Failure::new(format_args!("wrong sums from allreduce of {count} f64")))
}

fn alltoall<R: Runtime>(runtime: &R, order: &Order, size: usize) -> Result<Vec<f64>, Failure> {
    let (rank, ranks) = (runtime.rank(), runtime.size());
    let (mut data, mut into) =
        (Buffer::<u8>::zeroed(size * ranks), Buffer::<u8>::zeroed(size * ranks));
    let seed = |from: usize, to: usize| (from * ranks + to) as u64;
    for (to, block) in data.chunks_mut(size).enumerate() {
        payload::fill(block, seed(rank, to));
    }
    let seconds = measure(runtime, order, || runtime.alltoall(&data, &mut into))?;
    for (from, block) in into.chunks(size).enumerate() {
        payload::check(block, seed(from, rank))?;
    }
    Ok(seconds)
}
