//! The regions that the tasks of a job publish to each other outside the transport.

use std::sync::{Arc, Mutex};

use transport_lapi::{Context, RemoteRegion};

/// The regions, by task.
#[derive(Clone)]
pub struct Board(Arc<Mutex<Vec<Option<RemoteRegion>>>>);

impl Board {
    /// An empty board.
    pub fn new(num_tasks: usize) -> Self {
        Self(Arc::new(Mutex::new(vec![None; num_tasks])))
    }

    /// Publishes a region of this task, and waits until every task has published one.
    pub fn publish<S>(&self, context: &Context<S>, region: RemoteRegion) {
        self.0.lock().unwrap()[context.task() as usize] = Some(region);
        context.gfence().unwrap();
    }

    /// The region that `task` has published.
    pub fn of(&self, task: u32) -> RemoteRegion {
        self.0.lock().unwrap()[task as usize].expect("every task has published one")
    }
}
