//! Synchronous mode: a send is complete only when its receive has begun (MPI-4 section 3.4).

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use super::job::Setup;
use super::rank::check;
use crate::conformance::payload;

/// Short and long lengths: unexpected-message memory has room for one, and not for the other.
const SIZES: [usize; 6] = [0, 8, 304, 9_000, 200_000, 2_500_000];

/// How often the tests look at a send that must not end.
const PATIENCE: usize = 300;

/// As long as no receive is posted, the send is not complete, though the message was seen.
pub fn unexpected_sends_wait_for_the_match(setup: &Setup) {
    let seen = Barrier::new(2);
    let posted = AtomicBool::new(false);
    setup.run(2, move |rank| {
        for (tag, len) in (0..).zip(SIZES) {
            if rank.me() == 0 {
                let mut send = rank.issend(payload(tag as u64, len), 1, tag).unwrap();
                rank.send(&[], 1, 1000 + tag).unwrap();
                seen.wait();
                for _ in 0..PATIENCE {
                    let status = rank.test(&mut send).unwrap();
                    assert_eq!(status, None, "{len} bytes: complete without a receive");
                }
                seen.wait();
                let (outcome, _) = rank.wait(send);
                assert!(posted.swap(false, Ordering::SeqCst), "{len} bytes");
                let status = outcome.unwrap();
                assert_eq!((status.source, status.tag, status.bytes), (1, tag, len));
            } else {
                rank.recv(&mut [], 0, 1000 + tag).unwrap();
                assert_eq!(rank.probe(0, tag).unwrap().bytes, len);
                seen.wait();
                seen.wait();
                posted.store(true, Ordering::SeqCst);
                let mut buffer = vec![0; len];
                rank.recv(&mut buffer, 0, tag).unwrap();
                check(&buffer, tag as u64);
            }
        }
    });
}

/// When the receive is there first, the send completes without another call of the program.
pub fn posted_receives_end_them(setup: &Setup) {
    let posted = Barrier::new(2);
    setup.run(2, move |rank| {
        for (tag, len) in (0..).zip(SIZES) {
            if rank.me() == 0 {
                posted.wait();
                let send = rank.issend(payload(tag as u64, len), 1, tag).unwrap();
                assert_eq!(rank.wait(send).0.unwrap().bytes, len);
            } else {
                let receive = rank.irecv(len, None, None).unwrap();
                posted.wait();
                let (outcome, bytes) = rank.wait(receive);
                assert_eq!(outcome.unwrap().tag, tag);
                check(&bytes, tag as u64);
            }
        }
    });
}

/// The blocking call does not return before the receive was posted.
pub fn the_blocking_form_waits(setup: &Setup) {
    let posted = AtomicBool::new(false);
    setup.run(2, move |rank| {
        for (tag, len) in (0..).zip(SIZES) {
            if rank.me() == 0 {
                rank.ssend(&payload(tag as u64, len), 1, tag).unwrap();
                assert!(posted.swap(false, Ordering::SeqCst), "{len} bytes");
                // It must not be posted again before it was looked at.
                rank.send(&[], 1, 1000).unwrap();
            } else {
                rank.probe(0, tag).unwrap();
                for _ in 0..PATIENCE {
                    rank.progress().unwrap();
                }
                posted.store(true, Ordering::SeqCst);
                let mut buffer = vec![0; len];
                rank.recv(&mut buffer, 0, tag).unwrap();
                check(&buffer, tag as u64);
                rank.recv(&mut [], 0, 1000).unwrap();
            }
        }
    });
}

/// A matched probe takes the message, but only its receive ends the send.
pub fn matched_by_a_probed_receive(setup: &Setup) {
    let taken = Barrier::new(2);
    setup.run(2, move |rank| {
        for (tag, len) in (0..).zip(SIZES) {
            if rank.me() == 0 {
                let mut send = rank.issend(payload(tag as u64, len), 1, tag).unwrap();
                rank.send(&[], 1, 1000).unwrap();
                taken.wait();
                for _ in 0..PATIENCE {
                    assert_eq!(rank.test(&mut send).unwrap(), None, "{len} bytes");
                }
                taken.wait();
                rank.wait(send).0.unwrap();
            } else {
                rank.recv(&mut [], 0, 1000).unwrap();
                let message = rank.mprobe(0, tag).unwrap();
                taken.wait();
                taken.wait();
                let (outcome, bytes) = rank.wait(rank.imrecv(message, len).unwrap());
                assert_eq!(outcome.unwrap().bytes, len);
                check(&bytes, tag as u64);
            }
        }
    });
}

/// To oneself: not complete before the receive, complete after it.
pub fn to_oneself(setup: &Setup) {
    setup.run(1, |rank| {
        for (tag, len) in (0..).zip(SIZES) {
            let mut send = rank.issend(payload(tag as u64, len), 0, tag).unwrap();
            for _ in 0..PATIENCE {
                assert_eq!(rank.test(&mut send).unwrap(), None, "{len} bytes");
            }
            let (outcome, bytes) = rank.wait(rank.irecv(len, 0, tag).unwrap());
            outcome.unwrap();
            check(&bytes, tag as u64);
            rank.wait(send).0.unwrap();
        }
    });
}
