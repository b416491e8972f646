//! Making, checking and mapping the memfd of a job. Called by the launcher and by
//! [`super::ShmAdapter::attach`].
//!
//! - MM1: a segment is mapped only if it is as long as its layout and sealed against shrinking, so no access inside the
//!   layout can go past the end of the file.
//! - MM2: a fork does not get the mapping: it would take its parent's frames, and overwrite others. The range may be
//!   used for something else in the fork, so nothing there is accessed or unmapped ([`crate::platform::fork`]).

#![expect(unsafe_code, reason = "mapping a file and populating the mapping")]

use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::Advice;

use crate::adapter::AdapterError;
use crate::adapters::local::header::{self, FACTS_BYTES};
use crate::adapters::local::layout::{Layout, MAX_PLACES_PER_HOST, SLOT_BYTES, SPARE_CONTEXTS};
use crate::adapters::local::segment::Segment;
use crate::adapters::shm::memory;
use crate::adapters::shm::world::World;
use crate::platform::shared;

/// What the first tasks of a job use of its segment gets its memory at the start if it is up to this size, that of eight
/// tasks with one context. So a lack of memory is an error and not a signal later, and no message meets a page fault. In
/// larger jobs not all pairs communicate: theirs get memory when they are touched, as do those of tasks that are started
/// later.
const RESERVED_UP_TO: usize = 22 << 20;

/// Whether memory that can be written can also be read on this processor.
const WRITABLE_IS_READABLE: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// Prefix of the names of all job segments; the name of the job follows.
const SEGMENT_NAME: &str = "mpj-job-";

/// Makes the memory of the job called `job`, of `num_tasks` tasks with `contexts` contexts each, and
/// [`SPARE_CONTEXTS`] for further clients if limits permit: a memfd that can neither shrink nor grow. The descriptor is
/// close-on-exec; whoever starts the tasks passes it on. The name is visible only in `/proc`, after `mpj-job-`.
///
/// # Errors
/// [`AdapterError::HostTaskCount`], [`AdapterError::ContextCount`], or [`AdapterError::System`] if the memory is not
/// available.
pub fn create_segment(
    job: &str,
    num_tasks: usize,
    contexts: usize,
) -> Result<OwnedFd, AdapterError> {
    create_segment_with_room(job, num_tasks, num_tasks, contexts)
}

/// [`create_segment`] for a job that starts with `num_tasks` tasks and can have `most` in all, which is at least as many.
///
/// # Errors
/// As there.
pub fn create_segment_with_room(
    job: &str,
    num_tasks: usize,
    most: usize,
    contexts: usize,
) -> Result<OwnedFd, AdapterError> {
    let asked = Layout::with_room(num_tasks, most, contexts)?;
    let ample = asked.with_spare(SPARE_CONTEXTS);
    let layout = if memory::is_ample_for(ample.bytes() as u64) { ample } else { asked };
    let bytes = layout.bytes() as u64;
    let fd = rustix::fs::memfd_create(
        format!("{SEGMENT_NAME}{job}"),
        MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING,
    )
    .map_err(|errno| AdapterError::system("make the job segment", errno))?;
    if memory::file_limit().is_some_and(|most| most < bytes) {
        // The kernel would end the process (SIGXFSZ).
        return Err(system_sized("give the job segment its size", bytes, Errno::FBIG));
    }
    rustix::fs::ftruncate(&fd, bytes)
        .map_err(|errno| system_sized("give the job segment its size", bytes, errno))?;
    let bytes = layout.first_bytes();
    if contexts * bytes <= RESERVED_UP_TO {
        for context in 0..contexts {
            let (at, bytes) = (layout.context_at(context) as u64, bytes as u64);
            rustix::fs::fallocate(&fd, FallocateFlags::empty(), at, bytes).map_err(|errno| {
                system_sized("reserve memory for the job segment", bytes, errno)
            })?;
        }
    }
    write_facts(&fd, &layout)
        .map_err(|errno| AdapterError::system("write to the job segment", errno))?;
    rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
        .map_err(|errno| AdapterError::system("seal the job segment", errno))?;
    Ok(fd)
}

