//! The completion thread: where completion handlers run that may block.
//!
//! It is started by the first message that wants it. Jobs go to it and news come back through
//! channels; the thread rings its task's bell, so that a thread asleep in a wait sees the counters
//! move. Nothing is shared but the channels and the bell.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::adapter::{Doorbell, TaskId};
use crate::error::LapiError;
use crate::wire::RemoteCounters;

/// What is due when a handler has returned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due {
    pub origin: TaskId,
    pub counters: RemoteCounters,
}

struct Work {
    run: Box<dyn FnOnce() + Send>,
    due: Due,
}

/// The thread and the channels to it.
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

    /// A handler that has returned since the last call, if any: what is due, or how it panicked.
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
    /// Lets the queued handlers run, then ends the thread. While panicking, nothing is waited for;
    /// nor is it by the thread itself, when a handler of its was the last owner of the context.
    fn drop(&mut self) {
        self.jobs = None;
        let me = std::thread::current().id();
        let other = self.thread.take().filter(|thread| thread.thread().id() != me);
        if let (Some(thread), false) = (other, std::thread::panicking()) {
            // The thread catches the panics of its handlers; there is nothing to learn here.
            let _ = thread.join();
        }
    }
}

/// What a panic says; `no message` if it does not.
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
