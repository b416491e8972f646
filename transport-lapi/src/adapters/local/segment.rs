//! The memory of a job, and typed views into it.
//!
//! [`crate::adapters::threads`] maps memory of one process for all tasks; [`crate::adapters::shm`] maps one file into
//! each process. Both see the same bytes through [`Segment`], and both start from zeros.
//!
//! A `Segment` shows the part of one context, its context segment, and can make a `Segment` for any other. All of them
//! share the memory, which is freed with the last one.
//!
//! - S1: `start..start + layout.bytes()` is readable and writable for the life of the `Segment`, which holds the
//!   memory. `start` is a multiple of [`SEPARATION`], and `base`, inside that range, is where that part begins.
//! - S2: the types of the views are `repr(C)`, valid for every bit pattern, and made only of atomics and slots, so that
//!   anyone may write through shared references to them. Loom's types are none of that, so no segment is made in a
//!   model.
//! - S3: each view of a context segment has its own bytes (LY1 of [`crate::adapters::local::layout`]) and its type's
//!   alignment (LY2).

#![expect(unsafe_code, reason = "views of one block of memory as the types that lie in it")]

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::adapter::AdapterError;
use crate::adapters::local::arrivals::MOST_POLLED;
use crate::adapters::local::data_ring::DataLine;
use crate::adapters::local::detachment::Detachment;
use crate::adapters::local::doorbell::Bell;
use crate::adapters::local::layout::{
    HEADER_BYTES, Layout, SEPARATION, TASK_BYTES, WAIT_TABLE_BYTES,
};
use crate::adapters::local::ring::{Indices, Ring, Slot};
use crate::adapters::local::share::Words;
use crate::adapters::local::wait_table::WaitTable;
use crate::platform::fork::ProcessMark;
use crate::platform::sync::FutexWord;
use crate::platform::sys::LINE;

/// Data of the whole job: the second pair of lines in the header page, after the facts.
#[repr(C, align(128))]
pub(crate) struct JobBlock {
    /// How many times tasks were declared lost.
    pub(crate) losses: AtomicU32,
    /// The launcher's process if the job goes on without lost tasks; else 0.
    pub(crate) keeper: AtomicU32,
}

/// Words of the name of a client.
pub(crate) const CLIENT_WORDS: usize = 3;

/// Data of one task.
#[repr(C)]
pub(crate) struct TaskBlock {
    pub(crate) bell: BellLine,
    pub(crate) wireup: WireupLine,
}

/// The bell, alone in its lines, since every sender loads it after every frame.
#[repr(C, align(128))]
pub(crate) struct BellLine(pub(crate) Bell);

/// What a task publishes to the others while the job starts.
#[repr(C, align(128))]
pub(crate) struct WireupLine {
    /// Process of the task; 0 until it has attached.
    pub(crate) pid: AtomicU32,
    /// The PID namespace in which `pid` is valid; 0 if unknown.
    pub(crate) pid_namespace: AtomicU64,
    /// 1 if the process is registered for asymmetric fences.
    pub(crate) light_fences: AtomicU32,
    /// 1 if the task asks for checks of mistakes between tasks.
    pub(crate) asks_for_checks: AtomicU32,
    /// The result of the task's probe of its successor's memory.
    pub(crate) verdict: AtomicU32,
    /// The processor on which the task was running before the second meeting.
    pub(crate) processor: AtomicU32,
    /// Address of a slot in the task's own memory.
    pub(crate) probe_addr: AtomicU64,
    /// The value of that slot.
    pub(crate) probe_value: AtomicU64,
    /// 1 if no other process can get this number until the job is over, since the process is a child of the launcher,
    /// which reaps it only then.
    pub(crate) keeps_pid: AtomicU32,
    /// 1 if the task was declared lost.
    pub(crate) is_lost: AtomicU32,
    /// 1 if the task waits for nobody outside of its world any more, in this context, and sends nothing there.
    pub(crate) is_at_end: AtomicU32,
    /// The first task of those that were started together with this one, and their number.
    pub(crate) world: [AtomicU32; 2],
    /// In the block of the first of these tasks: how many of them have attached. In the block of a client's first
    /// context: how many have joined with the client.
    pub(crate) attached: FutexWord,
    /// In the block of the first of these tasks: how many of them have probed.
    pub(crate) probed: FutexWord,
    /// How many contexts the clients of the task's process use, from the first one on.
    pub(crate) in_use: AtomicU32,
    /// In the block of a client's first context: how many contexts the client has, and its name.
    pub(crate) client_contexts: AtomicU32,
    pub(crate) client: [AtomicU64; CLIENT_WORDS],
    /// Set when the task gives up. Gets load it, so it is beside words that are hardly written after the start.
    pub(crate) detachment: Detachment,
}

