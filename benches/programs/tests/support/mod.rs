//! A library for the tests of the programs: the ranks are threads, messages lie in one store until
//! they are received.
//!
//! Sends never wait. Posted receives take their messages after `meanwhile`, in the order of the
//! posts, which is right as long as no receive in `meanwhile` matches the same messages. A job ends
//! well only if every message was received; one failed rank ends all others.

#![allow(dead_code, reason = "every test file uses its own part")]

use std::cell::Cell;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use mpj_bench_programs::one_sided::{Epoch, Memory, Operation, Windows};
use mpj_bench_programs::order::Effort;
use mpj_bench_programs::{
    Failure, Job, Order, Post, Program, Record, Runtime, Sample, Series, Unit, worker,
};

/// How long a receive waits before the test has failed.
const PATIENCE: Duration = Duration::from_secs(20);
/// Programs have tags from 0.
const COLLECTIVE: i32 = -1;
const POST: i32 = -2;
const COMPLETE: i32 = -3;

/// What is done to the messages that rank 1 sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// The sign in the middle of the first one is changed, if it has one.
    First,
    /// The sign in the middle of every one is changed.
    Every,
}

/// A small task for `program`.
pub fn order(program: Program) -> Order {
    Order {
        programs: vec![program],
        effort: Effort { batches: 2, budget: 0.1 },
        pool: 1 << 16,
        sizes: vec![8],
        orders: vec![12],
        products: vec![12, 24],
        blocked: vec![1000],
        ..Order::default()
    }
}

/// Runs an order on so many ranks. Returns what rank 0 measured, or what failed first. A point that was
/// unclear, which may happen to all that is measured beside other tests, is there without figures.
pub fn run(ranks: usize, order: &Order, fault: Fault) -> Result<Vec<Sample>, Failure> {
    let (store, begin) = (Store::default(), Instant::now());
    let (orders, mut records) = (std::slice::from_ref(order), Vec::new());
    thread::scope(|scope| {
        let rank = |rank| Threads {
            rank,
            ranks,
            store: &store,
            begin,
            fault: Cell::new(fault),
            made: Cell::new(0),
        };
        for other in (1..ranks).map(rank) {
            scope.spawn(move || {
                other.store.ends(worker::run_with_windows(&other, orders, &mut |_| {}))
            });
        }
        let emit = &mut |record: &Record| records.push(record.clone());
        store.ends(worker::run_with_windows(&rank(0), orders, emit));
    });
    let inside = store.inside.into_inner().expect("no rank panics");
    if let Some(failure) = inside.failure {
        return Err(failure);
    }
    assert_eq!(inside.messages, [], "nobody received these");
    assert!(matches!(records[0], Record::Library(_)));
    assert_eq!(records.last(), Some(&Record::Complete));
    let samples = records.into_iter().filter_map(|record| match record {
        Record::Sample(sample) => Some(sample),
        Record::Unclear(series, x) => Some(Sample { series, x, values: Vec::new(), raw: None }),
        _ => None,
    });
    Ok(samples.collect())
}

/// Runs an order, which has to give these points in this order, each with figures that can be.
#[track_caller]
pub fn measures(ranks: usize, order: &Order, points: &[(&str, u64)]) {
    let samples = run(ranks, order, Fault::None).expect("the order is legal");
    let measured: Vec<_> = samples.iter().map(|sample| (&*sample.series, sample.x)).collect();
    assert_eq!(measured, points, "on {ranks} ranks");
    for Sample { series, values, .. } in &samples {
        let unit = Series::named(series).expect("it is in the table").unit;
        let can_be = |value: &f64| match unit {
            Unit::Percent => (0.0..=100.0).contains(value),
            _ => *value > 0.0 && value.is_finite(),
        };
        assert!([0, order.effort.batches].contains(&values.len()), "{series}");
        assert!(values.iter().all(can_be), "{series}: {values:?}");
    }
}

/// Runs an order that has to fail with a text that contains `text`.
#[track_caller]
pub fn fails(ranks: usize, order: &Order, fault: Fault, text: &str) {
    let failure = run(ranks, order, fault).expect_err("it has to fail").to_string();
    assert!(failure.contains(text), "{failure}");
}

/// All messages under way.
#[derive(Default)]
struct Store {
    inside: Mutex<Inside>,
    changed: Condvar,
}

#[derive(Default)]
struct Inside {
    messages: Vec<Message>,
    failure: Option<Failure>,
    /// Ranks that have come to a barrier, of all barriers together.
    arrived: usize,
    /// The memory of ranks 0 and 1, by window.
    windows: Vec<[Vec<u8>; 2]>,
}

#[derive(Debug, PartialEq)]
struct Message {
    from: usize,
    to: usize,
    tag: i32,
    data: Vec<u8>,
}

impl Store {
    /// A rank has ended, and ends the others if it failed.
    fn ends(&self, outcome: Result<(), Failure>) {
        if let Err(failure) = outcome {
            self.change(|inside| inside.failure = inside.failure.take().or(Some(failure)));
        }
    }

