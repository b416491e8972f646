//! A rank's place in its job: its process, its device, and the errors of the last calls of its threads.
//!
//! A program that gets an error usually returns it with `?`, and its [`crate::World`] is dropped before anything is
//! printed. Waiting for the other ranks then would hang the job, since they wait for this one. So the error of a
//! thread's last call is kept, even when the thread ends, and a world that is dropped while an error counts does not
//! wait. For the thread that drops the world these errors count:
//!
//! * the error of its own last call, in any context. A later successful call of its own shows that the program has
//!   handled it; calls of other threads, which may poll for example, do not.
//! * the error of another thread's last call, unless a call of the dropping thread has succeeded since. The other
//!   thread may have passed its error to this one, as a joined thread does, and it may be the error that `main`
//!   returns. But a thread whose calls have succeeded since is not leaving because of that error.
//!
//! A call of `iprobe` or `test` that finds nothing does not count as a success: a program may poll while it leaves.
//!
//! A program that has handled an error but makes no further call in the thread that drops the world must call
//! [`crate::World::finish`].

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Deref;
#[cfg(feature = "serde")]
use std::sync::Weak;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread::{self, ThreadId};

use crate::error::Error;
use mpicore::{Alarm, Process, Services};
use mpjdev::Device;

/// The process and device of a rank, and the errors that are kept. All communicators, scopes and requests of one
/// context of a world have clones of it.
#[derive(Clone)]
pub(crate) struct RankDevice(Arc<Process>);

/// What this crate keeps for a rank, in its process.
struct RankState {
    one_sided_path: String,
    /// The most bytes of an object that is sent or received.
    #[cfg(feature = "serde")]
    object_limit: AtomicUsize,
    /// The errors that are kept, shared by all contexts of the world.
    complaints: Arc<Complaints>,
    /// The services of each communicator that has some, by its context, until the world ends.
    services: Mutex<BTreeMap<u32, Arc<Services>>>,
}

/// The limit of objects until a program sets another one: 1 GiB.
#[cfg(feature = "serde")]
const OBJECT_LIMIT: usize = 1 << 30;

/// Makes the processes of one world, one for each of its contexts, in order.
pub(crate) fn of_world(
    devices: Vec<Device>,
    one_sided_path: &str,
) -> impl Iterator<Item = Arc<Process>> {
    let complaints = Arc::<Complaints>::default();
    devices.into_iter().map(move |device| {
        let (one_sided_path, complaints) = (one_sided_path.to_owned(), complaints.clone());
        let state = RankState {
            one_sided_path,
            #[cfg(feature = "serde")]
            object_limit: AtomicUsize::new(OBJECT_LIMIT),
            complaints,
            services: Mutex::default(),
        };
        Arc::new(Process::new(device, state))
    })
}

impl RankDevice {
    /// Wraps a process that [`of_world`] has made.
    pub fn of(process: Arc<Process>) -> Self {
        Self(process)
    }

