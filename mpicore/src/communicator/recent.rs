//! The schedules of the last calls, since programs repeat theirs.

use std::sync::{Mutex, PoisonError};

use mpjdev::Call;

use crate::collective::Schedule;
use crate::error::Error;

/// What tells schedules of one communicator apart: the call, and all that the function that builds it is given.
pub(super) type Key = (Call, [Option<u64>; 4]);

/// How many are kept. A loop of more different calls builds all of them anew.
const MOST: usize = 8;

/// Schedules of one communicator.
#[derive(Default)]
pub(super) struct Recent(Mutex<Vec<(Key, Schedule)>>);

impl Recent {
    /// The schedule of a call: one that was built before, or what `build` answers.
    pub fn get(
        &self,
        key: Key,
        build: impl FnOnce() -> Result<Schedule, Error>,
    ) -> Result<Schedule, Error> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, schedule)) = kept.iter().find(|(of, _)| *of == key) {
            return Ok(schedule.clone());
        }
        let schedule = build()?;
        if kept.len() == MOST {
            kept.remove(0);
        }
        kept.push((key, schedule.clone()));
        Ok(schedule)
    }
}
