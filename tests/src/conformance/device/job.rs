//! Runs the ranks of a job as threads under a watchdog.
//!
//! A job that does not end in time fails with the dumps of all devices, so that a hang reads like
//! any other failure.

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use mpjdev::{Adapter, Circumstance, Device, Options, Protocol, Table};

use super::rank::Rank;

/// How long a job may take.
pub const LIMIT: Duration = Duration::from_secs(60);

/// How long the others may take once one rank has failed, and how long a dump may take.
const GRACE: Duration = Duration::from_secs(3);

/// What connects the ranks of a job under test.
pub trait Platform {
    /// The adapter.
    type Adapter: Adapter;

    /// The connected adapters of a job of threads of this process, in order.
    fn adapters(ranks: usize) -> Vec<Self::Adapter>;
}

/// A platform and how its devices behave: what the suite is run on.
pub struct Setup<P> {
    options: Options,
    platform: PhantomData<P>,
}

impl<P: Platform> Setup<P> {
    /// A setup.
    pub fn new(options: Options) -> Self {
        Self { options, platform: PhantomData }
    }

    /// The protocol table.
    pub fn table(&self) -> &Table {
        &self.options.table
    }

    /// Whether a message of `len` bytes goes eagerly while there is credit.
    pub fn is_eager(&self, len: usize) -> bool {
        self.options.table.protocol(len) == Protocol::Eager
    }

    /// Whether a message of this length goes eagerly that is the only one on its way, by a device that
    /// does or does not read other ranks' memory.
    pub fn is_eager_alone(&self, len: usize, reads: bool) -> bool {
        let mut exceptions = self.options.table.exceptions().iter();
        let is_alone = |(from, circumstance): &(usize, Circumstance)| {
            reads && *circumstance == Circumstance::Alone && len >= *from
        };
        self.is_eager(len) && !exceptions.any(is_alone)
    }

    /// The same with another bound of early memory.
    pub fn with_early_limit(&self, early_limit: usize) -> Self {
        Self::new(Options { early_limit, ..self.options.clone() })
    }

    /// The devices of a job.
    ///
    /// # Panics
    /// When they cannot be made.
    pub fn devices(&self, ranks: usize) -> Vec<Device<P::Adapter>> {
        let device = |adapter| Device::new(adapter, self.options.clone()).expect("a new device");
        P::adapters(ranks).into_iter().map(device).collect()
    }

    /// Runs `body` on every rank of a job, then finishes the devices; returns the answers.
    ///
    /// # Panics
    /// When a rank panics, or the job does not end in time.
    pub fn run<R: Send + 'static>(
        &self,
        ranks: usize,
        body: impl Fn(&Rank<P::Adapter>) -> R + Send + Sync + 'static,
    ) -> Vec<R> {
        self.run_open(ranks, move |rank| {
            let answer = body(rank);
            rank.finish().expect("every rank comes to the end");
            answer
        })
    }

    /// Runs `body` on every rank of a job, and leaves the devices as they are at its end.
    ///
    /// # Panics
    /// As [`Setup::run`].
    pub fn run_open<R: Send + 'static>(
        &self,
        ranks: usize,
        body: impl Fn(&Rank<P::Adapter>) -> R + Send + Sync + 'static,
    ) -> Vec<R> {
        run(self.devices(ranks), body)
    }
}

/// Runs `body` on every device, each on a thread of its own, under the watchdog.
///
/// # Panics
/// When a rank panics, or the job does not end in time.
pub fn run<A: Adapter, R: Send + 'static>(
    devices: Vec<Device<A>>,
    body: impl Fn(&Rank<A>) -> R + Send + Sync + 'static,
) -> Vec<R> {
    let ranks: Vec<_> = devices.into_iter().map(|device| Rank::new(Arc::new(device))).collect();
    let body = Arc::new(body);
    let (report, reports) = mpsc::channel();
    for (number, rank) in ranks.iter().enumerate() {
        let (rank, body, report) = (rank.clone(), body.clone(), report.clone());
        let play = move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| body(&rank)));
            let failed = outcome.is_err();
            // Before the others fail of it, so that the cause is reported first. After a timeout,
            // nobody listens any more.
            let _ = report.send((number, outcome.map_err(|panic| mpjdev::panic_text(&*panic))));
            if failed {
                rank.abort();
            }
        };
        let thread = thread::Builder::new().name(format!("rank {number}")).spawn(play);
        thread.expect("a thread for a rank");
    }
    collect(&ranks, &reports)
}

/// The outcome of one rank: its answer, or what its panic said.
type Report<R> = (usize, Result<R, String>);

fn collect<A: Adapter, R>(ranks: &[Rank<A>], reports: &mpsc::Receiver<Report<R>>) -> Vec<R> {
    let mut deadline = Instant::now() + LIMIT;
    let mut answers: Vec<Option<R>> = ranks.iter().map(|_| None).collect();
    let mut failure = None;
    for _ in ranks {
        let left = deadline.saturating_duration_since(Instant::now());
        match reports.recv_timeout(left) {
            Ok((number, Ok(answer))) => answers[number] = Some(answer),
            Ok((number, Err(panic))) => {
                failure.get_or_insert_with(|| format!("rank {number}: {panic}"));
                deadline = deadline.min(Instant::now() + GRACE);
            }
            Err(_) => {
                let cause = failure.unwrap_or_else(|| format!("no end after {LIMIT:?}"));
                panic!("{cause}\n{}", dumps(ranks));
            }
        }
    }
    match failure {
        Some(failure) => panic!("{failure}"),
        None => answers.into_iter().flatten().collect(),
    }
}

/// What the devices are doing; then ends them. A device whose lock is never given up is passed by.
fn dumps<A: Adapter>(ranks: &[Rank<A>]) -> String {
    let mut text = String::new();
    for rank in ranks {
        let (reader, (say, said)) = (rank.clone(), mpsc::channel());
        thread::spawn(move || say.send(reader.dump()));
        text += &match said.recv_timeout(GRACE) {
            Ok(Ok(dump)) => dump,
            Ok(Err(error)) => format!("rank {}: {error}\n", rank.me()),
            Err(_) => format!("rank {}: holds its lock and does not give it up\n", rank.me()),
        };
    }
    ranks.iter().for_each(|rank| rank.abort());
    text
}
