//! Memory for messages: zeroed elements in a mapping of their own, on huge pages where the kernel offers them (MPI-4
//! section 9.2).
//!
//! A buffer of at least [`HUGE_FROM`] bytes begins on a huge page and takes whole ones. All of it is touched when it is
//! made, since the kernel chooses its pages then; so the first message is as fast as later ones. A guard page follows
//! the memory. It also keeps the kernel from joining the mappings of two buffers, since it reports the kind of pages
//! only for a whole mapping.
//!
//! - AB1: a [`Mapping`] covers address space that this module has mapped and nobody else uses, from its creation to its
//!   drop, which unmaps it.
//! - AB2: the elements of a [`Buffer`] lie aligned in the writable part of its mapping, or have no bytes. The kernel
//!   has zeroed them, and any bytes are a valid element. Only borrows of the buffer give access to them.

#![expect(unsafe_code, reason = "maps memory and lends it as slices")]

mod pages;

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};

use mpjdev::HugeRange;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};

pub use self::pages::Pages;
use crate::datatype::Datatype;
use crate::error::Error;

/// Length of a huge page. On machines with another length, buffers lie on ordinary pages.
const HUGE_PAGE: usize = 2 << 20;
/// Buffers of at least this many bytes take huge pages; shorter messages do not profit from them.
const HUGE_FROM: usize = 128 << 10;

/// Elements in memory that is fast for long messages. [`alloc_buffer`] makes it; dropping it frees the memory. It
/// dereferences to a slice, so any call that borrows its buffer takes it.
///
/// ```
/// let mut field = mpj::alloc_buffer::<f32>(3)?;
/// field[1] = 2.5;
/// assert_eq!(*field, [0.0, 2.5, 0.0]);
/// # Ok::<(), mpj::Error>(())
/// ```
#[doc(alias = "MPI_Free_mem")]
pub struct Buffer<T: Datatype> {
    start: NonNull<T>,
    len: usize,
    pages: Pages,
    /// The entry in the list of huge ranges. It is dropped before the memory.
    _huge: Option<HugeRange>,
    /// `None` if the buffer has no bytes.
    _memory: Option<Mapping>,
    elements: PhantomData<T>,
}

// SAFETY: AB2: a buffer owns its elements, as a `Vec` does, and those may change threads.
unsafe impl<T: Datatype> Send for Buffer<T> {}
// SAFETY: as above; a shared buffer only gives shared access to its elements.
unsafe impl<T: Datatype> Sync for Buffer<T> {}

/// Allocates memory for `len` zeroed elements (MPI_Alloc_mem), on huge pages where the kernel offers them.
///
/// Rendezvous reads huge pages several times faster than ordinary ones, so the backend `auto` sends long messages that
/// lie in such a buffer by rendezvous. A buffer of 128 KiB or more takes whole huge pages of 2 MiB: allocate one for a
/// few long messages, not many for short ones. The memory is taken at once, not when it is first used.
///
/// # Errors
/// [`Error::Buffer`] if there is too little memory.
///
/// ```
/// mpj::local::run(2, |world| {
///     let mut field = mpj::alloc_buffer::<f64>(100_000).unwrap();
///     if world.rank() == 0 {
///         field.fill(1.5);
///         world.send(&field, 1, 0).unwrap();
///     } else {
///         world.recv(&mut field, 0, 0).unwrap();
///         assert_eq!(field[99_999], 1.5);
///     }
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias = "MPI_Alloc_mem")]
pub fn alloc_buffer<T: Datatype>(len: usize) -> Result<Buffer<T>, Error> {
    let size = size_of::<T>();
    let bytes = len.checked_mul(size).filter(|&bytes| bytes <= isize::MAX as usize);
    let allocated = bytes.ok_or(Errno::NOMEM).and_then(|bytes| allocate(len, bytes));
    allocated.map_err(|errno| Error::Buffer { len, size, errno: errno.raw_os_error() })
}

