//! Unexpected-message memory, statistics, and the dump.

use std::sync::Barrier;

use mpjdev::{ProtocolStats, Stats};

use super::job::Setup;
use super::rank::{Rank, check};
use crate::conformance::payload;

/// The unexpected-message memory of one rank for another one in these tests.
const EARLY_LIMIT: usize = 64 << 10;

/// Messages of each sender: together they are many times the unexpected-message memory, and some of them are too
/// long for it.
const MESSAGES: i32 = 300;

fn size(tag: i32) -> usize {
    [900, 40, 7_000, 0, 40_000, 2_500][tag as usize % 6]
}

/// Many unreceived messages take no more memory than agreed; none is lost, and they can be received
/// in any order.
pub fn unexpected_memory_is_bounded(setup: &Setup) {
    let eager = (0..6).any(|tag| setup.is_eager(size(tag)));
    setup.with_early_limit(EARLY_LIMIT).run(3, move |rank| {
        if rank.me() > 0 {
            let seed = |tag| (1000 * rank.me()) as u64 + tag as u64;
            let send = |tag| rank.isend(payload(seed(tag), size(tag)), 0, tag).unwrap();
            let mut sends: Vec<_> = (0..MESSAGES).map(send).collect();
            rank.complete(&mut sends);
            assert_eq!(rank.stats().unwrap().credit_fallbacks > 0, eager);
            return;
        }
        rank.probe(1, MESSAGES - 1).unwrap();
        rank.probe(2, MESSAGES - 1).unwrap();
        let held = rank.stats().unwrap();
        assert!(held.unexpected_bytes_peak <= 2 * EARLY_LIMIT as u64, "{held:?}");
        assert_eq!(held.unexpected_bytes_peak > 0, eager);
        for tag in (0..MESSAGES).rev() {
            for source in [1, 2] {
                let mut buffer = vec![0; size(tag)];
                assert_eq!(rank.recv(&mut buffer, source, tag).unwrap().bytes, size(tag));
                check(&buffer, (1000 * source) as u64 + tag as u64);
            }
        }
        let after = rank.stats().unwrap();
        assert_eq!((after.unexpected_bytes, after.received), (0, 2 * MESSAGES as u64));
        assert!(after.unexpected_bytes_peak <= 2 * EARLY_LIMIT as u64, "{after:?}");
    });
}

/// Used credit comes back when the messages are received, unexpected or not, so that later messages go as the first
/// ones did.
pub fn unexpected_memory_comes_back(setup: &Setup) {
    setup.with_early_limit(EARLY_LIMIT).run(2, |rank| {
        let flood = 2 * EARLY_LIMIT / 2_000;
        for round in 0..3 {
            if rank.me() == 0 {
                let send = |_| rank.isend(payload(round, 2_000), 1, 0).unwrap();
                let mut sends: Vec<_> = (0..flood).map(send).collect();
                rank.send(&[], 1, 1).unwrap();
                rank.complete(&mut sends);
                rank.recv(&mut [], 1, 2).unwrap();
            } else {
                rank.recv(&mut [], 0, 1).unwrap();
                for _ in 0..flood {
                    let mut buffer = [0; 2_000];
                    rank.recv(&mut buffer, 0, 0).unwrap();
                    check(&buffer, round);
                }
                rank.send(&[], 0, 2).unwrap();
            }
        }
        let before = rank.stats().unwrap();
        for number in 0..200 {
            let mut buffer = [0; 2_000];
            if rank.me() == 0 {
                rank.send(&payload(number, 2_000), 1, 0).unwrap();
                rank.recv(&mut buffer, 1, 0).unwrap();
            } else {
                rank.recv(&mut buffer, 0, 0).unwrap();
                rank.send(&buffer, 0, 0).unwrap();
            }
            check(&buffer, number);
        }
        let after = rank.stats().unwrap();
        assert_eq!(after.credit_fallbacks, before.credit_fallbacks, "one message at a time");
        assert_eq!(after.unexpected_bytes, 0);
    });
}

/// Messages of which exactly three have credit at a time.
const LARGE: usize = 17_000;

/// The next message uses credit that has come, even if the sender makes no other call. A send without credit would end
/// only by its receive, and no receive begins before all sends have ended.
pub fn credit_that_has_come_is_used(setup: &Setup) {
    if !setup.is_eager(LARGE) {
        return;
    }
    let sent = Barrier::new(2);
    setup.with_early_limit(EARLY_LIMIT).run(2, move |rank| {
        for round in 0..5 {
            if rank.me() == 0 {
                let send = |tag| rank.isend(payload(round, LARGE), 1, tag).unwrap();
                rank.complete(&mut [0, 1, 2].map(send));
                sent.wait();
                // The credit comes before this message.
                rank.recv(&mut [], 1, 9).unwrap();
            } else {
                sent.wait();
                for tag in [0, 1, 2] {
                    let mut buffer = [0; LARGE];
                    rank.recv(&mut buffer, 0, tag).unwrap();
                    check(&buffer, round);
                }
                rank.send(&[], 0, 9).unwrap();
            }
        }
        assert_eq!(rank.stats().unwrap().credit_fallbacks, 0);
    });
}

/// The three messages that come before their receives, and the two whose receives are posted.
const EARLY: [usize; 3] = [10, 5_000, 250_000];
const POSTED: [usize; 2] = [300, 70_000];

