//! Reads the wait tables of a job, for the launcher, which watches the job.
//!
//! - BD1: the segment is mapped for as long as the view lives, and a sealed file cannot shrink (MM1 of
//!   `shm/mapping.rs`), so no read goes past the end of the file, whatever the tasks do.
//! - BD2: everything read is untrusted: numbers and texts for a report, never an index or a length.

use std::os::fd::AsFd;

use crate::adapter::waits::{Blocked, Space, TaskState, Wait};
use crate::adapter::{AdapterError, TaskId, ThreadState};
use crate::adapters::local::doorbell::Fences;
use crate::adapters::local::port;
use crate::adapters::local::segment::Segment;
use crate::adapters::local::wait_table::{Entry, LISTED, Traffic};
use crate::adapters::shm::open_segment;
use crate::platform::offer::pid_namespace;
use crate::platform::sync::Ordering;

const _: () = assert!(cfg!(loom) || LISTED == TaskState::LISTED);

/// The published waits of the tasks of a job.
pub struct JobView {
    /// Those of all contexts, in order. Those that no client uses are not touched, so that they take no memory.
    segments: Vec<Segment>,
    /// How many tasks have been started.
    started: usize,
    /// The PID namespace of this process.
    pid_namespace: u64,
}

impl JobView {
    /// Maps the segment behind `fd`, which may be closed afterwards.
    ///
    /// # Errors
    /// [`AdapterError::BadSegment`] if it is not the segment of a job; [`AdapterError::System`] if it cannot be mapped.
    pub fn open(fd: impl AsFd) -> Result<Self, AdapterError> {
        let segments: Vec<Segment> = open_segment(fd)?.contexts().collect();
        let started = segments[0].layout().tasks();
        Ok(Self { segments, started, pid_namespace: pid_namespace() })
    }

    /// The same view of the first `started` tasks: the others may follow later.
    #[must_use]
    pub fn of_first(mut self, started: usize) -> Self {
        self.show(started);
        self
    }

    /// Shows the first `started` tasks from now on.
    pub fn show(&mut self, started: usize) {
        self.started = started.min(self.first().layout().tasks());
    }

    /// Returns the number of tasks of the job that have been started.
    pub fn tasks(&self) -> usize {
        self.started
    }

    /// The segments of the contexts that clients of `task` use.
    fn in_use(&self, task: usize) -> &[Segment] {
        let claimed = self.first().wireup(task).in_use.load(Ordering::Acquire); // SYNC: contexts in use
        &self.segments[..self.segments.len().min(claimed as usize)]
    }

    /// The context segment in which tasks publish who they are.
    fn first(&self) -> &Segment {
        &self.segments[0]
    }

    /// Returns the published state of task `task`. Its contexts are read one after the other. `None` if one of them
    /// changed at every attempt, which a running task does not cause for long.
    ///
    /// # Panics
    /// If the job has no such task.
    pub fn state(&self, task: usize) -> Option<TaskState> {
        let wireup = &self.first().task(task).wireup;
        let mut state = TaskState {
            pid: wireup.pid.load(Ordering::Relaxed),
            is_here: self.pid_namespace != 0
                && wireup.pid_namespace.load(Ordering::Relaxed) == self.pid_namespace,
            epoch: 0,
            moves: 0,
            blocked: Vec::new(),
            unlisted: 0,
            sent: 0,
            received: 0,
            contexts: 0,
        };
        let segments = self.in_use(task);
        state.contexts = segments.len();
        // A client that joins changes the epoch, which only grows.
        state.epoch = segments.len() as u64;
        for segment in segments {
            let context = segment.context() as u32;
            let reading = segment.wait_table(task).read()?;
            // After the entries: rings that came before they were read must count.
            let rung = segment.task(task).bell.0.rung();
            let blocked = reading.entries.into_iter().map(|entry| {
                let Entry { wait, state, looks } = entry;
                Blocked {
                    wait: Wait { space: Space { context, ..wait.space }, ..wait },
                    undisturbed: state == ThreadState::Asleep { ticket: rung },
                    failed: state == ThreadState::Failed,
                    looks,
                }
            });
            state.blocked.extend(blocked);
            state.epoch = state.epoch.wrapping_add(reading.epoch);
            state.moves = state.moves.wrapping_add(reading.moves);
            state.unlisted = state.unlisted.saturating_add(reading.unlisted);
            let Traffic { offered, sent, received } = reading.traffic;
            state.epoch = state.epoch.wrapping_add(offered).wrapping_add(received);
            state.sent = state.sent.wrapping_add(sent);
            state.received = state.received.wrapping_add(received);
        }
        Some(state)
    }

    /// Returns where the counters of the clients of task `task` are in its memory, for
    /// [`MessageTotals`](crate::bootstrap::control::MessageTotals). They are addresses for the kernel, which refuses those
    /// that are none.
    ///
    /// # Panics
    /// If the job has no such task.
    pub fn counters(&self, task: usize) -> Vec<u64> {
        let published = self.in_use(task).iter().map(|segment| segment.wait_table(task).counters());
        published.filter(|address| *address != 0).collect()
    }

    /// Publishes that the job goes on without lost tasks, and that this process reaps its children among them only when
    /// the job is over. Call it before any task joins.
    pub fn goes_on(&self) {
        // The start of the tasks publishes this store.
        self.first().job().keeper.store(std::process::id(), Ordering::Relaxed);
    }

    /// Asks task `task` for its queues in all contexts that it uses, and wakes its threads that sleep in a wait. Each context
    /// answers on its own, as soon as a thread waits or polls in it.
    ///
    /// # Panics
    /// If the job has no such task.
    pub fn inquire(&self, task: usize) {
        for segment in self.in_use(task) {
            segment.wait_table(task).ask();
            segment.task(task).bell.0.ring(Fences::Symmetric);
        }
    }

    /// Releases task `task` if it waits at its end for the others, who will not come. Only
    /// [`crate::Context::gfence_unless_dismissed`] takes notice.
    ///
    /// # Panics
    /// If the job has no such task.
    pub fn dismiss(&self, task: usize) {
        for segment in self.in_use(task) {
            segment.wait_table(task).dismiss();
            segment.task(task).bell.0.ring(Fences::Symmetric);
        }
    }

    /// Wakes every task, because something has changed outside of the segment, such as the job table.
    pub fn ring(&self) {
        for task in 0..self.tasks() {
            let blocks = self.in_use(task).iter().map(|segment| segment.task(task));
            blocks.for_each(|block| block.bell.0.ring(Fences::Symmetric));
        }
    }

    /// Declares task `task` lost and wakes every task: operations of the others that need it end with an error.
    pub fn declare_lost(&self, task: TaskId) {
        port::declare_lost(self.first(), task);
    }
}
