//! What is recorded is read again; and whatever is in the memory, reading it does not fail.

use std::os::fd::OwnedFd;
use std::panic::Location;
use std::sync::Barrier;
use std::thread;

use proptest::prelude::*;

use super::*;

/// Records in a thread of its own, since each thread records in one memory.
fn record(memory: &OwnedFd, calls: impl FnOnce(&Recorder) + Send) {
    let recorder = Recorder::over(mapping::map(memory).expect("memory"), lanes::Lanes::OWN);
    thread::scope(|scope| scope.spawn(|| calls(&recorder)).join().expect("it records"));
}

fn newest() -> OwnedFd {
    create(Keep::Calls { memory: LEAST, newest: true, details: false }, Clock::System)
        .expect("memory")
}

fn memory() -> OwnedFd {
    create(Keep::LEAST, Clock::System).expect("memory")
}

/// Records so many calls, whose bytes are numbers from 0.
fn sends(recorder: &Recorder, count: u64) {
    for number in 0..count {
        let entry = recorder.begin(0, Kind::Send).expect("there is room");
        entry.bytes(number);
        entry.end();
    }
}

/// A program's own operation that runs in a call may make others.
#[test]
fn a_thread_is_in_the_call_that_it_entered_last() {
    let memory = newest();
    record(&memory, |recorder| {
        let starts = || recorder.current().map(|call| call.at);
        assert_eq!(starts(), None);
        let (outside, outer) = recorder.enter(0, Kind::Collective).expect("there is room");
        recorder.part(Kind::Levels, outside).expect("there is room");
        let (inside, inner) = recorder.enter(0, Kind::Send).expect("there is room");
        assert_eq!(starts(), Some(inside.at));
        inside.end();
        recorder.leave(inner);
        assert_eq!(starts(), Some(outside.at));
        // More than a block has room for.
        (0..2 * BLOCK / RECORD).for_each(|_| sends(recorder, 1));
        assert_eq!(starts(), Some(outside.at));
        outside.end();
        recorder.leave(outer);
        assert_eq!(starts(), None);
    });
}

#[test]
fn what_is_recorded_is_read() {
    let memory = memory();
    let here = Location::caller();
    record(&memory, |recorder| {
        let send = recorder.begin(recorder.text("send"), Kind::Send).expect("there is room");
        send.communicator(3);
        send.peer(Some(7), Some(-5));
        send.bytes(1 << 40);
        send.at(recorder.place(here));
        send.end();
        let open = recorder.begin(recorder.text_once("recv"), Kind::Other).expect("there is room");
        open.kind(Kind::Receive);
        open.peer(None, Some(1));
        open.peer(Some(2), None);
        open.request(9);
        let part = recorder.part(Kind::Ended, open).expect("there is room");
        part.cancelled();
        let forgotten = recorder.begin(0, Kind::Probe).expect("there is room");
        recorder.forget(forgotten);
        let exchange = recorder.begin(0, Kind::Exchange).expect("there is room");
        exchange.peer(Some(1), Some(2));
        exchange.received(u32::MAX, -3, 4);
    });
    record(&memory, |recorder| {
        let barrier = recorder.begin(recorder.text("barrier"), Kind::Collective).expect("room");
        barrier.sequence(0);
        barrier.name(recorder.text("é".repeat(LONGEST_TEXT).as_str()));
    });
    let looks = [(5, 1 << 20), (9, 0)];
    note_footprint(&memory, &looks).expect("it is long enough");
    let Recorded { threads, lost: 0, footprint } =
        read(&memory, Clock::System).expect("it is such memory")
    else {
        panic!("calls were lost")
    };
    assert_eq!(footprint, looks);
    let [first, second] = &threads[..] else { panic!("two threads: {threads:?}") };
    let [send, open, part, exchange] = &first.records[..] else { panic!("four: {first:?}") };
    assert_eq!((&*send.name, send.kind, send.communicator), ("send", Kind::Send, Some(3)));
    assert_eq!((send.peer, send.tag, send.bytes), (Some(7), Some(-5), 1 << 40));
    assert_eq!(send.place.as_deref(), Some(&*format!("{}:{}", here.file(), here.line())));
    assert!(send.end.is_some_and(|end| end >= send.start));
    assert_eq!((&*open.name, open.kind, open.end), ("recv", Kind::Receive, None));
    assert_eq!((open.peer, open.tag, open.request, open.sequence), (Some(2), None, 9, None));
    assert_eq!((part.sequence, part.is_cancelled), (Some(open.number), true));
    assert_eq!((part.start, open.received), (open.start, None));
    let received = Received { source: u32::MAX, tag: -3, bytes: 4 };
    assert_eq!((exchange.received, exchange.request), (Some(received), 0));
    assert_eq!((exchange.peer, exchange.tag, exchange.sequence), (Some(1), Some(2), None));
    assert!(second.records[0].name.len() <= LONGEST_TEXT);
    assert_eq!((second.records[0].sequence, second.lost), (Some(0), 0));
    assert_eq!(read(&memory, Clock::Counter), None, "the times are of another clock");
}

