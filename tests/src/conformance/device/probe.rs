//! Probe and matched probe (MPI-4 section 3.8).

use std::sync::Barrier;

use super::job::Setup;
use super::rank::check;
use crate::conformance::payload;

/// Sizes of the probed messages.
const SIZES: [usize; 5] = [0, 40, 5_000, 30_000, 400_000];

/// A probe reports a message any number of times, and the message stays.
pub fn a_probe_leaves_the_message(setup: &Setup) {
    setup.run(2, |rank| {
        for (tag, len) in (0..).zip(SIZES) {
            if rank.me() == 0 {
                rank.send(&payload(tag as u64, len), 1, tag).unwrap();
                continue;
            }
            let status = rank.probe(None, None).unwrap();
            assert_eq!((status.source, status.tag, status.bytes), (0, tag, len));
            assert!(!status.cancelled);
            for _ in 0..3 {
                assert_eq!(rank.iprobe(0, tag).unwrap(), Some(status));
                assert_eq!(rank.probe(0, None).unwrap(), status);
            }
            let mut buffer = vec![0; len];
            assert_eq!(rank.recv(&mut buffer, 0, tag).unwrap(), status);
            check(&buffer, tag as u64);
            assert_eq!(rank.iprobe(0, tag).unwrap(), None);
        }
    });
}

/// A probe sees no other tags and sources, and of several messages it sees the earliest.
pub fn a_probe_sees_only_what_it_asks_for(setup: &Setup) {
    setup.run(3, |rank| {
        if rank.me() > 0 {
            let send = |tag| rank.isend(vec![0; 10 * rank.me() + tag], 0, tag as i32).unwrap();
            let mut sends = [1, 2].map(send);
            rank.complete(&mut sends);
            return;
        }
        for source in [1, 2] {
            rank.probe(source, 2).unwrap();
        }
        assert_eq!(rank.iprobe(0, None).unwrap(), None, "nothing from rank 0");
        assert_eq!(rank.iprobe(None, 3).unwrap(), None, "nothing with tag 3");
        for (source, tag) in [(2, 1), (2, 2), (1, 2), (1, 1)] {
            let status = rank.iprobe(source, tag).unwrap().unwrap();
            let expected = (source as u32, tag, 10 * source + tag as usize);
            assert_eq!((status.source, status.tag, status.bytes), expected);
            assert_eq!(rank.probe(source, None).unwrap().tag, 1, "the earliest of its source");
            assert_eq!(rank.probe(None, tag).unwrap().tag, tag);
        }
        for source in [1, 2] {
            for tag in [1, 2] {
                rank.recv(&mut [0; 30], source, tag).unwrap();
            }
        }
    });
}

/// The blocking probe waits for a message that is sent only later.
pub fn a_probe_waits(setup: &Setup) {
    setup.run(2, |rank| {
        let other = 1 - rank.me();
        for tag in 0..20 {
            if tag % 2 == rank.me() as i32 {
                std::thread::sleep(std::time::Duration::from_millis(2));
                rank.send(&payload(tag as u64, 3_000), other, tag).unwrap();
            } else {
                let status = rank.probe(None, tag).unwrap();
                let mut buffer = vec![0; status.bytes];
                rank.recv(&mut buffer, status.source as usize, status.tag).unwrap();
                check(&buffer, tag as u64);
            }
        }
    });
}

/// What a matched probe took is seen by nobody else, and received from where it was taken.
pub fn a_matched_probe_takes_the_message(setup: &Setup) {
    setup.run(2, |rank| {
        for len in SIZES {
            if rank.me() == 0 {
                let mut sends = [1, 2, 3].map(|seed| rank.isend(payload(seed, len), 1, 7).unwrap());
                rank.complete(&mut sends);
                rank.recv(&mut [], 1, 0).unwrap();
                continue;
            }
            assert!(rank.improbe(0, 8).unwrap().is_none());
            let first = rank.mprobe(None, None).unwrap();
            assert_eq!((first.status().source, first.status().bytes), (0, len));
            let second = rank.mprobe(0, 7).unwrap();
            let mut third = vec![0; len];
            rank.recv(&mut third, 0, 7).unwrap();
            check(&third, 3);
            assert_eq!(rank.iprobe(None, None).unwrap(), None, "both are taken");
            assert!(rank.improbe(None, None).unwrap().is_none());
            for (message, seed) in [(second, 2), (first, 1)] {
                let (outcome, bytes) = rank.wait(rank.imrecv(message, len).unwrap());
                let status = outcome.unwrap();
                assert_eq!((status.source, status.tag, status.bytes), (0, 7, len));
                check(&bytes, seed);
            }
            rank.send(&[], 0, 0).unwrap();
        }
    });
}

/// Longer than what is on its way at most, so that it cannot all be there.
const LONG: usize = 12 << 20;

/// Enough for a long message, so that it goes eagerly where the table says so.
const EARLY_LIMIT: usize = 4 * LONG;

/// A message is received, by an ordinary receive, before all of it has come.
pub fn a_message_may_be_received_while_it_arrives(setup: &Setup) {
    let met = Barrier::new(2);
    let eager = setup.is_eager(LONG);
    setup.with_early_limit(EARLY_LIMIT).run(2, move |rank| {
        if rank.me() == 0 {
            let send = rank.isend(payload(1, LONG), 1, 1).unwrap();
            met.wait();
            rank.wait(send).0.unwrap();
            return;
        }
        rank.probe(0, 1).unwrap();
        let dump = rank.dump().unwrap();
        assert_eq!(dump.contains("(eager, arriving)"), eager, "{dump}");
        let receive = rank.irecv(LONG + 10, 0, 1).unwrap();
        met.wait();
        let (outcome, bytes) = rank.wait(receive);
        assert_eq!(outcome.unwrap().bytes, LONG);
        check(&bytes[..LONG], 1);
    });
}

/// The same with a matched probe, into a buffer that is too small, and into one that is not.
pub fn a_long_message_may_be_probed_while_it_arrives(setup: &Setup) {
    let met = Barrier::new(2);
    let eager = setup.is_eager(LONG);
    setup.with_early_limit(EARLY_LIMIT).run(2, move |rank| {
        for (tag, capacity) in [(1, LONG), (2, 1_000), (3, LONG)] {
            if rank.me() == 0 {
                let send = rank.isend(payload(tag as u64, LONG), 1, tag).unwrap();
                met.wait();
                rank.wait(send).0.unwrap();
                // All of it has been taken in, so the next message finds an empty ring: while this
                // rank is in the barrier, nothing goes that has not gone at once.
                rank.recv(&mut [], 1, 0).unwrap();
                continue;
            }
            let message = rank.mprobe(None, None).unwrap();
            assert_eq!((message.status().tag, message.status().bytes), (tag, LONG));
            let receive = rank.imrecv(message, capacity).unwrap();
            let dump = rank.dump().unwrap();
            let phase = if eager { "taking in" } else { "fetching" };
            let line = format!("{capacity} bytes ({phase} a message of {LONG} bytes)");
            assert!(dump.contains(&line), "{dump}");
            assert!(!rank.cancel(&receive).unwrap(), "it has met its message");
            met.wait();
            let (outcome, bytes) = rank.wait(receive);
            assert_eq!(outcome.is_ok(), capacity == LONG);
            check(&bytes, tag as u64);
            rank.send(&[], 0, 0).unwrap();
        }
    });
}
