//! The measured transfers between tasks 0 and 1, by a library of active messages and one-sided operations: the transport
//! itself, or PAMI above it. Their workers implement [`Transfers`].
//!
//! In a ping-pong a message counts as arrived when its handler has run, which stores the data or looks at one byte of it
//! in the packet, and a put when the task sees its last byte change. A window ends with an answer of the target, sent
//! when it has read everything. With rewritten buffers every message of a window has places of its own at both ends;
//! otherwise all have the same one, as in the tools of other libraries. A task that only serves gets and additions makes
//! progress while it waits for the end of the measurement.

pub mod memory;

use std::thread;

use mpj_bench_programs::pace::{self, Turns};
use mpj_bench_programs::worker::{self, Sink, foreign};
use mpj_bench_programs::{Buffers, Failure, Job, Order, Program, payload, words};

use memory::Memory;

/// A library that transfers data between tasks 0 and 1, seen from one of them. Places are offsets in the memories.
///
/// All calls fail with the error of the library, as a text.
#[expect(clippy::missing_errors_doc, reason = "said for all of them")]
pub trait Transfers: Job + Sync {
    /// Returns the memory that this task sends from, and the one that the other task writes to.
    fn memories(&self) -> [Memory; 2];

    /// Sends `size` bytes from `place` to the same place of the other task.
    fn send(&self, by: By, place: usize, size: usize) -> Result<(), Failure>;

    /// Waits for so many messages, and until those of this task have left.
    fn take(&self, messages: u64) -> Result<(), Failure>;

    /// Returns the last byte of the message that was looked at last.
    fn seen(&self) -> Result<u8, Failure>;

    /// Puts `size` bytes from `place` to the same place of the other task. `is_last` says that a window ends with it, of
    /// which the other task waits for the end.
    fn put(&self, place: usize, size: usize, is_last: bool) -> Result<(), Failure>;

    /// Waits until all puts of a window have been stored here.
    fn take_puts(&self) -> Result<(), Failure>;

    /// Makes progress once.
    fn progress(&self) -> Result<(), Failure>;

    /// Watches this task's memory until `is_there` holds. Nobody needs this task's progress meanwhile, so it makes some
    /// now and then only.
    #[inline]
    fn watch(&self, mut is_there: impl FnMut() -> bool) -> Result<(), Failure> {
        let mut looks = 0_u32;
        while !is_there() {
            std::hint::spin_loop();
            looks = looks.wrapping_add(1);
            if looks % LOOKS == 0 {
                self.progress()?;
            }
        }
        Ok(())
    }

    /// Gets the first `size` bytes of the other task.
    fn get(&self, size: usize) -> Result<(), Failure>;

    /// Adds 1 to the first word of the other task, and returns the word before.
    fn add(&self) -> Result<i64, Failure>;

    /// Returns the number of contexts.
    fn contexts(&self) -> usize;

    /// Sends so many windows of [`WINDOW`] messages of 8 bytes by one context of task 0 to that of task 1, which answers
    /// each. Other threads use the other contexts.
    fn stream(&self, context: usize, windows: u64) -> Result<(), Failure>;
}

/// Looks at the memory between two rounds of progress.
const LOOKS: u32 = 64;
/// Messages in flight.
pub const WINDOW: usize = 64;
/// The longest short message, in bytes.
const SHORT: usize = 64;
/// The longest message that handlers of UCX too get in one piece, in bytes.
const ONE_PIECE: usize = 8 << 10;

/// Runs a program. Collective.
///
/// # Errors
/// A program of another worker, a size beyond the memory, a wrong payload, or an error of the library.
pub fn run<J: Transfers>(
    job: &J,
    order: &Order,
    program: Program,
    sink: &mut Sink<'_>,
) -> Result<(), Failure> {
    use Program::{Add, Am, AmLook, AmShort, AmStream, Contexts, Get, Put, PutStream};
    let is_rewritten = program.has_buffers() && order.buffers == Buffers::Rewritten;
    let (by, shape) = match program {
        AmShort => (Some(By::Short), Shape::PingPong),
        Am => (Some(By::Message { in_place: !is_rewritten }), Shape::PingPong),
        AmLook => (Some(By::Look), Shape::PingPong),
        AmStream => (Some(By::Message { in_place: !is_rewritten }), Shape::Window),
        Put => (None, Shape::PingPong),
        PutStream => (None, Shape::Window),
        Get => return get(job, order, sink),
        Add => return add(job, order, sink),
        Contexts => return contexts(job, order, sink),
        other => return Err(foreign(other)),
    };
    let longest = match program {
        AmShort => SHORT,
        AmLook => ONE_PIECE,
        _ => usize::MAX,
    };
    let mut pair = Pair::new(job, by, shape);
    for &size in order.sizes.iter().filter(|size| (1..=longest).contains(*size)) {
        (pair.size, pair.window) = (inside(job, size)?, 1);
        if shape == Shape::Window {
            pair.window = WINDOW.min(pair.into.size() / size);
        }
        let megabytes = (size * pair.window) as f64 / 1e6;
        let figure = |seconds: f64| match shape {
            Shape::PingPong => seconds * 1e6 / 2.0,
            Shape::Window => megabytes / seconds,
        };
        let seconds = pair.measure(order, is_rewritten)?;
        let figures = seconds.map(|seconds| seconds.into_iter().map(figure).collect());
        sink.sample_if_clear(&program.series(order), size, figures);
    }
    Ok(())
}

