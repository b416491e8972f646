//! Collective calls: microseconds per call on the slowest rank, calls following one another.
//!
//! Every rank stores every word of its input before each call, and reads every word of its output
//! after it. The time of this alone on the rank with most of it is subtracted: ranks with less to
//! do wait for that rank.

use std::hint::black_box;

use crate::order::Order;
use crate::pace;
use crate::payload::{self, Buffer};
use crate::runtime::{Failure, Runtime};
use crate::words;
use crate::worker::Sink;

/// The most bytes of a buffer with one block per rank. Calls with such buffers skip sizes that
/// would exceed it.
pub const MOST_BLOCKS: usize = 16 << 20;
const ROOT: usize = 0;

/// Measures the barrier, then the other calls over the sizes of the order, in bytes per rank, or
/// per pair of ranks for alltoall. Reductions use only sizes that are multiples of an `f64`.
///
/// # Errors
/// A wrong result, or an error of the library.
pub fn run<R: Runtime>(runtime: &R, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    let seconds = pace::measure_calls(runtime, &order.effort, || runtime.barrier())?;
    let slowest = pace::slowest(runtime, &seconds)?;
    sink.sample("barrier", runtime.size(), microseconds(&slowest));
    let calls = Calls { runtime, order };
    for &size in order.sizes.iter().filter(|&&size| size > 0) {
        let numbers = (size % size_of::<f64>() == 0).then_some(size / size_of::<f64>());
        let has_blocks = size.saturating_mul(runtime.size()) <= MOST_BLOCKS;
        sink.sample_if_clear("bcast", size, calls.broadcast(size)?);
        if let Some(count) = numbers {
            sink.sample_if_clear("reduce", size, calls.reduce(count)?);
            sink.sample_if_clear("allreduce", size, calls.allreduce(count)?);
        }
        if has_blocks {
            sink.sample_if_clear("gather", size, calls.gather(size)?);
            sink.sample_if_clear("scatter", size, calls.scatter(size)?);
            sink.sample_if_clear("allgather", size, calls.allgather(size)?);
            sink.sample_if_clear("alltoall", size, calls.alltoall(size)?);
        }
    }
    Ok(())
}

fn microseconds(seconds: &[f64]) -> Vec<f64> {
    seconds.iter().map(|seconds| seconds * 1e6).collect()
}

/// The figures of a point; `None` if they are [unclear](pace::less).
type Figures = Option<Vec<f64>>;

/// The collective calls of one rank.
struct Calls<'a, R> {
    runtime: &'a R,
    order: &'a Order,
}

