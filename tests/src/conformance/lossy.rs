//! Jobs over a network that drops, duplicates and reorders frames, with the layer that makes it reliable.
//!
//! The layer has no thread: what a rank has sent is repeated while the rank is in a call. Some tests have ranks that
//! wait for each other outside of all calls. Their jobs are [`Tended`]: as in LAPI, a thread of each rank looks after
//! its frames.

#![expect(unsafe_code, reason = "an adapter is made of another one")]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use transport_lapi::Piece;
use transport_lapi::adapter::{
    Adapter, AdapterError, Caps, Doorbell, Events, Frame, Post, TaskId, Ticket,
};
use transport_lapi::layers::fault::{FaultAdapter, FaultPlan};
use transport_lapi::layers::reliable::{ReliableAdapter, ReliableOptions};

/// One frame in ten is dropped; others come twice, or late and behind later ones.
pub const NETWORK: FaultPlan =
    FaultPlan { drop: 100, duplicate: 50, reorder: 100, ..FaultPlan::NONE };

/// How often the thread of a rank looks after its frames, and how soon these are repeated.
const OFTEN: Duration = Duration::from_millis(1);

/// The adapter of a task of a job over a network.
pub type Lossy<A> = ReliableAdapter<FaultAdapter<A>>;

/// How the layer behaves in tests: it repeats frames soon.
pub fn options() -> ReliableOptions {
    let linger = Duration::from_secs(5);
    ReliableOptions { resend: OFTEN, linger, ..ReliableOptions::default() }
}

/// Puts the tasks of a job on a network with these faults.
pub fn over_a_network<A: Adapter>(tasks: Vec<A>, plan: FaultPlan) -> Vec<Lossy<A>> {
    let faulty =
        tasks.into_iter().zip(99..).map(|(task, seed)| FaultAdapter::new(task, seed, plan));
    faulty.map(|task| ReliableAdapter::new(task, options()).expect("legal options")).collect()
}

/// An adapter of which a thread takes care while no call does.
pub struct Tended<A>(Arc<Mutex<Care<A>>>);

/// What both threads use.
struct Care<A> {
    inner: A,
    /// The first error that the thread has met.
    trouble: Option<AdapterError>,
    /// Whether the task looks after its frames itself, since it withdraws.
    withdraws: bool,
    /// Whether the task has dropped its adapter.
    is_dropped: bool,
}

impl<A: Adapter> Tended<A> {
    /// Starts the thread. It ends after the adapter was dropped, when its frames have arrived.
    pub fn new(inner: A) -> Self {
        let (trouble, withdraws, is_dropped) = (None, false, false);
        let shared = Arc::new(Mutex::new(Care { inner, trouble, withdraws, is_dropped }));
        let care = shared.clone();
        thread::spawn(move || tend(&care));
        Self(shared)
    }

    fn care(&self) -> MutexGuard<'_, Care<A>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<A> Drop for Tended<A> {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_dropped = true;
    }
}

/// Looks after the frames of an adapter.
fn tend<A: Adapter>(shared: &Mutex<Care<A>>) {
    loop {
        thread::sleep(OFTEN);
        let mut care = shared.lock().unwrap_or_else(PoisonError::into_inner);
        if care.is_dropped && care.inner.withdraw() {
            return;
        }
        if !care.withdraws && !care.is_dropped {
            let polled = care.inner.poll(None, 0, &mut |_: Frame<'_>| {});
            care.trouble = care.trouble.take().or(polled.err());
        }
    }
}

// SAFETY: every call is passed to the adapter inside, which keeps the contract.
unsafe impl<A: Adapter> Adapter for Tended<A> {
    fn caps(&self) -> Caps {
        self.care().inner.caps()
    }

    fn task(&self) -> TaskId {
        self.care().inner.task()
    }

    fn num_tasks(&self) -> usize {
        self.care().inner.num_tasks()
    }

    fn try_send(
        &mut self,
        target: TaskId,
        head: &[u8],
        body: Piece<'_>,
        ticket: Ticket,
    ) -> Result<Post, AdapterError> {
        self.care().inner.try_send(target, head, body, ticket)
    }

    fn poll<E: Events>(
        &mut self,
        origin: Option<TaskId>,
        budget: usize,
        events: &mut E,
    ) -> Result<usize, AdapterError> {
        let mut care = self.care();
        match care.trouble.take() {
            Some(trouble) => Err(trouble),
            None => care.inner.poll(origin, budget, events),
        }
    }

    fn withdraw(&mut self) -> bool {
        let mut care = self.care();
        care.withdraws = true;
        care.inner.withdraw()
    }

    fn doorbell(&self) -> Arc<dyn Doorbell> {
        self.care().inner.doorbell()
    }

    fn losses(&self) -> usize {
        self.care().inner.losses()
    }

    fn is_lost(&self, task: TaskId) -> bool {
        self.care().inner.is_lost(task)
    }
}
