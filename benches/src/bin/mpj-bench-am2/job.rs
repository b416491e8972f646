//! A task of a job over AM-2: its bundle with one endpoint, and the calls that every measurement needs.

use std::cell::{RefCell, RefMut};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use am2::{Am, Bundle, BundleKind, Endpoint, Error, Tag};
use mpj_bench_programs::{Failure, Job};

use crate::handlers::{self, Shared};

/// Bytes of the segment, and so of the messages of a window.
pub const SEGMENT: usize = 64 << 20;
/// Requests that may be outstanding: those of a window.
pub const DEPTH: usize = 64;

/// One task of the job.
pub struct AmJob {
    am: Am,
    bundle: RefCell<Bundle>,
    endpoint: Endpoint,
    /// What its handlers share with the program.
    pub shared: Arc<Shared>,
    begin: Instant,
}

impl AmJob {
    /// Joins the job that the environment describes. Collective.
    ///
    /// # Errors
    /// An error of AM-2.
    pub fn join() -> Result<Self, Failure> {
        let am = Am::join().map_err(Failure::new)?;
        let shared = Arc::new(Shared::default());
        let (bundle, endpoint) = prepare(&am, &shared).map_err(Failure::new)?;
        Ok(Self { am, bundle: bundle.into(), endpoint, shared, begin: Instant::now() })
    }

    /// Returns the number of this task.
    pub fn task(&self) -> u32 {
        self.am.task()
    }

    /// Returns the bundle and its endpoint, at which index i is mapped to the endpoint of task i.
    #[inline]
    pub fn bundle(&self) -> (RefMut<'_, Bundle>, Endpoint) {
        (self.bundle.borrow_mut(), self.endpoint)
    }

    /// Polls until the handlers of this task have got `messages` messages in all.
    ///
    /// # Errors
    /// An error of AM-2.
    #[inline]
    pub fn await_messages(&self, messages: u64) -> Result<(), Failure> {
        let mut bundle = self.bundle.borrow_mut();
        while self.shared.arrived.load(Ordering::Relaxed) < messages {
            bundle.poll().map_err(Failure::new)?;
        }
        Ok(())
    }
}

/// Makes a bundle whose endpoint is ready for requests of all tasks.
fn prepare(am: &Am, shared: &Arc<Shared>) -> Result<(Bundle, Endpoint), Error> {
    let mut bundle = am.allocate_bundle(BundleKind::Sequential)?;
    let endpoint = bundle.allocate_endpoint()?;
    for name in bundle.exchange_names(endpoint)? {
        bundle.map_any(endpoint, name, Tag::ALL)?;
    }
    bundle.set_tag(endpoint, Tag::ALL)?;
    bundle.set_segment(endpoint, vec![0; SEGMENT])?;
    handlers::set(&mut bundle, endpoint, shared)?;
    bundle.set_expected_resources(endpoint, DEPTH)?;
    bundle.barrier()?;
    Ok((bundle, endpoint))
}

impl Job for AmJob {
    fn thresholds(&self) -> Vec<(usize, String)> {
        let steps = self.am.steps().unwrap_or_default().into_iter();
        steps.map(|step| (step.bytes, step.above.to_owned())).collect()
    }

    fn rank(&self) -> usize {
        self.am.task() as usize
    }

    fn size(&self) -> usize {
        self.am.num_tasks()
    }

    fn barrier(&self) -> Result<(), Failure> {
        self.bundle.borrow_mut().barrier().map_err(Failure::new)
    }

    fn exchange(&self, word: u64) -> Result<Vec<u64>, Failure> {
        self.bundle.borrow_mut().exchange(word).map_err(Failure::new)
    }

    fn wtime(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    fn leave(self) -> Result<(), Failure> {
        self.bundle.borrow_mut().leave().map_err(Failure::new)
    }
}