fn allocate<T: Datatype>(len: usize, bytes: usize) -> rustix::io::Result<Buffer<T>> {
    if bytes == 0 {
        let (start, pages) = (NonNull::dangling(), Pages::Ordinary);
        return Ok(Buffer { start, len, pages, _huge: None, _memory: None, elements: PhantomData });
    }
    let page = rustix::param::page_size();
    let takes_huge = bytes >= HUGE_FROM;
    let unit = if takes_huge { HUGE_PAGE.max(page) } else { page };
    let room = bytes.checked_next_multiple_of(unit).ok_or(Errno::NOMEM)?;
    // If memory runs out while the pages are touched, the kernel ends the process.
    if pages::available().is_some_and(|available| room as u64 > available) {
        return Err(Errno::NOMEM);
    }
    let mut memory = Mapping::reserve(room, page, unit.max(align_of::<T>()))?;
    memory.open(room, takes_huge)?;
    memory.touch(room, page);
    let from = memory.start.addr().get() as u64;
    let range = from..from + room as u64;
    let pages = if takes_huge { pages::of(&range) } else { Pages::Ordinary };
    let huge = (pages == Pages::Huge).then(|| HugeRange::declare(range));
    let (start, memory) = (memory.start.cast(), Some(memory));
    Ok(Buffer { start, len, pages, _huge: huge, _memory: memory, elements: PhantomData })
}

impl<T: Datatype> Buffer<T> {
    /// Returns the kind of pages that the buffer lies on, as the kernel reported it when the buffer was made.
    ///
    /// ```
    /// use mpj::tuning::Pages;
    /// let short = mpj::alloc_buffer::<u8>(100)?;
    /// assert_eq!(short.pages(), Pages::Ordinary);
    /// # Ok::<(), mpj::Error>(())
    /// ```
    pub fn pages(&self) -> Pages {
        self.pages
    }
}

impl<T: Datatype> Deref for Buffer<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: AB2.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Datatype> DerefMut for Buffer<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: AB2; the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Datatype> fmt::Debug for Buffer<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = formatter.debug_struct("Buffer");
        buffer.field("len", &self.len).field("pages", &self.pages).finish_non_exhaustive()
    }
}

/// Address space of this process, unmapped when dropped (AB1).
struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

impl Mapping {
    /// Reserves aligned address space for `room` bytes and for the guard page after them. It must not be touched yet.
    fn reserve(room: usize, page: usize, align: usize) -> rustix::io::Result<Self> {
        let kept = room.checked_add(page).ok_or(Errno::NOMEM)?;
        let len = kept.checked_add(align - page).ok_or(Errno::NOMEM)?;
        let flags = MapFlags::PRIVATE;
        // SAFETY: the kernel chooses the address, so no mapping is replaced.
        let base =
            unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), len, ProtFlags::empty(), flags) };
        let base: *mut u8 = base?.cast();
        let before = base.addr().next_multiple_of(align) - base.addr();
        let start = base.wrapping_add(before);
        unmap(base, before);
        unmap(start.wrapping_add(kept), len - before - kept);
        let start = NonNull::new(start).ok_or(Errno::NOMEM)?;
        Ok(Self { start, len: kept })
    }

    /// Makes the first `room` bytes readable and writable.
    fn open(&mut self, room: usize, is_huge: bool) -> rustix::io::Result<()> {
        let (start, flags) = (self.start(), MprotectFlags::READ | MprotectFlags::WRITE);
        // SAFETY: AB1; nobody has borrowed any of it yet.
        unsafe { rustix::mm::mprotect(start, room, flags) }?;
        if is_huge {
            // SAFETY: as above; the advice changes no contents. A kernel without huge pages refuses it and gives
            // ordinary ones.
            let _ = unsafe { rustix::mm::madvise(start, room, Advice::LinuxHugepage) };
        }
        Ok(())
    }

    /// Makes the kernel provide every page of the first `room` bytes, which are open.
    fn touch(&mut self, room: usize, page: usize) {
        for offset in (0..room).step_by(page) {
            // SAFETY: AB1, and the bytes are open; they are zero and stay so.
            unsafe { self.start.add(offset).write_volatile(0) };
        }
    }

    fn start(&self) -> *mut c_void {
        self.start.as_ptr().cast()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        unmap(self.start.as_ptr(), self.len);
    }
}

/// Unmaps address space of a [`Mapping`] that is not used any more. If the kernel has no memory to do so, the address
/// space stays taken.
fn unmap(start: *mut u8, len: usize) {
    if len > 0 {
        // SAFETY: AB1: the space belongs to this module, and every borrow of it has ended.
        let _ = unsafe { rustix::mm::munmap(start.cast(), len) };
    }
}
