//! The tasks' shared areas, as a context uses them: the free parts of its own, and what gets and read-modify-writes of
//! the others' do at the origin.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::adapter::atomic::Operation;
use crate::adapter::{SharedArea, TaskId};
use crate::error::LapiError;
use crate::memory::body::Sink;
use crate::memory::region::{ForeignBytes, RecvPart};
use crate::platform::sys::LINE;
use crate::progress::direct::Direct;
use crate::progress::outbox::Outbox;

/// The multiple of which allocations are, so that two of them have no line, and no pair of lines, in common.
const GRAIN: usize = 2 * LINE;

/// Size of the buffer through which bytes go from an area into a layout.
const COPIED_AT_ONCE: usize = 4096;

/// The shared areas as a context uses them.
pub(crate) struct Shared {
    pub area: Arc<dyn SharedArea>,
    /// The free parts of this task's area.
    pub free: Arc<Mutex<Free>>,
    /// The short path.
    pub direct: Direct,
}

impl Shared {
    /// Describes the areas of a job of `num_tasks` tasks, for the task `own`.
    pub fn new(area: Arc<dyn SharedArea>, own: TaskId, num_tasks: usize) -> Self {
        let free = Arc::new(Mutex::new(Free::new(area.bytes(own))));
        let direct = Direct::new(&*area, own, num_tasks);
        Self { area, free, direct }
    }
}

/// The free parts of an area, as offsets and lengths in ascending order. No two of them adjoin.
pub(crate) struct Free(Vec<(usize, usize)>);

impl Free {
    fn new(bytes: usize) -> Self {
        Self(vec![(0, bytes)])
    }

    /// Takes `len` bytes, a multiple of [`GRAIN`], from the first part that is long enough.
    pub fn take(&mut self, len: usize) -> Option<usize> {
        let place = self.0.iter().position(|(_, free)| *free >= len)?;
        let (at, free) = &mut self.0[place];
        let taken = *at;
        (*at, *free) = (*at + len, *free - len);
        if *free == 0 {
            self.0.remove(place);
        }
        Some(taken)
    }

    /// Gives bytes back that were taken.
    pub fn give_back(&mut self, at: usize, len: usize) {
        let place = self.0.partition_point(|(start, _)| *start < at);
        self.0.insert(place, (at, len));
        if self.0.get(place + 1).is_some_and(|(next, _)| at + len == *next) {
            self.0[place].1 += self.0.remove(place + 1).1;
        }
        if let Some(before) = place.checked_sub(1) {
            let (start, free) = self.0[before];
            if start + free == at {
                self.0[before].1 += self.0.remove(place).1;
            }
        }
    }

    /// Length of the longest part.
    pub fn longest(&self) -> usize {
        self.0.iter().map(|(_, len)| *len).max().unwrap_or(0)
    }
}

/// The bytes that an allocation of `len` bytes takes.
pub(crate) fn rounded(len: usize) -> usize {
    len.max(1).next_multiple_of(GRAIN)
}

impl<S> Outbox<S> {
    /// Fills `into` from blocks of the target's area.
    pub(crate) fn get_shared(
        &mut self,
        target: TaskId,
        blocks: impl IntoIterator<Item = (u64, u64)>,
        into: &mut Sink,
    ) -> Result<(), LapiError> {
        let shared = self.shared.as_ref().ok_or(LapiError::NoSharedArea)?;
        let mut at = 0;
        for (offset, len) in blocks {
            let (limit, whole) = (shared.area.bytes(target) as u64, len as usize);
            let outside = LapiError::DataLen { offset, len, limit };
            let fits = match &mut *into {
                Sink::Span(region) => shared.direct.get(target, offset, region.part(at, whole)),
                layout => (0..whole).step_by(COPIED_AT_ONCE).all(|done| {
                    let mut piece = [0; COPIED_AT_ONCE];
                    let piece = &mut piece[..COPIED_AT_ONCE.min(whole - done)];
                    let part = RecvPart::of_slice(piece);
                    let has = shared.direct.get(target, offset + done as u64, part);
                    layout.store(at + done, ForeignBytes::from_slice(piece));
                    has
                }),
            };
            if !fits {
                return Err(outside);
            }
            at += whole;
        }
        Ok(())
    }

    /// Carries out a read-modify-write of a variable in the target's area, and returns the result.
    pub(crate) fn rmw_shared(
        &self,
        target: TaskId,
        offset: u64,
        operation: Operation,
    ) -> Result<i64, LapiError> {
        let shared = self.shared.as_ref().ok_or(LapiError::NoSharedArea)?;
        let (size, limit) = (operation.size(), shared.area.bytes(target) as u64);
        if offset.checked_add(size).is_none_or(|end| end > limit) {
            return Err(LapiError::DataLen { offset, len: size, limit });
        }
        let result = shared.direct.modify(target, offset, operation);
        result.ok_or(LapiError::Unaligned { offset, size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a map of bytes: parts that are taken do not overlap, and all is free again in one part at the end.
        #[test]
        fn what_is_taken_is_taken_once(
            steps in proptest::collection::vec((1_usize..20, any::<bool>(), any::<usize>()), 0..60),
        ) {
            const GRAINS: usize = 64;
            let mut free = Free::new(GRAINS * GRAIN);
            let mut owned = [false; GRAINS];
            let mut taken = Vec::new();
            for (grains, gives_back, which) in steps {
                if gives_back && !taken.is_empty() {
                    let (at, grains) = taken.swap_remove(which % taken.len());
                    free.give_back(at * GRAIN, grains * GRAIN);
                    owned[at..at + grains].fill(false);
                } else if let Some(at) = free.take(grains * GRAIN) {
                    let at = at / GRAIN;
                    prop_assert!(owned[at..at + grains].iter().all(|is_owned| !is_owned));
                    owned[at..at + grains].fill(true);
                    taken.push((at, grains));
                } else {
                    let runs = owned.split(|is_owned| *is_owned).map(<[bool]>::len);
                    prop_assert!(runs.max().unwrap_or(0) < grains, "there was room");
                }
            }
            for (at, grains) in taken {
                free.give_back(at * GRAIN, grains * GRAIN);
            }
            prop_assert_eq!(free.0, [(0, GRAINS * GRAIN)]);
        }
    }
}