/// Returns how many tasks a job can have in all that starts with `num_tasks` tasks of `contexts` contexts each, if `more`
/// others are to find room: fewer if a host has no places for so many, or if the limit on files is low, and none if the
/// address space is limited: a job that needs no room is to start nevertheless, and its program to have these addresses.
pub fn room_for(more: usize, num_tasks: usize, contexts: usize) -> usize {
    if memory::limits_addresses() {
        return num_tasks;
    }
    let most = |more| num_tasks.saturating_add(more).min(MAX_PLACES_PER_HOST);
    let fits = |most: &usize| {
        let layout = Layout::with_room(num_tasks, *most, contexts);
        let bytes = layout.map(|layout| layout.with_spare(SPARE_CONTEXTS).bytes() as u64);
        bytes.is_ok_and(memory::is_ample_for)
    };
    (0..6).map(|halved| most(more >> halved)).find(fits).unwrap_or(num_tasks)
}

fn write_facts(fd: &OwnedFd, layout: &Layout) -> rustix::io::Result<()> {
    let facts = header::encode(layout);
    let written = rustix::io::pwrite(fd, &facts, 0)?;
    if written == facts.len() { Ok(()) } else { Err(Errno::NOSPC) }
}

/// Maps the segment behind `fd`, for any number of tasks and contexts.
pub(crate) fn open_segment(fd: impl AsFd) -> Result<Segment, AdapterError> {
    let (first, tasks, contexts) = header::claimed_endpoints(&read_facts(&fd)?);
    let what = || format!("it claims to be for {tasks} ranks with {contexts} contexts each");
    let layout = Layout::of_segment(first, tasks, contexts).map_err(|_| bad(what()))?;
    map(fd, layout, false)
}

/// Maps the segment behind `fd` for a task of `world`, of so many `contexts`, with the spare contexts that it has.
pub(super) fn map_as_task(
    fd: impl AsFd,
    world: &World,
    contexts: usize,
) -> Result<Segment, AdapterError> {
    let (first, _, claimed) = header::claimed_endpoints(&read_facts(&fd)?);
    let first = match world.parent {
        None => world.tasks.len(),
        // The later worlds do not know it otherwise.
        Some(_) => first.clamp(1, world.tasks.start as usize),
    };
    let layout = Layout::with_room(first, world.universe, contexts)?;
    let has_spare = claimed == contexts + SPARE_CONTEXTS;
    let layout = layout.with_spare(if has_spare { SPARE_CONTEXTS } else { 0 });
    map(fd, layout, WRITABLE_IS_READABLE && world.parent.is_none())
}

/// Checks that `fd` is a segment of `layout`, and maps it.
///
/// For a task that starts with the job, the room of later ones `is_for_writing` only, which does not keep it from reading
/// there ([`WRITABLE_IS_READABLE`]). Tools that search all memory which a program says it reads would take gigabytes for
/// pages that nobody has touched, as Valgrind does when it looks for leaks.
fn map(fd: impl AsFd, layout: Layout, is_for_writing: bool) -> Result<Segment, AdapterError> {
    check(&fd, &layout)?;
    let failed = |errno| system_sized("map the job segment", layout.bytes() as u64, errno);
    let base = shared::map(&fd, layout.bytes()).map_err(failed)?;
    for room in rooms(&layout) {
        if is_for_writing {
            // SAFETY: the mapping is new, and has these pages.
            unsafe { shared::map_for_writing(&fd, base, room.clone()) }.map_err(failed)?;
        }
        // A place that is taken later is to take pages of the usual size only.
        // SAFETY: the advice changes no byte of the mapping. A refusal is harmless.
        let _ = unsafe {
            let start = base.as_ptr().wrapping_add(room.start).cast();
            rustix::mm::madvise(start, room.len(), Advice::LinuxNoHugepage)
        };
    }
    // To dump a page that nobody has touched, the kernel would take memory for it, and the segment is large.
    // SAFETY: as above.
    let _ =
        unsafe { rustix::mm::madvise(base.as_ptr().cast(), layout.bytes(), Advice::LinuxDontDump) };
    // SAFETY: S1 of `crate::adapters::local::segment`: the mapping is new, readable, writable, as long as the layout
    // (MM1), aligned to a page, and used by nobody else.
    Ok(unsafe { Segment::from_mapping(base, layout) })
}

