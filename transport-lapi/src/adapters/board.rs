//! The slates of a job as whoever watches over it reads them: the launcher, or another process of the
//! same user. Called by the launcher only.
//!
//! - BD1: the segment is mapped for as long as the board lives, and a sealed file cannot shrink (MM1 of
//!   `shm/mapping.rs`), so no read meets the end of the file, whatever the tasks do.
//! - BD2: everything read is a claim: numbers and texts for a report, never an index or a length.

use std::os::fd::AsFd;

use crate::adapter::{AdapterError, Standing, TaskId};
use crate::adapters::doorbell::Fences;
use crate::adapters::port;
use crate::adapters::segment::Segment;
use crate::adapters::shm::{open_segment, pid_namespace};
use crate::adapters::slate::{Entry, LISTED};
use crate::bootstrap::board::{Blocked, TaskState};
use crate::sync::Ordering;

const _: () = assert!(cfg!(loom) || LISTED == TaskState::LISTED);

/// What the tasks of a job have published.
pub struct Board {
    segment: Segment,
    /// That of the process which looks.
    pid_namespace: u64,
}

impl Board {
    /// Maps the segment behind `fd`, which may be closed afterwards.
    ///
    /// # Errors
    /// [`AdapterError::BadSegment`] when it is not the segment of a job; [`AdapterError::System`] when it
    /// cannot be mapped.
    pub fn open(fd: impl AsFd) -> Result<Self, AdapterError> {
        Ok(Self { segment: open_segment(fd)?, pid_namespace: pid_namespace() })
    }

    /// How many tasks the job has.
    pub fn tasks(&self) -> usize {
        self.segment.layout().tasks()
    }

    /// What is known of task `task` now; `None` if it changed at every look, which a task that runs
    /// does not do for long.
    ///
    /// # Panics
    /// When the job has no such task.
    pub fn state(&self, task: usize) -> Option<TaskState> {
        let block = self.segment.task(task);
        let reading = self.segment.slate(task).read()?;
        // After the entries: a ring that came before they were read counts.
        let rung = block.bell.0.rung();
        let blocked = reading.entries.into_iter().map(|Entry { wait, standing, looks }| Blocked {
            wait,
            undisturbed: standing == Standing::Asleep { ticket: rung },
            failed: standing == Standing::Failed,
            looks,
        });
        Some(TaskState {
            pid: block.wireup.pid.load(Ordering::Relaxed),
            is_here: self.pid_namespace != 0
                && block.wireup.pid_namespace.load(Ordering::Relaxed) == self.pid_namespace,
            epoch: reading.epoch,
            moves: reading.moves,
            blocked: blocked.collect(),
            unlisted: reading.unlisted,
        })
    }

    /// Says that the job goes on without tasks that are lost, and that this process reaps its children among
    /// them when it is over. To be called before any task joins.
    pub fn goes_on(&self) {
        // The start of the tasks publishes it.
        self.segment.job().keeper.store(std::process::id(), Ordering::Relaxed);
    }

    /// Asks task `task` for its queues, and wakes its threads that sleep in a wait.
    ///
    /// # Panics
    /// When the job has no such task.
    pub fn inquire(&self, task: usize) {
        self.segment.slate(task).ask();
        self.segment.task(task).bell.0.ring(Fences::Symmetric);
    }

    /// Lets task `task` go if it waits at its end for the others, who will not come. It learns of that by
    /// [`crate::Context::gfence_unless_dismissed`] alone.
    ///
    /// # Panics
    /// When the job has no such task.
    pub fn dismiss(&self, task: usize) {
        self.segment.slate(task).dismiss();
        self.segment.task(task).bell.0.ring(Fences::Symmetric);
    }

    /// Declares task `task` lost, unless another one was first, and wakes everybody: their calls that
    /// wait end with an error.
    pub fn declare_lost(&self, task: TaskId) {
        port::declare_lost(&self.segment, task);
    }
}
