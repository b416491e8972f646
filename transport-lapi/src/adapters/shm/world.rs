//! A world: the tasks of a job that were started together. The first world of a job are the ranks that the launcher starts
//! by itself. A task can have it start further worlds in the places of the segment that are free (`mpjrun --universe`).
//!
//! - WO1: worlds have neighbouring places each, of which no other world has any, and no place is taken twice.
//! - WO2: a world decides alone how its tasks begin, but keeps to what the world of its parent has agreed on: how memory
//!   is read, the fences of the bells, the client and whether mistakes are checked. Since that one keeps to it, too, all
//!   tasks of a job agree.

use std::ops::Range;
use std::sync::atomic::Ordering;

use crate::adapter::{AdapterError, TaskId};
use crate::adapters::local::segment::Segment;

/// A task, and the world that it was started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct World {
    /// The task.
    pub task: TaskId,
    /// The tasks of its world.
    pub tasks: Range<TaskId>,
    /// How many tasks the job can have on this host.
    pub universe: usize,
    /// The task that has spawned this world; `None` for the first one of the job.
    pub parent: Option<TaskId>,
}

impl World {
    /// Returns the place of `task` in a job of `num_tasks` tasks that has no further worlds.
    pub fn whole(task: TaskId, num_tasks: usize) -> Self {
        Self { task, tasks: 0..num_tasks as TaskId, universe: num_tasks, parent: None }
    }

    /// Checks that the segment has places for the world.
    pub(super) fn check(&self) -> Result<(), AdapterError> {
        let Self { task, tasks, universe, parent } = self;
        let is_placed = tasks.end as usize <= *universe;
        let is_behind = parent.map_or(tasks.start == 0, |parent| parent < tasks.start);
        if tasks.contains(task) && is_placed && is_behind {
            return Ok(());
        }
        let what = format!("rank {task} does not exist in a job of {} ranks", tasks.len());
        Err(AdapterError::BadSegment { what })
    }

    /// Publishes the world. The next meeting makes it visible.
    pub(super) fn publish(&self, segment: &Segment) {
        let words = [self.tasks.start, self.tasks.len() as TaskId];
        for (word, value) in segment.wireup(self.task as usize).world.iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// The tasks of the parent's world, if there is one. The parent has published them before it was started.
    pub(super) fn of_parent(&self, segment: &Segment) -> Option<Range<usize>> {
        let line = segment.wireup(self.parent? as usize);
        let [first, tasks] = [0, 1].map(|word| line.world[word].load(Ordering::Relaxed) as usize);
        // A claim; at worst it is not the world that was meant.
        let end = first.saturating_add(tasks).min(segment.layout().tasks());
        Some(first.min(end)..end)
    }

    /// The places of its tasks.
    pub(super) fn places(&self) -> Range<usize> {
        self.tasks.start as usize..self.tasks.end as usize
    }
}
