//! One-sided operations of rank 0 on the window of rank 1, over message sizes: microseconds per operation together with
//! what completes it.
//!
//! Rank 0 stores every word before an operation that writes, and reads every word of its result. In active epochs rank 1
//! reads its window after them, or stores before a get. Both ranks do so at the same time, and the time of this alone on
//! the rank with more of it is subtracted. In passive epochs rank 1 waits in a collective call.
//!
//! A put to a target that computes is timed by itself, beside one to a target that waits in a receive: rank 1 sends a word
//! before it computes, and rank 0 puts as soon as it has it.

use std::hint;
use std::time::{Duration, Instant};

use crate::one_sided::{Epoch, Memory, Operation, Windows};
use crate::order::Order;
use crate::pace;
use crate::payload::{self, Buffer};
use crate::runtime::Failure;
use crate::words;
use crate::worker::Sink;

const WORD: usize = size_of::<u64>();
/// How long a target computes, which is longer than a put takes.
const COMPUTATION: Duration = Duration::from_millis(1);
/// Puts to a computing target of which one figure is the mean.
const PUTS: u32 = 4;
const TAG: i32 = 1;

const EPOCHS: [(Epoch, &str); 4] = [
    (Epoch::Flush, "flush"),
    (Epoch::Lock, "lock"),
    (Epoch::Fence, "fence"),
    (Epoch::Pscw, "pscw"),
];
const OPERATIONS: [(Operation, &str); 6] = [
    (Operation::Put, "put"),
    (Operation::Get, "get"),
    (Operation::Accumulate, "acc"),
    (Operation::GetAccumulate, "getacc"),
    (Operation::FetchAndOp, "fop"),
    (Operation::CompareAndSwap, "cas"),
];

/// Measures every size of the order that is a multiple of 8 bytes: all operations in all epochs on allocated windows; put,
/// get and accumulate with a flush on created ones. Operations on one element are measured where the size is 8.
///
/// # Errors
/// A wrong payload, or an error of the library; more than two ranks.
pub fn run<R: Windows>(runtime: &R, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    if runtime.size() != 2 {
        return Err(Failure::new("rma has two ranks"));
    }
    for &size in order.sizes.iter().filter(|size| **size > 0 && **size % WORD == 0) {
        let mut pair = Pair::new(runtime, order, size, Memory::Allocated)?;
        for (operation, name) in
            OPERATIONS.into_iter().filter(|(it, _)| size == WORD || !it.is_of_one())
        {
            for (epoch, end) in EPOCHS {
                let figures = pair.measure(epoch, operation)?;
                sink.sample_if_clear(&format!("rma-{name}-{end}"), size, figures);
            }
        }
        let [waiting, computing] = [Target::Waits, Target::Computes].map(|it| pair.beside(it));
        let (waiting, computing) = (waiting?, computing?);
        let ratios = computing.iter().zip(&waiting).map(|(one, other)| one / other);
        sink.sample("rma-put-ratio", size, ratios.collect());
        sink.sample("rma-put-computing", size, computing);
        pair.end()?;

        let mut pair = Pair::new(runtime, order, size, Memory::Created)?;
        for (operation, name) in OPERATIONS.into_iter().take(3) {
            let figures = pair.measure(Epoch::Flush, operation)?;
            sink.sample_if_clear(&format!("rma-{name}-created"), size, figures);
        }
        pair.end()?;
    }
    Ok(())
}

/// What the target of a put does meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    /// It computes, and calls nothing.
    Computes,
    /// It waits in a receive, and has computed before, so that puts follow each other as in the other case.
    Waits,
}

/// A window of two ranks, and the buffers of this one.
struct Pair<'a, R: Windows> {
    runtime: &'a R,
    order: &'a Order,
    window: R::Window,
    /// At the origin, behind the data of compare_and_swap is the value to be compared.
    data: Buffer<u8>,
    result: Buffer<u8>,
    size: usize,
    turn: u64,
}

impl<'a, R: Windows> Pair<'a, R> {
    fn new(runtime: &'a R, order: &'a Order, size: usize, memory: Memory) -> Result<Self, Failure> {
        let window = runtime.window(size, memory)?;
        let (data, result) = (Buffer::zeroed(size.max(2 * WORD)), Buffer::zeroed(size));
        Ok(Self { runtime, order, window, data, result, size, turn: 0 })
    }

    fn end(self) -> Result<(), Failure> {
        self.runtime.free(self.window)
    }

    /// Returns microseconds per operation, of each batch; `None` if they are [unclear](pace::less).
    fn measure(&mut self, epoch: Epoch, operation: Operation) -> Result<Option<Vec<f64>>, Failure> {
        let (runtime, effort) = (self.runtime, &self.order.effort);
        self.check(epoch, operation)?;
        self.begin(epoch)?;
        let seconds = pace::measure(runtime, effort, || self.round(epoch, operation))?;
        self.end_of(epoch)?;
        let alone = pace::alone_here(runtime, effort, || {
            self.store(epoch, operation);
            self.read(epoch, operation);
        })?;
        let most = pace::slowest(runtime, &[alone])?[0];
        let left = pace::less(&seconds, most);
        Ok(left.map(|left| left.iter().map(|seconds| seconds * 1e6).collect()))
    }

    fn begin(&self, epoch: Epoch) -> Result<(), Failure> {
        if epoch == Epoch::Flush { self.runtime.lock_all(&self.window) } else { Ok(()) }
    }

