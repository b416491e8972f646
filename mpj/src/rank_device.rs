//! A rank's place in its job: its process, its device, and the errors of the last calls of its threads.
//!
//! A program that meets an error usually returns it with `?`, and its [`crate::World`] is dropped before anything is
//! printed. Waiting for the other ranks then would hang the job, since they wait for this one. So the error of a
//! thread's last call is kept, even when the thread ends, and a world that is dropped while an error counts does not
//! wait. For the thread that drops the world these errors count:
//!
//! * the error of its own last call, in any context. A later successful call of its own shows that the program has
//!   handled it; calls of other threads, which may poll for example, do not.
//! * the error of another thread's last call, unless a call of the dropping thread has succeeded since.
//!   The other thread may have handed its error over, as a thread that is joined does, and this may be
//!   the error that `main` returns; but a thread that has gone on without complaint is not leaving for it.
//!
//! A look that found nothing, of `iprobe` or `test`, is no such success: it shows nothing of the program.
//!
//! A program that has handled an error, but makes no further call in the thread that drops the world, ends with
//! [`crate::World::finish`].

use std::cell::Cell;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use mpicore::Process;
use mpjdev::Device;
use mpjdev::wireup::Native;

use crate::buffered::Copies;
use crate::error::Error;

/// See the module. Shared by the communicators, scopes and requests of one context of a world.
pub(crate) struct RankDevice {
    process: Process,
    /// How one-sided reads are done, in words.
    pub get_report: String,
    /// Those of all contexts of the world.
    complaints: Arc<Complaints>,
    /// The copies of buffered sends. Behind the device, which they outlast.
    pub copies: Copies,
}

impl RankDevice {
    /// The devices of one world: one for each of its contexts, in order.
    pub fn of_world(devices: Vec<Device<Native>>, get_report: &str) -> impl Iterator<Item = Self> {
        let complaints = Arc::<Complaints>::default();
        devices.into_iter().map(move |device| {
            let (get_report, complaints) = (get_report.to_owned(), complaints.clone());
            let copies = Copies::default();
            Self { process: Process::new(device), get_report, complaints, copies }
        })
    }

    /// Passes on the result of a user's call, and keeps or forgets its error.
    pub fn answer<T>(&self, outcome: Result<T, impl Into<Error>>) -> Result<T, Error> {
        match outcome {
            Ok(value) => {
                // The call has succeeded: the error of the one before does not count any more.
                if !none_kept() {
                    self.complaints.go_on();
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
        self.complaints.add(error.to_string());
        error
    }

    /// The error that counts if this thread drops the world now, if one does.
    pub fn complaint(&self) -> Option<String> {
        self.complaints.of_leaving()
    }
}

impl Deref for RankDevice {
    type Target = Device<Native>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        self.process.device()
    }
}

impl AsRef<Process> for RankDevice {
    fn as_ref(&self) -> &Process {
        &self.process
    }
}

/// Whether no error is kept in this process: then a call that succeeds has nothing to forget.
#[inline(always)]
pub(crate) fn none_kept() -> bool {
    KEPT.load(Ordering::Relaxed) == 0
}

/// The most errors of last calls that are kept. If more threads than this have ended with an error, the earliest ones
/// are forgotten.
const MOST_KEPT: usize = 64;

/// The errors of last calls: of each thread one at most.
#[derive(Default)]
struct Complaints {
    /// In the order of their numbers.
    kept: Mutex<Vec<Complaint>>,
    /// Number of the latest one that is kept, 0 if there is none.
    latest: AtomicU64,
}

struct Complaint {
    thread: ThreadId,
    number: u64,
    text: String,
}

/// How many complaints are kept in this process, whatever their world: what a call that succeeds looks at, since it
/// lies nearer than the world's own.
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// How many complaints this process has numbered: no two of them have the same number, whatever their world.
static NUMBERED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The address of the [`Complaints`] with which this thread has gone on last, and the latest number
    /// there at that time.
    static GONE_ON: Cell<(usize, u64)> = const { Cell::new((0, 0)) };
}

impl Complaints {
    /// A call of this thread has succeeded: forgets its complaint, and notes that the thread has gone on after those of
    /// others. While no further one comes that has to be done once, so later calls take no lock.
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

    /// The last call of this thread had this error.
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

    /// Changes the list, and returns the number of the latest error that is kept then.
    fn change(&self, change: impl FnOnce(&mut Vec<Complaint>)) -> u64 {
        let mut kept = self.kept();
        let before = kept.len();
        change(&mut kept);
        let latest = kept.last().map_or(0, |complaint| complaint.number);
        self.latest.store(latest, Ordering::Relaxed);
        KEPT.fetch_add(kept.len().wrapping_sub(before), Ordering::Relaxed);
        latest
    }

    /// What counts if this thread leaves now: see the module.
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

    /// Tells these complaints from others. If they lie where others did, their numbers are higher.
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

    /// Does something in another thread, which ends then.
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
