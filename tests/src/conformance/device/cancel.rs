//! Cancelled receives, and requests that are given up (MPI-4 sections 3.8.4 and 3.7.3).

use std::sync::Barrier;

use super::job::Setup;
use super::rank::check;
use crate::conformance::payload;

/// A receive without a message is cancelled once; it takes no message afterwards.
pub fn a_posted_receive(setup: &Setup) {
    let cancelled = Barrier::new(2);
    setup.run(2, move |rank| {
        for (tag, len) in (0..).zip([4, 5_000, 100_000]) {
            if rank.me() == 0 {
                cancelled.wait();
                rank.send(&payload(tag as u64, len), 1, tag).unwrap();
                continue;
            }
            let patterns = [(Some(0), Some(tag)), (None, Some(tag)), (Some(0), None), (None, None)];
            for (source, tag) in patterns {
                let receive = rank.irecv(len, source, tag).unwrap();
                assert!(rank.cancel(&receive).unwrap());
                assert!(!rank.cancel(&receive).unwrap(), "it was cancelled before");
                let (outcome, bytes) = rank.wait(receive);
                assert!(outcome.unwrap().cancelled);
                assert_eq!(bytes, vec![0; len]);
            }
            cancelled.wait();
            let mut buffer = vec![0; len];
            let status = rank.recv(&mut buffer, 0, tag).unwrap();
            assert!(!status.cancelled);
            check(&buffer, tag as u64);
        }
    });
}

/// A receive that has met its message goes on, whether or not all of it has come.
pub fn a_receive_that_has_met_its_message(setup: &Setup) {
    setup.run(2, |rank| {
        for (tag, len) in (0..).zip([4, 5_000, 100_000, 3_000_000]) {
            if rank.me() == 0 {
                rank.send(&payload(tag as u64, len), 1, tag).unwrap();
                continue;
            }
            rank.probe(0, tag).unwrap();
            let receive = rank.irecv(len, None, tag).unwrap();
            assert!(!rank.cancel(&receive).unwrap());
            let (outcome, bytes) = rank.wait(receive);
            assert!(!outcome.unwrap().cancelled);
            check(&bytes, tag as u64);
        }
    });
}

/// Lists report a cancelled receive like a complete one; sends are not cancelled.
pub fn a_cancelled_receive_in_a_list(setup: &Setup) {
    setup.run(1, |rank| {
        let mut list: Vec<_> = (0..4).map(|tag| rank.irecv(16, 0, tag).unwrap()).collect();
        list.push(rank.issend(payload(2, 16), 0, 2).unwrap());
        for place in [0, 1, 3] {
            assert!(rank.cancel(&list[place]).unwrap());
        }
        assert!(!rank.cancel(&list[4]).unwrap(), "a send");
        let (place, outcome) = rank.wait_any(&mut list).unwrap().expect("five are open");
        assert!(outcome.unwrap().cancelled || place == 2 || place == 4);
        rank.complete(&mut list);
        check(list[2].bytes(), 2);
        assert_eq!(rank.iprobe(None, None).unwrap(), None);
    });
}

/// Of receives that ask for the same, those that stay get the messages in their order.
pub fn other_receives_keep_their_order(setup: &Setup) {
    let cancelled = Barrier::new(2);
    setup.run(2, move |rank| {
        if rank.me() == 0 {
            cancelled.wait();
            for seed in 0..4 {
                rank.send(&payload(seed, 600), 1, 9).unwrap();
            }
            return;
        }
        let post = |number: usize| rank.irecv(600, (number % 3 > 0).then_some(0), 9).unwrap();
        let mut receives: Vec<_> = (0..7).map(post).collect();
        for place in [6, 0, 3] {
            let receive = receives.remove(place);
            assert!(rank.cancel(&receive).unwrap());
            assert!(rank.wait(receive).0.unwrap().cancelled);
        }
        cancelled.wait();
        rank.complete(&mut receives);
        for (seed, receive) in (0..).zip(&receives) {
            check(receive.bytes(), seed);
        }
    });
}

/// After a request is given up, a posted receive takes no message, anything else ends by itself, and nothing is left.
pub fn dropped_requests(setup: &Setup) {
    setup.run(2, |rank| {
        let other = 1 - rank.me();
        for (tag, len) in (0..).zip([0, 100, 9_000, 1_500_000]) {
            rank.detach(rank.irecv(len, other, tag).unwrap());
            // Only a receive without a message is cancelled: the message is sent after that.
            let ready = rank.isend(Vec::new(), other, 1000).unwrap();
            rank.recv(&mut [], other, 1000).unwrap();
            rank.wait(ready).0.unwrap();
            rank.detach(rank.isend(payload(tag as u64, len), other, tag).unwrap());
            rank.detach(rank.issend(payload(tag as u64, len), other, 100 + tag).unwrap());
            let mut buffer = vec![0; len];
            rank.recv(&mut buffer, other, tag).unwrap();
            check(&buffer, tag as u64);
            rank.probe(other, 100 + tag).unwrap();
            rank.detach(rank.irecv(len, other, 100 + tag).unwrap());
        }
        while !rank.dump().unwrap().ends_with("open requests: 0\n") {
            rank.progress().unwrap();
        }
        // Behind everything that was given up: until then, the other rank may need this one.
        rank.detach(rank.isend(Vec::new(), other, 1000).unwrap());
        rank.recv(&mut [], other, 1000).unwrap();
        assert_eq!(rank.iprobe(None, None).unwrap(), None);
    });
}
