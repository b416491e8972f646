//! The completion thread, which runs completion handlers that may block.
//!
//! The first message that needs it starts it. It receives jobs and returns results through channels, and rings its
//! task's bell after each job, so that a thread asleep in a wait sees the counters change. The threads share only the
//! channels and the bell.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::adapter::{Doorbell, TaskId};
use crate::error::LapiError;
use crate::wire::RemoteCounters;

/// The counters to update when a handler has returned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due {
    pub origin: TaskId,
    pub counters: RemoteCounters,
}

struct Work {
    run: Box<dyn FnOnce() + Send>,
    due: Due,
}

/// The thread and the channels to and from it.
pub(crate) struct CompletionThread {
    jobs: Option<Sender<Work>>,
    news: Receiver<Result<Due, String>>,
    thread: Option<JoinHandle<()>>,
    running: usize,
}

impl CompletionThread {
    /// Starts the thread.
    pub fn start(task: TaskId, bell: Arc<dyn Doorbell>) -> Result<Self, LapiError> {
        let (jobs, inbox) = unbounded::<Work>();
        let (outbox, news) = unbounded();
        let body = move || {
            for job in inbox {
                let outcome = catch_unwind(AssertUnwindSafe(job.run));
                let told =
                    outbox.send(outcome.map(|()| job.due).map_err(|panic| panic_text(&*panic)));
                bell.ring();
                if told.is_err() {
                    break;
                }
            }
        };
        let name = format!("lapi-completion-{task}");
        let thread = std::thread::Builder::new().name(name).spawn(body);
        let thread = thread.map_err(LapiError::CompletionThread)?;
        Ok(Self { jobs: Some(jobs), news, thread: Some(thread), running: 0 })
    }

    /// Queues a handler.
    pub fn run(&mut self, run: Box<dyn FnOnce() + Send>, due: Due) {
        if let Some(jobs) = &self.jobs {
            if jobs.send(Work { run, due }).is_ok() {
                self.running += 1;
            }
        }
    }

    /// Returns the result of a handler that has returned since the last call, if there is one: the counters to update,
    /// or its panic.
    pub fn finished(&mut self) -> Option<Result<Due, LapiError>> {
        if self.running == 0 {
            return None;
        }
        let news = self.news.try_recv().ok()?;
        self.running -= 1;
        Some(news.map_err(|message| LapiError::CompletionPanicked { message }))
    }
}

impl Drop for CompletionThread {
    /// Runs the queued handlers, then ends the thread. Does not wait for it while panicking, nor in that thread itself,
    /// which drops the context if one of its handlers was the last owner.
    fn drop(&mut self) {
        self.jobs = None;
        let me = std::thread::current().id();
        let other = self.thread.take().filter(|thread| thread.thread().id() != me);
        if let (Some(thread), false) = (other, std::thread::panicking()) {
            // The thread catches the panics of its handlers, so the result contains nothing of interest.
            let _ = thread.join();
        }
    }
}

/// Returns the message of a panic; `no message` if it has none.
///
/// ```
/// let panic = std::panic::catch_unwind(|| panic!("no more {}", "data")).unwrap_err();
/// assert_eq!(transport_lapi::panic_text(&*panic), "no more data");
/// ```
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let literal = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = literal.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no message".to_owned())
}
