//! Segments that are not, or are no longer, what the launcher made.

use std::sync::atomic::Ordering;

use super::*;

/// A memfd of `len` bytes that starts with `facts` and has `seals`.
fn forged(facts: &[u8], len: usize, seals: SealFlags) -> OwnedFd {
    let fd = rustix::fs::memfd_create(c"forged", MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::fs::ftruncate(&fd, len as u64).unwrap();
    if !facts.is_empty() {
        rustix::io::pwrite(&fd, facts, 0).unwrap();
    }
    rustix::fs::fcntl_add_seals(&fd, seals).unwrap();
    fd
}

/// Why `fd` is refused as the segment of a job of two tasks.
fn refusal(fd: &OwnedFd) -> String {
    match map(fd, two(), false) {
        Err(AdapterError::BadSegment { what }) => what,
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("accepted"),
    }
}

fn two() -> Layout {
    Layout::new(2, 1).unwrap().with_spare(SPARE_CONTEXTS)
}

#[test]
fn maps_what_it_made() {
    for tasks in [1, 2, 5, 30] {
        let layout = Layout::new(tasks, 1).unwrap().with_spare(SPARE_CONTEXTS);
        let fd = create_segment("test", tasks, 1).unwrap();
        assert_eq!(rustix::fs::fstat(&fd).unwrap().st_size, layout.bytes() as i64);
        let segment = map(&fd, layout, false).unwrap();
        populate(&segment, tasks - 1, 0..1);
        assert_eq!(segment.tasks().count(), tasks);
    }
}

/// The memory that is taken at the start is that of a job that has no room.
#[test]
fn a_room_takes_no_memory() {
    let taken = |fd: &OwnedFd| rustix::fs::fstat(fd).unwrap().st_blocks;
    for (tasks, contexts) in [(1, 1), (2, 2), (30, 1)] {
        let alone = create_segment("test", tasks, contexts).unwrap();
        let most = room_for(128, tasks, contexts);
        assert_eq!(most, tasks + 128);
        let roomy = create_segment_with_room("test", tasks, most, contexts).unwrap();
        // The parts of further contexts begin inside of pages.
        assert!(taken(&roomy) - taken(&alone) <= 8 * contexts as i64, "{tasks} {contexts}");
        let layout = Layout::with_room(tasks, most, contexts).unwrap().with_spare(SPARE_CONTEXTS);
        let segment = map(&roomy, layout, false).unwrap();
        let before = taken(&roomy);
        populate(&segment, most - 1, 0..1);
        assert_eq!(taken(&roomy), before);
    }
    assert_eq!(room_for(5000, 7, 1), MAX_PLACES_PER_HOST);
    assert_eq!(room_for(5, 5000, 1), 5000, "an error when the segment is made");
}

/// Of the mappings of the segment called `name`, those with these permissions: how many bytes they have.
fn mapped(name: &str, permissions: &str) -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let ours = maps.lines().filter(|line| line.contains(name) && line.contains(permissions));
    let len = |line: &str| {
        let (range, _) = line.split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        usize::from_str_radix(end, 16).unwrap() - usize::from_str_radix(start, 16).unwrap()
    };
    ours.map(len).sum()
}

#[test]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn a_first_task_does_not_say_that_it_reads_the_room() {
    let fd = create_segment_with_room("withheld", 2, 10, 1).unwrap();
    let name = "mpj-job-withheld";
    let first = World { task: 0, tasks: 0..2, universe: 10, parent: None };
    let segment = map_as_task(&fd, &first, 1).unwrap();
    let room: usize = rooms(segment.layout()).map(|room| room.len()).sum();
    let page = rustix::param::page_size();
    let withheld = mapped(name, " -w-s ");
    assert!(room > 0 && withheld.abs_diff(room) < page * (segment.layout().contexts() + 1));
    assert_eq!(mapped(name, " rw-s ") + withheld, segment.layout().bytes().next_multiple_of(page));
    // It can be read nevertheless.
    let word = &segment.wireup(9).world[0];
    word.store(7, Ordering::Relaxed);
    assert_eq!(word.load(Ordering::Relaxed), 7);
    drop(segment);
    let later = World { task: 2, tasks: 2..3, universe: 10, parent: Some(0) };
    let segment = map_as_task(&fd, &later, 1).unwrap();
    assert_eq!(
        (mapped(name, " -w-s "), segment.wireup(9).world[0].load(Ordering::Relaxed)),
        (0, 7)
    );
}

#[test]
fn what_it_made_can_neither_shrink_nor_grow() {
    let fd = create_segment("test", 1, 1).unwrap();
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    assert!(rustix::fs::fcntl_get_seals(&fd).unwrap().contains(seals));
    for bytes in [0, 1 << 30] {
        assert_eq!(rustix::fs::ftruncate(&fd, bytes), Err(Errno::PERM));
    }
    assert_eq!(rustix::fs::fcntl_add_seals(&fd, SealFlags::WRITE), Err(Errno::PERM));
    let flags = rustix::io::fcntl_getfd(&fd).unwrap();
    assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
}

#[test]
fn refuses_each_damaged_fact() {
    let good = header::encode(&two());
    for at in (0..FACTS_BYTES).step_by(8) {
        let mut facts = good;
        facts[at] ^= 1;
        let refused = refusal(&forged(&facts, two().bytes(), SealFlags::SHRINK));
        assert!(refused.contains("should be"), "{refused}");
    }
    map(forged(&good, two().bytes(), SealFlags::SHRINK), two(), false).unwrap();
}

#[test]
fn refuses_a_segment_of_another_length() {
    for len in [two().bytes() - 1, two().bytes() + 4096] {
        let refused = refusal(&forged(&header::encode(&two()), len, SealFlags::SHRINK));
        assert_eq!(refused, format!("it holds {len} bytes and should hold {}", two().bytes()));
    }
    let refused = refusal(&forged(&[], FACTS_BYTES - 1, SealFlags::SHRINK));
    assert_eq!(refused, "it holds only 63 bytes");
}

/// Also with the right length: it may change before the segment is mapped.
#[test]
fn refuses_a_segment_that_could_shrink() {
    for len in [two().bytes(), two().bytes() + 4096] {
        let refused = refusal(&forged(&header::encode(&two()), len, SealFlags::GROW));
        assert_eq!(refused, "it is not sealed against shrinking");
    }
}

#[test]
fn refuses_what_is_no_memory_file() {
    let null = OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
    assert_eq!(refusal(&null), "it holds only 0 bytes");
    let (pipe, _other) = rustix::pipe::pipe().unwrap();
    assert!(refusal(&pipe).starts_with("it cannot be read: "));
}

#[test]
fn the_size_that_was_wanted_is_named() {
    let error = system_sized("map the job segment", 4096, Errno::NOMEM).to_string();
    assert!(
        error.contains("cannot map the job segment: 4096 bytes wanted, available: "),
        "{error}"
    );
}
