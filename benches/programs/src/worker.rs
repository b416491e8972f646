//! Runs one launch: joins the job, pins the rank to its processor, runs the programs in turn, and reports records.

#![allow(clippy::print_stdout, reason = "records go to standard output")]

use std::process::ExitCode;

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::cache_line::SharedLines;
use crate::one_sided::Windows;
use crate::order::{Order, Program};
use crate::programs::{bandwidth, collectives, latency, matrix, overlap, rma, wakeup};
use crate::record::{Library, Record, Sample};
use crate::runtime::{Failure, Job, Runtime};
use crate::series::Series;

/// Collects the figures of a program. Those of rank 0 count.
pub struct Sink<'a> {
    emit: &'a mut dyn FnMut(&Record),
    rank: usize,
    /// The lines through which ranks 0 and 1 measure the raw cache line, on these ranks.
    lines: Option<SharedLines>,
    /// Waits until all ranks have called it.
    barrier: &'a dyn Fn() -> Result<(), Failure>,
    /// The last raw cache-line time.
    raw: Option<f64>,
}

impl Sink<'_> {
    /// Reports the figures of the series named `id` at `x`. Collective.
    pub fn sample(&mut self, id: &str, x: usize, values: Vec<f64>) {
        self.sample_if_clear(id, x, Some(values));
    }

    /// Reports figures as [`Sink::sample`] does, or the lack of them. Collective: other ranks than
    /// 0 may pass a different value.
    pub fn sample_if_clear(&mut self, id: &str, x: usize, values: Option<Vec<f64>>) {
        let series = Series::named(id).expect("programs name series of the table");
        let before = self.raw;
        self.look();
        let raw = before.zip(self.raw);
        self.record(&match values {
            Some(values) => Record::Sample(Sample { raw, ..Sample::new(series, x, values) }),
            None => Record::Unclear(id.to_owned(), x as u64),
        });
    }

    /// Measures the raw cache line after each figure, and so before the next one. All ranks first
    /// leave their calls: a rank that waits for a cache line makes no progress, and a call might
    /// wait for that.
    fn look(&mut self) {
        let all_here = (self.barrier)().is_ok();
        let lines = self.lines.as_mut().filter(|_| all_here);
        self.raw = lines.and_then(|lines| lines.measure(self.rank));
    }

    fn record(&mut self, record: &Record) {
        if self.rank == 0 {
            (self.emit)(record);
        }
    }
}

/// The main function of a worker: joins the job by `join`, runs the orders of the command line by `run`, and leaves.
pub fn main<J: Job>(
    join: impl FnOnce() -> Result<J, Failure>,
    run: impl FnOnce(&J, &[Order]) -> Result<(), Failure>,
) -> ExitCode {
    let joined = Order::of_command_line().and_then(|orders| Ok((orders, join()?)));
    let (orders, job) = match joined {
        Ok(joined) => joined,
        Err(failure) => return ended(Err(failure)),
    };
    match run(&job, &orders) {
        Ok(()) => ended(job.leave()),
        Err(failure) => {
            let code = ended(Err(Failure::new(format_args!("rank {}: {failure}", job.rank()))));
            job.abandon();
            code
        }
    }
}

/// Reports what failed, if anything did. Returns the exit code of the worker.
pub fn ended(outcome: Result<(), Failure>) -> ExitCode {
    let Err(failure) = outcome else { return ExitCode::SUCCESS };
    print(&Record::Failed(failure.to_string()));
    ExitCode::FAILURE
}

/// Prints a record. Standard output passes every line on at once.
pub fn print(record: &Record) {
    println!("{}", record.line());
}

/// Runs the programs of `orders` on this rank; `emit` gets the records of rank 0. Collective.
///
/// # Errors
/// The first failure: an error of the library, a failed check, or a job that does not suit the
/// program.
pub fn run<R: Runtime>(
    runtime: &R,
    orders: &[Order],
    emit: &mut dyn FnMut(&Record),
) -> Result<(), Failure> {
    run_by(runtime, orders, emit, |order, program, sink| run_one(runtime, order, program, sink))
}

