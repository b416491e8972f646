//! The progress thread of a rank's context: it makes progress while no other thread is in a call. So operations go on
//! beside computation, and tasks that wait for operations wake up.
//!
//! - PG1: an alarm is added only while the thread runs, and rings at the thread's end at the latest. So no task waits for
//!   an operation whose device has ended.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::thread::{self, JoinHandle};

use mpjdev::Request;

use super::Process;
use crate::error::Error;

/// Wakes a task when an operation has ended.
pub struct Alarm(Mutex<Option<Waker>>);

impl Alarm {
    /// Changes which task it wakes. Returns `false` if it has rung: then the caller looks at the operation itself.
    pub fn set(&self, waker: &Waker) -> bool {
        match &mut *self.lock() {
            Some(set) => {
                set.clone_from(waker);
                true
            }
            None => false,
        }
    }

    fn ring(&self) {
        let waker = self.lock().take();
        // A panic of an executor, which has been reported, is no failure of the rank.
        let _ = catch_unwind(AssertUnwindSafe(|| waker.into_iter().for_each(Waker::wake)));
    }

    fn lock(&self) -> MutexGuard<'_, Option<Waker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The progress thread of a process.
#[derive(Default)]
pub(super) struct Progress(Mutex<State>);

#[derive(Default)]
enum State {
    /// It has not been started.
    #[default]
    Idle,
    Running(Running),
    /// It has ended, and is not started again.
    Ended,
}

struct Running {
    thread: JoinHandle<()>,
    stop: Arc<AtomicBool>,
    alarms: Vec<Weak<Alarm>>,
    /// At how many alarms those that are gone are removed.
    full: usize,
}

/// How many alarms there may be before those that are gone are removed.
const FEW: usize = 64;

impl Process {
    /// Starts the progress thread, unless it runs. The thread sleeps while nothing arrives, and ends with the device or by
    /// [`Process::stop_progress`].
    ///
    /// # Errors
    /// [`Error::Thread`]; [`mpjdev::Error::Finished`] if it has ended.
    pub fn start_progress(self: &Arc<Self>) -> Result<(), Error> {
        let mut state = self.progress.lock();
        match *state {
            State::Idle => {}
            State::Running(_) => return Ok(()),
            State::Ended => return Err(mpjdev::Error::Finished.into()),
        }
        let stop = Arc::<AtomicBool>::default();
        let (ending, stopped) = (Ending(self.clone()), stop.clone());
        let body = move || {
            // What has made the device unusable is the error of all other calls.
            let _ = ending.0.device.serve(&stopped);
        };
        let thread = thread::Builder::new().name("mpj-progress".to_owned()).spawn(body);
        let failed = |error: io::Error| Error::Thread { errno: error.raw_os_error().unwrap_or(0) };
        let thread = thread.map_err(failed)?;
        *state = State::Running(Running { thread, stop, alarms: Vec::new(), full: FEW });
        Ok(())
    }

    /// Ends the progress thread, waits for its end, and wakes the tasks that wait for operations. It is not started again.
    pub fn stop_progress(&self) {
        let running = self.progress.end();
        let Some(Running { thread, stop, alarms, .. }) = running else { return };
        if self.device.is_fork() {
            // The thread is not in this process.
            std::mem::forget(thread);
            return;
        }
        self.device.stop_serving(&stop);
        // A waker may run anything, even this.
        if thread.thread().id() != thread::current().id() {
            let _ = thread.join();
        }
        ring_all(alarms);
    }

    /// Returns an alarm that wakes the task of `waker` when the operation of a request of this process has ended. Starts
    /// the progress thread, which rings it. The request is still to be waited for.
    ///
    /// # Errors
    /// As [`Process::start_progress`]; what made the device unusable.
    pub fn alarm(self: &Arc<Self>, request: &Request, waker: Waker) -> Result<Arc<Alarm>, Error> {
        self.start_progress()?;
        let alarm = Arc::new(Alarm(Mutex::new(Some(waker))));
        self.progress.add(&alarm)?;
        let joint = self.device.join([request])?;
        let ringing = alarm.clone();
        self.device.then(joint, move |_| ringing.ring())?;
        Ok(alarm)
    }
}

impl Progress {
    /// Adds an alarm (PG1).
    fn add(&self, alarm: &Arc<Alarm>) -> Result<(), Error> {
        let mut state = self.lock();
        let State::Running(Running { alarms, full, .. }) = &mut *state else {
            return Err(mpjdev::Error::Finished.into());
        };
        if alarms.len() == *full {
            alarms.retain(|alarm| alarm.strong_count() > 0);
            *full = FEW.max(2 * alarms.len());
        }
        alarms.push(Arc::downgrade(alarm));
        Ok(())
    }

    /// Notes the end of the thread. The caller rings the alarms.
    fn end(&self) -> Option<Running> {
        match std::mem::replace(&mut *self.lock(), State::Ended) {
            State::Running(running) => Some(running),
            State::Idle | State::Ended => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Dropped when the thread ends, also by a panic.
struct Ending(Arc<Process>);

impl Drop for Ending {
    fn drop(&mut self) {
        let running = self.0.progress.end();
        running.into_iter().for_each(|Running { alarms, .. }| ring_all(alarms));
    }
}

fn ring_all(alarms: Vec<Weak<Alarm>>) {
    alarms.iter().filter_map(Weak::upgrade).for_each(|alarm| alarm.ring());
}