    fn change<R>(&self, body: impl FnOnce(&mut Inside) -> R) -> R {
        let result = body(&mut self.lock());
        self.changed.notify_all();
        result
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().expect("no rank panics")
    }

    /// Waits until `body` has something.
    fn wait<R>(&self, mut body: impl FnMut(&mut Inside) -> Option<R>) -> Result<R, Failure> {
        let (end, mut inside) = (Instant::now() + PATIENCE, self.lock());
        loop {
            if let Some(result) = body(&mut inside) {
                return Ok(result);
            }
            if let Some(failure) = &inside.failure {
                return Err(failure.clone());
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Failure::new(format_args!("nothing came in {PATIENCE:?}")));
            }
            inside = self.changed.wait_timeout(inside, left).expect("no rank panics").0;
        }
    }
}

/// One rank.
struct Threads<'job> {
    rank: usize,
    ranks: usize,
    store: &'job Store,
    begin: Instant,
    fault: Cell<Fault>,
    /// Windows so far.
    made: Cell<usize>,
}

impl Threads<'_> {
    fn put(&self, data: &[u8], to: usize, tag: i32) {
        let mut data = data.to_vec();
        if self.rank == 1 && self.fault.get() != Fault::None && !data.is_empty() {
            // The last byte of a number has its sign.
            let middle = (data.len() / 16 * 8 + 7).min(data.len() - 1);
            data[middle] ^= 0x80;
            if self.fault.get() == Fault::First {
                self.fault.set(Fault::None);
            }
        }
        self.store.change(|inside| {
            inside.messages.push(Message { from: self.rank, to, tag, data });
        });
    }

    fn take(&self, buffer: &mut [u8], from: usize, tag: i32) -> Result<usize, Failure> {
        let matches = |message: &Message| {
            message.to == self.rank && message.tag == tag && message.from == from
        };
        let message = self.store.wait(|inside| {
            let place = inside.messages.iter().position(matches)?;
            Some(inside.messages.remove(place))
        })?;
        let length = message.data.len();
        let place = buffer.get_mut(..length);
        place.ok_or_else(|| Failure::new("message too long"))?.copy_from_slice(&message.data);
        Ok(length)
    }
}

impl Threads<'_> {
    /// Takes a block of each rank.
    fn take_blocks(&self, into: &mut [u8], block: usize) -> Result<(), Failure> {
        let mut places = into.chunks_mut(block).enumerate();
        places.try_for_each(|(from, place)| self.take(place, from, COLLECTIVE).map(drop))
    }

    /// Takes numbers of each rank, and leaves their sums.
    fn add_all(&self, sums: &mut [f64]) -> Result<(), Failure> {
        let mut summands = vec![0.0; sums.len()];
        sums.fill(0.0);
        for from in 0..self.ranks {
            let buffer = bytemuck::cast_slice_mut(&mut summands);
            self.take(buffer, from, COLLECTIVE)?;
            sums.iter_mut().zip(&summands).for_each(|(sum, value)| *sum += value);
        }
        Ok(())
    }
}

impl Job for Threads<'_> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.ranks
    }

    fn barrier(&self) -> Result<(), Failure> {
        let full = self.store.change(|inside| {
            inside.arrived += 1;
            inside.arrived.next_multiple_of(self.ranks)
        });
        self.store.wait(|inside| (inside.arrived >= full).then_some(()))
    }

    fn exchange(&self, word: u64) -> Result<Vec<u64>, Failure> {
        let mut words = vec![0; self.ranks];
        self.allgather(bytemuck::bytes_of(&word), bytemuck::cast_slice_mut(&mut words))?;
        Ok(words)
    }

    fn wtime(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }
}

