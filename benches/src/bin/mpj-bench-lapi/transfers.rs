//! The measured transfers between tasks 0 and 1.
//!
//! In a ping-pong a message counts as arrived when its handler has run, which stores the data or looks at one byte of it
//! in the packet, and a put when the task sees its last byte
//! change. A window ends with an answer of the target, sent when it has read everything. With rewritten buffers every
//! message of a window has places of its own at both ends; otherwise all have the same one, as in the tools of other
//! libraries. A task that only serves gets and additions makes progress while it waits for the end of the measurement.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use mpj_bench_programs::pace::{self, Turns};
use mpj_bench_programs::worker::{Sink, foreign, needs_two};
use mpj_bench_programs::{Buffers, Failure, Job, Order, Program, payload, words};
use transport_lapi::{CounterId, Next, Put, RemoteRegion, Rmw, RmwOp};

use crate::job::LapiJob;
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
/// A job of one task, a program of another worker, a size beyond the memory, a wrong payload, or an error of the
/// transport.
pub fn run(
    job: &LapiJob,
    order: &Order,
    program: Program,
    sink: &mut Sink<'_>,
) -> Result<(), Failure> {
    if program == Program::Empty {
        return Ok(());
    }
    needs_two(job, &program.name())?;
    let mut pair = Pair::new(job, order)?;
    match program {
        Program::AmShort => pair.unchanged(sink, "am-short", By::Message, SHORT),
        Program::Am => pair.ping_pong(sink, "am", By::Message),
        Program::Put => pair.ping_pong(sink, "put", By::Put),
        Program::AmLook => pair.unchanged(sink, "am-look", By::Look, ONE_PIECE),
        Program::AmStream => pair.stream(sink, "am-stream", By::Message),
        Program::PutStream => pair.stream(sink, "put-stream", By::Put),
        Program::Get => pair.get(sink),
        Program::Add => pair.add(sink),
        other => Err(foreign(other)),
    }
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
    order: &'a Order,
    /// The memory that this task sends from, and the one that the other task writes to.
    out: Memory,
    into: Memory,
    /// The other task, and its memory.
    peer: u32,
    remote: RemoteRegion,
    /// Counts the windows of puts at their target.
    stored: CounterId,
    shape: Shape,
    /// The length of a message, and messages in flight.
    size: usize,
    window: usize,
    /// Whether buffers are rewritten between messages; not in the rounds whose data is checked.
    rewrites: bool,
    /// How often the buffers were stored to.
    turn: u64,
    /// The last byte of the latest put of a ping-pong.
    sign: u8,
}

impl<'a> Pair<'a> {
    fn new(job: &'a LapiJob, order: &'a Order) -> Result<Self, Failure> {
        let (out, into) = (job.out, job.into);
        if let Some(size) = order.sizes.iter().find(|size| **size > into.len()) {
            let most = into.len() >> 20;
            return Err(Failure::new(format_args!("--sizes up to {most}M, not {size}")));
        }
        let peer = if job.task() == 0 { 1 } else { 0 };
        let remote = job.regions()?[peer as usize];
        let stored = job.start(|session| Ok::<_, Failure>(session.counter()))?;
        let (shape, size, window, turn, sign) = (Shape::PingPong, 0, 1, 0, 0);
        let rewrites = false;
        Ok(Self {
            job,
            order,
            out,
            into,
            peer,
            remote,
            stored,
            shape,
            size,
            window,
            rewrites,
            turn,
            sign,
        })
    }

