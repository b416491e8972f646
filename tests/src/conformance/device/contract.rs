//! Arguments that every call refuses, and the limits of those that calls accept.

use std::sync::Arc;

use mpj_harness::watch;
use mpjdev::{Error, ErrorClass};

use super::job::Setup;
use super::rank::{Rank, check};
use crate::conformance::payload;

/// The answers of all calls that name a source and a tag, or a destination.
fn errors_of(rank: &Rank, peer: usize, tag: i32) -> Vec<Error> {
    let nothing: &mut [u8] = &mut [];
    vec![
        rank.send(&[1], peer, tag).unwrap_err(),
        rank.ssend(&[1], peer, tag).unwrap_err(),
        rank.isend(vec![1], peer, tag).unwrap_err(),
        rank.issend(vec![1], peer, tag).unwrap_err(),
        rank.recv(nothing, peer, tag).unwrap_err(),
        rank.irecv(0, peer, tag).unwrap_err(),
        rank.probe(peer, tag).unwrap_err(),
        rank.iprobe(peer, tag).unwrap_err(),
        rank.mprobe(peer, tag).unwrap_err(),
        rank.improbe(peer, tag).unwrap_err(),
    ]
}

/// Nothing was sent and nothing posted, and the device works.
fn nothing_happened(rank: &Rank) {
    let dump = rank.dump().unwrap();
    for line in [
        "posted receives without a message: 0\n",
        "unexpected messages without a receive: 0\n",
        "open requests: 0\n",
    ] {
        assert!(dump.contains(line), "{dump}");
    }
    let receive = rank.irecv(8, rank.me(), 1).unwrap();
    rank.send(&payload(5, 8), rank.me(), 1).unwrap();
    let (outcome, bytes) = rank.wait(receive);
    outcome.unwrap();
    check(&bytes, 5);
}

/// A rank that the job does not have.
pub fn no_such_rank(setup: &Setup) {
    setup.run(2, |rank| {
        for peer in [2, 3, usize::MAX, 1 << 32] {
            for error in errors_of(rank, peer, 0) {
                assert_eq!(error.class(), ErrorClass::Rank);
                assert!(
                    matches!(error, Error::Rank { rank, size: 2, .. } if rank == peer),
                    "{error}"
                );
                assert!(error.to_string().contains("ranks 0 to 1"), "{error}");
            }
        }
        nothing_happened(rank);
    });
}

/// A negative tag.
pub fn no_such_tag(setup: &Setup) {
    setup.run(1, |rank| {
        for wrong in [-1, i32::MIN] {
            for error in errors_of(rank, 0, wrong) {
                assert_eq!(error.class(), ErrorClass::Tag);
                assert!(matches!(error, Error::Tag { tag } if tag == wrong), "{error}");
            }
        }
        nothing_happened(rank);
    });
}

/// A request of one device given to another one, which has requests of the same numbers.
pub fn requests_of_other_devices(setup: &Setup) {
    let device = || Rank::new(Arc::new(setup.devices(1).remove(0)));
    let (home, other) = (device(), device());
    watch(move || {
        let strange = || home.irecv(8, 0, 1).unwrap().into_request();
        assert!(matches!(other.iwait(strange()), Err(Error::Request)), "no such number here");
        let own = [1, 2].map(|tag| other.irecv(8, 0, tag).unwrap());
        for request in [strange(), strange()] {
            // A test does not block: a request mistaken for one of these receives is not complete.
            let outcome = other.itest(&mut Some(request));
            assert!(matches!(outcome, Err(Error::Request)), "{outcome:?}");
        }
        let error = other.iwait(strange()).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Request);
        for (receive, tag) in own.into_iter().zip([1, 2]) {
            other.send(&payload(3, 8), 0, tag).unwrap();
            let (outcome, bytes) = other.wait(receive);
            assert_eq!(outcome.unwrap().tag, tag, "its own requests are unharmed");
            check(&bytes, 3);
        }
    });
}

/// A message that was taken by a matched probe of another device.
pub fn messages_of_other_devices(setup: &Setup) {
    let device = || Rank::new(Arc::new(setup.devices(1).remove(0)));
    let (home, other) = (device(), device());
    watch(move || {
        let probed = |rank: &Rank, tag| {
            rank.detach(rank.isend(payload(tag as u64, 8), 0, tag).unwrap());
            rank.mprobe(0, tag).unwrap()
        };
        let (own, strange) = (probed(&other, 1), probed(&home, 2));
        assert!(matches!(other.imrecv(strange, 8), Err(Error::Request)));
        let (outcome, bytes) = other.wait(other.imrecv(own, 8).unwrap());
        assert_eq!(outcome.unwrap().tag, 1, "its own message is unharmed");
        check(&bytes, 1);
    });
}

/// Zero and the largest tag are tags like any other, and not wildcards.
pub fn the_largest_tag(setup: &Setup) {
    setup.run(2, |rank| {
        let tags = [i32::MAX, 0, 1, i32::MAX - 1];
        if rank.me() == 0 {
            let send = |tag: i32| rank.isend(payload(tag as u64, 8), 1, tag).unwrap();
            rank.complete(&mut tags.map(send));
            return;
        }
        for tag in [0, i32::MAX - 1, i32::MAX, 1] {
            let mut buffer = [0; 8];
            assert_eq!(rank.recv(&mut buffer, 0, tag).unwrap().tag, tag);
            check(&buffer, tag as u64);
        }
    });
}