impl Runtime for Threads<'_> {
    fn send(&self, data: &[u8], to: usize, tag: i32) -> Result<(), Failure> {
        self.put(data, to, tag);
        Ok(())
    }

    fn recv(&self, buffer: &mut [u8], from: usize, tag: i32) -> Result<(), Failure> {
        self.take(buffer, from, tag).map(drop)
    }

    fn start_all<'buffer, R>(
        &self,
        posts: impl IntoIterator<Item = Post<'buffer>>,
        meanwhile: impl FnOnce() -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let mut receives = Vec::new();
        for post in posts {
            match post {
                Post::Send { data, to, tag } => self.put(data, to, tag),
                Post::Receive { buffer, from, tag } => receives.push((buffer, from, tag)),
            }
        }
        let result = meanwhile()?;
        for (buffer, from, tag) in receives {
            self.take(buffer, from, tag)?;
        }
        Ok(result)
    }

    fn broadcast(&self, buffer: &mut [u8], root: usize) -> Result<(), Failure> {
        if self.rank != root {
            return self.take(buffer, root, COLLECTIVE).map(drop);
        }
        (0..self.ranks).filter(|to| *to != root).for_each(|to| self.put(buffer, to, COLLECTIVE));
        Ok(())
    }

    fn allreduce(&self, values: &mut [f64]) -> Result<(), Failure> {
        (0..self.ranks).for_each(|to| self.put(bytemuck::cast_slice(values), to, COLLECTIVE));
        self.add_all(values)
    }

    fn reduce(&self, values: &[f64], sums: &mut [f64], root: usize) -> Result<(), Failure> {
        self.put(bytemuck::cast_slice(values), root, COLLECTIVE);
        if self.rank == root {
            self.add_all(sums)?;
        }
        Ok(())
    }

    fn gather(&self, data: &[u8], into: &mut [u8], root: usize) -> Result<(), Failure> {
        self.put(data, root, COLLECTIVE);
        if self.rank == root { self.take_blocks(into, data.len()) } else { Ok(()) }
    }

    fn scatter(&self, data: &[u8], into: &mut [u8], root: usize) -> Result<(), Failure> {
        if self.rank == root {
            let blocks = data.chunks(into.len()).enumerate();
            blocks.for_each(|(to, block)| self.put(block, to, COLLECTIVE));
        }
        self.take(into, root, COLLECTIVE).map(drop)
    }

    fn allgather(&self, data: &[u8], into: &mut [u8]) -> Result<(), Failure> {
        (0..self.ranks).for_each(|to| self.put(data, to, COLLECTIVE));
        self.take_blocks(into, data.len())
    }

    fn alltoall(&self, data: &[u8], into: &mut [u8]) -> Result<(), Failure> {
        let block = data.len() / self.ranks;
        let blocks = data.chunks(block).enumerate();
        blocks.for_each(|(to, block)| self.put(block, to, COLLECTIVE));
        self.take_blocks(into, block)
    }
}

impl Windows for Threads<'_> {
    type Window = usize;

    fn window(&self, len: usize, _: Memory) -> Result<usize, Failure> {
        self.barrier()?;
        let window = self.made.replace(self.made.get() + 1);
        if self.rank == 0 {
            self.store.change(|inside| inside.windows.push([vec![0; len], vec![0; len]]));
        }
        self.barrier()?;
        Ok(window)
    }

    fn free(&self, _: usize) -> Result<(), Failure> {
        self.barrier()
    }

    fn local<R>(&self, window: &mut usize, body: impl FnOnce(&mut [u8]) -> R) -> R {
        body(&mut self.store.lock().windows[*window][self.rank])
    }

    fn lock_all(&self, _: &usize) -> Result<(), Failure> {
        Ok(())
    }

    fn unlock_all(&self, _: &usize) -> Result<(), Failure> {
        Ok(())
    }

    fn access(
        &self,
        window: &usize,
        epoch: Epoch,
        operation: Operation,
        data: &[u8],
        result: &mut [u8],
    ) -> Result<(), Failure> {
        match epoch {
            Epoch::Flush | Epoch::Lock => self.operate(*window, operation, data, result),
            Epoch::Fence => {
                self.barrier()?;
                self.operate(*window, operation, data, result);
                self.barrier()?;
            }
            Epoch::Pscw => {
                self.take(&mut [], 1, POST)?;
                self.operate(*window, operation, data, result);
                self.put(&[], 1, COMPLETE);
            }
        }
        Ok(())
    }

    fn expose(&self, _: &usize, epoch: Epoch) -> Result<(), Failure> {
        match epoch {
            Epoch::Flush | Epoch::Lock => {}
            Epoch::Fence => {
                self.barrier()?;
                self.barrier()?;
            }
            Epoch::Pscw => {
                self.put(&[], 0, POST);
                self.take(&mut [], 0, COMPLETE)?;
            }
        }
        Ok(())
    }
}

impl Threads<'_> {
    fn operate(&self, window: usize, operation: Operation, data: &[u8], result: &mut [u8]) {
        self.store.change(|inside| {
            let memory = &mut inside.windows[window][1];
            let len = memory.len();
            if operation.reads() {
                result.copy_from_slice(memory);
            }
            match operation {
                Operation::Get => {}
                Operation::Put => memory.copy_from_slice(data),
                Operation::CompareAndSwap if data[len..] == memory[..] => {
                    memory.copy_from_slice(&data[..len]);
                }
                Operation::CompareAndSwap => {}
                _ => {
                    let mut sums = bytemuck::pod_collect_to_vec::<u8, u64>(memory);
                    let summands = bytemuck::pod_collect_to_vec::<u8, u64>(data);
                    sums.iter_mut().zip(summands).for_each(|(sum, it)| *sum = sum.wrapping_add(it));
                    memory.copy_from_slice(bytemuck::cast_slice(&sums));
                }
            }
            if self.fault.get() != Fault::None {
                let spoilt = if operation.reads() { result } else { &mut memory[..] };
                spoilt[len / 2] ^= 0x80;
            }
        });
    }
}