/// Returns `size`, the length of a message.
///
/// # Errors
/// The memory is shorter.
fn inside<J: Transfers>(job: &J, size: usize) -> Result<usize, Failure> {
    let most = job.memories()[1].size();
    let long = || Failure::new(format_args!("--sizes up to {}M, not {size}", most >> 20));
    (size <= most).then_some(size).ok_or_else(long)
}

/// What carries a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// What is best for a few words.
    Short,
    /// A message of any length.
    Message {
        /// Whether the target may copy long data from where it lies.
        in_place: bool,
    },
    /// One whose handler does not store the data.
    Look,
}

/// What is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// A message there and one back.
    PingPong,
    /// A window from task 0 to task 1, and its answer.
    Window,
}

/// Two tasks that transfer data. Other tasks do nothing.
struct Pair<'a, J> {
    job: &'a J,
    /// What carries messages; without it, data are put.
    by: Option<By>,
    shape: Shape,
    /// The memory that this task sends from, and the one that the other task writes to.
    out: Memory,
    into: Memory,
    /// This task and the other one.
    task: u64,
    peer: u64,
    /// The length of a message, and messages in flight.
    size: usize,
    window: usize,
    /// Whether each message of a window has places of its own.
    is_spread: bool,
    /// Whether buffers are rewritten between messages; not in the rounds whose data is checked.
    rewrites: bool,
    /// How often the buffers were stored to.
    turn: u64,
    /// The last byte of the latest put of a ping-pong.
    sign: u8,
}

impl<'a, J: Transfers> Pair<'a, J> {
    fn new(job: &'a J, by: Option<By>, shape: Shape) -> Self {
        let ([out, into], task) = (job.memories(), job.rank() as u64);
        Self {
            job,
            by,
            shape,
            out,
            into,
            task,
            peer: u64::from(task == 0),
            size: 0,
            window: 1,
            is_spread: false,
            rewrites: false,
            turn: 0,
            sign: 0,
        }
    }

    /// Measures rounds. Returns seconds per round for each batch, less the time of storing and reading alone; `None` if
    /// they are [unclear](pace::less). Checks the data of a round before and after.
    fn measure(&mut self, order: &Order, is_rewritten: bool) -> Result<Option<Vec<f64>>, Failure> {
        let job = self.job;
        self.is_spread = is_rewritten;
        self.check()?;
        self.rewrites = is_rewritten;
        let seconds = pace::measure(job, &order.effort, || self.round())?;
        // The last answer may still be under way, and its data must not change before it has left.
        job.take(0)?;
        let (sends, receives) = match (self.shape, self.task) {
            (Shape::PingPong, _) => (true, true),
            (Shape::Window, task) => (task == 0, task == 1),
        };
        let alone = pace::alone(job, order, Turns::InTurn, || {
            if sends {
                self.store();
            }
            if receives {
                self.read();
            }
        })?;
        self.check()?;
        Ok(pace::less(&seconds, if is_rewritten { alone } else { 0.0 }))
    }

    /// Carries out one round with known contents and checks them.
    fn check(&mut self) -> Result<(), Failure> {
        let task = self.task;
        self.rewrites = false;
        // The last byte of a put in a ping-pong is its sign.
        let is_signed = self.by.is_none() && self.shape == Shape::PingPong;
        let len = self.size - usize::from(is_signed);
        for number in 0..self.window {
            let place = self.place(number);
            payload::fill(self.out.bytes(place, self.size), task);
            self.into.bytes(place, len).fill(0);
        }
        self.job.barrier()?;
        self.round()?;
        self.job.barrier()?;
        let receives = task == 1 || (task == 0 && self.shape == Shape::PingPong);
        if self.by == Some(By::Look) {
            let mut bytes = vec![0; len];
            payload::fill(&mut bytes, self.peer);
            let (seen, expected) = (self.job.seen()?, bytes[len - 1]);
            if seen != expected {
                let text = format_args!("saw {seen:#04x} instead of {expected:#04x}");
                return Err(Failure::new(text));
            }
            return self.job.barrier();
        }
        for number in 0..if receives { self.window } else { 0 } {
            let place = self.place(number);
            payload::check(self.into.bytes(place, len), self.peer)?;
        }
        // The other task may go on, and write there, when all of it has been checked.
        self.job.barrier()
    }

