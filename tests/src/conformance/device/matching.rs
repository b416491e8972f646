//! Which message meets which receive (MPI-4 section 3.5).

use std::sync::Barrier;

use super::job::Setup;
use super::rank::{Pending, check};
use crate::conformance::payload;

/// Sizes that go in different ways, in no regular order.
fn mixed_size(number: u64) -> usize {
    const SIZES: [usize; 9] = [8, 70_000, 304, 0, 8_193, 120, 200_000, 8_192, 1_000];
    SIZES[(number * 7 % 9) as usize]
}

/// Messages of one pair, tag and context come in the order of sending, whichever way each travels
/// and whatever the receives ask for.
pub fn messages_do_not_overtake(setup: &Setup) {
    const MESSAGES: u64 = 270;
    setup.run(2, |rank| {
        if rank.me() == 0 {
            let send = |number| rank.isend(payload(number, mixed_size(number)), 1, 5).unwrap();
            let mut sends: Vec<Pending> = (0..MESSAGES).map(send).collect();
            rank.complete(&mut sends);
            return;
        }
        // Some receives are posted ahead, so that both queues are used.
        let mut posted = std::collections::VecDeque::new();
        for number in 0..MESSAGES {
            while posted.len() < (number % 5) as usize {
                let source = (posted.len() % 2 == 0).then_some(0);
                let tag = (number % 3 > 0).then_some(5);
                posted.push_back(rank.irecv(200_000, source, tag).unwrap());
            }
            let receive = posted.pop_front();
            let receive = receive.unwrap_or_else(|| rank.irecv(200_000, 0, 5).unwrap());
            let (outcome, bytes) = rank.wait(receive);
            let len = outcome.unwrap().bytes;
            assert_eq!(len, mixed_size(number), "message {number}");
            check(&bytes[..len], number);
        }
        assert_eq!(rank.iprobe(None, None).unwrap(), None, "nothing is left");
        for receive in posted {
            assert!(rank.cancel(&receive).unwrap());
            assert!(rank.wait(receive).0.unwrap().cancelled);
        }
    });
}

/// A short message does not overtake a long one before it that is not complete yet.
pub fn small_messages_do_not_overtake_large_ones(setup: &Setup) {
    const LARGE: usize = 3 << 20;
    setup.run(2, |rank| {
        for round in 0..4 {
            if rank.me() == 0 {
                let large = rank.isend(payload(round, LARGE), 1, 1).unwrap();
                let small = rank.isend(payload(round + 50, 24), 1, 1).unwrap();
                rank.wait(small).0.unwrap();
                rank.wait(large).0.unwrap();
                continue;
            }
            let first = rank.irecv(LARGE, 0, 1).unwrap();
            let second = rank.irecv(LARGE, None, None).unwrap();
            let (outcome, bytes) = rank.wait(second);
            assert_eq!(outcome.unwrap().bytes, 24);
            check(&bytes[..24], round + 50);
            let (outcome, bytes) = rank.wait(first);
            assert_eq!(outcome.unwrap().bytes, LARGE);
            check(&bytes, round);
        }
    });
}

/// A receive with wildcards gets the earliest of the messages that it fits.
pub fn wildcards_take_the_earliest_message(setup: &Setup) {
    setup.run(2, |rank| {
        if rank.me() == 0 {
            let send = |(seed, tag)| rank.isend(payload(seed, 64), 1, tag).unwrap();
            let mut sends = [(0, 4), (1, 5), (2, 4), (3, 6), (4, 9)].map(send);
            rank.complete(&mut sends);
            return;
        }
        rank.probe(0, 9).unwrap();
        let asked: [(Option<usize>, Option<i32>, u64); 5] = [
            (None, Some(5), 1),
            (None, None, 0),
            (Some(0), None, 2),
            (Some(0), Some(9), 4),
            (None, None, 3),
        ];
        for (source, tag, seed) in asked {
            let mut buffer = [0; 64];
            rank.recv(&mut buffer, source, tag).unwrap();
            check(&buffer, seed);
        }
    });
}

/// A message gets the earliest of the receives that it fits, with wildcards or without.
pub fn the_earliest_posted_receive_is_met(setup: &Setup) {
    let posted = Barrier::new(2);
    setup.run(2, move |rank| {
        if rank.me() == 0 {
            posted.wait();
            for (seed, tag) in [(0, 2), (1, 2), (2, 2), (3, 2), (4, 1)] {
                rank.send(&payload(seed, 32), 1, tag).unwrap();
            }
            return;
        }
        let patterns: [(Option<usize>, Option<i32>); 5] = [
            (None, Some(2)),
            (Some(0), Some(1)),
            (Some(0), Some(2)),
            (None, None),
            (Some(0), None),
        ];
        let receives = patterns.map(|(source, tag)| rank.irecv(32, source, tag).unwrap());
        posted.wait();
        for (receive, seed) in receives.into_iter().zip([0, 4, 1, 2, 3]) {
            let (outcome, bytes) = rank.wait(receive);
            assert_eq!(outcome.unwrap().tag, if seed == 4 { 1 } else { 2 });
            check(&bytes, seed);
        }
    });
}

/// A receive takes no message of another source or tag.
pub fn a_receive_takes_only_what_it_asks_for(setup: &Setup) {
    setup.run(3, |rank| {
        if rank.me() > 0 {
            let seed = |tag| rank.me() as u64 * 10 + tag as u64;
            let send = |tag| rank.isend(payload(seed(tag), 500), 0, tag).unwrap();
            rank.complete(&mut (0..10).map(send).collect::<Vec<_>>());
            return;
        }
        // From the last rank first, tags downwards: against every natural order.
        for source in [2, 1] {
            for tag in (0..10).rev() {
                let mut buffer = [0; 500];
                let status = rank.recv(&mut buffer, source, tag).unwrap();
                assert_eq!((status.source as usize, status.tag), (source, tag));
                check(&buffer, source as u64 * 10 + tag as u64);
            }
        }
    });
}

/// A message of one context meets no receive and no probe of another one, wildcards or not.
pub fn contexts_are_apart(setup: &Setup) {
    const CONTEXTS: [u32; 4] = [0, 1, 77, u32::MAX];
    setup.run(2, |rank| {
        if rank.me() == 0 {
            let data = |context| payload(u64::from(context), 900);
            let send = |context| rank.within(context).isend(data(context), 1, 1).unwrap();
            rank.complete(&mut CONTEXTS.map(send));
            return;
        }
        rank.within(u32::MAX).probe(None, None).unwrap();
        let stranger = rank.within(5).irecv(900, None, None).unwrap();
        assert_eq!(rank.within(6).iprobe(None, None).unwrap(), None);
        assert!(rank.within(6).improbe(0, 1).unwrap().is_none());
        for context in CONTEXTS.into_iter().rev() {
            let rank = rank.within(context);
            let mut buffer = [0; 900];
            rank.recv(&mut buffer, None, None).unwrap();
            check(&buffer, u64::from(context));
            assert_eq!(rank.iprobe(None, None).unwrap(), None, "one message in each context");
        }
        assert!(rank.cancel(&stranger).unwrap());
        assert!(rank.wait(stranger).0.unwrap().cancelled);
    });
}
