//! The measured messages between the endpoints of tasks 0 and 1.
//!
//! A ping-pong is a request and its reply. A put above AM-2 is a long message, and a get above AM-2 a short request
//! that a long message answers; puts count as arrived when their handler has run. A window of requests ends with the
//! reply to the last of them. Task 1 only polls.

use std::sync::atomic::Ordering;

use am2::{Error, MAX_LONG, MAX_MEDIUM, MAX_SHORT};
use mpj_bench_programs::pace::{self, Turns};
use mpj_bench_programs::worker::{Sink, foreign};
use mpj_bench_programs::{Buffers, Failure, Job, Order, Program, payload, words};

use crate::handlers::{FETCH, LONG, MEDIUM, SHORT, WINDOW};
use crate::job::{AmJob, DEPTH, SEGMENT};

/// Bytes of an argument.
const WORD: usize = size_of::<u32>();

/// Runs a program. Collective.
///
/// # Errors
/// A program of another worker, a wrong payload, or an error of AM-2.
pub fn run(
    job: &AmJob,
    order: &Order,
    program: Program,
    sink: &mut Sink<'_>,
) -> Result<(), Failure> {
    let (shape, longest) = match program {
        Program::AmShort => (Shape::Short, MAX_SHORT * WORD),
        Program::Am => (Shape::Medium, MAX_MEDIUM),
        Program::AmStream => (Shape::MediumWindow, MAX_MEDIUM),
        Program::Put => (Shape::Long, MAX_LONG),
        Program::PutStream => (Shape::LongWindow, MAX_LONG),
        Program::Get => (Shape::Fetch, MAX_LONG),
        other => return Err(foreign(other)),
    };
    let series = program.series(order);
    let mut pair = Pair { job, order, shape, size: 0, window: 1, out: Vec::new(), turn: 0 };
    pair.out.resize(SEGMENT.min(order.sizes.iter().max().unwrap_or(&0) * DEPTH), 0);
    for size in order.sizes.iter().copied().filter(|size| (1..=longest).contains(size)) {
        if shape == Shape::Short && size % WORD != 0 {
            continue;
        }
        (pair.size, pair.window) = (size, shape.window(size));
        let seconds = pair.measure()?;
        let megabytes = (size * pair.window) as f64 / 1e6;
        let figures = |seconds: Vec<f64>| {
            let figure = |seconds: &f64| match shape {
                Shape::Short | Shape::Medium | Shape::Long => seconds * 1e6 / 2.0,
                Shape::Fetch => seconds * 1e6,
                Shape::MediumWindow | Shape::LongWindow => megabytes / seconds,
            };
            seconds.iter().map(figure).collect()
        };
        sink.sample_if_clear(&series, size, seconds.map(figures));
    }
    Ok(())
}

/// What a round consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// A short request and a short reply.
    Short,
    /// A medium request and a medium reply.
    Medium,
    /// A long request and a long reply.
    Long,
    /// A short request and a long reply.
    Fetch,
    /// Medium requests and one short reply.
    MediumWindow,
    /// Long requests and one short reply.
    LongWindow,
}

impl Shape {
    fn window(self, size: usize) -> usize {
        match self {
            Self::MediumWindow | Self::LongWindow => DEPTH.min(SEGMENT / size),
            _ => 1,
        }
    }
}

/// Two tasks that send messages. Other tasks do nothing.
struct Pair<'a> {
    job: &'a AmJob,
    order: &'a Order,
    shape: Shape,
    /// The length of a message, and messages in flight.
    size: usize,
    window: usize,
    /// The payloads of this task's requests.
    out: Vec<u8>,
    /// How often they were stored.
    turn: u64,
}

