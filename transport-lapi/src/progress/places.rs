//! Whether a long message goes to the same place as the one before it from the same task. If one goes to the same place as the one before it, that place is
//! probably in this processor's caches, and [`crate::memory::body::Sink::store_piece`] is worth a call. Into other
//! memory, the C library's copy may take no longer than another one, and still delay the program that reads the bytes.

use crate::adapter::TaskId;
use crate::progress::per_task::{PerTask, Tasks};

/// The address of the latest message of several packets from each task, unless a layout determines where it went.
pub(crate) struct Places(PerTask<Option<u64>>);

impl Places {
    pub(crate) fn new(tasks: &Tasks) -> Self {
        Self(PerTask::new(tasks, None, Clone::clone))
    }

    /// Takes note that a message of `origin` goes to this address, and returns whether the one before it went there,
    /// too.
    pub(crate) fn repeats(&mut self, origin: TaskId, place: Option<u64>) -> bool {
        let before = std::mem::replace(&mut self.0[origin], place);
        place.is_some() && place == before
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_place_of_the_same_task_is_repeated() {
        let mut places = Places::new(&Tasks::all_near(2));
        let messages = [(0, Some(8)), (1, Some(8)), (0, Some(8)), (0, Some(16)), (0, Some(8))];
        let repeated = messages.map(|(origin, place)| places.repeats(origin, place));
        assert_eq!(repeated, [false, false, true, false, false]);
        let layouts = [None, None, Some(8), Some(8)].map(|place| places.repeats(1, place));
        assert_eq!(layouts, [false, false, false, true]);
    }
}