    #[inline]
    fn round(&mut self) -> Result<(), Failure> {
        match (self.shape, self.task) {
            (Shape::PingPong, 0) => {
                self.sign = self.sign.wrapping_add(1);
                self.store();
                self.transfer()?;
                self.await_transfer()?;
                self.read();
            }
            (Shape::PingPong, 1) => {
                self.sign = self.sign.wrapping_add(1);
                self.await_transfer()?;
                self.read();
                self.store();
                self.transfer()?;
            }
            (Shape::Window, 0) => {
                self.store();
                (0..self.window).try_for_each(|number| self.transfer_of_window(number))?;
                self.job.take(1)?;
            }
            (Shape::Window, 1) => {
                match self.by {
                    Some(_) => self.job.take(self.window as u64)?,
                    None => self.job.take_puts()?,
                }
                self.read();
                self.job.send(By::Short, 0, 0)?;
            }
            _ => {}
        }
        Ok(())
    }

    #[inline]
    fn transfer(&mut self) -> Result<(), Failure> {
        if let Some(by) = self.by {
            return self.job.send(by, 0, self.size);
        }
        self.out.bytes(self.size - 1, 1)[0] = self.sign;
        self.job.put(0, self.size, false)
    }

    #[inline]
    fn await_transfer(&mut self) -> Result<(), Failure> {
        let (into, last, sign) = (self.into, self.size - 1, self.sign);
        match self.by {
            Some(_) => self.job.take(1),
            None => self.job.watch(|| into.sign(last) == sign),
        }
    }

    #[inline]
    fn transfer_of_window(&self, number: usize) -> Result<(), Failure> {
        let place = self.place(number);
        match self.by {
            Some(by) => self.job.send(by, place, self.size),
            // Puts of one origin are stored in order, so the last one stands for all.
            None => self.job.put(place, self.size, number + 1 == self.window),
        }
    }

    /// The place of a message of a window, at both ends.
    fn place(&self, number: usize) -> usize {
        if self.is_spread { number * self.size } else { 0 }
    }

    /// Stores every word of the messages in flight, if buffers are rewritten.
    #[inline]
    fn store(&mut self) {
        if self.rewrites {
            self.turn += 1;
            for number in 0..self.window {
                words::store(self.out.bytes(number * self.size, self.size), self.turn);
            }
        }
    }

    /// Reads every word of the messages in flight, if buffers are rewritten.
    #[inline]
    fn read(&mut self) {
        if self.rewrites {
            for number in 0..self.window {
                words::read(self.into.bytes(number * self.size, self.size));
            }
        }
    }
}

/// Measures gets, from task 1's memory to task 0's.
fn get<J: Transfers>(job: &J, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    let ([mut out, mut into], task) = (job.memories(), job.rank() as u64);
    for &size in order.sizes.iter().filter(|size| **size > 0) {
        payload::fill(into.bytes(0, inside(job, size)?), task);
        out.bytes(0, size).fill(0);
        job.barrier()?;
        let seconds = pace::measure(job, &order.effort, || match task {
            0 => job.get(size),
            _ => Ok(()),
        })?;
        if task == 0 {
            payload::check(out.bytes(0, size), 1)?;
        }
        sink.sample("get", size, seconds.iter().map(|seconds| seconds * 1e6).collect());
    }
    Ok(())
}

/// Measures additions of 1 to a variable of task 1, and checks that none is lost.
fn add<J: Transfers>(job: &J, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    let [_, mut into] = job.memories();
    let (mut before, mut added) = (0, 0);
    into.bytes(0, size_of::<i64>()).fill(0);
    job.barrier()?;
    let seconds = pace::measure(job, &order.effort, || {
        if job.rank() == 0 {
            added += 1;
            before = job.add()?;
        }
        Ok(())
    })?;
    if job.rank() == 0 && before != added - 1 {
        return Err(Failure::new(format_args!("{added} additions gave {before} and 1")));
    }
    let times = seconds.iter().map(|seconds| seconds * 1e6).collect();
    sink.sample("add", size_of::<i64>(), times);
    Ok(())
}

/// Windows that each thread sends while nothing else is timed: their messages take much longer than to start a thread.
const WINDOWS: u64 = 500;

/// Measures messages of 8 bytes by one context, by two, and so on, each used by a thread of its own. Threads run on any
/// processor.
fn contexts<J: Transfers>(job: &J, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    for count in 1..=job.contexts() {
        job.barrier()?;
        let seconds = pace::measure(job, &order.effort, || {
            thread::scope(|scope| {
                let stream = |context| {
                    worker::roam()?;
                    job.stream(context, WINDOWS)
                };
                let start = |context| scope.spawn(move || stream(context));
                let threads: Vec<_> = (0..count).map(start).collect();
                let mut ended = threads.into_iter().map(|thread| thread.join());
                ended.try_for_each(|end| {
                    end.unwrap_or_else(|_| Err(Failure::new("a thread panicked")))
                })
            })
        })?;
        let millions = (count as u64 * WINDOWS * WINDOW as u64) as f64 / 1e6;
        let rates = seconds.iter().map(|seconds| millions / seconds).collect();
        sink.sample("contexts", count, rates);
    }
    Ok(())
}