    /// Returns whether both are of the same context of the same world.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns how many references to the process there are, clones of this and communicators of the core.
    pub fn references(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// Returns an alarm that wakes a task when the operation of a request has ended; see [`Process::alarm`].
    pub fn alarm(
        &self,
        request: &mpjdev::Request,
        waker: Waker,
    ) -> Result<Arc<Alarm>, mpicore::Error> {
        self.0.alarm(request, waker)
    }

    /// Starts the progress thread of the context.
    pub fn start_progress(&self) -> Result<(), mpicore::Error> {
        self.0.start_progress()
    }

    /// Ends the progress thread of the context, for good.
    pub fn stop_progress(&self) {
        self.0.stop_progress();
    }

    /// Returns a text that says how one-sided reads are done.
    pub fn one_sided_path(&self) -> &str {
        &self.state().one_sided_path
    }

    /// Returns the most bytes of an object that is sent or received.
    #[cfg(feature = "serde")]
    pub fn object_limit(&self) -> &AtomicUsize {
        &self.state().object_limit
    }

    /// Returns the services of a communicator.
    ///
    /// # Errors
    /// As [`Services::new`].
    #[cfg(feature = "serde")]
    pub fn services_on(
        &self,
        communicator: &mpicore::Communicator,
    ) -> Result<Arc<Services>, mpicore::Error> {
        let mut all = self.services();
        let place = communicator.context();
        if let Some(services) = all.get(&place) {
            return Ok(services.clone());
        }
        let services = Services::new(communicator.clone())?;
        all.insert(place, services.clone());
        Ok(services)
    }

    /// Returns the services of all communicators, in an order that is the same on all their ranks.
    pub fn all_services(&self) -> Vec<Arc<Services>> {
        self.services().values().cloned().collect()
    }

    /// Drops the handlers of all services, and what keeps the communicators of services.
    pub fn end_services(&self) {
        let all = std::mem::take(&mut *self.services());
        all.values().for_each(|services| services.end_all());
    }

    fn services(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<Services>>> {
        self.state().services.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a function of the program inside of a call of this thread. Its errors are its own: whether the world waits for
    /// others at its end does not depend on them.
    #[cfg(feature = "serde")]
    pub fn apart<R>(&self, function: impl FnOnce() -> R) -> R {
        let complaints = &self.state().complaints;
        let before = if none_kept() { None } else { complaints.exchange(None) };
        let _restored = Restored { complaints, before };
        function()
    }

    /// Returns what finds the device as long as others hold it.
    #[cfg(feature = "serde")]
    pub fn downgrade(&self) -> WeakDevice {
        WeakDevice(Arc::downgrade(&self.0))
    }

    fn state(&self) -> &RankState {
        self.0.above().expect("the processes of this crate have this state")
    }

    /// Passes on the result of a user's call, and keeps or forgets its error.
    pub fn answer<T>(&self, outcome: Result<T, impl Into<Error>>) -> Result<T, Error> {
        match outcome {
            Ok(value) => {
                // The call has succeeded, so the error of the thread's previous call does not count any more.
                if !none_kept() {
                    self.state().complaints.go_on();
                }
                Ok(value)
            }
            Err(error) => Err(self.complain(error.into())),
        }
    }

    #[cold]
    #[inline(never)]
    fn complain(&self, error: Error) -> Error {
        if let Some(rank) = error.lost_rank() {
            self.met_loss(rank as u32);
        }
        self.state().complaints.add(error.to_string());
        error
    }

    /// Returns the error with which the world would end now.
    pub fn complaint(&self) -> Option<String> {
        self.state().complaints.of_leaving()
    }
}

/// A device that is not held: see [`RankDevice::downgrade`].
#[cfg(feature = "serde")]
pub(crate) struct WeakDevice(Weak<Process>);

#[cfg(feature = "serde")]
impl WeakDevice {
    /// Returns the device, unless nobody holds it any more.
    pub fn upgrade(&self) -> Option<RankDevice> {
        self.0.upgrade().map(RankDevice)
    }
}

/// When dropped, also by a panic, gives a thread its error back.
#[cfg(feature = "serde")]
struct Restored<'a> {
    complaints: &'a Complaints,
    before: Option<Complaint>,
}

#[cfg(feature = "serde")]
impl Drop for Restored<'_> {
    fn drop(&mut self) {
        if self.before.is_some() || !none_kept() {
            self.complaints.exchange(self.before.take());
        }
    }
}

impl Deref for RankDevice {
    type Target = Device;

    #[inline]
    fn deref(&self) -> &Self::Target {
        self.0.device()
    }
}

/// Returns whether no error is kept in this process: then a call that succeeds has nothing to forget.
#[inline(always)]
pub(crate) fn none_kept() -> bool {
    KEPT.load(Ordering::Relaxed) == 0
}

/// The most errors of last calls that are kept. When there are more, the earliest ones are forgotten.
const MOST_KEPT: usize = 64;

/// The errors of last calls, at most one of each thread.
#[derive(Default)]
struct Complaints {
    /// Sorted by number.
    kept: Mutex<Vec<Complaint>>,
    /// Number of the latest error that is kept, or 0.
    latest: AtomicU64,
}

struct Complaint {
    thread: ThreadId,
    number: u64,
    text: String,
}

/// How many errors are kept in this process, in all worlds. A call that succeeds checks this counter, which is nearer
/// than the world's own.
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// How many errors this process has numbered. All worlds share the numbers, so no two errors have the same.
static NUMBERED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Where a call of this thread last succeeded: the address of the [`Complaints`], and the latest number there then.
    static GONE_ON: Cell<(usize, u64)> = const { Cell::new((0, 0)) };
}

impl Complaints {
    /// Notes that a call of this thread has succeeded: forgets the thread's error, and notes which errors of other
    /// threads came before. Later calls need not repeat this, nor take the lock, until a further error is kept.
    #[cold]
    #[inline(never)]
    fn go_on(&self) {
        if GONE_ON.get() == (self.address(), self.latest.load(Ordering::Relaxed)) {
            return;
        }
        let this = thread::current().id();
        let latest = self.change(|kept| kept.retain(|complaint| complaint.thread != this));
        GONE_ON.set((self.address(), latest));
    }

    /// Keeps the error of this thread's last call.
    fn add(&self, text: String) {
        let thread = thread::current().id();
        self.change(|kept| {
            kept.retain(|complaint| complaint.thread != thread);
            if kept.len() == MOST_KEPT {
                kept.remove(0);
            }
            let number = NUMBERED.fetch_add(1, Ordering::Relaxed) + 1;
            kept.push(Complaint { thread, number, text });
        });
    }

