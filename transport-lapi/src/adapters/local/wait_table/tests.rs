//! Wait tables of a segment of one process.

use super::*;
use crate::adapters::local::layout::Layout;
use crate::adapters::local::segment::Segment;

const RECV: Wait = Wait {
    call: CallCode(2),
    operation: CallCode(u16::MAX),
    open: 1,
    sends: false,
    peer: Some(3),
    tag: Some(-7),
    space: Space { context: 0, id: u32::MAX, label: Some(0), is_collective: true },
    bytes: 1 << 40,
    phase: Phase::Unmatched,
    at_end: true,
    alone: false,
    unwinding: true,
    since: u64::MAX - 1,
    thread: 4711,
};

fn entry(wait: Wait) -> Entry {
    Entry { wait, state: ThreadState::Asleep { ticket: 9 }, looks: 0 }
}

fn segment() -> Segment {
    Segment::in_process(Layout::new(1, 1).unwrap()).unwrap()
}

#[test]
fn what_is_put_is_read_until_it_is_cleared() {
    let segment = segment();
    let wait_table = segment.wait_table(0);
    assert_eq!(wait_table.read().unwrap().entries, []);
    let space = Space { label: None, is_collective: false, ..RECV.space };
    let (sends, call, alone, at_end) = (true, CallCode(u16::MAX), true, false);
    let any = Wait { peer: None, tag: None, sends, call, alone, at_end, space, ..RECV };
    let entries = [entry(RECV), Entry { wait: any, state: ThreadState::Awake, looks: 0 }]
        .into_iter()
        .enumerate();
    entries.for_each(|(place, entry)| wait_table.put(place, &entry));
    let both = wait_table.read().unwrap();
    assert_eq!(
        both.entries,
        [entry(RECV), Entry { wait: any, state: ThreadState::Awake, looks: 0 }]
    );
    wait_table.clear(0);
    let one = wait_table.read().unwrap();
    assert_eq!(one.entries, both.entries[1..]);
    assert!(one.epoch > both.epoch, "SL3");
}

/// SL4.
#[test]
fn looks_are_counted_without_another_change() {
    let segment = segment();
    let wait_table = segment.wait_table(0);
    wait_table.put(2, &entry(RECV));
    let before = wait_table.read().unwrap();
    wait_table.looked_again(2);
    wait_table.looked_again(LISTED);
    let after = wait_table.read().unwrap();
    assert_eq!((after.epoch, after.entries[0].looks), (before.epoch, 1));
}

#[test]
fn threads_beyond_the_last_line_are_counted() {
    let segment = segment();
    let wait_table = segment.wait_table(0);
    (0..LISTED + 2).for_each(|place| wait_table.put(place, &entry(RECV)));
    let reading = wait_table.read().unwrap();
    assert_eq!((reading.entries.len(), reading.unlisted), (LISTED, 2));
    wait_table.clear(LISTED + 1);
    assert_eq!(wait_table.read().unwrap().unlisted, 1);
}

#[test]
fn a_wait_table_in_the_middle_of_a_change_is_not_read() {
    let segment = segment();
    let wait_table = segment.wait_table(0);
    wait_table.put(0, &entry(RECV));
    wait_table.epoch.store(7, Ordering::Relaxed);
    assert_eq!(wait_table.read(), None, "a task that was killed there");
    wait_table.put(0, &entry(RECV));
    assert_eq!(wait_table.read().unwrap().epoch, 8, "the next change mends it");
}

#[test]
fn every_number_of_a_phase_is_its_place() {
    for (number, phase) in Phase::ALL.into_iter().enumerate() {
        assert_eq!(phase as usize, number);
    }
}

/// SL5.
#[test]
fn a_damaged_phase_reads_as_unknown() {
    let segment = segment();
    let wait_table = segment.wait_table(0);
    let line = &wait_table.lines[2];
    for word in [&line.state, &line.calls, &line.flags, &line.phase, &line.peer] {
        word.store(u32::MAX, Ordering::Relaxed);
    }
    let [entry] = wait_table.read().unwrap().entries[..] else { panic!("one line is in use") };
    assert_eq!((entry.wait.call, entry.wait.phase), (CallCode(u16::MAX), Phase::Unknown));
    assert_eq!((entry.wait.peer, entry.state), (None, ThreadState::Awake));
}

#[test]
fn traffic_is_read_with_the_waits() {
    let segment = segment();
    let wait_table = segment.wait_table(0);
    let traffic = Traffic { offered: u64::MAX, sent: 2, received: 3 };
    wait_table.count(traffic);
    wait_table.put(0, &entry(RECV));
    assert_eq!(wait_table.read().unwrap().traffic, traffic);
}