#[test]
fn what_finds_no_memory_is_counted() {
    let memory = memory();
    let room = (LEAST as usize - BLOCKS) / BLOCK * (BLOCK / RECORD - 1);
    record(&memory, |recorder| {
        (0..room + 5).for_each(|number| {
            let entry = recorder.begin(0, Kind::Send);
            assert_eq!(entry.is_some(), number < room);
            entry.into_iter().for_each(|entry| entry.bytes(number as u64));
        });
    });
    record(&memory, |recorder| assert!(recorder.begin(0, Kind::Send).is_none()));
    let recorded = read(&memory, Clock::System).expect("it is such memory");
    assert_eq!((recorded.threads.len(), recorded.lost), (1, 1));
    assert_eq!((recorded.threads[0].records.len(), recorded.threads[0].lost), (room, 5));
    let bytes = recorded.threads[0].records.iter().map(|record| record.bytes);
    assert!(bytes.eq(0..room as u64), "in the order in which they were made");
}

/// A copy of the parts that are used, as [`used`] says.
fn copied(memory: &OwnedFd) -> OwnedFd {
    let copy = create(Keep::LEAST, Clock::System).expect("memory");
    for part in used(memory).expect("it is such memory") {
        let mut bytes = vec![0; (part.end - part.start) as usize];
        assert_eq!(rustix::io::pread(memory, &mut bytes, part.start), Ok(bytes.len()));
        assert_eq!(rustix::io::pwrite(&copy, &bytes, part.start), Ok(bytes.len()));
    }
    copy
}

#[test]
fn the_parts_that_are_used_are_all_that_was_recorded() {
    let memory = memory();
    assert_eq!(read(copied(&memory), Clock::System), read(&memory, Clock::System));
    record(&memory, |recorder| {
        for number in 0..BLOCK / RECORD {
            let entry = recorder.begin(recorder.text("a longer name"), Kind::Send);
            entry.expect("there is room").bytes(number as u64);
        }
    });
    // More than there is room for.
    let looks: Vec<_> = (1..300).map(|at| (at, at)).collect();
    note_footprint(&memory, &looks).expect("it is long enough");
    let recorded = read(&memory, Clock::System).expect("it is such memory");
    assert_eq!(recorded.footprint, looks[..MOST_LOOKS]);
    assert_eq!(recorded.threads[0].records.len(), BLOCK / RECORD);
    assert_eq!(read(copied(&memory), Clock::System), Some(recorded));
    let blocks = used(&memory).expect("it is such memory")[2].clone();
    assert_eq!(blocks, BLOCKS as u64..(BLOCKS + 2 * BLOCK) as u64);
    let null = std::fs::File::open("/dev/null").expect("it is there");
    assert_eq!(used(&null), None);
}