    /// Replaces the error of this thread's last call, and returns the one before.
    #[cfg(feature = "serde")]
    #[cold]
    fn exchange(&self, complaint: Option<Complaint>) -> Option<Complaint> {
        let thread = thread::current().id();
        let mut before = None;
        self.change(|kept| {
            let own = kept.iter().position(|complaint| complaint.thread == thread);
            before = own.map(|at| kept.remove(at));
            kept.extend(complaint);
            kept.sort_by_key(|complaint| complaint.number);
        });
        before
    }

    /// Changes the list, and returns the number of the latest error that is then kept.
    fn change(&self, change: impl FnOnce(&mut Vec<Complaint>)) -> u64 {
        let mut kept = self.kept();
        let before = kept.len();
        change(&mut kept);
        let latest = kept.last().map_or(0, |complaint| complaint.number);
        self.latest.store(latest, Ordering::Relaxed);
        KEPT.fetch_add(kept.len().wrapping_sub(before), Ordering::Relaxed);
        latest
    }

    /// Returns the error with which the world would end if this thread dropped it now: see the head of the file.
    fn of_leaving(&self) -> Option<String> {
        let this = thread::current().id();
        let gone_on_after = match GONE_ON.get() {
            (address, number) if address == self.address() => number,
            _ => 0,
        };
        let kept = self.kept();
        let own = kept.iter().find(|complaint| complaint.thread == this);
        let counts = own.or_else(|| kept.iter().find(|one| one.number > gone_on_after));
        counts.map(|complaint| complaint.text.clone())
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Complaint>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Distinguishes these errors from those of other worlds. A later world at the same address has higher numbers.
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

impl Drop for Complaints {
    fn drop(&mut self) {
        self.change(Vec::clear);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does something in another thread, which then ends.
    fn elsewhere(what: impl FnOnce() + Send) {
        thread::scope(|scope| scope.spawn(what).join().expect("it does not panic"));
    }

    #[test]
    fn a_success_of_the_same_thread_settles_an_error() {
        let complaints = Complaints::default();
        complaints.add("first".to_owned());
        complaints.add("second".to_owned());
        assert_eq!(complaints.of_leaving().as_deref(), Some("second"));
        complaints.go_on();
        assert_eq!(complaints.of_leaving(), None);
        assert_eq!(complaints.latest.load(Ordering::Relaxed), 0, "nothing is kept");
    }

    #[test]
    fn a_success_of_another_thread_settles_nothing() {
        let complaints = Complaints::default();
        complaints.add("mine".to_owned());
        elsewhere(|| complaints.go_on());
        assert_eq!(complaints.of_leaving().as_deref(), Some("mine"));
        elsewhere(|| complaints.add("another".to_owned()));
        assert_eq!(complaints.of_leaving().as_deref(), Some("mine"), "one's own comes first");
        elsewhere(|| assert_eq!(complaints.of_leaving().as_deref(), Some("mine")));
    }

    #[test]
    fn an_error_of_a_thread_counts_until_the_leaving_one_has_gone_on() {
        let complaints = Complaints::default();
        complaints.go_on();
        elsewhere(|| complaints.add("first".to_owned()));
        elsewhere(|| complaints.go_on());
        assert_eq!(complaints.of_leaving().as_deref(), Some("first"));
        complaints.go_on();
        assert_eq!(complaints.of_leaving(), None);
        elsewhere(|| assert_eq!(complaints.of_leaving().as_deref(), Some("first")));
        elsewhere(|| complaints.add("second".to_owned()));
        assert_eq!(complaints.of_leaving().as_deref(), Some("second"));
        complaints.go_on();
        assert_eq!(complaints.of_leaving(), None);
    }

    #[cfg(feature = "serde")]
    #[test]
    fn the_errors_of_a_function_inside_of_a_call_are_its_own() {
        let complaints = Complaints::default();
        for before in [Some("mine"), None] {
            before.into_iter().for_each(|text| complaints.add(text.to_owned()));
            let kept = complaints.exchange(None);
            let restored = Restored { complaints: &complaints, before: kept };
            assert_eq!(complaints.of_leaving(), None);
            complaints.add("the function's".to_owned());
            drop(restored);
            assert_eq!(complaints.of_leaving().as_deref(), before);
            complaints.go_on();
        }
    }

    #[test]
    fn worlds_are_apart() {
        let (one, other) = (Complaints::default(), Complaints::default());
        elsewhere(|| one.add("one".to_owned()));
        elsewhere(|| other.add("other".to_owned()));
        other.go_on();
        assert_eq!(one.of_leaving().as_deref(), Some("one"));
        assert_eq!(other.of_leaving(), None);
    }

    #[test]
    fn threads_that_end_by_errors_do_not_pile_up() {
        let complaints = Complaints::default();
        for number in 0..3 * MOST_KEPT {
            elsewhere(|| complaints.add(number.to_string()));
        }
        assert_eq!(complaints.kept().len(), MOST_KEPT);
        assert!(complaints.of_leaving().is_some());
        complaints.go_on();
        assert_eq!(complaints.of_leaving(), None);
    }
}