/// A script whose every count is known beforehand.
pub fn statistics_are_exact(setup: &Setup) {
    let is_eager = {
        let table = setup.table().clone();
        move |len: &usize| table.protocol(*len) == mpjdev::Protocol::Eager
    };
    let (sent_unexpected, posted) = (Barrier::new(2), Barrier::new(2));
    let stats = setup.run(2, move |rank| {
        if rank.me() == 0 {
            let send = |(tag, len)| rank.isend(payload(0, len), 1, tag).unwrap();
            let mut sends: Vec<_> = (0..).zip(EARLY).map(send).collect();
            sent_unexpected.wait();
            rank.complete(&mut sends);
            posted.wait();
            rank.complete(&mut POSTED.map(|len| rank.isend(payload(0, len), 1, 9).unwrap()));
        } else {
            sent_unexpected.wait();
            rank.probe(0, EARLY.len() as i32 - 1).unwrap();
            for (tag, len) in (0..).zip(EARLY) {
                rank.recv(&mut vec![0; len], 0, tag).unwrap();
            }
            let mut receives = POSTED.map(|len| rank.irecv(len, 0, 9).unwrap());
            posted.wait();
            rank.complete(&mut receives);
        }
        rank.stats().unwrap()
    });
    let sum = |lens: Vec<usize>| (lens.len() as u64, lens.iter().sum::<usize>() as u64);
    let all = || EARLY.into_iter().chain(POSTED);
    let (messages, bytes) = sum(all().filter(&is_eager).collect());
    let eager = ProtocolStats { messages, bytes, unexpected: 0, copies: 0 };
    let (messages, bytes) = sum(all().filter(|len| !is_eager(len)).collect());
    let rendezvous = ProtocolStats { messages, bytes, unexpected: 0, copies: 0 };
    assert_eq!(stats[0], Stats { eager, rendezvous, ..Stats::default() });

    let (unexpected, peak) = sum(EARLY.into_iter().filter(&is_eager).collect());
    let eager = ProtocolStats { messages: 0, bytes: 0, unexpected, copies: unexpected };
    let rendezvous =
        ProtocolStats { unexpected: EARLY.len() as u64 - unexpected, ..Default::default() };
    let expected =
        Stats { eager, rendezvous, received: 5, unexpected_bytes_peak: peak, ..stats[1] };
    assert_eq!(stats[1], expected);
    assert_eq!((stats[1].unexpected_bytes, stats[1].credit_fallbacks), (0, 0));
}

#[track_caller]
fn has_lines(rank: &Rank, lines: &[&str]) {
    let dump = rank.dump().unwrap();
    for line in lines {
        assert!(dump.lines().any(|is| is.trim_start() == *line), "no line {line:?} in\n{dump}");
    }
}

/// Posted receives, unexpected messages and open requests are named, each with what identifies it.
pub fn the_dump_names_what_is_queued(setup: &Setup) {
    let (eager_12, eager_16) = (setup.is_eager(12), setup.is_eager(16));
    let dumped = Barrier::new(2);
    setup.run(2, move |rank| {
        if rank.me() == 0 {
            let send = rank.isend(payload(1, 12), 1, 7).unwrap();
            dumped.wait();
            rank.recv(&mut [0; 16], 1, 8).unwrap();
            rank.wait(send).0.unwrap();
            return;
        }
        let receives =
            [rank.irecv(40, 0, 5).unwrap(), rank.within(9).irecv(8, None, None).unwrap()];
        rank.probe(0, 7).unwrap();
        let here = if eager_12 { "eager, all here" } else { "rendezvous, with its sender" };
        has_lines(
            rank,
            &[
                "rank 1 of 2",
                "posted receives without a message: 2",
                "from rank 0, tag 5, context 0",
                "from rank any, tag any, context 9",
                "unexpected messages without a receive: 1",
                &format!("from rank 0, tag 7, 12 bytes ({here}), context 0"),
                "open requests: 2",
                "receive from rank 0, tag 5, context 0, 40 bytes (waiting for a message)",
                "receive from rank any, tag any, context 9, 8 bytes (waiting for a message)",
            ],
        );
        let send = rank.issend(payload(2, 16), 0, 8).unwrap();
        let phase = if eager_16 { "matched" } else { "fetched" };
        let line = format!("send to rank 0, tag 8, context 0, 16 bytes (waiting to be {phase})");
        // The data may leave a moment after the call.
        while !rank.dump().unwrap().contains(&line) {
            rank.progress().unwrap();
        }
        has_lines(rank, &["open requests: 3", &line]);
        dumped.wait();
        rank.wait(send).0.unwrap();
        rank.recv(&mut [0; 12], 0, 7).unwrap();
        for receive in receives {
            assert!(rank.cancel(&receive).unwrap());
            assert!(rank.wait(receive).0.unwrap().cancelled);
        }
        has_lines(rank, &["posted receives without a message: 0", "open requests: 0"]);
    });
}

/// The dump of an idle device says that it is idle.
pub fn the_dump_of_an_idle_device(setup: &Setup) {
    setup.run(3, |rank| {
        let expected = format!(
            "rank {} of 3\nposted receives without a message: 0\n\
             unexpected messages without a receive: 0\nopen requests: 0\n",
            rank.me()
        );
        assert_eq!(rank.dump().unwrap(), expected);
    });
}
