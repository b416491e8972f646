//! The shared areas of a segment: memory of each task that all tasks have mapped.
//!
//! - AR1: bytes of an area are copied or accessed by atomic operations, and never borrowed, since any task may write
//!   them at any moment. Several tasks that are threads of one process do not get areas, since for them two copies at
//!   the same time would be a data race of the program; the dispatcher serves them. For the same reason, copies from
//!   and to this task's own area, which several of its threads may make at the same time, are made of atomic
//!   operations. A task that is alone in its job has no other area.

#![expect(unsafe_code, reason = "advice on the mapping")]

use crate::adapter::{AdapterError, SharedArea, TaskId};
use crate::adapters::local::segment::Segment;
use crate::platform::shared;

// SAFETY: the layout gives each task an area of this length in the mapping, which lasts as long as the segment.
unsafe impl SharedArea for Segment {
    fn bytes(&self, task: TaskId) -> usize {
        self.layout().area_bytes(task as usize)
    }

    fn start(&self, task: TaskId) -> *mut u8 {
        self.area(task as usize).cast().as_ptr()
    }

    fn reserve(&self, task: TaskId, offset: usize, len: usize) -> Result<(), AdapterError> {
        let place = self.start(task).wrapping_add(offset);
        // SAFETY: inside of the mapping.
        unsafe { shared::reserve(place, len) }
            .map_err(|errno| AdapterError::system("reserve memory of the shared area", errno))
    }
}
