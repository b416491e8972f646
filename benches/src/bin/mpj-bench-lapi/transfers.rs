//! The measured transfers between tasks 0 and 1.
//!
//! In a ping-pong a message counts as arrived when its handler has run, which stores the data or looks at one byte of it
//! in the packet, and a put when the task sees its last byte change. A window ends with an answer of the target, sent
//! when it has read everything. With rewritten buffers every message of a window has places of its own at both ends;
//! otherwise all have the same one, as in the tools of other libraries. A task that only serves gets and additions makes
//! progress while it waits for the end of the measurement.

use mpj_bench_programs::pace::{self, Turns};
use mpj_bench_programs::worker::{Sink, foreign};
use mpj_bench_programs::{Buffers, Failure, Job, Order, Program, payload, words};
use transport_lapi::{CounterId, Next, Put, RemoteRegion, Rmw, RmwOp};

use crate::job::{LOOK, LapiJob, MESSAGE};
use crate::memory::Memory;

/// Messages in flight.
const WINDOW: usize = 64;
/// The longest short message, in bytes.
const SHORT: usize = 64;
/// The longest message that handlers of UCX too get in one piece, in bytes.
const ONE_PIECE: usize = 8 << 10;

/// Runs a program. Collective.
///
/// # Errors
/// A program of another worker, a size beyond the memory, a wrong payload, or an error of the
/// transport.
pub fn run(
    job: &LapiJob,
    order: &Order,
    program: Program,
    sink: &mut Sink<'_>,
) -> Result<(), Failure> {
    use Program::{Add, Am, AmLook, AmShort, AmStream, Get, Put, PutStream};
    let (by, shape) = match program {
        Am | AmShort => (By::Message, Shape::PingPong),
        AmLook => (By::Look, Shape::PingPong),
        AmStream => (By::Message, Shape::Window),
        Put => (By::Put, Shape::PingPong),
        PutStream => (By::Put, Shape::Window),
        Get => return get(job, order, sink),
        Add => return add(job, order, sink),
        other => return Err(foreign(other)),
    };
    let longest = match program {
        AmShort => SHORT,
        AmLook => ONE_PIECE,
        _ => usize::MAX,
    };
    let is_rewritten = program.has_buffers() && order.buffers == Buffers::Rewritten;
    let mut pair = Pair::new(job, by, shape)?;
    for &size in order.sizes.iter().filter(|size| (1..=longest).contains(*size)) {
        (pair.size, pair.window) = (job.inside(size)?, 1);
        if shape == Shape::Window {
            pair.window = WINDOW.min(job.into.len() / size);
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

/// How data gets to the other task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// By active messages.
    Message,
    /// By active messages whose handler does not store the data.
    Look,
    /// By puts.
    Put,
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
struct Pair<'a> {
    job: &'a LapiJob,
    by: By,
    shape: Shape,
    /// The memory that this task sends from, and the one that the other task writes to.
    out: Memory,
    into: Memory,
    /// The other task, and its memory.
    peer: u32,
    remote: RemoteRegion,
    /// Counts the windows of puts at their target.
    stored: CounterId,
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

impl<'a> Pair<'a> {
    fn new(job: &'a LapiJob, by: By, shape: Shape) -> Result<Self, Failure> {
        let peer = if job.task() == 0 { 1 } else { 0 };
        Ok(Self {
            job,
            by,
            shape,
            out: job.out,
            into: job.into,
            peer,
            remote: job.regions()?[peer as usize],
            stored: job.start(|session| Ok::<_, Failure>(session.counter()))?,
            size: 0,
            window: 1,
            is_spread: false,
            rewrites: false,
            turn: 0,
            sign: 0,
        })
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
        job.wait(|_| true)?;
        let (sends, receives) = match (self.shape, job.task()) {
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
        let task = self.job.task();
        self.rewrites = false;
        // The last byte of a put in a ping-pong is its sign.
        let is_signed = self.by == By::Put && self.shape == Shape::PingPong;
        let len = self.size - usize::from(is_signed);
        for number in 0..self.window {
            let place = self.place(number);
            payload::fill(self.out.bytes(place, self.size), task.into());
            self.into.bytes(place, len).fill(0);
        }
        self.job.barrier()?;
        self.round()?;
        self.job.barrier()?;
        let receives = task == 1 || (task == 0 && self.shape == Shape::PingPong);
        if self.by == By::Look {
            let mut expected = vec![0; len];
            payload::fill(&mut expected, self.peer.into());
            self.job.check_seen(expected[len - 1])?;
            return self.job.barrier();
        }
        for number in 0..if receives { self.window } else { 0 } {
            let place = self.place(number);
            payload::check(self.into.bytes(place, len), self.peer.into())?;
        }
        // The other task may go on, and write there, when all of it has been checked.
        self.job.barrier()
    }

    #[inline]
    fn round(&mut self) -> Result<(), Failure> {
        match (self.shape, self.job.task()) {
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
                    By::Message | By::Look => self.job.take(self.window as u64)?,
                    By::Put => self.job.count(self.stored, 1)?,
                }
                self.read();
                self.job.send(MESSAGE, 0, 0, self.out.source(0, 0), false)?;
            }
            _ => {}
        }
        Ok(())
    }

    #[inline]
    fn transfer(&mut self) -> Result<(), Failure> {
        match self.by {
            By::Message | By::Look => self.message(0),
            By::Put => {
                self.out.bytes(self.size - 1, 1)[0] = self.sign;
                self.put(0, None)
            }
        }
    }

    #[inline]
    fn await_transfer(&mut self) -> Result<(), Failure> {
        let (into, last, sign) = (self.into, self.size - 1, self.sign);
        match self.by {
            By::Message | By::Look => self.job.take(1),
            By::Put => self.job.watch(|| into.sign(last) == sign),
        }
    }

    #[inline]
    fn transfer_of_window(&self, number: usize) -> Result<(), Failure> {
        let place = self.place(number);
        match self.by {
            By::Message | By::Look => self.message(place),
            // Puts of one origin are stored in order, so the last one stands for all.
            By::Put => self.put(place, (number + 1 == self.window).then_some(self.stored)),
        }
    }

    #[inline]
    fn message(&self, place: usize) -> Result<(), Failure> {
        let (handler, in_place) = match self.by {
            By::Look => (LOOK, false),
            _ => (MESSAGE, !self.rewrites),
        };
        let data = self.out.source(place, self.size);
        self.job.send(handler, self.peer, place as u64, data, in_place)
    }

    #[inline]
    fn put(&self, place: usize, tgt_cntr: Option<CounterId>) -> Result<(), Failure> {
        let data = self.out.source(place, self.size);
        // Made where it is used: what follows a put is then a constant, as in a program that puts into a shared area.
        // Otherwise it would be stored for the call and loaded again, which is not what is measured.
        let call = || Put::new(self.peer, self.remote, place as u64, data);
        if tgt_cntr.is_some() {
            return self.job.start(|session| session.put(Put { tgt_cntr, ..call() })).map(drop);
        }
        self.job.start(|session| session.put(call())).map(drop)
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
fn get(job: &LapiJob, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    let (mut out, mut into, remote) = (job.out, job.into, job.regions()?[1]);
    for &size in order.sizes.iter().filter(|size| **size > 0) {
        payload::fill(into.bytes(0, job.inside(size)?), job.task().into());
        out.bytes(0, size).fill(0);
        job.barrier()?;
        let seconds = pace::measure(job, &order.effort, || {
            if job.task() != 0 {
                return Ok(());
            }
            let into = out.landing(0, size).expect("it is inside");
            job.start(|session| session.get(1, remote, 0, into, Next::Nothing))
        })?;
        if job.task() == 0 {
            payload::check(out.bytes(0, size), 1)?;
        }
        sink.sample("get", size, seconds.iter().map(|seconds| seconds * 1e6).collect());
    }
    Ok(())
}

/// Measures additions of 1 to a variable of task 1, and checks that none is lost.
fn add(job: &LapiJob, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    let (mut into, remote) = (job.into, job.regions()?[1]);
    let (mut before, mut added) = (0, 0);
    into.bytes(0, size_of::<i64>()).fill(0);
    job.barrier()?;
    let seconds = pace::measure(job, &order.effort, || {
        if job.task() == 0 {
            added += 1;
            // Made where it is used, as in `put`.
            let call = || Rmw::new(1, remote, 0, RmwOp::FetchAndAdd(1_i64));
            before = job.start(|session| session.rmw(call()))?.expect("it is in the shared area");
        }
        Ok(())
    })?;
    if job.task() == 0 && before != added - 1 {
        return Err(Failure::new(format_args!("{added} additions gave {before} and 1")));
    }
    let times = seconds.iter().map(|seconds| seconds * 1e6).collect();
    sink.sample("add", size_of::<i64>(), times);
    Ok(())
}
