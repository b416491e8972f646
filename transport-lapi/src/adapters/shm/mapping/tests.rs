//! Segments that are not, or are no longer, what the launcher made.

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
    match map(fd, two()) {
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
        let segment = map(&fd, layout).unwrap();
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
        let segment = map(&roomy, layout).unwrap();
        let before = taken(&roomy);
        populate(&segment, most - 1, 0..1);
        assert_eq!(taken(&roomy), before);
    }
    assert_eq!(room_for(5000, 7, 1), MAX_PLACES_PER_HOST);
    assert_eq!(room_for(5, 5000, 1), 5000, "an error when the segment is made");
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
    map(forged(&good, two().bytes(), SealFlags::SHRINK), two()).unwrap();
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
