//! Shared by the integration tests of AM-2: jobs whose tasks are threads, under a watchdog, and endpoints that are
//! connected to each other.

#![allow(dead_code, reason = "every test file uses its own part")]

use std::sync::{Arc, Mutex};
use std::thread;

use am2::{Am, Bundle, BundleKind, Endpoint, EndpointName, Error, Returned, Tag};
use mpj_harness::watch;
use transport_lapi::adapter::Losses;
use transport_lapi::wireup::{self};
use transport_lapi::{AnyAdapter, Options};

/// Declares its task lost if the task panics, so that the others fail too instead of waiting.
struct Alarm(Arc<dyn Losses>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.declare();
        }
    }
}

/// Runs `body` on every task of a job, and returns the results in the order of the tasks.
///
/// # Panics
/// If a body panics, or the time is over.
pub fn run<R: Send + 'static>(
    num_tasks: usize,
    body: impl Fn(&Am) -> R + Send + Sync + 'static,
) -> Vec<R> {
    run_with_bells(num_tasks, move |am, _| body(am))
}

/// [`run`], with the means to declare this task lost.
pub fn run_with_bells<R: Send + 'static>(
    num_tasks: usize,
    body: impl Fn(&Am, &dyn Losses) -> R + Send + Sync + 'static,
) -> Vec<R> {
    let adapters = wireup::in_process(num_tasks, 1).expect("memory suffices");
    run_over(adapters.into_iter().flatten().collect(), body)
}

/// [`run_with_bells`] over these adapters.
pub fn run_over<R: Send + 'static>(
    adapters: Vec<AnyAdapter>,
    body: impl Fn(&Am, &dyn Losses) -> R + Send + Sync + 'static,
) -> Vec<R> {
    watch(move || {
        let tasks: Vec<_> = adapters
            .into_iter()
            .map(|adapter| {
                let losses = adapter.parts().losses;
                (losses, Am::init(adapter, Options::default()).expect("the job is sound"))
            })
            .collect();
        thread::scope(|scope| {
            let body = &body;
            let start = |(bell, am): &(Arc<dyn Losses>, Am)| {
                let (bell, am) = (Arc::clone(bell), am.clone());
                scope.spawn(move || {
                    let alarm = Alarm(bell);
                    body(&am, &*alarm.0)
                })
            };
            let threads: Vec<_> = tasks.iter().map(start).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, R>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect()
        })
    })
}

/// Something that handlers append to and the test reads.
pub struct Log<T>(Arc<Mutex<Vec<T>>>);

impl<T> Clone for Log<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Clone> Log<T> {
    pub fn new() -> Self {
        Self(Arc::default())
    }

    pub fn push(&self, item: T) {
        self.0.lock().unwrap().push(item);
    }

    pub fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub fn take(&self) -> Vec<T> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// Handles messages until there are `count` items, and takes them.
    pub fn await_in(&self, bundle: &mut Bundle, count: usize) -> Vec<T> {
        until(bundle, || self.len() >= count);
        self.take()
    }
}

/// Handles messages until `condition` holds.
pub fn until(bundle: &mut Bundle, mut condition: impl FnMut() -> bool) {
    while !condition() {
        if bundle.poll().unwrap() == 0 {
            thread::yield_now();
        }
    }
}

/// One task's endpoint, connected to those of all tasks: index `i` is mapped to the endpoint of task `i`.
pub struct Node {
    pub bundle: Bundle,
    pub endpoint: Endpoint,
    pub names: Vec<EndpointName>,
    pub returned: Log<(Returned, EndpointName)>,
    /// A bundle without endpoints: it receives messages of all endpoints, and handles none.
    pub quiet: Bundle,
}

impl Node {
    /// Makes the endpoint with a segment of `segment` bytes. `prepare` sets handlers. Ends with a barrier;
    /// no message is handled before the test does so.
    pub fn connect(
        am: &Am,
        depth: usize,
        segment: usize,
        prepare: impl FnOnce(&mut Bundle, Endpoint),
    ) -> Self {
        let mut bundle = am.allocate_bundle(BundleKind::Sequential).unwrap();
        let endpoint = bundle.allocate_endpoint().unwrap();
        let names = bundle.exchange_names(endpoint).unwrap();
        for (index, name) in names.iter().enumerate() {
            bundle.map(endpoint, index, *name, Tag(77)).unwrap();
        }
        bundle.set_tag(endpoint, Tag(77)).unwrap();
        if segment > 0 {
            bundle.set_segment(endpoint, vec![0; segment]).unwrap();
        }
        let returned = Log::new();
        let log = returned.clone();
        bundle
            .set_return_handler(endpoint, move |token, message| log.push((message, token.source())))
            .unwrap();
        prepare(&mut bundle, endpoint);
        bundle.set_expected_resources(endpoint, depth).unwrap();
        let mut quiet = am.allocate_bundle(BundleKind::Sequential).unwrap();
        quiet.barrier().unwrap();
        Self { bundle, endpoint, names, returned, quiet }
    }

    /// Sends a short request.
    pub fn short(&mut self, index: usize, handler: u8, args: &[u32]) -> Result<(), Error> {
        self.bundle.request_short(self.endpoint, index, handler, args)
    }

    /// Sends a medium request.
    pub fn medium(
        &mut self,
        index: usize,
        handler: u8,
        payload: &[u8],
        args: &[u32],
    ) -> Result<(), Error> {
        self.bundle.request_medium(self.endpoint, index, handler, payload, args)
    }

    /// Sends a long request.
    pub fn long(
        &mut self,
        index: usize,
        handler: u8,
        offset: usize,
        payload: &[u8],
        args: &[u32],
    ) -> Result<(), Error> {
        self.bundle.request_long(self.endpoint, index, handler, offset, payload, args)
    }
}

/// Bytes that depend on `seed`.
pub fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at.wrapping_mul(31) ^ (at >> 8) ^ seed.wrapping_mul(17)) as u8).collect()
}