impl Pair<'_> {
    /// Measures rounds. Returns seconds per round for each batch, less the time of storing and reading alone; `None` if
    /// they are [unclear](pace::less). Checks the payloads of a round before.
    fn measure(&mut self) -> Result<Option<Vec<f64>>, Failure> {
        let (job, order) = (self.job, self.order);
        let (rewrites, checks) = (&job.shared.rewrites, &job.shared.checks);
        // Windows are counted from here, in step at both tasks.
        job.barrier()?;
        job.shared.arrived.store(0, Ordering::Relaxed);
        job.shared.window.store(self.window as u64, Ordering::Relaxed);
        checks.store(true, Ordering::Relaxed);
        for message in self.out.chunks_exact_mut(self.size) {
            payload::fill(message, job.task().into());
        }
        job.barrier()?;
        let mut expected = 0;
        self.round(&mut expected)?;
        job.barrier()?;
        checks.store(false, Ordering::Relaxed);
        if job.shared.is_damaged.load(Ordering::Relaxed) {
            return Err(Failure::new("a payload arrived damaged"));
        }
        let has_buffers = self.shape != Shape::Short;
        let is_rewritten = has_buffers && order.buffers == Buffers::Rewritten;
        rewrites.store(is_rewritten, Ordering::Relaxed);
        // A task handles messages in a barrier, so the other one begins when this one's handlers know what to do.
        job.barrier()?;
        let seconds = pace::measure(job, &order.effort, || self.round(&mut expected))?;
        job.barrier()?;
        rewrites.store(false, Ordering::Relaxed);
        if !is_rewritten {
            return Ok(Some(seconds));
        }
        let (stores, reads) = match (self.shape, job.task()) {
            (Shape::Fetch, task) => (task == 1, task == 0),
            (Shape::MediumWindow | Shape::LongWindow, task) => (task == 0, task == 1),
            (_, task) => (task < 2, task < 2),
        };
        let mut into = vec![0; if reads { self.size * self.window } else { 0 }];
        let alone = pace::alone(job, order, Turns::InTurn, || {
            if stores {
                self.store();
            }
            into.chunks_exact_mut(self.size).for_each(|message| words::read(message));
        })?;
        Ok(pace::less(&seconds, alone))
    }

    /// Carries out a round. `expected` is the number of messages that this task has got before.
    #[inline]
    fn round(&mut self, expected: &mut u64) -> Result<(), Failure> {
        match self.job.task() {
            0 => {
                *expected += 1;
                if self.job.shared.rewrites.load(Ordering::Relaxed) && self.shape != Shape::Fetch {
                    self.store();
                }
                (0..self.window).try_for_each(|number| self.request(number))?;
            }
            1 => *expected += self.window as u64,
            _ => return Ok(()),
        }
        self.job.await_messages(*expected)
    }

    /// Sends one request of a round.
    #[inline]
    fn request(&self, number: usize) -> Result<(), Failure> {
        const ONE: usize = 1;
        let is_rewritten = self.order.buffers == Buffers::Rewritten;
        let place = if is_rewritten { number * self.size } else { 0 };
        let bytes = &self.out[place..place + self.size];
        let (mut bundle, endpoint) = self.job.bundle();
        let sent: Result<(), Error> = match self.shape {
            Shape::Short => {
                let args = [0; MAX_SHORT];
                bundle.request_short(endpoint, ONE, SHORT, &args[..self.size / WORD])
            }
            Shape::Medium => bundle.request_medium(endpoint, ONE, MEDIUM, bytes, &[]),
            Shape::MediumWindow => bundle.request_medium(endpoint, ONE, WINDOW, bytes, &[]),
            Shape::Long => bundle.request_long(endpoint, ONE, LONG, place, bytes, &[]),
            Shape::LongWindow => bundle.request_long(endpoint, ONE, WINDOW, place, bytes, &[]),
            Shape::Fetch => bundle.request_short(endpoint, ONE, FETCH, &[self.size as u32]),
        };
        sent.map_err(Failure::new)
    }

    /// Stores every word of the messages in flight.
    #[inline]
    fn store(&mut self) {
        self.turn += 1;
        for message in self.out.chunks_exact_mut(self.size).take(self.window) {
            words::store(message, self.turn);
        }
    }
}
