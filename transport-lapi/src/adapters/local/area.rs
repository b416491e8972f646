//! The shared areas of a segment: memory of each task that all tasks have mapped.
//!
//! - AR1: bytes of an area are copied or accessed by atomic operations, and never borrowed, since any task may write
//!   them at any moment. Several tasks that are threads of one process do not get areas, since for them two copies at
//!   the same time would be a data race of the program; the dispatcher serves them. For the same reason, copies from
//!   and to this task's own area, which several of its threads may make at the same time, are made of atomic
//!   operations. A task that is alone in its job has no other area.

#![expect(unsafe_code, reason = "the areas are memory shared with peers")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

use rustix::io::Errno;
use rustix::mm::Advice;

use crate::adapter::{AdapterError, SharedArea, TaskId};
use crate::adapters::local::layout::PAGE;
use crate::adapters::local::segment::Segment;
use crate::memory::body::Piece;
use crate::memory::region::{ForeignBytes, RecvPart};

/// The areas of one context.
pub(crate) struct Areas {
    segment: Arc<Segment>,
    /// The task that uses them.
    own: TaskId,
}

impl Areas {
    /// The areas for the context of this segment. The tasks of the job are processes, or there is only one (AR1).
    pub(crate) fn new(segment: Arc<Segment>, own: TaskId) -> Self {
        Self { segment, own }
    }

    /// Pointer to `len` bytes at `offset` of the area of `task`, if there are so many.
    fn place(&self, task: TaskId, offset: u64, len: usize) -> Option<*mut u8> {
        let area = self.segment.area(task as usize);
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
        self.segment.layout().area_bytes()
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
        if task == self.own {
            // SAFETY: the bytes lie in the mapping, which `self` holds; AR1.
            unsafe { store_atomically(&body.to_vec(), place) };
            return true;
        }
        // SAFETY: the bytes lie in the mapping, which `self` holds, and are only copied (AR1).
        body.copy_to(unsafe { RecvPart::new(place, len) });
        true
    }

    fn fill(&self, task: TaskId, offset: u64, from: &[u8]) -> bool {
        let Some(place) = self.place(task, offset, from.len()) else { return false };
        // SAFETY: as in `store`.
        unsafe { store_atomically(from, place) };
        true
    }

    fn load(&self, task: TaskId, offset: u64, mut into: RecvPart<'_>) -> bool {
        let len = into.len();
        let Some(place) = self.place(task, offset, len) else { return false };
        if task == self.own {
            // SAFETY: the bytes lie in the mapping, which `self` holds; AR1.
            unsafe { load_atomically(place, into) };
        } else {
            // SAFETY: G3: the bytes lie in the mapping, which `self` holds.
            into.store(0, unsafe { ForeignBytes::new(place, len) });
        }
        fence(Ordering::Acquire);
        true
    }

    fn foreign(&self, task: TaskId, offset: u64, len: usize) -> Option<ForeignBytes<'_>> {
        let place = self.place(task, offset, len).filter(|_| task != self.own)?;
        // SAFETY: G3: the bytes lie in the mapping, which `self` holds; AR1.
        Some(unsafe { ForeignBytes::new(place, len) })
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

/// Where the whole words of `len` bytes at `place` begin and end.
fn words(place: *mut u8, len: usize) -> (usize, usize) {
    let head = place.align_offset(size_of::<u64>()).min(len);
    (head, len - (len - head) % size_of::<u64>())
}

/// Stores bytes by atomic operations: whole words where they are aligned, single bytes around them.
///
/// # Safety
/// `place` is valid for the bytes, and others access them by atomic operations only.
unsafe fn store_atomically(from: &[u8], place: *mut u8) {
    let (head, tail) = words(place, from.len());
    // SAFETY: the caller's promise; words are aligned.
    unsafe {
        for at in (0..head).chain(tail..from.len()) {
            AtomicU8::from_ptr(place.add(at)).store(from[at], Ordering::Relaxed);
        }
        for (nth, word) in from[head..tail].chunks_exact(size_of::<u64>()).enumerate() {
            let word = u64::from_ne_bytes(word.try_into().unwrap_or_default());
            let at = place.add(head + nth * size_of::<u64>());
            AtomicU64::from_ptr(at.cast()).store(word, Ordering::Relaxed);
        }
    }
}

/// Fills `into` by loads like the stores of [`store_atomically`].
///
/// # Safety
/// As there.
unsafe fn load_atomically(place: *mut u8, mut into: RecvPart<'_>) {
    const WORD: usize = size_of::<u64>();
    let (head, tail) = words(place, into.len());
    // SAFETY: the caller's promise; words are aligned.
    unsafe {
        for at in (0..head).chain(tail..into.len()) {
            let byte = AtomicU8::from_ptr(place.add(at)).load(Ordering::Relaxed);
            into.store(at, ForeignBytes::from_slice(&[byte]));
        }
        for at in (head..tail).step_by(WORD) {
            let word = AtomicU64::from_ptr(place.add(at).cast()).load(Ordering::Relaxed);
            into.store(at, ForeignBytes::from_slice(&word.to_ne_bytes()));
        }
    }
}
