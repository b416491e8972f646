//! The shared areas of a segment: memory of each task that all tasks have mapped.
//!
//! - AR1: bytes of an area are copied or accessed by atomic operations, and never borrowed, since any task may write
//!   them at any moment. Tasks that are threads of one process do not get areas, since for them two copies at the same
//!   time would be a data race of the program; the dispatcher serves them.

#![expect(unsafe_code, reason = "the areas are memory shared with peers")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use rustix::io::Errno;
use rustix::mm::Advice;

use crate::adapter::{AdapterError, SharedArea, TaskId};
use crate::adapters::layout::PAGE;
use crate::adapters::segment::Segment;
use crate::body::Piece;
use crate::region::{ForeignBytes, RecvPart};

/// The areas of one context.
pub(crate) struct Areas(Arc<Segment>);

impl Areas {
    /// The areas for the context of this plane. The tasks of the job are processes (AR1).
    pub(crate) fn new(segment: Arc<Segment>) -> Self {
        Self(segment)
    }

    /// Pointer to `len` bytes at `offset` of the area of `task`, if there are so many.
    fn place(&self, task: TaskId, offset: u64, len: usize) -> Option<*mut u8> {
        let area = self.0.area(task as usize);
        let offset = usize::try_from(offset).ok()?;
        (offset.checked_add(len)? <= area.len())
            .then(|| area.cast::<u8>().as_ptr().wrapping_add(offset))
    }

    fn aligned(&self, task: TaskId, offset: u64, size: usize) -> Option<*mut u8> {
        self.place(task, offset, size).filter(|place| place.addr() % size == 0)
    }
}

impl SharedArea for Areas {
    fn bytes(&self) -> usize {
        self.0.layout().area_bytes()
    }

    fn start(&self, task: TaskId, offset: u64) -> *mut u8 {
        self.place(task, offset, 0).unwrap_or(std::ptr::null_mut())
    }

    fn reserve(&self, task: TaskId, offset: usize, len: usize) -> Result<(), AdapterError> {
        let Some(place) = self.place(task, offset as u64, len) else { return Ok(()) };
        let before = place.addr() % PAGE;
        let page = place.wrapping_sub(before).cast();
        // SAFETY: populating changes no byte of the mapping.
        match unsafe { rustix::mm::madvise(page, len + before, Advice::LinuxPopulateWrite) } {
            // Kernels before 5.14 do not know it.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(errno) => {
                let action = "reserve memory of the shared area";
                Err(AdapterError::System { action, source: errno.into() })
            }
        }
    }

    #[inline]
    fn store(&self, task: TaskId, offset: u64, body: Piece<'_>) -> bool {
        let len = body.len();
        let Some(place) = self.place(task, offset, len) else { return false };
        // Bytes that were stored before are visible before these, as a waiting task may expect of a flag.
        fence(Ordering::Release);
        // SAFETY: the bytes lie in the mapping, which `self` holds, and are only copied (AR1).
        body.copy_to(unsafe { RecvPart::new(place, len) });
        true
    }

    fn fill(&self, task: TaskId, offset: u64, from: ForeignBytes<'_>) -> bool {
        let Some(place) = self.place(task, offset, from.len()) else { return false };
        // SAFETY: as in `store`.
        unsafe { RecvPart::new(place, from.len()) }.store(from);
        true
    }

    fn load(&self, task: TaskId, offset: u64, mut into: RecvPart<'_>) -> bool {
        let len = into.len();
        let Some(place) = self.place(task, offset, len) else { return false };
        // SAFETY: G3: the bytes lie in the mapping, which `self` holds.
        into.store(unsafe { ForeignBytes::new(place, len) });
        fence(Ordering::Acquire);
        true
    }

    fn word(&self, task: TaskId, offset: u64) -> Option<&AtomicU64> {
        let place = self.aligned(task, offset, size_of::<u64>())?;
        // SAFETY: inside the mapping, which `self` holds, and aligned; AR1.
        Some(unsafe { AtomicU64::from_ptr(place.cast()) })
    }

    fn half_word(&self, task: TaskId, offset: u64) -> Option<&AtomicU32> {
        let place = self.aligned(task, offset, size_of::<u32>())?;
        // SAFETY: as in `word`.
        Some(unsafe { AtomicU32::from_ptr(place.cast()) })
    }
}