/// Returns the pages that only tasks use which are started later, and those that talk to them.
fn rooms(layout: &Layout) -> impl Iterator<Item = Range<usize>> {
    let (layout, page) = (*layout, rustix::param::page_size());
    let contexts = (0..layout.contexts()).map(move |context| {
        layout.context_at(context) + layout.first_bytes()..layout.context_at(context + 1)
    });
    let areas = layout.first_areas_end()..layout.bytes();
    let parts = contexts.chain(std::iter::once(areas));
    let pages = parts.map(move |part| part.start.next_multiple_of(page)..part.end / page * page);
    pages.filter(|pages| !pages.is_empty())
}

fn bad(what: String) -> AdapterError {
    AdapterError::BadSegment { what }
}

fn read_facts(fd: impl AsFd) -> Result<[u8; FACTS_BYTES], AdapterError> {
    let mut facts = [0; FACTS_BYTES];
    match rustix::io::pread(&fd, &mut facts, 0) {
        Ok(read) if read == facts.len() => Ok(facts),
        Ok(read) => Err(bad(format!("it holds only {read} bytes"))),
        Err(errno) => Err(bad(format!("it cannot be read: {errno}"))),
    }
}

/// Checks the facts at the start, then MM1: the seal before the size, which cannot shrink afterwards.
fn check(fd: impl AsFd, layout: &Layout) -> Result<(), AdapterError> {
    header::check(&read_facts(&fd)?, layout)?;
    let seals = rustix::fs::fcntl_get_seals(&fd)
        .map_err(|errno| bad(format!("it has no seals: {errno}")))?;
    if !seals.contains(SealFlags::SHRINK) {
        return Err(bad("it is not sealed against shrinking".to_owned()));
    }
    let stat =
        rustix::fs::fstat(&fd).map_err(|errno| bad(format!("it cannot be read: {errno}")))?;
    if u64::try_from(stat.st_size) != Ok(layout.bytes() as u64) {
        let (found, expected) = (stat.st_size, layout.bytes());
        return Err(bad(format!("it holds {found} bytes and should hold {expected}")));
    }
    Ok(())
}

/// Enters the parts of these contexts that `task`, one of the first ones, uses for these into its page table, so that the
/// first messages cause no page faults. Skipped if they are large; kernels before 5.14 refuse it.
pub(super) fn populate(segment: &Segment, task: usize, contexts: Range<usize>) {
    let layout = segment.layout();
    let is_first = task < layout.first_tasks();
    if is_first && contexts.len() * layout.first_bytes() <= RESERVED_UP_TO {
        contexts.for_each(|context| populate_context(&segment.of_context(context), task));
    }
}

fn populate_context(segment: &Segment, task: usize) {
    let layout = segment.layout();
    let tasks = layout.first_tasks();
    let (slots, data_ring) = (layout.slots() * SLOT_BYTES, layout.data_ring());
    advise(segment, 0, layout.slots_at(0, 0));
    advise(segment, layout.slots_at(0, task), tasks * slots);
    advise(segment, layout.data_ring_at(0, task), tasks * data_ring);
    for target in 0..tasks {
        advise(segment, layout.slots_at(task, target), slots);
        advise(segment, layout.data_ring_at(task, target), data_ring);
        if target != task {
            advise(segment, layout.recycled_at(task, target), layout.recycled_bytes(task, target));
        }
    }
}

/// Populates whole pages; the first one may begin in the segment of the context before.
fn advise(segment: &Segment, at: usize, len: usize) {
    let place = segment.pages(at, len);
    let before = place.cast::<u8>().addr().get() % rustix::param::page_size();
    let page = place.cast::<u8>().as_ptr().wrapping_sub(before);
    // SAFETY: populating changes no byte of the mapping. A refusal only costs page faults later.
    let _ = unsafe { rustix::mm::madvise(page.cast(), len + before, Advice::LinuxPopulateWrite) };
}

/// Like [`AdapterError::system`], with the size that was wanted and what is available.
fn system_sized(action: &'static str, bytes: u64, errno: Errno) -> AdapterError {
    let cause = std::io::Error::from(errno);
    let source = std::io::Error::new(cause.kind(), memory::shortage(bytes, &cause.to_string()));
    AdapterError::System { action, source }
}

#[cfg(test)]
mod tests;