/// [`run`] on a library that has windows, too.
///
/// # Errors
/// As [`run`].
pub fn run_with_windows<R: Windows>(
    runtime: &R,
    orders: &[Order],
    emit: &mut dyn FnMut(&Record),
) -> Result<(), Failure> {
    run_by(runtime, orders, emit, |order, program, sink| match program {
        Program::Rma => rma::run(runtime, order, sink),
        _ => run_one(runtime, order, program, sink),
    })
}

/// [`run`] for programs that need something else than messages: `run_one` runs one program.
///
/// # Errors
/// As [`run`].
pub fn run_by<J: Job>(
    job: &J,
    orders: &[Order],
    emit: &mut dyn FnMut(&Record),
    mut run_one: impl FnMut(&Order, Program, &mut Sink<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let first = orders.first();
    // After the library has started, so that it is the same for every launcher.
    if let Some(&processor) = first.and_then(|order| order.pin.get(job.rank())) {
        stay(processor)?;
    }
    let line = first.and_then(|order| order.line.as_deref());
    let line = line.filter(|_| job.size() > 1);
    let lines = line.filter(|_| job.rank() < 2).map(SharedLines::open).transpose()?;
    let barrier = || job.barrier();
    let mut sink = Sink { emit, rank: job.rank(), lines, barrier: &barrier, raw: None };
    let (ranks, thresholds, facts) = (job.size(), job.thresholds(), job.facts());
    sink.record(&Record::Library(Library { ranks, thresholds, facts }));
    for (order, program) in orders.iter().flat_map(Order::tasks) {
        if program.is_of_two() && job.size() < 2 {
            let name = program.name();
            return Err(Failure::new(format_args!("{name} needs 2 ranks, this job has 1")));
        }
        sink.look();
        if program != Program::Empty {
            run_one(order, program, &mut sink)?;
        }
    }
    job.barrier()?;
    sink.record(&Record::Complete);
    Ok(())
}

fn run_one<R: Runtime>(
    runtime: &R,
    order: &Order,
    program: Program,
    sink: &mut Sink<'_>,
) -> Result<(), Failure> {
    match program {
        Program::Latency => latency::run(runtime, order, sink),
        Program::Bandwidth | Program::Bibw | Program::Rate => {
            bandwidth::run(runtime, order, program, sink)
        }
        Program::Overlap => overlap::run(runtime, order, sink),
        Program::Wakeup => wakeup::run(runtime, order, sink),
        Program::Collectives => collectives::run(runtime, order, sink),
        Program::MatrixPingpong => matrix::pingpong::run(runtime, order, sink),
        Program::Cannon => matrix::cannon::run(runtime, order, sink),
        Program::Summa => matrix::summa::run(runtime, order, sink),
        Program::Transpose => matrix::transpose::run(runtime, order, sink),
        Program::Laplace => matrix::laplace::run(runtime, order, sink),
        Program::Diffusion => matrix::diffusion::run(runtime, order, sink),
        other => Err(foreign(other)),
    }
}

/// The failure of a worker that is asked for a program of another kind of worker.
pub fn foreign(program: Program) -> Failure {
    Failure::new(format_args!("another worker runs {}", program.name()))
}

/// Pins this thread to one processor.
///
/// # Errors
/// There is no such processor, or this process may not use it.
pub fn stay(processor: usize) -> Result<(), Failure> {
    if processor >= CpuSet::MAX_CPU {
        return Err(Failure::new(format_args!("no processor has the number {processor}")));
    }
    let mut only = CpuSet::new();
    only.set(processor);
    sched_setaffinity(None, &only).map_err(|error| {
        Failure::new(format_args!("cannot stay on processor {processor}: {error}"))
    })
}

/// Lets this thread run on any processor again, whichever its process was pinned to.
///
/// # Errors
/// The system refuses it.
pub fn roam() -> Result<(), Failure> {
    let mut all = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|processor| all.set(processor));
    sched_setaffinity(None, &all)
        .map_err(|error| Failure::new(format_args!("cannot leave a processor: {error}")))
}
