//! Runs the ranks of a job as threads under a watchdog, over any adapter.

use std::sync::Arc;

use mpjdev::wireup::AnyAdapter;
use mpjdev::{Device, Options, Protocol, Table};

use super::rank::Rank;
use crate::conformance::ranks::{self, Watched};

/// What the suite runs on: what connects the ranks of a job, and how its devices behave.
pub struct Setup {
    adapters: Arc<dyn Fn(usize) -> Vec<AnyAdapter> + Send + Sync>,
    options: Options,
}

impl Setup {
    /// A setup. `adapters` makes the connected adapters of a job of so many threads of this process, in order.
    pub fn new<A: Into<AnyAdapter> + 'static>(
        adapters: fn(usize) -> Vec<A>,
        options: Options,
    ) -> Self {
        let adapters = move |ranks| adapters(ranks).into_iter().map(Into::into).collect();
        Self { adapters: Arc::new(adapters), options }
    }

    /// The protocol table.
    pub fn table(&self) -> &Table {
        &self.options.table
    }

    /// Whether a message of `len` bytes goes eagerly while there is credit.
    pub fn is_eager(&self, len: usize) -> bool {
        self.options.table.protocol(len) == Protocol::Eager
    }

    /// The same with another bound of unexpected-message memory.
    pub fn with_early_limit(&self, early_limit: usize) -> Self {
        Self {
            adapters: self.adapters.clone(),
            options: Options { early_limit, ..self.options.clone() },
        }
    }

    /// The devices of a job.
    ///
    /// # Panics
    /// When they cannot be made.
    pub fn devices(&self, ranks: usize) -> Vec<Device> {
        let device = |adapter| Device::new(adapter, self.options.clone()).expect("a new device");
        (self.adapters)(ranks).into_iter().map(device).collect()
    }

    /// Runs `body` on every rank of a job, then finishes the devices; returns the answers.
    ///
    /// # Panics
    /// When a rank panics, or the job does not end in time.
    pub fn run<R: Send + 'static>(
        &self,
        ranks: usize,
        body: impl Fn(&Rank) -> R + Send + Sync + 'static,
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
        body: impl Fn(&Rank) -> R + Send + Sync + 'static,
    ) -> Vec<R> {
        run(self.devices(ranks), body)
    }
}

/// Runs `body` on every device, each on a thread of its own, under the watchdog.
///
/// # Panics
/// When a rank panics, or the job does not end in time.
pub fn run<R: Send + 'static>(
    devices: Vec<Device>,
    body: impl Fn(&Rank) -> R + Send + Sync + 'static,
) -> Vec<R> {
    let devices: Vec<_> = devices.into_iter().map(Arc::new).collect();
    let watched: Vec<_> = devices.iter().map(|device| device.clone() as Arc<dyn Watched>).collect();
    let ranks: Vec<_> = devices.into_iter().map(Rank::new).collect();
    ranks::run(&watched, move |number| Ok(body(&ranks[number])))
}