#[test]
fn a_ring_keeps_the_last_calls_of_each_thread() {
    let memory = create(Keep::LastCalls, Clock::System).expect("memory");
    let room = (SMALL_BLOCK / RECORD - 1) as u64;
    for count in [3, room, room + 1, 7 * room + 5] {
        record(&memory, |recorder| {
            assert!(recorder.keeps_last_calls());
            sends(recorder, count);
            let open = recorder.begin(0, Kind::Receive).expect("there is room");
            open.peer(Some(1), None);
        });
    }
    let recorded = read(&memory, Clock::System).expect("it is such memory");
    assert_eq!((recorded.threads.len(), recorded.lost), (4, 0));
    for (mut thread, count) in recorded.threads.into_iter().zip([3, room, room + 1, 7 * room + 5]) {
        // The clock may show the same time twice; the open call has no bytes.
        thread.records.sort_by_key(|record| (record.end.is_none(), record.bytes));
        let open = thread.records.pop().expect("there is one");
        assert_eq!((open.kind, open.end, open.peer), (Kind::Receive, None, Some(1)));
        let bytes: Vec<u64> = thread.records.iter().map(|record| record.bytes).collect();
        assert_eq!(bytes, (count.saturating_sub(room - 1)..count).collect::<Vec<_>>());
        assert!(thread.records.iter().all(|record| (record.peer, record.request) == (None, 0)));
    }
}

#[test]
fn a_ring_whose_thread_has_ended_is_taken_again() {
    let memory = create(Keep::LastCalls, Clock::System).expect("memory");
    let rings = (LEAST as usize - BLOCKS) / SMALL_BLOCK;
    let (begun, ended) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            record(&memory, |recorder| {
                sends(recorder, 1);
                begun.wait();
                ended.wait();
                sends(recorder, 1);
            });
        });
        begun.wait();
        (0..rings + 3).for_each(|_| record(&memory, |recorder| sends(recorder, 2)));
        ended.wait();
    });
    let recorded = read(&memory, Clock::System).expect("it is such memory");
    assert_eq!((recorded.threads.len(), recorded.lost), (rings, 0));
    assert!(recorded.threads.iter().all(|thread| thread.records.len() == 2), "one each");
}

/// How many records a thread keeps that has been alone with a memory of the newest ones: those of all blocks but an eighth.
fn room_alone() -> u64 {
    let blocks = (LEAST as usize - BLOCKS) / BLOCK;
    ((blocks - blocks / 8) * (BLOCK / RECORD - 1)) as u64
}

#[test]
fn the_newest_records_are_kept_and_what_goes_on() {
    let (memory, room) = (newest(), room_alone());
    for count in [3, room, 3 * room + 5] {
        let memory = newest();
        record(&memory, |recorder| sends(recorder, count));
        let recorded = read(copied(&memory), Clock::System).expect("it is such memory");
        let thread = &recorded.threads[0];
        let lost = count.saturating_sub(room);
        assert_eq!((thread.overwritten, thread.lost, recorded.lost), (lost, 0, 0));
        let mut bytes: Vec<u64> = thread.records.iter().map(|record| record.bytes).collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (lost..count).collect::<Vec<_>>());
        let oldest = thread.records.iter().map(|record| record.start).min();
        assert!(thread.overwritten_until <= oldest.expect("there are records"));
    }
    record(&memory, |recorder| {
        sends(recorder, 300);
        let span = recorder.begin(recorder.text("span"), Kind::Span).expect("there is room");
        sends(recorder, 2 * room);
        span.end();
        sends(recorder, room - 1);
    });
    let recorded = read(&memory, Clock::System).expect("it is such memory");
    let thread = &recorded.threads[0];
    assert_eq!(thread.overwritten, 300 + 1 + 2 * room + room - 1 - room);
    let span = thread.records.iter().find(|record| record.kind == Kind::Span);
    assert!(span.is_none(), "it has ended, and was overwritten when it was the oldest: {span:?}");
    let ends: Vec<_> =
        thread.records.iter().map(|record| record.end.map(|end| end >= record.start)).collect();
    assert!(ends.iter().all(|end| *end == Some(true)));
}

