//! Bytes arrive: messages of every size, posted and unexpected, between two ranks, around a ring, from many to one, and
//! from all to all.

use std::sync::Barrier;

use super::job::Setup;
use super::rank::{Pending, check};
use crate::conformance::payload;

/// Unexpected-message memory in these tests.
const EARLY_LIMIT: usize = 1 << 20;

/// Sizes around every limit of the layers below: inline cell, one frame, sizes of pieces, the ring,
/// half and all of the unexpected-message memory.
pub const SIZES: [usize; 30] = [
    0,
    1,
    7,
    8,
    63,
    64,
    65,
    255,
    303,
    304,
    305,
    4096,
    (16 << 10) - 1,
    16 << 10,
    (16 << 10) + 1,
    (32 << 10) - 1,
    32 << 10,
    (32 << 10) + 1,
    (64 << 10) + 1,
    (128 << 10) - 1,
    128 << 10,
    (128 << 10) + 1,
    (512 << 10) - 1,
    512 << 10,
    (512 << 10) + 1,
    EARLY_LIMIT / 2 - 64,
    EARLY_LIMIT - 1,
    EARLY_LIMIT,
    EARLY_LIMIT + 1,
    5 << 20,
];

fn tagged_sizes() -> impl DoubleEndedIterator<Item = (i32, usize)> {
    (0..).zip(SIZES).collect::<Vec<_>>().into_iter()
}

/// Receives that are posted before the messages come, each with room for exactly its message.
pub fn posted_receives_of_every_size(setup: &Setup) {
    let posted = Barrier::new(2);
    setup.with_early_limit(EARLY_LIMIT).run(2, move |rank| {
        if rank.me() == 0 {
            posted.wait();
            for (tag, len) in tagged_sizes() {
                rank.send(&payload(tag as u64, len), 1, tag).unwrap();
            }
            return;
        }
        let receive = |(tag, len)| rank.irecv(len, 0, tag).unwrap();
        let receives: Vec<_> = tagged_sizes().map(receive).collect();
        posted.wait();
        for ((tag, len), receive) in tagged_sizes().zip(receives) {
            let (outcome, bytes) = rank.wait(receive);
            let status = outcome.unwrap();
            assert_eq!((status.source, status.tag, status.bytes), (0, tag, len));
            check(&bytes, tag as u64);
        }
    });
}

/// Messages that have all been sent before the first is received, in the opposite order. Together
/// they are more than the unexpected-message memory.
pub fn unexpected_messages_of_every_size(setup: &Setup) {
    setup.with_early_limit(EARLY_LIMIT).run(2, |rank| {
        if rank.me() == 0 {
            let send = |(tag, len)| rank.isend(payload(tag as u64, len), 1, tag).unwrap();
            let mut sends: Vec<_> = tagged_sizes().map(send).collect();
            rank.complete(&mut sends);
            return;
        }
        rank.probe(0, SIZES.len() as i32 - 1).unwrap();
        for (tag, len) in tagged_sizes().rev() {
            let mut buffer = vec![0; len + 3];
            let status = rank.recv(&mut buffer, 0, tag).unwrap();
            assert_eq!(status.bytes, len);
            check(&buffer[..len], tag as u64);
            assert_eq!(buffer[len..], [0; 3], "bytes behind a message of {len}");
        }
    });
}

/// Each message comes back before the next one is sent.
pub fn blocking_ping_pong_of_every_size(setup: &Setup) {
    setup.with_early_limit(EARLY_LIMIT).run(2, |rank| {
        for (tag, len) in tagged_sizes() {
            let mut buffer = vec![0; len];
            if rank.me() == 0 {
                rank.send(&payload(tag as u64, len), 1, tag).unwrap();
                rank.recv(&mut buffer, 1, tag).unwrap();
                check(&buffer, tag as u64);
            } else {
                rank.recv(&mut buffer, 0, tag).unwrap();
                rank.send(&buffer, 0, tag).unwrap();
            }
        }
    });
}