impl<R: Runtime> Calls<'_, R> {
    /// Measures `call`, with `store` before it and `read` after it; `store` gets the number of the
    /// call.
    fn measure<B>(
        &self,
        buffers: &mut B,
        store: impl Fn(&mut B, u32),
        call: impl Fn(&mut B) -> Result<(), Failure>,
        read: impl Fn(&B),
    ) -> Result<Figures, Failure> {
        let (runtime, effort, mut turn) = (self.runtime, &self.order.effort, 0_u32);
        let seconds = pace::measure_calls(runtime, effort, || {
            turn = turn.wrapping_add(1);
            store(buffers, turn);
            call(buffers)?;
            read(buffers);
            Ok(())
        })?;
        let alone = pace::alone_here(runtime, effort, || {
            turn = turn.wrapping_add(1);
            store(buffers, turn);
            read(buffers);
        })?;
        let most = pace::slowest(runtime, &[alone])?[0];
        let left = pace::less(&pace::slowest(runtime, &seconds)?, most);
        Ok(left.map(|left| microseconds(&left)))
    }

    fn is_root(&self) -> bool {
        self.runtime.rank() == ROOT
    }

    fn broadcast(&self, size: usize) -> Result<Figures, Failure> {
        let (runtime, is_root) = (self.runtime, self.is_root());
        let mut buffer = Buffer::<u8>::zeroed(size);
        let store = |buffer: &mut Buffer<u8>, turn: u32| {
            if is_root {
                words::store(buffer, turn.into());
            }
        };
        let read = |buffer: &Buffer<u8>| {
            if !is_root {
                words::read(buffer);
            }
        };
        let call = |buffer: &mut Buffer<u8>| runtime.broadcast(buffer, ROOT);
        let figures = self.measure(&mut buffer, store, call, read)?;
        payload::fill(&mut buffer, if is_root { 3 } else { 0 });
        runtime.broadcast(&mut buffer, ROOT)?;
        payload::check(&buffer, 3)?;
        Ok(figures)
    }

    fn reduce(&self, count: usize) -> Result<Figures, Failure> {
        let runtime = self.runtime;
        let results = if self.is_root() { count } else { 0 };
        let mut both = (Buffer::<f64>::zeroed(count), Buffer::<f64>::zeroed(results));
        let figures = self.measure(
            &mut both,
            |(values, _), turn| store_numbers(values, turn.into()),
            |(values, sums)| runtime.reduce(values, sums, ROOT),
            |(_, sums)| words::read(bytemuck::cast_slice(sums)),
        )?;
        let (mut values, mut sums) = both;
        store_numbers(&mut values, runtime.rank() as f64);
        runtime.reduce(&values, &mut sums, ROOT)?;
        self.check_sums(&sums, "reduce")?;
        Ok(figures)
    }

    fn allreduce(&self, count: usize) -> Result<Figures, Failure> {
        let runtime = self.runtime;
        let mut values = Buffer::<f64>::zeroed(count);
        let figures = self.measure(
            &mut values,
            |values, turn| store_numbers(values, turn.into()),
            |values| runtime.allreduce(values),
            |values| words::read(bytemuck::cast_slice(values)),
        )?;
        store_numbers(&mut values, runtime.rank() as f64);
        runtime.allreduce(&mut values)?;
        self.check_sums(&values, "allreduce")?;
        Ok(figures)
    }

    fn gather(&self, size: usize) -> Result<Figures, Failure> {
        let (runtime, rank) = (self.runtime, self.runtime.rank());
        let got = if self.is_root() { runtime.size() } else { 0 };
        let call = |data: &[u8], into: &mut [u8]| runtime.gather(data, into, ROOT);
        self.moved(size, [1, got], call, |_| (rank, ROOT), |from| (from, ROOT))
    }

    fn scatter(&self, size: usize) -> Result<Figures, Failure> {
        let (runtime, rank) = (self.runtime, self.runtime.rank());
        let given = if self.is_root() { runtime.size() } else { 0 };
        let call = |data: &[u8], into: &mut [u8]| runtime.scatter(data, into, ROOT);
        self.moved(size, [given, 1], call, |to| (ROOT, to), |_| (ROOT, rank))
    }

    fn allgather(&self, size: usize) -> Result<Figures, Failure> {
        let (runtime, rank) = (self.runtime, self.runtime.rank());
        let call = |data: &[u8], into: &mut [u8]| runtime.allgather(data, into);
        self.moved(size, [1, runtime.size()], call, |_| (rank, ROOT), |from| (from, ROOT))
    }

    fn alltoall(&self, size: usize) -> Result<Figures, Failure> {
        let (runtime, rank) = (self.runtime, self.runtime.rank());
        let call = |data: &[u8], into: &mut [u8]| runtime.alltoall(data, into);
        self.moved(size, [runtime.size(); 2], call, |to| (rank, to), |from| (from, rank))
    }

    /// Measures a call that moves blocks of `size` bytes, so many into it and out of it. `given` and `got` list the source and
    /// destination rank of each block on this rank.
    fn moved(
        &self,
        size: usize,
        blocks: [usize; 2],
        call: impl Fn(&[u8], &mut [u8]) -> Result<(), Failure>,
        given: impl Fn(usize) -> (usize, usize),
        got: impl Fn(usize) -> (usize, usize),
    ) -> Result<Figures, Failure> {
        let [data, into] = blocks.map(|blocks| Buffer::<u8>::zeroed(blocks * size));
        let mut both = (data, into);
        let figures = self.measure(
            &mut both,
            |(data, _), turn| words::store(data, turn.into()),
            |(data, into)| call(data, into),
            |(_, into)| words::read(into),
        )?;
        let ranks = self.runtime.size();
        let seed = |(from, to): (usize, usize)| (from * ranks + to) as u64;
        let (mut data, mut into) = both;
        for (place, block) in data.chunks_mut(size).enumerate() {
            payload::fill(block, seed(given(place)));
        }
        call(&data, &mut into)?;
        for (place, block) in into.chunks(size).enumerate() {
            payload::check(block, seed(got(place)))?;
        }
        Ok(figures)
    }

    /// Checks the sums of the numbers that every rank stored by [`store_numbers`] with its rank.
    fn check_sums(&self, sums: &[f64], call: &str) -> Result<(), Failure> {
        let ranks = self.runtime.size() as f64;
        let of_ranks = ranks * (ranks - 1.0) / 2.0;
        let right = |(sum, place): (&f64, i32)| *sum == of_ranks + ranks * f64::from(place);
        if sums.iter().zip(0..).all(right) {
            return Ok(());
        }
        Err(Failure::new(format_args!("wrong sums from {call} of {} f64", sums.len())))
    }
}

/// Stores `first`, `first + 1` and so on: numbers with exact sums.
fn store_numbers(values: &mut [f64], first: f64) {
    values.iter_mut().zip(0_i32..).for_each(|(value, place)| *value = first + f64::from(place));
    // `black_box` may read the buffer, so the compiler keeps every store.
    black_box(values);
}