const _: () = assert!(cfg!(loom) || SEPARATION + size_of::<JobBlock>() <= HEADER_BYTES);
const _: () = assert!(cfg!(loom) || size_of::<TaskBlock>() == TASK_BYTES);
const _: () = assert!(cfg!(loom) || size_of::<Bell>() <= LINE);
const _: () = assert!(align_of::<TaskBlock>() <= SEPARATION && align_of::<Indices>() <= SEPARATION);
const _: () = assert!(cfg!(loom) || size_of::<WaitTable>() == WAIT_TABLE_BYTES);
const _: () = assert!(align_of::<Words>() <= SEPARATION && align_of::<WaitTable>() <= SEPARATION);
const _: () = assert!(align_of::<Slot>() <= LINE && align_of::<DataLine>() <= LINE);

/// The mapping, which its owner unmaps.
struct Backing {
    start: NonNull<u8>,
    bytes: usize,
    /// The process that has the mapping; in a fork this range may be unmapped or used otherwise.
    process: ProcessMark,
}

// SAFETY: the memory is not tied to a thread, and this owner only frees it.
unsafe impl Send for Backing {}
// SAFETY: as above.
unsafe impl Sync for Backing {}

/// The memory of a job as seen by one context of a task.
pub(crate) struct Segment {
    start: NonNull<u8>,
    /// Where the context segment begins.
    base: NonNull<u8>,
    context: usize,
    layout: Layout,
    /// Keeps the memory for S1.
    memory: Arc<Backing>,
}

