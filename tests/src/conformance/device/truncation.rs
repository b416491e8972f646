//! A message longer than its buffer: an error at the receiver, and nothing else is harmed
//! (MPI-4 section 3.2.5, MPI_ERR_TRUNCATE).

use std::sync::Barrier;

use mpjdev::{Error, ErrorClass, Status};

use super::job::Setup;
use super::rank::check;
use crate::conformance::payload;

/// Lengths of messages: one cell, one frame, several, more than is on its way at once.
const LENGTHS: [usize; 5] = [9, 500, 8_000, 60_000, 2_200_000];

/// Every length with several capacities below it.
fn cases() -> impl Iterator<Item = (i32, usize, usize)> {
    let cases =
        LENGTHS.into_iter().flat_map(|len| [0, 1, len / 2, len - 1].map(|room| (len, room)));
    (0..).zip(cases).map(|(tag, (len, capacity))| (tag, len, capacity))
}

/// Sends the long message of each case in one mode or the other, and a short one behind it.
fn send_cases(rank: &super::rank::Rank) {
    for (tag, len, _) in cases() {
        let data = payload(tag as u64, len);
        if tag % 2 == 0 {
            rank.send(&data, 1, tag).unwrap();
        } else {
            rank.ssend(&data, 1, tag).unwrap();
        }
        rank.send(&payload(77, 20), 1, tag).unwrap();
    }
}

#[track_caller]
fn expect_error(outcome: Result<Status, Error>, wanted: (i32, usize, usize)) {
    let error = outcome.expect_err("the message is longer than the buffer");
    assert_eq!(error.class(), ErrorClass::Truncate);
    match error {
        Error::Truncate { source_rank: 0, tag, sent, capacity } => {
            assert_eq!((tag, sent, capacity), wanted);
        }
        other => panic!("{other}"),
    }
}

/// The buffer is posted first.
pub fn posted_receives(setup: &Setup) {
    let posted = Barrier::new(2);
    setup.run(2, move |rank| {
        if rank.me() == 0 {
            posted.wait();
            return send_cases(rank);
        }
        let receive = |(tag, _, capacity)| {
            [rank.irecv(capacity, 0, tag).unwrap(), rank.irecv(20, 0, tag).unwrap()]
        };
        let receives: Vec<_> = cases().map(receive).collect();
        posted.wait();
        for ((tag, len, capacity), [long, short]) in cases().zip(receives) {
            let (outcome, bytes) = rank.wait(long);
            expect_error(outcome, (tag, len, capacity));
            assert_eq!(bytes.len(), capacity);
            check(&bytes, tag as u64);
            let (outcome, bytes) = rank.wait(short);
            assert_eq!(outcome.unwrap().bytes, 20);
            check(&bytes, 77);
        }
    });
}

/// The message comes first; bytes beside the buffer stay as they are.
pub fn unexpected_messages(setup: &Setup) {
    setup.run(2, |rank| {
        if rank.me() == 0 {
            return send_cases(rank);
        }
        for (tag, len, capacity) in cases() {
            assert_eq!(rank.probe(0, None).unwrap().bytes, len);
            let mut memory = vec![0xA5; capacity + 64];
            let outcome = rank.recv(&mut memory[32..32 + capacity], None, tag);
            expect_error(outcome, (tag, len, capacity));
            check(&memory[32..32 + capacity], tag as u64);
            assert_eq!(memory[..32], [0xA5; 32], "before the buffer");
            assert_eq!(memory[32 + capacity..], [0xA5; 32], "behind the buffer");
            let mut buffer = [0; 20];
            rank.recv(&mut buffer, 0, None).unwrap();
            check(&buffer, 77);
        }
    });
}

/// The message was taken by a matched probe.
pub fn matched_messages(setup: &Setup) {
    setup.run(2, |rank| {
        if rank.me() == 0 {
            return send_cases(rank);
        }
        for (tag, len, capacity) in cases() {
            let message = rank.mprobe(None, tag).unwrap();
            let (outcome, bytes) = rank.wait(rank.imrecv(message, capacity).unwrap());
            expect_error(outcome, (tag, len, capacity));
            check(&bytes, tag as u64);
            let message = rank.mprobe(0, tag).unwrap();
            let (outcome, bytes) = rank.wait(rank.imrecv(message, 20).unwrap());
            assert_eq!(outcome.unwrap().bytes, 20);
            check(&bytes, 77);
        }
    });
}