#[test]
fn what_goes_on_is_not_overwritten() {
    let (memory, room) = (newest(), room_alone());
    record(&memory, |recorder| {
        sends(recorder, 3);
        let open: Vec<_> =
            (0..200).map(|_| recorder.begin(0, Kind::Receive).expect("there is room")).collect();
        sends(recorder, 2 * room);
        for (number, entry) in open.into_iter().enumerate() {
            entry.peer(Some(number as u32), None);
            entry.end();
        }
    });
    let recorded = read(&memory, Clock::System).expect("it is such memory");
    let records = &recorded.threads[0].records;
    assert_eq!(records.len() as u64, room);
    let kept = records.iter().filter(|record| record.kind == Kind::Receive);
    assert!(kept.map(|record| record.peer).eq((0..200).map(Some)));
    let sends = records.iter().filter(|record| record.kind == Kind::Send);
    let mut bytes: Vec<u64> = sends.map(|record| record.bytes).collect();
    bytes.sort_unstable();
    assert_eq!(bytes, (2 * room - (room - 200)..2 * room).collect::<Vec<_>>());
}

#[test]
fn later_threads_find_room_among_the_newest() {
    let (memory, room) = (newest(), room_alone());
    record(&memory, |recorder| sends(recorder, 2 * room));
    let (blocks, block) = ((LEAST as usize - BLOCKS) / BLOCK, (BLOCK / RECORD - 1) as u64);
    let barrier = Barrier::new(blocks / 8);
    thread::scope(|scope| {
        for _ in 0..blocks / 8 {
            scope.spawn(|| {
                record(&memory, |recorder| {
                    sends(recorder, 1000);
                    barrier.wait();
                });
            });
        }
    });
    let recorded = read(&memory, Clock::System).expect("it is such memory");
    assert_eq!((recorded.threads.len(), recorded.lost), (1 + blocks / 8, 0));
    for thread in &recorded.threads[1..] {
        assert_eq!((thread.records.len() as u64, thread.overwritten), (block, 1000 - block));
    }
    // One more takes a block of one that has ended.
    record(&memory, |recorder| sends(recorder, 1));
    let recorded = read(&memory, Clock::System).expect("it is such memory");
    assert_eq!(recorded.lost, 0);
    assert!(recorded.threads.iter().any(|thread| thread.records.len() == 1));
}

#[test]
fn texts_without_memory_have_no_number() {
    let memory = memory();
    record(&memory, |recorder| {
        let numbers: Vec<u32> = (0..BLOCKS).map(|_| recorder.text("some words")).collect();
        assert!(numbers[0] > 0 && numbers.last() == Some(&0));
    });
}

#[test]
fn only_sealed_memory_of_records_is_taken() {
    let plain = rustix::fs::memfd_create("plain", MemfdFlags::CLOEXEC).expect("memory");
    assert!(mapping::map(&plain).is_err() && read(&plain, Clock::System).is_none());
    let null = std::fs::File::open("/dev/null").expect("it is there");
    let number = std::os::fd::AsRawFd::as_raw_fd(&null);
    assert!(mapping::take(number).is_none() && mapping::take(1_000_000).is_none());
    assert!(rustix::io::fcntl_getfd(&null).is_ok(), "it stays open");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_content_is_read(
        words in prop::collection::vec((0_u64..3 << 15, prop_oneof![
            any::<u64>(),
            0_u64..64,
            (0_u64..16).prop_map(|kind| kind << 32 | 0x1F << 40),
        ]), 0..400),
        is_newest: bool,
    ) {
        let memory = if is_newest { newest() } else { memory() };
        record(&memory, |recorder| {
            for number in 0..300 {
                let entry = recorder.begin(recorder.text("a name"), Kind::Send);
                entry.expect("there is room").bytes(number);
            }
        });
        for (at, word) in words {
            // The facts at the beginning stay, so that it is read.
            let written = rustix::io::pwrite(&memory, &word.to_le_bytes(), 16 + at * 8);
            prop_assert_eq!(written, Ok(8));
        }
        let recorded = read(&memory, Clock::System).expect("the facts are there");
        let records = recorded.threads.iter().flat_map(|thread| &thread.records);
        prop_assert!(records.clone().all(|record| record.end.is_none_or(|end| end >= record.start)));
        prop_assert!(records.count() <= LEAST as usize / RECORD);
        let copy = read(copied(&memory), Clock::System);
        prop_assert_eq!(copy.map(|copy| copy.threads.len()), Some(recorded.threads.len()));
    }
}