    /// The sizes to measure.
    fn sizes(&self) -> impl Iterator<Item = usize> + use<'a> {
        self.order.sizes.iter().copied().filter(|size| *size > 0)
    }

    /// Measures ping-pongs of at most `longest` bytes, whose buffers are never rewritten.
    fn unchanged(
        &mut self,
        sink: &mut Sink<'_>,
        series: &str,
        by: By,
        longest: usize,
    ) -> Result<(), Failure> {
        for size in self.sizes().filter(|size| *size <= longest) {
            (self.shape, self.size, self.window) = (Shape::PingPong, size, 1);
            self.check(by)?;
            let seconds = pace::measure(self.job, &self.order.effort, || self.round(by))?;
            self.job.wait(|_| true)?;
            self.check(by)?;
            sink.sample(series, size, times(&seconds, 0.5));
        }
        Ok(())
    }

    fn ping_pong(&mut self, sink: &mut Sink<'_>, series: &str, by: By) -> Result<(), Failure> {
        let series = self.order.buffers.series(series);
        for size in self.sizes() {
            (self.shape, self.size, self.window) = (Shape::PingPong, size, 1);
            let seconds = self.measure(by)?;
            sink.sample_if_clear(&series, size, seconds.map(|seconds| times(&seconds, 0.5)));
        }
        Ok(())
    }

    fn stream(&mut self, sink: &mut Sink<'_>, series: &str, by: By) -> Result<(), Failure> {
        let series = self.order.buffers.series(series);
        for size in self.sizes() {
            let window = WINDOW.min(self.into.len() / size);
            (self.shape, self.size, self.window) = (Shape::Window, size, window);
            let megabytes = (size * window) as f64 / 1e6;
            let rates = |seconds: Vec<f64>| seconds.iter().map(|it| megabytes / it).collect();
            let seconds = self.measure(by)?;
            sink.sample_if_clear(&series, size, seconds.map(rates));
        }
        Ok(())
    }

    /// Measures rounds. Returns seconds per round for each batch, less the time of storing and reading alone; `None` if
    /// they are [unclear](pace::less). Checks the data of a round before and after.
    fn measure(&mut self, by: By) -> Result<Option<Vec<f64>>, Failure> {
        let (job, order) = (self.job, self.order);
        self.check(by)?;
        self.rewrites = order.buffers == Buffers::Rewritten;
        let seconds = pace::measure(job, &order.effort, || self.round(by))?;
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
        self.check(by)?;
        Ok(pace::less(&seconds, alone))
    }

    /// Carries out one round with known contents and checks them.
    fn check(&mut self, by: By) -> Result<(), Failure> {
        let task = self.job.task();
        self.rewrites = false;
        // The last byte of a put in a ping-pong is its sign.
        let is_signed = by == By::Put && self.shape == Shape::PingPong;
        let len = self.size - usize::from(is_signed);
        for number in 0..self.window {
            let place = self.place(number);
            payload::fill(self.out.bytes(place, self.size), task.into());
            self.into.bytes(place, len).fill(0);
        }
        self.job.barrier()?;
        self.round(by)?;
        self.job.barrier()?;
        let receives = task == 1 || (task == 0 && self.shape == Shape::PingPong);
        if by == By::Look {
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
    fn round(&mut self, by: By) -> Result<(), Failure> {
        match (self.shape, self.job.task()) {
            (Shape::PingPong, 0) => {
                self.sign = self.sign.wrapping_add(1);
                self.store();
                self.transfer(by)?;
                self.await_transfer(by)?;
                self.read();
            }
            (Shape::PingPong, 1) => {
                self.sign = self.sign.wrapping_add(1);
                self.await_transfer(by)?;
                self.read();
                self.store();
                self.transfer(by)?;
            }
            (Shape::Window, 0) => {
                self.store();
                (0..self.window).try_for_each(|number| self.transfer_of_window(by, number))?;
                self.job.take(1)?;
            }
            (Shape::Window, 1) => {
                match by {
                    By::Message | By::Look => self.job.take(self.window as u64)?,
                    By::Put => self.job.count(self.stored, 1)?,
                }
                self.read();
                self.job.send(0, 0, self.out.source(0, 0), false)?;
            }
            _ => {}
        }
        Ok(())
    }

    #[inline]
    fn transfer(&mut self, by: By) -> Result<(), Failure> {
        match by {
            By::Message => {
                self.job.send(self.peer, 0, self.out.source(0, self.size), !self.rewrites)
            }
            By::Look => self.job.send_to_look(self.peer, self.out.source(0, self.size)),
            By::Put => {
                self.out.bytes(self.size - 1, 1)[0] = self.sign;
                self.put(0, None)
            }
        }
    }

    #[inline]
    fn await_transfer(&mut self, by: By) -> Result<(), Failure> {
        let (into, last, sign) = (self.into, self.size - 1, self.sign);
        match by {
            By::Message | By::Look => self.job.take(1),
            By::Put => self.job.watch(|| into.sign(last) == sign),
        }
    }

    #[inline]
    fn transfer_of_window(&self, by: By, number: usize) -> Result<(), Failure> {
        let place = self.place(number);
        match by {
            By::Message | By::Look => {
                self.job.send(self.peer, place, self.out.source(place, self.size), !self.rewrites)
            }
            // Puts of one origin are stored in order, so the last one stands for all.
            By::Put => self.put(place, (number + 1 == self.window).then_some(self.stored)),
        }
    }

    #[inline]
    fn put(&self, place: usize, tgt_cntr: Option<CounterId>) -> Result<(), Failure> {
        let data = self.out.source(place, self.size);
        let call = || Put::new(self.peer, self.remote, place as u64, data);
        if self.job.is_direct && tgt_cntr.is_none() {
            // What follows is a constant here, as in a program that puts into a shared area. Through `operate` it would
            // be stored for the call and loaded again, which is not what is measured.
            return self.job.start(|session| session.put(call())).map(drop);
        }
        self.job.operate(|session, on_origin| session.put(Put { on_origin, tgt_cntr, ..call() }))
    }

    /// The place of a message of a window, at both ends.
    fn place(&self, number: usize) -> usize {
        if self.order.buffers == Buffers::Rewritten { number * self.size } else { 0 }
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

    /// Measures gets, from task 1's memory to task 0's.
    fn get(&mut self, sink: &mut Sink<'_>) -> Result<(), Failure> {
        let (job, mut out, remote) = (self.job, self.out, self.remote);
        for size in self.sizes() {
            payload::fill(self.into.bytes(0, size), job.task().into());
            out.bytes(0, size).fill(0);
            job.barrier()?;
            let seconds = pace::measure(job, &self.order.effort, || {
                if job.task() != 0 {
                    return Ok(());
                }
                let into = out.landing(0, size).expect("it is inside");
                if job.is_direct {
                    // As in `put`.
                    return job.start(|session| session.get(1, remote, 0, into, Next::Nothing));
                }
                job.operate(|session, next| session.get(1, remote, 0, into, next))?;
                job.ended()
            })?;
            if job.task() == 0 {
                payload::check(out.bytes(0, size), 1)?;
            }
            sink.sample("get", size, times(&seconds, 1.0));
        }
        Ok(())
    }

    /// Measures additions of 1 to a variable of task 1, and checks that none is lost.
    fn add(&mut self, sink: &mut Sink<'_>) -> Result<(), Failure> {
        let (job, remote) = (self.job, self.remote);
        let (prev, mut before, mut added) = (Arc::new(AtomicI64::new(0)), 0, 0);
        self.into.bytes(0, size_of::<i64>()).fill(0);
        job.barrier()?;
        let seconds = pace::measure(job, &self.order.effort, || {
            if job.task() != 0 {
                return Ok(());
            }
            added += 1;
            job.operate(|session, next| {
                let call = Rmw::new(1, remote, 0, RmwOp::FetchAndAdd(1_i64));
                if job.is_direct {
                    before = session.rmw(call)?.expect("the memory is in the shared area");
                    return Ok(());
                }
                let prev = Some(Arc::clone(&prev));
                session.rmw(Rmw { prev, next, ..call }).map(drop)
            })?;
            job.ended()
        })?;
        if !job.is_direct {
            before = prev.load(Ordering::Relaxed);
        }
        if job.task() == 0 && before != added - 1 {
            return Err(Failure::new(format_args!("{added} additions gave {before} and 1")));
        }
        sink.sample("add", size_of::<i64>(), times(&seconds, 1.0));
        Ok(())
    }
}

/// Microseconds of each batch, for this part of a round.
fn times(seconds: &[f64], part: f64) -> Vec<f64> {
    seconds.iter().map(|seconds| seconds * 1e6 * part).collect()
}