/// A rank sends to itself, the send first or the receive first.
pub fn self_sends(setup: &Setup) {
    setup.run(1, |rank| {
        for (tag, len) in tagged_sizes() {
            let seed = tag as u64;
            let send_first = rank.isend(payload(seed, len), 0, tag).unwrap();
            let mut receives = vec![rank.irecv(len, 0, tag).unwrap()];
            receives.push(rank.irecv(len, None, tag).unwrap());
            rank.send(&payload(seed + 1000, len), 0, tag).unwrap();
            rank.wait(send_first).0.unwrap();
            rank.complete(&mut receives);
            check(receives[0].bytes(), seed);
            check(receives[1].bytes(), seed + 1000);
        }
    });
}

/// The message of rank `from` for rank `to`.
fn seed_of(from: usize, to: usize) -> u64 {
    (from * 100 + to) as u64
}

/// Every rank sends to every rank, itself too, all at once.
pub fn exchange_of_all_with_all(setup: &Setup) {
    const RANKS: usize = 4;
    const LENGTHS: [usize; 3] = [40, 9_000, 300_000];
    setup.run(RANKS, |rank| {
        let me = rank.me();
        for (tag, len) in (0..).zip(LENGTHS) {
            let receive = |from| rank.irecv(len, from, tag).unwrap();
            let send = |to| rank.isend(payload(seed_of(me, to), len), to, tag).unwrap();
            let mut all: Vec<Pending> = (0..RANKS).map(receive).collect();
            all.extend((0..RANKS).map(send));
            rank.complete(&mut all);
            for (from, receive) in all.iter().take(RANKS).enumerate() {
                check(receive.bytes(), seed_of(from, me));
            }
        }
    });
}

/// Four ranks send to one that asks for any of them; the messages of each come in order.
pub fn many_to_one(setup: &Setup) {
    const EACH: u64 = 60;
    let len = |number: u64| [16, 400, 12_000, 100][number as usize % 4];
    setup.run(5, move |rank| {
        if rank.me() > 0 {
            for number in 0..EACH {
                let seed = number + 1000 * u64::from(rank.rank());
                rank.send(&payload(seed, len(number)), 0, 3).unwrap();
            }
            return;
        }
        let mut next = [0; 5];
        for _ in 0..4 * EACH {
            let mut buffer = vec![0; 12_000];
            let status = rank.recv(&mut buffer, None, 3).unwrap();
            let number = &mut next[status.source as usize];
            assert_eq!(status.bytes, len(*number), "rank {}", status.source);
            check(&buffer[..status.bytes], *number + 1000 * u64::from(status.source));
            *number += 1;
        }
        assert_eq!(next, [0, EACH, EACH, EACH, EACH]);
    });
}

/// A message goes around the ring and grows. If there are fewer processors than ranks, waiting ranks must give theirs
/// up.
pub fn ring_of_five(setup: &Setup) {
    const RANKS: usize = 5;
    setup.run(RANKS, |rank| {
        let (me, right) = (rank.me(), (rank.me() + 1) % RANKS);
        let left = (me + RANKS - 1) % RANKS;
        for round in 0..30 {
            let start = 1 + round * 700;
            let mut buffer = vec![0; start + RANKS];
            if me == 0 {
                rank.send(&payload(round as u64, start), right, 0).unwrap();
                assert_eq!(rank.recv(&mut buffer, left, 0).unwrap().bytes, start + RANKS - 1);
                check(&buffer[..start], round as u64);
                assert_eq!(buffer[start..start + RANKS - 1], [1, 2, 3, 4]);
            } else {
                let bytes = rank.recv(&mut buffer, left, 0).unwrap().bytes;
                assert_eq!(bytes, start + me - 1);
                buffer[bytes] = me as u8;
                rank.send(&buffer[..bytes + 1], right, 0).unwrap();
            }
        }
    });
}
