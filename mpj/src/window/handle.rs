//! What all kinds of windows have: the window of the core, and how it ends.
//!
//! - WJ4: the window of the core lives until all ranks have dropped theirs, and the memory of all ranks as long. If a rank
//!   drops its own because of an error or a panic, or is lost before, those of all ranks live as long as their processes.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::forget;
use std::sync::atomic::AtomicBool;

use crate::communicator::Communicator;
use crate::error::Error;

/// A window of the core, on the communicator on which it was made.
pub(super) struct Handle {
    pub communicator: Communicator,
    pub core: mpicore::Window,
    /// Whether an epoch did not end (WJ2).
    pub is_broken: AtomicBool,
}

impl Handle {
    /// Makes a window whose elements all ranks describe by the same text.
    #[track_caller]
    pub fn new(
        communicator: &Communicator,
        elements: &str,
        make: impl FnOnce(&mpicore::Communicator) -> Result<mpicore::Window, mpicore::Error>,
    ) -> Result<Self, Error> {
        let core = communicator.answer(make(&communicator.core))?;
        let is_broken = AtomicBool::new(false);
        let handle = Self { communicator: communicator.clone(), core, is_broken };
        let mut hasher = DefaultHasher::new();
        elements.hash(&mut hasher);
        let (mine, mut all) = (hasher.finish(), vec![0; communicator.size()]);
        communicator.all_gather(&mine, &mut all)?;
        // All ranks find the same differences, so none goes on alone.
        if all.iter().any(|of_rank| *of_rank != mine) {
            drop(handle);
            return communicator.answer(Err(Error::WindowElements));
        }
        Ok(handle)
    }

    /// Passes on the result of a call on the window.
    pub fn answer<T>(&self, outcome: Result<T, mpicore::Error>) -> Result<T, Error> {
        self.communicator.answer(outcome)
    }

    /// Returns this rank in the window.
    pub fn rank(&self) -> u32 {
        self.core.rank()
    }
}

impl Drop for Handle {
    /// Keeps the window of the core (WJ4). Does not wait. A rank that leaves because of an error does not tell the others
    /// that it has come to this: they see it as lost, and learn why.
    fn drop(&mut self) {
        let (core, device) = (self.core.clone(), &self.communicator.device);
        let is_broken = *self.is_broken.get_mut() || std::thread::panicking();
        if is_broken || device.complaint().is_some() {
            forget(core);
        } else {
            core.free_later();
        }
    }
}