    /// Waits until both ranks are here. From then on each may access its own memory.
    fn end_of(&self, epoch: Epoch) -> Result<(), Failure> {
        self.runtime.barrier()?;
        if epoch == Epoch::Flush { self.runtime.unlock_all(&self.window) } else { Ok(()) }
    }

    #[inline]
    fn round(&mut self, epoch: Epoch, operation: Operation) -> Result<(), Failure> {
        self.store(epoch, operation);
        self.step(epoch, operation)?;
        self.read(epoch, operation);
        Ok(())
    }

    /// The part of this rank in an operation.
    #[inline]
    fn step(&mut self, epoch: Epoch, operation: Operation) -> Result<(), Failure> {
        if self.runtime.rank() == 1 {
            return self.runtime.expose(&self.window, epoch);
        }
        let len = if operation == Operation::CompareAndSwap { 2 * WORD } else { self.size };
        let data = &self.data[..len];
        self.runtime.access(&self.window, epoch, operation, data, &mut self.result)
    }

    /// Stores what the operation will move.
    #[inline]
    fn store(&mut self, epoch: Epoch, operation: Operation) {
        self.turn += 1;
        let (turn, size) = (self.turn, self.size);
        match (self.runtime.rank(), operation.writes()) {
            (0, true) => {
                let (data, behind) = self.data.split_at_mut(size);
                if operation == Operation::CompareAndSwap {
                    // The value that is there now.
                    let there = if *self.result == *behind { data } else { &mut *self.result };
                    behind.copy_from_slice(there);
                }
                words::store(&mut self.data[..size], turn);
            }
            (1, false) if epoch.is_active() => {
                self.runtime.local(&mut self.window, |memory| words::store(memory, turn));
            }
            _ => {}
        }
    }

    /// Reads what the operation has moved.
    #[inline]
    fn read(&mut self, epoch: Epoch, operation: Operation) {
        match self.runtime.rank() {
            0 if operation.reads() => words::read(&self.result),
            1 if operation.writes() && epoch.is_active() => {
                self.runtime.local(&mut self.window, |memory| words::read(memory));
            }
            _ => {}
        }
    }

    /// Checks the result and the target's memory after one operation.
    fn check(&mut self, epoch: Epoch, operation: Operation) -> Result<(), Failure> {
        let filled = |seed: u64| {
            let mut buffer = vec![0; self.size];
            payload::fill(&mut buffer, seed);
            buffer
        };
        let (before, given) = (filled(1), filled(2));
        self.runtime.local(&mut self.window, |memory| memory.copy_from_slice(&before));
        self.data[..self.size].copy_from_slice(&given);
        if operation == Operation::CompareAndSwap {
            self.data[WORD..2 * WORD].copy_from_slice(&before);
        }
        self.result.fill(0);
        self.runtime.barrier()?;
        self.begin(epoch)?;
        self.step(epoch, operation)?;
        self.end_of(epoch)?;

        let after = match operation {
            Operation::Put | Operation::CompareAndSwap => given,
            Operation::Get => before.clone(),
            _ => sums(&before, &given),
        };
        let is_right = match self.runtime.rank() {
            0 => !operation.reads() || *self.result == *before,
            _ => self.runtime.local(&mut self.window, |memory| *memory == *after),
        };
        // The next operation comes when the target has looked.
        self.runtime.barrier()?;
        let wrong = || format!("wrong data after {operation:?} of {} B by {epoch:?}", self.size);
        is_right.then_some(()).ok_or_else(|| Failure::new(wrong()))
    }

    /// Returns microseconds of a put and a flush while the target does something.
    fn beside(&mut self, target: Target) -> Result<Vec<f64>, Failure> {
        self.begin(Epoch::Flush)?;
        // The first one is untimed.
        self.put_beside(target)?;
        let mut figures = Vec::new();
        for _ in 0..self.order.effort.batches {
            let mut seconds = 0.0;
            for _ in 0..PUTS {
                seconds += self.put_beside(target)?;
            }
            figures.push(seconds * 1e6 / f64::from(PUTS));
        }
        self.end_of(Epoch::Flush)?;
        Ok(figures)
    }

    /// Returns the seconds of a put on rank 0.
    fn put_beside(&mut self, target: Target) -> Result<f64, Failure> {
        let runtime = self.runtime;
        if runtime.rank() == 1 {
            if target == Target::Waits {
                compute();
            }
            runtime.send(&[1], 0, TAG)?;
            if target == Target::Computes {
                compute();
            }
            runtime.recv(&mut [0], 0, TAG)?;
            return Ok(1.0);
        }
        self.store(Epoch::Flush, Operation::Put);
        runtime.recv(&mut [0], 1, TAG)?;
        let begin = Instant::now();
        self.step(Epoch::Flush, Operation::Put)?;
        let seconds = begin.elapsed().as_secs_f64();
        runtime.send(&[1], 1, TAG)?;
        Ok(seconds)
    }
}

impl Operation {
    fn is_of_one(self) -> bool {
        matches!(self, Self::FetchAndOp | Self::CompareAndSwap)
    }
}

fn compute() {
    let begin = Instant::now();
    while begin.elapsed() < COMPUTATION {
        hint::spin_loop();
    }
}

/// Returns the sums of words.
fn sums(one: &[u8], other: &[u8]) -> Vec<u8> {
    let words = |bytes: &[u8]| bytemuck::pod_collect_to_vec::<u8, u64>(bytes);
    let sums = words(one).into_iter().zip(words(other)).map(|(one, other)| one.wrapping_add(other));
    sums.flat_map(u64::to_ne_bytes).collect()
}