// SAFETY: the memory is not tied to a thread, and S2 states how its bytes are shared.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// Maps zeros that only this process has, and returns the segment of context 0.
    pub(crate) fn in_process(layout: Layout) -> Result<Self, AdapterError> {
        let failed = |errno: Errno| AdapterError::System {
            action: "allocate the job's memory",
            source: errno.into(),
        };
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let (nowhere, bytes) = (std::ptr::null_mut(), layout.bytes());
        // SAFETY: the kernel chooses the place, so nothing is replaced.
        let start =
            unsafe { rustix::mm::mmap_anonymous(nowhere, bytes, access, MapFlags::PRIVATE) }
                .map_err(failed)?;
        if layout.area_bytes(0) > 0 && !cfg!(miri) {
            // A huge page would occupy memory of areas that nobody uses. A refusal is harmless.
            // SAFETY: the mapping is new, and the advice changes no byte of it.
            let _ = unsafe { rustix::mm::madvise(start, bytes, Advice::LinuxNoHugepage) };
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| failed(Errno::NOMEM))?;
        // SAFETY: S1: the mapping is new, readable, writable, aligned to a page, and used by nobody else.
        let segment = unsafe { Self::from_mapping(start, layout) };
        let first = 0..layout.first_tasks();
        first.clone().for_each(|task| segment.set_up(task, &first, 0..layout.contexts()));
        Ok(segment)
    }

    /// Takes over a mapping, and returns the segment of context 0.
    ///
    /// # Safety
    /// S1 holds for `start` and `layout`, the mapping starts at `start`, and nobody else unmaps it.
    pub(crate) unsafe fn from_mapping(start: NonNull<u8>, layout: Layout) -> Self {
        if cfg!(loom) {
            unreachable!("no segment is made in a model (S2)");
        }
        let (bytes, process) = (layout.bytes(), ProcessMark::new());
        let memory = Arc::new(Backing { start, bytes, process });
        Self { start, base: start, context: 0, layout, memory }
    }

    /// Returns the segment of `context`, in the same memory.
    pub(crate) fn of_context(&self, context: usize) -> Self {
        assert!(context < self.layout.contexts(), "contexts are numbered below their number");
        let Self { start, layout, .. } = *self;
        // SAFETY: inside the memory (S1, LY1).
        let base = unsafe { start.add(layout.context_at(context)) };
        Self { start, base, context, layout, memory: Arc::clone(&self.memory) }
    }

    /// Returns those of all contexts, in order.
    pub(crate) fn contexts(&self) -> impl Iterator<Item = Self> + '_ {
        (0..self.layout.contexts()).map(|context| self.of_context(context))
    }

    pub(crate) const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The context whose segment this is.
    pub(crate) const fn context(&self) -> usize {
        self.context
    }

    /// The job's block, the same in all context segments.
    pub(crate) fn job(&self) -> &JobBlock {
        self.of_first_context(SEPARATION)
    }

    pub(crate) fn task(&self, task: usize) -> &TaskBlock {
        assert!(task < self.layout.tasks(), "tasks of a job are numbered below its size");
        self.view(self.layout.task_at(task))
    }

    /// What `task` publishes about itself: in the segment of context 0 for all contexts.
    pub(crate) fn wireup(&self, task: usize) -> &WireupLine {
        assert!(task < self.layout.tasks(), "tasks of a job are numbered below its size");
        &self.of_first_context::<TaskBlock>(self.layout.task_at(task)).wireup
    }

    /// The wait table of `task`: what its threads wait for.
    pub(crate) fn wait_table(&self, task: usize) -> &WaitTable {
        assert!(task < self.layout.tasks(), "tasks of a job are numbered below its size");
        self.view(self.layout.wait_table_at(task))
    }

    /// Initialises the blocks of `task` in these contexts, before any task sends there. It was started together with
    /// `world`. If others were there before, their bells lead it to the marks, too.
    pub(crate) fn set_up(&self, task: usize, world: &Range<usize>, contexts: Range<usize>) {
        let before = 0..world.start.min(self.layout.first_tasks());
        let needs_marks = world.len() > MOST_POLLED || !before.is_empty();
        for segment in contexts.map(|context| self.of_context(context)) {
            for task in before.clone().chain(needs_marks.then_some(task)) {
                segment.task(task).bell.0.want_marks(); // D6 of `crate::adapters::local::doorbell`
            }
        }
    }

    /// Every task's block in this segment.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = &TaskBlock> {
        (0..self.layout.tasks()).map(|task| self.task(task))
    }

    /// The ring from `origin` to `target`.
    pub(crate) fn ring(&self, origin: usize, target: usize) -> Ring<'_> {
        let tasks = self.layout.tasks();
        assert!(origin < tasks && target < tasks, "tasks of a job are numbered below its size");
        Ring {
            slots: self
                .views(self.layout.slots_at(origin, target), self.layout.slots_of(origin, target)),
            indices: self.view(self.layout.indices_at(origin, target)),
            data_ring: self.views(
                self.layout.data_ring_at(origin, target),
                self.layout.data_ring_of(origin, target) / LINE,
            ),
        }
    }

    /// The memory of the recycled buffers that `one` and `other` pass to each other.
    pub(crate) fn recycled(&self, one: usize, other: usize) -> &[DataLine] {
        let tasks = self.layout.tasks();
        assert!(one < tasks && other < tasks, "tasks of a job are numbered below its size");
        if one == other {
            return &[];
        }
        let lines = self.layout.recycled_bytes(one, other) / LINE;
        self.views(self.layout.recycled_at(one, other), lines)
    }

    /// The words that `origin` uses to share a get with `target`.
    pub(crate) fn share(&self, origin: usize, target: usize) -> &Words {
        let tasks = self.layout.tasks();
        assert!(origin < tasks && target < tasks, "tasks of a job are numbered below its size");
        self.view(self.layout.share_at(origin, target))
    }

    /// The address of `len` bytes at `at`, for the kernel.
    pub(crate) fn pages(&self, at: usize, len: usize) -> NonNull<[u8]> {
        assert!(at + len <= self.layout.context_bytes(), "the layout names places of one context");
        // SAFETY: inside the context segment (S1).
        NonNull::slice_from_raw_parts(unsafe { self.base.add(at) }, len)
    }

    /// The shared area of `task` for this context (LY4).
    pub(crate) fn area(&self, task: usize) -> NonNull<[u8]> {
        assert!(task < self.layout.tasks(), "tasks of a job are numbered below its size");
        // SAFETY: inside the memory (S1, LY4).
        let start = unsafe { self.start.add(self.layout.area_at(self.context, task)) };
        NonNull::slice_from_raw_parts(start, self.layout.area_bytes(task))
    }

    /// A view of the bytes at `at`. Callers pass only places of the layout, with the types that are there.
    fn view<T>(&self, at: usize) -> &T {
        debug_assert!(at + size_of::<T>() <= self.layout.context_bytes());
        // SAFETY: S1 to S3.
        unsafe { self.base.add(at).cast().as_ref() }
    }

    /// Like [`Segment::view`], in the segment of context 0.
    fn of_first_context<T>(&self, at: usize) -> &T {
        debug_assert!(at + size_of::<T>() <= self.layout.context_bytes());
        // SAFETY: S1 to S3.
        unsafe { self.start.add(at).cast().as_ref() }
    }

    /// Like [`Segment::view`], for `len` values.
    fn views<T>(&self, at: usize, len: usize) -> &[T] {
        debug_assert!(at + len * size_of::<T>() <= self.layout.context_bytes());
        // SAFETY: S1 to S3.
        unsafe { std::slice::from_raw_parts(self.base.add(at).cast().as_ptr(), len) }
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        if self.process.is_fork() {
            return;
        }
        // SAFETY: `from_mapping` took over the mapping, in this process, and no view outlives its segment.
        let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "a mapping of our own can be unmapped");
    }
}
